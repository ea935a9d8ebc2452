"""What the library costs statements that it cannot help, in instructions and cache misses: a server with it against one without it.

Counted by callgrind as in instructions.py, so that one per cent is seen that no clock shows on a machine that does other things. The caches are simulated:
they tell of which kind the time is that instructions do not tell of.
"""

import re
from collections import Counter
from dataclasses import astuple, dataclass
from itertools import product

from instructions import FEW, LOOK_UP, MANY, STORING, UNIT, closed, on_each_processor, under_callgrind
from measure import Cost, Goal, Part, markdown
from session import Session

# Under callgrind nothing is quick by the clock.
CONF = {"shared_buffers": "64MB", "autovacuum": "off"}
CACHED_CONF = {**CONF, "pg_arrow_cache.min_execution_time": "1min"}
# The first level of many processors, and a second one of 512 kB.
CACHES = "--cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=524288,8,64"
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


@dataclass(frozen=True)
class Counts:
    """Of an execution, or of a session."""

    instructions: float
    code_misses: float      # of the first-level cache of instructions
    data_misses: float      # of that of data, reads and writes

    def each(self, other, combine):
        return Counts(*(combine(own, others) for own, others in zip(astuple(self), astuple(other), strict=True)))


def events_of(file):
    """{event: how often}, as callgrind has counted in a process. Events that have not happened may be missing at the end."""
    text = file.read_text()
    names = re.search(r"^events: (.+)", text, re.MULTILINE)[1].split()
    numbers = re.search(r"^(?:totals|summary): (.+)", text, re.MULTILINE)[1].split()
    return Counter(dict(zip(names, map(int, numbers), strict=False)))


def instructions_of(file):
    return events_of(file)["Ir"]


def counts_of(file):
    events = events_of(file)
    return Counts(events["Ir"], events["I1mr"], events["D1mr"] + events["D1mw"])


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
    # Of two sessions alike, since now and then one does something of its own for the whole server.
    few, many = (min((counts_of(run_session(server, out, case, way, count)) for _ in range(2)), key=lambda counts: counts.instructions)
                 for count in (FEW, MANY))
    return many.each(few, lambda of_many, of_few: (of_many - of_few) / (MANY - FEW))


def measure_side(directory, library, progress):
    """{(case, way): the counts of an execution}"""
    side, counts = "with" if library else "without", {}
    with under_callgrind(directory, CACHED_CONF if library else CONF, "", library, CACHES) as (server, out):
        for case, way in product(CASES, WAYS):
            progress(f"bypassed: {case.name}, {way}, {side} the library")
            counts[case, way] = per_execution(server, out, case, way)
    return counts


def measure_bypassed(directory, _size, progress):
    progress("bypassed: starting a server with and one without the library under callgrind")
    plain, cached = on_each_processor(lambda side: measure_side(f"{directory}-{side[0]}", side[1], progress),
                                      (("plain", ""), ("cached", "pg_arrow_cache")))
    goals, rows = [], []
    for (case, way), counts in cached.items():
        before = plain[case, way]
        more = counts.each(before, lambda own, others: own - others)
        cost = Cost([more.instructions / before.instructions])
        goals.append(Goal(f"{case.name}, {way}: instructions over those without the library", f"{cost.median:+.2%}",
                          f"≤ {case.goal:+.1%}", cost.median <= case.goal))
        rows.append([f"{case.name}, {way}", f"{before.instructions:,.0f}", f"{counts.instructions:,.0f}", f"{cost.median:+.2%}",
                     f"{before.code_misses:,.0f} {more.code_misses:+,.0f}", f"{before.data_misses:,.0f} {more.data_misses:+,.0f}"])
    return Part(goals, [markdown(
        "Instructions for statements that are no hits",
        "Executed by the session's process outside the kernel, without and with the library; and misses of simulated first-level caches of "
        f"32 kB, without the library and how many more with it (callgrind {CACHES}).",
        ["statement", "without", "with", "more", "misses, code", "misses, data"], rows)])
