"""Intervals, addresses and ranges are delivered as the texts that the server's own functions write under the settings of exports, whatever the settings of the session."""

import os
import random

import pytest

from support.exports import read_query

SEED = int(os.environ.get("RANDOM_SEED") or random.SystemRandom().randrange(2**32))
EXPORTED = "-c intervalstyle=postgres -c datestyle=ISO -c timezone=UTC"
OTHER = "-c intervalstyle=iso_8601 -c datestyle=SQL,DMY -c timezone=Asia/Tokyo"

# A number of any size, most of them small, and an interval, a date and a moment made of such.
NUMBER = "((random() - 0.5) * 10 ^ (random() * {digits}))"
INTERVAL = f"make_interval(months => {NUMBER}::int, days => {NUMBER}::int, secs => {NUMBER})".format(digits=9)
DATE = f"(date '2000-01-01' + {NUMBER}::int)".format(digits=6)
MOMENT = f"(timestamp '2000-01-01' + make_interval(days => {NUMBER}::int, secs => {NUMBER}))".format(digits=6)
TEXTS = "(ARRAY['[]', '[)', '(]', '()'])[1 + floor(random() * 4)]"
# So that some addresses have zeros behind each other.
WORD = "(CASE floor(random() * 4) WHEN 0 THEN to_hex(floor(random() * 65536)::int) WHEN 1 THEN 'ffff' ELSE '0' END)"
SIX = " || ':' || ".join([WORD] * 8)
FOUR = " || '.' || ".join(["floor(random() * 256)"] * 4)


def a_range(name, bound):
    """Both bounds in order, or one of them, or none."""
    return f"""CASE floor(random() * 6) WHEN 0 THEN {name}(NULL, {bound}, {TEXTS}) WHEN 1 THEN {name}({bound}, NULL, {TEXTS}) WHEN 2 THEN {name}(NULL, NULL)
        WHEN 3 THEN (SELECT {name}(b, b, {TEXTS}) FROM (SELECT {bound} AS b) s)
        ELSE (SELECT {name}(least(a, b), greatest(a, b), {TEXTS}) FROM (SELECT {bound} AS a, {bound} AS b) s) END"""


VALUES = {
    "interval": INTERVAL,
    "inet": f"set_masklen((CASE WHEN random() < 0.5 THEN {FOUR} ELSE {SIX} END)::inet, 32 - floor(random() * 33)::int)",
    "cidr": f"network(set_masklen((CASE WHEN random() < 0.5 THEN {FOUR} ELSE {SIX} END)::inet, 32 - floor(random() * 20)::int))",
    "int4range": a_range("int4range", f"{NUMBER}::int".format(digits=9)),
    "int8range": a_range("int8range", f"{NUMBER}::int8".format(digits=18)),
    "daterange": a_range("daterange", DATE),
    "tsrange": a_range("tsrange", MOMENT),
    "tstzrange": a_range("tstzrange", f"({MOMENT} AT TIME ZONE 'UTC')"),
}
# What lies at the ends, and what only some versions know.
ENDS = {
    "interval": ["0", "178956970 years 7 mons 2147483647 days 2562047788:00:54.775807", "-178956970 years -8 mons -2147483647 days -2562047788:00:54.775807", "-1 day 00:00:01", "1 year -00:00:01"],
    "inet": ["::", "::1", "::1.2.3.4", "::ffff:1.2.3.4/100", "::ffff:0:0", "1::", "fe80::1/64", "0.0.0.0/0", "255.255.255.255", "0:0:0:0:0:0:0:2", "1:0:0:2:0:0:0:3", "::2:0:0:0:0/3"],
    "cidr": ["::/0", "::1/128", "10/8", "10.1.2.3", "::ffff:1.2.3.4/128"],
    "int4range": ["empty", "(,)", "[2147483647,2147483647)", "[-2147483648,-2147483647)"],
    "int8range": ["empty", "[-9223372036854775808,9223372036854775807)"],
    "daterange": ["empty", "[-infinity,infinity]", "[4713-01-01 BC,5874897-12-31)", "(,0001-01-01 BC]"],
    "tsrange": ["empty", "[-infinity,infinity]", "[4713-01-01 00:00 BC,294276-12-31 23:59:59.999999]"],
    "tstzrange": ["empty", "(-infinity,infinity)", "[4713-01-01 00:00+00 BC,294276-12-31 23:59:59.999999+00]"],
}


@pytest.mark.parametrize("sql_type", VALUES)
def test_they_are_the_servers(connect, sql_type):
    print(f"RANDOM_SEED={SEED}")
    session, other = connect(EXPORTED), connect(OTHER)
    ends = ", ".join(f"('{end}'::{sql_type})" for end in ENDS[sql_type])
    session.execute(f"""SELECT setseed({SEED / 2**32});
        CREATE TABLE t AS SELECT row_number() OVER () AS id, v FROM (VALUES {ends}) e (v);
        INSERT INTO t SELECT 100 + g, {VALUES[sql_type]} FROM generate_series(1, 3000) g;
        INSERT INTO t VALUES (99, NULL)""")
    if sql_type == "interval":
        # Infinite since 17.
        session.execute("INSERT INTO t VALUES (98, '178956970 years 7 mons 2147483647 days 2562047788:00:54.775807'), (97, '-178956970 years -8 mons -2147483647 days -2562047788:00:54.775807')")
    session.execute(f"CREATE DOMAIN d AS {sql_type}; ALTER TABLE t ADD d d; UPDATE t SET d = v")
    query = "SELECT v, ARRAY[v, NULL] AS a, d FROM t WHERE v IS NOT NULL ORDER BY id"
    # A cast to text is another function than that of output.
    expected = [text for text, in session.uncached("SELECT format('%s', v) FROM t WHERE v IS NOT NULL ORDER BY id")]
    assert len(set(expected)) > 500
    for status in ("MISS", "HIT"):
        table, _ = read_query(other, query)
        assert other.status() == status
        assert table.column("v").to_pylist() == expected
        assert table.column("d").to_pylist() == expected
        assert table.column("a").to_pylist() == [[text, None] for text in expected]
