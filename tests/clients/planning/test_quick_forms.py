"""Forms whose queries were always too quick to be stored, or about as quick as they are looked up: however they arrive, they are bypassed. Now and
then one is looked up anyway, so that an answer that another session has stored is found."""

import psycopg
import pytest

from support.placeholders import exec_params

INT4 = 23
QUICK_RUNS, LOOK_EVERY = 16, 64


def simple(session, number, query="SELECT b FROM t WHERE a = %d"):
    return [tuple(str(value).encode() for value in row) for row in session.rows(query % number)]


def bound(session, number, query="SELECT b FROM t WHERE a = $1"):
    return exec_params(session, query, [number], [INT4])


def named(session, number):
    result = session.pgconn.exec_prepared(b"s", [b"%d" % number])
    return [(result.get_value(0, 0),)]


@pytest.mark.parametrize("ask", [simple, bound, named])
@pytest.mark.parametrize("mode", ["auto", "force_custom_plan", "force_generic_plan"])
def test_bypassed_until_another_session_has_stored_an_answer(connect, ask, mode):
    hasty = connect(f"-c pg_arrow_cache.min_execution_time=10s -c plan_cache_mode={mode}", prepare_threshold=None)
    storing = connect(prepare_threshold=None)
    # A run takes longer than a lookup.
    hasty.execute("CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 20000) g")
    for session in (hasty, storing):
        session.pgconn.prepare(b"s", b"SELECT b FROM t WHERE a = $1", [INT4])

    def outcome(number):
        assert ask(hasty, number) == [(f"row {number}".encode(),)]
        return hasty.status(), hasty.reason()

    assert [outcome(number) for number in range(1, QUICK_RUNS + 1)] == [("MISS", "too_quick")] * QUICK_RUNS
    assert [outcome(number) for number in range(20, 30)] == [("BYPASS", "too_quick")] * 10
    assert ask(storing, 100) == [(b"row 100",)]
    outcomes = [outcome(100) for _ in range(LOOK_EVERY + 2)]
    assert outcomes[0] == ("BYPASS", "too_quick")
    assert outcomes[-2:] == [("HIT", None)] * 2
    assert set(outcomes) == {("BYPASS", "too_quick"), ("HIT", None)}
    storing.execute("UPDATE t SET b = 'new'")
    assert ask(hasty, 100) == [(b"new",)]


@pytest.mark.parametrize("ask", [simple, bound])
def test_bypassed_beside_more_changes_than_are_looked_at(connect, ask):
    session = connect("-c pg_arrow_cache.min_execution_time=10s", prepare_threshold=None)
    session.execute("CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 20000) g")
    session.execute("CREATE TABLE written (n int)")
    session.execute("BEGIN")
    for _ in range(300):
        session.execute("SAVEPOINT s; INSERT INTO written VALUES (1)", prepare=False)

    def reason(number):
        assert ask(session, number) == [(f"row {number}".encode(),)]
        return session.reason()

    assert [reason(number) for number in range(1, QUICK_RUNS + 1)] == ["own_writes"] * QUICK_RUNS
    assert [reason(number) for number in range(20, 30)] == ["too_quick"] * 10


def counted(session):
    return session.rows("SELECT sum(statements) FROM arrow_cache.bypass_reasons WHERE reason = 'too_quick'")[0][0]


@pytest.mark.parametrize("ask", [simple, bound, named])
@pytest.mark.parametrize("mode", ["auto", "force_custom_plan", "force_generic_plan"])
def test_a_new_session_knows_what_others_have_found_too_quick(connect, ask, mode):
    def new(threshold="10s"):
        session = connect(f"-c pg_arrow_cache.min_execution_time={threshold} -c plan_cache_mode={mode}", prepare_threshold=None)
        session.pgconn.prepare(b"s", b"SELECT b FROM t WHERE a = $1", [INT4])
        return session

    def outcome(session, number):
        assert ask(session, number) == [(f"row {number}".encode(),)]
        return session.status(), session.reason()

    connect().execute("CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 20000) g")
    assert [outcome(new(), number) for number in range(1, QUICK_RUNS + 1)] == [("MISS", "too_quick")] * QUICK_RUNS
    session = new()
    before = counted(connect())
    assert outcome(session, 30) == ("BYPASS", "too_quick")
    assert counted(connect()) == before + 1
    # They are compared with the same setting only.
    storing = new("0")
    assert outcome(storing, 100) == ("MISS", None)
    outcomes = [outcome(session, 100) for _ in range(LOOK_EVERY + 2)]
    assert outcomes[-2:] == [("HIT", None)] * 2
    assert set(outcomes) == {("BYPASS", "too_quick"), ("HIT", None)}
    storing.execute("UPDATE t SET b = 'new'")
    assert ask(session, 100) == [(b"new",)]


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
def test_a_new_session_looks_plans_up_that_rest_on_functions(connect, mode):
    """The server notes on such a plan what it rests on, too."""
    def new(threshold):
        session = connect(f"-c pg_arrow_cache.min_execution_time={threshold} -c plan_cache_mode={mode}", prepare_threshold=None)
        session.pgconn.prepare(b"s", b"SELECT b FROM t WHERE same(a) = $1", [INT4])
        return session

    connect().execute("CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 20000) g;"
                      "CREATE FUNCTION same(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'")
    for number in range(1, QUICK_RUNS + 1):
        named(new("10s"), number)
    session = new("10s")
    assert named(new("0"), 100) == [(b"row 100",)]
    outcomes = []
    for _ in range(LOOK_EVERY + 2):
        assert named(session, 100) == [(b"row 100",)]
        outcomes.append((session.status(), session.reason()))
    assert outcomes[0] == ("BYPASS", "too_quick")
    assert outcomes[-1] == ("HIT", None)


@pytest.mark.parametrize("ask", [simple, bound, named])
@pytest.mark.parametrize("mode", ["auto", "force_custom_plan", "force_generic_plan"])
def test_runs_that_own_writes_hide_count_as_well(connect, ask, mode):
    hasty = connect(f"-c pg_arrow_cache.min_execution_time=10s -c plan_cache_mode={mode}", prepare_threshold=None)
    hasty.execute("CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 200) g")
    hasty.pgconn.prepare(b"s", b"SELECT b FROM t WHERE a = $1", [INT4])
    outcomes = []
    for number in range(1, QUICK_RUNS + 10):
        with hasty.transaction():
            hasty.execute("UPDATE t SET b = b || '!' WHERE a = %d" % number)
            assert ask(hasty, number) == [(b"row %d!" % number,)]
            outcomes.append((hasty.status(), hasty.reason()))
    assert outcomes[:QUICK_RUNS] == [("BYPASS", "own_writes")] * QUICK_RUNS
    assert outcomes[QUICK_RUNS:] == [("BYPASS", "too_quick")] * 9


@pytest.mark.parametrize("way", ["simple", "bound", "named"])
def test_after_a_slow_run_those_are_looked_up_that_take_a_part_of_its_time(connect, way):
    hasty = connect("-c pg_arrow_cache.min_execution_time=5ms", prepare_threshold=None)
    hasty.execute("""
        CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 20) g;
        CREATE FUNCTION finds(a int, sought int) RETURNS boolean STABLE LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
            BEGIN
                IF a = sought AND a = 7 THEN FOR i IN 1..5000000 LOOP END LOOP; END IF;
                RETURN a = sought;
            END $$;
        SECURITY LABEL FOR pg_arrow_cache ON FUNCTION finds(int, int) IS 'pure'""")
    hasty.execute("SELECT finds(1, 1)")     # not in a statement that is timed
    hasty.pgconn.prepare(b"s", b"SELECT b FROM t WHERE finds(a, $1)", [INT4])

    def ask(number):
        if way == "simple":
            return simple(hasty, number, "SELECT b FROM t WHERE finds(a, %d)")
        return bound(hasty, number, "SELECT b FROM t WHERE finds(a, $1)") if way == "bound" else named(hasty, number)

    def runs_until_bypassed(at_most):
        for run in range(at_most):
            number = run % 6 + 10
            assert ask(number) == [(f"row {number}".encode(),)]
            if hasty.outcome() == ("BYPASS", "too_quick"):
                return run
        pytest.fail(f"{at_most} runs, all of which were looked up")

    runs_until_bypassed(1000)
    assert (ask(7), hasty.outcome()) == ([(b"row 7",)], ("BYPASS", "too_quick"))
    # It was not looked up, and may have waited for a processor: the next one is, and decides.
    assert (ask(7), hasty.status()) == ([(b"row 7",)], "MISS")
    # An eighth of its time, some hundredths of a second, is spent on look-ups. Without that there would be as many as of a new form.
    assert 2 * QUICK_RUNS <= runs_until_bypassed(375_000)


def test_what_stands_before_in_the_message_makes_no_run_slow(connect):
    hasty = connect("-c pg_arrow_cache.min_execution_time=200ms", prepare_threshold=None)
    hasty.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 20) g")

    def ask(before, number):
        hasty.execute(f"SELECT {before}; SELECT count(*) FROM t WHERE a > {number}")
        return hasty.outcome()

    outcomes = [ask("1", number) for number in range(60)]
    assert outcomes[-1] == ("BYPASS", "too_quick")
    assert [ask("pg_sleep(0.3)", 5), ask("1", 6)] == [("BYPASS", "too_quick")] * 2


def test_a_lookup_that_takes_a_part_of_the_run_is_made_more_seldom(connect):
    """Bounds are sought in each partition, while the plan reads one."""
    session = connect("-c pg_arrow_cache.min_execution_time=1us -c seq_page_cost=1000000 -c plan_cache_mode=force_generic_plan",
                      prepare_threshold=None)
    session.execute("""
        CREATE TABLE log (k int, at timestamptz, n int) PARTITION BY LIST (k);
        DO $$ BEGIN FOR k IN 0..59 LOOP EXECUTE format('CREATE TABLE log_%s PARTITION OF log FOR VALUES IN (%s)', k, k); END LOOP; END $$;
        CREATE INDEX ON log (at);
        INSERT INTO log SELECT g % 60, now() - g * interval '1 second', g FROM generate_series(1, 600) g;
        ANALYZE log;
        PREPARE dear (int, int) AS SELECT count(*), sum(n) FROM log WHERE k = $1 AND n > $2 AND at > now() - interval '1 day'""")
    outcomes = []
    # A run that is disturbed seems to be worth its look-up, and the next ones as well.
    while outcomes[-30:] != [("BYPASS", "too_quick")] * 30:
        session.execute(f"EXECUTE dear (7, {-len(outcomes)})")
        outcomes.append(session.outcome())
        assert len(outcomes) < 3000
    assert outcomes[0] == ("MISS", None)


def test_a_search_for_gaps_that_takes_longer_than_the_run_is_made_more_seldom(connect):
    """Planning it takes the longer, the more partitions there are. The plan for all values leaves all but two out."""
    session = connect("-c pg_arrow_cache.min_execution_time=1us -c plan_cache_mode=force_generic_plan", prepare_threshold=None)
    session.execute("""
        CREATE TABLE days (at timestamptz, n int) PARTITION BY RANGE (at);
        DO $$ BEGIN FOR i IN 0..199 LOOP
            EXECUTE format('CREATE TABLE days_%s PARTITION OF days FOR VALUES FROM (%L) TO (%L)', i,
                           date_trunc('day', now()) - (198 - i) * interval '1 day', date_trunc('day', now()) - (197 - i) * interval '1 day');
        END LOOP; END $$;
        CREATE INDEX ON days (at);
        INSERT INTO days SELECT now() - g % 198 * interval '1 day', g FROM generate_series(1, 20000) g;
        INSERT INTO days SELECT now() - g * interval '1 second', g FROM generate_series(1, 6000) g;
        ANALYZE days;
        PREPARE recent (int) AS SELECT count(*), sum(sqrt(n)) FROM days WHERE at > now() - interval '1 day' AND n <> $1""")
    outcomes = []
    # A run that is disturbed may seem to be worth it, and the next ones as well.
    while outcomes[-30:] != [("BYPASS", "too_quick")] * 30:
        session.execute(f"EXECUTE recent ({-len(outcomes)})")
        outcomes.append(session.outcome())
        assert len(outcomes) < 400
    assert outcomes[0] == ("MISS", None)


def test_a_statement_that_is_known_to_be_quick_is_looked_up_and_not_stored(connect):
    hasty = connect("-c pg_arrow_cache.min_execution_time=50ms", prepare_threshold=None)
    hasty.execute("""
        CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 20) g;
        CREATE FUNCTION waits(a int, sought int) RETURNS boolean STABLE LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
            DECLARE nothing text;
            BEGIN
                IF a = 1 AND sought = 99 THEN nothing := pg_sleep(0.5); END IF;
                RETURN true;
            END $$;
        SECURITY LABEL FOR pg_arrow_cache ON FUNCTION waits(int, int) IS 'pure'""")

    def outcome(number):
        hasty.execute(f"SELECT count(*) FROM t WHERE waits(a, {number})")
        return hasty.outcome()

    assert [outcome(number) for number in range(QUICK_RUNS)] == [("MISS", "too_quick")] * QUICK_RUNS
    skipped = [outcome(number) for number in range(QUICK_RUNS, QUICK_RUNS + LOOK_EVERY - 1)]
    assert skipped == [("BYPASS", "too_quick")] * (LOOK_EVERY - 1)
    # What turns out to be slow is stored the next time: it takes ten times as long as a look-up, also as one that had to wait for a processor.
    assert [outcome(99) for _ in range(3)] == [("MISS", "too_quick"), ("MISS", None), ("HIT", None)]


def test_a_lookup_that_takes_little_of_the_run_is_made_each_time(connect):
    session = connect("-c pg_arrow_cache.min_execution_time=1us", prepare_threshold=None)
    session.execute("""
        CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g;
        CREATE FUNCTION waits(a int) RETURNS boolean STABLE LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
            BEGIN
                IF a = 1 THEN PERFORM pg_sleep(0.05); END IF;
                RETURN true;
            END $$;
        SECURITY LABEL FOR pg_arrow_cache ON FUNCTION waits(int) IS 'pure'""")
    outcomes = set()
    for number in range(QUICK_RUNS + 8):
        session.execute(f"SELECT count(*), sum(sqrt(a)) FROM t WHERE waits(a) AND a % 1000 <> {number + 20}")
        outcomes.add(session.status())
    assert outcomes == {"MISS"}


# The current row of one that is not read-only could be updated.
@pytest.mark.parametrize("mode", ["READ ONLY", "READ WRITE"])
def test_cursors_that_are_not_read_to_their_end_count_as_well(connect, mode):
    hasty = connect("-c pg_arrow_cache.min_execution_time=10s", prepare_threshold=None)
    hasty.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 200) g")
    outcomes = []
    for number in range(QUICK_RUNS + 10):
        with hasty.transaction():
            hasty.execute(f"SET TRANSACTION {mode}")
            hasty.execute(f"DECLARE c CURSOR FOR SELECT a FROM t WHERE a <> {number + 50}")
            assert hasty.rows("FETCH 2 FROM c") == [(1,), (2,)]
            hasty.execute("CLOSE c")
            outcomes.append(hasty.rows("SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'too_quick'"))
    counts = [row[0][0] if row else 0 for row in outcomes]
    assert counts[QUICK_RUNS - 1] == counts[0]
    assert counts[-1] == counts[QUICK_RUNS - 1] + 10


@pytest.mark.parametrize("in_savepoints", [False, True])
def test_runs_that_fail_count_as_well(connect, in_savepoints):
    hasty = connect("-c pg_arrow_cache.min_execution_time=10s", prepare_threshold=None)
    hasty.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 200) g")
    before, counts = counted(connect()) or 0, []
    for number in range(1, QUICK_RUNS + 10):
        if in_savepoints:
            hasty.execute("BEGIN")
            hasty.execute("SAVEPOINT s")
        with pytest.raises(psycopg.errors.DivisionByZero):
            hasty.execute(f"SELECT 1 / (a - {number}) FROM t")
        if in_savepoints:
            hasty.execute("ROLLBACK TO s")
            hasty.execute("COMMIT")
        counts.append((counted(connect()) or 0) - before)
    assert counts == [0] * QUICK_RUNS + list(range(1, 10))
