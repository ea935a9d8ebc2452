"""Tables with partitions of all kinds, and which of their leaves a statement locks."""

from support.fragment_world import parts_of

SETUP = """
CREATE TABLE d (k int, w int);
INSERT INTO d SELECT g, g % 3 FROM generate_series(0, 40) g;
CREATE TABLE t (k int, v int NOT NULL) PARTITION BY RANGE (k);
CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (MINVALUE) TO (10);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (10) TO (20);
CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (20) TO (30);
CREATE TABLE td (k int, v int NOT NULL) PARTITION BY RANGE (k);
CREATE TABLE td0 PARTITION OF td FOR VALUES FROM (0) TO (10);
CREATE TABLE td1 PARTITION OF td FOR VALUES FROM (10) TO (20);
CREATE TABLE td2 PARTITION OF td FOR VALUES FROM (25) TO (MAXVALUE);
CREATE TABLE tdd PARTITION OF td DEFAULT;
CREATE TABLE l (k int, v int NOT NULL) PARTITION BY LIST (k);
CREATE TABLE l0 PARTITION OF l FOR VALUES IN (1, 2, 11);
CREATE TABLE l1 PARTITION OF l FOR VALUES IN (12, 21);
CREATE TABLE ln PARTITION OF l FOR VALUES IN (NULL, 22);
CREATE TABLE ld PARTITION OF l DEFAULT;
CREATE TABLE h (k int, v int NOT NULL) PARTITION BY HASH (k);
CREATE TABLE h0 PARTITION OF h FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE h1 PARTITION OF h FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE h2 PARTITION OF h FOR VALUES WITH (MODULUS 3, REMAINDER 2);
CREATE TABLE two (k int, v int NOT NULL) PARTITION BY RANGE (k, v);
CREATE TABLE two0 PARTITION OF two FOR VALUES FROM (MINVALUE, MINVALUE) TO (10, 5);
CREATE TABLE two1 PARTITION OF two FOR VALUES FROM (10, 5) TO (30, 0);
CREATE TABLE twod PARTITION OF two DEFAULT;
CREATE TABLE e (k int, v int NOT NULL) PARTITION BY LIST ((k % 2));
CREATE TABLE e0 PARTITION OF e FOR VALUES IN (0);
CREATE TABLE e1 PARTITION OF e FOR VALUES IN (1);
CREATE TABLE n (v int NOT NULL, k int) PARTITION BY RANGE (k);
CREATE TABLE n0 PARTITION OF n FOR VALUES FROM (0) TO (15) PARTITION BY LIST (v);
CREATE TABLE n00 PARTITION OF n0 FOR VALUES IN (0, 1);
CREATE TABLE n0d PARTITION OF n0 DEFAULT;
CREATE TABLE n1 (k int, v int NOT NULL);
ALTER TABLE n ATTACH PARTITION n1 FOR VALUES FROM (15) TO (MAXVALUE);
CREATE TABLE b (k bool, v int NOT NULL) PARTITION BY LIST (k);
CREATE TABLE b0 PARTITION OF b FOR VALUES IN (false);
CREATE TABLE b1 PARTITION OF b FOR VALUES IN (true);
INSERT INTO t SELECT g, g % 4 FROM generate_series(0, 29) g;
INSERT INTO td SELECT g, g % 4 FROM generate_series(-3, 40) g;
INSERT INTO l SELECT g, g % 4 FROM generate_series(0, 29) g;
INSERT INTO h SELECT g, g % 4 FROM generate_series(0, 29) g;
INSERT INTO two SELECT g, g % 4 FROM generate_series(0, 40) g;
INSERT INTO e SELECT g, g % 4 FROM generate_series(0, 29) g;
INSERT INTO n SELECT g % 4, g FROM generate_series(0, 29) g;
INSERT INTO b SELECT g % 2 = 0, g FROM generate_series(0, 29) g;
"""
LEAVES = {"t": ["t0", "t1", "t2"], "td": ["td0", "td1", "td2", "tdd"], "l": ["l0", "l1", "ln", "ld"], "h": ["h0", "h1", "h2"], "two": ["two0", "two1", "twod"],
          "e": ["e0", "e1"], "n": ["n00", "n0d", "n1"], "b": ["b0", "b1"]}


def locked(session, query):
    """The answer, and the relations of the schema that a session has locked for it in a transaction."""
    session.execute("BEGIN")
    answer = sorted(session.rows(query), key=str)
    names = {name for name, in session.rows("SELECT relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE pid = pg_backend_pid() AND relkind IN ('r', 'p', 'f')"
                                            " AND relnamespace = current_schema::regnamespace")}
    session.execute("ROLLBACK")
    return answer, names


def plain(session, query):
    session.execute("SET pg_arrow_cache.enabled = off")
    try:
        return locked(session, query)
    finally:
        session.execute("RESET pg_arrow_cache.enabled")


def is_combined(session, query):
    return parts_of(line for line, in session.rows(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {query}")) is not None


def runs(session):
    return session.rows("SELECT fragment_runs FROM arrow_cache.stats")[0][0]


def agrees(seen, plain, query):
    """The answer is that of the server's plan, and no leaf is read that this leaves out. A query may read some if its
    conditions contradict each other, so that the server reads nothing."""
    assert seen[0] == plain[0], query
    leaves = {leaf for of_table in LEAVES.values() for leaf in of_table}
    assert seen[1] <= plain[1] or not plain[1] & leaves, query
