"""Fixtures of all folders. Each test has a schema of its own. What several test files use stands in support/."""

import gc
import itertools

import pytest
from _pytest.runner import runtestprotocol

from support.administrator import Administrator
from support.faked_clock import FakedServer
from support.session import DSN, Session
from support.shared_slots import MOST_RUNS, Outdated
from support.sweeps import ALONE, LONG
from support.wire import Wire

SCHEMAS = itertools.count(1)


def pytest_configure(config):
    config.addinivalue_line("markers", "sweep: does more in `make test-long`")
    config.addinivalue_line("markers", "long: runs in `make test-long` alone")


def pytest_collection_modifyitems(config, items):
    swept = {item for item in items if any(item.iter_markers("sweep"))}
    long = {item for item in items if any(item.iter_markers("long"))}
    chosen = {item for item in items if (item in long | swept if ALONE else LONG or item not in long)}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    # What takes longest first, so that nobody has it when the others are done. Files stay together.
    files = {item.path for item in swept}
    items[:] = sorted((item for item in items if item in chosen), key=lambda item: item.path not in files)


def pytest_runtest_makereport(item, call):
    if call.excinfo is not None and call.excinfo.errisinstance(Outdated):
        item.is_outdated = True


def pytest_runtest_protocol(item, nextitem):
    """As always, but a test that fails because values share a slot runs again: see support/shared_slots.py."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for _ in range(MOST_RUNS):
        item.is_outdated = False
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if not item.is_outdated:
            break
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_collection_finish():
    """What was imported and collected stays to the end, so the collector of garbage need not look at it again and again."""
    gc.freeze()


@pytest.fixture(scope="session")
def administrator():
    """Makes and removes the schemas of the tests."""
    administrator = Administrator(DSN)
    yield administrator
    administrator.close()


@pytest.fixture
def connect(administrator):
    """Makes sessions in autocommit mode, in the schema of the test."""
    opened = []
    schema = f"test_{next(SCHEMAS)}"

    def make(options="", **arguments):
        arguments = {"autocommit": True, **arguments}
        session = Session.connect(DSN, options=f"-c search_path={schema} {options}", **arguments)
        opened.append(session)
        return session

    administrator.execute(f"CREATE SCHEMA {schema}")
    administrator.execute("SELECT arrow_cache.flush()")
    make.schema = schema
    yield make
    for session in opened:
        session.close()
    administrator.execute(f"DROP SCHEMA {schema} CASCADE")
    assert administrator.execute("SELECT part, finding, detail FROM arrow_cache.check()").fetchall() == []


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


@pytest.fixture(scope="session")
def faked_server():
    """A server beside the other, whose clock the tests set."""
    with FakedServer() as started:
        started.psql("CREATE EXTENSION pg_arrow_cache")
        yield started


@pytest.fixture
def at(faked_server):
    """Makes sessions, in autocommit mode, to the server whose clock the test sets."""
    opened = []

    def make(options="", user="postgres"):
        dsn = faked_server.dsn().replace("user=postgres", f"user={user}")
        opened.append(Session.connect(dsn, options=options, autocommit=True))
        return opened[-1]

    yield make
    for session in opened:
        session.close()
