#!/usr/bin/env python3
"""Measures pages of many tenants beside writers: which answers stay, and what a page takes.

    bench/tenants.py [--quick] [--any-build] [--out DIRECTORY] [--rows N] [--tenants N] [--seconds N] [--rounds N] [--visits N]
                     [--writes N] [--batches SHARE] [--memory SIZE] [--sides SIDE ...]

Sides: plain (no cache), "plain alone" (no cache, without writers), whole (precise_invalidation off), values (on), alone
(on, without writers), "table tags" and "tenant tags" (Redis, filled by the application); all by default. What writers
add to a page without a cache tells how much of what they add with it is contention for the processors.
All in full length write DATE-tenants.md to bench/results; anything less, target/bench/results.
One tenant in two is judged at each visit: each answer is executed as well, with the cache off, under the same
snapshot. What has the same answer as at the visit before is unchanged: an all-knowing cache would have it. A hit that
differs from executing ends the program with an error.
Goals not reached are reported, not failed: whether a machine is quick enough is no test.
"""

import argparse
import collections
import datetime
import os
import statistics
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import tenants_load
from measure import Goal, Part, Ratio, figure, machine, markdown
from program import ROOT, check_build, private, progress
from tenants_load import Load, Seen
from tenants_tables import BATCH, LAYERS, PAGE, Shop

SIDES = {
    "plain": "no cache",
    "plain alone": "no cache, without writers",
    "whole": "`precise_invalidation` off",
    "values": "the cache",
    "alone": "the cache, without writers",
    "table tags": "Redis, a tag for each table",
    "tenant tags": "Redis, a tag for each tenant",
}
# Sides without writers, and what they are otherwise.
ALONE = {"alone": "values", "plain alone": "plain"}
PUBLISHED = ("precise_publications", "coarse_not_noted", "coarse_overflow", "coarse_generation", "coarse_definitions")

SERVER_CONF = {
    "shared_buffers": "2GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "synchronous_commit": "off",
    "timezone": "'UTC'",
    "pg_arrow_cache.max_entries": "200000",
    "pg_arrow_cache.min_execution_time": "0",
}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rows: int
    tenants: int
    seconds: float
    rounds: int
    visits: float
    writes: float
    batches: float
    memory: str
    readers: int = 2

    @property
    def warm_up(self):
        return self.seconds / 4


FULL = Size(5_000_000, 10_000, 40, 2, 50, 500, 0.02, "1GB")
QUICK = replace(FULL, rows=500_000, seconds=7, rounds=1)


class Bench:
    """The servers, and what each side has seen in each round."""

    def __init__(self, server, redis, size):
        self.server, self.redis, self.size = server, redis, size
        self.shop = Shop(size.rows, size.tenants)
        self.seen = collections.defaultdict(list)
        self.published = collections.Counter()

    def load(self, side):
        size = self.size
        return Load(self.shop, self.server.dsn(), ALONE.get(side, side), size.seconds, size.warm_up, size.readers,
                    size.visits, 0 if side in ALONE else size.writes, size.batches, self.redis and str(self.redis.socket))

    def run(self, side, number):
        progress(f"tenants: {SIDES[side]}, round {number + 1} of {self.size.rounds}")
        self.server.psql("SELECT arrow_cache.flush()")
        if self.redis:
            self.redis.client().flushall()
        before = self.counters()
        seen = tenants_load.run(self.load(side))
        if side == "values":
            self.published.update({name: count - before[name] for name, count in self.counters().items()})
        self.seen[side].append(seen)

    def counters(self):
        row = self.server.psql(f"SELECT concat_ws(' ', {', '.join(PUBLISHED)}) FROM arrow_cache.stats")
        return dict(zip(PUBLISHED, map(int, row.split())))


def hits(seen):
    """Of those of an all-knowing cache."""
    return seen.hits.total() / max(1, seen.unchanged.total())


def outdated(seen, by_others=False):
    """Answers that were outdated although they had not changed, of those that had not; of other tenants' changes alone, if so asked."""
    return sum(count for (_, status, _, changed), count in seen.missed.items()
               if status.startswith("STALE") and (changed == LAYERS[0] or not by_others)) / max(1, seen.unchanged.total())


def mean(seen):
    return statistics.fmean(seen.pages) if seen.pages else float("nan")


def slowdowns(found, side, alone):
    """Of each round: the time of a page beside writers, of that without."""
    return [mean(one) / mean(other) for one, other in zip(found[side], found[alone])]


def goals(bench):
    found = bench.seen
    if "values" in found:
        yield Goal.at_least("hits, of those of an all-knowing cache", Ratio([hits(one) for one in found["values"]]), 0.97)
        yield Goal.at_most("outdated although unchanged", Ratio([outdated(one) for one in found["values"]]), 0.03)
        yield Goal.at_most("of these, by changes of other tenants", Ratio([outdated(one, by_others=True) for one in found["values"]]), 0.03)
    if "values" in found and "alone" in found:
        cached = slowdowns(found, "values", "alone")
        yield Goal.at_most("time of a page, of that without writers", Ratio(cached), 1.3)
        if "plain" in found and "plain alone" in found:
            plain = slowdowns(found, "plain", "plain alone")
            own = Ratio([one / other for one, other in zip(cached, plain)])
            yield Goal.at_most("this, of the same ratio without a cache", own, 1.3)


def by_side(bench):
    rows = []
    for side, rounds in bench.seen.items():
        seen = Seen()
        for one in rounds:
            seen.add(one)
        seconds = (bench.size.seconds - bench.size.warm_up) * len(rounds)
        has_cache = ALONE.get(side, side) != "plain"
        pages = sorted(seen.pages) or [float("nan")]
        rows.append([
            SIDES[side], f"{seen.asked.total():,}", f"{seen.unchanged.total() / max(1, seen.asked.total()):.1%}",
            figure(hits(seen)) if has_cache else "", *[f"{outdated(seen, by_others):.1%}" if has_cache and "tags" not in side else "" for by_others in (False, True)],
            f"{seen.wrong.total():,}" if has_cache else "", figure(statistics.median(pages)), figure(mean(seen)),
            figure(pages[int(0.99 * (len(pages) - 1))]), figure(seen.visits / seconds), figure(seen.writes / seconds)])
    note = ("Of the questions that were asked again, by those who are judged: which share was *unchanged*; which share of these was a hit; "
            "which was outdated nevertheless, and which without a change of the tenant's rows; answers that were wrong. Pages of eight statements that were all asked before, in milliseconds.")
    return markdown("Answers and pages", note, ["side", "asked again", "unchanged", "hits", "outdated", "by others", "wrong answers", "page, median", "mean",
                                                "99th percentile", "pages per s", "changes per s"], rows)


def by_statement(bench, side):
    seen = Seen()
    for one in bench.seen[side]:
        seen.add(one)
    rows = []
    for name in (statement.name for statement in PAGE):
        own = collections.Counter()
        for (statement, status, rested_on, _), count in seen.missed.items():
            if statement == name:
                own[f"{status} [{rested_on}]" if rested_on else status] += count
        unchanged = max(1, seen.unchanged[name])
        reasons = ", ".join(f"{reason} {count / unchanged:.1%}" for reason, count in own.most_common())
        rows.append([name, f"{seen.asked[name]:,}", f"{seen.unchanged[name]:,}", figure(seen.hits[name] / unchanged), reasons,
                     f"{seen.wrong[name]:,}"])
    return markdown(f"By statement: {SIDES[side]}", "What became of questions whose answers were unchanged, if they were no hits. In brackets stands what an outdated answer "
                    "rested on.", ["statement", "asked again", "unchanged", "hits", "no hits", "wrong"], rows)


def by_cause(bench, side):
    """What has changed of those that were no hits although their answers were unchanged."""
    seen = Seen()
    for one in bench.seen[side]:
        seen.add(one)
    causes = collections.defaultdict(collections.Counter)
    for (statement, status, _, changed), count in seen.missed.items():
        causes[status if changed == "" else f"{status}: {changed}"][statement] += count
    rows = [[cause, f"{of.total():,}", f"{of.total() / max(1, seen.unchanged.total()):.1%}", ", ".join(f"{name} {count:,}" for name, count in of.most_common())]
            for cause, of in sorted(causes.items(), key=lambda pair: -pair[1].total())]
    return markdown(f"Why no hits: {SIDES[side]}", "Of questions whose answers were unchanged: what became of those that were no hits, and what of the tenant's rows had changed in the "
                    "tables of the statement. Each stands with the narrowest change that concerns it: *columns that it does not read* tells that nothing else of these rows has changed.",
                    ["what became of them, and what had changed", "questions", "of all", "statements"], rows)


def report(bench, words):
    size = bench.size
    contention = ""
    if "plain" in bench.seen and "plain alone" in bench.seen:
        ratio = Ratio(slowdowns(bench.seen, "plain", "plain alone"))
        contention = f" Without a cache a page beside writers takes {ratio} of the time of one without."
    lines = [f"# Pages of many tenants, measured on {datetime.date.today()}", "",
             f"Command: `{' '.join(['bench/tenants.py', *words])}`  ", f"Machine: {machine()}  ",
             f"Versions: {private.pg_config('--version')}  ",
             f"{size.tenants:,} tenants (visits by Zipf's law, changes over all alike), {size.rows:,} rows in five tables; {size.visits:g} pages "
             f"and {size.writes:g} transactions a second, of which {size.batches:.0%} change {BATCH} rows of as many tenants; "
             f"`memory` = {size.memory}, `min_execution_time` = 0. {size.rounds} rounds of {size.seconds:g} s for each side, "
             f"of which the first {size.warm_up:g} s do not count. Clients and servers share all processors.{contention}", ""]
    if "values" in bench.seen:
        counts = ", ".join(f"{name} {count:,}" for name, count in bench.published.items() if count)
        lines += [f"What writers published of tracked tables: {counts}.", ""]
    part = Part(list(goals(bench)))
    part.sections = [markdown("Goals", "A goal not reached is reported and fails nothing.", ["figure", "measured", "goal", "reached"],
                              [goal.cells() for goal in part.goals]),
                     by_side(bench), *(table(bench, side) for side in bench.seen if ALONE.get(side, side) != "plain" for table in (by_cause, by_statement))]
    return part, "\n".join([*lines, *part.sections])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--any-build", action="store_true", help="measure what is installed, be it no release")
    parser.add_argument("--out", type=Path, metavar="DIRECTORY")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES), metavar="SIDE")
    for name, kind in [("rows", int), ("tenants", int), ("seconds", float), ("rounds", int), ("visits", float), ("writes", float),
                       ("batches", float), ("memory", str)]:
        parser.add_argument(f"--{name}", type=kind)
    given = parser.parse_args()
    chosen = {name: value for name, value in vars(given).items() if name in Size.__dataclass_fields__ and value is not None}
    return given, replace(QUICK if given.quick else FULL, **chosen)


def main():
    given, size = arguments()
    if not given.any_build:
        check_build()
    private.exit_on_sigterm()
    with ExitStack() as stack:
        conf = {**SERVER_CONF, "pg_arrow_cache.memory": size.memory}
        server = stack.enter_context(private.Cluster(ROOT / "target" / "bench-tenants", conf=conf))
        redis = None
        if any(side.endswith("tags") for side in given.sides):
            from redis_server import RedisServer
            redis = stack.enter_context(RedisServer(ROOT / "target" / "bench-tenants-redis"))
        bench = Bench(server, redis, size)
        progress(f"tenants: making {size.rows:,} rows")
        server.psql(bench.shop.making())
        for number in range(size.rounds):
            for side in given.sides[:: -1 if number % 2 else 1]:
                bench.run(side, number)
        part, text = report(bench, sys.argv[1:])
    complete = size == FULL and len(given.sides) == len(SIDES)
    out = given.out or ROOT / ("bench" if complete else "target/bench") / "results"
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{datetime.date.today()}-tenants.md"
    path.write_text(text)
    print(text)
    print(f"written to {os.path.relpath(path)}")
    print(f"{sum(goal.reached for goal in part.goals)} of {len(part.goals)} goals reached")


if __name__ == "__main__":
    main()
