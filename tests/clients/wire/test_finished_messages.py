"""Messages that are kept beside an entry: what a client gets has the bytes that execution gives, whatever shapes them."""

import threading
import time

import pytest
from support.asking import count_uses, until_gone
from support.wire import data_rows, error_fields, tags, types

TABLE = """
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad');
    CREATE TYPE pair AS (a int, b date);
    CREATE DOMAIN score AS numeric(6, 2);
    CREATE TABLE t AS SELECT g AS id, (ARRAY['sad', 'ok', 'glad'])[1 + g % 3]::mood AS mood, ARRAY[g, NULL, -g] AS numbers,
        ARRAY['glad', 'sad']::mood[] AS moods, g * interval '1 day 3:02:01.5' AS span, int4range(g, g + 5) AS range,
        tstzrange('2024-01-01 UTC', '2024-01-01 UTC'::timestamptz + g * interval '1 hour') AS period,
        '10.0.0.1'::inet + g AS host, (g / 7.0)::score AS score,
        g / 7.0::float8 AS ratio, timestamptz '2024-03-30 UTC' + g * interval '7 hours' AS moment,
        date '2024-01-01' + g AS day, decode(md5(g::text), 'hex') AS image, 'café ' || g AS label,
        NULLIF(g % 4, 0) AS gap
    FROM generate_series(1, 40) g"""
ALL = "SELECT * FROM t ORDER BY id"
# Results with labels of enums have no finished messages.
QUERY = "SELECT id, numbers, span, range, period, host, score, ratio, moment, day, image, label, gap FROM t ORDER BY id"
SETTINGS = [
    "client_encoding = latin1", "client_encoding = sql_ascii", "client_encoding = utf8", "datestyle = 'SQL, DMY'", "datestyle = 'German'",
    "intervalstyle = iso_8601", "timezone = 'America/New_York'", "timezone = 'XYZ-3:45'", "extra_float_digits = 0",
    "extra_float_digits = -3", "bytea_output = escape", "lc_monetary = 'C'", "xmloption = document",
]


@pytest.fixture
def client(session, wire):
    session.execute(TABLE)
    return wire()


def bytes_of_renditions(session):
    return session.rows("SELECT sum(rendition_bytes)::int FROM arrow_cache.entries WHERE query ILIKE '%FROM t%'")[0][0] or 0


def bodies(messages):
    return [message.body for message in messages if message.type == "D"]


def plain(client, query=QUERY, result_format=0):
    client.query("SET pg_arrow_cache.enabled = off")
    expected = bodies(client.parse(query).bind(result_format=result_format).execute().sync())
    client.query("RESET pg_arrow_cache.enabled")
    return expected


def check(client, query=QUERY, result_format=0):
    """One miss at most, and then hits: of which the first makes a rendition, and the others are one."""
    expected = plain(client, query, result_format)
    assert expected
    for run in range(4):
        assert bodies(client.parse(query).bind(result_format=result_format).execute().sync()) == expected
        assert client.status() == "HIT" or run == 0
    if not result_format:
        assert bodies(client.query(query)) == expected


def test_kept_and_shown(session, client):
    client.query(QUERY)
    assert bytes_of_renditions(session) == 0
    client.query(QUERY)
    assert bytes_of_renditions(session) > 10_000
    [(total, kept)] = session.rows("SELECT bytes, rendition_bytes FROM arrow_cache.entries WHERE query ILIKE '%FROM t%'")
    assert total > kept
    session.execute("SELECT arrow_cache.flush()")
    assert bytes_of_renditions(session) == 0


@pytest.mark.parametrize("result_format", [0, 1])
def test_each_setting_between_hits(session, client, result_format):
    check(client, result_format=result_format)
    for setting in SETTINGS:
        client.query(f"SET {setting}")
        check(client, result_format=result_format)
        client.query(f"RESET {setting.split(' ')[0]}")
        check(client, result_format=result_format)


def test_formats_and_encodings_by_turns(session, client):
    """More forms than an entry keeps: each gives its own bytes, in any order."""
    for _ in range(3):
        for encoding in ("utf8", "latin1", "latin9"):
            client.query(f"SET client_encoding = {encoding}")
            for result_format in (0, 1):
                check(client, result_format=result_format)


def test_label_renamed(session, client, other):
    check(client, ALL)
    assert b"glad" in bodies(client.query(ALL))[1]
    other.execute("ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'")
    assert b"happy" in bodies(client.query(ALL))[1]
    check(client, ALL)


def test_label_renamed_in_the_transaction_of_a_portal(session, client):
    check(client, ALL)
    client.query("BEGIN")
    client.parse(ALL, "s").bind(name="s", portal="p").step("2")
    client.query("ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'")
    received = client.execute("p").step("C", "E")
    assert b"happy" in bodies(received)[1]
    client.sync()
    client.query("ROLLBACK")
    check(client, ALL)


def test_label_renamed_in_the_own_transaction(session, client):
    check(client, ALL)
    client.query("BEGIN; ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'")
    assert b"happy" in bodies(client.query(ALL))[1]
    client.query("ROLLBACK")
    assert b"glad" in bodies(client.query(ALL))[1]


def test_settings_changed_between_bind_and_execute(session, client):
    check(client)
    client.query("BEGIN")
    client.parse(QUERY, "s").bind(name="s", portal="p").step("2")
    client.query("SET datestyle = German")
    german = bodies(client.execute("p").step("C", "E"))
    client.sync()
    client.query("COMMIT")
    assert german == plain(client)


def test_row_limits(session, client):
    check(client)
    expected = plain(client)
    for limit in (1, 39, 40, 41, 100):
        client.query("BEGIN")
        received = client.parse(QUERY).bind(portal="p").execute("p", limit).step("C", "s")
        rows = bodies(received)
        while received[-1].type == "s":
            received = client.execute("p", limit).step("C", "s")
            rows += bodies(received)
        client.sync()
        client.query("COMMIT")
        assert rows == expected


def test_cursors_in_both_directions(session, client):
    check(client)
    expected = plain(client)
    for kind in ("SCROLL CURSOR", "NO SCROLL CURSOR", "SCROLL CURSOR WITH HOLD"):
        client.query(f"BEGIN; DECLARE c {kind} FOR {QUERY}")
        assert bodies(client.query("FETCH ALL FROM c")) == expected
        assert bodies(client.query("FETCH ALL FROM c")) == []
        if not kind.startswith("NO"):
            assert bodies(client.query("FETCH PRIOR FROM c")) == expected[-1:]
            assert bodies(client.query("FETCH BACKWARD ALL FROM c")) == expected[-2::-1]
            assert bodies(client.query("FETCH ALL FROM c")) == expected
            assert bodies(client.query("FETCH ABSOLUTE 3 FROM c")) == expected[2:3]
            assert bodies(client.query("FETCH ALL FROM c")) == expected[3:]
        client.query("CLOSE c; COMMIT")


def test_counts(session, client):
    for _ in range(4):
        assert tags(client.query(QUERY)) == ["SELECT 40"]


def test_types_of_doubt_get_none(session, wire):
    """What is printed by names, and rows that do not tell what they hold."""
    session.execute("CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 20) g")
    client = wire()
    for query in ("SELECT id, 't'::regclass FROM t ORDER BY id", "SELECT id, (id, id::text) FROM t ORDER BY id"):
        expected = plain(client, query)
        for _ in range(4):
            assert bodies(client.query(query)) == expected
    assert bytes_of_renditions(session) == 0


def large(session):
    session.execute("CREATE TABLE t AS SELECT g AS id, repeat('x', 100) || g AS label, ARRAY[g] AS list FROM generate_series(1, 30000) g")


def test_cancelled_and_killed_while_sending(session, wire):
    large(session)
    used = []
    for way in ("cancel", "kill", "cancel", "kill"):
        client = wire()
        for _ in range(3):
            client.query(ALL)
            count_uses(session)
        used.append(session.rows("SELECT bytes_used FROM arrow_cache.stats")[0][0])
        client.add(b"Q", ALL.encode() + b"\0").send()
        received = [client.read() for _ in range(50)]
        assert "D" in types(received)
        if way == "cancel":
            client.cancel()
            last = client.until_ready()
            assert error_fields(next(m for m in last if m.type == "E"))["C"] == "57014"
            assert len(data_rows(client.query(ALL))) == 30000
        else:
            pid = session.rows("SELECT pid FROM pg_stat_activity WHERE query = %s AND state = 'active'", [ALL])[0][0]
            session.execute("SELECT pg_terminate_backend(%s)", [pid])
            with pytest.raises((ConnectionError, OSError)):
                while True:
                    client.read()
            until_gone(session, pid)
    # The first ones make the messages.
    assert max(used[2:]) - min(used[2:]) < 100_000


def test_many_sessions_on_one_entry(session, client, wire, other):
    """They make, send and outdate renditions at once."""
    expected, wrong = plain(client), []

    def read():
        own = wire()
        for _ in range(60):
            if bodies(own.query(QUERY)) != expected:
                wrong.append(own)

    readers = [threading.Thread(target=read) for _ in range(6)]
    for reader in readers:
        reader.start()
    while any(reader.is_alive() for reader in readers):
        other.execute("UPDATE t SET id = id WHERE id = 1")
        time.sleep(0.01)
    for reader in readers:
        reader.join()
    assert not wrong
