"""Which statements are combined of parts: those of a form that was executed before and took long enough, of sessions that want it."""

import pytest

from support.fragment_world import parts_of

QUERY = "SELECT k, sum(v) FROM t WHERE n < {} GROUP BY k"
ANY_TIME = "-c pg_arrow_cache.fragment_min_time=0"


@pytest.fixture
def setup(session):
    session.execute("CREATE TABLE t (n int, k int, v int) PARTITION BY RANGE (n)")
    for leaf in range(4):
        session.execute(f"CREATE TABLE t{leaf} PARTITION OF t FOR VALUES FROM ({leaf * 10}) TO ({leaf * 10 + 10})")
    session.execute("INSERT INTO t SELECT g % 40, g % 3, g FROM generate_series(1, 4000) g")


def combined(session, query):
    """How many runs of parts, and how many parts of them that were stored, a statement adds."""
    before = session.rows("SELECT fragment_runs, fragments_served FROM arrow_cache.stats")[0]
    rows = sorted(session.rows(query))
    after = session.rows("SELECT fragment_runs, fragments_served FROM arrow_cache.stats")[0]
    assert rows == sorted(session.uncached(query))
    return after[0] - before[0], after[1] - before[1]


def test_from_the_second_execution_of_a_form_on(connect, setup):
    """Each has another constant: none is a hit. What the first one took is known to all sessions."""
    reader = connect(ANY_TIME, prepare_threshold=None)
    assert combined(reader, QUERY.format(38)) == (0, 0)
    assert combined(reader, QUERY.format(39)) == (1, 0)
    other = connect(ANY_TIME, prepare_threshold=None)
    assert combined(other, QUERY.format(37)) == (1, 3)
    # Another form.
    assert combined(other, QUERY.format(37) + " ORDER BY k") == (0, 0)
    assert combined(other, QUERY.format(36) + " ORDER BY k") == (1, 3)


def test_also_if_answers_are_not_stored(connect, setup):
    reader = connect(f"{ANY_TIME} -c pg_arrow_cache.min_execution_time=1h", prepare_threshold=None)
    assert combined(reader, QUERY.format(38)) == (0, 0)
    assert combined(reader, QUERY.format(38))[0] == 1


@pytest.mark.parametrize("first", ["SELECT sum(v) FROM t WHERE n < 7", QUERY.format(7) + " HAVING sum(v) > 0", QUERY.format(7).replace("sum", "avg")])
def test_not_after_statements_of_another_form(connect, setup, first):
    reader = connect(ANY_TIME, prepare_threshold=None)
    reader.execute(first)
    assert combined(reader, QUERY.format(38)) == (0, 0)


def test_not_after_a_run_that_was_not_read_to_its_end(connect, setup):
    reader = connect(ANY_TIME, prepare_threshold=None)
    reader.execute(f"BEGIN; DECLARE c CURSOR FOR {QUERY.format(38)}; FETCH 1 FROM c; CLOSE c; COMMIT")
    assert combined(reader, QUERY.format(38)) == (0, 0)
    assert combined(reader, QUERY.format(39)) == (1, 0)


@pytest.mark.parametrize("options", ["-c pg_arrow_cache.enable_fragments=off", "-c pg_arrow_cache.fragment_min_time=1h", "-c temp_file_limit=1GB"])
def test_not_under_these_settings(connect, setup, options):
    reader = connect(f"{ANY_TIME} {options}", prepare_threshold=None)
    for constant in range(30, 36):
        assert combined(reader, QUERY.format(constant)) == (0, 0)
    assert reader.rows("SELECT fragment_bytes FROM arrow_cache.stats") == [(0,)]


def test_not_if_the_statement_does_not_want_it(connect, setup):
    reader = connect(ANY_TIME, prepare_threshold=None)
    for constant in range(30, 33):
        assert combined(reader, "/*+ arrow_cache(fragments=off) */ " + QUERY.format(constant)) == (0, 0)
    # Its runs tell how long the form takes.
    assert combined(reader, QUERY.format(34)) == (1, 0)


def test_the_views_tell(connect, setup, session):
    reader = connect(ANY_TIME, prepare_threshold=None)
    columns = "fragment_runs, fragments_served, fragments_computed, fragments_stored"
    session.execute("SELECT arrow_cache.reset_stats()")
    reader.execute(QUERY.format(38))
    reader.execute(QUERY.format(39))
    assert session.rows(f"SELECT {columns} FROM arrow_cache.stats") == [(1, 0, 4, 4)]
    reader.execute(QUERY.format(37))
    # The last leaf is asked with the bound.
    assert session.rows(f"SELECT {columns} FROM arrow_cache.stats") == [(2, 3, 5, 5)]
    kinds = dict(session.rows("SELECT kind, count(*) FROM arrow_cache.entries GROUP BY kind"))
    assert kinds == {"answer": 3, "fragment": 5}
    assert session.rows("SELECT sum(bytes) = (SELECT fragment_bytes FROM arrow_cache.stats) FROM arrow_cache.entries WHERE kind = 'fragment'") == [(True,)]
    explained = parts_of(line for line, in reader.rows(f"EXPLAIN (COSTS OFF) {QUERY.format(36)}"))
    assert explained == (3, 1)
    session.execute("UPDATE t1 SET v = v")
    explained = parts_of(line for line, in reader.rows(f"EXPLAIN (COSTS OFF) {QUERY.format(36)}"))
    assert explained == (2, 2)


def test_the_time_that_parts_save_is_counted(connect, session):
    session.execute("CREATE TABLE t (n int, k int, v int) PARTITION BY RANGE (n); CREATE TABLE many AS SELECT generate_series(1, 400) AS x")
    session.execute("CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (0) TO (10); CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (10) TO (20)")
    session.execute("INSERT INTO t SELECT g, g % 3, g FROM generate_series(0, 10) g; ANALYZE t, many")
    query = "SELECT count(*) FROM t, many a, many b WHERE a.x <> t.v AND b.x <> t.v"
    reader = connect(ANY_TIME, prepare_threshold=None)
    for _ in range(2):
        reader.execute(query)
        session.execute("UPDATE t1 SET v = v")
    saved = "SELECT fragment_time_saved_ms, time_saved_ms FROM arrow_cache.stats"
    [(before, hits_before)] = session.rows(saved)
    # t0 has ten of the eleven rows, so most of the work is saved.
    assert combined(reader, query) == (1, 1)
    [(after, hits_after)] = session.rows(saved)
    assert after > before and hits_after == hits_before


def test_exports_tell_how_long_a_form_takes(connect, setup):
    reader = connect(ANY_TIME, prepare_threshold=None)
    reader.execute(f"SELECT arrow_cache.query('{QUERY.format(38)}')")
    assert combined(reader, QUERY.format(39)) == (1, 0)
