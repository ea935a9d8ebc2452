#!/usr/bin/env python3
"""The demo: a dashboard of eight queries, uncached, cached, and after an UPDATE. Every figure printed is measured here.

DEMO_KEEP=1 leaves the server running and prints how to connect to it; DEMO_PICTURE names the file of the picture.
"""

import hashlib
import os
import re
import statistics
import sys
import time
from pathlib import Path

import psycopg
import pyarrow as pa
from psycopg.pq import ExecStatus

import dataset
import picture

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import cluster as private  # noqa: E402  (it lives beside the other scripts)

UNCACHED_PASSES = 2   # the faster one counts, so that a cold buffer pool does not flatter the cache
WARM_PASSES = 9
STARTED = time.monotonic()


def progress(text):
    print(f"[{time.monotonic() - STARTED:4.0f} s] {text}", flush=True)


class Dashboard:
    """One session that runs the queries as psql would: simple protocol, results as text, all rows fetched."""

    def __init__(self, dsn):
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.queries = dataset.queries()

    def execute(self, sql):
        """Runs one statement below psycopg's row machinery, whose decoding is no part of what is measured."""
        result = self.connection.pgconn.exec_(sql.encode())
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise RuntimeError(f"{result.error_message.decode()}\nin: {sql}")
        return result

    def timed(self, name):
        """Runs a query of the dashboard: (milliseconds, result)."""
        started = time.perf_counter()
        result = self.execute(self.queries[name])
        return (time.perf_counter() - started) * 1000, result

    def scalar(self, sql):
        return self.execute(sql).get_value(0, 0).decode()

    def status(self):
        """HIT, MISS, STALE or BYPASS for the statement just run, with the reason where there is one."""
        status = self.scalar("SELECT arrow_cache.last_status()")
        if status != "BYPASS":
            return status
        return f"BYPASS ({self.scalar('SELECT arrow_cache.last_reason()')})"

    def one_pass(self):
        """Every query once: name → (milliseconds, status)."""
        answers = {}
        for name in self.queries:
            elapsed, _ = self.timed(name)
            answers[name] = elapsed, self.status()
        return answers

    def digests(self):
        """Every query once: name → a digest of all its values."""
        return {name: digest(self.timed(name)[1]) for name in self.queries}

    def caching(self, on):
        self.execute(f"SET pg_arrow_cache.enabled = {'on' if on else 'off'}")


def digest(result):
    """Values and NULLs with their lengths, so that no two different results have the same digest input."""
    sha = hashlib.sha256()
    for row in range(result.ntuples):
        for column in range(result.nfields):
            value = result.get_value(row, column)
            sha.update(b"-1:" if value is None else b"%d:%b" % (len(value), value))
    return sha.hexdigest()


def table(header, rows):
    """Prints rows under a header; columns of numbers stand right."""
    cells = [header, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    numeric = [all(re.fullmatch(r"[\d.,×]+", cell) for cell in column[1:]) for column in zip(*cells)]
    for number, row in enumerate(cells):
        aligned = [cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric)]
        print(("  " + " │ ".join(aligned)).rstrip())
        if number == 0:
            print("  " + "─┼─".join("─" * width for width in widths))


def show(dashboard, sql):
    """Prints the first row of a query, one column a line."""
    result = dashboard.execute(sql)
    for column in range(result.nfields):
        value = result.get_value(0, column)
        print(f"  {result.fname(column).decode():20} {'' if value is None else value.decode()}")


def measure(dashboard):
    """Uncached, storing, warm. Returns whether every repeat was a hit with the uncached answer, and the times of each
    query: name → (uncached, warm)."""
    progress(f"running the dashboard without the cache, {UNCACHED_PASSES} times")
    dashboard.caching(False)
    uncached, rows, expected = {}, {}, {}
    for _ in range(UNCACHED_PASSES):
        for name in dashboard.queries:
            elapsed, result = dashboard.timed(name)
            uncached[name] = min(elapsed, uncached.get(name, elapsed))
            rows[name] = result.ntuples
            expected[name] = digest(result)
    progress("the first run with the cache: it stores")
    dashboard.caching(True)
    stored = dashboard.one_pass()
    progress(f"the repeats, {WARM_PASSES} times")
    warm = [dashboard.one_pass() for _ in range(WARM_PASSES)]
    equal = dashboard.digests() == expected

    lines, times, all_hits = [], {}, True
    for name in dashboard.queries:
        hit_ms = statistics.median(answers[name][0] for answers in warm)
        statuses = {answers[name][1] for answers in warm}
        all_hits = all_hits and statuses == {"HIT"}
        times[name] = uncached[name], hit_ms
        lines.append([name, f"{rows[name]:,}", f"{uncached[name]:.1f}", f"{stored[name][0]:.1f}", f"{hit_ms:.2f}",
                      f"{uncached[name] / hit_ms:.0f}×", f"{stored[name][1]}, then {' '.join(sorted(statuses))}"])
    print()
    table(["query", "rows", "uncached ms", "storing ms", "hit ms", "speed-up", "status"], lines)
    print(f"\n  all values equal to the uncached answers: {'yes' if equal else 'NO'}\n")
    return all_hits and equal, times


def after_update(dashboard):
    """One UPDATE of one table: exactly the queries over it miss, once. Returns whether that is what happened, and of each
    query the time of the first run after it, and whether it reads the table."""
    update = "UPDATE stores SET floor_area = floor_area + 10 WHERE region = 'North'"
    progress(update)
    dashboard.execute(update)
    first, second = dashboard.one_pass(), dashboard.one_pass()
    cached = dashboard.digests()
    dashboard.caching(False)
    equal = dashboard.digests() == cached
    dashboard.caching(True)

    lines, times, as_promised = [], {}, True
    for name, sql in dashboard.queries.items():
        over_stores = re.search(r"\b(FROM|JOIN) stores\b", sql) is not None
        missed, hit_again = first[name][1] in ("MISS", "STALE"), second[name][1] == "HIT"
        as_promised = as_promised and hit_again and (missed if over_stores else first[name][1] == "HIT")
        times[name] = first[name][0], over_stores
        lines.append([name, "yes" if over_stores else "no", first[name][1], second[name][1]])
    print()
    table(["query", "reads stores", "first run", "second run"], lines)
    print(f"\n  all values equal to the uncached answers after the UPDATE: {'yes' if equal else 'NO'}\n")
    return as_promised and equal, times


def show_insides(dashboard):
    print("  arrow_cache.stats\n")
    show(dashboard, "SELECT * FROM arrow_cache.stats")
    name = next(name for name in dashboard.queries if "product_region" in name)
    sql = dashboard.queries[name]
    print(f"\n  EXPLAIN (ANALYZE) of {name}\n")
    plan = dashboard.execute(f"EXPLAIN (ANALYZE) {sql}")
    for row in range(plan.ntuples):
        print("  " + plan.get_value(row, 0).decode())

    print(f"\n  {name} as Arrow: SELECT arrow_cache.query(…), read by pyarrow\n")
    started = time.perf_counter()
    cursor = dashboard.connection.execute("SELECT arrow_cache.query(%s)", (sql,), binary=True)
    stream = cursor.fetchone()[0]
    arrow = pa.ipc.open_stream(stream).read_all()
    elapsed = (time.perf_counter() - started) * 1000
    print(f"  {arrow.num_rows:,} rows × {arrow.num_columns} columns, {len(stream):,} bytes, {elapsed:.1f} ms")
    for field in arrow.schema:
        print(f"    {field.name:18} {field.type}")
    print()


def show_picture(measured):
    files = picture.write(measured, dataset.SALES, Path(os.environ.get("DEMO_PICTURE", ROOT / "target" / "demo.svg")))
    print("  a picture of these times: " + ", ".join(map(str, files)) + "\n")


def main():
    keep = os.environ.get("DEMO_KEEP") == "1"
    private.exit_on_sigterm()
    progress("starting a private server")
    server = private.Cluster(ROOT / "target" / "demo", conf=dataset.SERVER_CONF)
    try:
        server.start()
        dataset.load(server, progress)
        dashboard = Dashboard(server.dsn())
        all_hits, before = measure(dashboard)
        missed_once, after = after_update(dashboard)
        as_promised = all_hits and missed_once
        show_insides(dashboard)
        show_picture([picture.Answers(name, *before[name], *after[name]) for name in before])
        dashboard.connection.close()
        progress("done")
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            server.stop()
    if keep:
        print(f"\nThe server is still running.\n  connect  {server.psql_command()}"
              f"\n  stop     scripts/cluster.py stop {server.base}")
    if not as_promised:
        sys.exit("demo: not every query behaved as promised, see the status columns")


if __name__ == "__main__":
    main()
