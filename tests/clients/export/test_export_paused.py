"""arrow_cache.fetch makes a batch when the client asks for it: what happens between two batches changes neither the
stream nor the cache, and an early end leaves nothing behind."""

import psycopg
import pytest

from support.exports import entries, read

QUERY = "SELECT a, pad FROM t ORDER BY a"
ROWS = 20_000
ALL = list(range(1, ROWS + 1))


@pytest.fixture
def table(session):
    """About ten batches."""
    session.execute(f"""
        CREATE TABLE t AS SELECT g AS a, repeat('x', 250) AS pad FROM generate_series(1, {ROWS}) g;
        CREATE TABLE u (a int);
        SET lock_timeout = '5s'""")
    return session


@pytest.fixture(params=["miss", "hit", "disabled"])
def state(request, table):
    if request.param == "hit":
        table.rows(QUERY)
    elif request.param == "disabled":
        table.execute("SET pg_arrow_cache.enabled = off")
    return request.param


class Half:
    """A transaction with a cursor over fetch that has given two chunks."""

    def __init__(self, session, query=QUERY, options='{"chunk_bytes": 100000}', hold=""):
        self.session = session
        session.execute("BEGIN")
        session.execute(f"DECLARE c NO SCROLL CURSOR {hold} FOR SELECT arrow_cache.fetch('{query}', '{options}')")
        self.chunks = self.more(2)
        assert len(self.chunks) == 2

    def more(self, count="ALL"):
        return [row[0] for row in self.session.rows(f"FETCH {count} FROM c", binary=True)]

    def numbers(self):
        """What the whole stream holds."""
        rest = self.more()
        assert rest
        return read(b"".join(self.chunks + rest)).column("a").to_pylist()


def cached_afterwards(session, state):
    """The next execution is a hit if the stream was stored or was a hit itself."""
    session.execute("SET pg_arrow_cache.enabled = on")
    rows = session.rows(QUERY)
    return session.status(), rows[0][0], len(rows)


BETWEEN = {
    "nothing": "SELECT 1",
    "the_same_question": QUERY,
    "another_fetch": f"SELECT count(c) FROM (SELECT arrow_cache.fetch('{QUERY}') AS c) s",
    "another_question": "SELECT count(*) FROM u",
    "a_write_elsewhere": "INSERT INTO u VALUES (1)",
    "settings": "SET datestyle = 'German'; SET timezone = 'Asia/Tokyo'; SET search_path = pg_catalog; SET work_mem = '64kB'",
    "switched_off": "SET pg_arrow_cache.enabled = off",
    "nothing_stored": "SET pg_arrow_cache.populate = off",
    "flushed": "SELECT arrow_cache.flush()",
    "own_update": "UPDATE t SET a = a + 1000000 WHERE a > 10000",
    "own_delete": "DELETE FROM t WHERE a > 5000",
    "a_failed_savepoint": "SAVEPOINT s; DELETE FROM t WHERE a > 5000; ROLLBACK TO s",
    "a_released_savepoint": "SAVEPOINT s; DELETE FROM t WHERE a > 5000; RELEASE s",
    "plans_discarded": "DISCARD PLANS",
    "an_exception_caught": "DO 'BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END'",
}


@pytest.mark.parametrize("between", BETWEEN)
def test_between_two_chunks(table, state, between):
    """The stream shows the data of the moment at which it began."""
    half = Half(table)
    table.execute(BETWEEN[between])
    assert half.numbers() == ALL
    table.execute("COMMIT; RESET ALL")
    expected = {"own_update": ROWS, "own_delete": 5000, "a_released_savepoint": 5000}.get(between, ROWS)
    for _ in range(2):
        status, first, count = cached_afterwards(table, state)
        assert (first, count) == (1, expected)
    assert status == "HIT"


@pytest.mark.parametrize("change", [
    "UPDATE t SET a = a + 1000000 WHERE a > 10000", "DELETE FROM t", "ANALYZE t", "COMMENT ON TABLE t IS 'x'",
])
def test_others_write_meanwhile(table, other, state, change):
    half = Half(table)
    other.execute("SET lock_timeout = '5s'")
    other.execute(change)
    assert half.numbers() == ALL
    table.execute("COMMIT; SET pg_arrow_cache.enabled = on")
    uncached = other.uncached(QUERY)
    assert table.rows(QUERY) == uncached
    assert other.rows(QUERY) == uncached


@pytest.mark.parametrize("statement", [
    "TRUNCATE t", "DROP TABLE t", "ALTER TABLE t ADD COLUMN b int", "ALTER TABLE t ALTER a TYPE bigint", "ALTER TABLE t DROP COLUMN pad",
    "CLUSTER t USING i",
])
def test_what_a_cursor_in_use_forbids(table, state, statement):
    """The server refuses these statements while a cursor of the session is open, as it does for a cursor over the query
    itself."""
    table.execute("CREATE INDEX i ON t (a)")
    table.execute("SET enable_indexscan = off; SET enable_bitmapscan = off")
    table.execute(f"BEGIN; DECLARE plain NO SCROLL CURSOR FOR {QUERY}; FETCH 1 FROM plain; SAVEPOINT s")
    with pytest.raises(psycopg.Error) as expected:
        table.execute(statement)
    table.execute("ROLLBACK")
    if state == "hit":
        table.rows(QUERY)   # the index has outdated what was stored
    half = Half(table)
    assert table.status() == {"hit": "HIT", "miss": "MISS", "disabled": "BYPASS"}[state]
    table.execute("SAVEPOINT s")
    with pytest.raises(type(expected.value)):
        table.execute(statement)
    table.execute("ROLLBACK TO s")
    assert half.numbers() == ALL
    table.execute("COMMIT")


@pytest.mark.parametrize("end", ["CLOSE c", "COMMIT", "ROLLBACK", "error", "savepoint", "DISCARD ALL"])
def test_given_up(table, other, state, end):
    """A stream that is not read to its end is not stored, releases its entry, and leaves the session as it was."""
    other.execute("SELECT arrow_cache.flush()")
    rest = other.rows("SELECT entries, bytes_used FROM arrow_cache.stats")
    if state == "hit":
        table.rows(QUERY)
    if end == "savepoint":
        table.execute("BEGIN; SAVEPOINT s; SAVEPOINT r")
        table.execute(f"DECLARE c CURSOR FOR SELECT arrow_cache.fetch('{QUERY}', '{{\"chunk_bytes\": 100000}}')")
        assert len(table.rows("FETCH 2 FROM c", binary=True)) == 2
        table.execute("ROLLBACK TO s")
    else:
        Half(table)
        if end == "error":
            with pytest.raises(psycopg.errors.DivisionByZero):
                table.execute("SELECT 1 / 0")
        elif end == "DISCARD ALL":
            table.execute("COMMIT")
            table.execute("DISCARD ALL")
        else:
            table.execute(end)
    other.execute("SELECT arrow_cache.flush()")
    if end != "error":
        assert other.rows("SELECT entries, bytes_used FROM arrow_cache.stats") == rest
    table.execute("ROLLBACK")
    other.execute("SELECT arrow_cache.flush()")
    assert other.rows("SELECT entries, bytes_used FROM arrow_cache.stats") == rest
    assert table.rows("SELECT 1") == [(1,)]
    for status in ("MISS", "HIT"):
        assert len(other.rows(QUERY)) == ROWS
        assert other.status() == status


@pytest.mark.parametrize("call", ["messages('SELECT a FROM few ORDER BY a')", "fetch('SELECT a FROM few ORDER BY a', '{\"chunk_bytes\": 4096}')"])
def test_a_result_of_one_batch_is_over_with_it(table, state, call):
    """Its tables are not in use any more when the client has the first piece, whoever made it."""
    table.execute("CREATE TABLE few AS SELECT g AS a FROM generate_series(1, 1000) g")
    if state == "hit":
        table.rows("SELECT a FROM few ORDER BY a")
    with table.transaction(force_rollback=True):
        table.execute(f"DECLARE c CURSOR FOR SELECT arrow_cache.{call}")
        assert len(table.execute("FETCH 1 FROM c").fetchall()) == 1
        assert table.status() == {"hit": "HIT", "miss": "MISS", "disabled": "BYPASS"}[state]
        table.execute("TRUNCATE few")
        assert len(table.execute("FETCH ALL FROM c").fetchall()) >= 1


def test_a_cursor_that_outlives_its_transaction(table, state):
    """A cursor WITH HOLD reads it to its end at COMMIT."""
    half = Half(table, hold="WITH HOLD")
    table.execute("COMMIT; DELETE FROM t; DROP TABLE u")
    assert half.numbers() == ALL
    table.execute("CLOSE c")


def test_two_that_take_turns(table, state):
    """Each stream has its own position in the same result; one of them reads part of the columns."""
    table.execute("BEGIN")
    table.execute(f"DECLARE x CURSOR FOR SELECT arrow_cache.fetch('{QUERY}', '{{\"chunk_bytes\": 100000}}')")
    table.execute(f"DECLARE y CURSOR FOR SELECT arrow_cache.fetch('{QUERY}', '{{\"chunk_bytes\": 10000, \"columns\": \"a\"}}')")
    read_so_far = {"x": [], "y": []}
    for _ in range(200):
        for name, chunks in read_so_far.items():
            chunks += [row[0] for row in table.rows(f"FETCH 1 FROM {name}", binary=True)]
    table.execute("COMMIT")
    for name, columns in (("x", ["a", "pad"]), ("y", ["a"])):
        got = read(b"".join(read_so_far[name]))
        assert got.column_names == columns and got.column("a").to_pylist() == ALL


def test_many_that_are_never_finished(table, state):
    """LIMIT ends each stream after its first chunk, whatever their number, and nothing stays behind."""
    query = f"SELECT length(c) > 0 FROM (SELECT arrow_cache.fetch('{QUERY}', '{{\"chunk_bytes\": 100000}}') AS c LIMIT 1) s"
    rest = None
    for round_ in range(30):
        assert table.rows(query) == [(True,)]
        table.execute("SELECT arrow_cache.flush()")
        used = table.rows("SELECT entries, bytes_used FROM arrow_cache.stats")
        assert rest in (None, used), round_
        rest = used
    assert rest[0][0] == 0


def test_a_scrollable_cursor(table, state):
    """The server keeps the chunks for going back."""
    table.execute("BEGIN")
    table.execute(f"DECLARE c SCROLL CURSOR FOR SELECT arrow_cache.fetch('{QUERY}', '{{\"chunk_bytes\": 100000}}')")
    first = [row[0] for row in table.rows("FETCH 3 FROM c", binary=True)]
    assert [row[0] for row in table.rows("FETCH BACKWARD 2 FROM c", binary=True)] == [first[1], first[0]]
    rest = [row[0] for row in table.rows("FETCH ALL FROM c", binary=True)]
    assert read(b"".join(first[:1] + rest)).column("a").to_pylist() == ALL
    table.execute("COMMIT")


def test_in_a_loop_of_a_function(table, state):
    """PL/pgSQL reads chunks in a loop, writes what it reads, catches an error half-way and goes on."""
    table.execute(f"""
        CREATE TABLE kept (n serial, c bytea);
        CREATE FUNCTION copy_chunks() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE r record; n int := 0;
        BEGIN
            FOR r IN SELECT arrow_cache.fetch('{QUERY}', '{{"chunk_bytes": 100000}}') AS c LOOP
                INSERT INTO kept (c) VALUES (r.c);
                BEGIN
                    DELETE FROM t WHERE a > 10;
                    PERFORM 1 / 0;
                EXCEPTION WHEN division_by_zero THEN n := n + 1;
                END;
            END LOOP;
            RETURN n;
        END $$""")
    count, = table.rows("SELECT copy_chunks()")[0]
    chunks = [row[0] for row in table.rows("SELECT c FROM kept ORDER BY n", binary=True)]
    assert len(chunks) == count > 10
    assert read(b"".join(chunks)).column("a").to_pylist() == ALL


def test_an_error_of_the_query_after_some_chunks(table, state):
    """The first chunks come, then the error; the transaction is over and nothing was stored."""
    table.execute("BEGIN")
    table.execute("DECLARE c CURSOR FOR SELECT arrow_cache.fetch('SELECT 1 / (19990 - a), pad FROM t')")
    assert len(table.rows("FETCH 2 FROM c", binary=True)) == 2
    with pytest.raises(psycopg.errors.DivisionByZero):
        table.rows("FETCH ALL FROM c", binary=True)
    table.execute("ROLLBACK")
    table.execute("SET pg_arrow_cache.enabled = on")
    assert entries(table) == (1 if state == "hit" else 0)
    assert len(table.rows(QUERY)) == ROWS
