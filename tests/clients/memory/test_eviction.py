"""Which results stay when memory is full: those that save most time for their size."""

import sys
from pathlib import Path

import pytest

from support.session import Session

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import cluster as private  # noqa: E402  (it lives beside the other scripts)

ROOT = Path(__file__).resolve().parents[3]
# Results of about one megabyte: some that take long, and some that take as long as reading them.
WIDE = "SELECT t || '{}' FROM wide"
SLOW = "SELECT t || '{}' || (SELECT count(*) FROM generate_series(1, 3000) g WHERE g > a) FROM wide"
SMALL = "SELECT sum(length(t) + {}) FROM wide"


@pytest.fixture
def server():
    conf = {"pg_arrow_cache.memory": "8MB", "pg_arrow_cache.max_entries": 200, "pg_arrow_cache.max_entry_size": "4MB",
            "pg_arrow_cache.min_execution_time": 0}
    with private.Cluster(ROOT / "target" / "test-clients-eviction", conf=conf) as cluster:
        cluster.psql("CREATE EXTENSION pg_arrow_cache; CREATE TABLE wide AS SELECT g AS a, repeat('x', 1000) AS t FROM generate_series(1, 1000) g; "
                     "VACUUM ANALYZE wide")
        yield cluster


@pytest.fixture
def session(server):
    with Session.connect(server.dsn(), autocommit=True) as session:
        yield session


def ask(session, *queries):
    """Runs queries; returns their statuses and reasons."""
    told = []
    for query in queries:
        session.execute(query)
        told.append((session.status(), session.reason()))
    return told


def is_stored(session, query):
    return ask(session, query)[0][0] == "HIT"


def large(session):
    """How many large results are stored."""
    return session.rows("SELECT count(*) FROM arrow_cache.entries WHERE row_count = 1000")[0][0]


def fill_with_slow_ones(session):
    """Fills the memory with results that took long and were served, until there is no room for one more."""
    for n in range(20):
        told, = ask(session, SLOW.format(n))
        assert told in (("MISS", None), ("MISS", "outweighed"))
        if told[1]:
            return
        # What was not served yet would have to go first.
        assert is_stored(session, SLOW.format(n))
        if session.rows("SELECT evictions FROM arrow_cache.stats")[0][0]:
            return
    raise AssertionError("there was room for all of them")


def test_what_is_worth_more_stays(session):
    fill_with_slow_ones(session)
    stored = large(session)
    assert stored >= 2
    assert ask(session, WIDE.format(1)) == [("MISS", "outweighed")]
    assert large(session) == stored
    assert session.rows("SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'outweighed'")[0][0] >= 1


def test_a_client_may_insist(session):
    fill_with_slow_ones(session)
    query = "/*+ arrow_cache */ " + WIDE.format(2)
    assert ask(session, query, query) == [("MISS", None), ("HIT", None)]


def test_a_small_result_stays_when_large_ones_come(session):
    small = [SMALL.format(n) for n in range(20)]
    for query in small:
        assert ask(session, query, query) == [("MISS", None), ("HIT", None)]
    for n in range(30):
        session.execute(WIDE.format(n + 100))
    assert session.rows("SELECT evictions FROM arrow_cache.stats")[0][0] > 10
    assert all(is_stored(session, query) for query in small)


def test_the_score_puts_them_in_order(session):
    for query in (WIDE.format(7), SLOW.format(7), SMALL.format(7)):
        assert ask(session, query, query) == [("MISS", None), ("HIT", None)]
    rows = session.rows("SELECT score, bytes FROM arrow_cache.entries ORDER BY execution_time_ms / bytes")
    assert len(rows) == 3 and rows[0][0] > 0
    assert rows == sorted(rows) and rows[2][1] < rows[0][1]
