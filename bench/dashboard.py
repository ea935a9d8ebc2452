#!/usr/bin/env python3
"""Measures a dashboard over a partitioned table that is written to, beside plain PostgreSQL and refreshed views.

    bench/dashboard.py [--quick] [--out DIRECTORY] [--rows-per-leaf N] [--leaves FEW MANY] [--rounds N] [--seconds N]
                       [PART ...]

Parts: writes (answers after a write, moving windows, the first fill), nothing (runs that gain nothing), planning,
closed (closed months), panels (ten panels and four readers); all by default. All parts in full length write
DATE-dashboard.md and its plot to bench/results; anything less, target/bench/results.
Goals not reached are reported, not failed: whether a machine is quick enough is no test.
"""

import argparse
import datetime
import os
import sys
import traceback
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import plots
from dashboard_cases import Sessions, after_writes, first_fill, planning, runs_that_gain_nothing
from dashboard_load import closed_months, panels
from dashboard_tables import DIMENSIONS, Facts
from measure import Part, machine, markdown
from program import ROOT, check_build, private, progress

FEWEST_LEAVES = 23   # of which the newest 22 months and a half are a window
PARTS = ("writes", "nothing", "planning", "closed", "panels")

# All data stays in memory; workers, and when they are used, as by default.
SERVER_CONF = {
    "shared_buffers": "3GB",
    "work_mem": "64MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "autovacuum": "off",
    "timezone": "'UTC'",
    "pg_arrow_cache.memory": "512MB",
}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    quick: bool
    rows_per_leaf: int
    leaves: tuple
    rounds: int
    looks: int      # at the ten panels, of each side
    seconds: int    # of one of them


FULL = Size(False, 100_000, (24, 120), 6, 4, 20)
QUICK = Size(True, 20_000, (24, 120), 4, 2, 6)


def load(server, facts):
    for each in facts:
        progress(f"dashboard: making {each.title}")
        server.psql("\n".join(each.making()))
    server.psql(DIMENSIONS + "VACUUM (FREEZE, ANALYZE); CREATE EXTENSION pg_arrow_cache;")


def writes(server, small, large, size):
    sessions = Sessions(server)
    part = after_writes(sessions, small, large, size, progress)
    rows = [first_fill(sessions, facts, size, progress) for facts in (small, large)]
    sessions.close()
    part.sections.append(markdown(
        "The first fill",
        "The run that computes and stores all parts, one after the other, beside plain runs. Milliseconds.",
        ["run", "plain", "plain, no workers", "all parts computed and stored", "of plain", "of plain without workers"],
        rows))
    return part


def measure(server, small, large, size, parts):
    """The findings of each part. One that fails must not take what the others have found with it."""
    actions = {
        "writes": lambda: writes(server, small, large, size),
        "nothing": lambda: runs_that_gain_nothing(server, small, size, progress),
        "planning": lambda: planning(server, large, size, progress),
        "closed": lambda: closed_months(server, small, size, progress),
        "panels": lambda: panels(server, small, size, progress),
    }
    for part in parts:
        try:
            yield actions[part]()
        except Exception:
            traceback.print_exc()
            yield Part(failed=part)


def heading(size, words):
    lines = [f"# A dashboard over partitions, measured on {datetime.date.today()}", "",
             f"Command: `{' '.join(['bench/dashboard.py', *words])}` (`make bench-dashboard` runs all parts)  ",
             f"Machine: {machine()}  ", f"Versions: {private.pg_config('--version')}; psycopg {version('psycopg')}  ",
             f"{size.rows_per_leaf:,} rows for each leaf. Server and client share all processors. Medians of {size.rounds} "
             "rounds in which all sides take turns; ratios are those of neighbours in a round, with their middle half "
             "in parentheses.", ""]
    if size.quick:
        lines += ["A quick run: small data and few rounds, so its figures tell little.", ""]
    return lines


def write(about, found, out):
    """The report and its plot, named by the date."""
    out.mkdir(parents=True, exist_ok=True)
    name = str(datetime.date.today())
    figures = {kind: data for part in found for kind, data in part.figures.items()}
    goals = markdown("Goals", "A goal not reached is reported and fails nothing.", ["figure", "measured", "goal", "reached"],
                     [goal.cells() for part in found for goal in part.goals])
    report = "\n".join([
        *about, *(f"Failed, and missing here: {part.failed}\n" for part in found if part.failed),
        *(f"![{title}]({path.name})\n" for title, path in plots.draw(figures, out, name, ()).items()),
        goals, *(section for part in found for section in part.sections)])
    path = out / f"{name}-dashboard.md"
    path.write_text(report)
    print(report)
    print(f"written to {os.path.relpath(path)}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, metavar="DIRECTORY")
    parser.add_argument("--rows-per-leaf", type=int)
    parser.add_argument("--leaves", type=int, nargs=2, metavar=("FEW", "MANY"))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("parts", nargs="*", metavar="PART")
    given = parser.parse_args()
    if set(given.parts) - set(PARTS):
        parser.error(f"the parts are {' '.join(PARTS)}")
    if given.leaves and not FEWEST_LEAVES <= given.leaves[0] < given.leaves[1]:
        parser.error(f"the two numbers of leaves grow, and begin with {FEWEST_LEAVES} or more")
    return given


def main():
    given = arguments()
    normal = QUICK if given.quick else FULL
    size = Size(given.quick, given.rows_per_leaf or normal.rows_per_leaf, tuple(given.leaves or normal.leaves),
                given.rounds or normal.rounds, normal.looks, given.seconds or normal.seconds)
    parts = [part for part in PARTS if part in (given.parts or PARTS)]
    check_build()
    private.exit_on_sigterm()

    about = heading(size, sys.argv[1:])
    small, large = (Facts(leaves, size.rows_per_leaf) for leaves in size.leaves)
    with private.Cluster(ROOT / "target" / "bench-dashboard", conf=SERVER_CONF) as server:
        load(server, (small, large))
        found = list(measure(server, small, large, size, parts))
    complete = size == FULL and len(parts) == len(PARTS)
    write(about, found, given.out or ROOT / ("bench" if complete else "target/bench") / "results")
    goals = [goal for part in found for goal in part.goals]
    print(f"{sum(goal.reached for goal in goals)} of {len(goals)} goals reached")
    failed = [part.failed for part in found if part.failed]
    sys.exit(f"bench: failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
