"""Rows that go directly from a stored entry to the client: they have the same bytes as execution gives, under every
setting that shapes them, and in every way a portal can be read."""

import random

import pytest
from support.asking import until_client_is_slow, until_gone
from support.fidelity import FORMATS, answer, check_outcome, check_same, executed
from support.told_rows import told_rows
from support.wire import data_rows, error_fields, tags, types

MOMENTS = """
    CREATE TABLE t AS SELECT g AS id, timestamptz '1840-01-01' + g * interval '17 days 5:43:21.123456' AS moment,
        timestamp '1840-01-01' + g * interval '17 days 5:43:21.1234' AS local, date '1840-01-01' + g * 17 AS day,
        time '0:00' + g * interval '97.25 seconds' AS clock, g * interval '1 day 3:02:01' AS span
    FROM generate_series(1, 5000) g;
    INSERT INTO t VALUES
        (0, 'infinity', 'infinity', 'infinity', '24:00', NULL),
        (-1, '-infinity', '-infinity', '-infinity', '0:00', '0'),
        (-2, '4714-11-25 BC', '4714-11-24 BC', '4714-11-24 BC', NULL, NULL),
        (-3, '294276-12-30', '294276-12-31', '5874897-12-31', NULL, NULL),
        (-4, '0001-01-01 BC', '0001-12-31 BC', '0001-01-01', NULL, NULL),
        (-5, '10000-01-01', '9999-12-31', '9999-12-31', NULL, NULL)"""

NUMBERS = """
    CREATE TABLE t AS SELECT g AS id, g::int2 AS small, g * 1000003 AS whole, g * 10000000000007 AS large,
        g::oid AS oid, (g / 7.0)::float4 AS ratio, g / 977.0::float8 AS measure, g / 8192.0 AS amount,
        md5(g::text)::uuid AS token,
        decode(md5(g::text), 'hex') AS image, md5(g::text) AS label,
        md5(g::text)::char(40) AS padded,
        g % 3 = 0 AS flag, jsonb_build_object('a', g, 'b', ARRAY[g, NULL]) AS properties,
        json_build_object('a', g) AS envelope,
        (g * 1000003)::text::xid8 AS xid,
        '16/B374D848'::pg_lsn + g AS lsn, g::text::money AS cash, ARRAY[g, NULL] AS numbers,
        'pg_class'::regclass AS relation, '10.0.0.1'::inet + g AS host,
        ('n' || g)::name AS name, '"'::"char" AS letter
    FROM generate_series(1, 300) g"""


def straight(session):
    """Collects how many rows went directly to the client from now on."""
    return told_rows(session, "rows went straight to the client")


def check_hits(session, query):
    """Execution gives the same as a hit, in both formats, and as the later hits, which may be sent as finished messages; the rows go directly
    to the client."""
    for result_format in FORMATS:
        expected = executed(session, query, result_format)
        answer(session, query, result_format)
        for _ in range(3):
            check_same(expected, answer(session, query, result_format))
            check_outcome(session, "HIT")


@pytest.mark.parametrize("zone", [
    "UTC", "Europe/Amsterdam", "America/New_York", "Australia/Lord_Howe", "Africa/Monrovia", "Pacific/Apia",
    "Asia/Kathmandu", "America/St_Johns", "Antarctica/Troll", "XYZ-3:45", "EST5EDT,M3.2.0,M11.1.0", "-7.5",
    "XYZ-99:59", "XYZ-100", "XYZ+123:45"])
@pytest.mark.parametrize("style", ["ISO", "SQL, DMY", "German", "Postgres, MDY"])
def test_moments(session, zone, style):
    session.execute(MOMENTS)
    session.execute("SELECT set_config('timezone', %s, false), set_config('datestyle', %s, false)", [zone, style])
    check_hits(session, "SELECT * FROM t ORDER BY id")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo", "Africa/Casablanca"])
def test_moments_around_each_change_of_offset(session, zone):
    """Seconds around every change of offset in two centuries, in an order that jumps."""
    session.execute("SELECT set_config('timezone', %s, false)", [zone])
    session.execute("""
        CREATE TABLE t AS
        WITH hours AS (SELECT h, lead(h) OVER (ORDER BY h) AS next
                       FROM generate_series('1890-01-01 UTC'::timestamptz, '2090-01-01 UTC', '1 hour') h),
             here AS (SELECT h, next, h::timestamp AS h_here, next::timestamp AS next_here FROM hours),
             changes AS (SELECT h, next FROM here WHERE h_here + (next - h) <> next_here)
        SELECT row_number() OVER (ORDER BY md5(h::text || s)) AS id, h + s * interval '1 second' AS moment
        FROM changes, generate_series(-1, 3601, 1200) s""")
    assert session.execute("SELECT count(*) FROM t").fetchone()[0] > 100
    check_hits(session, "SELECT * FROM t ORDER BY id")


@pytest.mark.parametrize("settings", [
    "extra_float_digits = 1", "extra_float_digits = 3", "extra_float_digits = 0", "extra_float_digits = -3",
    "bytea_output = escape", "intervalstyle = iso_8601", "client_encoding = LATIN1", "client_encoding = SQL_ASCII",
    "client_encoding = SJIS", "lc_monetary = 'C'"])
def test_settings(session, settings):
    session.execute(NUMBERS)
    session.execute(f"SET {settings}")
    check_hits(session, "SELECT * FROM t ORDER BY id")


def test_floats(session):
    """Texts of floats of all sizes, those between two equally near texts included."""
    rng = random.Random(5)
    values = ["0", "-0", "NaN", "Infinity", "-Infinity", "1e23", "-1e23", "9007199254740993", "5e-324"]
    values += [repr(rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300)) for _ in range(3000)]
    values += [repr(rng.randint(1, 9999) * 10.0 ** rng.randint(-10, 40)) for _ in range(3000)]
    values += [repr(float(rng.getrandbits(60))) for _ in range(2000)] 
    values += [repr(2.0 ** n) for n in range(-1070, 1024)]
    session.execute("""
        CREATE TABLE t AS
        SELECT n AS id, v::float8 AS eight FROM unnest(%s::text[]) WITH ORDINALITY u (v, n)""", [values])
    session.execute("""
        CREATE TABLE small AS
        SELECT id, eight::float4 AS four FROM t WHERE abs(eight) BETWEEN 1e-37 AND 1e38
        UNION ALL SELECT n, (33554432 + 4 * n)::float4 FROM generate_series(1, 3000) n
        UNION ALL SELECT n, n * 1e13::float4 FROM generate_series(1, 3000) n""")
    check_hits(session, "SELECT * FROM t ORDER BY id")
    check_hits(session, "SELECT * FROM small ORDER BY id, four")


def test_rows_go_straight(session):
    """All rows of a hit go directly to the client, whatever their types; no row of an execution does."""
    session.execute(NUMBERS)
    query = "SELECT * FROM t ORDER BY id"
    session.execute(query)
    counts = straight(session)
    for result_format in FORMATS:
        session.pgconn.exec_params(query.encode(), None, result_format=result_format)
        assert counts.pop() == 300 and not counts
    session.pgconn.exec_(query.encode())
    assert counts.pop() == 300
    executed(session, query)
    assert not counts


def test_large_rows_among_small_ones(session):
    """The block grows for a row that is larger."""
    session.execute("""
        CREATE TABLE t AS SELECT g AS id, repeat(md5(g::text), CASE WHEN g % 50 = 7 THEN 40000 ELSE g % 9 END) AS body,
            decode(repeat('0a', CASE WHEN g % 90 = 8 THEN 50000 ELSE 3 END), 'hex') AS image
        FROM generate_series(1, 400) g""")
    query = "SELECT * FROM t ORDER BY id"
    check_hits(session, query)
    counts = straight(session)
    session.pgconn.exec_(query.encode())
    assert counts == [400]


@pytest.mark.parametrize("rows", [0, 1, 2, 64, 65, 8000])
def test_shapes(session, wire, rows):
    session.execute(f"CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, {rows}) g")
    client = wire()
    for query in ("SELECT FROM t", "SELECT a, b FROM t ORDER BY a",
                  f"SELECT {', '.join(f'a + {n}' for n in range(1600 if rows < 100 else 3))} FROM t ORDER BY a"):
        client.query("SET pg_arrow_cache.enabled = off")
        expected = client.query(query)
        client.query("SET pg_arrow_cache.enabled = on")
        for status in ("MISS", "HIT", "HIT", "HIT"):
            assert client.query(query) == expected
            assert client.status() == status


@pytest.mark.parametrize("large", [1, 4, 5, 6, 9, 10])
def test_limits_around_a_large_row(session, wire, large):
    """A row for which the block grows may be the first or the last that an Execute asks for."""
    session.execute(f"""
        CREATE TABLE t AS SELECT g AS a, repeat(md5(g::text), CASE WHEN g = {large} THEN 2500 ELSE 1 END) AS b FROM generate_series(1, 20) g""")
    query = "SELECT a, b FROM t ORDER BY a"
    session.execute(query)
    seen = {}
    for enabled in "off", "on":
        client = wire()
        client.query(f"SET pg_arrow_cache.enabled = {enabled}")
        client.query("BEGIN")
        client.parse(query).bind(portal="p").sync()
        seen[enabled] = [client.execute("p", count).sync() for count in (5, 5, 100)]
    assert seen["on"] == seen["off"]
    assert types(seen["on"][0]) == "DDDDDsZ"


def test_limits_and_steps_back(session, wire):
    """Executes with a row limit, fetches forward and backward: each goes on where the last one stopped."""
    session.execute("CREATE TABLE t AS SELECT g AS a, repeat('x', 2000) AS b FROM generate_series(1, 200) g")
    session.execute("SELECT a, b FROM t ORDER BY a").fetchall()
    client = wire()
    seen = {}
    for enabled in ("off", "on"):
        rng = random.Random(3)
        client.query(f"SET pg_arrow_cache.enabled = {enabled}")
        client.query("BEGIN")
        client.query("DECLARE c SCROLL CURSOR FOR SELECT a, b FROM t ORDER BY a")
        got = seen[enabled] = []
        for _ in range(150):
            count = rng.randint(0, 60)
            way = rng.choice(["execute", "FORWARD", "BACKWARD", "ABSOLUTE"])
            if way == "execute":
                got.append(client.execute("c", count).sync())
            else:
                got.append(client.query(f"FETCH {way} {count} FROM c"))
        client.query("COMMIT")
    assert len(data_rows(sum(seen["on"], []))) > 200
    assert seen["on"] == seen["off"]


def test_a_prepared_statement_in_binary(session, wire):
    """EXECUTE runs in a portal of its own, in the formats of the portal around it."""
    session.execute("CREATE TABLE t AS SELECT g AS a, g * 0.5 AS b FROM generate_series(1, 10) g")
    client = wire()
    client.query("SET pg_arrow_cache.enabled = off")
    client.query("PREPARE q AS SELECT a, b FROM t ORDER BY a")
    expected = {f: client.parse("EXECUTE q").bind(result_format=f).execute().sync() for f in FORMATS}
    assert data_rows(expected[0]) != data_rows(expected[1])
    client.query("SET pg_arrow_cache.enabled = on")
    client.query("DEALLOCATE q")
    client.query("PREPARE q AS SELECT a, b FROM t ORDER BY a")
    for _ in range(2):
        for result_format in FORMATS:
            got = client.parse("EXECUTE q").bind(result_format=result_format).execute().sync()
            assert got == expected[result_format]
    assert client.status() == "HIT"


def test_an_error_comes_behind_the_rows_before_it(session, wire):
    """A value that does not exist in the encoding of the client is the same error as in an execution: after the same
    rows, with the same fields."""
    session.execute("""
        CREATE TABLE t AS
        SELECT g AS a, CASE WHEN g = 700 THEN 'Ω' ELSE 'é' || g END AS b FROM generate_series(1, 1000) g""")
    session.execute("SELECT a, b FROM t ORDER BY a")
    client = wire(client_encoding="LATIN1")
    client.query("SET pg_arrow_cache.enabled = off")
    expected = client.query("SELECT a, b FROM t ORDER BY a")
    client.query("SET pg_arrow_cache.enabled = on")
    got = client.query("SELECT a, b FROM t ORDER BY a")
    assert types(got) == "T" + "D" * 699 + "EZ"
    assert got == expected
    assert error_fields(got[-2])["C"] == "22P05"
    assert tags(client.query("SELECT 1")) == ["SELECT 1"]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_other_encodings_of_the_database(session, encoding):
    name = f"straight_{encoding.lower()}"
    session.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    try:
        with type(session).connect(session.info.dsn, dbname=name, options="", autocommit=True) as there:
            there.execute("CREATE EXTENSION pg_arrow_cache")
            for client in (encoding, "UTF8"):
                there.execute(f"SET client_encoding = '{client}'")
                there.execute("DROP TABLE IF EXISTS t")
                there.execute("""
                    CREATE TABLE t AS
                    SELECT g AS id, 'text ' || g AS a, g::text::varchar AS b, g::text::char(5) AS c, g::text::name AS d,
                        json_build_object('a', g) AS e, jsonb_build_object('a', g) AS f
                    FROM generate_series(1, 20) g""")
                if encoding == "LATIN1":
                    there.execute("UPDATE t SET a = convert_from('\\xe9'::bytea, 'LATIN1') WHERE id = 3")
                check_hits(there, "SELECT * FROM t ORDER BY id")
    finally:
        session.execute(f"DROP DATABASE {name}")


def test_a_client_that_does_not_read_can_be_ended(session, wire):
    """The backend waits for its client as in any send, and ends when it is terminated."""
    session.execute("CREATE TABLE t AS SELECT g AS a, repeat('x', 1000) AS b FROM generate_series(1, 20000) g")
    session.execute("SELECT a, b FROM t ORDER BY a").fetchall()
    client = wire()
    pid = int(client.value("SELECT pg_backend_pid()"))
    client.add(b"Q", b"SELECT a, b FROM t ORDER BY a\0").send()
    until_client_is_slow(session, pid)
    session.execute("SELECT pg_terminate_backend(%s)", [pid])
    until_gone(session, pid)
