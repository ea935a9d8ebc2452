"""Queries that may fail, over partitions some of which the time leaves out when the plan starts: at each moment, the cache gives the answer that executing gives
at the same moment. Where executing fails for a row that the window rejects, the cache may have the answer of a plan that did not look at it.

The random test prints its seed; RANDOM_SEED=seed repeats it, and RANDOM_ROUNDS=number sets how many questions it asks."""

import collections
import os
import random

import psycopg
import pytest
from support.sweeps import rounds, sweep
from support.windows import after, sessions

SEED = int(os.environ.get("RANDOM_SEED") or random.SystemRandom().randrange(2**32))
WINDOWS = rounds(80, 120)

# Rows of the first minutes have values that other columns cannot be computed from.
SCHEMA = """
    SET TimeZone = UTC;
    DROP TABLE IF EXISTS log, names CASCADE;
    CREATE TABLE log (id int, at timestamptz NOT NULL, n int, t text, d jsonb) PARTITION BY RANGE (at);
    CREATE TABLE log_early PARTITION OF log FOR VALUES FROM (MINVALUE) TO ('2026-03-10 11:58:30+00');
    CREATE TABLE log_next (t text, d jsonb, gone int, n int, id int, at timestamptz NOT NULL);
    ALTER TABLE log_next DROP gone;
    ALTER TABLE log ATTACH PARTITION log_next FOR VALUES FROM ('2026-03-10 11:58:30+00') TO ('2026-03-10 11:59:00+00');
    CREATE TABLE log_late PARTITION OF log FOR VALUES FROM ('2026-03-10 11:59:00+00') TO (MAXVALUE) PARTITION BY LIST (n);
    CREATE TABLE log_late_0 PARTITION OF log_late FOR VALUES IN (0, 1);
    CREATE TABLE log_late_rest PARTITION OF log_late DEFAULT;
    CREATE INDEX ON log (at);
    CREATE INDEX ON log_next (n);
    INSERT INTO log SELECT g, timestamptz '2026-03-10 11:58:00' + g * interval '5 seconds', CASE g % 5 WHEN 0 THEN 0 ELSE 1 + g / 10 END,
        CASE WHEN g < 12 AND g % 3 = 0 THEN 'word' ELSE g::text END,
        jsonb_build_object('n', CASE WHEN g < 8 THEN to_jsonb('x'::text) ELSE to_jsonb(g) END) FROM generate_series(1, 40) g;
    CREATE TABLE names (n int, name text);
    INSERT INTO names SELECT g, 'name ' || g FROM generate_series(0, 9) g;
    ANALYZE log, names;
"""

# Conditions that may fail for a row which the window rejects.
FAILING = ("10 / l.n > 0", "l.t::int > 3", "(l.d->'n')::int > 2", "sqrt(l.n - 1) >= 0", "l.n IN (SELECT 5 / (n - 3) FROM names)",
           "l.n < (SELECT 5 / (n - 3) FROM names WHERE n = 3)")
SAFE = ("l.n > 0", "l.n IN (0, 1, 2)", "l.t > '1'", "l.id <> 7", "(l.n IS NULL OR l.n < 6)")
COLUMNS = ("count(*)", "sum(10 / l.n)", "max(l.t::int)", "sum((l.d->'n')::int)", "string_agg(l.t, ',' ORDER BY l.id)", "sum(l.id)")


def window(rng):
    seconds = rng.choice((0, 10, 30, 45, 60, 90))
    moment = rng.choice((
        f"now() - interval '{seconds} seconds'", f"now() - {seconds} * interval '1 second'", "localtimestamp", f"now() - interval '{seconds // 2} seconds' * 2"))
    return rng.choice((f"l.at > {moment}", f"l.at >= {moment}", f"l.at < {moment}", f"l.at BETWEEN {moment} AND now()"))


def question(rng):
    """A question, and whether rejecting a row may fail."""
    fails = rng.random() < 0.4
    conditions = [window(rng), rng.choice(FAILING if fails else SAFE)]
    rng.shuffle(conditions)
    where = " AND ".join(conditions)
    columns = rng.choice(COLUMNS)
    return rng.choice((
        f"SELECT {columns} FROM log l WHERE {where}",
        f"SELECT {columns} FROM (SELECT * FROM log l WHERE {where}) l",
        f"SELECT name, {columns} FROM names JOIN log l USING (n) WHERE {where} GROUP BY name ORDER BY name",
        f"SELECT l.n, {columns} FROM log l WHERE {where} GROUP BY l.n ORDER BY l.n",
        f"SELECT l.id, l.t FROM log l WHERE {where} ORDER BY l.at, l.id LIMIT 5",
        f"SELECT name, (SELECT {columns} FROM log l WHERE l.n = names.n AND {where}) FROM names ORDER BY name",
    )), fails


def outcome(session, text):
    try:
        return session.rows(text, prepare=False)
    except psycopg.Error as error:
        return error.sqlstate


@sweep
@pytest.mark.parametrize("mode", ("force_custom_plan", "force_generic_plan"))
@pytest.mark.parametrize("scan", ("", " -c enable_seqscan=off", " -c enable_seqscan=off -c enable_indexscan=off"))
def test_answers_are_those_of_executing(server, at, mode, scan):
    print(f"RANDOM_SEED={SEED}")
    rng = random.Random(f"{SEED} {mode} {scan}")
    server.set(after(0))
    server.psql(SCHEMA)
    cached, plain = sessions(at, f"-c plan_cache_mode={mode} -c jit=off{scan}")
    errors, seen = 0, collections.Counter()
    for number in range(WINDOWS):
        text, fails = question(rng)
        asked = "EXECUTE q" if mode == "force_generic_plan" else text
        for session in (cached, plain):
            session.execute(f"PREPARE q AS {text}")
        # Rows leave every five seconds.
        for second in (5 * five + more for five in rng.sample(range(-12, 24), 3) for more in (0, 1, 4)):
            server.set(after(second))
            expected, given = outcome(plain, asked), outcome(cached, asked)
            if isinstance(expected, str):
                errors += 1
                assert given == expected or cached.status() == "HIT", (SEED, number, second, asked, text)
            else:
                assert given == expected, (SEED, number, second, asked, text)
                seen[fails, cached.status()] += 1
        for session in (cached, plain):
            session.execute("DEALLOCATE q")
    print(errors, seen)
    for fails in False, True:
        # Which statements are not worth a look-up is a matter of time.
        assert seen[fails, "BYPASS"] < 2 * seen[fails, "HIT"], seen
    assert errors > WINDOWS / 3 and seen[False, "HIT"] > WINDOWS, (errors, seen)


def test_rights_to_execute_where_partitions_are_left_out(server, at):
    """The server asks for the right to execute a function when it starts to scan a partition, not if it leaves it out."""
    server.set(after(0))
    server.psql("""SET TimeZone = UTC; DROP TABLE IF EXISTS p CASCADE; DROP ROLE IF EXISTS windows_reader; DROP FUNCTION IF EXISTS half(int);
        CREATE TABLE p (id int, at timestamptz, n int) PARTITION BY RANGE (at);
        CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO ('2026-03-10 12:00+00');
        CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM ('2026-03-10 12:00+00') TO ('2026-03-10 12:01+00');
        CREATE INDEX ON p (at);
        INSERT INTO p VALUES (1, '2026-03-10 11:50+00', 0);
        CREATE FUNCTION half(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 / 2';
        REVOKE EXECUTE ON FUNCTION half(int) FROM PUBLIC;
        CREATE ROLE windows_reader LOGIN; GRANT SELECT ON p TO windows_reader""")
    window = "at > now() - interval '10 seconds'"
    reader = at("-c TimeZone=UTC", user="windows_reader")
    why = "SELECT reason, detail FROM arrow_cache.why(%s)"
    question = f"SELECT id, half(n) FROM p WHERE {window}"
    server.set(after(100))
    for _ in range(3):
        assert reader.rows(question, prepare=False) == []
    (reason, detail), = reader.rows(why, [question])
    assert reason == "moving_clock" and "may call functions for their rows" in detail, detail
    server.set(after(50))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.rows(question, prepare=False)
    server.psql("GRANT EXECUTE ON FUNCTION half(int) TO PUBLIC")
    # A function in SQL that the role may execute is what it consists of.
    assert reader.rows(why, [f"SELECT id, half(n) FROM p WHERE {window}"])[0][0] is None
    question = f"SELECT id, n / 2 FROM p WHERE {window}"
    statuses = []
    for second in (100, 90, 50):
        server.set(after(second))
        assert reader.rows(question) == []
        statuses.append(reader.status())
    assert statuses[1:] == ["HIT", "HIT"], statuses
    # What a search would call, the role may not execute: no gap is sought, and nobody gets an error.
    server.psql("REVOKE EXECUTE ON FUNCTION timestamptz_lt(timestamptz, timestamptz) FROM PUBLIC")
    try:
        for _ in range(2):
            assert reader.rows(question, prepare=False) == []
            assert reader.outcome() == ("BYPASS", "moving_clock")
    finally:
        server.psql("GRANT EXECUTE ON FUNCTION timestamptz_lt(timestamptz, timestamptz) TO PUBLIC")
    server.psql("DROP OWNED BY windows_reader; DROP ROLE windows_reader; DROP FUNCTION half(int)")


def test_indexes_that_are_asked_for_each_row(server, at):
    """What an index is asked for with a value of another row is there when the rows of its pages are asked again."""
    server.set(after(0))
    server.psql(SCHEMA + "CREATE INDEX ON names (n)")
    cached, plain = sessions(at, "-c enable_seqscan=off -c enable_indexscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_memoize=off -c jit=off")
    question = "SELECT count(*), min(name) FROM (SELECT * FROM log_next WHERE at > now() - interval '90 seconds') l JOIN names USING (n)"
    shown = str(plain.rows("EXPLAIN " + question))
    assert "Recheck Cond: (n = log_next.n)" in shown, shown
    statuses = []
    for second in (0, 1, 2):
        server.set(after(second))
        assert cached.rows(question) == plain.rows(question)
        statuses.append(cached.status())
    assert statuses[1:] == ["HIT", "HIT"], statuses
