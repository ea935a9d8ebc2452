#!/usr/bin/env python3
"""Measures results delivered as Arrow, beside ADBC and a bare socket; writes bench/results/DATE-arrow.md.

    bench/arrow.py [peers] [large] [columns] [storing] [memory]      all by default

BENCH_ROUNDS sets the number of rounds for the small results; the large ones take part of them.
Goals not reached are reported, not failed: whether a machine is quick enough is no test.
"""

import datetime
import os
import sys
from importlib.metadata import version
from pathlib import Path

from arrow_measures import measure_columns, measure_large, measure_peers, measure_storing
from arrow_memory import measure_memory
from measure import machine, markdown
from mixed import mixed_table
from program import ROOT, check_build, private, progress

TABLES = Path(__file__).resolve().parent / "arrow_tables.sql"
PARTS = ("peers", "large", "columns", "storing", "memory")
PACKAGES = ("pyarrow", "psycopg", "adbc-driver-postgresql")

# What of `mixed` goes out as it is stored.
AS_STORED = ("SELECT small, id, large, ratio, measure, price, amount, flag, day, clock, local_moment, moment, token, "
             "label, remark, address, code, image, envelope FROM mixed")

# Tables and results both stay in memory: what is compared is delivery.
SERVER_CONF = {
    "shared_buffers": "4GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "autovacuum": "off",
    "timezone": "'UTC'",
    "pg_arrow_cache.memory": "4GB",
    "pg_arrow_cache.max_entry_size": "3GB",
    "pg_arrow_cache.min_execution_time": "0",
}


def measure(server, parts, rounds):
    few = max(3, rounds // 2)
    if "peers" in parts:
        yield measure_peers(server, "Mixed", "SELECT * FROM mixed", rounds, progress, goals=True)
        yield measure_peers(server, "Mixed without jsonb", AS_STORED, few, progress)
        # The values differ by design: ADBC has another Arrow form for some of these types.
        yield measure_peers(server, "Converted", "SELECT * FROM converted", few, progress, same_values=False)
    if "columns" in parts:
        yield measure_columns(server, rounds, progress)
    if "large" in parts:
        yield measure_large(server, few, progress)
    if "storing" in parts:
        yield measure_storing(server, few, progress)
    if "memory" in parts:
        yield measure_memory(server, progress)


def main():
    parts = sys.argv[1:] or list(PARTS)
    if set(parts) - set(PARTS):
        sys.exit(f"bench: the parts are {' '.join(PARTS)}")
    rounds = int(os.environ.get("BENCH_ROUNDS", 12))
    check_build()
    private.exit_on_sigterm()
    packages = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    about = [f"# Arrow delivery, measured on {datetime.date.today()}", "",
             f"Command: `BENCH_ROUNDS={rounds} bench/arrow.py {' '.join(parts)}` (`make bench-arrow` runs all parts)  ",
             f"Machine: {machine()}  ", f"Server: {private.pg_config('--version')}; clients: {packages}  ",
             "Medians; spread: interquartile range over the median. Sides alternate within each table.", ""]
    with private.Cluster(ROOT / "target" / "bench-arrow", conf=SERVER_CONF) as server:
        progress("making the tables")
        server.psql(mixed_table("million", 1_000_000) + TABLES.read_text())
        results = list(measure(server, parts, rounds))
    goals = [goal for some, _ in results for goal in some]
    summary = markdown("Goals", "Of times by the clock, unless said.", ["figure", "measured", "goal", "reached"],
                       [goal.cells() for goal in goals])
    report = "\n".join([*about, summary, *(section for _, section in results)])
    print(report)
    path = ROOT / "bench" / "results" / f"{datetime.date.today()}-arrow.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(report)
    missed = [goal.name for goal in goals if not goal.reached]
    print(f"written to {path.relative_to(ROOT)}; "
          + (f"goals missed: {'; '.join(missed)}" if missed else "all goals reached"))


if __name__ == "__main__":
    main()
