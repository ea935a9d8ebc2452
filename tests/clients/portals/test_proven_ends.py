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


def test_a_key_that_was_not_unique_for_an_old_snapshot(both, session, other):
    """An older snapshot sees both rows, though the index was made later."""
    session.execute("CREATE TABLE twice (a int, b int); INSERT INTO twice VALUES (1, 1), (1, 2)")
    with other.transaction():
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert other.rows("SELECT count(*) FROM small") == [(3,)]
        session.execute("DELETE FROM twice WHERE b = 2")
        session.execute("CREATE UNIQUE INDEX ON twice (a)")
        other.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off")
        other.execute("DECLARE c NO SCROLL CURSOR FOR SELECT b FROM twice WHERE a = 1")
        assert other.rows("FETCH 1 FROM c") == [(1,)]
        assert other.rows("FETCH 1 FROM c") == [(2,)]
    assert session.rows("SELECT count(*) FROM arrow_cache.entries WHERE query ILIKE '%twice%'") == [(0,)]
    assert session.rows("SELECT b FROM twice WHERE a = 1") == [(1,)]


def test_an_invalid_index_proves_nothing(both, session):
    session.execute("CREATE TABLE doubled (a int, b int); INSERT INTO doubled VALUES (1, 1), (1, 2)")
    with pytest.raises(Exception, match="could not create unique index"):
        session.execute("CREATE UNIQUE INDEX CONCURRENTLY broken ON doubled (a)")
    on, off = both
    assert fetch(on, "SELECT b FROM doubled WHERE a = 1", [], 1) == fetch(off, "SELECT b FROM doubled WHERE a = 1", [], 1)
    assert cached(on) == 0
    assert len(data_rows(fetch(on, "SELECT b FROM doubled WHERE a = 1", [], 0))) == 2


AT_ONE_MOMENT = [
    ("Europe/Berlin", "SELECT v FROM clock WHERE t = timestamptz '2024-03-31 01:30+00'", 2),
    ("Europe/Berlin", "SELECT v FROM clock WHERE timestamptz '2024-03-31 01:30+00' = t ORDER BY v", 2),
    ("UTC", "SELECT v FROM clock WHERE t = timestamptz '2024-03-31 02:30+00'", 1),
    ("Pacific/Apia", "SELECT v FROM days WHERE t = timestamptz '2011-12-30 10:00+00'", 2),
]


def test_different_values_that_are_equal_to_one_of_another_type(both, session):
    """When clocks go forward, the hour that is left out is the same moment as the next one: a unique column has two rows for it."""
    session.execute("""
        CREATE TABLE clock (t timestamp PRIMARY KEY, v int); INSERT INTO clock VALUES ('2024-03-31 02:30', 1), ('2024-03-31 03:30', 2);
        CREATE TABLE days (t date PRIMARY KEY, v int); INSERT INTO days VALUES ('2011-12-30', 1), ('2011-12-31', 2)""")
    on, off = both
    for scans in ("", "SET enable_seqscan = off", "SET enable_seqscan = off; SET enable_indexscan = off"):
        for zone, query, rows in AT_ONE_MOMENT:
            for client in both:
                client.query(f"RESET enable_seqscan; RESET enable_indexscan; SET timezone = '{zone}'; {scans}")
            on.query("SELECT arrow_cache.flush()")
            assert fetch(on, query, [], 1) == fetch(off, query, [], 1), query
            answer = fetch(on, query, [], 0)
            assert answer == fetch(off, query, [], 0) and len(data_rows(answer)) == rows, query


def test_types_that_are_compared_exactly(both, session):
    session.execute("""
        CREATE TABLE exact (i smallint PRIMARY KEY, f real UNIQUE, n name UNIQUE, t timestamp UNIQUE, tz timestamptz UNIQUE);
        INSERT INTO exact VALUES (1, 0.5, 'x', '2024-01-01', '2024-01-01'), (2, 1.5, 'y', '2024-01-02', '2024-01-02')""")
    on, off = both
    for query in ("SELECT n FROM exact WHERE i = 1::bigint", "SELECT i FROM exact WHERE f = 0.5::float8",
                  "SELECT i FROM exact WHERE n = 'x'::text", "SELECT i FROM exact WHERE t = date '2024-01-01'",
                  "SELECT i FROM exact WHERE tz = timestamptz '2024-01-01'"):
        expected = fetch(off, query, [], 1)
        for status in ("MISS", "HIT"):
            assert fetch(on, query, [], 1) == expected and types(expected) == "12TDsZ", query
            assert on.status() == status, query
        assert fetch(on, query, [], 0) == fetch(off, query, [], 0), query


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
