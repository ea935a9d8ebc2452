"""Windows that move with the clock: the bounds are computed when the statement is planned, and the parts inside are stored. Each answer stands
beside that of the server in the same transaction, in which the time stands still."""

import random

import pytest

from support.agreement import agree_on_result
from support.fragment_world import parts_of

FORCED = "-c pg_arrow_cache.debug_force_fragments=on"
ZONES = ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia"]
MOVING = [
    "at > now() - interval '{days} days'",
    "at >= now() - {days} * interval '1 day' AND at < now()",
    "at BETWEEN now() - interval '{days} days 3 hours' AND now() - interval '{less} days'",
    "now() - interval '{days} days' <= at",
    "at >= CURRENT_TIMESTAMP - interval '{days} days'",
]
COARSE = [
    "at >= date_trunc('month', now()) - interval '{months} months'",
    "at > CURRENT_DATE - {days}",
    "at >= date_trunc('day', now() - interval '{days} days') AND at < date_trunc('month', now())",
    "at >= (CURRENT_DATE - {days})::timestamptz",
]
REFUSED = [
    "at > statement_timestamp() - interval '40 days'",
    "at + interval '1 day' > now()",
    "at > clock_timestamp() - interval '40 days'",
    "at > now() - v * interval '1 day'",
]


@pytest.fixture
def world(session):
    session.execute("CREATE TABLE m (at timestamptz, v int) PARTITION BY RANGE (at)")
    for month in range(12):
        bound = "date_trunc('month', now()) - {} * interval '1 month'"
        low, high = session.rows(f"SELECT {bound.format(11 - month)}, {bound.format(10 - month)}")[0]
        session.execute(f"CREATE TABLE m{month} PARTITION OF m FOR VALUES FROM ('{low}') TO ('{high}')")
    session.execute("CREATE TABLE rest PARTITION OF m DEFAULT")
    session.execute("INSERT INTO m SELECT now() - g * interval '5 hours', g FROM generate_series(-200, 1700) g;"
                    "INSERT INTO m SELECT date_trunc('month', now()) - g * interval '1 month', g FROM generate_series(0, 11) g;"
                    "INSERT INTO m VALUES (NULL, 1)")


def asked(condition, columns="count(*), sum(v), min(at), max(at)"):
    return f"SELECT {columns} FROM m WHERE {condition}"


def parts(session, query):
    return parts_of(line for line, in session.rows(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {query}"))


@pytest.mark.parametrize("condition", MOVING + COARSE)
def test_parts_inside_of_a_window_are_stored(connect, world, condition):
    reader = connect(FORCED, prepare_threshold=None)
    query = asked(condition.format(days=200, less=3, months=6))
    agree_on_result(reader, query)
    agree_on_result(reader, query)
    # One more column above the same parts, so that it is no hit.
    stored, computed = parts(reader, query.replace(" FROM", ", 1 FROM"))
    assert stored >= 3
    assert computed <= 3


@pytest.mark.parametrize("condition", REFUSED)
def test_what_is_no_bound_is_executed_as_ever(connect, world, condition):
    reader = connect(FORCED, prepare_threshold=None)
    assert parts(reader, asked(condition)) is None


def test_the_second_execution_is_combined(connect, world):
    reader = connect("-c pg_arrow_cache.fragment_min_time=0", prepare_threshold=None)
    query = asked(MOVING[0].format(days=100))
    runs = []
    for _ in range(3):
        # So that the answer as a whole is outdated.
        reader.execute("UPDATE m SET v = v + 1 WHERE at IS NULL")
        before = reader.rows("SELECT fragment_runs, fragments_served FROM arrow_cache.stats")[0]
        reader.rows(query)
        after = reader.rows("SELECT fragment_runs, fragments_served FROM arrow_cache.stats")[0]
        runs.append((after[0] - before[0], after[1] - before[1] > 0))
    assert runs == [(0, False), (1, False), (1, True)]


@pytest.mark.parametrize("prepared", [False, True])
def test_a_window_that_is_refused_when_it_starts(connect, session, prepared):
    """No index tells how long the answer holds, and to read the table for that would take too long."""
    session.execute("""
        CREATE TABLE wide (at timestamptz, v int, pad text) PARTITION BY RANGE (at);
        CREATE TABLE before PARTITION OF wide FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
        CREATE TABLE after PARTITION OF wide FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);
        INSERT INTO wide SELECT now() - g * interval '1 day', g, repeat('x', 1000) FROM generate_series(1, 8000) g;
        ANALYZE wide""")
    reader = connect("-c pg_arrow_cache.fragment_min_time=0 -c plan_cache_mode=force_generic_plan", prepare_threshold=0 if prepared else None)
    query = "SELECT count(*), sum(v) FROM wide WHERE at > now() - interval '20 years'"
    runs = []
    for _ in range(6):
        # A plan that is kept is made anew when another transaction has ended.
        session.execute("UPDATE wide SET v = v WHERE v = 1")
        before = reader.rows("SELECT fragment_runs FROM arrow_cache.stats")[0][0]
        rows = reader.rows(query)
        assert reader.outcome() == ("BYPASS", "moving_clock")
        assert rows == session.uncached(query)
        runs.append(reader.rows("SELECT fragment_runs FROM arrow_cache.stats")[0][0] - before)
    assert runs[0] == 0 and runs[-1] == 1


def test_the_answer_as_a_whole_stays_a_bypass(connect, world):
    reader = connect(FORCED, prepare_threshold=None)
    reader.rows(asked(MOVING[0].format(days=100)))
    assert reader.rows("SELECT arrow_cache.last_status(), arrow_cache.last_reason()") == [("BYPASS", "moving_clock")]


def test_random_windows_while_rows_change(connect, world):
    chance = random.Random(15)
    reader, writer = connect(FORCED, prepare_threshold=None), connect()
    for step in range(150):
        if chance.random() < 0.3:
            writer.execute(f"UPDATE m SET v = v + 1 WHERE v = {chance.randrange(1700)}")
        if chance.random() < 0.1:
            writer.execute(f"UPDATE m SET at = at - interval '{chance.randrange(40)} days' WHERE v = {chance.randrange(1700)}")
        if chance.random() < 0.2:
            reader.execute(f"SET timezone = '{chance.choice(ZONES)}'")
        days = chance.randrange(1, 400)
        condition = chance.choice(MOVING + COARSE).format(days=days, less=days // 2, months=chance.randrange(14))
        columns = chance.choice(["count(*)", "sum(v), max(at)", "count(*) FILTER (WHERE v % 3 = 0), avg(v)"])
        agree_on_result(reader, asked(condition, columns))
        grouped = f"SELECT date_trunc('month', at) AS month, count(*) FROM m WHERE {condition} GROUP BY 1 ORDER BY 1"
        agree_on_result(reader, grouped)
    served = reader.rows("SELECT fragments_served FROM arrow_cache.stats")[0][0]
    assert served > 200
