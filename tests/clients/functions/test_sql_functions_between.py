"""The server reads the body of a function when the function is called for the first time: at Execute, not at Bind. Names in it may stand for
something else by then."""

import pytest

from support.text_bodies import analysed_anew  # noqa: F401  (used by pytest)
from support.wire import data_rows

QUERY = "SELECT kept(a) FROM t"
OLD, NEW = [[b"10"], [b"20"]], [[b"1000"], [b"2000"]]


@pytest.fixture
def ahead(session):
    """A schema in front of that of the test, which functions may be put into."""
    schema = session.rows("SELECT current_schema()")[0][0]
    session.prepare_threshold = 10**9
    session.execute(f"""
        CREATE SCHEMA {schema}_ahead;
        CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 2) g;
        CREATE FUNCTION inner_one(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 10';
        CREATE FUNCTION kept(int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce(inner_one($1), 0)';
        SET search_path = {schema}_ahead, {schema}
    """)
    yield f"{schema}_ahead"
    session.execute(f"DROP SCHEMA {schema}_ahead CASCADE")


def shadow(ahead):
    return f"CREATE FUNCTION {ahead}.inner_one(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 1000'"


def hear_of_changes(client):
    """A lock that the session does not hold yet has it read what others have changed."""
    client.parse("SELECT count(*) FROM pg_am", name="m").bind(portal="m", name="m").execute("m").step("C")


@pytest.mark.parametrize("enabled", ["off", "on"])
@pytest.mark.parametrize("filled_before", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_shadow_before_execute(session, other, wire, ahead, enabled, filled_before, own):
    """The portal gives the rows that executing gives. What it has met is stored for nobody who does not meet it, too."""
    if filled_before:
        session.rows(QUERY)
        assert session.rows(QUERY) == [(10,), (20,)]
        assert session.status() == "HIT"
    client = wire()
    client.query(f"SET pg_arrow_cache.enabled = {enabled}; SET search_path = {ahead}, {ahead.removesuffix('_ahead')}")
    client.query("BEGIN")
    client.parse(QUERY).bind().step("2")
    if own:
        client.parse(shadow(ahead), name="s").bind(portal="other", name="s").execute("other").step("C")
    else:
        other.execute(shadow(ahead))
    hear_of_changes(client)
    assert data_rows(client.execute().step("C")) == NEW
    client.sync()
    client.query("COMMIT")
    # Hidden again, by a change that outdates nothing.
    session.execute(f"ALTER SCHEMA {ahead} RENAME TO {ahead}_away")
    for _ in range(2):
        assert session.rows(QUERY) == [(10,), (20,)]
    session.execute(f"ALTER SCHEMA {ahead}_away RENAME TO {ahead}")
    for _ in range(2):
        assert session.rows(QUERY) == [(1000,), (2000,)]
    assert session.status() == "HIT"


def test_shadow_between_rows(session, other, wire, ahead):
    """What was read in parts, with a new name in between, is not stored."""
    client = wire()
    client.query(f"SET search_path = {ahead}, {ahead.removesuffix('_ahead')}")
    client.query("BEGIN")
    client.parse(QUERY).bind(portal="p").step("2")
    assert data_rows(client.execute("p", 1).step("s")) == OLD[:1]
    other.execute(shadow(ahead))
    assert data_rows(client.execute("p").step("C")) == OLD[1:]
    client.sync()
    client.query("COMMIT")
    for _ in range(2):
        assert session.rows(QUERY) == [(1000,), (2000,)]
    other.execute(f"ALTER SCHEMA {ahead} RENAME TO {ahead}_away")
    session.rows(QUERY)
    assert session.status() == "MISS"
    other.execute(f"ALTER SCHEMA {ahead}_away RENAME TO {ahead}")


def test_replaced_before_execute(session, other, wire, ahead):
    for enabled in ("off", "on"):
        session.rows(QUERY)
        session.rows(QUERY)
        client = wire()
        client.query(f"SET pg_arrow_cache.enabled = {enabled}; SET search_path = {ahead}, {ahead.removesuffix('_ahead')}")
        client.query("BEGIN")
        client.parse(QUERY).bind().step("2")
        name = f"{ahead.removesuffix('_ahead')}.inner_one"
        other.execute(f"CREATE OR REPLACE FUNCTION {name}(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 1000'")
        hear_of_changes(client)
        assert data_rows(client.execute().step("C")) == NEW
        client.sync()
        client.query("COMMIT")
        assert session.rows(QUERY) == [(1000,), (2000,)]
        other.execute(f"CREATE OR REPLACE FUNCTION {name}(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 10'")
        assert session.rows(QUERY) == [(10,), (20,)]
