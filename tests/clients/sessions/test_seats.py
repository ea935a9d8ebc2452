"""What a session reads stays in its place, however many answers it reads at once, and is given back however the session ends; the view `entries`
shows all hits at once."""

import psycopg
import pytest

from support.asking import wait_until

# More than a session holds by words of its own.
CURSORS = 20


def query(n):
    return f"SELECT a + {n} AS b, repeat(chr(65 + {n}), 30) AS t FROM numbers ORDER BY a"


def rows(n):
    return [(a + n, chr(65 + n) * 30) for a in range(1, 501)]


@pytest.fixture
def stored(session):
    """Answers of all queries are stored, and hit once."""
    session.execute("CREATE TABLE numbers AS SELECT g AS a FROM generate_series(1, 500) g")
    for n in range(CURSORS):
        for _ in range(2):
            assert session.execute(query(n)).fetchall() == rows(n)
        assert session.status() == "HIT"
    return session


def open_cursors(session):
    session.execute("BEGIN")
    for n in range(CURSORS):
        session.execute(f"DECLARE c{n} CURSOR FOR {query(n)}")
        assert session.execute(f"FETCH 10 FROM c{n}").fetchall() == rows(n)[:10]


def bytes_used(session):
    return session.execute("SELECT bytes_used FROM arrow_cache.stats").fetchone()[0]


def test_many_answers_stay_while_they_are_read(stored, other):
    open_cursors(stored)
    # Their memory would be that of the answers which come now.
    other.execute("SELECT arrow_cache.flush()")
    for n in range(CURSORS):
        other.execute(f"SELECT repeat('z', 30), a FROM numbers WHERE a > {n} ORDER BY a")
    for n in range(CURSORS):
        assert stored.execute(f"FETCH ALL FROM c{n}").fetchall() == rows(n)[10:]
    stored.execute("COMMIT")


def test_a_session_that_is_terminated_holds_nothing(stored, other, connect):
    other.execute("SELECT arrow_cache.flush()")
    before = bytes_used(other)
    for n in range(CURSORS):
        other.execute(query(n))
    reader = connect()
    open_cursors(reader)
    other.execute("SELECT arrow_cache.flush()")
    assert bytes_used(other) > before, "what the cursors read is still there"
    pid = reader.info.backend_pid
    other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
    other.execute("SELECT arrow_cache.flush()")
    assert bytes_used(other) == before
    with pytest.raises(psycopg.OperationalError):
        reader.execute("SELECT 1")


def test_the_view_shows_hits_of_all_sessions_at_once(stored, other, connect):
    hits = "SELECT max(hits) FROM arrow_cache.entries"
    before = other.execute(hits).fetchone()[0]
    third = connect()
    for _ in range(25):
        stored.execute(query(7))
        third.execute(query(7))
    assert other.execute(hits).fetchone()[0] == before + 50
    third.execute(query(7))
    third.close()
    # The session ends some time after its client has left.
    wait_until("the hit is counted", lambda: other.execute(hits).fetchone()[0] >= before + 51)
    assert other.execute(hits).fetchone()[0] == before + 51
