#!/usr/bin/env python3
"""Measures boards whose drop-downs ask the same questions with ever new constants, beside plain PostgreSQL.

    bench/cubes.py [--quick] [--out DIRECTORY] [--rows N] [--questions N]

Each form is asked with constants drawn anew, plain and with the cache by turns, and both answers are compared: one that
differs ends the program with an error. A row is inserted once a second. A question has read no row of the table if it
was a hit, or all of its parts were stored. The full length writes DATE-cubes.md to bench/results; anything less,
target/bench/results.
Goals not reached are reported, not failed: whether a machine is quick enough is no test.
"""

import argparse
import datetime
import os
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from measure import Goal, Ratio, Samples, machine, markdown, milliseconds
from program import ROOT, check_build, private, progress
from session import Session, digest

REGIONS, CATEGORIES, SHOPS, DAYS = 12, 30, 200, 1096
LEARNING = 3
SEED = 48

SERVER_CONF = {
    "shared_buffers": "2GB",
    "work_mem": "64MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "autovacuum": "off",
    "timezone": "'UTC'",
    "pg_arrow_cache.memory": "256MB",
}
# In the order of the days, as a table grows.
MAKING = """
    CREATE EXTENSION pg_arrow_cache;
    CREATE TABLE sales (id bigint, day date, region text, category text, shop int, quantity int, amount numeric(12, 2));
    SELECT setseed(0.5);
    INSERT INTO sales SELECT g, date '2022-01-01' + (g * {days} / {rows})::int, 'region ' || (random() * {regions})::int % {regions},
        'category ' || (random() * {categories})::int % {categories}, (random() * {shops})::int % {shops}, 1 + (random() * 9)::int, (random() * 1000)::numeric(12, 2)
    FROM generate_series(0, {rows} - 1::bigint) g;
    VACUUM (FREEZE, ANALYZE) sales;
"""
INSERT = "INSERT INTO sales VALUES (-{number}, '2024-12-31', 'region 1', 'category 1', 1, 1, 9.99)"
SUMS = "count(*), sum(amount), avg(quantity) FROM sales"
# What the board asks: {region}, {category}, {shop}, {first} and {last} are drawn anew for each question.
FORMS = {
    "one drop-down of 12": f"SELECT category, {SUMS} WHERE region = '{{region}}' GROUP BY category ORDER BY category",
    "one of 30": f"SELECT region, {SUMS} WHERE category = '{{category}}' GROUP BY region ORDER BY region",
    "two: 12 × 30": f"SELECT {SUMS} WHERE region = '{{region}}' AND category = '{{category}}'",
    "one of 200": f"SELECT {SUMS} WHERE shop = {{shop}}",
    "two: 12 × 200": f"SELECT {SUMS} WHERE region = '{{region}}' AND shop = {{shop}}",
    "three: 12 × 30 × 200": f"SELECT {SUMS} WHERE region = '{{region}}' AND category = '{{category}}' AND shop = {{shop}}",
    "years": f"SELECT extract(year FROM day) AS at, {SUMS} WHERE region = '{{region}}' GROUP BY 1 ORDER BY 1",
    "months of a window": f"SELECT date_trunc('month', day) AS at, {SUMS} WHERE region = '{{region}}' AND day BETWEEN '{{first}}' AND '{{last}}' GROUP BY 1 ORDER BY 1",
    "days of a window": f"SELECT day, {SUMS} WHERE region = '{{region}}' AND day BETWEEN '{{first}}' AND '{{last}}' GROUP BY 1 ORDER BY 1",
    "the best ten": f"SELECT shop, sum(amount) FROM sales WHERE region = '{{region}}' GROUP BY shop HAVING count(*) > 10 ORDER BY 2 DESC, 1 LIMIT 10",
}


@dataclass(frozen=True)
class Size:
    rows: int
    questions: int     # of each form


FULL = Size(5_000_000, 60)
QUICK = Size(1_500_000, 20)


@dataclass
class Asked:
    """What was found of the questions of a form: of the first ones, while it is learned, and of the others."""

    plain: Samples = field(default_factory=Samples)
    cached: Samples = field(default_factory=Samples)
    unread: int = 0
    newest: int = 0     # that read one part: that of the row that was inserted since

    def add(self, plain, cached, computed):
        self.plain.add(plain)
        self.cached.add(cached)
        self.unread += computed == 0
        self.newest += computed == 1


class Board:
    def __init__(self, server):
        self.writer, self.cached, self.plain = (Session(server.dsn()) for _ in range(3))
        self.plain.caching(False)
        self.choose = random.Random(SEED)
        self.written = time.monotonic()
        self.inserts = 0

    def question(self, form):
        first, last = sorted(self.choose.sample(range(DAYS), 2))
        day = datetime.date(2022, 1, 1)
        return FORMS[form].format(
            region=f"region {self.choose.randrange(REGIONS)}", category=f"category {self.choose.randrange(CATEGORIES)}",
            shop=self.choose.randrange(SHOPS), first=day + datetime.timedelta(first), last=day + datetime.timedelta(last))

    def write(self):
        """Once a second, between two questions: both sides see the same rows."""
        while time.monotonic() - self.written >= 1:
            self.writer.execute(INSERT.format(number=self.inserts))
            self.written += 1
            self.inserts += 1

    def counted(self):
        result = self.writer.execute("SELECT hits, fragment_runs, fragments_computed FROM arrow_cache.stats")
        return [int(result.get_value(0, column)) for column in range(3)]

    def ask(self, form, number):
        """How long the question took on each side, and how many parts the cache computed for it; None if it was executed whole."""
        self.write()
        query, times, answers = self.question(form), {}, {}
        before = self.counted()
        for side in ("plain", "cached") if number % 2 else ("cached", "plain"):
            session = getattr(self, side)
            times[side] = milliseconds(lambda: answers.update({side: session.execute(query)}))
        hits, runs, computed = (now - then for now, then in zip(self.counted(), before))
        if digest(answers["plain"]) != digest(answers["cached"]):
            raise RuntimeError(f"answers differ: {query}")
        return times["plain"], times["cached"], computed if hits + runs > 0 else None


def measure(server, size):
    board = Board(server)
    learning, known = ({form: Asked() for form in FORMS} for _ in range(2))
    for number in range(size.questions):
        for form in FORMS:
            (learning if number < LEARNING else known)[form].add(*board.ask(form, number))
        progress(f"cubes: {number + 1} of {size.questions} questions of each form")
    kilobytes = int(board.writer.scalar("SELECT fragment_bytes FROM arrow_cache.stats")) / 1024
    entries = board.writer.scalar("SELECT count(*) FROM arrow_cache.entries WHERE kind = 'fragment'")
    notes = f"{board.inserts} rows were inserted meanwhile. {entries} parts take {kilobytes / 1024:.1f} MB."
    return learning, known, kilobytes / 1024, notes


def report(found):
    learning, known, megabytes, notes = found
    rows = [[form, f"{asked.unread} of {len(asked.plain.values)}", str(asked.newest), f"{asked.plain.median:.1f}", f"{asked.cached.median:.2f}",
             f"{asked.plain.median / asked.cached.median:.1f}", str(Ratio.of(learning[form].cached, learning[form].plain)),
             f"{max(Ratio.of(asked.cached, asked.plain).rounds):.2f}"] for form, asked in known.items()]
    total = sum(len(asked.plain.values) for asked in known.values())
    share = Ratio([sum(asked.unread for asked in known.values()) / total])
    newest = Ratio([sum(asked.unread + asked.newest for asked in known.values()) / total])
    every = Ratio([asked.cached.median / asked.plain.median for asked in known.values()])
    first = Ratio([ratio for asked in learning.values() for ratio in Ratio.of(asked.cached, asked.plain).rounds])
    goals = [
        Goal.at_least("questions after the first three of a form that read no row of the table", share, 0.9),
        Goal.at_least("those that read no row, or the part alone in which a row was inserted since", newest, 0.9),
        Goal.at_most("their time, of plain: the median of the forms' medians", every, 0.02),
        Goal.at_most("the first three of a form, of plain", first, 1.1),
        Goal.at_most("memory of the parts, MB", Ratio([megabytes]), 64),
    ]
    return [
        markdown("Goals", "A goal not reached is reported and fails nothing.", ["figure", "measured", "goal", "reached"],
                 [goal.cells() for goal in goals]),
        markdown("Forms", f"{notes} Milliseconds, medians.",
                 ["form", "read no row", "read the newest part", "plain", "cache", "times as quick", "first three, of plain", "slowest, of plain"], rows),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, metavar="DIRECTORY")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--questions", type=int)
    given = parser.parse_args()
    normal = QUICK if given.quick else FULL
    size = Size(given.rows or normal.rows, given.questions or normal.questions)
    check_build()
    private.exit_on_sigterm()
    about = [f"# Boards with drop-downs, measured on {datetime.date.today()}", "",
             f"Command: `{' '.join(['bench/cubes.py', *sys.argv[1:]])}`  ", f"Machine: {machine()}  ",
             f"Versions: {private.pg_config('--version')}  ", f"{size.rows:,} rows, {size.questions} questions of each form.", ""]
    with private.Cluster(ROOT / "target" / "bench-cubes", conf=SERVER_CONF) as server:
        progress("cubes: making the table")
        server.psql(MAKING.format(rows=size.rows, days=DAYS, regions=REGIONS, categories=CATEGORIES, shops=SHOPS))
        found = "\n".join([*about, *report(measure(server, size))])
    out = given.out or ROOT / ("bench" if size == FULL else "target/bench") / "results"
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{datetime.date.today()}-cubes.md"
    path.write_text(found)
    print(found)
    print(f"written to {os.path.relpath(path)}")


if __name__ == "__main__":
    main()
