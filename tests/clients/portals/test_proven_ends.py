"""A read with a limit of rows that has read all rows there can be: the plan proves it, so the answer is stored and served, and the
server still says that the portal is suspended. Where the plan proves nothing, nothing is stored."""

import pytest

from support.wire import data_rows, types

SETUP = """
CREATE TABLE t (a int PRIMARY KEY, b text, c int UNIQUE, d int, e numeric, UNIQUE (d, e));
INSERT INTO t SELECT g, 'b' || g, g * 10, g % 3, g FROM generate_series(1, 1000) g;
CREATE TABLE small (a int PRIMARY KEY, n int, s varchar UNIQUE);
INSERT INTO small VALUES (1, 0, 'x'), (2, 1, 'y'), (3, 0, 'z');
ANALYZE t, small;
"""

PROVEN = [
    ("SELECT count(*) FROM t", [], 1),
    ("SELECT sum(a) FROM t HAVING sum(a) > 0", [], 1),
    ("SELECT max(a), min(a) FROM t", [], 1),
    ("SELECT x FROM (SELECT sum(a) AS x FROM t) s ORDER BY x", [], 1),
    ("SELECT a FROM t ORDER BY a LIMIT 3", [], 3),
    ("SELECT a FROM t ORDER BY b LIMIT $1", [b"2"], 2),
    ("SELECT a FROM t ORDER BY b OFFSET 5 LIMIT 1", [], 1),
    ("SELECT a FROM t WHERE a > 998 ORDER BY b FETCH FIRST 2 ROWS ONLY", [], 2),
    ("SELECT (SELECT count(*) FROM t) AS n, (SELECT max(a) FROM t)", [], 1),
]

UNPROVEN = [
    ("SELECT b FROM t WHERE a = $1", [b"7"], 1),
    ("SELECT b FROM t WHERE c = 70", [], 1),
    ("SELECT count(*) FROM t UNION ALL SELECT count(*) FROM small", [], 2),
    ("SELECT d, count(*) FROM t WHERE a = 7 GROUP BY d", [], 1),
    ("SELECT b FROM t WHERE a > 999", [], 1),
    ("SELECT b FROM t WHERE d = 1 AND e > 998", [], 1),
    ("SELECT count(*) FROM t GROUP BY GROUPING SETS ((), ())", [], 2),
    ("SELECT a FROM t ORDER BY d FETCH FIRST 2 ROWS WITH TIES", [], 2),
    ("SELECT a FROM t ORDER BY a LIMIT 3", [], 2),
    ("SELECT a FROM t ORDER BY a LIMIT NULL", [], 2),
    ("SELECT g FROM generate_series(1, (SELECT max(n) FROM small)) g", [], 1),
    ("SELECT b FROM t WHERE a IN (7, 8)", [], 2),
    ("SELECT t.b FROM t JOIN small s ON s.n = t.d WHERE t.a = 6", [], 2),
]


@pytest.fixture
def both(session, wire):
    """A session with the cache and one without."""
    session.execute(SETUP)
    on, off = wire(), wire()
    off.query("SET pg_arrow_cache.enabled = off")
    return on, off


def cached(client):
    return int(client.value("SELECT count(*) FROM arrow_cache.entries"))


def fetch(client, query, values, limit):
    return client.parse(query).bind(values).describe().execute(max_rows=limit).sync()


@pytest.mark.parametrize("plans", ["auto", "force_generic_plan"])
@pytest.mark.parametrize("scans", ["", "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off",
                                   "SET enable_indexscan = off; SET enable_seqscan = off"])
def test_stored_where_the_plan_proves_the_end(both, plans, scans):
    on, off = both
    for client in both:
        client.query(f"SET plan_cache_mode = {plans}; {scans}")
    for query, values, limit in PROVEN:
        on.query("SELECT arrow_cache.flush()")
        expected = fetch(off, query, values, limit)
        assert types(expected).endswith("D" * limit + "sZ"), query
        for status in ("MISS", "HIT", "HIT"):
            assert fetch(on, query, values, limit) == expected, query
            assert on.status() == status, query
        assert fetch(on, query, values, 0) == fetch(off, query, values, 0), query
        assert on.status() == "HIT", query


def test_not_stored_where_it_does_not(both):
    on, off = both
    for query, values, limit in UNPROVEN:
        on.query("SELECT arrow_cache.flush()")
        for _ in range(2):
            expected = fetch(off, query, values, limit)
            assert types(expected).endswith("D" * limit + "sZ"), query
            assert fetch(on, query, values, limit) == expected, query
            assert on.status() == "MISS", query
        assert cached(on) == 0, query


def test_in_parts_up_to_the_proven_end(both):
    """The last row that can be is read by the second part; the portal ends as it does without the cache."""
    on, off = both
    for status in ("MISS", "HIT"):
        answers = []
        for client in (off, on):
            client.query("BEGIN")
            client.parse("SELECT a FROM t ORDER BY b LIMIT 3").bind(portal="p").step("2")
            answer = [client.execute("p", part).step("s", "C") for part in (2, 1)]
            client.sync()
            if client is on and status == "MISS":
                assert cached(on) == 1, "stored when the last row was read"
            answer.append(client.execute("p", 1).step("s", "C"))
            client.sync()
            client.query("COMMIT")
            answers.append(answer)
        assert answers[0] == answers[1]
        assert [types(part) for part in answers[0]] == ["DDs", "Ds", "C"]
        assert data_rows(on.query("SELECT a FROM t ORDER BY b LIMIT 3")) == data_rows(off.query("SELECT a FROM t ORDER BY b LIMIT 3"))
        assert on.status() == "HIT"


@pytest.mark.parametrize("empty", [
    "SELECT a FROM t LIMIT 0 OFFSET -1",
    "SELECT a FROM t LIMIT 0 OFFSET (SELECT 1 / min(n) FROM small)",
])
def test_a_part_without_rows_whose_beginning_raises(both, empty):
    """It begins behind the last row: nothing is stored that would hide the error."""
    on, off = both
    query = f"SELECT b FROM t WHERE a = 7 UNION ALL (SELECT 'none' FROM ({empty}) s)"
    for limit, expected in ((1, "12TDsZ"), (0, "12TDEZ"), (1, "12TDsZ"), (2, "12TDEZ")):
        answer = fetch(on, query, [], limit)
        assert answer == fetch(off, query, [], limit) and types(answer) == expected
    assert cached(on) == 0
