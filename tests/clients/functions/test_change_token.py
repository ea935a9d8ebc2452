"""etag() and version(): two equal tokens stand for equal answers, whatever others write meanwhile, and whoever asks."""

import os
import random

import psycopg
import pytest

from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED", 20261124))
STEPS = rounds(500, 1200)

SETUP = """
    CREATE TYPE feeling AS ENUM ('sad', 'glad');
    CREATE TABLE t (id int, v int, m feeling DEFAULT 'sad', at timestamptz DEFAULT '2024-01-01 23:30+00');
    CREATE TABLE other (id int, v int);
    CREATE TABLE parted (id int, v int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (5);
    CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (5) TO (10);
    CREATE VIEW seen AS SELECT t.id, t.v + other.v AS v FROM t JOIN other USING (id);
    CREATE MATERIALIZED VIEW kept AS SELECT count(*) AS n FROM t;
    CREATE TABLE owned (id int, owner name, v int);
    ALTER TABLE owned ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON owned USING (owner = CURRENT_USER);
    INSERT INTO t SELECT g, g FROM generate_series(0, 9) g;
    INSERT INTO other SELECT g, g FROM generate_series(0, 9) g;
    INSERT INTO parted SELECT g, g FROM generate_series(0, 9) g;
    INSERT INTO owned SELECT g, CASE WHEN g < 5 THEN 'token_a' ELSE 'token_b' END, g FROM generate_series(0, 9) g;
    GRANT USAGE ON SCHEMA SCHEMA_NAME TO token_a, token_b;
    GRANT SELECT ON ALL TABLES IN SCHEMA SCHEMA_NAME TO token_a, token_b"""

# Questions with a place for one number.
QUESTIONS = [
    "SELECT sum(v) FROM t WHERE id < $1", "SELECT id, m FROM t WHERE id = $1 ORDER BY id, v", "SELECT sum(v) FROM parted WHERE id < $1",
    "SELECT sum(v) FROM parted WHERE id > $1", "SELECT sum(v) FROM seen WHERE id <> $1", "SELECT n + $1 FROM kept", "SELECT sum(v) FROM owned WHERE id <> $1",
    "SELECT json_agg(m ORDER BY id, m) FROM t WHERE id < $1", "SELECT date_trunc('day', at)::text, count(*) FROM t WHERE id < $1 GROUP BY 1 ORDER BY 1",
    "SELECT at::text, count(*) FROM t WHERE id <> $1 GROUP BY 1 ORDER BY 1",
]
RELATIONS = ["t", "other", "parted", "parted_1", "seen", "kept", "owned"]
WRITES = [
    "INSERT INTO t VALUES ({n}, {n})", "UPDATE t SET v = v + 1 WHERE id = {n}", "DELETE FROM t WHERE id = {n} AND v > 20", "UPDATE other SET v = {n} WHERE id = {n}",
    "UPDATE parted SET v = v + 1 WHERE id = {n}", "UPDATE parted_1 SET v = {n}", "UPDATE parted_2 SET v = {n}", "UPDATE owned SET v = v + {n} WHERE id = {n}",
    "UPDATE t SET m = 'glad' WHERE id = {n}", "UPDATE t SET at = at + interval '1 hour' WHERE id = {n}", "SAVEPOINT s; UPDATE t SET v = 0; ROLLBACK TO s",
]
DEFINITIONS = [
    "ALTER TYPE feeling RENAME VALUE 'sad' TO 'blue'", "ALTER TYPE feeling RENAME VALUE 'blue' TO 'sad'", "REFRESH MATERIALIZED VIEW kept", "TRUNCATE other",
    "INSERT INTO other SELECT g, g FROM generate_series(0, 9) g", "CREATE OR REPLACE VIEW seen AS SELECT t.id, t.v - other.v AS v FROM t JOIN other USING (id)",
    "CREATE OR REPLACE VIEW seen AS SELECT t.id, t.v + other.v AS v FROM t JOIN other USING (id)", "ALTER POLICY own ON owned USING (owner <> CURRENT_USER)",
    "ALTER POLICY own ON owned USING (owner = CURRENT_USER)", "ALTER TABLE parted DETACH PARTITION parted_2", "ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (5) TO (10)",
    "CREATE TEMPORARY TABLE IF NOT EXISTS passing (id int)", "ALTER TABLE owned DISABLE ROW LEVEL SECURITY", "ALTER TABLE owned ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE t RENAME TO tmp; ALTER TABLE other RENAME TO t; ALTER TABLE tmp RENAME TO other; ALTER TABLE t ADD COLUMN IF NOT EXISTS m feeling DEFAULT 'sad', ADD COLUMN IF NOT EXISTS at timestamptz DEFAULT '2024-01-01 23:30+00'",
]
SETTINGS = ["RESET TimeZone", "SET TimeZone = 'Asia/Tokyo'", "SET DateStyle = 'German'", "RESET DateStyle", "RESET ROLE", "SET ROLE token_a", "SET ROLE token_b"]


@pytest.fixture
def roles(session):
    session.execute("SET client_min_messages = warning; DROP ROLE IF EXISTS token_a, token_b; CREATE ROLE token_a; CREATE ROLE token_b")
    yield
    session.execute("RESET ROLE; DROP OWNED BY token_a, token_b; DROP ROLE token_a, token_b")


def attempt(writer, statement):
    """Executes what may be impossible now: a lock of another writer, a label that is not there."""
    try:
        writer.execute(statement)
    except psycopg.Error:
        if writer.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            writer.execute("ROLLBACK")


def answer(reader, question, number):
    """Token and executed rows under one snapshot, and what the session would send of them."""
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    token = reader.execute("SELECT arrow_cache.etag($1, $2::int)".replace("$1", "%s").replace("$2", "%s"), [question, number]).fetchone()[0]
    reader.execute("SET LOCAL pg_arrow_cache.enabled = off")
    rows = str(reader.execute(question.replace("$1", str(number))).fetchall())
    reader.execute("COMMIT")
    return token, rows


def everything(reader, relation):
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    token = reader.execute("SELECT arrow_cache.version(%s::regclass)", [relation]).fetchone()[0]
    reader.execute("SET LOCAL pg_arrow_cache.enabled = off")
    rows = str(reader.execute(f"SELECT x::text FROM {relation} x ORDER BY 1").fetchall())
    reader.execute("COMMIT")
    return token, rows


@sweep
def test_random_writers(connect, session, roles):
    chosen = random.Random(SEED)
    print(f"RANDOM_SEED={SEED}")
    session.execute(SETUP.replace("SCHEMA_NAME", connect.schema))
    # From then on, tokens of the second question rest on values.
    for number in range(40):
        session.rows(f"SELECT m, {number} FROM t WHERE id = 3")
    assert session.rows("SELECT columns FROM arrow_cache.tracked WHERE relation = 't'::regclass") == [(["id"],)]
    writers = [connect("-c lock_timeout=20ms") for _ in range(2)]
    readers = [connect("-c lock_timeout=20ms") for _ in range(2)]
    found, promised, repeated = {}, 0, 0
    for step in range(STEPS):
        writer = chosen.choice(writers)
        what = chosen.random()
        if what < 0.06:
            attempt(writer, chosen.choice(DEFINITIONS))
        elif what < 0.16:
            statement = chosen.choice(WRITES).format(n=chosen.randrange(10))
            attempt(writer, statement if not statement.startswith("SAVEPOINT") else f"BEGIN; {statement}; COMMIT")
        elif what < 0.20:
            attempt(writer, chosen.choice(["BEGIN", "COMMIT", "ROLLBACK"]))
        elif what < 0.25:
            chosen.choice(readers).execute(chosen.choice(SETTINGS))
        else:
            reader = chosen.choice(readers)
            try:
                if chosen.random() < 0.2:
                    relation = chosen.choice(RELATIONS)
                    asked, (token, rows) = relation, everything(reader, relation)
                else:
                    asked, number = chosen.choice(QUESTIONS), chosen.choice([3, 5, 7])
                    token, rows = answer(reader, asked, number)
            except psycopg.Error:
                # A lock of a writer, or a definition that another one has taken away.
                reader.execute("ROLLBACK")
                continue
            if token is not None:
                promised += 1
                repeated += token in found
                assert found.setdefault(token, (asked, rows)) == (asked, rows), f"step {step}: the same token, another answer"
    for one in writers + readers:
        one.close()
    # The test has met enough of both: tokens, and tokens that came back.
    assert promised > STEPS / 4 and repeated > STEPS / 20, (promised, repeated)


def test_snapshot_that_does_not_see_a_writer(connect, session):
    session.execute("CREATE TABLE t (v int); INSERT INTO t VALUES (1)")
    writer, old = connect(), connect()
    etag = "SELECT arrow_cache.etag('SELECT sum(v) FROM t'), arrow_cache.version('t')"
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    before = old.rows(etag)
    assert None not in before[0] and session.rows(etag) == before
    writer.execute("BEGIN; UPDATE t SET v = 2")
    assert session.rows(etag) == before, "a change that nobody can see changes nothing"
    writer.execute("COMMIT")
    assert old.rows(etag) == [(None, None)], "an old snapshot gets no token"
    after = session.rows(etag)
    assert None not in after[0] and not set(after[0]) & set(before[0])
    old.execute("COMMIT")
    assert old.rows(etag) == after


def test_server_side_binding(session):
    session.execute("CREATE TABLE t (v int); INSERT INTO t VALUES (1)")
    session.prepare_threshold = 0
    etag = "SELECT arrow_cache.etag('SELECT v FROM t WHERE v = $1', %s::int)"
    first = [session.rows(etag, [n]) for n in (1, 2, 1)]
    assert first[0] == first[2] != first[1] and first[0][0][0] is not None
    session.execute("UPDATE t SET v = 1")
    assert session.rows(etag, [1]) not in first


def test_http_example(session, other):
    """The example of docs/sql.md."""
    session.execute("CREATE TABLE sales (region text, amount int); INSERT INTO sales VALUES ('north', 1)")
    query = "SELECT region, sum(amount) FROM sales GROUP BY region"

    def get(if_none_match=None):
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        token = session.rows("SELECT arrow_cache.etag(%s)", [query])[0][0]
        if token is not None and token == if_none_match:
            answer = 304, token, None
        else:
            answer = 200, token, session.rows(query)
        session.execute("COMMIT")
        return answer

    status, token, body = get()
    assert (status, body) == (200, [("north", 1)]) and token is not None
    assert get(token) == (304, token, None)
    other.execute("UPDATE sales SET amount = 2")
    status, later, body = get(token)
    assert (status, body) == (200, [("north", 2)]) and later != token
    other.execute("BEGIN; UPDATE sales SET amount = 3")
    assert get(later)[0] == 304
    other.execute("COMMIT")
    assert get(later)[0] == 200


# What is printed as the name of something, and a change of that name which no table of the query knows of.
NAMES = [
    ("regclass", "named", "ALTER TABLE named RENAME TO renamed"), ("regclass", "named", "CREATE TABLE earlier.named (v int)"),
    ("regclass[]", "{named}", "DROP TABLE named"), ("regtype", "kind", "ALTER TYPE kind RENAME TO sort"),
    ("regproc", "called", "CREATE FUNCTION called(int) RETURNS int LANGUAGE sql RETURN 1"), ("regnamespace", "earlier", "ALTER SCHEMA earlier RENAME TO later"),
    ("name_and_number", "(named,1)", "ALTER TABLE named RENAME TO renamed"),
]


@pytest.mark.parametrize(("kind", "value", "change"), NAMES, ids=[f"{kind} {change}" for kind, _, change in NAMES])
def test_values_that_are_printed_by_catalogs(connect, session, kind, value, change):
    session.execute(f"SET search_path = earlier, {connect.schema}; CREATE SCHEMA earlier")
    try:
        session.execute(f"""CREATE TABLE {connect.schema}.named (v int); CREATE TYPE {connect.schema}.kind AS (v int);
            CREATE FUNCTION {connect.schema}.called() RETURNS int LANGUAGE sql RETURN 1; CREATE TYPE {connect.schema}.name_and_number AS (c regclass, n int);
            CREATE TABLE {connect.schema}.t (c {kind}, v int); INSERT INTO t VALUES ('{value}', 1)""")

        def asked():
            answer = str(session.pgconn.exec_(b"SELECT c FROM t").get_value(0, 0))
            return answer, session.rows("SELECT arrow_cache.etag('SELECT c FROM t'), arrow_cache.version('t')")[0]

        before = asked()
        session.execute(change)
        after = asked()
        assert before[0] != after[0]
        for earlier, later in zip(before[1], after[1]):
            assert earlier is None or earlier != later
        assert session.rows("SELECT arrow_cache.etag('SELECT v FROM t WHERE c IS NOT NULL')") != [(None,)], "what is not printed does no harm"
    finally:
        session.execute("SET client_min_messages = warning; DROP SCHEMA IF EXISTS earlier, later CASCADE")
