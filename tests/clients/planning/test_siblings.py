"""Statements of one form whose constants or parameters let the planner leave out a sub-query: each is checked against
what its own plan reads, not against what other statements of the form read, and served without being planned."""

import psycopg
import pytest

from support.placeholders import exec_params, plans_of
from support.wire import data_rows, error_fields

ROLE = "regress_cache_sibling"
SIMPLE = "SELECT a FROM ot WHERE 1 = {} OR a IN (SELECT b FROM ox) ORDER BY a"
BOUND = "SELECT a FROM ot WHERE $1::int IS NULL OR a IN (SELECT b FROM ox WHERE k >= $1) ORDER BY a"


@pytest.fixture
def tables(session):
    session.execute("CREATE TABLE ot AS SELECT unnest('{1,3,5}'::int[]) AS a")
    session.execute("CREATE TABLE ox AS SELECT 1 AS b, 1 AS k")
    return session


def simple(session, constant):
    return [row[0] for row in session.rows(SIMPLE.format(constant), prepare=False)]


def bound(session, value):
    return [int(row[0]) for row in exec_params(session, BOUND, [value])]


# How to ask, with which value the sub-query is left out, and with which it is not.
WAYS = pytest.mark.parametrize("ask, without, with_it", [(simple, 1, 2), (bound, None, 1)])


def served(session, ask, value):
    """The answer, which comes from the cache through a placeholder."""
    (answer, status), placeholders = plans_of(session, lambda: (ask(session, value), session.status()))
    # The second plan is that of the question for the status.
    assert (status, placeholders) == ("HIT", [True, False])
    return answer


def in_order(first, without, with_it):
    """Sends both values often enough to be served, one of them first."""
    return [without] * 3 + [with_it] * 3 if first == "without" else [with_it] * 3 + [without] * 3


@WAYS
@pytest.mark.parametrize("first", ["without", "with_it"])
def test_own_writes(tables, ask, without, with_it, first):
    for value in in_order(first, without, with_it):
        ask(tables, value)
    assert served(tables, ask, without) == [1, 3, 5]
    assert served(tables, ask, with_it) == [1]
    with tables.transaction(force_rollback=True):
        tables.execute("INSERT INTO ox VALUES (3, 1)")
        assert ask(tables, with_it) == [1, 3]
        assert (tables.status(), tables.reason()) == ("BYPASS", "own_writes")
        assert served(tables, ask, without) == [1, 3, 5], "its plan does not read what was written"
    with tables.transaction(force_rollback=True):
        tables.execute("INSERT INTO ot VALUES (7)")
        assert ask(tables, without) == [1, 3, 5, 7]
        assert ask(tables, with_it) == [1]


@WAYS
@pytest.mark.parametrize("first", ["without", "with_it"])
def test_permissions(tables, ask, without, with_it, first):
    """The server asks for permission to read what the plan reads, and only that."""
    tables.execute(f"CREATE ROLE {ROLE}; GRANT SELECT ON ot TO {ROLE}")
    tables.execute(f"GRANT USAGE ON SCHEMA {tables.rows('SELECT current_schema()')[0][0]} TO {ROLE}")
    try:
        for value in in_order(first, without, with_it):
            ask(tables, value)
        tables.execute(f"SET ROLE {ROLE}")
        for _ in range(2):
            assert ask(tables, without) == [1, 3, 5]
            for _ in range(2):
                with pytest.raises((psycopg.errors.InsufficientPrivilege, AssertionError), match="permission denied for table ox"):
                    ask(tables, with_it)
        # Without the right that another constant needs, it is planned: only a plan tells that it needs none.
        assert (ask(tables, without), tables.status()) == ([1, 3, 5], "HIT")
    finally:
        tables.execute("RESET ROLE")
        tables.execute(f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


@pytest.mark.parametrize("value, in_use", [(None, False), (b"1", True)])
def test_tables_in_use(tables, wire, value, in_use):
    """A portal that is read half-way keeps open what its own plan reads."""
    tables.execute("INSERT INTO ox VALUES (3, 1)")
    client = wire()
    for either in (None, b"1") * 3:
        client.parse(BOUND).bind([either]).execute().sync()
        assert len(data_rows(client.query("SELECT 1"))) == 1
    client.query("BEGIN")
    client.parse("TRUNCATE ox", name="t").parse(BOUND).bind([value], portal="n").execute("n", max_rows=1).step("s")
    status = client.parse("SELECT arrow_cache.last_status()", name="s").bind(portal="s", name="s").execute("s").step("C", "E")
    assert data_rows(status) == [[b"HIT"]]
    end = client.bind(portal="p", name="t").execute("p").step("C", "E")
    assert (end[-1].type == "E") == in_use
    if in_use:
        assert error_fields(end[-1])["C"] == "55006"
    client.sync()
    client.query("ROLLBACK")


def test_types_of_columns(tables):
    """A plan knows more about the type of a column than the query: the type modifier of the branch that is left. A session that has
    just been given another one has it planned."""
    query = "SELECT CASE WHEN 1 = {} THEN b::text::varchar(3) ELSE k::text::varchar(5) END AS v FROM ox"
    for constant in (1, 2) * 3:
        tables.execute(query.format(constant))
    for constant, modifier in ((1, 3), (2, 5)):
        for is_placeholder in (False, True):
            result, placeholders = plans_of(tables, lambda: tables.pgconn.exec_(query.format(constant).encode()))
            assert placeholders == [is_placeholder] and result.fmod(0) == modifier + 4
