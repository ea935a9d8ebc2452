"""What the server computes in advance of the body of a function in SQL that it does not put in the place of the call. PostgreSQL 18 keeps the plan of such a
body for the session, and with it what was computed under older settings."""

import psycopg
import pytest

# Arguments that are NULL must not reach a STRICT function, so that a body in which they may come to another value than NULL is not put in its place.
SETTINGS = "extra_float_digits = 1", "extra_float_digits = -12"
THIRD = "0.3333333333333333::float8"
BODIES = {
    "cast": ("text", f"coalesce(x::text, '') || ({THIRD})::text"),
    "call": ("text", f"coalesce(x::text, '') || textin(float8out({THIRD}))"),
    "array": ("text", f"coalesce(x::text, '') || (ARRAY[{THIRD}])::text"),
    "concatenation": ("text", f"coalesce(x::text, '') || quote_literal({THIRD})"),
    "branch": ("text", f"CASE WHEN x IS NULL THEN '' ELSE ({THIRD})::text END"),
    "bytes": ("text", "coalesce(x::text, '') || ('\\x41'::bytea)::text"),
    "age": ("text", "coalesce(x::text, '') || age('2024-03-31 12:00+00'::timestamptz, '2024-03-30 12:00+00'::timestamptz)::text"),
    "argument": ("text", "coalesce(x::text, '') || (x::float8 / 3)::text"),
    "nothing": ("int", "coalesce(x, 1) + 41 - 1"),
}
OF_BODY = {"bytes": ("bytea_output = hex", "bytea_output = escape"), "age": ("TimeZone = 'UTC'", "TimeZone = 'Europe/Berlin'")}


@pytest.mark.parametrize("volatility", ["IMMUTABLE", "STABLE"])
@pytest.mark.parametrize("name", BODIES)
def test_computed_under_older_settings(session, connect, name, volatility):
    result, body = BODIES[name]
    one, two = OF_BODY.get(name, SETTINGS)
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 2) g")
    session.execute(f"CREATE FUNCTION f(x int) RETURNS {result} LANGUAGE sql STRICT {volatility} RETURN {body}")
    query = "SELECT f(a) FROM t ORDER BY a"
    plain, cached = connect("-c pg_arrow_cache.enabled=off"), connect()
    # A kept plan of the query itself has answers of its own once settings have changed.
    plain.prepare_threshold = cached.prepare_threshold = 10**9
    fresh = {}
    for setting in one, two:
        begun = connect("-c pg_arrow_cache.enabled=off")
        begun.execute(f"SET {setting}")
        fresh[setting] = begun.rows(query)
    assert (fresh[one] == fresh[two]) == (name == "nothing")
    for setting in one, two, one, two:
        for asked in plain, cached:
            asked.execute(f"SET {setting}")
        # More executions than those that are planned for the values of the arguments.
        for _ in range(8):
            cached.uncached(query)
            expected = plain.rows(query)
        for _ in range(2):
            assert cached.rows(query) == expected
            # PostgreSQL 18 may keep what reads settings, whatever it is made of.
            is_kept = name != "nothing" and cached.info.server_version >= 180000
            assert cached.status() in ("MISS", "HIT") or is_kept or name not in ("argument", "nothing")
            begun = connect()
            begun.execute(f"SET {setting}")
            assert begun.rows(query) == fresh[setting]


def test_arguments_that_are_constants(session, connect):
    """What a function makes of its argument is computed in advance if another function calls it with a constant."""
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 2) g")
    session.execute("CREATE FUNCTION shown(x float8) RETURNS text LANGUAGE sql IMMUTABLE RETURN x::text; "
                    f"CREATE FUNCTION f(x int) RETURNS text LANGUAGE sql STRICT STABLE RETURN coalesce(x::text, '') || shown({THIRD})")
    queries = [f"SELECT f(a){more} FROM t ORDER BY a" for more in ("", ", shown(a)", ", shown(a / 3::float8)")] + ["SELECT shown(a), f(a) FROM t ORDER BY a"]
    kept, other = connect(), connect()
    kept.prepare_threshold = other.prepare_threshold = 10**9
    for query in queries:
        kept.execute("SET extra_float_digits = 1")
        for _ in range(8):
            kept.uncached(query)
        for asked in kept, other:
            asked.execute("SET extra_float_digits = -12")
        for _ in range(2):
            assert kept.rows(query) == kept.uncached(query)
            assert other.rows(query) == connect("-c pg_arrow_cache.enabled=off -c extra_float_digits=-12").rows(query)


INNER = {"in SQL": ("hidden(1)", "hidden(int)"), "built in": ("length(lower('ABC'))", "lower(text)")}


@pytest.mark.parametrize("name", INNER)
def test_planned_as_another_role(session, connect, name):
    """The planner asks whether the role may execute what it computes or puts in its place, and nobody asks when another role runs the kept plan."""
    call, function = INNER[name]
    session.execute("CREATE ROLE kept_out; CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 2) g; "
                    "CREATE FUNCTION hidden(x int) RETURNS int LANGUAGE sql IMMUTABLE RETURN x + 1; "
                    f"CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql STRICT STABLE RETURN coalesce(x, 1) + {call}; "
                    f"GRANT USAGE ON SCHEMA {connect.schema} TO kept_out; GRANT SELECT ON t TO kept_out; REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
    try:
        kept = connect()
        kept.prepare_threshold = 10**9
        query = "SELECT f(a) FROM t ORDER BY a"
        for _ in range(8):
            kept.uncached(query)
        kept.execute("SET ROLE kept_out")
        for _ in range(3):
            for run in kept.uncached, kept.rows:
                try:
                    run(query)
                except psycopg.errors.InsufficientPrivilege:
                    kept.execute("SET pg_arrow_cache.enabled = on")
        for enabled in "off", "on":
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connect(f"-c role=kept_out -c pg_arrow_cache.enabled={enabled}").rows(query)
    finally:
        session.execute(f"GRANT EXECUTE ON FUNCTION {function} TO PUBLIC; DROP OWNED BY kept_out; DROP ROLE kept_out")
