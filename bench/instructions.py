"""Instructions that a session executes for a statement, counted by callgrind: a figure without noise."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from callgrind import EXECUTIONS, PIECES, by_function, closed, instructions, per_execution, under_callgrind
from measure import Part, markdown
from session import Session

WARMING = 20              # the answer is stored, and a prepared statement has a plan for all values
FEW, MANY = 100, 300      # the difference between two sessions is what the additional statements took in each function
SHOWN = 10
LOOK_UP = "SELECT abalance FROM pgbench_accounts WHERE aid = 1"
TABLE = "CREATE TABLE days AS SELECT date '2020-01-01' + g AS d, g AS n FROM generate_series(1, 3000) g"
AGGREGATE = "SELECT n % 50 AS a, count(*), sum(n), avg(n), max(d) FROM days GROUP BY 1 ORDER BY 1"
SINCE = "SELECT sum(n) FROM days WHERE d >= "


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    way: str                # one of WAYS
    caching: bool = True
    values: tuple = ()

    @property
    def unit(self):
        """The way of SELECT 1 that this is compared with."""
        return "prepared" if self.way in PLANS else self.way


# Values are bound to an unnamed statement, or to a prepared one whose plan is of the kind that the way names.
PLANS = {"custom plan": "force_custom_plan", "generic plan": "force_generic_plan"}
WAYS = ("simple", "prepared", "bound", *PLANS)
SHAPES = (
    ("cannot fail", "SELECT sum(n) FROM days WHERE n > $1"),
    ("columns may fail", "SELECT sum(1000 / n) FROM days WHERE n > $1"),
    ("condition may fail", "SELECT sum(n) FROM days WHERE n > $1 AND 1000 / n >= 0"),
    ("may drop a sub-query", "SELECT sum(n) FROM days WHERE $1 > 0 OR n IN (SELECT n FROM days WHERE n < 10)"),
)

CASES = [
    Case(f"{name}, {way}", sql, way, caching)
    for way in ("simple", "prepared")
    for name, sql, caching in (("SELECT 1", "SELECT 1", True), ("one row, cache off", LOOK_UP, False), ("one row, hit", LOOK_UP, True),
                               ("50 rows, hit", AGGREGATE, True),
                               ("a date, hit", f"{SINCE}date '2025-11-01'", True),
                               ("a time, hit", f"{SINCE}timestamptz '2025-11-01 00:00+00'", True),
                               ("CURRENT_DATE, hit", f"{SINCE}CURRENT_DATE - 365", True),
                               ("months before now(), hit", f"{SINCE}date_trunc('month', now() - interval '12 months')", True))
] + [Case("SELECT 1, bound", "SELECT 1", "bound")] + [
    Case(f"{name}, hit, {way}", sql, way, values=(b"2900",)) for way in ("bound", *PLANS) for name, sql in SHAPES
]
UNIT = "SELECT 1"


def begun(server, case):
    """A session in which the statement has been executed some times."""
    session = Session(server.dsn())
    session.caching(case.caching)
    if case.way in PLANS:
        session.execute(f"SET plan_cache_mode = {PLANS[case.way]}")
    if case.unit == "prepared":
        session.prepare(case.sql)
    for _ in range(WARMING):
        run_once(session, case)
    if case.sql != UNIT:
        session.expect("HIT" if case.caching else "BYPASS")
    return session


def run_once(session, case):
    if case.unit == "prepared":
        session.execute_prepared(values=case.values)
    elif case.unit == "bound":
        session.execute_bound(case.sql, case.values)
    else:
        session.execute(case.sql)


def count(server, out, case):
    """Instructions of one execution."""
    session = begun(server, case)
    return instructions(per_execution(session, out, [lambda: run_once(session, case)]))


def count_functions(server, out, case):
    """{(function, library): instructions in itself}, for one execution. Without marks: what has not returned when one comes is counted amiss."""
    def run_session(times):
        session = begun(server, case)
        for _ in range(times):
            run_once(session, case)
        return by_function(closed(session, out))

    few, many = run_session(FEW), run_session(MANY)
    many.subtract(few)
    return Counter({function: times / (MANY - FEW) for function, times in many.items()})


def on_each_processor(action, things):
    """What `action` returns for each thing. As many are done at once as there are processors: instructions do not depend on time."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(action, things))


def shares(counts, total):
    return [[name, f"{count:,.0f}", f"{count / total:.1%}"] for name, count in counts]


def profile(case, counts):
    """The sections about one statement."""
    total = sum(counts.values())
    biggest = [(f"`{function}` ({library})", count) for (function, library), count in counts.most_common(SHOWN)]
    yield markdown(
        f"The biggest functions of: {case.name}", "Instructions in the function itself, for one statement.",
        ["function", "instructions", "share"],
        shares(biggest, total))
    libraries = Counter()
    for (_, library), count in counts.items():
        libraries[library] += count
    yield markdown(
        f"The same by library: {case.name}", "All instructions of a statement.", ["library", "instructions", "share"],
        shares([(name, count) for name, count in libraries.most_common() if count > total / 1000], total))


def profiled(case):
    return case.sql == LOOK_UP and case.caching


def report(totals, functions):
    units = {case.unit: total for case, total in totals.items() if case.sql == UNIT}
    sections = [markdown(
        "Instructions for a statement",
        f"Executed by the session's process outside the kernel, counted by callgrind: {PIECES} times {EXECUTIONS} executions, of which "
        "the median counts. Rows as text.", ["statement", "instructions", "of SELECT 1"],
        [[case.name, f"{total:,.0f}", f"{total / units[case.unit]:.3f}"] for case, total in totals.items()])]
    for case, counts in functions.items():
        sections += profile(case, counts)
    return Part([], sections)


def measure_cases(directory, cases, progress):
    """{case: (instructions, and those of each function if it is profiled)}, on a server of their own, where no other session is."""
    conf = {"shared_buffers": "64MB", "autovacuum": "off", "pg_arrow_cache.min_execution_time": "0"}
    counts = {}
    with under_callgrind(directory, conf, f"CREATE EXTENSION pg_arrow_cache; {TABLE}") as (server, out):
        for case in cases:
            progress(f"instructions: {case.name}")
            counts[case] = count(server, out, case), count_functions(server, out, case) if profiled(case) else None
    return counts


def measure_instructions(directory, _size, progress):
    progress("instructions: starting two servers under callgrind")
    halves = on_each_processor(lambda number: measure_cases(f"{directory}-{number}", CASES[number::2], progress), (0, 1))
    found = {case: counts for half in halves for case, counts in half.items()}
    return report({case: found[case][0] for case in CASES}, {case: found[case][1] for case in CASES if profiled(case)})
