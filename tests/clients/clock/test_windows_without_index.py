"""Columns without an index that are compared with a time to the microsecond: a small table is read to find the rows around the time, a large one is
not, and `why` tells which column needs an index."""

import pytest
from support.windows import START, after, sessions

SCHEMA = """
    SET TimeZone = UTC;
    DROP TABLE IF EXISTS log, large CASCADE;
    CREATE TABLE log (id int, at timestamptz);
    INSERT INTO log SELECT g, timestamptz '2026-03-10 11:58:00' + g * interval '10 seconds' FROM generate_series(1, 40) g;
    CREATE TABLE large (id int, at timestamptz, filler text);
    INSERT INTO large SELECT id, at, repeat('x', 1000) FROM log, generate_series(1, 150);
    ANALYZE log, large;
"""
QUESTION = "SELECT count(*), min(id) FROM {} WHERE at > now() - interval '20 seconds'"


@pytest.fixture
def logged(server):
    server.set(str(START))
    server.psql(SCHEMA + "SELECT arrow_cache.flush()")
    return server


def test_a_small_table(logged, at):
    """What one session has stored, all sessions get up to the next row."""
    (one, plain), (other, _) = sessions(at), sessions(at)
    question = QUESTION.format("log")
    statuses = []
    for second in range(1, 30):
        logged.set(after(second))
        for session in (one, other):
            assert session.rows(question) == plain.rows(question)
            statuses.append(session.status())
    missed = [number for number, status in enumerate(statuses) if status != "HIT"]
    # Both sessions ask in each second; rows leave at the tenth and the twentieth.
    assert missed == [0, 2 * 9, 2 * 19] and set(statuses) == {"HIT", "MISS"}, statuses


def test_a_large_table(logged, at):
    cached, plain = sessions(at)
    question = QUESTION.format("large")
    for _ in range(3):
        assert cached.rows(question) == plain.rows(question)
        assert (cached.status(), cached.reason()) == ("BYPASS", "moving_clock")
    cacheable, detail = cached.rows("SELECT cacheable, detail FROM arrow_cache.why(%s)", [question])[0]
    assert not cacheable and "compares at of public.large" in detail and "B-tree" in detail
    plain.execute("CREATE INDEX ON large (at)")
    for status in ("MISS", "HIT"):
        assert cached.rows(question) == plain.rows(question)
        assert cached.status() == status
    assert cached.rows("SELECT cacheable FROM arrow_cache.why(%s)", [question]) == [(True,)]


def test_a_search_that_costs_little_beside_the_statement(logged, at):
    cached, plain = sessions(at)
    question = "SELECT count(*) FROM large a JOIN large b USING (id) WHERE a.at > now() - interval '20 seconds'"
    for status in ("MISS", "HIT"):
        assert cached.rows(question) == plain.rows(question)
        assert cached.status() == status


def test_asking_reads_no_table(logged, at):
    cached, plain = sessions(at)
    scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'log'"
    before = plain.rows(scans)
    cached.rows("SELECT cacheable FROM arrow_cache.why(%s)", [QUESTION.format("log")])
    cached.rows("EXPLAIN " + QUESTION.format("log"))
    cached.rows("SELECT pg_stat_force_next_flush()")
    assert plain.rows(scans) == before


def test_a_token(logged, at):
    """A token of a question that was never executed moves when a row leaves, too."""
    cached, _ = sessions(at)
    tokens = []
    for second in range(30):
        logged.set(after(second))
        tokens.append(cached.rows("SELECT arrow_cache.etag(%s)", [QUESTION.format("log")])[0][0])
    assert None not in tokens and [second for second in range(1, 30) if tokens[second] != tokens[second - 1]] == [10, 20], tokens
