"""A run whose rows come about as fast as they can be stored is let go, and stored when the same is asked again. A machine that is busy with
something else may make any single run look slow, so a test asks until it has seen what it waits for."""

import contextlib
import threading

import psycopg
import pytest

# All that takes any time at all is worth storing, as far as the time goes.
JUDGED = "-c pg_arrow_cache.min_execution_time=0.001ms"
SCAN = "SELECT * FROM wide WHERE a1 > -{}"
COMPUTING = "SELECT w.*, (SELECT count(*) FROM few f WHERE f.v > w.a1) FROM wide w WHERE w.a1 <= 2000 AND w.a1 > -{}"
ROWS, ATTEMPTS = 20_000, 100


@pytest.fixture
def judged(connect):
    session = connect(JUDGED)
    numbers = ", ".join(f"g AS a{column}" for column in range(1, 13))
    texts = ", ".join(f"'text {column} of ' || g AS t{column}" for column in range(1, 5))
    session.execute(f"CREATE TABLE wide AS SELECT {numbers}, {texts} FROM generate_series(1, {ROWS}) g")
    session.execute("CREATE TABLE few AS SELECT g AS v FROM generate_series(1, 500) g")
    session.execute("ANALYZE wide, few")
    session.execute("SELECT arrow_cache.reset_stats()")
    return session


def ask(session, query, **options):
    rows = session.rows(query, **options)
    return len(rows), session.status(), session.reason()


def quick_question(session, start=0, query=SCAN):
    """Asks until a run is let go, and returns its question."""
    for number in range(start, start + ATTEMPTS):
        if ask(session, query.format(number)) == (ROWS, "MISS", "quick_rows"):
            return query.format(number)
    pytest.fail("no run was let go")


def counted(session):
    return session.rows("SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'quick_rows'")[0][0]


def test_the_same_is_stored_when_it_is_asked_again(judged, connect):
    question = quick_question(judged)
    assert counted(judged) >= 1
    reasons, eligible = judged.rows(f"SELECT reason, cacheable FROM arrow_cache.why($${question}$$)")[0]
    assert (reasons, eligible) == (None, True), "only running it can tell"
    other = connect(JUDGED)
    assert ask(other, question) == (ROWS, "MISS", None), "whoever asks"
    assert ask(judged, question) == (ROWS, "HIT", None)
    assert judged.rows(question) == judged.uncached(question)
    judged.execute("UPDATE wide SET a2 = 0 WHERE a1 = 1")
    assert ask(judged, question) == (ROWS, "STALE", None), "it was asked before"
    assert ask(judged, question) == (ROWS, "HIT", None)


def test_rows_that_the_receiver_takes_are_let_go_for_the_same_reason(judged):
    """They are larger than what is sent as it is encoded, and not too large to be stored."""
    judged.execute("CREATE TABLE large AS SELECT g AS n, repeat(md5(g::text), 3200) AS pad FROM generate_series(1, 30) g")
    outcomes = (ask(judged, f"SELECT *, {number} FROM large") for number in range(ATTEMPTS))
    rows, status, reason = next(outcome for outcome in outcomes if outcome[2])
    assert (rows, status, reason) == (30, "MISS", "quick_rows")


@pytest.mark.parametrize("prefix, settings", [
    ("/*+ arrow_cache */ ", {}), ("", {"min_execution_time": "0"}),
])
def test_what_is_to_be_stored_at_once_is(judged, prefix, settings):
    quick_question(judged)
    for name, value in settings.items():
        judged.execute(f"SET pg_arrow_cache.{name} = {value}")
    for number in range(1000, 1020):
        assert ask(judged, prefix + SCAN.format(number)) == (ROWS, "MISS", None)


def test_min_runs_counts_as_asking_again(judged):
    quick_question(judged)
    judged.execute("SET pg_arrow_cache.min_runs = 2")
    for number in range(1000, 1020):
        assert ask(judged, SCAN.format(number)) == (ROWS, "MISS", "too_few_runs")
        assert ask(judged, SCAN.format(number)) == (ROWS, "MISS", None)


def test_a_run_that_computes_is_stored_the_first_time(judged):
    quick_question(judged)
    for number in range(5):
        assert ask(judged, COMPUTING.format(number)) == (2000, "MISS", None)
        assert ask(judged, COMPUTING.format(number)) == (2000, "HIT", None)


def test_a_small_answer_is_stored_the_first_time(judged):
    for number in range(10):
        assert ask(judged, f"SELECT v FROM few WHERE v > -{number}") == (500, "MISS", None)


@pytest.mark.parametrize("options", [{}, {"binary": True}, {"prepare": True}])
def test_rows_are_those_of_the_table(judged, options):
    expected = judged.uncached(SCAN.format(1))
    for number in range(2, 12):
        for _ in range(3):
            assert judged.rows(SCAN.format(number), **options) == expected
    assert judged.status() == "HIT"


def test_parts_of_a_cursor(judged):
    expected = judged.uncached(SCAN.format(1))
    for number in range(2, 12):
        with judged.transaction():
            judged.execute(f"DECLARE c CURSOR FOR {SCAN.format(number)}")
            rows = [row for _ in range(4) for row in judged.rows(f"FETCH {ROWS // 4} FROM c")]
        assert rows == expected


def test_who_waits_goes_on(judged, connect):
    """All ask the same for the first time, at once: whoever lets the run go lets those go on who wait for it, and the next one stores it."""
    patient = [connect(f"{JUDGED} -c pg_arrow_cache.max_wait=1min") for _ in range(4)]
    quick_question(judged)
    for number in range(5000, 5010):
        barrier = threading.Barrier(len(patient))
        told = []

        def run(session):
            barrier.wait()
            told.append(ask(session, SCAN.format(number)))

        threads = [threading.Thread(target=run, args=(session,)) for session in patient]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [rows for rows, *_ in told] == [ROWS] * len(patient)
        # Those who began before the first one was let go may have been let go, too; whoever asks next stores.
        assert ask(judged, SCAN.format(number)) in ((ROWS, "HIT", None), (ROWS, "MISS", None))
        assert ask(judged, SCAN.format(number)) == (ROWS, "HIT", None)


def test_cancelled_runs_leave_nothing(judged):
    judged.execute("SELECT arrow_cache.flush()")
    base = judged.rows("SELECT bytes_used FROM arrow_cache.stats")
    for number in range(40):
        with contextlib.suppress(psycopg.errors.QueryCanceled), judged.statement_timeout(1 + number % 20):
            judged.execute(SCAN.format(7000 + number))
    judged.execute("SELECT arrow_cache.flush()")
    assert judged.rows("SELECT 1 FROM few LIMIT 1") == [(1,)]
    judged.execute("SELECT arrow_cache.flush()")
    assert judged.rows("SELECT bytes_used FROM arrow_cache.stats") == base
