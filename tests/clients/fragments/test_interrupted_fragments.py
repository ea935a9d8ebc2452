"""Statements that are combined of parts, and end in the middle of them: nothing is left behind, and what was stored is right."""

import time

import psycopg
import pytest

OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on -c jit=off"
QUERY = "SELECT t.k, count(*), sum(a.x + b.x) FROM t, many a, many b WHERE a.x <> t.n AND b.x <> t.n GROUP BY t.k"
LEAVES = 4
# No stored part is current then.
OUTDATE = "UPDATE t SET k = k; UPDATE many SET x = x WHERE x = 1"


@pytest.fixture
def writer(connect):
    writer = connect()
    writer.execute("CREATE TABLE t (n int, k int) PARTITION BY RANGE (n); CREATE TABLE many AS SELECT generate_series(1, 300) AS x")
    for leaf in range(LEAVES):
        writer.execute(f"CREATE TABLE t{leaf} PARTITION OF t FOR VALUES FROM ({leaf * 10}) TO ({leaf * 10 + 10})")
    writer.execute("INSERT INTO t SELECT g, g % 3 FROM generate_series(0, 39, 4) g; ANALYZE t, many")
    return writer


def fragments(session):
    return session.rows("SELECT count(*) FROM arrow_cache.entries WHERE kind = 'fragment'")[0][0]


def nothing_is_held(session):
    """What a flush leaves: room that somebody has pinned."""
    session.execute("SELECT arrow_cache.flush()")
    return session.rows("SELECT bytes_used, fragment_bytes, entries FROM arrow_cache.stats")[0]


def same(rows, others):
    return sorted(rows) == sorted(others)


def test_cancelled_in_the_middle(writer, connect):
    clean = nothing_is_held(writer)
    reader = connect(OPTIONS, prepare_threshold=None)
    expected = reader.uncached(QUERY)
    cancelled = partly = 0
    for part in range(1, 13):
        writer.execute(OUTDATE)
        began = time.monotonic()
        assert same(reader.rows(QUERY), expected)
        whole = time.monotonic() - began
        writer.execute(OUTDATE)
        try:
            with reader.statement_timeout(max(1, int(whole * 1000 * part / 13))):
                assert same(reader.rows(QUERY), expected)
        except psycopg.errors.QueryCanceled:
            cancelled += 1
        partly += 0 < writer.rows("SELECT count(*) FROM arrow_cache.entries WHERE kind = 'fragment' AND valid")[0][0] < LEAVES
        assert same(reader.rows(QUERY), expected)
    assert cancelled > 2
    assert partly > 0
    assert nothing_is_held(writer) == clean


def test_cancelled_in_a_subtransaction(writer, connect):
    clean = nothing_is_held(writer)
    reader = connect(OPTIONS, prepare_threshold=None)
    expected = reader.uncached(QUERY)
    reader.execute("BEGIN")
    for timeout in (30, 60, 120, 180, 240):
        reader.execute(f"SAVEPOINT s; SET LOCAL statement_timeout = {timeout}")
        try:
            assert same(reader.rows(QUERY), expected)
        except psycopg.errors.QueryCanceled:
            reader.execute("ROLLBACK TO s")
    reader.execute("SET LOCAL statement_timeout = 0")
    assert same(reader.rows(QUERY), expected)
    reader.execute("COMMIT")
    assert nothing_is_held(writer) == clean


def test_terminated_in_the_middle(writer, connect):
    clean = nothing_is_held(writer)
    expected = writer.uncached(QUERY)
    for pause in (0.05, 0.15, 0.25, 0.35):
        reader = connect(OPTIONS, prepare_threshold=None)
        reader.pgconn.send_query(QUERY.encode())
        writer.execute("SELECT pg_sleep(%s)", [pause])
        writer.execute("SELECT pg_terminate_backend(%s, 5000)", [reader.info.backend_pid])
        with connect(OPTIONS, prepare_threshold=None) as next_reader:
            assert same(next_reader.rows(QUERY), expected)
        writer.execute("UPDATE t1 SET k = k")
    assert nothing_is_held(writer) == clean


def test_changed_in_the_middle(writer, connect):
    """A change that commits while parts are computed: the statement answers under its snapshot, and the next one under its own."""
    reader = connect(OPTIONS, prepare_threshold=None)
    for leaf in range(LEAVES):
        expected = writer.uncached(QUERY)
        reader.pgconn.send_query(QUERY.encode())
        writer.execute("SELECT pg_sleep(0.1)")
        writer.execute(f"INSERT INTO t{leaf} VALUES ({leaf * 10 + 5}, {leaf}); INSERT INTO many VALUES ({300 + leaf})")
        result = reader.pgconn.get_result()
        found = sorted(tuple(int(result.get_value(row, column)) for column in range(3)) for row in range(result.ntuples))
        assert reader.pgconn.get_result() is None
        assert found == sorted(expected)
        after = writer.uncached(QUERY)
        assert not same(after, expected)
        assert same(reader.rows(QUERY), after)
        assert same(writer.rows(QUERY), after)


@pytest.mark.parametrize("end", ["CLOSE c; COMMIT", "COMMIT", "ROLLBACK"])
def test_cursor_that_is_not_read_to_its_end(writer, connect, end):
    clean = nothing_is_held(writer)
    reader = connect(OPTIONS, prepare_threshold=None)
    expected = reader.uncached(QUERY + " ORDER BY k")
    for _ in range(2):
        reader.execute(f"BEGIN; DECLARE c CURSOR FOR {QUERY} ORDER BY k")
        assert reader.rows("FETCH 1 FROM c") == expected[:1]
        writer.execute("UPDATE t2 SET k = k")
        assert reader.rows("FETCH 1 FROM c") == expected[1:2]
        reader.execute(end)
    assert reader.rows(QUERY + " ORDER BY k") == expected
    assert nothing_is_held(writer) == clean


def test_cursor_that_goes_back(writer, connect):
    reader = connect(OPTIONS, prepare_threshold=None)
    expected = reader.uncached(QUERY + " ORDER BY k")
    for hold in ("", "WITH HOLD"):
        reader.execute(f"BEGIN; DECLARE c SCROLL CURSOR {hold} FOR {QUERY} ORDER BY k")
        assert reader.rows("FETCH 2 FROM c") == expected[:2]
        assert reader.rows("FETCH BACKWARD 1 FROM c") == expected[:1]
        assert reader.rows("FETCH ABSOLUTE 3 FROM c") == expected[2:3]
        reader.execute("MOVE ABSOLUTE 0 FROM c")
        assert reader.rows("FETCH ALL FROM c") == expected
        writer.execute("UPDATE t2 SET k = k")
        reader.execute("CLOSE c; COMMIT")
