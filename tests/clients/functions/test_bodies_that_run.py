"""Functions in SQL that PostgreSQL runs, since it would not inline them: they are cached in every kind of statement, and nobody gets what the body meant under
another path, another definition, other settings or other rights. Each answer is compared with that of the same statement without the cache."""

import random

import psycopg
import pytest

from support.agreement import agree
from support.sweeps import rounds
from support.text_bodies import analysed_anew  # noqa: F401  (used by pytest)
from support.wire import data_rows

CONVERT = """
    CREATE TABLE drives AS SELECT g AS id, g % 3 AS car, g * 1.5 AS km FROM generate_series(1, 30) g;
    CREATE FUNCTION convert_km(n numeric, unit text) RETURNS numeric LANGUAGE sql IMMUTABLE RETURNS NULL ON NULL INPUT AS
        $$ SELECT CASE WHEN unit = 'km' THEN n WHEN unit = 'mi' THEN n / 1.60934 END $$;
    CREATE FUNCTION scale() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 10';
    CREATE FUNCTION scaled(x int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT coalesce(x, 0) * scale()';
"""


@pytest.fixture
def made(session):
    session.prepare_threshold = 10**9
    session.execute(CONVERT)
    return session


BOARDS = [
    "SELECT car, convert_km(sum(km), 'mi') FROM drives GROUP BY car ORDER BY car",
    "SELECT id, convert_km(km, 'km') + convert_km(NULL, 'mi') FROM drives WHERE convert_km(km, 'mi') > 5 ORDER BY id",
    "SELECT car, convert_km(car, 'mi'), convert_km(sum(km), 'mi') FROM drives GROUP BY GROUPING SETS ((car), (convert_km(car, 'mi')), ()) ORDER BY 1, 2, 3",
    "SELECT convert_km(avg(km), unit) FROM drives, (VALUES ('km'), ('mi'), ('no')) u (unit) GROUP BY unit ORDER BY unit",
]


@pytest.mark.parametrize("query", BOARDS)
def test_every_kind_of_statement(made, wire, query):
    for prepare in (False, True):
        assert agree(made, query, prepare=prepare) == ("HIT", None)
    client = wire()
    expected = data_rows(client.query(f"SET pg_arrow_cache.enabled = off; {query}; SET pg_arrow_cache.enabled = on"))
    for _ in range(3):
        client.parse(query).bind().execute()
        assert data_rows(client.sync()) == expected
    assert b"HIT" in str(client.query("SELECT arrow_cache.last_status()")).encode()
    with made.transaction():
        made.execute("SET TRANSACTION READ ONLY")
        made.execute(f"DECLARE c CURSOR FOR {query}")
        assert made.rows("FETCH 1 FROM c") + made.rows("FETCH ALL FROM c") == made.uncached(query)


def test_bound_values(made):
    query = "SELECT id, convert_km(km, %s) FROM drives WHERE id < %s ORDER BY id"
    for unit in ("km", "mi", None, "mi"):
        for prepare in (False, True):
            found = [made.execute(query, (unit, 9), prepare=prepare).fetchall() for _ in range(3)]
            assert made.outcome() == ("HIT", None)
            made.execute("SET pg_arrow_cache.enabled = off")
            assert found == [made.execute(query, (unit, 9), prepare=prepare).fetchall()] * 3
            made.execute("SET pg_arrow_cache.enabled = on")


def test_what_a_kept_plan_has_computed(made, connect):
    """A plan keeps what an IMMUTABLE function of constants gave, whatever its body calls since. PostgreSQL answers with it; nobody else gets that."""
    query = "SELECT id FROM drives WHERE id = scaled(1) ORDER BY id"
    made.execute(f"SET plan_cache_mode = force_generic_plan; PREPARE q AS {query}")
    for _ in range(2):
        assert made.rows("EXECUTE q") == [(10,)]
    assert made.status() == "HIT"
    fresh = connect()
    fresh.prepare_threshold = made.prepare_threshold
    for number in (20, 10, 30):
        fresh.execute(f"CREATE OR REPLACE FUNCTION scale() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT {number}'")
        made.rows("EXECUTE q")
        assert (made.status(), made.reason()) == ("BYPASS", "old_plan")
        for _ in range(3):
            assert fresh.rows(query) == fresh.uncached(query) == made.rows("EXECUTE q") == [(number,)]
        assert made.status() == "HIT"


def test_a_kept_plan_under_other_settings(made, connect):
    """An IMMUTABLE function may read settings, by which its value was computed."""
    made.execute("CREATE FUNCTION shown(x date) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT coalesce(x::text, '') $$")
    query = "SELECT id, shown('2020-03-04') FROM drives WHERE id < 3 ORDER BY id"
    made.execute(f"SET plan_cache_mode = force_generic_plan; SET DateStyle = 'ISO'; PREPARE q AS {query}")
    for _ in range(2):
        made.rows("EXECUTE q")
    assert made.status() == "HIT"
    made.execute("SET DateStyle = 'SQL, DMY'")
    other = connect("-c DateStyle=SQL,DMY")
    for _ in range(3):
        assert made.rows("EXECUTE q") == made.uncached("EXECUTE q")
        assert other.rows(query) == other.uncached(query) == [(1, "04/03/2020"), (2, "04/03/2020")]


def test_temporary_objects_after_planning(made, other):
    """A type of pg_temp that comes between the planning and a run of a kept plan gives a text another meaning."""
    made.execute("CREATE TYPE number AS ENUM ('1', '2'); CREATE FUNCTION labels(x int) RETURNS text LANGUAGE sql STABLE STRICT AS "
                 "'SELECT coalesce(x::text, '''') || enum_range(NULL::number)::text'")
    query = "SELECT id, labels(id) FROM drives WHERE id < 3 ORDER BY id"
    for prepare in (False, True):
        assert agree(made, query, prepare=prepare) == ("HIT", None)
        before = made.rows(query, prepare=prepare)
        made.execute("CREATE TYPE pg_temp.number AS ENUM ('one')")
        for _ in range(3):
            assert made.rows(query, prepare=prepare) == made.uncached(query) != before
            assert other.rows(query) == before
        made.execute("DROP TYPE pg_temp.number")
        assert agree(made, query, prepare=prepare) == ("HIT", None)


@pytest.fixture
def role(made, connect):
    name = f"{connect.schema}_asker"
    made.execute(f"CREATE ROLE {name}; GRANT USAGE ON SCHEMA {connect.schema} TO {name}; GRANT SELECT ON drives TO {name}")
    yield name
    made.execute(f"RESET ROLE; GRANT EXECUTE ON FUNCTION abs(int) TO PUBLIC; DROP OWNED BY {name}; DROP ROLE {name}")


INNER = {"of the function itself": "outer_one(int)", "of one in SQL that its body calls": "inner_one(int)", "of a built-in that its body calls": "abs(int)"}


@pytest.mark.parametrize("name", INNER)
@pytest.mark.parametrize("prepare", [False, True])
def test_rights(made, connect, role, name, prepare):
    """Who lacks the right to execute something of it gets the error, whoever has asked before, and however he came to be that role."""
    made.execute("CREATE FUNCTION inner_one(x int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(abs(x), 0)'; "
                 "CREATE FUNCTION outer_one(x int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(inner_one(x), 1)'")
    query = "SELECT outer_one(id) FROM drives ORDER BY id"
    client = connect(f"-c role={role}")
    client.prepare_threshold = made.prepare_threshold
    for session in (made, client):
        assert agree(session, query, prepare=prepare) == ("HIT", None)
    made.execute(f"REVOKE EXECUTE ON FUNCTION {INNER[name]} FROM PUBLIC")
    assert agree(made, query, prepare=prepare) == ("HIT", None)
    made.execute(f"SET ROLE {role}")
    for session in (client, made):
        for _ in range(3):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(query, prepare=prepare)
    made.execute("RESET ROLE")
    assert agree(made, query, prepare=prepare) == ("HIT", None)
    made.execute(f"GRANT EXECUTE ON FUNCTION {INNER[name]} TO PUBLIC")
    for session in (client, made):
        assert agree(session, query, prepare=prepare) == ("HIT", None)


def test_broken_bodies(made):
    """A body that means nothing any more is the business of who calls it, and of no other statement of the transaction."""
    query = "SELECT CASE WHEN false THEN scaled(id) ELSE id END FROM drives ORDER BY id"
    assert agree(made, query) == ("HIT", None)
    made.execute("DROP FUNCTION scale()")
    with made.transaction():
        assert agree(made, query) == ("BYPASS", "user_defined_function")
        assert made.rows("SELECT count(*) FROM drives") == [(30,)]
    made.execute("CREATE FUNCTION scale() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 3'")
    assert agree(made, query) == ("HIT", None)


PARTS = ["x", "coalesce(x, {n})", "CASE WHEN x > {n} THEN x / {n} ELSE -x END", "CASE x WHEN {n} THEN NULL ELSE x END", "greatest(x, {n}) + x",
         "round(x, {n})", "nullif(x, {n})", "f{m}(x)", "f{m}(coalesce(x, f{m}({n})))", "length(x::text)"]
CALLS = ["f{m}(km)", "f{m}({n})", "f{m}(nullif(id, {n}))", "f{m}(f{m}(km))", "f{m}((SELECT max(km) FROM drives))", "CASE WHEN id > {n} THEN f{m}(id) END"]
QUERIES = ["SELECT id, {call} FROM drives ORDER BY id", "SELECT id FROM drives WHERE {call} > {n} ORDER BY id",
           "SELECT {call}, count(*) FROM drives GROUP BY {call}, car ORDER BY 1, 2", "SELECT sum({call}), max(f{m}(id)) FROM drives",
           "SELECT car, f{m}(car), count(*) FROM drives GROUP BY ROLLUP (car, f{m}(car)) ORDER BY 1, 2, 3"]


def test_random_statements(made):
    """Rows, or the error, are those without the cache."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)

    def filled(texts, **more):
        return rng.choice(texts).format(n=rng.randint(1, 5), m=rng.randint(0, 3), **more)

    def found(query, prepare):
        try:
            return made.rows(query, prepare=prepare)
        except psycopg.Error as error:
            made.execute("SET pg_arrow_cache.enabled = on")
            return error.sqlstate, error.diag.message_primary

    def without(query):
        made.execute("SET pg_arrow_cache.enabled = off")
        answer = found(query, False)
        made.execute("SET pg_arrow_cache.enabled = on")
        return answer

    for number in range(4):
        made.execute(f"CREATE FUNCTION f{number}(x numeric) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS 'SELECT x + {number}'")
    hits = 0
    for place in range(rounds(150, 500)):
        if rng.random() < 0.3:
            # A body calls only functions of smaller numbers, and f0 none.
            number = rng.randint(1, 3)
            part = rng.choice(PARTS).format(n=rng.randint(1, 5), m=rng.randint(0, number - 1))
            made.execute(f"CREATE OR REPLACE FUNCTION f{number}(x numeric) RETURNS numeric LANGUAGE sql {rng.choice(['IMMUTABLE', 'STABLE', 'VOLATILE'])} "
                         f"{rng.choice(['STRICT', ''])} AS $$ SELECT ({part})::numeric $$")
        query = filled(QUERIES, call=filled(CALLS))
        prepare = rng.random() < 0.5
        if prepare:
            found(query, prepare)
        for _ in range(2):
            assert found(query, prepare) == without(query), (place, query)
        found(query, prepare)
        hits += made.rows("SELECT arrow_cache.last_status()") == [("HIT",)]
    assert hits > rounds(150, 500) / 2


@pytest.mark.parametrize("literal", [
    "timestamptz 'now'", "time 'now'", "date 'today'", "('{now}'::timestamp[])[1]", "lower('[now,2100-01-01)'::tsrange)", "'drives'::regclass", "interval '1 hour'",
])
@pytest.mark.parametrize("prepare", [False, True])
def test_a_literal_that_the_server_reads_anew(made, literal, prepare):
    """In a text it means what it means when the body runs; in a tree what it meant when the function was made."""
    made.execute(f"CREATE FUNCTION told(x int) RETURNS text LANGUAGE sql STABLE STRICT AS $$ SELECT coalesce(x, 0) || ' ' || {literal} $$; "
                 f"CREATE FUNCTION kept(x int) RETURNS timestamptz LANGUAGE sql STABLE STRICT RETURN CASE WHEN x IS NULL THEN NULL ELSE timestamptz 'now' END")
    for _ in range(2):
        made.execute("SELECT told(id) FROM drives", prepare=prepare)
        last = made.execute("SELECT arrow_cache.last_status(), arrow_cache.last_reason()").fetchone()
        assert last == ("BYPASS", "user_defined_function")
    assert agree(made, "SELECT kept(id), convert_km(km, 'mi') FROM drives ORDER BY 1, 2", prepare=prepare) == ("HIT", None)


def test_a_temporary_table_takes_with_it_what_rests_on_it(session):
    """ON COMMIT DROP is done after PRE_COMMIT, and cascades: to a view, to a function over its rows, to a column that is computed by that."""
    session.execute("CREATE VIEW v AS SELECT 1 AS id, 2 AS x; "
                    "CREATE FUNCTION key(int) RETURNS int LANGUAGE sql IMMUTABLE RETURN $1 + CASE WHEN (NULL::v) IS NULL THEN 0 ELSE 1 END; "
                    "CREATE TABLE q (id int, c int GENERATED ALWAYS AS (key(id)) STORED); INSERT INTO q VALUES (1), (2)")
    query = "SELECT q::text FROM q ORDER BY id"
    assert agree(session, query) == ("HIT", None)
    assert session.execute(query).fetchall() == [("(1,1)",), ("(2,2)",)]
    session.execute("BEGIN; CREATE TEMP TABLE gone (a int) ON COMMIT DROP; CREATE OR REPLACE VIEW v AS SELECT 1 AS id, 2 AS x, NULL::gone AS y; COMMIT")
    assert session.execute(query).fetchall() == [("(1)",), ("(2)",)]
    assert agree(session, query) == ("HIT", None)
