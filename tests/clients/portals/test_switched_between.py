"""Settings and roles that are switched between the start of a query and the reading of its rows: the rows are those of
an execution, and what is stored of them is the answer that others get."""

import itertools

import psycopg
import pytest
from support.session import DSN

SETUP = """
    DROP ROLE IF EXISTS switch_reader;
    CREATE ROLE switch_reader;
    GRANT USAGE, CREATE ON SCHEMA {schema} TO switch_reader;
    CREATE TABLE t AS SELECT g AS i, 's' || g AS s, timestamptz '2026-01-01 UTC' + g * interval '1 day' AS at
        FROM generate_series(1, 6) g;
    CREATE TABLE secure AS SELECT g AS i, CASE WHEN g > 3 THEN 'switch_reader' ELSE 'x' END AS owner FROM generate_series(1, 6) g;
    ALTER TABLE secure ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON secure USING (owner = current_user);
    CREATE VIEW over AS SELECT * FROM secure;
    CREATE TABLE parts (i int, s text) PARTITION BY RANGE (i);
    CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (4);
    CREATE TABLE high PARTITION OF parts FOR VALUES FROM (4) TO (20);
    INSERT INTO parts SELECT i, s FROM t;
    GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO switch_reader"""

QUERIES = [
    "SELECT i, s FROM t ORDER BY i",
    "SELECT current_user, i FROM t ORDER BY i",
    "SELECT i, at, at::text FROM t ORDER BY i",
    "SELECT current_setting('app.tenant', true), i FROM t ORDER BY i",
    "SELECT * FROM secure ORDER BY i",
    "SELECT * FROM over ORDER BY i",
    "SELECT * FROM parts WHERE i > 2 ORDER BY i",
]

ACTIONS = [
    "SET LOCAL ROLE switch_reader",
    "SET LOCAL row_security = off",
    "SET LOCAL session_replication_role = replica",
    "SET LOCAL search_path = pg_catalog",
    "SET LOCAL timezone = 'Asia/Tokyo'; SET LOCAL datestyle = 'German'",
    "SET LOCAL app.tenant = 'seven'",
    "SET LOCAL pg_arrow_cache.enabled = off",
    "SET LOCAL pg_arrow_cache.populate = off",
    "SET LOCAL pg_arrow_cache.enabled = off; UPDATE {schema}.t SET s = s || '!'; SET LOCAL pg_arrow_cache.enabled = on",
    "SET LOCAL pg_arrow_cache.enabled = off; UPDATE {schema}.parts SET s = 'n'; SET LOCAL pg_arrow_cache.enabled = on",
    "INSERT INTO {schema}.t VALUES (7, 'new', '2026-02-03'); DELETE FROM {schema}.secure WHERE i = 5",
    "SAVEPOINT a; UPDATE {schema}.t SET s = '?'; ROLLBACK TO a",
    "SAVEPOINT a; SET LOCAL track_counts = off; UPDATE {schema}.parts SET s = '?'; RELEASE a; SET LOCAL track_counts = on",
    "SET LOCAL transaction_read_only = on",
    "SELECT arrow_cache.set_policy('{schema}.t', 'never')",
    "SELECT arrow_cache.flush() >= 0",
]


def cursor_in_parts(client, query, action, end):
    messages = client.query("BEGIN") + client.query(f"DECLARE c NO SCROLL CURSOR FOR {query}")
    messages += client.query("FETCH 2 FROM c") + client.query(action) + client.query("FETCH ALL FROM c") + client.query(end)
    return messages


def portal(client, query, action, end):
    messages = client.query("BEGIN")
    messages += client.parse(query, name="q").bind(portal="p", name="q").step("2", "E")
    messages += client.query(action)
    messages += client.describe("p").execute("p").sync() + client.query(end)
    client.query("DEALLOCATE ALL")
    return messages


def prepared(client, query, action, end):
    messages = client.query("BEGIN") + client.query(f"PREPARE q AS {query}") + client.query("EXECUTE q")
    messages += client.query(action) + client.query("EXECUTE q") + client.query("EXECUTE q") + client.query(end)
    client.query("DEALLOCATE ALL")
    return messages


WAYS = [cursor_in_parts, portal, prepared]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("action", ACTIONS)
def test_switched_between(connect, wire, way, action):
    admin = connect()
    admin.execute(SETUP.format(schema=connect.schema))
    tables = ("t", "secure", "parts")
    for table in tables:
        admin.execute(f"CREATE TABLE kept_{table} AS SELECT * FROM {table}")
    uncached, cached, other = wire(), wire(), wire()
    uncached.query("SET pg_arrow_cache.enabled = off")
    for session in (uncached, cached, other):
        session.query("SET app.tenant = 'none'")
    action = action.format(schema=connect.schema)
    found = []

    changes = any(word in action for word in ("UPDATE", "INSERT", "policy"))

    def restore():
        if not changes:
            return
        admin.execute("SELECT arrow_cache.set_policy('t', 'default')")
        with admin.transaction():
            for table in tables:
                admin.execute(f"DELETE FROM {table}")
                admin.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}")

    for query, end, warm in itertools.product(QUERIES, ("COMMIT", "ROLLBACK") if changes else ("COMMIT",), (False, True)):
        with_off = action.replace("enabled = on", "enabled = off")
        expected = way(uncached, query, with_off, end)
        restore()
        admin.execute("SELECT arrow_cache.flush()")
        if warm:
            cached.query(query)
            cached.query(query)
        got = way(cached, query, action, end)
        if got != expected:
            where = next((i for i, (a, b) in enumerate(zip(expected, got)) if a != b), None)
            found.append((query, end, warm, where, expected[where:][:2], got[where:][:2]))
        for state in ("SET ROLE switch_reader; SET timezone = 'UTC'", "SET app.tenant = 'seven'"):
            for session in (uncached, other):
                session.query(state)
            right = uncached.query(query)
            if other.query(query) != right:
                found.append((query, end, warm, state, right))
            for session in (uncached, other):
                session.query("RESET ROLE; RESET timezone; SET app.tenant = 'none'")
        restore()
    assert not found, '\n'.join(map(str, found))


@pytest.mark.parametrize("switch, reason", [("enabled", "disabled"), ("populate", "populate_off")])
def test_switched_off_nothing_more_is_stored(session, switch, reason):
    session.execute("CREATE TABLE t AS SELECT g AS i FROM generate_series(1, 6) g")
    before = session.rows("SELECT sum(statements) FROM arrow_cache.bypass_reasons WHERE reason = %s", [reason])[0][0] or 0
    with session.transaction():
        session.execute("DECLARE c NO SCROLL CURSOR FOR SELECT i FROM t ORDER BY i")
        assert len(session.rows("FETCH 2 FROM c")) == 2
        session.execute(f"SET LOCAL pg_arrow_cache.{switch} = off")
        assert len(session.rows("FETCH ALL FROM c")) == 4
    assert session.rows("SELECT count(*) FROM arrow_cache.entries") == [(0,)]
    assert session.rows("SELECT sum(statements) > %s FROM arrow_cache.bypass_reasons WHERE reason = %s", [before, reason]) == [(True,)]


@pytest.fixture(scope="module", autouse=True)
def role_goes():
    yield
    with psycopg.connect(DSN, autocommit=True) as last:
        last.execute("DROP ROLE IF EXISTS switch_reader")
