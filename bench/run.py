#!/usr/bin/env python3
"""Measures the cache beside plain PostgreSQL, pgpool-II, materialized views and Redis, and draws it.

    bench/run.py [--quick] [--out DIRECTORY] [PART ...]

Parts: rates (small results), wide (large ones), storing (first executions), overhead (statements that are no hits),
connections (what a new one costs), clock (hits with relative dates), scale (by entries and by clients), crowd (many ask the same at once), stale (outdated answers that are asked for), tpch, instructions, bypassed (instructions for statements that are no hits); all by default. All parts in
full length write DATE.md and its plots to bench/results; anything less, target/bench/results.
BENCH_ROUNDS and BENCH_SECONDS change the number of rounds and the seconds of a pgbench run.
Goals not reached are reported, not failed: whether a machine is quick enough is no test.
"""

import argparse
import datetime
import os
import subprocess
import sys
import time
import traceback
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import plots
from bypassed import measure_bypassed
from clock import measure_clock
from connections import measure_connections
from crowd import measure_crowd
from stale import measure_stale
from instructions import measure_instructions
from measure import Part, machine, markdown
from overhead import measure_overhead
from pgpool import version as pgpool_version
from program import ROOT, check_build, private, progress
from rates import measure_rates
from scale import measure_scale
from storing import measure_storing
from systems import WIDE_ROWS, Systems
from tpch import measure_tpch
from wide import measure_wide

OF_THE_SYSTEMS = {"rates": measure_rates, "wide": measure_wide, "storing": measure_storing}
OF_THEIR_OWN = {"overhead": measure_overhead, "connections": measure_connections, "clock": measure_clock, "scale": measure_scale, "crowd": measure_crowd, "stale": measure_stale,
                "tpch": measure_tpch, "instructions": measure_instructions, "bypassed": measure_bypassed}
PARTS = [*OF_THE_SYSTEMS, *OF_THEIR_OWN]
PACKAGES = ("psycopg", "redis", "hiredis", "tpchgen-cli")


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    quick: bool
    rounds: int             # an even number from 4, so that both orders of two sides count alike
    seconds: int            # of a pgbench run, of which there are some hundred: more rounds tell more than longer ones
    accounts_scale: int
    entries: tuple
    clients: tuple
    tpch_scale: float

    @property
    def fewer_rounds(self):
        """Of what takes longer."""
        return self.rounds // 2 + 1


FULL = Size(False, 6, 1, 50, (10, 1_000, 100_000, 1_000_000), (1, 2, 4, 8, 16, 32, 64), 0.1)
QUICK = Size(True, 4, 1, 10, (10, 1_000, 100_000), (1, 8, 64), 0.01)


@contextmanager
def noted(took, what):
    """Notes how many seconds what is done meanwhile takes."""
    began = time.monotonic()
    try:
        yield
    finally:
        took[what] = time.monotonic() - began


def attempt(part, action):
    """What a part found. A part that fails must not take what the others have found with it."""
    try:
        return action()
    except Exception:
        traceback.print_exc()
        return Part(failed=part)


def measure(size, parts, took):
    """The findings of each part, in the order of PARTS. `took` is told the seconds of each."""
    directory = ROOT / "target" / "bench"
    wanted = {part: measure_part for part, measure_part in OF_THE_SYSTEMS.items() if part in parts}
    if wanted:
        with ExitStack() as stack:
            with noted(took, f"servers of {', '.join(OF_THE_SYSTEMS)}: started and loaded"):
                systems = stack.enter_context(Systems(directory, size.accounts_scale, progress))
            for part, measure_part in wanted.items():
                with noted(took, part):
                    found = attempt(part, lambda: measure_part(systems, size, progress))
                yield found
    for part, measure_part in OF_THEIR_OWN.items():
        if part in parts:
            with noted(took, part):
                found = attempt(part, lambda: measure_part(directory / part, size, progress))
            yield found


def commit():
    """What is measured, as git names it: with a mark where files differ from the commit."""
    command = ["git", "-C", ROOT, "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "not under version control"


def heading(size, parts):
    packages = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    command = " ".join(["bench/run.py", *(["--quick"] if size.quick else []), *parts])
    lines = [
        f"# Measured on {datetime.date.today()}", "",
        f"Command: `BENCH_ROUNDS={size.rounds} BENCH_SECONDS={size.seconds} {command}` "
        f"(`make bench{'-quick' if size.quick else ''}` runs all parts)  ",
        f"Machine: {machine()}  ", f"Code: {commit()}  ",
        f"Versions: {private.pg_config('--version')}; pgpool-II {pgpool_version()}; {packages}  ",
        "Medians of rounds in which all sides take turns; ratios are those of neighbours in a round, with their "
        "middle half in parentheses. Spread: interquartile range over the median.", ""]
    if size.quick:
        lines += ["A quick run: small data and few rounds, so its figures tell little.", ""]
    return lines


def durations(took):
    """The section that tells how long all of it took."""
    rows = [[what, f"{seconds:,.0f}"] for what, seconds in {**took, "in all": sum(took.values())}.items()]
    return markdown("How long it took", f"Seconds by the clock. The servers of {', '.join(OF_THEIR_OWN)} are started and loaded in their parts.",
                    ["part", "seconds"], rows)


def write(about, found, took, out):
    """The report and its plots, named by the date."""
    out.mkdir(parents=True, exist_ok=True)
    name = str(datetime.date.today())
    figures = {kind: data for part in found for kind, data in part.figures.items()}
    goals = markdown("Goals", "A goal not reached is reported and fails nothing.",
                     ["figure", "measured", "goal", "reached"],
                     [goal.cells() for part in found for goal in part.goals])
    report = "\n".join([
        *about,
        *(f"Failed, and missing here: {part.failed}\n" for part in found if part.failed),
        *(f"![{title}]({path.name})\n" for title, path in plots.draw(figures, out, name, WIDE_ROWS).items()),
        *([goals] if any(part.goals for part in found) else []),
        *(section for part in found for section in part.sections),
        durations(took)])
    path = out / f"{name}.md"
    path.write_text(report)
    print(report)
    print(f"written to {os.path.relpath(path)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, metavar="DIRECTORY")
    parser.add_argument("parts", nargs="*", metavar="PART")
    arguments = parser.parse_args()
    if set(arguments.parts) - set(PARTS):
        parser.error(f"the parts are {' '.join(PARTS)}")
    size = QUICK if arguments.quick else FULL
    size = replace(size, rounds=int(os.environ.get("BENCH_ROUNDS", size.rounds)),
                   seconds=int(os.environ.get("BENCH_SECONDS", size.seconds)))
    parts = arguments.parts or PARTS
    complete = not size.quick and set(parts) == set(PARTS)
    check_build()
    private.exit_on_sigterm()

    about = heading(size, arguments.parts)
    took = {}
    found = list(measure(size, parts, took))
    write(about, found, took, arguments.out or ROOT / ("bench" if complete else "target/bench") / "results")
    goals = [goal for part in found for goal in part.goals]
    print(f"{sum(goal.reached for goal in goals)} of {len(goals)} goals reached")
    failed = [part.failed for part in found if part.failed]
    sys.exit(f"bench: failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
