"""Functions in SQL by how their bodies are kept: a tree means the same for ever, a text what its names stand for by then. PostgreSQL 18 keeps
an older meaning of a text where it runs the function itself, and not where it inlines it."""

import pytest


@pytest.mark.parametrize("body", ["AS 'SELECT x * 2'", "RETURN x * 2", "BEGIN ATOMIC SELECT x * 2; END"])
def test_how_bodies_are_kept(session, body):
    session.execute("CREATE TABLE t AS SELECT generate_series(1, 2) AS a")
    session.execute(f"CREATE FUNCTION twice(x int) RETURNS int LANGUAGE sql IMMUTABLE {body}")
    for _ in range(2):
        assert session.rows("SELECT twice(a) FROM t ORDER BY a") == [(2,), (4,)]
    assert (session.status(), session.reason()) == ("HIT", None)
    assert session.rows("SELECT cacheable FROM arrow_cache.why('SELECT twice(a) FROM t')") == [(True,)]
