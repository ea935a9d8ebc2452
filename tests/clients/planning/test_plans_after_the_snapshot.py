"""A named portal whose answer is stored: it has no placeholder, so the server plans its query before it takes the snapshot. The snapshot must not be older than
that plan: definitions that are newer than it may say what does not hold of its rows."""

import threading

from support.asking import until
from support.wire import data_rows

QUERY = "SELECT l.v, count(*) FROM l LEFT JOIN e ON e.id = l.v LEFT JOIN d ON d.id = l.v WHERE l.v >= $1 GROUP BY l.v ORDER BY 1"
INT4 = 23


def test_definitions_change_while_a_named_portal_is_planned(session, other, wire):
    """Planning waits for an index. Meanwhile duplicates are removed, and a unique index tells that there are none."""
    session.execute("CREATE TABLE l (v int); CREATE INDEX of_l ON l (v); INSERT INTO l SELECT g % 3 FROM generate_series(0, 29) g;"
                    "CREATE TABLE e (id int); INSERT INTO e VALUES (0), (1), (2);"
                    "CREATE TABLE d (id int); INSERT INTO d SELECT g % 3 FROM generate_series(0, 5) g; ANALYZE l, d, e")
    client = wire()
    for _ in range(4):
        before = data_rows(client.parse(QUERY, types=[INT4]).bind([b"0"]).execute().sync())
    assert client.status() == "HIT"
    client.pid = int(client.value("SELECT pg_backend_pid()"))
    rows = []

    def ask():
        rows.extend(data_rows(client.parse(QUERY, types=[INT4]).bind([b"0"], portal="p").execute("p").sync()))

    with other.transaction():
        other.execute("REINDEX INDEX of_l")
        asking = threading.Thread(target=ask)
        asking.start()
        for _ in range(2000):
            if session.rows("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s", [client.pid])[0][0]:
                break
        else:
            raise AssertionError("it does not wait")
        session.execute("INSERT INTO e SELECT g % 3 FROM generate_series(0, 5) g")
        session.execute("DELETE FROM d WHERE ctid IN (SELECT max(ctid) FROM d GROUP BY id)")
        session.execute("CREATE UNIQUE INDEX ON d (id)")
    asking.join()
    after = [[str(value).encode() for value in row] for row in session.uncached(QUERY.replace("$1", "0"))]
    assert before != after
    assert rows in (before, after)
    # It was planned after the wait, so its snapshot is one from after the wait.
    assert rows == after
