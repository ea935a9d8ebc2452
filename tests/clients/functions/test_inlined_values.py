"""Functions in SQL that return values: what PostgreSQL inlines, and what it runs. Rows, and what the client is told of columns, are those without the
cache."""

import psycopg
import pytest

from support.text_bodies import analysed_anew  # noqa: F401  (used by pytest)
from support.wire import data_rows

TABLE = """
    CREATE TABLE t AS SELECT g AS a, 't' || g % 3 AS s, nullif(g % 4, 0) AS n, g::numeric(10, 2) AS m FROM generate_series(1, 8) g;
    CREATE FUNCTION inlined(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT x * 2';
    CREATE FUNCTION strict_one(x int, y int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT CASE WHEN x > 2 THEN x + y ELSE 0 END';
    CREATE FUNCTION money(x numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT x::numeric(10, 2)';
    CREATE FUNCTION money_strict(x numeric) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS 'SELECT coalesce(x, 0)::numeric(10, 2)';
    CREATE FUNCTION same(x numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT x';
    CREATE FUNCTION same_strict(x numeric) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS 'SELECT coalesce(x)';
    CREATE FUNCTION twice(x numeric) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT x + x';
    CREATE FUNCTION failing(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1 / x';
    CREATE FUNCTION named(x text) RETURNS text LANGUAGE sql STABLE AS 'SELECT CASE x WHEN ''t1'' THEN ''one'' WHEN ''t2'' THEN ''two'' END';
    CREATE FUNCTION helper() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
    CREATE FUNCTION by_path(x int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(x, 0) + helper()';
"""


@pytest.fixture
def made(session):
    session.prepare_threshold = 10**9
    session.execute(TABLE)
    return session


def outcome(session, query, values=None, prepare=None):
    """Rows and what is told of columns, twice, with and without the cache; and what became of it with the cache."""
    found = []
    for enabled in ("on", "on", "off"):
        session.execute(f"SET pg_arrow_cache.enabled = {enabled}")
        try:
            cursor = session.execute(query, values, prepare=prepare)
            columns = [(column.name, column.type_code, column.precision, column.scale) for column in cursor.description]
            found.append((cursor.fetchall(), columns))
        except psycopg.Error as error:
            found.append((error.sqlstate, error.diag.message_primary))
        if enabled == "on":
            status = session.status(), session.reason()
    session.execute("SET pg_arrow_cache.enabled = on")
    assert found[0] == found[1] == found[2]
    return status


HIT = ("HIT", None)


@pytest.mark.parametrize("call", [
    "inlined(a)",
    "strict_one(a, n)",
    "strict_one(inlined(a), n)",
    "inlined(strict_one(a, n))",
    "money(a)",
    "money(3)",
    "money(a + 1)",
    "money_strict(a)",
    "same(m)",
    "same(m + 1)",
    "same(3::numeric(10, 2))",
    "same_strict(m)",
    "twice((SELECT max(a) FROM t))",
    "twice(a + a + a + a + a + a + a + a + a + a + a + a)",
    "named(s)",
    "named(CASE s WHEN 't1' THEN 't2' ELSE s END)",
    "CASE named(s) WHEN named('t1') THEN 1 ELSE inlined(a) END",
    "CASE WHEN false THEN failing(0) ELSE 1 END",
    "failing(a)",
    "inlined(generate_series(1, 2))",
    "(SELECT inlined(max(i.a)) FROM t i WHERE i.a < t.a)",
    "strict_one((SELECT a), n)",
    "strict_one(NULL, n)",
    "by_path(a)",
])
def test_columns(made, call):
    query = f"SELECT a, {call} AS v FROM t ORDER BY a"
    assert outcome(made, query) == HIT
    assert outcome(made, query, prepare=True) == HIT
    assert outcome(made, query + " LIMIT %s", [5]) == HIT


@pytest.mark.parametrize("query", [
    "SELECT strict_one(a % 3, 1) + 1, count(*) FROM t GROUP BY strict_one(a % 3, 1) ORDER BY 1",
    "SELECT inlined(a % 3), inlined(inlined(a % 3)), count(*) FROM t GROUP BY inlined(a % 3) ORDER BY 1",
    "SELECT DISTINCT inlined(a % 3) FROM t ORDER BY inlined(a % 3)",
    "SELECT strict_one(sum(a)::int, 2), inlined(count(*)::int) FROM t HAVING inlined(count(*)::int) > 2",
    "SELECT a, sum(inlined(a)) OVER (PARTITION BY strict_one(n, 1) ORDER BY a) FROM t ORDER BY a",
    "WITH w AS (SELECT a, inlined(a) AS b FROM t) SELECT x.a, strict_one(y.b, x.a) FROM w x LEFT JOIN w y ON y.a = x.b ORDER BY 1",
    "SELECT inlined(a) FROM t UNION SELECT strict_one(a, n) FROM t ORDER BY 1",
    "SELECT x.a, y FROM t x, strict_one(x.a, x.n) y ORDER BY 1",
    "SELECT a FROM t WHERE a IN (SELECT inlined(i.a) FROM t i WHERE strict_one(i.a, t.a) > 3) ORDER BY a LIMIT inlined(2)",
    "SELECT a, same(u) FROM (SELECT a, 3::numeric(10, 2) AS u FROM t) x ORDER BY a",
    "VALUES (inlined(2)), ((SELECT max(a) FROM t))",
    "SELECT a, inlined(a) FROM t JOIN (SELECT inlined(a) AS a FROM t) u USING (a) ORDER BY a",
])
def test_places(made, query):
    assert outcome(made, query) == HIT


def test_a_failing_call_that_nobody_needs(made):
    """Nothing is computed while bodies are put in their places."""
    query = "SELECT count(*) FROM t WHERE CASE WHEN {} THEN failing(0) = 1 ELSE true END"
    assert outcome(made, query.format("false")) == HIT
    # PostgreSQL computes it when it plans the query.
    with pytest.raises(psycopg.errors.DivisionByZero):
        made.execute(query.format("a > 100"))
    outcome(made, query.format("a > 100"))


@pytest.mark.parametrize("query", [
    "SELECT failing_strict(a) FROM t WHERE a > 100",
    "SELECT failing_strict(0) FROM t WHERE a > 100",
    "SELECT CASE WHEN a > 0 THEN 1 ELSE failing_strict(0) END FROM t",
    "SELECT 100 / strict_one(0, 0) FROM t WHERE a > 100",
])
def test_a_call_that_fails_where_nobody_comes_to_it(made, query):
    """PostgreSQL does not plan the body of such a function before it is called, so nothing of it may be computed before."""
    made.execute("CREATE FUNCTION failing_strict(x int) RETURNS int LANGUAGE sql STABLE STRICT "
                 "AS 'SELECT CASE WHEN x > 5 THEN 1 / 0 ELSE 1 / coalesce(x) END'")
    assert outcome(made, query) == HIT


def test_arguments_that_a_body_has_no_use_for(made):
    """PostgreSQL runs this function, as its body is not what it is declared to be, and computes the arguments each time."""
    made.execute("CREATE SEQUENCE numbers; CREATE FUNCTION unused(x bigint) RETURNS int LANGUAGE sql IMMUTABLE "
                 "AS 'SELECT extract(year FROM now())::int'")
    for number in (1, 2, 3):
        made.rows("SELECT unused(nextval('numbers')) FROM t")
        assert (made.status(), made.reason()) == ("BYPASS", "session_function")
        assert made.rows("SELECT last_value FROM numbers") == [(8 * number,)]
    assert outcome(made, "SELECT unused(a) FROM t") == ("BYPASS", "session_function")


@pytest.mark.parametrize("query", [
    "SELECT a % 3, a % 3 + 1, plus_one(a % 3), count(*) FROM t GROUP BY {} ORDER BY 1, 2",
    "SELECT u.b, u.b + 1, plus_one(u.b), count(*) FROM (SELECT a % 3 AS b FROM t) u GROUP BY {} ORDER BY 1, 2",
    "SELECT a % 3, a % 3 + 1, plus_one_inlined(a % 3), count(*) FROM t GROUP BY {} ORDER BY 1, 2",
])
def test_a_part_of_a_body_is_grouped_by(made, query):
    """GROUPING SETS make what they group by NULL, also where it stands in a body that PostgreSQL puts there; not in others."""
    made.execute("""
        CREATE FUNCTION plus_one(x int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(x + 1, 0)';
        CREATE FUNCTION plus_one_inlined(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT coalesce(x + 1, 0)'
    """)
    column = "u.b" if "u.b" in query else "a % 3"
    for sets in (f"GROUPING SETS (({column}), ({column} + 1))", f"CUBE ({column}, {column} + 1)"):
        assert outcome(made, query.format(sets)) == HIT


def test_the_path_changes_in_the_statement(made, connect):
    """What a bypassed statement calls may change what names in bodies mean by then."""
    schema = f"{connect.schema}_other"
    made.execute(f"CREATE SCHEMA {schema}; CREATE FUNCTION {schema}.helper() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1000'")
    paths = f"{schema}, {connect.schema}"
    try:
        query = f"SELECT set_config('search_path', '{paths}', true) IS NULL, by_path(a) FROM t ORDER BY a"
        found = []
        for enabled in ("on", "off"):
            with made.transaction(force_rollback=True):
                made.execute(f"SET LOCAL pg_arrow_cache.enabled = {enabled}")
                found.append(made.rows(query))
        assert found[0] == found[1] and found[0][0] == (False, 1001)
    finally:
        made.execute(f"DROP SCHEMA {schema} CASCADE")


def test_bound_portals_and_cursors(made, other, wire):
    """A function that PostgreSQL runs itself is changed between Bind and Execute, or between DECLARE and FETCH."""
    change = "CREATE OR REPLACE FUNCTION helper() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT {}'"
    for query in ("SELECT by_path(a) FROM t WHERE a = 1", "SELECT inlined(a) + by_path(a) - 2 FROM t WHERE a = 1"):
        for types, values in (((), ()), ((23,), (b"1",))):
            text = query.replace("a = 1", "a = $1") if values else query
            found = []
            for enabled in ("on", "off"):
                other.execute(change.format(1))
                client = wire()
                client.query(f"SET pg_arrow_cache.enabled = {enabled}; BEGIN")
                client.parse(text, types=types).bind(values).step("2")
                other.execute(change.format(7))
                client.parse("SELECT count(*) FROM pg_am", name="m").bind(portal="m", name="m").execute("m").step("C")
                found.append(data_rows(client.execute().step("C")))
                client.sync()
                client.query("COMMIT")
            assert found[0] == found[1]
        other.execute(change.format(1))
        found = []
        for enabled in ("on", "off"):
            other.execute(change.format(1))
            with made.transaction():
                made.execute(f"SET LOCAL pg_arrow_cache.enabled = {enabled}; DECLARE c CURSOR FOR {query}")
                other.execute(change.format(7))
                made.execute("SELECT count(*) FROM pg_am")
                found.append(made.rows("FETCH ALL FROM c"))
        assert found[0] == found[1]
    other.execute(change.format(1))


def test_replaced_in_a_transaction(made, other):
    """Prepared statements follow CREATE OR REPLACE, of this session and of others, in a transaction and after its end."""
    query = "SELECT a, inlined(a) FROM t ORDER BY a"
    assert outcome(made, query, prepare=True) == HIT
    with made.transaction(force_rollback=True):
        made.execute("CREATE OR REPLACE FUNCTION inlined(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT x * 3'")
        for _ in range(3):
            assert made.rows(query, prepare=True)[0] == (1, 3)
            assert made.status() == "BYPASS"
    for _ in range(3):
        assert made.rows(query, prepare=True)[0] == (1, 2)
    other.execute("CREATE OR REPLACE FUNCTION inlined(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT x * 5'")
    for _ in range(3):
        assert made.rows(query, prepare=True)[0] == (1, 5)
    assert made.status() == "HIT"
    other.execute("ALTER FUNCTION inlined(int) SECURITY DEFINER")
    assert outcome(made, query, prepare=True) == ("BYPASS", "user_defined_function")


def test_other_statements(made):
    """EXPLAIN shows the plan of PostgreSQL, which calls what it does not inline."""
    query = "SELECT a, strict_one(a, n) FROM t ORDER BY a"
    plans = [str(made.rows(f"EXPLAIN VERBOSE {one}")) for one in (query, "SELECT a, inlined(a) FROM t ORDER BY a")]
    assert "strict_one" in plans[0] and "inlined" not in plans[1]
    assert outcome(made, query) == HIT
    made.execute(f"PREPARE q AS {query}")
    for _ in range(2):
        rows = made.rows("EXECUTE q")
        assert (made.status(), made.reason()) == HIT
        assert rows == made.uncached(query)


def test_rights_of_a_prepared_statement(made, connect):
    """Who may not execute the function is told so, and a plan of one who may serves nobody else."""
    role = f"{connect.schema}_reader"
    made.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {connect.schema} TO {role}; GRANT SELECT ON t TO {role}; "
                 "REVOKE EXECUTE ON FUNCTION strict_one(int, int), inlined(int) FROM PUBLIC")
    try:
        for call in ("strict_one(a, n)", "inlined(a)"):
            query = f"SELECT {call} FROM t ORDER BY a"
            assert outcome(made, query) == HIT
            made.execute(f"SET ROLE {role}")
            assert outcome(made, query)[0] in ("BYPASS", "MISS")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                made.execute(query)
            made.execute("RESET ROLE")
    finally:
        made.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


ODD = """
    CREATE TABLE parted (a int, s text) PARTITION BY RANGE (a);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (5);
    CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (5) TO (100);
    INSERT INTO parted SELECT a, s FROM t;
    CREATE FUNCTION ignores(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 7';
    CREATE FUNCTION ignores_strict(x int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT 7';
    CREATE FUNCTION whole(x t) RETURNS t LANGUAGE sql STABLE AS 'SELECT x';
    CREATE FUNCTION is_there(x t) RETURNS text LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(x.s, ''no name'')';
    CREATE FUNCTION lowered(x text) RETURNS text LANGUAGE sql STABLE AS 'SELECT lower(x)';
    CREATE FUNCTION one_out(x int, OUT y int) LANGUAGE sql STABLE AS 'SELECT x + 1';
    CREATE FUNCTION ping(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT x';
    CREATE FUNCTION pong(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT CASE WHEN x > 3 THEN ping(x - 1) ELSE x END';
    CREATE OR REPLACE FUNCTION ping(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT CASE WHEN x > 1 THEN pong(x - 1) ELSE x END';
    CREATE FUNCTION by_name(x int, y int DEFAULT 5, z int DEFAULT 6) RETURNS int LANGUAGE sql STABLE AS 'SELECT x * 100 + y * 10 + z';
    CREATE FUNCTION added(VARIADIC x int[]) RETURNS int LANGUAGE sql STABLE AS 'SELECT x[1] + coalesce(x[2], 0)';
    CREATE FUNCTION first_of(x anyelement, y anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE STRICT AS 'SELECT coalesce(x, y)';
    CREATE VIEW barrier WITH (security_barrier) AS SELECT a, strict_one(a, n) AS v FROM t WHERE inlined(a) < 12;
    CREATE FUNCTION random_one() RETURNS int LANGUAGE sql AS 'SELECT (random() * 0)::int + 1';
"""


@pytest.mark.parametrize("query", [
    "SELECT ignores(sum(a)::int) FROM t",
    "SELECT ignores_strict(sum(a)::int) FROM t WHERE a > 100",
    "SELECT n, ignores(count(*)::int) FROM t GROUP BY n ORDER BY n",
    "SELECT a, ignores((SELECT max(a) FROM t)::int) FROM t ORDER BY a",
    "SELECT a, ignores(generate_series(1, 3)) FROM t ORDER BY a",
    "SELECT a, ignores(sum(a) OVER ()::int) FROM t ORDER BY a",
    "SELECT (whole(t)).a, whole(t) FROM t ORDER BY 1",
    "SELECT is_there(u), u.a FROM (SELECT 1) x LEFT JOIN t u ON u.a > 3 ORDER BY u.a",
    "SELECT is_there(u), t.a FROM t LEFT JOIN t u ON u.a = t.a + 5 ORDER BY t.a",
    "SELECT is_there(ROW(NULL, NULL, NULL, NULL)::t), a FROM t ORDER BY a",
    "SELECT lowered(s COLLATE \"C\") FROM t ORDER BY lowered(s COLLATE \"C\") COLLATE \"POSIX\", a",
    "SELECT lowered(s), count(*) FROM t GROUP BY GROUPING SETS ((lowered(s)), ()) ORDER BY 1, 2",
    "SELECT DISTINCT ON (lowered(s)) lowered(s), a FROM t ORDER BY lowered(s), a DESC",
    "SELECT a, y FROM t, one_out(a) ORDER BY a",
    "SELECT a, one_out(a), ping(a), pong(a) FROM t ORDER BY a",
    "SELECT by_name(z => a, x => n), by_name(a), by_name(a, z => 1), added(a, n), added(a), added(VARIADIC ARRAY[a, 2]) FROM t ORDER BY a",
    "SELECT first_of(a, n), first_of(s, 'x'::text), first_of(NULL, a) FROM t ORDER BY a",
    "SELECT * FROM barrier WHERE strict_one(a, 1) > 2 ORDER BY a",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT inlined(x) FROM r JOIN t ON t.a = r.x) SELECT x, strict_one(x, 1) FROM r ORDER BY 1",
    "SELECT a, sum(a) OVER (ORDER BY a ROWS BETWEEN inlined(1) PRECEDING AND CURRENT ROW) FROM t ORDER BY a",
    "SELECT count(*) FILTER (WHERE strict_one(a, n) > 3), array_agg(inlined(a) ORDER BY strict_one(a, n), a) FROM t",
    "SELECT sum(inlined(a)), max(strict_one(a, 1)) FROM parted",
    "SELECT s, sum(strict_one(a, 2)) FROM parted WHERE inlined(a) > 5 GROUP BY s ORDER BY s",
    "SELECT a, random_one(), strict_one(random_one(), a) FROM t ORDER BY a",
    "SELECT a, strict_one(a, (SELECT count(*) FROM t i WHERE i.a < inlined(t.a))::int) FROM t ORDER BY a",
    "SELECT a FROM t WHERE (a, inlined(a)) IN (SELECT inlined(a), inlined(inlined(a)) FROM t) ORDER BY a",
    "SELECT ARRAY[inlined(a), strict_one(a, n)]::text[], ROW(inlined(a), s)::text FROM t ORDER BY a",
    "SELECT a, inlined(CASE strict_one(a, 1) WHEN inlined(a) THEN 1 WHEN inlined(2) THEN 2 END) FROM t ORDER BY a",
])
def test_odd_places(made, query):
    """Wherever calls stand: rows and columns are those without the cache."""
    made.execute(ODD)
    made.execute("SET pg_arrow_cache.fragment_min_time = 0")
    outcome(made, query)
    outcome(made, query, prepare=True)
    made.execute("UPDATE t SET a = a + 1; UPDATE parted SET a = a + 1")
    outcome(made, query)
    outcome(made, query, prepare=True)


def test_a_refusal_for_the_name_of_a_setting_is_none_for_others(session):
    session.execute("""CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 20) g;
        CREATE FUNCTION shown(name text) RETURNS text STABLE LANGUAGE sql AS 'SELECT current_setting(name)';
        SET app.tenant = '7'""")
    for _ in range(3):
        session.rows("SELECT count(*) FROM t WHERE a <> length(shown('work_mem'))")
        assert session.outcome() == ("BYPASS", "session_function")
    for expected in ("MISS", "HIT"):
        assert session.rows("SELECT count(*) FROM t WHERE a <> length(shown('app.tenant'))") == [(19,)]
        assert session.status() == expected
    session.execute("SET app.tenant = 'a name that is longer than all'")
    assert session.rows("SELECT count(*) FROM t WHERE a <> length(shown('app.tenant'))") == [(20,)]
