"""verify_sample_rate: a hit that is executed as well looks like any other to a client, until the two answers differ."""

import pytest

from support.wire import data_rows, types

QUERY = "SELECT a FROM t ORDER BY a"
ALL = [[b"%d" % n] for n in range(1, 11)]


@pytest.fixture
def stored(session):
    """A stored answer, and counters at zero."""
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    session.rows(QUERY)
    session.execute("SELECT arrow_cache.reset_stats()")
    return session


@pytest.fixture
def client(stored, wire):
    client = wire()
    client.query("SET pg_arrow_cache.verify_sample_rate = 1")
    return client


def counts(session):
    return session.rows("SELECT hits, verify_checks, verify_mismatches FROM arrow_cache.stats")[0]


@pytest.mark.parametrize("steps", [[0], [3, 0], [3, 3, 3, 3], [11], [10, 1]])
def test_read_to_its_end_in_any_steps(client, stored, steps):
    client.query("BEGIN")
    client.parse(QUERY).bind(portal="p").step("2")
    read = []
    for step in steps:
        read += data_rows(client.execute("p", step).step("s", "C"))
    client.sync()
    assert read == ALL
    client.query("COMMIT")
    assert counts(stored) == (1, 1, 0)


@pytest.mark.parametrize("end", ["close", "commit", "rollback"])
def test_left_half_read(client, stored, end):
    client.query("BEGIN")
    client.parse(QUERY).bind(portal="p").step("2")
    assert data_rows(client.execute("p", 9).step("s")) == ALL[:9]
    if end == "close":
        client.close_portal("p").sync()
        client.query("COMMIT")
    else:
        client.sync()
        client.query(end.upper())
    assert counts(stored) == (1, 0, 0)
    assert stored.execute("SELECT arrow_cache.flush()").fetchone()[0] == 1
    assert data_rows(client.query(QUERY)) == ALL
    assert client.status() == "MISS"


def test_two_at_once(client, stored):
    client.query("BEGIN")
    client.parse(QUERY, "s").bind(portal="x", name="s").bind(portal="y", name="s").step("2")
    read = {"x": [], "y": []}
    for _ in range(4):
        for portal in read:
            read[portal] += data_rows(client.execute(portal, 3).step("s", "C"))
    assert read == {"x": ALL, "y": ALL}
    client.sync()
    client.query("COMMIT")
    assert counts(stored) == (2, 2, 0)


def test_settings_that_change_before_the_rows_are_read(client, stored):
    """The execution notices, and gives other values than are stored: that is no difference."""
    query = "SELECT (date '2020-01-01' + a)::text FROM t WHERE a = 1"
    assert stored.rows(query) == [("2020-01-02",)]
    stored.execute("SELECT arrow_cache.reset_stats()")
    client.parse(query).bind().step("2")
    client.parse("SET datestyle = German", "s").bind(portal="s", name="s").execute("s").step("C")
    assert data_rows(client.execute().sync()) == [[b"02.01.2020"]]
    assert counts(stored) == (1, 0, 0)
    stored.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    assert stored.rows(query) == [("2020-01-02",)]
    assert counts(stored) == (2, 1, 0)


def test_labels_that_change_before_the_rows_are_read(client, stored, other):
    """The same, with a definition that no lock protects and that another session changes."""
    stored.execute("CREATE TYPE mood AS ENUM ('low', 'high'); CREATE TABLE m (v mood); INSERT INTO m VALUES ('high')")
    query = "SELECT v::text FROM m"
    assert stored.rows(query) == [("high",)]
    stored.execute("SELECT arrow_cache.reset_stats()")
    client.parse(query).bind().step("2")
    other.execute("ALTER TYPE mood RENAME VALUE 'high' TO 'up'")
    assert data_rows(client.execute().sync())[0][0] in (b"high", b"up")
    assert counts(stored) == (1, 0, 0)


@pytest.mark.parametrize("binary", [False, True])
def test_what_the_client_reads_is_the_same(stored, binary):
    query = "SELECT a, a::numeric / 3 AS b, repeat('x', a * 1000) AS c, (a, 'y')::text AS d FROM t"
    expected = stored.rows(query, binary=binary)
    stored.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    stored.execute("SELECT arrow_cache.reset_stats()")
    assert sorted(stored.rows(query, binary=binary)) == sorted(expected)
    assert counts(stored) == (1, 1, 0)


def test_a_difference_names_the_query(stored, other):
    other.execute("CREATE EXTENSION IF NOT EXISTS pg_surgery SCHEMA public")
    stored.rows(QUERY)
    stored.execute("SELECT public.heap_force_kill('t', ARRAY['(0,4)']::tid[])")
    stored.execute("SELECT arrow_cache.reset_stats()")
    stored.execute("SET compute_query_id = on")
    stored.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    heard = []
    stored.add_notice_handler(lambda diag: heard.append((diag.severity, diag.sqlstate, diag.message_primary, diag.message_detail)))
    assert [row[0] for row in stored.rows(QUERY)] == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert stored.status() == "HIT"
    plan = stored.rows("EXPLAIN (VERBOSE, FORMAT JSON) " + QUERY)[0][0][0]
    assert heard == [("WARNING", "01000", f"the cached result of query {plan['Query Identifier']} differs from executing it",
                      "The cache held 10 rows, executing gave 9.")]
    assert counts(stored) == (1, 1, 1)
    assert [row[0] for row in stored.rows(QUERY)] == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert stored.status() == "MISS"
    assert len(heard) == 1


def test_the_portal_answers_as_usual_after_a_difference(client, stored, other):
    other.execute("CREATE EXTENSION IF NOT EXISTS pg_surgery SCHEMA public")
    stored.rows(QUERY)
    other.execute("SELECT public.heap_force_kill('t', ARRAY['(0,10)']::tid[])")
    answer = client.parse(QUERY).bind().execute().sync()
    assert types(answer).replace("N", "") == "12" + "D" * 9 + "CZ"
    assert counts(stored)[1:] == (1, 1)


def verification(session):
    return session.rows("SELECT hits, verify_samples, verify_checks, verify_mismatches FROM arrow_cache.stats")[0]


def test_rows_that_sort_alike_may_come_in_another_order(session):
    session.execute("CREATE TABLE ties AS SELECT g % 5 AS k, g AS id FROM generate_series(1, 1000) g")
    session.execute("CREATE INDEX ON ties (k, id DESC)")
    session.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    for limit, compared in (("", 1), ("LIMIT 250", 0), ("LIMIT 1000", 0), ("LIMIT 1001", 1), ("LIMIT 1001 OFFSET 0", 0),
                            ("FETCH FIRST 1001 ROWS WITH TIES", 1)):
        query = f"SELECT k, id FROM ties ORDER BY k {limit}"
        for plan in ("off", "on"):
            session.execute(f"SET enable_indexscan = {plan}; SET enable_indexonlyscan = {plan}; SET enable_bitmapscan = {plan}")
            session.execute(f"SET enable_sort = {'off' if plan == 'on' else 'on'}")
            session.execute("SELECT arrow_cache.reset_stats()")
            session.rows(query)
        assert verification(session) == (1, 1, compared, 0)


def compared_with_limit(session, query, ask):
    session.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    session.execute(query)
    ask(2)
    session.execute("SELECT arrow_cache.reset_stats()")
    ask(2)
    assert session.status() == "HIT"
    return verification(session)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("limit, compared", [("$1 + 98", 0), ("$1 + 99", 1), ("nullif($1, 2)", 0)])
def test_a_limit_that_a_parameter_gives(session, mode, limit, compared):
    session.execute("CREATE TABLE few AS SELECT g AS id FROM generate_series(1, 100) g")
    session.execute(f"SET plan_cache_mode = {mode}")
    prepare = f"PREPARE q(bigint) AS SELECT id FROM few ORDER BY id LIMIT {limit}"
    found = compared_with_limit(session, prepare, lambda value: session.rows(f"EXECUTE q({value})"))
    # What the plan computes when it runs is not known before.
    assert found == (1, 1, compared if mode == "force_custom_plan" else 0, 0)


def test_a_node_above_the_limit(session):
    session.execute("CREATE TABLE few AS SELECT g AS id FROM generate_series(1, 100) g")
    setting = "debug_parallel_query" if session.info.server_version >= 160000 else "force_parallel_mode"
    session.execute(f"SET {setting} = on; SET max_parallel_workers_per_gather = 2")
    query = "SELECT id FROM few ORDER BY id LIMIT 3"
    assert compared_with_limit(session, "SELECT 1", lambda _: session.rows(query)) == (1, 1, 0, 0)


def test_a_difference_below_the_limit_is_told(session):
    session.execute("CREATE EXTENSION IF NOT EXISTS pg_surgery SCHEMA public")
    session.execute("CREATE TABLE few AS SELECT g AS id FROM generate_series(1, 100) g")
    session.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    # Row 100 has gone when the first is executed, row 99 when the second is.
    for limit, row, told in ((101, 100, (1, 1)), (50, 99, (0, 0))):
        query = f"SELECT id FROM few ORDER BY id LIMIT {limit}"
        session.rows(query)
        session.execute("SELECT arrow_cache.reset_stats()")
        session.execute(f"SELECT public.heap_force_kill('few', ARRAY['(0,{row})']::tid[])")
        session.rows(query)
        assert verification(session)[2:] == told


def test_what_is_computed_from_an_answer_is_not_compared(session):
    session.execute("CREATE TABLE ties AS SELECT g AS id FROM generate_series(1, 1000) g")
    session.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    query = "SELECT id, now() - timestamptz '2026-01-01' AS since FROM ties"
    session.rows(query)
    session.execute("SELECT arrow_cache.reset_stats()")
    session.rows(query)
    assert session.status() == "HIT"
    assert verification(session) == (1, 1, 0, 0)
