"""Random functions in SQL, replaced, shadowed, altered and dropped at random under random paths, roles and settings: each answer is the one
without the cache."""

import os
import random

import psycopg

from support.sweeps import rounds, sweep
from support.text_bodies import analysed_anew  # noqa: F401  (used by pytest)

SEED = int(os.environ.get("RANDOM_SEED", random.randrange(2**32)))
ROUNDS = rounds(100, 250)

SCALARS = ["$1", "$1 + {n}", "$1 * {n} - $1", "coalesce($1, {n})", "CASE WHEN $1 > {n} THEN {n} ELSE $1 END", "f{m}($1)", "f{m}($1 + {n})",
           "abs($1) % 7", "length($1::text)", "coalesce(nullif(current_setting('app.x', true), '')::int, $1)", "greatest($1, {n}, f{m}($1))",
           "round($1 / 3.0)::int", "length(to_char(date '2020-03-04' + $1, 'FMMonth'))", "('03/04/2020'::date - '01/01/2020'::date) + $1",
           "length(current_user::text) + $1", "(SELECT $1)", "(SELECT min(a) FROM t)", "array_length(ARRAY[$1, {n}], 1)", "$1::colour_number",
           "g{m}($1)", "g{m}(f{m}($1))", "round($1::numeric, {n} % 3)", "$1::numeric(6, 1)", "CASE $1 WHEN {n} THEN f{m}($1) ELSE g{m}($1) END",
           "f{m}(CASE $1 WHEN {n} THEN 1 ELSE $1 END)", "$1 + $1 + f{m}(g{m}($1))"]
SETS = ["a + $1 FROM t WHERE a > {n}", "generate_series(1, $1 % 4)", "f{m}(a) FROM t WHERE a <= $1", "x FROM h{m}($1) x WHERE x > {n}", "$1",
        "x + y FROM h{m}($1) x, t z (y)", "h{m}($1 - 1)", "a FROM t UNION SELECT $1", "max(a) FROM t", "a FROM t ORDER BY a LIMIT {n}"]
LANGUAGES = ["STABLE", "IMMUTABLE", "STABLE STRICT", "IMMUTABLE STRICT", "STABLE", "VOLATILE", "STABLE SECURITY DEFINER"]


def body(rng):
    return rng.choice(SCALARS).format(n=rng.randint(0, 9), m=rng.randint(0, 3))


def function(rng, schemas):
    name = f"{rng.choice(schemas)}.{rng.choice('ffg')}{rng.randint(0, 3)}"
    kind = rng.choice(["int", "int", "int", "numeric", "bigint"])
    if rng.random() < 0.25:
        made = rng.choice(SETS).format(n=rng.randint(0, 9), m=rng.randint(0, 3))
        returns = rng.choice(["SETOF int", "SETOF int", "TABLE (v int)", "SETOF bigint", "int"])
        return (f"CREATE OR REPLACE FUNCTION {rng.choice(schemas)}.h{rng.randint(0, 3)}(int) RETURNS {returns} LANGUAGE sql {rng.choice(LANGUAGES)} "
                f"AS $f$ SELECT {made} $f$")
    if rng.random() < 0.15:
        return f"CREATE OR REPLACE FUNCTION {name}({kind}) RETURNS int LANGUAGE sql {rng.choice(LANGUAGES)} RETURN {rng.randint(0, 99)} + $1::int"
    return f"CREATE OR REPLACE FUNCTION {name}({kind}) RETURNS int LANGUAGE sql {rng.choice(LANGUAGES)} AS $f$ SELECT {body(rng)} $f$"


def change(rng, schemas):
    one, number = rng.choice(schemas), rng.randint(0, 3)
    return rng.choice((
        function, function, function,
        lambda *_: f"DROP FUNCTION IF EXISTS {one}.f{number}(int)",
        lambda *_: f"DROP FUNCTION IF EXISTS {one}.g{number}(int) CASCADE",
        lambda *_: f"DROP FUNCTION IF EXISTS {one}.h{number}(int)",
        lambda *_: f"ALTER FUNCTION {one}.h{number}(int) {rng.choice(('STABLE', 'IMMUTABLE', 'VOLATILE', 'STRICT', 'CALLED ON NULL INPUT'))}",
        lambda *_: f"ALTER FUNCTION {one}.f{number}(int) {rng.choice(('STABLE', 'IMMUTABLE', 'VOLATILE', 'STRICT', 'CALLED ON NULL INPUT'))}",
        lambda *_: f"ALTER FUNCTION {one}.f{number}(int) {rng.choice(('RESET ALL', f'SET search_path = {one}'))}",
        lambda *_: f"ALTER SCHEMA {one} RENAME TO {one}_x; ALTER SCHEMA {one}_x RENAME TO {one}",
        lambda *_: f"REVOKE USAGE ON SCHEMA {one} FROM PUBLIC",
        lambda *_: f"GRANT USAGE ON SCHEMA {one} TO PUBLIC",
        lambda *_: f"CREATE DOMAIN {one}.colour_number AS {rng.choice(('int', 'bigint', 'smallint'))}",
        lambda *_: f"DROP DOMAIN IF EXISTS {one}.colour_number",
        lambda *_: f"CREATE FUNCTION {one}.abs(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT {number}'",
        lambda *_: f"DROP FUNCTION IF EXISTS {one}.abs(int)",
        lambda *_: "UPDATE t SET a = a + 1 WHERE a % 2 = 0",
    ))(rng, schemas)


def outcome(session, query, prepare):
    try:
        return session.rows(query, prepare=prepare)
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary


def attempt(session, text):
    try:
        session.execute(text)
    except psycopg.Error:
        pass


@sweep
def test_random_sql_functions(session, other, connect):
    rng = random.Random(SEED)
    print(f"RANDOM_SEED={SEED}")
    schema = connect.schema
    schemas = [schema, f"{schema}_a", f"{schema}_b"]
    for one in (session, other):
        one.prepare_threshold = 10**9
    session.execute(f"CREATE SCHEMA {schemas[1]}; CREATE SCHEMA {schemas[2]}; GRANT ALL ON SCHEMA {schema}, {schemas[1]}, {schemas[2]} TO PUBLIC; "
                    "CREATE TABLE t AS SELECT g AS a FROM generate_series(-2, 6) g; GRANT SELECT ON t TO PUBLIC; CREATE ROLE random_sql_user; "
                    "SET plan_cache_mode = force_generic_plan")
    hits = 0
    try:
        other.execute(f"SET search_path = {schema}")
        for number in range(4):
            for letter in "fg":
                other.execute(f"CREATE FUNCTION {letter}{number}(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT $1 + {number}'")
            other.execute(f"CREATE FUNCTION h{number}(int) RETURNS SETOF int LANGUAGE sql STABLE AS 'SELECT a + $1 FROM t WHERE a > {number}'")
        for place in range(ROUNDS):
            rng.choice((lambda: attempt(other, change(rng, schemas)),
                        lambda: attempt(other, change(rng, schemas)),
                        lambda: session.execute(f"SET search_path = {', '.join(rng.sample(schemas, rng.randint(1, 3)))}"),
                        lambda: session.execute(f"SET app.x = '{rng.choice(('', '1', '2'))}'"),
                        lambda: session.execute(f"SET DateStyle = '{rng.choice(('ISO, MDY', 'ISO, DMY'))}'"),
                        lambda: session.execute(rng.choice(("RESET ROLE", "SET ROLE random_sql_user"))),
                        lambda: attempt(session, f"CREATE DOMAIN pg_temp.colour_number AS {rng.choice(('int', 'smallint'))}"),
                        lambda: attempt(session, "DROP DOMAIN IF EXISTS pg_temp.colour_number"),
                        ))()
            name = f"{rng.choice('fg')}{rng.randint(0, 3)}"
            call = rng.choice((f"{name}(a)", f"{schemas[0]}.{name}(a)", f"{name}(3)", f"CASE WHEN a > 100 THEN {name}(a) ELSE 0 END",
                               f"CASE a WHEN {name}(a) THEN 1 ELSE {name}(a + 1) END", f"{name}(nullif(a, 2))", f"{name}(f1(a))"))
            rows = f"h{rng.randint(0, 3)}({rng.choice(('a', '3'))}) x"
            query = rng.choice((f"SELECT {call} FROM {schema}.t", f"SELECT a FROM {schema}.t WHERE {call} > 2",
                                f"SELECT {call}, count(*) FROM {schema}.t GROUP BY {call} ORDER BY 1",
                                f"SELECT a, x FROM {schema}.t, {rows} ORDER BY a, x", f"SELECT a FROM {schema}.t WHERE a IN (SELECT * FROM {rows})"))
            prepare = rng.random() < 0.5
            if prepare:
                # PostgreSQL itself does not notice each change that a kept plan has taken something from. The cache has it made anew.
                outcome(session, query, prepare)
            for _ in range(2):
                session.execute("SET pg_arrow_cache.enabled = on")
                found = outcome(session, query, prepare)
                status = session.rows("SELECT arrow_cache.last_status()")[0][0]
                hits += status == "HIT"
                session.execute("SET pg_arrow_cache.enabled = off")
                # What the cache leaves alone is executed by the plan that PostgreSQL has kept.
                assert found == outcome(session, query, prepare and status == "BYPASS"), (place, query)
                session.execute("SET pg_arrow_cache.enabled = on")
    finally:
        session.execute(f"RESET ROLE; DROP SCHEMA {schemas[1]} CASCADE; DROP SCHEMA {schemas[2]} CASCADE; DROP OWNED BY random_sql_user; "
                        "DROP ROLE random_sql_user")
    assert hits > ROUNDS / 20
