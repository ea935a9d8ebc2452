"""What an attack on combined answers has found: plans that EXPLAIN leaves behind, errors of planning, memory and temporary files of parts."""

import pytest

from support.fragment_world import parts_of
from support.placeholders import SHOW_PLANS

FORCED = "-c pg_arrow_cache.debug_force_fragments=on"


@pytest.fixture
def world(session):
    session.execute("CREATE TABLE p (at int, x int) PARTITION BY RANGE (at)")
    for leaf in range(20):
        session.execute(f"CREATE TABLE p{leaf} PARTITION OF p FOR VALUES FROM ({leaf * 10}) TO ({leaf * 10 + 10})")
    session.execute("INSERT INTO p SELECT g % 200, g FROM generate_series(1, 2000) g; ANALYZE p")
    return session


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


def peak_memory(session):
    pid = session.rows("SELECT pg_backend_pid()")[0][0]
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def test_memory_of_a_part_goes_with_it(connect, world):
    """Planning seven joins takes a megabyte or more for each of many leaves."""
    world.execute("CREATE TABLE d (k int PRIMARY KEY, name text); INSERT INTO d SELECT g, 'n' || g FROM generate_series(0, 6) g;"
                  "CREATE TABLE lots (id int, p int, v int) PARTITION BY LIST (p);"
                  "DO $$ BEGIN FOR i IN 0..199 LOOP EXECUTE format('CREATE TABLE lots_%s PARTITION OF lots FOR VALUES IN (%s)', i, i); END LOOP; END $$;"
                  "INSERT INTO lots SELECT g, g % 200, g % 7 FROM generate_series(1, 2000) g; ANALYZE d, lots")
    joins = " ".join(f"JOIN d d{i} ON lots.v = d{i}.k" for i in range(7))
    query = f"SELECT d0.name, count(*) FROM lots {joins} GROUP BY 1 ORDER BY 1"
    plain = connect("-c pg_arrow_cache.enabled=off", prepare_threshold=None)
    expected = plain.rows(query)
    reader = connect(FORCED, prepare_threshold=None)
    assert reader.rows(query) == expected
    assert peak_memory(reader) < 1.5 * peak_memory(plain) + 30_000


def test_rows_of_parts_take_no_temporary_files(connect, world):
    """The server keeps these groups in memory, of which it gives more to hash tables than to other things."""
    world.execute("CREATE TABLE big (p int, t text) PARTITION BY RANGE (p);"
                  "CREATE TABLE big_1 PARTITION OF big FOR VALUES FROM (0) TO (1); CREATE TABLE big_2 PARTITION OF big FOR VALUES FROM (1) TO (2);"
                  "INSERT INTO big SELECT 0, repeat(md5(g::text), 30) FROM generate_series(1, 6000) g; ANALYZE big")
    reader = connect(f"{FORCED} -c temp_file_limit=0 -c work_mem=4MB", prepare_threshold=None)
    for _ in range(2):
        assert reader.rows("SELECT count(*) FROM (SELECT t, count(*) AS c FROM big GROUP BY t) s") == [(6000,)]


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


def test_what_takes_much_longer_is_not_combined_for_long(connect, world):
    """Planning a join for each leaf takes longer than running it."""
    names = [f"d{number}" for number in range(9)]
    for name in names:
        world.execute(f"CREATE TABLE {name} AS SELECT g AS id, g % 10 AS next FROM generate_series(0, 9) g; ANALYZE {name}")
    joined = " ".join(f"JOIN {name} ON {name}.id = {before}.next" for before, name in zip(names, names[1:]))
    reader = connect("-c pg_arrow_cache.fragment_min_time=0 -c join_collapse_limit=1", prepare_threshold=None)
    before = world.rows("SELECT fragment_runs FROM arrow_cache.stats")[0][0]
    for number in range(40):
        reader.rows(f"SELECT count(*) FROM p JOIN d0 ON d0.id = p.x % 10 {joined} WHERE p.x = {number}")
    assert world.rows("SELECT fragment_runs FROM arrow_cache.stats")[0][0] - before <= 9


def test_planning_counts_where_definitions_keep_changing(connect, world):
    """Runs that are bypassed since a definition has changed while their parts were planned are noted nevertheless."""
    names = [f"d{number}" for number in range(9)]
    for name in names:
        world.execute(f"CREATE TABLE {name} AS SELECT g AS id, g % 10 AS next FROM generate_series(0, 9) g; ANALYZE {name}")
    joined = " ".join(f"JOIN {name} ON {name}.id = {before}.next" for before, name in zip(names, names[1:]))
    reader, plans = connect("-c pg_arrow_cache.fragment_min_time=0", prepare_threshold=None), []
    reader.add_notice_handler(lambda notice: plans.append(notice.message_detail) if notice.message_primary == "plan:" else None)
    query = f"SELECT count(*) FROM p JOIN d0 ON d0.id = p.x % 10 {joined} WHERE p.x = "
    reader.rows(query + "1")
    reader.execute(SHOW_PLANS)
    # The transaction that creates it is under way all the time.
    world.execute("BEGIN; CREATE TABLE other (a int)")
    for number in range(40):
        reader.rows(query + str(number))
    world.execute("ROLLBACK")
    assert sum("ArrowCacheFragments" in plan for plan in plans) <= 9
