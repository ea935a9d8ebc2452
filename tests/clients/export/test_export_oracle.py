"""Compares with adbc-driver-postgresql: where that driver is exact, both give the same values. Each place where it is
not exact is a test here, with what either gives."""

import decimal

import adbc_driver_postgresql.dbapi as adbc
import psycopg.conninfo
import pyarrow as pa
import pytest

from support.session import DSN
from support.exports import WAYS, by_fetch, read
from support.samples import VALUES, fill, slug

DAYS_TO_2000 = 10_957
MICROS_TO_2000 = DAYS_TO_2000 * 86_400_000_000


@pytest.fixture
def oracle(connect):
    """A function that gives a query's result as ADBC reads it. ADBC learns the types of a database when it connects, and the
    tests make their own, so it connects for each question."""
    where = psycopg.conninfo.conninfo_to_dict(DSN)
    uri = (f"postgresql://{where['user']}@/{where['dbname']}?host={where['host']}&port={where['port']}"
           f"&options=-csearch_path%3D{connect.schema}%20-cpg_arrow_cache.enabled%3Doff%20-ctimezone%3DUTC")

    def ask(query):
        with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetch_arrow_table()

    return ask


def raw(column):
    """Values as the numbers or bytes they are stored as; None for NULL."""
    column = column.combine_chunks()
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(column.type) or pa.types.is_time64(column.type):
        column = column.view(pa.int64())
    return column.to_pylist()


# Both give these the same Arrow type and the same values, whatever the values are.
SAME = ["bool", "int2", "int4", "int8", "text", "varchar(10)", "char(10)", "name", "label", "bytea", "time", "time(2)",
        "money", "positive", "text[]", "positive[]", "pair", "pair[]", "nested", "mood", "mood[]"]


@pytest.mark.parametrize("sql_type", SAME, ids=slug)
@pytest.mark.parametrize("way", WAYS)
def test_same_type_and_values(session, oracle, way, sql_type):
    fill(session, sql_type)
    query = "SELECT id, v FROM t ORDER BY id"
    theirs = oracle(query)
    for status in ("MISS", "HIT"):
        ours = read(WAYS[way](session, query))
        assert session.status() == status
        assert ours.schema.equals(theirs.schema)
        assert raw(ours.column("v")) == raw(theirs.column("v"))
        assert ours.column("v").null_count == 1


@pytest.mark.parametrize("sql_type", ["float4", "float8"])
def test_floats_to_the_bit(session, oracle, sql_type):
    fill(session, sql_type)
    query = "SELECT v FROM t ORDER BY id"
    theirs = oracle(query).column("v").combine_chunks()
    for _ in range(2):
        ours = read(by_fetch(session, query)).column("v").combine_chunks()
        assert ours.type == theirs.type
        assert [buffer and buffer.to_pybytes()[:len(VALUES[sql_type]) * ours.type.bit_width // 8]
                for buffer in ours.buffers()[1:]] == \
               [buffer and buffer.to_pybytes()[:len(VALUES[sql_type]) * ours.type.bit_width // 8]
                for buffer in theirs.buffers()[1:]]


@pytest.mark.parametrize("sql_type", ["uuid", "json", "jsonb"])
def test_canonical_extension_types(session, oracle, sql_type):
    """With options that ask for it, they are the values that ADBC sends by default; otherwise they are what is stored."""
    fill(session, sql_type)
    query = "SELECT v FROM t ORDER BY id"
    theirs = oracle(query)
    extended = read(by_fetch(session, query, {"extension_types": "canonical"}))
    plain = read(by_fetch(session, query))
    assert theirs.schema.field("v").type.extension_name == ("arrow.uuid" if sql_type == "uuid" else "arrow.json")
    assert extended.schema.field("v").type == theirs.schema.field("v").type
    assert plain.schema.field("v").type == extended.schema.field("v").type.storage_type
    assert raw(plain.column("v")) == raw(extended.column("v")) == raw(theirs.column("v"))


def test_month_day_nano(session, oracle):
    fill(session, "interval")
    query = "SELECT v FROM t ORDER BY id"
    theirs = oracle(query)
    ours = read(by_fetch(session, query, {"interval": "month_day_nano"}))
    assert ours.schema.field("v").type == theirs.schema.field("v").type == pa.month_day_nano_interval()
    assert ours.column("v").to_pylist() == theirs.column("v").to_pylist()


def one(session, oracle, expression, options=None):
    """The value of an expression as ADBC and as we give it."""
    session.execute(f"CREATE TABLE one AS SELECT {expression} AS v")
    query = "SELECT v FROM one"
    try:
        theirs = oracle(query)
        both = []
        for status in ("MISS", "HIT"):
            ours = read(by_fetch(session, query, options))
            assert session.status() == status
            both.append((ours.schema.field("v").type, raw(ours.column("v"))[0]))
        assert both[0] == both[1]
        return (theirs.schema.field("v").type, raw(theirs.column("v"))[0]), both[0]
    finally:
        session.execute("DROP TABLE one")


def wrapped(value, bits):
    return (value + 2 ** (bits - 1)) % 2 ** bits - 2 ** (bits - 1)


@pytest.mark.parametrize("text, stored", [("infinity", 2**31 - 1), ("-infinity", -(2**31))])
def test_infinite_dates(session, oracle, text, stored):
    """ADBC shifts the epoch and wraps around, so that each infinity is a day of the other end; here they are the ends."""
    theirs, ours = one(session, oracle, f"date '{text}'")
    assert theirs == (pa.date32(), wrapped(stored + DAYS_TO_2000, 32))
    assert ours == (pa.date32(), max(stored, 1 - 2**31))


@pytest.mark.parametrize("sql_type", ["timestamp", "timestamptz"])
@pytest.mark.parametrize("text, stored", [("infinity", 2**63 - 1), ("-infinity", -(2**63))])
def test_infinite_timestamps(session, oracle, sql_type, text, stored):
    """The same with microseconds: ADBC leaves the two infinities one microsecond apart."""
    theirs, ours = one(session, oracle, f"{sql_type} '{text}'")
    kind = pa.timestamp("us", tz="UTC" if sql_type == "timestamptz" else None)
    assert theirs == (kind, wrapped(stored + MICROS_TO_2000, 64))
    assert ours == (kind, max(stored, 1 - 2**63))


def test_timestamps_beyond_arrow(session, oracle):
    """ADBC wraps around; here such values are refused, or delivered as text if an option asks for it."""
    theirs, ours = one(session, oracle, "timestamp '294276-12-31'", {"on_unrepresentable": "text"})
    assert theirs[1] < 0
    assert ours == (pa.string(), "294276-12-31 00:00:00")


@pytest.mark.parametrize("sql_type", ["date", "timestamp", "timestamptz"])
def test_finite_times(session, oracle, sql_type):
    """Everything between the infinities is the same."""
    fill(session, sql_type)
    query = "SELECT v FROM t WHERE isfinite(v) ORDER BY id"
    ours, theirs = read(by_fetch(session, query)), oracle(query)
    assert ours.schema.equals(theirs.schema) and ours.num_rows == len(VALUES[sql_type]) - 2
    assert raw(ours.column("v")) == raw(theirs.column("v"))


def test_object_identifiers(session, oracle):
    """ADBC delivers them as signed numbers or as four bytes."""
    assert one(session, oracle, "4294967295::oid") == ((pa.int32(), -1), (pa.uint32(), 4294967295))
    oid, = session.rows("SELECT 'pg_class'::regclass::oid::bigint")[0]
    theirs, ours = one(session, oracle, "'pg_class'::regclass")
    assert theirs[1] == oid.to_bytes(4, "big")
    assert ours == (pa.uint32(), oid)
    theirs, ours = one(session, oracle, "'16/B374D848'::pg_lsn")
    assert theirs[1] == (0x16B374D848).to_bytes(8, "big")
    assert ours == (pa.uint64(), 0x16B374D848)


@pytest.mark.parametrize("text, spelled", [("NaN", "nan"), ("Infinity", "inf"), ("-Infinity", "-inf")])
def test_special_numerics(session, oracle, text, spelled):
    theirs, ours = one(session, oracle, f"numeric '{text}'")
    assert (theirs[0].extension_name, theirs[1]) == ("arrow.opaque", spelled)
    assert ours == (pa.string(), text)


def test_ordinary_numerics(session, oracle):
    """Every digit of the display scale, in both."""
    fill(session, "numeric")
    query = "SELECT v FROM t WHERE v NOT IN ('NaN', 'Infinity', '-Infinity') ORDER BY id"
    ours, theirs = read(by_fetch(session, query)), oracle(query)
    assert ours.schema.field("v").type == pa.string()
    assert raw(ours.column("v")) == raw(theirs.column("v"))
    assert len({decimal.Decimal(text) for text in raw(ours.column("v"))}) > 5


@pytest.mark.parametrize("text, theirs_is", [
    ("{{1,2},{3,4}}", [1, 2, 3, 4]),
    ("[0:2]={1,2,3}", [1, 2, 3]),
    ("[2:4]={1,2,3}", None),
])
def test_arrays_that_are_no_lists(session, oracle, text, theirs_is):
    """ADBC flattens several dimensions and drops or refuses lower bounds; here such arrays are refused, or delivered as
    text if an option asks for it."""
    session.execute(f"CREATE TABLE t AS SELECT '{text}'::int[] AS v")
    query = "SELECT v FROM t"
    if theirs_is is None:
        with pytest.raises(adbc.OperationalError, match="lower bound"):
            oracle(query)
    else:
        assert oracle(query).column("v").to_pylist() == [theirs_is]
    for _ in range(2):
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            by_fetch(session, query)
    assert read(by_fetch(session, query, {"on_unrepresentable": "text"})).to_pylist() == [{"v": text}]


@pytest.mark.parametrize("expression, text", [
    ("timetz '12:00:00+05:30:15'", "12:00:00+05:30:15"),
    ("int4range(1, 5)", "[1,5)"),
    ("B'101'", "101"),
    ("inet '192.168.0.1/24'", "192.168.0.1/24"),
    ("tsvector 'a:1A'", "'a':1A"),
    ("point '(1.5,-2)'", "(1.5,-2)"),
    ("'<a>1</a>'::xml", "<a>1</a>"),
    ("'(1,2)'::tid", "(1,2)"),
])
def test_opaque_bytes_or_text(session, oracle, expression, text):
    """For types without an Arrow form ADBC sends the bytes of the protocol; here they are text that people can read."""
    theirs, ours = one(session, oracle, expression)
    assert theirs[0].extension_name == "arrow.opaque" and isinstance(theirs[1], bytes)
    assert ours == (pa.string(), text)


def test_intervals_beyond_nanoseconds(session, oracle):
    """Neither delivers a number for them; the text is exact."""
    session.execute("CREATE TABLE t AS SELECT interval '2562048 hours' AS v")
    query = "SELECT v FROM t"
    with pytest.raises(adbc.OperationalError, match="overflow"):
        oracle(query)
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        by_fetch(session, query, {"interval": "month_day_nano"})
    assert read(by_fetch(session, query)).to_pylist() == [{"v": "2562048:00:00"}]


def test_single_byte_characters(session, oracle):
    """A byte that is no character is invalid text in ADBC; here it is written as PostgreSQL 16 and later write it."""
    session.execute("""CREATE TABLE t AS SELECT '\\377'::"char" AS v""")
    with pytest.raises(UnicodeDecodeError):
        oracle("SELECT v FROM t").column("v").to_pylist()
    assert read(by_fetch(session, "SELECT v FROM t")).to_pylist() == [{"v": "\\377"}]


def test_anonymous_records(session, oracle):
    session.execute("CREATE TABLE t AS SELECT 1 AS a, 'x, y' AS b")
    query = "SELECT ROW(a, b) AS v FROM t"
    with pytest.raises(adbc.OperationalError, match="nested record"):
        oracle(query)
    assert read(by_fetch(session, query)).to_pylist() == [{"v": '(1,"x, y")'}]


def test_types_without_a_binary_form(session, oracle):
    session.execute("CREATE TABLE t AS SELECT '=r/postgres'::aclitem AS v")
    with pytest.raises(adbc.ProgrammingError, match="no binary output function"):
        oracle("SELECT v FROM t")
    assert read(by_fetch(session, "SELECT v FROM t")).to_pylist() == [{"v": "=r/postgres"}]


def test_field_metadata(session, oracle):
    """The name of the type, and the modifier of a numeric, stand where ADBC writes them."""
    session.execute("CREATE TABLE t (i int, n numeric(12,2), b numeric, s text, a int[], d date)")
    ours, theirs = read(by_fetch(session, "SELECT * FROM t")).schema, oracle("SELECT * FROM t").schema
    for name in ours.names:
        assert ours.field(name).metadata[b"POSTGRESQL:type"] == theirs.field(name).metadata[b"POSTGRESQL:type"]
    assert ours.field("n").metadata[b"POSTGRESQL:typmod"] == theirs.field("n").metadata[b"POSTGRESQL:typmod"]
    assert b"POSTGRESQL:typmod" not in ours.field("b").metadata
