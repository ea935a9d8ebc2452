"""A portal sees the snapshot of its Bind, whatever other sessions do between Bind and Execute."""

import pytest

from support.wire import data_rows

QUERY = "SELECT sum(a) FROM t"


@pytest.fixture
def client(session, wire):
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    return wire()


@pytest.mark.parametrize("enabled", ["off", "on"])
@pytest.mark.parametrize("filled_before", [False, True])
@pytest.mark.parametrize("change", [
    "UPDATE t SET a = a + 1",
    "DELETE FROM t WHERE a > 5",
    "SELECT arrow_cache.flush()",
    "SELECT arrow_cache.invalidate('t')",
])
def test_something_happens_before_execute(client, session, enabled, filled_before, change):
    """With and without the cache the portal gives the rows of its Bind, and nobody gets them afterwards."""
    client.query(f"SET pg_arrow_cache.enabled = {enabled}")
    if filled_before:
        session.rows(QUERY)
        session.rows(QUERY)
        assert session.status() == "HIT"
    client.parse(QUERY).bind().step("2")
    session.execute(change)
    assert data_rows(client.execute().step("C")) == [[b"55"]]
    client.sync()
    expected = session.uncached(QUERY)
    assert (expected == [(55,)]) == change.startswith("SELECT")
    for _ in range(3):
        assert session.rows(QUERY) == expected
    assert session.status() == "HIT"


def test_a_portal_bound_before_and_one_after(client, session, wire):
    session.rows(QUERY)
    late = wire()
    client.parse(QUERY).bind().step("2")
    session.execute("INSERT INTO t VALUES (1000)")
    late.parse(QUERY).bind().step("2")
    assert data_rows(late.execute().step("C")) == [[b"1055"]]
    assert data_rows(client.execute().step("C")) == [[b"55"]]
    assert data_rows(client.sync()) == data_rows(late.sync()) == []
    assert session.rows(QUERY) == [(1055,)]


def test_writer_commits_while_a_portal_is_read(client, session, other):
    """A portal that was bound before the commit of a writer does not store an answer for later readers."""
    client.query("BEGIN")
    client.parse("SELECT a FROM t ORDER BY a").bind(portal="p").step("2")
    assert data_rows(client.execute("p", 2).step("s")) == [[b"1"], [b"2"]]
    other.execute("BEGIN; DELETE FROM t WHERE a = 10")
    assert data_rows(client.execute("p", 2).step("s")) == [[b"3"], [b"4"]]
    other.execute("COMMIT")
    assert len(data_rows(client.execute("p").step("C"))) == 6
    client.sync()
    client.query("COMMIT")
    for status in ("MISS", "HIT"):
        assert len(session.rows("SELECT a FROM t ORDER BY a")) == 9
        assert session.status() == status


def test_prepared_statement_of_a_transaction_that_wrote(client, session):
    """The writer sees its own rows through the same statement that is a hit for others."""
    client.parse(QUERY, "s").sync()
    for status in ("MISS", "HIT"):
        assert data_rows(client.bind(name="s").execute().sync()) == [[b"55"]]
        assert client.status() == status
    client.query("BEGIN; INSERT INTO t VALUES (1000)")
    assert data_rows(client.bind(name="s").execute().sync()) == [[b"1055"]]
    assert client.status() == "BYPASS"
    assert session.rows(QUERY) == [(55,)]
    assert session.status() == "HIT"
    client.query("ROLLBACK")
    assert data_rows(client.bind(name="s").execute().sync()) == [[b"55"]]
    assert client.status() == "HIT"
