"""A VACUUM has an id that snapshots do not list while it runs, so it must not stand for other writers."""

import threading


def emptied(session, vacuum):
    """Starts a VACUUM that cuts off the end of a table. Returns its thread once it has an id, None if it was over before that was seen."""
    session.execute("CREATE TABLE IF NOT EXISTS emptied (x text) WITH (autovacuum_enabled = off);"
                    "INSERT INTO emptied SELECT repeat('x', 1500) FROM generate_series(1, 40000)")
    session.execute("DELETE FROM emptied")
    pid = vacuum.info.backend_pid
    thread = threading.Thread(target=lambda: vacuum.execute("VACUUM emptied"))
    thread.start()
    while thread.is_alive():
        if session.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'transactionid' AND pid = %s)", (pid,)).fetchone()[0]:
            return thread
    return None


def test_a_snapshot_of_while_it_runs(connect):
    """The writer is published for all definitions, as nothing is counted. The VACUUM is not, and the writer is not forgotten."""
    session, writer, vacuum, other, old = (connect(prepare_threshold=None) for _ in range(5))
    session.execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 10) g")
    for counted in (writer, vacuum):
        counted.execute("SET track_counts = off")
    query, seen = "SELECT id, v FROM t ORDER BY id LIMIT 2", 0
    for turn in range(1, 30):
        writer.execute(f"BEGIN; UPDATE t SET v = {turn}")
        thread = emptied(session, vacuum)
        if thread:
            # The VACUUM's id is below those that the snapshot has not seen given.
            other.execute("SELECT pg_current_xact_id()")
            old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT 1")
        is_beside = thread and thread.is_alive()
        writer.execute("COMMIT")
        seen += bool(is_beside and thread.is_alive())
        if thread:
            thread.join()
            for _ in range(2):
                assert session.rows(query) == [(1, turn), (2, turn)]
            assert old.rows(query) == [(1, turn - 1), (2, turn - 1)]
            old.execute("COMMIT")
        if seen == 2:
            break
    assert seen, "no VACUUM was met while it had an id"
