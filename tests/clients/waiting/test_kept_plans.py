"""A plan that the server keeps waits for the indexes alone that it scans. Planning in its place, at its start or its first run, must wait for no others."""

import pytest

SETUP = """
CREATE TABLE p (day int, v int, w int) PARTITION BY RANGE (day);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
CREATE INDEX p1w ON p1 (w); CREATE INDEX p2w ON p2 (w);
INSERT INTO p SELECT g % 20, g, g FROM generate_series(1, 2000) g;
CREATE TABLE t (id int PRIMARY KEY, at timestamptz, w int);
CREATE INDEX tw ON t (w);
INSERT INTO t SELECT g, now() - g * interval '1 minute', g FROM generate_series(1, 2000) g;
ANALYZE p, t
"""
SETTINGS = """SET plan_cache_mode = force_generic_plan; SET pg_arrow_cache.debug_force_fragments = on; SET lock_timeout = '5s';
SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off"""


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("query, index, change", [
    ("SELECT day, count(*), sum(v) FROM p GROUP BY day ORDER BY day", "p1w", "UPDATE p SET v = v + 1 WHERE day = 3"),
    ("SELECT day, count(*), sum(v * w) FROM p GROUP BY day ORDER BY day", "p2w", "UPDATE p SET v = v + 1 WHERE day = 3"),
    ("SELECT date_trunc('day', now() - day * interval '1 day') > 'epoch', sum(v) FROM p GROUP BY 1", "p1w", "UPDATE p SET v = v + 1 WHERE day = 3"),
    ("SELECT now() <> 'epoch' AS n, count(*) FROM t", "tw", "UPDATE t SET w = w + 1 WHERE id = 1"),
    ("SELECT now() > at AS n, id FROM t ORDER BY w, id", "t_pkey", "UPDATE t SET w = w + 1 WHERE id = 1"),
])
def test_a_kept_plan_waits_for_no_index_that_it_does_not_scan(session, connect, other, query, index, change, is_stored):
    session.execute(SETUP)
    reader = connect(prepare_threshold=None)
    reader.execute(SETTINGS)
    reader.execute(f"PREPARE q AS {query}")
    for _ in range(3):
        reader.execute("EXECUTE q")
    if not is_stored:
        session.execute(change)
    with other.transaction():
        other.execute(f"REINDEX INDEX {index}")
        # It would fail after its lock_timeout.
        rows = reader.rows("EXECUTE q")
        locked = reader.rows("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation = %s::regclass", [index])
    assert locked == [(0,)]
    assert rows == reader.uncached(query) == reader.rows("EXECUTE q")
