"""What the first execution costs that also stores its result."""

import time
from dataclasses import dataclass, field

from measure import Cost, Goal, Part, Samples, alternating, markdown, pinned, processor_time
from session import Session
from systems import PROCESSOR, wide_name

GOAL = 0.03
LEAST_MS = 10.0

# From what computes long for few rows to plain scans, where each row read is a row to store: the worst case.
QUERIES = {
    "aggregate": "SELECT bid, count(*), sum(abalance) FROM pgbench_accounts GROUP BY bid ORDER BY bid",
    "10,000 rows × 20, plain scan": f"SELECT * FROM {wide_name(10_000)}",
    "50,000 rows × 20, plain scan": f"SELECT * FROM {wide_name(50_000)}",
    "50,000 rows × 20, sorted": f"SELECT * FROM {wide_name(50_000)} ORDER BY remark, id",
}


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


def measure_storing(systems, size, progress):
    goals, rows = [], []
    with pinned(PROCESSOR):
        session = Session(systems.cached.dsn())
        for name, sql in QUERIES.items():
            progress(f"storing: {name}")
            session.execute(sql)   # both sides find warm buffers
            plain, storing = Times(), Times()
            for side in (side for order in alternating(size.rounds) for side in order):
                if side == "A":
                    session.caching(False)
                    plain.measure(session, sql)
                    session.caching(True)
                else:
                    session.flush()
                    storing.measure(session, sql)
                    session.expect("MISS")
            cost = cost_of(storing, plain)
            if plain.clock.median >= LEAST_MS:
                goals.append(Goal(f"storing execution, {name}: over plain", str(cost), f"≤ {GOAL:+.0%}",
                                  cost.median <= GOAL))
            rows.append([name, *plain.cells(), *storing.cells(), str(Cost.of(storing.clock, plain.clock)), str(cost)])
    section = markdown(
        "The storing execution",
        "Execution without the cache against the first one with it, in the same session. The goals are judged by the "
        f"cost in processor time of server and client together, and are for what takes {LEAST_MS:g} ms or more.",
        ["query", "plain ms", "spread", "storing ms", "spread", "cost", "cost in processor time"], rows)
    return Part(goals, [section])
