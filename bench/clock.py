"""Hits with the clock in their key beside the same hits with a literal, by time: one session, server and client on one processor."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from instructions import SINCE, TABLE
from measure import Goal, Part, Samples, alternating, figure, markdown
from overhead import PROCESSOR
from program import private
from session import Session

GOAL = 0.97
# A time to the microsecond is compared with an indexed column: the cache searches the index.
MOMENTS = """CREATE TABLE moments AS SELECT timestamptz '2020-01-01' + g * interval '1 day' AS at, g AS n FROM generate_series(1, 3000) g;
    CREATE INDEX ON moments (at)"""
SINCE_MOMENT = "SELECT sum(n) FROM moments WHERE at >= "
CLOCKS = {"CURRENT_DATE - 365": (SINCE, "date"), "date_trunc('month', now() - interval '12 months')": (SINCE, "timestamptz"),
          "now() - interval '365 days'": (SINCE_MOMENT, "timestamptz")}
SERVER_CONF = {"shared_buffers": "64MB", "autovacuum": "off", "pg_arrow_cache.min_execution_time": "0"}
WARMING = 300
# Short turns, so that what else the machine does falls on both sides alike.
TURN, TURNS_OF_A_ROUND = 200, 30


@dataclass
class Case:
    clock: str
    way: str
    spent: dict = field(default_factory=lambda: {side: Samples() for side in "AB"})   # ns of processor time of the server's process
    taken: dict = field(default_factory=lambda: {side: Samples() for side in "AB"})   # ns by the clock of the wall


def processor_time(pid):
    """Nanoseconds that the process has run."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def ratio(samples):
    """The cost of the literal as a share of that of the clock: of the medians."""
    return samples["A"].median / samples["B"].median


def actions(session, way, queries):
    """For each side, what executes its query once."""
    if way == "simple":
        return {side: lambda sql=sql: session.execute(sql) for side, sql in queries.items()}
    for side, sql in queries.items():
        session.prepare(sql, f"{way} {sql}".encode())
    return {side: lambda name=f"{way} {sql}".encode(): session.execute_prepared(name) for side, sql in queries.items()}


def measure_case(session, case, queries, rounds):
    run = actions(session, case.way, queries)
    for action in run.values():
        for _ in range(WARMING):
            action()
        session.expect("HIT")
    for order in alternating(rounds * TURNS_OF_A_ROUND):
        for side in order:
            action = run[side]
            began, before = time.perf_counter_ns(), processor_time(session.pid)
            for _ in range(TURN):
                action()
            case.spent[side].add((processor_time(session.pid) - before) / TURN)
            case.taken[side].add((time.perf_counter_ns() - began) / TURN)
    session.expect("HIT")


def measure_clock(directory, size, progress):
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {PROCESSOR})
    try:
        with private.Cluster(directory, cpu=PROCESSOR, conf=SERVER_CONF) as server:
            server.psql("CREATE EXTENSION pg_arrow_cache")
            server.psql(TABLE)
            server.psql(MOMENTS)
            session = Session(server.dsn())
            cases = [Case(clock, way) for clock in CLOCKS for way in ("simple", "prepared")]
            for case in cases:
                progress(f"clock: {case.clock}, {case.way}")
                query, of_type = CLOCKS[case.clock]
                literal = f"{of_type} '{session.scalar(f'SELECT {case.clock}')}'"
                measure_case(session, case, {"A": query + literal, "B": query + case.clock}, size.rounds)
            session.close()
    finally:
        os.sched_setaffinity(0, allowed)
    return report(cases)


def report(cases):
    goals, rows = [], []
    for case in cases:
        reached = ratio(case.taken)
        # A window has no goal: besides the clock it searches an index, which a literal does not.
        if CLOCKS[case.clock][0] == SINCE:
            goals.append(Goal(f"a hit with {case.clock}, {case.way}: of the rate with a literal", figure(reached), f"≥ {GOAL}×", reached >= GOAL))
        cells = [[f"{samples[side].median / 1000:,.1f}" for side in "AB"] + [figure(ratio(samples))] for samples in (case.taken, case.spent)]
        rows.append([f"`{case.clock}`", case.way, *cells[0], *cells[1]])
    return Part(goals, [markdown(
        "Hits with the clock in their key",
        f"Microseconds of an execution, as a client waits for it and as the server's process runs, both on processor {PROCESSOR}: with a literal of the "
        f"same type and value, and with the clock. Medians of turns of {TURN} executions, and their ratio.",
        ["since", "protocol", "literal", "clock", "ratio", "server, literal", "server, clock", "ratio"], rows)])
