"""A query given as text sees the snapshot of the statement that calls: neither the changes of that statement nor what
others commit meanwhile."""

import threading

import psycopg
import pytest

from support.exports import read

# The number of rows of t, counted in each way, as SQL that gives the stream as one bytea.
COUNT = "SELECT count(*) FROM t"
WAYS = {
    "query": f"arrow_cache.query('{COUNT}')",
    "fetch": f"(SELECT string_agg(piece, '') FROM arrow_cache.fetch('{COUNT}') AS piece)",
    "messages": f"(SELECT string_agg(ipc, '' ORDER BY seq) || '\\xffffffff00000000' FROM arrow_cache.messages('{COUNT}'))",
}
ways = pytest.mark.parametrize("way", WAYS)


def number(stream):
    [value] = read(bytes(stream)).column(0).to_pylist()
    return value


def numbers(session, statement, parameters=None):
    return [number(row[0]) for row in session.execute(statement, parameters, binary=True)]


@ways
@pytest.mark.parametrize("query", ["SELECT id FROM t FOR UPDATE", "SELECT * FROM (SELECT id FROM t FOR SHARE) s"])
def test_rows_are_not_locked(session, way, query):
    """The caller may be a function that only reads. So a query that locks rows is refused, as in query_to_xml."""
    session.execute("CREATE TABLE t (id int); INSERT INTO t VALUES (1)")
    with pytest.raises(psycopg.errors.SyntaxError, match="exactly one SELECT, not one that locks rows"):
        session.execute("SELECT " + WAYS[way].replace(COUNT, query))
    assert session.rows("SELECT xmax FROM t") == [("0",)]


@pytest.fixture
def table(connect):
    session = connect()
    session.execute("CREATE TABLE t (id int); INSERT INTO t VALUES (1), (2)")
    for volatility in "STABLE", "VOLATILE":
        for language, body in ("plpgsql", "BEGIN RETURN {}; END"), ("sql", "SELECT {}"):
            for way, call in WAYS.items():
                session.execute(f"CREATE FUNCTION {language}_{volatility}_{way}() RETURNS bytea LANGUAGE {language} {volatility} AS $${body.format(call)}$$")
    session.execute("CREATE FUNCTION server_stable() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM t' INTO n; RETURN n; END $$")
    session.execute("CREATE FUNCTION server_volatile() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM t' INTO n; RETURN n; END $$")
    return session


def test_the_server_itself(table):
    """The expectations below about functions are what the server does with EXECUTE."""
    assert table.rows("INSERT INTO t VALUES (3), (4), (5) RETURNING server_stable(), server_volatile()") == [(2, 3), (2, 4), (2, 5)]


@ways
@pytest.mark.parametrize("language", ["plpgsql", "sql"])
def test_in_a_stable_function(table, language, way):
    assert numbers(table, f"INSERT INTO t VALUES (3), (4), (5) RETURNING {language}_stable_{way}()") == [2, 2, 2]
    assert numbers(table, f"SELECT {language}_stable_{way}()") == [5]
    assert numbers(table, f"UPDATE t SET id = id + length({language}_stable_{way}()) * 0 RETURNING {language}_stable_{way}()") == [5] * 5
    assert numbers(table, f"DELETE FROM t RETURNING {language}_stable_{way}()") == [5] * 5
    assert numbers(table, f"SELECT {language}_stable_{way}()") == [0]


@ways
def test_in_a_volatile_function(table, way):
    """Each statement in the function has a snapshot of its own. (A SQL function may be inlined into the statement that
    calls it.)"""
    assert numbers(table, f"INSERT INTO t VALUES (3), (4), (5) RETURNING plpgsql_volatile_{way}()") == [3, 4, 5]


@ways
def test_in_the_statement_itself(table, way):
    """It sees what a subquery in its place would see."""
    assert table.rows("INSERT INTO t VALUES (3), (4) RETURNING (SELECT count(*) FROM t)") == [(2,), (2,)]
    assert numbers(table, f"INSERT INTO t VALUES (5), (6) RETURNING {WAYS[way]}") == [4, 4]
    assert numbers(table, f"WITH more AS (INSERT INTO t VALUES (7) RETURNING id) SELECT {WAYS[way]} FROM more") == [6]
    with table.transaction():
        table.execute("INSERT INTO t VALUES (8)")
        assert numbers(table, f"SELECT {WAYS[way]}") == [8]
    assert numbers(table, f"SELECT {WAYS[way]}") == [8]


@ways
def test_in_a_trigger(table, way):
    """A trigger function is volatile: it sees the statement that fires it."""
    table.execute(f"""
        CREATE TABLE seen (stream bytea);
        CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen SELECT {WAYS[way]}; RETURN NULL; END $$;
        CREATE TRIGGER look AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION look();
        INSERT INTO t VALUES (3);
    """)
    assert numbers(table, "SELECT stream FROM seen") == [3]


@ways
def test_beside_what_others_commit_meanwhile(table, connect, way):
    """A statement has one snapshot, which the query in a text inside it shares."""
    other = connect()
    other.execute("SELECT pg_advisory_lock(4711)")
    results = []
    statement = f"SELECT {WAYS[way]} FROM (SELECT pg_advisory_lock(4711) OFFSET 0) AS waited"
    waiting = threading.Thread(target=lambda: results.extend(numbers(table, statement)))
    waiting.start()
    while not other.rows("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
        pass
    other.execute("INSERT INTO t VALUES (3)")
    other.execute("SELECT pg_advisory_unlock(4711)")
    waiting.join()
    assert results == [2]
    # Its result is not served as the present state.
    assert numbers(table, f"SELECT {WAYS[way]}") == [3]
    assert table.rows(COUNT) == [(3,)]


@ways
def test_in_a_cursor(table, way):
    """A cursor has the snapshot of its opening, and the functions that it calls have it too."""
    with table.transaction():
        table.execute(f"DECLARE c NO SCROLL CURSOR FOR SELECT {WAYS[way]} FROM generate_series(1, 3)")
        assert numbers(table, "FETCH 1 FROM c") == [2]
        table.execute("INSERT INTO t VALUES (3)")
        assert numbers(table, "FETCH 2 FROM c") == [2, 2]
    assert numbers(table, f"SELECT {WAYS[way]}") == [3]


@ways
def test_a_stored_result_is_that_of_the_snapshot(table, connect, way):
    """A statement whose snapshot is older than a change does not get the newer result, and what it stores is not served
    as the newer result."""
    other = connect()
    other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    assert numbers(other, f"SELECT {WAYS[way]}") == [2]
    table.execute("INSERT INTO t VALUES (3)")
    for _ in range(2):
        assert numbers(table, f"SELECT {WAYS[way]}") == [3]
    assert table.status() == "HIT"
    assert numbers(other, f"SELECT {WAYS[way]}") == [2]
    other.execute("COMMIT")
    assert numbers(other, f"SELECT {WAYS[way]}") == [3]
