"""Who accepts outdated answers (`max_stale`) gets none that is older than that, never misses its own writes, and does not wait. Where answers grow old, the
test sets the clock of the server."""

import threading
import time
from datetime import datetime, timedelta

import psycopg
import pytest
from support.asking import Asking, until, wait_until

BOUND = 0.2
STALE = f"-c pg_arrow_cache.max_stale={int(BOUND * 1000)}ms"


def fill(session):
    session.execute("CREATE TABLE written (n bigint, at double precision)")
    session.execute("INSERT INTO written VALUES (0, 0)")
    session.execute("CREATE TABLE mine (who int PRIMARY KEY, n int)")
    session.execute("INSERT INTO mine SELECT g, 0 FROM generate_series(1, 8) g")
    session.execute("SELECT arrow_cache.reset_stats()")
    return session


@pytest.fixture
def owner(connect):
    return fill(connect())


@pytest.fixture
def clock(faked_server):
    """Sets the time of the server with which `at` makes sessions, in seconds."""
    def set_clock(seconds):
        faked_server.set(str(datetime(2026, 1, 1) + timedelta(seconds=seconds)))
    set_clock(0)
    return set_clock


@pytest.fixture
def writer(at, clock):
    session = at("-c client_min_messages=warning")
    session.execute("DROP TABLE IF EXISTS written, mine; SELECT arrow_cache.flush()")
    return fill(session)


def stats(owner):
    row = owner.execute("SELECT hits, misses + stale, waits, stale_hits FROM arrow_cache.stats").fetchone()
    return dict(zip(("hits", "computed", "waits", "stale_hits"), row))


class Writer(threading.Thread):
    """Writes all the time. `ended[n]` is a time after the commit of write n."""

    def __init__(self, session, pause):
        super().__init__()
        self.session, self.pause, self.ended, self.stop = session, pause, [0.0], threading.Event()

    def run(self):
        while not self.stop.wait(self.pause):
            self.session.execute("UPDATE written SET n = n + 1, at = extract(epoch FROM clock_timestamp())")
            self.ended.append(time.time())


def check_age(session, writer, checks, failures, done, pause=0.001, query="SELECT n FROM written"):
    """An answer must show every write that had ended when the bound began."""
    for _ in range(checks):
        asked = time.time()
        known = len(writer.ended)
        shown = session.execute(query).fetchone()[0]
        # All writes up to `known` had ended when the statement was sent.
        missing = [n for n in range(shown + 1, known) if writer.ended[n] < asked - BOUND]
        if missing:
            failures.append((shown, missing[0], asked - writer.ended[missing[0]]))
        done.append(shown)
        time.sleep(pause)


@pytest.mark.parametrize("pause, checks, rest", [(0.002, 300, 0.001), (0.05, 300, 0.001), (0.3, 150, 0.01)])
def test_no_answer_is_older_than_the_bound(connect, owner, pause, checks, rest):
    writer = Writer(connect(), pause)
    readers = [connect(options=STALE) for _ in range(4)]
    failures, done = [], []
    writer.start()
    # Several writes come while they read.
    args = [(reader, writer, checks, failures, done, rest) for reader in readers]
    threads = [threading.Thread(target=check_age, args=one) for one in args]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.stop.set()
    writer.join()
    assert len(done) == 4 * checks
    assert not failures, failures[:5]
    found = stats(owner)
    assert found["stale_hits"] > 0, found


def test_each_session_sees_its_own_writes(connect, owner):
    failures = []

    def write_and_read(session, who):
        for n in range(1, 101):
            session.execute("UPDATE mine SET n = %s WHERE who = %s", [n, who])
            for _ in range(3):
                shown = session.execute("SELECT who, n FROM mine ORDER BY who").fetchall()
                if dict(shown)[who] != n:
                    failures.append((who, n, shown))

    sessions = [connect(options="-c pg_arrow_cache.max_stale=1h") for _ in range(4)]
    threads = [threading.Thread(target=write_and_read, args=pair) for pair in zip(sessions, range(1, 5))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:5]


def test_two_phase_commit_counts_as_an_own_write(connect, owner):
    if owner.execute("SHOW max_prepared_transactions").fetchone()[0] == "0":
        pytest.skip("no prepared transactions")
    session = connect(options="-c pg_arrow_cache.max_stale=1h")
    ask = lambda: session.execute("SELECT n FROM mine WHERE who = 1").fetchone()[0]
    ask()
    session.execute("BEGIN")
    session.execute("UPDATE mine SET n = 77 WHERE who = 1")
    session.execute("PREPARE TRANSACTION 'stale'")
    assert ask() == 0
    session.execute("COMMIT PREPARED 'stale'")
    assert ask() == 77


def test_who_accepts_an_outdated_answer_does_not_wait(at, clock, writer):
    """Until the last part of the bound nobody computes. Then one does, and the others are given the old answer meanwhile."""
    slow = ("/*+ arrow_cache(max_stale=4s) */ SELECT max(a.n), sum((g * h) % 7) "
            "FROM written a, generate_series(1, 1500) g, generate_series(1, 300) h")
    sessions = [at() for _ in range(4)]
    sessions[0].execute(slow)
    writer.execute("UPDATE written SET n = n + 1")
    for seconds in (1, 2, 3):
        clock(seconds)
        writer.execute("UPDATE written SET n = n + 1")
        assert crowd(sessions, slow) == ["STALE_HIT"] * 4
    clock(3.6)
    statuses = crowd(sessions, slow)
    # Those who come within a moment of each other may both compute.
    assert 1 <= len(computed(statuses)) <= 2, statuses
    assert set(statuses) <= {"STALE", "STALE_HIT", "HIT"}
    # Older than the bound would be the first answer.
    clock(4.5)
    writer.execute("UPDATE written SET n = n + 1")
    assert crowd(sessions, slow) == ["STALE_HIT"] * 4
    assert stats(writer)["waits"] == 0


def test_who_asks_when_the_bound_has_ended_waits_for_one(at, clock, writer):
    """Rows change all the time, so that the answer that they wait for is outdated from the start: it is within the bound of all."""
    slow = "/*+ arrow_cache(max_stale=2s) */ SELECT max(a.n) > 0, sum((g * h) % 7) FROM written a, generate_series(1, 1500) g, generate_series(1, 300) h"
    sessions = [at("-c pg_arrow_cache.max_wait=1min") for _ in range(8)]
    sessions[0].execute(slow)
    writer.execute("UPDATE written SET n = n + 1")
    expected = writer.uncached(slow)
    computed, stale_hits = [], []
    for number in range(1, 4):
        clock(number * 2.1)
        before = stats(writer)
        asking = [Asking(session, slow) for session in sessions]
        while any(one.thread.is_alive() for one in asking):
            writer.execute("UPDATE written SET n = n + 1")
            time.sleep(0.01)
        assert [one.result() for one in asking] == [expected] * 8
        after = stats(writer)
        computed.append(after["computed"] - before["computed"])
        stale_hits.append(after["stale_hits"] - before["stale_hits"])
    # A run that takes several times as long as usual is not waited for to its end.
    assert min(computed) <= 2 and max(stale_hits) >= 6, (computed, stale_hits)


# Takes some tenths of a second.
def slow_sum(n, by=1000):
    return f"SELECT max(a.n) > 0, sum((g * h) % 7) FROM written a, generate_series(1, {n}) g, generate_series(1, {by}) h"


def under_way(owner, session, query):
    """A run that has begun: others could wait for it."""
    owner.execute("UPDATE written SET n = n + 1")
    run = Asking(session, query)
    wait_until("it computes", lambda: owner.execute("SELECT claims_held > 0 FROM arrow_cache.stats").fetchone()[0])
    return run


def test_nobody_waits_for_an_answer_that_will_be_too_old(at, clock, writer):
    """The run that others could wait for began before the bound of theirs."""
    first, second, slow = at(), at(), slow_sum(4000)
    early = under_way(writer, first, f"/*+ arrow_cache(max_stale=1min) */ {slow}")
    clock(1)
    writer.execute("UPDATE written SET n = n + 1")
    before = stats(writer)
    late = Asking(second, f"/*+ arrow_cache(max_stale=100ms) */ {slow}")
    assert late.result() == early.result()
    assert stats(writer)["waits"] == before["waits"]


# In the last eighth of a bound of eight seconds.
DUE = 7.1


def outdated(at, clock, writer, query, age=DUE):
    """An answer that is outdated, and as old."""
    at("-c pg_arrow_cache.max_stale=8s").execute(query)
    writer.execute("UPDATE written SET n = n + 1")
    clock(age)


def readers(at, options):
    return [at(f"-c pg_arrow_cache.max_stale=8s {options}") for _ in range(6)]


def crowd(sessions, query):
    """What became of each of the sessions, which ask at once."""
    for asking in [Asking(session, query) for session in sessions]:
        assert asking.result()
    return sorted(session.rows("SELECT arrow_cache.last_status()")[0][0] for session in sessions)


def computed(statuses):
    return [status for status in statuses if status in ("MISS", "STALE")]


def test_one_computes_the_next_answer_even_if_nobody_waits(at, clock, writer):
    sessions = readers(at, "-c pg_arrow_cache.max_wait=0")
    outdated(at, clock, writer, slow_sum(1000))
    statuses = crowd(sessions, slow_sum(1000))
    assert len(computed(statuses)) <= 2, statuses


def test_one_computes_the_next_answer_of_a_form_that_is_usually_quick(at, clock, writer):
    session = at()
    sessions = readers(at, "-c pg_arrow_cache.max_wait=1min")
    outdated(at, clock, writer, slow_sum(1001))
    # Each of them is executed, since none was asked before.
    for n in range(40):
        session.execute(slow_sum(n % 9 + 1, 100 + n))
    statuses = crowd(sessions, slow_sum(1001))
    assert len(computed(statuses)) <= 2, statuses


def test_an_answer_that_was_stored_since_is_worth_waiting_for(at, clock, writer):
    """A session with settings of its own has computed it once, and stored nothing."""
    query = slow_sum(1002)
    at("-c pg_arrow_cache.min_execution_time=1min").execute(query)
    at("-c pg_arrow_cache.min_execution_time=0").execute(query)
    sessions = readers(at, "-c pg_arrow_cache.max_wait=1min")
    outdated(at, clock, writer, query)
    statuses = crowd(sessions, query)
    assert len(computed(statuses)) <= 2, statuses


def test_exact_runs_in_vain_leave_room_for_one_that_computes_the_next_answer(at, clock, writer):
    query = slow_sum(1003)
    sessions, runners = readers(at, "-c pg_arrow_cache.max_wait=1min"), [at() for _ in range(9)]
    outdated(at, clock, writer, query, age=6.5)
    exact = []
    for runner in runners:
        exact.append(Asking(runner, query))
        until(writer, runner, "query LIKE '%%generate_series%%'")
        writer.execute("UPDATE written SET n = n + 1")
    clock(DUE)
    statuses = crowd(sessions, query)
    assert all(one.result() for one in exact)
    assert len(computed(statuses)) <= 2, statuses


@pytest.mark.parametrize("what", ["CREATE TEMP TABLE x (a int); DROP TABLE x", "own commit"])
def test_nobody_waits_for_what_may_not_be_given(connect, owner, what):
    """Nothing is stored late when definitions have changed, and nobody is given an answer from before a commit of their own."""
    query = f"/*+ arrow_cache(max_stale=1min) */ {slow_sum(3000 + len(what))}"
    first, second = connect(), connect("-c pg_arrow_cache.max_wait=1min")
    early = under_way(owner, first, query)
    (second if what == "own commit" else owner).execute("UPDATE written SET n = n + 1")
    if what != "own commit":
        owner.execute(what)
    before = stats(owner)
    assert Asking(second, query).result() == early.result()
    assert stats(owner)["waits"] == before["waits"]


def test_nobody_waits_for_an_exact_run_whose_rows_have_changed(connect, owner):
    """Its answer will not be stored."""
    first, second, slow = connect(), connect(), slow_sum(3000)
    early = under_way(owner, first, slow)
    owner.execute("UPDATE written SET n = n + 1")
    before = stats(owner)
    late = Asking(second, f"/*+ arrow_cache(max_stale=1min) */ {slow}")
    assert late.result() == early.result()
    assert stats(owner)["waits"] == before["waits"]


@pytest.mark.parametrize("statement", ["REVOKE SELECT ON mine FROM reading", "ALTER TABLE mine ENABLE ROW LEVEL SECURITY"])
def test_no_right_outlives_its_end(connect, owner, statement):
    owner.execute("DROP ROLE IF EXISTS reading")
    owner.execute("CREATE ROLE reading")
    owner.execute("GRANT SELECT ON mine TO reading")
    [[schema]] = owner.execute("SELECT current_schema()").fetchall()
    owner.execute(f"GRANT USAGE ON SCHEMA {schema} TO reading")
    session = connect(options="-c pg_arrow_cache.max_stale=1h")
    session.execute("SET ROLE reading")
    ask = lambda: session.execute("SELECT count(*) FROM mine").fetchone()[0]
    assert ask() == 8
    owner.execute("DELETE FROM mine WHERE who = 8")
    assert ask() == 8
    owner.execute(statement)
    try:
        assert ask() == 0
    except psycopg.errors.InsufficientPrivilege:
        pass
    session.execute("RESET ROLE")
    owner.execute("DROP OWNED BY reading")
    owner.execute("DROP ROLE reading")
