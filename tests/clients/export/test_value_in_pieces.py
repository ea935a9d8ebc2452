"""The value of query() is put together only where somebody needs it whole. A client that takes it in binary gets it piece by piece."""

import struct

import psycopg
import pytest

from support.exports import by_copy, by_query
from support.wire import data_rows, tags

STORED = "SELECT a, pad FROM big ORDER BY a"
CONVERTED = "SELECT a, data FROM big ORDER BY a"
SMALL = "SELECT a FROM big ORDER BY a LIMIT 10"


@pytest.fixture
def big(session):
    """About 3 MB, in several batches."""
    session.execute("""
        CREATE TABLE big AS SELECT g AS a, repeat(md5(g::text), 9) AS pad, jsonb_build_object('n', g, 't', md5(g::text)) AS data
        FROM generate_series(1, 10000) g; SET statement_timeout = '60s'""")
    return session


def in_pieces(session):
    """A list that grows with each value that is sent in pieces."""
    sent = []
    session.add_notice_handler(lambda notice: notice.message_primary.endswith("went to the client in pieces") and sent.append(notice))
    session.execute("SET client_min_messages = debug2")
    return sent


@pytest.mark.parametrize("query", [STORED, CONVERTED, SMALL])
def test_which_way(big, query):
    expected = by_copy(big, query)
    sent = in_pieces(big)
    big.execute("SELECT arrow_cache.flush()")
    for status in ("MISS", "HIT", "HIT"):
        assert by_query(big, query) == expected
        assert big.status() == status
    assert len(sent) == (0 if query == SMALL else 3)
    # As text, and beside another column, it is put together.
    assert big.execute("SELECT arrow_cache.query(%s)", [query]).fetchone()[0] == expected
    assert big.execute("SELECT arrow_cache.query(%s), 1", [query], binary=True).fetchone()[0] == expected
    assert len(sent) == (0 if query == SMALL else 3)


EVERYWHERE = {
    "scalar sub-query": "SELECT (SELECT arrow_cache.query($1))",
    "from": "SELECT q FROM arrow_cache.query($1) AS q",
    "materialized": "WITH w AS MATERIALIZED (SELECT arrow_cache.query($1) AS q) SELECT q FROM w",
    "sorted": "SELECT arrow_cache.query($1) AS q FROM generate_series(1, 2) ORDER BY q LIMIT 1",
    "concatenated": "SELECT arrow_cache.query($1) || ''::bytea",
    "aggregated": "SELECT string_agg(arrow_cache.query($1), '')",
    "distinct": "SELECT DISTINCT arrow_cache.query($1) FROM generate_series(1, 3)",
    "array": "SELECT (ARRAY[arrow_cache.query($1)])[1]",
    "row": "SELECT (ROW(1, arrow_cache.query($1))::kept).q",
    "case": "SELECT CASE WHEN length(arrow_cache.query($1)) > 0 THEN arrow_cache.query($1) END",
    "coalesced": "SELECT coalesce(NULL, arrow_cache.query($1))",
    "relabelled": "SELECT arrow_cache.query($1)::bytea",
    "plpgsql": "SELECT through_variable($1)",
    "sql function": "SELECT through_sql($1)",
}


@pytest.mark.parametrize("query", [STORED, CONVERTED])
def test_used_everywhere(big, query):
    big.execute("""
        CREATE TYPE kept AS (n int, q bytea);
        CREATE FUNCTION through_variable(t text) RETURNS bytea LANGUAGE plpgsql AS $$
            DECLARE q bytea; r record; BEGIN
                q := arrow_cache.query(t);
                SELECT q AS again, length(q) AS n INTO r;
                PERFORM arrow_cache.query(t);
                RETURN r.again; END $$;
        CREATE FUNCTION through_sql(t text) RETURNS bytea LANGUAGE sql VOLATILE AS $$ SELECT arrow_cache.query(t) $$""")
    expected = by_copy(big, query)
    for name, statement in EVERYWHERE.items():
        for binary in (True, False):
            got = psycopg.RawCursor(big).execute(statement, [query], binary=binary).fetchone()[0]
            assert got == expected, name
    size = big.execute("SELECT length(arrow_cache.query(%s)), octet_length(arrow_cache.query(%s)), pg_column_size(arrow_cache.query(%s))",
                       [query] * 3).fetchone()
    assert size == (len(expected), len(expected), len(expected) + 4)


def test_kept(big):
    """What is stored or kept open is a plain value, whatever happens to the entry."""
    expected = by_copy(big, STORED)
    big.execute("CREATE TABLE kept (n int, q bytea)")
    big.execute("INSERT INTO kept SELECT 1, arrow_cache.query(%s)", [STORED])
    with big.transaction():
        big.execute(f"DECLARE held CURSOR WITH HOLD FOR SELECT arrow_cache.query('{STORED}')")
        big.execute(f"DECLARE scrolled SCROLL CURSOR WITH HOLD FOR SELECT arrow_cache.query('{STORED}')")
        assert big.execute("FETCH scrolled", binary=True).fetchone()[0] == expected
    big.execute("SELECT arrow_cache.flush()")
    big.execute("UPDATE big SET pad = 'x'")
    assert big.execute("SELECT q FROM kept", binary=True).fetchone()[0] == expected
    assert big.execute("FETCH held", binary=True).fetchone()[0] == expected
    assert big.execute("FETCH PRIOR FROM scrolled").fetchone() is None
    assert big.execute("FETCH NEXT FROM scrolled", binary=True).fetchone()[0] == expected


def test_many_in_one_statement(big):
    """Values of several rows, and of a query inside another one."""
    expected = by_copy(big, STORED)
    rows = big.execute("SELECT arrow_cache.query(%s) FROM generate_series(1, 5)", [STORED], binary=True).fetchall()
    assert [row[0] for row in rows] == [expected] * 5
    inner = f"SELECT arrow_cache.query('{STORED}') AS q"
    assert by_query(big, inner) == by_copy(big, inner)


def test_in_parts(big, wire):
    """Execute for one row suspends the portal behind it, as with any other value."""
    expected = by_copy(big, STORED)
    client = wire()
    client.query("BEGIN")
    client.parse("SELECT arrow_cache.query($1)", types=[25]).bind([STORED.encode()], portal="p", result_format=1)
    messages = client.execute("p", max_rows=1).execute("p", max_rows=1).sync()
    assert [message.type for message in messages if message.type in "DsC"] == ["D", "s", "C"]
    assert data_rows(messages) == [[expected]]
    assert tags(messages) == ["SELECT 0"]
    client.query("COMMIT")


def stuck(client):
    """A client that has asked for the value and reads nothing of it."""
    client.parse("SELECT arrow_cache.query($1)", types=[25]).bind([STORED.encode()], result_format=1).execute().add(b"S")
    client.send()


def waits_for_client(session, pid):
    for _ in range(1000):
        if session.rows("SELECT wait_event FROM pg_stat_activity WHERE pid = %s", [pid])[0][0] == "ClientWrite":
            return True
        session.execute("SELECT pg_sleep(0.01)")
    return False


@pytest.mark.parametrize("end", ["read", "cancel", "terminate", "closed"])
def test_client_that_is_slow(big, wire, end):
    """The entry stays as long as it is being sent, whatever evicts it. The protocol stays in step."""
    expected = by_copy(big, STORED)
    big.execute("SELECT arrow_cache.flush()")
    at_rest = big.rows("SELECT entries, bytes_used FROM arrow_cache.stats")
    assert by_query(big, STORED) == expected
    client = wire()
    pid = int(client.value("SELECT pg_backend_pid()"))
    assert client.query("SELECT 1")
    stuck(client)
    assert waits_for_client(big, pid)
    big.execute("SELECT arrow_cache.flush()")
    big.execute("UPDATE big SET pad = 'overwritten' WHERE a < 100")
    big.rows("SELECT a, pad, pad || pad FROM big ORDER BY a")
    if end == "terminate":
        big.execute("SELECT pg_terminate_backend(%s)", [pid])
    elif end == "cancel":
        big.execute("SELECT pg_cancel_backend(%s)", [pid])
    if end in ("read", "cancel"):
        messages = client.until_ready()
        assert data_rows(messages) == [[expected]]
        assert ("E" in [message.type for message in messages]) == (end == "cancel")
        assert client.value("SELECT 7") == "7"
    client.close()
    for _ in range(1000):
        if not big.rows("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]):
            break
        big.execute("SELECT pg_sleep(0.01)")
    big.execute("SELECT arrow_cache.flush()")
    assert big.rows("SELECT entries, bytes_used FROM arrow_cache.stats") == at_rest


def at_rest(session):
    session.execute("SELECT arrow_cache.flush()")
    return session.rows("SELECT entries, bytes_used FROM arrow_cache.stats")[0]


def ended(session, pid):
    return not session.rows("SELECT FROM pg_stat_activity WHERE pid = %s", [pid])


@pytest.mark.parametrize("call, stored", [
    # More values than a process can hold by its seat, and parts of streams.
    ("hold(" + ",".join(f"arrow_cache.query('SELECT a, pad FROM big WHERE a > {n} ORDER BY a')" for n in range(20)) + ")", 20),
    ("count(hold_one(f))::int FROM (SELECT arrow_cache.fetch('SELECT a, pad FROM big WHERE a > 0 ORDER BY a', '{\"chunk_bytes\": 4096}') AS f) s", 1),
], ids=["values", "chunks"])
@pytest.mark.parametrize("way", ["terminate", "terminate itself"])
def test_ended_while_planning(big, connect, call, stored, way):
    """What a function is computed in while a statement is planned outlives the transaction, and a process that ends there leaves it as it is: but for
    what it holds of the cache."""
    rest = at_rest(big)
    end = "PERFORM pg_terminate_backend(pg_backend_pid());" if way == "terminate itself" else ""
    arguments = ", ".join(["bytea"] * 20)
    big.execute(f"""
        CREATE FUNCTION hold({arguments}) RETURNS int LANGUAGE plpgsql AS $$ BEGIN {end} PERFORM pg_sleep(60); RETURN 1; END $$;
        CREATE FUNCTION hold_one(bytea) RETURNS int LANGUAGE plpgsql AS $$ BEGIN {end} PERFORM pg_sleep(60); RETURN 1; END $$;
        """)
    big.execute("CREATE FUNCTION at_planning() RETURNS int IMMUTABLE LANGUAGE sql AS $$ SELECT " + call + " $$")
    for n in range(stored):
        by_query(big, f"SELECT a, pad FROM big WHERE a > {n} ORDER BY a")
    doomed = connect()
    pid = doomed.execute("SELECT pg_backend_pid()").fetchone()[0]
    doomed.pgconn.send_query(b"SELECT at_planning()")
    for _ in range(1000):
        if ended(big, pid):
            break
        if way == "terminate" and big.rows("SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'", [pid]):
            big.execute("SELECT pg_terminate_backend(%s)", [pid])
        big.execute("SELECT pg_sleep(0.01)")
    assert ended(big, pid)
    assert at_rest(big) == rest


def test_ended_while_storing_at_planning(big, connect):
    """The same in the middle of a run that stores a result."""
    rest = at_rest(big)
    slow = "SELECT a, repeat(pad, 5), (SELECT sum(g % (a + 1)) FROM generate_series(1, 2000) g) FROM big ORDER BY a"
    big.execute(f"CREATE FUNCTION at_planning() RETURNS int IMMUTABLE LANGUAGE sql AS $$ SELECT length(arrow_cache.query('{slow}')) $$")
    doomed = connect()
    pid = doomed.execute("SELECT pg_backend_pid()").fetchone()[0]
    doomed.pgconn.send_query(b"SELECT at_planning()")
    # Until it has taken memory for what it stores.
    for _ in range(1000):
        if big.rows("SELECT bytes_used FROM arrow_cache.stats")[0][0] > rest[1] + 1_000_000:
            break
        big.execute("SELECT pg_sleep(0.01)")
    assert big.rows("SELECT state FROM pg_stat_activity WHERE pid = %s", [pid]) == [("active",)]
    big.execute("SELECT pg_terminate_backend(%s)", [pid])
    for _ in range(1000):
        if ended(big, pid):
            break
        big.execute("SELECT pg_sleep(0.01)")
    assert ended(big, pid)
    assert at_rest(big) == rest


def test_error_behind_the_value(big, wire):
    """An error of a later row comes behind the rows before it."""
    expected = by_copy(big, STORED)
    client = wire()
    client.query("CREATE FUNCTION once(n int) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN IF n > 1 THEN RAISE 'twice'; END IF; "
                 f"RETURN arrow_cache.query('{STORED}'); END $$")
    client.parse("SELECT once(n) FROM generate_series(1, 2) n").bind(result_format=1)
    messages = client.execute().sync()
    assert data_rows(messages) == [[expected]]
    assert [message.type for message in messages][-2:] == ["E", "Z"]
    assert client.value("SELECT 7") == "7"


def test_copy_out(big):
    """COPY in binary takes the plain value."""
    expected = by_copy(big, STORED)
    with big.cursor().copy(f"COPY (SELECT arrow_cache.query('{STORED}')) TO STDOUT (FORMAT binary)") as copy:
        whole = b"".join(bytes(piece) for piece in copy)
    assert struct.pack("!hi", 1, len(expected)) + expected in whole
