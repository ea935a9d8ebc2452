#!/usr/bin/env python3
"""What it costs writers to note which rows they change, in instructions: beside the same server without the library, and
beside the library with `precise_invalidation = off`.

    bench/writers.py [--any-build] [CASE ...]

Each case is executed by one session under callgrind, while nothing is tracked, while a column of its table is, and while
zones of its tables are. Fails if a change of a tracked table was published as one of the whole table, but for COPY to a
column: so many rows are. A CASE is a part of the names of cases; all by default. Takes about 15 minutes.
"""

import argparse
import sys
from dataclasses import dataclass

import bypassed
from bypassed import ROUND_NUMBER, TPC_B, Asking, literal
from callgrind import PIECES, instructions, per_execution, under_callgrind
from instructions import LOOK_UP, on_each_processor
from measure import machine, markdown
from program import ROOT, check_build, private, progress
from session import Session

PGBENCH = ("pgbench_accounts", "pgbench_tellers", "pgbench_branches", "pgbench_history")
COPIED = 100_000
ROWS, FEWER_ROWS = 1_000, 500
HINT = "/*+ arrow_cache */ "
NOTHING, VALUES, ZONES = "nothing", "a column", "zones"
WITHOUT, OFF = "without the library", "precise_invalidation = off"
TABLES = f"""
    INSERT INTO pgbench_tellers SELECT g, 1, 0 FROM generate_series(11, 5000) AS g;
    INSERT INTO pgbench_branches SELECT g, 0 FROM generate_series(2, 5000) AS g;
    INSERT INTO pgbench_history SELECT 1, 1, 1, 1 FROM generate_series(1, 5000) AS g;
    CREATE TABLE copied (id int, tenant int, name text);
    CREATE TABLE narrow (id int PRIMARY KEY, tenant int, v int) WITH (fillfactor = 50);
    INSERT INTO narrow SELECT g, g % 50, g FROM generate_series(1, {ROWS}) AS g;
    CREATE TABLE leaving (id int PRIMARY KEY, tenant int, v int);
    CREATE TABLE wide (id int PRIMARY KEY, body text, more text, tenant int, v int) WITH (fillfactor = 50);
    ALTER TABLE wide ALTER body SET STORAGE EXTERNAL;
    INSERT INTO wide SELECT g, repeat('x', 10000), repeat('y', 500), g % 50, g FROM generate_series(1, 200) AS g;
    INSERT INTO copied SELECT g, g % 50, 'name ' || g FROM generate_series(1, {COPIED}) AS g;
    COPY copied TO PROGRAM 'cat > copied.data';
    TRUNCATE copied;
    ANALYZE;
"""


@dataclass(frozen=True)
class Case:
    name: str
    statements: tuple       # of `bypassed.literal`
    ways: tuple
    column: tuple           # a table, and the column by which it is tracked
    zoned: tuple = ()       # the tables that are tracked for zones
    goals: tuple = ()       # (what is tracked, the share that may be added to `precise_invalidation = off`)
    executions: int = 40    # that one file of callgrind counts
    pieces: int = PIECES
    warming: int = bypassed.WARMING
    before: str = "SELECT"  # after which all sides find the same
    is_noted: bool = True   # its changes are published as those of some rows
    is_hit: bool = False


CASES = (
    Case("transaction of TPC-B", TPC_B, ("simple", "prepared"), ("pgbench_accounts", "aid"),
         PGBENCH, ((NOTHING, 0.001), (VALUES, 0.015), (ZONES, 0.01)), executions=100,
         before=f"VACUUM FULL {', '.join(PGBENCH)}"),
    Case(f"COPY of {COPIED:,} rows", (literal("COPY copied FROM 'copied.data'"),), ("simple",), ("copied", "tenant"), ("copied",),
         ((VALUES, 0.02), (ZONES, 0.005)), executions=1, pieces=1, warming=0, is_noted=False,
         before="TRUNCATE copied; INSERT INTO copied SELECT g, g % 50, 'name' FROM generate_series(1, 20000) AS g; ANALYZE copied"),
    Case(f"UPDATE of {ROWS:,} rows", (literal("UPDATE narrow SET v = v + 1"),), ("simple",), ("narrow", "tenant"), ("narrow",),
         executions=8, warming=10, before="VACUUM FULL narrow"),
    Case(f"UPDATE of {ROWS:,} rows, of the column", (literal("UPDATE narrow SET tenant = (tenant + 1) % 50"),), ("simple",), ("narrow", "tenant"),
         executions=8, warming=3, before="VACUUM FULL narrow"),
    Case(f"DELETE of {FEWER_ROWS} rows",
         (literal(f"DELETE FROM leaving WHERE id BETWEEN {FEWER_ROWS} * ($1 - 1) + 1 AND {FEWER_ROWS} * $1", ROUND_NUMBER),), ("simple",),
         ("leaving", "tenant"), ("leaving",), ((VALUES, 0.2),), executions=4, warming=3,
         before=f"TRUNCATE leaving; INSERT INTO leaving SELECT g, g % 50, g FROM generate_series(1, {FEWER_ROWS * 30}) AS g; ANALYZE leaving"),
    Case("UPDATE of a wide row", (literal("UPDATE wide SET v = v + 1 WHERE id = $1", "7"),), ("prepared",), ("wide", "tenant"), ("wide",),
         executions=100, before="VACUUM FULL wide"),
    Case("DELETE and INSERT of a wide row",
         (literal("DELETE FROM wide WHERE id = $1", "8"), literal("INSERT INTO wide VALUES ($1, repeat('x', 10000), 'y', 8, 1)", "8")),
         ("prepared",), ("wide", "tenant"), ("wide",), executions=100, before="VACUUM FULL wide"),
    Case("hit", (literal(HINT + LOOK_UP),), ("simple", "prepared"), ("pgbench_accounts", "aid"), goals=((NOTHING, 0.005), (VALUES, 0.005)), is_hit=True),
)
MOST_ASKED = 20     # eight have a column taken in


def track(server, case, what):
    """Has the tables of a case tracked, by asking."""
    session = Session(server.dsn())
    session.execute(f"SET pg_arrow_cache.debug_force_fragments = {'on' if what == ZONES else 'off'}")
    for table, column in {NOTHING: (), VALUES: (case.column,), ZONES: ((table, "ctid") for table in case.zoned)}[what]:
        question = "count(*) FROM {0}" if what == ZONES else "* FROM {0} WHERE {1} = {2}"
        tracked = f"SELECT count(*) FROM arrow_cache.tracked WHERE relation = '{table}'::regclass AND columns = '{{{column}}}'"
        for number in range(MOST_ASKED):
            session.execute(f"{HINT}SELECT {question.format(table, column, number)}")
            if session.scalar(tracked) == "1":
                break
        else:
            raise RuntimeError(f"{table} is not tracked by {column}")
    session.close()


def coarse(server):
    return int(server.psql("SELECT coarse_not_noted + coarse_overflow + coarse_generation + coarse_definitions FROM arrow_cache.stats"))


def count(server, out, case, way, side):
    """Instructions of one execution of all statements of a case."""
    asking = Asking(server, case, way)
    if side == OFF:
        asking.session.execute("SET pg_arrow_cache.precise_invalidation = off")
    asking.execute(case.warming)
    if case.is_hit and side != WITHOUT:
        asking.session.expect("HIT")
    # The update that makes columns quiet is one of the whole table.
    before = coarse(server) if side != WITHOUT else 0
    counted = instructions(per_execution(asking.session, out, list(asking.statements()), case.executions, case.pieces))
    if case.is_noted and side != WITHOUT and coarse(server) > before:
        raise RuntimeError(f"{case.name}: a whole table was published, while tracked by {side}")
    return counted


def restart_with(server, sql):
    """By which nothing is tracked any more. The SQL is executed without callgrind."""
    under_callgrind, server.postgres = server.postgres, []
    server.restart()
    server.psql(sql)
    server.postgres = under_callgrind
    server.restart()


def measure_server(directory, library, wanted):
    """{(case, way, side): instructions}"""
    found = {}
    conf = bypassed.CACHED_CONF if library else bypassed.CONF
    with under_callgrind(directory, conf, TABLES + ("CREATE EXTENSION pg_arrow_cache" if library else ""), library) as (server, out):
        for case in wanted:
            for side in (OFF, NOTHING, VALUES, *([ZONES] if case.zoned else [])) if library else (WITHOUT,):
                restart_with(server, case.before)
                if library:
                    track(server, case, NOTHING if side == OFF else side)
                for way in case.ways:
                    found[case.name, way, side] = count(server, out, case, way, side)
                    progress(f"writers: {case.name}, {way}, {side}: {found[case.name, way, side]:,.0f}")
    return found


def cell(found, case, way, side):
    """Instructions, and how many more they are than with `precise_invalidation = off`."""
    if (case.name, way, side) not in found:
        return "", ""
    count, off = found[case.name, way, side], found[case.name, way, OFF]
    share, goal = count / off - 1, dict(case.goals).get(side)
    return f"{count - off:+,.0f}", f"{share:+.2%}" + ("" if goal is None else f" ({'≤' if share <= goal else '**above**'} {goal:.1%})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--any-build", action="store_true", help="measure what is installed, be it no release")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    if not arguments.any_build:
        check_build()
    private.exit_on_sigterm()
    wanted = [case for case in CASES if not arguments.cases or any(part in case.name for part in arguments.cases)]
    target = ROOT / "target" / "bench"
    found = {}
    for part in on_each_processor(lambda library: measure_server(target / f"writers-{library or 'plain'}", library, wanted), ("", "pg_arrow_cache")):
        found |= part
    rows = []
    for case in wanted:
        for way in case.ways:
            cells = (text for side in (NOTHING, VALUES, ZONES) for text in cell(found, case, way, side))
            rows.append([f"{case.name}, {way}", *(f"{found[case.name, way, side]:,.0f}" for side in (WITHOUT, OFF)), *cells])
    print(f"`bench/writers.py {' '.join(sys.argv[1:])}` on {machine()}\n")
    print(markdown("What writers pay for noting rows", "Instructions of the session's process outside the kernel for one execution, counted by callgrind: without "
                   "the library, with `precise_invalidation = off`, and how many more while nothing, a column or zones are tracked, with the goal.",
                   ["statement", "without", "off", "nothing", "", "a column", "", "zones", ""], rows))


if __name__ == "__main__":
    main()
