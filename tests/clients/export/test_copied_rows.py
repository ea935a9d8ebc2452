"""Rows that COPY sends to the client: they go there directly, with the bytes, the tag and the progress of an execution."""

import psycopg
import pytest

from support.asking import count_uses, until, until_client_is_slow, until_gone, wait_until
from support.samples import VALUES, fill
from support.told_rows import told_rows

BINARY = "(FORMAT binary)"
ROWS = 300
MIXED = f"""
    CREATE TABLE t AS SELECT g AS id, g * 1000003 AS whole, (g / 7.0)::float8 AS ratio, g / 8192.0 AS amount, md5(g::text) AS label, NULLIF(g % 3, 0) = 1 AS flag,
        timestamptz '2024-01-01' + g * interval '17:43:21.123456' AS moment, ARRAY[g, NULL] AS numbers, jsonb_build_object('a', g) AS properties
    FROM generate_series(1, {ROWS}) g"""
QUERY = "SELECT * FROM t ORDER BY id"
# The server's formats without an option that changes more of a row.
FORMATS = (BINARY, "", "(FORMAT text)", "(FORMAT csv)", "CSV HEADER")


def pieces_of(session, statement):
    """The messages that a COPY sends, and how many rows its tag tells of."""
    with session.cursor() as cursor:
        with cursor.copy(statement) as copy:
            pieces = [bytes(piece) for piece in copy]
        return pieces, cursor.rowcount


def executed(session, statement):
    session.execute("SET pg_arrow_cache.enabled = off")
    try:
        return pieces_of(session, statement)
    finally:
        session.execute("SET pg_arrow_cache.enabled = on")


def copied(query, options=BINARY):
    return f"COPY ({query}) TO STDOUT {options}"


@pytest.fixture
def mixed(session):
    session.execute(MIXED)
    return session


@pytest.mark.parametrize("options", FORMATS)
def test_the_first_row_is_the_servers(mixed, options):
    """It comes with the header; the others go directly, and later as they lie."""
    statement = copied(QUERY, options)
    expected = executed(mixed, statement)
    assert len(expected[0]) in (ROWS, ROWS + 1) and expected[1] == ROWS
    encoded = told_rows(mixed, "rows went to the client as they were encoded")
    assert pieces_of(mixed, statement) == expected
    assert mixed.status() == "MISS" and encoded == [ROWS - 1]
    straight, lay = told_rows(mixed, "rows went straight to the client"), told_rows(mixed, "rows went to the client as they lay")
    for _ in range(3):
        assert pieces_of(mixed, statement) == expected
        assert mixed.status() == "HIT"
    assert straight == [ROWS - 1] and lay == [ROWS - 1, ROWS - 1]


def test_rows_of_a_query_are_other_messages(mixed):
    """What is kept for one is not sent to the other, in both orders."""
    for _ in range(3):
        rows = mixed.pgconn.exec_params(QUERY.encode(), None, result_format=1)
    first = [rows.get_value(n, 0) for n in range(ROWS)]
    expected = executed(mixed, copied(QUERY))
    for _ in range(3):
        assert pieces_of(mixed, copied(QUERY)) == expected
        again = mixed.pgconn.exec_params(QUERY.encode(), None, result_format=1)
        assert [again.get_value(n, 0) for n in range(ROWS)] == first


@pytest.mark.parametrize("sql_type", VALUES)
@pytest.mark.parametrize("encoding", ["UTF8", "LATIN1"])
@pytest.mark.parametrize("options", [BINARY, "", "(FORMAT csv)"])
def test_types(session, sql_type, encoding, options):
    fill(session, sql_type)
    session.execute(f"SET client_encoding = '{encoding}'")
    statement = copied("SELECT a.id, b.id AS other, a.v FROM t a, t b, generate_series(1, 4) g ORDER BY 1, 2", options)

    def answer():
        try:
            return pieces_of(session, statement)
        except psycopg.Error as error:
            return error.sqlstate, error.diag.message_primary

    expected = executed_or_error(session, answer)
    for _ in range(4):
        assert answer() == expected
        count_uses(session)


def executed_or_error(session, answer):
    session.execute("SET pg_arrow_cache.enabled = off")
    try:
        return answer()
    finally:
        session.execute("SET pg_arrow_cache.enabled = on")


@pytest.mark.parametrize("options", FORMATS)
@pytest.mark.parametrize("query, rows", [("SELECT id FROM t WHERE id < 0", 0), ("SELECT id FROM t WHERE id = 1", 1), ("SELECT id FROM t WHERE id < 3 ORDER BY id", 2),
                                         ("SELECT FROM t", ROWS)])
def test_few_rows_and_no_columns(mixed, query, rows, options):
    expected = executed(mixed, copied(query, options))
    assert expected[1] == rows
    for _ in range(3):
        assert pieces_of(mixed, copied(query, options)) == expected
    assert mixed.status() == "HIT"


@pytest.mark.parametrize("options", [BINARY, ""])
def test_an_error_among_the_rows(mixed, options):
    """It comes behind the rows before it."""
    query = "SELECT id, 100 / (id - 200) FROM (SELECT * FROM t ORDER BY id OFFSET 0) s"

    def sent():
        pieces, error = [], None
        try:
            with mixed.cursor() as cursor, cursor.copy(copied(query, options)) as copy:
                for piece in copy:
                    pieces.append(bytes(piece))
        except psycopg.Error as raised:
            error = raised.sqlstate
        return pieces, error

    expected = executed_or_error(mixed, sent)
    assert len(expected[0]) == 199 and expected[1] == "22012"
    for _ in range(2):
        assert sent() == expected


@pytest.mark.parametrize("options", FORMATS)
def test_lines(session, options):
    """Values that lines have to be escaped or quoted for, alone and beside others."""
    session.execute(r"""CREATE TABLE t AS SELECT row_number() OVER () AS id, v FROM unnest(ARRAY['', NULL, '\.', '\N', 'a,b', 'say "so"', '"', '\', E'\t', E'\r', E'\n',
        E'\b\f\x0b\x01\x1f\x7f', ' ', 'é€😀', ',', '''', 'NULL', repeat(E'\\"\n', 30000)]) v""")
    assert session.execute("SELECT count(*), max(length(v)) FROM t").fetchone() == (18, 90000)
    for query in ("SELECT v FROM t, generate_series(1, 3) ORDER BY id", "SELECT id, v, v FROM t ORDER BY id", "SELECT v, id FROM t ORDER BY id DESC"):
        expected = executed(session, copied(query, options))
        for _ in range(4):
            assert pieces_of(session, copied(query, options)) == expected
        assert session.status() == "HIT"


@pytest.mark.parametrize("options", ["(DELIMITER '|')", "(FORMAT csv, FORCE_QUOTE *)", "(NULL 'none')", "(ENCODING 'LATIN1')", "(FORMAT csv, QUOTE '!')"])
def test_other_options_are_the_servers(mixed, options):
    expected = executed(mixed, copied(QUERY, options))
    straight, lay = told_rows(mixed, "rows went straight to the client"), told_rows(mixed, "rows went to the client as they lay")
    for _ in range(3):
        assert pieces_of(mixed, copied(QUERY, options)) == expected
    assert mixed.status() == "HIT" and straight == lay == []


def test_a_file_is_the_servers(mixed):
    """COPY TO a file has the same receiver."""
    folder = mixed.execute("SHOW data_directory").fetchone()[0]
    straight = told_rows(mixed, "rows went straight to the client")
    for number in range(3):
        mixed.execute(f"COPY ({QUERY}) TO '{folder}/copied.{number}' {BINARY}")
    assert mixed.status() == "HIT" and straight == []
    copies = mixed.execute("SELECT count(DISTINCT pg_read_binary_file('copied.' || n)), min((pg_stat_file('copied.' || n)).size) FROM generate_series(0, 2) n").fetchone()
    assert copies[0] == 1 and copies[1] > 50 * ROWS


def test_what_goes_on_behind_it(mixed):
    """Several in one message, and a query behind one, whose rows are DataRows again."""
    for _ in range(2):
        pieces_of(mixed, copied(QUERY))
    for _ in range(2):
        mixed.execute(QUERY)
    rows = mixed.execute(QUERY).fetchall()
    pieces_of(mixed, copied(QUERY))
    assert mixed.execute(QUERY).fetchall() == rows and len(rows) == ROWS


def wide(session):
    session.execute("CREATE TABLE w AS SELECT g AS id, repeat(md5(g::text), 32) AS text FROM generate_series(1, 20000) g")
    statement = copied("SELECT * FROM w ORDER BY id")
    pieces_of(session, statement)
    return statement


def test_progress(session, other):
    """A client that reads slowly: another session sees how far the COPY is."""
    statement = wide(session)
    pid = session.info.backend_pid
    with session.cursor() as cursor, cursor.copy(statement) as copy:
        copy.read()
        until_client_is_slow(other, pid)
        rows, sent = other.execute("SELECT tuples_processed, bytes_processed FROM pg_stat_progress_copy WHERE pid = %s", [pid]).fetchone()
        # A row has its number of columns, and a length before each value.
        assert 1 < rows < 20000 and abs(sent - rows * (2 + 4 + 4 + 4 + 1024)) <= 2000
        left = sum(1 for _ in copy)
    assert left >= 20000 and session.status() == "HIT"


def test_cancel_and_end(session, other):
    statement = wide(session)
    pid = session.info.backend_pid
    with pytest.raises(psycopg.errors.QueryCanceled):
        with session.cursor() as cursor, cursor.copy(statement) as copy:
            copy.read()
            until_client_is_slow(other, pid)
            other.execute("SELECT pg_cancel_backend(%s)", [pid])
            for _ in copy:
                pass
    assert pieces_of(session, statement)[1] == 20000
    assert session.status() == "HIT"
    with session.cursor() as cursor, pytest.raises(psycopg.Error):
        with cursor.copy(statement) as copy:
            copy.read()
            until_client_is_slow(other, pid)
            other.execute("SELECT pg_terminate_backend(%s)", [pid])
            for _ in copy:
                pass
    until_gone(other, pid)
    assert other.execute("SELECT count(*) FROM arrow_cache.check()").fetchone()[0] == 0
