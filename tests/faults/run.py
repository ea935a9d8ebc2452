#!/usr/bin/env python3
"""The fault harness: does something bad to a server of its own, then looks whether the server answers, `arrow_cache.check()` finds
nothing, and cached answers are those of executing.

    tests/faults/run.py                    each fault of the table once
    tests/faults/run.py WORD ...           those whose names have one of the words
    FAULTS_SECONDS=N tests/run faults      round after round, in random order, for that long
    tests/faults/run.py --table            prints a table for docs/reliability.md, too

Prints a line `ok` or `not ok` for each fault, as TAP does. FAULTS_SEED repeats the random order of a run."""

import argparse
import contextlib
import os
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(Path(__file__).parent)]
import cluster as private  # noqa: E402  (it lives beside the other scripts)
from faults import FAULTS  # noqa: E402
import disks  # noqa: E402, F401  (it adds its faults to the table)
import network  # noqa: E402, F401  (the same)
from world import SCHEMA, World  # noqa: E402


def happen(world, fault):
    """Lets a fault happen. Returns what is wrong afterwards, or nothing."""
    try:
        with world.load() if fault.load else contextlib.nullcontext():
            fault.do(world)
        world.verify()
        return None
    except Exception:
        return traceback.format_exc()
    finally:
        world.close_all()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("FAULTS_SECONDS", 0)))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("FAULTS_SEED", time.time())))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    private.exit_on_sigterm()
    chosen = [fault for fault in FAULTS if not options.words or any(word in fault.name for word in options.words)]
    tried, wrong, slowest = Counter(), {}, Counter()
    print(f"# FAULTS_SEED={options.seed}", flush=True)
    began = time.monotonic()
    with private.Cluster(ROOT / "target" / "test-faults", conf_file=Path(__file__).parent / "faults.conf") as server:
        server.psql(SCHEMA)
        world = World(server)
        world.verify()
        rounds = 0
        while rounds == 0 or (time.monotonic() - began < options.seconds and not wrong):
            random.seed(options.seed + rounds)
            order = list(chosen) if rounds == 0 else random.sample(chosen, len(chosen))
            rounds += 1
            for fault in order:
                since = time.monotonic()
                problem = happen(world, fault)
                tried[fault.name] += 1
                slowest[fault.name] = max(slowest[fault.name], time.monotonic() - since)
                if problem:
                    wrong[fault.name] = problem
                    print("".join(f"# {line}\n" for line in problem.splitlines()), end="", flush=True)
                if rounds == 1:
                    ok = "ok" if not problem else "not ok"
                    print(f"{ok} {sum(tried.values())} - {fault.name} ({time.monotonic() - since:.1f} s)", flush=True)
        seconds = time.monotonic() - began
    later = [name for name in wrong if tried[name] > 1]
    for number, name in enumerate(later, len(chosen) + 1):
        print(f"not ok {number} - {name}, at the {tried[name]}th time")
    print(f"# {sum(tried.values())} faults in {seconds:.0f} s, {world.checks} checks, {world.answers} answers compared")
    if options.table:
        print("| fault | tried | result |\n|---|---|---|")
        for fault in chosen:
            print(f"| {fault.name}{', under load' if fault.load else ''} | {tried[fault.name]} | {'wrong' if fault.name in wrong else 'nothing wrong'} |")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
