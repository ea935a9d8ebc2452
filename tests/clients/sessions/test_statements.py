"""The view `statements`: its sums are those of `stats`, also of sessions that gather, that are idle, and that have ended; outdated answers are
counted apart; it joins with pg_stat_statements (docs/operations.md does that)."""

import threading

import pytest

SUMS = "SELECT sum(hits)::int, sum(misses)::int, sum(stale)::int, sum(stale_hits)::int, sum(bypasses)::int FROM {}"


@pytest.fixture
def asking(connect, session):
    """Makes sessions of a role that nobody else is, with query ids."""
    session.execute(f"CREATE ROLE counted; GRANT USAGE ON SCHEMA {connect.schema} TO counted")
    session.execute("CREATE TABLE t AS SELECT g AS n FROM generate_series(1, 100) g; GRANT SELECT, UPDATE ON t TO counted")
    session.execute("SET compute_query_id = on; SELECT arrow_cache.reset_stats()")
    yield lambda options="": connect(f"-c role=counted -c compute_query_id=on {options}")
    session.execute("DROP OWNED BY counted; DROP ROLE counted")


def counted(session):
    """(hits, misses, stale, stale_hits, bypasses) of the role."""
    return session.rows(SUMS.format("arrow_cache.statements") + " WHERE userid = 'counted'::regrole")[0]


def test_sums_are_those_of_stats(asking, session):
    sessions = [asking() for _ in range(6)]
    # More statements than a session gathers of at once, and bursts of one.
    queries = [f"SELECT sum(n), {column} AS c FROM t WHERE n > 3" for column in ("1", "2 + 2", "min(n)", "max(n)", "count(*)", "avg(n)", "sum(n + 1)", "1.5", "'x'")]

    def ask(number, one):
        for round in range(40):
            one.execute(queries[(number + round) % len(queries)])
        for _ in range(100):
            one.execute(queries[number])
        one.execute("SELECT count(n + random()) FROM t")

    threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # All are idle, and nothing waits to be told.
    hits, misses, stale, stale_hits, bypasses = counted(session)
    assert hits + misses == len(sessions) * 140 and misses >= len(queries) and (stale, stale_hits) == (0, 0)
    assert bypasses == len(sessions)
    assert session.rows("SELECT hits::int, misses::int FROM arrow_cache.stats") == [(hits, misses)]
    for one in sessions:
        one.close()
    assert counted(session) == (hits, misses, stale, stale_hits, bypasses)
    assert session.rows("SELECT statements_dropped FROM arrow_cache.stats") == [(0,)]
    saved = session.rows("SELECT sum(time_saved_ms) FROM arrow_cache.statements")[0][0]
    assert saved == pytest.approx(session.rows("SELECT time_saved_ms FROM arrow_cache.stats")[0][0])


def test_outdated_answers_are_counted_apart(asking, session):
    one = asking("-c pg_arrow_cache.max_stale=1min")
    query = "SELECT sum(n) FROM t WHERE n > 5"
    one.execute(query)
    session.execute("UPDATE t SET n = n WHERE n = 1")
    one.execute(query)
    assert one.status() == "STALE_HIT"
    one.execute("SET pg_arrow_cache.max_stale = 0")
    one.execute(query)
    assert one.status() == "STALE"
    one.execute(query)
    assert counted(session) == (1, 1, 1, 1, 0)


def test_bound_and_verified_hits(asking, session):
    one = asking()
    query = "SELECT n FROM t ORDER BY n"
    one.execute(query)
    one.execute(query, prepare=True)
    assert one.status() == "HIT"
    assert counted(session)[:2] == (1, 1)
    session.execute("GRANT SET ON PARAMETER pg_arrow_cache.verify_sample_rate TO counted")
    one.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    one.execute(query)
    assert one.status() == "HIT"
    assert counted(session)[:2] == (2, 1)
    session.execute("REVOKE SET ON PARAMETER pg_arrow_cache.verify_sample_rate FROM counted")


def test_a_shown_clock(asking, session):
    one = asking()
    for _ in range(3):
        one.execute("SELECT now() AS at, count(*) FROM t WHERE n > 7")
    assert one.status() == "HIT"
    assert counted(session)[:2] == (2, 1)
    ids = session.rows("SELECT count(*) FROM arrow_cache.statements WHERE userid = 'counted'::regrole AND hits + misses > 0")
    assert ids == [(1,)]
