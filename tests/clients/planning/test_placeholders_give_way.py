"""Who gets no placeholder: the query is planned before its snapshot is taken, as without the cache. A hit without planning locks no partition."""

import pytest

from support.asking import Asking, until
from support.placeholders import Plans

TABLES = """
    CREATE TABLE p (id int, v text) PARTITION BY RANGE (id);
    CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
    CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (100) PARTITION BY RANGE (id);
    CREATE TABLE p2a PARTITION OF p2 FOR VALUES FROM (10) TO (20);
    INSERT INTO p VALUES (1, 'a'), (11, 'b');
"""
ORDERED = "SELECT id, v FROM p ORDER BY id"


def test_own_writes(session, connect):
    """Who has written to a table is given no placeholder: the query is planned before its snapshot is taken."""
    session.execute("""
        CREATE TABLE t (id int, v int); CREATE INDEX of_t ON t (id); INSERT INTO t SELECT g, g % 3 FROM generate_series(0, 20) g;
        CREATE TABLE d (id int); INSERT INTO d VALUES (0), (1), (2), (0), (1), (2); CREATE TABLE o (x int); ANALYZE""")
    query = "SELECT t.v, count(*), (SELECT count(*) FROM d), (SELECT count(*) FROM o) FROM t LEFT JOIN d ON d.id = t.v GROUP BY t.v ORDER BY t.v"
    reader, locker = connect(), connect(autocommit=False)
    for expected in ("MISS", "HIT"):
        reader.rows(query)
        assert reader.status() == expected
    reader.execute("BEGIN; INSERT INTO o VALUES (1)")
    locker.execute("REINDEX INDEX of_t")
    waiting = Asking(reader, query)
    until(session, reader, "wait_event_type = 'Lock'")
    session.execute("DELETE FROM d WHERE ctid IN (SELECT max(ctid) FROM d GROUP BY id)")
    session.execute("CREATE UNIQUE INDEX ON d (id)")
    locker.commit()
    assert waiting.result() == [(v, 7, 3, 1) for v in range(3)]
    reader.execute("ROLLBACK")


@pytest.mark.parametrize("makes_old", ["SET pg_arrow_cache.ttl = '1s'", "INSERT INTO p VALUES (2, 'c')"])
def test_an_answer_that_is_too_old_gets_no_placeholder(faked_server, at, makes_old):
    """It would be planned beside the locks of all partitions, which the planner takes one by one: somebody who locks them in its order would meet a deadlock."""
    faked_server.set("2026-01-01 00:00:00")
    session, reader, locker = at("-c client_min_messages=warning"), at(), at()
    session.execute("DROP TABLE IF EXISTS p; SELECT arrow_cache.flush()")
    session.execute(TABLES + "CREATE INDEX ON p1 (id); ANALYZE p")
    for expected in ("MISS", "HIT", "HIT"):
        reader.rows(ORDERED)
        assert reader.status() == expected
    reader.execute(makes_old)
    faked_server.set("2026-01-01 00:00:02")
    expected = session.uncached(ORDERED)
    locker.execute("BEGIN")
    locker.execute("REINDEX INDEX p1_id_idx")
    begun = Asking(reader, ORDERED)
    until(session, reader, "wait_event_type = 'Lock'")
    locker.execute("LOCK TABLE p2a IN ACCESS EXCLUSIVE MODE")
    locker.execute("ROLLBACK")
    assert begun.result() == expected


def test_a_hit_waits_for_no_partition(session, connect):
    """The answer needs none of them. Who has locked the table that the query names is waited for."""
    session.execute(TABLES)
    reader, locker = connect(), connect(autocommit=False)
    rows = [reader.rows(ORDERED) for _ in range(3)]
    locker.execute("LOCK TABLE p1 IN ACCESS EXCLUSIVE MODE")
    with Plans(reader) as plans:
        assert reader.rows(ORDERED) == rows[0]
        assert plans.take() == [True]
    locker.execute("LOCK TABLE p IN ACCESS EXCLUSIVE MODE")
    begun = Asking(reader, ORDERED)
    until(session, reader, "wait_event_type = 'Lock'")
    locker.execute("DELETE FROM p WHERE id = 11")
    locker.commit()
    assert begun.result() == rows[0][:1]
