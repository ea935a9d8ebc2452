"""The planner asks whether the role may execute a function that it inlines, and the executor does not ask again. So a
kept plan that runs as another role gives rows that this role could not ask for afresh. Nobody else gets them."""

import psycopg
import pytest

from support.text_bodies import analysed_anew  # noqa: F401  (used by pytest)

ROLE = "plans_of_other_roles"

CALLS = {"inlined": "hidden(a)", "inlined_below": "around(a)", "default": "by_default(a)"}


@pytest.fixture
def shared(session, connect):
    schema = connect.schema
    session.execute(f"""
        CREATE ROLE {ROLE}; GRANT USAGE ON SCHEMA {schema} TO {ROLE};
        CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 2) g; GRANT SELECT ON t TO {ROLE};
        CREATE FUNCTION hidden(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT $1 * 7';
        CREATE FUNCTION around(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT hidden($1)';
        CREATE FUNCTION by_default(int, int DEFAULT hidden(1)) RETURNS int LANGUAGE sql STABLE AS 'SELECT $1 + $2';
        REVOKE EXECUTE ON FUNCTION hidden(int) FROM PUBLIC
    """)
    yield session
    session.execute(f"RESET ROLE; DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


@pytest.mark.parametrize("name", CALLS)
def test_rows_of_a_kept_plan(shared, connect, name):
    query = f"SELECT a, {CALLS[name]} FROM t ORDER BY a"
    afresh = connect(f"-c role={ROLE}")
    shared.execute(f"PREPARE q AS {query}")
    rows = shared.rows("EXECUTE q")
    shared.execute(f"SET ROLE {ROLE}")
    for _ in range(3):
        assert shared.rows("EXECUTE q") == rows, "what PostgreSQL answers with this plan"
    assert shared.status() == "HIT"
    for _ in range(3):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            afresh.execute(query)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        shared.execute(query)
    shared.execute("RESET ROLE")
    for _ in range(2):
        assert shared.rows(query) == shared.rows("EXECUTE q") == rows
    assert shared.status() == "HIT"


def test_a_plan_is_made_anew_by_the_rights_of_now(shared, connect):
    """After a change of rights the server may plan a kept statement anew at any time, and is asked to."""
    client = connect(f"-c role={ROLE}")
    client.execute("PREPARE q AS SELECT upper('abc'), count(*), max(a) FROM t")
    expected = client.rows("EXECUTE q")
    client.rows("EXECUTE q")
    assert client.status() == "HIT"
    shared.execute("REVOKE EXECUTE ON FUNCTION upper(text) FROM PUBLIC")
    try:
        assert client.rows("EXECUTE q") == expected
        assert (client.status(), client.reason()) == ("BYPASS", "old_plan")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("EXECUTE q")
    finally:
        shared.execute("GRANT EXECUTE ON FUNCTION upper(text) TO PUBLIC")
    for _ in range(3):
        assert client.rows("EXECUTE q") == expected
    assert client.status() == "HIT"
