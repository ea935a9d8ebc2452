#!/usr/bin/env python3
"""The soak: one server for hours, with the oracle's writers and readers, with sessions that come and go, and with faults that do not restart it.
No answer may differ, `arrow_cache.check()` may find nothing, and no process of the server may grow. Beside it runs a small server without the
library, whose processes show how PostgreSQL itself grows.

    SOAK_SECONDS=7200 make soak                            the same as tests/soak/run.py --seconds 7200, with target/venv/bin/python
    tests/soak/run.py --seconds 120 --plant leak           must fail: a session that loses 100 bytes with each statement
    tests/soak/run.py --seconds 60 --plant difference      must fail: a session that may get outdated answers
    tests/soak/run.py --judge target/soak-output           reads the samples of an earlier run again, and draws them

Prints a line `ok` or `not ok` for each promise, as TAP does. Samples, server log and plot go to target/soak-output."""

import argparse
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Both suites have a run.py of their own; that of the oracle is meant below.
sys.path[:0] = [str(folder) for folder in (ROOT / "tests" / "oracle", ROOT / "tests" / "faults", HERE, ROOT / "scripts", ROOT / "bench")]
import cluster as private  # noqa: E402
import crowd  # noqa: E402
import flat  # noqa: E402
import memory  # noqa: E402
import mild  # noqa: E402
import quiet  # noqa: E402
import run as oracle  # noqa: E402
import sessions  # noqa: E402
from tally import NOT_BACK, ONE_VERSION, PAIRS_EQUAL, SAME_SNAPSHOT  # noqa: E402
from world import SCHEMA  # noqa: E402

OUTPUT = ROOT / "target" / "soak-output"
SAMPLES, PLOT = "samples.jsonl", "soak.svg"
INTERVAL_S = 10
LEAST_SAMPLES = 60
# In a shorter run the caches of PostgreSQL have not filled, and not every fault had its turn.
LONG_ENOUGH_S = 900
LEAST_HITS = oracle.LEAST_HITS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("SOAK_SECONDS", 7200)))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--pause", type=float, default=0.02, help="mean seconds between changes of a hot table")
    parser.add_argument("--definitions-pause", type=float, default=0.25, help="mean seconds between DDL statements")
    parser.add_argument("--plant", choices=("leak", "difference"), help="a fault that the soak must find")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="reads the samples in this folder; starts no server")
    parser.set_defaults(primary=None, primary_data=None, standby_data=None)
    options = parser.parse_args()
    verdict = oracle.Verdict()
    if options.judge:
        judge_memory(verdict, options.judge, long_enough=True)
    else:
        private.exit_on_sigterm()
        soak(verdict, options)
    print(f"1..{verdict.number}")
    sys.exit(1 if verdict.failures else 0)


def soak(verdict, options):
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    print(f"# seed {options.seed}, {options.seconds:g} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-soak-", dir="/tmp") as folder, \
            private.Cluster(ROOT / "target" / "soak", conf_file=HERE / "soak.conf") as server, \
            private.Cluster(ROOT / "target" / "soak-control", preload="", conf_file=HERE / "soak.conf") as control:
        try:
            # The faults have the database postgres.
            server.psql(SCHEMA)
            for each in (server, control):
                each.psql("CREATE DATABASE oracle")
            server.psql("CREATE EXTENSION pg_arrow_cache", "oracle")
            for name in set(os.environ) - set(server.environment()):
                del os.environ[name]
            os.environ[oracle.DSN] = server.dsn("oracle")
            for each in (server, control):
                oracle.load_schema(each.dsn("oracle"))
            watch(verdict, options, server, control, leak_library(Path(folder)) if options.plant == "leak" else None)
        finally:
            shutil.copy(server.log, OUTPUT / "server.log")


def watch(verdict, options, server, control, leak):
    context = multiprocessing.get_context("fork")
    changers = sessions.changers(options.pause, options.definitions_pause)
    run = oracle.Run(options, context, len(changers))
    interval = min(INTERVAL_S, options.seconds / LEAST_SAMPLES)
    besides = [*sessions.controls(options.pause, options.definitions_pause, control.dsn("oracle")),
               ("sampler", memory.sample, (server, control, OUTPUT / SAMPLES, interval)), ("faults", mild.happen, (server,))]
    started, postmaster = time.monotonic(), server.pid
    total = oracle.everything(run, context, changers, [*sessions.askers(), *sessions.planted(options.plant, leak), *besides])
    seconds = time.monotonic() - started
    comparisons, hits = oracle.report(total, seconds)
    print("# Besides:", *(f"#   {count:9,}  {what}" for what, count in sorted(total.counts.items())), sep="\n")
    long_enough = options.seconds >= LONG_ENOUGH_S
    judge(verdict, run, total, comparisons, hits, long_enough)
    verdict(server.pid == postmaster and alive(server), "it is still the same server, and it has not made its memory anew")
    judge_memory(verdict, OUTPUT, long_enough or options.plant == "leak")


def leak_library(folder):
    library = folder / "leak.so"
    headers = private.pg_config("--includedir-server")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O0", f"-I{headers}", HERE / "leak.c", "-o", library], check=True)
    folder.chmod(0o755)
    return library


def alive(server):
    """After a crash, the server's log says that it has begun anew."""
    return "terminating any other active server processes" not in server.log.read_text(errors="replace")


def judge(verdict, run, total, comparisons, hits, long_enough):
    verdict(not total.crashed, "every process of the oracle ran to its end and met no error but the expected ones")
    for rule in (SAME_SNAPSHOT, ONE_VERSION, PAIRS_EQUAL, NOT_BACK):
        verdict(not total.broken[rule], rule)
    verdict(hits >= LEAST_HITS * comparisons > 0, f"at least {LEAST_HITS:.0%} of the comparisons were with a hit", f"{hits:,} of {comparisons:,}")
    verdict(not total.broken[memory.NOTHING_FOUND], memory.NOTHING_FOUND, f"{total.counts['checks by the minute']} times")
    verdict(not total.broken[mild.RULE], mild.RULE, f"{total.counts['checks by faults']} checks, {total.counts['answers after faults']} answers")
    untried = [fault.name for fault in mild.mild() if not total.counts[f"fault: {fault.name}"]] if long_enough else ()
    verdict(not untried, "every mild fault was tried", "; ".join(untried))
    verdict(*crowd.waited(run))
    verdict(*quiet.check(run))
    with run.connect() as connection:
        found = connection.execute("SELECT part, finding, detail FROM arrow_cache.check()").fetchall()
    verdict(not found, "check() finds nothing in the end", str(found or ""))


def judge_memory(verdict, folder, long_enough):
    samples = memory.read(folder / SAMPLES)
    series, seconds = flat.lasting(samples), samples[-1]["seconds"]
    rows, grown = flat.table(series, seconds)
    print(*rows, sep="\n")
    if not long_enough:
        print(f"# in so short a run, growth proves nothing: {'; '.join(grown) or 'none'}")
    verdict(series and not (grown and long_enough), f"the memory of {len(series)} processes that last is flat", "; ".join(grown))
    full = max(one["bytes_used"] / one["bytes_total"] for one in samples)
    verdict(full <= 1, "the cache stays within its memory", f"{full:.0%} at most, {samples[-1]['evictions']:,} evictions")
    try:
        import plots
    except ImportError:
        print("# no plot: target/venv has no matplotlib (scripts/setup.sh bench)")
        return
    plots.save(plots.draw_soak(series, samples), folder / PLOT)
    print(f"# {folder / PLOT}")


if __name__ == "__main__":
    main()
