"""Snapshots that one session exports and others import: a session with the snapshot sees its rows at any time. It does
not get newer answers, and does not store its rows for sessions that must not see them."""

import pytest

QUERY = "SELECT sum(a) FROM t"
LEVELS = ["REPEATABLE READ", "REPEATABLE READ READ ONLY"]


@pytest.fixture
def exported(session, connect):
    """A table whose answer is cached, and a session that has exported a snapshot of it."""
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    session.execute("CREATE TABLE quiet AS SELECT 1 AS a")
    exporter = connect()
    exporter.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    exporter.snapshot = exporter.rows("SELECT pg_export_snapshot()")[0][0]
    for status in ("MISS", "HIT"):
        assert session.rows(QUERY) == [(55,)]
        assert session.status() == status
    return exporter


def importer(connect, exported, level):
    taker = connect()
    taker.execute(f"BEGIN ISOLATION LEVEL {level}")
    taker.execute(f"SET TRANSACTION SNAPSHOT '{exported.snapshot}'")
    return taker


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_has_changed(session, connect, exported, level):
    taker = importer(connect, exported, level)
    assert taker.rows(QUERY) == [(55,)]
    assert taker.status() == "HIT"
    session.execute("SELECT arrow_cache.flush()")
    assert taker.rows(QUERY) == [(55,)]
    assert taker.status() == "MISS"
    assert session.rows(QUERY) == [(55,)]
    assert session.status() == "HIT"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("imported_first", [False, True])
def test_older_than_the_entry(session, connect, exported, level, imported_first):
    taker = importer(connect, exported, level) if imported_first else None
    session.execute("INSERT INTO t VALUES (1000)")
    for status in ("STALE", "HIT"):
        assert session.rows(QUERY) == [(1055,)]
        assert session.status() == status
    taker = taker or importer(connect, exported, level)
    for older in (taker, exported):
        for _ in range(2):
            assert older.rows(QUERY) == [(55,)]
            assert (older.status(), older.reason()) == ("BYPASS", "writer_in_progress")
        assert older.rows("SELECT a FROM quiet") == [(1,)]
    assert exported.status() == "HIT"
    assert session.rows(QUERY) == [(1055,)]
    assert session.status() == "HIT"
    taker.execute("COMMIT")
    assert taker.rows(QUERY) == [(1055,)]
    assert taker.status() == "HIT"


@pytest.mark.parametrize("level", LEVELS)
def test_exporter_is_gone(session, connect, exported, level):
    """The snapshot stays valid in the sessions that imported it."""
    taker = importer(connect, exported, level)
    exported.execute("COMMIT")
    session.execute("DELETE FROM t WHERE a > 5")
    assert taker.rows(QUERY) == [(55,)]
    assert taker.status() == "BYPASS"
    for status in ("MISS", "HIT"):
        assert session.rows(QUERY) == [(15,)]
        assert session.status() == status
    assert taker.rows(QUERY) == [(55,)]


@pytest.mark.parametrize("committed", [False, True])
def test_the_exporter_writes(session, connect, committed):
    """The changes of the exporting session are in no copy of the snapshot, because its transaction has not ended."""
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    exporter = connect()
    exporter.execute("BEGIN")
    exporter.execute("INSERT INTO t VALUES (1000)")
    exporter.snapshot = exporter.rows("SELECT pg_export_snapshot()")[0][0]
    assert exporter.rows(QUERY) == [(1055,)]
    assert (exporter.status(), exporter.reason()) == ("BYPASS", "own_writes")
    taker = importer(connect, exporter, LEVELS[0])
    for status in ("MISS", "HIT"):
        assert taker.rows(QUERY) == [(55,)]
        assert taker.status() == status
    if committed:
        exporter.execute("COMMIT")
        assert session.rows(QUERY) == [(1055,)]
        assert session.status() == "STALE"
    assert taker.rows(QUERY) == [(55,)]
    assert taker.status() == ("BYPASS" if committed else "HIT")
    assert session.rows(QUERY) == [(1055,) if committed else (55,)]
    assert session.status() == "HIT"


def test_serializable(connect, exported):
    """A serializable session imports a snapshot of another one, READ ONLY or not; neither is served."""
    exporter = connect()
    exporter.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    exporter.snapshot = exporter.rows("SELECT pg_export_snapshot()")[0][0]
    taker = importer(connect, exporter, "SERIALIZABLE")
    for session in (exporter, taker):
        assert session.rows(QUERY) == [(55,)]
        assert (session.status(), session.reason()) == ("BYPASS", "serializable")
