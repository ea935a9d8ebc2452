"""A hit without planning locks partitions without waiting. If it would have to wait, the query is planned in its place, as without the cache: the server
looks functions up before it waits, and takes the snapshot afterwards."""

import time

import pytest

from support.asking import Asking, until

TABLES = """
    CREATE TABLE p (id int, v text) PARTITION BY RANGE (id);
    CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
    CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (100) PARTITION BY RANGE (id);
    CREATE TABLE p2a PARTITION OF p2 FOR VALUES FROM (10) TO (20);
    CREATE TABLE n (id int, v text);
    INSERT INTO p VALUES (1, 'a'), (11, 'b');
    INSERT INTO n VALUES (21, 'x');
    CREATE FUNCTION next(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1';
    CREATE COLLATION same FROM "C";
"""
ORDERED = "SELECT id, v FROM p ORDER BY id"


@pytest.fixture
def asking(session, connect):
    """Starts a query that is a hit without planning, while somebody else has locked a partition that it has to lock."""
    session.execute(TABLES)
    reader, locker = connect(), connect(autocommit=False)

    def ask(query):
        for expected in ("MISS", "HIT"):
            reader.rows(query)
            assert reader.status() == expected
        locker.execute("LOCK TABLE p1 IN ACCESS EXCLUSIVE MODE")
        begun = Asking(reader, query)
        until(session, reader, "wait_event_type = 'Lock' IS TRUE")
        begun.locker = locker
        return begun

    yield ask
    locker.rollback()


def test_a_partition_is_attached(session, connect, asking):
    """What is in the new partition was truncated by a transaction that ends after the wait."""
    waiting, writer = asking(ORDERED), connect(autocommit=False)
    session.execute("ALTER TABLE p2 ATTACH PARTITION n FOR VALUES FROM (20) TO (30)")
    writer.execute("TRUNCATE n; INSERT INTO n VALUES (22, 'y'), (23, 'z')")
    waiting.locker.rollback()
    until(session, waiting.session, "wait_event_type = 'Lock' IS TRUE")
    writer.commit()
    assert waiting.result() == [(1, "a"), (11, "b"), (22, "y"), (23, "z")]


@pytest.mark.parametrize("query, change", [
    ("SELECT next(id) FROM p ORDER BY 1", "DROP FUNCTION next(int)"),
    ("SELECT next(id) FROM p ORDER BY 1", "REVOKE EXECUTE ON FUNCTION next(int) FROM PUBLIC"),
    ("SELECT min(v COLLATE same), max(v COLLATE same) FROM p", "DROP COLLATION same"),
])
def test_what_the_query_names_is_dropped(session, asking, query, change):
    expected = session.uncached(query)
    waiting = asking(query)
    session.execute(change)
    waiting.locker.rollback()
    assert waiting.result() == expected


def test_it_holds_no_lock_while_it_waits(session, connect, asking):
    """The planner locks the partitions of a sub-query first. Who waits for these holds none of the others, so that no deadlock comes of it."""
    session.execute("CREATE TABLE q (id int) PARTITION BY RANGE (id); CREATE TABLE q1 PARTITION OF q FOR VALUES FROM (0) TO (10); INSERT INTO q VALUES (5)")
    waiting = asking("SELECT id, (SELECT max(id) FROM p) AS most FROM q")
    waiting.locker.execute("LOCK TABLE q1 IN ACCESS EXCLUSIVE MODE")
    waiting.locker.rollback()
    assert waiting.result() == [(5, 11)]


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
    until(session, reader, "wait_event_type = 'Lock' IS TRUE")
    session.execute("DELETE FROM d WHERE ctid IN (SELECT max(ctid) FROM d GROUP BY id)")
    session.execute("CREATE UNIQUE INDEX ON d (id)")
    locker.commit()
    assert waiting.result() == [(v, 7, 3, 1) for v in range(3)]
    reader.execute("ROLLBACK")


@pytest.mark.parametrize("makes_old", ["SET pg_arrow_cache.ttl = '1s'", "INSERT INTO p VALUES (2, 'c')"])
def test_an_answer_that_is_too_old_gets_no_placeholder(session, connect, makes_old):
    """It would be planned beside the locks of all partitions, which the planner takes one by one: somebody who locks them in its order would meet a deadlock."""
    session.execute(TABLES + "CREATE INDEX ON p1 (id); ANALYZE p")
    reader, locker = connect(), connect(autocommit=False)
    for expected in ("MISS", "HIT", "HIT"):
        reader.rows(ORDERED)
        assert reader.status() == expected
    reader.execute(makes_old)
    time.sleep(1.1)
    expected = session.uncached(ORDERED)
    locker.execute("REINDEX INDEX p1_id_idx")
    begun = Asking(reader, ORDERED)
    until(session, reader, "wait_event_type = 'Lock' IS TRUE")
    locker.execute("LOCK TABLE p2a IN ACCESS EXCLUSIVE MODE")
    locker.rollback()
    assert begun.result() == expected
