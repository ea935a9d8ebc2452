"""Times that a query without FROM hands on, as a sub-query in FROM or by WITH. Each question is asked at many moments; what the cache answers is
what executing gives at the same moment."""

import collections

import psycopg
import pytest
from support.windows import BY_INDEX, START, after, sessions

SCHEMA = """
    SET TimeZone = UTC;
    DROP VIEW IF EXISTS since;
    DROP TABLE IF EXISTS t, u CASCADE;
    CREATE TABLE t (id int, at timestamptz, n int);
    INSERT INTO t SELECT g, timestamptz '2026-03-10 11:58:00' + g * interval '10 seconds', g % 7 FROM generate_series(1, 40) g;
    CREATE TABLE u AS SELECT id, at - interval '5 seconds' AS at FROM t WHERE id % 3 = 0;
    CREATE INDEX ON t (at);
    CREATE INDEX ON u (at);
    CREATE VIEW since AS SELECT now() - interval '45 seconds' AS time;
    CREATE OR REPLACE FUNCTION seconds_ago(s int) RETURNS TABLE (since timestamptz) STABLE LANGUAGE sql AS 'SELECT now() - make_interval(secs => s)';
    ANALYZE t, u;
"""

CACHED = [
    "SELECT count(*) FROM (t CROSS JOIN (SELECT now() AS time) w) j WHERE j.at < j.time",
    "WITH w AS (SELECT now() - interval '1 minute' AS since) SELECT count(*), min(id) FROM t, w WHERE t.at > w.since",
    "WITH w AS (SELECT now() - interval '1 minute' AS since) SELECT count(*), min(id) FROM t JOIN w ON t.at > w.since",
    "WITH w (since) AS NOT MATERIALIZED (SELECT now() - interval '1 minute') SELECT count(*), min(id) FROM t CROSS JOIN w WHERE since <= at",
    "SELECT count(*), min(id) FROM t, (SELECT now() - interval '30 seconds' AS since) w WHERE t.at > w.since",
    "SELECT count(*), min(id) FROM t, LATERAL (SELECT now() - interval '30 seconds' AS since, now() AS till) w WHERE t.at BETWEEN w.since AND w.till",
    "SELECT count(*), min(id) FROM t, since WHERE t.at > since.time",
    "SELECT count(*), min(id) FROM t, seconds_ago(20) s WHERE t.at > s.since",
    "SELECT count(*), min(id) FROM t, (SELECT now() AS time, 3 AS n) w WHERE w.time - t.at < interval '1 minute' AND t.n > w.n",
    "SELECT l.id, u.at FROM (t CROSS JOIN (SELECT now() AS time) w) l LEFT JOIN u ON u.id = l.id AND u.at > now() - interval '1 minute' ORDER BY 1",
    "SELECT t.id, u.at FROM (SELECT now() - interval '1 minute' AS since) w JOIN t ON true LEFT JOIN u ON u.id = t.id AND u.at > w.since ORDER BY 1",
    "SELECT t.id FROM t, (SELECT now() AS time) w WHERE EXISTS (SELECT FROM u WHERE u.id = t.id AND u.at < w.time) ORDER BY 1",
    "WITH w AS (SELECT now() - interval '40 seconds' AS since) SELECT (SELECT count(*) FROM t, w WHERE at > since), (SELECT max(id) FROM u, w WHERE at <= since) FROM u LIMIT 1",
    "WITH w AS (SELECT now() - interval '1 minute' AS since) SELECT count(*) FROM t, w WHERE at > since UNION ALL SELECT count(*) FROM u, w WHERE at > since",
    "SELECT w.day, count(*) FROM t, (SELECT CURRENT_DATE AS day, now() AS time) w WHERE t.at < w.time GROUP BY w.day",
    "WITH w AS (SELECT now() AS time) SELECT w.time::text, count(*) FROM t, w WHERE t.at > w.time - interval '1 minute' GROUP BY w.time",
    "WITH w AS (SELECT now() AS time, 1 AS one) SELECT t.id, w.time - t.at FROM t, w ORDER BY t.id",
    "SELECT count(*) OVER (PARTITION BY w.since), id FROM t, (SELECT now() - interval '1 minute' AS since) w WHERE at > w.since ORDER BY id",
]
# What sorts or goes through another query with FROM, what an outer join may make NULL, what is kept apart, and what need not be one row.
BYPASSED = [
    "SELECT s.n, (SELECT max(u.at) FROM u WHERE u.at < s.time) FROM (SELECT n, w.time FROM t, (SELECT now() AS time) w WHERE t.at < w.time) s ORDER BY 1, 2",
    "SELECT count(w.time), count(*) FROM t LEFT JOIN (SELECT now() AS time) w ON t.n = 3 WHERE t.at < w.time OR w.time IS NULL",
    "SELECT count(*) FROM (SELECT now() AS time) w RIGHT JOIN t ON t.n = 3 WHERE w.time IS NULL OR t.at < w.time",
    "SELECT count(*) FROM (SELECT now() AS time) w FULL JOIN t ON t.at < w.time AND false WHERE w.time IS NULL OR t.at < w.time",
    "WITH w AS MATERIALIZED (SELECT now() AS time) SELECT count(*) FROM t, w WHERE t.at < w.time",
    "SELECT count(*) FROM t, (SELECT now() AS time LIMIT 0) w WHERE t.at < w.time",
    "SELECT count(*) FROM t, (SELECT now() AS time WHERE random() < 2) w WHERE t.at < w.time",
    "SELECT count(*) FROM t, (SELECT now() AS time, generate_series(1, 2)) w WHERE t.at < w.time",
    "SELECT count(*) FROM t, (SELECT now() AS time UNION ALL SELECT now() - interval '1 minute') w WHERE t.at < w.time",
    "SELECT count(*), max(w::text) FROM t, (SELECT now() AS time) w WHERE t.at < w.time",
]

# What GROUPING SETS make NULL is the column alone, and not the same expression elsewhere.
GROUPED = [
    "SELECT w.day, CURRENT_DATE AS today, count(*) FROM t, (SELECT CURRENT_DATE AS day) w GROUP BY GROUPING SETS ((w.day), ()) ORDER BY 1, 2",
    "WITH w AS (SELECT CURRENT_DATE AS day) SELECT w.day, CURRENT_DATE - 1 AS before, count(*) FROM t, w GROUP BY ROLLUP (w.day) ORDER BY 1",
]


@pytest.fixture
def filled(server):
    server.set(str(START))
    server.psql(SCHEMA)
    return server


def outcome(session, query):
    try:
        return session.rows(query, prepare=False)
    except psycopg.Error as error:
        return error.sqlstate


def compare(server, at, questions, options=""):
    """The second status of each question at each moment."""
    cached, plain = sessions(at, options)
    seen = collections.defaultdict(collections.Counter)
    for number, question in enumerate(questions):
        for session in cached, plain:
            session.execute(f"PREPARE q{number} AS {question}")
    for second in (*range(0, 50, 3), *range(49, 0, -7)):
        server.set(after(second))
        for number, question in enumerate(questions):
            for text in (question, f"EXECUTE q{number}"):
                for _ in range(2):
                    # One transaction, in which the time stands still as the clock does.
                    assert outcome(cached, text) == outcome(plain, text), (second, text)
                seen[question][cached.outcome()] += 1
    return seen


@pytest.mark.parametrize("mode", ("force_custom_plan", "force_generic_plan"))
def test_cached(filled, at, mode):
    seen = compare(filled, at, CACHED, f"-c plan_cache_mode={mode}")
    rest = {question: dict(outcomes) for question, outcomes in seen.items() if set(outcomes) != {("HIT", None)}}
    assert not rest, rest


def test_bypassed(filled, at):
    seen = compare(filled, at, BYPASSED, BY_INDEX)
    assert not [question for question, outcomes in seen.items() if ("HIT", None) in outcomes], seen


def test_grouped(filled, at):
    compare(filled, at, GROUPED)


def test_changes_are_seen(filled, at, writer):
    cached, plain = sessions(at)
    for change in ("INSERT INTO t VALUES (50, now() - interval '5 seconds', 1)", "CREATE OR REPLACE VIEW since AS SELECT now() - interval '15 seconds' AS time",
                   "CREATE OR REPLACE FUNCTION seconds_ago(s int) RETURNS TABLE (since timestamptz) STABLE LANGUAGE sql AS 'SELECT now() - make_interval(secs => s / 2)'",
                   "DELETE FROM t WHERE id = 50"):
        for question in CACHED:
            assert cached.rows(question) == plain.rows(question)
        writer.execute(change)
        for question in CACHED:
            assert cached.rows(question) == plain.rows(question), (change, question)


def test_errors_are_those_of_the_server(filled, at):
    cached, plain = sessions(at)
    for question in ("WITH w AS (SELECT now() - interval '290000 years' AS since) SELECT count(*) FROM t, w WHERE at > since",
                     "SELECT count(*) FROM t, (SELECT now() - ('x' || t2.n)::interval AS since FROM t t2 LIMIT 1) w WHERE at > since",
                     "SELECT count(*) FROM t, (SELECT date_trunc('none', now()) AS since) w WHERE at > since",
                     "WITH w AS (SELECT date_trunc('none', now()) AS since) SELECT count(*) FROM t, w WHERE t.id < 0 AND at > since"):
        for _ in range(2):
            assert outcome(cached, question) == outcome(plain, question), question


def test_why(filled, at):
    session = at()
    for question in CACHED[:5]:
        assert session.rows("SELECT cacheable, detail FROM arrow_cache.why(%s)", [question]) == [(True, "rests on public.t")]
