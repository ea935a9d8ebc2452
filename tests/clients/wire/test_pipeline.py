"""Pipelines: statements that are sent before the answers of earlier ones are read."""

import psycopg
import pytest

from support.wire import data_rows, error_fields, tags, types


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    return session


CACHED = "SELECT sum(a) FROM t"
UNCACHED = "SELECT a FROM t WHERE random() >= 0 ORDER BY a LIMIT 3"


def ask(client, *queries):
    for query in queries:
        client.parse(query).bind().describe().execute()
    return client.sync()


def test_cached_and_uncached_in_one_pipeline(table, wire):
    client = wire()
    client.query(CACHED)
    expected = [[b"55"], [b"1"], [b"2"], [b"3"], [b"55"]]
    answer = ask(client, CACHED, UNCACHED, CACHED)
    assert data_rows(answer) == expected
    assert types(answer) == "12TDC" + "12TDDDC" + "12TDC" + "Z"
    assert tags(answer) == ["SELECT 1", "SELECT 3", "SELECT 1"]
    assert client.status() == "HIT"
    assert ask(client, CACHED, UNCACHED, CACHED) == answer


def test_a_write_in_the_middle(table, wire):
    """A pipeline up to its Sync is one transaction: what comes after the write sees it, from the table itself."""
    client = wire()
    client.query(CACHED)
    answer = ask(client, CACHED, "INSERT INTO t VALUES (1000)", CACHED)
    assert data_rows(answer) == [[b"55"], [b"1055"]]
    assert client.status() == "BYPASS"
    for status in ("STALE", "HIT"):
        assert client.value(CACHED) == "1055"
        assert client.status() == status


def test_an_error_in_the_middle(table, wire):
    """Statements before the error are answered, those after it are skipped, and no answer of the undone write is kept."""
    client = wire()
    assert client.value(CACHED) == "55"
    answer = ask(client, CACHED, "INSERT INTO t VALUES (1000)", CACHED, "SELECT 1 / (a - 1) FROM t ORDER BY a", CACHED)
    assert data_rows(answer) == [[b"55"], [b"1055"]]
    assert types(answer) == "12TDC" + "12nC" + "12TDC" + "12TEZ"
    assert error_fields(answer[-2])["C"] == "22012"
    assert client.value(CACHED) == "55"
    assert client.status() == "HIT"
    assert client.value("SELECT count(*) FROM t") == "10"


def test_an_error_in_the_row_that_is_captured(table, wire):
    """Rows that were sent before an error are not stored as a result."""
    client = wire()
    failing = "SELECT 1 / (5 - a) FROM t"
    for _ in range(2):
        answer = ask(client, failing)
        assert len(data_rows(answer)) == 4 and error_fields(answer[-2])["C"] == "22012"
    assert client.value("SELECT count(*) FROM arrow_cache.entries") == "0"
    client.query("DELETE FROM t WHERE a = 5")
    for status in ("MISS", "HIT"):
        assert len(data_rows(ask(client, failing))) == 9
        assert client.status() == status


def test_two_syncs_in_flight(table, wire):
    """Each Sync ends a transaction, however many messages the client has already sent."""
    client = wire()
    client.query(CACHED)
    for query in (CACHED, "UPDATE t SET a = a + 1", CACHED, UNCACHED):
        client.parse(query).bind().execute().add(b"S")
    answers = [client.until_ready() for _ in range(4)]
    assert [data_rows(answer) for answer in answers] == [[[b"55"]], [], [[b"65"]], [[b"2"], [b"3"], [b"4"]]]
    assert client.value(CACHED) == "65"
    assert client.status() == "HIT"


def test_psycopg_pipeline(table):
    for _ in range(3):
        with table.pipeline():
            cursors = [table.execute(query) for query in (CACHED, UNCACHED, CACHED)]
        assert [cursor.fetchall() for cursor in cursors] == [[(55,)], [(1,), (2,), (3,)], [(55,)]]
    assert table.status() == "HIT"
    with pytest.raises(psycopg.errors.DivisionByZero), table.pipeline() as pipeline:
        table.execute("INSERT INTO t VALUES (1000)")
        table.execute("SELECT 1 / (a - a) FROM t")
        pipeline.sync()
    assert table.rows(CACHED) == [(55,)]
    assert table.status() == "HIT"
