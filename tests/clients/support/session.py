"""Connections to the server of this suite."""

import contextlib
import os

import psycopg

# tests/run starts a server for each process of pytest-xdist: gw0, gw1, …
DSN = os.environ["PG_ARROW_CACHE_DSN"].split(";")[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))]


class Session(psycopg.Connection):
    """A connection that can tell the status and the reason of its last statement."""

    def status(self):
        return self.execute("SELECT arrow_cache.last_status()").fetchone()[0]

    def reason(self):
        return self.execute("SELECT arrow_cache.last_reason()").fetchone()[0]

    def outcome(self):
        """Both at once."""
        return self.execute("SELECT arrow_cache.last_status(), arrow_cache.last_reason()").fetchone()

    def rows(self, query, parameters=None, **options):
        return self.execute(query, parameters, **options).fetchall()

    def uncached(self, query, parameters=None, **options):
        """The rows of a query that is executed without the cache."""
        self.execute("SET pg_arrow_cache.enabled = off")
        try:
            return self.rows(query, parameters, **options)
        finally:
            self.execute("SET pg_arrow_cache.enabled = on")

    @contextlib.contextmanager
    def statement_timeout(self, milliseconds):
        """Cancels statements that take longer. The statement that lifts the limit is subject to it, so it is repeated."""
        self.execute(f"SET statement_timeout = {milliseconds}")
        try:
            yield
        finally:
            while not self.lifted_timeout():
                pass

    def lifted_timeout(self):
        try:
            self.execute("SET statement_timeout = 0")
        except psycopg.errors.QueryCanceled:
            return False
        return True
