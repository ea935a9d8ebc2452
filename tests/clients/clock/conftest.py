"""The server with a clock of its own, which all tests of this folder share."""

import pytest

from support.administrator import Administrator
from support.faked_clock import FakedServer
from support.session import Session


@pytest.fixture(scope="module")
def server():
    with FakedServer() as started:
        started.psql("CREATE EXTENSION pg_arrow_cache")
        yield started


@pytest.fixture(scope="module")
def writer(server):
    """Changes the tables of all tests of a file."""
    writer = Administrator(server.dsn())
    yield writer
    writer.close()


@pytest.fixture
def at(server):
    """Makes sessions, in autocommit mode, to the server whose clock the test sets."""
    opened = []

    def make(options="", user="postgres"):
        dsn = server.dsn().replace("user=postgres", f"user={user}")
        opened.append(Session.connect(dsn, options=options, autocommit=True))
        return opened[-1]

    yield make
    for session in opened:
        session.close()
