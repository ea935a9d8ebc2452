"""Functions of users in SQL whose bodies read relations, or give sets or several columns, and that the planner does not inline: queries with them are
bypassed, and right."""

import pytest

from support.agreement import agree

BODIES = {
    "reads": "f(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT max(rank) FROM member WHERE rank <= x'",
    "reads in a sub-query": "f(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT x + (SELECT max(rank) FROM member)'",
    "reads, as a tree": "f(x int) RETURNS int LANGUAGE sql STABLE RETURN (SELECT max(rank) FROM member WHERE rank <= x)",
    "reads, atomic": "f(x int) RETURNS int LANGUAGE sql STABLE BEGIN ATOMIC SELECT max(rank) FROM member WHERE rank <= x; END",
    "reads, VOLATILE": "f(x int) RETURNS int LANGUAGE sql AS 'SELECT max(rank) FROM member WHERE rank <= x'",
    "reads a view": "f(x int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM shown WHERE rank <= x'",
    "has FROM": "f(x int) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT sum(g) FROM generate_series(1, x) g'",
    "has WITH": "f(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'WITH w AS (SELECT x AS y) SELECT y + 1 FROM w'",
    "has a sub-query": "f(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT (SELECT x + 1)'",
    "VALUES": "f(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'VALUES (x + 1)'",
    "a condition": "f(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x WHERE x > 3'",
    "several columns": "f(x int, OUT y int, OUT z int) LANGUAGE sql IMMUTABLE AS 'SELECT x, x + 1'",
    "a set, VOLATILE": "f(x int) RETURNS SETOF int LANGUAGE sql AS 'SELECT generate_series(1, x)'",
    "rows of a table, STRICT": "f(x int) RETURNS SETOF member LANGUAGE sql STABLE STRICT AS 'SELECT * FROM member WHERE rank <= x'",
    "several statements": "f(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1; SELECT x'",
}


@pytest.mark.parametrize("name", BODIES)
def test_bypassed(session, name):
    session.prepare_threshold = 10**9
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 6) g; CREATE TABLE member AS SELECT g AS rank FROM generate_series(1, 9) g; "
                    "CREATE VIEW shown AS SELECT rank FROM member WHERE rank > 1")
    session.execute(f"CREATE FUNCTION {BODIES[name]}")
    assert agree(session, "SELECT a, f::text FROM t, f(a) ORDER BY a, 2") == ("BYPASS", "user_defined_function")
    session.execute("UPDATE member SET rank = rank * 2")
    assert agree(session, "SELECT a, f::text FROM t, f(a) ORDER BY a, 2") == ("BYPASS", "user_defined_function")
