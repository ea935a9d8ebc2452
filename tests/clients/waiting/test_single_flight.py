"""One session computes an answer, the others that ask for it meanwhile wait (`max_wait`). Nobody waits in vain, or in somebody's way."""

import threading
import time

import psycopg
import pytest
from support.asking import Asking, pid, until, until_client_is_slow, wait_until, waits_for_answer

PATIENT = "-c pg_arrow_cache.max_wait=1min"
IMPATIENT = "-c pg_arrow_cache.max_wait=0"
# Takes some tenths of a second, and reads one page or two.
SLOW = "SELECT count(*), sum((a.v * b.v) % 7) FROM t a, t b, t c WHERE a.v + b.v + c.v > 0"
ROWS = 130


@pytest.fixture
def owner(connect):
    session = connect()
    session.execute(f"CREATE TABLE t AS SELECT g AS v FROM generate_series(1, {ROWS}) g")
    session.execute("SELECT arrow_cache.reset_stats()")
    return session


def change(owner):
    owner.execute("UPDATE t SET v = v WHERE v = 1")


def stats(owner):
    columns = ("hits", "computed", "waits", "answered", "timed_out")
    row = owner.execute("SELECT hits, misses + stale, waits, waits_answered, waits_timed_out FROM arrow_cache.stats").fetchone()
    return dict(zip(columns, row))


def since(owner, before):
    """What was counted since then. On a busy machine one that computes takes longer than it is waited for: those computed as well, and count apart."""
    counted = {column: count - before[column] for column, count in stats(owner).items()}
    return counted | {"computed_unasked": counted["computed"] - counted["timed_out"]}


def ask_together(sessions, query, **options):
    """Has all sessions ask at once. Returns what each got: its rows or its error."""
    barrier = threading.Barrier(len(sessions))
    found = [None] * len(sessions)

    def ask(number, session):
        barrier.wait()
        try:
            found[number] = session.execute(query, **options).fetchall()
        except psycopg.Error as error:
            found[number] = error.sqlstate

    threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def computes(owner, session):
    """Waits until a session computes what others can wait for."""
    wait_until("it computes", lambda: owner.execute("SELECT claims_held > 0 FROM arrow_cache.stats").fetchone()[0])
    until(owner, session, "state = 'active'")


@pytest.mark.parametrize("prepared", [False, True])
def test_one_computes(owner, connect, prepared):
    """The first round is the first of its form; in the others, an outdated answer is there."""
    sessions = [connect(PATIENT) for _ in range(8)]
    for _ in range(3):
        expected = owner.uncached(SLOW)
        before = stats(owner)
        found = ask_together(sessions, SLOW, prepare=prepared)
        assert found == [expected] * 8
        counted = since(owner, before)
        # Those who come within a moment of each other may both compute.
        assert counted["computed_unasked"] <= 2, counted
        assert counted["hits"] + counted["timed_out"] >= 6, counted
        assert counted["answered"] + counted["timed_out"] > 0, counted
        change(owner)


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_one_of_those_who_wait_takes_over(owner, connect, prepared, times):
    """Whoever computes is stopped, again and again: each time one takes over, and the others wait on."""
    sessions = [connect(PATIENT) for _ in range(8)]
    expected = owner.rows(SLOW)
    if prepared:
        for session in sessions:
            session.execute("SET plan_cache_mode = force_generic_plan")
            assert session.execute(SLOW, prepare=True).fetchall() == expected
    change(owner)
    before = stats(owner)
    asking = [Asking(session, SLOW, prepare=prepared) for session in sessions]
    stopped = set()

    def busy():
        """Whoever computes does not wait for anything; the others wait."""
        active = owner.rows("SELECT pid, wait_event IS NULL FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE '%%a.v * b.v%%'")
        compute = {process for process, is_busy in active if is_busy} - stopped
        return compute if len(compute) == 1 and len(active) > 1 else set()

    for _ in range(times):
        wait_until("one computes, others wait", lambda: busy() or not any(one.thread.is_alive() for one in asking))
        for process in busy():
            stopped.add(process)
            owner.execute("SELECT pg_cancel_backend(%s)", [process])
    found = [one.result() for one in asking]
    assert [rows for rows in found if rows != "57014"] == [expected] * sum(rows != "57014" for rows in found)
    cancelled = found.count("57014")
    assert 1 <= cancelled <= times + 1
    counted = since(owner, before)
    assert counted["computed_unasked"] <= cancelled + 2, counted


def test_nobody_waits_if_they_do_not_want_to(owner, connect):
    sessions = [connect(IMPATIENT) for _ in range(4)]
    for _ in range(2):
        change(owner)
        before = stats(owner)
        expected = owner.uncached(SLOW)
        assert ask_together(sessions, SLOW) == [expected] * 4
        assert stats(owner)["waits"] == before["waits"] == 0
        assert stats(owner)["computed"] - before["computed"] >= 3


def test_a_change_meanwhile_is_seen(owner, connect):
    """Who asks after a change does not get what was begun before it, and does not wait for that either."""
    first, second = connect(PATIENT), connect(PATIENT)
    owner.rows(SLOW)
    change(owner)
    early = Asking(first, SLOW)
    computes(owner, first)
    owner.execute("UPDATE t SET v = 1000 WHERE v = 1")
    late = second.execute(SLOW).fetchall()
    assert late == owner.uncached(SLOW)
    assert early.result() != late
    assert stats(owner)["waits"] == 0


@pytest.mark.parametrize("end, error", [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")])
def test_whoever_computes_is_stopped(owner, connect, end, error):
    first, others = connect(PATIENT), [connect(PATIENT) for _ in range(3)]
    leading = Asking(first, SLOW)
    computes(owner, first)
    waiting = [Asking(session, SLOW) for session in others]
    for session in others:
        waits_for_answer(owner, session)
    owner.execute(f"SELECT {end}(%s)", [pid(first)])
    assert leading.result() == error
    expected = owner.uncached(SLOW)
    assert [asking.result() for asking in waiting] == [expected] * 3


@pytest.mark.parametrize("end, error", [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")])
def test_who_waits_is_stopped(owner, connect, end, error):
    first, second, third = connect(PATIENT), connect(PATIENT), connect(PATIENT)
    leading = Asking(first, SLOW)
    computes(owner, first)
    stopped, staying = Asking(second, SLOW), Asking(third, SLOW)
    waits_for_answer(owner, second)
    waits_for_answer(owner, third)
    owner.execute(f"SELECT {end}(%s)", [pid(second)])
    assert stopped.result() == error
    assert leading.took is None, "it was stopped at once"
    expected = owner.uncached(SLOW)
    assert leading.result() == staying.result() == expected
    if end == "pg_cancel_backend":
        assert second.rows(SLOW) == expected


def test_who_waits_stands_in_nobodys_way(owner, connect):
    """LOCK TABLE waits for the reader that computes. The one that waits for that reader gives up, and computes as well, as it would without us."""
    owner.execute("CREATE FUNCTION lock_table() RETURNS void LANGUAGE plpgsql AS 'BEGIN LOCK TABLE t IN ACCESS EXCLUSIVE MODE; END'")
    first, second, third = connect(PATIENT), connect(PATIENT), connect(autocommit=False)
    leading = Asking(first, SLOW)
    computes(owner, first)
    waiting = Asking(second, SLOW)
    waits_for_answer(owner, second)
    locking = Asking(third, "SELECT FROM lock_table()")
    until(owner, second, "wait_event IS NULL")
    assert locking.result() == [()]
    third.rollback()
    assert leading.result() == waiting.result() == owner.uncached(SLOW)
    assert stats(owner)["answered"] == 0


def test_nobody_waits_for_one_that_is_held_up(owner, connect):
    """Whoever computes waits for a lock in the middle of its run."""
    owner.execute("CREATE TABLE u AS SELECT 1 AS n")
    owner.execute("CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS 'BEGIN RETURN n + $1 FROM u; END'")
    owner.execute("SECURITY LABEL FOR pg_arrow_cache ON FUNCTION slow(int) IS 'pure'")
    first, second, locker = connect(PATIENT), connect(PATIENT), connect(autocommit=False)
    locker.execute("LOCK TABLE u IN ACCESS EXCLUSIVE MODE")
    query = "SELECT sum(slow(v)) FROM t"
    leading = Asking(first, query)
    until(owner, first, "wait_event_type = 'Lock'")
    following = Asking(second, query)
    until(owner, second, "wait_event_type = 'Lock'")
    locker.rollback()
    assert leading.result() == following.result() == owner.uncached(query)


def test_nobody_waits_for_a_slow_client(owner, connect, wire):
    """Whoever computes has a client that stops reading in the middle of its rows."""
    owner.execute("CREATE TABLE wide AS SELECT g AS n, repeat(md5(g::text), 40) AS s FROM generate_series(1, 30000) g")
    query = "SELECT n, s || n::text FROM wide"
    slow = wire()
    process = slow.value("SELECT pg_backend_pid()")
    slow.add(b"Q", query.encode() + b"\0")
    slow.send()
    until_client_is_slow(owner, int(process))
    second = connect(PATIENT)
    began = time.monotonic()
    assert len(second.rows(query)) == 30000
    assert time.monotonic() - began < 30, "it does not wait for a minute"


def test_nobody_waits_inside_of_a_transaction(owner, connect):
    first, second = connect(PATIENT), connect(PATIENT, autocommit=False)
    second.execute("SELECT 1")
    leading = Asking(first, SLOW)
    computes(owner, first)
    rows = second.execute(SLOW).fetchall()
    assert stats(owner)["waits"] == 0
    assert rows == leading.result()


def test_a_timeout_of_the_statement_leaves_time_to_compute(owner, connect):
    """A statement that ends in time without us ends in time."""
    began = time.monotonic()
    expected = owner.uncached(SLOW)
    usual = time.monotonic() - began
    first, second = connect(PATIENT), connect(f"{PATIENT} -c statement_timeout={int(usual * 6000) + 500}")
    for _ in range(2):
        owner.rows(SLOW)
        change(owner)
    leading = Asking(first, SLOW + " AND a.v > 0 AND b.v > 0 AND c.v > 0")
    computes(owner, first)
    assert second.execute(SLOW + " AND a.v > 0 AND b.v > 0 AND c.v > 0").fetchall() == expected
    assert leading.result() == expected


def test_what_is_never_stored_is_not_waited_for_twice(owner, connect):
    """The rows do not fit: after the first time everybody computes at once."""
    owner.execute("CREATE TABLE wide AS SELECT g AS n, repeat(md5(g::text), 10) AS s FROM generate_series(1, 1000) g")
    query = "SELECT a.n, a.s FROM wide a, t b, t c WHERE b.v = 1 AND a.n + c.v > 0 AND c.v < 40"
    sessions = [connect(PATIENT) for _ in range(3)]
    for session in sessions:
        session.execute("SET pg_arrow_cache.max_entry_size = '64kB'")
    ask_together(sessions, query)
    before = stats(owner)
    found = ask_together(sessions, query)
    assert [len(rows) for rows in found] == [1000 * 39] * 3
    assert stats(owner)["waits"] == before["waits"]


def test_many_keys_at_once(owner, connect):
    """More keys than there are places for claims."""
    sessions = [connect(PATIENT) for _ in range(6)]

    def ask(session, first):
        for n in range(first, first + 60):
            assert session.rows(f"SELECT count(*) + {n % 90} FROM t") == [(ROWS + n % 90,)]

    threads = [threading.Thread(target=ask, args=(session, 10 * n)) for n, session in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = stats(owner)
    assert found["hits"] + found["computed"] == 360


def test_a_start_that_fails_is_not_waited_for(session, connect):
    """A subtransaction takes the error back, so the transaction goes on, with something else."""
    session.execute(f"CREATE ROLE fails; GRANT USAGE ON SCHEMA {connect.schema} TO fails; CREATE TABLE hidden AS SELECT 1 AS v")
    try:
        reader = connect()
        reader.execute("SET ROLE fails")
        with reader.transaction():
            with pytest.raises(psycopg.errors.InsufficientPrivilege), reader.transaction():
                reader.execute("SELECT count(*), sum(v) FROM hidden")
            assert session.rows("SELECT claims_held FROM arrow_cache.stats") == [(0,)]
    finally:
        session.execute("DROP OWNED BY fails; DROP ROLE fails")
