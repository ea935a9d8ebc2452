"""The session itself writes between Bind and Execute. The portal gives the rows of its Bind, hit or miss. What it stores
is what others see: nothing of a transaction that has not ended, everything of one that has."""

import pytest

from support.wire import data_rows, tags

QUERY = "SELECT sum(a) FROM t"
WRITES = ["INSERT INTO t VALUES (1000)", "DELETE FROM t WHERE a > 5", "UPDATE t SET a = a + 1"]
AFTER = dict(zip(WRITES, [1055, 15, 65]))


@pytest.fixture
def client(session, wire):
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    return wire()


def warm(session):
    for status in ("MISS", "HIT"):
        assert session.rows(QUERY) == [(55,)]
        assert session.status() == status


def agrees(session, expected):
    """Other sessions get these rows, as they do without the cache, and in the end from the cache."""
    for _ in range(3):
        assert session.rows(QUERY) == [(expected,)]
    assert session.status() == "HIT"
    assert session.uncached(QUERY) == [(expected,)]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("filled_before", [False, True])
def test_in_a_transaction(client, session, write, end, filled_before):
    if filled_before:
        warm(session)
    client.query("BEGIN")
    client.parse(QUERY).bind(portal="p").step("2")
    client.parse(write).bind().execute().step("C")
    assert data_rows(client.execute("p").step("C")) == [[b"55"]]
    assert session.rows(QUERY) == [(55,)]
    client.parse(QUERY).bind(portal="later").step("2")
    assert data_rows(client.execute("later").step("C")) == [[str(AFTER[write]).encode()]]
    client.sync()
    assert session.rows(QUERY) == [(55,)]
    client.query(end)
    agrees(session, AFTER[write] if end == "COMMIT" else 55)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("filled_before", [False, True])
def test_in_a_pipeline(client, session, write, filled_before):
    """The Sync is the commit."""
    if filled_before:
        warm(session)
    client.parse(QUERY).bind(portal="p").parse(write).bind().execute().execute("p")
    assert data_rows(client.step("C") + client.step("C")) == [[b"55"]]
    assert session.rows(QUERY) == [(55,)]
    client.sync()
    agrees(session, AFTER[write])


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("filled_before", [False, True])
def test_in_a_subtransaction(client, session, kept, filled_before):
    """A portal that was bound before a savepoint outlives it."""
    if filled_before:
        warm(session)
    client.query("BEGIN")
    client.parse("SELECT a FROM t ORDER BY a").bind(portal="p").step("2")
    assert data_rows(client.execute("p", 3).step("s")) == [[b"1"], [b"2"], [b"3"]]
    client.query("SAVEPOINT s; DELETE FROM t WHERE a > 5")
    assert data_rows(client.execute("p", 3).step("s")) == [[b"4"], [b"5"], [b"6"]]
    client.query("RELEASE s" if kept else "ROLLBACK TO s")
    assert data_rows(client.execute("p").step("C")) == [[b"7"], [b"8"], [b"9"], [b"10"]]
    client.sync()
    client.query("COMMIT")
    rows = session.rows("SELECT a FROM t ORDER BY a")
    assert rows == [(a,) for a in range(1, 6 if kept else 11)]
    agrees(session, 15 if kept else 55)


def test_a_portal_of_a_subtransaction_that_is_undone(client, session):
    """The portal is gone, and the rows of the subtransaction that it has seen were never stored."""
    client.query("BEGIN; SAVEPOINT s; INSERT INTO t VALUES (1000)")
    client.parse(QUERY).bind(portal="p").step("2")
    assert data_rows(client.execute("p").step("C")) == [[b"1055"]]
    client.sync()
    client.query("ROLLBACK TO s")
    assert data_rows(client.parse(QUERY).bind().execute().sync()) == [[b"55"]]
    assert tags(client.query("COMMIT")) == ["COMMIT"]
    agrees(session, 55)
