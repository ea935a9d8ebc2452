"""`arrow_cache.advise()`: each finding in the situation that it tells of, with its numbers; none on a server that is new, does well, or has
counted too little. That a standby has switched itself off is in tests/tap/063_standby_off.pl."""

import re
import threading

import pytest
from support.faked_clock import ROOT, WORKER, FakedServer, private
from support.session import Session

CONF = {"pg_arrow_cache.min_execution_time": 0, "max_parallel_workers_per_gather": 0, "autovacuum": "off"}
SMALL = {**CONF, "pg_arrow_cache.memory": "8MB", "pg_arrow_cache.max_entries": 200, "pg_arrow_cache.max_entry_size": "4MB"}
TABLES = """
    CREATE EXTENSION pg_arrow_cache;
    CREATE TABLE wide AS SELECT g AS a, repeat('x', 1000) AS t FROM generate_series(1, 1000) g;
    CREATE TABLE t AS SELECT g AS v, now() AS at FROM generate_series(1, 10) g;
    VACUUM ANALYZE wide, t;
    CREATE FUNCTION own(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1; END $$;
    CREATE EXTENSION pg_surgery;
    CREATE ROLE nobody LOGIN;
    CREATE ROLE batch LOGIN;
    CREATE DATABASE elsewhere;
"""
# Some thirty of these fill the memory.
LARGE = "SELECT t || '{}' FROM wide WHERE a <= 200"
SLOW = "SELECT t || '{}' || (SELECT count(*) FROM generate_series(1, 3000) g WHERE g > a) FROM wide WHERE a <= 200"


def counting_anew(session):
    session.execute("SELECT arrow_cache.flush()")
    session.execute("SELECT arrow_cache.reset_stats()")
    return session


@pytest.fixture(scope="module")
def server():
    with private.Cluster(ROOT / "target" / f"test-advise-{WORKER}", conf=CONF) as cluster:
        cluster.psql(TABLES)
        yield cluster


@pytest.fixture
def connect(server):
    opened = []

    def make(user=private.SUPERUSER, options=""):
        opened.append(Session.connect(server.dsn(), user=user, options=options, autocommit=True))
        return opened[-1]

    yield make
    for session in opened:
        session.close()


@pytest.fixture
def session(connect):
    """A session of a server that has counted nothing."""
    return counting_anew(connect())


@pytest.fixture
def small():
    """A new server with little room: what it has evicted is remembered longer than counters are."""
    with private.Cluster(ROOT / "target" / f"test-advise-small-{WORKER}", conf=SMALL) as cluster:
        cluster.psql(TABLES)
        yield cluster


@pytest.fixture
def pressed(small):
    with Session.connect(small.dsn(), autocommit=True) as session:
        yield counting_anew(session)


def advice(session):
    """{finding: evidence}"""
    rows = session.rows("SELECT * FROM arrow_cache.advise()")
    assert all(finding and evidence and suggestion for finding, evidence, suggestion in rows), rows
    assert len({finding for finding, _, _ in rows}) == len(rows)
    return {finding: evidence for finding, evidence, _ in rows}


def numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def run(session, query, times):
    """Sends a query as often, many at once."""
    for done in range(0, times, 100):
        session.execute(";".join([query] * min(100, times - done)))


def test_nothing_on_a_new_server(session):
    assert advice(session) == {}


def test_nothing_on_a_server_that_does_well(session):
    for n in range(20):
        run(session, f"SELECT sum(v) + {n} FROM t", 100)
    session.execute("UPDATE t SET v = v")
    run(session, "SELECT sum(v) + 1 FROM t", 10)
    assert session.rows("SELECT hits > 1900, stale FROM arrow_cache.stats") == [(True, 1)]
    assert advice(session) == {}


def test_nothing_about_what_is_too_quick(session):
    session.execute("SET pg_arrow_cache.min_execution_time = '1h'")
    run(session, "SELECT sum(v) FROM t", 1200)
    assert session.rows("SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'too_quick'")[0][0] >= 1000
    assert advice(session) == {}


def test_verified_hits_that_differ(session):
    """pg_surgery removes a row of which nobody is told."""
    session.execute("CREATE TABLE cut AS SELECT g AS n FROM generate_series(1, 3) g")
    try:
        session.rows("SELECT n FROM cut")
        session.execute("SELECT heap_force_kill('cut', ARRAY['(0,2)']::tid[])")
        session.execute("SET pg_arrow_cache.verify_sample_rate = 1; SET client_min_messages = error")
        session.rows("SELECT n FROM cut")
        assert session.rows("SELECT verify_checks, verify_mismatches FROM arrow_cache.stats") == [(1, 1)]
        assert advice(session) == {"Verified hits differed from executing": "1 of 1 hits that were verified"}
    finally:
        session.execute("DROP TABLE cut")


def test_switched_off_for_a_database(session, connect):
    session.execute("ALTER DATABASE postgres SET pg_arrow_cache.enabled = off")
    try:
        assert advice(connect()) == {"The cache is switched off here":
            "pg_arrow_cache.enabled is off for new sessions of role postgres in database postgres (source of the present value: database)"}
        # Sessions for which it was on before learn that it is off for others.
        assert advice(session) == {"The cache is switched off for others": "pg_arrow_cache.enabled is off for database postgres"}
    finally:
        session.execute("ALTER DATABASE postgres RESET pg_arrow_cache.enabled")


def test_switched_off_for_roles(session, connect):
    session.execute("ALTER ROLE batch SET pg_arrow_cache.enabled = false; ALTER ROLE nobody IN DATABASE postgres SET pg_arrow_cache.enabled = off")
    session.execute("ALTER ROLE nobody IN DATABASE elsewhere SET pg_arrow_cache.enabled = off; ALTER ROLE postgres IN DATABASE elsewhere SET pg_arrow_cache.enabled = off")
    try:
        others = "The cache is switched off for others"
        assert advice(session) == {others: "pg_arrow_cache.enabled is off for role batch, role nobody in database postgres"}
        assert advice(connect("batch")).keys() == {others, "The cache is switched off here"}
        session.execute("ALTER ROLE batch SET pg_arrow_cache.enabled = on")
        assert advice(session) == {others: "pg_arrow_cache.enabled is off for role nobody in database postgres"}
    finally:
        session.execute("ALTER ROLE ALL IN DATABASE elsewhere RESET ALL; ALTER ROLE batch RESET ALL; ALTER ROLE nobody IN DATABASE postgres RESET ALL; "
                        "ALTER ROLE nobody IN DATABASE elsewhere RESET ALL; ALTER ROLE postgres IN DATABASE elsewhere RESET ALL")
    # Who has switched it off for the session alone knows it.
    session.execute("SET pg_arrow_cache.enabled = off")
    assert advice(session) == {}


def test_more_results_than_max_entries(pressed):
    finding = "max_entries is reached while bytes are free"
    for n in range(250):
        run(pressed, f"SELECT sum(v) + {n} FROM t", 2)
    assert advice(pressed) == {}, "too few have gone"
    for n in range(250, 400):
        run(pressed, f"SELECT sum(v) + {n} FROM t", 2)
    found = advice(pressed)
    assert found.keys() == {finding}
    [(entries, most, evictions)] = pressed.rows("SELECT entries, max_entries, evictions FROM arrow_cache.stats")
    assert found[finding].startswith(f"{entries} of {most} results, ") and f" {evictions} evictions" in found[finding]
    assert entries >= 190 and evictions >= 150


def test_memory_full_of_results_that_are_served(pressed):
    finding = "The memory is full of results that are served"
    for n in range(60):
        run(pressed, SLOW.format(n), 2)
        if pressed.rows("SELECT evictions FROM arrow_cache.stats")[0][0]:
            break
    run(pressed, SLOW.format(n), 1)
    for n in range(40):
        pressed.execute(LARGE.format(n))
    assert advice(pressed) == {}, "too few were refused"
    for n in range(200):
        pressed.execute(LARGE.format(n))
    refused = pressed.rows("SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'outweighed'")[0][0]
    assert refused >= 100
    found = advice(pressed)
    assert found.keys() == {finding}, found
    assert f", {refused} results refused" in found[finding] and found[finding].endswith(", 0 (0 bytes) were never served")


def test_memory_full_of_results_that_were_never_served(pressed):
    finding = "The room is full of results that were never served"
    for n in range(60):
        pressed.execute(LARGE.format(n))
    assert advice(pressed) == {}, "too few have gone"
    for n in range(60, 150):
        pressed.execute(LARGE.format(n))
    found = advice(pressed)
    assert found.keys() == {finding}
    [(seen, evictions)] = pressed.rows("SELECT (SELECT count(*) FROM arrow_cache.entries), evictions FROM arrow_cache.stats")
    assert evictions >= 100
    assert f" {evictions} evictions" in found[finding] and re.search(rf"of the {seen} results seen here \([^)]+\), {seen} \(", found[finding])


def test_table_of_results_full_of_those_never_served(pressed):
    for n in range(450):
        pressed.execute(f"SELECT sum(v) + {n} FROM t")
    assert advice(pressed).keys() == {"The room is full of results that were never served"}


def test_changes_of_a_tracked_table_as_a_whole(session):
    finding = "Changes of a tracked table outdate all answers over it"
    session.execute("CREATE TABLE public.owned AS SELECT g % 20 AS tenant, g AS v FROM generate_series(1, 100) g")
    try:
        for number in range(40):
            session.rows(f"SELECT v, {number} FROM owned WHERE tenant = 7")
        run(session, "SELECT v FROM owned WHERE tenant = 8", 40)
        for _ in range(120):
            session.execute("UPDATE owned SET v = v + 1 WHERE tenant = 9")
        assert advice(session) == {}, "the values that are concerned are known"
        session.execute("SET pg_arrow_cache.precise_invalidation = off")
        for _ in range(110):
            session.execute("UPDATE owned SET v = v + 1 WHERE tenant = 9")
        session.execute("RESET pg_arrow_cache.precise_invalidation")
        found = advice(session)
        assert found.keys() == {finding}
        [(entries, changes, coarse)] = session.rows("SELECT entries, changes, coarse_changes FROM arrow_cache.tracked WHERE relation = 'owned'::regclass")
        assert found[finding].startswith(f"public.owned changed {changes} times, {coarse} of them as a whole; {entries} results")
        assert "coarse_not_noted 110, coarse_overflow 0" in found[finding]
    finally:
        session.execute("DROP TABLE owned")


def test_changes_before_answers_are_served(session):
    finding = "Changes outdate answers more often than these are served"
    session.execute("CREATE TABLE public.busy AS SELECT 1 AS n; CREATE TABLE calm AS SELECT 1 AS n")

    def change_and_ask(times):
        for _ in range(times):
            session.execute("UPDATE busy SET n = n + 1")
            session.execute("SELECT sum(n) FROM busy")

    try:
        run(session, "SELECT n FROM calm", 40)
        change_and_ask(90)
        assert advice(session) == {}, "too few were outdated"
        change_and_ask(30)
        found = advice(session)
        assert found.keys() == {finding}
        [(changes,)] = session.rows("SELECT changes FROM arrow_cache.relations WHERE relation = 'busy'::regclass")
        [(stale, hits)] = session.rows("SELECT stale, hits FROM arrow_cache.stats")
        assert found[finding].startswith(f"public.busy changed {changes} times, ") and "its 1 results were served 0 times" in found[finding]
        assert found[finding].endswith(f"In all databases {stale} answers were found outdated, and {hits} hits")
        run(session, "SELECT n FROM calm", 200)
        assert advice(session) == {}, "more were served"
    finally:
        session.execute("DROP TABLE busy, calm")


def test_waits_without_answers(session, connect):
    finding = "Those who wait for an answer seldom get it"
    query = "SELECT count(*), sum((a.v * b.v) % 7) FROM waited a, waited b, waited c WHERE a.v + b.v + c.v > 0"
    session.execute("CREATE TABLE waited AS SELECT g AS v FROM generate_series(1, 70) g")
    sessions = [connect(options="-c pg_arrow_cache.max_wait=3ms") for _ in range(12)]
    try:
        assert advice(session) == {}
        for _ in range(40):
            session.execute("UPDATE waited SET v = v WHERE v = 1")
            threads = [threading.Thread(target=one.execute, args=[query]) for one in sessions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            [(waits, answered)] = session.rows("SELECT waits, waits_answered FROM arrow_cache.stats")
            if waits >= 100:
                break
            assert finding not in advice(session), "too few have waited"
        assert waits >= 100 and answered < 0.2 * waits, (waits, answered)
        assert advice(session)[finding].startswith(f"{waits} waits: {answered} answered, ")
        [(suggestion,)] = session.rows("SELECT suggestion FROM arrow_cache.advise() WHERE finding = %s", [finding])
        assert "(1000 ms in this session)" in suggestion
    finally:
        session.execute("DROP TABLE waited")


REASONS = {
    "user_defined_function": ("Many queries call functions that are not built in", "", "SELECT own(v) FROM t"),
    "moving_clock": ("Many answers change with the clock", "", "SELECT max(now() - at) FROM t WHERE at < now() - v * interval '1 s'"),
    "session_function": ("Many queries ask for the state of the session", "", "SELECT v, clock_timestamp() > at FROM t"),
    "populate_off": ("Many results are not stored because storing is switched off", "SET pg_arrow_cache.populate = off", "SELECT v FROM t"),
    "incomplete_read": ("Many results are not read to their end", "",
                        "BEGIN READ ONLY; DECLARE c NO SCROLL CURSOR FOR SELECT v + 1 FROM t; FETCH 1 FROM c; CLOSE c; COMMIT"),
    "too_large": ("Many results are too large to be stored", "SET pg_arrow_cache.max_entry_size = '1kB'", "SELECT t || v FROM t, wide WHERE a < 10"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_reason_of_many_queries(session, connect, reason):
    finding, before, query = REASONS[reason]
    counted = f"SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = '{reason}'"
    if before:
        session.execute(before)
    run(session, query, 900)
    # Calls of the cache's own functions count as user_defined_function.
    [(count,)] = session.rows(counted)
    assert count == 900 or (reason, count) == ("user_defined_function", 901)
    assert finding not in advice(session), "too few queries"
    run(session, query, 150)
    evidence = advice(session)[finding]
    assert evidence.endswith(f" %) with the reason {reason}") and 1050 <= numbers(evidence)[0] <= min(1055, numbers(evidence)[1])
    assert advice(session).keys() == {finding}
    # A small part of all.
    run(connect(), "SELECT sum(v) FROM t", 4500)
    assert advice(session) == {}


@pytest.fixture
def faked():
    server = FakedServer("advise-clock")
    server.conf = {"max_prepared_transactions": 2, "pg_arrow_cache.max_wait": 0}
    with server:
        server.psql("CREATE EXTENSION pg_arrow_cache; CREATE TABLE t AS SELECT 1 AS v")
        yield server


def test_forgotten_prepared_transaction(faked):
    """A minute passes at once."""
    finding = "A prepared transaction is open while queries are bypassed because of writers"
    with Session.connect(faked.dsn(), autocommit=True) as session:
        session.execute("BEGIN; UPDATE t SET v = v; PREPARE TRANSACTION 'it''s forgotten'")
        run(session, "SELECT v FROM t", 90)
        faked.set("2026-01-01 00:05:00")
        assert advice(session) == {}, "too few were bypassed"
        run(session, "SELECT v FROM t", 30)
        evidence = advice(session)[finding]
        assert numbers(evidence)[0] == 120 and "prepared transaction 'it''s forgotten' of role postgres in database postgres" in evidence
        session.execute("ROLLBACK PREPARED 'it''s forgotten'")
        assert advice(session) == {}, "it has ended"


def test_others_learn_nothing(small, pressed):
    pressed.execute("CREATE TABLE secret AS SELECT 1 AS n")
    for _ in range(120):
        pressed.execute("UPDATE secret SET n = n")
        pressed.execute("SELECT n FROM secret")
    for n in range(150):
        pressed.execute(LARGE.format(n))
    pressed.execute("SELECT n FROM secret")
    assert advice(pressed).keys() == {"Changes outdate answers more often than these are served", "The room is full of results that were never served"}
    with Session.connect(small.dsn(), user="nobody", autocommit=True) as nobody:
        assert advice(nobody) == {}


def test_hostile_path(session, connect):
    """Operators, functions and views that are found before those of the server."""
    expected = "SELECT array_agg(a::text) FROM arrow_cache.advise() AS a"
    run(session, "SELECT own(v) FROM t", 1000)
    traps = "".join(
        f"CREATE FUNCTION evil.trap_{number}({left}, {right}) RETURNS {result} LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$; "
        f"CREATE OPERATOR evil.{operator} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = evil.trap_{number});"
        for number, (operator, left, right, result) in enumerate(
            (operator, left, right, result)
            for operators, result in ((("=", "<>", "<", ">", ">=", "<=", "~"), "bool"), (("+", "*", "/"), "numeric"))
            for operator in operators
            for left, right in (("bigint", "bigint"), ("bigint", "int"), ("numeric", "bigint"), ("bigint", "numeric"), ("text", "text"), ("name", "text"), ("name", "name"), ("oid", "oid"))))
    session.execute("CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC;" + traps)
    session.execute("".join(
        f"CREATE FUNCTION evil.{function} LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;"
        for function in ("format(text, VARIADIC text[]) RETURNS text", "pg_size_pretty(bigint) RETURNS text", "round(numeric) RETURNS numeric",
                         "unnest(text[]) RETURNS SETOF text", "clock_timestamp() RETURNS timestamptz")))
    session.execute("CREATE VIEW evil.pg_settings AS SELECT 1 / 0 AS name")
    try:
        for user in (private.SUPERUSER, "nobody"):
            asking = connect(user)
            [(rows,)] = asking.rows(expected)
            assert len(rows) == 1
            for path in ("evil, pg_catalog", "evil, arrow_cache, pg_catalog", "arrow_cache, evil"):
                asking.execute(f"SET search_path = {path}")
                assert len(advice(asking)) == 1
            asking.execute("CREATE TEMPORARY VIEW pg_settings AS SELECT 'x' AS name; SET search_path = pg_temp, pg_catalog")
            assert len(advice(asking)) == 1
    finally:
        session.execute("SET client_min_messages = error; DROP SCHEMA evil CASCADE")
