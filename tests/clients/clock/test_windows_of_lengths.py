"""A number that tells how long ago a column is: `extract(epoch FROM now() - at) < 60`, `date_part('day', now() - at) > 7`, `extract(epoch FROM now() - at) / 60 < 5`.

RANDOM_SEED=seed repeats a run."""

import collections
import os
import random

import pytest
from support.sweeps import rounds, sweep
from support.windows import START, after, sessions

SEED = int(os.environ.get("RANDOM_SEED") or random.SystemRandom().randrange(2**32))

SCHEMA = """
    SET TimeZone = UTC;
    DROP TABLE IF EXISTS log CASCADE;
    CREATE TABLE log (id int, at timestamptz, plain timestamp, n int);
    INSERT INTO log SELECT g, t, t, g FROM generate_series(0, 600) g, LATERAL (SELECT timestamp '2026-03-10 12:00' + (g - 300) * interval '10 seconds') d (t);
    INSERT INTO log SELECT 1000 + g, t, t, g FROM generate_series(0, 60) g, LATERAL (SELECT timestamp '2026-03-10 12:00:07.000001' + (g - 30) * interval '1 day') d (t);
    INSERT INTO log VALUES (2000, NULL, NULL, NULL);
    CREATE INDEX ON log (at); CREATE INDEX ON log (plain); ANALYZE log
"""
SERVED = (
    "extract(epoch FROM now() - at) < 60", "extract(epoch FROM now() - at) <= 60", "extract(epoch FROM now() - at) > 60", "60.000001 >= extract(epoch FROM now() - at)",
    "EXTRACT(EPOCH FROM (current_timestamp - at)) / 60 < 2", "extract(epoch FROM now() - at) / -60 < -2", "extract(epoch FROM now() - at) / 3600 >= 24", "7 > extract(day FROM now() - at)",
    "extract(days FROM now() - at) >= -3", "extract(day FROM now() - at) > 0", "date_part('epoch', now() - at) < 60", "date_part('epoch', statement_timestamp() - at) / 60 <= 1.5",
    "date_part('day', localtimestamp - plain) > 7", "date_part('EPOCH'::text, localtimestamp - interval '1 minute' - plain) >= -30", "extract(epoch FROM now() - at) <= 45.00000049",
    "NOT (extract(epoch FROM now() - at) > 30 OR extract(day FROM localtimestamp - plain) <= -2)", "extract(epoch FROM now() - at) / 7 > 5.7142858571428571",
    "extract(epoch FROM now() - at) BETWEEN 20 AND 60.5",
)
# Fields that begin again, a length to the other side, what is computed of it otherwise, another column, and lengths at which it does not turn.
REFUSED = (
    "extract(hour FROM now() - at) < 1", "extract(second FROM now() - at) < 30", "extract(month FROM now() - at) < 1", "extract(epoch FROM at - now()) > -60",
    "extract(epoch FROM now() - at) = 60", "extract(epoch FROM now() - at)::int < 60", "60 / extract(epoch FROM now() - at) > 1", "extract(epoch FROM now() - at) - 5 < 60",
    "abs(extract(epoch FROM now() - at)) < 60", "extract(epoch FROM now() - at) / n < 60", "extract(epoch FROM now() - at) < n", "extract(epoch FROM now() - at) < extract(second FROM now())",
    "extract(epoch FROM now() - plain) < 60", "extract(epoch FROM now() - at) < 1e30", "extract(epoch FROM now() - at) < 'NaN'", "date_part('epoch', now() - at) / 'inf' >= 0",
    "extract(epoch FROM now() - at) / 86400 < 4001", "extract(epoch FROM age(now(), at)) < 60", "extract(epoch FROM now() - at) / 1e-130000 > 1e130000",
)


def outcome(session, question, **options):
    try:
        return session.rows(question, **options)
    except Exception as error:  # noqa: BLE001
        return str(error)


def count(condition):
    return f"SELECT count(*), min(id), max(id), sum(id) FROM log WHERE {condition}"


@pytest.fixture
def logged(server):
    server.set(str(START))
    server.psql(SCHEMA)
    return server


def test_windows_slide_over_rows(logged, at):
    cached, plain = sessions(at)
    seen = collections.Counter()
    for tenth in range(0, 300, 13):
        logged.set(after(tenth / 10))
        for condition in SERVED:
            assert cached.rows(count(condition), prepare=False) == plain.rows(count(condition), prepare=False), (tenth, condition)
            seen[cached.outcome()] += 1
    assert set(seen) == {("HIT", None), ("MISS", None)} and seen["HIT", None] > 2 * seen["MISS", None], seen


EDGES = (
    ("extract(epoch FROM now() - at) < 20", 0), ("extract(epoch FROM now() - at) <= 20", 1), ("20 >= extract(epoch FROM now() - at)", 1), ("extract(epoch FROM now() - at) >= 20", 0),
    ("extract(epoch FROM now() - at) > 20", 1), ("extract(epoch FROM now() - at) > 20.0000001", 1), ("extract(epoch FROM now() - at) >= 20.0000001", 1),
    ("extract(epoch FROM now() - at) < 20.0000001", 1), ("extract(epoch FROM now() - at) <= 19.9999999", 0), ("date_part('epoch', now() - at) < 20", 0),
    ("date_part('epoch', now() - at) <= 20", 1), ("extract(epoch FROM now() - at) / 60 < 0.33333333333333333333", 0), ("extract(epoch FROM now() - at) / 60 <= 0.33333333333333333333", 1),
    ("extract(epoch FROM now() - at) / 60 > 0.33333333333333333334", 1), ("extract(epoch FROM now() - at) / 60 < 0.33333333333333333334", 1), ("extract(epoch FROM now() - at) / -1 >= -20", 1),
)


@pytest.mark.parametrize("condition, leaves_at", EDGES)
def test_one_answer_from_row_to_row(logged, at, condition, leaves_at):
    """A row each ten seconds: it leaves in the microsecond that the clock has then, or in the next one."""
    cached, plain = sessions(at)
    logged.psql("DELETE FROM log WHERE id >= 1000")
    statuses = []
    for second in range(30):
        logged.set(after(second))
        assert cached.rows(count(condition)) == plain.rows(count(condition)), second
        statuses.append(cached.status())
    assert [second for second in range(1, 30) if statuses[second] == "MISS"] == [second for second in range(1, 30) if second % 10 == leaves_at]


def test_what_is_refused(logged, at):
    cached, plain = sessions(at)
    for condition in REFUSED:
        for second in (0, 3):
            logged.set(after(second))
            assert outcome(cached, count(condition)) == outcome(plain, count(condition))
            assert (cached.status(), cached.reason()) == ("BYPASS", "moving_clock"), condition


def test_numbers_of_other_functions(logged, at):
    """What stands in the place of the field is no text."""
    cached, plain = sessions(at)
    for condition in ("power(float8 '2', n) > 8", "mod(7.0, n + 1) <= 3", "round(5.25, n % 3) < 5.3", "log(2.0, n + 2) >= 3", "power(2, extract(day FROM now() - at)::float8) > 2",
                      "atan2(1, n) / 2 < 0.1"):
        for _ in range(2):
            assert cached.rows(count(condition)) == plain.rows(count(condition))
        assert cached.outcome() == (("BYPASS", "moving_clock") if "now()" in condition else ("HIT", None)), condition


def test_parameters(logged, at):
    cached, plain = sessions(at)
    for mode in ("force_custom_plan", "force_generic_plan"):
        for session in (cached, plain):
            session.execute(f"SET plan_cache_mode = {mode}")
            session.execute(f"PREPARE {mode} (numeric, float8, numeric) AS {count('extract(epoch FROM now() - at) / $1 < $3 AND date_part($$epoch$$, now() - at) >= $2')}")
        seen = collections.Counter()
        for second in range(0, 20, 2):
            logged.set(after(second))
            for values in ("60, 30, 2.5", "-60, 30, 1", "3600, 86400, 30", "0, 30, 1", "60, NULL, 2", "60, 30, 'NaN'"):
                execution = f"EXECUTE {mode} ({values})"
                assert outcome(cached, execution) == outcome(plain, execution), (second, values)
                seen[values, cached.status()] += 1
        assert all(seen[values, "HIT"] > 5 for values in ("60, 30, 2.5", "3600, 86400, 30")), seen
        assert all(seen[values, "BYPASS"] == 10 for values in ("0, 30, 1", "60, NULL, 2", "60, 30, 'NaN'")), seen


def test_errors_are_those_of_the_server(logged, at):
    cached, plain = sessions(at)
    for value in ("infinity", "-infinity", "294276-12-31", "4713-01-01 BC"):
        logged.psql(f"DELETE FROM log WHERE id > 2000; INSERT INTO log VALUES (2001, '{value}', '{value}')")
        for condition in SERVED + ("extract(epoch FROM now() - at) / 0 > 3", "date_part('epoch', now() - at) / 1e-297 < 3"):
            for _ in range(2):
                assert outcome(cached, count(condition)) == outcome(plain, count(condition)), (value, condition)


@sweep
def test_random_lengths(logged, at):
    """At times that lie on the edges, or a microsecond beside them."""
    print(f"RANDOM_SEED={SEED}")
    rng = random.Random(SEED)
    cached, plain = sessions(at, "-c TimeZone=Europe/Berlin")
    seen = collections.Counter()
    for _ in range(rounds(150, 600)):
        divisor = rng.choice((None, None, 60, 3600, 86400, 7, -60, 0.001, 1.5, 31536000))
        field = rng.choice(("epoch", "epoch", "day"))
        taken, leaf = rng.choice((("extract({0} FROM now() - at)", 1), ("date_part('{0}', now() - at)", 1), ("extract({0} FROM localtimestamp - plain)", 1)))
        turns = rng.choice((0, 10, 60, 86400, 86407.000001, 172807, 7 * 86400, -50, -86400)) + rng.choice((0, 0, 1e-6, -1e-6, 5e-7))
        # The server's own value at that length, with and without all of its digits.
        number = plain.rows(f"SELECT ({taken.format(field).replace('now() - at', 'i').replace('localtimestamp - plain', 'i')} {f'/ {divisor}' if divisor else ''})::text"
                            f" FROM (SELECT timestamptz '2026-01-01' + make_interval(secs => {turns:f}) - '2026-01-01') d (i)", prepare=False)[0][0]
        number = rng.choice((number, number[:rng.randint(4, 12)].rstrip("-.e") or "0"))
        measured = taken.format(field) + (f" / {divisor}" if divisor else "")
        sides = [measured, f"({number})"]
        rng.shuffle(sides)
        condition = f"{sides[0]} {rng.choice(('<', '<=', '>', '>='))} {sides[1]}"
        for second in (0, rng.choice((0, 0.000001, 3, 7, 7.000001, 10)), rng.randint(0, 100)):
            logged.set(after(second))
            expected = plain.rows(count(condition), prepare=False)
            assert cached.rows(count(condition), prepare=False) == expected, (SEED, second, condition)
            seen[cached.outcome()] += 1
    assert set(seen) <= {("HIT", None), ("MISS", None), ("BYPASS", "moving_clock")} and seen["HIT", None] > seen["BYPASS", "moving_clock"], seen
