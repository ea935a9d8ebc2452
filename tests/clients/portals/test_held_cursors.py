"""Cursors WITH HOLD over a plain scan, outside of a block: which of them are served depends on whether a statement may come before the commit."""

import pytest

from support.wire import data_rows

DECLARE = "DECLARE h NO SCROLL CURSOR WITH HOLD FOR SELECT a, v FROM t"
UPDATE = "UPDATE t SET v = 'current' WHERE CURRENT OF h RETURNING a"


@pytest.fixture
def client(session, wire):
    session.execute("CREATE TABLE t AS SELECT g AS a, 'v' || g AS v FROM generate_series(1, 5) g")
    for _ in range(2):
        session.rows("SELECT a, v FROM t")
    assert session.status() == "HIT"
    return wire()


def test_alone_in_its_message(client):
    client.query(DECLARE)
    assert client.status() == "HIT"
    assert len(data_rows(client.query("FETCH ALL FROM h"))) == 5


@pytest.mark.parametrize("enabled", ["off", "on"])
def test_others_come_before_the_sync(client, enabled):
    """The row of a cursor that is not held yet is updated, in messages of either protocol."""
    client.query(f"SET pg_arrow_cache.enabled = {enabled}")
    for statement in (DECLARE, "FETCH 2 FROM h", UPDATE):
        client.parse(statement).bind().execute()
    assert data_rows(client.sync()) == [[b"1", b"v1"], [b"2", b"v2"], [b"2"]]
    assert [row[0] for row in data_rows(client.query("FETCH ALL FROM h"))] == [b"3", b"4", b"5"]
    client.query("CLOSE h")
    answer = data_rows(client.query(f"{DECLARE}; FETCH 1 FROM h; {UPDATE}"))
    assert answer == [[b"1", b"v1"], [b"1"]]


def test_a_portal_that_is_not_served_stores_nothing(client, session):
    """As drivers read with a fetch size."""
    query = "SELECT a FROM t"
    for read_only, status, stored in (("", "BYPASS", 0), ("READ ONLY", "MISS", 1), ("READ ONLY", "HIT", 1), ("", "BYPASS", 1)):
        client.query(f"BEGIN {read_only}")
        client.parse(query).bind(portal="C_1").execute("C_1", 3).execute("C_1").sync()
        assert client.status() == status
        assert session.rows("SELECT count(*) FROM arrow_cache.entries WHERE query ILIKE 'select a from t'") == [(stored,)]
        client.query("COMMIT")
