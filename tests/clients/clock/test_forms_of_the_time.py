"""The same time in other words: texts of other types than text, sub-queries and functions that make texts. Each is answered from the cache,
at each moment by what executing gives at the same moment; what is like it and cannot be is bypassed."""

import psycopg
import pytest
from support.windows import START, after

SCHEMA = """
    SET TimeZone = UTC;
    CREATE DOMAIN words AS text;
    CREATE DOMAIN short_words AS varchar CHECK (length(VALUE) < 20);
    CREATE TABLE log (id int, tenant varchar, unit varchar, at timestamptz, clock time);
    INSERT INTO log SELECT g, 't' || g % 3, 'today', t, t::time
    FROM generate_series(1, 60) g, LATERAL (SELECT timestamptz '2026-03-10 11:58:00' + g * interval '5 seconds') d (t);
    INSERT INTO log SELECT 100 + g, 't' || g % 3, 'now', timestamptz '2026-03-01 12:00' + g * interval '6 hours', '10:00' FROM generate_series(1, 60) g;
    CREATE INDEX ON log (at);
    ANALYZE log;
"""
# Types, the query, and the parameters.
CACHED = [
    ("varchar", "SELECT count(*) FROM log WHERE at >= cast($1 AS timestamptz)", "2026-03-05"),
    ("varchar", "SELECT count(*) FROM log WHERE at >= cast($1 AS timestamp)", "2026-03-05"),
    ("varchar", "SELECT count(*) FROM log WHERE at >= cast($1 AS timestamptz)", "today"),
    ("varchar", "SELECT count(*) FROM log WHERE at >= cast($1 AS date)", "yesterday"),
    ("varchar", "SELECT count(*) FROM log WHERE clock >= cast($1 AS time)", "11:00"),
    ("varchar", "SELECT count(*) FROM log WHERE clock >= cast($1 AS timetz)::time", "11:00"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE at >= now() - $1::interval", "1 minute"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE at >= now() - $1::text::interval", "1 minute"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE at >= now() - ($1 || ' days')::interval", "3"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE at >= date_trunc($1, now())", "minute"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE at >= date_trunc('day', now() AT TIME ZONE $1) AT TIME ZONE $1", "Europe/Berlin"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE to_char(at, 'DDD') = to_char(now(), $1)", "DDD"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE tenant = $1 AND at >= now() - interval '1 minute'", "t1"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE at >= now() - make_interval(mins => $1::int)", "1"),
    ("int", "SELECT count(*), max(id) FROM log WHERE at >= now() - make_interval(mins => $1)", "1"),
    ("bpchar", "SELECT count(*), max(id) FROM log WHERE at >= now() - $1::interval", "1 minute  "),
    ("bpchar", "SELECT count(*), max(id) FROM log WHERE at >= date_trunc($1, now())", "minute  "),
    ("name", "SELECT count(*), max(id) FROM log WHERE at >= now() - $1::interval", "1 minute"),
    ("name", "SELECT count(*), max(id) FROM log WHERE at >= date_trunc($1, now())", "minute"),
    ("words", "SELECT count(*), max(id) FROM log WHERE at >= date_trunc($1::text, now())", "minute"),
    ("words", "SELECT count(*), max(id) FROM log WHERE at >= now() - $1::text::interval", "1 minute"),
    ("short_words", "SELECT count(*), max(id) FROM log WHERE at >= date_trunc($1::varchar, now())", "minute"),
    ("text", "SELECT count(*), max(id) FROM log WHERE at >= date_trunc($1 COLLATE \"C\", now())", "minute"),
    ("text", "SELECT count(*), max(id) FROM log WHERE at >= now() - concat($1, ' seconds')::interval", "30"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE at >= now() - concat($1, NULL, ' seconds')::interval", "30"),
    ("int", "SELECT count(*), max(id) FROM log WHERE at >= now() - concat_ws(' ', $1, 'seconds')::interval", "30"),
    ("int", "SELECT count(*), max(id) FROM log WHERE at >= now() - format('%s seconds', $1)::interval", "30"),
    ("text", "SELECT count(*), max(id) FROM log WHERE at >= format('%s %s', CURRENT_DATE, $1)::timestamp", "03:00"),
    ("interval", "SELECT count(*), max(id) FROM log WHERE at >= (SELECT now() - $1)", "30 seconds"),
    ("text", "SELECT count(*), max(id) FROM log WHERE at >= date_trunc((SELECT $1), (SELECT now()))", "minute"),
    ("int", "SELECT count(*), max(id) FROM log WHERE at >= (SELECT (SELECT date_trunc('day', now())) - make_interval(days => $1))", "1"),
    ("timestamptz", "SELECT count(*), max(id) FROM log WHERE at >= '2026-03-05' AND now() > $1", "2026-03-09"),
    ("varchar", "SELECT count(*), max(id) FROM log WHERE at >= '2026-03-05' AND now() - cast($1 AS timestamptz) <> interval '1 day'", "2026-03-09"),
    ("time", "SELECT count(*), max(id) FROM log WHERE at >= '2026-03-05' AND LOCALTIME BETWEEN $1 AND '18:00'", "08:00"),
    ("interval", "SELECT tenant, max(at) FROM log GROUP BY tenant HAVING max(at) > now() - $1 ORDER BY 1", "30 seconds"),
    ("interval", "SELECT tenant FROM (SELECT tenant, min(at) AS first, max(at) AS last FROM log WHERE id < 100 GROUP BY 1) s"
                 " WHERE last < now() OR now() - first > $1 ORDER BY 1", "40 seconds"),
    ("interval", "WITH w AS (SELECT now() - $1 AS since) SELECT count(*) FROM log, w WHERE at >= since", "1 minute"),
    ("int", "SELECT count(*) FROM log, generate_series(date_trunc('hour', now()) - make_interval(hours => $1), date_trunc('hour', now()), '1 hour') g"
            " WHERE at BETWEEN g AND g + interval '1 hour'", "3"),
    # Lengths and ages.
    ("interval", "SELECT count(*) FROM log WHERE extract(epoch FROM now() - at) < extract(epoch FROM $1)", "1 minute"),
    ("interval", "SELECT count(*) FROM log WHERE age(now(), at) < $1", "1 minute"),
]
BYPASSED = [
    # Texts that come from rows, where one may be the word `now`.
    ("int", "SELECT count(unit::timestamptz), $1 FROM log", "1", "stable_function"),
    ("int", "SELECT count(concat(unit, '')::timestamptz), $1 FROM log", "1", "stable_function"),
    # What a cast calls may do anything, or a check of a domain may.
    ("varchar", "SELECT count(*) FROM log WHERE at >= now() - $1::short_words::interval", "1 minute", "moving_clock"),
    # What moves all the time and is compared with no column.
    ("varchar", "SELECT count(*) FROM log WHERE at::timestamp >= date_trunc($1, now())", "second", "moving_clock"),
    ("int", "SELECT (SELECT now()), count(*), $1 FROM log", "1", "moving_clock"),
    ("interval", "SELECT count(*) FROM log WHERE at >= (SELECT now() - $1 FROM log LIMIT 1)", "1 minute", "moving_clock"),
    ("interval", "SELECT count(*) FROM log WHERE at >= (SELECT now() - $1 WHERE random() < 2)", "1 minute", "moving_clock"),
    ("interval", "SELECT tenant FROM log GROUP BY 1 HAVING max(at + $1) > now()", "1 minute", "moving_clock"),
]


@pytest.fixture(scope="module")
def logged(server):
    server.set(str(START))
    server.psql(SCHEMA)
    return server


def outcome(session, query):
    try:
        return session.rows(query)
    except psycopg.Error as error:
        return error.sqlstate


@pytest.mark.parametrize("mode", ("force_custom_plan", "force_generic_plan"))
@pytest.mark.parametrize(("of_type", "query", "value"), CACHED)
def test_cached(logged, at, mode, of_type, query, value):
    cached, plain = (at(f"-c TimeZone=UTC -c plan_cache_mode={mode} {options}") for options in ("", "-c pg_arrow_cache.enabled=off"))
    for session in cached, plain:
        session.execute(f"PREPARE q ({of_type}) AS {query}")
    for moment in (0, 1, 30, 60, 61, 3600, 86400, 0):
        logged.set(after(moment))
        expected = plain.rows(f"EXECUTE q ('{value}')")
        statuses = []
        for _ in range(2):
            assert cached.rows(f"EXECUTE q ('{value}')") == expected, moment
            statuses.append(cached.status())
        assert statuses[1] == "HIT", (moment, statuses, cached.reason())
    # The parameter is part of the question.
    assert outcome(cached, "EXECUTE q (NULL)") == outcome(plain, "EXECUTE q (NULL)")


@pytest.mark.parametrize(("of_type", "query", "value", "reason"), BYPASSED)
def test_bypassed(logged, at, of_type, query, value, reason):
    logged.set(str(START))
    cached = at("-c TimeZone=UTC -c seq_page_cost=1000000")
    cached.execute(f"PREPARE q ({of_type}) AS {query}")
    for _ in range(2):
        cached.rows(f"EXECUTE q ('{value}')")
        assert (cached.status(), cached.reason()) == ("BYPASS", reason)


def test_a_word_for_the_present_moves(logged, at):
    """A parameter `now` of another type than text is read at each execution, as a text is."""
    for of_type in "text", "varchar", "bpchar", "name":
        cached, plain = at("-c TimeZone=UTC"), at("-c TimeZone=UTC -c pg_arrow_cache.enabled=off")
        for session in cached, plain:
            session.execute(f"PREPARE q ({of_type}) AS SELECT count(*), max(id) FROM log WHERE at <= cast($1 AS timestamptz)")
        counts = set()
        for moment in range(0, 60, 5):
            logged.set(after(moment))
            [row] = plain.rows("EXECUTE q ('now')")
            counts.add(row)
            assert cached.rows("EXECUTE q ('now')") == [row]
        assert len(counts) > 5


def test_constants_of_other_types(logged, at):
    cached, plain = at("-c TimeZone=UTC"), at("-c TimeZone=UTC -c pg_arrow_cache.enabled=off")
    for condition in ("at >= '2026-03-05'::varchar::timestamptz", "at >= now() - '30 seconds'::varchar::interval",
                      "at >= date_trunc('minute'::varchar, now())", "at >= '2026-03-05 10:00   '::bpchar::timestamptz",
                      "at >= now() - '30 seconds'::name::text::interval", "clock > '10:00'::varchar::time",
                      "at >= to_timestamp('1772000000'::varchar::float8 + extract(hour FROM now()))"):
        query = f"SELECT count(*), max(id) FROM log WHERE {condition}"
        for moment in (0, 0, 45):
            logged.set(after(moment))
            assert cached.rows(query) == plain.rows(query), query
        assert cached.rows(query) == plain.rows(query), query
        assert cached.status() == "HIT", (query, cached.reason())
        assert cached.rows("SELECT cacheable FROM arrow_cache.why(%s)", [query]) == [(True,)]


def test_a_setting_by_a_name_of_another_type(logged, at):
    session = at("-c TimeZone=UTC")
    query = "SELECT count(*) FROM log WHERE tenant = current_setting('app.tenant'::varchar, true)"
    session.execute("SET app.tenant = 't1'")
    first = session.rows(query)
    assert session.rows(query) == first and session.status() == "HIT"
    session.execute("SET app.tenant = 'none'")
    assert session.rows(query) == [(0,)] and session.status() == "MISS"


def test_partitions_left_out_by_a_sub_query(logged, at):
    """Which partitions are read while the statement runs follows from the time. Where a plan meets an error in a row that the window rejects, another one may not."""
    logged.set(str(START))
    logged.psql("""SET TimeZone = UTC; DROP TABLE IF EXISTS parts; CREATE TABLE parts (id int, v int, at timestamptz) PARTITION BY RANGE (at);
        CREATE TABLE parts_early PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ('2026-03-10 12:00:30+00');
        CREATE TABLE parts_late PARTITION OF parts FOR VALUES FROM ('2026-03-10 12:00:30+00') TO (MAXVALUE);
        CREATE INDEX ON parts (at);
        INSERT INTO parts SELECT id, CASE WHEN at < '2026-03-10 12:00:30+00' THEN id % 2 ELSE 1 END, at FROM log
        WHERE id < 100 AND at NOT BETWEEN '2026-03-10 12:00:20+00' AND '2026-03-10 12:00:40+00'""")
    scans = "-c TimeZone=UTC -c enable_indexscan=off -c enable_bitmapscan=off"
    cached, plain = at(scans), at(f"{scans} -c pg_arrow_cache.enabled=off")
    safe = "SELECT count(*), max(id) FROM parts WHERE at > (SELECT now())"
    failing = "SELECT count(*) FROM parts WHERE 10 / v > 1 AND at > (SELECT now())"
    seen, expected = [], set()
    for moment in (*range(0, 60, 2), *range(60, 0, -2)):
        logged.set(after(moment))
        for question in safe, failing:
            for _ in range(2):
                answer, given = outcome(plain, question), outcome(cached, question)
                assert given == answer or (answer == "22012" and cached.status() == "HIT"), (moment, question)
            seen.append((question, cached.status()))
        expected.add(str(answer))
    assert len(expected) > 2 and "22012" in expected
    assert (safe, "HIT") in seen and (failing, "HIT") in seen
