"""Functions in PL/pgSQL that their owners have declared pure: the queries that they run while an answer is computed are looked at, and the answer
rests on what those read. Each answer is compared with that of the same statement without the cache."""

import os
import subprocess

import psycopg
import pytest

from support.agreement import QUERY, agree
from support.session import DSN

TABLES = """
    CREATE TABLE t AS SELECT g AS a, 't' || g % 3 AS tenant FROM generate_series(1, 12) g;
    CREATE TABLE member (name name, tenant text, rank int);
    INSERT INTO member VALUES ('postgres', 't1', 1), ('declared_a', 't1', 1), ('declared_b', 't2', 2);
    CREATE TABLE rare (n int);
    INSERT INTO rare VALUES (100);
    CREATE FUNCTION mine() RETURNS text LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
        BEGIN RETURN (SELECT tenant FROM member WHERE name = current_user); END $$;
    CREATE FUNCTION sometimes(x int) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
        DECLARE found bigint;
        BEGIN
            IF x > 6 THEN SELECT sum(n) INTO found FROM rare; ELSE found := x; END IF;
            RETURN found;
        END $$;
    SECURITY LABEL FOR pg_arrow_cache ON FUNCTION mine() IS 'pure';
    SECURITY LABEL FOR pg_arrow_cache ON FUNCTION sometimes(int) IS 'pure';
"""


@pytest.fixture
def made(session):
    session.prepare_threshold = 10**9
    session.execute(TABLES)
    return session


@pytest.fixture
def roles(made):
    schema = made.rows("SELECT current_schema()")[0][0]
    made.execute(f"CREATE ROLE declared_a; CREATE ROLE declared_b; GRANT USAGE ON SCHEMA {schema} TO declared_a, declared_b; "
                 f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO declared_a, declared_b")
    yield made
    made.execute("RESET ROLE; DROP OWNED BY declared_a, declared_b; DROP ROLE declared_a, declared_b")


def declare(session, signature, word="'pure'"):
    session.execute(f"SECURITY LABEL FOR pg_arrow_cache ON FUNCTION {signature} IS {word}")


def test_declared(made, other):
    assert agree(made) == ("HIT", None)
    for change in ("UPDATE member SET tenant = 't2' WHERE name = 'postgres'", "DELETE FROM member WHERE name = 'postgres'",
                   "INSERT INTO member VALUES ('postgres', 't0')", "UPDATE t SET tenant = 't0' WHERE a = 1"):
        made.execute(change)
        rows = made.rows(QUERY)
        assert made.status() == "STALE"
        assert rows == made.uncached(QUERY)
        assert agree(made) == ("HIT", None)
    declare(made, "mine()", "NULL")
    assert agree(made) == ("BYPASS", "user_defined_function")
    declare(made, "mine()")
    # Plans that the session has kept are older than that.
    made.execute("DISCARD PLANS")
    assert agree(made) == ("HIT", None)
    other.prepare_threshold = 10**9
    assert agree(other) == ("HIT", None)


def test_rests_on_what_was_read(made):
    """What a function reads depends on its arguments."""
    small, large = "SELECT a, sometimes(a) FROM t WHERE a < 3 ORDER BY a", "SELECT a, sometimes(a) FROM t WHERE a < 9 ORDER BY a"
    for query in (small, large):
        assert agree(made, query) == ("HIT", None)
    made.execute("UPDATE rare SET n = n + 1")
    made.rows(small)
    assert made.status() == "HIT"
    rows = made.rows(large)
    assert made.status() == "STALE"
    assert rows == made.uncached(large)
    assert made.rows("SELECT count(*) FROM arrow_cache.entries WHERE query ~ 'sometimes' AND 'rare'::regclass = ANY (relations)") == [(1,)]


REFUSED = {
    "volatile": ("VOLATILE SET search_path FROM CURRENT", "RETURN (SELECT count(*) FROM rare);", "user_defined_function"),
    "immutable": ("IMMUTABLE SET search_path FROM CURRENT", "RETURN (SELECT count(*) FROM rare);", "user_defined_function"),
    "parallel safe": ("STABLE PARALLEL SAFE SET search_path FROM CURRENT", "RETURN (SELECT count(*) FROM rare);", "user_defined_function"),
    "definer": ("STABLE SECURITY DEFINER SET search_path FROM CURRENT", "RETURN (SELECT count(*) FROM rare);", "user_defined_function"),
    "no path": ("STABLE", "RETURN (SELECT count(*) FROM rare);", "user_defined_function"),
    "another setting": ("STABLE SET work_mem = '1MB'", "RETURN (SELECT count(*) FROM rare);", "user_defined_function"),
    "more settings": ("STABLE SET search_path FROM CURRENT SET work_mem = '1MB'", "RETURN (SELECT count(*) FROM rare);", "user_defined_function"),
}
NOT_STORED = {
    "random": ("RETURN (SELECT count(*) FROM rare WHERE random() < 2);", "volatile_function"),
    "now": ("RETURN (SELECT count(*) FROM rare WHERE now()::text <> '');", "moving_clock"),
    "today": ("RETURN (SELECT count(*) FROM rare WHERE CURRENT_DATE > '2000-01-01');", "session_function"),
    "a setting": ("RETURN (SELECT count(*) FROM rare WHERE current_setting('app.x', true) IS NULL);", "session_function"),
    "a catalog": ("RETURN (SELECT count(*) FROM pg_am);", "system_catalog"),
    "a temporary table": ("RETURN (SELECT count(*) FROM passing);", "temporary_relation"),
    "a second query": ("PERFORM n FROM rare; PERFORM 1 FROM rare WHERE random() < 2; RETURN 1;", "volatile_function"),
    "EXECUTE": ("DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM rare WHERE random() < 2' INTO n; RETURN n; END;", "volatile_function"),
    "what fails": ("BEGIN PERFORM 1 / (n - 100) FROM rare WHERE random() < 2; EXCEPTION WHEN division_by_zero THEN NULL; END; RETURN 1;", "volatile_function"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(made, name):
    options, body, reason = REFUSED[name]
    made.execute(f"CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql {options} AS $$ BEGIN {body} END $$")
    declare(made, "f()")
    assert agree(made, "SELECT a, f() FROM t ORDER BY a") == ("BYPASS", reason)


@pytest.mark.parametrize("name", NOT_STORED)
def test_not_stored(made, name):
    body, reason = NOT_STORED[name]
    made.execute("CREATE TEMPORARY TABLE passing (a int)")
    made.execute(f"CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$ BEGIN {body} END $$")
    declare(made, "f()")
    query = "SELECT a, f() FROM t ORDER BY a"
    assert agree(made, query) == ("MISS", reason)
    # A query that does not call it is stored.
    assert agree(made, "SELECT a, CASE WHEN a < 0 THEN f() END FROM t ORDER BY a") == ("HIT", None)


def test_names_are_those_of_the_function(made, other, connect):
    """The function sets the path by which its names are found, so that of the caller does not matter. A temporary table comes before it."""
    schema = made.rows("SELECT current_schema()")[0][0]
    made.execute(f"CREATE SCHEMA {schema}_ahead; CREATE TABLE {schema}_ahead.member AS SELECT 'postgres'::name AS name, 't0' AS tenant")

    def all_get(rows):
        for path in (f"{schema}_ahead, {schema}", schema):
            for session in (connect(), made):
                session.execute(f"SET search_path = {path}")
                for _ in range(2):
                    assert session.rows(QUERY) == session.uncached(QUERY) == rows
            assert connect().rows(QUERY) == rows

    try:
        all_get([(1,), (4,), (7,), (10,)])
        assert agree(other) == ("HIT", None)
        made.execute("CREATE TEMPORARY TABLE member AS SELECT 'postgres'::name AS name, 't2' AS tenant")
        # Others store an answer under the definitions of now, and do not see that table.
        fresh = connect()
        assert [fresh.rows(QUERY) for _ in range(3)] == [[(1,), (4,), (7,), (10,)]] * 3
        assert fresh.status() == "HIT"
        for _ in range(3):
            assert made.rows(QUERY) == made.uncached(QUERY) == [(2,), (5,), (8,), (11,)]
            assert made.status() != "HIT"
        made.execute("DROP TABLE pg_temp.member")
        other.execute("CREATE OR REPLACE FUNCTION mine() RETURNS text LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$ BEGIN RETURN 't0'; END $$")
        all_get([(3,), (6,), (9,), (12,)])
    finally:
        made.execute(f"SET search_path = {schema}; DROP SCHEMA {schema}_ahead CASCADE")


@pytest.mark.parametrize("prepare", [False, True])
def test_roles(roles, prepare):
    roles.execute("ALTER TABLE member ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON member USING (name = current_user AND rank < 2)")
    expected = {"postgres": [1, 4, 7, 10], "declared_a": [1, 4, 7, 10], "declared_b": []}
    for _ in range(2):
        for role, rows in expected.items():
            roles.execute(f"SET ROLE {role}")
            for _ in range(4):
                assert [a for (a,) in roles.rows(QUERY, prepare=prepare)] == rows
            roles.execute("RESET ROLE")
    roles.execute("REVOKE SELECT ON member FROM declared_a; SET ROLE declared_a")
    for _ in range(2):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table member"):
            roles.execute(QUERY, prepare=prepare)


def test_plans_from_before(made):
    """Plans that the language has kept before there was a need for their verdicts say nothing of what they read."""
    for _ in range(7):
        made.rows("SELECT mine(), sometimes(7)")
    query = "SELECT a, sometimes(a), mine() FROM t ORDER BY a"
    for _ in range(2):
        made.rows(query)
        assert (made.status(), made.reason()) == ("MISS", "old_plan")
    made.execute("DISCARD PLANS")
    assert agree(made, query) == ("HIT", None)


@pytest.mark.parametrize("prepare", [False, True])
def test_kept_plans(made, other, prepare):
    """The language keeps plans of the queries in a function: after some executions, for all values."""
    query = "SELECT a, sometimes(a) FROM t ORDER BY a"
    for n in range(12):
        assert agree(made, query, prepare=prepare)[0] in ("HIT", "MISS", "BYPASS")
        other.execute("UPDATE rare SET n = n + 1")
        if n % 3 == 0:
            other.execute("CREATE INDEX ON rare (n)")
    fresh = "SELECT a, sometimes(a), 2 FROM t ORDER BY a"
    assert agree(other, fresh) == ("HIT", None)


def test_own_writes(made, other):
    assert agree(made) == ("HIT", None)
    with made.transaction():
        made.execute("UPDATE member SET tenant = 't0'")
        assert agree(made) == ("BYPASS", "own_writes")
        assert other.rows(QUERY) == [(1,), (4,), (7,), (10,)]
    assert other.rows(QUERY) == [(3,), (6,), (9,), (12,)]


def test_change_between_rows(made, other):
    """A table that is read first after somebody has changed it: the snapshot is older than the change."""
    query = "SELECT a, sometimes(a) FROM t"
    with made.transaction():
        made.execute(f"DECLARE c CURSOR FOR {query}")
        made.execute("FETCH 2 FROM c")
        other.execute("UPDATE rare SET n = 7")
        assert (7, 100) in made.execute("FETCH ALL FROM c").fetchall()
    made.rows(query)
    assert made.status() == "MISS"
    assert agree(made, query) == ("HIT", None)
    with made.transaction():
        made.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        made.rows("SELECT 1 FROM t")
        other.execute("UPDATE rare SET n = 8")
        for _ in range(2):
            assert (7, 7) in made.rows(query)
            assert made.status() != "HIT"
    assert (7, 8) in made.rows(query)
    assert agree(made, query) == ("HIT", None)


def test_queries_of_others(made):
    """What runs between the reads of a cursor is not below its query."""
    query = "SELECT a, sometimes(a) FROM t"
    with made.transaction():
        made.execute("SET TRANSACTION READ ONLY")    # else the current row could be updated, and nothing is stored
        made.execute(f"DECLARE c CURSOR FOR {query}")
        made.execute("FETCH 2 FROM c")
        made.execute("DO $$ BEGIN PERFORM count(*) FROM member WHERE random() < 2; END $$")
        made.execute("FETCH ALL FROM c")
        made.execute("CLOSE c")
    made.rows(query)
    assert made.status() == "HIT"


def test_in_a_policy(roles):
    roles.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (tenant = mine()); SET ROLE declared_b")
    assert agree(roles, "SELECT a FROM t ORDER BY a") == ("HIT", None)
    assert roles.rows("SELECT a FROM t ORDER BY a") == [(2,), (5,), (8,), (11,)]


def test_inside_functions_in_sql(made):
    made.execute("CREATE FUNCTION stable_one() RETURNS text LANGUAGE sql STABLE RETURN mine(); "
                 "CREATE FUNCTION volatile_one(x text) RETURNS boolean LANGUAGE sql RETURN x = mine() OR x IS NULL")
    assert agree(made, "SELECT a FROM t WHERE tenant = stable_one()") == ("HIT", None)
    assert agree(made, "SELECT a FROM t WHERE tenant = mine() AND volatile_one(tenant)") == ("HIT", None)


def test_partitions_left_out_at_the_start(made):
    """Functions that run before the first row are not looked at."""
    made.execute("CREATE TABLE parted (tenant text, n int) PARTITION BY LIST (tenant); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN ('t1'); "
                 "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN ('t2'); INSERT INTO parted VALUES ('t1', 1), ('t2', 2)")
    assert agree(made, "SELECT n FROM parted WHERE tenant = mine()") == ("BYPASS", "too_complex")


def test_exports(made):
    made.rows("SELECT count(*) FROM arrow_cache.messages(%s)", [QUERY])
    assert agree(made) == ("HIT", None)
    assert made.rows("SELECT arrow_cache.etag(%s)", [QUERY]) == [(None,)]


def test_who_may_declare(roles):
    roles.execute("CREATE FUNCTION plain() RETURNS int LANGUAGE sql STABLE RETURN 1")
    for signature, word, error in (("plain()", "'pure'", "only a function in PL/pgSQL"), ("mine()", "'never'", "unknown cache policy of a function")):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=error):
            declare(roles, signature, word)
    roles.execute("SET ROLE declared_a")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner of function mine"):
        declare(roles, "mine()", "NULL")


def test_rolled_back(made):
    declare(made, "mine()", "NULL")
    made.execute("BEGIN")
    declare(made, "mine()")
    made.execute("ROLLBACK")
    assert agree(made) == ("BYPASS", "user_defined_function")


def test_dump(made):
    schema = made.rows("SELECT current_schema()")[0][0]
    directory = subprocess.run([os.environ.get("PG_CONFIG", "/usr/lib/postgresql/15/bin/pg_config"), "--bindir"], check=True, capture_output=True, text=True).stdout.strip()
    dump = subprocess.run([f"{directory}/pg_dump", "--schema", schema, "--schema-only", "--dbname", DSN],
                          check=True, capture_output=True, text=True).stdout
    assert f"SECURITY LABEL FOR pg_arrow_cache ON FUNCTION {schema}.mine() IS 'pure';" in dump


def test_partition_that_only_a_function_reads(made):
    """The plan leaves the partition out while it runs, and the function reads it."""
    made.execute("CREATE TABLE parted (tenant text, n int) PARTITION BY LIST (tenant); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN ('t1'); "
                 "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN ('t2'); INSERT INTO parted VALUES ('t1', 1), ('t2', 2)")
    made.execute("CREATE FUNCTION aside() RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS "
                 "'BEGIN RETURN (SELECT sum(n) FROM parted_2); END'")
    declare(made, "aside()")
    query = "SELECT n, aside() FROM parted WHERE tenant = (SELECT max(tenant) FROM member WHERE rank = 1)"
    assert agree(made, query) == ("HIT", None)
    made.execute("UPDATE parted SET n = 20 WHERE n = 2")
    assert made.rows(query) == [(1, 20)]
    assert made.status() == "STALE"


def test_behind_a_wrapper_in_other_processes(made, connect):
    """A wrapper that says it may run in parallel does not make the function that it calls run where nobody looks: it stands in the query itself."""
    made.execute("""
        CREATE TABLE big AS SELECT g AS a FROM generate_series(1, 20000) g;
        ALTER TABLE big SET (parallel_workers = 2);
        CREATE FUNCTION wrap() RETURNS bigint STABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT sometimes(7)';
        SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
        SET parallel_leader_participation = off""")
    query = "SELECT count(*) FROM big WHERE a > wrap()"
    assert "Gather" not in str(made.rows("EXPLAIN " + query))
    other = connect()
    for n in (1000, 2000):
        assert agree(made, query) == ("HIT", None)
        other.execute(f"UPDATE rare SET n = {n}")
    assert made.rows(query) == made.uncached(query) == [(18000,)]


@pytest.mark.parametrize("prepare", [False, True])
def test_plans_of_another_role(roles, prepare):
    """PL/pgSQL keeps the plan that another role has made, in which a function is inlined that this role may not execute."""
    roles.execute("""
        CREATE FUNCTION secret(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT $1 + 1';
        REVOKE EXECUTE ON FUNCTION secret(int) FROM PUBLIC;
        CREATE FUNCTION through() RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$ BEGIN RETURN (SELECT sum(secret(rank)) FROM member); END $$;
        SECURITY LABEL FOR pg_arrow_cache ON FUNCTION through() IS 'pure'""")
    query = "SELECT a, through() FROM t ORDER BY a"
    expected = roles.uncached(query)
    for _ in range(3):
        assert roles.rows(query, prepare=prepare) == expected
    roles.execute("SET ROLE declared_a")
    for _ in range(3):
        assert roles.uncached(query) == expected
        assert roles.rows(query, prepare=prepare) == expected
    roles.execute("RESET ROLE; CREATE TABLE unrelated (); SET ROLE declared_a")
    for _ in range(3):
        assert roles.uncached(query) == expected
        assert roles.rows(query, prepare=prepare) == expected
