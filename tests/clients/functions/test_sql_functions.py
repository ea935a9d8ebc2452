"""Users' functions in SQL count as what their bodies mean at this moment: for this search_path, these definitions, this role. Each answer is compared with that of the same statement without the cache."""

import psycopg
import pytest

from support.agreement import agree
from support.text_bodies import analysed_anew  # noqa: F401  (used by pytest)

TABLE = """
    CREATE TABLE t AS SELECT g AS a, g * 1.5::numeric AS n, 'x' || g AS s, date '2020-01-01' + g AS d FROM generate_series(1, 20) g;
    CREATE FUNCTION helper(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x + 1';
    CREATE FUNCTION used(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT helper(x) * 2';
    CREATE FUNCTION strict_one(x int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(helper(x), 0)';
"""


@pytest.fixture
def made(session):
    session.prepare_threshold = 10**9
    session.execute(TABLE)
    return session


SERVED = {
    "convert_km": ("CREATE FUNCTION f(n numeric, unit text) RETURNS numeric LANGUAGE sql IMMUTABLE RETURNS NULL ON NULL INPUT AS "
                   "$$ SELECT CASE WHEN $2 = 'km' THEN $1 WHEN $2 = 'mi' THEN $1 / 1.60934 END; $$",
                   "SELECT f(sum(n), 'mi') FROM t"),
    "declared volatile": ("CREATE FUNCTION f(n numeric, unit text) RETURNS numeric LANGUAGE sql AS $$ SELECT round($1 / 1.60934) + length($2) $$",
                          "SELECT a, f(a, 'mi') FROM t"),
    "declared volatile, in a condition": ("CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT x % 3'", "SELECT a FROM t WHERE f(a) = 1"),
    "by its tree": ("CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql IMMUTABLE RETURN x / 2", "SELECT f(a) FROM t"),
    "atomic": ("CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql STABLE BEGIN ATOMIC SELECT helper(x) / 2; END", "SELECT f(a) FROM t"),
    "result converted": ("CREATE FUNCTION f(x int) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT x'", "SELECT f(a) FROM t"),
    "polymorphic": ("CREATE FUNCTION f(x anyelement, y anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE AS 'SELECT coalesce(y, x)'",
                    "SELECT f(a, 3), f(s, 'y'::text), f(n, NULL) FROM t"),
    "arrays": ("CREATE FUNCTION f(x anyarray) RETURNS anyelement LANGUAGE sql IMMUTABLE AS 'SELECT x[1]'", "SELECT f(ARRAY[a]), f(ARRAY[s]) FROM t"),
    "variadic": ("CREATE FUNCTION f(VARIADIC x int[]) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x[2]'", "SELECT f(a, 3, 4) FROM t"),
    "defaults": ("CREATE FUNCTION f(x int, y int DEFAULT helper(7)) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x * y'",
                 "SELECT f(a), f(y => 2, x => a) FROM t"),
    "in FROM": ("CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x + 2'", "SELECT a, y FROM t, f(a) y"),
    "in WHERE": ("CREATE FUNCTION f(x int) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT x > 5'", "SELECT a FROM t WHERE f(a)"),
    "literal date": ("CREATE FUNCTION f() RETURNS date LANGUAGE sql STABLE AS $$ SELECT '2020-01-05'::date $$", "SELECT a FROM t WHERE d < f()"),
    "settings": ("CREATE FUNCTION f(x date) RETURNS text LANGUAGE sql STABLE AS $$ SELECT x::text $$", "SELECT f(d) FROM t"),
    "current_user": ("CREATE FUNCTION f() RETURNS text LANGUAGE sql STABLE AS $$ SELECT current_user::text $$", "SELECT a, f() FROM t"),
    "custom setting": ("CREATE FUNCTION f() RETURNS int LANGUAGE sql STABLE AS $$ SELECT nullif(current_setting('app.x', true), '')::int $$",
                       "SELECT a FROM t WHERE a = coalesce(f(), 3)"),
    "row": ("CREATE FUNCTION f(x t) RETURNS int LANGUAGE sql STABLE AS 'SELECT x.a * 2'", "SELECT f(t) FROM t"),
    "the time": ("CREATE FUNCTION f() RETURNS boolean LANGUAGE sql STABLE AS 'SELECT now() IS NULL'", "SELECT a, f() FROM t"),
    "today": ("CREATE FUNCTION f() RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT 'toDay'::date IS NULL $$", "SELECT a, f() FROM t"),
    "time with a zone": ("CREATE FUNCTION f() RETURNS timetz LANGUAGE sql STABLE AS $$ SELECT '04:00 PST'::timetz $$", "SELECT a, f() FROM t"),
    "a date from a text": ("CREATE FUNCTION f(x text) RETURNS date LANGUAGE sql STABLE AS $$ SELECT x::date $$", "SELECT a, f(d::text) FROM t"),
    "setting by argument": ("CREATE FUNCTION f(x text) RETURNS text LANGUAGE sql STABLE AS 'SELECT current_setting(x, true)'", "SELECT a, f('app.x') FROM t"),
    "polymorphic with defaults": ("CREATE FUNCTION f(x anyelement, y int DEFAULT 3) RETURNS anyelement LANGUAGE sql STABLE AS 'SELECT x'", "SELECT a, f(a) FROM t"),
    "lying by its user": ("CREATE FUNCTION f(x int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT current_user::text'", "SELECT a, f(a) FROM t"),
    "lying by a date": ("CREATE FUNCTION f(x date) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT x::text'", "SELECT a, f(d) FROM t"),
    "lying by a function": ("CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT used(x)'", "SELECT a, f(a) FROM t"),
    "calls itself": ("CREATE FUNCTION f(x int) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT 1.0'; CREATE OR REPLACE FUNCTION f(x int) RETURNS numeric "
                     "LANGUAGE sql STABLE AS 'SELECT CASE WHEN x <= 1 THEN 1 ELSE x * f(x - 1) END'", "SELECT a, f(a) FROM t"),
    "STRICT, defaults": ("CREATE FUNCTION f(x int, y int DEFAULT helper(7)) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT coalesce(x * y, 0)'",
                         "SELECT f(a), f(y => 2, x => a), f(NULL) FROM t"),
    "STRICT, variadic": ("CREATE FUNCTION f(VARIADIC x int[]) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(x[2], 0)'", "SELECT f(a, 3, 4), f(a) FROM t"),
    "STRICT, a row": ("CREATE FUNCTION f(x t) RETURNS t LANGUAGE sql STABLE STRICT AS 'SELECT CASE WHEN x.a > 3 THEN x END'", "SELECT (f(t)).a, f(t)::text FROM t"),
    "STRICT, in parallel": ("CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql STABLE STRICT PARALLEL SAFE AS 'SELECT coalesce(helper(x), 0)'; "
                            "ALTER FUNCTION helper(int) PARALLEL SAFE; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
                            "SET min_parallel_table_scan_size = 0", "SELECT sum(f(a)) FROM t"),
    "twice an expensive argument": ("CREATE FUNCTION f(x numeric) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT x * x'",
                                    "SELECT a, f((SELECT max(n) FROM t)) FROM t"),
    "cast": ("CREATE TYPE place AS ENUM ('here', 'there'); CREATE FUNCTION f(place) RETURNS int LANGUAGE sql IMMUTABLE AS "
             "'SELECT CASE WHEN $1 = ''here'' THEN 1 ELSE 2 END'; CREATE CAST (place AS int) WITH FUNCTION f(place)",
             "SELECT CASE WHEN a > 3 THEN 'here'::place ELSE 'there' END::int FROM t"),
}


@pytest.mark.parametrize("name", SERVED)
def test_served(made, name):
    function, query = SERVED[name]
    made.execute(function)
    assert agree(made, query) == ("HIT", None)


REFUSED = {
    "volatile that reads": ("f(x int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) + x FROM t'", "f(a)", "user_defined_function"),
    "volatile by its body": ("f(x int) RETURNS float8 LANGUAGE sql AS 'SELECT x + random() * 0'", "f(a)", "volatile_function"),
    "definer": ("f(x int) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT x'", "f(a)", "user_defined_function"),
    "SET": ("f(x int) RETURNS int LANGUAGE sql STABLE SET work_mem = '1MB' AS 'SELECT x'", "f(a)", "user_defined_function"),
    "plpgsql": ("f(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x; END'", "f(a)", "user_defined_function"),
    "columns that only the query lists": ("f(x int) RETURNS record LANGUAGE sql STABLE AS 'SELECT x, x'", "(SELECT y FROM f(a) AS r (y int, z int))",
                                          "user_defined_function"),
    "nothing": ("f(x int) RETURNS void LANGUAGE sql STABLE AS 'SELECT x'", "f(a)::text", "user_defined_function"),
    "reads": ("f() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT count(*) FROM t'", "f()", "user_defined_function"),
    "reads below": ("f() RETURNS bigint LANGUAGE sql AS 'SELECT (SELECT count(*) FROM t)'", "f()", "user_defined_function"),
    "reads in a tree": ("f() RETURNS bigint LANGUAGE sql RETURN (SELECT count(*) FROM t)", "f()", "user_defined_function"),
    "lying by a setting": ("f() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT current_setting('app.x', true) $$", "f()", "session_function"),
    "STRICT, with a setting": ("f(x int) RETURNS text LANGUAGE sql STABLE STRICT AS $$ SELECT coalesce(current_setting('app.x', true), '') $$", "f(a)",
                               "session_function"),
    "STRICT, with the time": ("f(x int) RETURNS boolean LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(now(), NULL) IS NULL'", "f(a)", "session_function"),
    "STRICT, with arguments of any type": ("f(x anyelement, y anyelement) RETURNS anyelement LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(x, y)'", "f(a, 1)",
                                           "user_defined_function"),
    "STRICT, with a date from a text": ("f(x text) RETURNS date LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(x, NULL)::date'", "f(d::text)",
                                        "stable_function"),
    "two statements": ("f(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1; SELECT x'", "f(a)", "user_defined_function"),
    "random": ("f() RETURNS boolean LANGUAGE sql STABLE AS 'SELECT random() IS NULL'", "f()", "volatile_function"),
    "domain": ("f(x int) RETURNS positive LANGUAGE sql STABLE AS 'SELECT x'", "f(a)", "domain_constraint"),
    "catalog": ("f(x int) RETURNS text LANGUAGE sql STABLE AS 'SELECT pg_get_userbyid(x::oid)'", "f(a)", "stable_function"),
    "plpgsql inside": ("f(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT pl(x)'", "f(a)", "user_defined_function"),
    "operator inside": ("f(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT x @+@ 1'", "f(a)", "user_defined_function"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(made, name):
    made.execute("CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE FUNCTION pl(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS "
                 "'BEGIN RETURN x; END'; CREATE OPERATOR @+@ (leftarg = int, rightarg = int, function = int4pl)")
    function, call, reason = REFUSED[name]
    made.execute(f"CREATE OR REPLACE FUNCTION {function}")
    assert agree(made, f"SELECT a, {call} FROM t WHERE a < 5") == ("BYPASS", reason)
    found = made.rows("SELECT cacheable, reason, detail ~ 'It calls' OR reason = 'domain_constraint' FROM arrow_cache.why(%s)", [f"SELECT a, {call} FROM t WHERE a < 5"])
    assert found == [(False, reason, True)]


def test_deep(made):
    """What is called too deeply to be copied is judged where it is."""
    for n in range(20):
        inner = f"SELECT f{n - 1}(x)" if n else "SELECT x"
        made.execute(f"CREATE FUNCTION f{n}(x int) RETURNS int LANGUAGE sql STABLE AS '{inner}'")
    assert agree(made, "SELECT f9(a) FROM t") == ("HIT", None)
    assert agree(made, "SELECT f19(a) FROM t") == ("HIT", None)


def test_body_that_is_no_more(made):
    """What is wrong with a body is raised when the statement calls it, and not before."""
    query = "SELECT CASE WHEN a < 0 THEN used(a) END FROM t"
    assert agree(made, query) == ("HIT", None)
    made.execute("DROP FUNCTION helper(int)")
    for statement in (query.replace("a < 0", "a < 3"), "SELECT used(a) FROM t"):
        for _ in range(2):
            with pytest.raises(psycopg.errors.UndefinedFunction) as raised:
                made.execute(statement)
            assert raised.value.diag.message_primary == "function helper(integer) does not exist"
            assert 'SQL function "used"' in raised.value.diag.context
    with made.transaction():
        made.execute("SELECT 1")
        with pytest.raises(psycopg.errors.UndefinedFunction):
            with made.transaction():
                made.execute("SELECT used(a) FROM t")
        assert made.rows("SELECT count(*) FROM t") == [(20,)]
    made.execute("CREATE FUNCTION helper(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x + 5'")
    assert agree(made, query) == ("HIT", None)
    assert made.rows("SELECT used(1) FROM t LIMIT 1") == [(12,)]


def test_error_of_a_body(made):
    made.execute("CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 100 / (x - 5)'")
    assert agree(made, "SELECT f(a) FROM t WHERE a < 5") == ("HIT", None)
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            made.execute("SELECT f(a) FROM t")


def test_no_messages(made):
    """The cache, which reads bodies as well, warns nobody."""
    heard = []
    made.execute(r"SET standard_conforming_strings = off")
    made.execute(r"CREATE FUNCTION f(x int) RETURNS text LANGUAGE sql STABLE STRICT AS $$ SELECT coalesce('a\\b' || x, '') $$")
    made.add_notice_handler(lambda notice: heard.append(notice.message_primary))
    made.execute("SET pg_arrow_cache.enabled = off; SELECT f(a) FROM t")
    without = len(heard)
    heard.clear()
    made.execute("SET pg_arrow_cache.enabled = on; SELECT f(a) FROM t")
    assert len(heard) == without > 0


@pytest.mark.parametrize("name", ("used", "strict_one"))
@pytest.mark.parametrize("prepare", (False, True))
def test_shadows(made, other, name, prepare):
    """A function of an earlier schema takes the place of another in bodies that are kept as text."""
    schema = made.rows("SELECT current_schema()")[0][0]
    first = f"{schema}_first"
    made.execute(f"CREATE SCHEMA {first}; SET search_path = {first}, {schema}")
    try:
        query = f"SELECT a, {name}(a) FROM t"
        before = made.rows(query, prepare=prepare)
        assert agree(made, query, prepare=prepare) == ("HIT", None)
        for n in (10, 20):
            other.execute(f"CREATE FUNCTION {first}.helper(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x + {n}'")
            # PostgreSQL keeps a plan into which it has put the body that was there before.
            kept = prepare and name == "used"
            assert agree(made, query, prepare=prepare, kept=kept) == ("HIT", None)
            assert (made.rows(query, prepare=prepare) == before) == kept
            # No row of pg_proc changes, so that nothing is outdated.
            other.execute(f"REVOKE ALL ON SCHEMA {first} FROM PUBLIC; ALTER SCHEMA {first} RENAME TO {first}_away")
            assert agree(made, query, prepare=prepare) == ("HIT", None)
            assert made.rows(query, prepare=prepare) == before
            other.execute(f"ALTER SCHEMA {first}_away RENAME TO {first}")
            assert agree(made, query, prepare=prepare) == ("HIT", None)
            assert made.rows(query, prepare=prepare) != before
            other.execute(f"DROP FUNCTION {first}.helper(int)")
            assert agree(made, query, prepare=prepare) == ("HIT", None)
            assert made.rows(query, prepare=prepare) == before
    finally:
        other.execute(f"DROP SCHEMA {first} CASCADE")


@pytest.mark.parametrize("name", ("used", "strict_one"))
def test_paths(made, name):
    schema = made.rows("SELECT current_schema()")[0][0]
    made.execute(f"CREATE SCHEMA {schema}_b; CREATE FUNCTION {schema}_b.helper(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x * 100'")
    try:
        query = f"SELECT a, {schema}.{name}(a) FROM {schema}.t"
        answers = []
        for path in (schema, f"{schema}_b", schema, f"{schema}_b, {schema}"):
            made.execute(f"SET search_path = {path}")
            assert agree(made, query) == ("HIT", None)
            answers.append(made.rows(query))
        assert answers[0] == answers[2] != answers[1] == answers[3]
    finally:
        made.execute(f"DROP SCHEMA {schema}_b CASCADE")


@pytest.mark.parametrize("outer", ["LANGUAGE sql AS 'SELECT inner_one(x)'", "LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(inner_one(x), 0)'"])
def test_paths_by_which_a_body_is_refused(made, connect, outer):
    """What was found out about a body under one path says nothing of it under another."""
    schema = connect.schema
    made.execute(f"CREATE SCHEMA {schema}_b; "
                 "CREATE FUNCTION inner_one(x int) RETURNS int LANGUAGE sql AS 'SELECT x + 1'; "
                 f"CREATE FUNCTION {schema}_b.inner_one(x int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN x + 2; END'; "
                 f"CREATE FUNCTION outer_one(x int) RETURNS int {outer}")
    try:
        query = f"SELECT a, {schema}.outer_one(a) FROM {schema}.t"
        for _ in range(2):
            made.execute(f"SET search_path = {schema}")
            assert agree(made, query) == ("HIT", None)
            made.execute(f"SET search_path = {schema}_b, {schema}")
            assert agree(made, query) == ("BYPASS", "user_defined_function")
    finally:
        made.execute(f"DROP SCHEMA {schema}_b CASCADE")


def test_temporary_types(made):
    """A type of pg_temp comes before all others, whatever the search_path says."""
    made.execute("CREATE TYPE colour AS ENUM ('red', 'green'); "
                 "CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql STABLE STRICT AS $$ SELECT array_position(enum_range(NULL::colour), 'green') + x - x $$")
    assert agree(made, "SELECT f(a) FROM t")[0] in ("HIT", "BYPASS")
    before = made.rows("SELECT f(a) FROM t")
    made.execute("CREATE TYPE pg_temp.colour AS ENUM ('blue', 'yellow', 'green')")
    agree(made, "SELECT f(a) FROM t")
    assert made.rows("SELECT f(a) FROM t") != before
    made.execute("DROP TYPE pg_temp.colour")
    agree(made, "SELECT f(a) FROM t")
    assert made.rows("SELECT f(a) FROM t") == before


def test_temporary_types_of_another_session(made, other):
    """Both sessions call the same functions, which are about a type of another number in each."""
    made.execute("CREATE TYPE colour AS ENUM ('red', 'green'); "
                 "CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql STABLE STRICT AS $$ SELECT array_position(enum_range(NULL::colour), 'green') + x - x $$")
    other.execute("CREATE TYPE pg_temp.colour AS ENUM ('blue', 'yellow', 'green')")
    for _ in range(3):
        for session in (made, other):
            agree(session, "SELECT f(a) FROM t")
    assert made.rows("SELECT f(a) FROM t") != other.rows("SELECT f(a) FROM t")


CHANGES = [
    "CREATE OR REPLACE FUNCTION helper(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x + 1000'",
    "CREATE OR REPLACE FUNCTION {name}(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT helper(x) - 7'",
    "ALTER FUNCTION helper(int) VOLATILE",
    "ALTER FUNCTION helper(int) IMMUTABLE",
    "ALTER FUNCTION {name}(int) SECURITY DEFINER",
    "ALTER FUNCTION {name}(int) SECURITY INVOKER",
    "ALTER FUNCTION {name}(int) SET search_path = pg_catalog",
    "ALTER FUNCTION {name}(int) RESET ALL",
    "DROP FUNCTION helper(int); CREATE FUNCTION helper(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x; END'",
    "DROP FUNCTION helper(int); CREATE FUNCTION helper(x int) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT x + 0.6'",
    "BEGIN; CREATE OR REPLACE FUNCTION {name}(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 0'; ROLLBACK",
    "CREATE OR REPLACE FUNCTION {name}(x int) RETURNS int LANGUAGE sql STABLE RETURN helper(x)",
    "CREATE OR REPLACE FUNCTION helper(x int) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT x + 7.2'",
]


@pytest.mark.parametrize("name", ("used", "strict_one"))
@pytest.mark.parametrize("prepare", (False, True))
def test_changes(made, other, name, prepare):
    """Whatever is changed, by this session or another: the answer is the one without the cache."""
    schema = made.rows("SELECT current_schema()")[0][0]
    queries = [f"SELECT a, {name}(a) FROM t", f"SELECT a FROM t WHERE a = {name}(2) OR a = 3"]

    def outcome(query, on):
        made.execute(f"SET pg_arrow_cache.enabled = {on}")
        try:
            return made.rows(query, prepare=prepare and on == "on")
        except psycopg.Error as error:
            return error.sqlstate, error.diag.message_primary

    hits, before = 0, {}
    for place, change in enumerate(CHANGES):
        for query in queries:
            for _ in range(3):
                assert outcome(query, "on") == outcome(query, "off"), change
            before[query] = outcome(query, "on")
            hits += made.rows("SELECT arrow_cache.last_status()") == [("HIT",)]
        changer = (made, other)[place % 2]
        try:
            changer.execute(f"SET search_path = {schema}")
            changer.execute(change.format(name=name))
        except psycopg.errors.DependentObjectsStillExist:
            pass
        for query in queries:
            # An old plan, which is made anew after this.
            old = [before[query]] if prepare else []
            assert outcome(query, "on") in [outcome(query, "off"), *old], change
    assert hits > len(CHANGES) / 2


def test_roles(made):
    """Who may not execute the function, or use the schema that its body names, is told so."""
    schema = made.rows("SELECT current_schema()")[0][0]
    made.execute(f"""
        CREATE ROLE sql_functions_user; GRANT USAGE ON SCHEMA {schema} TO sql_functions_user; GRANT SELECT ON t TO sql_functions_user;
        CREATE SCHEMA {schema}_hidden; CREATE FUNCTION {schema}_hidden.inner_one(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x * 3';
        CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT {schema}_hidden.inner_one(x)';
        CREATE FUNCTION who(x int) RETURNS text LANGUAGE sql STABLE AS 'SELECT current_user::text || x'
    """)
    try:
        assert agree(made, "SELECT f(a) FROM t") == ("HIT", None)
        assert agree(made, "SELECT who(a) FROM t") == ("HIT", None)
        made.execute("SET ROLE sql_functions_user")
        assert agree(made, "SELECT who(a) FROM t") == ("HIT", None)
        for _ in range(2):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                made.execute("SELECT f(a) FROM t")
        made.execute(f"RESET ROLE; GRANT USAGE ON SCHEMA {schema}_hidden TO sql_functions_user; SET ROLE sql_functions_user")
        assert agree(made, "SELECT f(a) FROM t") == ("HIT", None)
        made.execute("RESET ROLE; REVOKE EXECUTE ON FUNCTION who(int) FROM PUBLIC; SET ROLE sql_functions_user")
        for _ in range(2):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                made.execute("SELECT who(a) FROM t")
        made.execute(f"RESET ROLE; REVOKE USAGE ON SCHEMA {schema}_hidden FROM sql_functions_user; SET ROLE sql_functions_user")
        for _ in range(2):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                made.execute("SELECT f(a) FROM t")
    finally:
        made.execute(f"RESET ROLE; DROP SCHEMA {schema}_hidden CASCADE; DROP OWNED BY sql_functions_user; DROP ROLE sql_functions_user")


def test_settings_in_bodies(made):
    """What a body asks of the session is part of the key."""
    made.execute("CREATE FUNCTION f() RETURNS int LANGUAGE sql STABLE AS $$ SELECT nullif(current_setting('app.x', true), '')::int $$; "
                 "CREATE FUNCTION g(x date) RETURNS text LANGUAGE sql STABLE AS $$ SELECT x::text $$; "
                 "CREATE FUNCTION h() RETURNS date LANGUAGE sql STABLE AS $$ SELECT '03/04/2020'::date $$")
    found = {}
    for query in ("SELECT a FROM t WHERE a = f()", "SELECT g(d) FROM t", "SELECT h(), a FROM t"):
        for prepare in (False, True):
            for value, style in (("1", "ISO, MDY"), ("2", "SQL, DMY"), ("1", "ISO, MDY"), ("2", "SQL, DMY")):
                made.execute(f"SET app.x = '{value}'; SET DateStyle = '{style}'")
                assert agree(made, query, prepare=prepare, kept=prepare) == ("HIT", None)
                if not prepare:
                    found.setdefault(query, set()).add(str(made.rows(query, prepare=False)))
    assert all(len(answers) == 2 for answers in found.values())


def test_row_security(made):
    schema = made.rows("SELECT current_schema()")[0][0]
    made.execute(f"CREATE ROLE sql_functions_reader; GRANT USAGE ON SCHEMA {schema} TO sql_functions_reader; GRANT SELECT ON t TO sql_functions_reader; "
                 "CREATE FUNCTION uid() RETURNS int LANGUAGE sql STABLE AS $$ SELECT nullif(current_setting('app.uid', true), '')::int $$; "
                 "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON t USING (a % 3 = uid())")
    try:
        made.execute("SET ROLE sql_functions_reader")
        answers = []
        for uid in ("1", "2", "1", ""):
            made.execute(f"SET app.uid = '{uid}'")
            assert agree(made, "SELECT a FROM t") == ("HIT", None)
            answers.append(len(made.rows("SELECT a FROM t")))
        assert answers == [7, 7, 7, 0]
        made.execute("RESET ROLE; CREATE OR REPLACE FUNCTION uid() RETURNS int LANGUAGE sql STABLE AS 'SELECT 0'; SET ROLE sql_functions_reader")
        assert agree(made, "SELECT a FROM t") == ("HIT", None)
        assert len(made.rows("SELECT a FROM t")) == 6
    finally:
        made.execute("RESET ROLE; DROP OWNED BY sql_functions_reader; DROP ROLE sql_functions_reader")


def test_own_transaction(made):
    """A transaction that has changed a function sees it, and nobody else does before it commits."""
    agree(made, "SELECT used(a) FROM t")
    before = made.rows("SELECT used(a) FROM t")
    with made.transaction(force_rollback=True):
        made.execute("CREATE OR REPLACE FUNCTION helper(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 0'")
        assert set(made.rows("SELECT used(a) FROM t")) == {(0,)}
        assert made.status() == "BYPASS"
    assert made.rows("SELECT used(a) FROM t") == before
    assert agree(made, "SELECT used(a) FROM t") == ("HIT", None)


def test_cursors(made):
    """A cursor is read later, when a body may mean something else."""
    agree(made, "SELECT used(a) FROM t")
    with made.transaction():
        made.execute("SET TRANSACTION READ ONLY")
        made.execute("DECLARE c NO SCROLL CURSOR FOR SELECT used(a) FROM t")
        assert made.rows("FETCH ALL FROM c") == made.uncached("SELECT used(a) FROM t")
        assert made.status() != "HIT"
