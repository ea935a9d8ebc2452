"""A portal with a name that reads a stored answer has the session refuse what it refuses while the query's own plan is open: by whatever statement, in whatever
subtransaction, and no longer. It locks the same indexes. All messages are compared with those of a session without the cache."""

import itertools

import pytest

from support.wire import errors_by_message, has_error

SETUP = """
CREATE TABLE t (k int PRIMARY KEY, v text);
INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 50) g;
CREATE TABLE beside (k int, v text);
CREATE TABLE root (k int, v text) PARTITION BY LIST (k);
CREATE TABLE leaf PARTITION OF root FOR VALUES IN (1);
INSERT INTO root VALUES (1, 'a'), (1, 'b');
CREATE TABLE euros (k int, v text);
INSERT INTO euros VALUES (1, 'a'), (2, '€');
CREATE FUNCTION empties(what text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'TRUNCATE ' || what; RETURN 1; END $$;
CREATE FUNCTION tries(what text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN EXECUTE what; RETURN 'done'; EXCEPTION WHEN object_in_use THEN RETURN SQLERRM; END $$;
"""
QUERIES = {
    "t": "SELECT v FROM t ORDER BY v",
    "t by index": "SELECT max(v) FROM t WHERE k = 7",
    "root": "SELECT v FROM root ORDER BY v",
}
CHANGES = (
    "TRUNCATE t", "TRUNCATE beside", "TRUNCATE root", "TRUNCATE leaf", "ALTER TABLE t ADD COLUMN w int", "ALTER TABLE leaf RENAME TO leaf_2",
    "DROP TABLE t", "DROP TABLE root", "DROP TABLE leaf", "DROP SCHEMA s", "ALTER TABLE t DROP CONSTRAINT t_pkey", "REINDEX TABLE t",
    "REINDEX INDEX t_pkey", "CLUSTER t USING t_pkey", "CREATE INDEX ON t (v)", "ALTER TABLE root DETACH PARTITION leaf", "VACUUM t",
    "SELECT empties('t')", "SELECT empties('leaf')", "DO $$ BEGIN PERFORM empties('t'); END $$",
    "SELECT tries('TRUNCATE t')", "SELECT tries('DROP TABLE leaf')", "SELECT tries('ALTER TABLE t ALTER v SET NOT NULL')",
)
# These touch nothing that a portal holds open, or can be done all the same.
FREE = ("TRUNCATE beside", "DROP SCHEMA s", "VACUUM t", "ALTER TABLE leaf RENAME TO leaf_2", "ALTER TABLE root DETACH PARTITION leaf")


@pytest.fixture
def both(session, wire):
    """A session with the cache, which has an answer for each query, and one without."""
    session.execute(SETUP)
    on, off = wire(), wire()
    off.query("SET pg_arrow_cache.enabled = off")
    for client in (on, off):
        client.query("SET enable_seqscan = off; SET enable_bitmapscan = off")
    return on, off


def fill(on, query):
    for _ in range(2):
        on.parse(query).bind().execute().sync()
    assert on.status() == "HIT"


def compare(both, queries, steps):
    """What each session answers to the steps, with stored answers for the queries."""
    on, off = both
    for query in queries:
        fill(on, query)
    answers = [[errors_by_message(answer) for answer in steps(client)] for client in (on, off)]
    assert answers[0] == answers[1]
    return answers[0]


@pytest.mark.parametrize("change", CHANGES)
def test_by_any_statement(both, change):
    """The portal is read to its end, or in part, and is asked once more afterwards."""
    refused = 0
    for (query, limit) in itertools.product(QUERIES.values(), (0, 1)):
        def steps(client, query=query, limit=limit):
            yield client.query("BEGIN")
            client.parse(change, name="c").parse(query).bind(portal="p").execute("p", max_rows=limit)
            yield client.bind(portal="c", name="c").execute("c").execute("p").sync()
            yield client.query("ROLLBACK")
            client.query("DEALLOCATE ALL")

        refused += has_error(compare(both, [query], steps)[1], b"55006")
    assert refused > 0 or change in FREE or "tries" in change


@pytest.mark.parametrize("change", ["TRUNCATE t", "DROP TABLE root", "ALTER TABLE t DROP CONSTRAINT t_pkey"])
def test_in_subtransactions(both, change):
    """A portal stays open after a subtransaction that has failed; what a portal of a subtransaction holds is given back with it."""
    by_table, by_index, root = QUERIES.values()

    def steps(client):
        yield client.query("BEGIN")
        yield client.query(f"DECLARE outer_1 CURSOR FOR {by_table}; DECLARE outer_2 CURSOR FOR {root}; FETCH 1 FROM outer_1")
        yield client.query("SAVEPOINT s")
        yield client.query(f"DECLARE inner_1 CURSOR FOR {by_index}; FETCH 1 FROM inner_1; SAVEPOINT s2")
        for _ in range(2):
            yield client.query(change)
            yield client.query("ROLLBACK TO s2; SELECT name FROM pg_cursors ORDER BY name")
        yield client.query("FETCH ALL FROM outer_1; FETCH ALL FROM outer_2; FETCH ALL FROM inner_1; SAVEPOINT s3")
        yield client.query("CLOSE outer_1")
        yield client.query(change)
        yield client.query("ROLLBACK TO s; CLOSE outer_2")
        yield client.query(change)
        yield client.query("ROLLBACK")

    answers = compare(both, QUERIES.values(), steps)
    assert has_error(answers[4], b"55006") and not any(has_error(answer, b"XX") for answer in answers)
    assert not has_error(answers[-2], b"55006")


@pytest.mark.parametrize("is_open_before", [False, True])
def test_a_portal_that_has_failed(both, is_open_before):
    """The server has closed what it held open."""
    query = "SELECT v FROM euros ORDER BY k"

    def steps(client):
        client.query("SET client_encoding = LATIN1; BEGIN")
        yield client.parse(query).bind(portal="c").execute("c", max_rows=1).sync()
        yield client.query("SAVEPOINT s")
        if is_open_before:
            yield client.query("TRUNCATE euros")
            yield client.query("ROLLBACK TO s")
        yield client.execute("c").sync()
        yield client.query("ROLLBACK TO s")
        yield client.query("TRUNCATE euros")
        yield client.execute("c").sync()
        client.query("ROLLBACK; RESET client_encoding")

    answers = compare(both, [query], steps)
    assert has_error(answers[2], b"55006" if is_open_before else b"22P05")
    assert has_error(answers[-4], b"22P05") and not has_error(answers[-2], b"55006")


def test_holdable_and_closed(both):
    """Nothing is held open by a portal that is gone, nor by a cursor that was kept beyond its transaction."""
    query = QUERIES["t"]

    def steps(client):
        yield client.query(f"BEGIN; DECLARE h CURSOR WITH HOLD FOR {query}; FETCH 1 FROM h; COMMIT")
        yield client.query("BEGIN; TRUNCATE t")
        yield client.query("FETCH 1 FROM h; ROLLBACK; CLOSE h")
        yield client.query(f"BEGIN; DECLARE c CURSOR FOR {query}; FETCH 1 FROM c; CLOSE c; TRUNCATE t; ROLLBACK")
        client.query("BEGIN")
        yield client.parse(query).bind().execute(max_rows=1).parse("TRUNCATE t").bind().execute().sync()
        yield client.query("ROLLBACK")

    assert not any(has_error(answer, b"55006") for answer in compare(both, [query], steps))


def with_open_portal(sessions):
    """Each session, in a transaction with a portal of a kept plan that uses an index."""
    for client, status in zip(sessions, ("HIT", "BYPASS"), strict=True):
        client.query("BEGIN")
        client.bind(portal="p", name="kept").execute("p").sync()
        assert client.status() == status
        yield client
        client.query("ROLLBACK")


@pytest.fixture
def kept(both):
    """The same sessions, which have kept plans."""
    for client in both:
        client.parse(QUERIES["t by index"], name="kept")
        for _ in range(3):
            client.bind(name="kept").execute().sync()
    assert both[0].status() == "HIT"
    return both


def test_indexes_are_locked(kept, wire):
    """Another session that builds an index anew waits for the portal, and the portal's session is refused the same."""
    other = wire()
    other.query("SET lock_timeout = '50ms'")
    for client in with_open_portal(kept):
        assert has_error(other.query("REINDEX INDEX t_pkey"), b"55P03")
        assert has_error(client.query("REINDEX INDEX t_pkey"), b"55006")


def test_while_a_catalog_is_locked(kept, wire):
    """The portal holds its table open from the start: nothing has to be read of a catalog later, in whatever statement and subtransaction."""
    other = wire()
    for client in with_open_portal(kept):
        client.query("SET LOCAL lock_timeout = '200ms'; SAVEPOINT s")
        other.query("ALTER TABLE t ALTER v SET STATISTICS 7; ALTER TABLE t ALTER v SET STATISTICS -1")
        client.query("SELECT count(*) FROM beside")
        other.query("BEGIN; LOCK TABLE pg_attribute")
        assert not has_error(client.query("SET LOCAL application_name = 'x'"), b"55P03")
        assert has_error(client.query("TRUNCATE t"), b"55006")
        other.query("COMMIT")
        client.query("ROLLBACK TO s")
        assert has_error(client.query("TRUNCATE t"), b"55006")
        closed = client.query("ROLLBACK TO s; CLOSE p")
        assert not any(kind in ("E", "N") for kind, _ in closed)
