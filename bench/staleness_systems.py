"""The two caches under test, each in front of a private server of its own."""

from contextlib import ExitStack

from pgpool import Pgpool
from pgpool import version as pgpool_version
from program import private
from staleness_case import SUPERUSER, Session

SERVER_CONF = {
    "max_prepared_transactions": "10",
    # A background worker must not decide what a case shows.
    "autovacuum": "off",
    # A case that waits for a lock is a broken case.
    "lock_timeout": "'10s'",
}
ROLES = ("reader", "other_reader")


class System:
    """A cache, the server behind it, and databases that last for one trial each."""

    def __init__(self, server):
        self.server = server
        self.databases = 0
        self.maintenance = Session(server.dsn())
        for role in ROLES:
            self.maintenance.take(f"CREATE ROLE {role} LOGIN")

    def close(self):
        self.maintenance.close()

    def create_database(self):
        self.databases += 1
        name = f"trial_{self.databases}"
        self.maintenance.take(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name):
        self.maintenance.take(f"DROP DATABASE {name} WITH (FORCE)")

    def truth(self, database, user=SUPERUSER):
        """A session straight at the server, answered by execution only."""
        return Session(self._server_dsn(database, user))

    def _server_dsn(self, database, user):
        return self.server.dsn(database).replace(f"user={SUPERUSER}", f"user={user}")


class ArrowCache(System):
    name = "pg_arrow_cache"

    def __init__(self, server):
        super().__init__(server)
        self.maintenance.take("SET pg_arrow_cache.enabled = off")
        self.version = self.maintenance.take(
            "CREATE EXTENSION pg_arrow_cache; SELECT extversion FROM pg_extension WHERE extname = 'pg_arrow_cache'"
        ).rows[0][0].decode()

    def create_database(self):
        name = super().create_database()
        session = self.truth(name)
        session.take("CREATE EXTENSION pg_arrow_cache")
        session.close()
        return name

    def session(self, database, user=SUPERUSER):
        return Session(self._server_dsn(database, user))

    def truth(self, database, user=SUPERUSER):
        session = super().truth(database, user)
        session.take("SET pg_arrow_cache.enabled = off")
        return session

    def ask(self, session, query):
        """(answer, was it served from the cache, what the cache says about it)."""
        answer = session.ask(query)
        if answer.sqlstate:
            return answer, False, answer.sqlstate
        status, reason = session.take("SELECT arrow_cache.last_status(), arrow_cache.last_reason()").rows[0]
        return answer, status == b"HIT", (reason or status).decode()


class PgpoolCache(System):
    name = "pgpool-II"

    def __init__(self, server, pool):
        super().__init__(server)
        self.pool = pool
        self.version = pgpool_version()
        self.counters = self.session("postgres")

    def close(self):
        self.counters.close()
        super().close()

    def session(self, database, user=SUPERUSER):
        return Session(self.pool.dsn(database, user))

    def ask(self, session, query):
        before = self._hits()
        answer = session.ask(query)
        served = self._hits() > before
        return answer, served, "hit" if served else "not served"

    def _hits(self):
        shown = self.counters.take("SHOW pool_cache")
        names = [name for name, _ in shown.columns]
        return int(shown.rows[0][names.index(b"num_cache_hits")])


def start(stack: ExitStack, directory):
    """Both systems, running until `stack` is left."""
    ours = stack.enter_context(private.Cluster(
        directory / "arrow-cache", conf={**SERVER_CONF, "pg_arrow_cache.min_execution_time": "0"}))
    theirs = stack.enter_context(private.Cluster(directory / "pgpool-server", preload="", conf=SERVER_CONF))
    pool = stack.enter_context(Pgpool(directory / "pgpool", theirs))
    systems = ArrowCache(ours), PgpoolCache(theirs, pool)
    for system in systems:
        stack.callback(system.close)
    return systems
