"""Batches that take work to make are kept beside an answer as messages: they are the bytes that execution gives, for each type and option, in each way to
export, and they hold for as long as the answer does."""

import json

import psycopg
import pytest

from support.asking import until_client_is_slow, wait_until
from support.exports import WAYS, WITH_OPTIONS, by_copy, by_fetch, by_query, read, rows_of
from support.samples import SETUP, VALUES, slug
from support.told_rows import told_rows

# Types whose text is made by functions that read the catalog, or are of users; and what goes out as it is stored.
WITHOUT = {"jsonpath", "xml", "tid", "pg_snapshot", "refcursor", "floatrange"}
AS_STORED = {"bool", "int2", "int4", "int8", "float4", "float8", "numeric", "numeric(20,4)", "numeric(5,-2)", "text", "varchar(10)", "char(10)", "name",
             "bytea", "uuid", "date", "time", "time(2)", "timestamp", "timestamptz", "json", "money", "oid", "regclass", "regtype", "regproc", "xid",
             "xid8", "cid", "pg_lsn", "positive", "label"}
MIXED = """
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TYPE pair AS (n int, t text, m mood);
    CREATE TABLE t AS SELECT g AS id, g * interval '1 day 3:02:01' AS span, (enum_range(NULL::mood))[g % 3 + 1] AS mood, ARRAY[g, NULL, g * 7] AS list,
        ROW(g, 'x' || g, (enum_range(NULL::mood))[g % 2 + 1])::pair AS pair, ARRAY['sad', NULL]::mood[] AS moods, (g / 8.0)::numeric(10,3) AS share,
        '10.0.0.1'::inet + g AS host, daterange('2024-01-01'::date, '2024-01-01'::date + g) AS days, timestamptz '2024-01-01' + g * interval '1 hour' AS at
    FROM generate_series(1, 3000) g"""
QUERY = "SELECT * FROM t ORDER BY id"
# Options, and whether the messages are kept that are made under them.
OPTIONS = [
    ({}, True), ({"batch_rows": 700}, True), ({"compression": "lz4"}, True), ({"compression": "zstd", "batch_rows": 64}, True),
    ({"numeric": "decimal128"}, True), ({"numeric": "float64", "interval": "month_day_nano"}, True), ({"extension_types": "canonical"}, True),
    ({"columns": ["mood", "id"]}, True), ({"columns": ["id", "at", "share"]}, False), ({"limit": 3000}, True), ({"limit": 2999}, False),
    ({"columns": ["id", "at"], "compression": "zstd"}, True), ({"on_unrepresentable": "text", "columns": ["at", "list"]}, True),
]


def kept(session):
    """A list that grows with the numbers of rows that go out as kept messages."""
    return told_rows(session, "rows went into the stream as they lay")


def executed(session, export, query=QUERY, options=None):
    session.execute("SET pg_arrow_cache.enabled = off")
    try:
        return export(session, query, options)
    finally:
        session.execute("SET pg_arrow_cache.enabled = on")


def warm(session, export=by_fetch, query=QUERY, options=None):
    """Has the messages of an answer made."""
    for _ in range(4):
        stream = export(session, query, options)
        count_uses(session)
    return stream


def count_uses(session):
    """Uses are added to an answer now and then, and at once if somebody looks."""
    session.execute("SELECT FROM arrow_cache.entries")


def rendition_bytes(session):
    return session.execute("SELECT coalesce(sum(rendition_bytes), 0)::int FROM arrow_cache.entries").fetchone()[0]


@pytest.mark.parametrize("sql_type", VALUES, ids=slug)
def test_types(session, sql_type):
    session.execute(SETUP)
    session.execute(f"CREATE TABLE t (id int, v {sql_type})")
    for number, text in enumerate([*VALUES[sql_type], None]):
        # Arrow has no arrays of several dimensions.
        if text is None or not text.startswith(("[-1", "{{")):
            session.execute("INSERT INTO t VALUES (%s, %s)", [number, text])
    expected = executed(session, by_fetch)
    counts = kept(session)
    for _ in range(4):
        assert by_fetch(session, QUERY) == expected
    assert session.status() == "HIT"
    rows = len(read(expected)) if sql_type not in ("time",) else len(VALUES[sql_type]) + 1
    assert counts == ([] if sql_type in WITHOUT | AS_STORED else [rows] * 2)


@pytest.mark.parametrize("way", WAYS)
def test_ways(session, connect, way):
    """A rendition that one way has made serves them all."""
    session.execute(MIXED)
    export = WAYS[way]
    expected = executed(session, export)
    assert warm(session, export) == expected
    for reader in (session, connect()):
        counts = kept(reader)
        for other in WAYS.values():
            assert other(reader, QUERY) == executed(reader, other)
        assert counts == [3000] * len(WAYS)


@pytest.mark.parametrize("options, is_kept", OPTIONS, ids=str)
def test_options(session, options, is_kept):
    session.execute(MIXED)
    expected = executed(session, by_copy, options=options)
    # A limited export may not have seen all rows, and is not stored.
    by_copy(session, QUERY)
    counts = kept(session)
    assert warm(session, by_copy, options=options) == expected
    counts.clear()
    for export in WITH_OPTIONS.values():
        assert export(session, QUERY, options) == executed(session, export, options=options)
    assert counts == ([3000] * 3 if is_kept else [])


def test_options_in_turns(session):
    """An answer has three sets of messages at most; what finds no place is made each time."""
    session.execute(MIXED)
    expected = [executed(session, by_copy, options=options) for options, _ in OPTIONS]
    for _ in range(4):
        for (options, _), right in zip(OPTIONS, expected):
            assert by_copy(session, QUERY, options) == right
        count_uses(session)
    assert session.execute("SELECT count(*) FROM arrow_cache.entries WHERE rendition_bytes > 0").fetchone() == (1,)


def test_settings_do_not_matter(session):
    session.execute(MIXED)
    expected = warm(session)
    schema = session.execute("SELECT current_schema()").fetchone()[0]
    counts = kept(session)
    for setting in ("datestyle = 'German'", "intervalstyle = 'iso_8601'", "timezone = 'Asia/Kathmandu'", "extra_float_digits = -5",
                    "bytea_output = 'escape'", "client_encoding = 'LATIN1'", f"search_path = pg_catalog, {schema}"):
        counts.clear()
        session.execute(f"SET {setting}")
        assert warm(session) == expected
        assert by_fetch(session, QUERY) == expected and counts
        session.execute(f"RESET {setting.split()[0]}")


CHANGES = [
    "ALTER TYPE mood RENAME VALUE 'sad' TO 'glum'", "ALTER TYPE mood RENAME VALUE 'glum' TO 'very sad'",
    "ALTER TYPE mood ADD VALUE 'angry' BEFORE 'very sad'", "ALTER TYPE pair RENAME ATTRIBUTE n TO number", "ALTER TYPE mood RENAME TO temper",
    "UPDATE t SET list = '{1}' WHERE id = 5", "ALTER TABLE t RENAME COLUMN span TO duration",
]


def test_changes(session, other):
    session.execute(MIXED)
    warm(session)
    counts = kept(session)
    for change in CHANGES:
        counts.clear()
        other.execute(change)
        expected = executed(session, by_fetch)
        for _ in range(3):
            assert by_fetch(session, QUERY) == expected
            count_uses(session)
        by_fetch(session, QUERY)
        assert by_fetch(session, QUERY) == expected and counts


def test_changes_of_row_types(session, other):
    session.execute("CREATE TYPE pair AS (n int, t text); CREATE TABLE t AS SELECT g AS id, ARRAY[ROW(g, 'x' || g)::pair] AS p FROM generate_series(1, 50) g")
    warm(session)
    other.execute("CREATE TABLE whole (n int, t text)")
    other.execute("INSERT INTO whole SELECT g, 'y' || g FROM generate_series(1, 50) g")
    query = "SELECT w, w.n AS key FROM whole w ORDER BY 2"
    warm(session, query=query)
    for change in ("ALTER TABLE whole ADD COLUMN more int DEFAULT 7", "VACUUM FULL whole", "ALTER TABLE whole DROP COLUMN t",
                   "ALTER TABLE whole ADD COLUMN t varchar DEFAULT 'z'", "ALTER TABLE whole RENAME COLUMN more TO less"):
        other.execute(change)
        for text in (QUERY, query):
            expected = executed(session, by_fetch, text)
            for _ in range(4):
                assert by_fetch(session, text) == expected


def test_rows_that_lack_an_attribute(session, connect):
    """Rows of a table's type that are older than one of its attributes have the value that the catalog keeps, and are made each time."""
    session.execute("""
        CREATE TABLE kind (n int, t text); CREATE TABLE t AS SELECT g AS id, ROW(g, 'x' || g)::kind AS k FROM generate_series(1, 50) g""")
    counts = kept(session)
    warm(session)
    assert counts
    session.execute("ALTER TABLE kind ADD COLUMN more int")
    for _ in range(4):
        assert by_fetch(session, QUERY) == executed(session, by_fetch)


def test_labels_that_a_session_remembers(session, other, connect):
    """A session in a transaction may not have heard of new labels. What it exports goes to nobody else."""
    session.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (m mood); CREATE TABLE t AS SELECT g AS id, 'sad'::mood AS m, "
                    "ARRAY['ok', 'sad']::mood[] AS list, ROW('sad')::pair AS pair FROM generate_series(1, 30) g")
    late, third = connect(), connect()
    for column in ("m", "list", "pair"):
        query = f"SELECT id, {column}, id + 1 AS next FROM t ORDER BY id"
        for old, new in (("sad", "glum"), ("glum", "sad")):
            late.execute("BEGIN")
            late.execute("SELECT 'sad'::text, enum_range(NULL::mood)")
            by_query(late, query)
            other.execute(f"ALTER TYPE mood RENAME VALUE '{old}' TO '{new}'")
            expected = executed(third, by_query, query)
            assert new in str(rows_of(read(expected))[0])
            assert by_query(other, query) == expected
            by_query(late, query)
            for _ in range(3):
                assert by_query(third, query) == expected
            late.execute("COMMIT")


def test_value_that_cannot_be_delivered(session):
    """The error names it each time, and nothing is kept."""
    session.execute("CREATE TABLE t AS SELECT g AS id, CASE WHEN g = 40 THEN '{{1}}' ELSE ARRAY[g] END AS list FROM generate_series(1, 50) g")
    counts = kept(session)
    for _ in range(4):
        with pytest.raises(psycopg.Error, match="row 40"):
            by_fetch(session, QUERY)
        assert read(by_fetch(session, QUERY, {"on_unrepresentable": "text"})).num_rows == 50
    # The other option's are kept.
    assert counts == [50] * 2


def test_paused_exports(session, connect):
    """Cursors make messages, read kept ones, and are closed in the middle of both. Over types that read settings cursors are executed, so these are plain."""
    session.execute(MIXED)
    session.execute("CREATE TABLE large AS SELECT t.id, g, share FROM t, generate_series(1, 40) g")
    query, options = "SELECT id, g, share FROM large ORDER BY id, g", {"compression": "lz4", "chunk_bytes": 4096}
    expected = executed(session, by_fetch, query, options)
    by_copy(session, query)
    warm(session, query=query, options={"limit": 1})
    counts = kept(session)
    for whole in (False, True, False, True):
        session.execute(f"BEGIN; DECLARE c CURSOR FOR SELECT arrow_cache.fetch('{query}', '{json.dumps(options)}')")
        parts = [row[0] for row in session.execute("FETCH 5 FROM c", binary=True)]
        assert session.status() == "HIT"
        if whole:
            parts += [row[0] for row in session.execute("FETCH ALL FROM c", binary=True)]
            assert b"".join(parts) == expected
        else:
            assert expected.startswith(b"".join(parts))
        session.execute("ROLLBACK")
    # The first whole one has made the messages, the second one has read them.
    assert counts == [120_000]
    assert by_fetch(connect(), query, options) == expected


def test_values_stay_when_messages_go(session, other):
    """A value that lies in kept messages is whole, whatever becomes of them meanwhile."""
    session.execute(MIXED)
    expected = warm(session, by_query)
    counts = kept(session)
    session.execute("BEGIN")
    session.execute(f"DECLARE c CURSOR FOR SELECT arrow_cache.query('{QUERY}') FROM generate_series(1, 3)")
    assert session.execute("FETCH 1 FROM c", binary=True).fetchone()[0] == expected and counts
    session.execute(f"CREATE TEMP TABLE held AS SELECT arrow_cache.query('{QUERY}') AS v")
    other.execute("SELECT arrow_cache.flush()")
    other.execute("CREATE TABLE more AS SELECT g AS id, repeat(md5(g::text), 30) AS pad FROM generate_series(1, 20000) g")
    for n in range(5):
        by_fetch(other, f"SELECT * FROM more WHERE id <> {n} ORDER BY id")
    assert session.execute("FETCH 1 FROM c", binary=True).fetchone()[0] == expected
    assert session.execute("SELECT v FROM held", binary=True).fetchone()[0] == expected
    session.execute("COMMIT")


def test_memory_is_given_back(session, wire):
    session.execute(MIXED)
    by_fetch(session, QUERY)
    used = session.execute("SELECT bytes_used FROM arrow_cache.stats").fetchone()[0]
    warm(session)
    assert rendition_bytes(session) > 200_000
    for _ in range(3):
        client = wire()
        pid = int(client.value("SELECT pg_backend_pid()"))
        copy = "COPY (SELECT a.*, b.id AS other FROM t a, t b WHERE b.id <= 30 ORDER BY a.id, b.id) TO STDOUT (FORMAT arrow)"
        client.add(b"Q", copy.encode() + b"\0").send()
        until_client_is_slow(session, pid)
        session.execute("SELECT pg_terminate_backend(%s)", [pid])
        client.close()
    session.execute("SELECT arrow_cache.flush()")
    wait_until("memory is given back", lambda: session.execute("SELECT bytes_used FROM arrow_cache.stats").fetchone()[0] < used)
    assert session.execute("SELECT count(*) FROM arrow_cache.check()").fetchone() == (0,)


@pytest.mark.parametrize("end", ["ROLLBACK", "ROLLBACK TO s; COMMIT"])
def test_labels_of_a_transaction_that_is_undone(session, connect, end):
    """What a session makes after it has renamed a label itself is kept for nobody: the name may never come. An export has the labels of its beginning."""
    session.execute(MIXED)
    session.execute("CREATE TABLE large AS SELECT t.* FROM t, generate_series(1, 20) g")
    query = "SELECT id, mood, moods, list FROM large ORDER BY id"
    second = connect()
    expected = executed(second, by_query, query)
    counts = kept(second)
    # Stored, and used so often that the next export is kept.
    by_copy(session, query)
    warm(session, query=query, options={"limit": 1})
    session.execute(f"BEGIN; DECLARE c CURSOR FOR SELECT arrow_cache.fetch('{query}')")
    assert len(session.execute("FETCH 2 FROM c", binary=True).fetchall()) == 2
    session.execute("SAVEPOINT s; ALTER TYPE mood RENAME VALUE 'sad' TO 'poison'")
    assert not any(b"poison" in row[0] for row in session.execute("FETCH ALL FROM c", binary=True))
    assert b"poison" in by_query(session, query)
    session.execute(end)
    for _ in range(3):
        assert by_query(second, query) == expected
        count_uses(session)
    assert by_query(second, query) == expected and counts


def test_labels_between_bind_and_execute(session, wire, connect):
    """The same for messages of rows."""
    session.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE t AS SELECT g AS id, 'sad'::mood AS m FROM generate_series(1, 30) g")
    session.execute(QUERY).fetchall()
    second, client = connect(), wire()
    client.query("BEGIN")
    client.parse(QUERY).bind(portal="p")
    client.sync()
    client.query("ALTER TYPE mood RENAME VALUE 'sad' TO 'poison'")
    client.execute("p").sync()
    client.query("ROLLBACK")
    for _ in range(3):
        assert second.execute(QUERY).fetchone() == (1, "sad")


def test_transactions_that_write_keep_nothing(session):
    session.execute(MIXED)
    session.execute("CREATE TABLE u (a int)")
    by_copy(session, QUERY)
    warm(session, options={"limit": 1})
    rows = "SELECT id, share FROM t ORDER BY id"
    session.execute(rows)
    for end in ("ROLLBACK", "COMMIT"):
        session.execute("BEGIN; INSERT INTO u VALUES (1)")
        for _ in range(3):
            assert by_copy(session, QUERY) == executed(session, by_copy)
            assert session.execute(rows).rowcount == 3000
            count_uses(session)
        assert rendition_bytes(session) == 0
        session.execute(end)
    counts = kept(session)
    by_copy(session, QUERY)
    by_copy(session, QUERY)
    assert counts == [3000]


# A column, and what another session changes while messages are made of it.
MEANWHILE = {
    "label": ("mood", "ALTER TYPE mood RENAME VALUE 'sad__' TO 'glum_'"),
    "label in an array": ("ARRAY[mood, 'ok'] AS moods", "ALTER TYPE mood RENAME VALUE 'sad__' TO 'glum_'"),
    "label in a row": ("pair", "ALTER TYPE mood RENAME VALUE 'sad__' TO 'glum_'"),
    "attribute": ("pair", "ALTER TYPE pair DROP ATTRIBUTE n"),
}


@pytest.mark.parametrize("column, change", MEANWHILE.values(), ids=MEANWHILE)
def test_change_while_messages_are_made(session, other, wire, column, change):
    """All batches have the definitions from before, as those that are executed, and the messages are kept for nobody."""
    session.execute("CREATE TYPE mood AS ENUM ('sad__', 'ok'); CREATE TYPE pair AS (n int, m mood)")
    session.execute("CREATE TABLE t AS SELECT g AS id, 'sad__'::mood AS mood, ROW(g, 'sad__')::pair AS pair, repeat('x', 300) AS pad FROM generate_series(1, 60000) g")
    query = f"SELECT id, {column}, pad FROM t ORDER BY id"
    by_copy(session, query)
    warm(session, query=query, options={"limit": 1})
    client = wire()
    pid = int(client.value("SELECT pg_backend_pid()"))
    client.add(b"Q", f"COPY ({query}) TO STDOUT (FORMAT arrow)\0".encode()).send()
    until_client_is_slow(other, pid)
    assert rendition_bytes(other) > 0
    other.execute(change)
    stream = b"".join(message.body for message in client.until_ready() if message.type == "d")
    assert client.value("SELECT arrow_cache.last_status()") == "HIT"
    assert (stream.count(b"sad__"), stream.count(b"glum_")) == (60_000, 0)
    counts = kept(session)
    assert by_fetch(session, query).count(b"glum_") == (0 if "DROP" in change else 60_000)
    assert session.status() == "STALE" and not counts


def test_own_change_between_batches(session):
    """A statement may change a definition itself while its export pauses. All batches have the labels of the beginning."""
    session.execute("CREATE TYPE mood AS ENUM ('sad__', 'ok')")
    session.execute("CREATE TABLE t AS SELECT g AS id, 'sad__'::mood AS mood, repeat('x', 150) AS pad FROM generate_series(1, 20000) g")
    session.execute("""
        CREATE FUNCTION rename(int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN
            IF EXISTS (SELECT FROM pg_enum WHERE enumtypid = 'mood'::regtype AND enumlabel = 'sad__') THEN
                ALTER TYPE mood RENAME VALUE 'sad__' TO 'glum_';
            END IF;
            RETURN $1; END $$""")
    statement = f"SELECT arrow_cache.fetch('{QUERY}', '{{\"chunk_bytes\": 100000}}'), rename(1)"

    def renaming():
        session.execute("BEGIN")
        stream = b"".join(row[0] for row in session.execute(statement, binary=True))
        session.execute("ROLLBACK")
        return stream

    expected = executed(session, lambda session, *_: renaming())
    assert expected.count(b"sad__") > 0 and expected.count(b"glum_") == 0
    before = by_fetch(session, QUERY)
    # Made while nothing is kept, while the messages are being kept, and after that.
    warm(session, options={"limit": 1})
    assert renaming() == expected
    assert warm(session) == before
    counts = kept(session)
    assert by_fetch(session, QUERY) == before and counts
    assert renaming() == expected
    assert by_fetch(session, QUERY) == before
