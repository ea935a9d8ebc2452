"""What the library costs statements that it cannot help, in instructions: a server with it against one without it.

Counted by callgrind as in instructions.py, so that one per cent is seen that no clock shows on a machine that does other things.
"""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from instructions import FEW, LOOK_UP, MANY, STORING, UNIT, closed, wrapper
from measure import Cost, Goal, Part, markdown
from program import private
from session import Session
from transactions import load_accounts

# Under callgrind nothing is quick by the clock.
CONF = {"shared_buffers": "64MB", "autovacuum": "off"}
CACHED_CONF = {**CONF, "pg_arrow_cache.min_execution_time": "1min"}
WARMING = 100   # from then on a quick statement is not looked up, and each catalog row is in the session's caches


@dataclass(frozen=True)
class Case:
    name: str
    goal: float             # the share that may be added
    statements: tuple       # of `literal`


def literal(text, *values):
    """A statement: its text without parameters, its text with them, and their values."""
    simple = text
    for number, value in enumerate(values, start=1):
        simple = simple.replace(f"${number}", value)
    return simple, text, tuple(value.encode() for value in values)


# The transaction of `pgbench` without options.
TPC_B = (
    literal("BEGIN"),
    literal("UPDATE pgbench_accounts SET abalance = abalance + $2 WHERE aid = $1", "1", "5"),
    literal("SELECT abalance FROM pgbench_accounts WHERE aid = $1", "1"),
    literal("UPDATE pgbench_tellers SET tbalance = tbalance + $2 WHERE tid = $1", "1", "5"),
    literal("UPDATE pgbench_branches SET bbalance = bbalance + $2 WHERE bid = $1", "1", "5"),
    literal("INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)", "1", "1", "1", "5"),
    literal("END"),
)
CASES = (
    Case("SELECT 1", 0.01, (literal(UNIT),)),
    Case("one row, too quick to be stored", 0.015, (literal(LOOK_UP),)),
    Case("BEGIN; COMMIT", 0.015, (literal("BEGIN"), literal("COMMIT"))),
    Case("UPDATE of one row", 0.015, TPC_B[1:2]),
    Case("INSERT of one row", 0.015, TPC_B[5:6]),
    Case("transaction of TPC-B", 0.015, TPC_B),
)
WAYS = ("simple", "prepared")


def instructions_of(file):
    """All that callgrind has counted in a process."""
    return int(re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.MULTILINE)[1])


def run_session(server, out, case, way, count):
    session = Session(server.dsn())
    if way == "prepared":
        for number, (_, text, _) in enumerate(case.statements):
            session.prepare(text, b"%d" % number)
    for _ in range(WARMING + count):
        for number, (simple, _, values) in enumerate(case.statements):
            if way == "prepared":
                session.execute_prepared(b"%d" % number, values)
            else:
                session.execute(simple)
    return closed(session, out)


def per_execution(server, out, case, way):
    run_session(server, out, case, way, STORING)
    few, many = (instructions_of(run_session(server, out, case, way, count)) for count in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def measure_side(directory, library, progress):
    """{(case, way): instructions of an execution}"""
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-callgrind-") as out:
        out = Path(out)
        progress(f"bypassed: a server {'with' if library else 'without'} the library under callgrind")
        with private.Cluster(directory, preload=library, conf=CACHED_CONF if library else CONF, postgres=wrapper(out)) as server:
            load_accounts(server, 1)
            return {(case, way): per_execution(server, out, case, way) for case in CASES for way in WAYS}


def measure_bypassed(directory, _size, progress):
    plain, cached = (measure_side(f"{directory}-{side}", library, progress)
                     for side, library in (("plain", ""), ("cached", "pg_arrow_cache")))
    goals, rows = [], []
    for (case, way), count in cached.items():
        cost = Cost([count / plain[case, way] - 1])
        goals.append(Goal(f"{case.name}, {way}: instructions over those without the library", f"{cost.median:+.2%}",
                          f"≤ {case.goal:+.1%}", cost.median <= case.goal))
        rows.append([f"{case.name}, {way}", f"{plain[case, way]:,.0f}", f"{count:,.0f}", f"{cost.median:+.2%}"])
    return Part(goals, [markdown(
        "Instructions for statements that are no hits",
        "Executed by the session's process outside the kernel, without and with the library.",
        ["statement", "without", "with", "more"], rows)])
