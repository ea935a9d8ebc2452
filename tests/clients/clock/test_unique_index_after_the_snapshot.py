"""A snapshot that sees duplicates which were removed before a unique index was made: the index proves nothing of its rows, so none of them may be left out
where the clock is applied to a part that is read with a limit of rows."""

import pytest

from support.exports import by_copy, by_fetch, by_messages, by_query, read, rows_of
from support.wire import data_rows

SETUP = """
CREATE TABLE d (id int, name text);
INSERT INTO d SELECT 1, 'a' || g FROM generate_series(1, 5) g;
INSERT INTO d VALUES (2, 'c');
ANALYZE d
"""
MAKE_UNIQUE = ["DELETE FROM d WHERE id = 1 AND name <> 'a1'", "CREATE UNIQUE INDEX ON d (id)"]
QUERY = "SELECT name, now() - now() FROM d WHERE id = 1"
# What a cursor is given the clock for: a row that nothing can update, and columns that are the same whenever they are computed.
SETTLED = "SELECT name, now() <> '2020-01-01' FROM d WHERE id = 1 ORDER BY name"
NAMES = ["a1", "a2", "a3", "a4", "a5"]


@pytest.fixture
def reader(session, connect):
    """A session in a transaction with an old snapshot."""
    session.execute(SETUP)
    reader = connect(prepare_threshold=None)
    with reader.transaction(force_rollback=True):
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT FROM d LIMIT 0")
        for statement in MAKE_UNIQUE:
            session.execute(statement)
        yield reader


def names(rows):
    return sorted(row[0] for row in rows)


def test_bound(session, wire):
    session.execute(SETUP)
    client = wire()
    client.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
    client.query("SELECT FROM d LIMIT 0")
    for statement in MAKE_UNIQUE:
        session.execute(statement)
    client.parse(QUERY.replace("= 1", "= $1"), types=[23])
    for limit in (0, 5, 10):
        assert names(data_rows(client.bind([b"1"]).execute("", limit).sync())) == [name.encode() for name in NAMES]
    # The first Execute asks for as many rows as the index seems to allow.
    client.bind([b"1"], portal="p")
    rows = [row for limit in (1, 0) for row in data_rows(client.execute("p", limit).step("s", "C", "E"))]
    client.sync()
    assert names(rows) == [name.encode() for name in NAMES]


def test_prepared_in_sql(reader):
    reader.execute(f"PREPARE q (int) AS {QUERY.replace('= 1', '= $1')}")
    for mode in ("force_custom_plan", "force_generic_plan"):
        reader.execute(f"SET LOCAL plan_cache_mode = {mode}")
        for _ in range(2):
            assert names(reader.rows("EXECUTE q (1)")) == NAMES


@pytest.mark.parametrize("counts", [["ALL"], ["5"], ["1", "2", "ALL"]])
@pytest.mark.parametrize("options", ["NO SCROLL CURSOR", "CURSOR", "SCROLL CURSOR"])
def test_cursor(reader, options, counts):
    reader.execute(f"DECLARE c {options} FOR {SETTLED}")
    rows = [row for count in counts for row in reader.rows(f"FETCH {count} FROM c")]
    assert names(rows) == NAMES


def test_cursor_that_outlives_its_transaction(session, connect):
    session.execute(SETUP)
    reader = connect(prepare_threshold=None)
    with reader.transaction():
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT FROM d LIMIT 0")
        for statement in MAKE_UNIQUE:
            session.execute(statement)
        reader.execute(f"DECLARE c NO SCROLL CURSOR WITH HOLD FOR {SETTLED}")
    assert names(reader.rows("FETCH ALL FROM c")) == NAMES


@pytest.mark.parametrize("export", [by_query, by_copy, by_fetch, by_messages])
def test_export(reader, export):
    query = "SELECT id, name, now() <> '2020-01-01' AS seen FROM d WHERE id = 1"
    assert sorted(row[1] for row in rows_of(read(export(reader, query)))) == NAMES


def test_the_index_proves_for_those_who_see_it(session, wire):
    """Otherwise the tests above would show nothing: what is read up to the proven number of rows is served."""
    session.execute(SETUP)
    for statement in MAKE_UNIQUE:
        session.execute(statement)
    client = wire()
    client.parse(QUERY.replace("= 1", "= $1"), types=[23])
    for _ in range(2):
        assert names(data_rows(client.bind([b"1"]).execute("", 1).sync())) == [b"a1"]
    assert client.status() == "HIT"
