"""The server is given by PG_ARROW_CACHE_DSN, as tests/run sets it. Each test has a schema of its own."""

import itertools
import os

import psycopg
import pytest

from wire import Wire

DSN = os.environ["PG_ARROW_CACHE_DSN"]
SCHEMAS = itertools.count(1)


class Session(psycopg.Connection):
    """A connection that can say what became of its last statement."""

    def status(self):
        return self.execute("SELECT arrow_cache.last_status()").fetchone()[0]

    def reason(self):
        return self.execute("SELECT arrow_cache.last_reason()").fetchone()[0]

    def rows(self, query, parameters=None, **options):
        return self.execute(query, parameters, **options).fetchall()

    def uncached(self, query, parameters=None, **options):
        """The rows of a query that the cache has no part in."""
        self.execute("SET pg_arrow_cache.enabled = off")
        try:
            return self.rows(query, parameters, **options)
        finally:
            self.execute("SET pg_arrow_cache.enabled = on")


@pytest.fixture
def connect():
    """Makes sessions in autocommit mode, in the schema of the test."""
    opened = []
    schema = f"test_{next(SCHEMAS)}"

    def make(options="", **arguments):
        arguments = {"autocommit": True, **arguments}
        session = Session.connect(DSN, options=f"-c search_path={schema} {options}", **arguments)
        opened.append(session)
        return session

    with make() as first:
        first.execute(f"CREATE SCHEMA {schema}")
        first.execute("SELECT arrow_cache.flush()")
    make.schema = schema
    yield make
    for session in opened:
        session.close()
    with psycopg.connect(DSN, autocommit=True) as last:
        last.execute(f"SET client_min_messages = warning; DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def session(connect):
    return connect()


@pytest.fixture
def other(connect):
    """Somebody else's session."""
    return connect()


@pytest.fixture
def wire(connect):
    """Sessions that speak the protocol message by message."""
    opened = []

    def make(**parameters):
        opened.append(Wire(DSN, search_path=connect.schema, **parameters))
        return opened[-1]

    yield make
    for client in opened:
        client.close()
