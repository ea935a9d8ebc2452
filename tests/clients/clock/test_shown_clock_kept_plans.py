"""The clock in the columns of statements whose plans the server keeps: the plan has the projection on top of the plan of the clock-free part, and the plan cache
treats it as any other."""

import psycopg
import pytest
from test_shown_clock import shown_alike, world  # noqa: F401
from test_shown_clock_bound import INT4, both, bound, in_parts, played_alike  # noqa: F401

from support.wire import types


def plans(session, name):
    return session.rows("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = %s", [name])[0]


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_hits_from_the_second_execution_on(server, at, world, mode):  # noqa: F811
    reader = at(f"-c plan_cache_mode={mode}")
    reader.execute("PREPARE s(int) AS SELECT id, now() - at AS age, $1 + v FROM w WHERE id > $1 ORDER BY id")
    statuses = []
    for number in range(5):
        server.set(f"2026-03-10 11:00:0{number}.5")
        statuses.append(shown_alike(reader, "EXECUTE s(3)"))
    assert statuses == ["MISS"] + ["HIT"] * 4
    # `shown_alike` executes it without the cache, too: each execution has made or reused one plan.
    assert plans(reader, "s") == ((10, 0) if mode == "force_generic_plan" else (0, 10))


CHANGES = [
    ("ALTER TABLE w ALTER name TYPE varchar(3)", "cached plan must not change result type"),
    ("ALTER TABLE w ALTER v TYPE bigint", None),
    ("CREATE OR REPLACE FUNCTION shown(interval) RETURNS interval LANGUAGE sql IMMUTABLE AS 'SELECT $1 + interval ''1 day'''", None),
    ("CREATE OR REPLACE FUNCTION called(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 + 1000; END'", None),
    ("DROP FUNCTION shown(interval)", "does not exist"),
    ("REVOKE SELECT ON w FROM few", "permission denied for table w"),
    ("REVOKE EXECUTE ON FUNCTION called(int) FROM few, public", "permission denied for function called"),
    ("ALTER TABLE w DROP COLUMN at", "does not exist"),
    ("ALTER TABLE w ENABLE ROW LEVEL SECURITY", None),
]


@pytest.mark.parametrize("change, error", CHANGES)
def test_a_kept_plan_follows_definitions(at, world, change, error):  # noqa: F811
    """What the projection calls matters as much as what the part reads."""
    world.execute("""
        CREATE FUNCTION shown(interval) RETURNS interval LANGUAGE sql IMMUTABLE AS 'SELECT $1';
        CREATE FUNCTION called(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
        DROP ROLE IF EXISTS few; CREATE ROLE few LOGIN; GRANT SELECT ON w TO few""")
    reader = at("-c plan_cache_mode=force_generic_plan", user="few")
    reader.execute("PREPARE s AS SELECT id, shown(now() - at), called(extract(day FROM now())::int), name, v > 3 FROM w ORDER BY id")
    shown_alike(reader, "EXECUTE s")
    assert shown_alike(reader, "EXECUTE s") == "HIT"
    world.execute(change)
    if error:
        with pytest.raises(psycopg.Error, match=error):
            reader.execute("EXECUTE s")
    else:
        shown_alike(reader, "EXECUTE s"), shown_alike(reader, "EXECUTE s")
        assert shown_alike(reader, "EXECUTE s") == "HIT"


def test_a_kept_plan_is_made_anew_after_a_change_of_definitions(at, world):  # noqa: F811
    """Also after one that the server does not make plans anew for: it is asked to."""
    reader = at("-c plan_cache_mode=force_generic_plan")
    reader.execute("PREPARE s AS SELECT id, now() - at AS age FROM w ORDER BY id")
    shown_alike(reader, "EXECUTE s")
    assert shown_alike(reader, "EXECUTE s") == "HIT"
    world.execute("CREATE FUNCTION a_change() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION a_change() COST 7")
    statuses = []
    for _ in range(3):
        reader.execute("EXECUTE s")
        statuses.append((reader.status(), reader.reason()))
    assert statuses == [("BYPASS", "old_plan"), ("STALE", None), ("HIT", None)]
    assert shown_alike(reader, "EXECUTE s") == "HIT"


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_table_under_an_open_cursor_is_not_altered(at, world, is_stored):  # noqa: F811
    reader = at()
    query = "SELECT now() AS time, id FROM w ORDER BY id"
    if is_stored:
        reader.execute(query)
    for open_it in (f"DECLARE c NO SCROLL CURSOR FOR {query}", f"DECLARE c SCROLL CURSOR FOR {query}"):
        reader.execute("BEGIN")
        reader.execute(open_it)
        reader.execute("FETCH 1 FROM c")
        assert reader.status() == ("HIT" if is_stored else "MISS")
        with pytest.raises(psycopg.errors.ObjectInUse):
            reader.execute("ALTER TABLE w ADD COLUMN another int")
        reader.execute("ROLLBACK")


def test_the_current_row_of_a_portal_is_found(both):  # noqa: F811
    """Of a kept plan that has served a stored answer before, and of one whose cache was turned off meanwhile."""
    query = "SELECT now() AS time, id, v FROM w WHERE id > $1"

    def script(client):
        messages = client.query("BEGIN")
        client.bind([b"2"], portal="c", name="kept").execute("c", 2)
        messages += client.sync() + client.query("UPDATE w SET v = 100 WHERE CURRENT OF c RETURNING id, v")
        assert "E" not in types(messages)
        return messages + client.query("ROLLBACK")

    for client in both:
        client.parse(query, "kept", [INT4]).sync()
        for _ in range(7):
            client.bind([b"2"], name="kept").execute().sync()
    assert both[0].status() == "HIT"
    played_alike(both, script)
    both[0].query("SET pg_arrow_cache.enabled = off")
    played_alike(both, script)


@pytest.mark.parametrize("hazard", ["UNSAFE", "RESTRICTED", "SAFE"])
def test_parallel_plans(at, world, hazard):  # noqa: F811
    """What must not be called while others compute is not; the part is computed by several processes if it may be."""
    world.execute(f"""
        INSERT INTO w SELECT g, 'n', g, '2026-01-01', NULL, true FROM generate_series(21, 20000) g; ANALYZE w;
        CREATE FUNCTION called(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL {hazard} AS $$ BEGIN RETURN $1; END $$""")
    reader = at("-c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c min_parallel_table_scan_size=0 -c max_parallel_workers_per_gather=2")
    query = "SELECT now(), called(extract(second FROM now())::int), flag, count(*) FROM w GROUP BY flag ORDER BY flag"
    assert ("Gather" in str(reader.rows(f"EXPLAIN {query}"))) == (hazard != "UNSAFE")
    shown_alike(reader, query)
    assert shown_alike(reader, query) == "HIT"


def test_statements_of_functions_are_left_alone(at, world):  # noqa: F811
    world.execute("""
        CREATE FUNCTION inside() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE c CURSOR FOR SELECT now() AS time, id FROM w; r record; BEGIN
            OPEN c; FETCH c INTO r; UPDATE w SET v = 50 WHERE CURRENT OF c; CLOSE c; RETURN (SELECT count(*) FROM w WHERE v = 50); END $$""")
    reader = at()
    for _ in range(3):
        reader.execute("BEGIN")
        assert reader.rows("SELECT inside()") == [(1,)]
        reader.execute("ROLLBACK")


def test_settings_and_roles_between_bind_and_execute(both, world):  # noqa: F811
    world.execute("DROP ROLE IF EXISTS few; CREATE ROLE few; GRANT SELECT ON w TO few; ALTER TABLE w ENABLE ROW LEVEL SECURITY;"
                  "CREATE POLICY few ON w TO few USING (id < 4)")
    for query in ("SELECT now()::text, to_char(at, 'DD HH24'), id FROM w ORDER BY id", "SELECT now(), id, current_user FROM w ORDER BY id"):
        for setting in ("SET LOCAL timezone = 'Asia/Tokyo'", "SET LOCAL ROLE few", "SET LOCAL search_path = pg_catalog"):
            for _ in range(3):
                played_alike(both, in_parts(query, [3, 0], portal="c", between=(0, setting)))
                played_alike(both, bound(query))


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_all_values_are_part_of_the_question(server, both, mode):  # noqa: F811
    """Those as well that stand only in columns with the clock, alone ($1) or beside columns of rows ($3)."""
    query = "SELECT id, now() - $1, to_char(now() - at, $3) || id, $2 + v, $4 || id FROM w WHERE id > $2 ORDER BY id"
    kinds = [1184, INT4, 25, 25]
    for client in both:
        client.query(f"SET plan_cache_mode = {mode}")
        client.parse(query, "kept", kinds).sync()
    day, next_day = "2026-01-01 00:00:00+00", "2026-01-02 00:00:00+00"
    statuses = []
    sets = ([day, "3", "DD", "a"], [next_day, "3", "DD", "a"], [day, "3", "HH24", "a"], [None, "3", "DD", "a"], [day, "4", "DD", "a"], [day, "3", "DD", "b"])
    for values in sets * 2:
        bound_values = [None if value is None else value.encode() for value in values]
        statuses.append(played_alike(both, lambda client, v=bound_values: client.bind(v, name="kept").describe().execute().sync()))
    assert statuses == ["MISS"] * len(sets) + ["HIT"] * len(sets)
