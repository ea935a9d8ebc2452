"""Another session removes rows and makes a definition that says so, after a statement has got its snapshot: the statement still sees the rows, so no part of
it may be planned by that definition."""

import pytest

from support.asking import Asking, until
from support.wire import data_rows

FORCED = {"pg_arrow_cache.debug_force_fragments": "on"}
OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on"
SETUP = """
CREATE TABLE p (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30);
CREATE INDEX of_p2 ON p2 (v);
INSERT INTO p SELECT g, g % 3 FROM generate_series(0, 29) g;
CREATE TABLE d (id int, name text);
INSERT INTO d SELECT g % 3, 'n' FROM generate_series(0, 5) g;
CREATE TABLE e (id int);
INSERT INTO e VALUES (0), (1), (2);
ANALYZE p, d, e;
"""
# The rows of e tell which snapshot sees them.
MAKE_UNIQUE = ["INSERT INTO e SELECT g % 3 FROM generate_series(0, 5) g", "DELETE FROM d WHERE ctid IN (SELECT max(ctid) FROM d GROUP BY id)", "CREATE UNIQUE INDEX ON d (id)"]
QUERIES = [
    "SELECT p.v, count(*) FROM p LEFT JOIN d ON d.id = p.v GROUP BY p.v ORDER BY 1", "SELECT p.v, count(*) FROM p JOIN d ON d.id = p.v GROUP BY p.v ORDER BY 1",
    "SELECT count(*) FROM p LEFT JOIN d ON d.id = p.v", "SELECT p.v, count(*), now() <> '2020-01-01' FROM p LEFT JOIN d ON d.id = p.v GROUP BY p.v ORDER BY 1",
    "SELECT p.v, count(*) FROM p LEFT JOIN e ON e.id = p.v LEFT JOIN d ON d.id = p.v GROUP BY p.v ORDER BY 1",
    "SELECT p.v, count(*), now() <> '2020-01-01' FROM p LEFT JOIN e ON e.id = p.v LEFT JOIN d ON d.id = p.v GROUP BY p.v ORDER BY 1",
    # The join is one of the combined query.
    "SELECT s.v, s.c, d.name FROM (SELECT v, count(*) AS c FROM p GROUP BY v) s LEFT JOIN d ON d.id = s.v ORDER BY 1",
]


@pytest.fixture
def writer(session):
    session.execute(SETUP)
    return session


def make_unique(writer):
    for statement in MAKE_UNIQUE:
        writer.execute(statement)


def runs(session):
    return session.rows("SELECT fragment_runs FROM arrow_cache.stats")[0][0]


@pytest.mark.parametrize("query", QUERIES)
def test_cursor(writer, connect, query):
    reader = connect(OPTIONS, prepare_threshold=None)
    expected = reader.uncached(query)
    with reader.transaction():
        reader.execute(f"DECLARE c NO SCROLL CURSOR FOR {query}")
        make_unique(writer)
        assert reader.rows("FETCH ALL FROM c") == expected


def test_cursor_of_stored_parts_after_a_change_of_settings(writer, connect):
    reader = connect(OPTIONS, prepare_threshold=None)
    expected = reader.rows(QUERIES[0])
    with reader.transaction():
        reader.execute(f"DECLARE c NO SCROLL CURSOR FOR {QUERIES[0]}")
        make_unique(writer)
        reader.execute("SET LOCAL datestyle = 'German'")
        assert reader.rows("FETCH ALL FROM c") == expected


def test_cursor_that_outlives_its_transaction(writer, connect):
    reader = connect(OPTIONS, prepare_threshold=None)
    expected = reader.uncached(QUERIES[0])
    with reader.transaction():
        reader.execute(f"DECLARE c CURSOR WITH HOLD FOR {QUERIES[0]}")
        make_unique(writer)
    assert reader.rows("FETCH ALL FROM c") == expected


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("portal", ["", "p"])
def test_portal(writer, wire, connect, query, portal):
    expected = [[str(value).encode() for value in row] for row in connect().uncached(query.replace("now() <> '2020-01-01'", "'t'::text"))]
    client = wire(**FORCED)
    client.query("BEGIN")
    client.parse(query, "s").bind(portal=portal, name="s").step("2", "E")
    make_unique(writer)
    assert data_rows(client.execute(portal).step("C", "E")) == expected


def test_validated_constraint(writer, connect):
    writer.execute("INSERT INTO p VALUES (1, 500), (2, 500); ALTER TABLE p1 ADD CONSTRAINT small CHECK (v < 100) NOT VALID")
    query = "SELECT k, count(*) FROM p WHERE v > 200 GROUP BY k ORDER BY k"
    reader = connect(f"{OPTIONS} -c constraint_exclusion=on", prepare_threshold=None)
    with reader.transaction():
        reader.execute(f"DECLARE c NO SCROLL CURSOR FOR {query}")
        writer.execute("DELETE FROM p WHERE v = 500")
        writer.execute("ALTER TABLE p1 VALIDATE CONSTRAINT small")
        assert reader.rows("FETCH ALL FROM c") == [(1, 1), (2, 1)]


def waits_in_the_middle(writer, other, reader, query):
    """The query, during whose planning the definition is made: it waits for an index of the second leaf."""
    with other.transaction():
        other.execute("REINDEX INDEX of_p2")
        asking = Asking(reader, query, prepare=False)
        until(writer, reader, "wait_event_type = 'Lock'")
        make_unique(writer)
    return asking.result()


@pytest.mark.parametrize("query", QUERIES[:6])
def test_statement(writer, other, connect, query):
    """It may see the rows from before or from after the change."""
    reader = connect(OPTIONS, prepare_threshold=None)
    before = reader.uncached(query)
    combined = runs(writer)
    rows = waits_in_the_middle(writer, other, reader, query)
    assert rows in (before, reader.uncached(query))
    assert reader.rows(query) == reader.uncached(query)
    assert runs(writer) > combined


@pytest.mark.parametrize("query", QUERIES[:6])
def test_statement_under_an_old_snapshot(writer, other, connect, query):
    """As the server's own plan, which is made under the definitions of its time."""
    reader = connect(OPTIONS, prepare_threshold=None)
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reader.execute("SELECT FROM d LIMIT 1")
    rows = waits_in_the_middle(writer, other, reader, query)
    plain = reader.uncached(query)
    reader.execute("COMMIT")
    assert rows == plain


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize("query", QUERIES)
def test_prepared_statement(writer, other, connect, query, level):
    """EXECUTE takes its snapshot before its query is planned. All parts are planned under the same definitions."""
    reader = connect(OPTIONS, prepare_threshold=None)
    before = reader.uncached(query)
    reader.execute(f"PREPARE q AS {query}")
    reader.execute(f"BEGIN ISOLATION LEVEL {level}")
    rows = waits_in_the_middle(writer, other, reader, "EXECUTE q")
    reader.execute("COMMIT")
    assert rows in (before, reader.uncached(query), single_names(before, rows))


def single_names(before, rows):
    """What a plan gives that finds one row of d for each id, as it is now, where the snapshot sees two."""
    return [tuple(value / 2 if type(value) is int and place == len(row) - 1 - (type(row[-1]) is bool) else value for place, value in enumerate(row)) for row in before]


def test_an_error_leaves_nothing(writer, other, connect):
    reader = connect(OPTIONS, prepare_threshold=None)
    for query in ["SELECT count(*) / (count(*) - 30) FROM p LEFT JOIN d ON d.id = p.v", QUERIES[0]]:
        writer.execute("DROP INDEX IF EXISTS d_id_idx; TRUNCATE d; INSERT INTO d SELECT g % 3, 'n' FROM generate_series(0, 5) g")
        answer = waits_in_the_middle(writer, other, reader, query)
        assert answer == "22012" or len(answer) == 3
        for _ in range(20):
            assert reader.rows(QUERIES[4]) == reader.uncached(QUERIES[4])


def test_explain(writer, other, connect):
    reader = connect(OPTIONS, prepare_threshold=None)
    lines = [line for line, in waits_in_the_middle(writer, other, reader, f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {QUERIES[0]}")]
    assert any("on p1" in line for line in lines)


def test_indexes_are_locked_at_the_start(writer, other, connect):
    """Who rebuilds one afterwards waits for the statement, and not the statement for them."""
    reader = connect(f"{OPTIONS} -c lock_timeout=200ms", prepare_threshold=None)
    expected = reader.uncached(QUERIES[0])
    with reader.transaction():
        reader.execute(f"DECLARE c NO SCROLL CURSOR FOR {QUERIES[0]}")
        rebuilding = Asking(other, "REINDEX INDEX of_p2")
        until(writer, other, "wait_event_type = 'Lock'")
        assert reader.rows("FETCH ALL FROM c") == expected
    rebuilding.thread.join()
