"""An interval on the other side, or beside the column: `now() - at < interval '1 minute'`, `at + interval '1 hour' > now()`.

RANDOM_SEED=seed repeats a run."""

import collections
import datetime
import os
import random

import pytest
from support.windows import START, after, sessions

SEED = int(os.environ.get("RANDOM_SEED") or random.SystemRandom().randrange(2**32))

SCHEMA = """
    SET TimeZone = UTC;
    DROP TABLE IF EXISTS log CASCADE;
    CREATE TABLE log (id int, at timestamptz, plain timestamp);
    INSERT INTO log SELECT g, t, t FROM generate_series(0, 600) g, LATERAL (SELECT timestamp '{start}' + (g - 300) * interval '{step}') d (t);
    INSERT INTO log VALUES (1000, NULL, NULL);
"""
SERVED = (
    "now() - at < interval '1 minute'", "now() - at <= '1 minute'", "interval '90 seconds' > statement_timestamp() - at", "localtimestamp - plain > interval '1 minute'",
    "at + interval '1 minute' > now()", "now() >= at + interval '45 seconds'", "at - interval '1 minute' < now()", "plain + interval '30 seconds' < localtimestamp",
    "plain + interval '30 seconds' < now()", "now() > plain - interval '1 day 3 seconds'", "now() - at > interval '1 month -29 days -86340 seconds'",
    "now() - interval '1 minute' - at < make_interval(secs => 20)", "at + interval '1 day' > now()", "NOT (now() - at > interval '1 minute' OR plain + interval '2 minutes' < localtimestamp)",
    "age(now(), at) < '1 minute'", "interval '90 seconds' >= age(localtimestamp, plain)", "age(now() - interval '1 minute', at) >= '0'", "age(now(), at) > '1 month -29 days -86340 seconds'",
)
REFUSED = ("at + interval '1 month' > now()", "plain - interval '1 month' < localtimestamp", "now() - at > at - '2026-03-10'", "age(now(), at) < '28 days'", "age(now(), at) > '1 month'", "age(now(), at) > '-1 second'",
           "age(at, now()) < '1 minute'", "age(now(), plain) < '1 minute'", "interval '1 minute' + at > now()",
           "now() - at = interval '1 minute'", "at - now() > interval '1 minute'", "now() - at > now() - '2026-03-10 11:59'::timestamptz")


def outcome(session, question):
    try:
        return session.rows(question)
    except Exception as error:  # noqa: BLE001
        return str(error)


@pytest.fixture(params=("indexed", "unindexed"))
def logged(server, request):
    server.set(str(START))
    server.psql(SCHEMA.format(start=START, step="10 seconds"))
    if request.param == "indexed":
        server.psql("CREATE INDEX ON log (at); CREATE INDEX ON log (plain)")
    return server


def test_windows_slide_over_rows(logged, at):
    cached, plain = sessions(at)
    seen = collections.Counter()
    for second in range(0, 40, 2):
        logged.set(after(second))
        for condition in SERVED:
            question = f"SELECT count(*), min(id), max(id) FROM log WHERE {condition}"
            assert cached.rows(question, prepare=False) == plain.rows(question, prepare=False), (second, condition)
            seen[cached.outcome()] += 1
    assert set(seen) == {("HIT", None), ("MISS", None)} and seen["HIT", None] > 2 * seen["MISS", None], seen


def test_one_answer_from_row_to_row(logged, at):
    cached, plain = sessions(at)
    for condition, leaves_at in (("age(now(), at) < '20 seconds'", 0), ("age(now(), at) <= '20 seconds'", 1), ("now() - at < interval '20 seconds'", 0), ("now() - at <= interval '20 seconds'", 1), ("at + interval '20 seconds' > now()", 0)):
        statuses = []
        for second in range(30):
            logged.set(after(second))
            question = f"SELECT count(*), min(id) FROM log WHERE {condition}"
            assert cached.rows(question) == plain.rows(question)
            statuses.append(cached.status())
        assert [second for second in range(1, 30) if statuses[second] == "MISS"] == [second for second in range(1, 30) if second % 10 == leaves_at], condition


def test_what_is_refused(logged, at):
    cached, plain = sessions(at)
    for condition in REFUSED:
        question = f"SELECT count(*), min(id), max(id) FROM log WHERE {condition}"
        for second in (0, 3):
            logged.set(after(second))
            assert cached.rows(question) == plain.rows(question)
            assert (cached.status(), cached.reason()) == ("BYPASS", "moving_clock"), condition


def test_parameters(logged, at):
    cached, plain = sessions(at)
    for mode in ("force_custom_plan", "force_generic_plan"):
        for session in (cached, plain):
            session.execute(f"SET plan_cache_mode = {mode}")
            session.execute(f"PREPARE {mode} (interval, interval) AS SELECT count(*), min(id) FROM log WHERE now() - at < $1 AND at + $2 > now()")
        seen = collections.Counter()
        for second in range(0, 20, 2):
            logged.set(after(second))
            for values in ("'1 minute', '50 seconds'", "'1 hour', '1 day'", "'1 minute', NULL", "'1 minute', '1 month'"):
                assert cached.rows(f"EXECUTE {mode} ({values})") == plain.rows(f"EXECUTE {mode} ({values})"), (second, values)
                seen[values, cached.status()] += 1
        assert seen["'1 hour', '1 day'", "HIT"] > 5 and seen["'1 minute', '50 seconds'", "HIT"] > 5, seen
        assert seen["'1 minute', '1 month'", "BYPASS"] == 10, seen


def test_errors_are_those_of_the_server(logged, at):
    """Infinity cannot be subtracted (before 17), and sums may be out of range."""
    cached, plain = sessions(at)

    for values in ("'infinity', 'infinity'", "'-infinity', '-infinity'", "'294276-12-31', '294276-12-31'", "'4713-01-01 BC', '4713-01-01 BC'"):
        logged.psql(f"DELETE FROM log WHERE id > 1000; INSERT INTO log VALUES (1001, {values})")
        for condition in ("now() - at < '1 minute'", "localtimestamp - plain >= '1 minute'", "at + interval '300 days' > now()", "plain - interval '50 years' < now()"):
            for condition in (condition, f"{condition} AND at < 'infinity' AND at > now() - interval '1 year'"):
                question = f"SELECT count(*) FROM log WHERE {condition}"
                for _ in range(3):
                    assert outcome(cached, question) == outcome(plain, question), (values, condition)
                if condition == "at + interval '300 days' > now()" and "infinity" in values:
                    # Infinity stays what it is: there is an answer, which is kept.
                    assert cached.status() == "HIT", values


@pytest.mark.parametrize("zone", ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu", "America/St_Johns"))
def test_random_intervals(server, at, zone):
    """Around nights with a change of the offset, and calm ones; intervals of days, which are longer or shorter there."""
    print(f"RANDOM_SEED={SEED}")
    rng = random.Random(SEED)
    seen = collections.Counter()
    for start in (datetime.datetime(2026, 3, 28, 23, 0), datetime.datetime(2026, 10, 24, 23, 0), datetime.datetime(2026, 7, 1, 12, 0), datetime.datetime(2026, 4, 4, 12, 0), datetime.datetime(2026, 2, 28, 23, 0)):
        for step in ("7 minutes", "3 hours"):
            server.set(str(start))
            server.psql(SCHEMA.format(start=start, step=step))
            cached, plain = sessions(at, f"-c TimeZone={zone}")
            for _ in range(70):
                length = rng.choice(("1 day", "2 days", "-1 day", "10 days", "1 day 1 hour", "1 day -25 hours", "36 hours", "25 minutes", "0", "27 days", "1 month -2 days -1 second", "30 days -720 hours", "1 month", "-5 days 17 minutes"))
                column, leaf = rng.choice((("at", "now()"), ("at", "now()"), ("plain", "localtimestamp"), ("plain", "now()"), ("at", "localtimestamp")))
                moved = rng.choice((f"{column} + interval '{length}'", f"{column} - interval '{length}'"))
                sides = [moved, rng.choice((leaf, f"{leaf} - interval '3 hours'"))]
                if rng.random() < 0.4:
                    leaf = "now()" if column == "at" else "localtimestamp"
                    sides = [rng.choice((f"{leaf} - {column}", f"age({leaf}, {column})")), f"interval '{length}'"]
                rng.shuffle(sides)
                question = f"SELECT count(*), min(id), max(id), sum(id) FROM log WHERE {sides[0]} {rng.choice(('<', '<=', '>', '>='))} {sides[1]}"
                server.set(str(start + datetime.timedelta(seconds=rng.randrange(-90000, 90000) // rng.choice((1, 60 * 7)) * rng.choice((1, 60 * 7)))))
                expected = plain.rows(question, prepare=False)
                for _ in range(2):
                    assert cached.rows(question, prepare=False) == expected, (SEED, server, question)
                seen[cached.outcome()] += 1
    assert set(seen) <= {("HIT", None), ("BYPASS", "moving_clock")} and seen["HIT", None] > 200, seen


def test_differences_that_overflow(logged, at):
    """PostgreSQL 15 subtracts the last timestamps from one before 2000 and does not notice that the difference overflows."""
    logged.psql("SET TimeZone = UTC; DELETE FROM log; INSERT INTO log VALUES (1, '294276-12-31 23:59:59.999999+00', '294276-12-31 23:59:59.999999'), (2, '2026-01-01', '2026-01-01'); ANALYZE log")
    cached, plain = sessions(at)
    ago = "(timestamptz '2026-03-10 12:00+00' - timestamptz '1999-12-23 20:00+00')"
    for question in (f"SELECT count(*) FROM log WHERE now() - {ago} - at < interval '5 minutes'", f"SELECT count(*) FROM log WHERE localtimestamp - {ago} - plain < interval '5 minutes'",
                     "SELECT count(*) FROM log WHERE timestamptz '1999-12-23 20:00+00' + (timestamptz '2026-03-10 12:00+00' - now()) - at < interval '5 minutes'"):
        for second in (0, 30, 55, 60, 90, -30, -60, -90):
            logged.set(after(second))
            assert outcome(cached, question) == outcome(plain, question), (second, question)


def test_ages_near_the_ends_of_months(server, at):
    """Rows some microseconds beside whole days, asked at the ends of months, in years with and without a 29th of February."""
    server.psql("SET TimeZone = UTC; DROP TABLE IF EXISTS log CASCADE; CREATE TABLE log (id int, at timestamptz, plain timestamp); "
                "INSERT INTO log SELECT row_number() OVER (), t, t FROM (SELECT generate_series(timestamp '2026-12-25', '2027-04-05', '1 day') "
                "UNION ALL SELECT generate_series(timestamp '2027-12-25', '2028-04-05', '1 day')) d (day), "
                "LATERAL (VALUES (day), (day - interval '1 microsecond'), (day + interval '1 microsecond')) v (t); CREATE INDEX ON log (at); CREATE INDEX ON log (plain)")
    cached, plain = sessions(at)
    statuses = collections.Counter()
    days = ("2027-02-28", "2027-03-01", "2027-03-28", "2028-01-31", "2028-02-28", "2028-02-29", "2028-03-01", "2028-03-28", "2028-03-29", "2028-03-31")
    for day in days:
        for time in ("00:00:00", "00:00:01", "00:00:05", "23:59:59"):
            server.set(f"{day} {time}")
            for length in ("27 days 23:59:59.999999", "27 days", "1 day", "0", "28 days", "29 days", "1 month", "31 days"):
                for condition in (f"age(now(), at) < '{length}'", f"age(localtimestamp, plain) <= '{length}'", f"age(now(), at) > '{length}'", f"'{length}' <= age(localtimestamp, plain)"):
                    question = f"SELECT count(*), min(id), max(id), sum(id) FROM log WHERE {condition}"
                    assert cached.rows(question, prepare=False) == plain.rows(question, prepare=False), (day, time, condition)
                    statuses[length, cached.status()] += 1
    assert all(statuses[length, "BYPASS"] == 16 * len(days) for length in ("28 days", "29 days", "1 month", "31 days")), statuses
    assert statuses["27 days", "HIT"] > 20 and not statuses["27 days", "BYPASS"], statuses
