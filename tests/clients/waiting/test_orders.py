"""Each order in which whoever computes, those who wait and others may come: every wait ends as it should, is counted once, and leaves no claim.

Whoever computes does not end before the gate is opened: a sequence, which shows in no snapshot. (The isolation tester can only go on beside
statements that wait for a lock; those that wait for an answer do not. It waits for a step marked (*) as soon as another one has ended.)
"""

import psycopg
import pytest
from support.asking import Asking, pid, until, wait_until, waits_for_answer

PATIENT = "-c pg_arrow_cache.max_wait=10min"
QUERY = "SELECT sum(slow(v)) FROM t"
FAILS = "SELECT sum(slow(v)) / (sum(v) - 3) FROM t"
ENDS = ("answered", "taken_over", "timed_out", "given_up", "stopped")
COLUMNS = ", ".join(f"waits_{end}" for end in ENDS)


@pytest.fixture
def owner(connect):
    session = connect()
    session.execute(f"""
        CREATE TABLE t (v int); INSERT INTO t VALUES (1), (2); CREATE SEQUENCE gate;
        CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
            DECLARE nothing text;
            BEGIN
                WHILE pg_sequence_last_value('{connect.schema}.gate') IS NULL LOOP nothing := pg_sleep(0.005); END LOOP;
                RETURN $1;
            END $$;
        SECURITY LABEL FOR pg_arrow_cache ON FUNCTION slow(int) IS 'pure'""")
    session.execute("SELECT arrow_cache.reset_stats()")
    return session


@pytest.fixture
def world(owner, connect):
    return World(owner, connect)


class World:
    def __init__(self, owner, connect):
        self.owner, self.connect = owner, connect

    def lead(self, query=QUERY, options=""):
        """A session that computes."""
        asking = Asking(self.connect(f"{PATIENT} {options}"), query)
        self.until("SELECT claims_held > 0 FROM arrow_cache.stats")
        return asking

    def follow(self, count=1, query=QUERY, options=""):
        """Sessions that wait for it."""
        following = [Asking(self.connect(f"{PATIENT} {options}"), query) for _ in range(count)]
        for asking in following:
            waits_for_answer(self.owner, asking.session)
        return following

    def until(self, condition):
        wait_until(condition, lambda: self.owner.execute(condition).fetchone()[0])

    def all_compute(self, asking):
        for one in asking:
            until(self.owner, one.session, "wait_event = 'PgSleep'")

    def open(self):
        self.owner.execute("SELECT nextval('gate')")

    def stop(self, asking, function="pg_cancel_backend"):
        self.owner.execute(f"SELECT {function}(%s)", [pid(asking.session)])

    def ended(self, **expected):
        """How waits have ended, and that nothing is left."""
        row = self.owner.execute(f"SELECT waits, claims_held, {COLUMNS} FROM arrow_cache.stats").fetchone()
        assert dict(zip(ENDS, row[2:])) == {**dict.fromkeys(ENDS, 0), **expected}
        assert row[:2] == (sum(expected.values()), 0)


@pytest.mark.parametrize("count", [1, 2])
def test_the_answer_is_stored(world, count):
    leading, following = world.lead(), world.follow(count)
    world.open()
    assert [one.result() for one in [leading, *following]] == [[(3,)]] * (count + 1)
    world.ended(answered=count)


@pytest.mark.parametrize("count", [1, 2])
def test_computing_fails(world, count):
    leading, following = world.lead(FAILS), world.follow(count, FAILS)
    world.open()
    assert [one.result() for one in [leading, *following]] == ["22012"] * (count + 1)
    world.ended(taken_over=count)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("end, error", [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01"), ("timeout", "57014")])
def test_computing_is_stopped(world, count, end, error):
    leading = world.lead(options="-c statement_timeout=2s" if end == "timeout" else "")
    following = world.follow(count)
    if end != "timeout":
        world.stop(leading, end)
    assert leading.result() == error
    # One takes its place, the other one waits on.
    world.until(f"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query = '{QUERY}'")
    world.open()
    assert [one.result() for one in following] == [[(3,)]] * count
    world.ended(**({"taken_over": 1} if count == 1 else {"taken_over": 1, "answered": 1}))


@pytest.mark.parametrize("count", [1, 2])
def test_rows_change_meanwhile(world, count):
    """The answer will not be stored: nobody waits any longer, and each answer is that of its own snapshot."""
    leading, following = world.lead(), world.follow(count)
    world.owner.execute("INSERT INTO t VALUES (100)")
    world.all_compute(following)
    world.open()
    assert [one.result() for one in [leading, *following]] == [[(3,)]] * (count + 1)
    world.ended(given_up=count)


@pytest.mark.parametrize("end, error", [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")])
def test_one_who_waits_is_stopped(world, end, error):
    leading, [first, second] = world.lead(), world.follow(2)
    world.stop(first, end)
    assert first.result() == error
    world.open()
    assert leading.result() == second.result() == [(3,)]
    world.until("SELECT waits = 2 FROM arrow_cache.stats")
    world.ended(answered=1, stopped=1)


@pytest.mark.parametrize("timeout", ["statement_timeout", "transaction_timeout"])
def test_one_who_waits_has_little_time(world, timeout):
    """It leaves three quarters of its time for computing."""
    if timeout == "transaction_timeout" and world.owner.info.server_version < 170000:
        pytest.skip("before PostgreSQL 17")
    leading, [first] = world.lead(), world.follow(1, options=f"-c {timeout}=4s")
    world.all_compute([first])
    world.open()
    assert leading.result() == first.result() == [(3,)]
    world.ended(timed_out=1)


def test_waiting_has_a_bound(world):
    leading = world.lead()
    [first] = world.follow(1, options="-c pg_arrow_cache.max_wait=1s")
    world.all_compute([first])
    world.open()
    assert leading.result() == first.result() == [(3,)]
    world.ended(timed_out=1)


@pytest.mark.parametrize("statement", ["LOCK TABLE t IN ACCESS EXCLUSIVE MODE", "ALTER TABLE t ADD w int"])
@pytest.mark.parametrize("count", [1, 2])
def test_somebody_waits_for_a_lock(world, statement, count):
    leading, following = world.lead(), world.follow(count)
    locker = world.connect(autocommit=False)
    locking = Asking(locker, f"DO $$ BEGIN {statement}; END $$")
    world.all_compute(following)
    world.open()
    assert [one.result() for one in [leading, *following]] == [[(3,)]] * (count + 1)
    locking.thread.join()
    locker.rollback()
    world.ended(given_up=count)


def test_somebody_waits_for_an_advisory_lock(world):
    """A lock of an earlier statement: it is not one of the relations that the query reads."""
    leading, session = world.lead(), world.connect(PATIENT)
    session.execute("SELECT pg_advisory_lock(18)")
    following = Asking(session, QUERY)
    waits_for_answer(world.owner, session)
    locking = Asking(world.connect(), "SELECT pg_advisory_xact_lock_shared(18)")
    world.all_compute([following])
    world.open()
    assert leading.result() == following.result() == [(3,)]
    session.execute("SELECT pg_advisory_unlock(18)")
    assert locking.result() == [("",)]
    world.ended(given_up=1)


def test_own_writes(world):
    leading, session = world.lead(), world.connect(PATIENT, autocommit=False)
    session.execute("INSERT INTO t VALUES (10)")
    following = Asking(session, QUERY)
    world.all_compute([following])
    world.open()
    assert (leading.result(), following.result()) == ([(3,)], [(13,)])
    session.rollback()
    world.ended()


def test_an_older_snapshot(world):
    session = world.connect(PATIENT, autocommit=False)
    session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    session.execute("SELECT count(*) FROM t")
    world.owner.execute("INSERT INTO t VALUES (10)")
    leading, following = world.lead(), Asking(session, QUERY)
    world.all_compute([following])
    world.open()
    assert (leading.result(), following.result()) == ([(13,)], [(3,)])
    session.rollback()
    world.ended()


def test_repeatable_read_for_one_statement(world):
    leading, [first] = world.lead(), world.follow(1, options="-c default_transaction_isolation=repeatable\\ read")
    world.open()
    assert leading.result() == first.result() == [(3,)]
    world.ended(answered=1)


def test_no_place_for_a_claim(world):
    """More answers are computed than there are places: some are not claimed, and none is left behind."""
    sessions = [world.connect(PATIENT) for _ in range(75)]
    asking = [Asking(session, f"{QUERY} WHERE v < {n + 10}") for n, session in enumerate(sessions)]
    world.all_compute(asking)
    held = world.owner.execute("SELECT claims_held FROM arrow_cache.stats").fetchone()[0]
    assert 8 <= held <= 64
    for one in asking[:10]:
        world.stop(one)
    for one in asking[10:20]:
        world.stop(one, "pg_terminate_backend")
    assert [one.result() for one in asking[:20]] == ["57014"] * 10 + ["57P01"] * 10
    world.open()
    assert [one.result() for one in asking[20:]] == [[(3,)]] * 55
    world.ended()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("first, others", [("query", "query"), ("query", "fetch"), ("fetch", "messages")])
def test_exports(world, count, first, others):
    """The query of an export is claimed, and waited for."""
    forms = {"query": "SELECT arrow_cache.query('{}')", "fetch": "SELECT * FROM arrow_cache.fetch('{}')",
             "messages": "SELECT * FROM arrow_cache.messages('{}')"}
    world.owner.execute("CREATE TABLE many AS SELECT g AS v FROM generate_series(1, 600) g")
    query = "SELECT sum((a.v * b.v + c.v) %% 7) FROM many a, many b, many c WHERE c.v < 60".replace("%%", "%")
    leading = world.lead(forms[first].format(query))
    following = world.follow(count, forms[others].format(query))
    found = [one.result() for one in [leading, *following]]
    assert all(isinstance(rows, list) and rows for rows in found), found
    world.ended(answered=count)
    assert world.owner.execute("SELECT stores FROM arrow_cache.stats").fetchone() == (1,)


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
def test_exports_are_stopped(world, end):
    world.owner.execute("CREATE TABLE many AS SELECT g AS v FROM generate_series(1, 600) g")
    query = "SELECT arrow_cache.query('SELECT sum((a.v * b.v + c.v) % 7) FROM many a, many b, many c WHERE c.v < 90')"
    leading, following = world.lead(query), world.follow(2, query)
    world.stop(leading, end)
    assert leading.result() in ("57014", "57P01")
    assert following[0].result() == following[1].result() != []
    world.ended(taken_over=1, answered=1)


def test_exports_in_blocks_of_code_do_not_wait(world):
    world.owner.execute("CREATE TABLE many AS SELECT g AS v FROM generate_series(1, 400) g")
    query = "SELECT sum((a.v * b.v + c.v) % 7) FROM many a, many b, many c WHERE c.v < 40"
    leading = world.lead(f"SELECT arrow_cache.query('{query}')")
    world.connect(PATIENT).execute(f"DO $$ DECLARE x bytea; BEGIN LOCK TABLE t IN SHARE MODE; x := arrow_cache.query('{query}'); END $$")
    assert leading.result()
    world.ended()
