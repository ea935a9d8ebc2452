"""Fixtures of all folders. Each test has a schema of its own. What several test files use stands in support/."""

import itertools

import psycopg
import pytest

from support.session import DSN, Session
from support.wire import Wire

SCHEMAS = itertools.count(1)


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
        assert last.execute("SELECT part, finding, detail FROM arrow_cache.check()").fetchall() == []


@pytest.fixture
def session(connect):
    return connect()


@pytest.fixture
def other(connect):
    """A second session."""
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
