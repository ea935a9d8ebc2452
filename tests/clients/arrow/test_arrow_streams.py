"""arrow_cache.query: whole streams. Batches, empty results, parameters, refused statements, and which statements share
entries."""

import psycopg
import pyarrow as pa
import pytest

from support.exports import read_query


@pytest.fixture
def table(session):
    session.execute("""
        CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b, g / 8.0::float8 AS c FROM generate_series(1, 100) g""")
    return session


def test_empty_result_keeps_the_schema(table):
    schemas = []
    for query in ("SELECT a, b, c FROM t WHERE a < 0", "SELECT a, b, c FROM t"):
        for status in ("MISS", "HIT"):
            got, _ = read_query(table, query)
            assert table.status() == status
            schemas.append(got.schema)
            assert got.num_rows == (0 if "WHERE" in query else 100)
    assert all(schema.equals(schemas[0], check_metadata=True) for schema in schemas)
    assert schemas[0].names == ["a", "b", "c"]
    assert schemas[0].types == [pa.int32(), pa.string(), pa.float64()]


def test_all_null(table):
    got, _ = read_query(table, "SELECT NULL::int AS i, NULL::text AS s, NULL::interval AS v, NULL::bool AS b FROM t")
    assert got.schema.types == [pa.int32(), pa.string(), pa.string(), pa.bool_()]
    assert all(column.null_count == 100 for column in got.columns)


def test_duplicate_and_odd_names(table):
    got, _ = read_query(table, 'SELECT a AS x, b AS x, a + 1, c AS "\u00e4 \U0001f600" FROM t ORDER BY a LIMIT 1')
    assert got.schema.names == ["x", "x", "?column?", "\u00e4 \U0001f600"]
    assert [column.to_pylist() for column in got.columns] == [[1], ["row 1"], [2], [0.125]]


@pytest.mark.parametrize("interval", ["", ", (interval '1 second' * x.a)"], ids=["verbatim", "converted"])
def test_many_batches(table, interval):
    """Results larger than one batch: all rows, in order, whether batches go out as they are stored or converted."""
    columns = "x.a * 1000 + y.a AS n, repeat(x.b, 20) AS s, CASE WHEN y.a % 3 > 0 THEN y.b END AS o"
    query = f"SELECT {columns}{interval} FROM t x, t y ORDER BY n"
    rows = table.uncached(f"SELECT {columns}{interval}{'::text' if interval else ''} FROM t x, t y ORDER BY n")
    assert len(rows) == 10_000
    streams = []
    for status in ("MISS", "HIT"):
        got, stream = read_query(table, query)
        assert (table.status(), table.reason()) == (status, None)
        assert list(zip(*(column.to_pylist() for column in got.columns))) == rows
        streams.append(stream)
    assert streams[0] == streams[1]
    with pa.ipc.open_stream(stream) as reader:
        batches = list(reader)
    assert len(batches) > 1 and sum(batch.num_rows for batch in batches) == 10_000
    assert table.rows("SELECT batches FROM arrow_cache.entries") == [(len(batches),)]


def test_one_entry_for_rows_and_streams(table):
    """The stream reads what a SELECT has stored, and the other way round."""
    query = "SELECT a, b FROM t ORDER BY a"
    rows = table.rows(query)
    got, stream = read_query(table, query)
    assert table.status() == "HIT"
    assert [tuple(row.values()) for row in got.to_pylist()] == rows
    table.execute("SELECT arrow_cache.flush()")
    assert read_query(table, query)[1] == stream
    assert table.status() == "MISS"
    assert table.rows(query) == rows
    assert table.status() == "HIT"


def test_parameters(table):
    """Several parameters of several types; answers to different values of each are kept apart."""
    query = "SELECT a, b, $3::text AS p FROM t WHERE a BETWEEN $1 AND $2 ORDER BY a"
    for status in ("MISS", "HIT"):
        for low, high, text in ((1, 3, "x"), (2, 3, "x"), (2, 3, ""), (2, 3, None), (5, 4, "x")):
            got, _ = read_query(table, query, low, high, text)
            assert table.status() == status
            assert got.to_pylist() == [{"a": n, "b": f"row {n}", "p": text} for n in range(low, high + 1)]


def test_an_array_of_parameters(table):
    stream, = table.execute("""
        SELECT arrow_cache.query('SELECT a FROM t WHERE a IN ($1, $2, $3) ORDER BY a', VARIADIC ARRAY[3, 1, 2])
        """).fetchone()
    assert pa.ipc.open_stream(stream).read_all().to_pylist() == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_after_a_write(table, other):
    query = "SELECT sum(a) AS s FROM t"
    for total in (5050, 5060, 5070):
        for status in ("MISS" if total == 5050 else "STALE", "HIT"):
            assert read_query(table, query)[0].to_pylist() == [{"s": total}]
            assert table.status() == status
        other.execute("UPDATE t SET a = a + 10 WHERE b = 'row 50'")


def test_own_writes(table, other):
    query = "SELECT count(*) AS n FROM t"
    assert read_query(table, query)[0].to_pylist() == [{"n": 100}]
    with table.transaction(force_rollback=True):
        table.execute("DELETE FROM t WHERE a <= 10")
        for _ in range(2):
            assert read_query(table, query)[0].to_pylist() == [{"n": 90}]
            assert table.status() == "BYPASS"
        assert read_query(other, query)[0].to_pylist() == [{"n": 100}]
        assert other.status() == "HIT"
    assert read_query(table, query)[0].to_pylist() == [{"n": 100}]
    assert table.status() == "HIT"


def test_switched_off_and_uncacheable(table):
    """Without the cache the stream is the same, and it is executed each time."""
    query = "SELECT a, b FROM t ORDER BY a"
    _, stream = read_query(table, query)
    table.execute("SET pg_arrow_cache.enabled = off")
    assert read_query(table, query)[1] == stream
    assert (table.status(), table.reason()) == ("BYPASS", "disabled")
    table.execute("SET pg_arrow_cache.enabled = on")
    got = [read_query(table, "SELECT random() AS r FROM t")[0] for _ in range(2)]
    assert got[0] != got[1]
    assert (table.status(), table.reason()) == ("BYPASS", "volatile_function")


def test_permissions(table, connect):
    role = f"{connect.schema}_stranger"
    query = "SELECT count(*) AS n FROM t"
    read_query(table, query)
    table.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {connect.schema} TO {role}")
    try:
        read_query(table, query)
        table.execute(f"SET ROLE {role}")
        for _ in range(2):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                read_query(table, query)
    finally:
        table.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.parametrize("query, parameters, error", [
    ("DELETE FROM t", (), psycopg.errors.SyntaxError),
    ("INSERT INTO t (a) VALUES (0) RETURNING a", (), psycopg.errors.SyntaxError),
    ("SELECT 1; SELECT 2", (), psycopg.errors.SyntaxError),
    ("", (), psycopg.errors.SyntaxError),
    ("CREATE TABLE u AS SELECT 1", (), psycopg.errors.SyntaxError),
    ("SELECT * INTO u FROM t", (), psycopg.errors.SyntaxError),
    ("SELECT a FROM", (), psycopg.errors.SyntaxError),
    ("SELECT nothing FROM t", (), psycopg.errors.UndefinedColumn),
    ("SELECT a FROM t WHERE a = $2", (1,), psycopg.errors.UndefinedParameter),
    ("SELECT 1 / (a - 50) FROM t", (), psycopg.errors.DivisionByZero),
])
def test_refused_or_failing(table, query, parameters, error):
    """The call is an error. It stores nothing, does nothing and changes no setting; the session goes on."""
    table.execute("SET datestyle = 'German'")
    for _ in range(2):
        with pytest.raises(error):
            read_query(table, query, *parameters)
    assert table.rows("SELECT count(*) FROM arrow_cache.entries") == [(0,)]
    assert table.rows("SELECT count(*), to_regclass('u')::text FROM t") == [(100, None)]
    assert table.execute("SHOW datestyle").fetchone()[0].startswith("German")
    assert read_query(table, "SELECT count(*) AS n FROM t")[0].to_pylist() == [{"n": 100}]


def test_null_query(table):
    assert table.rows("SELECT arrow_cache.query(NULL)") == [(None,)]


def test_a_function_of_every_row(table):
    """The function is called once for each row, with the value of that row. The second time the answers come from the
    cache."""
    call = "SELECT a, arrow_cache.query('SELECT b FROM t WHERE a = $1', a) FROM t WHERE a <= 3 ORDER BY a"
    for _ in range(2):
        got = {a: pa.ipc.open_stream(stream).read_all().to_pylist() for a, stream in table.rows(call)}
        assert got == {n: [{"b": f"row {n}"}] for n in (1, 2, 3)}
    assert table.rows("SELECT count(*), sum(hits)::int FROM arrow_cache.entries") == [(3, 3)]
