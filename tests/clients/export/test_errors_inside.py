"""An error inside a query given as text has the same fields as an error of EXECUTE in PL/pgSQL, and no others."""

import time

import psycopg
import pytest

FIELDS = ("severity", "severity_nonlocalized", "sqlstate", "message_primary", "message_detail", "message_hint", "statement_position",
          "internal_position", "internal_query", "context", "schema_name", "table_name", "column_name", "datatype_name",
          "constraint_name", "source_file", "source_line", "source_function")

SETUP = r"""
    CREATE TABLE t (id int, v text);
    INSERT INTO t SELECT g, 'row ' || g FROM generate_series(0, 9) g;
    CREATE TABLE empty (id int);
    CREATE DOMAIN positive AS int CONSTRAINT above_zero CHECK (VALUE > 0);
    CREATE TABLE strict (id int CONSTRAINT strict_key PRIMARY KEY);
    INSERT INTO strict VALUES (1);
    CREATE FUNCTION divide(n int) RETURNS int LANGUAGE plpgsql AS $$
    BEGIN
        RETURN 1 / n;
    END $$;
    CREATE FUNCTION divide_in_sql(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT divide(n)';
    CREATE FUNCTION complain() RETURNS int LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'no way' USING ERRCODE = 'P4242', DETAIL = 'a detail', HINT = 'a hint',
            SCHEMA = 's', TABLE = 'parent', COLUMN = 'v', CONSTRAINT = 'small', DATATYPE = 'int4';
    END $$;
    CREATE FUNCTION bad_text() RETURNS int LANGUAGE plpgsql AS $$
    BEGIN
        EXECUTE 'SELECT nothing FROM t';
    END $$;
    CREATE FUNCTION insert_again() RETURNS int LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO strict VALUES (1);
        RETURN 1;
    END $$;
    CREATE FUNCTION by_server(q text) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        r record;
    BEGIN
        EXECUTE q INTO r;
    END $$;
    CREATE FUNCTION by_query(q text) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        r record;
    BEGIN
        PERFORM arrow_cache.query(q);
    END $$;
"""

PARSING = {
    "syntax": "SELECT id\n  FROM t WHERE ORDER BY 1",
    "syntax at the end": "SELECT id FROM",
    "characters of several bytes": "SELECT 'äöü€', wrong FROM t",
    "unterminated": "SELECT 'abc",
    "unknown column, with a hint": "SELECT id, w FROM t ORDER BY t.idd",
    "unknown table": "SELECT 1 FROM ts",
    "unknown function": "SELECT nothing(id) FROM t",
    "unknown type": "SELECT id::no_such_type FROM t",
    "invalid constant": "SELECT id FROM t WHERE id = 'x'",
    "ambiguous": "SELECT id FROM t a, t b",
    "aggregate in WHERE": "SELECT id FROM t WHERE count(*) > 0",
}
PLANNING = {
    "constants": "SELECT 1 / 0 FROM t",
    "constants of a function": "SELECT sqrt(-1) FROM t",
}
STARTING = {
    "permission": "SELECT * FROM pg_authid",
    "function without permission": "SELECT pg_read_file('x')",
}
RUNNING = {
    "a row": "SELECT id, 10 / (5 - id) FROM t ORDER BY id",
    "a row after many": "SELECT i, repeat('x', 100), 10 / (20000 - i) FROM generate_series(1, 30000) i",
    "cast": "SELECT v::int FROM t",
    "constant of a domain": "SELECT (-1)::positive FROM t",
    "domain": "SELECT (id - 5)::positive FROM t",
    "two rows from a subquery": "SELECT (SELECT v FROM t) FROM t",
    "function": "SELECT divide(id) FROM t",
    "function in a function": "SELECT divide_in_sql(id) FROM t",
    "raised with all fields": "SELECT complain()",
    "position inside": "SELECT bad_text()",
    "constraint": "SELECT insert_again()",
    "volatile, in a function's query": "SELECT by_server('SELECT divide(0)')",
}
ALL = {**PARSING, **PLANNING, **STARTING, **RUNNING}


@pytest.fixture
def table(connect):
    session = connect()
    session.execute(SETUP)
    return session


def diagnosis(session, statement, parameters=None):
    with pytest.raises(psycopg.Error) as raised:
        session.execute(statement, parameters)
    return {field: getattr(raised.value.diag, field) for field in FIELDS}


def as_told_by_the_server(session, query, inside="by_server"):
    """The diagnosis of a query in EXECUTE, without the line of context about the function that holds the EXECUTE."""
    told = diagnosis(session, f"SELECT {inside}(%s)", [query])
    lines = told["context"].split("\n")
    assert lines.pop().startswith(f"PL/pgSQL function {inside}(text) line ")
    return {**told, "context": "\n".join(lines) or None}


@pytest.mark.parametrize("way", ["query", "fetch", "messages"])
@pytest.mark.parametrize("name", ALL)
def test_every_field(table, name, way):
    table.execute("CREATE ROLE inside_errors; GRANT USAGE ON SCHEMA arrow_cache TO inside_errors")
    try:
        if name in STARTING:
            table.execute(f"GRANT USAGE ON SCHEMA {table.rows('SELECT current_schema()')[0][0]} TO inside_errors; SET ROLE inside_errors")
        expected = as_told_by_the_server(table, ALL[name])
        assert expected["severity"] == "ERROR"
        assert diagnosis(table, f"SELECT arrow_cache.{way}(%s)", [ALL[name]]) == expected
        # The same session works as before.
        assert diagnosis(table, f"SELECT arrow_cache.{way}(%s)", [ALL[name]]) == expected
    finally:
        table.execute("RESET ROLE; DROP OWNED BY inside_errors; DROP ROLE inside_errors")
    assert table.rows("SELECT count(*) FROM arrow_cache.entries") == [(0,)]


@pytest.mark.parametrize("way", ["schema", "why"])
@pytest.mark.parametrize("name", {**PARSING, **PLANNING})
def test_every_field_of_what_only_plans(table, name, way):
    query = ALL[name]
    assert diagnosis(table, f"SELECT arrow_cache.{way}(%s)", [query]) == as_told_by_the_server(table, query)
    assert diagnosis(table, f"SELECT * FROM arrow_cache.{way}(%s)", [query]) == as_told_by_the_server(table, query)


@pytest.mark.parametrize("name", {**PARSING, **PLANNING, **RUNNING})
def test_inside_a_function(table, name):
    """The context ends with the lines of the statements around the call."""
    query = ALL[name]
    expected = as_told_by_the_server(table, query)
    told = diagnosis(table, "SELECT by_query(%s)", [query])
    around = 'SQL statement "SELECT arrow_cache.query(q)"\nPL/pgSQL function by_query(text) line 5 at PERFORM'
    context = f"{expected['context']}\n{around}" if expected["context"] else around
    assert told == {**expected, "context": context}


def test_in_an_exception_block(table):
    """Caught errors leave no memory behind, and the fields that PL/pgSQL shows are those of the error."""
    table.execute("""
        CREATE FUNCTION caught(times int) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE
            what text; which text; origin text;
        BEGIN
            FOR i IN 1 .. times LOOP
                BEGIN
                    PERFORM arrow_cache.query('SELECT complain()');
                EXCEPTION WHEN SQLSTATE 'P4242' THEN
                    GET STACKED DIAGNOSTICS what = PG_EXCEPTION_DETAIL, which = CONSTRAINT_NAME, origin = PG_EXCEPTION_CONTEXT;
                END;
            END LOOP;
            RETURN concat_ws(' | ', what, which, split_part(origin, E'\n', 1));
        END $$
    """)
    seen = "a detail | small | PL/pgSQL function complain() line 3 at RAISE"
    assert table.rows("SELECT caught(10)") == [(seen,)]
    used = "SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts"
    [(before,)] = table.rows(used)
    assert table.rows("SELECT caught(1000)") == [(seen,)]
    [(after,)] = table.rows(used)
    assert after - before < 300_000


@pytest.mark.parametrize("depth", [1, 30])
def test_recursion(table, depth):
    """Each level of nesting adds its lines to the context once, and its cost does not depend on the number of levels."""
    table.execute("""
        CREATE FUNCTION deep(n int) RETURNS int LANGUAGE plpgsql AS $$
        BEGIN
            IF n = 0 THEN RETURN 1 / n; END IF;
            RETURN length(arrow_cache.query('SELECT deep(' || n - 1 || ')'));
        END $$
    """)
    told = diagnosis(table, "SELECT deep(%s)", [depth])
    assert told["sqlstate"] == "22012"
    lines = told["context"].split("\n")
    assert lines[0] == 'PL/pgSQL function deep(integer) line 3 at RETURN'
    assert [line for line in lines if line.startswith('SQL statement "')] == [f'SQL statement "SELECT deep({n})"' for n in range(depth)]
    assert sum(line.startswith("PL/pgSQL function deep(integer) ") for line in lines) == depth + 1


def test_recursion_without_end(table):
    """Nesting ends with the error of the server about the depth of the stack, after a short time."""
    table.execute("""
        CREATE FUNCTION endless() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN
            RETURN length(arrow_cache.query('SELECT endless()'));
        END $$
    """)
    started = time.monotonic()
    told = diagnosis(table, "SELECT endless()")
    assert told["sqlstate"] == "54001" and told["message_primary"] == "stack depth limit exceeded"
    assert time.monotonic() - started < 10
    assert table.rows("SELECT 1") == [(1,)]


def test_notices_have_their_context(table):
    """Notices of such a query have the same context as errors."""
    table.execute("CREATE FUNCTION chat() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'hello'; RETURN 1; END $$")
    heard = []
    table.add_notice_handler(lambda diag: heard.append((diag.message_primary, diag.context)))
    table.execute("SELECT arrow_cache.query('SELECT chat()')")
    table.execute("SELECT arrow_cache.fetch('SELECT chat()')")
    said = ("hello", 'PL/pgSQL function chat() line 1 at RAISE\nSQL statement "SELECT chat()"')
    assert heard == [said, said]


def test_own_errors_have_what_they_say(table):
    """Errors of the extension have a message and a hint; they have no detail, and only the context around the call."""
    for call, code in (("query('INSERT INTO t VALUES (1)')", "42601"), ("query('SELECT $1', VARIADIC ARRAY[]::int[])", "42P02"),
                       ("fetch('SELECT id FROM t', '{\"limit\": -1}')", "22023"), ("messages('SELECT 1; SELECT 2')", "42601"),
                       ("schema('SELECT id FROM t', '[]')", "22023"), ("fetch('SELECT id FROM t', '{\"columns\": [\"no\"]}')", "22023")):
        told = diagnosis(table, f"SELECT arrow_cache.{call}")
        assert told["sqlstate"] == code
        assert told["message_detail"] is None and told["context"] is None and told["message_hint"], call


def test_cancelled(table):
    table.execute("SET statement_timeout = '200ms'")
    query = "SELECT count(*) FROM generate_series(1, 1000000000)"
    expected = as_told_by_the_server(table, query)
    assert expected["sqlstate"] == "57014"
    for way in "query", "fetch", "messages":
        told = diagnosis(table, f"SELECT arrow_cache.{way}(%s)", [query])
        assert told["sqlstate"] == "57014" and told["context"] == expected["context"] == f'SQL statement "{query}"'
