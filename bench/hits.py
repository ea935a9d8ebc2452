"""How much faster a hit is than executing, and what the storing execution costs, over the star schema.

Both are measured as psql would see them: one session on the Unix socket, results as text, every row fetched.
"""

import psycopg
from psycopg.pq import ExecStatus

from measure import Cost, Row, Samples, alternating, markdown, milliseconds

HIT_ROUNDS = 7        # uncached executions of each shape
HITS_PER_ROUND = 15   # hits taken beside each of them
STORE_ROUNDS = 11

# The shapes and by how much a hit has to beat executing them.
SHAPES = {
    "2_brand_margin": ("500 rows, aggregate", 56.0),
    "1_daily_sales": ("1.8 k rows, aggregate", 89.0),
    "6_product_region_report": ("10 k rows, wide", 17.6),
    "7_customer_report": ("50 k rows, wide", 11.0),
}
STORING_GOAL = 0.10


class Session:
    def __init__(self, dsn):
        self.connection = psycopg.connect(dsn, autocommit=True)

    def execute(self, sql):
        result = self.connection.pgconn.exec_(sql.encode())
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise RuntimeError(result.error_message.decode())
        return result

    def caching(self, on):
        self.execute(f"SET pg_arrow_cache.enabled = {'on' if on else 'off'}")

    def expect(self, *statuses):
        """A measurement of the wrong thing is worse than none."""
        status = self.execute("SELECT arrow_cache.last_status()").get_value(0, 0).decode()
        if status not in statuses:
            raise RuntimeError(f"expected {' or '.join(statuses)}, got {status}")


def measure_hits(dsn, queries, progress):
    session = Session(dsn)
    session.execute("SELECT arrow_cache.flush()")
    rows = []
    for name, (shape, goal) in SHAPES.items():
        progress(f"hits: {shape}")
        sql = queries[name]
        session.execute(sql)
        session.expect("MISS")
        uncached, hits = Samples(), Samples()
        for order in alternating(HIT_ROUNDS):
            for side in order:
                if side == "A":
                    session.caching(False)
                    uncached.add(milliseconds(lambda: session.execute(sql)))
                    session.caching(True)
                    continue
                for _ in range(HITS_PER_ROUND):
                    hits.add(milliseconds(lambda: session.execute(sql)))
                    session.expect("HIT")
        ratio = uncached.median / hits.median
        rows.append(Row(shape, uncached, hits, f"{ratio:.1f}×", f"≥ {goal:g}×", ratio >= goal))
    return rows, markdown(
        "Hits", "Uncached execution against a hit.",
        ["query", "uncached ms", "spread", "hit ms", "spread", "faster", "goal", "reached"],
        [row.cells(2) for row in rows])


def measure_storing(dsn, queries, progress):
    session = Session(dsn)
    rows = []
    for name, sql in queries.items():
        progress(f"storing: {name}")
        session.execute(sql)   # both sides find warm buffers
        uncached, storing = Samples(), Samples()
        for order in alternating(STORE_ROUNDS):
            for side in order:
                if side == "A":
                    session.caching(False)
                    uncached.add(milliseconds(lambda: session.execute(sql)))
                    session.caching(True)
                    continue
                session.execute("SELECT arrow_cache.flush()")
                storing.add(milliseconds(lambda: session.execute(sql)))
                session.expect("MISS")
        cost = Cost([new / old - 1 for old, new in zip(uncached.values, storing.values)])
        rows.append(Row(name, uncached, storing, str(cost), f"≤ {STORING_GOAL:.0%}", cost.median <= STORING_GOAL))
    return rows, markdown(
        "The storing execution", "Uncached execution against the first one, which also stores its result. The cost is the median of the "
        "rounds, with their middle half.",
        ["query", "uncached ms", "spread", "storing ms", "spread", "cost", "goal", "reached"],
        [row.cells(1) for row in rows])
