"""Functions of users in SQL whose bodies read relations: a STABLE one runs under the snapshot of the statement that calls it, as the role that
asks, so that an answer rests on what it reads, on the policies of that, and on what its names stand for. Each answer is compared with that of the
same statement without the cache."""

import threading
import time

import psycopg
import pytest

from support.agreement import QUERY, agree
from support.text_bodies import KEEPS_MEANINGS

TABLES = """
    CREATE TABLE t AS SELECT g AS a, 't' || g % 3 AS tenant FROM generate_series(1, 12) g;
    CREATE TABLE member (name name, tenant text, rank int);
    INSERT INTO member VALUES ('postgres', 't1', 1), ('reading_a', 't1', 1), ('reading_b', 't2', 2);
    CREATE FUNCTION mine() RETURNS text LANGUAGE sql STABLE AS 'SELECT tenant FROM member WHERE name = current_user';
    CREATE VIEW shown AS SELECT name, tenant FROM member WHERE rank > 0;
    CREATE FUNCTION next_of(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1';
"""


@pytest.fixture
def made(session):
    if session.info.server_version >= KEEPS_MEANINGS:
        pytest.skip("PostgreSQL 18 keeps plans of bodies: test_kept_plans_of_bodies")
    session.prepare_threshold = 10**9
    session.execute(TABLES)
    return session


@pytest.fixture
def roles(made):
    schema = made.rows("SELECT current_schema()")[0][0]
    made.execute(f"CREATE ROLE reading_a; CREATE ROLE reading_b; GRANT USAGE ON SCHEMA {schema} TO reading_a, reading_b; "
                 "GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO reading_a, reading_b")
    yield made
    made.execute("RESET ROLE; DROP OWNED BY reading_a, reading_b; DROP ROLE reading_a, reading_b")


SERVED = {
    "one row": ("f() RETURNS text LANGUAGE sql STABLE AS 'SELECT tenant FROM member WHERE rank = 2'", "f()"),
    "of its argument": ("f(x int) RETURNS text LANGUAGE sql STABLE AS 'SELECT m.tenant FROM member m WHERE m.rank = $1'", "f(a)"),
    "of a named argument": ("f(x int) RETURNS text LANGUAGE sql STABLE STRICT AS 'SELECT tenant FROM member WHERE rank = x'", "f(a)"),
    "converted": ("f() RETURNS numeric LANGUAGE sql STABLE AS 'SELECT count(*) FROM member'", "f()"),
    "a tree": ("f(x int) RETURNS bigint LANGUAGE sql STABLE RETURN (SELECT count(*) FROM member WHERE rank <= x)", "f(a)"),
    "atomic": ("f(x int) RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC SELECT count(*) FROM member WHERE rank <= x; END", "f(a)"),
    "of several rows the first": ("f() RETURNS text LANGUAGE sql STABLE AS 'SELECT tenant FROM member ORDER BY rank DESC, name'", "f()"),
    "no row": ("f() RETURNS text LANGUAGE sql STABLE AS 'SELECT tenant FROM member WHERE rank > 100'", "f()"),
    "exists": ("f(x int) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT FROM member WHERE rank = x)'", "f(a)"),
    "a view": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM shown'", "f()"),
    "joins and CTEs": ("f(x int) RETURNS bigint LANGUAGE sql STABLE AS 'WITH w AS (SELECT * FROM member) SELECT count(*) FROM w JOIN t USING (tenant) "
                       "WHERE t.a < x'", "f(a)"),
    "a union": ("f() RETURNS text LANGUAGE sql STABLE AS 'SELECT max(q) FROM (SELECT tenant AS q FROM member UNION SELECT tenant FROM t) u'", "f()"),
    "rows of values": ("f(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT b FROM (VALUES (1, 10), (2, 20)) v(a, b) WHERE v.a = x'", "f(a)"),
    "a setting": ("f() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT count(*) FROM member WHERE tenant = current_setting('app.x', true) $$", "f()"),
    "another that reads": ("f(x int) RETURNS text LANGUAGE sql STABLE AS 'SELECT mine() FROM member WHERE rank = x'", "f(a)"),
    "a volatile expression inside": ("f(x int) RETURNS text LANGUAGE sql STABLE AS 'SELECT tenant FROM member WHERE rank = next_of(x)'", "f(a)"),
    "inside a case": ("f(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1 / rank FROM member WHERE rank = x'", "CASE WHEN a < 0 THEN f(a) END"),
    "in FROM": ("f(x int) RETURNS text LANGUAGE sql STABLE AS 'SELECT tenant FROM member WHERE rank = x'", "(SELECT y FROM f(a) y)"),
}


@pytest.mark.parametrize("name", SERVED)
def test_served(made, name):
    function, call = SERVED[name]
    made.execute(f"CREATE FUNCTION {function}")
    query = f"SELECT a, {call} FROM t ORDER BY a"
    assert agree(made, query) == ("HIT", None)
    for change in ("UPDATE member SET tenant = 't2' WHERE rank = 1", "INSERT INTO member VALUES ('x', 't0', 3)", "DELETE FROM member WHERE rank = 3"):
        made.execute(change)
        rows = made.rows(query)
        assert made.status() == ("HIT" if name == "rows of values" else "STALE")
        assert rows == made.uncached(query)
        assert agree(made, query) == ("HIT", None)
    assert made.rows("SELECT cacheable FROM arrow_cache.why(%s)", [query]) == [(True,)]


REFUSED = {
    "volatile": ("f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM member'", "f()", "user_defined_function"),
    "immutable": ("f() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT count(*) FROM member'", "f()", "user_defined_function"),
    "below a volatile one": ("f(x text) RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT x = mine() OR x IS NULL'", "f(tenant)", "user_defined_function"),
    "beside a volatile one": ("f(x text) RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT x = mine() OR x IS NULL'", "mine(), f(tenant)",
                              "user_defined_function"),
    "below an immutable one": ("f(x text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT x = mine()'", "f(tenant)", "stable_function"),
    "definer": ("f() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT count(*) FROM member'", "f()", "user_defined_function"),
    "SET": ("f() RETURNS bigint LANGUAGE sql STABLE SET work_mem = '1MB' AS 'SELECT count(*) FROM member'", "f()", "user_defined_function"),
    "a tree of a volatile one": ("f() RETURNS bigint LANGUAGE sql RETURN (SELECT count(*) FROM member)", "f()", "user_defined_function"),
    "a tree that writes": ("f() RETURNS int LANGUAGE sql BEGIN ATOMIC INSERT INTO member VALUES ('y') RETURNING 1; END", "CASE WHEN a < 0 THEN f() END",
                           "user_defined_function"),
    "two statements": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT 1; SELECT count(*) FROM member'", "f()", "user_defined_function"),
    "a catalog": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM pg_class'", "f()", "system_catalog"),
    "a temporary table": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM passing'", "f()", "temporary_relation"),
    "a partitioned table": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM parted'", "f()", "unsupported_relation"),
    "a parent": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM parent'", "f()", "unsupported_relation"),
    "never": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM closed'", "f()", "policy_never"),
    "a sequence": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT last_value FROM numbers'", "f()", "sequence_relation"),
    "random": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM member WHERE random() < 2'", "f()", "volatile_function"),
    "now": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM member WHERE now() IS NULL'", "f()", "session_function"),
    "a sample": ("f() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM member TABLESAMPLE system (100)'", "f()", "tablesample"),
    "a place": ("f() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT count(*) FROM member WHERE ctid <> '(0,0)' $$", "f()", "system_column"),
    "today": ("f() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT count(*) FROM member WHERE 'today'::date IS NULL $$", "f()", "stable_function"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(made, name):
    made.execute("""
        CREATE TEMPORARY TABLE passing (a int); CREATE SEQUENCE numbers; CREATE TABLE closed (a int);
        CREATE TABLE parted (a int) PARTITION BY LIST (a); CREATE TABLE parent (a int); CREATE TABLE child () INHERITS (parent);
    """)
    made.execute("SELECT arrow_cache.set_policy('closed', 'never')")
    function, call, reason = REFUSED[name]
    made.execute(f"CREATE FUNCTION {function}")
    query = f"SELECT a, {call} FROM t"
    assert agree(made, query) == ("BYPASS", reason)
    assert made.rows("SELECT cacheable, reason FROM arrow_cache.why(%s)", [query]) == [(False, reason)]


def test_own_writes(made, other):
    """What a transaction has changed itself, its functions show it alone."""
    assert agree(made) == ("HIT", None)
    with made.transaction():
        made.execute("UPDATE member SET tenant = 't0'")
        assert agree(made) == ("BYPASS", "own_writes")
        assert other.rows(QUERY) == [(1,), (4,), (7,), (10,)]
        assert other.status() == "HIT"
    assert other.rows(QUERY) == [(3,), (6,), (9,), (12,)]
    assert other.status() == "STALE"


def test_old_snapshot(made, other):
    with made.transaction():
        made.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert agree(made) == ("HIT", None)
        other.execute("UPDATE member SET tenant = 't0'")
        assert other.rows(QUERY) == [(3,), (6,), (9,), (12,)]
        assert made.rows(QUERY) == [(1,), (4,), (7,), (10,)]
        assert made.status() == "BYPASS"
    assert made.rows(QUERY) == [(3,), (6,), (9,), (12,)]


def test_policy_that_calls_it(roles):
    roles.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (tenant = mine())")
    query = "SELECT a FROM t ORDER BY a"
    for role, rows in (("reading_a", [1, 4, 7, 10]), ("reading_b", [2, 5, 8, 11])):
        roles.execute(f"SET ROLE {role}")
        assert agree(roles, query) == ("HIT", None)
        assert [a for (a,) in roles.rows(query)] == rows
        roles.execute("RESET ROLE")
    roles.execute("UPDATE member SET tenant = 't0' WHERE name = 'reading_a'")
    roles.execute("SET ROLE reading_a")
    assert roles.rows(query) == [(3,), (6,), (9,), (12,)]
    assert roles.status() == "STALE"
    assert agree(roles, query) == ("HIT", None)


@pytest.mark.parametrize("prepare", [False, True])
def test_row_security_inside(roles, prepare):
    """The policies of what a body reads are those of the role that asks, when it asks."""
    roles.execute("CREATE FUNCTION count_members() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM member'; "
                  "ALTER TABLE member ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON member USING (name = current_user); "
                  "CREATE POLICY more ON member TO reading_b USING (rank = 1)")
    query = "SELECT a, count_members() FROM t WHERE a < 3 ORDER BY a"
    counts = {"postgres": 3, "reading_a": 1, "reading_b": 3}
    for _ in range(2):
        for role, count in counts.items():
            roles.execute(f"SET ROLE {role}")
            for _ in range(3):
                assert roles.rows(query, prepare=prepare) == [(1, count), (2, count)]
            # A kept plan is that of the role that has made it.
            assert roles.status() == "HIT" or (prepare and role != "postgres" and roles.reason() == "old_plan")
            roles.execute("RESET ROLE")
    roles.execute("CREATE POLICY strange ON member TO reading_a USING (random() < 2)")
    roles.execute("SET ROLE reading_a")
    for _ in range(3):
        assert roles.rows(query, prepare=prepare) == [(1, 3), (2, 3)]
    assert roles.status() == "BYPASS" and roles.reason() in (("old_plan",) if prepare else ("volatile_function",))
    roles.execute("RESET ROLE")
    if not prepare:
        # The plan that was made for the other role carries its refusal along.
        assert agree(roles, query) == ("HIT", None)


def test_lost_privilege(roles):
    """A role that may no longer read what a body reads gets the server's error."""
    roles.execute("SET ROLE reading_a")
    assert agree(roles) == ("HIT", None)
    roles.execute("RESET ROLE; REVOKE SELECT ON member FROM reading_a; SET ROLE reading_a")
    for _ in range(2):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table member"):
            roles.execute(QUERY)
    roles.execute("RESET ROLE; GRANT SELECT (name, tenant) ON member TO reading_a; SET ROLE reading_a")
    assert agree(roles) == ("HIT", None)
    roles.execute("RESET ROLE; REVOKE SELECT (tenant) ON member FROM reading_a; SET ROLE reading_a")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        roles.execute(QUERY)


@pytest.mark.parametrize("prepare", [False, True])
def test_other_tables_of_the_name(made, other, prepare):
    """Names in a text stand for what they stand for when the body is run."""
    schema = made.rows("SELECT current_schema()")[0][0]
    made.execute(f"CREATE SCHEMA {schema}_ahead; SET search_path = {schema}_ahead, {schema}")
    try:
        old, new = [(1,), (4,), (7,), (10,)], [(3,), (6,), (9,), (12,)]
        for _ in range(3):
            assert made.rows(QUERY, prepare=prepare) == old
        assert made.status() == "HIT"
        other.execute(f"CREATE TABLE {schema}_ahead.member AS SELECT 'postgres'::name AS name, 't0' AS tenant")
        for _ in range(3):
            assert made.rows(QUERY, prepare=prepare) == new
        assert made.status() == "HIT"
        other.execute(f"ALTER SCHEMA {schema}_ahead RENAME TO {schema}_away")
        for _ in range(3):
            assert made.rows(QUERY, prepare=prepare) == old
        other.execute(f"ALTER SCHEMA {schema}_away RENAME TO {schema}_ahead")
        for _ in range(3):
            assert made.rows(QUERY, prepare=prepare) == new
        other.execute(f"DROP TABLE {schema}_ahead.member")
        # A temporary table is in front of all schemas.
        for _ in range(3):
            assert made.rows(QUERY, prepare=prepare) == old
        made.execute("CREATE TEMPORARY TABLE member AS SELECT 'postgres'::name AS name, 't2' AS tenant")
        for _ in range(3):
            assert made.rows(QUERY, prepare=prepare) == [(2,), (5,), (8,), (11,)]
            assert made.status() == "BYPASS"
        made.execute("DROP TABLE pg_temp.member")
        with made.transaction():
            assert made.rows(QUERY, prepare=prepare) == old
            made.execute("CREATE TEMPORARY TABLE member ON COMMIT DROP AS SELECT 'postgres'::name AS name, 't2' AS tenant")
            for _ in range(2):
                assert made.rows(QUERY, prepare=prepare) == [(2,), (5,), (8,), (11,)]
        for _ in range(3):
            assert made.rows(QUERY, prepare=prepare) == old
        assert made.status() == "HIT"
    finally:
        made.execute(f"DROP SCHEMA {schema}_ahead CASCADE")


def test_changed_definitions(made, other):
    """Changes of what a body reads, and of the function."""
    query = "SELECT a, counted() FROM t WHERE a < 3 ORDER BY a"
    made.execute("CREATE FUNCTION counted() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM shown'")
    for change in ("CREATE OR REPLACE VIEW shown AS SELECT name, tenant FROM member WHERE rank > 1",
                   "TRUNCATE member",
                   "INSERT INTO member SELECT g::text, 't1', g FROM generate_series(1, 5) g",
                   "CREATE INDEX ON member (rank)", "ANALYZE member", "CREATE TABLE son () INHERITS (member)",
                   "DROP TABLE son",
                   "CREATE OR REPLACE FUNCTION counted() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT -count(*) FROM shown'"):
        assert agree(made, query)[0] in ("HIT", "BYPASS")
        other.execute(change)
        assert made.rows(query) == made.uncached(query)
    agree(made, query)


KNOWN = """CREATE FUNCTION known() RETURNS text LANGUAGE sql STABLE RETURN (SELECT max(tenant) FROM member);
           CREATE TABLE calls AS SELECT 0 AS n; CREATE SEQUENCE called"""


UNREAD = {
    "a text": "once() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT count(*) FROM member'",
    "a tree": "once() RETURNS bigint LANGUAGE sql RETURN (SELECT count(*) FROM member)",
    "a tree that writes": "once() RETURNS int LANGUAGE sql BEGIN ATOMIC INSERT INTO member VALUES ('y') RETURNING 1; END",
}


@pytest.mark.parametrize("name", UNREAD)
def test_waits_for_nothing_that_it_may_not_read(made, other, name):
    """A body that must not read is refused before anything in it is locked. PostgreSQL does not lock it before it calls the function, either."""
    made.execute(f"CREATE FUNCTION {UNREAD[name]}")
    with other.transaction():
        other.execute("LOCK TABLE member IN ACCESS EXCLUSIVE MODE")
        made.execute("SET statement_timeout = '5s'")
        assert made.rows("SELECT CASE WHEN a < 0 THEN (SELECT min(x) FROM once() x) END FROM t WHERE a = 1") == [(None,)]
        assert (made.status(), made.reason()) == ("BYPASS", "user_defined_function")


@pytest.mark.parametrize("query", ["SELECT known(), a FROM t ORDER BY a", "SELECT CASE WHEN a < 0 THEN known() END FROM t"])
@pytest.mark.parametrize("prepare", [False, True])
def test_waits_as_the_server_does(made, other, query, prepare):
    """Planning waits for a table that the bodies read, as long as the user's settings let it. An execution waits only if it calls the functions."""
    made.execute(KNOWN)
    made.execute("SET plan_cache_mode = force_generic_plan")
    for _ in range(3):
        made.rows(query, prepare=prepare)
    assert made.status() == "HIT"
    with other.transaction():
        other.execute("LOCK TABLE member IN ACCESS EXCLUSIVE MODE")
        made.execute("SET statement_timeout = '200ms'")
        if prepare and "CASE" in query:
            assert {row[0] for row in made.rows(query, prepare=True)} == {None}
            assert made.outcome() == ("BYPASS", "ddl_in_progress")
        else:
            with pytest.raises(psycopg.errors.QueryCanceled):
                made.rows(query, prepare=prepare)
    made.execute("RESET statement_timeout")
    made.rows(query, prepare=prepare)
    assert made.status() == "HIT"


def test_cancelled_while_it_waits(made, other, connect):
    made.execute(KNOWN)
    query = "SELECT CASE WHEN a < 0 THEN known() END, pg_sleep(0.05) FROM t"
    third = connect()
    with other.transaction():
        other.execute("LOCK TABLE member IN ACCESS EXCLUSIVE MODE")
        waiting = threading.Thread(target=wait_and_cancel, args=(third, made.info.backend_pid))
        waiting.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            made.rows(query)
        waiting.join()


def wait_and_cancel(session, pid):
    while not session.rows("SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'", [pid]):
        time.sleep(0.01)
    session.execute("SELECT pg_cancel_backend(%s)", [pid])


def test_settings_are_as_they_were(made):
    """Analysing a body may run code of users, which may set something."""
    made.execute("""
        CREATE FUNCTION checks(int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
            PERFORM set_config('client_min_messages', 'warning', false); PERFORM set_config('log_min_messages', 'panic', false);
            PERFORM set_config('lock_timeout', '7777', false); RETURN true; END $$;
        CREATE DOMAIN checked AS int CHECK (checks(VALUE));
        CREATE FUNCTION f() RETURNS bigint STABLE LANGUAGE sql AS $$ SELECT count(*) FROM t WHERE a = ANY ('{1,5}'::checked[]::int[]) $$;
        SET lock_timeout = '5s'""")
    names = "client_min_messages", "log_min_messages", "lock_timeout"
    before = [made.rows(f"SHOW {name}") for name in names]
    made.rows("SELECT CASE WHEN false THEN f() ELSE a END FROM t")
    assert [made.rows(f"SHOW {name}") for name in names] == before


def test_cursor_and_portals(made, other):
    """The rows behind the first one are computed later, under the snapshot of the first."""
    query = "SELECT a, (SELECT mine()), next_of(a) FROM t ORDER BY a"
    for _ in range(2):
        with made.transaction():
            made.execute(f"DECLARE c CURSOR FOR {query}")
            first = made.execute("FETCH 2 FROM c").fetchall()
            other.execute("UPDATE member SET tenant = tenant || '+' WHERE name = 'postgres'")
            rest = made.execute("FETCH ALL FROM c").fetchall()
        assert len({tenant for _, tenant, _ in first + rest}) == 1
        assert made.rows(query) == made.uncached(query)
    assert agree(made, query) == ("HIT", None)


def test_recursion(made):
    made.execute("CREATE FUNCTION up(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1'; CREATE OR REPLACE FUNCTION up(x int) RETURNS int "
                 "LANGUAGE sql STABLE AS 'SELECT CASE WHEN x < 1 THEN 0 ELSE (SELECT max(rank) FROM member WHERE rank >= 0) + up(x - 1) END'")
    assert agree(made, "SELECT a, up(a) FROM t ORDER BY a") == ("HIT", None)


def test_no_token(roles):
    """A token would be given to who may not read what the body reads."""
    assert roles.rows("SELECT arrow_cache.etag(%s) IS NULL", [QUERY]) == [(True,)]


def test_kept_plans_of_bodies(session):
    """PostgreSQL 18 keeps plans of bodies, trees too, and such a plan may be older than the definitions and settings that are known."""
    if session.info.server_version < KEEPS_MEANINGS:
        pytest.skip("for PostgreSQL 18")
    session.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE FUNCTION f() RETURNS bigint LANGUAGE sql STABLE RETURN (SELECT count(*) FROM t)")
    assert agree(session, "SELECT f() FROM t") == ("BYPASS", "user_defined_function")
