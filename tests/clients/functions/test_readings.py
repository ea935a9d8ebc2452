"""What the server reads from texts and from JSON, by input functions that it finds through types: arrays, and the columns of
jsonb_to_record."""

import random

import pytest

from support.agreement import agree

HIT, REFUSED = ("HIT", None), ("BYPASS", "stable_function")

MADE = """
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE DOMAIN small AS int CHECK (VALUE < 10);
    CREATE TYPE pair AS (a int, m mood);
    CREATE TYPE moment AS (a int, at timestamptz);
    CREATE TABLE t (id int PRIMARY KEY, j jsonb, x text, d text, f text);
    INSERT INTO t VALUES (1, '{"a": 1, "b": "x", "m": "ok", "d": "2024-03-02", "n": [1, 2], "p": {"a": 3, "m": "sad"}, "i": "1 day", "r": "[1,5)"}', '{1,2}', '01/02/2024', '1.5'),
                         (2, '{"a": 7, "m": null, "f": 0.1, "n": [], "p": "(4,ok)", "k": [{"a": 1}, {"a": 2}]}', '{5,3}', '03/04/2024', '2'),
                         (3, '{}', '{}', '2024-05-06', '0.1');
"""

SERVED = [
    "SELECT id, r.a, b, m, r.d, n, p, i::text, r.r, t.f FROM t, jsonb_to_record(j) AS r(a int, b text, m mood, d date, n int[], p text, i interval, r text, f float8) ORDER BY id",
    "SELECT id, r.* FROM t, json_to_record(j::json) AS r(a bigint, b varchar(3), n numeric(8,2)[], k json, p jsonb) ORDER BY id",
    "SELECT id, r.a FROM t, jsonb_to_recordset(j -> 'k') AS r(a smallint) WHERE id = 2",
    "SELECT * FROM json_to_recordset('[{\"a\": 1}, {\"a\": 2}]') AS r(a numeric(6,1)), t",
    "SELECT id, a, b FROM t, ROWS FROM (jsonb_to_recordset(j -> 'k') AS (a int), generate_series(1, 3)) AS r(a, b) WHERE id = 2",
    "SELECT id, x::int[], ('{NULL,' || id || '}')::text[], ('{' || f || '}')::float8[] FROM t ORDER BY id",
    "SELECT id, ('{sad,ok}' || left(x, 0))::mood[] FROM t ORDER BY id",
    "SELECT id, ('{' || d || ',today}')::date[] FROM t ORDER BY id",
]


@pytest.fixture
def made(session, other):
    session.prepare_threshold = other.prepare_threshold = None
    session.execute(MADE)
    return session


@pytest.mark.parametrize("query", SERVED)
def test_served(made, other, query):
    assert agree(made, query) == HIT
    assert agree(other, query) == HIT


@pytest.mark.parametrize("query", SERVED)
def test_under_other_settings(made, query):
    """A session with other settings has other values of the same texts; one with the first settings has the first again."""
    for setting in ("DateStyle = 'ISO, DMY'", "DateStyle = 'ISO, MDY'", "IntervalStyle = 'iso_8601'", "extra_float_digits = -15",
                    "array_nulls = off", "TimeZone = 'Pacific/Kiritimati'", "lc_numeric = 'C'", "DateStyle = 'ISO, MDY'"):
        made.execute(f"SET {setting}")
        assert agree(made, query) == HIT, setting


def test_the_order_of_days_and_months(made):
    query = "SELECT id, ('{' || d || '}')::date[] FROM t WHERE id = 1"
    made.execute("SET DateStyle = 'ISO, MDY'")
    american = made.rows(query)
    made.execute("SET DateStyle = 'ISO, DMY'")
    assert made.rows(query) != american and agree(made, query) == HIT


def test_as_other_roles(made, connect):
    made.execute(f"""
        DROP ROLE IF EXISTS readings_reader; CREATE ROLE readings_reader;
        GRANT USAGE ON SCHEMA {connect.schema} TO readings_reader; GRANT SELECT ON t TO readings_reader;
        ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id < 3)""")
    for query in SERVED:
        assert agree(made, query) == HIT
        made.execute("SET ROLE readings_reader")
        assert agree(made, query) == HIT
        made.execute("RESET ROLE")
        assert agree(made, query) == HIT
    made.execute("DROP OWNED BY readings_reader; DROP ROLE readings_reader")


REFUSALS = {
    "SELECT x::timestamp FROM t WHERE false": REFUSED,
    "SELECT ('{' || d || '}')::timestamptz[] FROM t": REFUSED,
    "SELECT ('[,' || d || ']')::tsrange FROM t": REFUSED,
    "SELECT r.* FROM t, jsonb_to_record(j) AS r(a int, at timestamptz)": REFUSED,
    "SELECT r.* FROM t, jsonb_to_record(j) AS r(a int, at time[])": REFUSED,
    "SELECT (jsonb_populate_record(NULL::pair, j)).* FROM t": REFUSED,
    "SELECT r FROM t, jsonb_populate_recordset(NULL::pair, j -> 'k') r": REFUSED,
    "SELECT ('[0,' || f || ']')::numrange FROM t": REFUSED,
    "SELECT ('{[1,' || id || ']}')::int4multirange FROM t": REFUSED,
    "SELECT ('(' || id || ',ok)')::pair FROM t": REFUSED,
    "SELECT r.* FROM t, jsonb_to_record(j) AS r(p pair)": REFUSED,
    "SELECT r.* FROM t, jsonb_to_record(j) AS r(r int4range)": REFUSED,
    "SELECT ('(1,' || id || ')')::moment FROM t WHERE false": REFUSED,
    "SELECT r.* FROM t, jsonb_to_record(j) AS r(a small)": ("BYPASS", "domain_constraint"),
    "SELECT ('{' || id || '}')::small[] FROM t": ("BYPASS", "domain_constraint"),
    "SELECT r.* FROM t, jsonb_to_record(j) AS r(a regclass)": REFUSED,
    "SELECT ('{' || id || '}')::regclass[] FROM t": REFUSED,
    "SELECT r.a FROM t, jsonb_populate_record(NULL::record, j) AS r(a int)": REFUSED,
}


@pytest.mark.parametrize("query", REFUSALS)
def test_refused(made, query):
    assert agree(made, query) == REFUSALS[query]


def test_a_function_of_a_user_in_an_input(made):
    """A range whose bounds are normalized by a function of a user, and a type that a user has made of the server's own functions."""
    made.execute("CREATE TYPE whole; CREATE TYPE whole AS RANGE (subtype = int, subtype_diff = int4range_subdiff)")
    assert agree(made, "SELECT ('[1,' || (id + 1) || ']')::whole::text FROM t ORDER BY id")[0] == "BYPASS"


def test_random_columns(made):
    """Columns of random types over random values: a hit, or the same error as without the cache."""
    rng = random.Random(5)
    values = ["1", "\"x\"", "null", "[1,2]", "{\"a\":1}", "\"2024-01-05\"", "1.25", "true", "\"today\"", "\"{1,2}\"", "\"(1,ok)\""]
    types = ["int", "text", "numeric(4,1)", "date", "date[]", "int[]", "jsonb", "json", "bool", "pair", "mood", "uuid", "bytea", "daterange"]
    hits = 0
    for _ in range(150):
        columns = [f"{name} {rng.choice(types)}" for name in "abc"[:rng.randint(1, 3)]]
        document = ", ".join(f"\"{name}\": {rng.choice(values)}" for name in "abc")
        query = f"SELECT r.*, id FROM t, jsonb_to_record('{{{document}}}') AS r({', '.join(columns)}) WHERE id < {rng.randint(2, 9)} ORDER BY id"
        try:
            expected = made.uncached(query)
        except Exception as error:
            with pytest.raises(type(error)):
                made.rows(query)
            continue
        assert made.rows(query) == expected == made.rows(query)
        hits += made.status() == "HIT"
    assert hits > 20
