"""Columns without an index that are compared with a time to the microsecond: the table is read, at most as often as it pays, and the values around
the time are kept for all sessions."""

import collections

import pytest
from support.windows import START, after, sessions

SCHEMA = """
    SET TimeZone = UTC;
    DROP TABLE IF EXISTS log, large CASCADE;
    CREATE TABLE log (id int, at timestamptz, day date);
    INSERT INTO log SELECT g, t, t::date FROM generate_series(1, 40) g, LATERAL (SELECT timestamptz '2026-03-10 11:58:00' + g * interval '10 seconds') d (t);
    CREATE TABLE large (id int, at timestamptz, filler text);
    INSERT INTO large SELECT id, at, repeat('x', 1000) FROM log, generate_series(1, 30);
    ANALYZE large;
"""
QUESTION = "SELECT count(*), min(id) FROM {} WHERE at > now() - interval '20 seconds'"
SCANS = "SELECT seq_scan FROM pg_stat_get_snapshot_timestamp(), pg_stat_user_tables WHERE relname = '{}'"
BOUNDS = "SELECT count(*) FROM arrow_cache.entries WHERE query ILIKE 'bounds of column%%'"
WHY = "SELECT cacheable, reason FROM arrow_cache.why(%s)"


@pytest.fixture
def logged(server):
    server.set(str(START))
    server.psql(SCHEMA + "SELECT arrow_cache.flush()")
    return server


def test_bounds_are_kept_for_all_sessions(logged, at):
    """One session reads a small table at once. Others, and later moments up to the next row, find what it has found."""
    (one, plain), (other, _) = sessions(at), sessions(at)
    question = QUESTION.format("log")
    statuses = []
    for second in range(1, 30):
        logged.set(after(second))
        for session in (one, other):
            assert session.rows(question) == plain.rows(question)
            statuses.append(session.status())
    missed = [number for number, status in enumerate(statuses) if status != "HIT"]
    # Both sessions ask in each second; rows leave at the tenth and the twentieth.
    assert missed == [0, 2 * 9, 2 * 19] and set(statuses) == {"HIT", "MISS"}, statuses
    assert plain.rows(BOUNDS) == [(1,)]


def test_a_larger_table_is_read_when_it_is_asked_for_again(logged, at):
    cached, plain = sessions(at)
    assert plain.rows("SELECT pg_relation_size('large') > 64 * 8192") == [(True,)]
    question = QUESTION.format("large")
    seen = []
    for _ in range(5):
        assert cached.rows(question) == plain.rows(question)
        seen.append((cached.status(), cached.reason()))
    assert seen == [("BYPASS", "moving_clock")] * 2 + [("MISS", None)] + [("HIT", None)] * 2
    # What is larger than the setting is never read.
    plain.execute("INSERT INTO large VALUES (0, now())")
    small, _ = sessions(at, "-c pg_arrow_cache.max_clock_scan=64kB")
    for _ in range(6):
        assert small.rows(question) == plain.rows(question)
        assert (small.status(), small.reason()) == ("BYPASS", "moving_clock")
    detail = cached.rows("SELECT cacheable, detail FROM arrow_cache.why(%s)", [question])[0]
    assert detail[0] and "found by reading the table" in detail[1]
    detail = small.rows("SELECT cacheable, detail FROM arrow_cache.why(%s)", [question])[0]
    assert not detail[0] and "compares at of public.large" in detail[1] and "max_clock_scan" in detail[1]


def test_bounds_that_do_not_pay_are_not_sought_each_time(logged, at):
    """Each execution finds another row before it: the table is read less and less often."""
    cached, plain = sessions(at)
    question = QUESTION.format("log")
    seen = collections.Counter()
    for second in range(64):
        logged.set(after(second * 10))
        plain.execute("UPDATE log SET at = at + interval '10 seconds'")
        assert cached.rows(question) == plain.rows(question)
        seen[cached.status()] += 1
    # After 1, 3, 7, 15 and 31 more.
    assert seen == {"MISS": 6, "BYPASS": 58}, seen


def test_it_is_asked_about(logged, at):
    """`why` and EXPLAIN read no table."""
    cached, plain = sessions(at)
    for number, question in enumerate((QUESTION.format("log"), QUESTION.format("large"))):
        assert cached.rows(WHY, [question]) == [(True, None)]
        cached.rows("EXPLAIN " + question)
        for _ in range(2):
            cached.rows("EXPLAIN (ANALYZE, TIMING OFF) " + question)
        assert plain.rows(BOUNDS) == [(number,)]
        assert cached.rows(question) == plain.rows(question)


def test_a_writer_that_is_not_seen(logged, at):
    """What a snapshot does not see whole is not read for bounds; what an old snapshot reads is its own."""
    (cached, plain), (old, writer) = sessions(at), sessions(at)
    question = QUESTION.format("log")
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    before = old.rows("SELECT count(*) FROM large")
    for number in range(3):
        writer.execute(f"INSERT INTO log VALUES ({number}, now() - interval '{number} seconds')")
        # It is not read at once, if what was found the last time was used only once.
        for _ in range(9):
            assert cached.rows(question) == plain.rows(question)
        assert cached.status() == "HIT"
        expected = old.uncached(question)
        assert old.rows(question) == expected
        assert old.status() == "BYPASS" and old.reason() in ("writer_in_progress", "moving_clock")
    assert old.rows("SELECT count(*) FROM large") == before
    old.execute("COMMIT")
    assert old.rows(question) == plain.rows(question)
    assert old.status() == "HIT"


def test_changes_of_the_table(logged, at):
    """The type of the column, its place, what the name stands for: bounds of another table are not taken for its own."""
    cached, plain = sessions(at)
    question = QUESTION.format("log")
    for change in ("ALTER TABLE log ALTER at TYPE timestamptz USING at + interval '7 seconds'", "TRUNCATE log", "INSERT INTO log SELECT id, at FROM large LIMIT 90",
                   "ALTER TABLE log RENAME TO gone; CREATE TABLE log AS SELECT id, at FROM gone WHERE id % 2 = 0", "ALTER TABLE log DROP at; ALTER TABLE log ADD at timestamptz DEFAULT now()",
                   "BEGIN; DELETE FROM log; ROLLBACK", "DROP TABLE log, gone; CREATE TABLE log (at timestamptz, id int); INSERT INTO log VALUES ('infinity', 1), ('-infinity', 2), (NULL, 3)"):
        for session in (cached, plain):
            assert session.rows(question)
        for part in change.split("; "):
            plain.execute(part)
        for second in (3, 4, 14):
            logged.set(after(second))
            for _ in range(3):
                assert cached.rows(question, prepare=False) == plain.rows(question, prepare=False), change
            assert cached.status() == "HIT", change


def test_own_writes_and_interrupts(logged, at):
    cached, plain = sessions(at)
    question = QUESTION.format("log")
    cached.execute("BEGIN")
    cached.execute("INSERT INTO large VALUES (1, now())")
    assert cached.rows(question) == plain.rows(question)
    assert (cached.status(), cached.reason()) == ("BYPASS", "moving_clock")
    assert cached.rows(QUESTION.format("large"))[0][0] == plain.rows(QUESTION.format("large"))[0][0] + 1
    assert (cached.status(), cached.reason()) == ("BYPASS", "own_writes")
    cached.execute("ROLLBACK")
    assert plain.rows(BOUNDS) == [(0,)]
    assert cached.rows(question) == plain.rows(question)
    assert cached.status() == "MISS"


def test_tokens(logged, at):
    """A token of a question that was never executed moves when a row leaves, too."""
    cached, _ = sessions(at)
    question = QUESTION.format("log")
    tokens = []
    for second in range(30):
        logged.set(after(second))
        tokens.append(cached.rows("SELECT arrow_cache.etag(%s)", [question])[0][0])
    assert None not in tokens and [second for second in range(1, 30) if tokens[second] != tokens[second - 1]] == [10, 20], tokens


def test_a_table_is_read_only_for_statements_that_read_it(logged, at):
    """An index, LIMIT, or too little time: the statement needs no more than without the cache. Nor does it meet pages that it would not read."""
    logged.psql("CREATE INDEX ON large (id); CREATE INDEX ON log (id); ANALYZE log, large")
    cached, plain = sessions(at)
    cached.execute("SET enable_seqscan = off")
    for table in ("log", "large"):
        question = f"SELECT id, at FROM {table} WHERE id = 7 AND at < now() ORDER BY at LIMIT 1"
        for _ in range(5):
            assert cached.rows(question) == plain.rows(question)
            assert (cached.status(), cached.reason()) == ("BYPASS", "moving_clock")
        assert cached.rows(WHY, [question]) == [(False, "moving_clock")]
    cached.execute("RESET enable_seqscan")
    question = "SELECT id FROM large WHERE at < now() LIMIT 1"
    for _ in range(5):
        cached.rows(question)
        assert (cached.status(), cached.reason()) == ("BYPASS", "moving_clock")
    assert cached.rows(WHY, [question]) == [(False, "moving_clock")]
    cached.execute("SET statement_timeout = '20ms'")
    question = QUESTION.format("large")
    for _ in range(5):
        cached.rows(question)
        assert cached.status() == "BYPASS"
    assert plain.rows(BOUNDS) == [(0,)]
    cached.execute("RESET statement_timeout")
    for _ in range(5):
        cached.rows(question)
    assert cached.status() == "HIT"


def test_who_has_no_rights_learns_nothing(logged, at):
    """Rights are asked for before the table is read, and what is found in all rows is shown to nobody who may not see the statements of all."""
    logged.psql("DROP ROLE IF EXISTS bounds_reader, bounds_stranger; CREATE ROLE bounds_reader LOGIN; CREATE ROLE bounds_stranger LOGIN; GRANT SELECT ON log TO bounds_reader")
    stranger, reader = at("-c TimeZone=UTC", user="bounds_stranger"), at("-c TimeZone=UTC", user="bounds_reader")
    question = QUESTION.format("log")
    for _ in range(4):
        with pytest.raises(Exception, match="permission denied"):
            stranger.execute(question)
    (owner, _) = sessions(at)
    assert owner.rows(BOUNDS) == stranger.rows(BOUNDS) == [(0,)]
    for _ in range(2):
        reader.execute(question)
    assert reader.status() == "HIT"
    assert owner.rows(BOUNDS) == [(1,)] and stranger.rows(BOUNDS) == reader.rows(BOUNDS) == [(0,)]
    logged.psql("DROP OWNED BY bounds_reader; DROP ROLE bounds_reader, bounds_stranger")
