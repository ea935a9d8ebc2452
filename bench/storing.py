"""What the first execution costs with the cache: one that is asked for the first time, and one that is stored whatever that costs."""

import time
from dataclasses import dataclass, field
from itertools import count, product

from measure import Cost, Goal, Part, Samples, alternating, markdown, pinned, processor_time
from session import Session
from systems import PROCESSOR, wide_name

GOAL = 0.03
LEAST_MS = 10.0

# From what computes long for few rows to plain scans, where each row read is a row to store: the worst case. Each execution has another
# constant, so that none was asked before.
QUERIES = {
    "aggregate": "SELECT bid, count(*), sum(abalance) FROM pgbench_accounts WHERE bid > -{} GROUP BY bid ORDER BY bid",
    "10,000 rows × 20, plain scan": f"SELECT * FROM {wide_name(10_000)} WHERE id > -{{}}",
    "50,000 rows × 20, plain scan": f"SELECT * FROM {wide_name(50_000)} WHERE id > -{{}}",
    "50,000 rows × 20, sorted": f"SELECT * FROM {wide_name(50_000)} WHERE id > -{{}} ORDER BY remark, id",
}
# What is too quick by this setting is not measured.
FIRST, STORED = "1ms", "0"
WAYS = {"asked for the first time": FIRST, "stored": STORED}


@dataclass
class Times:
    """Of one side: milliseconds by the clock, and of processor time of server and client together."""

    clock: Samples = field(default_factory=Samples)
    processor: Samples = field(default_factory=Samples)

    def measure(self, session, sql):
        """Executes the statement and returns its result."""
        spent = processor_time(session.pid) + time.process_time()
        started = time.perf_counter()
        result = session.execute(sql)
        self.clock.add((time.perf_counter() - started) * 1e3)
        self.processor.add((processor_time(session.pid) + time.process_time() - spent) * 1e3)
        return result

    def cells(self):
        return [f"{self.clock.median:,.1f}", f"{self.clock.spread:.0%}"]


def cost_of(storing, plain):
    """By processor time, which other work on the machine disturbs less; when it is idle that is the same thing."""
    return Cost.of(storing.processor, plain.processor)


def measure_first(session, sql, least_time, constants, rounds):
    """The times of plain executions, and of first ones with the cache."""
    session.execute(f"SET pg_arrow_cache.min_execution_time = '{least_time}'")
    session.execute(sql.format(next(constants)))   # both sides find warm buffers, and the form is known
    plain, first = Times(), Times()
    for side in (side for order in alternating(rounds) for side in order):
        question = sql.format(next(constants))
        if side == "A":
            session.caching(False)
            plain.measure(session, question)
            session.caching(True)
        else:
            session.flush()
            first.measure(session, question)
            session.expect("MISS")
    return plain, first


def measure_storing(systems, size, progress):
    goals, rows = [], []
    with pinned(PROCESSOR):
        session = Session(systems.cached.dsn())
        constants = count(1)
        for name, way in product(QUERIES, WAYS):
            progress(f"storing: {name}, {way}")
            plain, first = measure_first(session, QUERIES[name], WAYS[way], constants, size.rounds)
            cost = cost_of(first, plain)
            if way != "stored" and plain.clock.median >= LEAST_MS:
                goals.append(Goal(f"first execution, {name}: over plain", str(cost), f"≤ {GOAL:+.0%}", cost.median <= GOAL))
            rows.append([f"{name}, {way}", *plain.cells(), *first.cells(), str(Cost.of(first.clock, plain.clock)), str(cost)])
        session.execute("RESET pg_arrow_cache.min_execution_time")
    section = markdown(
        "The first execution",
        "Execution without the cache against the first one with it, in the same session. *Stored*: min_execution_time is 0, so that each one "
        "is stored; otherwise it is 1 ms, and plain scans are stored when they are asked again. The goals are judged by the "
        f"cost in processor time of server and client together, and are for what takes {LEAST_MS:g} ms or more.",
        ["query", "plain ms", "spread", "first ms", "spread", "cost", "cost in processor time"], rows)
    return Part(goals, [section])
