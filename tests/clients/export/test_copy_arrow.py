"""COPY ... TO STDOUT (FORMAT arrow) behaves as COPY does: for tables, with their permissions, in transactions, with the
errors of COPY."""

import struct

import psycopg
import pytest

from support.exports import by_copy, copy_chunks, entries, read, rows_of
from support.wire import error_fields, tags, types


@pytest.fixture
def table(session):
    session.execute("""
        CREATE TABLE t (a int, dropped int, b text, g int GENERATED ALWAYS AS (a * 2) STORED, c float8);
        ALTER TABLE t DROP COLUMN dropped;
        INSERT INTO t (a, b, c) SELECT g, CASE WHEN g % 3 > 0 THEN 'row ' || g END, g / 4.0 FROM generate_series(1, 100) g""")
    return session


def copied(session, source, options=None):
    return read(by_copy(session, ("table", source), options))


def text_of(session, statement):
    with session.cursor().copy(statement) as pieces:
        return b"".join(pieces).decode()


def told(session, statement):
    """The error of a COPY, which is the same for each format."""
    with pytest.raises(psycopg.Error) as raised:
        text_of(session, statement)
    diag = raised.value.diag
    return (diag.sqlstate, diag.message_primary, diag.message_detail, diag.message_hint, diag.column_name, diag.table_name)


def test_a_table(table):
    """The columns that COPY sends: dropped and generated ones are left out."""
    for status in ("MISS", "HIT"):
        got = copied(table, "t")
        assert (table.status(), table.reason()) == (status, None)
        assert got.column_names == ["a", "b", "c"]
        assert rows_of(got) == table.uncached("SELECT a, b, c FROM t")


def test_a_column_list(table):
    for columns in (["c", "a"], ["b"], ["a", "b", "c"]):
        for status in ("MISS", "HIT"):
            got = copied(table, f"t ({', '.join(columns)})")
            assert table.status() == status
            assert got.column_names == columns
            assert rows_of(got) == table.uncached(f"SELECT {', '.join(columns)} FROM t")


def test_a_column_list_with_columns(table):
    """The option `columns` chooses from the column list."""
    got = copied(table, "t (c, a)", {"columns": ["a"], "limit": 3})
    assert (got.column_names, rows_of(got)) == (["a"], [(1,), (2,), (3,)])
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        copied(table, "t (c, a)", {"columns": ["b"]})


def test_quoted_names(session):
    session.execute('CREATE TABLE "Odd ""name" ("A b" int, a int); INSERT INTO "Odd ""name" VALUES (1, 2)')
    for _ in range(2):
        assert copied(session, '"Odd ""name"').to_pylist() == [{"A b": 1, "a": 2}]
        assert copied(session, '"Odd ""name" ("A b")').to_pylist() == [{"A b": 1}]


def test_no_columns(session):
    session.execute("CREATE TABLE none (); INSERT INTO none SELECT FROM generate_series(1, 5)")
    for _ in range(2):
        assert copied(session, "none").column_names == []


def test_only_the_table_itself(session):
    """COPY of a parent leaves the children's rows out, unlike SELECT."""
    session.execute("""
        CREATE TABLE parent (a int); CREATE TABLE child () INHERITS (parent);
        INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2)""")
    for status in ("MISS", "HIT"):
        assert rows_of(copied(session, "parent")) == [(1,)]
        assert session.status() == status
    assert sorted(rows_of(read(by_copy(session, "SELECT a FROM parent")))) == [(1,), (2,)]
    session.execute("INSERT INTO parent VALUES (3)")
    assert sorted(rows_of(copied(session, "parent"))) == [(1,), (3,)]


@pytest.mark.parametrize("source", [
    "v", "p", "s", "f", "i", "nothing", "t (nothing)", "t (a, a)", "t (g)", "t (dropped)", "(SELECT nothing FROM t)",
    "(SELECT a FROM t WHERE)", "(SELECT a FROM t; SELECT 1)",
])
def test_the_errors_are_those_of_any_copy(table, source):
    """A table that is missing or cannot be copied is the same error as in CSV."""
    table.execute("""
        CREATE VIEW v AS SELECT 1 AS a; CREATE SEQUENCE s; CREATE INDEX i ON t (a);
        CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p DEFAULT;
        CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE f (a int) SERVER far""")
    try:
        expected = told(table, f"COPY {source} TO STDOUT (FORMAT csv)")
        for _ in range(2):
            assert told(table, f"COPY {source} TO STDOUT (FORMAT arrow)") == expected
    finally:
        table.execute("DROP FOREIGN DATA WRAPPER w CASCADE")
    assert entries(table) == 0


def test_materialized_views(session):
    """They can be copied by name from 18 on, if they are populated. All errors are those of any COPY."""
    session.execute("""
        CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 3) g;
        CREATE MATERIALIZED VIEW full_of AS SELECT a, a * 10 AS b FROM t; CREATE MATERIALIZED VIEW empty_of AS SELECT a FROM t WITH NO DATA""")
    by_name = session.info.server_version >= 180000
    for source in ("empty_of", "full_of (c)", *([] if by_name else ["full_of", "full_of (b)"])):
        assert told(session, f"COPY {source} TO STDOUT (FORMAT arrow)") == told(session, f"COPY {source} TO STDOUT (FORMAT csv)")
    assert entries(session) == 0
    if not by_name:
        return
    for status in ("MISS", "HIT"):
        assert rows_of(copied(session, "full_of")) == [(1, 10), (2, 20), (3, 30)]
        assert session.status() == status
    assert rows_of(copied(session, "full_of (b)")) == [(10,), (20,), (30,)]
    session.execute("DELETE FROM t WHERE a < 3; REFRESH MATERIALIZED VIEW full_of")
    assert rows_of(copied(session, "full_of")) == [(3, 30)]
    assert session.status() == "STALE"
    session.execute("REFRESH MATERIALIZED VIEW full_of WITH NO DATA")
    assert told(session, "COPY full_of TO STDOUT (FORMAT arrow)") == told(session, "COPY full_of TO STDOUT (FORMAT csv)")


def test_virtual_columns(session):
    """They are left out like other generated columns, unless a query names them."""
    if session.info.server_version < 180000:
        with pytest.raises(psycopg.errors.SyntaxError):
            session.execute("CREATE TABLE t (a int, v int GENERATED ALWAYS AS (a * 2) VIRTUAL)")
        return
    session.execute("CREATE TABLE t (a int, v int GENERATED ALWAYS AS (a * 2) VIRTUAL, w text GENERATED ALWAYS AS (repeat('W', 1))); INSERT INTO t VALUES (1), (2)")
    query = "SELECT v, w, a, t FROM t ORDER BY v"
    for status in ("MISS", "HIT"):
        assert rows_of(copied(session, "t")) == [(1,), (2,)]
        assert session.status() == status
        got = rows_of(read(by_copy(session, query)))
        assert session.status() == status
        assert [row[:3] for row in got] == [(2, "W", 1), (4, "W", 2)]
        assert [tuple(row[3].values()) for row in got] == [(1, 2, "W"), (2, 4, "W")]
    for columns in ("v", "a, w"):
        assert told(session, f"COPY t ({columns}) TO STDOUT (FORMAT arrow)") == told(session, f"COPY t ({columns}) TO STDOUT (FORMAT csv)")
    session.execute("ALTER TABLE t ALTER v SET EXPRESSION AS (a * 3)")
    assert [row[0] for row in rows_of(read(by_copy(session, query)))] == [3, 6]
    assert session.status() == "STALE"
    # Nothing is left to copy.
    session.execute("ALTER TABLE t ADD x int GENERATED ALWAYS AS (7); ALTER TABLE t DROP v, DROP a")
    assert copied(session, "t").num_columns == 0


def test_views_and_partitioned_tables_as_queries(session):
    session.execute("""
        CREATE TABLE p (a int) PARTITION BY LIST (a);
        CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE p2 PARTITION OF p DEFAULT;
        INSERT INTO p VALUES (1), (2); CREATE VIEW v AS SELECT a * 10 AS a FROM p; CREATE MATERIALIZED VIEW m AS SELECT * FROM v""")
    for source, rows in (("p", [(1,), (2,)]), ("v", [(10,), (20,)]), ("m", [(10,), (20,)])):
        for status in ("MISS", "HIT"):
            assert rows_of(read(by_copy(session, f"SELECT * FROM {source} ORDER BY a"))) == rows
            assert session.status() == status
    session.execute("INSERT INTO p VALUES (3)")
    assert rows_of(read(by_copy(session, "SELECT * FROM v ORDER BY a"))) == [(10,), (20,), (30,)]
    assert session.status() == "STALE"
    assert rows_of(copied(session, "p2")) == [(2,), (3,)]


@pytest.fixture
def roles(table, connect):
    names = [f"{connect.schema}_{role}" for role in ("reader", "stranger")]
    for name in names:
        table.execute(f"CREATE ROLE {name}; GRANT USAGE ON SCHEMA {connect.schema} TO {name}")
    table.execute(f"GRANT SELECT (a, b) ON t TO {names[0]}")
    yield names
    table.execute("RESET ROLE")
    for name in names:
        table.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_permissions(table, roles):
    """A role does not get an answer that it has no permission for; columns have permissions of their own."""
    reader, stranger = roles
    for _ in range(2):
        copied(table, "t")
        copied(table, "t (a, b)")
    assert table.status() == "HIT"
    for role, source in ((stranger, "t"), (stranger, "t (a)"), (stranger, "(SELECT a FROM t)"), (reader, "t"),
                         (reader, "t (a, c)")):
        table.execute(f"SET ROLE {role}")
        expected = told(table, f"COPY {source} TO STDOUT (FORMAT csv)")
        assert expected[0] == "42501"
        for _ in range(2):
            assert told(table, f"COPY {source} TO STDOUT (FORMAT arrow)") == expected
    table.execute(f"SET ROLE {reader}")
    for status in ("MISS", "HIT"):
        assert copied(table, "t (a, b)").num_rows == 100
        assert table.status() == status
    table.execute(f"RESET ROLE; REVOKE SELECT (b) ON t FROM {reader}; SET ROLE {reader}")
    assert told(table, "COPY t (a, b) TO STDOUT (FORMAT arrow)")[0] == "42501"


def test_row_security(table, roles):
    """COPY of a table obeys its policies, for each role by itself."""
    reader, stranger = roles
    table.execute(f"""
        GRANT SELECT ON t TO {reader}, {stranger}; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
        CREATE POLICY low ON t FOR SELECT TO {reader} USING (a <= 10);
        CREATE POLICY high ON t FOR SELECT TO {stranger} USING (a > 95)""")
    assert copied(table, "t").num_rows == 100
    for status in ("MISS", "HIT"):
        for role, numbers in ((reader, range(1, 11)), (stranger, range(96, 101))):
            table.execute(f"SET ROLE {role}")
            got = copied(table, "t (a, b, c)")
            assert table.status() == status
            assert got.column("a").to_pylist() == list(numbers)
            assert rows_of(got) == table.uncached("SELECT a, b, c FROM t")
            table.execute("RESET ROLE")
    table.execute("SET row_security = off")
    table.execute(f"SET ROLE {reader}")
    assert told(table, "COPY t (a) TO STDOUT (FORMAT arrow)") == told(table, "COPY t (a) TO STDOUT (FORMAT csv)")


def test_own_writes(table, other):
    """A transaction sees what it has written, and nobody else does before it ends."""
    assert copied(table, "t (a)").num_rows == 100
    with table.transaction(force_rollback=True):
        table.execute("DELETE FROM t WHERE a <= 90")
        for _ in range(2):
            assert rows_of(copied(table, "t (a)")) == [(n,) for n in range(91, 101)]
            assert (table.status(), table.reason()) == ("BYPASS", "own_writes")
        assert copied(other, "t (a)").num_rows == 100
        assert other.status() == "HIT"
    assert copied(table, "t (a)").num_rows == 100
    assert table.status() == "HIT"
    other.execute("DELETE FROM t WHERE a <= 90")
    assert copied(table, "t (a)").num_rows == 10
    assert table.status() == "STALE"


def test_snapshots(table, other):
    """REPEATABLE READ goes on seeing its snapshot."""
    table.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert copied(table, "t (a)").num_rows == 100
    other.execute("DELETE FROM t WHERE a > 50")
    assert copied(other, "t (a)").num_rows == 50
    assert copied(table, "t (a)").num_rows == 100
    table.execute("COMMIT")
    assert copied(table, "t (a)").num_rows == 50


def test_command_tag_and_row_count(table, wire):
    """The tag is COPY n, with the number of rows that were sent, on a miss and on a hit."""
    client = wire()
    for options, rows in (("", 100), (", LIMIT 7", 7), (", LIMIT 0", 0), (", COLUMNS (a), BATCH_ROWS 3", 100)):
        for _ in range(2):
            answer = client.query(f"COPY t TO STDOUT (FORMAT arrow{options})")
            assert tags(answer) == [f"COPY {rows}"]
            assert types(answer).replace("d", "") == "HcCZ"
    cursor = table.cursor()
    with cursor.copy("COPY t TO STDOUT (FORMAT arrow)") as pieces:
        read(b"".join(pieces))
    assert cursor.rowcount == 100


@pytest.mark.parametrize("options, columns", [("", 3), (", COLUMNS (c)", 1)])
def test_the_client_is_told_that_it_is_binary(table, wire, options, columns):
    client = wire()
    for _ in range(2):
        answer = client.query(f"COPY t TO STDOUT (FORMAT arrow{options})")
        overall, count = struct.unpack_from("!bh", answer[0].body)
        assert (overall, count) == (1, columns)
        assert struct.unpack_from(f"!{count}h", answer[0].body, 3) == (1,) * count


def test_one_statement_of_several(table, wire):
    client = wire()
    text = "COPY t (a) TO STDOUT (FORMAT arrow); INSERT INTO t (a) VALUES (101); COPY t (a) TO STDOUT (FORMAT arrow); " \
           "COPY (SELECT max(a) FROM t) TO STDOUT (FORMAT csv)"
    for n in (100, 101):
        answer = client.query(text)
        assert tags(answer) == [f"COPY {n}", "INSERT 0 1", f"COPY {n + 1}", "COPY 1"]
        streams, data = [], b""
        for message in answer:
            if message.type == "d":
                data += message.body
            elif message.type == "c":
                streams.append(data)
                data = b""
        assert [read(stream).num_rows for stream in streams[:2]] == [n, n + 1]
        assert streams[2] == b"101\n"


def test_a_prepared_copy(table, wire):
    """A COPY can be prepared through the protocol. Each execution gives the rows of its own time."""
    client = wire()
    for source in ("t (a)", "(SELECT a FROM t)"):
        name = f"copy {source}"
        assert types(client.parse(f"COPY {source} TO STDOUT (FORMAT arrow, COLUMNS (a), LIMIT 1000)", name).sync()) == "1Z"
        rows = int(client.value("SELECT count(*) FROM t"))
        for _ in range(3):
            answer = client.bind(name=name).execute().sync()
            assert types(answer).replace("d", "") == "2HcCZ"
            assert tags(answer) == [f"COPY {rows}"]
            assert read(b"".join(message.body for message in answer if message.type == "d")).num_rows == rows
        assert client.status() == "HIT"
        table.execute("INSERT INTO t (a) VALUES (0)")
        assert tags(client.bind(name=name).execute().sync()) == [f"COPY {rows + 1}"]


def test_an_error_in_the_middle(table, wire):
    """The client gets part of the stream and then the error; the end of the stream never comes."""
    client = wire()
    table.execute("CREATE TABLE wide AS SELECT g AS a, repeat('x', 1000) AS pad FROM generate_series(1, 3000) g")
    for _ in range(2):
        answer = client.query("COPY (SELECT 1 / (2990 - a), pad FROM wide) TO STDOUT (FORMAT arrow)")
        assert types(answer).replace("d", "") == "HEZ" and "d" in types(answer)
        assert error_fields(answer[-2])["C"] == "22012"
        assert tags(client.query("COPY t (a) TO STDOUT (FORMAT arrow)")) == ["COPY 100"]


def test_aliases(table):
    expected = by_copy(table, "SELECT a FROM t")
    for alias in ("arrow", "arrows", "arrow_stream", "'arrow'", "ARROW"):
        with table.cursor().copy(f"COPY (SELECT a FROM t) TO STDOUT (FORMAT {alias})") as pieces:
            assert b"".join(pieces) == expected
        with table.cursor().copy(f"COPY (SELECT a FROM t) TO STDOUT (LIMIT 1000, FORMAT {alias}, COMPRESSION none)") as pieces:
            assert b"".join(pieces) == expected


def test_hints_and_shared_entries(table):
    """The query inside COPY shares its entry with the same query sent alone."""
    query = "SELECT a, b FROM t ORDER BY a"
    rows = table.rows(query)
    assert rows_of(read(by_copy(table, query))) == rows
    assert table.status() == "HIT"
    assert rows_of(read(by_copy(table, " select A, b from t /* x */ ORDER BY a  "))) == rows
    assert table.status() == "HIT"
    assert entries(table) == 1


def test_explain_and_why_agree(table):
    query = "SELECT a FROM t ORDER BY a"
    by_copy(table, query)
    assert "ArrowCache" in table.rows(f"EXPLAIN {query}")[0][0]
    assert table.rows("SELECT cacheable FROM arrow_cache.why(%s)", [query]) == [(True,)]


def test_in_a_failed_transaction(table):
    table.execute("BEGIN")
    with pytest.raises(psycopg.errors.DivisionByZero):
        table.execute("SELECT 1 / 0")
    assert told(table, "COPY t TO STDOUT (FORMAT arrow)")[0] == "25P02"
    table.execute("ROLLBACK")
    assert copied(table, "t").num_rows == 100


def test_read_only_transactions(table):
    table.execute("BEGIN READ ONLY")
    for _ in range(2):
        assert copied(table, "t").num_rows == 100
    table.execute("COMMIT")


@pytest.mark.parametrize("encoding", ["UTF8", "LATIN1", "SQL_ASCII"])
def test_client_encoding_does_not_matter(session, connect, encoding):
    """Strings in a stream are UTF-8 as Arrow demands, whatever the encoding of the client."""
    session.execute("CREATE TABLE words AS SELECT 'äöü €' AS w")
    client = connect(f"-c client_encoding={encoding}")
    for _ in range(2):
        assert b"".join(copy_chunks(client, "SELECT w FROM words")).count("äöü €".encode()) == 1
        assert read(by_copy(client, "SELECT w FROM words")).column("w").to_pylist() == ["äöü €"]


def test_a_copy_inside_the_planning_of_another(table):
    """Functions that the planner runs are not part of the COPY: a COPY to a file inside one stays a COPY to a file."""
    path = table.rows("SHOW data_directory")[0][0] + "/inner_copy.csv"
    table.execute(f"""
        CREATE FUNCTION writes() RETURNS int VOLATILE LANGUAGE plpgsql AS $$ BEGIN
            EXECUTE $q$COPY (SELECT 42) TO '{path}'$q$; RETURN 1; END $$;
        CREATE FUNCTION folded() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN writes(); END $$""")
    assert read(by_copy(table, "SELECT folded() AS one, 2 AS two")).to_pylist() == [{"one": 1, "two": 2}]
    assert table.rows(f"SELECT pg_read_file('{path}')") == [("42\n",)]


def test_a_quoted_name_is_one_name(session):
    session.execute('CREATE TABLE "Ab" (a int, "A" int, "A b" int); INSERT INTO "Ab" VALUES (1, 2, 3)')
    for written, value in [('"A"', 2), ('"A b"', 3), ("a", 1), ("A", 1)]:
        with session.cursor().copy(f'COPY "Ab" TO STDOUT (FORMAT arrow, COLUMNS {written})') as copy:
            got = read(b"".join(copy))
        assert got.column(0).to_pylist() == [value]
