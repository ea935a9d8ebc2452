"""Relative dates while the clock passes midnights, months, years and the hours that a zone leaves out or repeats: each answer from the
cache is compared with an execution at the same moment."""

import datetime
import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.sweeps import LONG, sweep
from support.wire import Wire, data_rows

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")

# Moments in UTC. At each, the clock stands still, and a second before.
BOUNDARIES = (
    "2026-01-01 00:00",  # year, in UTC
    "2025-12-31 23:00",  # year, in Berlin
    "2026-03-01 00:00",
    "2028-02-29 00:00",
    "2028-03-01 05:00",  # month, in New York
    "2026-03-29 01:00",  # Berlin leaves out an hour
    "2026-10-25 01:00",  # Berlin repeats one
    "2026-10-25 00:00",
    "2026-10-24 22:00",  # midnight in Berlin
    "2026-03-08 07:00",  # New York leaves out an hour
    "2026-11-01 06:00",  # New York repeats one
    "2026-10-03 15:30",  # Lord Howe leaves out half an hour
    "2026-04-04 15:00",  # Lord Howe repeats half an hour
    "2026-04-04 14:30",
    "2026-11-23 03:00",  # an hour, and the middle of a day
)


def instants():
    for boundary in map(datetime.datetime.fromisoformat, BOUNDARIES):
        for seconds in (-1, 0):
            yield str(boundary + datetime.timedelta(seconds=seconds))


QUESTIONS = (
    "SELECT count(*), min(id), max(id) FROM event WHERE day = CURRENT_DATE",
    "SELECT count(*), min(id), max(id) FROM event WHERE day > CURRENT_DATE - 7",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= CURRENT_DATE",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= date_trunc('month', now() - interval '12 months')",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= date_trunc('day', now()) AND at < date_trunc('day', now()) + interval '1 day'",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= date_trunc('hour', now()) - interval '1 hour'",
    "SELECT count(*), min(id), max(id) FROM event WHERE at < date_trunc('minute', now())",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= date_trunc('day', now(), 'America/New_York')",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= date_bin('30 minutes', now(), '2020-01-01 00:15+00')",
    "SELECT count(*), min(id), max(id) FROM event WHERE plain >= date_trunc('week', LOCALTIMESTAMP)",
    "SELECT count(*), min(id), max(id) FROM event WHERE day = (now() AT TIME ZONE 'Australia/Lord_Howe')::date",
    "SELECT count(*), min(id), max(id) FROM event WHERE extract(month FROM at) = extract(month FROM now())",
    "SELECT count(*), min(id), max(id) FROM event WHERE date_part('hour', plain) = date_part('hour', LOCALTIME)",
    "SELECT to_char(now(), 'YYYY-MM-DD HH24:MI TZ'), id FROM event WHERE id < 3",
    "SELECT now()::date, CURRENT_DATE, (now() - interval '1 day')::date, date_trunc('hour', now()), id FROM event WHERE id < 3",
    "SELECT date_trunc('month', CURRENT_DATE - interval '1 month'), id FROM event WHERE id < 3",
    "SELECT extract(timezone_hour FROM now()), extract(hour FROM CURRENT_TIME), id FROM event WHERE id < 3",
    "SELECT date_trunc('day', now())::date - day, count(*) FROM event GROUP BY 1 ORDER BY 1",
    "SELECT id, at FROM event WHERE at BETWEEN now()::date - make_interval(days => 1) AND now()::date + 1 ORDER BY id",
    "WITH w AS MATERIALIZED (SELECT * FROM event WHERE day > CURRENT_DATE - 30) SELECT count(*) FROM w WHERE id IN (SELECT id FROM event WHERE at < now()::date)",
    "SELECT count(*), min(id) FROM recent",
    "SELECT count(*), min(id) FROM parts WHERE day >= date_trunc('month', CURRENT_DATE)",
    "SELECT count(*), min(id) FROM parts WHERE day >= (SELECT date_trunc('month'::varchar, CURRENT_DATE))",
    "SELECT count(*), min(id), max(id) FROM event WHERE at < date_trunc('day', statement_timestamp())",
    # Words in stored texts.
    "SELECT id, w::date::text, (date(w) - 1)::text FROM word ORDER BY id",
    "SELECT w::date = CURRENT_DATE, w::date > now()::date, id FROM word ORDER BY id",
    "SELECT count(*), min(id) FROM event WHERE day IN (SELECT w::date FROM word)",
    # The same words in arrays and JSON.
    "SELECT id, ('{\"' || w || '\",today}')::date[]::text FROM word ORDER BY id",
    "SELECT id, r.a::text, r.b::text FROM word, jsonb_to_record(jsonb_build_object('a', w, 'b', jsonb_build_array(w))) AS r(a date, b date[]) ORDER BY id",
    # Times that are made of texts of the clock, the earlier of two, and numbers that are rounded.
    "SELECT count(*), min(id), max(id) FROM event WHERE plain >= (CURRENT_DATE || ' 00:30')::timestamp",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= (to_char(now(), 'YYYY-MM') || '-01 00:00')::timestamptz",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= ('today'::text)::timestamptz",
    "SELECT count(*), min(id), max(id) FROM event WHERE at < date_trunc('day', LEAST(now(), '2026-03-01'))",
    "SELECT count(*), min(id), max(id) FROM event WHERE at < LEAST(now(), '2025-12-01 00:00+00')",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= to_timestamp(floor(extract(epoch FROM now()) / 3600) * 3600)",
    # The same in other words.
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= 'today'::varchar::timestamptz",
    "SELECT count(*), min(id), max(id) FROM event WHERE plain >= 'tomorrow 00:30  '::bpchar::timestamp",
    "SELECT count(*), min(id), max(id) FROM event WHERE plain >= format('%s %s', CURRENT_DATE, '00:30')::timestamp",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= concat(to_char(now(), 'YYYY-MM'), '-01')::varchar::timestamptz",
    "SELECT count(*), min(id), max(id) FROM event WHERE at >= date_trunc('day'::varchar, (SELECT now()))",
    "SELECT count(*), min(id), max(id) FROM event WHERE now() >= '2026-03-29 01:00+00'",
    "SELECT count(*), min(id), max(id) FROM event WHERE LOCALTIME BETWEEN '01:00' AND '02:59'",
    "SELECT now() < localtimestamp, CURRENT_DATE > '2026-03-29 00:00'::timestamp, id FROM event WHERE id < 3",
    "SELECT count(*), min(id), max(id) FROM event WHERE extract(epoch FROM at) >= floor(extract(epoch FROM LOCALTIMESTAMP) / 86400) * 86400",
)

SCHEMA = """
    CREATE TABLE event (id int, at timestamptz, day date, plain timestamp);
    INSERT INTO event SELECT row_number() OVER (), b.at + h * interval '1 second', b.at::date, (b.at + h * interval '1 second') AT TIME ZONE 'UTC'
    FROM (SELECT unnest({boundaries}::timestamptz[])) b (at), unnest('{{-90000,-86400,-3601,-1800,-60,-1,0,1,60,1800,3600,86400}}'::int[]) h;
    CREATE TABLE word AS SELECT * FROM unnest('{{today,now,tomorrow,yesterday,epoch,2026-03-01,today 23:59:59,tomorrow 10:00 Asia/Tokyo,yesterday 24:00 UTC,infinity,Jan 1 2026 23:00 PST,J2461000}}'::text[])
        WITH ORDINALITY AS u (w, id);
    CREATE VIEW recent AS SELECT * FROM event WHERE at > date_trunc('week', now());
    CREATE TABLE parts (id int, day date) PARTITION BY RANGE (day);
    CREATE TABLE parts_2025 PARTITION OF parts FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
    CREATE TABLE parts_2026 PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2026-10-25');
    CREATE TABLE parts_more PARTITION OF parts DEFAULT;
    INSERT INTO parts SELECT id, day FROM event;
"""


@pytest.fixture(scope="module")
def events(server):
    server.psql("SET TimeZone = UTC;" + SCHEMA.format(boundaries="'{" + ",".join(f'"{b}+00"' for b in BOUNDARIES) + "}'"))
    return server


@sweep
@pytest.mark.parametrize("zone", ZONES)
def test_all_boundaries(events, at, zone):
    """Moments come in any order: what was stored before a boundary is there when the clock is set back."""
    cached = at(f"-c TimeZone={zone} -c plan_cache_mode=force_generic_plan")
    plain = at(f"-c TimeZone={zone} -c pg_arrow_cache.enabled=off")
    for number, question in enumerate(QUESTIONS):
        cached.execute(f"PREPARE q{number} AS {question}")
    moments = list(instants())
    random.Random(zone).shuffle(moments)
    seen = {}
    one_in = 1 if LONG else 3
    for turn, moment in enumerate(moments):
        events.set(moment)
        for number, question in enumerate(QUESTIONS):
            # Each question is asked at one of three moments, and each moment meets a third of them.
            if (turn + number) % one_in:
                continue
            expected = plain.rows(question)
            for text in (question, f"EXECUTE q{number}"):
                assert cached.rows(text) == expected, (question, moment)
                outcome = cached.outcome()
                seen[outcome] = seen.get(outcome, 0) + 1
    # psycopg prepares a statement that it has sent some times, so that it is bound by a message of its own.
    assert seen.pop(("BYPASS", "moving_clock")) <= len(moments), seen
    # The two ways of asking share their answers.
    assert set(seen) == {("HIT", None), ("MISS", None)}, seen
    assert seen["HIT", None] > seen["MISS", None] > len(QUESTIONS), seen


def test_a_transaction_keeps_its_time(events, at):
    """A transaction begun before midnight asks about the day before, while others ask about the new one."""
    question = "SELECT count(*), min(id), CURRENT_DATE FROM event WHERE day = CURRENT_DATE GROUP BY 3"
    early, late, plain = at(), at(), at("-c pg_arrow_cache.enabled=off")
    events.set("2026-02-28 23:59:59")
    early.execute("BEGIN")
    before = early.rows(question)
    events.set("2026-03-01 00:00:00")
    after = late.rows(question)
    assert after == plain.rows(question) and after != before
    assert early.rows(question) == before and early.status() == "HIT"
    assert late.rows(question) == after and late.status() == "HIT"
    early.execute("COMMIT")
    assert early.rows(question) == after and early.status() == "HIT"


def test_words_for_a_day(events, at):
    """What a stored text says of the day follows the day, for a statement and for a plan that is kept."""
    question = "SELECT id, w::date::text FROM word ORDER BY id"
    cached, plain = at("-c plan_cache_mode=force_generic_plan"), at("-c pg_arrow_cache.enabled=off")
    cached.execute(f"PREPARE kept AS {question}")
    answers = []
    for moment in ("2026-02-28 23:59:59", "2026-03-01 00:00:00", "2026-02-28 12:00:00"):
        events.set(moment)
        answers.append(plain.rows(question))
        for text in (question, "EXECUTE kept") * 2:
            assert cached.rows(text) == answers[-1], (moment, text)
        assert cached.status() == "HIT"
    assert answers[0] == answers[2] != answers[1]


def test_a_day_and_its_first_moment(events, at):
    """A day is compared as its first moment: at that moment it is equal to the time, and later it lies before it."""
    cached, plain = at(), at("-c pg_arrow_cache.enabled=off")
    for comparison in ("<", "<=", ">", ">="):
        question = f"SELECT count(*), min(id), max(id) FROM event WHERE day {comparison} localtimestamp"
        for moment in ("2026-03-01 12:00:00", "2026-03-01 00:00:00", "2026-03-01 00:00:01", "2026-02-28 23:59:59"):
            events.set(moment)
            for _ in range(2):
                assert cached.rows(question) == plain.rows(question), (question, moment)
            assert cached.status() == "HIT"


def test_a_statement_that_runs_past_midnight(events, at):
    """Its answer is kept for the day on which it began. In a string of statements, all of them have the time of the first."""
    question = ("SELECT count(*), CURRENT_DATE FROM event, generate_series(1, 200000) WHERE day = CURRENT_DATE - 1 "
                "AND at < date_trunc('day', statement_timestamp()) GROUP BY 2")
    session, plain = at(), at("-c pg_arrow_cache.enabled=off")
    answers = {}
    for text in (question, f"SELECT count(*) FROM event a, event b, event c, generate_series(1, 5); {question}"):
        session.execute("SELECT arrow_cache.flush()")
        events.set("2025-12-31 23:59:59")
        began = threading.Event()
        with ThreadPoolExecutor() as pool:
            running = pool.submit(lambda: (began.set(), last_rows(session, text)))
            began.wait()
            time.sleep(0.15)
            events.set("2026-01-01 00:00:00")
            _, before = running.result()
        assert session.status() == "MISS"
        for moment in ("2026-01-01 00:00:00", "2025-12-31 23:59:59"):
            events.set(moment)
            answers[moment] = session.rows(question)
            assert answers[moment] == plain.rows(question)
        assert session.status() == "HIT"
        assert answers["2025-12-31 23:59:59"] == before != answers["2026-01-01 00:00:00"]


def last_rows(session, text):
    """The rows of the last of several statements."""
    result = session.execute(text)
    while result.nextset():
        pass
    return result.fetchall()


def test_zones_of_a_role(events, at):
    """The zone comes from the role, and from SET."""
    events.psql("CREATE ROLE clock_reader LOGIN; GRANT SELECT ON event TO clock_reader")
    question = "SELECT count(*), CURRENT_DATE FROM event WHERE day = CURRENT_DATE GROUP BY 2"
    events.set("2026-10-03 12:00:00")
    seen = set()
    for zone in ("Pacific/Kiritimati", "Pacific/Niue", "UTC"):
        events.psql(f"ALTER ROLE clock_reader SET TimeZone = '{zone}'")
        session = at(user="clock_reader")
        plain = at("-c pg_arrow_cache.enabled=off", user="clock_reader")
        for _ in range(2):
            assert session.rows(question) == plain.rows(question)
        assert session.status() == "HIT"
        seen.add(str(session.rows("SELECT CURRENT_DATE")))
        for other in ("Pacific/Niue", "Pacific/Kiritimati"):
            for one in (session, plain):
                one.execute(f"SET TimeZone = '{other}'")
            assert session.rows(question) == plain.rows(question)
    assert len(seen) == 2
    events.psql("DROP OWNED BY clock_reader; DROP ROLE clock_reader")


@pytest.mark.parametrize("leaf", ("now()", "statement_timestamp()"))
def test_bound_before_midnight_and_read_after(events, leaf):
    """now() stays what it was at the start of the transaction. statement_timestamp() is that of the Execute, and not cached."""
    question = f"SELECT count(*), min(id) FROM event WHERE at < date_trunc('day', {leaf})"
    client = Wire(events.dsn())
    try:
        for moment in ("2026-03-28 23:59:59", "2026-03-29 00:00:00"):
            events.set(moment)
            for _ in range(2):
                client.query(question)
        # In an unnamed and in a named portal.
        for portal, enabled in itertools.product(("", "p"), ("on", "off")):
            events.set("2026-03-28 23:59:59")
            client.query(f"SET pg_arrow_cache.enabled = {enabled}")
            client.parse(question).bind(portal=portal).step("2")
            events.set("2026-03-29 00:00:00")
            rows = data_rows(client.execute(portal=portal).sync())
            if enabled == "on":
                answer = rows
            else:
                assert rows == answer, (leaf, portal)
    finally:
        client.close()


def test_a_plan_that_keeps_what_another_zone_gave(events, at):
    """age() is marked IMMUTABLE and reads the zone, so a kept plan has its value from where it was planned: 29 days, not 29 days and an hour."""
    question = ("SELECT count(*), date_trunc('day', now() - age(timestamptz '2026-03-30 00:00+00', timestamptz '2026-03-01 00:00+00')) "
                "FROM event WHERE at < date_trunc('day', now() - age(timestamptz '2026-03-30 00:00+00', timestamptz '2026-03-01 00:00+00'))")
    sessions = at("-c plan_cache_mode=force_generic_plan"), at("-c plan_cache_mode=force_generic_plan -c pg_arrow_cache.enabled=off")
    events.set("2026-06-15 12:00:00")
    for session in sessions:
        session.execute("SET TimeZone = UTC")
        session.execute(f"PREPARE kept AS {question}")
        session.execute("EXECUTE kept")
        session.execute("SET TimeZone = 'Europe/Berlin'")
    for moment in ("2026-06-15 21:59:00", "2026-06-15 22:01:00", "2026-06-15 23:01:00"):
        events.set(moment)
        for _ in range(2):
            cached, plain = (session.rows("EXECUTE kept") for session in sessions)
            assert cached == plain, moment
