"""The clock in the columns of what is exported as Arrow: the clock-free part is stored, and the clock is applied to it at each export. Each stream
stands beside that of a session without the cache, in the same transaction, in which the time stands still: its bytes, or its error."""

import psycopg
import pytest
from test_shown_clock import COMPUTED_BELOW, REFUSED, SERVED, SERVED_FROM_BELOW, world  # noqa: F401

from support.agreement import agree_at_once
from support.exports import WAYS, by_copy, by_fetch, by_messages, by_query, entries, read, rows_of

AT_ONCE = {way: WAYS[way] for way in ("query", "copy")}
IN_PARTS = {"fetch": by_fetch, "messages": by_messages}


def stream(session, way, query, options=None):
    """The bytes of an export, or its error; and its status."""
    try:
        with session.transaction():
            return way(session, query, options), session.status()
    except psycopg.Error as error:
        return (error.sqlstate, error.diag.message_primary), "ERROR"


def exported_alike(session, way, query, options=None, may_leave_out=False):
    """Compares an export with the same one without the cache. Returns the status of the former. `may_leave_out`: another plan need not compute the columns of
    rows that are not read, and so need not raise their errors."""
    return agree_at_once(session, lambda session: stream(session, way, query, options),
                         excused=lambda plain: may_leave_out and isinstance(plain, tuple))


@pytest.mark.parametrize("way", AT_ONCE)
@pytest.mark.parametrize("query", [*SERVED, *SERVED_FROM_BELOW])
def test_the_clock_is_applied_to_a_stored_answer(server, at, world, way, query):  # noqa: F811
    reader, way = at(), AT_ONCE[way]
    server.set("2026-03-10 11:00:00.25")
    assert exported_alike(reader, way, query) == "MISS"
    server.set("2026-03-10 11:00:03.5")
    assert exported_alike(reader, way, query) == "HIT"
    world.execute("UPDATE w SET v = v + 1, at = at - interval '1 hour'")
    world.execute("UPDATE p SET at = at - interval '1 hour'")
    assert exported_alike(reader, way, query) == "STALE"
    server.set("2026-03-11 00:00:00.1")
    exported_alike(reader, way, query)
    assert exported_alike(reader, way, query) == "HIT"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", [query for query in REFUSED if "random" not in query] + COMPUTED_BELOW)
def test_what_is_refused_is_executed_as_ever(at, world, way, query):  # noqa: F811
    world.execute("CREATE VIEW shown AS SELECT id, name::int AS bad FROM w; UPDATE w SET v = 0 WHERE id = 5")
    reader = at()
    if "clock_timestamp" in query:
        for _ in range(2):
            stream(reader, WAYS[way], query)
            assert reader.status() == "BYPASS"
        return
    for _ in range(2):
        assert exported_alike(reader, WAYS[way], query) in ("BYPASS", "ERROR")


@pytest.mark.parametrize("way", IN_PARTS)
@pytest.mark.parametrize("query", [
    "SELECT now() AS time, id, v FROM w ORDER BY id",
    "SELECT now() AS time, name, count(*) FROM w GROUP BY name ORDER BY name",
    "SELECT id, CASE WHEN expires < now() THEN 'expired' ELSE name END AS state FROM w ORDER BY id",
    "SELECT id, now() - at FROM w ORDER BY id",
    "SELECT id, now()::text FROM w ORDER BY id",
    "SELECT id, statement_timestamp() FROM w ORDER BY id",
    "SELECT now() AS time, to_char(at, 'HH24') FROM w ORDER BY id",
    "SELECT now() AS time, 10 / (v + 1) FROM w ORDER BY id",
])
def test_batches_are_served(server, at, world, way, query):  # noqa: F811
    reader, way = at(), IN_PARTS[way]
    found = []
    for second in range(3):
        server.set(f"2026-03-10 11:00:0{second}.5")
        found.append(exported_alike(reader, way, query, {"batch_rows": 3}))
    assert found == ["MISS", "HIT", "HIT"]


@pytest.mark.parametrize("way", ["fetch", "messages", "copy"])
def test_a_limit_of_rows(server, at, world, way):  # noqa: F811
    """What is not delivered need not be computed, and what is not read to its end is not stored."""
    reader, way = at(), WAYS[way]
    shown, failing = "SELECT now() AS time, id FROM w ORDER BY id", "SELECT id, now() - at FROM w ORDER BY id"
    world.execute("UPDATE w SET at = 'infinity' WHERE id = 7")
    for limit in (0, 1, 6, 7, 20, 30):
        for query in (shown, failing, "SELECT now(), 10 / (id - 9) FROM w ORDER BY id", "SELECT id, now()::text FROM w ORDER BY id"):
            for _ in range(2):
                exported_alike(reader, way, query, {"limit": limit}, may_leave_out=True)
    exported_alike(reader, way, shown)
    assert exported_alike(reader, way, shown, {"limit": 5}) == "HIT"
    assert exported_alike(reader, way, failing, {"limit": 30}) == "ERROR"


def test_values(server, at, world):  # noqa: F811
    """Parameters of query()."""
    reader = at()

    def way(values):
        kinds = {int: "int", bool: "bool", str: "text"}
        marks = "".join(f", %s::{kinds[type(value)]}" for value in values)
        return lambda session, query, options: session.execute(f"SELECT arrow_cache.query(%s{marks})", [query, *values], binary=True).fetchone()[0]

    for query, sets in [
        ("SELECT id, now() - at FROM w WHERE id > $1 ORDER BY id", [(3,), (5,)]),
        ("SELECT id, CASE WHEN at + $1::int * interval '1 hour' < now() THEN $2::text ELSE name END FROM w ORDER BY id", [(3, "x"), (5, "y")]),
        ("SELECT count(*), now() > $1::timestamptz FROM w WHERE flag = $2::bool", [("2026-01-01", True), ("2026-04-01", False)]),
        ("SELECT id, now() + $1::interval FROM w WHERE at > CURRENT_DATE - $2::int ORDER BY id", [("1 day", 100), ("2 days", 70)]),
    ]:
        for number in range(3):
            server.set(f"2026-03-10 11:00:0{number}.5")
            for values in sets:
                assert exported_alike(reader, way(values), query) == ("HIT" if number > 0 else "MISS"), (query, values)
    for number in range(2):
        # The planner leaves the division out, or computes it.
        for value in (1, 2):
            exported_alike(reader, way([value]), "SELECT CASE WHEN $1::int = 1 THEN now() ELSE now() + (1 / ($1::int - 2)) * interval '1 day' END, id FROM w ORDER BY id")


def test_columns_of_several_batches(server, at, world):  # noqa: F811
    world.execute("INSERT INTO w SELECT g, 'row ' || g, g, timestamptz '2026-01-01', NULL, g % 2 = 0 FROM generate_series(21, 20000) g")
    reader = at()
    query = "SELECT now() AS time, id, now() - at AS age, name FROM w ORDER BY id"
    # COPY and query() ask for the same answer.
    assert [exported_alike(reader, way, query) for way in (by_query, by_query, by_copy)] == ["MISS", "HIT", "HIT"]
    assert read(by_copy(reader, query)).num_rows == 20000
    for options in ({"batch_rows": 999}, {"columns": ["id", "time"]}, {"compression": "lz4"}):
        assert exported_alike(reader, by_copy, query, options) == "HIT"


def test_own_writes_are_seen(at, world):  # noqa: F811
    reader = at()
    query = "SELECT now() AS time, count(*), sum(v) FROM w"
    for way in AT_ONCE.values():
        way(reader, query), way(reader, query)
        assert reader.status() == "HIT"
        reader.execute("BEGIN")
        reader.execute("DELETE FROM w WHERE id > 5")
        assert rows_of(read(way(reader, query)))[0][1] == 5
        assert reader.status() == "BYPASS"
        reader.execute("ROLLBACK")
        assert rows_of(read(way(reader, query)))[0][1] == 20
        assert reader.status() == "HIT"


def test_roles_and_row_security(at, world):  # noqa: F811
    world.execute("DROP ROLE IF EXISTS watcher; CREATE ROLE watcher LOGIN; GRANT SELECT (id, at) ON w TO watcher;"
                  "ALTER TABLE w ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON w TO watcher USING (id < 4);"
                  "GRANT USAGE ON SCHEMA arrow_cache TO watcher; GRANT EXECUTE ON FUNCTION arrow_cache.query(text) TO watcher")
    owner, watcher = at(), at(user="watcher")
    query = "SELECT id, now() - at AS age FROM w ORDER BY id"
    for way in AT_ONCE.values():
        for _ in range(2):
            assert len(read(way(owner, query))) == 20
            assert len(read(way(watcher, query))) == 3
        assert owner.status() == "HIT"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            way(watcher, "SELECT now(), name FROM w")
    world.execute("REVOKE SELECT ON w FROM watcher; REVOKE SELECT (id, at) ON w FROM watcher")
    for way in AT_ONCE.values():
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            way(watcher, query)


def test_errors_come_as_without_the_cache(at, world):  # noqa: F811
    reader = at()
    queries = ["SELECT now() - at FROM w ORDER BY id", "SELECT now(), 10 / v FROM w ORDER BY id",
               "SELECT CASE WHEN now() > at THEN 10 / v ELSE 0 END FROM w", "SELECT extract(epoch FROM now())::int2, id FROM w"]
    for change in ("SELECT 1", "UPDATE w SET at = 'infinity' WHERE id = 7", "UPDATE w SET at = now(), v = 0 WHERE id = 7"):
        world.execute(change)
        for way in AT_ONCE.values():
            for query in queries:
                exported_alike(reader, way, query)
                exported_alike(reader, way, query)


def test_inside_of_functions_and_blocks(at, world):  # noqa: F811
    """An export in a function is one of its own. After an error in a block, what was stored until then is gone, and the next one is right."""
    world.execute("""
        CREATE FUNCTION inside(query text) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN RETURN arrow_cache.query(query); END $$;
        CREATE FUNCTION caught(query text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM arrow_cache.query(query); RETURN 'done';
            EXCEPTION WHEN OTHERS THEN RETURN SQLERRM; END $$;
        UPDATE w SET at = 'infinity' WHERE id = 20""")
    reader = at()
    query = "SELECT now() AS time, id FROM w ORDER BY id"
    for expected in ("MISS", "HIT"):
        reader.execute("BEGIN")
        got = reader.execute("SELECT inside(%s)", [query], binary=True).fetchone()[0]
        assert reader.status() == expected
        plain = reader.uncached("SELECT arrow_cache.query(%s)", [query], binary=True)[0][0]
        reader.execute("COMMIT")
        assert got == plain
    for _ in range(3):
        assert "infinite" in reader.rows("SELECT caught('SELECT id, now() - at FROM w ORDER BY id')")[0][0]
        assert reader.rows("SELECT caught(%s)", [query]) == [("done",)]
    assert exported_alike(reader, by_query, "SELECT id, now() - at FROM w ORDER BY id") in ("MISS", "HIT", "ERROR")
    # Several in one statement, and one for each row of another.
    rows = reader.rows("SELECT g, arrow_cache.query('SELECT now(), ' || g || ' + id FROM w ORDER BY id') FROM generate_series(1, 3) g", binary=True)
    assert [rows_of(read(bytes(ipc)))[0][1] for _, ipc in rows] == [2, 3, 4]


def test_a_cursor_over_fetch(server, at, world):  # noqa: F811
    """Other statements run between the batches."""
    reader = at()
    query = "SELECT now() AS time, id, v FROM w ORDER BY id"
    for number in range(3):
        server.set(f"2026-03-10 11:00:0{number}.5")
        found = []
        for enabled in ("on", "off"):
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            reader.execute(f"SET LOCAL pg_arrow_cache.enabled = {enabled}")
            reader.execute(f"""DECLARE c BINARY CURSOR FOR SELECT arrow_cache.fetch($q${query}$q$, '{{"batch_rows": 4}}')""")
            pieces = [reader.rows("FETCH 2 FROM c", binary=True)]
            reader.execute("SET LOCAL timezone = 'Asia/Tokyo'")
            world.execute("UPDATE w SET v = v + 1")
            reader.execute("SAVEPOINT s")
            pieces.append(reader.rows("FETCH 2 FROM c", binary=True))
            reader.execute("ROLLBACK TO s")
            pieces.append(reader.rows("FETCH ALL FROM c", binary=True))
            reader.execute("COMMIT")
            found.append([row[0] for part in pieces for row in part])
        tables = [read(b"".join(pieces)) for pieces in found]
        assert [table.drop(["time", "v"]).to_pylist() for table in tables] == [[{"id": g} for g in range(1, 21)]] * 2
        # The clock stands still, and each transaction saw one state of the table.
        assert len({row["time"] for table in tables for row in table.to_pylist()}) == 1


def test_copy_through_each_protocol(server, at, world):  # noqa: F811
    from support.wire import Wire, types
    clients = [Wire(server.dsn()) for _ in range(2)]
    clients[1].query("SET pg_arrow_cache.enabled = off")
    text = "COPY (SELECT now() AS time, id, now() - at FROM w ORDER BY id) TO STDOUT (FORMAT arrow)"
    for number in range(3):
        server.set(f"2026-03-10 11:00:0{number}.5")
        simple = [client.query(text) for client in clients]
        bound = [client.parse(text).bind().execute().sync() for client in clients]
        assert simple[0] == simple[1]
        assert bound[0] == bound[1]
        assert "E" not in types(simple[0]) + types(bound[0])
    assert clients[0].status() == "HIT"
    for client in clients:
        client.close()


def test_counts_and_entries(at, world):  # noqa: F811
    """An export counts once, and its part is stored once."""
    reader, other = at(), at("-c pg_arrow_cache.enabled=off")
    query = "SELECT now() AS time, name, count(*) FROM w GROUP BY name ORDER BY name"

    def counts():
        return other.rows("SELECT hits, misses, bypasses FROM arrow_cache.stats")[0]

    for way in AT_ONCE.values():
        reader.execute("SELECT arrow_cache.flush()")
        for expected in ([0, 1, 0], [1, 0, 0], [1, 0, 0]):
            before = counts()
            way(reader, query)
            assert [now - then for now, then in zip(counts(), before)] == expected
        assert entries(reader) == 1


@pytest.mark.parametrize("query", ["SELECT now() AS time, id FROM w ORDER BY id", "SELECT id FROM w ORDER BY id"])
def test_copy_in_the_formats_of_the_server_is_a_hit(at, world, query):  # noqa: F811
    reader = at()
    reader.execute(query), reader.execute(query)
    assert reader.status() == "HIT"
    for options in ("", "(FORMAT csv)", "(FORMAT binary)"):
        with reader.cursor().copy(f"COPY ({query}) TO STDOUT {options}") as copy:
            assert b"".join(copy)
        assert (reader.status(), reader.reason()) == ("HIT", None)
