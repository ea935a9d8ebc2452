"""Which answers are computed from parts, and that they are those of the server."""

import pytest

from support import random_sessions
from support.fragment_world import COMBINED, PLAIN, SETUP, parts_of

OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on"
NAMES = {"role1": random_sessions.ROLES[0], "role2": random_sessions.ROLES[1]}


@pytest.fixture
def writer(connect):
    """The tables of the questions, and a session that changes them."""
    writer = connect()
    for role in random_sessions.ROLES:
        writer.execute(f"CREATE ROLE {role}")
    writer.execute(SETUP.format(schema=connect.schema, front=f"{connect.schema}_front", **NAMES))
    yield writer
    random_sessions.remove(connect)


@pytest.fixture
def reader(connect, writer):
    return connect(OPTIONS, prepare_threshold=None)


def explained(session, query):
    return parts_of(line for line, in session.rows(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {query}"))


def agree(reader, query):
    """The answer of a query, which is that of the server, under the same snapshot."""
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        answer = told(reader, query)
        reader.execute("SET LOCAL pg_arrow_cache.enabled = off")
        plain = told(reader, query)
    finally:
        reader.execute("ROLLBACK")
    assert answer == plain
    return answer


def told(session, query):
    """Types and rows, or the error instead."""
    session.execute("SAVEPOINT s")
    result = session.pgconn.exec_(query.encode())
    answer = random_sessions.comparable(random_sessions.shown(result), query)
    session.execute("ROLLBACK TO s" if answer[0] else "RELEASE s")
    return answer


@pytest.mark.parametrize("query", COMBINED, ids=range(len(COMBINED)))
def test_is_computed_from_parts(writer, reader, query):
    query = query.format(3)
    answer = agree(reader, query)
    if answer[0] is not None:
        return
    writer.execute("UPDATE f2 SET qty = qty + 1; UPDATE h1 SET v = v + 1; UPDATE l1 SET v = v + 1; UPDATE child SET b = b || '!'; UPDATE fenced_1 SET v = v + 1;"
                   "UPDATE dated_6 SET v = v + 1")
    stored, _ = explained(reader, query)
    agree(reader, query)
    again = explained(reader, query)
    assert again is None or again[1] == 0
    assert stored > 0


@pytest.mark.parametrize("query", PLAIN, ids=range(len(PLAIN)))
def test_is_not(writer, reader, query):
    query = query.format(3)
    assert explained(reader, query) is None
    agree(reader, query)
