"""Each option of fetch, messages and COPY does the same in all three, on a miss and on a hit."""

import psycopg
import pyarrow as pa
import pytest

from support.exports import WAYS, WITH_OPTIONS, batches, by_fetch, chunks, copy_chunks, entries, read, rows_of

QUERY = "SELECT * FROM t ORDER BY a"
ROWS = 10_000

ways = pytest.mark.parametrize("way", WITH_OPTIONS)


@pytest.fixture
def table(session):
    """Rows of about 300 bytes, so that a stored result has several batches."""
    session.execute(f"""
        CREATE TABLE t AS SELECT g AS a, repeat('row ' || g, 30) AS b, g / 8.0::float8 AS "C d", interval '1 s' * g AS "e,f"
        FROM generate_series(1, {ROWS}) g""")
    return session


def both(session, deliver, query, options):
    """The table on a miss and on a hit, which are asserted to be the same."""
    session.execute("SELECT arrow_cache.flush()")
    tables = []
    for status in ("MISS", "HIT"):
        tables.append(read(deliver(session, query, options)))
        assert (session.status(), session.reason()) == (status, None)
    assert tables[0].equals(tables[1]) and tables[0].schema.equals(tables[1].schema, check_metadata=True)
    return tables[0]


# columns

@ways
@pytest.mark.parametrize("wanted", [["a"], ["b", "a"], ["e,f", "C d", "b", "a"], ["C d"]], ids=len)
def test_columns(table, way, wanted):
    """The columns that are named, in the order in which they are named, from the same entry."""
    whole = read(by_fetch(table, QUERY))
    got = both(table, WITH_OPTIONS[way], QUERY, {"columns": wanted})
    assert got.equals(whole.select(wanted))
    assert got.schema.equals(whole.select(wanted).schema, check_metadata=True)
    assert entries(table) == 1
    assert rows_of(read(by_fetch(table, QUERY))) == rows_of(whole)
    assert table.status() == "HIT", "the entry holds all columns"


@ways
def test_a_text_is_the_name_of_one_column(table, way):
    table.execute('CREATE TABLE odd (a int, "A" int, "x""y" int, "ä, b" int)')
    table.execute("INSERT INTO odd VALUES (1, 2, 3, 4)")
    for name in ("A", "a", 'x"y', "ä, b"):
        for written in (name, [name]):
            assert read(WITH_OPTIONS[way](table, "SELECT * FROM odd", {"columns": written})).column_names == [name]


def test_names_in_a_copy_list_are_identifiers(table):
    """Names are folded to lower case as in SQL, unless they are quoted."""
    table.execute('CREATE TABLE odd (a int, "A" int); INSERT INTO odd VALUES (1, 2)')
    for written, names in [("A", ["a"]), ('"A", a', ["A", "a"]), ("a, \"A\"", ["a", "A"])]:
        with table.cursor().copy(f"COPY odd TO STDOUT (FORMAT arrow, COLUMNS ({written}))") as copy:
            assert read(b"".join(copy)).column_names == names


@ways
def test_a_few_columns_are_a_few_bytes(table, way):
    """On a hit, columns that were not requested are not sent."""
    deliver = WITH_OPTIONS[way]
    whole = len(deliver(table, QUERY))
    assert len(deliver(table, QUERY, {"columns": ["a"]})) < whole / 20
    assert table.status() == "HIT"


# limit

@ways
@pytest.mark.parametrize("limit", [0, 1, 1234, ROWS - 1])
def test_limit(table, way, limit):
    """Exactly that number of rows. A miss reads no more, and so has nothing to store; a hit takes them from the whole
    result."""
    deliver = WITH_OPTIONS[way]
    cut = read(deliver(table, QUERY, {"limit": limit}))
    assert (table.status(), table.reason()) == ("MISS", "incomplete_read")
    assert entries(table) == 0
    whole = read(deliver(table, QUERY))
    assert table.status() == "MISS"
    hit = read(deliver(table, QUERY, {"limit": limit}))
    assert table.status() == "HIT"
    assert cut.num_rows == hit.num_rows == limit
    assert cut.equals(whole.slice(0, limit)) and hit.equals(cut)
    assert cut.schema.equals(whole.schema, check_metadata=True)
    assert read(deliver(table, QUERY)).equals(whole)


@ways
@pytest.mark.parametrize("limit", [ROWS + 1, 10**12])
def test_limit_beyond_the_end(table, way, limit):
    """All rows. A limit that is larger than the result reads it to its end."""
    assert both(table, WITH_OPTIONS[way], QUERY, {"limit": limit}).num_rows == ROWS


@ways
def test_limit_in_the_middle_of_a_stored_batch(table, way):
    """Wherever the last row stands, the rows before it are complete and there are none after it."""
    deliver = WITH_OPTIONS[way]
    whole = read(deliver(table, QUERY))
    sizes = [batch.num_rows for batch in batches(deliver(table, QUERY))]
    assert len(sizes) > 2
    for limit in (sizes[0] - 1, sizes[0], sizes[0] + 1, sizes[0] + sizes[1] // 2):
        got = deliver(table, QUERY, {"limit": limit})
        assert table.status() == "HIT"
        assert read(got).equals(whole.slice(0, limit))


@ways
@pytest.mark.parametrize("options", [{"limit": limit} for limit in (1, 3, 7, 8, 9, 12, 15, 17)] + [{"batch_rows": n} for n in (1, 3, 5, 8, 11)])
def test_bits_of_cut_batches(session, way, options):
    """Booleans, and which rows are NULL, are right wherever a batch is cut."""
    session.execute("CREATE TABLE t AS SELECT g AS a, g % 6 <> 0 AS b, CASE WHEN g % 5 <> 0 THEN g END AS n FROM generate_series(1, 20) g")
    query = "SELECT a, b, n FROM t ORDER BY a"
    deliver = WITH_OPTIONS[way]
    session.execute("SET pg_arrow_cache.enabled = off")
    executed = read(deliver(session, query, options))
    alone = read(deliver(session, f"SELECT * FROM ({query} LIMIT {options.get('limit', 20)}) s", {k: v for k, v in options.items() if k != "limit"}))
    session.execute("SET pg_arrow_cache.enabled = on")
    deliver(session, query)
    assert read(deliver(session, query, options)) == executed == alone
    assert session.status() == "HIT"


@ways
def test_limit_does_not_run_the_rest(table, way):
    """The query would fail in a later row."""
    table.execute("CREATE TABLE few AS SELECT g AS n FROM generate_series(1, 100) g")
    query = "SELECT 100 / (50 - n) AS q FROM few"
    assert read(WITH_OPTIONS[way](table, query, {"limit": 49})).num_rows == 49
    with pytest.raises(psycopg.errors.DivisionByZero):
        WITH_OPTIONS[way](table, query, {"limit": 50})
    assert entries(table) == 0


# batch_rows and chunk_bytes

@ways
@pytest.mark.parametrize("most", [1, 7, 1000, ROWS * 2])
def test_batch_rows(table, way, most):
    whole = read(by_fetch(table, QUERY))
    table.execute("SELECT arrow_cache.flush()")
    limit = min(ROWS, most * 50)
    for status in ("MISS", "HIT"):
        stream = WITH_OPTIONS[way](table, QUERY, {"batch_rows": most})
        assert table.status() == status
        assert max(batch.num_rows for batch in batches(stream)) <= most
        assert read(stream).equals(whole)
    with_limit = WITH_OPTIONS[way](table, QUERY, {"batch_rows": most, "limit": limit})
    assert max(batch.num_rows for batch in batches(with_limit)) <= most
    assert read(with_limit).equals(whole.slice(0, limit))


@pytest.mark.parametrize("pieces_of", [chunks, copy_chunks], ids=["fetch", "copy"])
@pytest.mark.parametrize("most", [1024, 10_000, 262_144, 64 * 1024 * 1024])
def test_chunk_bytes(table, pieces_of, most):
    """No piece is larger than chunk_bytes and few are much smaller. Joined, they do not depend on chunk_bytes."""
    whole = by_fetch(table, QUERY)
    table.execute("SELECT arrow_cache.flush()")
    for status in ("MISS", "HIT"):
        pieces = pieces_of(table, QUERY, {"chunk_bytes": most})
        assert table.status() == status
        assert b"".join(pieces) == whole
        assert all(0 < len(piece) <= most for piece in pieces)
        # Pieces may end with their message, so not each is full.
        assert len(pieces) <= 2 * len(whole) // most + 2 * len(batches(whole)) + 4


@pytest.mark.parametrize("pieces_of", [chunks, copy_chunks], ids=["fetch", "copy"])
def test_chunks_by_default(table, pieces_of):
    for _ in range(2):
        sizes = [len(piece) for piece in pieces_of(table, QUERY)]
        assert len(sizes) > 5 and max(sizes) <= 262_144


@pytest.mark.parametrize("pieces_of", [chunks, copy_chunks], ids=["fetch", "copy"])
def test_one_value_larger_than_a_chunk(table, pieces_of):
    table.execute("CREATE TABLE wide AS SELECT repeat(md5('x'), 100000) AS v")
    for _ in range(2):
        pieces = pieces_of(table, "SELECT v FROM wide", {"chunk_bytes": 65536})
        assert max(map(len, pieces)) <= 65536
        assert read(b"".join(pieces)).column("v").to_pylist() == [table.uncached("SELECT v FROM wide")[0][0]]


# compression

@ways
@pytest.mark.parametrize("method", ["none", "lz4", "zstd", "ZSTD"])
def test_compression(table, way, method):
    whole = read(by_fetch(table, QUERY))
    got = both(table, WITH_OPTIONS[way], QUERY, {"compression": method})
    assert got.equals(whole)
    size, plain = (len(WITH_OPTIONS[way](table, QUERY, {"compression": m})) for m in (method, "none"))
    assert size == plain if method == "none" else size < plain / 2


@ways
def test_compression_with_other_options(table, way):
    whole = read(by_fetch(table, QUERY))
    options = {"compression": "lz4", "columns": ["e,f", "a"], "limit": 4321, "batch_rows": 100}
    stream = WITH_OPTIONS[way](table, QUERY, options)
    assert table.status() == "HIT"
    assert read(stream).equals(whole.select(["e,f", "a"]).slice(0, 4321))
    assert max(batch.num_rows for batch in batches(stream)) <= 100


# numeric

@ways
def test_numeric_as_decimal(session, way):
    session.execute("""
        CREATE TABLE n AS SELECT g AS a, (g * 1.25)::numeric(12,2) AS p, (g * 100)::numeric(5,-2) AS s, (g / 100000.0)::numeric(2,5) AS t,
            g * 0.125 AS u, NULLIF(g, 5)::numeric(38,0) AS l FROM generate_series(1, 9) g""")
    got = both(session, WITH_OPTIONS[way], "SELECT p, s, t, u, l FROM n ORDER BY a", {"numeric": "decimal128"})
    assert got.schema.types == [pa.decimal128(12, 2), pa.decimal128(7, 0), pa.decimal128(5, 5), pa.decimal128(38, 9),
                                pa.decimal128(38, 0)]
    rows = session.uncached("SELECT p, s, t, u, l FROM n ORDER BY a")
    assert rows_of(got) == rows
    assert got.schema.field("p").metadata[b"POSTGRESQL:typmod"] == str((12 << 16) + 2 + 4).encode()


@ways
def test_numeric_as_float(session, way):
    values = ["0", "1.5", "-0.1", "1e300", "123456.789", "NaN", "Infinity", "-Infinity"]
    session.execute("CREATE TABLE n (a serial, v numeric)")
    for value in values:
        session.execute("INSERT INTO n (v) VALUES (%s::numeric)", [value])
    for status in ("MISS", "HIT"):
        got = read(WITH_OPTIONS[way](session, "SELECT v FROM n ORDER BY a", {"numeric": "float64"}))
        assert session.status() == status
        assert got.schema.types == [pa.float64()]
        assert [str(value) for value in got.column("v").to_pylist()] == [str(float(value)) for value in values]


@ways
def test_rounded_numerics(session, way):
    """Averages and ratios, which no decimal and no float holds exactly."""
    session.execute("CREATE TABLE n AS SELECT g AS a, NULLIF(g, 4) / 7.0 AS v, ARRAY[g / 3.0, NULL, -0.005] AS l FROM generate_series(-5, 5) g")
    query = "SELECT v, l, (SELECT avg(v) FROM n) AS mean FROM n ORDER BY a"
    rows = session.uncached("SELECT v::numeric(12,2), ARRAY(SELECT x::numeric(12,2) FROM unnest(l) x), (SELECT avg(v) FROM n)::numeric(12,2) FROM n ORDER BY a")
    got = both(session, WITH_OPTIONS[way], query, {"numeric": "decimal128(12,2)"})
    assert got.schema.types == [pa.decimal128(12, 2), pa.list_(pa.decimal128(12, 2)), pa.decimal128(12, 2)]
    assert rows_of(got) == rows
    rows = session.uncached("SELECT v::float8, l::float8[], (SELECT avg(v) FROM n)::float8 FROM n ORDER BY a")
    assert rows_of(both(session, WITH_OPTIONS[way], query, {"numeric": "float64_nearest"})) == rows
    for option in ("decimal128", "float64"):
        with pytest.raises(psycopg.errors.NumericValueOutOfRange) as raised:
            WITH_OPTIONS[way](session, query, {"numeric": option})
        assert "float64_nearest" in raised.value.diag.message_hint


@ways
@pytest.mark.parametrize("option, value", [("decimal128(5,2)", "999.995"), ("decimal128(5,2)", "NaN"), ("float64_nearest", "1e309")])
def test_numbers_that_cannot_be_rounded(session, way, option, value):
    session.execute("CREATE TABLE n (v numeric)")
    session.execute("INSERT INTO n VALUES (%s)", [value])
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        WITH_OPTIONS[way](session, "SELECT v FROM n", {"numeric": option})


SPECIAL_TIMES = """SELECT d, ts, tz, t, l FROM (VALUES
    (1, date '2026-01-01', timestamp '2026-01-01', timestamptz '2026-01-01 00:00+00', time '23:59', ARRAY[date '2026-01-01', NULL]),
    (2, 'infinity', '-infinity', 'infinity', '24:00', ARRAY[date 'infinity', '-infinity', '2026-01-02']),
    (3, NULL, NULL, NULL, NULL, NULL), (4, '-infinity', 'infinity', '-infinity', '00:00', '{}')) s (a, d, ts, tz, t, l), one ORDER BY a"""


@ways
def test_special_times_as_null(session, way):
    """Readers of Arrow refuse them, or take them for moments far away."""
    session.execute("CREATE TABLE one AS SELECT 1 AS o")
    got = both(session, WITH_OPTIONS[way], SPECIAL_TIMES, {"special_times": "null"})
    got.validate(full=True)
    rows = session.uncached(f"""SELECT CASE WHEN isfinite(d) THEN d END, CASE WHEN isfinite(ts) THEN ts END, CASE WHEN isfinite(tz) THEN tz END,
        NULLIF(t, '24:00'), CASE WHEN l IS NOT NULL THEN ARRAY(SELECT CASE WHEN isfinite(x) THEN x END FROM unnest(l) x) END
        FROM ({SPECIAL_TIMES}) s""")
    assert rows_of(got) == rows
    assert got.schema.types == read(WITH_OPTIONS[way](session, SPECIAL_TIMES, {})).schema.types


@ways
@pytest.mark.parametrize("column, value", [("d", "infinity"), ("ts", "-infinity"), ("tz", "infinity"), ("t", "24:00:00"), ("l", "infinity")])
def test_special_times_as_errors(session, way, column, value):
    session.execute("CREATE TABLE one AS SELECT 1 AS o")
    for _ in range(2):
        with pytest.raises(psycopg.errors.NumericValueOutOfRange) as raised:
            WITH_OPTIONS[way](session, SPECIAL_TIMES, {"columns": [column], "special_times": "error"})
        told = raised.value.diag
        assert f'"{column}", row 2,' in told.message_primary and value in told.message_primary and "special_times" in told.message_hint


@ways
def test_numeric_as_text(session, way):
    session.execute("CREATE TABLE n AS SELECT 1.10::numeric(5,2) AS v")
    for options in ({}, {"numeric": "text"}, {"numeric": "TEXT"}):
        got = read(WITH_OPTIONS[way](session, "SELECT v FROM n", options))
        assert (got.schema.types, rows_of(got)) == ([pa.string()], [("1.10",)])


# interval, extension_types

@ways
def test_interval(session, way):
    session.execute("CREATE TABLE i AS SELECT interval '1 year -2 days 00:00:03.000004' AS v")
    query = "SELECT v FROM i"
    exact = both(session, WITH_OPTIONS[way], query, {"interval": "month_day_nano"})
    assert exact.schema.types == [pa.month_day_nano_interval()]
    assert [tuple(value) for value in exact.column("v").to_pylist()] == [(12, -2, 3_000_004_000)]
    for options in ({}, {"interval": "text"}):
        text = both(session, WITH_OPTIONS[way], query, options)
        assert (text.schema.types, rows_of(text)) == ([pa.string()], [("1 year -2 days +00:00:03.000004",)])


@ways
def test_extension_types(session, way):
    session.execute("""CREATE TABLE x AS SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u, '{"a": 1}'::json AS j, '[2]'::jsonb AS b,
        ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid] AS l""")
    plain = both(session, WITH_OPTIONS[way], "SELECT u, j, b FROM x", {"extension_types": "none"})
    assert plain.schema.types == [pa.binary(16), pa.string(), pa.string()]
    got = both(session, WITH_OPTIONS[way], "SELECT u, j, b FROM x", {"extension_types": "canonical"})
    assert [kind.extension_name for kind in got.schema.types] == ["arrow.uuid", "arrow.json", "arrow.json"]
    assert [column.combine_chunks().storage.to_pylist() for column in got.columns] == [
        column.to_pylist() for column in plain.columns]
    assert all(field.metadata[b"POSTGRESQL:type"] == name for field, name in zip(got.schema, (b"uuid", b"json", b"jsonb")))


# on_unrepresentable

UNREPRESENTABLE = [
    ("arrays", "'{{1,2},{3,4}}'::int[]", "{{1,2},{3,4}}", {}, psycopg.errors.FeatureNotSupported),
    ("lower_bounds", "'[0:1]={1,2}'::int[]", "[0:1]={1,2}", {}, psycopg.errors.FeatureNotSupported),
    ("timestamp", "timestamp '294276-12-31'", "294276-12-31 00:00:00", {}, psycopg.errors.NumericValueOutOfRange),
    ("timestamptz", "timestamptz '294276-12-31 00:00+00'", "294276-12-31 00:00:00+00", {}, psycopg.errors.NumericValueOutOfRange),
    ("nan", "numeric 'NaN'", "NaN", {"numeric": "decimal128"}, psycopg.errors.NumericValueOutOfRange),
    ("too_many_digits", "1e35::numeric", "1" + "0" * 35, {"numeric": "decimal128"}, psycopg.errors.NumericValueOutOfRange),
    ("too_fine", "0.0000000001::numeric", "0.0000000001", {"numeric": "decimal128"}, psycopg.errors.NumericValueOutOfRange),
    ("not_exact", "0.12345678901234567890", "0.12345678901234567890", {"numeric": "float64"}, psycopg.errors.NumericValueOutOfRange),
    ("interval", "interval '2562048 hours'", "2562048:00:00", {"interval": "month_day_nano"}, psycopg.errors.NumericValueOutOfRange),
    ("in_a_list", "ARRAY[timestamp '294276-12-31']", '{"294276-12-31 00:00:00"}', {}, psycopg.errors.NumericValueOutOfRange),
]


@ways
@pytest.mark.parametrize("expression, text, options, error", [case[1:] for case in UNREPRESENTABLE],
                         ids=[case[0] for case in UNREPRESENTABLE])
def test_unrepresentable(session, way, expression, text, options, error):
    """The error names the place and what to do, on a miss and on a hit. With on_unrepresentable = text the value is
    delivered as text. The type of a column does not depend on whether such a value is in it."""
    deliver = WITH_OPTIONS[way]
    session.execute(f"CREATE TABLE u AS SELECT 1 AS id, {expression} AS \"the value\"; INSERT INTO u SELECT 0, NULL")
    query = 'SELECT id, "the value" FROM u ORDER BY id'
    for _ in range(2):
        with pytest.raises(error) as raised:
            deliver(session, query, options)
        told = raised.value.diag
        assert '"the value"' in told.message_primary and "row 2" in told.message_primary
        helps = ["on_unrepresentable", *options]
        assert any(f'"{option}"' in told.message_hint for option in helps)
        session.execute(query)  # stores it, so that the second round is a hit
    assert session.status() == "HIT"

    asked = {**options, "on_unrepresentable": "text"}
    got = both(session, deliver, query, asked)
    assert got.schema.field("the value").type == pa.string()
    assert got.column("the value").to_pylist() == [None, text]
    session.execute('DELETE FROM u WHERE id = 1')
    assert read(deliver(session, query, asked)).schema.field("the value").type == pa.string()
    without = read(deliver(session, query, {**options, "on_unrepresentable": "error"}))
    assert without.schema.field("the value").type != pa.string()
    assert without.column("the value").to_pylist() == [None]


@ways
def test_a_precision_that_no_decimal_has(session, way):
    """The type alone decides, so that an empty table fails too."""
    session.execute("CREATE TABLE u (v numeric(40,2))")
    with pytest.raises(psycopg.errors.NumericValueOutOfRange) as raised:
        WITH_OPTIONS[way](session, "SELECT v FROM u", {"numeric": "decimal128"})
    assert '"v"' in raised.value.diag.message_primary
    assert entries(session) == 0


@ways
def test_a_column_that_is_left_out_is_not_looked_at(session, way):
    session.execute("CREATE TABLE u AS SELECT 1 AS id, '{{1,2},{3,4}}'::int[] AS v")
    for _ in range(2):
        assert rows_of(read(WITH_OPTIONS[way](session, "SELECT id, v FROM u", {"columns": ["id"]}))) == [(1,)]
    assert session.status() == "HIT"


# Options and the cache

@ways
def test_every_option_shares_one_entry(table, way):
    for options in ({"columns": ["a"]}, {}, {"limit": 5}, {"batch_rows": 10}, {"compression": "zstd"}, {"numeric": "decimal128"},
                    {"interval": "month_day_nano"}, {"extension_types": "canonical"}, {"on_unrepresentable": "text"}, {"special_times": "null"}, {"numeric": "decimal128(12,2)"}):
        WITH_OPTIONS[way](table, QUERY, options)
        assert table.status() == ("HIT" if "columns" not in options else "MISS")
        assert entries(table) == 1


def test_defaults_are_what_they_are_said_to_be(table):
    defaults = {"chunk_bytes": 262144, "compression": "none", "numeric": "text", "interval": "text", "extension_types": "none",
                "on_unrepresentable": "error", "special_times": "keep"}
    for way, deliver in WITH_OPTIONS.items():
        assert deliver(table, QUERY, defaults) == deliver(table, QUERY) == WAYS["query"](table, QUERY), way
