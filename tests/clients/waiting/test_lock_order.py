"""Whoever is answered without planning locks partitions and children in the order in which planning locks them, so that it meets no deadlock that it would
not meet without the library: while it waits for one of them, it holds the same others as a session that plans."""

import pytest
from support.asking import Asking, pid
from support.placeholders import plans_of, warm

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
CREATE TABLE m (at timestamptz, v int) PARTITION BY RANGE (at);
CREATE TABLE m_1 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2020-01-01');
CREATE TABLE m_2 PARTITION OF m FOR VALUES FROM ('2020-01-01') TO ('2100-01-01');
CREATE TABLE c (k int, v int);
CREATE TABLE c_1 () INHERITS (c);
CREATE TABLE c_2 () INHERITS (c);
INSERT INTO a SELECT g % 200, g FROM generate_series(1, 1000) g;
INSERT INTO b SELECT g % 300, g % 6 FROM generate_series(1, 1000) g;
INSERT INTO c_1 SELECT g, g FROM generate_series(1, 10) g;
INSERT INTO c_2 SELECT g, g FROM generate_series(1, 10) g;
INSERT INTO m SELECT timestamptz '2000-02-01' + g * interval '1 month', g FROM generate_series(1, 300) g;
ANALYZE a, b, c, m
"""
BELOW = ("a_1", "a_2", "b_1", "b_2", "b_2_even", "b_2_odd", "b_3", "b_3_all", "c_1", "c_2", "m_1", "m_2")
INDEXES = ("i_pkey", "j_pkey")
QUERIES = {
    "expression": "SELECT (SELECT max(v) FROM a WHERE k = 1), k, v FROM b ORDER BY v, k LIMIT 3",
    "where": "SELECT k, v FROM b WHERE v < (SELECT min(k) + 3 FROM a) ORDER BY v, k",
    "hashed": "SELECT count(*) FROM b WHERE k NOT IN (SELECT k FROM a WHERE v < 100)",
    "semijoin": "SELECT count(*) FROM b WHERE EXISTS (SELECT FROM a WHERE a.k = b.k)",
    "with": "WITH x AS MATERIALIZED (SELECT max(v) AS m FROM a) SELECT k, v, (SELECT m FROM x) FROM b ORDER BY v, k LIMIT 3",
    "with, twice": "WITH x AS (SELECT max(v) AS m, k FROM a GROUP BY k) SELECT count(*) FROM b, x, x y WHERE b.k = x.k AND y.k = x.k",
    "from": "SELECT * FROM (SELECT max(v) AS m FROM a WHERE k < 150) x, b ORDER BY v, k LIMIT 4",
    "from, behind": "SELECT * FROM b, (SELECT max(v) AS m FROM a WHERE k < 150) x ORDER BY v, k LIMIT 4",
    "joined": "SELECT count(*) FROM (SELECT k, count(*) FROM a GROUP BY k) x JOIN (SELECT k, max(v) FROM c GROUP BY k) y USING (k) JOIN b USING (k)",
    "union": "SELECT max(v) FROM a WHERE k < 150 UNION ALL SELECT count(*) FROM b",
    "nested": "SELECT v, (SELECT max(v) FROM (SELECT v FROM b WHERE k < (SELECT max(k) FROM a) OFFSET 0) x) FROM c ORDER BY v LIMIT 3",
    "minimum": "SELECT (SELECT min(k) FROM c), max(k), min(v) FROM a WHERE v > (SELECT min(v) FROM b)",
    "subpartitions": "SELECT k, v FROM b ORDER BY k, v LIMIT 2",
}


@pytest.fixture
def owner(connect):
    session = connect()
    session.execute(SETUP)
    return session


def held_while_waiting(owner, locker, reader, query, relation, values=None, prepare=None):
    """The partitions, children and indexes that a session holds while it waits for one of them; None if it does not wait for it."""
    locker.execute("BEGIN")
    locker.execute(f"REINDEX INDEX {relation}" if relation in INDEXES else f"LOCK TABLE ONLY {relation} IN ACCESS EXCLUSIVE MODE")
    asking = Asking(reader, query, params=values, prepare=prepare)
    waits = False
    while not waits and asking.thread.is_alive():
        waits = owner.rows("SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted", [pid(reader)]) == [(1,)]
    held = owner.rows("SELECT relation::regclass::text FROM pg_locks WHERE pid = %s AND granted AND locktype = 'relation'", [pid(reader)])
    locker.execute("COMMIT")
    assert isinstance(asking.result(), list)
    return sorted(name for name, in held if name in BELOW + INDEXES) if waits else None


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_hits_lock_in_the_order_of_planning(owner, connect, query):
    options = "-c pg_arrow_cache.enable_fragments=off"
    plain = connect("-c pg_arrow_cache.enabled=off", prepare_threshold=None)
    reader, locker = connect(options, prepare_threshold=None), connect()
    warm(reader, query, times=3)
    assert plans_of(reader, lambda: reader.rows(query)) == (plain.rows(query), [True])
    for relation in BELOW:
        expected = held_while_waiting(owner, locker, plain, query, relation)
        assert held_while_waiting(owner, locker, reader, query, relation) == expected, relation
        assert reader.status() == "HIT"


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


INDEXED = {
    "join": "SELECT i.v, j.v FROM i JOIN j ON j.i = i.id WHERE j.id = %s",
    "expression": "SELECT (SELECT i.v FROM i WHERE i.id = j.i), j.v FROM j WHERE j.id = %s",
    "constant": "SELECT (SELECT v FROM i WHERE id = 7), v FROM j WHERE id = %s",
    "semijoin": "SELECT v FROM j WHERE EXISTS (SELECT FROM i WHERE i.id = j.i) AND j.id = %s",
}


@pytest.mark.parametrize("is_kept", [False, True], ids=["one plan", "kept plan"])
@pytest.mark.parametrize("query", INDEXED.values(), ids=INDEXED)
def test_bound_hits_lock_indexes_in_the_order_of_the_server(owner, connect, query, is_kept):
    """A kept plan locks them when it starts."""
    owner.execute("""CREATE TABLE i (id int PRIMARY KEY, v int); CREATE TABLE j (id int PRIMARY KEY, i int, v int);
        INSERT INTO i SELECT g, g FROM generate_series(1, 5000) g; INSERT INTO j SELECT g, g % 5000 + 1, g FROM generate_series(1, 20000) g; ANALYZE i, j""")
    kind = f"-c plan_cache_mode=force_{'generic' if is_kept else 'custom'}_plan"
    plain = connect(f"-c pg_arrow_cache.enabled=off {kind}", prepare_threshold=None)
    reader, locker = connect(kind, prepare_threshold=None), connect()
    for index in INDEXES:
        held = []
        for session in (plain, reader):
            for _ in range(4):
                row = session.rows(query, [5], prepare=is_kept)
            assert row == plain.rows(query, [5])
            assert session is plain or session.status() == "HIT"
            held.append(held_while_waiting(owner, locker, session, query, index, [5], is_kept))
        assert held[0] == held[1], index
        assert held[0] is not None
