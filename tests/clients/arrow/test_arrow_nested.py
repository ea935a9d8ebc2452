"""arrow_cache.query: arrays become lists and rows become structs, at any depth. Arrays that are no lists are refused."""

import datetime

import psycopg
import pyarrow as pa
import pytest

from support.samples import SETUP
from support.exports import PAIR, read_query

INTS, TEXTS = pa.list_(pa.int32()), pa.list_(pa.string())

TABLES = """
CREATE DOMAIN ints AS int[];
CREATE DOMAIN amount AS numeric(8,3);
CREATE DOMAIN small_amount AS amount CHECK (VALUE < 10);
CREATE DOMAIN checked_pair AS pair CHECK ((VALUE).n > 0);
CREATE DOMAIN feeling AS mood;
CREATE TYPE nothing AS ();
CREATE TYPE numbered AS (n int, a int[], s smallint, f float8[], t text[]);
CREATE TYPE wide AS (b bool, c "char", n name, u uuid, d date, o oid, l pg_lsn, y bytea, i interval, x numeric(5,1)[], m mood[]);
CREATE TABLE one AS SELECT 1 AS one;
CREATE TABLE changed (a int, gone text, b int);
INSERT INTO changed VALUES (1, 'x', 2);
ALTER TABLE changed DROP gone;
ALTER TABLE changed ADD later mood DEFAULT 'ok';
INSERT INTO changed VALUES (3, NULL, NULL);
"""

WIDE = pa.struct({
    "b": pa.bool_(), "c": pa.string(), "n": pa.string(), "u": pa.binary(16), "d": pa.date32(), "o": pa.uint32(),
    "l": pa.uint64(), "y": pa.binary(), "i": pa.string(), "x": TEXTS, "m": TEXTS})

# An array too long for the short form of a value.
NUMBERS = "{" + ",".join(str(n) for n in range(1, 101)) + "}"

# Expression, Arrow type, value.
FORMS = {
    "domain over an array": ("ARRAY[1, NULL]::ints", INTS, [1, None]),
    "domain over a numeric": ("1.5::amount", pa.string(), "1.500"),
    "domain over a domain": ("1.5::small_amount", pa.string(), "1.500"),
    "array of a domain over a domain": ("ARRAY[1.5, NULL]::small_amount[]", TEXTS, ["1.500", None]),
    "domain over a row": ("ROW(1, 'a')::pair::checked_pair", PAIR, {"n": 1, "t": "a"}),
    "domain over an enum": ("'sad'::feeling", pa.string(), "sad"),
    "array of a domain over an enum": ("ARRAY['sad', 'ok', 'sad']::feeling[]", TEXTS, ["sad", "ok", "sad"]),
    "no row": ("NULL::pair", PAIR, None),
    "row of nothing": ("ROW(NULL, NULL)::pair", PAIR, {"n": None, "t": None}),
    "row without attributes": ("ROW()::nothing", pa.struct([]), {}),
    "row of arrays of several alignments": (
        f"ROW(1, '{NUMBERS}', 2, '{NUMBERS}', '{NUMBERS}')::numbered",
        pa.struct({"n": pa.int32(), "a": INTS, "s": pa.int16(), "f": pa.list_(pa.float64()), "t": TEXTS}),
        {"n": 1, "a": list(range(1, 101)), "s": 2, "f": list(range(1, 101)), "t": [str(n) for n in range(1, 101)]}),
    "record": ("ROW(1, 'a b', NULL)", pa.string(), '(1,"a b",)'),
    "array of records": ("ARRAY[ROW(1, 'a b'), NULL]", TEXTS, ['(1,"a b")', None]),
    "void": ("pg_sleep(0)", pa.string(), ""),
    "array of chars": ("""ARRAY['a', '', E'\\\\351', NULL]::"char"[]""", TEXTS, ["a", "", "\\351", None]),
    "array of names": ("ARRAY['a', repeat('n', 63)]::name[]", TEXTS, ["a", "n" * 63]),
    "array of bools": ("ARRAY[true, NULL, false]", pa.list_(pa.bool_()), [True, None, False]),
    "array of nothing": ("ARRAY[NULL, NULL]::int[]", INTS, [None, None]),
    "empty array": ("'{}'::int[]", INTS, []),
    "no array": ("NULL::int[]", INTS, None),
    "array of other text": ("ARRAY[int4range(1, 5), NULL]", TEXTS, ["[1,5)", None]),
    "array of intervals": ("ARRAY[interval '1 mon -2 days 03:00']", TEXTS, ["1 mon -2 days +03:00:00"]),
    "array of padded text": ("ARRAY['ab']::char(4)[]", TEXTS, ["ab  "]),
    "row of everything": (
        """ROW(true, E'\\\\351', 'n', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '1970-01-02', 4294967295, '1/2', '\\x00ff', '1 day',
            '{1.5,NULL,NaN}', '{sad,NULL}')::wide""", WIDE,
        {"b": True, "c": "\\351", "n": "n", "u": bytes.fromhex("a0eebc999c0b4ef8bb6d6bb9bd380a11"),
         "d": datetime.date(1970, 1, 2), "o": 2**32 - 1, "l": 2**32 + 2, "y": b"\x00\xff", "i": "1 day",
         "x": ["1.5", None, "NaN"], "m": ["sad", None]}),
}


@pytest.fixture
def tables(session):
    session.execute(SETUP + TABLES)
    return session


@pytest.mark.parametrize("expression, arrow_type, value", FORMS.values(), ids=FORMS)
def test_forms(tables, expression, arrow_type, value):
    """Each value stands in a row of its own and between another value and NULL; it is read from the column as built and
    as stored."""
    query = f"SELECT {expression} AS v FROM one"
    several = f"SELECT CASE WHEN n <> 2 THEN {expression} END AS v FROM generate_series(1, 3) n, one ORDER BY n"
    for _ in range(2):
        table, _ = read_query(tables, query)
        assert table.schema.field("v").type == arrow_type
        assert table.column("v").to_pylist() == [value]
        if not expression.startswith("pg_sleep"):
            table, _ = read_query(tables, several)
            assert table.schema.field("v").type == arrow_type
            assert table.column("v").to_pylist() == [value, None, value]


def test_dropped_and_added_attributes(tables):
    """A struct has the attributes that the row type has now; a row from before an attribute was added has its default."""
    for _ in range(2):
        table, _ = read_query(tables, "SELECT changed AS v FROM changed ORDER BY a")
        assert table.column("v").to_pylist() == [{"a": 1, "b": 2, "later": "ok"}, {"a": 3, "b": None, "later": None}]
        table, _ = read_query(tables, "SELECT array_agg(changed ORDER BY a) AS v FROM changed")
        assert table.column("v").to_pylist() == [[{"a": 1, "b": 2, "later": "ok"}, {"a": 3, "b": None, "later": None}]]


def test_a_row_type_that_changes(tables, other):
    """The next answer has a new attribute, also in old rows."""
    query = "SELECT changed AS v FROM changed ORDER BY a"
    read_query(tables, query)
    other.execute("ALTER TABLE changed ADD more text DEFAULT 'm'; ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'")
    table, _ = read_query(tables, query)
    assert table.column("v").to_pylist()[0] == {"a": 1, "b": 2, "later": "fine", "more": "m"}


def test_large_parts(tables):
    """Arrays and rows that PostgreSQL compresses or keeps out of line, over many batches."""
    tables.execute("""
        CREATE TABLE large (n int, a text[], p pair[], q pair);
        ALTER TABLE large ALTER a SET STORAGE EXTERNAL;
        INSERT INTO large SELECT n, array_agg(repeat(i::text, n % 50) ORDER BY i), array_agg(ROW(i, repeat('x', n % 40))::pair ORDER BY i),
            ROW(n, repeat('long ', n * 10))::pair
        FROM generate_series(1, 300) n, generate_series(1, 200) i GROUP BY n""")
    expected = [{"n": n, "a": [str(i) * (n % 50) for i in range(1, 201)],
                 "p": [{"n": i, "t": "x" * (n % 40)} for i in range(1, 201)],
                 "q": {"n": n, "t": "long " * (n * 10)}} for n in range(1, 301)]
    for status in ("MISS", "HIT"):
        table, _ = read_query(tables, "SELECT n, a, p, q FROM large ORDER BY n")
        assert tables.status() == status
        assert table.to_pylist() == expected
    assert len(table.column("a").chunks) > 1


def test_fields_inside(tables):
    """Fields inside lists and structs are nullable and carry their PostgreSQL types."""
    table, _ = read_query(tables, "SELECT ARRAY[ROW(1, 'a')::pair] AS v, ARRAY[1.5]::numeric(4,1)[] AS n FROM one")
    inner = table.schema.field("v").type.value_field
    assert (inner.name, inner.nullable, inner.metadata) == ("item", True, {b"POSTGRESQL:type": b"pair"})
    assert [(field.name, field.nullable, field.metadata) for field in inner.type] == [
        ("n", True, {b"POSTGRESQL:type": b"int4"}), ("t", True, {b"POSTGRESQL:type": b"text"})]
    inner = table.schema.field("n").type.value_field
    assert inner.metadata == {b"POSTGRESQL:type": b"numeric", b"POSTGRESQL:typmod": str((4 << 16) + 1 + 4).encode()}


OUT_OF_RANGE, UNSUPPORTED = psycopg.errors.NumericValueOutOfRange, psycopg.errors.FeatureNotSupported


@pytest.mark.parametrize("expression, error, shown", [
    ("'[0:1]={1,2}'::int[]", UNSUPPORTED, "[0:1]"),
    ("'[2:2]={1}'::int[]", UNSUPPORTED, "[2:2]"),
    ("'{{1,2},{3,4}}'::int[]", UNSUPPORTED, "[1:2][1:2]"),
    ("'[-1:0][5:5]={{1},{2}}'::int[]", UNSUPPORTED, "[-1:0][5:5]"),
    ("'[0:0]={1}'::ints", UNSUPPORTED, "[0:0]"),
    ("ROW(ROW(1, 'a'), '[0:0]={NULL}')::nested", UNSUPPORTED, "[0:0]"),
    ("ARRAY[timestamp '294247-01-10 04:00:54.775807']", OUT_OF_RANGE, "294247-01-10 04:00:54.775807"),
    ("ARRAY[timestamptz '294276-12-31 23:59:59.999999+00']", OUT_OF_RANGE, "294276-12-31 23:59:59.999999+00"),
])
def test_what_is_no_list(tables, expression, error, shown):
    """An error that names column, row and what helps, on a miss and on a hit; rows of the same query are served."""
    tables.execute("SET timezone = 'Asia/Tokyo'")
    query = f'SELECT n, CASE WHEN n = 15000 THEN {expression} END AS "the column" FROM generate_series(1, 20000) n, one ORDER BY n'
    for _ in range(2):
        with pytest.raises(error) as raised:
            read_query(tables, query)
        for part in ('"the column"', "row 15000,", shown):
            assert part in raised.value.diag.message_primary
        assert '"on_unrepresentable"' in raised.value.diag.message_hint
        assert tables.execute("SHOW timezone").fetchone() == ("Asia/Tokyo",)
    assert tables.execute(query).rowcount == 20000


@pytest.mark.parametrize("expression", ["timestamp '294247-01-10 04:00:54.775806'", "timestamptz '-infinity'"])
def test_the_last_moments_in_lists(tables, expression):
    table, _ = read_query(tables, f"SELECT ARRAY[{expression}] AS v FROM one")
    value, = table.column("v").combine_chunks().flatten().view(pa.int64()).to_pylist()
    assert abs(value) == 2**63 - (1 if "infinity" in expression else 2)


def test_row_types_that_hold_each_other_many_times(session):
    """A row type with more than some thousands of parts is delivered as text, and quickly; the other columns do not
    change."""
    session.execute("CREATE TYPE c0 AS (a int)")
    for level in range(1, 9):
        parts = ", ".join(f"a{number} c{level - 1}" for number in range(5))
        session.execute(f"CREATE TYPE c{level} AS ({parts})")
    session.execute("SET statement_timeout = '20s'")
    got, _ = read_query(session, "SELECT NULL::c8 AS wide, NULL::c2 AS narrow, ROW(7)::c0 AS one")
    assert [str(field.type)[:6] for field in got.schema] == ["string", "struct", "struct"]
    assert got.column("one").to_pylist() == [{"a": 7}]
