"""PL/pgSQL keeps for the session what it has found out about a function when it first ran it. What a session answers from that is not given to others, whose
functions would find something else."""

import pytest

TABLES = """
    CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 2) g;
    CREATE TABLE at AS SELECT timestamptz '2024-01-01 00:00+00' + g * interval '1 hour' AS moment, g AS n FROM generate_series(-12, 12) g;
    CREATE TABLE day AS SELECT * FROM (VALUES (date '2020-01-02', 1), (date '2020-02-01', 2)) AS d (day, n);
    CREATE TYPE word AS ENUM ('a', 'b');
    CREATE TABLE words AS SELECT * FROM (VALUES ('a'::word, 1), ('b', 2), ('b', 3)) AS w (word, n);
    CREATE TABLE doc AS SELECT g AS id, g % 2 = 0 AS secret FROM generate_series(1, 6) g;
    ALTER TABLE doc ENABLE ROW LEVEL SECURITY;
    CREATE FUNCTION secret() RETURNS int LANGUAGE sql STABLE AS 'SELECT 42';
    REVOKE EXECUTE ON FUNCTION secret() FROM PUBLIC;
"""
FUNCTIONS = {
    "in_expression": "BEGIN RETURN extract(epoch FROM timestamptz '2024-01-01')::text; END",
    "in_query": "BEGIN RETURN (SELECT count(*) FROM at WHERE moment >= '2024-01-01' AND n >= $1); END",
    "of_day": "BEGIN RETURN (SELECT sum(n) FROM day WHERE day.day = '01/02/2020' AND n >= $1); END",
    "null_equals": "BEGIN RETURN (SELECT count(*) FROM at WHERE (n = NULL) IS NULL AND n >= $1); END",
    "escaped": "BEGIN RETURN length('a\\nb')::text; END",
    "by_role": "BEGIN RETURN secret()::text; END",
    "level": "BEGIN RETURN secret()::text; EXCEPTION WHEN insufficient_privilege THEN RETURN '0'; END",
    "of_word": "BEGIN RETURN (SELECT sum(n) FROM words WHERE words.word = 'a' AND n >= $1); END",
    "shows_word": "BEGIN RETURN 'a'::word::text; END",
}
RENAMED = "ALTER TYPE word RENAME VALUE 'a' TO 'c'; ALTER TYPE word RENAME VALUE 'b' TO 'a'"


@pytest.fixture
def made(session, connect):
    session.execute(TABLES)
    for name, body in FUNCTIONS.items():
        session.execute(f"CREATE FUNCTION {name}(int) RETURNS text LANGUAGE plpgsql STABLE AS $body$ {body} $body$")
        session.execute(f"SECURITY LABEL FOR pg_arrow_cache ON FUNCTION {name}(int) IS 'pure'")
    session.execute(f"""
        CREATE POLICY p ON doc USING (NOT secret OR level(0) = '42');
        CREATE ROLE kept_a; CREATE ROLE kept_b; GRANT USAGE ON SCHEMA {connect.schema} TO kept_a, kept_b;
        GRANT SELECT ON ALL TABLES IN SCHEMA {connect.schema} TO kept_a, kept_b; GRANT EXECUTE ON FUNCTION secret() TO kept_a""")
    yield session
    session.execute("RESET ROLE; DROP OWNED BY kept_a, kept_b; DROP ROLE kept_a, kept_b")


def rows(session, query):
    """The rows, or the SQLSTATE."""
    result = session.pgconn.exec_(query.encode())
    if result.error_field(ord("C")):
        return result.error_field(ord("C")).decode()
    return [result.get_value(row, 0) for row in range(result.ntuples)]


@pytest.mark.parametrize("query, before, after, change", [
    ("SELECT in_expression(a) FROM t", "SET timezone = 'UTC'", "SET timezone = 'Asia/Tokyo'", None),
    ("SELECT in_query(-99) FROM t", "SET timezone = 'UTC'", "SET timezone = 'Asia/Tokyo'", None),
    ("SELECT of_day(0) FROM t", "SET datestyle = 'ISO, MDY'", "SET datestyle = 'ISO, DMY'", None),
    ("SELECT null_equals(-99) FROM t", "SELECT", "SET transform_null_equals = on", None),
    ("SELECT escaped(a) FROM t", "SELECT", "SET standard_conforming_strings = off", None),
    ("SELECT by_role(a) FROM t", "SET ROLE kept_a", "SET ROLE kept_b", None),
    ("SELECT id FROM doc ORDER BY id", "SET ROLE kept_a", "SET ROLE kept_b", None),
    ("SELECT of_word(0) FROM t", "SELECT", "SELECT", RENAMED),
    ("SELECT shows_word(a) FROM t", "SELECT", "SELECT", RENAMED),
    ("SELECT by_role(a) FROM t", "SET ROLE kept_a", "SET ROLE kept_a", "REVOKE EXECUTE ON FUNCTION secret() FROM kept_a"),
])
def test_another_session_gets_what_its_own_functions_give(made, connect, query, before, after, change):
    first, second, judge = connect(), connect(), connect("-c pg_arrow_cache.enabled=off")
    first.execute(before)
    for _ in range(2):
        kept = rows(first, query)
    assert first.status() == "HIT"
    if change:
        made.execute(change)
    first.execute(after)
    for _ in range(2):
        rows(first, query)
    for session in (second, judge):
        session.execute(after)
    expected = rows(judge, query)
    assert expected != kept or change
    assert rows(second, query) == rows(second, query) == expected


@pytest.mark.parametrize("before, after", [
    (["SELECT shows_word(1)"], []),
    (["BEGIN", "INSERT INTO t VALUES (3)", "SELECT shows_word(a) FROM t", "ROLLBACK"], []),
    (["SET pg_arrow_cache.enabled = off", "SELECT shows_word(a) FROM t"], ["SET pg_arrow_cache.enabled = on"]),
    (["/*+ no_arrow_cache */ SELECT shows_word(a) FROM t"], []),
    (["DO 'BEGIN PERFORM shows_word(1); END'"], []),
    (["BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT shows_word(a) FROM t", "COMMIT"], []),
    (["SELECT shows_word(1) WHERE false", "SELECT count(*) FROM t WHERE shows_word(a) = 'a'"], []),
])
def test_a_session_that_has_run_the_function_where_nothing_is_looked_up(made, connect, before, after):
    """Then labels are exchanged."""
    first, second, judge = connect(), connect(), connect("-c pg_arrow_cache.enabled=off")
    query = "SELECT shows_word(a) FROM t"
    for statement in before:
        first.execute(statement)
    made.execute(RENAMED + "; ALTER TYPE word RENAME VALUE 'c' TO 'b'")
    for statement in after:
        first.execute(statement)
    rows(first, query)
    assert first.outcome() == ("MISS", "old_plan")
    assert rows(second, query) == rows(second, query) == rows(judge, query)


def test_a_session_that_has_run_a_function_as_another_role(made, connect):
    first, second, judge = connect(), connect(), connect("-c pg_arrow_cache.enabled=off")
    first.execute("SET ROLE kept_a")
    first.execute("SELECT by_role(1)")
    for session in (first, second, judge):
        session.execute("SET ROLE kept_b")
    rows(first, "SELECT by_role(a) FROM t")
    assert rows(second, "SELECT by_role(a) FROM t") == rows(judge, "SELECT by_role(a) FROM t") == "42501"


@pytest.mark.parametrize("body", [
    "DECLARE x kind := 'a'; BEGIN RETURN x || (SELECT count(*) FROM conf WHERE x > 'b')::text; END",
    "DECLARE x conf%ROWTYPE; BEGIN x.k := '1.6'; RETURN x.k::text; END",
    "DECLARE x number; BEGIN x := 1.26; RETURN x::text; END",
])
def test_types_of_variables_by_another_path_of_schemas(session, connect, body):
    session.execute("""
        CREATE SCHEMA kept_1; CREATE SCHEMA kept_2; CREATE TABLE t AS SELECT 1 AS a;
        CREATE TYPE kept_1.kind AS ENUM ('a', 'b', 'c'); CREATE TYPE kept_2.kind AS ENUM ('c', 'b', 'a');
        CREATE TABLE kept_1.conf (k numeric); CREATE TABLE kept_2.conf (k numeric(5, 0)); INSERT INTO kept_1.conf VALUES (1); INSERT INTO kept_2.conf VALUES (1);
        CREATE DOMAIN kept_1.number AS numeric(5, 1); CREATE DOMAIN kept_2.number AS numeric(5, 0)""")
    path = f"{connect.schema}, kept_1"
    try:
        session.execute(f"SET search_path = {path}")
        session.execute(f"CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql STABLE AS $body$ {body} $body$")
        session.execute("SECURITY LABEL FOR pg_arrow_cache ON FUNCTION f() IS 'pure'")
        first, second, judge = connect(), connect(), connect("-c pg_arrow_cache.enabled=off")
        first.execute(f"SET search_path = {path}")
        before = rows(first, "SELECT f() FROM t")
        for reader in (first, second, judge):
            reader.execute(f"SET search_path = {path.replace('kept_1', 'kept_2')}")
        rows(first, "SELECT f() FROM t")
        assert first.outcome() == ("BYPASS", "session_function")
        expected = rows(judge, "SELECT f() FROM t")
        assert expected != before
        assert rows(second, "SELECT f() FROM t") == expected
    finally:
        session.execute("DROP FUNCTION IF EXISTS f; DROP SCHEMA kept_1, kept_2 CASCADE")


@pytest.mark.parametrize("before", [
    "SELECT casts()", "DO 'BEGIN PERFORM casts(); END'", "DO $$ DECLARE n int; BEGIN n := '7'::digit; END $$", "CALL casts_too()", "COMMENT ON TABLE watched IS 'x'", "INSERT INTO watched VALUES (1)", "UPDATE watched SET a = 1", "COPY watched FROM '/dev/null'",
    "TRUNCATE watched", "INSERT INTO routed VALUES (1)", "WITH w AS (DELETE FROM watched RETURNING 1) SELECT count(*) FROM w",
])
def test_a_session_whose_functions_have_cast_in_another_way(session, connect, before):
    """PL/pgSQL keeps for all functions of the session how one type becomes another, whichever function or trigger has asked first."""
    session.execute("""
        CREATE TYPE digit AS ENUM ('7', '8'); CREATE TABLE t AS SELECT 1 AS a;
        CREATE FUNCTION value(digit) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN $1 IS NULL THEN 0 ELSE 42 END';
        CREATE FUNCTION casts() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN '7'::digit; END $$;
        CREATE PROCEDURE casts_too() LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN n := '7'::digit; END $$;
        CREATE FUNCTION watches() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN n := '7'::digit; RETURN NULL; END $$;
        CREATE TABLE watched (a int); INSERT INTO watched VALUES (0);
        CREATE TRIGGER watches AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON watched FOR EACH STATEMENT EXECUTE FUNCTION watches();
        CREATE TABLE routed (a int) PARTITION BY RANGE (a); CREATE TABLE leaf PARTITION OF routed FOR VALUES FROM (0) TO (9);
        CREATE TRIGGER watches AFTER INSERT ON leaf FOR EACH ROW EXECUTE FUNCTION watches();
        CREATE FUNCTION hears() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN n := '7'::digit; END $$;
        CREATE EVENT TRIGGER hears ON ddl_command_end WHEN TAG IN ('COMMENT') EXECUTE FUNCTION hears();
        CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN '8'::digit; END $$;
        SECURITY LABEL FOR pg_arrow_cache ON FUNCTION f() IS 'pure'""")
    first, second, judge = connect(), connect(), connect("-c pg_arrow_cache.enabled=off")
    first.execute(before)
    session.execute("DROP EVENT TRIGGER hears")
    session.execute("CREATE CAST (digit AS int) WITH FUNCTION value(digit) AS ASSIGNMENT")
    query = "SELECT a, f() FROM t"
    first.rows(query)
    assert first.outcome() == ("MISS", "old_plan")
    assert second.rows(query) == second.rows(query) == judge.rows(query) == [(1, 42)]


@pytest.mark.parametrize("own_changes", [
    ["BEGIN", RENAMED, "SELECT shows_word(1)", "ROLLBACK"], ["BEGIN", "SAVEPOINT s", RENAMED, "SELECT shows_word(1)", "ROLLBACK TO s", "COMMIT"],
    ["SELECT of_word(0)", "BEGIN", RENAMED, "SELECT shows_word(1)", "ROLLBACK"],
])
def test_changes_that_a_session_takes_back(made, connect, own_changes):
    """No version tells of them."""
    first, second, judge = connect(), connect(), connect("-c pg_arrow_cache.enabled=off")
    for statement in own_changes:
        first.execute(statement)
    query = "SELECT shows_word(a) FROM t"
    rows(first, query)
    assert first.outcome() == ("MISS", "old_plan")
    assert rows(second, query) == rows(second, query) == rows(judge, query)


def test_temporary_tables_are_no_such_changes(made, connect):
    first = connect()
    first.execute("SELECT shows_word(1)")
    first.execute("CREATE TEMP TABLE mine (a int PRIMARY KEY); DROP TABLE mine")
    for expected in ("MISS", "HIT"):
        rows(first, "SELECT shows_word(a) FROM t")
        assert first.status() == expected


@pytest.mark.parametrize("first_run", ["SELECT by_role(1)", "SELECT by_role(a) FROM t"])
def test_a_setting_of_the_language_before_it_is_loaded(made, connect, first_run):
    """It may be one that the language refuses, so nobody knows what the first function was compiled under."""
    setting = "-c plpgsql.variable_conflict=use_variable"
    first, second, judge = connect(setting), connect(f"{setting} -c session_preload_libraries=plpgsql"), connect(f"{setting} -c pg_arrow_cache.enabled=off")
    first.execute("SET ROLE kept_a")
    first.execute(first_run)
    for session in (first, second, judge):
        session.execute("SET ROLE kept_b")
    rows(first, "SELECT by_role(a) FROM t")
    assert first.outcome() == ("BYPASS", "session_function")
    assert rows(second, "SELECT by_role(a) FROM t") == rows(judge, "SELECT by_role(a) FROM t") == "42501"


def test_a_change_that_the_session_has_not_heard_of(made, connect):
    """Its caches know the old label, and the function takes no lock."""
    first, second, judge = connect(), connect(), connect("-c pg_arrow_cache.enabled=off")
    # It has all that it needs to run the function for the first time.
    first.execute("CREATE FUNCTION loads() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'a'::word::text; END $$")
    for statement in "SELECT 'a'::word::text", "PREPARE q AS SELECT shows_word(1)", "EXPLAIN EXECUTE q", "EXPLAIN EXECUTE q", "BEGIN", "SELECT 1":
        first.execute(statement)
    made.execute(RENAMED + "; ALTER TYPE word RENAME VALUE 'c' TO 'b'")
    first.execute("EXECUTE q")
    first.execute("COMMIT")
    query = "SELECT shows_word(a) FROM t"
    rows(first, query)
    assert rows(second, query) == rows(second, query) == rows(judge, query)
