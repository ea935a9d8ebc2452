"""A wrong request is an error that names the wrong word and gives a hint; it changes nothing."""

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from support.exports import WITH_OPTIONS, by_copy, by_fetch, by_messages, entries, read

ways = pytest.mark.parametrize("way", WITH_OPTIONS)

QUERY = "SELECT a, b FROM t ORDER BY a"


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 100) g")
    return session


def refused(session, deliver, *arguments):
    """The error of a call that does nothing, twice."""
    seen = []
    for _ in range(2):
        with pytest.raises(psycopg.Error) as raised:
            deliver(session, *arguments)
        told = raised.value.diag
        seen.append((told.sqlstate, told.message_primary, told.message_hint))
    assert seen[0] == seen[1]
    assert entries(session) == 0
    assert session.rows("SELECT count(*)::int FROM t") == [(100,)]
    session.execute("SELECT arrow_cache.flush()")
    return raised.value.diag


@ways
@pytest.mark.parametrize("option, value", [
    ("limit", -1), ("limit", "many"), ("limit", 1.5), ("limit", "99999999999999999999"),
    ("batch_rows", 0), ("batch_rows", -5), ("batch_rows", "few"),
    ("chunk_bytes", 0), ("chunk_bytes", 10**12), ("chunk_bytes", "large"),
    ("compression", "gzip"), ("compression", ""), ("compression", 1),
    ("numeric", "decimal256"), ("numeric", 128),
    ("interval", "iso_8601"),
    ("extension_types", "all"),
    ("on_unrepresentable", "ignore"),
    ("columns", 1), ("columns", ["a", "a"]),
], ids=str)
def test_wrong_values(table, way, option, value):
    told = refused(table, WITH_OPTIONS[way], QUERY, {option: value})
    assert told.sqlstate == "22023"
    assert f'"{option}"' in told.message_primary
    if value != "" and not isinstance(value, list):
        assert str(value) in told.message_primary
    assert told.message_hint


@ways
@pytest.mark.parametrize("option", ["limits", "LIMIT ", "cache", "header", "compress"])
def test_unknown_options(table, way, option):
    if way == "copy":
        option = option.strip()
        if option == "LIMIT":
            pytest.skip("COPY's grammar reads names of options without their case")
        if option == "header":
            pytest.skip("this is an option of COPY")
    told = refused(table, WITH_OPTIONS[way], QUERY, {option: 1})
    assert told.sqlstate in ("22023", "42601")
    assert f'"{option}"' in told.message_primary
    assert told.message_hint


@ways
@pytest.mark.parametrize("columns, missing", [
    (["c"], "c"), ('a"', 'a"'), (["a", "c"], "c"), (["A"], "A"), ("A", "A"), ("a, b", "a, b"), (["a", ""], ""),
], ids=str)
def test_unknown_columns(table, way, columns, missing):
    if way == "copy" and missing == "":
        pytest.skip("an empty identifier is a syntax error of its own")
    told = refused(table, WITH_OPTIONS[way], QUERY, {"columns": columns})
    assert told.sqlstate == "22023"
    assert f'"{missing}"' in told.message_primary
    assert told.message_hint


@ways
def test_a_name_that_two_columns_have(table, way):
    """A name that two columns have is ambiguous; the other columns can be requested."""
    query = "SELECT a AS x, b AS x, a AS y FROM t"
    told = refused(table, WITH_OPTIONS[way], query, {"columns": ["x"]})
    assert told.sqlstate == "22023" and '"x"' in told.message_primary
    assert read(WITH_OPTIONS[way](table, query, {"columns": ["y"]})).column_names == ["y"]


@pytest.mark.parametrize("function", ["fetch", "messages", "schema"])
@pytest.mark.parametrize("options", [[1], "limit", 5, None, True], ids=str)
def test_options_that_are_no_object(table, function, options):
    def call(session):
        session.execute(f"SELECT * FROM arrow_cache.{function}(%s, %s)", [QUERY, Jsonb(options)])

    told = refused(table, call)
    assert told.sqlstate == "22023" and "options" in told.message_primary and told.message_hint


@pytest.mark.parametrize("function", ["fetch", "messages", "schema"])
@pytest.mark.parametrize("option, value", [
    ("limit", True), ("limit", {}), ("limit", [1]), ("compression", ["lz4"]), ("columns", 5), ("columns", [1]),
    ("columns", [["a"]]), ("columns", [None]), ("columns", []), ("columns", {"a": 1}), ("numeric", False),
], ids=str)
def test_json_of_the_wrong_kind(table, function, option, value):
    def call(session):
        session.execute(f"SELECT * FROM arrow_cache.{function}(%s, %s)", [QUERY, Jsonb({option: value})])

    told = refused(table, call)
    assert told.sqlstate == "22023"
    assert f'"{option}"' in told.message_primary and told.message_hint


# Each query that is not one SELECT, and what the message calls it.
NOT_ONE_SELECT = [
    ("INSERT INTO t VALUES (0, '') RETURNING a", "INSERT"),
    ("UPDATE t SET b = '' RETURNING a", "UPDATE"),
    ("DELETE FROM t RETURNING a", "DELETE"),
    ("MERGE INTO t USING t s ON t.a = s.a WHEN MATCHED THEN DELETE", "MERGE"),
    ("WITH w AS (DELETE FROM t RETURNING a) SELECT a FROM w", "WITH"),
    ("SELECT a INTO u FROM t", "SELECT INTO"),
    ("CREATE TABLE u AS SELECT 1", "CREATE TABLE AS"),
    ("TRUNCATE t", "TRUNCATE"),
    ("EXPLAIN SELECT a FROM t", "EXPLAIN"),
    ("COPY t TO STDOUT", "COPY"),
    ("SET datestyle = 'German'", "SET"),
    ("COMMIT", "COMMIT"),
    ("SELECT 1; SELECT 2", "2 statements"),
    ("", "0 statements"),
    (" -- nothing", "0 statements"),
]


@pytest.mark.parametrize("function", ["query", "fetch", "messages", "schema"])
@pytest.mark.parametrize("statement, called", NOT_ONE_SELECT, ids=[called for _, called in NOT_ONE_SELECT])
def test_not_one_select(table, function, statement, called):
    def call(session):
        session.execute(f"SELECT * FROM arrow_cache.{function}(%s)", [statement])

    told = refused(table, call)
    assert told.sqlstate == "42601"
    assert called in told.message_primary
    assert told.message_hint
    assert table.rows("SELECT to_regclass('u')::text") == [(None,)]


@pytest.mark.parametrize("statement", [
    "INSERT INTO t VALUES (0, '')", "INSERT INTO t VALUES (0, '') RETURNING a", "UPDATE t SET b = '' RETURNING a",
    "DELETE FROM t RETURNING a", "WITH w AS (DELETE FROM t RETURNING a) SELECT a FROM w", "SELECT a INTO u FROM t",
])
def test_copy_of_what_is_no_select(table, statement):
    """COPY accepts these statements in its own formats if they have RETURNING. An export only reads."""
    told = refused(table, by_copy, statement)
    assert told.sqlstate in ("42601", "0A000")
    assert table.rows("SELECT to_regclass('u')::text") == [(None,)]


@pytest.mark.parametrize("function", ["query", "fetch", "messages", "schema"])
@pytest.mark.parametrize("statement, sqlstate", [
    ("SELECT a FROM", "42601"), ("SELECT c FROM t", "42703"), ("SELECT a FROM nothing", "42P01"), ("SELECT $1", "42P02"),
])
def test_queries_that_do_not_parse(table, function, statement, sqlstate):
    def call(session):
        session.execute(f"SELECT * FROM arrow_cache.{function}(%s)", [statement])

    assert refused(table, call).sqlstate == sqlstate


@ways
def test_queries_that_fail(table, way):
    """The error comes in the middle of a stream, on each execution; the session goes on."""
    told = refused(table, WITH_OPTIONS[way], "SELECT 1 / (a - 90) FROM t ORDER BY a", {"batch_rows": 5})
    assert told.sqlstate == "22012"
    assert read(WITH_OPTIONS[way](table, QUERY)).num_rows == 100


def test_null_arguments(table):
    """The functions are strict: NULL gives NULL. A JSON null stands for an option that was not given."""
    everything = {name: None for name in ("columns", "limit", "batch_rows", "chunk_bytes", "compression", "numeric", "interval",
                                          "extension_types", "on_unrepresentable")}
    for deliver in (by_fetch, by_messages):
        assert deliver(table, QUERY, everything) == deliver(table, QUERY)
    for function in ("fetch", "messages", "schema"):
        assert table.rows(f"SELECT * FROM arrow_cache.{function}(NULL)") == []
        assert table.rows(f"SELECT * FROM arrow_cache.{function}(NULL, '{{}}')") == []
        assert table.rows(f"SELECT * FROM arrow_cache.{function}(%s, NULL)", [QUERY]) == []


# COPY only

def copy(session, statement):
    with session.cursor().copy(statement) as pieces:
        return b"".join(pieces)


@pytest.mark.parametrize("options, word", [
    ("FORMAT arrow, LIMIT 1, LIMIT 1", "limit"),
    ("FORMAT arrow, LIMIT 1, BATCH_ROWS 5, LIMIT 2", "limit"),
    ("FORMAT arrow, FORMAT arrow", ""),
    ("FORMAT arrow, FORMAT csv", ""),
    ("FORMAT csv, FORMAT arrow", ""),
])
def test_options_given_twice(table, options, word):
    told = refused(table, copy, f"COPY t TO STDOUT ({options})")
    assert told.sqlstate == "42601"
    assert word in told.message_primary


def test_two_formats_in_two_syntaxes(table):
    """COPY BINARY is a format as well."""
    assert refused(table, copy, "COPY BINARY t TO STDOUT (FORMAT arrow)").sqlstate == "42601"


@pytest.mark.parametrize("option, word", [
    ("HEADER", "header"), ("HEADER true", "header"), ("HEADER false", "header"), ("NULL ''", "null"), ("DELIMITER ','", "delimiter"),
    ("QUOTE '\"'", "quote"), ("ESCAPE '\\'", "escape"), ("FORCE_QUOTE (a)", "force_quote"), ("FORCE_QUOTE *", "force_quote"),
    ("FORCE_NOT_NULL (a)", "force_not_null"), ("FORCE_NULL (a)", "force_null"), ("ENCODING 'LATIN1'", "encoding"), ("FREEZE", "freeze"),
])
def test_options_of_the_text_formats(table, option, word):
    """Before and after the format, for a table and for a query."""
    for source in ("t", f"({QUERY})"):
        for options in (f"FORMAT arrow, {option}", f"{option}, FORMAT arrow"):
            told = refused(table, copy, f"COPY {source} TO STDOUT ({options})")
            assert told.sqlstate in ("22023", "42601", "0A000")
            assert word in told.message_primary.lower()
            assert "arrow" in told.message_primary.lower()


@pytest.mark.parametrize("option", [
    "LIMIT", "COLUMNS", "COMPRESSION", "BATCH_ROWS", "LIMIT *", "COLUMNS *", "LIMIT true", "LIMIT (a)", "COLUMNS ()", "COLUMNS 5",
    "NUMERIC (text)", "COMPRESSION (lz4)",
])
def test_values_that_copy_can_spell(table, option):
    """The value is missing, a star, a list, or a word where another kind of value is required."""
    told = refused(table, copy, f"COPY t TO STDOUT (FORMAT arrow, {option})")
    if option == "COLUMNS ()":
        assert told.sqlstate == "42601"  # PostgreSQL's own grammar
        return
    assert told.sqlstate == "22023"
    assert f'"{option.split()[0].lower()}"' in told.message_primary and told.message_hint


@pytest.mark.parametrize("statement", [
    "COPY t FROM STDIN (FORMAT arrow)",
    "COPY t (a) FROM STDIN (FORMAT arrow)",
    "COPY t FROM '/tmp/nothing' (FORMAT arrow)",
    "COPY t FROM PROGRAM 'true' (FORMAT arrow)",
    "COPY t TO '/tmp/pg_arrow_cache_refused' (FORMAT arrow)",
    "COPY (SELECT a FROM t) TO '/tmp/pg_arrow_cache_refused' (FORMAT arrow)",
    "COPY t TO PROGRAM 'cat > /tmp/pg_arrow_cache_refused' (FORMAT arrow)",
])
def test_only_to_stdout(table, statement, tmp_path):
    statement = statement.replace("/tmp/pg_arrow_cache_refused", str(tmp_path / "refused"))

    def run(session):
        session.execute(statement)

    told = refused(table, run)
    assert told.sqlstate in ("0A000", "22023", "42601")
    assert "arrow" in told.message_primary.lower()
    assert told.message_hint and "STDOUT" in told.message_primary + told.message_hint
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize("statement, sqlstate", [
    ("COPY t TO STDOUT (LIMIT 1)", "42601"),
    ("COPY t TO STDOUT (FORMAT csv, LIMIT 1)", "42601"),
    ("COPY t TO STDOUT (FORMAT arow)", "22023"),
    ("COPY t TO STDOUT (FORMAT binary, COMPRESSION lz4)", "42601"),
])
def test_other_formats_do_not_take_our_options(table, statement, sqlstate):
    """These errors are PostgreSQL's own."""
    told = refused(table, copy, statement)
    assert told.sqlstate == sqlstate and "option" in told.message_primary + "option" * (sqlstate == "22023")


@pytest.mark.parametrize("options, expected", [
    ("", b"1\trow 1\n"),
    ("(FORMAT csv, HEADER, DELIMITER ';', FORCE_QUOTE (b))", b'a;b\n1;"row 1"\n'),
    ("(FORMAT text, NULL 'x')", b"1\trow 1\n"),
    ("CSV HEADER", b"a,b\n1,row 1\n"),
    ("(FORMAT binary)", b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\4\0\0\0\1\0\0\0\5row 1\xff\xff"),
])
def test_every_other_copy_is_untouched(table, options, expected):
    for _ in range(2):
        assert copy(table, f"COPY (SELECT a, b FROM t WHERE a = 1) TO STDOUT {options}") == expected
    table.execute("CREATE TABLE fresh (a int, b text)")
    with table.cursor().copy("COPY fresh FROM STDIN (FORMAT csv)") as into:
        into.write("1,one\n2,two\n")
    assert table.rows("SELECT * FROM fresh") == [(1, "one"), (2, "two")]
    assert read(by_copy(table, "SELECT * FROM fresh")).num_rows == 2


def test_inside_functions(table):
    """PL/pgSQL refuses it as it refuses any COPY to the client, with the message of the server."""
    for options in ("(FORMAT csv)", "(FORMAT arrow)"):
        with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
            table.execute(sql.SQL("DO {}").format(sql.Literal(f"BEGIN COPY t TO STDOUT {options}; END")))
        told = raised.value.diag.message_primary
        assert "COPY" in told
