"""Finished messages that are kept beside an answer: they have the bytes that execution gives, for each type, under each setting, and for each
way to read; they serve whole reads only, and go before answers do when memory is needed."""

import pytest
from support.asking import count_uses, until_client_is_slow
from support.fidelity import BINARY, FORMATS, TEXT, answer, check_same, executed, outcome
from support.samples import VALUES, fill
from support.told_rows import told_rows
from support.wire import data_rows, error_fields, tags, types

# What output functions of these types read is not all in the key: names of the catalog, the locale, types of users, the encoding of XML.
WITHOUT = {"money", "regclass", "regtype", "regproc", "xml", "pair", "pair[]", "nested", "positive[]", "floatrange", "jsonpath", "tid",
           "pg_snapshot", "refcursor"}
STYLES = [
    {}, {"datestyle": "SQL, DMY"}, {"datestyle": "German"}, {"intervalstyle": "iso_8601"}, {"timezone": "Asia/Kathmandu"},
    {"timezone": "America/New_York", "datestyle": "Postgres, MDY"}, {"extra_float_digits": "-5"}, {"extra_float_digits": "0"},
    {"bytea_output": "escape"}, {"intervalstyle": "sql_standard", "bytea_output": "escape"}, {"client_encoding": "LATIN1"},
]
MIXED = """
    CREATE TABLE t AS SELECT g AS id, timestamptz '2024-01-01' + g * interval '17:43:21.123456' AS moment, date '2024-01-01' + g AS day,
        g * interval '1 day 3:02:01' AS span, g / 7.0::float8 AS ratio, decode(md5(g::text), 'hex') AS image, ARRAY[g / 3.0::float4, NULL] AS ratios,
        daterange('2024-01-01'::date, '2024-01-01'::date + g) AS days, '10.0.0.1'::inet + g AS host, 'Zeile ' || g || ' ä' AS label
    FROM generate_series(1, 60) g"""
# Larger answers are sent as they lie from the second hit on.
LARGE = 64 * 1024
QUERY = "SELECT * FROM t ORDER BY id"


def sent_as_they_lay(session):
    """Collects how many rows went to the client as finished messages from now on."""
    return told_rows(session, "rows went to the client as they lay")


def rendition_bytes(session):
    return session.execute("SELECT sum(rendition_bytes) FROM arrow_cache.entries").fetchone()[0]


def warm(session, query, result_format=TEXT):
    """An answer that is sent as it lies from now on, for the present settings."""
    for _ in range(3):
        got = answer(session, query, result_format)
    return got


@pytest.mark.parametrize("sql_type", VALUES)
def test_types(session, sql_type):
    fill(session, sql_type)
    # Enough values for a rendition.
    query = "SELECT a.id, b.id AS other, a.v FROM t a, t b, generate_series(1, 4) g ORDER BY 1, 2"
    for result_format in FORMATS:
        expected = executed(session, query, result_format)
        warm(session, query, result_format)
        if outcome(session)[0] != "HIT":
            pytest.skip("not cached")
        if session.execute("SELECT max(bytes) FROM arrow_cache.entries").fetchone()[0] > LARGE:
            for _ in range(2):
                count_uses(session)
                answer(session, query, result_format)
        counts = sent_as_they_lay(session)
        check_same(expected, answer(session, query, result_format))
        rows = len(expected[1]) if isinstance(expected[0], list) else 0
        assert counts == ([] if sql_type in WITHOUT else [rows])
        session.execute("RESET client_min_messages")


@pytest.mark.parametrize("result_format", FORMATS)
def test_settings(session, result_format):
    session.execute(MIXED)
    expected = []
    for style in STYLES:
        for name, value in style.items():
            session.execute(f"SET {name} = '{value}'")
        expected.append(executed(session, QUERY, result_format))
        session.execute("RESET ALL")
    assert len({repr(got[1]) for got in expected}) >= (6 if result_format == TEXT else 1)
    for _ in range(4):
        for style, right in zip(STYLES, expected):
            for name, value in style.items():
                session.execute(f"SET {name} = '{value}'")
            for _ in range(2):
                check_same(right, answer(session, QUERY, result_format))
            session.execute("RESET ALL")
    assert rendition_bytes(session) > 0


def test_formats_of_columns(session, wire):
    """The formats of all columns decide."""
    session.execute("CREATE TABLE t AS SELECT g AS a, g * 2 AS b, 'x' || g AS c FROM generate_series(1, 50) g")
    client = wire()
    query = "SELECT a, b, c FROM t ORDER BY a"
    expected, seen = {}, []
    for enabled in ("off", "on", "on", "on"):
        client.query(f"SET pg_arrow_cache.enabled = {enabled}")
        for formats in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1)):
            client.parse(query).add(b"B", b"\0\0" + b"\0\0" + b"\0\0" + b"\0\3" + b"".join(f.to_bytes(2, "big") for f in formats))
            got = data_rows(client.execute().sync())
            assert expected.setdefault(formats, got) == got
            seen.append(repr(got))
    assert len(set(seen)) == 4


@pytest.mark.parametrize("result_format", FORMATS)
def test_labels_of_enums(session, other, result_format):
    """Labels stand in finished messages, and new labels make new ones."""
    session.execute("""
        CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE colour AS ENUM ('red'); CREATE DOMAIN feeling AS mood""")
    session.execute("ALTER TYPE mood ADD VALUE 'a bit sad' BEFORE 'sad'")
    session.execute("""
        CREATE TABLE t AS SELECT g AS id, (ARRAY['sad', 'a bit sad', 'ok', NULL])[g % 4 + 1]::mood AS m, 'red'::colour AS c,
            (ARRAY['sad', 'ok'])[g % 2 + 1]::feeling AS d, 'x' || g AS label FROM generate_series(1, 30) g;
        CREATE TABLE lists AS SELECT g AS id, ARRAY['ok', NULL]::mood[] AS list FROM generate_series(1, 30) g""")
    counts = sent_as_they_lay(session)
    check_same(executed(session, QUERY, result_format), warm(session, QUERY, result_format))
    counts.clear()
    check_same(executed(session, QUERY, result_format), answer(session, QUERY, result_format))
    assert counts == [30]
    for change, label in (("RENAME VALUE 'sad' TO 'glum'", b"glum"), ("RENAME VALUE 'glum' TO 'très triste'", "très triste".encode())):
        other.execute(f"ALTER TYPE mood {change}")
        for _ in range(4):
            check_same(executed(session, QUERY, result_format), answer(session, QUERY, result_format))
        assert counts[-1] == 30
        assert label in {row[1] for row in answer(session, QUERY, result_format)[1]}
    lists = "SELECT * FROM lists ORDER BY id"
    for old, new in (("ok", "fine"), ("fine", "ok")):
        check_same(executed(session, lists, result_format), warm(session, lists, result_format))
        answer(session, lists, result_format)
        assert counts[-1] == 30
        counts.append(0)
        other.execute(f"ALTER TYPE mood RENAME VALUE '{old}' TO '{new}'")


def test_label_that_is_gone(session, other):
    """A value whose label somebody has deleted from the catalog raises the server's error, as without the cache, and makes no messages."""
    session.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE t AS SELECT g AS id, 'ok'::mood AS m FROM generate_series(1, 30) g")
    late = session.execute("SELECT oid FROM pg_enum WHERE enumtypid = 'mood'::regtype AND enumlabel = 'ok'").fetchone()[0]
    session.execute("SELECT count(*) FROM t")
    warm(session, "SELECT id, m::text FROM t ORDER BY id")
    counts = sent_as_they_lay(session)
    other.execute("SET allow_system_table_mods = on")
    other.execute("DELETE FROM pg_enum WHERE oid = %s", [late])
    for _ in range(3):
        got = answer(session, QUERY)
        check_same(executed(session, QUERY), got)
        assert "invalid internal value for enum" in str(got)
    assert counts == []


def test_labels_that_a_session_remembers(session, other, connect):
    """A session in a transaction, which holds its locks already, may not have heard of new labels. What it sends goes to nobody else."""
    session.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN feeling AS mood; CREATE TABLE t AS SELECT g AS id, 'sad'::mood AS m, "
                    "'sad'::feeling AS d, ARRAY['ok', 'sad']::mood[] AS list FROM generate_series(1, 30) g")
    late, third = connect(), connect()
    for column in ("m", "d", "list"):
        query = f"SELECT id, {column}, id + 1 AS next FROM t ORDER BY id"
        for names in (("sad", "glum"), ("glum", "sad")):
            # Its plan is prepared, so that nothing but the tables is locked.
            late.execute("BEGIN")
            late.execute(query, prepare=True).fetchall()
            other.execute(f"ALTER TYPE mood RENAME VALUE '{names[0]}' TO '{names[1]}'")
            expected = executed(third, query)
            assert names[1].encode() in expected[1][0][1]
            check_same(expected, answer(other, query))
            late.execute(query, prepare=True).fetchall()
            check_same(expected, answer(third, query))
            check_same(expected, answer(third, query))
            late.execute("COMMIT")


def test_other_tables_and_writes(session, other):
    session.execute(MIXED)
    counts = sent_as_they_lay(session)
    for n in range(5):
        warm(session, QUERY)
        check_same(executed(session, QUERY), answer(session, QUERY))
        other.execute("UPDATE t SET label = label || '!' WHERE id = %s", [n + 1])
        check_same(executed(session, QUERY), answer(session, QUERY))
    assert len(counts) >= 5


def test_whole_reads_only(session, wire):
    session.execute("CREATE TABLE t AS SELECT g AS a, 'x' || g AS b FROM generate_series(1, 50) g")
    query = "SELECT a, b FROM t ORDER BY a"
    warm(session, query)
    assert rendition_bytes(session) > 0
    client = wire()
    seen = {}
    for enabled in ("off", "on"):
        got = seen[enabled] = []
        client.query(f"SET pg_arrow_cache.enabled = {enabled}")
        for limit in (0, 1, 49, 50, 51):
            client.parse(query).bind().execute(max_rows=limit)
            got.append(client.sync())
        client.query("BEGIN")
        for declare, steps in (("SCROLL", ["ALL", "BACKWARD 3", "FORWARD 2", "ABSOLUTE 5", "ALL", "BACKWARD ALL", "ALL"]),
                               ("NO SCROLL", ["ALL", "ALL"]), ("", ["10", "ALL", "1"])):
            client.query(f"DECLARE c {declare} CURSOR FOR {query}")
            got += [client.query(f"FETCH {step} FROM c") for step in steps]
            client.query("CLOSE c")
        client.query("COMMIT")
        client.parse(query).bind(portal="p").execute("p").execute("p", 5).execute("p")
        got.append(client.sync())
        client.query(f"PREPARE q AS {query}")
        got += [client.query("EXECUTE q"), client.query("EXECUTE q"), client.query("DEALLOCATE q")]
        got.append(client.query(f"{query}; {query}"))
    assert seen["on"] == seen["off"]


def test_what_is_measured_or_stored_elsewhere(session):
    session.execute(MIXED)
    warm(session, QUERY)
    plan = "\n".join(row[0] for row in session.execute(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {QUERY}"))
    assert "rows=60" in plan
    session.execute(f"CREATE TABLE copied AS {QUERY}")
    assert session.execute("SELECT count(*) FROM copied").fetchone() == (60,)


def test_large_results_from_the_second_hit_on(session):
    session.execute("CREATE TABLE t AS SELECT g AS id, repeat(md5(g::text), 10) AS body, now()::timestamptz AS at FROM generate_series(1, 5000) g")
    expected = executed(session, QUERY)
    counts = sent_as_they_lay(session)
    check_same(expected, answer(session, QUERY))
    check_same(expected, answer(session, QUERY))
    assert rendition_bytes(session) == 0
    for _ in range(6):
        check_same(expected, answer(session, QUERY))
        count_uses(session)
    assert counts and set(counts) == {5000}
    assert rendition_bytes(session) > 5000 * 320


def test_small_rows_have_none(session):
    session.execute("CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 10) g")
    warm(session, "SELECT id FROM t WHERE id < 4 ORDER BY id")
    assert rendition_bytes(session) == 0


def test_a_client_that_does_not_read_can_be_ended(session, wire):
    """While finished messages are sent, and while they are made."""
    session.execute("CREATE TABLE t AS SELECT g AS id, repeat('x', 1000) AS b FROM generate_series(1, 8000) g")
    expected = executed(session, QUERY)
    answer(session, QUERY)
    used = session.execute("SELECT bytes_used FROM arrow_cache.stats").fetchone()[0]
    for way in ("terminate", "cancel", "terminate", "cancel"):
        answer(session, QUERY)
        count_uses(session)
        client = wire()
        pid = int(client.value("SELECT pg_backend_pid()"))
        client.add(b"Q", QUERY.encode() + b"\0").send()
        until_client_is_slow(session, pid)
        session.execute(f"SELECT pg_{way}_backend(%s)", [pid])
        if way == "cancel":
            ended = client.until_ready()
            # The cancel is taken when the client reads again, behind whole rows.
            assert types(ended)[0] == "T" and set(types(ended)[1:-1]) <= {"D", "E", "C"}
            assert "E" not in types(ended) or error_fields(ended[-2])["C"] == "57014"
            assert client.value("SELECT 1") == "1"
        client.close()
        check_same(expected, answer(session, QUERY))
    assert rendition_bytes(session) > 0
    session.execute("SELECT arrow_cache.flush()")
    assert session.execute("SELECT bytes_used FROM arrow_cache.stats").fetchone()[0] < used


def test_the_server_counts_rows(session, wire):
    session.execute(MIXED)
    warm(session, QUERY)
    client = wire()
    assert tags(client.query(QUERY)) == tags(client.query(QUERY)) == ["SELECT 60"]
    assert len(data_rows(client.query(QUERY))) == 60
    assert len(answer(session, QUERY, BINARY)[1]) == 60
