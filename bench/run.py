#!/usr/bin/env python3
"""Measures hits, storing executions and the cost for uncacheable statements; writes bench/results/DATE.md.

    bench/run.py [hits] [storing] [overhead]      all three by default

BENCH_ROUNDS and BENCH_SECONDS set the length of the overhead measurement (rounds per case, an even
number from 4; seconds per pgbench run).
Goals not reached are reported, not failed: whether a machine is quick enough is no test.
"""

import datetime
import filecmp
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "demo")]
import cluster as private  # noqa: E402  (these live beside other programs)
import dataset  # noqa: E402
from hits import measure_hits, measure_storing  # noqa: E402
from measure import machine  # noqa: E402
from overhead import measure_overhead  # noqa: E402

PARTS = ("hits", "storing", "overhead")
STARTED = time.monotonic()


def progress(text):
    print(f"[{time.monotonic() - STARTED:4.0f} s] {text}", file=sys.stderr, flush=True)


def check_build():
    """A debug build, or another checkout's, would be measured without a word."""
    installed = Path(private.pg_config("--pkglibdir")) / "pg_arrow_cache.so"
    built = ROOT / "target" / "release" / "libpg_arrow_cache.so"
    if not built.exists() or not installed.exists() or not filecmp.cmp(built, installed, shallow=False):
        sys.exit(f"bench: {installed} is not this checkout's release build; run `make install`")


def over_the_star_schema(parts):
    conf = {**dataset.SERVER_CONF, "autovacuum": "off"}
    with private.Cluster(ROOT / "target" / "bench", conf=conf) as server:
        dataset.load(server, progress)
        queries = dataset.queries()
        if "hits" in parts:
            yield measure_hits(server.dsn(), queries, progress)
        if "storing" in parts:
            yield measure_storing(server.dsn(), queries, progress)


def main():
    parts = sys.argv[1:] or list(PARTS)
    if set(parts) - set(PARTS):
        sys.exit(f"bench: the parts are {' '.join(PARTS)}")
    check_build()
    private.exit_on_sigterm()
    about = [f"# Measured on {datetime.date.today()}", "",
             f"Command: `bench/run.py {' '.join(parts)}` (`make bench` runs all parts)  ",
             f"Machine: {machine()}  ", f"Server: {private.pg_config('--version')}  ",
             "Spread: interquartile range over the median. Sides alternate within each row.", ""]
    results = []
    if {"hits", "storing"} & set(parts):
        results += over_the_star_schema(parts)
    if "overhead" in parts:
        rounds, seconds = int(os.environ.get("BENCH_ROUNDS", 12)), int(os.environ.get("BENCH_SECONDS", 3))
        results.append(measure_overhead(private.Cluster, ROOT / "target" / "bench-overhead", rounds, seconds, progress))
    report = "\n".join([*about, *(section for _, section in results)])
    print(report)
    path = ROOT / "bench" / "results" / f"{datetime.date.today()}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(report)
    missed = [row.name for rows, _ in results for row in rows if not row.reached]
    print(f"written to {path.relative_to(ROOT)}; " + (f"goals missed: {', '.join(missed)}" if missed else "all goals reached"))


if __name__ == "__main__":
    main()
