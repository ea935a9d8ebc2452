"""The role, encoding and settings of a session decide which answer it may get, also after they were reset."""

import psycopg
import pytest

from support.wire import data_rows, error_fields


@pytest.fixture
def roles(session, connect):
    """Roles `reader` and `stranger`; only the first may read table t."""
    names = [f"{connect.schema}_{role}" for role in ("reader", "stranger")]
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    for name in names:
        session.execute(f"CREATE ROLE {name}")
        session.execute(f"GRANT USAGE ON SCHEMA {connect.schema} TO {name}")
    session.execute(f"GRANT SELECT ON t TO {names[0]}")
    yield names
    session.execute("RESET ROLE")
    for name in names:
        session.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


QUERY = "SELECT sum(a) FROM t"


def test_set_role_and_reset_role(session, roles):
    reader, stranger = roles
    for status in ("MISS", "HIT"):
        assert session.rows(QUERY) == [(55,)]
        assert session.status() == status
    session.execute(f"SET ROLE {stranger}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.rows(QUERY)
    session.execute(f"SET ROLE {reader}")
    assert session.rows(QUERY) == [(55,)]
    session.execute("RESET ROLE")
    assert session.rows(QUERY) == [(55,)]
    assert session.status() == "HIT"


def test_a_prepared_statement_asks_again_for_permission(session, roles):
    reader, stranger = roles
    for _ in range(3):
        assert session.rows(QUERY, prepare=True) == [(55,)]
    assert session.status() == "HIT"
    session.execute(f"SET ROLE {stranger}")
    for _ in range(2):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.rows(QUERY, prepare=True)
    session.execute(f"SET ROLE {reader}")
    for _ in range(2):
        assert session.rows(QUERY, prepare=True) == [(55,)]
    assert session.status() == "HIT"


def test_revoked_meanwhile(session, other, roles):
    reader, _ = roles
    other.execute(f"SET ROLE {reader}")
    for _ in range(2):
        assert other.rows(QUERY) == [(55,)]
    assert other.status() == "HIT"
    session.execute(f"REVOKE SELECT ON t FROM {reader}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        other.rows(QUERY)
    assert session.rows(QUERY) == [(55,)]


@pytest.mark.parametrize("setting", ["max_stale = 0", "max_stale = '1h'", "verify_sample_rate = 1"])
@pytest.mark.parametrize("prepare", [False, True])
def test_a_refused_statement_is_no_hit(session, other, roles, setting, prepare):
    reader, _ = roles
    counted = "SELECT hits, stale_hits FROM arrow_cache.stats"
    other.execute(f"SET pg_arrow_cache.{setting}; SET ROLE {reader}")
    for _ in range(3):
        assert other.rows(QUERY, prepare=prepare) == [(55,)]
    assert other.status() == "HIT"
    before = session.rows(counted)
    session.execute(f"REVOKE SELECT ON t FROM {reader}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        other.rows(QUERY, prepare=prepare)
    assert other.status() is None
    assert session.rows(counted) == before


def test_a_denied_statement_leaves_nothing_to_the_next_one(session, roles):
    """The key of a statement that fails before its first row must not be used for the next statement."""
    reader, stranger = roles
    session.execute("CREATE TABLE free AS SELECT 1000 + g AS a FROM generate_series(1, 3) g")
    session.execute(f"GRANT SELECT ON free TO {stranger}")
    session.execute(f"SET ROLE {stranger}")
    for _ in range(3):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.rows("SELECT a FROM t ORDER BY a")
        assert session.rows("SELECT a FROM free WHERE random() >= 0 ORDER BY a") == [(1001,), (1002,), (1003,)]
    session.execute(f"RESET ROLE; GRANT {reader} TO {stranger}; SET ROLE {stranger}")
    for _ in range(2):
        assert session.rows("SELECT a FROM t ORDER BY a") == [(n,) for n in range(1, 11)]
    session.execute("RESET ROLE")


def test_a_drop_of_a_database_that_gives_up_waiting(session, other):
    """What is asked before the statement runs may raise too; the session's next statements are its own all the same."""
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    for status in ("MISS", "HIT"):
        assert session.rows(QUERY) == [(55,)]
        assert session.status() == status
    session.execute("SET lock_timeout = '50ms'")
    other.execute("BEGIN; LOCK TABLE pg_database IN ACCESS EXCLUSIVE MODE")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        session.execute("DROP DATABASE IF EXISTS there_is_none")
    other.execute("ROLLBACK")
    session.execute("RESET lock_timeout")
    assert session.rows(QUERY) == [(55,)]
    assert session.status() == "HIT"


def test_discard_all(session, connect):
    """After DISCARD ALL a session is like new: settings, role, prepared statements. The cache is shared and stays."""
    session.execute("CREATE TABLE t AS SELECT timestamptz '2024-06-01 12:00+00' AS v")
    session.execute("SET timezone = 'Asia/Tokyo'")
    local = session.rows("SELECT v::text FROM t")
    assert local == [("2024-06-01 21:00:00+09",)]
    assert session.rows("SELECT v::text FROM t") == local
    assert session.status() == "HIT"
    session.execute("PREPARE p AS SELECT v::text FROM t")
    session.execute("SET pg_arrow_cache.enabled = off")
    session.execute("DISCARD ALL")
    session.execute(f"SET search_path = {connect.schema}; SET timezone = 'UTC'")
    for status in ("MISS", "HIT"):
        assert session.rows("SELECT v::text FROM t") == [("2024-06-01 12:00:00+00",)]
        assert session.status() == status
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        session.execute("EXECUTE p")
    session.execute("SET timezone = 'Asia/Tokyo'")
    assert session.rows("SELECT v::text FROM t") == local
    assert session.status() == "HIT"


def test_discard_plans(session):
    session.execute("CREATE TABLE t AS SELECT 1 AS a")
    for status in ("MISS", "HIT", "HIT"):
        assert session.rows("SELECT a FROM t", prepare=True) == [(1,)]
        assert session.status() == status
        session.execute("DISCARD PLANS")


def test_client_encoding(session, wire):
    """Entries hold the server's text; each client gets it in its own encoding, on a hit as on a miss. Clients of other encodings have
    answers of their own."""
    session.execute("CREATE TABLE t (a text); INSERT INTO t VALUES ('h\u00e9\u00df'), ('plain')")
    query = "SELECT a, a || '!' FROM t ORDER BY a"
    utf8 = [["h\u00e9\u00df".encode(), "h\u00e9\u00df!".encode()], [b"plain", b"plain!"]]
    latin1 = [[b"h\xe9\xdf", b"h\xe9\xdf!"], [b"plain", b"plain!"]]
    one, two = wire(client_encoding="UTF8"), wire(client_encoding="LATIN1")
    assert data_rows(one.query(query)) == utf8
    assert one.status() == "MISS"
    for status in ("MISS", "HIT"):
        assert data_rows(two.query(query)) == latin1
        assert two.status() == status
        assert data_rows(one.query(query)) == utf8
        assert one.status() == "HIT"


def test_client_encoding_in_a_parallel_array_agg(session, wire):
    """From 16 on, array_agg in a parallel plan reads what its workers have gathered as if a client had sent it, and converts text from
    the client's encoding, in which it is not. What such a session computes must reach no other."""
    session.execute("""
        CREATE TABLE t AS SELECT '\u00e9'::text AS a FROM generate_series(1, 50000); ANALYZE t; ALTER TABLE t SET (parallel_workers = 2)""")
    query = "SELECT (array_agg(a))[1] FROM t"
    utf8, latin1 = wire(client_encoding="UTF8"), wire(client_encoding="LATIN1")
    for client in utf8, latin1:
        client.query("SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0.01; "
                     "SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off")
    latin1.query("SET pg_arrow_cache.enabled = off")
    expected = data_rows(latin1.query(query))
    latin1.query("SET pg_arrow_cache.enabled = on")
    for _ in range(2):
        assert data_rows(latin1.query(query)) == expected
        assert data_rows(utf8.query(query)) == [["\u00e9".encode()]]
    assert utf8.status() == "HIT"
    assert data_rows(latin1.query(query)) == expected
    # Bound while the encodings are the same, and computed when they are not.
    session.execute("SELECT arrow_cache.flush()")
    utf8.query("BEGIN")
    utf8.parse(query, name="s").bind(portal="p", name="s").sync()
    utf8.query("SET client_encoding = LATIN1")
    utf8.execute("p").sync()
    utf8.query("COMMIT; SET client_encoding = UTF8")
    for _ in range(2):
        assert data_rows(utf8.query(query)) == [["\u00e9".encode()]]


def test_text_that_the_client_cannot_have(session, wire):
    """A character that is missing in the client's encoding is the same error from the cache."""
    session.execute("CREATE TABLE t (a text); INSERT INTO t VALUES ('10 \u20ac')")
    query = "SELECT a FROM t"
    latin1 = wire(client_encoding="LATIN1")
    latin1.query("SET pg_arrow_cache.enabled = off")
    expected = error_fields(latin1.query(query)[-2])
    assert expected["C"] == "22P05"
    latin1.query("SET pg_arrow_cache.enabled = on")
    assert session.rows(query) == [("10 \u20ac",)]
    for _ in range(2):
        assert error_fields(latin1.query(query)[-2]) == expected
    assert session.rows(query) == [("10 \u20ac",)]
    assert session.status() == "HIT"


def test_literals_in_another_encoding(session, wire):
    """The same bytes from clients of different encodings are different queries."""
    session.execute("CREATE TABLE t (a text); INSERT INTO t VALUES ('\u00e9'), ('\u00c3\u00a9')")
    utf8, latin1 = wire(client_encoding="UTF8"), wire(client_encoding="LATIN1")

    def count(client, literal):
        client.add(b"Q", b"SELECT length(a) FROM t WHERE a = '" + literal + b"'\0")
        return data_rows(client.until_ready())

    assert count(utf8, b"\xc3\xa9") == [[b"1"]]
    assert utf8.status() == "MISS"
    assert count(latin1, b"\xc3\xa9") == [[b"2"]]
    assert latin1.status() == "MISS"
    for status in ("MISS", "HIT"):
        assert count(latin1, b"\xe9") == [[b"1"]]
        assert latin1.status() == status


@pytest.mark.parametrize("setting, values, query", [
    ("datestyle", ["ISO", "German", "SQL, DMY"], "SELECT v::date::text FROM t"),
    ("timezone", ["UTC", "Asia/Tokyo"], "SELECT v::text, extract(hour FROM v), date_trunc('day', v) FROM t"),
    ("intervalstyle", ["postgres", "iso_8601"], "SELECT (v - timestamptz '2000-01-01 00:00+00')::text FROM t"),
    ("extra_float_digits", ["1", "-5"], "SELECT (f / 3)::text FROM t"),
    ("bytea_output", ["hex", "escape"], "SELECT b::text FROM t"),
])
def test_settings_that_change_an_answer(session, setting, values, query):
    """Each value of a setting that changes an answer has an entry of its own. A prepared plan keeps what was computed
    under the settings of its planning, so no prepared plan is used here."""
    session.execute("""
        CREATE TABLE t AS SELECT timestamptz '2024-06-01 20:00+00' AS v, 1.0::float8 AS f, '\\x00ff'::bytea AS b""")
    expected = {}
    for value in values:
        session.execute(f"SET {setting} = '{value}'")
        expected[value] = session.uncached(query, prepare=False)
    assert len({repr(rows) for rows in expected.values()}) == len(values)
    for status in ("MISS", "HIT"):
        for value in values:
            session.execute(f"SET {setting} = '{value}'")
            assert session.rows(query, prepare=False) == expected[value]
            assert session.status() == status


def test_output_settings_apply_to_hits(connect):
    """A value is stored once and printed under the settings of each session."""
    first = connect()
    first.execute("""
        CREATE TABLE t AS
        SELECT timestamptz '2024-06-01 20:00+00' AS v, interval '1 day 2 hours' AS i, '\\x00ff'::bytea AS b""")
    text = {}
    for options in ("-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c bytea_output=hex",
                    "-c timezone=Asia/Tokyo -c datestyle=German -c intervalstyle=iso_8601 -c bytea_output=escape"):
        session = connect(options)
        runs = []
        for enabled in ("off", "on", "on"):
            session.execute(f"SET pg_arrow_cache.enabled = {enabled}")
            got = session.pgconn.exec_params(b"SELECT v, i, b FROM t", None)
            runs.append([got.get_value(0, column) for column in range(3)])
        assert session.status() == "HIT"
        assert runs[0] == runs[1] == runs[2]
        text[options] = runs[0]
    assert len({repr(values) for values in text.values()}) == 2


def test_search_path(session, connect):
    """The same text names another table under another search_path."""
    session.execute(f"""
        CREATE TABLE t AS SELECT 'first' AS a;
        CREATE SCHEMA {connect.schema}_b;
        CREATE TABLE {connect.schema}_b.t AS SELECT 'second' AS a""")
    try:
        for status in ("MISS", "HIT"):
            for path, answer in ((connect.schema, "first"), (f"{connect.schema}_b", "second")):
                session.execute(f"SET search_path = {path}")
                assert session.rows("SELECT a FROM t") == [(answer,)]
                assert session.status() == status
    finally:
        session.execute(f"DROP SCHEMA {connect.schema}_b CASCADE; SET search_path = {connect.schema}")
