"""The clock in the columns of statements that are bound, prepared or cursors. Each script of messages is played to a session with the cache and to
one without it, at the same time, and what the server answers is compared: descriptions, bytes, tags and errors."""

import struct

import pytest
from test_shown_clock import REFUSED, SERVED, world  # noqa: F401

from support.sweeps import thinned
from support.wire import Wire, data_rows, types

INT4, TEXT, TIMESTAMPTZ, BOOL = 23, 25, 1184, 16


@pytest.fixture
def both(server, world):  # noqa: F811
    """A client with the cache and one without."""
    clients = [Wire(server.dsn()) for _ in range(2)]
    clients[1].query("SET pg_arrow_cache.enabled = off")
    yield clients
    for client in clients:
        client.close()


def played_alike(both, script, told=lambda messages: messages, may_leave_out=False):
    """Plays a script to both, and compares what `told` tells of the messages. Returns the status of its last statement. `may_leave_out`: another plan need not
    compute the columns of rows that are not read, and so need not raise their errors."""
    on, off = both
    ours, status = script(on), on.status()
    plain = script(off)
    assert told(settled(ours)) == told(settled(plain)) or (may_leave_out and "E" in str(types(plain)))
    return status


def shape(messages):
    """All but the values of the rows: under settings that change while rows are read, it is the plan that tells when they are computed."""
    if messages and isinstance(messages[0], list):
        return [shape(part) for part in messages]
    return [(message.type, b"" if message.type == "D" else message.body) for message in messages]


def counted(both, script):
    """The same. Returns how many hits it had, too."""
    before = hits(both[1])
    status = played_alike(both, script)
    return hits(both[1]) - before, status


def settled(messages):
    """Without the rows that were sent before an error: the server may compute the columns of all rows before it sends the first (docs/limits.md)."""
    if messages and isinstance(messages[0], list):
        return [settled(part) for part in messages]
    kept = []
    for message in messages:
        if message.type == "E":
            while kept and kept[-1].type == "D":
                kept.pop()
        kept.append(message)
    return kept


def hits(client):
    return int(client.value("SELECT hits FROM arrow_cache.stats"))


def value(text):
    return None if text is None else str(text).encode()


def bound(query, values=(), kinds=(), max_rows=0, result_format=0):
    """Parsed, bound, described and executed without a name."""
    def script(client):
        client.parse(query, types=kinds).bind([value(v) for v in values], result_format=result_format).describe()
        messages = client.execute(max_rows=max_rows).sync()
        return messages
    return script


def in_parts(query, sizes, values=(), kinds=(), portal="", between=None):
    """Read by several Executes in a transaction."""
    def script(client):
        messages = client.query("BEGIN")
        client.parse(query, types=kinds).bind([value(v) for v in values], portal=portal).describe(portal)
        for number, size in enumerate(sizes):
            if between and number == between[0]:
                client.parse(between[1], "between").bind(portal="between", name="between").execute("between")
            client.execute(portal, size)
        messages += client.sync()
        return messages + client.query("ROLLBACK" if between else "COMMIT") + client.query("DEALLOCATE ALL")
    return script


def simple(*statements):
    return lambda client: [client.query(statement) for statement in statements]


@pytest.mark.parametrize("result_format", [0, 1])
@pytest.mark.parametrize("query", SERVED)
def test_bound_statements(server, both, world, query, result_format):  # noqa: F811
    server.set("2026-03-10 11:00:00.25")
    script = bound(query, result_format=result_format)
    assert counted(both, script)[1] == "MISS"
    server.set("2026-03-10 11:00:03.5")
    assert counted(both, script) == (1, "HIT")
    world.execute("UPDATE w SET v = v + 1, at = at - interval '1 hour'")
    world.execute("UPDATE p SET at = at - interval '1 hour'")
    assert counted(both, script) == (0, "STALE")
    server.set("2026-03-11 00:00:00.1")
    played_alike(both, script)
    assert counted(both, script) == (1, "HIT")


@pytest.mark.parametrize("query", [query for query in REFUSED if "random" not in query])
def test_refused(both, query):
    for _ in range(2):
        assert counted(both, bound(query)) == (0, "BYPASS")
        played_alike(both, in_parts(query, [2, 0]))
        played_alike(both, simple("BEGIN", f"DECLARE c CURSOR FOR {query}", "FETCH 2 FROM c", "FETCH ALL FROM c", "COMMIT"))


WITH_VALUES = [
    ("SELECT id, now() - at FROM w WHERE id > $1 ORDER BY id", [(3,), (5,)], (INT4,)),
    ("SELECT now() AS time, name, sum(v) FROM w WHERE v > $1 GROUP BY name ORDER BY name", [(2,), (4,)], (INT4,)),
    ("SELECT id, CASE WHEN at + $1::int * interval '1 hour' < now() THEN $2 ELSE name END FROM w ORDER BY id", [(3, "x"), (5, "y")], (INT4, TEXT)),
    ("SELECT id, now() - $1, v + $2 FROM w ORDER BY id", [("2026-01-01 00:00:00+00", 1), ("2025-01-01 00:00:00+00", 7)], (TIMESTAMPTZ, INT4)),
    ("SELECT count(*), now() > $1 FROM w WHERE flag = $2", [("2026-01-01 00:00:00+00", "t"), (None, "f")], (TIMESTAMPTZ, BOOL)),
    ("SELECT id, COALESCE($1, now()) FROM w ORDER BY id LIMIT $2", [(None, 3), ("2025-01-01 00:00:00+00", 4)], (TIMESTAMPTZ, INT4)),
]


@pytest.mark.parametrize("mode", ["auto", "force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("query, sets, kinds", WITH_VALUES)
def test_values(server, both, mode, query, sets, kinds):
    for client in both:
        client.query(f"SET plan_cache_mode = {mode}")
        client.parse(query, "named", kinds).sync()
    for round_ in range(8):
        for values in sets:
            server.set(f"2026-03-10 11:00:{round_:02}.5")

            def script(client, values=values):
                return client.bind([value(v) for v in values], name="named").describe().execute().sync()

            found = counted(both, script)
            if round_ > 0:
                assert found == (1, "HIT"), (round_, values)
            for _ in range(2):
                found = counted(both, bound(query, values, kinds))
            assert mode == "force_generic_plan" or found == (1, "HIT")


def test_prepared_in_sql(server, both):
    for client in both:
        client.query("PREPARE a(int) AS SELECT id, now() - at FROM w WHERE id > $1 ORDER BY id")
        client.query("PREPARE b AS SELECT now() AS time, count(*) FROM w")
    for number in range(8):
        server.set(f"2026-03-10 12:00:{number:02}.5")
        for text in ("EXECUTE a(3)", "EXECUTE b"):
            # Definitions have changed since the plan was made, at the end of this loop: the first execution asks for a new one.
            counted(both, simple(text))
            found = counted(both, simple(text))
            # By then the server has gone over to a plan for all values.
            if number > 3:
                assert found == (1, "HIT"), (number, text)
        played_alike(both, simple("EXECUTE a(18)"))
        for options in ("COSTS OFF", "COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF"):
            shown = data_rows(both[0].query(f"EXPLAIN ({options}) EXECUTE b"))
            assert [b"Result" in shown[0][0], b"Custom Scan (ArrowCache)" in shown[1][0]] == [True, True], shown
        played_alike(both, simple("CREATE TEMP TABLE kept AS EXECUTE a(3)", "SELECT kept::text FROM kept", "DROP TABLE kept"))


@thinned("query, sizes, portal", SERVED, [[3, 3, 0], [1, 1], [20], [20, 1], [21], [500], [0], [19, 5]], ["", "C_1"], one_in=4)
def test_read_in_parts(server, both, world, query, sizes, portal):  # noqa: F811
    server.set("2026-03-10 11:00:00.25")
    script = in_parts(query, sizes, portal=portal)
    played_alike(both, script)
    played_alike(both, bound(query))
    server.set("2026-03-10 11:00:03.5")
    played_alike(both, script)
    world.execute("UPDATE w SET at = 'infinity' WHERE id = 12; UPDATE p SET at = 'infinity' WHERE at = (SELECT max(at) FROM p)")
    for _ in range(3):
        played_alike(both, script, may_leave_out=True)
        played_alike(both, bound(query), may_leave_out="LIMIT" in query or "DISTINCT ON" in query)


@pytest.mark.parametrize("query", ["SELECT now() AS time, id, v FROM w ORDER BY id", "SELECT now() AS time, name, count(*) FROM w GROUP BY name",
                                   "SELECT id, CASE WHEN expires < now() THEN 'expired' ELSE name END FROM w"])
def test_columns_that_cannot_fail_are_served_in_parts(server, both, query):
    script = in_parts(query, [3, 3, 0])
    played_alike(both, script)
    # What was read in parts is stored.
    assert counted(both, script)[0] == 1
    if "ORDER" in query or "GROUP" in query:
        # The current row of the others may be updated by another statement.
        assert counted(both, in_parts(query, [1, 1], portal="C_2"))[0] == 1


def test_columns_that_may_fail_are_served_however_they_are_read(server, both):
    query = "SELECT id, now() - at FROM w ORDER BY id"
    for sizes, expected in (([3, 0], 0), ([500], 1), ([0], 1), ([20, 1], 1), ([21], 1), ([19, 3], 1), ([3], 1)):
        assert counted(both, in_parts(query, sizes))[0] == expected, sizes


def test_what_is_not_read_to_its_end_is_not_stored(server, both):
    query = "SELECT id, now() - at FROM w ORDER BY id"
    for sizes, expected in (([3], 0), ([19], 0), ([20], 0), ([21], 0), ([0], 1)):
        assert counted(both, in_parts(query, sizes))[0] == expected, sizes


def test_one_row_of_a_lookup_is_stored_and_served(server, both):
    """As asyncpg's fetchval() and fetchrow() read."""
    for query in ("SELECT now() - max(at), count(*) FROM w", "SELECT now(), sum(v) FROM w WHERE id < 3"):
        for _ in range(2):
            played_alike(both, bound(query, max_rows=1))
        assert counted(both, bound(query, max_rows=1)) == (1, "HIT")


@thinned("query, number, setting", [
    "SELECT now()::text, to_char(at, 'DD HH24'), id FROM w ORDER BY id",
    "SELECT now()::text, id FROM w",
    "SELECT now() AS time, id, v FROM w",
    "SELECT to_char(now(), 'HH24:MI:SS TZ'), id, at::text FROM w ORDER BY v, id",
    "SELECT date_trunc('day', at), now(), count(*) FROM w GROUP BY 1 ORDER BY 1",
    "SELECT statement_timestamp(), id FROM w",
], [0, 1, 2], ["SET LOCAL timezone = 'Asia/Tokyo'", "SET LOCAL datestyle = 'German'", "SET LOCAL pg_arrow_cache.enabled = off", "SET LOCAL ROLE pg_monitor",
               "SET LOCAL row_security = off", "INSERT INTO w(id, at) VALUES (99, now())", "CREATE TABLE another (x int)", "SELECT 1"], one_in=3)
def test_changes_between(server, both, query, number, setting):
    # Those of the first row hold, and the plan tells when the others are computed.
    told = shape if number > 0 and ("timezone" in setting or "datestyle" in setting) else list
    for sizes in ([0, 0], [3, 3, 0], [20, 1]):
        for _ in range(3):
            played_alike(both, in_parts(query, sizes, portal="C_1", between=(number, setting)), told)
            played_alike(both, bound(query))


def test_another_session_changes_something_between(server, both, world):  # noqa: F811
    query = "SELECT now() AS time, id, v FROM w ORDER BY id"
    changes = ["UPDATE w SET v = v + 1", "ALTER TABLE p ADD IF NOT EXISTS z int", "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
               "DELETE FROM w WHERE id = 1"]
    played_alike(both, bound(query)), played_alike(both, bound(query))
    for change in changes:
        for sizes in ([0], [3, 0]):
            found = []
            for client in both:
                client.query("BEGIN")
                client.parse(query).bind(portal="c").describe("c").step("T")
            world.execute(change)
            for client in both:
                found.append([client.execute("c", size).step("s", "C") for size in sizes])
            for client in both:
                client.sync()
                client.query("COMMIT")
            assert found[0] == found[1], change
            played_alike(both, bound(query))


CURSORS = ["DECLARE c CURSOR FOR {}", "DECLARE c SCROLL CURSOR FOR {}", "DECLARE c NO SCROLL CURSOR FOR {}", "DECLARE c CURSOR WITH HOLD FOR {}",
           "DECLARE c SCROLL CURSOR WITH HOLD FOR {}", "DECLARE c BINARY CURSOR FOR {}"]
MOVES = [["FETCH ALL FROM c"], ["FETCH 3 FROM c", "FETCH 3 FROM c", "FETCH ALL FROM c"], ["FETCH ALL FROM c", "FETCH BACKWARD 4 FROM c", "FETCH 2 FROM c"],
         ["MOVE 5 FROM c", "FETCH 2 FROM c", "FETCH BACKWARD 3 FROM c"], ["FETCH LAST FROM c", "FETCH FIRST FROM c", "FETCH ALL FROM c"],
         ["FETCH 0 FROM c", "FETCH 2 FROM c", "FETCH RELATIVE -1 FROM c", "FETCH ABSOLUTE 7 FROM c", "FETCH BACKWARD ALL FROM c"],
         ["FETCH BACKWARD 1 FROM c", "FETCH ALL FROM c", "FETCH PRIOR FROM c"],
         ["FETCH 2 FROM c", "SET timezone = 'Asia/Tokyo'", "FETCH 2 FROM c", "FETCH BACKWARD 3 FROM c", "RESET timezone"]]


@thinned("query, declare", SERVED, CURSORS, one_in=3)
def test_cursors(server, both, declare, query):
    for second in range(2):
        server.set(f"2026-03-10 11:00:{second:02}.5")
        for moves in MOVES:
            # A statement that fails ends the transaction, so each move back may be the last.
            told = shape if "SET timezone = 'Asia/Tokyo'" in moves else list
            played_alike(both, simple("BEGIN", declare.format(query), *moves, "COMMIT"), told)
            played_alike(both, simple("BEGIN", declare.format(query), moves[0], "COMMIT", *moves[1:], "CLOSE ALL"), told)
        played_alike(both, simple(declare.format(query), "FETCH ALL FROM c", "CLOSE ALL"))


@pytest.mark.parametrize("declare", CURSORS)
def test_cursors_are_served(server, both, declare):
    query = declare.format("SELECT now() AS time, id, v FROM w ORDER BY id")
    if "HOLD" in declare:
        script = simple(query, "FETCH 3 FROM c", "FETCH ALL FROM c", "CLOSE c")
    else:
        script = simple("BEGIN", query, "FETCH 3 FROM c", "FETCH ALL FROM c", "COMMIT")
    for _ in range(2):
        found = counted(both, script)
    assert found[0] == 1, found


def test_where_current_of(both):
    statements = ["BEGIN", "DECLARE c CURSOR FOR SELECT now(), id, v FROM w", "FETCH 2 FROM c", "UPDATE w SET v = 100 WHERE CURRENT OF c",
                  "SELECT id, v FROM w ORDER BY id", "FETCH ALL FROM c", "ROLLBACK"]
    for _ in range(3):
        played_alike(both, simple(*statements))


def test_dropped_aggregates_and_columns(both):
    """What the planner leaves out for the values of a Bind is not computed either."""
    query = "SELECT CASE WHEN $1 = 1 THEN now() ELSE now() + 1 / (sum(v) - sum(v)) * interval '1 day' END, count(*) FROM w"
    for mode in ("force_custom_plan", "force_generic_plan"):
        for client in both:
            client.query(f"SET plan_cache_mode = {mode}")
        for number in (1, 2, 1):
            played_alike(both, bound(query, [number], [INT4]))
    for query in ("SELECT CASE WHEN $1 = 1 THEN now() ELSE now() + (1 / 0) * interval '1 day' END, id FROM w",
                  "SELECT now(), id FROM w WHERE $1 = 1 OR 1 / $2 > 0", "SELECT now(), 1 / $1, id FROM w"):
        count = 2 if "$2" in query else 1
        for mode in ("force_custom_plan", "force_generic_plan"):
            for client in both:
                client.query(f"SET plan_cache_mode = {mode}")
            for values in ([1, 0], [2, 0], [0, 0], [1, 1]):
                for _ in range(2):
                    played_alike(both, bound(query, values[:count], [INT4] * count))


def test_a_kept_plan_under_other_settings_and_roles(server, both, world):  # noqa: F811
    world.execute("DROP ROLE IF EXISTS few; CREATE ROLE few; GRANT SELECT ON w TO few; ALTER TABLE w ENABLE ROW LEVEL SECURITY;"
                  "CREATE POLICY few ON w TO few USING (id < 4)")
    query = "SELECT now()::text, to_char(at, 'DD HH24'), count(*) OVER () FROM w WHERE at > '2026-01-02 00:00' ORDER BY id"
    for client in both:
        client.parse(query, "kept").sync()
    for setting in ("SELECT 1", "SET timezone = 'Asia/Tokyo'", "SET ROLE few", "RESET ROLE", "SET search_path = pg_catalog", "RESET ALL", "SET ROLE few", "RESET ROLE"):
        for client in both:
            client.query(setting)
        both[1].query("SET pg_arrow_cache.enabled = off")
        for _ in range(3):
            def script(client):
                return client.bind(name="kept").describe().execute().sync()
            played_alike(both, script)
            played_alike(both, bound(query))


def test_own_writes(both):
    query = "SELECT now() AS time, count(*), sum(v) FROM w"
    played_alike(both, bound(query)), played_alike(both, bound(query))

    def script(client):
        messages = client.query("BEGIN") + client.query("DELETE FROM w WHERE id > 5")
        messages += bound(query)(client) + client.query("ROLLBACK")
        return messages + bound(query)(client)

    for _ in range(2):
        played_alike(both, script)


def test_pipelined_binds(server, both):
    """Many portals are open at one time, and are read in another order."""
    queries = ["SELECT now() AS time, id, v FROM w ORDER BY id", "SELECT now() - at, id FROM w ORDER BY id", "SELECT now(), name, count(*) FROM w GROUP BY name ORDER BY 2"]

    def script(client):
        messages = client.query("BEGIN")
        for number, query in enumerate(queries):
            client.parse(query).bind(portal=f"p{number}")
        for number in (2, 0, 1):
            client.execute(f"p{number}", 2)
        for number in (1, 2, 0):
            client.execute(f"p{number}")
        messages += client.sync()
        assert "E" not in types(messages)
        return messages + client.query("COMMIT")

    for _ in range(3):
        played_alike(both, script)


def test_counts(both):
    """A statement counts once: as a hit, a miss or a bypass."""
    on, off = both

    def counts():
        row = data_rows(off.query("SELECT hits, misses, bypasses FROM arrow_cache.stats"))[0]
        return [int(number) for number in row]

    def moved(script):
        before = counts()
        script(on)
        return [now - then for now, then in zip(counts(), before)]

    query = "SELECT now() - at, id FROM w ORDER BY id"
    assert moved(bound(query)) == [0, 1, 0]
    assert moved(bound(query)) == [1, 0, 0]
    assert moved(bound(query, max_rows=2)) == [1, 0, 0]
    assert moved(bound(query, max_rows=200)) == [1, 0, 0]


def test_binary_values(both):
    query = "SELECT now() AS time, id, now() - at FROM w WHERE id < 3 ORDER BY id"
    for _ in range(2):
        played_alike(both, bound(query, result_format=1))
    rows = data_rows(bound(query, result_format=1)(both[0]))
    assert [struct.unpack("!i", row[1])[0] for row in rows] == [1, 2]


@pytest.mark.parametrize("portal", ["", "C_1"])
def test_the_time_of_the_statement_moves_while_a_portal_is_read_in_parts(server, both, world, portal):  # noqa: F811
    """What WHERE asks of statement_timestamp() is asked anew by each Execute."""
    world.execute("UPDATE w SET at = timestamptz '2026-03-10 11:00:00' + (id - 2) / 5 * interval '1 minute'")
    query = "SELECT now() AS time, id FROM w WHERE at <= date_bin('1 minute', statement_timestamp(), '2026-01-01 00:00:00+00')"

    def script(client):
        server.set("2026-03-10 11:00:59.5")
        messages = client.query("BEGIN")
        client.parse(query).bind(portal=portal).describe(portal)
        for minute, size in enumerate((2, 3, 0)):
            server.set(f"2026-03-10 11:0{minute}:59.9")
            messages += client.execute(portal, size).step("s", "C")
        return messages + client.sync() + client.query("COMMIT")

    for _ in range(3):
        played_alike(both, script)
        server.set("2026-03-10 11:00:59.5")
        played_alike(both, bound(query))
