"""COPY of a query in the server's own formats: the query is the client's own, and its rows are formatted by the server."""

import psycopg
import pytest

from support.wire import data_rows, error_fields, tags

QUERY = "SELECT g, name, at, part FROM items ORDER BY g"
OPTIONS = [
    "", "(FORMAT binary)", "(FORMAT csv, HEADER)", "(FORMAT csv, DELIMITER ';', NULL '-', FORCE_QUOTE (name))", "(DELIMITER '|', NULL 'none')",
    "(ENCODING 'LATIN1')", "(FORMAT csv, QUOTE '''', ESCAPE '\\')",
]


@pytest.fixture
def items(session):
    session.execute("""
        CREATE TABLE items AS SELECT g, CASE WHEN g % 3 > 0 THEN E'row\\t"' || g || E'"\\n;é' END AS name, timestamp '2024-01-01' + g * interval '1 h' AS at,
               ARRAY[g / 7.0, NULL] AS part FROM generate_series(1, 500) g""")
    return session


def copied(session, query, options=""):
    """What a COPY sends, and how many rows it tells of."""
    cursor = session.cursor()
    with cursor.copy(f"COPY ({query}) TO STDOUT {options}") as pieces:
        sent = b"".join(pieces)
    return sent, cursor.rowcount


def uncached(session, query, options=""):
    session.execute("SET pg_arrow_cache.enabled = off")
    try:
        return copied(session, query, options)
    finally:
        session.execute("SET pg_arrow_cache.enabled = on")


@pytest.mark.parametrize("options", OPTIONS)
def test_formats(items, options):
    expected = uncached(items, QUERY, options)
    assert expected[1] == 500
    for status in ("MISS", "HIT", "HIT"):
        assert copied(items, QUERY, options) == expected
        assert items.outcome() == (status, None)


def test_it_shares_answers(items):
    """The same query alone, in any format, and as Arrow has one answer."""
    rows = items.rows(QUERY)
    assert items.status() == "MISS"
    binary = copied(items, QUERY, "(FORMAT binary)")
    assert items.status() == "HIT"
    assert binary == uncached(items, QUERY, "(FORMAT binary)")
    copied(items, QUERY, "(FORMAT arrow)")
    assert items.status() == "HIT"
    other = QUERY.replace("ORDER BY g", "ORDER BY g DESC")
    copied(items, other)
    assert items.status() == "MISS"
    assert items.rows(other) == rows[::-1]
    assert items.status() == "HIT"


def test_changes(items, other):
    """It is outdated, and bypassed in the transaction that has changed its table."""
    for _ in range(2):
        before = copied(items, QUERY)
    assert items.status() == "HIT"
    other.execute("UPDATE items SET name = 'other' WHERE g = 3")
    after = copied(items, QUERY)
    assert items.status() == "STALE"
    assert after == uncached(items, QUERY) != before
    with items.transaction():
        items.execute("DELETE FROM items WHERE g > 10")
        assert copied(items, QUERY)[1] == 10
        assert items.outcome() == ("BYPASS", "own_writes")
    assert copied(items, QUERY)[1] == 10


def test_a_snapshot_of_before(items, other):
    with items.transaction():
        items.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = copied(items, QUERY)
        other.execute("DELETE FROM items WHERE g > 10")
        for _ in range(2):
            assert copied(other, QUERY)[1] == 10
        assert copied(items, QUERY) == before


def test_all_at_once(items):
    """With other statements in a message, and by Parse, Bind and Execute."""
    for status in ("MISS", "HIT"):
        items.execute(f"SELECT 1; COPY ({QUERY}) TO '/dev/null'")
        assert items.status() == status


@pytest.mark.parametrize("method", ["query", "parsed"])
def test_messages(items, wire, method):
    """Each message is the same, with the cache and without."""
    statement = f"COPY ({QUERY}) TO STDOUT (FORMAT binary)"
    answers = []
    for enabled in ("off", "on", "on"):
        client = wire()
        client.query(f"SET pg_arrow_cache.enabled = {enabled}")
        ask = client.query if method == "query" else lambda text: client.parse(text).bind().execute().sync()
        answers.append(ask(statement))
        status = data_rows(client.query("SELECT arrow_cache.last_status()"))[0][0]
    assert answers[0] == answers[1] == answers[2]
    assert tags(answers[0]) == ["COPY 500"]
    assert status in (b"HIT", "HIT")


@pytest.mark.parametrize("query, reason", [
    ("SELECT random() < 2 FROM items", "volatile_function"),
    ("SELECT relname FROM pg_class ORDER BY 1 LIMIT 2", "system_catalog"),
    ("/*+ no_arrow_cache */ SELECT g FROM items", "no_cache_hint"),
])
def test_refused(items, query, reason):
    for _ in range(3):
        assert copied(items, query) == uncached(items, query)
        copied(items, query)
        assert items.outcome() == ("BYPASS", reason)


def test_errors(items):
    """An error of a row, and one of COPY's, come as ever."""
    for query, options in (("SELECT 100 / (g - 400) FROM items ORDER BY g", ""), (QUERY, "(ENCODING 'SQL_ASCII', FORMAT csv, NULL '\n')"), ("SELECT nothing", "")):
        told = []
        for ask in (uncached, copied, copied):
            with pytest.raises(psycopg.Error) as raised:
                ask(items, query, options)
            diag = raised.value.diag
            told.append((diag.sqlstate, diag.message_primary, diag.context, diag.statement_position))
        assert told[0] == told[1] == told[2]
    for _ in range(2):
        copied(items, QUERY)
    assert items.status() == "HIT"


def test_what_is_nested(items):
    """A COPY that a function runs, one that changes rows, one of a table, and one that fills a table."""
    items.execute("COPY items TO '/dev/null'")
    assert items.outcome() == ("BYPASS", "utility_statement")
    copied(items, "UPDATE items SET name = 'x' WHERE g = 1 RETURNING g")
    assert items.outcome() == ("BYPASS", "utility_statement")
    for _ in range(2):
        items.execute(f"DO $$ BEGIN EXECUTE $q$COPY ({QUERY}) TO '/dev/null'$q$; END $$")
        assert items.outcome() == ("BYPASS", "utility_statement")
    copied(items, QUERY)
    assert items.status() == "MISS"


def test_rights(items, connect):
    """Rights and policies are those of who copies."""
    items.execute(f"""
        CREATE ROLE copier; GRANT USAGE ON SCHEMA {connect.schema} TO copier; GRANT SELECT ON items TO copier;
        ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON items TO copier USING (g <= 7)""")
    try:
        for _ in range(2):
            assert copied(items, QUERY)[1] == 500
        items.execute("SET ROLE copier")
        for status in ("MISS", "HIT"):
            assert copied(items, QUERY)[1] == 7
            assert items.status() == status
        items.execute("RESET ROLE; REVOKE SELECT ON items FROM copier; SET ROLE copier")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            copied(items, QUERY)
    finally:
        items.execute("RESET ROLE; DROP OWNED BY copier; DROP ROLE copier")


def test_partitions(session, other):
    """It is combined of parts."""
    session.execute("""
        CREATE TABLE pay (d date, v int) PARTITION BY RANGE (d);
        CREATE TABLE pay1 PARTITION OF pay FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
        CREATE TABLE pay2 PARTITION OF pay FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
        INSERT INTO pay SELECT date '2024-01-01' + g % 59, g FROM generate_series(1, 1000) g;
        SET pg_arrow_cache.debug_force_fragments = on""")
    query = "SELECT sum(v), count(*) FROM pay"
    for n in range(3):
        other.execute("INSERT INTO pay VALUES ('2024-02-02', 1)")
        before = session.execute("SELECT fragments_served FROM arrow_cache.stats").fetchone()[0]
        assert copied(session, query) == uncached(session, query)
    assert session.execute("SELECT fragments_served FROM arrow_cache.stats").fetchone()[0] > before


def test_the_clock(items):
    """A window that ends now, and the time in a column."""
    for query in ("SELECT count(*) FROM items WHERE at > now() - interval '1 day'", "SELECT g, now() - at > interval '1 s' FROM items ORDER BY g"):
        for _ in range(3):
            got = copied(items, query)
        assert items.status() == "HIT"
        assert got == uncached(items, query)
