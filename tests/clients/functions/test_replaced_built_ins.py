"""A superuser may give a built-in function another body, other defaults or another volatility, and an aggregate other
parts. A query that uses such a function is checked as if the query contained what was changed. Each test has a
database of its own, because the changes apply to a whole database."""

import pytest

from support.session import DSN, Session

DATABASE, PREPARED_DATABASE = "replaced_built_ins", "replaced_built_ins_prepared"
# A hidden dependency: another table, read by a function whose volatility is declared wrongly.
PREPARED = """
    CREATE EXTENSION pg_arrow_cache;
    CREATE TABLE t AS SELECT g AS a, 'x' || g AS b, timestamptz '2024-05-01 12:00+00' + g * interval '1 day' AS at FROM generate_series(1, 5) g;
    CREATE TABLE rate (factor int);
    INSERT INTO rate VALUES (1);
    CREATE FUNCTION factor() RETURNS int LANGUAGE sql STABLE AS 'SELECT factor FROM public.rate';
    CREATE FUNCTION add(bigint, int) RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN coalesce($1, 0) + $2 * public.factor(); END';
    CREATE FUNCTION give(bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1 * public.factor(); END';
    CREATE FUNCTION less(int, int) RETURNS boolean LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1 * public.factor() < $2 * public.factor(); END';
    CREATE TYPE mood AS ENUM ('sad', 'happy');
    CREATE TYPE pair AS (a int, b int);
    CREATE OPERATOR <<< (leftarg = int, rightarg = int, function = public.less);
    CREATE OPERATOR CLASS other_order FOR TYPE int USING btree AS OPERATOR 1 <<<, OPERATOR 3 =, FUNCTION 1 btint4cmp(int, int);
"""


@pytest.fixture(scope="module")
def prepared(administrator):
    """A database to copy, which is quicker than to fill each."""
    administrator.execute(f"DROP DATABASE IF EXISTS {PREPARED_DATABASE} WITH (FORCE)")
    administrator.execute(f"CREATE DATABASE {PREPARED_DATABASE} TEMPLATE template0")
    with Session.connect(DSN, dbname=PREPARED_DATABASE, autocommit=True) as session:
        session.execute(PREPARED)
    yield PREPARED_DATABASE
    administrator.execute(f"DROP DATABASE {PREPARED_DATABASE}")


@pytest.fixture
def changed(administrator, prepared):
    """A superuser in a new database."""
    administrator.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
    administrator.execute(f"CREATE DATABASE {DATABASE} TEMPLATE {prepared}")
    with Session.connect(DSN, dbname=DATABASE, autocommit=True) as session:
        session.prepare_threshold = None
        yield session
    administrator.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def statuses(session, query):
    """Of four executions, with a change of the other table half way. Each gives what it gives without the cache, in the same transaction:
    some show the time."""
    found = []
    for factor in (1, 1, 7, 7):
        session.execute(f"UPDATE rate SET factor = {factor} WHERE factor <> {factor}")
        with session.transaction():
            expected = session.uncached(query)
            assert session.rows(query) == expected
            found.append((session.status(), session.reason()))
    return found


REFUSED = [
    # Parts of aggregates.
    ("CREATE OR REPLACE AGGREGATE pg_catalog.sum(int) (sfunc = public.add, stype = bigint)", "SELECT sum(a) FROM t"),
    ("CREATE OR REPLACE AGGREGATE pg_catalog.sum(int) (sfunc = public.add, stype = bigint)",
     "SELECT a, sum(a) OVER (ORDER BY a) FROM t"),
    ("CREATE OR REPLACE AGGREGATE pg_catalog.sum(int) (sfunc = int4_sum, stype = bigint, finalfunc = public.give)", "SELECT sum(a) FROM t"),
    ("CREATE OR REPLACE AGGREGATE pg_catalog.sum(int) (sfunc = int4_sum, stype = bigint, msfunc = public.add, minvfunc = public.add, "
     "mstype = bigint)", "SELECT a, sum(a) OVER (ORDER BY a ROWS 1 PRECEDING) FROM t"),
    ("CREATE OR REPLACE AGGREGATE pg_catalog.max(timestamptz) (sfunc = timestamptz_larger, stype = timestamptz, initcond = 'now')",
     "SELECT max(at) FROM t"),
    ("CREATE OR REPLACE AGGREGATE pg_catalog.max(int) (sfunc = int4larger, stype = int, sortop = OPERATOR(public.<<<))",
     "SELECT max(a) FROM t"),
    # Bodies in SQL, in the place of others and of the server's own code.
    ("CREATE OR REPLACE FUNCTION pg_catalog.rpad(text, int) RETURNS text LANGUAGE sql IMMUTABLE RETURN $1 || public.factor()",
     "SELECT rpad(b, 5) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.rpad(text, int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1 || public.factor()'",
     "SELECT rpad(b, 5) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.rpad(text, int) RETURNS text LANGUAGE sql IMMUTABLE RETURN (SELECT $1 || factor FROM public.rate)",
     "SELECT rpad(b, 5) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.rpad(text, int) RETURNS text LANGUAGE sql IMMUTABLE "
     "BEGIN ATOMIC SELECT 1; SELECT $1 || factor FROM public.rate; END", "SELECT rpad(b, 5) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.rpad(text, int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS "
     "'BEGIN RETURN $1 || public.factor(); END'", "SELECT rpad(b, 5) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.log10(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE RETURN $1 * extract(microseconds FROM now())",
     "SELECT log10(a::numeric) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.upper(text) RETURNS text LANGUAGE sql STRICT IMMUTABLE RETURN $1 || public.factor()",
     "SELECT upper(b) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.rpad(text, int) RETURNS text LANGUAGE internal IMMUTABLE AS 'text_left'",
     "SELECT rpad(b, 5) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.interval_pl_timestamptz(interval, timestamptz) RETURNS timestamptz LANGUAGE sql STABLE "
     "RETURN now() + $1", "SELECT interval '1 day' + at FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.textanycat(text, anynonarray) RETURNS text LANGUAGE sql STABLE AS "
     "'SELECT $1 || public.factor()::text'", "SELECT b || a FROM t"),
    ("ALTER FUNCTION pg_catalog.rpad(text, int) SET extra_float_digits = 0", "SELECT rpad(b, 5) FROM t"),
    # Arguments that the planner adds.
    ("CREATE OR REPLACE FUNCTION pg_catalog.make_interval(years int DEFAULT 0, months int DEFAULT 0, weeks int DEFAULT 0, "
     "days int DEFAULT public.factor(), hours int DEFAULT 0, mins int DEFAULT 0, secs float8 DEFAULT 0) RETURNS interval "
     "LANGUAGE internal STRICT IMMUTABLE AS 'make_interval'", "SELECT make_interval(a) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.lag(anycompatible, int, anycompatible DEFAULT public.factor()) RETURNS anycompatible "
     "LANGUAGE internal WINDOW STRICT IMMUTABLE AS 'window_lag_with_offset_and_default'", "SELECT a, lag(a, 1) OVER (ORDER BY a) FROM t"),
    # Parts of clock expressions.
    ("CREATE OR REPLACE FUNCTION pg_catalog.now() RETURNS timestamptz LANGUAGE sql STABLE RETURN clock_timestamp()",
     "SELECT a, date_trunc('year', now()) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.date_trunc(text, timestamptz) RETURNS timestamptz LANGUAGE sql STABLE RETURN now()",
     "SELECT a, date_trunc('year', now()) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.make_interval(years int DEFAULT 0, months int DEFAULT 0, weeks int DEFAULT 0, "
     "days int DEFAULT public.factor(), hours int DEFAULT 0, mins int DEFAULT 0, secs float8 DEFAULT 0) RETURNS interval "
     "LANGUAGE internal STRICT IMMUTABLE AS 'make_interval'", "SELECT a, date_trunc('year', now() - make_interval(1)) FROM t"),
    # What the server asks to make a call simpler.
    ("CREATE FUNCTION public.support(internal) RETURNS internal LANGUAGE internal AS 'generate_series_int4_support'; "
     "ALTER FUNCTION pg_catalog.upper(text) SUPPORT public.support", "SELECT upper(b) FROM t"),
    # The one function that may be called because its argument is a constant.
    ("CREATE OR REPLACE FUNCTION pg_catalog.current_setting(text, boolean) RETURNS text LANGUAGE sql STABLE RETURN $1 || public.factor()",
     "SELECT a, current_setting('app.tenant', true) FROM t"),
    # Casts that texts of built-in functions find by the types of their arguments. Owners of types may make them.
    *((f"CREATE FUNCTION public.show({kind}) RETURNS text LANGUAGE plpgsql STABLE AS 'BEGIN RETURN format(''%s'', public.factor()); END'; "
       f"CREATE CAST ({kind} AS text) WITH FUNCTION public.show({kind}) AS ASSIGNMENT", f"SELECT {call} FROM (SELECT NULL::{kind} AS v UNION ALL "
       f"SELECT {value}::{kind} FROM t) s")
      for kind, value, call in [("mood", "'sad'", "'' || v"), ("mood", "'sad'", "v || ''"), ("mood", "'sad'", "quote_literal(v)"),
                                ("mood", "'sad'", "quote_nullable(v)"), ("int", "a", "'' || v"), ("pair", "(1, a)", "'' || v")]),
    # A cast that `||` finds for a date in a clock expression.
    ("CREATE FUNCTION public.show(date) RETURNS text LANGUAGE plpgsql STABLE AS 'BEGIN RETURN format(''%s'', public.factor()); END'; "
     "CREATE CAST (date AS text) WITH FUNCTION public.show(date) AS ASSIGNMENT", "SELECT a, date_trunc('year', now())::date || 'x' FROM t"),
    # What reads texts and JSON, and names state of the session.
    ("CREATE OR REPLACE FUNCTION pg_catalog.jsonb_to_record(jsonb) RETURNS record LANGUAGE sql STABLE AS 'SELECT public.factor()'",
     "SELECT a, r.x FROM t, jsonb_to_record('{\"x\": 1}') AS r(x int)"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.current_database() RETURNS name LANGUAGE sql STABLE RETURN ('d' || public.factor())::name",
     "SELECT a, current_database() FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.version() RETURNS text LANGUAGE sql STABLE RETURN 'v' || public.factor()",
     "SELECT a, version() FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.current_schema() RETURNS name LANGUAGE sql STABLE RETURN ('s' || public.factor())::name",
     "SELECT a, current_schema() FROM t"),
    # What hands a value of a column on to a comparison with the clock, and what makes texts in a clock expression.
    ("CREATE OR REPLACE AGGREGATE pg_catalog.max(timestamptz) (sfunc = timestamptz_smaller, stype = timestamptz)",
     "SELECT a % 2 FROM t GROUP BY 1 HAVING max(at) > now() - interval '100 years'"),
    ("ALTER FUNCTION pg_catalog.concat(VARIADIC \"any\") IMMUTABLE", "SELECT a FROM t WHERE at > date_trunc('year', now() - concat('1 ', 'day')::interval)"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.text(name) RETURNS text LANGUAGE sql IMMUTABLE RETURN textcat('', public.factor()::text)",
     "SELECT a FROM t WHERE at > now() - ('1 day'::name::text)::interval"),
    # Marks.
    ("ALTER FUNCTION pg_catalog.current_setting(text, boolean) IMMUTABLE", "SELECT a, current_setting('app.tenant', true) FROM t"),
    ("ALTER FUNCTION pg_catalog.current_database() IMMUTABLE", "SELECT a, current_database() FROM t"),
    ("ALTER FUNCTION pg_catalog.date_in(cstring) IMMUTABLE", "SELECT a, ('2024-01-0' || a)::date FROM t"),
    ("ALTER FUNCTION pg_catalog.array_in(cstring, oid, int) IMMUTABLE", "SELECT a, ('{' || a || '}')::int[] FROM t"),
    ("ALTER FUNCTION pg_catalog.timestamptz_in(cstring, oid, int) IMMUTABLE", "SELECT a FROM t WHERE at > '2024-01-01'::text::timestamptz"),
    ("ALTER FUNCTION pg_catalog.jsonb_to_record(jsonb) IMMUTABLE", "SELECT a, r.x FROM t, jsonb_to_record('{\"x\": 1}') AS r(x int)"),
    ("ALTER FUNCTION pg_catalog.now() IMMUTABLE", "SELECT a, date_trunc('year', now()) FROM t"),
    ("ALTER FUNCTION pg_catalog.now() VOLATILE", "SELECT a, date_trunc('year', now()) FROM t"),
    ("ALTER FUNCTION pg_catalog.random() IMMUTABLE", "SELECT a, random() < 2 FROM t"),
    ("ALTER FUNCTION pg_catalog.enum_range(anyenum) IMMUTABLE", "SELECT enum_range(NULL::mood) FROM t"),
]


@pytest.mark.parametrize("change, query", REFUSED, ids=range(len(REFUSED)))
def test_is_refused(changed, change, query):
    for _ in range(2):
        changed.rows(query)
    if "lag(" in change:
        # Two functions would fit.
        changed.execute("SET allow_system_table_mods = on; DELETE FROM pg_proc WHERE oid = 'lag(anyelement, int)'::regprocedure")
    changed.execute(change)
    found = statuses(changed, query)
    assert {status for status, _ in found} == {"BYPASS"}
    assert {reason for _, reason in found} <= {"user_defined_function", "stable_function", "session_function"}


# Of lag two functions would fit.
PLANNED_BEFORE = [case for case in REFUSED if "lag(" not in case[0]]


@pytest.mark.parametrize("change, query", PLANNED_BEFORE, ids=range(len(PLANNED_BEFORE)))
def test_an_old_plan_keeps_its_meaning(changed, change, query):
    """It was eligible when it was planned, and the server has no reason to plan it again."""
    changed.execute("SET plan_cache_mode = force_generic_plan")
    changed.execute(f"PREPARE q AS {query}")
    for _ in range(2):
        changed.rows("EXECUTE q")
    changed.execute(change)
    for asked in ("EXECUTE q", query, "EXECUTE q"):
        statuses(changed, asked)


CACHED = [
    # The original definition.
    (None, "SELECT rpad(b, 5), log10(a::numeric), b || a, quote_literal(a), interval '1 day' + at, bit_length(b) FROM t"),
    (None, "SELECT sum(a), avg(a), max(at), array_agg(a), string_agg(b, ','), jsonb_object_agg(a, b), stddev(a), percentile_disc(0.5) "
     "WITHIN GROUP (ORDER BY a), sum(at - timestamptz '2020-01-01'), avg(at - timestamptz '2020-01-01') FROM t"),
    (None, "SELECT a, sum(a) OVER w, lag(a) OVER w, rank() OVER w FROM t WINDOW w AS (ORDER BY a)"),
    (None, "SELECT make_interval(a), make_interval(days => a), jsonb_set('{}', '{a}', to_jsonb(a)) FROM t"),
    # Changed, but by nothing that matters. The answer is another one all the same.
    ("CREATE OR REPLACE FUNCTION pg_catalog.rpad(text, int) RETURNS text LANGUAGE sql IMMUTABLE RETURN $1 || '-'", "SELECT rpad(b, 5) FROM t"),
    ("CREATE OR REPLACE AGGREGATE pg_catalog.max(int) (sfunc = int4smaller, stype = int)", "SELECT max(a) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.make_interval(years int DEFAULT 0, months int DEFAULT 0, weeks int DEFAULT 0, "
     "days int DEFAULT 3, hours int DEFAULT 0, mins int DEFAULT 0, secs float8 DEFAULT 0) RETURNS interval "
     "LANGUAGE internal STRICT IMMUTABLE AS 'make_interval'", "SELECT make_interval(a) FROM t"),
    ("CREATE OR REPLACE FUNCTION pg_catalog.make_interval(years int DEFAULT 0, months int DEFAULT 0, weeks int DEFAULT 0, "
     "days int DEFAULT 40, hours int DEFAULT 0, mins int DEFAULT 0, secs float8 DEFAULT 0) RETURNS interval "
     "LANGUAGE internal STRICT IMMUTABLE AS 'make_interval'", "SELECT a, date_trunc('day', now() - make_interval(1)) FROM t"),
    # Another function of the server's own behind an operator: a clock expression is computed with the one that the tree names.
    ("SET allow_system_table_mods = on; UPDATE pg_operator SET oprcode = 'timestamptz_mi_interval' WHERE oid = '+(timestamptz, interval)'::regoperator",
     "SELECT a, date_trunc('day', now() + interval '1 day') FROM t"),
]


@pytest.mark.parametrize("change, query", CACHED)
def test_is_cached(changed, change, query):
    before = changed.uncached(query)
    for _ in range(2):
        assert changed.rows(query) == before
    if change:
        changed.execute(change)
        assert changed.uncached(query) != before, "the change must matter"
    first = "HIT" if change is None else "MISS" if "now()" in query else "STALE"
    assert [status for status, _ in statuses(changed, query)] == [first, "HIT", "HIT", "HIT"]


def test_a_function_that_calls_itself(changed):
    """The check of such a call ends, whatever the server does with the call."""
    changed.execute("CREATE OR REPLACE FUNCTION pg_catalog.rpad(text, int) RETURNS text LANGUAGE sql IMMUTABLE "
                    "RETURN CASE WHEN $2 > 0 THEN '.' || pg_catalog.rpad($1, $2 - 1) ELSE $1 END")
    statuses(changed, "SELECT rpad(b, 5) FROM t")


@pytest.mark.parametrize("change, query", [case for case in CACHED if case[0]])
def test_a_plan_from_before_the_change(changed, change, query):
    """The planner has inlined the old body, and a change of a built-in function does not make the server plan again. The
    cache asks it to, and passes the statement on until then."""
    changed.execute("SET plan_cache_mode = force_generic_plan")
    changed.execute(f"PREPARE q AS {query}")
    for _ in range(2):
        changed.rows("EXECUTE q")
    changed.execute(change)
    kept = changed.uncached("EXECUTE q")
    assert changed.rows("EXECUTE q") == kept
    # The server itself has planned anew after a change of an operator: while the cache was off.
    assert (changed.status(), changed.reason()) == ("BYPASS", "not_analyzed" if "pg_operator" in change else "old_plan")
    expected = changed.uncached(query)
    for statement in ("EXECUTE q", query) * 2:
        for _ in range(2):
            assert changed.rows(statement) == changed.uncached(statement) == expected


def test_a_function_of_users_that_runs_beneath_a_built_in(changed):
    """No query tree tells that names are resolved there: found out under one path, they may mean something else under another."""
    changed.execute("CREATE SCHEMA one; CREATE SCHEMA two; CREATE FUNCTION one.named(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1'; "
                    "CREATE FUNCTION two.named(text) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT $1 || random()'; SET search_path = one, public; "
                    "CREATE FUNCTION public.names(text) RETURNS text LANGUAGE sql STABLE STRICT AS $$ SELECT coalesce($1, '') || named($1) $$; "
                    "CREATE OR REPLACE FUNCTION pg_catalog.lpad(text, int) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN public.names($1); "
                    "CREATE FUNCTION public.days(int) RETURNS int LANGUAGE sql STABLE STRICT AS $$ SELECT coalesce($1, 0) + length(named('y')) $$; "
                    "CREATE OR REPLACE FUNCTION pg_catalog.make_interval(years int DEFAULT 0, months int DEFAULT 0, weeks int DEFAULT 0, "
                    "days int DEFAULT public.days(1), hours int DEFAULT 0, mins int DEFAULT 0, secs float8 DEFAULT 0) RETURNS interval "
                    "LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'make_interval'")
    assert statuses(changed, "SELECT lpad(b, 3) FROM t") == [("BYPASS", "user_defined_function")] * 4
    assert statuses(changed, "SELECT make_interval(years => a) FROM t") == [("BYPASS", "user_defined_function")] * 4
