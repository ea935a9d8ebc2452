"""What is compared, all on one processor: a server with the cache, a plain one, pgpool-II in front of it, and Redis."""

from contextlib import ExitStack

from mixed import mixed_table
from pgpool import Pgpool
from program import private
from redis_server import RedisServer
from session import Session
from transactions import load_accounts

PROCESSOR = 0
WIDE_ROWS = (500, 1_827, 10_000, 50_000)

# All data stays in memory. One processor has no use for parallel workers.
SERVER_CONF = {
    "shared_buffers": "1200MB",
    "work_mem": "64MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
    "autovacuum": "off",
    "max_parallel_workers_per_gather": "0",
    "timezone": "'UTC'",
}
CACHE_CONF = {**SERVER_CONF, "pg_arrow_cache.min_execution_time": "0", "pg_arrow_cache.memory": "512MB"}

# One entry of pgpool-II's cache lies within one block, so the blocks have to hold the largest result.
WIDE_BLOCKS = {"memqcache_cache_block_size": 32 << 20, "memqcache_maxcache": (32 << 20) - 1024,
               "memqcache_total_size": 1 << 30}

VIEWS = """
    CREATE MATERIALIZED VIEW branches_view AS
        SELECT bid, count(*), sum(abalance) FROM pgbench_accounts GROUP BY bid ORDER BY bid;
    CREATE MATERIALIZED VIEW wide_view AS SELECT * FROM wide_50000;
    VACUUM (FREEZE, ANALYZE);
"""


def wide_name(rows):
    return f"wide_{rows}"


def wide_tables():
    most = WIDE_ROWS[-1]
    parts = "".join(f"CREATE TABLE {wide_name(rows)} AS SELECT * FROM {wide_name(most)} WHERE id <= {rows};"
                    for rows in WIDE_ROWS[:-1])
    return mixed_table(wide_name(most), most) + parts


class Systems:
    """All of them, running and loaded with the same data until the context is left."""

    def __init__(self, directory, scale, progress):
        self.directory, self.scale, self.progress = directory, scale, progress

    def __enter__(self):
        with ExitStack() as stack:
            self._start(stack)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _start(self, stack):
        self.progress(f"loading the plain server, scale {self.scale}")
        self.plain = stack.enter_context(
            private.Cluster(self.directory / "plain", preload="", cpu=PROCESSOR, conf=SERVER_CONF))
        load_accounts(self.plain, self.scale)
        self.plain.psql(wide_tables() + VIEWS)
        self.progress("copying it, and starting the other servers")
        self.plain.pause()   # its buffers are empty afterwards, like those of the copy
        self.cached = stack.enter_context(
            private.Copy(self.directory / "cached", self.plain, cpu=PROCESSOR, conf=CACHE_CONF))
        self.plain.resume()
        self.cached.psql("CREATE EXTENSION pg_arrow_cache")
        self.redis = stack.enter_context(RedisServer(self.directory / "redis", cpu=PROCESSOR))
        # Two of them: large blocks might cost small results something.
        self.pool = stack.enter_context(Pgpool(self.directory / "pgpool", self.plain, cpu=PROCESSOR))
        self.wide_pool = stack.enter_context(
            Pgpool(self.directory / "pgpool-wide", self.plain, conf=WIDE_BLOCKS, cpu=PROCESSOR))

    def hits_of_cache(self):
        """A function that returns how often the cache has been hit so far."""
        session = Session(self.cached.dsn())
        return lambda: int(session.scalar("SELECT hits FROM arrow_cache.stats"))


def hits_of_pool(pool):
    """The same of a pgpool-II."""
    session = Session(pool.dsn("postgres", private.SUPERUSER))

    def hits():
        shown = session.execute("SHOW pool_cache")
        names = [shown.fname(number) for number in range(shown.nfields)]
        return int(shown.get_value(0, names.index(b"num_cache_hits")))
    return hits
