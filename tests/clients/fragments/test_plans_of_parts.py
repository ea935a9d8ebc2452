"""Plans of parts: the server keeps and shows plans of its own, and raises the errors of its planning; what can be had for less is not combined."""

import pytest

from support.fragment_world import parts_of
from support.placeholders import SHOW_PLANS

FORCED = "-c pg_arrow_cache.debug_force_fragments=on"


def test_explain_execute_leaves_the_servers_plan(connect, world):
    """Its leaves and bounds would be those of the moment of EXPLAIN, and older snapshots may see other rows."""
    old = connect(FORCED)
    world.execute("CREATE TABLE late (at int, x int); INSERT INTO late VALUES (5, 7)")
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    snapshot = old.rows("SELECT pg_export_snapshot()")[0][0]
    world.execute("DELETE FROM late; ALTER TABLE p ATTACH PARTITION late FOR VALUES FROM (200) TO (210)")
    reader = connect(FORCED, prepare_threshold=None)
    reader.execute("PREPARE q AS SELECT count(*) FROM p WHERE at >= 200")
    reader.execute("EXPLAIN (COSTS OFF) EXECUTE q")
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reader.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
    answers = reader.rows("EXECUTE q")
    reader.execute("SET LOCAL pg_arrow_cache.enabled = off")
    assert answers == reader.rows("SELECT count(*) FROM p WHERE at >= 200")


@pytest.mark.parametrize("query", [
    "SELECT sum(1/0), count(*) FROM p LIMIT 0", "SELECT sum(1/0) FROM p HAVING false", "SELECT sum(1/0) FROM p HAVING 1=2",
    "EXPLAIN SELECT sum(1/0) FROM p",
])
def test_errors_of_planning_are_raised(connect, world, query):
    reader = connect(FORCED, prepare_threshold=None)
    result = reader.pgconn.exec_(query.encode())
    assert result.error_message.decode().startswith("ERROR:  division by zero")


def test_what_depends_on_the_key_of_a_parent_is_not_combined(connect, world):
    world.execute("CREATE TABLE inh (id int PRIMARY KEY, v text); CREATE TABLE kid () INHERITS (inh);"
                  "INSERT INTO inh VALUES (1, 'a'); INSERT INTO kid VALUES (1, 'b'), (2, 'c')")
    reader = connect(FORCED, prepare_threshold=None)
    lines = reader.rows("EXPLAIN (COSTS OFF) SELECT id, v, count(*) FROM inh GROUP BY id")
    assert parts_of(line for line, in lines) is None


def test_a_rescan_gives_the_same_rows(connect, world):
    reader = connect(f"{FORCED} -c enable_hashjoin=off -c enable_mergejoin=off -c enable_material=off -c enable_memoize=off", prepare_threshold=None)
    query = ("SELECT o.n, s.k, s.c FROM (VALUES (1), (2), (3)) o(n), LATERAL (SELECT * FROM (SELECT at % 3 AS k, count(*) AS c FROM p GROUP BY 1) g "
             "WHERE g.k < o.n OFFSET 0) s ORDER BY 1, 2")
    ours = reader.rows(query)
    world.execute("UPDATE p SET x = x + 1 WHERE at = 5")
    again = reader.rows(query)
    reader.execute("SET pg_arrow_cache.enabled = off")
    assert ours == again == reader.rows(query)


@pytest.mark.parametrize("types, condition, values", [
    ("int, int", "at IN ($1, $2, $1, $2, $1, $2, $1, $2, $1, $2)", "1, 12"),
    ("int", "(at = $1 OR at = 12 OR at = $1 OR at = 12 OR at = $1)", "1"),
    ("int8", "(at = $1::int OR at = 12 OR at = $1::int OR at = 12)", "1"),
])
def test_a_kept_plan_reads_no_leaf_that_its_values_exclude(connect, world, types, condition, values):
    """The server leaves these leaves out when it starts its plan. So an error in their rows has no cause in the statement."""
    world.execute("UPDATE p SET x = 0 WHERE at >= 30")
    reader = connect(FORCED, prepare_threshold=None)
    plain = connect("-c pg_arrow_cache.enabled=off", prepare_threshold=None)
    before = world.rows("SELECT fragments_computed FROM arrow_cache.stats")[0][0]
    for session in (reader, plain):
        session.execute("SET plan_cache_mode = force_generic_plan")
        # Asked before the others in each row, since an array of many values costs more.
        session.execute(f"PREPARE q ({types}) AS SELECT count(*) FROM p WHERE 1 / x >= 0 AND {condition}")
    assert reader.rows(f"EXECUTE q ({values})") == plain.rows(f"EXECUTE q ({values})")
    assert world.rows("SELECT fragments_computed FROM arrow_cache.stats")[0][0] - before == 2


def test_what_is_answered_is_not_combined(connect, world):
    """Planning the parts takes longer, and none of them is run."""
    query = "SELECT count(*), sum(x) FROM p WHERE x > 3"
    connect("-c pg_arrow_cache.enable_fragments=off", prepare_threshold=None).rows(query)
    reader, plans = connect(FORCED, prepare_threshold=None), []
    reader.add_notice_handler(lambda notice: plans.append(notice.message_detail) if notice.message_primary == "plan:" else None)
    reader.execute(SHOW_PLANS)
    plans.clear()
    reader.rows(query)
    assert ["ArrowCacheFragments" in plan for plan in plans] == [False]
    assert reader.status() == "HIT"
