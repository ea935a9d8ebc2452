"""A client gets the same bytes from the cache as from execution: every type, as text and binary, through the simple and
the extended protocol, on the storing run and on hits, whichever format filled the entry."""

import psycopg
import pytest
from support.fidelity import result
from support.samples import SETUP, VALUES, fill, slug
from support.wire import data_rows, tags


@pytest.mark.parametrize("sql_type", VALUES, ids=slug)
def test_every_type(session, sql_type):
    fill(session, sql_type)
    query = "SELECT id, v FROM t ORDER BY id"
    session.execute("SET pg_arrow_cache.enabled = off")
    expected = {result_format: result(session, query, result_format) for result_format in (0, 1)}
    assert len(expected[0][1]) == len(VALUES[sql_type]) + 1
    assert expected[0][1][-1][1] is None and None not in [row[1] for row in expected[0][1][:-1]]
    session.execute("SET pg_arrow_cache.enabled = on")

    for filled_by in (0, 1):
        session.execute("SELECT arrow_cache.flush()")
        assert result(session, query, filled_by) == expected[filled_by]
        assert session.status() == "MISS" and session.reason() is None
        for served_to in (0, 1, 0):
            assert result(session, query, served_to) == expected[served_to]
            assert session.status() == "HIT"


@pytest.mark.parametrize("sql_type", VALUES, ids=slug)
def test_simple_protocol(session, wire, sql_type):
    """Every message of the answer is the same, RowDescription and the command tag included."""
    fill(session, sql_type)
    client = wire()
    query = "SELECT v, id FROM t ORDER BY id"
    client.query("SET pg_arrow_cache.enabled = off")
    expected = client.query(query)
    client.query("SET pg_arrow_cache.enabled = on")
    for status in ("MISS", "HIT"):
        assert client.query(query) == expected
        assert client.status() == status


def test_binary_formats_differ_per_column(session, wire):
    """One entry serves a mix of formats: text for one column, binary for the other."""
    session.execute("CREATE TABLE t AS SELECT g AS a, g AS b FROM generate_series(1, 3) g")
    client = wire()
    query = "SELECT a, b FROM t ORDER BY a"
    for status in ("MISS", "HIT"):
        client.parse(query)
        client.add(b"B", b"\0\0" + b"\0\0" + b"\0\0" + b"\0\2" + b"\0\0" + b"\0\1")
        assert data_rows(client.execute().sync()) == [
            [str(n).encode(), n.to_bytes(4, "big")] for n in (1, 2, 3)]
        assert client.status() == status


SHAPES = {
    "empty": "SELECT a, b FROM t WHERE a < 0",
    "no columns": "SELECT FROM t",
    "no columns, no rows": "SELECT FROM t WHERE a < 0",
    "duplicate names": "SELECT a AS x, b AS x, a AS x FROM t ORDER BY 1",
    "no name": "SELECT a + 1, b || 'x' FROM t ORDER BY 1",
    "odd names": 'SELECT a AS "", b AS "ä ""quoted""" FROM t ORDER BY 1'.replace('AS ""', 'AS " "'),
    "all NULL": "SELECT NULL::int AS n, NULL::text AS s, NULL AS u FROM t",
    "whole row of a table": "SELECT t FROM t ORDER BY a",
    "many columns": "SELECT " + ", ".join(f"a + {n} AS c{n}" for n in range(1000)) + " FROM t ORDER BY a LIMIT 3",
    "values": "VALUES (1, 'a'), (2, NULL) ORDER BY 1",
    "with": "WITH w AS (SELECT a FROM t WHERE a > 50) SELECT count(*), sum(a) FROM w",
    "aggregate of nothing": "SELECT sum(a), max(b), count(*), array_agg(a) FROM t WHERE a < 0",
    "rollup": "SELECT a % 2, a % 3, sum(a) FROM t GROUP BY ROLLUP (1, 2) ORDER BY 1, 2",
    "large values": "SELECT repeat(b, 100000) AS r FROM t WHERE a <= 3 ORDER BY a",
    "several batches": "SELECT x.a AS a, y.b, repeat('y', 100) AS r FROM t x CROSS JOIN t y ORDER BY x.a, y.a",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(session, wire, shape):
    session.execute("CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 100) g")
    client = wire()
    query = SHAPES[shape]
    client.query("SET pg_arrow_cache.enabled = off")
    simple = client.query(query)
    session.execute("SET pg_arrow_cache.enabled = off")
    extended = [result(session, query, result_format) for result_format in (0, 1)]
    for each in (client.query, session.execute):
        each("SET pg_arrow_cache.enabled = on")
    assert tags(simple) == [f"SELECT {len(data_rows(simple))}"]
    for status in ("MISS", "HIT"):
        assert client.query(query) == simple
        assert client.status() == status
    for result_format in (0, 1):
        assert result(session, query, result_format) == extended[result_format]
        assert session.status() == "HIT"


def test_toasted_values(session):
    """Values that lie compressed or out of line in the table are stored whole."""
    session.execute("CREATE TABLE t (id int, compressed text, outside bytea)")
    session.execute("ALTER TABLE t ALTER outside SET STORAGE external")
    session.execute("""
        INSERT INTO t SELECT g, repeat('abc', 100000),
            (SELECT string_agg(decode(md5(n::text || g), 'hex'), '') FROM generate_series(1, 5000) n)
        FROM generate_series(1, 5) g""")
    query = "SELECT id, compressed, outside FROM t ORDER BY id"
    expected = session.uncached(query)
    assert len(expected[0][2]) == 80_000
    for status in ("MISS", "HIT"):
        assert session.rows(query) == expected
        assert session.status() == status


@pytest.mark.parametrize("sql_type", ["timestamp", "timestamptz"])
def test_last_timestamps(session, sql_type):
    """The last thirty years of PostgreSQL's timestamps are beyond the range of Arrow. They are stored and served,
    distinct from their neighbours and from the infinities; only an export cannot deliver them."""
    session.execute("SET timezone = 'UTC'")
    last = "294247-01-10 04:00:54.775806"
    beyond = [f"294247-01-10 04:00:54.77580{digit}" for digit in (7, 8, 9)] + ["294276-12-31 23:59:59.999999"]
    stamps = [last, *beyond, "infinity", "-infinity", "4713-11-24 00:00:00 BC", "1970-01-01 00:00:00"]
    session.execute(f"CREATE TABLE t (id int, v {sql_type})")
    for number, stamp in enumerate([*stamps, None]):
        session.execute("INSERT INTO t VALUES (%s, %s)", [number, stamp])
    query = "SELECT v FROM t ORDER BY id"
    session.execute("SET pg_arrow_cache.enabled = off")
    expected = [result(session, query, result_format) for result_format in (0, 1)]
    assert [value and value.decode().replace("+00", "") for value, in expected[0][1]] == [*stamps, None]
    session.execute("SET pg_arrow_cache.enabled = on")
    for status, result_format in (("MISS", 0), ("HIT", 1), ("HIT", 0)):
        assert result(session, query, result_format) == expected[result_format]
        assert (session.status(), session.reason()) == (status, None)
    for number, stamp in enumerate(stamps):
        call = f"SELECT octet_length(arrow_cache.query('SELECT v FROM t WHERE id = {number}')) > 0"
        for _ in range(2):
            if stamp in beyond:
                with pytest.raises(psycopg.Error):
                    session.execute(call)
            else:
                assert session.rows(call) == [(True,)]


@pytest.mark.parametrize("sql_type", VALUES, ids=slug)
def test_many_rows_of_every_type(session, sql_type):
    """NULLs and values at every position of a bitmap and a block; the last block may be incomplete."""
    fill(session, sql_type)
    session.execute("""
        CREATE TABLE many AS SELECT n, CASE WHEN n * n % 7 <> 2 THEN v END AS v
        FROM generate_series(0, 299) n LEFT JOIN t ON t.id = n * 13 % (SELECT count(*) FROM t)""")
    same_through_the_cache(session, "SELECT v, n FROM many ORDER BY n")


def test_every_type_in_one_row(session):
    """All layouts of columns beside one another, in rows that differ in what is NULL."""
    session.execute(SETUP)
    columns = ", ".join(f"c{number} {sql_type}" for number, sql_type in enumerate(VALUES))
    session.execute(f"CREATE TABLE t (n int, {columns})")
    for n in range(100):
        row = [values[n % len(values)] if (n + number) % 3 else None for number, values in enumerate(VALUES.values())]
        session.execute(f"INSERT INTO t VALUES (%s{', %s' * len(row)})", [n, *row])
    same_through_the_cache(session, "SELECT * FROM t ORDER BY n")


def same_through_the_cache(session, query):
    session.execute("SET pg_arrow_cache.enabled = off")
    expected = [result(session, query, result_format) for result_format in (0, 1)]
    session.execute("SET pg_arrow_cache.enabled = on")
    for status, result_format in (("MISS", 0), ("HIT", 1), ("HIT", 0)):
        assert result(session, query, result_format) == expected[result_format]
        assert (session.status(), session.reason()) == (status, None)
