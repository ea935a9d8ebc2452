"""What the library costs statements that it cannot help, in instructions and cache misses: a server with it against one without it.

Counted by callgrind as in instructions.py, so that one per cent is seen that no clock shows on a machine that does other things. The caches are simulated:
they tell of which kind the time is that instructions do not tell of.
"""

import random
from dataclasses import dataclass
from itertools import product

from callgrind import EXECUTIONS, PIECES, instructions, per_execution, under_callgrind
from instructions import UNIT, on_each_processor
from measure import Cost, Goal, Part, markdown
from session import Session

# Under callgrind nothing is quick by the clock.
CONF = {"shared_buffers": "64MB", "autovacuum": "off"}
CACHED_CONF = {**CONF, "pg_arrow_cache.min_execution_time": "1min"}
# The first level of many processors, and a second one of 512 kB.
CACHES = "--cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=524288,8,64"
ROUND = 256     # one quick statement of so many is looked up (lookup/quick_statements.rs)
ACCOUNTS = 100_000
WARMING = 300   # from then on; and each catalog row is in the session's caches


@dataclass(frozen=True)
class Case:
    name: str
    goal: float             # the share that may be added
    statements: tuple       # of `literal`
    executions: int = EXECUTIONS    # that one file counts


ANY_ACCOUNT = object()  # a value that is drawn for each execution, the same ones with the library and without it
ROUND_NUMBER = object()  # how many statements the session has begun to execute


def literal(text, *values):
    """A statement: its text with parameters, and their values."""
    return text, values


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
# What `pgbench -S` asks.
ANY_ROW = (literal("SELECT abalance FROM pgbench_accounts WHERE aid = $1", ANY_ACCOUNT),)
CASES = (
    Case("SELECT 1", 0.01, (literal(UNIT),)),
    Case("one row, too quick to be stored", 0.015, ANY_ROW, ROUND),
    Case("BEGIN; COMMIT", 0.015, (literal("BEGIN"), literal("COMMIT"))),
    Case("UPDATE of one row", 0.015, TPC_B[1:2]),
    Case("INSERT of one row", 0.015, TPC_B[5:6]),
    Case("transaction of TPC-B", 0.015, TPC_B),
)
WAYS = ("simple", "prepared")


class Asking:
    """A session that executes the statements of a case."""

    def __init__(self, server, case, way):
        self.session, self.case, self.way = Session(server.dsn()), case, way
        self.drawn, self.begun = random.Random(17), 0
        if way == "prepared":
            for number, (text, _) in enumerate(case.statements):
                self.session.prepare(text, b"%d" % number)

    def statements(self):
        """For each, a function that executes it."""
        for number, (text, values) in enumerate(self.case.statements):
            yield lambda number=number, text=text, values=values: self.execute_one(number, text, values)

    def execute_one(self, number, text, values):
        self.begun += 1
        drawn = {ANY_ACCOUNT: lambda: self.drawn.randint(1, ACCOUNTS), ROUND_NUMBER: lambda: self.begun}
        values = [str(drawn[value]()) if value in drawn else value for value in values]
        if self.way == "prepared":
            self.session.execute_prepared(b"%d" % number, [value.encode() for value in values])
            return
        for place, value in enumerate(values, start=1):
            text = text.replace(f"${place}", value)
        self.session.execute(text)

    def execute(self, count):
        statements = list(self.statements())
        for _ in range(count):
            for statement in statements:
                statement()


def count(server, out, case, way):
    """Counter of the events of one execution."""
    asking = Asking(server, case, way)
    asking.execute(WARMING)
    return per_execution(asking.session, out, list(asking.statements()), case.executions)


def misses(events):
    """Of the first-level cache of instructions; of that of data, reads and writes."""
    return events["I1mr"], events["D1mr"] + events["D1mw"]


def measure_side(directory, library, progress):
    """{(case, way): Counter of the events of an execution}"""
    side, counts = "with" if library else "without", {}
    with under_callgrind(directory, CACHED_CONF if library else CONF, "", library, CACHES) as (server, out):
        for case, way in product(CASES, WAYS):
            progress(f"bypassed: {case.name}, {way}, {side} the library")
            counts[case, way] = count(server, out, case, way)
    return counts


def measure_bypassed(directory, _size, progress):
    progress("bypassed: starting a server with and one without the library under callgrind")
    plain, cached = on_each_processor(lambda side: measure_side(f"{directory}-{side[0]}", side[1], progress),
                                      (("plain", ""), ("cached", "pg_arrow_cache")))
    goals, rows = [], []
    for (case, way), events in cached.items():
        without, with_it = instructions(plain[case, way]), instructions(events)
        cost = Cost([with_it / without - 1])
        more = [f"{before:,.0f} {after - before:+,.0f}" for before, after in zip(misses(plain[case, way]), misses(events), strict=True)]
        goals.append(Goal(f"{case.name}, {way}: instructions over those without the library", f"{cost.median:+.2%}",
                          f"≤ {case.goal:+.1%}", cost.median <= case.goal))
        rows.append([f"{case.name}, {way}", f"{without:,.0f}", f"{with_it:,.0f}", f"{cost.median:+.2%}", *more])
    return Part(goals, [markdown(
        "Instructions for statements that are no hits",
        "Executed by the session's process outside the kernel, without and with the library; and misses of simulated first-level caches of "
        f"32 kB, without the library and how many more with it (callgrind {CACHES}). {PIECES} times {EXECUTIONS} executions "
        f"({ROUND} if one of so many is looked up), of which the median counts.",
        ["statement", "without", "with", "more", "misses, code", "misses, data"], rows)])
