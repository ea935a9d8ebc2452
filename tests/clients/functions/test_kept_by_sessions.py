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
