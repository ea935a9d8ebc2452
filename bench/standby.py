#!/usr/bin/env python3
"""Measures the library on hot standbys: what it costs replay, what a hit costs there, two standbys, recovery conflicts.

    bench/standby.py [--quick] [--out DIRECTORY] [--rounds N] [--seconds N] [PART ...]

Parts: replay (recorded WAL with and without the library), instructions (the same counted by callgrind, and those of hits), hits
(on a standby beside its primary), two (standbys at the same time), conflicts (statements that replay cancels); all by
default. All parts in full length write DATE-standby.md to bench/results; anything less, target/bench/results.
Goals not reached are reported, not failed: whether a machine is quick enough is no test.
"""

import argparse
import datetime
import os
import sys
import traceback
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from measure import Part, machine, markdown
from program import ROOT, check_build, private, progress
from standby_conflicts import measure_conflicts
from standby_hits import measure_hits, measure_two
from standby_instructions import measure_hit_instructions, measure_replay_instructions
from standby_replay import Recording, measure_replay

PARTS = ("replay", "instructions", "hits", "two", "conflicts")


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    quick: bool
    rounds: int
    seconds: int          # of a run of pgbench, or of dashboards
    accounts_scale: int
    pieces: int           # of the WAL of a workload
    transactions: int     # of TPC-B in a piece
    rows: int             # written by a statement in a piece


FULL = Size(False, 5, 3, 5, 2, 8_000, 200_000)
QUICK = Size(True, 2, 1, 2, 1, 2_000, 20_000)
# Under callgrind a process takes some fifty times as long.
COUNTED = {"accounts_scale": 1, "pieces": 1, "transactions": 1_000, "rows": 10_000}


def measure(directory, size, parts):
    """The findings of each part. One that fails must not take what the others have found with it."""
    actions = {
        "replay": lambda: with_recording(measure_replay, directory, size),
        "instructions": lambda: instructions(directory, replace(size, **COUNTED)),
        "hits": lambda: measure_hits(directory, size, progress),
        "two": lambda: measure_two(directory, size, progress),
        "conflicts": lambda: measure_conflicts(directory, size, progress),
    }
    for part in parts:
        try:
            yield actions[part]()
        except Exception:
            traceback.print_exc()
            yield Part(failed=part)


def with_recording(measuring, directory, size):
    with Recording(f"{directory}-recorded", size, progress) as recording:
        return measuring(recording, directory, size, progress)


def instructions(directory, size):
    found = [with_recording(measure_replay_instructions, directory, size), measure_hit_instructions(directory, progress)]
    return Part([goal for part in found for goal in part.goals], [section for part in found for section in part.sections])


def heading(size, words):
    lines = [f"# Hot standbys, measured on {datetime.date.today()}", "",
             f"Command: `{' '.join(['bench/standby.py', *words])}` (`make bench-standby` runs all parts)  ",
             f"Machine: {machine()}  ", f"Versions: {private.pg_config('--version')}; psycopg {version('psycopg')}  ",
             f"Medians of {size.rounds} rounds in which all sides take turns; ratios are those of neighbours in a round, with their "
             "middle half in parentheses.", ""]
    if size.quick:
        lines += ["A quick run: small data and few rounds, so its figures tell little.", ""]
    return lines


def write(about, found, out):
    """The report, named by the date."""
    out.mkdir(parents=True, exist_ok=True)
    goals = markdown("Goals", "A goal not reached is reported and fails nothing.", ["figure", "measured", "goal", "reached"],
                     [goal.cells() for part in found for goal in part.goals])
    report = "\n".join([*about, *(f"Failed, and missing here: {part.failed}\n" for part in found if part.failed), goals,
                        *(section for part in found for section in part.sections)])
    path = out / f"{datetime.date.today()}-standby.md"
    path.write_text(report)
    print(report)
    print(f"written to {os.path.relpath(path)}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, metavar="DIRECTORY")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("parts", nargs="*", metavar="PART")
    given = parser.parse_args()
    if set(given.parts) - set(PARTS):
        parser.error(f"the parts are {' '.join(PARTS)}")
    return given


def main():
    given = arguments()
    normal = QUICK if given.quick else FULL
    size = replace(normal, rounds=given.rounds or normal.rounds, seconds=given.seconds or normal.seconds)
    parts = [part for part in PARTS if part in (given.parts or PARTS)]
    check_build()
    private.exit_on_sigterm()

    about = heading(size, sys.argv[1:])
    found = list(measure(ROOT / "target" / "bench-standby", size, parts))
    complete = size == FULL and len(parts) == len(PARTS)
    write(about, found, given.out or ROOT / ("bench" if complete else "target/bench") / "results")
    goals = [goal for part in found for goal in part.goals]
    print(f"{sum(goal.reached for goal in goals)} of {len(goals)} goals reached")
    failed = [part.failed for part in found if part.failed]
    sys.exit(f"bench: failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
