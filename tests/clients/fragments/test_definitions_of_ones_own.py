"""A portal is combined of parts, and its own transaction changes what these read before its rows are fetched."""

import psycopg
import pytest

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
SUMS = "SELECT sum(v), count(*) FROM p"


@pytest.fixture
def reader(session, connect):
    session.execute(SETUP)
    return connect(OPTIONS, prepare_threshold=None)


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
