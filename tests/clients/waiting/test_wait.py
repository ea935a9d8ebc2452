"""`wait`: sleeps until the answer of a token may have changed, without a snapshot and without locks, and misses no change."""

import threading
import time

import psycopg
import psycopg.sql
import pytest
from support.asking import Asking, pid, until, until_gone, wait_until
from support.shared_slots import outlives

LONG_S = 20
LONG = f"{LONG_S} s"
WAIT = "CALL arrow_cache.wait(%s::text, %s::interval)"
WAIT_ANY = "CALL arrow_cache.wait(%s::text[], %s::interval)"
WAITS = "state = 'active' AND wait_event IN ('Extension', 'ArrowCacheChange')"
TOTAL = "SELECT sum(v) FROM t"


def etag(session, query, *params):
    """The token of a query, as soon as nobody is changing what it rests on."""
    places = "".join(", %s::int" for _ in params)
    return wait_until("a token", lambda: session.rows(f"SELECT arrow_cache.etag(%s{places})", [query, *params])[0][0])


def call_for(token):
    return WAIT_ANY if isinstance(token, list) else WAIT


def wait(session, token, timeout="0"):
    [(changed,)] = session.rows(call_for(token), [token, timeout])
    return changed


class Waiting(Asking):
    """A session that waits for a token, once it sleeps."""

    def __init__(self, owner, session, token, timeout=LONG):
        self.timeout = timeout
        super().__init__(session, psycopg.sql.SQL(call_for(token).replace("%s", "{}")).format(token, timeout))
        until(owner, session, WAITS)

    def outcome(self):
        """What it was told. At the end of the time it would be told as well, without having been woken."""
        result = self.result()
        assert self.timeout != LONG or self.took < LONG_S - 1, "nobody has woken it"
        return result if isinstance(result, str) else result[0][0]

    def sleeps(self):
        return self.thread.is_alive()


@pytest.fixture
def t(session):
    session.execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT n, n FROM generate_series(1, 10) AS n")
    session.execute("CREATE TABLE u (v int)")
    return etag(session, TOTAL)


def test_a_change_that_is_committed_wakes(session, other, connect, t):
    waiting = Waiting(session, connect(), t)
    other.execute("INSERT INTO u VALUES (1)")
    with other.transaction():
        other.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        other.execute("SELECT pg_sleep(0.05)")
        outlives(waiting.sleeps(), "what nobody can see wakes nobody")
    assert waiting.outcome() is True
    # Whoever is woken sees the change, and gets another token at once.
    assert session.rows("SELECT arrow_cache.etag(%s)", [TOTAL])[0][0] not in (None, t)
    assert session.rows(TOTAL) == [(56,)]


def test_the_present_state_is_told_at_once(session, other, t):
    began = time.monotonic()
    assert wait(session, t) is False
    assert wait(session, t, "-1 day") is False
    assert wait(session, t, "50 ms") is False and time.monotonic() - began >= 0.05
    other.execute("UPDATE t SET v = 0 WHERE id = 1")
    assert wait(session, t, LONG) is True
    assert wait(session, etag(session, TOTAL)) is False


@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT"])
def test_only_ends_of_transactions_wake(session, other, connect, t, end):
    waiting = Waiting(session, connect(), t, "300 ms")
    other.execute("BEGIN; DELETE FROM t")
    other.execute(end)
    assert waiting.outcome() is (end == "COMMIT")


@pytest.mark.parametrize("change", [
    "ALTER TABLE t ALTER v TYPE bigint", "TRUNCATE t", "DROP TABLE t", "ALTER TABLE t RENAME TO s", "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    "VACUUM FULL t", "SELECT arrow_cache.invalidate('t')",
    "SELECT arrow_cache.set_policy('t', 'never')", "COPY t FROM PROGRAM 'echo 11,11' (FORMAT csv)", "DO $$ BEGIN DELETE FROM t; COMMIT; END $$",
])
def test_whatever_changes_the_token_wakes(session, other, connect, t, change):
    waiting = Waiting(session, connect(), t)
    other.execute(change)
    assert waiting.outcome() is True
    try:
        assert session.rows("SELECT arrow_cache.etag(%s)", [TOTAL])[0][0] != t
    except psycopg.errors.UndefinedTable:
        assert change in ("DROP TABLE t", "ALTER TABLE t RENAME TO s")


def test_several_tokens(session, other, connect, t):
    """Those are told that may have changed, at the end of the time none."""
    tokens = [t, etag(session, "SELECT count(*) FROM u"), etag(session, "SELECT max(v) FROM t")]
    assert wait(session, tokens) == [] and wait(session, []) == []
    waiting = Waiting(session, connect(), tokens)
    other.execute("INSERT INTO u VALUES (1)")
    assert waiting.outcome() == [tokens[1]]
    other.execute("INSERT INTO t VALUES (11, 11)")
    assert wait(session, tokens, LONG) == tokens


def test_tenants_sleep_through_changes_of_others(session, other, connect):
    session.execute("CREATE TABLE pages (tenant int, v int); CREATE INDEX ON pages (tenant); INSERT INTO pages SELECT n % 50, n FROM generate_series(1, 5000) AS n")
    session.execute("ANALYZE pages")
    query = "SELECT sum(v) FROM pages WHERE tenant = {}"
    wait_until("it is tracked", lambda: [session.rows(query.format(n)) for n in range(20)] and session.rows("SELECT FROM arrow_cache.tracked WHERE relation = 'pages'::regclass"))
    # What such changes leave as it is, is known by now.
    for _ in range(20):
        other.execute("UPDATE pages SET v = v + 1 WHERE tenant = 6")
    five, six = (Waiting(session, connect(), etag(session, query.format(n))) for n in (5, 6))
    for _ in range(20):
        other.execute("UPDATE pages SET v = v + 1 WHERE tenant = 6")
    assert six.outcome() is True
    outlives(five.sleeps(), "nothing of tenant 5 has changed")
    other.execute("DELETE FROM pages WHERE tenant = 5 AND v < 100")
    assert five.outcome() is True


def test_what_is_told_otherwise_from_now_on_wakes(session, other, connect):
    """Nobody would tell of changes by the slots of the token any more."""
    session.execute("CREATE TABLE pages (tenant int, v int); CREATE INDEX ON pages (tenant); INSERT INTO pages SELECT n % 50, n FROM generate_series(1, 5000) AS n")
    session.execute("ANALYZE pages")
    query = "SELECT sum(v) FROM pages WHERE tenant = {}"
    wait_until("it is tracked", lambda: [session.rows(query.format(n)) for n in range(20)] and session.rows("SELECT FROM arrow_cache.tracked WHERE relation = 'pages'::regclass"))
    waiting = Waiting(session, connect(), etag(session, query.format(5)))
    # Eight such changes make the column quiet: whoever sets it publishes to other slots then.
    for number in range(12):
        other.execute("UPDATE pages SET v = v + 1 WHERE tenant = %s", [number % 2 + 7])
    assert session.rows("SELECT quiet_columns FROM arrow_cache.tracked WHERE relation = 'pages'::regclass") == [(["v"],)]
    assert waiting.outcome() is True


def test_no_snapshot_and_no_locks_are_held(session, connect, t):
    sleeper = connect()
    waiting = Waiting(session, sleeper, t)
    of_sleeper = [pid(sleeper)]
    assert session.rows("SELECT backend_xmin, backend_xid FROM pg_stat_activity WHERE pid = %s", of_sleeper) == [(None, None)]
    assert session.rows("SELECT DISTINCT locktype FROM pg_locks WHERE pid = %s", of_sleeper) == [("virtualxid",)]
    assert waiting.sleeps()
    session.execute("DROP TABLE t")
    assert waiting.outcome() is True


@pytest.mark.parametrize("before, call, state", [
    ("BEGIN", WAIT, "25001"),
    ("BEGIN; SELECT count(*) FROM t", WAIT, "25001"),
    ("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1", WAIT, "25001"),
    ("", "DO $$ DECLARE changed bool; BEGIN CALL arrow_cache.wait('{}', '0', changed); EXCEPTION WHEN division_by_zero THEN NULL; END $$", "25001"),
])
def test_not_where_a_snapshot_or_locks_are_held(session, t, before, call, state):
    session.execute(before)
    with pytest.raises(psycopg.Error) as error:
        if "{}" in call:
            session.execute(call.format(t))
        else:
            session.execute(call, [t, "0"])
    assert error.value.sqlstate == state and "autocommit" in error.value.diag.message_hint
    session.execute("ROLLBACK")
    assert wait(session, t) is False


@pytest.mark.parametrize("isolation", ["read\\ committed", "repeatable\\ read", "serializable"])
def test_what_was_done_before_is_committed(session, connect, t, isolation):
    block = f'''DO $$ DECLARE changed bool; r record; n int := 0; BEGIN
        INSERT INTO u VALUES (1);
        FOR r IN SELECT v FROM t LOOP n := n + r.v; CALL arrow_cache.wait('{t}', '{LONG}', changed); END LOOP;
        INSERT INTO u VALUES (n);
        END $$'''
    sleeper = connect(options=f"-c default_transaction_isolation={isolation}")
    runner = threading.Thread(target=sleeper.execute, args=[block])
    runner.start()
    until(session, sleeper, WAITS)
    assert session.rows("SELECT v FROM u") == [(1,)]
    assert session.rows("SELECT backend_xmin, backend_xid FROM pg_stat_activity WHERE pid = %s", [pid(sleeper)]) == [(None, None)]
    assert session.rows("SELECT DISTINCT locktype FROM pg_locks WHERE pid = %s", [pid(sleeper)]) == [("virtualxid",)]
    session.execute("DELETE FROM t WHERE id = 1")
    runner.join()
    assert session.rows("SELECT v FROM u") == [(1,), (55,)]


def test_a_block_of_code_may_wait(session, other, connect, t):
    """Statements before and after take snapshots of their own."""
    block = f"""DO $$ DECLARE changed bool; before bigint; behind bigint; BEGIN
        SELECT sum(v) INTO before FROM t;
        COMMIT;
        CALL arrow_cache.wait('{t}', '{LONG}', changed);
        SELECT sum(v) INTO behind FROM t;
        INSERT INTO u VALUES (before), (behind);
        END $$"""
    sleeper = connect()
    runner = threading.Thread(target=sleeper.execute, args=[block])
    runner.start()
    until(session, sleeper, WAITS)
    assert session.rows("SELECT backend_xmin FROM pg_stat_activity WHERE pid = %s", [pid(sleeper)]) == [(None,)]
    other.execute("UPDATE t SET v = v + 1")
    runner.join()
    assert session.rows("SELECT v FROM u ORDER BY v") == [(55,), (65,)]


@pytest.mark.parametrize("arguments, state, word", [
    (["'no token'", "'0'"], "22023", "no token"), (["''", "'0'"], "22023", ""), (["repeat('0', 32)", "'0'"], "22023", "0" * 32),
    (["NULL::text", "'0'"], "22004", "token"), (["ARRAY[NULL]::text[]", "'0'"], "22004", "token"), (["NULL::text[]", "'0'"], "22004", "array"),
    (["'{}'", "NULL"], "22004", "timeout"), (["ARRAY['{}', 'x']", "'0'"], "22023", "x"),
    (["repeat('x', 1000000)", "'0'"], "22023", "x"),
])
def test_what_is_wrong_is_told(session, t, arguments, state, word):
    with pytest.raises(psycopg.Error) as error:
        session.execute(f"CALL arrow_cache.wait({', '.join(arguments).format(t)})".replace("{", "").replace("}", ""))
    assert error.value.sqlstate == state and word in error.value.diag.message_primary and error.value.diag.message_hint
    assert len(error.value.diag.message_primary) < 5000


def test_a_token_that_was_not_made_here_may_have_changed(session, t):
    """Nobody can make one that tells when others write."""
    forged = t[:32] + ("0" * 32 if t[32:64] != "0" * 32 else "1" * 32) + t[64:]
    assert wait(session, forged, LONG) is True
    assert wait(session, t + ".1", LONG) is True
    assert wait(session, t) is False


def test_another_database(session, t, administrator):
    other = session.info.dsn
    administrator.execute("DROP DATABASE IF EXISTS elsewhere")
    administrator.execute("CREATE DATABASE elsewhere")
    try:
        with psycopg.connect(other, dbname="elsewhere", autocommit=True, password=session.info.password) as elsewhere:
            elsewhere.execute("CREATE EXTENSION pg_arrow_cache")
            assert elsewhere.execute(WAIT, [t, LONG]).fetchall() == [(True,)]
    finally:
        administrator.execute("DROP DATABASE elsewhere")


def test_what_asks_for_the_time_may_change_without_a_write(session, t):
    session.execute("CREATE TABLE log (at timestamptz, day date); CREATE INDEX ON log (at)")
    for query in ("SELECT count(*) FROM log WHERE day = current_date", "SELECT count(*) FROM log WHERE at > now() - interval '1 hour'"):
        token = etag(session, query)
        assert wait(session, token) is True, "nothing was written, but time goes on"
        assert wait(session, [t, token]) == [token]


@pytest.mark.parametrize("end, state", [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01"), (None, "57014")])
def test_a_wait_ends_as_any_statement(session, other, connect, t, end, state):
    sleeper = connect(options="" if end else "-c statement_timeout=300ms")
    process = pid(sleeper)
    waiting = Waiting(session, sleeper, t)
    if end:
        session.execute(f"SELECT {end}(%s)", [process])
    assert waiting.result() == state
    if state == "57P01":
        until_gone(session, process)
    else:
        assert wait(sleeper, t) is False, "the session goes on"
    # Nothing is left of it: whoever comes next waits as the first one.
    again = Waiting(session, connect(), t)
    other.execute("DELETE FROM t")
    assert again.outcome() is True


def test_the_extension_may_be_dropped_meanwhile(session, connect, administrator):
    administrator.execute("DROP DATABASE IF EXISTS passing")
    administrator.execute("CREATE DATABASE passing")
    try:
        sessions = [psycopg.connect(session.info.dsn, dbname="passing", autocommit=True, password=session.info.password) for _ in range(2)]
        owner, sleeper = sessions
        owner.execute("SET search_path = public; CREATE EXTENSION pg_arrow_cache; CREATE TABLE t (v int)")
        token = owner.execute("SELECT arrow_cache.etag(%s)", [TOTAL]).fetchone()[0]
        waiting = Waiting(owner, sleeper, token)
        owner.execute("DROP EXTENSION pg_arrow_cache")
        assert waiting.outcome() is True
        for one in sessions:
            one.close()
    finally:
        administrator.execute("DROP DATABASE passing WITH (FORCE)")


def test_no_wake_up_is_lost(session, other, connect):
    """Whoever waits for the token of each answer sees the last one, whatever comes between."""
    last = 300
    session.execute("CREATE TABLE steps (n int); INSERT INTO steps VALUES (0)")
    query = "SELECT n FROM steps"
    seen = []

    def follow(follower):
        own = [0]
        while own[-1] != last:
            token = follower.rows("SELECT arrow_cache.etag(%s)", [query])[0][0]
            own.append(follower.rows(query)[0][0])
            if token is not None and own[-1] != last:
                assert wait(follower, token, LONG) is True
        seen.append(own)

    followers = [threading.Thread(target=follow, args=[connect()]) for _ in range(4)]
    for follower in followers:
        follower.start()
    began = time.monotonic()
    for number in range(1, last + 1):
        other.execute("UPDATE steps SET n = %s", [number])
    for follower in followers:
        follower.join()
    assert len(seen) == 4 and all(own == sorted(own) for own in seen), "each of them came to the end, and never went back"
    assert time.monotonic() - began < 20, "nobody slept to the end of a wait"
