"""Functions in SQL by how their bodies are kept: a tree means the same for ever, a text what its names stand for by then. PostgreSQL 18 keeps
an older meaning of a text."""

import pytest

from support.text_bodies import KEEPS_MEANINGS


@pytest.mark.parametrize("body, is_text", [("AS 'SELECT x * 2'", True), ("RETURN x * 2", False), ("BEGIN ATOMIC SELECT x * 2; END", False)])
def test_how_bodies_are_kept(session, body, is_text):
    session.execute("CREATE TABLE t AS SELECT generate_series(1, 2) AS a")
    session.execute(f"CREATE FUNCTION twice(x int) RETURNS int LANGUAGE sql IMMUTABLE {body}")
    refused = is_text and session.info.server_version >= KEEPS_MEANINGS
    for _ in range(2):
        assert session.rows("SELECT twice(a) FROM t ORDER BY a") == [(2,), (4,)]
    assert (session.status(), session.reason()) == (("BYPASS", "user_defined_function") if refused else ("HIT", None))
    found = session.rows("SELECT cacheable, detail ~ 'RETURN or BEGIN ATOMIC' FROM arrow_cache.why('SELECT twice(a) FROM t')")
    assert found == [(not refused, refused)]
