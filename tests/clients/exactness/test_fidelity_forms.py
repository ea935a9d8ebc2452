"""A hit gives the same bytes as execution: values of every bit pattern, values as tables store them or as queries
compute them, and results of unusual shapes."""

import struct

import psycopg
import pytest

from support.corners import BULK, EXTENSION_VALUES, MORE_TYPES, array_expressions, fill_table, literal
from support.fidelity import BINARY, TEXT, answer, check_same, check_store_and_hits, executed, outcome
from support.samples import SETUP


def send(session, query, *values):
    """Executes with parameters given as (type, bytes), in the form that the type's receive function takes."""
    types = [session.rows("SELECT %s::regtype::oid::int8", [of])[0][0] for of, _ in values]
    got = session.pgconn.exec_params(query.encode(), [value for _, value in values], types, [1] * len(values))
    assert not got.error_message, got.error_message


FLOAT8_BITS = [
    0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001, 0xFFFFFFFFFFFFFFFF, 0x7FF0000000000001, 0x7FF7FFFFFFFFFFFF,
    0x8000000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF, 0xFFF0000000000000,
]
FLOAT4_BITS = [
    0x7FC00000, 0xFFC00000, 0x7FC00001, 0xFFFFFFFF, 0x7F800001, 0x7FBFFFFF,
    0x80000000, 0x00000001, 0x807FFFFF, 0x7F7FFFFF, 0xFF800000,
]


def test_every_bit_of_floats(session, other):
    """NaN has 2^52 bit patterns, and zero has two."""
    session.execute("CREATE TABLE t (id int, f8 float8, f4 float4, a8 float8[], a4 float4[], p point)")
    for number, (bits8, bits4) in enumerate(zip(FLOAT8_BITS, FLOAT4_BITS, strict=True)):
        send(session, f"INSERT INTO t VALUES ({number}, $1, $2, ARRAY[$1, NULL], ARRAY[$2, NULL], $3)",
             ("float8", struct.pack("!Q", bits8)), ("float4", struct.pack("!I", bits4)),
             ("point", struct.pack("!QQ", bits8, bits8)))
    expected = check_store_and_hits(session, other, "SELECT f8, f4, a8, a4, p FROM t ORDER BY id")
    rows = expected[BINARY][1]
    assert [row[0] for row in rows] == [struct.pack("!Q", bits) for bits in FLOAT8_BITS]
    assert [row[1] for row in rows] == [struct.pack("!I", bits) for bits in FLOAT4_BITS]


def test_every_byte_of_char(session, other):
    session.execute('CREATE TABLE t (id int, c "char")')
    for byte in range(256):
        send(session, f"INSERT INTO t VALUES ({byte}, $1)", ('"char"', bytes([byte])))
    expected = check_store_and_hits(session, other, "SELECT c FROM t ORDER BY id")
    assert [row[0] for row in expected[BINARY][1]] == [bytes([byte]) for byte in range(256)]


def test_the_far_ends_of_time(session, other):
    """PostgreSQL counts from 2000 and Arrow from 1970: the last thirty years of a PostgreSQL timestamp are beyond the
    range of Arrow."""
    session.execute("CREATE TABLE t (id int, a timestamp, b timestamptz, d date)")
    last = "294276-12-31 23:59:59.999999"
    ends = [
        (last, "5874897-12-31"), ("294247-01-10 04:00:54.775806", "5874897-12-30"),
        ("294247-01-10 04:00:54.775807", "294277-01-01"), ("294247-01-10 04:00:54.775808", "294247-01-10"),
        ("infinity", "infinity"), ("-infinity", "-infinity"), ("4714-11-24 00:00:00 BC", "4714-11-24 BC"),
    ]
    for number, (moment, day) in enumerate(ends):
        session.execute("INSERT INTO t VALUES (%s, %s, %s::timestamp AT TIME ZONE 'UTC', %s)", [number, moment, moment, day])
    for zone in ("UTC", "Etc/GMT+12"):
        for each in (session, other):
            each.execute(f"SET timezone = '{zone}'")
        expected = check_store_and_hits(session, other, "SELECT a, b, d FROM t ORDER BY id")
        assert expected[TEXT][1][0][0] == last.encode()


@pytest.mark.parametrize("storage", ["external", "extended pglz", "extended lz4", "main pglz"])
def test_values_that_lie_elsewhere(session, other, storage):
    """Values that are out of line, compressed, or both."""
    session.execute(SETUP + MORE_TYPES)
    types = list(fill_table(session, "empty", [(of, []) for of in BULK]).values())
    where, *how = storage.split()
    for number in range(len(BULK)):
        session.execute(f"ALTER TABLE empty ALTER c{number} SET STORAGE {where}")
        try:
            for method in how:
                session.execute(f"ALTER TABLE empty ALTER c{number} SET COMPRESSION {method}")
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("the server was built without it")
    session.execute("CREATE TABLE t (LIKE empty INCLUDING STORAGE INCLUDING COMPRESSION)")
    for number, (of, values) in enumerate(BULK.items()):
        for value in values:
            session.execute(f"INSERT INTO t (id, c{number}) SELECT {number}, {value}::{of}")
    assert session.rows("SELECT pg_relation_size(reltoastrelid) > 0 FROM pg_class WHERE oid = 't'::regclass") == [(True,)]
    compressed = {method for method, in session.rows("SELECT pg_column_compression(c0) FROM t WHERE c0 IS NOT NULL")}
    assert compressed == {None} if where == "external" else set(how) <= compressed
    check_store_and_hits(session, other, "SELECT * FROM t ORDER BY id, c0, c1", types)


def test_values_compressed_where_they_are(session, other):
    session.execute("CREATE TABLE t (id int, v text, a text[], n numeric[], p varbit)")
    session.execute("""INSERT INTO t SELECT g, repeat('ab', 2000 + g), array_fill('x'::text, ARRAY[900 + g]),
        array_fill(1.50, ARRAY[900 + g]), repeat('01', 9000 + g)::varbit FROM generate_series(1, 40) g""")
    sizes = session.rows("SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 't'::regclass")
    assert sizes == [(0,)]
    assert session.rows("SELECT DISTINCT pg_column_compression(v) IS NOT NULL, pg_column_compression(a) IS NOT NULL FROM t") == [
        (True, True)]
    check_store_and_hits(session, other, "SELECT v, a, n, p, id FROM t ORDER BY id")


MADE = {
    "expanded arrays": "SELECT array_append(a, 'more'), a || a, array_remove(a, NULL) FROM t ORDER BY id",
    "arrays of values that lie elsewhere": "SELECT ARRAY[b, 'short', b], ARRAY[[b], [b]] FROM t ORDER BY id",
    "rows with values that lie elsewhere":
        "SELECT ROW(id, b)::pair, ROW(ROW(id, b), ARRAY[ROW(1, b)::pair])::nested FROM t ORDER BY id",
    "whole rows": "SELECT t, t.*, ARRAY[t, NULL, t] FROM t ORDER BY id",
    "rows through a subquery": "SELECT s.p, (s.p).t FROM (SELECT id, ROW(id, b)::pair AS p FROM t OFFSET 0) s ORDER BY s.id",
    "parts": "SELECT substring(b, 5, 7), a[1:1], a[2], b || 'x', left(b, 0), a[5:9] FROM t ORDER BY id",
    "aggregates": "SELECT array_agg(b ORDER BY id), string_agg(b, ',' ORDER BY id), max(b), jsonb_agg(b ORDER BY id), "
                  "array_agg(a ORDER BY id) FILTER (WHERE id < 6), array_agg(ROW(id, b)::pair ORDER BY id) FROM t",
    "ranges": "SELECT numrange(id * 1.10, NULL), range_agg(int4range(id, id + 1)), int4multirange(int4range(id, 9)) "
              "FROM t GROUP BY id ORDER BY id",
    "cstring": "SELECT textout(b), int4out(id), array_out(a), numeric_out(1.50 * id), NULL::cstring FROM t ORDER BY id",
    "constants": "SELECT 'no type', NULL, 1, 1.50, ARRAY[1, NULL], B'101', '{\"a\":  1}'::json FROM t ORDER BY id",
    "functions in the select list": "SELECT id, generate_series(1, 3), unnest(a) FROM t ORDER BY id, 2",
}


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.replace(" ", "_"))
def test_values_made_by_the_query(session, other, made):
    session.execute(SETUP + MORE_TYPES)
    session.execute("CREATE TABLE t (id int, b text, a text[])")
    session.execute("""
        INSERT INTO t SELECT g, (SELECT string_agg(md5(n::text || g), '') FROM generate_series(1, 500) n),
            ARRAY['x', NULL, repeat('y', 5000)] FROM generate_series(1, 5) g
        UNION ALL SELECT 6, NULL, NULL UNION ALL SELECT 7, '', '{}'""")
    check_store_and_hits(session, other, MADE[made])


def test_rows_of_types_that_have_changed(session, other):
    """Rows that were stored before their type got or lost attributes have another shape than rows that were stored after
    that."""
    session.execute("CREATE TYPE shape AS (a int, b text, c float8)")
    session.execute("CREATE TABLE t (id int, v shape, list shape[]); CREATE TABLE child () INHERITS (t)")
    values = "ROW({0}, 'b', 0.1)::shape, ARRAY[ROW({0}, NULL, -0.0), NULL]::shape[]"
    queries = ["SELECT v, list, (v).a FROM t ORDER BY id", "SELECT t, id FROM t ORDER BY id", "SELECT * FROM t ORDER BY id"]

    def check():
        for query in queries:
            check_store_and_hits(session, other, query)

    session.execute(f"INSERT INTO t SELECT 1, {values.format(1)}")
    session.execute("ALTER TYPE shape ADD ATTRIBUTE d numeric, ADD ATTRIBUTE e pg_catalog.int4[]")
    session.execute("INSERT INTO t VALUES (2, (2, 'b', 2, 1.50, '{1}'), ARRAY[(2, 'b', NULL, 1.50, '{}')::shape])")
    check()
    session.execute("ALTER TYPE shape DROP ATTRIBUTE b")
    session.execute("INSERT INTO child VALUES (3, (3, 3, 1.500, NULL), ARRAY[[(3, 3, 1.500, NULL)::shape]])")
    check()
    session.execute("ALTER TABLE t ADD COLUMN late int[] DEFAULT '{7}', ADD COLUMN gone text; ALTER TABLE t DROP COLUMN gone")
    session.execute("INSERT INTO child VALUES (4, NULL, NULL, NULL)")
    check()
    assert len(executed(session, queries[1])[1]) == 4


# Over types of extensions.
DOMAINS = {"earth"}


@pytest.mark.parametrize("extension", EXTENSION_VALUES)
def test_types_of_extensions(session, other, extension):
    try:
        session.execute(f"SET client_min_messages = warning; CREATE EXTENSION {extension} CASCADE")
    except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported):
        pytest.skip("it is not installed")
    columns, alone = [], {"int"}
    for of, texts in EXTENSION_VALUES[extension].items():
        values = [literal(text, of) for text in texts]
        columns.append((of, values))
        if not of.endswith("]"):
            columns.append((of + "[]", array_expressions(of, values)))
            if of not in DOMAINS:
                alone.add(of)
    types = fill_table(session, "t", columns)
    for column, of in types.items():
        query = f"SELECT {column}, id FROM t ORDER BY id"
        for wanted in (TEXT, BINARY):
            expected = executed(other, query, wanted)
            for each in (session, other):
                check_same(expected, answer(each, query, wanted), [of, "int"])
            # A container whose elements are compared by a function of an extension is bypassed, even if nothing is compared.
            assert outcome(other) in [("HIT", None)] + [("BYPASS", "user_defined_function")] * (of not in alone), of


def test_no_columns(session, other):
    session.execute("CREATE TABLE t (); INSERT INTO t SELECT FROM generate_series(1, 1000)")
    for query in ("SELECT FROM t", "SELECT * FROM t", "SELECT t.* FROM t", "SELECT t FROM t"):
        expected = check_store_and_hits(session, other, query)
        assert expected[TEXT][2] == b"SELECT 1000"


def test_as_many_columns_as_there_can_be(session, other):
    """A table can have 1600 columns, a result 1664."""
    types = ["int", "bool", '"char"', "smallint", "text"]
    columns = ", ".join(f"c{n} {types[n % len(types)]}" for n in range(1600))
    values = ", ".join(["{0}", "{0} % 2 = 0", "'x'", "{0}", "'t'"] * 320)
    session.execute(f"CREATE TABLE t ({columns})")
    for row in (1, 2):
        session.execute(f"INSERT INTO t SELECT {values.format(row)}")
    session.execute("INSERT INTO t (c1599) VALUES ('last')")
    more = ", ".join(f"c0 + {n}" for n in range(64))
    expected = check_store_and_hits(session, other, f"SELECT *, {more} FROM t ORDER BY c0")
    assert len(expected[TEXT][0]) == 1664


def test_values_of_thirty_megabytes(session, other):
    for each in (session, other):
        each.execute("SET pg_arrow_cache.max_entry_size = '50MB'")
    session.execute("CREATE TABLE t (id int, v text, b bytea)")
    session.execute("INSERT INTO t VALUES (1, repeat('0123456789', 3000000), NULL), (2, 'short', '\\x00')")
    query = "SELECT id, v, b FROM t ORDER BY id"
    expected = executed(other, query, BINARY)
    assert len(expected[1][0][1]) == 30_000_000
    for each, status in ((session, "MISS"), (other, "HIT")):
        assert answer(each, query, BINARY) == expected
        assert outcome(each) == (status, None)
    session.execute("SELECT arrow_cache.flush()")
