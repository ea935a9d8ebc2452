"""A combined query locks and reads the leaves that the server's own plan locks and reads, and no others, but for
conditions that contradict each other, or are not asked of the columns of the table."""

import random

import pytest

from support.leaves import LEAVES, SETUP, agrees, is_combined, locked, plain, runs

OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on -c lock_timeout=300ms"

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
            query = question(table, f"{join} WHERE {' AND '.join(conditions)}")
            before = runs(reader)
            seen = locked(reader, query)
            combined += runs(reader) - before
            agrees(seen, plain(reader, query), query)
    assert combined > 50
