#!/usr/bin/env python3
"""From which run time on an answer is worth storing: processor time of the session that executes a statement plainly, executes and stores it, gets it
as a hit, executes it without storing it, and without looking it up.

    target/venv/bin/python bench/threshold.py [--rounds 20] [--library FILE]

The statement sums a range of rows by an index, so many that it takes about the time that is asked for. The cache is full, so that what is stored
takes the place of another answer. Writes Markdown to the standard output.
"""

import argparse
import os
from itertools import count

from measure import Samples, machine, markdown, processor_time, to_and_fro
from program import ROOT, private, progress
from session import Session

MILLISECONDS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
ROWS = 1_000_000
AT_ONCE = 100
SUM = "SELECT count(*), sum(amount) FROM measured WHERE id BETWEEN {} AND {}"
TABLE = f"""
    CREATE TABLE measured AS SELECT g AS id, g % 1000 AS amount, repeat('x', 50) AS pad FROM generate_series(1, {ROWS}) AS g;
    CREATE UNIQUE INDEX ON measured (id);
    VACUUM (ANALYZE) measured;
"""
CONF = {"shared_buffers": "256MB", "autovacuum": "off", "jit": "off", "max_parallel_workers_per_gather": "0",
        "pg_arrow_cache.memory": "64MB", "pg_arrow_cache.max_entries": "1000"}
# Whether the cache is on, min_execution_time, min_runs, whether the statements are new ones, and what becomes of them.
WAYS = {"plain": (False, "0", 1, True, "BYPASS"), "stored": (True, "0", 1, True, "MISS"), "hit": (True, "0", 1, False, "HIT"),
        "looked up": (True, "0", 2, True, "MISS"), "too quick": (True, "1min", 1, True, "BYPASS")}


class Asking:
    """Ranges of one length, of which each begins at another row."""

    def __init__(self, session, rows):
        self.session, self.rows, self.first = session, rows, count(1)

    def microseconds(self, way):
        """Processor time of the session for each statement."""
        caching, least_time, runs, is_new, status = WAYS[way]
        self.session.caching(caching)
        self.session.execute(f"SET pg_arrow_cache.min_execution_time = '{least_time}'; SET pg_arrow_cache.min_runs = {runs}")
        first = next(self.first)
        texts = [self.text(next(self.first) if is_new else first) for _ in range(AT_ONCE)]
        if not is_new:
            self.session.execute(texts[0])
            self.session.execute(texts[0])
        spent = processor_time(self.session.pid)
        for text in texts:
            self.session.execute(text)
        spent = processor_time(self.session.pid) - spent
        self.session.expect(status)
        return spent / AT_ONCE * 1e6

    def text(self, first):
        start = first * 7919 % (ROWS - self.rows) + 1
        return SUM.format(start, start + self.rows - 1)


def rows_for(session, milliseconds):
    """How many rows take about that long."""
    rows = 1000
    for _ in range(4):
        taken = Asking(session, rows).microseconds("plain") / 1e3
        rows = max(1, int(rows * milliseconds / taken))
    return rows


def measured(session, milliseconds, rounds):
    """{way: microseconds of each round}"""
    asking = Asking(session, rows_for(session, milliseconds))
    found = {way: Samples() for way in WAYS}
    for way in WAYS:
        asking.microseconds(way)
    for _, way in to_and_fro(list(WAYS), rounds):
        found[way].add(asking.microseconds(way))
    return found


def row_of(found):
    plain, stored, hit, looked_up, quick = (found[way].median for way in WAYS)
    storing, gain = stored - plain, plain - hit
    pays = f"{storing / (storing + gain):.0%}" if gain > 0 else "never"
    return [f"{plain:.0f}", f"{found['plain'].spread:.0%}", f"{hit:.0f}", f"{gain / plain:.0%}", f"{storing:.0f}", f"{storing / plain:.0%}",
            pays, f"{looked_up - plain:+.0f}", f"{quick - plain:+.0f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="an even number")
    parser.add_argument("--library", default="pg_arrow_cache", help="what is preloaded; the installed library by default")
    options = parser.parse_args()
    rows = []
    with private.Cluster(ROOT / "target" / "bench" / "threshold", preload=options.library, cpu=os.cpu_count() - 1, conf=CONF) as server:
        server.psql("CREATE EXTENSION IF NOT EXISTS pg_arrow_cache;" + TABLE)
        for milliseconds in MILLISECONDS:
            progress(f"threshold: {milliseconds} ms")
            session = Session(server.dsn())
            rows.append(row_of(measured(session, milliseconds, options.rounds)))
            session.close()
    print(markdown(
        "What is worth storing", f"{machine()}\n\nMicroseconds of processor time of the session's process, medians of {options.rounds} rounds of {AT_ONCE} "
        "statements in the simple protocol. *Storing* is what an execution takes more that stores its answer; it pays if at least the next share of the statements is answered. "
        "*Looked up* is what one takes more that is counted and not stored (min_runs = 2), *too quick* one that is not looked up.",
        ["plain", "spread", "hit", "a hit saves", "storing", "of plain", "pays from", "looked up", "too quick"], rows))


if __name__ == "__main__":
    main()
