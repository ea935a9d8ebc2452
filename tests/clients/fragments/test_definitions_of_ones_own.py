"""A portal is combined of parts, and its own transaction changes what these read before its rows are fetched."""

import psycopg
import pytest

from support.wire import data_rows, error_fields

OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on"
SETUP = """
CREATE TABLE p (k int, v int, pad text) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10000) TO (20000);
INSERT INTO p SELECT g, g % 1000, repeat('x', 100) FROM generate_series(0, 19999) g;
CREATE INDEX i1 ON p1 (v); CREATE INDEX i2 ON p2 (v);
CREATE TABLE d (id int, name text);
INSERT INTO d SELECT g, 'n' FROM generate_series(0, 5000) g;
CREATE INDEX di ON d (id);
ANALYZE p, d
"""
OF_LEAVES = "SELECT count(*), min(pad) FROM p WHERE v = 7"
JOIN = "SELECT p.v, count(*), min(d.name) FROM p JOIN d ON d.id = p.v WHERE p.v = 7 GROUP BY p.v"
SUMS = "SELECT sum(v), count(*) FROM p"


@pytest.fixture
def reader(session, connect):
    session.execute(SETUP)
    return connect(OPTIONS, prepare_threshold=None)


@pytest.mark.parametrize("hold", ["", "WITH HOLD"])
@pytest.mark.parametrize("query, statement", [
    (OF_LEAVES, "DROP INDEX i2"), (JOIN, "DROP INDEX di"), (JOIN, "DROP INDEX i1"), (OF_LEAVES, "REINDEX INDEX i2"),
    (OF_LEAVES, "ALTER INDEX i2 SET TABLESPACE pg_default"),
])
def test_the_server_refuses_what_would_take_an_index_from_a_cursor(reader, query, statement, hold):
    expected = reader.uncached(query)
    with reader.transaction():
        reader.execute(f"DECLARE c NO SCROLL CURSOR {hold} FOR {query}")
        assert "ArrowCacheFragments" in str(reader.rows(f"EXPLAIN {query}"))
        with pytest.raises(psycopg.errors.ObjectInUse), reader.transaction():
            reader.execute(statement)
        rows = None if hold else reader.rows("FETCH ALL FROM c")
    assert (rows or reader.rows("FETCH ALL FROM c")) == expected


def test_and_from_a_portal(session, reader, wire):
    client = wire(**{"pg_arrow_cache.debug_force_fragments": "on"})
    expected = [[str(value).encode() for value in row] for row in reader.uncached(OF_LEAVES)]
    client.parse(OF_LEAVES, "x").bind(portal="p", name="x").step("2", "E")
    answers = client.parse("DROP INDEX i2").bind().execute().sync()
    assert [error_fields(message)["C"] for message in answers if message.type == "E"] == ["55006"]
    assert data_rows(client.parse(OF_LEAVES, "y").bind(portal="p", name="y").execute("p").sync()) == expected
    assert session.rows("SELECT to_regclass('i2') IS NOT NULL") == [(True,)]


@pytest.mark.parametrize("statements", [
    ["ALTER TABLE p DETACH PARTITION p1", "ALTER TABLE p1 RENAME v TO t", "ALTER TABLE p1 RENAME k TO v", "ALTER TABLE p1 RENAME t TO k"],
    ["ALTER TABLE p DETACH PARTITION p1", "ALTER TABLE p1 RENAME v TO z"],
    ["ALTER TABLE p DETACH PARTITION p1", "ALTER TABLE p DETACH PARTITION p2", "DROP TABLE p"],
])
def test_stored_parts_after_a_change_of_settings(reader, statements):
    """They are computed again if settings have changed, but not under definitions that are newer than their statement."""
    expected = reader.uncached(SUMS)
    reader.execute(f"{SUMS} LIMIT 7")
    with reader.transaction(force_rollback=True):
        reader.execute(f"DECLARE c NO SCROLL CURSOR FOR {SUMS}")
        for statement in statements:
            try:
                with reader.transaction():
                    reader.execute(statement)
            except psycopg.errors.ObjectInUse:
                break
        reader.execute("SET LOCAL datestyle = 'German'")
        assert reader.rows("FETCH ALL FROM c") == expected
