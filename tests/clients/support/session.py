"""Connections to the server of this suite."""

import os

import psycopg

# As tests/run sets it.
DSN = os.environ["PG_ARROW_CACHE_DSN"]


class Session(psycopg.Connection):
    """A connection that can tell the status and the reason of its last statement."""

    def status(self):
        return self.execute("SELECT arrow_cache.last_status()").fetchone()[0]

    def reason(self):
        return self.execute("SELECT arrow_cache.last_reason()").fetchone()[0]

    def rows(self, query, parameters=None, **options):
        return self.execute(query, parameters, **options).fetchall()

    def uncached(self, query, parameters=None, **options):
        """The rows of a query that is executed without the cache."""
        self.execute("SET pg_arrow_cache.enabled = off")
        try:
            return self.rows(query, parameters, **options)
        finally:
            self.execute("SET pg_arrow_cache.enabled = on")
