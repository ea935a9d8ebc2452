"""Exports under the settings that change how statements are answered: verification, developer's fills, hints, admission, policies."""

import psycopg
import pytest

from support.exports import WAYS, WITH_OPTIONS, entries, read, rows_of

QUERY = "SELECT a, b FROM t ORDER BY a"


@pytest.fixture
def table(session):
    """Several batches."""
    session.execute("CREATE TABLE t AS SELECT g AS a, repeat('row ' || g, 30) AS b FROM generate_series(1, 10000) g")
    return session


def stat(session, name):
    return session.rows(f"SELECT {name} FROM arrow_cache.stats")[0][0]


@pytest.mark.parametrize("way", WAYS)
def test_not_verified(table, way):
    """Statements compare the same entries, so exports compare nothing: verify_sample_rate leaves them as they are."""
    expected = table.uncached(QUERY)
    assert rows_of(read(WAYS[way](table, QUERY))) == expected
    table.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    samples = stat(table, "verify_samples")
    assert rows_of(read(WAYS[way](table, QUERY))) == expected
    assert table.status() == "HIT"
    assert stat(table, "verify_samples") == samples


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting, reason", [
    ("populate = off", "populate_off"), ("min_execution_time = '10min'", "too_quick"), ("min_runs = 3", "too_few_runs"),
    ("max_entry_size = '64kB'", "too_large"),
])
def test_not_admitted(table, way, setting, reason):
    """A result that is not stored is delivered all the same."""
    expected = table.uncached(QUERY)
    table.execute(f"SET pg_arrow_cache.{setting}")
    for _ in range(2):
        assert rows_of(read(WAYS[way](table, QUERY))) == expected
        assert (table.status(), table.reason()) == ("MISS", reason)
    assert entries(table) == 0


def hinted_copy(source):
    def deliver(session, hint):
        with session.cursor().copy(f"{hint} COPY {source} TO STDOUT (FORMAT arrow)") as copy:
            return b"".join(copy)

    return deliver


def hinted_function(way):
    return lambda session, hint: WAYS[way](session, f"{hint} {QUERY}")


@pytest.mark.parametrize("deliver", [
    hinted_copy(f"({QUERY})"), hinted_copy("t"), hinted_copy("t (b)"), *map(hinted_function, ("query", "fetch", "messages")),
], ids=["copy_query", "copy_table", "copy_columns", "query", "fetch", "messages"])
def test_hints(table, deliver):
    """A hint stands in a comment before the query of a function, or before the COPY."""
    for _ in range(2):
        assert read(deliver(table, "/*+ no_arrow_cache */")).num_rows == 10000
        assert (table.status(), table.reason()) == ("BYPASS", "no_cache_hint")
    assert entries(table) == 0
    table.execute("SET pg_arrow_cache.min_execution_time = '10min'")
    for status in ("MISS", "HIT"):
        assert read(deliver(table, "/*+ arrow_cache */")).num_rows == 10000
        assert table.status() == status
    other_way = read(deliver(table, "/* no hint */"))
    assert table.status() == "HIT" and other_way.num_rows == 10000


@pytest.mark.parametrize("way", WAYS)
def test_policy(table, way):
    table.execute("SELECT arrow_cache.set_policy('t', 'never')")
    for _ in range(2):
        assert read(WAYS[way](table, QUERY)).num_rows == 10000
        assert table.status() == "BYPASS"
    assert entries(table) == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("level, status", [("SERIALIZABLE", "BYPASS"), ("REPEATABLE READ", "HIT"), ("READ COMMITTED", "HIT")])
def test_isolation_levels(table, way, level, status):
    WAYS[way](table, QUERY)
    table.execute(f"BEGIN ISOLATION LEVEL {level} READ ONLY")
    assert read(WAYS[way](table, QUERY)).num_rows == 10000
    assert table.status() == status
    table.execute("COMMIT")


@pytest.mark.parametrize("way", WAYS)
def test_parallel_plans(table, way):
    """A plan with workers delivers the same rows, and they are stored."""
    expected = table.uncached(QUERY)
    table.execute("""
        SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
        SET min_parallel_table_scan_size = 0; SET debug_parallel_query = on""" if table.info.server_version >= 160000 else """
        SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
        SET min_parallel_table_scan_size = 0; SET force_parallel_mode = on""")
    for status in ("MISS", "HIT"):
        assert rows_of(read(WAYS[way](table, QUERY))) == expected
        assert table.status() == status


@pytest.mark.parametrize("way", WAYS)
def test_wide_and_long_values(session, way):
    """1600 columns, and one value of 20 MB."""
    columns = ", ".join(f"c{n} int" for n in range(1600))
    session.execute(f"CREATE TABLE wide ({columns}); INSERT INTO wide (c0, c1599) VALUES (1, 2), (3, 4)")
    session.execute("CREATE TABLE long AS SELECT repeat('0123456789', 2000000) AS v")
    for status in ("MISS", "HIT"):
        got = read(WAYS[way](session, "SELECT * FROM wide ORDER BY c0"))
        assert session.status() == status
        assert (got.num_columns, got.num_rows) == (1600, 2)
        assert (got["c0"].to_pylist(), got["c1598"].null_count, got["c1599"].to_pylist()) == ([1, 3], 2, [2, 4])
    for status in ("MISS", "HIT"):
        assert read(WAYS[way](session, "SELECT v FROM long")).column("v").to_pylist() == ["0123456789" * 2_000_000]
        assert session.status() == status


def test_not_in_a_database_without_the_extension(session, connect):
    """COPY needs no SQL object of the extension: it works in every database of the server."""
    name = f"{connect.schema}_other"
    session.execute(f"CREATE DATABASE {name}")
    try:
        with psycopg.connect(session.info.dsn, dbname=name, options="", autocommit=True) as elsewhere:
            elsewhere.execute("CREATE TABLE t AS SELECT 1 AS a")
            for _ in range(2):
                assert rows_of(read(WITH_OPTIONS["copy"](elsewhere, "SELECT a FROM t"))) == [(1,)]
    finally:
        session.execute(f"DROP DATABASE {name}")
