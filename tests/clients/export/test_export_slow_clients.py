"""A client that stops reading in the middle of an export blocks nobody, and whatever ends the export leaves nothing
behind."""

import contextlib
import time

import psycopg
import pytest

from support.asking import until, until_client_is_slow, until_gone
from support.exports import copy_chunks, entries, read

ROWS = 20_000
QUERY = "SELECT a, pad FROM big ORDER BY a"
COPY = f"COPY ({QUERY}) TO STDOUT (FORMAT arrow)"


@pytest.fixture
def big(session):
    """About 20 MB, many times what the socket and the server's buffer hold."""
    session.execute(f"""
        CREATE TABLE big AS SELECT g AS a, repeat(md5(g::text), 32) AS pad FROM generate_series(1, {ROWS}) g;
        SET statement_timeout = '30s'; SET lock_timeout = '5s'""")
    return session


def at_rest(session):
    """Entries and bytes after everything that can be dropped was dropped."""
    session.execute("SELECT arrow_cache.flush()")
    return session.rows("SELECT entries, bytes_used FROM arrow_cache.stats")[0]


class Stuck:
    """An export whose client has read the first bytes and then no more."""

    def __init__(self, session, client, way):
        self.session, self.client = session, client
        self.pid = int(client.value("SELECT pg_backend_pid()"))
        if way == "copy":
            client.add(b"Q", COPY.encode() + b"\0")
        else:
            function = "arrow_cache.fetch($1)" if way == "fetch" else "(arrow_cache.messages($1)).ipc"
            client.parse(f"SELECT {function}", types=[25]).bind([QUERY.encode()], result_format=1).execute().add(b"S")
        client.send()
        self.received = 0
        self.stream = b""
        while self.received < 100_000:
            self.take(client.read())
        until_client_is_slow(session, self.pid)

    def take(self, message):
        if message.type == "d":
            self.stream += message.body
        elif message.type == "D":
            self.stream += message.body[6:]  # one column: its number and its length
        self.received += len(message.body)
        return message

    def state(self):
        rows = self.session.rows("SELECT state, wait_event FROM pg_stat_activity WHERE pid = %s", [self.pid])
        return rows[0] if rows else None

    def is_stuck(self):
        return self.state() == ("active", "ClientWrite")

    def read_on(self):
        """The rest; gives the error, if there is one."""
        error = None
        while True:
            message = self.take(self.client.read())
            if message.type == "E":
                error = message
            if message.type == "Z":
                return error


def stored(session, state):
    """Makes the next execution a hit or a miss."""
    session.execute("SELECT arrow_cache.flush()")
    if state == "hit":
        session.rows(QUERY)
        assert entries(session) == 1


ways = pytest.mark.parametrize("way", ["copy", "fetch"])
states = pytest.mark.parametrize("state", ["hit", "miss"])


@ways
@states
def test_nobody_waits_for_it(big, other, wire, way, state):
    """Others read and write the table, drop and evict entries. Then the client reads the rest of its stream."""
    rest = at_rest(big)
    stored(big, state)
    stuck = Stuck(big, wire(), way)
    other.execute("SET statement_timeout = '30s'; SET lock_timeout = '5s'")
    evicted = other.rows("SELECT evictions FROM arrow_cache.stats")[0][0]

    assert other.rows("SELECT count(*)::int, min(a) FROM big") == [(ROWS, 1)]
    other.execute("UPDATE big SET a = -a WHERE a <= 10; DELETE FROM big WHERE a = 11; INSERT INTO big VALUES (0, 'new')")
    assert other.rows("SELECT count(*)::int, min(a) FROM big") == [(ROWS, -10)]
    assert other.execute("SELECT arrow_cache.flush()").fetchone()[0] >= 1
    assert entries(other) == 0
    # More than the cache holds: what is being read is spared, what is not makes room.
    for number in range(16):
        assert other.rows("SELECT count(*) > 1 FROM arrow_cache.fetch(%s)", [f"SELECT pad, {number} FROM big"]) == [(True,)]
    assert other.rows("SELECT evictions FROM arrow_cache.stats")[0][0] > evicted
    with contextlib.closing(psycopg.connect(big.info.dsn)) as newcomer:
        assert newcomer.execute("SELECT 1").fetchone() == (1,)
    assert stuck.is_stuck()

    assert stuck.read_on() is None
    table = read(stuck.stream)
    assert table.column("a").to_pylist() == list(range(1, ROWS + 1)), "the rows of its own snapshot"
    assert at_rest(big) == rest


@states
def test_what_it_holds_is_freed_when_it_ends(big, wire, state):
    """While it reads, its entry stays in memory, dropped or not; afterwards the memory is free."""
    rest = at_rest(big)
    stored(big, state)
    stuck = Stuck(big, wire(), "copy")
    held = at_rest(big)
    assert held[0] == 0
    if state == "hit":
        assert held[1] > rest[1] + 10_000_000
    assert stuck.read_on() is None
    assert at_rest(big) == rest


@ways
@states
@pytest.mark.parametrize("end", ["cancel", "timeout"])
def test_cancelled(big, wire, way, state, end):
    """Cancel and timeout reach a statement that waits for its client: it ends in the middle of the stream and the
    session goes on."""
    rest = at_rest(big)
    stored(big, state)
    began = time.monotonic()
    whole = sum(map(len, copy_chunks(big, QUERY)))
    # The client has time to get stuck, on a busy machine as well.
    limit = int(300 + 5000 * (time.monotonic() - began))
    client = wire(statement_timeout=f"{limit}ms") if end == "timeout" else wire()
    stored(big, state)
    stuck = Stuck(big, client, way)
    if end == "cancel":
        assert big.rows("SELECT pg_cancel_backend(%s)", [stuck.pid]) == [(True,)]
    else:
        until(big, stuck.pid, f"clock_timestamp() > query_start + interval '{limit + 20} ms'")
    error = stuck.read_on()
    assert error is not None, "the whole stream was sent"
    assert error.body.count(b"C57014\0") == 1
    assert stuck.received < whole / 2
    assert client.value("SELECT 1") == "1"
    assert at_rest(big) == rest
    client.query("SET statement_timeout = 0")
    again = Stuck(big, client, way)
    assert again.read_on() is None
    assert read(again.stream).num_rows == ROWS


@ways
@states
@pytest.mark.parametrize("end", ["terminate", "close"])
def test_vanished(big, wire, way, state, end):
    """The process ends and releases all that it held; an incomplete result is never served."""
    rest = at_rest(big)
    stored(big, state)
    client = wire()
    stuck = Stuck(big, client, way)
    if end == "terminate":
        assert big.rows("SELECT pg_terminate_backend(%s, 20000)", [stuck.pid]) == [(True,)]
    else:
        client.close()
    until_gone(big, stuck.pid)
    assert at_rest(big) == rest
    for status in ("MISS", "HIT"):
        assert read(b"".join(copy_chunks(big, QUERY))).num_rows == ROWS
        assert big.status() == status
    assert at_rest(big) == rest


def test_messages_are_in_nobodys_way(big, wire):
    rest = at_rest(big)
    stored(big, "hit")
    stuck = Stuck(big, wire(), "messages")
    assert big.execute("SELECT arrow_cache.flush()").fetchone()[0] == 1
    assert stuck.read_on() is None
    assert at_rest(big) == rest


def test_copy_given_up_by_the_driver(big, connect):
    """An exception in the middle of a COPY makes psycopg cancel it; the connection can be used again."""

    class GivenUp(Exception):
        pass

    rest = at_rest(big)
    stored(big, "hit")
    client = connect()
    with pytest.raises(GivenUp), client.cursor().copy(COPY) as copy:
        assert copy.read()
        raise GivenUp
    assert client.rows("SELECT 1") == [(1,)]
    assert read(b"".join(copy_chunks(client, QUERY))).num_rows == ROWS
    assert at_rest(big) == rest


def test_fetch_given_up_by_the_driver(big, connect):
    """A portal that is closed half-way releases its entry at once, also inside a transaction."""
    rest = at_rest(big)
    stored(big, "hit")
    client = connect(autocommit=False)
    with client.cursor("portal", binary=True) as cursor:
        cursor.itersize = 1
        cursor.execute("SELECT arrow_cache.fetch(%s)", [QUERY])
        assert cursor.fetchone()[0]
    assert at_rest(big) == rest
    assert client.execute("SELECT 1").fetchone() == (1,)
    client.commit()
    assert at_rest(big) == rest


@ways
def test_given_up_in_a_subtransaction(big, wire, way):
    """ROLLBACK TO releases the entry while the transaction continues."""
    rest = at_rest(big)
    stored(big, "hit")
    client = wire()
    client.query("BEGIN; SAVEPOINT s")
    stuck = Stuck(big, client, way)
    big.execute("SELECT pg_cancel_backend(%s)", [stuck.pid])
    assert stuck.read_on() is not None
    client.query("ROLLBACK TO s")
    assert at_rest(big) == rest
    assert client.value("SELECT count(*) FROM big") == str(ROWS)
    client.query("COMMIT")
