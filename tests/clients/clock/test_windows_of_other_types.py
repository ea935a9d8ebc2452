"""A column that is compared with a time of another type: `timestamp` or `date` beside now(), `timestamptz` beside localtimestamp. The server compares them
by the session's time zone. Where its offset changes, local times do not come one after the other as those in UTC do, and the cache leaves that alone.

RANDOM_SEED=seed repeats a run."""

import collections
import datetime
import os
import random
import re
from pathlib import Path

import pytest
from support.functions import numbers
from support.windows import sessions

SEED = int(os.environ.get("RANDOM_SEED") or random.SystemRandom().randrange(2**32))

# Around a night in which Berlin and New York have no change of their offset, and around nights with one.
CALM = datetime.datetime(2026, 7, 9, 22, 0)
FORWARD = datetime.datetime(2026, 3, 29, 0, 50)
BACKWARD = datetime.datetime(2026, 10, 25, 0, 50)

TABLE = """
    SET TimeZone = UTC;
    DROP TABLE IF EXISTS log CASCADE;
    CREATE TABLE log (id int, at timestamptz, plain timestamp, day date);
    INSERT INTO log SELECT g, t, t, t::date FROM generate_series(0, 400) g, LATERAL (SELECT timestamp '{start}' + (g - 200) * interval '{step}') d (t);
    INSERT INTO log VALUES (1000, 'infinity', 'infinity', 'infinity'), (1001, '-infinity', '-infinity', '-infinity'), (1002, '4713-01-01 BC', '4713-01-01 BC', '4713-01-01 BC'),
        (1003, '294276-12-31', '294276-12-31', '5874897-12-31'), (1004, NULL, NULL, NULL);
"""
COLUMNS = (("plain", "now()"), ("plain", "statement_timestamp()"), ("day", "now()"), ("day", "localtimestamp"), ("at", "localtimestamp"))


def compare(server, cached, plain, rng, start, count, spread):
    seen = collections.Counter()
    for number in range(count):
        column, leaf = rng.choice(COLUMNS)
        operator = rng.choice(("<", "<=", ">", ">="))
        sides = [column, f"{leaf} - interval '{rng.choice((0, 0, 1, 60, 1800, 3600, 86400))} seconds'"]
        rng.shuffle(sides)
        question = f"SELECT count(*), min(id), max(id), sum(id) FROM log WHERE {sides[0]} {operator} {sides[1]}"
        moment = start + datetime.timedelta(seconds=rng.choice((0, 1, 600, 3600)) * rng.randrange(-spread, spread))
        server.set(str(moment + datetime.timedelta(microseconds=rng.choice((0, 0, 1, 999999)))))
        expected = plain.rows(question, prepare=False)
        for _ in range(2):
            assert cached.rows(question, prepare=False) == expected, (SEED, moment, question)
        seen[cached.outcome()] += 1
    return seen


@pytest.mark.parametrize("zone", ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC", "Etc/GMT+11", "Australia/Lord_Howe"))
@pytest.mark.parametrize("index", (True, False))
def test_calm_times(server, at, zone, index):
    print(f"RANDOM_SEED={SEED}")
    rng = random.Random(SEED)
    for step in ("10 minutes", "7 hours"):
        server.set(str(CALM))
        server.psql(TABLE.format(start=CALM, step=step))
        if index:
            server.psql("CREATE INDEX ON log (at); CREATE INDEX ON log (plain); CREATE INDEX ON log (day)")
        cached, plain = sessions(at, f"-c TimeZone={zone}" + (" -c seq_page_cost=1000000" if index else ""))
        assert cached.rows("SHOW TimeZone") == [(zone,)]
        seen = compare(server, cached, plain, rng, CALM, 60, 24)
        assert set(seen) == {("HIT", None)}, seen


@pytest.mark.parametrize("zone", ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"))
def test_nights_of_changes(server, at, zone):
    print(f"RANDOM_SEED={SEED}")
    rng = random.Random(SEED)
    seen = collections.Counter()
    for start in (FORWARD, BACKWARD):
        server.set(str(start))
        server.psql(TABLE.format(start=start, step="10 minutes"))
        cached, plain = sessions(at, f"-c TimeZone={zone}")
        seen += compare(server, cached, plain, rng, start, 150, 30)
    # The others change their offset a week before or later.
    changes = {("BYPASS", "moving_clock")} if zone == "Europe/Berlin" else set()
    assert set(seen) == {("HIT", None)} | changes and (not changes or seen["BYPASS", "moving_clock"] > 100), seen


def test_a_zone_by_rule(server, at):
    """A rule of the user's own may have offsets of days."""
    rng = random.Random(SEED)
    server.set(str(CALM))
    server.psql(TABLE.format(start=CALM, step="7 hours"))
    for zone, is_served in (("ABC-100DEF-160,M3.1.0,M11.1.0", False), ("<+05>-5", True), ("EST5EDT", False)):
        cached, plain = sessions(at)
        for session in (cached, plain):
            session.execute(f"SET TimeZone = '{zone}'")
        seen = compare(server, cached, plain, rng, CALM, 40, 60)
        local = {("BYPASS", "moving_clock"), ("HIT", None)}
        assert (set(seen) == {("HIT", None)}) == is_served and set(seen) <= local, (zone, seen)


def test_operators_are_those_of_the_server(at):
    """The tables of the cache, as pg_operator and pg_proc have them."""
    text = (Path(__file__).resolve().parents[3] / "src/query/clock/time_operators.rs").read_text()
    types = {"DATEOID": 1082, "TIMESTAMPOID": 1114, "TIMESTAMPTZOID": 1184, "INTERVALOID": 1186, "NUMERICOID": 1700, "FLOAT8OID": 701}
    comparing = {(int(function), name, types[left], types[right])
                 for left, right, functions in re.findall(r"^    \((\w+), (\w+), \[([\d, ]+)\]\),", text, re.MULTILINE)
                 for function, name in zip(functions.split(", "), ("<", "<=", ">", ">="), strict=True)}
    computing = {(types[left], int(function), gives) for left, function, gives in re.findall(r"\((\w+), (\d+), (\w+)\),", text)}
    seeking = {(types[of], int(operator), name) for of, operators in re.findall(r"\((\w+), \[([\d, ]+)\], \d\),", text)
               for operator, name in zip(operators.split(", "), ("<", ">", ">=", "="), strict=True)}
    rows = at().rows(
        "SELECT oprcode::oid::int, oprname, oprleft::int, oprright::int FROM pg_operator WHERE oprname IN ('<', '<=', '>', '>=')"
        " AND (oprleft IN (1082, 1114, 1184) AND oprright IN (1082, 1114, 1184) OR oprleft = oprright AND oprleft IN (1186, 1700, 701))")
    assert comparing == {tuple(row) for row in rows} and len(rows) == 48
    rows = at().rows(
        "SELECT oprleft::int, oprcode::oid::int, CASE WHEN oprname = '/' THEN 'Quotient' WHEN oprname = '+' THEN 'Sum'"
        " WHEN oprright = 1186 THEN 'Earlier' ELSE 'Difference' END FROM pg_operator"
        " WHERE oprleft IN (1114, 1184) AND (oprname = '-' AND oprright IN (oprleft, 1186) OR oprname = '+' AND oprright = 1186)"
        " OR oprname = '/' AND oprleft = oprright AND oprleft IN (1700, 701)")
    assert computing == {tuple(row) for row in rows} and len(rows) == 8
    rows = at().rows("SELECT oprleft::int, oid::int, oprname FROM pg_operator WHERE oprname IN ('<', '>', '>=', '=') AND oprleft = oprright AND oprleft IN (1082, 1114, 1184)")
    assert seeking == {tuple(row) for row in rows} and len(rows) == 12
    for names, condition in (("MEASURING", "proname IN ('extract', 'date_part') AND proargtypes[1] = 1186"), ("AGE", "proname = 'age' AND pronargs = 2")):
        assert numbers(names) == [row[0] for row in at().rows(f"SELECT oid::int FROM pg_proc WHERE {condition} ORDER BY oid")], names