"""What the package for Python reads through each driver, and how it leaves the connection behind."""

import asyncio
import json
import threading
import tracemalloc

import asyncpg
import duckdb
import psycopg.rows
import psycopg2.extras
import pyarrow as pa
import pytest

from support.asking import wait_until
from support.exports import by_copy, read
from support.python_package import asyncpg_arguments, sqlstate
from support.session import DSN

QUERY = "SELECT * FROM sales ORDER BY id"
LARGE = "SELECT i, repeat('x', 1000) AS filling FROM generate_series(1, 8000) AS i"
FAILS_LATE = "SELECT 1 / (8000 - i) AS n, repeat('x', 1000) AS filling FROM generate_series(1, 8000) AS i"


@pytest.fixture(autouse=True)
def sales(session):
    session.execute("CREATE TABLE sales AS SELECT i AS id, 'customer ' || i AS customer, i * 1.25 AS amount, "
                    "ARRAY[i, NULL] AS items, timestamptz '2026-01-01 00:00+00' + i * interval '1 day' AS made "
                    "FROM generate_series(1, 1000) AS i")


def expect_state(client, state, call):
    with pytest.raises(client.errors) as raised:
        call()
    assert sqlstate(raised.value) == state


def test_tables_are_those_of_the_extension(client, session):
    wanted = read(by_copy(session, QUERY))
    for _ in range(2):
        table = client.read(QUERY)
        assert client.rows("SELECT arrow_cache.last_status()") == [("HIT",)]
        assert table.equals(wanted)
        assert table.schema.equals(wanted.schema, check_metadata=True)


def test_streams_have_the_same_rows(client, session):
    batches = client.batches(QUERY, batch_rows=100)
    assert len(batches) == 10
    assert pa.Table.from_batches(batches).equals(read(by_copy(session, QUERY)))


def test_empty_results_have_a_schema(client):
    table = client.read("SELECT * FROM sales WHERE id < 0")
    assert table.num_rows == 0
    assert table.column_names == ["id", "customer", "amount", "items", "made"]
    assert client.batches("SELECT * FROM sales WHERE id < 0") == []


@pytest.mark.parametrize("value", ["customer 7", "it's", "100 %", "a\\b'", "$1", "%s", "ä€😀"])
def test_parameters(client, session, value):
    session.execute("UPDATE sales SET customer = %s WHERE id = 7", [value])
    for _ in range(2):
        table = client.read(f"SELECT id FROM sales WHERE customer = {client.hole}", [value])
        assert table.to_pydict() == {"id": [7]}


def test_parameters_of_other_types(client):
    assert client.read(f"SELECT customer FROM sales WHERE id = {client.hole}", [5]).to_pydict() == {"customer": ["customer 5"]}
    assert client.read(f"SELECT id FROM sales WHERE id < 3 AND {client.hole}::text IS NULL ORDER BY id", [None]).to_pydict() == {"id": [1, 2]}


def test_signs_of_parameters_are_plain_without_any(client):
    assert client.read("SELECT id FROM sales WHERE customer LIKE '%er 77'").to_pydict() == {"id": [77]}


@pytest.mark.parametrize("end", [";", " ; \n", " -- the end", " /* the end */"])
def test_ends_of_queries(client, end):
    assert client.read(f"SELECT 1 AS one{end}").to_pydict() == {"one": [1]}


def test_options(client, session):
    table = client.read(QUERY, columns=["amount", "id"], limit=3, numeric="decimal128", compression="zstd", batch_rows=None)
    assert table.equals(read(by_copy(session, QUERY, {"columns": ["amount", "id"], "limit": 3, "numeric": "decimal128"})))
    expect_state(client, "22023", lambda: client.read(QUERY, numeric="roman"))


@pytest.mark.parametrize("option", ["no_such", "numeric) TO PROGRAM 'x' (format", 'a"b'])
def test_options_are_only_those_of_the_server(client, option):
    expect_state(client, "22023", lambda: client.read(QUERY, **{option: "text"}))


def test_options_beside_parameters(client):
    query = f"SELECT id FROM sales WHERE id > {client.hole} ORDER BY id"
    if client.takes_both:
        assert client.read(query, [990], limit=2).to_pydict() == {"id": [991, 992]}
    else:
        with pytest.raises(ValueError, match="either parameters or options"):
            client.read(query, [990], limit=2)


def test_errors_of_the_server(client):
    expect_state(client, "42P01", lambda: client.read("SELECT * FROM no_such_table"))
    expect_state(client, "22012", lambda: client.read(FAILS_LATE))
    expect_state(client, "42601", lambda: client.read("SELECT 1) TO STDOUT; --"))
    assert client.read("SELECT 1 AS one").to_pydict() == {"one": [1]}


def test_streams_raise_errors_of_the_server(client):
    expect_state(client, "22012", lambda: client.batches(FAILS_LATE))
    assert client.read("SELECT 1 AS one").to_pydict() == {"one": [1]}


def test_nothing_is_committed_or_rolled_back(client, session):
    client.execute("BEGIN")
    client.execute("INSERT INTO sales (id) VALUES (-1)")
    assert client.read("SELECT id FROM sales WHERE id < 0").to_pydict() == {"id": [-1]}
    assert client.read("SELECT id FROM sales WHERE id < 0", batch_rows=5).to_pydict() == {"id": [-1]}
    assert len(client.batches(LARGE, count=1)) == 1
    assert session.rows("SELECT id FROM sales WHERE id < 0") == []
    assert client.rows("SELECT id FROM sales WHERE id < 0") == [(-1,)]
    client.execute("ROLLBACK")
    assert client.rows("SELECT id FROM sales WHERE id < 0") == []


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "adbc", "async psycopg"])
def test_without_autocommit(client_of, session, driver):
    client = client_of(driver, autocommit=False)
    client.execute("INSERT INTO sales (id) VALUES (-1)")
    assert client.read("SELECT id FROM sales WHERE id < 0").to_pydict() == {"id": [-1]}
    assert session.rows("SELECT id FROM sales WHERE id < 0") == []
    client.execute("COMMIT")
    assert session.rows("SELECT id FROM sales WHERE id < 0") == [(-1,)]


def test_a_read_ends_its_own_transaction(client, session):
    client.read(QUERY)
    client.read(QUERY, limit=1)
    client.batches(LARGE, count=1)
    assert session.rows("SELECT state FROM pg_stat_activity WHERE backend_type = 'client backend' AND state LIKE '%transaction%'") == []


@pytest.mark.parametrize("options", [{}, {"limit": 1}])
def test_failed_transactions_stay_failed(client, options):
    client.execute("BEGIN")
    expect_state(client, "42P01", lambda: client.read("SELECT * FROM no_such_table", **options))
    expect_state(client, "25P02", lambda: client.read(QUERY, **options))
    client.execute("ROLLBACK")
    assert client.read("SELECT 1 AS one", **options).to_pydict() == {"one": [1]}


def test_closed_connections(client_of, client):
    connection = client.connection
    (client.wait(connection.close()) if hasattr(client, "wait") else connection.close())
    with pytest.raises(client.errors):
        client.read(QUERY)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("options", [{}, {"limit": 6000}])
def test_streams_that_are_not_read_to_their_end(client, count, options):
    threads = threading.active_count()
    assert len(client.batches(LARGE, count=count, **options)) == count
    assert threading.active_count() == threads
    assert client.rows("SELECT 1") == [(1,)]
    assert client.read(QUERY).num_rows == 1000


def test_errors_of_the_block(client):
    def fail():
        raise KeyError("of the user's own")

    with pytest.raises(KeyError, match="of the user's own"):
        client.batches(LARGE, count=1, then=fail)
    assert client.rows("SELECT 1") == [(1,)]


def test_an_ended_stream_is_not_read_as_empty(client):
    with pytest.raises(ValueError, match="has ended"):
        client.read_after_end(LARGE)


def test_streams_take_no_more_memory_than_some_batches(client):
    """What Python holds, and Arrow; the result has 40 MB."""
    query = LARGE.replace("8000", "40000")
    client.batches(query, count=1)
    tracemalloc.start()
    try:
        size = streamed(client, query)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 40e6
    assert most < size / 4


def test_the_server_waits_for_the_reader(client, session):
    """For good, and not only now and then, as it would for one that only reads more slowly than the server writes."""
    [(process,)] = client.rows("SELECT pg_backend_pid()")

    def waits():
        return session.rows("SELECT wait_event FROM pg_stat_activity WHERE pid = %s", [process]) == [("ClientWrite",)]

    def until_it_waits():
        wait_until("the server waits", lambda: all(waits() for _ in range(1000)))

    client.batches(LARGE.replace("8000", "40000"), count=1, then=until_it_waits)


def streamed(client, query):
    """Bytes of a result, of which no batch is kept."""
    if not hasattr(client, "wait"):
        with client.package.open_arrow(client.connection, query) as reader:
            return sum(batch.nbytes for batch in reader)

    async def read():
        async with client.package.aopen_arrow(client.connection, query) as batches:
            return sum([batch.nbytes async for batch in batches])

    return client.wait(read())


@pytest.mark.parametrize("driver", ["asyncpg", "async psycopg"])
def test_cancelled_tasks(client_of, driver):
    client = client_of(driver)

    async def cancel():
        async def read_slowly():
            async with client.package.aopen_arrow(client.connection, LARGE) as batches:
                await anext(batches)
                started.set()
                await asyncio.Event().wait()

        started = asyncio.Event()
        task = asyncio.create_task(read_slowly())
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    client.wait(cancel())
    assert client.rows("SELECT 1") == [(1,)]


def test_cancelled_while_the_server_computes(client_of, session):
    """As asyncpg does it: the statement is cancelled, too."""
    client = client_of("asyncpg")

    async def cancel():
        task = asyncio.create_task(client.package.aread_arrow(client.connection, "SELECT pg_sleep(3600)"))
        while not session.rows("SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    client.wait(cancel())
    assert client.rows("SELECT 1") == [(1,)]


def test_pools_of_asyncpg(package, client_of):
    async def read():
        async with asyncpg.create_pool(**asyncpg_arguments(DSN), min_size=1) as pool, pool.acquire() as connection:
            return [await package.aread_arrow(connection, "SELECT $1::int AS n", [n]) for n in range(3)]

    assert [table.to_pydict() for table in client_of("asyncpg").wait(read())] == [{"n": [0]}, {"n": [1]}, {"n": [2]}]


def test_codecs_of_asyncpg(client_of):
    client = client_of("asyncpg")
    client.wait(client.connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"))
    assert client.read("SELECT 1 AS a, 2 AS b", columns=["b"]).to_pydict() == {"b": [2]}


def test_cursors_of_other_shapes(package, client_of):
    client = client_of("psycopg")
    client.connection.row_factory = psycopg.rows.dict_row
    assert client.read("SELECT 1 AS one").to_pydict() == {"one": [1]}
    client = client_of("psycopg2")
    client.connection.cursor_factory = psycopg2.extras.RealDictCursor
    assert client.read("SELECT 1 AS one").to_pydict() == {"one": [1]}


def test_frames_of_others(package, client_of):
    for driver in ("psycopg", "psycopg2", "adbc"):
        client = client_of(driver)
        query = f"SELECT id, customer FROM sales WHERE id <= {client.hole} ORDER BY id"
        wanted = [(1, "customer 1"), (2, "customer 2")]
        assert package.read_polars(client.connection, query, [2]).rows() == wanted
        assert package.read_duckdb(client.connection, query, [2]).fetchall() == wanted
        assert list(package.read_pandas(client.connection, query, [2]).itertuples(index=False, name=None)) == wanted
        with package.open_arrow(client.connection, QUERY) as reader:
            assert duckdb.from_arrow(reader).count("*").fetchall() == [(1000,)]


def test_other_connections(package, client_of):
    with pytest.raises(TypeError, match="int is none of the connections psycopg.Connection, "):
        package.read_arrow(1, QUERY)
    with pytest.raises(TypeError, match="aread_arrow.* are for a asyncpg.Connection"):
        package.read_arrow(client_of("asyncpg").connection, QUERY)
    client = client_of("asyncpg")
    with pytest.raises(TypeError, match="read_arrow.* are for a psycopg.Connection"):
        client.wait(package.aread_arrow(client_of("psycopg").connection, QUERY))
