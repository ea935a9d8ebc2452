"""Trusted foreign tables that are written through this server: such writes invalidate like any others, although they are
read and committed elsewhere and at other moments."""

import threading
import time

import psycopg
import pytest

from support.asking import until_locked_out

TABLES = ("f1", "f2")


@pytest.fixture
def far(connect, session):
    """Foreign tables over tables of the same database, reached through a connection of postgres_fdw's own."""
    session.execute("CREATE EXTENSION postgres_fdw")
    info = session.info
    session.execute(f"CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{info.host}', port '{info.port}', dbname '{info.dbname}')")
    session.execute(f"CREATE USER MAPPING FOR CURRENT_USER SERVER far OPTIONS (user '{info.user}')")
    for table in TABLES:
        session.execute(f"CREATE TABLE r_{table} (x int); INSERT INTO r_{table} VALUES (1)")
        session.execute(f"CREATE FOREIGN TABLE {table} (x int) SERVER far OPTIONS (schema_name '{connect.schema}', table_name 'r_{table}')")
        session.execute(f"SELECT arrow_cache.set_policy('{table}', 'trusted')")
    yield session
    session.execute("ROLLBACK")
    session.execute("SET client_min_messages = warning; DROP EXTENSION postgres_fdw CASCADE")


def total(session, table="f1"):
    return session.rows(f"SELECT sum(x) FROM {table}", prepare=False)[0][0]


def warm(session, table="f1"):
    # What has changed since the transaction began is left alone, by the clock.
    time.sleep(0.01)
    for _ in range(2):
        value = total(session, table)
    assert session.status() == "HIT"
    return value


def copy(session, name, value):
    with session.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as rows:
        rows.write_row((value,))


def test_restricted(far):
    """A session may forbid itself to read foreign tables and views, as pg_dump does. The server notices that when it plans and rewrites."""
    far.execute("CREATE VIEW v AS SELECT x FROM f1")
    warm(far)
    for kind, query in ("foreign-table", "SELECT sum(x) FROM f1"), ("view", "SELECT sum(x) FROM v"), ("foreign-table", "SELECT sum(x) FROM v"):
        for _ in range(2):
            assert far.rows(query, prepare=False) == [(1,)]
        far.execute(f"SET restrict_nonsystem_relation_kind = '{kind}'")
        for _ in range(2):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                far.execute(query, prepare=False)
        far.execute("RESET restrict_nonsystem_relation_kind")
        assert far.rows(query, prepare=False) == [(1,)]


def test_names_with_the_database(far, other, connect):
    qualified = f"{far.info.dbname}.{connect.schema}.f1"
    assert warm(other) == 1
    copy(far, qualified, 100)
    assert total(other) == 101
    warm(other)
    far.execute(f"TRUNCATE {qualified}")
    assert total(other) is None


def test_uncommitted_rows_are_not_stored(far, other):
    far.execute("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT sum(x) FROM f1")
    far.execute("INSERT INTO f1 VALUES (1000)")
    assert far.rows("FETCH ALL FROM c") == [(1001,)]
    far.execute("CLOSE c")
    assert total(other) == 1
    assert other.status() == "BYPASS"
    far.execute("ROLLBACK")
    time.sleep(0.01)
    assert total(other) == 1


def test_own_writes_in_a_cursor(far):
    query = "SELECT array_agg(x ORDER BY x) FROM (SELECT x FROM f1 UNION ALL VALUES (0)) s"
    time.sleep(0.01)
    far.rows(query, prepare=False)
    far.execute(f"BEGIN; DECLARE c NO SCROLL CURSOR FOR {query}")
    far.execute("INSERT INTO f1 VALUES (7)")
    assert far.rows("FETCH ALL FROM c") == [([0, 1, 7],)]


def test_own_writes_between_bind_and_execute(far, wire):
    client = wire()
    query = "SELECT sum(x) FROM f1"
    for _ in range(2):
        time.sleep(0.01)
        client.parse(query).bind().execute().sync()
    assert client.status() == "HIT"
    client.query("BEGIN")
    client.parse("INSERT INTO f1 VALUES (5)", name="i").parse(query).bind().bind(portal="i", name="i").execute("i").execute()
    answer = client.sync()
    assert [message.body[-1:] for message in answer if message.type == "D"] == [b"6"]
    client.query("ROLLBACK")


def test_nobody_hits_while_the_far_side_may_have_committed(far, other):
    assert warm(other) == 1
    far.execute("BEGIN; INSERT INTO f1 VALUES (10)")
    assert total(other) == 1
    assert (other.status(), other.reason()) == ("BYPASS", "writer_in_progress")
    far.execute("COMMIT")
    assert total(other) == 11


def test_a_remote_snapshot_that_is_older(far, other):
    """The wrapper reads under one remote snapshot in the whole transaction, however new the local ones are."""
    far.execute("BEGIN")
    assert total(far, "f2") == 1
    other.execute("INSERT INTO f1 VALUES (10)")
    for _ in range(2):
        assert total(far) == 1
        assert (far.status(), far.reason()) == ("BYPASS", "writer_in_progress")
    assert warm(other) == 11
    assert total(far) == 1
    far.execute("COMMIT")
    assert total(far) == 11


def test_names_that_are_swapped_before_the_lock(far, other, connect):
    """COPY resolves the name of its table after it has waited for the lock."""
    writer, go_on = connect(), threading.Event()

    def write():
        with writer.cursor() as cursor, cursor.copy("COPY f1 FROM STDIN") as rows:
            go_on.wait(30)
            rows.write_row((500,))

    far.execute("BEGIN; ALTER FOREIGN TABLE f1 RENAME TO aside; ALTER FOREIGN TABLE f2 RENAME TO f1")
    copied = threading.Thread(target=write)
    copied.start()
    with connect() as watcher:
        until_locked_out(watcher)
    far.execute("COMMIT")
    assert warm(other) == 1
    go_on.set()
    copied.join()
    assert total(other) == 501


def test_a_partition_that_is_attached_meanwhile(far, other, connect):
    """The partition that rows move to is known when the first row moves."""
    far.execute("CREATE TABLE root (x int) PARTITION BY RANGE (x); CREATE TABLE low PARTITION OF root FOR VALUES FROM (0) TO (100)")
    far.execute("INSERT INTO root VALUES (50); DELETE FROM f1; CREATE TABLE gate (n int)")
    writer, keeper = connect(), connect()
    keeper.execute("BEGIN; SELECT pg_advisory_lock(4711)")
    moved = threading.Thread(target=writer.execute, args=("UPDATE root SET x = 160 WHERE pg_advisory_xact_lock(4711) IS NOT NULL",))
    moved.start()
    with connect() as watcher:
        until_locked_out(watcher)
    far.execute("ALTER TABLE root ATTACH PARTITION f1 FOR VALUES FROM (150) TO (200)")
    assert warm(other) is None
    keeper.execute("SELECT pg_advisory_unlock(4711); COMMIT")
    moved.join()
    assert total(other) == 160
