"""Functions of users in SQL that return sets, in FROM: the planner puts their bodies in the place of the calls, and so are they cached. Where it does
not, queries with them are bypassed. Each answer is compared with that of the same statement without the cache."""

import psycopg
import pytest

from support.agreement import agree
from support.placeholders import plans_of

TABLES = """
    CREATE TABLE t AS SELECT g AS a, 't' || g % 3 AS tenant FROM generate_series(1, 12) g;
    CREATE TABLE member (name name, tenant varchar(5), rank int);
    INSERT INTO member VALUES ('postgres', 't1', 1), ('rows_a', 't1', 1), ('rows_b', 't2', 2);
"""


@pytest.fixture
def made(session):
    session.prepare_threshold = 10**9
    session.execute(TABLES)
    return session


BODY = "LANGUAGE sql STABLE AS 'SELECT * FROM member WHERE rank >= $1'"
ONE = "LANGUAGE sql STABLE AS 'SELECT name, rank FROM member WHERE rank >= $1 ORDER BY rank DESC, name'"
LISTS = "f(x int) RETURNS TABLE (of_whom name, high bigint) LANGUAGE sql STABLE AS 'SELECT name, rank FROM member WHERE rank >= x'"
SERVED = {
    "rows of a table": (f"f(int) RETURNS SETOF member {BODY}", "SELECT * FROM f(1)"),
    "IMMUTABLE": ("f(int) RETURNS SETOF member LANGUAGE sql IMMUTABLE AS 'SELECT * FROM member WHERE rank >= $1'", "SELECT * FROM f(1)"),
    "a condition outside": (f"f(int) RETURNS SETOF member {BODY}", "SELECT name FROM f(1) WHERE tenant = 't1'"),
    "joined": (f"f(int) RETURNS SETOF member {BODY}", "SELECT t.a, f.name FROM t JOIN f(0) USING (tenant)"),
    "lateral": (f"f(int) RETURNS SETOF member {BODY}", "SELECT t.a, f.name FROM t, f(t.a)"),
    "an outer join": (f"f(int) RETURNS SETOF member {BODY}", "SELECT t.a, f.name FROM t LEFT JOIN LATERAL f(t.a) ON t.tenant = f.tenant"),
    "twice": (f"f(int) RETURNS SETOF member {BODY}", "SELECT x.name, y.name FROM f(1) x, f(2) y"),
    "aggregated": (f"f(int) RETURNS SETOF member {BODY}", "SELECT tenant, count(*) FROM f(1) GROUP BY tenant"),
    "in a sub-query": (f"f(int) RETURNS SETOF member {BODY}", "SELECT a FROM t WHERE tenant IN (SELECT tenant FROM f(2))"),
    "in a sub-query, of an outer column": (f"f(int) RETURNS SETOF member {BODY}", "SELECT a FROM t WHERE EXISTS (SELECT FROM f(a) x WHERE x.tenant = t.tenant)"),
    "in WITH": (f"f(int) RETURNS SETOF member {BODY}", "WITH w AS MATERIALIZED (SELECT * FROM f(1)) SELECT * FROM w"),
    "in a union": (f"f(int) RETURNS SETOF member {BODY}", "SELECT name FROM f(1) UNION ALL SELECT tenant FROM f(2)"),
    "whole rows": (f"f(int) RETURNS SETOF member {BODY}", "SELECT (x).name, x::text FROM f(1) x"),
    "as PostgREST asks": ("f(low int, who text DEFAULT 'r%') RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT * FROM member WHERE rank >= low AND name LIKE who'",
                          "WITH source AS (SELECT c.* FROM f(who => '%o%', low => 1) c) SELECT count(_p), coalesce(json_agg(_p), '[]')::text FROM (SELECT * FROM source) _p"),
    "RETURNS TABLE": (LISTS, "SELECT * FROM f(1)"),
    "RETURNS TABLE, whole rows": (LISTS, "SELECT (x).high FROM f(1) x"),
    "of one column": ("f() RETURNS TABLE (high bigint) LANGUAGE sql STABLE AS 'SELECT rank FROM member'", "SELECT * FROM f()"),
    "OUT columns of a set": (f"f(int, OUT n name, OUT r int) RETURNS SETOF record {ONE}", "SELECT r, n FROM f(1)"),
    "columns that the query lists": ("f() RETURNS SETOF record LANGUAGE sql STABLE AS 'SELECT name, rank FROM member'", "SELECT * FROM f() AS x (n name, r int)"),
    "a set of values": ("f(int) RETURNS SETOF text LANGUAGE sql STABLE AS 'SELECT tenant FROM member WHERE rank >= $1'", "SELECT * FROM f(1)"),
    "a tree": ("f(x int) RETURNS SETOF member LANGUAGE sql STABLE BEGIN ATOMIC SELECT * FROM member WHERE rank >= x; END", "SELECT * FROM f(1)"),
    "conversions": ("f() RETURNS TABLE (r numeric, n text) LANGUAGE sql STABLE AS 'SELECT rank, name FROM member'", "SELECT * FROM f()"),
    "a union inside": ("f() RETURNS TABLE (r numeric) LANGUAGE sql STABLE AS 'SELECT rank FROM member UNION SELECT a FROM t'", "SELECT * FROM f()"),
    "an order and a limit": ("f() RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT * FROM member ORDER BY name LIMIT 2'", "SELECT * FROM f()"),
    "values": ("f() RETURNS TABLE (n int, s text) LANGUAGE sql STABLE AS $$ VALUES (1, 'a'), (2, 'b') $$", "SELECT t.a, f.s FROM t, f() WHERE f.n = t.a"),
    "polymorphic": ("f(anyelement) RETURNS TABLE (v anyelement, n name) LANGUAGE sql STABLE AS 'SELECT $1, name FROM member'", "SELECT * FROM f(1.5)"),
    "variadic": ("f(VARIADIC int[]) RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT * FROM member WHERE rank = ANY ($1)'", "SELECT * FROM f(1, 2)"),
    "a default": (f"f(x int DEFAULT 2) RETURNS SETOF member {BODY}", "SELECT * FROM f()"),
    "names of arguments": ("f(x int, y int DEFAULT 3) RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT * FROM member WHERE rank BETWEEN x AND y'",
                           "SELECT * FROM f(y => 2, x => 1)"),
    "a function in its argument": (f"f(int) RETURNS SETOF member {BODY}; CREATE FUNCTION one(x int) RETURNS int LANGUAGE sql STABLE RETURN x / 2", "SELECT * FROM f(one(2))"),
    "in a function": (f"f(int) RETURNS SETOF member {BODY}; CREATE FUNCTION g() RETURNS SETOF name LANGUAGE sql STABLE AS 'SELECT name FROM f(1)'",
                      "SELECT * FROM g()"),
    "in a view": (f"f(int) RETURNS SETOF member {BODY}; CREATE VIEW v AS SELECT * FROM f(1)", "SELECT * FROM v"),
    "a view inside": ("f() RETURNS SETOF text LANGUAGE sql STABLE AS 'SELECT tenant FROM shown'", "SELECT * FROM f()"),
    "a partitioned table": ("f() RETURNS SETOF parted LANGUAGE sql STABLE AS 'SELECT * FROM parted'", "SELECT p.a, m.name FROM f() p, member m"),
}
READS_NOTHING = {"values"}


@pytest.mark.parametrize("prepare", [False, True])
@pytest.mark.parametrize("name", SERVED)
def test_served(made, name, prepare):
    function, query = SERVED[name]
    made.execute("CREATE VIEW shown AS SELECT tenant FROM member WHERE rank > 0; CREATE TABLE parted (a int) PARTITION BY LIST (a); "
                 "CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1, 2); INSERT INTO parted VALUES (1), (2)")
    made.execute(f"CREATE FUNCTION {function}")
    query = f"SELECT q.* FROM ({query}) q ORDER BY 1"
    assert agree(made, query, prepare=prepare) == ("HIT", None)
    for change in ("UPDATE member SET tenant = 't2' WHERE rank = 1", "INSERT INTO member VALUES ('x', 't0', 3)", "DELETE FROM member WHERE rank = 3"):
        made.execute(change)
        rows = made.rows(query, prepare=prepare)
        assert made.status() == ("HIT" if name in READS_NOTHING else "STALE")
        assert rows == made.uncached(query)
        assert agree(made, query, prepare=prepare) == ("HIT", None)
    assert made.rows("SELECT cacheable FROM arrow_cache.why(%s)", [query]) == [(True,)]


REFUSED = {
    "volatile": ("f() RETURNS SETOF member LANGUAGE sql AS 'SELECT * FROM member'", "f()", "user_defined_function"),
    "STRICT": ("f(int) RETURNS SETOF member LANGUAGE sql STABLE STRICT AS 'SELECT * FROM member'", "f(1)", "user_defined_function"),
    "a row": (f"f(int) RETURNS member {BODY}", "f(2)", "user_defined_function"),
    "OUT columns": (f"f(int, OUT n name, OUT r int) {ONE}", "f(1)", "user_defined_function"),
    "a column that is a row": ("f() RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT m FROM member m'", "f()", "user_defined_function"),
    "numbered": (f"f(int) RETURNS SETOF member {BODY}", "f(1) WITH ORDINALITY", "user_defined_function"),
    "side by side": (f"f(int) RETURNS SETOF member {BODY}", "ROWS FROM (f(1), generate_series(1, 4)) x", "user_defined_function"),
    "a volatile argument": (f"f(int) RETURNS SETOF member {BODY}", "f((random() * 0)::int)", "user_defined_function"),
    "a sub-query for an argument": (f"f(int) RETURNS SETOF member {BODY}", "f((SELECT 1))", "user_defined_function"),
    "definer": ("f() RETURNS SETOF member LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT * FROM member'", "f()", "user_defined_function"),
    "SET": ("f() RETURNS SETOF member LANGUAGE sql STABLE SET work_mem = '1MB' AS 'SELECT * FROM member'", "f()", "user_defined_function"),
    "two statements": ("f() RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT 1; SELECT * FROM member'", "f()", "user_defined_function"),
    "PL/pgSQL": ("f() RETURNS SETOF member LANGUAGE plpgsql STABLE AS 'BEGIN RETURN QUERY SELECT * FROM member; END'", "f()", "user_defined_function"),
    "random": ("f() RETURNS TABLE (r float) LANGUAGE sql STABLE AS 'SELECT random() FROM member'", "f()", "volatile_function"),
    "another that is not inlined": ("v() RETURNS SETOF member LANGUAGE sql AS 'SELECT * FROM member'; "
                                    "CREATE FUNCTION f() RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT * FROM v()'", "f()", "user_defined_function"),
    "a constraint of a domain": ("f() RETURNS TABLE (n positive) LANGUAGE sql STABLE AS 'SELECT rank FROM member'", "f()", "domain_constraint"),
    "a catalog": ("f() RETURNS TABLE (n name) LANGUAGE sql STABLE AS 'SELECT relname FROM pg_class'", "f()", "system_catalog"),
    "a temporary table": ("f() RETURNS SETOF passing LANGUAGE sql STABLE AS 'SELECT * FROM passing'", "f()", "temporary_relation"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(made, name):
    made.execute("CREATE TEMPORARY TABLE passing (a int); CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    function, call, reason = REFUSED[name]
    made.execute(f"CREATE FUNCTION {function}")
    query = f"SELECT * FROM {call}"
    for _ in range(2):
        made.rows(query)
        assert (made.status(), made.reason()) == ("BYPASS", reason)
    assert made.rows("SELECT cacheable, reason FROM arrow_cache.why(%s)", [query]) == [(False, reason)]


SEARCH = "CREATE OR REPLACE FUNCTION search(low int) RETURNS SETOF member LANGUAGE sql STABLE {} AS 'SELECT * FROM member WHERE {}'"
ASKED = "SELECT name FROM search(1) ORDER BY name"


@pytest.mark.parametrize("prepare", [False, True])
def test_changed_definitions(made, other, prepare):
    """A new body, one that is not inlined, a new meaning of the old one, new columns."""
    made.execute(SEARCH.format("", "rank >= low"))
    for change in (SEARCH.format("", "rank > low"), SEARCH.format("STRICT", "rank >= low"), SEARCH.format("", "rank >= low"),
                   SEARCH.format("ROWS 1", "rank = low"), "ALTER TABLE member ADD COLUMN more int", "ALTER TABLE member DROP COLUMN tenant",
                   "ALTER FUNCTION search(int) VOLATILE", "ALTER FUNCTION search(int) STABLE", "ALTER FUNCTION search(int) SECURITY DEFINER",
                   "ALTER FUNCTION search(int) SECURITY INVOKER", "CREATE FUNCTION search(bigint) RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT * FROM member'",
                   "TRUNCATE member", "INSERT INTO member (name, rank) VALUES ('new', 1)"):
        for _ in range(3):
            made.rows(ASKED, prepare=prepare)
        other.execute(change)
        for _ in range(2):
            assert made.rows(ASKED, prepare=prepare) == made.uncached(ASKED), change
    assert agree(made, ASKED, prepare=prepare) == ("HIT", None)


@pytest.mark.parametrize("prepare", [False, True])
def test_other_tables_of_the_name(made, other, connect, prepare):
    made.execute("CREATE FUNCTION counted() RETURNS TABLE (n bigint) LANGUAGE sql STABLE AS 'SELECT count(*) FROM member'")
    ahead = f"{connect.schema}_ahead"
    made.execute(f"CREATE SCHEMA {ahead}; SET search_path = {ahead}, {connect.schema}")
    try:
        query = "SELECT * FROM counted()"
        assert agree(made, query, prepare=prepare) == ("HIT", None)
        other.execute(f"CREATE TABLE {ahead}.member (name name)")
        if prepare:
            # PostgreSQL keeps the plan with the old meaning, which is what the answer is kept for.
            assert made.rows(query, prepare=True) == [(3,)]
        for _ in range(2):
            assert made.rows(query, prepare=False) == [(0,)] == made.uncached(query, prepare=False)
        made.rows(query, prepare=False)
        assert made.status() == "HIT"
        made.execute(f"SET search_path = {connect.schema}")
        assert made.rows(query, prepare=prepare) == [(3,)]
        made.execute("CREATE TEMPORARY TABLE member (name name)")
        for _ in range(2):
            assert made.rows(query, prepare=False) == [(0,)]
            assert made.status() == "BYPASS"
    finally:
        made.execute(f"DROP SCHEMA {ahead} CASCADE")


@pytest.fixture
def roles(made, connect):
    made.execute(f"CREATE ROLE rows_a; CREATE ROLE rows_b; GRANT USAGE ON SCHEMA {connect.schema} TO rows_a, rows_b; "
                 f"GRANT SELECT ON ALL TABLES IN SCHEMA {connect.schema} TO rows_a, rows_b")
    yield made
    made.execute("RESET ROLE; DROP OWNED BY rows_a, rows_b; DROP ROLE rows_a, rows_b")


@pytest.mark.parametrize("prepare", [False, True])
def test_row_security_inside(roles, prepare):
    roles.execute(SEARCH.format("", "rank >= low"))
    roles.execute("ALTER TABLE member ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON member USING (name = current_user)")
    for _ in range(2):
        for role in ("rows_a", "rows_b", "postgres"):
            roles.execute(f"SET ROLE {role}")
            for _ in range(3):
                assert roles.rows(ASKED, prepare=prepare) == ([(role,)] if role != "postgres" else [("postgres",), ("rows_a",), ("rows_b",)])
            roles.execute("RESET ROLE")


@pytest.mark.parametrize("lost", ["SELECT ON member", "EXECUTE ON FUNCTION search(int)"])
def test_lost_privilege(roles, lost):
    roles.execute(SEARCH.format("", "rank >= low"))
    roles.execute("REVOKE EXECUTE ON FUNCTION search(int) FROM PUBLIC; GRANT EXECUTE ON FUNCTION search(int) TO rows_a; SET ROLE rows_a")
    assert agree(roles, ASKED) == ("HIT", None)
    roles.execute(f"RESET ROLE; REVOKE {lost} FROM rows_a; SET ROLE rows_a")
    for prepare in (False, True, False):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            roles.execute(ASKED, prepare=prepare)


def test_own_writes_and_snapshots(made, other):
    made.execute(SEARCH.format("", "rank >= low"))
    assert agree(made, ASKED) == ("HIT", None)
    with made.transaction():
        made.execute("DELETE FROM member WHERE rank = 2")
        assert made.rows(ASKED) == [("postgres",), ("rows_a",)]
        assert (made.status(), made.reason()) == ("BYPASS", "own_writes")
        assert len(other.rows(ASKED)) == 3 and other.status() == "HIT"
    with made.transaction():
        made.execute("DECLARE c CURSOR FOR SELECT name, f.a FROM search(1), t f ORDER BY a")
        first = made.execute("FETCH 2 FROM c").fetchall()
        other.execute("DELETE FROM member WHERE name = 'rows_a'")
        rest = made.execute("FETCH ALL FROM c").fetchall()
    assert len(first) + len(rest) == 24
    assert made.rows(ASKED) == [("postgres",)]


@pytest.mark.parametrize("prepare", [False, True])
def test_changed_function_inside(made, other, prepare):
    """A kept plan rests on functions that only bodies name."""
    made.execute("SET plan_cache_mode = force_generic_plan")
    made.execute(SEARCH.format("", "rank >= low"))
    made.execute("CREATE FUNCTION outside(low int) RETURNS SETOF name LANGUAGE sql STABLE AS 'SELECT name FROM search(low)'")
    query = "SELECT * FROM outside(%s) ORDER BY 1"
    for change in ("rank > low", "rank = low", "rank < low"):
        for low in (1, 2, 1, 2):
            assert made.uncached(query, [low], prepare=False) == made.rows(query, [low], prepare=prepare)
        assert made.status() == "HIT"
        other.execute(SEARCH.format("", change))


@pytest.mark.parametrize("prepare", [False, True])
def test_values_by_bind(made, prepare):
    made.execute(SEARCH.format("", "rank >= low"))
    query = "SELECT name FROM search(%s) WHERE name <> %s ORDER BY name"
    for low in (1, 2, 3):
        for status in ("MISS", "HIT", "HIT"):
            assert made.uncached(query, [low, "rows_a"], prepare=False) == made.rows(query, [low, "rows_a"], prepare=prepare)
            assert made.status() == status
        made.execute("UPDATE member SET rank = rank + 0")
        made.rows(query, [low, "rows_a"], prepare=prepare)
        assert made.status() == "STALE"


def test_hits_are_not_planned(made):
    made.execute(SEARCH.format("", "rank >= low"))
    for status in ("MISS", "HIT", "HIT"):
        made.rows(ASKED, prepare=False)
        assert made.status() == status
    assert any("ArrowCache" in line for (line,) in made.rows(f"EXPLAIN {ASKED}", prepare=False))
    assert plans_of(made, lambda: made.rows(ASKED, prepare=False))[1] == [True]


@pytest.mark.parametrize("enabled", ["off", "on"])
def test_messages_come_once(made, enabled):
    made.execute(f"SET pg_arrow_cache.enabled = {enabled}; CREATE FUNCTION f() RETURNS SETOF text LANGUAGE sql STABLE "
                 f"AS $$ SELECT tenant AS {'x' * 64} FROM member $$")
    told = []
    made.add_notice_handler(lambda notice: told.append(notice.sqlstate))
    for count in (1, 2, 3):
        made.rows("SELECT * FROM f()", prepare=False)
        assert told == ["42622"] * count


BROKEN = {
    "a body that has no meaning": ("f() RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT * FROM gone'", "DROP TABLE gone"),
    "another type": ("f() RETURNS SETOF gone LANGUAGE sql STABLE AS 'SELECT * FROM gone2'", "ALTER TABLE gone2 ALTER a TYPE text"),
    "a function that calls itself": ("f() RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT * FROM member'",
                                     "CREATE OR REPLACE FUNCTION f() RETURNS SETOF member LANGUAGE sql STABLE AS 'SELECT * FROM f()'"),
}


@pytest.mark.parametrize("prepare", [False, True])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_bodies(made, name, prepare):
    """Errors come where they come without the cache, and nowhere else."""
    function, change = BROKEN[name]
    made.execute(f"CREATE TABLE gone (LIKE member); CREATE TABLE gone2 (a int); ALTER TABLE gone2 ADD b int; DROP TABLE gone2; "
                 f"CREATE TABLE gone2 (LIKE gone); ALTER TABLE gone2 ADD a int; SET check_function_bodies = off; CREATE FUNCTION {function}; {change}")
    for query, is_raised in (("SELECT * FROM f()", True), ("SELECT a FROM t WHERE false AND EXISTS (SELECT FROM f())", False),
                             ("SELECT t.a FROM t LEFT JOIN (SELECT 1 AS one FROM f() OFFSET 0) x ON false ORDER BY 1", None)):
        found = []
        for enabled in ("off", "on", "on"):
            made.execute(f"SET pg_arrow_cache.enabled = {enabled}")
            try:
                found.append(made.rows(query, prepare=prepare))
            except psycopg.Error as error:
                found.append((error.sqlstate, str(error).splitlines()[0]))
        assert found[0] == found[1] == found[2]
        assert is_raised is None or isinstance(found[0], tuple) == is_raised


def test_who_may_not_execute(roles):
    """What was found out for a role that may not execute the function is not taken for another one."""
    roles.execute(SEARCH.format("", "rank >= low"))
    roles.execute("REVOKE EXECUTE ON FUNCTION search(int) FROM PUBLIC; GRANT EXECUTE ON FUNCTION search(int) TO rows_a")
    for _ in range(2):
        roles.execute("SET ROLE rows_b")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            roles.rows(ASKED, prepare=False)
        roles.execute("SET ROLE rows_a")
        assert agree(roles, ASKED, prepare=False) == ("HIT", None)
    roles.execute("RESET ROLE; REVOKE SELECT ON member FROM rows_a; SET ROLE rows_a")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        roles.rows(ASKED, prepare=False)


@pytest.mark.parametrize("prepare", [False, True])
def test_the_time_in_a_body(made, prepare):
    """As in a query that is written out."""
    made.execute("CREATE TABLE event (day date, n int); INSERT INTO event SELECT current_date - g, g FROM generate_series(0, 9) g; "
                 "CREATE FUNCTION latest(days int) RETURNS SETOF event LANGUAGE sql STABLE AS 'SELECT * FROM event WHERE day > current_date - days'")
    query = "SELECT n FROM latest(3) ORDER BY n"
    assert agree(made, query, prepare=prepare) == ("HIT", None)
    made.execute("SET TimeZone = 'Pacific/Kiritimati'")
    agree(made, query, prepare=prepare)
    made.execute("SET TimeZone = 'Pacific/Midway'")
    agree(made, query, prepare=prepare)
    made.execute("CREATE FUNCTION shown() RETURNS TABLE (n int, at timestamptz) LANGUAGE sql STABLE AS 'SELECT n, now() FROM event'")
    agreed = made.rows("SELECT count(*), min(at) = now() FROM shown()", prepare=prepare)
    assert agreed == [(10, True)] == made.rows("SELECT count(*), min(at) = now() FROM shown()", prepare=prepare)


def test_rows_in_parts(made):
    """An aggregate over a partitioned table that a body reads may be combined of parts."""
    made.execute("CREATE TABLE parted (a int, n int) PARTITION BY LIST (a); " + "; ".join(
        f"CREATE TABLE parted_{a} PARTITION OF parted FOR VALUES IN ({a}); INSERT INTO parted SELECT {a}, g FROM generate_series(1, 1000) g" for a in range(6)))
    made.execute("CREATE FUNCTION rows_of(low int) RETURNS SETOF parted LANGUAGE sql STABLE AS 'SELECT * FROM parted WHERE n > low'; ANALYZE parted")
    query = "SELECT a, sum(n) FROM rows_of(10) GROUP BY a ORDER BY a"
    for number in range(6):
        for prepare in (False, True):
            assert made.rows(query, prepare=prepare) == made.uncached(query, prepare=False)
        made.execute(f"UPDATE parted SET n = n + 1 WHERE a = {number} AND n = 500")


@pytest.mark.parametrize("prepare", [False, True])
def test_own_definitions(made, other, prepare):
    made.execute(SEARCH.format("", "rank >= low"))
    assert agree(made, ASKED, prepare=prepare) == ("HIT", None)
    made.execute("BEGIN")
    made.execute(SEARCH.format("", "rank < low"))
    for _ in range(2):
        assert made.rows(ASKED, prepare=prepare) == []
        assert len(other.rows(ASKED, prepare=prepare)) == 3
    made.execute("ROLLBACK")
    for _ in range(2):
        assert len(made.rows(ASKED, prepare=prepare)) == 3
    assert made.status() == "HIT"


def test_written_out(made):
    """The query with the body as a sub-query is another one, and rests on the same."""
    made.execute(SEARCH.format("", "rank >= low"))
    [(cacheable, _, detail)] = made.rows("SELECT * FROM arrow_cache.why(%s)", [ASKED])
    assert cacheable and "member" in detail
    made.execute("SECURITY LABEL FOR pg_arrow_cache ON TABLE member IS 'never'")
    for _ in range(2):
        made.rows(ASKED, prepare=False)
        assert (made.status(), made.reason()) == ("BYPASS", "policy_never")


def test_locks(made, other):
    """What bodies read is locked as it is without the cache, and waited for."""
    made.execute(SEARCH.format("", "rank >= low"))
    assert agree(made, ASKED, prepare=False) == ("HIT", None)
    with made.transaction():
        assert len(made.rows(ASKED, prepare=False)) == 3 and made.status() == "HIT"
        assert made.rows("SELECT mode FROM pg_locks WHERE relation = 'member'::regclass AND pid = pg_backend_pid()") == [("AccessShareLock",)]
    for timeout, error in ("statement_timeout", psycopg.errors.QueryCanceled), ("lock_timeout", psycopg.errors.LockNotAvailable):
        with other.transaction():
            other.execute("ALTER TABLE member ADD COLUMN another int")
            made.execute(f"SET {timeout} = 100")
            with pytest.raises(error):
                made.execute(ASKED, prepare=False)
            other.execute("ALTER TABLE member DROP COLUMN another")
        made.execute(f"RESET {timeout}")
        assert agree(made, ASKED, prepare=False) == ("HIT", None)
