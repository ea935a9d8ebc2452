"""Cursors that are read in parts while the time zone changes in between. A plan may compute all rows before it gives the first one, or each when it
is read: an answer that is served is fixed from the first row on. A change before that row shows, whatever the plan."""

import pytest

from support.wire import data_rows

# The day of this moment is another one in New York.
DAY = "(timestamptz '2026-01-05 UTC')::date"
SET_ZONE = "SET LOCAL timezone = 'America/New_York'"
NO_OTHER_JOIN = {"hash": ["mergejoin", "nestloop"], "merge": ["hashjoin", "nestloop"], "loop": ["hashjoin", "mergejoin"]}
BY_INDEX = ["seqscan", "bitmapscan"]

# What the planner must not use, the query, nodes of its plan.
COMPUTED_FIRST = {
    "groups above a sort": (["hashagg"], f"SELECT n, count(*) FROM t WHERE ts::date > {DAY} GROUP BY n ORDER BY n", ["GroupAggregate", "Sort"]),
    "a hash table": (["sort"], f"SELECT n, count(*) FROM t WHERE ts::date > {DAY} GROUP BY n", ["HashAggregate"]),
    "keys of a B-tree": (BY_INDEX, f"SELECT d, count(*) FROM u WHERE d > {DAY} GROUP BY d ORDER BY d", ["GroupAggregate", "Index Only Scan"]),
    "a partial sort": ([*BY_INDEX, "hashagg"], f"SELECT d, v, count(*) FROM u WHERE d > {DAY} GROUP BY d, v ORDER BY d, v",
                       ["Incremental Sort", "Index Scan"]),
    "a limit": (["hashagg"], f"SELECT n, count(*) FROM t WHERE ts::date > {DAY} GROUP BY n ORDER BY n LIMIT 4", ["Limit", "GroupAggregate", "Sort"]),
    "a sub-query": (["hashagg"], f"SELECT x.n, x.c + 1 FROM (SELECT n, count(*) AS c FROM t WHERE ts::date > {DAY} GROUP BY n ORDER BY n LIMIT 5) x",
                    ["Subquery Scan", "Sort"]),
    "a window": ([], f"SELECT id, count(*) OVER (ORDER BY v, id) FROM t WHERE ts::date > {DAY}", ["WindowAgg", "Sort"]),
    "the hashed side": (NO_OTHER_JOIN["hash"], f"SELECT a.id, b.d FROM t a JOIN u b ON a.n = b.id WHERE b.d > {DAY}", ["Hash Join"]),
    "sides that are sorted": ([*NO_OTHER_JOIN["merge"], "indexscan"], f"SELECT a.id, b.d FROM t a JOIN u b ON a.id = b.id WHERE b.d > {DAY}",
                              ["Merge Join", "Sort"]),
    "a sub-query in an expression": (["hashagg"], f"SELECT n, count(*) FROM t WHERE n < (SELECT count(*) FROM u WHERE d > {DAY}) - 2 GROUP BY n ORDER BY n",
                                     ["InitPlan", "GroupAggregate", "Sort"]),
    "a loop": (["hashagg"], f"SELECT a.n, b.id FROM (SELECT n, count(*) FROM t WHERE ts::date > {DAY} GROUP BY n ORDER BY n) a LEFT JOIN u b ON b.id > a.n + 2",
               ["Nested Loop", "Sort", "Materialize"]),
    "one group, read without its end": ([], f"SELECT n, count(*) FROM t WHERE n = 3 AND ts::date > {DAY} GROUP BY n", ["GroupAggregate"]),
}
COMPUTED_LATER = {
    "a column": ([], "SELECT id, max(ts)::text FROM t GROUP BY id ORDER BY id", ["GroupAggregate"]),
    "a column above a hash table": (["sort"], "SELECT n, max(ts)::text FROM t GROUP BY n", ["HashAggregate"]),
    "a condition of a scan": ([*BY_INDEX, "hashagg"], "SELECT id, count(*) FROM t WHERE ts::time < '06:00' GROUP BY id ORDER BY id", ["Index Scan"]),
    "the side that is not hashed": (NO_OTHER_JOIN["hash"], "SELECT a.id, b.d FROM t a JOIN u b ON a.n = b.id WHERE a.ts::time < '06:00'", ["Hash Join"]),
    "the condition of a hash join": (NO_OTHER_JOIN["hash"], "SELECT a.id, b.d FROM t a JOIN u b ON a.n = b.id AND a.ts::date > b.d + 5", ["Hash Join"]),
    "sides that are not sorted": ([*NO_OTHER_JOIN["merge"], "sort", "seqscan", "bitmapscan"],
                                  "SELECT a.id, b.id FROM t a JOIN u b ON a.id = b.id WHERE a.ts::time < '12:00'", ["Merge Join", "Index Scan"]),
    "a side that has not begun": (NO_OTHER_JOIN["merge"], f"""SELECT nullif(a.n, 6) AS k, b.d FROM t a LEFT JOIN (SELECT * FROM u WHERE d > {DAY}) b
                                                               ON nullif(a.n, 6) = b.id ORDER BY k DESC""", ["Merge Left Join", "Sort"]),
    "the condition of a loop": ([], "SELECT a.id, b.id FROM u a JOIN t b ON b.id > a.id AND b.ts::date > a.d", ["Nested Loop"]),
    "the inner side of a loop": (NO_OTHER_JOIN["loop"], "SELECT a.id, b.id FROM u a JOIN t b ON b.id = a.id WHERE b.ts::time < '12:00'", ["Nested Loop"]),
    "a sub-query in an expression": ([], f"SELECT id, sum(n) FROM t GROUP BY id HAVING id < 5 OR sum(n) > (SELECT count(*) FROM u WHERE d > {DAY}) / 3.0 ORDER BY id",
                                     ["InitPlan"]),
    "a window's input": (BY_INDEX, "SELECT id, sum(n) OVER (ORDER BY id) FROM t WHERE ts::time < '06:00'", ["WindowAgg", "Index Scan"]),
    "a window's frame": (["seqscan"], "SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW) - extract(hour FROM ts) FROM t",
                         ["WindowAgg"]),
    "a group behind the last row": (BY_INDEX, "SELECT id, count(*) FROM t WHERE id IN (3, 4) GROUP BY id HAVING max(ts)::date < '2026-01-02' ORDER BY id",
                                    ["GroupAggregate"]),
}


@pytest.fixture
def tables(session):
    session.execute("""
        SET timezone = 'UTC';
        CREATE TABLE t (id int PRIMARY KEY, n int, ts timestamptz, v text);
        INSERT INTO t SELECT g, g % 7, timestamptz '2026-01-01 UTC' + g * interval '7 hours', repeat('v', g % 5) || g FROM generate_series(1, 40) g;
        CREATE TABLE u (id int PRIMARY KEY, d date, v text);
        INSERT INTO u SELECT g, date '2026-01-01' + g, 'u' || g FROM generate_series(1, 12) g;
        CREATE INDEX ON u (d);
        ANALYZE t, u""")
    return session


def prepare(session, without, query, nodes):
    """Has the query planned in its way, and its answer stored."""
    for kind in without:
        session.execute(f"SET enable_{kind} = off")
    plan = "\n".join(line for line, in session.rows(f"EXPLAIN DECLARE c NO SCROLL CURSOR FOR {query}"))
    assert all(node in plan for node in nodes), plan
    session.rows(query)
    session.rows(query)
    assert session.status() == "HIT"


def read(session, query, *steps, kind="NO SCROLL", enabled=True):
    """(what became of the query, the rows of each step) of a cursor."""
    session.execute(f"SET pg_arrow_cache.enabled = {'on' if enabled else 'off'}")
    before = counters(session)
    found = []
    with session.transaction():
        session.execute(f"DECLARE c {kind} CURSOR FOR {query}")
        for step in steps:
            done = session.execute(step)
            found.append(done.fetchall() if done.description else None)
    hits, refused = (after - then for after, then in zip(counters(session), before))
    session.execute("SET pg_arrow_cache.enabled = on")
    assert hits + refused == int(enabled)
    return ("HIT" if hits else "BYPASS"), found


def counters(session):
    """How many hits there were, and bypasses because of what may change while a cursor is read."""
    return session.rows("""SELECT hits, (SELECT coalesce(sum(statements), 0)::int FROM arrow_cache.bypass_reasons WHERE reason = 'settings_in_cursor')
                             FROM arrow_cache.stats""")[0]


CASES = {**COMPUTED_FIRST, **{f"{name}, computed later": case for name, case in COMPUTED_LATER.items()}}
IN_PARTS = ["FETCH 1 FROM c", SET_ZONE, "FETCH 2 FROM c", "FETCH ALL FROM c"]


def without_change(session, query, steps, kind="NO SCROLL"):
    """The rows of each step in a session whose zone stays."""
    _, rows = read(session, query, *[step for step in steps if step != SET_ZONE], kind=kind, enabled=False)
    rows = iter(rows)
    return [None if step == SET_ZONE else next(rows) for step in steps]


@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_fixed(tables, case):
    without, query, nodes = CASES[case]
    prepare(tables, without, query, nodes)
    assert read(tables, query, *IN_PARTS) == ("HIT", without_change(tables, query, IN_PARTS))


@pytest.mark.parametrize("case", CASES)
def test_a_change_before_the_first_row_shows(tables, case):
    without, query, nodes = CASES[case]
    prepare(tables, without, query, nodes)
    steps = [SET_ZONE, "FETCH 1 FROM c", "FETCH ALL FROM c"]
    _, expected = read(tables, query, *steps, enabled=False)
    assert expected != without_change(tables, query, steps) or case in ("a loop", "a limit"), "the change shows"
    assert read(tables, query, *steps) == ("BYPASS", expected)


@pytest.mark.parametrize("first", ["FETCH ALL FROM c", "FETCH 39 FROM c", "FETCH LAST FROM c", "FETCH ABSOLUTE 2 FROM c"])
def test_rows_that_are_read_again(tables, first):
    query = "SELECT id, max(ts)::text FROM t GROUP BY id ORDER BY id"
    prepare(tables, [], query, ["GroupAggregate"])
    steps = [first, SET_ZONE, "FETCH RELATIVE 0 FROM c", "FETCH FIRST FROM c", "FETCH LAST FROM c", "FETCH BACKWARD ALL FROM c"]
    assert read(tables, query, *steps, kind="SCROLL") == ("HIT", without_change(tables, query, steps, kind="SCROLL"))


def test_a_portal_over_workers(tables, wire):
    """A portal that is read in parts runs the part of the workers itself."""
    query = f"SELECT n, count(*) FROM t WHERE ts::date > {DAY} GROUP BY n ORDER BY n"
    answers = []
    for enabled in ("off", "on"):
        client = wire(timezone="UTC", **{"pg_arrow_cache.enabled": enabled})
        client.query("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2; SET enable_hashagg = off")
        plan = b"\n".join(row[0] for row in data_rows(client.query(f"EXPLAIN {query}")))
        assert b"Gather Merge" in plan, plan
        for _ in range(2):
            client.query(query)
        before = counters(tables)
        client.query("BEGIN")
        rows = data_rows(client.parse(query).bind().execute(max_rows=1).step("s"))
        client.parse(SET_ZONE, "zone").bind(portal="zone", name="zone").execute("zone").step("C")
        answers.append(rows + data_rows(client.execute().sync()))
        client.query("COMMIT")
    assert answers[0] == answers[1]
    assert [after - then for after, then in zip(counters(tables), before)] == [1, 0]
