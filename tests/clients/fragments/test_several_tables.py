"""A query of several partitioned tables whose answer is outdated is still computed of stored parts."""

import pytest

SETUP = """
CREATE TABLE a (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE a_1 PARTITION OF a FOR VALUES FROM (0) TO (100);
CREATE TABLE a_2 PARTITION OF a FOR VALUES FROM (100) TO (200);
CREATE TABLE b (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE b_1 PARTITION OF b FOR VALUES FROM (0) TO (100);
CREATE TABLE b_2 PARTITION OF b FOR VALUES FROM (100) TO (200) PARTITION BY LIST (v);
CREATE TABLE b_2_even PARTITION OF b_2 FOR VALUES IN (0, 2, 4);
CREATE TABLE b_2_odd PARTITION OF b_2 FOR VALUES IN (1, 3, 5);
CREATE TABLE b_3 PARTITION OF b FOR VALUES FROM (200) TO (300) PARTITION BY LIST (v);
CREATE TABLE b_3_all PARTITION OF b_3 FOR VALUES IN (0, 1, 2, 3, 4, 5);
INSERT INTO a SELECT g % 200, g FROM generate_series(1, 1000) g;
INSERT INTO b SELECT g % 300, g % 6 FROM generate_series(1, 1000) g;
ANALYZE a, b
"""

@pytest.fixture
def owner(connect):
    session = connect()
    session.execute(SETUP)
    return session


def test_several_tables_are_combined_when_they_are_planned(owner, connect):
    """The answer is still computed of stored parts."""
    reader = connect("-c pg_arrow_cache.debug_force_fragments=on", prepare_threshold=None)
    plain = connect("-c pg_arrow_cache.enabled=off", prepare_threshold=None)
    query = "SELECT (SELECT max(v) FROM a WHERE k = 1), count(*), sum(v) FROM b WHERE v > -1"
    served = "SELECT fragments_served FROM arrow_cache.stats"
    reader.execute(query)
    owner.execute("UPDATE a SET v = v + 1")
    before = owner.rows(served)[0][0]
    assert reader.rows(query) == plain.rows(query)
    assert owner.rows(served)[0][0] > before
