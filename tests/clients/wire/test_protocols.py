"""The ways a statement can arrive: simple, unnamed, named prepared, SQL-level PREPARE, several in one string."""

import psycopg
import pytest

from support.wire import data_rows, error_fields, tags, types


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 10) g")
    return session


def test_one_entry_for_all_protocols(table, wire):
    """The text is part of the key; the way in which it is sent is not."""
    client = wire()
    query = "SELECT a, b FROM t ORDER BY a"
    expected = data_rows(client.query(query))
    assert client.status() == "MISS"

    assert data_rows(client.parse(query).bind().execute().sync()) == expected
    assert client.status() == "HIT"

    client.parse(query, "named").sync()
    for portal in ("", "p"):
        assert data_rows(client.bind(name="named", portal=portal).execute(portal).sync()) == expected
        assert client.status() == "HIT"
    assert client.value("SELECT count(*) FROM arrow_cache.entries") == "1"


def test_psycopg_prepares(table, other):
    """psycopg sends a statement unnamed at first and named from the fifth time on: all executions are hits, and the new
    rows come after a write."""
    query = "SELECT sum(a) FROM t WHERE a > %s"
    for run in range(8):
        assert table.rows(query, [5]) == [(40,)]
        assert table.status() == ("HIT" if run else "MISS")
    other.execute("UPDATE t SET a = a + 1 WHERE a = 10")
    assert table.rows(query, [5]) == [(41,)]
    assert table.status() == "STALE"
    assert table.rows(query, [5]) == [(41,)]
    assert table.status() == "HIT"


@pytest.mark.parametrize("plan_cache_mode", ["force_custom_plan", "force_generic_plan"])
def test_prepared_at_once(table, other, plan_cache_mode):
    table.execute(f"SET plan_cache_mode = {plan_cache_mode}")
    for value, rows in ((5, 5), (7, 3)):
        for status in ("MISS", "HIT", "HIT"):
            assert len(table.rows("SELECT a FROM t WHERE a > %s", [value], prepare=True)) == rows
            assert table.status() == status
    other.execute("DELETE FROM t WHERE a = 10")
    for value, rows in ((5, 4), (7, 2)):
        for status in ("STALE", "HIT"):
            assert len(table.rows("SELECT a FROM t WHERE a > %s", [value], prepare=True)) == rows
            assert table.status() == status


def test_prepared_statement_outlives_a_change_of_its_table(table, other):
    """A named statement is planned again when the table changes, and its old answers are not served."""
    for _ in range(3):
        assert table.rows("SELECT count(*) FROM t", prepare=True) == [(10,)]
    other.execute("ALTER TABLE t RENAME TO old; CREATE TABLE t (a int)")
    for _ in range(3):
        assert table.rows("SELECT count(*) FROM t", prepare=True) == [(0,)]
    other.execute("DROP TABLE t")
    with pytest.raises(psycopg.errors.UndefinedTable):
        table.rows("SELECT count(*) FROM t", prepare=True)


def test_sql_level_prepare(table):
    table.execute("PREPARE p (int) AS SELECT count(*) FROM t WHERE a > $1")
    for status in ("MISS", "HIT"):
        assert table.rows("EXECUTE p (4)") == [(6,)]
        assert table.status() == status
    assert table.rows("EXECUTE p (5)") == [(5,)]
    assert table.status() == "MISS"


def test_several_statements_in_one_string(table, wire):
    """Each statement of a string has a key of its own, whatever stands before and after it."""
    client = wire()
    alone = client.query("SELECT sum(a) FROM t")
    text = "SELECT count(*) FROM t;  SELECT sum(a) FROM t ; SELECT 'a;b', max(a) FROM t"
    hits = "SELECT hits FROM arrow_cache.stats"
    before = int(client.value(hits))
    first = client.query(text)
    assert data_rows(first) == [[b"10"], [b"55"], [b"a;b", b"10"]]
    assert types(first) == "TDC" * 3 + "Z"
    assert int(client.value(hits)) == before + 1  # the one in the middle
    assert client.query(text) == first
    assert int(client.value(hits)) == before + 4
    assert client.query("SELECT sum(a) FROM t") == alone
    assert client.status() == "HIT"


def test_a_write_between_two_reads_of_one_string(table, wire):
    client = wire()
    text = "SELECT count(*) FROM t; INSERT INTO t VALUES (0, ''); SELECT count(*) FROM t"
    assert data_rows(client.query("SELECT count(*) FROM t")) == [[b"10"]]
    for n in (10, 11, 12):
        answer = client.query(text)
        assert data_rows(answer) == [[b"%d" % n], [b"%d" % (n + 1)]]
        assert tags(answer) == ["SELECT 1", "INSERT 0 1", "SELECT 1"]
        assert client.value("SELECT count(*) FROM t") == str(n + 1)


def test_a_string_that_fails_leaves_no_trace(table, wire):
    """A string is one transaction: its write is undone with it, and what it read meanwhile is served to nobody."""
    client = wire()
    failed = client.query("INSERT INTO t VALUES (0, ''); SELECT count(*) FROM t; SELECT 1 / 0")
    assert data_rows(failed) == [[b"11"]] and "E" in types(failed)
    for status in ("MISS", "HIT"):
        assert client.value("SELECT count(*) FROM t") == "10"
        assert client.status() == status


def test_describe_of_a_statement_that_will_be_a_hit(table, wire):
    """Describe gives the same before the first execution and after it."""
    client = wire()
    query = "SELECT a, b FROM t ORDER BY a"
    runs = [client.parse(query).bind().describe().execute().sync() for _ in range(3)]
    assert client.status() == "HIT"
    assert runs[0] == runs[1] == runs[2]
    assert types(runs[0]) == "12T" + "D" * 10 + "CZ"


def test_comments_and_letter_case_are_not_part_of_the_question(table):
    assert table.rows("SELECT a FROM t WHERE b = 'row 1'") == [(1,)]
    for same in ("select  A from T /* x */ where b = 'row 1' -- y", "Select/**/a From t\nWhere b='row 1'"):
        assert table.rows(same) == [(1,)]
        assert table.status() == "HIT"
    assert table.rows("SELECT a FROM t WHERE b = 'ROW 1'") == []
    assert table.status() == "MISS"


@pytest.mark.parametrize("protocol", [(3, 0), (3, 2)])
def test_protocol_versions(table, wire, protocol):
    """From 18 on a client may ask for 3.2, which has longer keys to cancel with. The rows are the same, and a canceled statement leaves nothing behind."""
    client = wire(protocol=protocol)
    has_long_key = protocol == (3, 2) and table.info.server_version >= 180000
    assert len(client.key) == 4 + (32 if has_long_key else 4)
    query = "SELECT a, b FROM t ORDER BY a"
    expected = [[str(column).encode() for column in row] for row in table.uncached(query)]
    assert data_rows(client.query(query)) == expected
    for format in (0, 0, 1):
        rows = data_rows(client.parse(query).bind(result_format=format).execute().sync())
        assert client.status() == "HIT"
        assert rows == (expected if format == 0 else [[int(a).to_bytes(4, "big"), b] for a, b in expected])
    client.add(b"Q", b"SELECT a, pg_sleep(100) FROM t\0").send()
    while not table.rows("SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
        pass
    client.cancel()
    [error] = [message for message in client.until_ready() if message.type == "E"]
    assert error_fields(error)["C"] == "57014"
    assert data_rows(client.query(query)) == expected
    assert client.status() == "HIT"
