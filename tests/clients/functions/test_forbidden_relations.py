"""A session may forbid itself to read views or foreign tables (`restrict_nonsystem_relation_kind`). The server notices that when it rewrites a query, for the
body of a function when that is called; so nothing is answered from the cache then, nor stored."""

import pytest

from support.wire import errors_by_message, has_error

TABLES = """
    CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 100) g;
    CREATE VIEW v AS SELECT id FROM t WHERE id < 50;
    CREATE FUNCTION as_declared() RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS 'BEGIN RETURN (SELECT count(*) FROM v); END';
    SECURITY LABEL FOR pg_arrow_cache ON FUNCTION as_declared() IS 'pure';
"""
FORBID = "SET restrict_nonsystem_relation_kind = 'view'"
ALLOW = "RESET restrict_nonsystem_relation_kind"


@pytest.fixture
def query(session):
    """A query that has a stored answer."""
    session.execute(TABLES)
    query = f"SELECT id, as_declared() AS n FROM t WHERE id < 3 ORDER BY id"
    for expected in ("MISS", "HIT"):
        assert session.rows(query, prepare=False) == [(1, 49), (2, 49)]
        assert session.status() == expected
    return query


def fresh_statement(client, query):
    client.query(FORBID)
    yield client.query(query)


def kept_statement(client, query):
    # PL/pgSQL keeps what it has rewritten when it first ran the function. A hit does not run it.
    client.query(f"/*+ no_arrow_cache */ {query}")
    client.parse(query, name="s").bind(name="s").execute().sync()
    client.query(FORBID)
    yield client.bind(name="s").execute().sync()
    client.query(ALLOW)
    yield client.bind(name="s").execute().sync()


def bound_portal(client, query):
    client.query("BEGIN")
    yield client.parse(query).bind(portal="p").sync()
    client.query(FORBID)
    yield client.execute("p").sync()
    client.query("ROLLBACK")


def cursor(client, query):
    yield client.query(f"BEGIN; DECLARE c NO SCROLL CURSOR FOR {query}")
    client.query(FORBID)
    yield client.query("FETCH ALL FROM c")
    client.query("ROLLBACK")


@pytest.mark.parametrize("ways", [(fresh_statement,), (kept_statement,), (bound_portal,), (cursor,), (kept_statement, cursor, fresh_statement)])
def test_views(wire, query, ways):
    """The same messages come as without the cache, and no session after it is given what another's history allowed."""
    on, off = wire(), wire()
    off.query("SET pg_arrow_cache.enabled = off")
    for way in ways:
        answers = [[errors_by_message(answer) for answer in way(client, query)] for client in (on, off)]
        assert answers[0] == answers[1]
        for client in (on, off):
            client.query(ALLOW)
    [answer] = fresh_statement(wire(), query)
    assert has_error(answer, b"55000")


def test_reason(session, query):
    session.execute("SET restrict_nonsystem_relation_kind = 'foreign-table'")
    for _ in range(2):
        assert session.rows(query) == [(1, 49), (2, 49)]
        assert session.outcome() == ("BYPASS", "forbidden_relations")
    assert "forbidden_relations" in session.rows("SELECT arrow_cache.why(%s)", (query,))[0][0]
    session.execute(ALLOW)
    assert session.rows(query) == [(1, 49), (2, 49)]
    assert session.outcome()[0] in ("HIT", "MISS")
