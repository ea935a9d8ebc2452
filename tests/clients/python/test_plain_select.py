"""What the package for Python reads where there is no extension: the same types and values, type by type."""

import contextlib
import re
import warnings

import pyarrow as pa
import pytest

from support.faked_clock import ROOT, WORKER, private
from support.python_package import DRIVERS
from support.samples import VALUES, fill
from support.session import DSN

WITHOUT_EXTENSION = "without_extension"


def both_ways(client, query, parameters=None):
    """A query's result with the extension and without, each of them an error or a table."""
    found = []
    for has_extension in (True, False):
        client.package.has_extension[client.connection] = has_extension
        try:
            found.append(client.read(query, parameters))
        except (*errors_of(client), ValueError, OverflowError) as error:
            found.append(error)
    return found


def errors_of(client):
    return client.errors if isinstance(client.errors, tuple) else (client.errors,)


def fields(parts, depth=0):
    """All fields of a schema with their metadata, but for what only the extension knows."""
    for field in parts:
        yield depth, field.name, str(field.type), {name: value for name, value in field.metadata.items() if name != b"POSTGRESQL:typmod"}
        yield from fields([field.type.field(n) for n in range(field.type.num_fields)], depth + 1)


def expect_same(client, query, parameters=None):
    wanted, found = both_ways(client, query, parameters)
    if isinstance(wanted, Exception):
        assert isinstance(found, Exception), found
        return
    assert not isinstance(found, Exception), found
    assert found.shape == wanted.shape
    assert list(fields(found.schema)) == list(fields(wanted.schema))
    for theirs, ours in zip(wanted.columns, found.columns):
        if pa.types.is_floating(theirs.type):
            theirs, ours = repr(theirs.to_pylist()), repr(ours.to_pylist())
        assert ours == theirs, query


@pytest.mark.parametrize("sql_type", VALUES)
def test_types(client_of, session, sql_type):
    """Value by value, since some of them are an error in both ways."""
    client = client_of("psycopg")
    session.execute("SET client_min_messages = error")
    fill(session, sql_type)
    for number in range(len(VALUES[sql_type]) + 1):
        expect_same(client, f"SELECT v, id FROM t WHERE id = {number}")
    expect_same(client, "SELECT v FROM t WHERE false")


# What the binary forms of rows and arrays hold inside of each other.
NESTED = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TYPE "odd row" AS ("a b" numeric, "c""d" text[]);
CREATE TYPE money AS (n int);
CREATE TYPE inner_row AS (price numeric(10,2), span interval, host inet);
CREATE TYPE outer_row AS (n int, part inner_row, moods mood[]);
CREATE DOMAIN prices AS numeric[];
CREATE DOMAIN place AS outer_row;
CREATE DOMAIN host AS inet;
CREATE TYPE shrinking AS (a int, b int, c numeric);
ALTER TYPE shrinking DROP ATTRIBUTE b;
"""


@pytest.mark.parametrize("value", [
    "ROW(1, ARRAY['x', NULL])::\"odd row\"", "ROW(1)::{schema}.money", "ARRAY[ROW(1)::{schema}.money, NULL]",
    "ROW(1, ROW(1.50, '1 day', '10.0.0.1'), '{happy}')::outer_row", "ROW(1, NULL, NULL)::outer_row",
    "ROW(1, ROW(NULL, NULL, NULL), NULL)::outer_row", "ROW(NULL, NULL, NULL)::inner_row", "NULL::inner_row",
    "'{1.50,NULL,NaN}'::prices", "ROW(1, ROW(2, NULL, '::1/64'), NULL)::outer_row::place", "ROW(1, 2.5)::shrinking",
    "'{1 day,NULL}'::interval[]", "'{10.0.0.1,10.0.0.1/8,::1,::/0}'::inet[]", "'{10.0.0.0/8,::/0}'::cidr[]",
    "'{\"[1,2)\",empty}'::int4range[]", "'{\"{}\",null}'::json[]", "'{2,1}'::jsonb[]", "'{{1.5},{2.5}}'::numeric[]", "'[2:2]={1 day}'::interval[]",
    "'{10.0.0.1,10.0.0.1/8,NULL}'::host[]", "'10.0.0.1'::host", "'10.0.0.1/32'::cidr", "timestamp '294276-12-31'", "date '5874897-12-31'",
    "'{{a,b}}'::\"char\"[]", "'{a,\"\"}'::\"char\"[]", "'{t,f}'::bool[]", "'{<a/>}'::xml[]", "'{pg_class}'::regclass[]",
    "'{ab,c}'::char(3)[]", "'{}'::numeric[]", "NULL::interval[]", "ROW(1, 'a')", "ARRAY[ROW(1, 'a')]", "'literal'", "NULL"])
def test_nested_types(client_of, connect, session, value):
    session.execute(NESTED)
    client = client_of("psycopg")
    expect_same(client, f"SELECT {value.replace('{schema}', connect.schema)} AS v")


def test_what_cannot_be_read(client_of, session):
    session.execute(NESTED)
    client = client_of("psycopg")
    client.package.has_extension[client.connection] = False
    session.execute("CREATE TYPE small AS RANGE (subtype = int2)")
    assert client.read("SELECT '[1,2)'::small AS v").to_pydict() == {"v": ["[1,2)"]}
    with pytest.raises(NotImplementedError, match="values of the type _small cannot be read"):
        client.read("SELECT '{}'::small[] AS v")
    with pytest.raises(NotImplementedError, match="values of the type _inner_row cannot be read"):
        client.read("SELECT NULL::inner_row[] AS v")
    with pytest.raises(NotImplementedError, match="limit: pg_arrow_cache is needed"):
        client.read("SELECT 1", limit=1)
    client.execute("SET client_encoding = latin1")
    with pytest.raises(NotImplementedError, match="client_encoding is LATIN1"):
        client.read("SELECT 1")


@pytest.mark.parametrize("query", [
    "SELECT 1 AS a, 2 AS a, 3 AS \"o\"\"dd %\", 4", "SELECT 'x' ORDER BY 1", "VALUES (1, 'a'), (2, 'b')", "TABLE sales",
    "WITH w AS (SELECT 1 AS n) SELECT n, 1.50 AS price FROM w;", "SELECT generate_series(1, 3) AS n -- the end",
    "SELECT i, repeat('x', i) AS t, i / 3.0 AS n, '{1,2}'::int[] AS l, now() - now() AS s, 'ä\\x'::bytea FROM generate_series(1, 2000) AS i",
    "SELECT 'a\nb\\c\t''ä' AS text, NULL AS nothing", "SELECT * FROM sales WHERE false", "SELECT FROM generate_series(1, 3)", "SELECT 'a' LIKE '%s' AS a"])
def test_queries(client, session, query):
    session.execute("CREATE TABLE sales AS SELECT 1 AS id, 2.50 AS amount")
    expect_same(client, query)


def test_parameters(client):
    expect_same(client, f"SELECT i, i::text AS t FROM generate_series(1, 9) AS i WHERE i::text = {client.hole}", ["7"])


def test_settings_of_the_session_do_not_matter(client):
    """But to text of types that have no form of their own in Arrow."""
    for setting in ("bytea_output = escape", "extra_float_digits = -15", "datestyle = german", "timezone = 'Asia/Kolkata'"):
        client.execute(f"SET {setting}")
    expect_same(client, "SELECT '\\xff00'::bytea, 0.1::float8, 1.1::float4, date '2026-02-03', timestamptz '2026-02-03 04:05+06', "
                        "'{2026-02-03 04:05+06}'::timestamptz[]")


@pytest.mark.parametrize("options", [{}, {"batch_rows": 7, "chunk_bytes": 4096, "compression": "zstd"}])
def test_streams(plain, options):
    large = "SELECT i, repeat('x', 1000) AS filling FROM generate_series(1, 8000) AS i"
    batches = plain.batches(large, **options)
    assert len(batches) > 10
    assert pa.Table.from_batches(batches)["i"].to_pylist() == list(range(1, 8001))
    assert len(plain.batches(large, count=1, **options)) == 1
    assert plain.rows("SELECT 1") == [(1,)]


def test_errors_of_the_server(plain):
    for query in ("SELECT * FROM no_such_table", "SELECT 1 / (8000 - i) AS n, repeat('x', 1000) AS filling FROM generate_series(1, 8000) AS i"):
        with pytest.raises(plain.errors):
            plain.read(query)
    assert plain.read("SELECT 1 AS one").to_pydict() == {"one": [1]}


def test_transactions(plain, session):
    session.execute("CREATE TABLE t (id int)")
    plain.execute("BEGIN")
    plain.execute("INSERT INTO t VALUES (1)")
    assert plain.read("TABLE t").to_pydict() == {"id": [1]}
    plain.execute("ROLLBACK")
    assert plain.read("TABLE t").to_pydict() == {"id": []}


def test_no_row_is_computed_for_the_types(plain, session):
    session.execute("CREATE SEQUENCE s")
    assert plain.read("SELECT nextval('s') AS n").to_pydict() == {"n": [1]}


@pytest.fixture(scope="module")
def database_without(administrator):
    administrator.execute(f"CREATE DATABASE {WITHOUT_EXTENSION}")
    yield re.sub(r"dbname=\w+", f"dbname={WITHOUT_EXTENSION}", DSN)
    administrator.execute(f"DROP DATABASE {WITHOUT_EXTENSION} WITH (FORCE)")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_database_without_the_extension(client_of, package, database_without, driver):
    client = client_of(driver, database_without)
    with pytest.warns(package.PlainSelectWarning, match="does not have pg_arrow_cache"):
        assert client.read("SELECT 1.50 AS n").to_pydict() == {"n": ["1.50"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.read("SELECT 1.50 AS n").to_pydict() == {"n": ["1.50"]}


def test_a_server_that_has_not_preloaded_the_library(client_of, package):
    """Such as a standby without the library, whose primary has the extension."""
    with private.Cluster(ROOT / "target" / f"test-not-preloaded-{WORKER}", preload="") as server:
        server.psql("CREATE EXTENSION pg_arrow_cache")
        client = client_of("psycopg", server.dsn())
        with contextlib.closing(client), pytest.warns(package.PlainSelectWarning):
            assert client.read("SELECT 1.50 AS n").to_pydict() == {"n": ["1.50"]}
