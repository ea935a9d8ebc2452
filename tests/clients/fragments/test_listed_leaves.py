"""A combined query locks and reads the leaves that the server's own plan locks and reads, and no others."""

import random

import pytest

from support.fragment_world import parts_of

OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on -c lock_timeout=300ms"

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
# (table, the rest of FROM and WHERE)
PRUNED = [
    ("h", "WHERE k = 1"), ("t", "WHERE k IN (1, 2)"), ("t", "WHERE k = ANY ('{1,2}')"), ("t", "WHERE k = 1 OR k = 2"), ("t", "WHERE k IS NULL"),
    ("t", "WHERE k = 1::bigint * 10000000000"), ("t", "WHERE k < 10000000000 AND k < 5"), ("two", "WHERE k = 1"), ("two", "WHERE k = 12 AND v = 1"), ("e", "WHERE k % 2 = 1"),
    ("b", "WHERE k"), ("b", "WHERE NOT k"), ("b", "WHERE k IS TRUE"), ("t", "JOIN d USING (k) WHERE d.k = 1"), ("t", "JOIN d ON t.k = d.k AND d.k = 1"),
    ("t", "JOIN d ON t.k = d.w AND d.w = d.k WHERE d.k = 1"), ("t", "WHERE k = v AND v = 1"), ("td", "WHERE k = 5"), ("td", "WHERE k >= 2 AND k < 15"), ("td", "WHERE k > 30"), ("l", "WHERE k = 1"),
    ("l", "WHERE k = 99"), ("l", "WHERE k IS NULL"), ("l", "WHERE k <> 22"), ("t", "WHERE v = 1 AND v = 2"), ("t", "WHERE NOT (v <> 1) AND v = 2"), ("t", "WHERE v = NULL::int"),
    ("n", "WHERE k = 3 AND v = 1"), ("t", "WHERE (k = 1 AND v = 1) OR (k = 1 AND v = 2)"),
    ("t", "WHERE k >= 5 AND k < 15"), ("n", "WHERE k < 12"),
]
COMBINED = [
    ("t", "WHERE k >= 5 AND k < 15"), ("t", "WHERE k >= 12"), ("t", "WHERE k < 10"), ("td", "WHERE k >= 2 AND k < 15"), ("td", "WHERE k >= 12"), ("td", "WHERE k < 8"), ("td", "WHERE k >= 30"),
    ("l", "WHERE k = 1"), ("l", "WHERE k > 11"), ("t", "JOIN d USING (k) WHERE t.k >= 5 AND w = 1"), ("t", "WHERE v = 1 AND k >= 12"), ("n", "WHERE k >= 15"), ("h", "WHERE v > 1"), ("t", "WHERE k BETWEEN 2 AND 7"),
]


@pytest.fixture
def writer(session):
    session.execute(SETUP)
    return session


@pytest.fixture
def reader(connect, writer):
    return connect(OPTIONS, prepare_threshold=None)


def question(table, rest):
    return f"SELECT count(*), sum({table}.v) FROM {table} {rest}"


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


@pytest.mark.parametrize("table, rest", PRUNED)
def test_does_not_wait_for_other_leaves(writer, reader, table, rest):
    query = question(table, rest)
    answer, read = plain(reader, query)
    others = [leaf for leaf in LEAVES[table] if leaf not in read]
    assert others
    writer.execute("BEGIN")
    writer.execute(f"LOCK TABLE {', '.join(others)}")
    try:
        assert sorted(reader.rows(query), key=str) == answer
        is_combined(reader, query)
    finally:
        writer.execute("ROLLBACK")


@pytest.mark.parametrize("table, rest", COMBINED)
def test_windows_are_combined(reader, table, rest):
    query = question(table, rest)
    assert is_combined(reader, query)
    assert locked(reader, query + " HAVING count(*) >= 0") == plain(reader, query + " HAVING count(*) >= 0")


@pytest.mark.parametrize("around", ["SELECT * FROM ({}) s WHERE k = 1", "WITH s AS ({}) SELECT * FROM s JOIN d USING (k) WHERE s.k = 1", "SELECT sum(n) FROM ({}) s WHERE k IN (1, 2)"])
def test_conditions_around(reader, around):
    query = around.format("SELECT k, count(*) AS n FROM t GROUP BY k")
    assert locked(reader, query) == plain(reader, query)


def test_foreign_leaf(writer, reader):
    writer.execute("CREATE EXTENSION IF NOT EXISTS file_fdw SCHEMA public; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
    try:
        writer.execute("CREATE FOREIGN TABLE t3 PARTITION OF t FOR VALUES FROM (30) TO (40) SERVER files OPTIONS (filename '/nowhere/at/all')")
        for condition in ("k IN (1, 2)", "k < 20", "k = 1 OR k = 2"):
            query = f"SELECT count(*), sum(v) FROM t WHERE {condition}"
            assert reader.rows(query) == plain(reader, query)[0]
        assert is_combined(reader, "SELECT count(*) FROM t WHERE k < 20")
    finally:
        writer.execute("DROP SERVER files CASCADE")


def condition(chance, table):
    """A random condition."""
    column = chance.choice(["k", "k", "k", "v"])
    number = chance.choice([-5, 0, 1, 2, 5, 9, 10, 11, 12, 15, 19, 20, 22, 25, 30, 99])
    column = f"{table}.{column}"
    forms = [f"{column} {chance.choice(['<', '<=', '=', '>=', '>', '<>'])} {number}"] * 6
    forms += [f"{column} IN ({number}, {number + 1})", f"({column} = {number} OR v = 1)", f"{column} IS NULL", f"{column} = {number}::bigint", f"{number} > {column}",
              f"{column} BETWEEN {number} AND {number + 7}", f"{column} + 1 = {number}", f"{column} = {number}::numeric", f"NOT ({column} <> {number})"]
    return chance.choice(forms)


def test_random_conditions_lock_the_same(reader):
    chance = random.Random(20)
    combined = 0
    for pruning in ("on", "off"):
        reader.execute(f"SET enable_partition_pruning = {pruning}")
        for _ in range(300):
            table = chance.choice(["t", "td", "td", "l", "l", "h", "two", "e", "n"])
            join = chance.choice(["", "", "", f"JOIN d ON d.k = {table}.k", f"LEFT JOIN d ON d.w = {table}.v AND d.k = 1"])
            conditions = [condition(chance, table) for _ in range(chance.randint(1, 3))]
            if join and chance.random() < 0.5:
                conditions.append("d.k = 1")
            query = question(table, f"{join} WHERE {' AND '.join(conditions)}")
            before = runs(reader)
            seen = locked(reader, query)
            combined += runs(reader) - before
            assert seen == plain(reader, query), query
    assert combined > 50


def runs(session):
    return session.rows("SELECT fragment_runs FROM arrow_cache.stats")[0][0]


def test_why_tells_of_leaves_that_only_the_planner_knows(connect, session):
    session.execute("CREATE TABLE told (k int, v int) PARTITION BY HASH (k); CREATE TABLE told_0 PARTITION OF told FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
                    "CREATE TABLE told_1 PARTITION OF told FOR VALUES WITH (MODULUS 2, REMAINDER 1)")
    details = [session.rows(f"SELECT detail FROM arrow_cache.why('SELECT sum(v) FROM told WHERE {condition}')")[0][0]
               for condition in ("k = 3", "v > 3")]
    assert "cannot be combined of stored parts: The planner may leave out partitions" in details[0]
    assert details[1].endswith("; can be combined of stored parts")
