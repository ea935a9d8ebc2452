"""The programs with which people read Arrow read what each way of exporting gives, and find the rows of the query."""

import asyncio
import datetime
import decimal
import io
import os
import subprocess
import uuid

import duckdb
import pandas
import polars
import psycopg
import pyarrow as pa
import pytest
from psycopg.types.json import Jsonb

from support.session import DSN
from support.exports import WAYS, Pieces, batches, by_copy, copy_statement, entries, read, rows_of

QUERY = "SELECT * FROM sales ORDER BY id"
ROWS = 5000


@pytest.fixture
def sales(session):
    """A table of common columns. The last ones are converted for the export, so that both kinds of delivery are tested."""
    session.execute(f"""
        SET timezone = 'UTC';
        CREATE TYPE channel AS ENUM ('web', 'shop');
        CREATE TYPE place AS (city text, zip int);
        CREATE TABLE sales AS
        SELECT g AS id, (g % 100)::int2 AS store, g * 10000000000 AS serial, g / 8.0::float8 AS ratio, (g / 4.0)::float4 AS rate,
            (g * 1.25)::numeric(12,2) AS amount, g % 3 = 0 AS paid, date '2024-01-01' + g % 365 AS day,
            time '08:00' + g % 600 * interval '1 min' AS hour, timestamp '2024-01-01' + g * interval '1 min' AS made,
            timestamptz '2024-01-01 00:00+00' + g * interval '1 min' AS seen,
            CASE WHEN g % 7 > 0 THEN 'customer ' || g || ' äöü€' END AS customer, ('c' || g % 10)::char(5) AS code,
            decode(md5(g::text), 'hex') AS digest, md5(g::text)::uuid AS ticket, json_build_object('n', g)::jsonb AS extra,
            CASE WHEN g % 2 = 0 THEN 'web' ELSE 'shop' END::channel AS channel,
            CASE WHEN g % 5 > 0 THEN ARRAY[g, NULL, g + 1] END AS items, ROW('city ' || g % 9, g % 100)::place AS place
        FROM generate_series(1, {ROWS}) g""")
    return session


def expected(session):
    """The rows as psycopg reads them, in the terms in which pyarrow gives them."""
    rows = session.uncached(f"""
        SELECT id, store, serial, ratio, rate, amount::text, paid, day, hour, made, seen, customer, code, digest, ticket,
            extra::text, channel::text, items, (place).city, (place).zip FROM ({QUERY}) q""")
    return [(*row[:14], row[14].bytes, *row[15:18], {"city": row[18], "zip": row[19]}) for row in rows]


@pytest.mark.parametrize("way", WAYS)
def test_pyarrow(sales, way):
    wanted = expected(sales)
    streams = []
    for status in ("MISS", "HIT"):
        stream = WAYS[way](sales, QUERY)
        assert (sales.status(), sales.reason()) == (status, None)
        table = read(stream)
        assert rows_of(table) == wanted
        streams.append(stream)
    assert streams[0] == streams[1]
    assert [str(kind) for kind in table.schema.types] == [
        "int32", "int16", "int64", "double", "float", "string", "bool", "date32[day]", "time64[us]", "timestamp[us]",
        "timestamp[us, tz=UTC]", "string", "string", "binary", "fixed_size_binary[16]", "string", "string",
        "list<item: int32>", "struct<city: string, zip: int32>"]
    assert len(batches(stream)) > 1, "too few rows to show that several batches are read"


def test_all_ways_give_the_same_table(sales):
    tables = [read(deliver(sales, QUERY)) for _ in range(2) for deliver in WAYS.values()]
    assert all(table.equals(tables[0]) and table.schema.equals(tables[0].schema, check_metadata=True) for table in tables)
    assert entries(sales) == 1


@pytest.mark.parametrize("way", WAYS)
def test_polars(sales, way):
    wanted = expected(sales)
    for status in ("MISS", "HIT"):
        frame = polars.read_ipc_stream(io.BytesIO(WAYS[way](sales, QUERY)))
        assert sales.status() == status
        assert frame.shape == (ROWS, 19)
        assert frame.schema["seen"] == polars.Datetime("us", "UTC")
        assert frame.schema["items"] == polars.List(polars.Int32)
        assert frame.rows() == wanted


@pytest.mark.parametrize("way", WAYS)
def test_duckdb(sales, way):
    wanted = expected(sales)
    names = [column.name for column in sales.execute(QUERY + " LIMIT 0").description]
    for status in ("MISS", "HIT"):
        sales.execute("SELECT arrow_cache.flush()") if status == "MISS" else None
        with duckdb.connect() as database:
            database.execute("SET timezone = 'UTC'")
            stream = pa.ipc.open_stream(WAYS[way](sales, QUERY))  # found by its name in the query below
            assert sales.status() == status
            rows = database.sql("SELECT * REPLACE (seen::timestamp AS seen) FROM stream ORDER BY id").fetchall()
        seen = names.index("seen")
        assert [(*row[:seen], row[seen].replace(tzinfo=datetime.timezone.utc), *row[seen + 1:]) for row in rows] == wanted


@pytest.mark.parametrize("way", WAYS)
def test_pandas(sales, way):
    wanted = expected(sales)
    for status in ("MISS", "HIT"):
        frame = read(WAYS[way](sales, QUERY)).to_pandas()
        assert sales.status() == status
        assert isinstance(frame, pandas.DataFrame) and frame.shape == (ROWS, 19)
        assert frame["id"].tolist() == [row[0] for row in wanted]
        assert frame["ratio"].sum() == sum(row[3] for row in wanted)
        assert [decimal.Decimal(text) for text in frame["amount"]] == [decimal.Decimal(row[5]) for row in wanted]
        assert frame["day"].tolist() == [row[7] for row in wanted]
        assert [moment.to_pydatetime() for moment in frame["seen"]] == [row[10] for row in wanted]
        assert [None if pandas.isna(text) else text for text in frame["customer"]] == [row[11] for row in wanted]
        assert frame["digest"].tolist() == [row[13] for row in wanted]
        assert [uuid.UUID(bytes=value).bytes for value in frame["ticket"]] == [row[14] for row in wanted]
        assert [None if value is None else [None if pandas.isna(n) else int(n) for n in value] for value in frame["items"]] == [
            row[17] for row in wanted]
        assert frame["place"].tolist() == [row[18] for row in wanted]


def test_copy_read_while_it_arrives(sales):
    """The first batches can be read before the last piece was requested."""
    wanted = expected(sales)
    for status in ("MISS", "HIT"):
        pieces, first_batch_after = 0, None
        rows = []

        def counted(copy):
            nonlocal pieces
            for piece in copy:
                pieces += 1
                yield piece

        with sales.cursor().copy(copy_statement(QUERY, {"chunk_bytes": 4096})) as copy:
            for batch in pa.ipc.open_stream(io.BufferedReader(Pieces(counted(copy)), 4096)):
                first_batch_after = first_batch_after or pieces
                rows += rows_of(batch)
            assert not list(copy), "the reader has read all there is"
        assert sales.status() == status
        assert rows == wanted
        assert first_batch_after < pieces


async def open_async(connect):
    """A connection with the settings of the fixture's, which are part of the question."""
    return await psycopg.AsyncConnection.connect(
        DSN, autocommit=True, options=f"-c search_path={connect.schema} -c timezone=UTC")


def run_async(connect, work):
    """A coroutine on an asynchronous connection of its own."""

    async def main():
        async with await open_async(connect) as connection:
            return await work(connection)

    return asyncio.run(main())


async def status_of(connection):
    return (await (await connection.execute("SELECT arrow_cache.last_status()")).fetchone())[0]


@pytest.mark.parametrize("way", WAYS)
def test_asynchronous(sales, connect, way):
    wanted = expected(sales)
    calls = {
        "query": ("SELECT arrow_cache.query(%s)", [QUERY]),
        "fetch": ("SELECT arrow_cache.fetch(%s, %s)", [QUERY, Jsonb({})]),
        "messages": ("SELECT ipc FROM arrow_cache.messages(%s, %s) ORDER BY seq", [QUERY, Jsonb({})]),
    }

    async def deliver(connection):
        if way == "copy":
            async with connection.cursor().copy(copy_statement(QUERY)) as copy:
                pieces = [bytes(piece) async for piece in copy]
        else:
            cursor = connection.cursor(binary=True)
            pieces = [row[0] async for row in await cursor.execute(*calls[way])]
        return b"".join(pieces), await status_of(connection)

    for status in ("MISS", "HIT"):
        stream, became = run_async(connect, deliver)
        assert became == status
        with pa.ipc.open_stream(stream) as reader:
            assert rows_of(reader.read_all()) == wanted


def test_two_asynchronous_copies_at_once(sales, connect):
    """Both read the same entry, in turns."""
    wanted = expected(sales)
    by_copy(sales, QUERY)

    async def deliver(connection):
        streams = ([], [])
        async with await open_async(connect) as second:
            statement = copy_statement(QUERY, {"chunk_bytes": 8192})
            async with connection.cursor().copy(statement) as one, second.cursor().copy(statement) as two:
                copies = [aiter(one), aiter(two)]
                for _ in range(1_000_000):
                    pieces = [await anext(copy, None) for copy in copies]
                    if pieces == [None, None]:
                        break
                    for stream, piece in zip(streams, pieces):
                        stream.append(bytes(piece or b""))
            return [b"".join(stream) for stream in streams], [await status_of(connection), await status_of(second)]

    streams, statuses = run_async(connect, deliver)
    assert statuses == ["HIT", "HIT"]
    assert [rows_of(read(stream)) for stream in streams] == [wanted, wanted]


def test_psql_into_a_file(sales, connect, tmp_path):
    """No client code is needed: the output of psql is the file."""
    psql = psql_program()
    wanted = expected(sales)
    for _ in range(2):
        with open(tmp_path / "sales.arrows", "wb") as file:
            copy = f"COPY (SELECT * FROM {connect.schema}.sales ORDER BY id) TO STDOUT (FORMAT arrow)"
            done = subprocess.run([psql, "-X", "-q", DSN, "-c", copy], stdout=file, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert rows_of(read((tmp_path / "sales.arrows").read_bytes())) == wanted
        with pa.memory_map(str(tmp_path / "sales.arrows")) as mapped:
            assert rows_of(pa.ipc.open_stream(mapped).read_all()) == wanted


def psql_program():
    pg_config = os.environ.get("PG_CONFIG", "/usr/lib/postgresql/15/bin/pg_config")
    bindir = subprocess.run([pg_config, "--bindir"], check=True, capture_output=True, text=True).stdout.strip()
    return f"{bindir}/psql"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query, names, count", [
    ("SELECT id, customer FROM sales WHERE id < 0", ["id", "customer"], 0),
    ("SELECT id AS x, store AS x, id + 1 FROM sales WHERE id = 1", ["x", "x", "?column?"], 1),
    ("SELECT FROM sales WHERE id <= 3", [], 3),
], ids=["no_rows", "repeated_names", "no_columns"])
def test_odd_shapes(sales, way, query, names, count):
    for status in ("MISS", "HIT"):
        table = read(WAYS[way](sales, query))
        assert sales.status() == status
        assert table.column_names == names
        # A schema without columns has no table to count rows with; its batches do.
        assert sum(batch.num_rows for batch in batches(WAYS[way](sales, query))) == count


def test_without_the_cache(sales):
    """Exports work without the cache: with the cache switched off, and for volatile queries, each export executes and
    delivers the same."""
    wanted = expected(sales)
    sales.execute("SET pg_arrow_cache.enabled = off")
    for way, deliver in WAYS.items():
        assert rows_of(read(deliver(sales, QUERY))) == wanted, way
        assert (sales.status(), sales.reason()) == ("BYPASS", "disabled")
    sales.execute("SET pg_arrow_cache.enabled = on")
    for way, deliver in WAYS.items():
        values = [read(deliver(sales, "SELECT random() AS r FROM sales")) for _ in range(2)]
        assert values[0] != values[1], way
        assert (sales.status(), sales.reason()) == ("BYPASS", "volatile_function")
    assert entries(sales) == 0


@pytest.mark.parametrize("way", WAYS)
def test_one_entry_for_rows_and_every_way(sales, other, way):
    """An export reads what a SELECT has stored, a SELECT reads what an export has stored, and a write outdates both."""
    sales.rows(QUERY)
    table = read(WAYS[way](sales, QUERY))
    assert sales.status() == "HIT"
    sales.execute("SELECT arrow_cache.flush()")
    assert read(WAYS[way](sales, QUERY)).equals(table)
    assert sales.status() == "MISS"
    rows = sales.rows(QUERY)
    assert sales.status() == "HIT" and len(rows) == ROWS
    other.execute("DELETE FROM sales WHERE id > 10")
    assert read(WAYS[way](sales, QUERY)).equals(table.slice(0, 10))
    assert sales.status() == "STALE"


# Without the option polars fails at an infinite timestamp, and pyarrow's validation at 24:00.
@pytest.mark.parametrize("reader", ["pyarrow", "polars", "duckdb", "pandas"])
def test_special_times_are_read_as_null(session, reader):
    session.execute("CREATE TABLE s AS SELECT date 'infinity' AS d, timestamp '-infinity' AS ts, time '24:00' AS t, 1 / 3.0 AS n")
    options = {"special_times": "null", "numeric": "float64_nearest"}
    stream = by_copy(session, "SELECT * FROM s", options)
    expected = (None, None, None, 1 / 3)
    if reader == "polars":
        assert polars.read_ipc_stream(io.BytesIO(stream)).rows() == [expected]
        return
    table = read(stream)
    table.validate(full=True)
    if reader == "pyarrow":
        assert rows_of(table) == [expected]
    elif reader == "duckdb":
        assert duckdb.from_arrow(table).fetchall() == [expected]
    else:
        frame = table.to_pandas()
        assert frame[["d", "ts", "t"]].isna().all(axis=None) and frame["n"].tolist() == [1 / 3]
