"""Aggregates over tables without partitions are computed from parts of their zones. A change has only those parts computed again in whose
zones rows were before and after it."""

import random
import threading

import psycopg
import pytest

from support.agreement import agree_on_result
from support.fragment_world import parts_of

OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on"
# Sixteen zones of some blocks each, in groups of four.
SETUP = """
    CREATE TABLE t (id int, k int, v int, at timestamptz, pad text) WITH (fillfactor = 50, autovacuum_enabled = off);
    INSERT INTO t SELECT g, g % 5, g * 7 % 1000, '2024-01-01 12:00+00'::timestamptz + g * interval '1 minute', repeat('x', 100) FROM generate_series(1, 4000) g;
    CREATE INDEX ON t (id);
    CREATE TABLE names (k int PRIMARY KEY, name text);
    INSERT INTO names SELECT g, 'name ' || g FROM generate_series(0, 4) g;
    ANALYZE t, names;
"""
GROUPS = "SELECT k, count(*), sum(v), avg(v), min(id), max(at) FROM t GROUP BY k ORDER BY k"
ONE = "SELECT count(*), sum(v), max(id) FROM t WHERE v < 900"
STAR = "SELECT name, count(*), sum(v) FROM t JOIN names USING (k) WHERE id > 10 GROUP BY name HAVING count(*) > 1 ORDER BY name"
OUTER = "SELECT name, count(*), count(name) FROM t LEFT JOIN names ON names.k = t.k AND name <> 'name 1' GROUP BY name ORDER BY name NULLS LAST"
BELOW = "SELECT max(n) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS s"
QUESTIONS = [GROUPS, ONE, STAR, OUTER]


@pytest.fixture
def writer(connect):
    writer = connect()
    writer.execute(SETUP)
    writer.execute("SET lock_timeout = '10s'")
    return writer


@pytest.fixture
def reader(connect, writer):
    return connect(OPTIONS, prepare_threshold=None)


def explained(session, query):
    return parts_of(line for line, in session.rows(f"EXPLAIN (COSTS OFF) /* arrow_cache: store */ {query}"))


def of_run(session, query):
    return parts_of(line for line, in session.rows(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {query}"))


def store(reader, query=GROUPS):
    """Until the part of each zone is stored, and those of groups of zones made of them. Returns how many these are."""
    of_run(reader, query)
    # One row of each zone: its group is computed zone by zone from now on.
    reader.execute("UPDATE t SET v = v WHERE id % 50 = 0")
    for _ in range(3):
        stored, computed = of_run(reader, query)
    assert computed == 0
    return stored


@pytest.mark.parametrize("query", QUESTIONS)
def test_is_computed_from_zones(writer, reader, query):
    stored, groups = of_run(reader, query)
    assert stored == 0 and 3 <= groups <= 6, "what was never stored is computed in groups"
    assert of_run(reader, query) == (groups, 0)
    agree_on_result(reader, query)
    writer.execute("UPDATE t SET v = v WHERE id = 2000")
    stored, zones = of_run(reader, query)
    assert stored == groups - 1 and zones == 4, "what was changed is computed zone by zone"
    stored, merged = of_run(reader, query)
    assert (stored, merged) == (groups - 1, 1), "a group is made of its zones"
    store(reader, query)
    agree_on_result(reader, query)
    writer.execute("UPDATE t SET v = v + 1 WHERE id = 2000")
    agree_on_result(reader, query)
    writer.execute("UPDATE t SET v = v - 1 WHERE id = 2000")
    found = of_run(reader, query)
    assert 1 <= found[1] <= 2 and found[0] > 4, found
    agree_on_result(reader, query)


@pytest.mark.parametrize("query", [
    "SELECT count(*) FROM t AS a JOIN t AS b USING (id)",
    "SELECT k, array_agg(DISTINCT v) FROM t GROUP BY k",
    "SELECT k, count(*) FROM names FULL JOIN t USING (k) GROUP BY k",
    "SELECT count(ctid) FROM t",
    "SELECT count(*) FROM t WHERE id = 5",
    "SELECT count(*) FROM t WHERE at > now()",
    "SELECT count(*) FROM t TABLESAMPLE bernoulli (100) REPEATABLE (1)",
    "SELECT k, v FROM t ORDER BY id LIMIT 3",
])
def test_is_not(reader, query):
    assert explained(reader, query) is None
    agree_on_result(reader, query)


def test_a_small_table_beside_the_sub_query(writer, reader):
    """The query that aggregates a table with zones has them, whatever tables without any stand around it."""
    writer.execute("CREATE TABLE small (k int)")
    query = "SELECT max(n), count(small.k) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS s LEFT JOIN small USING (k)"
    store(reader, query)
    agree_on_result(reader, query)


def test_a_table_with_children(writer, reader):
    """Rows of children are rows of the table."""
    reader.execute("SET plan_cache_mode = force_generic_plan")
    reader.execute(f"PREPARE p AS {GROUPS}")
    store(reader)
    for change in ("CREATE TABLE child () INHERITS (t)", "INSERT INTO child SELECT * FROM t WHERE id < 900", "ANALYZE child", "UPDATE t SET v = v + 1 WHERE id = 5",
                   "ALTER TABLE child NO INHERIT t", "UPDATE t SET v = v + 1 WHERE id = 6"):
        writer.execute(change)
        agree_on_result(reader, GROUPS)
        assert reader.rows("EXECUTE p") == reader.uncached(GROUPS)


def test_a_row_that_comes_costs_the_last_zone(writer, reader):
    count = store(reader)
    for n in range(5):
        writer.execute("INSERT INTO t VALUES (%s, 1, 1, now(), 'x')", [5000 + n])
        stored, computed = of_run(reader, GROUPS)
        assert computed == 1 and abs(stored + computed - count) <= 1
        agree_on_result(reader, GROUPS)


def test_zones_that_come(writer, reader):
    """The table grows beyond the last zone."""
    store(reader)
    for _ in range(4):
        writer.execute("INSERT INTO t SELECT g, 1, g, now(), repeat('x', 200) FROM generate_series(1, 900) g")
        agree_on_result(reader, GROUPS)
    writer.execute("INSERT INTO t VALUES (1, 1, 1)")
    stored, computed = explained(reader, GROUPS)
    assert stored > 0 and computed <= 2


# What becomes of rows, and whether some parts are as they were.
CHANGES = {
    "insert": ("INSERT INTO t VALUES (9999, 1, 1, now(), 'x')", True),
    "several": ("INSERT INTO t SELECT 9999, 1, g, now(), 'x' FROM generate_series(1, 50) g", True),
    "update": ("UPDATE t SET v = 5 WHERE id = 100", True),
    "update in the page": ("UPDATE t SET v = v + 1 WHERE id = 101", True),
    "update that moves a row": ("UPDATE t SET pad = repeat('y', 4000) WHERE id = 3", True),
    "delete": ("DELETE FROM t WHERE id BETWEEN 500 AND 520", True),
    "delete and insert": ("DELETE FROM t WHERE id = 77; INSERT INTO t VALUES (77, 2, 2, now(), 'x')", True),
    "rolled back to a savepoint": ("SAVEPOINT s; UPDATE t SET v = 0 WHERE id < 1000; ROLLBACK TO s; UPDATE t SET v = 0 WHERE id = 7", True),
    "on conflict": ("CREATE UNIQUE INDEX u ON t (id); INSERT INTO t VALUES (8, 1, 1, now(), 'x') ON CONFLICT (id) DO UPDATE SET v = -1", False),
    "merge": ("MERGE INTO t USING (VALUES (9), (99999)) AS n (id) ON t.id = n.id WHEN MATCHED THEN UPDATE SET v = -2"
              " WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (n.id, 1, 1)", True),
    "a cursor": ("DECLARE c CURSOR FOR SELECT * FROM t WHERE id = 300 FOR UPDATE; FETCH c; UPDATE t SET v = -5 WHERE CURRENT OF c", True),
    "all rows": ("UPDATE t SET v = v + 1", False),
    "copy": ("COPY t (id, k, v) FROM PROGRAM 'echo 1,2,3' (FORMAT csv)", True),
    "copy of many rows": ("COPY t (id, k, v) FROM PROGRAM 'seq -f %.0f,2,3 10000 20000' (FORMAT csv)", True),
    "truncate": ("TRUNCATE t", False),
    "truncate, rolled back": ("SAVEPOINT s; TRUNCATE t; INSERT INTO t VALUES (1, 1, 1); ROLLBACK TO s; UPDATE t SET v = 5 WHERE id = 9", False),
    "cluster": ("CLUSTER t USING t_id_idx; UPDATE t SET v = 6 WHERE id = 10", False),
    "a rewritten table": ("UPDATE t SET v = 1 WHERE id = 11; ALTER TABLE t ALTER v TYPE bigint", False),
    "another column": ("ALTER TABLE t ADD w int DEFAULT 4; UPDATE t SET v = 4 WHERE id = 12", False),
    "a function in C": ("SELECT lo_from_bytea(0, 'x'); UPDATE t SET v = 3 WHERE id = 14", True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(writer, reader, name):
    change, is_precise = CHANGES[name]
    store(reader)
    for query in QUESTIONS:
        reader.rows(query)
    with writer.transaction():
        writer.execute(change)
    stored, _ = explained(reader, GROUPS) or (0, 0)
    assert (stored > 0) == is_precise
    for query in QUESTIONS:
        agree_on_result(reader, query)


def test_a_dimension_changes(writer, reader):
    """All parts rest on it."""
    store(reader, STAR)
    store(reader)
    writer.execute("UPDATE names SET name = name || '!'")
    assert explained(reader, STAR)[0] == 0
    agree_on_result(reader, STAR)
    writer.execute("UPDATE t SET v = v + 1 WHERE id = 5")
    assert explained(reader, GROUPS)[0] > 0


def test_holes_that_are_filled(writer, reader):
    """VACUUM gives room back in the first zones, and moves no row."""
    writer.execute("DELETE FROM t WHERE id < 500")
    store(reader)
    agree_on_result(reader, GROUPS)
    writer.execute("VACUUM t")
    reader.rows(GROUPS)
    assert reader.status() == "HIT"
    writer.execute("INSERT INTO t SELECT g, 3, 3, now(), repeat('x', 100) FROM generate_series(1, 100) g")
    stored, computed = explained(reader, GROUPS)
    assert computed <= 4
    agree_on_result(reader, GROUPS)


def test_an_older_snapshot(writer, reader, connect):
    """What a snapshot does not see is neither taken from younger parts, nor stored for others."""
    old, older = connect(OPTIONS, prepare_threshold=None), connect(OPTIONS, prepare_threshold=None)
    store(reader)
    for session in (old, older):
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        session.rows("SELECT 1")
    expected = old.uncached(GROUPS)
    writer.execute("UPDATE t SET v = v + 1000 WHERE id IN (1, 2000, 3999)")
    assert reader.rows(GROUPS) == reader.uncached(GROUPS) != expected
    assert old.rows(GROUPS) == expected == old.uncached(GROUPS)
    writer.execute("INSERT INTO t SELECT g, 1, 1, now(), repeat('x', 100) FROM generate_series(1, 500) g")
    assert old.rows(GROUPS) == expected
    assert reader.rows(GROUPS) == reader.uncached(GROUPS)
    old.execute("COMMIT")
    assert old.rows(GROUPS) == old.uncached(GROUPS)
    # The other one has not locked the table.
    writer.execute("CLUSTER t USING t_id_idx")
    assert reader.rows(GROUPS) == reader.uncached(GROUPS)
    assert older.rows(GROUPS) == expected
    older.execute("COMMIT")


def test_own_changes(writer, reader):
    def agree():
        assert reader.rows(GROUPS) == reader.uncached(GROUPS)

    store(reader)
    with reader.transaction():
        reader.execute("UPDATE t SET v = v + 7 WHERE id = 1500")
        agree()
        reader.execute("SAVEPOINT s; DELETE FROM t WHERE id > 2000")
        agree()
        reader.execute("ROLLBACK TO s")
        agree()
    agree()


def test_a_writer_in_progress(writer, reader, connect):
    store(reader)
    writer.execute("BEGIN; UPDATE t SET v = v + 9 WHERE id = 600")
    before = reader.rows(GROUPS)
    assert before == reader.uncached(GROUPS)
    writer.execute("COMMIT")
    assert reader.rows(GROUPS) == reader.uncached(GROUPS) != before


def test_kept_plans(writer, reader):
    """One plan serves all zones that there are when it is started, whatever the values."""
    reader.execute("SET plan_cache_mode = force_generic_plan")
    reader.execute("PREPARE p (int) AS SELECT k, count(*), sum(v) FROM t WHERE v < $1 GROUP BY k ORDER BY k")
    for n in range(6):
        for value in (500, 900):
            rows = reader.rows(f"EXECUTE p ({value})")
            assert rows == reader.uncached(f"SELECT k, count(*), sum(v) FROM t WHERE v < {value} GROUP BY k ORDER BY k")
        writer.execute("UPDATE t SET v = v + 1 WHERE id = %s", [n * 300 + 1])
    writer.execute("INSERT INTO t SELECT g, 1, g, now(), repeat('x', 200) FROM generate_series(1, 2000) g")
    assert reader.rows("EXECUTE p (900)") == reader.uncached("SELECT k, count(*), sum(v) FROM t WHERE v < 900 GROUP BY k ORDER BY k")
    found = parts_of(line for line, in reader.rows("EXPLAIN (COSTS OFF) EXECUTE p (901)"))
    assert found is not None and found[0] == 0


def test_bound_values(writer, reader):
    query = "SELECT k, count(*), sum(v) FROM t WHERE v < %s AND pad <> %s GROUP BY k ORDER BY k"
    for n in range(4):
        writer.execute("UPDATE t SET v = v + 1 WHERE id = %s", [n * 300 + 1])
        for value in (100, 900):
            assert reader.rows(query, [value, "y"]) == reader.uncached(query, [value, "y"])


def test_cursors(writer, reader):
    store(reader)
    expected = reader.uncached(GROUPS)
    writer.execute("UPDATE t SET v = v WHERE id = 44")
    with reader.transaction():
        reader.execute(f"DECLARE c SCROLL CURSOR FOR {GROUPS}")
        assert reader.rows("FETCH 2 FROM c") == expected[:2]
        writer.execute("UPDATE t SET v = v + 1 WHERE id = 45")
        assert reader.rows("FETCH ALL FROM c") == expected[2:]
        reader.execute("MOVE ABSOLUTE 0 FROM c")
        assert reader.rows("FETCH ALL FROM c") == expected
    agree_on_result(reader, GROUPS)


@pytest.mark.parametrize("ways", ["hash", "merge", "nestloop"])
def test_read_again(writer, reader, ways):
    """A scan of parts that is started anew for each row of another table gives the same rows."""
    for way in {"hash", "merge", "nestloop"} - {ways}:
        reader.execute(f"SET enable_{way}join = off" if way != "nestloop" else "SET enable_nestloop = off")
    reader.execute("SET enable_material = off")
    query = ("SELECT name, n FROM names, LATERAL (SELECT t.k, count(*) AS n FROM t GROUP BY t.k) AS s WHERE s.k <= names.k ORDER BY 1, 2")
    for _ in range(3):
        writer.execute("UPDATE t SET v = v + 1 WHERE id = 1234")
        agree_on_result(reader, query)


def test_serializable(writer, connect):
    """Who reads all zones reads the table: two transactions that each change what the other has read are not serializable."""
    query = "SELECT count(*), sum(n) FROM (SELECT id, count(*) AS n FROM t GROUP BY id) AS s"
    sessions = [connect(OPTIONS, prepare_threshold=None) for _ in range(2)]
    for session in sessions:
        session.execute(f"SET plan_cache_mode = force_generic_plan; PREPARE p AS {query}")
        for n in range(3):
            session.rows("EXECUTE p")
            writer.execute("UPDATE t SET v = v + 1 WHERE id = %s", [n])
        assert parts_of(line for line, in session.rows("EXPLAIN EXECUTE p"))
    for session in sessions:
        session.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        session.rows("EXECUTE p")
    with pytest.raises(psycopg.errors.SerializationFailure):
        for session, number in zip(sessions, (1, 3900), strict=True):
            session.execute("UPDATE t SET v = v + 1 WHERE id = %s", [number])
        for session in sessions:
            session.execute("COMMIT")


def test_views_and_policies(writer, reader, connect):
    writer.execute("""
        CREATE VIEW w AS SELECT t.k, t.v, name FROM t JOIN names USING (k) WHERE v > 5;
        CREATE VIEW barrier WITH (security_barrier) AS SELECT k, v FROM t WHERE v < 700;
    """)
    for query in ("SELECT name, count(*), sum(v) FROM w GROUP BY name ORDER BY name", "SELECT k, sum(v) FROM barrier WHERE v <> 3 GROUP BY k ORDER BY k"):
        for n in range(3):
            agree_on_result(reader, query)
            writer.execute("UPDATE t SET v = v + 1 WHERE id = %s", [n * 999 + 2])
        assert of_run(reader, query)[0] > 0


def test_row_security(writer, connect):
    writer.execute("CREATE ROLE zone_reader")
    try:
        writer.execute(f"GRANT USAGE ON SCHEMA {connect.schema} TO zone_reader; GRANT SELECT ON t TO zone_reader;"
                       " CREATE POLICY p ON t USING (k = current_setting('zones.k')::int); ALTER TABLE t ENABLE ROW LEVEL SECURITY")
        reader = connect(OPTIONS, prepare_threshold=None)
        reader.execute("SET ROLE zone_reader")
        for n in range(4):
            for k in (1, 2):
                reader.execute(f"SET zones.k = {k}")
                agree_on_result(reader, "SELECT count(*), sum(v) FROM t")
            writer.execute("UPDATE t SET v = v + 1, k = 3 - k WHERE id = %s", [n * 5 + 1])
        reader.execute("RESET ROLE")
    finally:
        writer.execute("DROP TABLE t CASCADE; DROP OWNED BY zone_reader; DROP ROLE zone_reader")


def test_the_function_may_not_be_called(writer, connect):
    """Zones are read one by one then, by plans that are kept, and none are used by new ones."""
    writer.execute("CREATE ROLE zone_reader")
    try:
        writer.execute(f"GRANT USAGE ON SCHEMA {connect.schema} TO zone_reader; GRANT SELECT ON t TO zone_reader")
        reader = connect(OPTIONS, prepare_threshold=None)
        reader.execute("SET ROLE zone_reader; SET plan_cache_mode = force_generic_plan")
        reader.execute("PREPARE p AS SELECT k, count(*), sum(v) FROM t GROUP BY k ORDER BY k")
        reader.rows("EXECUTE p")
        writer.execute("REVOKE EXECUTE ON FUNCTION arrow_cache.zone FROM PUBLIC; UPDATE t SET v = v + 1")
        assert explained(reader, GROUPS) is None
        plain = "SELECT k, count(*), sum(v) FROM t GROUP BY k ORDER BY k"
        assert reader.rows("EXECUTE p") == reader.uncached(plain)
        reader.execute("RESET ROLE")
    finally:
        writer.execute("GRANT EXECUTE ON FUNCTION arrow_cache.zone TO PUBLIC; DROP TABLE t CASCADE; DROP OWNED BY zone_reader; DROP ROLE zone_reader")


def test_a_function_of_that_name(connect):
    """In a database without the extension anybody may make one. Nobody else calls it."""
    owner, name = connect(), f"{connect.schema}_without"
    owner.execute(f"CREATE DATABASE {name}")
    try:
        with connect(OPTIONS, dbname=name, prepare_threshold=None) as session:
            session.execute("CREATE SCHEMA test_zones; SET search_path = test_zones;" + SETUP + """
                CREATE SCHEMA arrow_cache;
                CREATE FUNCTION arrow_cache.zone(tid, int4) RETURNS int4 LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 0.0001
                    AS $$ BEGIN RAISE EXCEPTION 'called by %', CURRENT_USER; END $$;
            """)
            for n in range(4):
                assert explained(session, GROUPS) is None
                assert session.rows(GROUPS) == session.uncached(GROUPS)
                session.execute("UPDATE t SET v = v + 1 WHERE id = %s", [n])
    finally:
        owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_other_settings(writer, reader):
    """Nothing rests on zones where changes are taken as those of whole tables."""
    reader.execute("SET pg_arrow_cache.precise_invalidation = off")
    assert explained(reader, GROUPS) is None
    reader.execute("RESET pg_arrow_cache.precise_invalidation; SET enable_tidscan = off")
    assert explained(reader, GROUPS) is None
    reader.execute("RESET enable_tidscan")
    store(reader)
    writer.execute("SET pg_arrow_cache.precise_invalidation = off; UPDATE t SET v = v + 1 WHERE id = 5")
    assert explained(reader, GROUPS)[0] == 0
    agree_on_result(reader, GROUPS)


def test_other_types_of_keys(writer, reader):
    for query in ("SELECT at::date, count(*), stddev(v), bool_and(v > 3), string_agg(k::text, '') IS NULL FROM t GROUP BY 1 ORDER BY 1",
                  "SELECT k % 2, v % 3 = 0, avg(v::numeric), var_pop(v) FROM t GROUP BY 1, 2 ORDER BY 1, 2",
                  "SELECT k, count(*) FILTER (WHERE v > 500), max(pad) FROM t GROUP BY k ORDER BY k",
                  "SELECT DISTINCT k FROM t GROUP BY k ORDER BY k", "SELECT k FROM t GROUP BY k HAVING sum(v) > 0 ORDER BY k"):
        for n in range(4):
            agree_on_result(reader, query)
            writer.execute("UPDATE t SET v = v + 1 WHERE id = %s", [n * 1000 + 3])


def test_questions_that_come_once(connect):
    """No parts are stored before the same is asked again: of a kept plan, with the same values."""
    session = connect("-c pg_arrow_cache.fragment_min_time=0 -c pg_arrow_cache.min_execution_time=0 -c max_parallel_workers_per_gather=0", prepare_threshold=None)
    session.execute("CREATE TABLE large AS SELECT g AS id, g % 5 AS k, g AS v, repeat('x', 900) AS pad FROM generate_series(1, 75000) g; ANALYZE large")
    query = "SELECT k, count(*), sum(v) FROM large WHERE v <> {} GROUP BY k ORDER BY k"
    counted = "SELECT fragments_stored FROM arrow_cache.stats"

    def stored(ask):
        before = session.rows(counted)[0][0]
        ask()
        return session.rows(counted)[0][0] - before

    for number in range(6):
        assert stored(lambda: session.rows(query.format(number))) == 0
    session.execute("UPDATE large SET pad = '' WHERE id = 7")
    assert 8 < stored(lambda: session.rows(query.format(3))) < 20
    agree_on_result(session, query.format(3))
    session.execute("UPDATE large SET pad = '' WHERE id = 8")
    assert 30 < stored(lambda: session.rows(query.format(3))) <= 70
    session.execute("UPDATE large SET pad = '' WHERE id = 9")
    assert 0 < stored(lambda: session.rows(query.format(3))) <= 20
    agree_on_result(session, query.format(3))
    session.execute("SET plan_cache_mode = force_generic_plan; PREPARE p (int) AS " + query.format("$1"))
    # Each change has the server plan anew, until it is known what parts are worth.
    found = []
    for number in range(30, 42):
        session.execute("UPDATE large SET pad = '' WHERE id = %s", [number])
        assert stored(lambda: session.rows(f"EXECUTE p ({number})")) == 0
        session.execute("UPDATE large SET pad = '' WHERE id = %s", [number + 100])
        found.append(stored(lambda: session.rows("EXECUTE p (12)")))
    assert max(found) > 8 and found[-1] <= 20, found
    assert session.rows("EXECUTE p (12)") == session.uncached(query.format(12))


def test_cancelled(writer, reader):
    """Nothing of a pass that was cancelled is wrong, or left behind."""
    writer.execute("INSERT INTO t SELECT g, 1, g % 1000, now(), 'x' FROM generate_series(1, 60000) g; ANALYZE t")
    for milliseconds in range(1, 60, 4):
        with reader.statement_timeout(milliseconds):
            try:
                reader.rows(GROUPS)
            except psycopg.errors.QueryCanceled:
                pass
        writer.execute("UPDATE t SET v = v + 1 WHERE id = %s", [milliseconds * 60])
    agree_on_result(reader, GROUPS)


WAYS = [
    "UPDATE t SET v = v + 1 WHERE id = {id}",
    "UPDATE t SET v = -v, pad = repeat('z', {length}) WHERE id BETWEEN {id} AND {id} + 3",
    "DELETE FROM t WHERE id = {id}",
    "DELETE FROM t WHERE id BETWEEN {id} AND {id} + 40",
    "INSERT INTO t SELECT {id} + g, g % 5, g, now(), repeat('n', {length}) FROM generate_series(1, 30) g",
    "SAVEPOINT s; UPDATE t SET v = v + 1 WHERE id < {id}; ROLLBACK TO s",
    "SAVEPOINT s; INSERT INTO t VALUES ({id}, 2, 2); DELETE FROM t WHERE id = {id}; RELEASE s",
    "UPDATE names SET name = name || 'x' WHERE k = {id} % 5",
    "SELECT * FROM t WHERE id = {id} FOR UPDATE",
    "MERGE INTO t USING (VALUES ({id}), (-{id})) AS n (id) ON t.id = n.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (n.id, 4, 4)",
]
RARE = ["UPDATE t SET k = (k + 1) % 5 WHERE v % 97 = {id} % 97", "COPY t (id, k, v) FROM PROGRAM 'echo {id},2,3' (FORMAT csv)", "TRUNCATE t; INSERT INTO t SELECT g, g % 5, g, now(), repeat('x', 100) FROM generate_series(1, 2000) g", "CLUSTER t USING t_id_idx",
        "SAVEPOINT s; TRUNCATE t; ROLLBACK TO s", "ALTER TABLE t SET (fillfactor = {fill})", "ALTER TABLE t ALTER v TYPE int USING v + 0"]
SERVED = "SELECT fragments_served FROM arrow_cache.stats"
BETWEEN = ["VACUUM t", "VACUUM FULL t", "ANALYZE t", "VACUUM FREEZE t"]


@pytest.mark.parametrize("seed", range(4))
def test_at_random(writer, reader, connect, seed):
    """Whatever is written, by two writers at once: what is served is what executing gives under the same snapshot."""
    chance = random.Random(seed)
    errors, done = [], threading.Event()

    def write(session, own):
        session.execute("SET lock_timeout = '2s'")
        # The reader asks several times in a minute of writing, in this proportion.
        while not done.wait(own.choice([0, 0.02, 0.05])):
            try:
                if own.random() < 0.04:
                    session.execute(own.choice(BETWEEN))
                    continue
                with session.transaction(force_rollback=own.random() < 0.15):
                    for _ in range(own.randint(1, 3)):
                        way = own.choice(RARE if own.random() < 0.03 else WAYS)
                        session.execute(way.format(id=own.randint(1, 4000), length=own.choice([1, 100, 1500]), fill=own.choice([40, 90])))
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                pass
            except Exception as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=write, args=(connect(), random.Random(seed * 10 + n))) for n in (1, 2)]
    for thread in threads:
        thread.start()
    before = reader.rows(SERVED)[0][0]
    try:
        for _ in range(120):
            query = chance.choice(QUESTIONS)
            level = chance.choice(["REPEATABLE READ", "REPEATABLE READ", "READ COMMITTED"])
            reader.execute(f"BEGIN ISOLATION LEVEL {level}")
            for _ in range(chance.randint(1, 3)):
                rows = reader.rows(query)
                if level == "REPEATABLE READ":
                    assert rows == reader.uncached(query), query
                query = chance.choice(QUESTIONS)
            reader.execute("COMMIT")
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not errors, errors
    for query in QUESTIONS:
        agree_on_result(reader, query)
    assert reader.rows(SERVED)[0][0] > before


@pytest.mark.parametrize("query, told", [
    (GROUPS, "can be combined"), ("SELECT count(*) FROM t WHERE at > '2024-01-02'", "can be combined"), ("SELECT id FROM t ORDER BY id", None),
    ("SELECT sum(v) FROM t WHERE id = 7", "The plan does not read the whole table."),
    ("SELECT count(*) FROM t WHERE at > now() - interval '1 day'", "asks each range of blocks for the time"),
    ("SELECT k, count(*) FROM t GROUP BY ROLLUP (k)", "It has grouping sets."),
])
def test_why_tells_of_zones(reader, query, told):
    """By the server's own plan, and whether the query is cached itself or not."""
    for prefix in ("", "stored"):
        detail = reader.rows("SELECT detail FROM arrow_cache.why(%s::text)", [query])[0][0]
        assert (told in detail) if told else "of stored parts" not in detail, (prefix, detail)
        for _ in range(3):
            reader.execute(query)
