"""arrow_cache.query: pyarrow reads each type as the Arrow type that is documented, with the values that a driver
fetches."""

import datetime
import decimal
import json
import math
import re
import uuid

import pyarrow as pa
import pytest

from support.exports import PAIR, read_query
from support.samples import VALUES, fill, slug

MICROS = pa.timestamp("us")
MICROS_UTC = pa.timestamp("us", tz="UTC")

ARROW_TYPES = {
    "bool": pa.bool_(), "int2": pa.int16(), "int4": pa.int32(), "int8": pa.int64(),
    "float4": pa.float32(), "float8": pa.float64(),
    "numeric": pa.string(), "numeric(20,4)": pa.string(), "numeric(5,-2)": pa.string(),
    "text": pa.string(), "varchar(10)": pa.string(), "char(10)": pa.string(),
    "name": pa.string(), "label": pa.string(),
    "bytea": pa.binary(), "uuid": pa.binary(16), "date": pa.date32(), "time": pa.time64("us"), "time(2)": pa.time64("us"),
    "timestamp": MICROS, "timestamptz": MICROS_UTC, "json": pa.string(),
    "oid": pa.uint32(), "xid": pa.uint32(), "cid": pa.uint32(),
    "regclass": pa.uint32(), "regtype": pa.uint32(), "regproc": pa.uint32(),
    "xid8": pa.uint64(), "pg_lsn": pa.uint64(), "money": pa.int64(),
    "positive": pa.int32(), "positive[]": pa.list_(pa.int32()),
    "oidvector": pa.list_(pa.uint32()), "int2vector": pa.list_(pa.int16()),
    "int4[]": pa.list_(pa.int32()), "text[]": pa.list_(pa.string()), "numeric[]": pa.list_(pa.string()),
    "timestamptz[]": pa.list_(MICROS_UTC), "mood[]": pa.list_(pa.string()),
    "pair": PAIR, "pair[]": pa.list_(PAIR), "nested": pa.struct({"p": PAIR, "list": pa.list_(PAIR)}),
    # jsonb and all types without an Arrow form are delivered as text.
}

# Whole numbers that PostgreSQL shows in another way.
NUMBERS = {
    "money": lambda text: int(re.sub(r"[^-0-9]", "", text)),
    "pg_lsn": lambda text: int("{:0>8}{:0>8}".format(*text.split("/")), 16),
}

# Values that no Arrow array of the column's type can hold.
UNDELIVERABLE = {
    "timestamp": "v >= '294247-01-10 04:00:54.775807' AND isfinite(v)",
    "timestamptz": "v >= '294247-01-10 04:00:54.775807+00' AND isfinite(v)",
    **{sql_type: "array_ndims(v) > 1 OR array_lower(v, 1) <> 1" for sql_type in VALUES if sql_type.endswith("[]")},
}

# Arrow has no infinite dates and times: they are delivered as the largest number and its negative.
DAY_ENDS = {"infinity": 2**31 - 1, "-infinity": 1 - 2**31}
MICRO_ENDS = {"infinity": 2**63 - 1, "-infinity": 1 - 2**63}


def integers(column):
    """Dates and times as the numbers they are: Python's own cannot hold all of them."""
    return column.view(pa.int32() if column.type == pa.date32() else pa.int64()).to_pylist()


def micros(text):
    """A time that Python can hold as microseconds since 1970; None for others."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    epoch = datetime.datetime(1970, 1, 1, tzinfo=moment.tzinfo and datetime.timezone.utc)
    return (moment - epoch) // datetime.timedelta(microseconds=1)


def time_micros(text):
    hours, minutes, seconds = text.split(":")
    return int((int(hours) * 3600 + int(minutes) * 60 + decimal.Decimal(seconds)) * 1_000_000)


def same_floats(got, texts):
    """Equal to the bit, the sign of zero included."""
    return len(got) == len(texts) and all(
        math.isnan(g) if text == "NaN" else (g == float(text) and math.copysign(1, g) == math.copysign(1, float(text)))
        for g, text in zip(got, texts))


def plain(column):
    """An array's values as Python's own; moments as microseconds, because Python cannot hold all of them."""
    if pa.types.is_list(column.type) and pa.types.is_timestamp(column.type.value_type):
        column = column.cast(pa.list_(pa.int64()))
    return column.to_pylist()


def parts(session, sql_type):
    """The values of `t` taken apart by PostgreSQL itself."""
    if sql_type == "numeric[]":
        return [texts for texts, in session.rows("SELECT v::text[] FROM t WHERE v IS DISTINCT FROM NULL ORDER BY id")]
    if sql_type == "timestamptz[]":
        found = session.rows("SELECT v::text[] FROM t WHERE v IS DISTINCT FROM NULL ORDER BY id")
        return [[MICRO_ENDS.get(text) or micros(text) for text in texts] for texts, in found]
    return [json.loads(text) for text, in session.rows("SELECT to_json(v)::text FROM t WHERE v IS DISTINCT FROM NULL ORDER BY id")]


@pytest.mark.parametrize("sql_type", VALUES, ids=slug)
def test_every_type(session, sql_type):
    fill(session, sql_type)
    session.execute(f"DELETE FROM t WHERE {UNDELIVERABLE.get(sql_type, 'false')}")
    session.execute("SET timezone = 'UTC'")
    query = "SELECT id, v FROM t ORDER BY id"
    got = session.pgconn.exec_params(b"SELECT v FROM t ORDER BY id", None)
    texts = [got.get_value(row, 0) for row in range(got.ntuples)]
    texts = [text if text is None else text.decode() for text in texts]
    type_name = session.rows("""
        SELECT typname FROM pg_type WHERE oid = (
            SELECT atttypid FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'v')""")[0][0]

    miss, first = read_query(session, query)
    assert (session.status(), session.reason()) == ("MISS", None)
    hit, second = read_query(session, query)
    assert session.status() == "HIT"
    assert first == second

    field = miss.schema.field("v")
    assert field.type == ARROW_TYPES.get(sql_type, pa.string())
    assert field.nullable
    assert field.metadata[b"POSTGRESQL:type"].decode() == type_name
    assert miss.schema.field("id").type == pa.int32()
    column = hit.column("v").combine_chunks()
    assert hit.num_rows == len(texts) and column.null_count == 1 and not column[-1].is_valid
    present, texts = column[:-1], texts[:-1]

    if field.type == pa.string():
        assert present.to_pylist() == texts
    elif field.type in (pa.float32(), pa.float64()):
        shown = [float(text) for text in texts]
        if field.type == pa.float32():
            shown = pa.array(shown, pa.float32()).to_pylist()
        assert same_floats(present.to_pylist(), [str(value) if value == value else "NaN" for value in shown])
    elif field.type == pa.bool_():
        assert present.to_pylist() == [text == "t" for text in texts]
    elif pa.types.is_integer(field.type):
        if sql_type.startswith("reg"):
            texts = [oid for oid, in session.rows("SELECT v::oid FROM t WHERE v IS DISTINCT FROM NULL ORDER BY id")]
        assert present.to_pylist() == [NUMBERS.get(sql_type, int)(text) for text in texts]
    elif sql_type.endswith("vector"):
        assert present.to_pylist() == [[int(word) for word in text.split()] for text in texts]
    elif pa.types.is_nested(field.type):
        assert plain(present) == parts(session, sql_type)
    elif field.type == pa.binary():
        assert present.to_pylist() == [bytes.fromhex(text[2:]) for text in texts]
    elif field.type == pa.binary(16):
        assert present.to_pylist() == [uuid.UUID(text).bytes for text in texts]
    elif field.type == pa.time64("us"):
        assert integers(present) == [time_micros(text) for text in texts]
    elif field.type == pa.date32():
        for number, text in zip(integers(present), texts):
            expected = DAY_ENDS.get(text)
            if expected is None:
                expected = session.rows(f"SELECT date '{text}' - date '1970-01-01'")[0][0]
            assert number == expected
    else:
        for number, text in zip(integers(present), texts):
            expected = MICRO_ENDS.get(text, micros(text))
            if expected is None:  # BC, or beyond what Python can hold
                expected = int(session.rows(f"SELECT extract(epoch FROM {sql_type} '{text}') * 1000000")[0][0])
            assert number == expected


def test_python_values(session):
    """What pyarrow makes of ordinary values is what psycopg makes of them."""
    session.execute("""
        CREATE TABLE t AS SELECT g % 2 = 0 AS b, g::int2 AS i2, g AS i4, g * 10000000000 AS i8, g / 4.0::float4 AS f4,
            g / 3.0::float8 AS f8, 'row ' || g AS s, decode(md5(g::text), 'hex') AS y, date '2024-01-01' + g AS d,
            time '00:00' + g * interval '1 min 0.000001 s' AS h, timestamp '2024-01-01' + g * interval '1 hour' AS ts,
            timestamptz '2024-01-01 00:00+00' + g * interval '1 hour' AS tz
        FROM generate_series(1, 100) g""")
    session.execute("SET timezone = 'UTC'")
    query = "SELECT * FROM t ORDER BY i4"
    rows = session.uncached(query)
    for status in ("MISS", "HIT"):
        table, _ = read_query(session, query)
        assert session.status() == status
        assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_numeric_and_uuid_and_json(session):
    """These keep every digit and every character, as text or as bytes."""
    session.execute("""
        CREATE TABLE t AS SELECT g, (g / 7.0)::numeric(30,20) AS n, md5(g::text)::uuid AS u, json_build_object('g', g) AS j
        FROM generate_series(1, 50) g""")
    query = "SELECT n, u, j FROM t ORDER BY g"
    rows = session.uncached("SELECT n, u, j::text FROM t ORDER BY g")
    for _ in range(2):
        table, _ = read_query(session, query)
        got = zip(*(table.column(name).to_pylist() for name in "nuj"))
        assert [(decimal.Decimal(n), uuid.UUID(bytes=u), j) for n, u, j in got] == rows
    field = table.schema.field("n")
    assert field.metadata == {b"POSTGRESQL:type": b"numeric", b"POSTGRESQL:typmod": str((30 << 16) + 20 + 4).encode()}


SESSIONS = [
    "-c datestyle=ISO -c timezone=UTC",
    "-c datestyle=German -c timezone=Asia/Tokyo -c intervalstyle=iso_8601 "
    "-c extra_float_digits=-3 -c bytea_output=escape",
    "-c datestyle=SQL,DMY -c timezone=America/New_York -c intervalstyle=sql_standard",
]


@pytest.mark.parametrize("sql_type", [
    "interval", "timetz", "tstzrange", "daterange", "timestamptz[]", "floatrange", "point", "jsonb", "nested",
    "timestamptz", "date", "float8", "bytea",
])
def test_the_same_bytes_for_every_session(connect, sql_type):
    """Text that is made for the delivery does not depend on the settings of the session, on a miss and on a hit."""
    fill(connect("-c timezone=UTC"), sql_type)
    streams = []
    for options in SESSIONS:
        session = connect(options)
        session.execute("SELECT arrow_cache.flush()")
        for status in ("MISS", "HIT"):
            streams.append(read_query(session, "SELECT id, v FROM t ORDER BY id")[1])
            assert session.status() == status
        for setting in options.replace("-c ", "").split():
            name, value = setting.split("=")
            shown = session.execute(f"SHOW {name}").fetchone()[0]
            assert value.replace(",", "").lower() in shown.replace(", ", "").lower(), "a setting of the session has changed"
    assert len(set(streams)) == 1


def test_text_made_by_the_query_follows_the_session(connect):
    """A cast in the query is part of the query."""
    connect().execute("CREATE TABLE t AS SELECT timestamptz '2024-06-01 20:00+00' AS v")
    seen = set()
    for options in SESSIONS:
        session = connect(options)
        expected = session.uncached("SELECT v::text FROM t")[0][0]
        for status in ("MISS", "HIT"):
            assert read_query(session, "SELECT v::text AS v FROM t")[0].column("v").to_pylist() == [expected]
            assert session.status() == status
        seen.add(expected)
    assert len(seen) == len(SESSIONS)
