"""Locks of others on what a statement does not read, but a search for the rows next to a time would: the statement does not wait for them."""

import pytest
from support.windows import START, after, sessions

TABLES = {
    "partitions": """
        CREATE TABLE log (id int, tenant int, at timestamptz) PARTITION BY LIST (tenant);
        CREATE TABLE log_0 PARTITION OF log FOR VALUES IN (0);
        CREATE TABLE log_1 PARTITION OF log FOR VALUES IN (1) PARTITION BY RANGE (id);
        CREATE TABLE log_1_low PARTITION OF log_1 FOR VALUES FROM (MINVALUE) TO (1000);
        CREATE TABLE log_2 PARTITION OF log FOR VALUES IN (2);
        CREATE INDEX ON log (at)""",
    "children": """
        CREATE TABLE log (id int, tenant int, at timestamptz);
        CREATE TABLE log_0 (CHECK (tenant = 0)) INHERITS (log);
        CREATE TABLE log_2 (CHECK (tenant = 2)) INHERITS (log);
        CREATE INDEX log_2_at_idx ON log_2 (at)""",
}
ROWS = "INSERT INTO log SELECT g, g % 3, timestamptz '2026-03-10 11:58:00' + g * interval '7 seconds' FROM generate_series(1, 60) g"
SOME = "SELECT count(*), min(id) FROM {} WHERE tenant IN (0, 1) AND at > now() - interval '1 minute'"
ONE = "SELECT count(*), min(id) FROM log WHERE tenant = {} AND at > now() - interval '1 minute'"
LOCKS = ("LOCK TABLE log_2 IN ACCESS EXCLUSIVE MODE", "REINDEX INDEX log_2_at_idx")


@pytest.fixture
def logged(server, request):
    server.set(str(START))
    server.psql(f"SET TimeZone = UTC; DROP TABLE IF EXISTS log CASCADE; {TABLES[request.param]}; {ROWS}")
    return server


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("logged, table", [("partitions", "log"), ("children", "ONLY log")], indirect=["logged"])
def test_tables_that_are_not_read(logged, at, table, lock):
    cached, plain = sessions(at, "-c lock_timeout=1s")
    other, _ = sessions(at)
    question = SOME.format(table)
    assert cached.rows(question) == plain.rows(question)
    assert cached.rows(question) == plain.rows(question)
    assert cached.outcome() == ("HIT", None)
    other.execute("BEGIN")
    other.execute(lock)
    logged.set(after(31))
    for _ in range(2):
        assert cached.rows(question) == plain.rows(question)
        assert cached.outcome() == ("BYPASS", "moving_clock")
    other.execute("ROLLBACK")
    for outcome in ("MISS", "HIT"):
        assert cached.rows(question) == plain.rows(question)
        assert cached.status() == outcome


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("logged", ["partitions"], indirect=True)
def test_partitions_of_other_tenants(logged, at, lock):
    """They have no rows that are searched, so nobody asks for their locks."""
    cached, plain = sessions(at, "-c lock_timeout=1s -c plan_cache_mode=force_custom_plan")
    other, _ = sessions(at)
    cached.execute(f"PREPARE kept (int) AS {ONE.format('$1')}")
    other.execute("BEGIN")
    other.execute(lock)
    for tenant in (0, 1):
        expected = plain.rows(ONE.format(tenant))
        for text in (ONE.format(tenant), f"EXECUTE kept ({tenant})"):
            for outcome in ("MISS", "HIT"):
                assert cached.rows(text) == expected
                assert cached.outcome() == (outcome, None), text


def test_many_partitions_that_are_not_read(server, at):
    """Planning the search would take longer than the statement, unless it is for one of them."""
    server.set(str(START))
    server.psql("DROP TABLE IF EXISTS log CASCADE; CREATE TABLE log (id int, tenant int, at timestamptz) PARTITION BY LIST (tenant)")
    partitions = (f"CREATE TABLE log_{tenant} PARTITION OF log FOR VALUES IN ({tenant})" for tenant in range(300))
    server.psql("; ".join(partitions))
    server.psql(f"SET TimeZone = UTC; CREATE INDEX ON log (at); {ROWS}; ANALYZE log")
    cached, plain = sessions(at)
    for question, outcome in ((SOME.format("log"), ("BYPASS", "moving_clock")), (ONE.format(1), ("HIT", None))):
        for _ in range(2):
            assert cached.rows(question) == plain.rows(question)
        assert cached.outcome() == outcome
    server.psql("DROP TABLE log")


@pytest.mark.parametrize("logged", ["partitions"], indirect=True)
def test_explain_locks_what_the_plan_reads(logged, at):
    """What would be searched to store an answer is not asked before one is stored: planning that may take longer than EXPLAIN itself."""
    scan = "-c enable_indexscan=off -c enable_indexonlyscan=off -c enable_bitmapscan=off"
    locked = []
    for session in sessions(at, f"-c plan_cache_mode=force_generic_plan {scan}"):
        session.execute(f"PREPARE kept (int) AS {ONE.format('$1')}")
        session.execute("EXPLAIN EXECUTE kept (1)")
        session.execute("BEGIN")
        session.execute("EXPLAIN EXECUTE kept (1)")
        locked.append(session.rows(
            "SELECT relation::regclass::text FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384 ORDER BY 1"))
        session.execute("ROLLBACK")
    with_cache, without = locked
    assert ("log_1_low",) in without
    assert with_cache == without
