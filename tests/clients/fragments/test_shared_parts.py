"""Statements that miss the same parts share them: each part is computed by one of them, while the others wait or compute other parts."""

import threading

import pytest
from support.asking import Asking

PATIENT = "-c pg_arrow_cache.max_wait=1min -c pg_arrow_cache.fragment_min_time=1ms"
LEAVES, ROWS = 8, 60000
# Different questions over the same parts.
QUESTIONS = [f"SELECT k, count(*), sum(v) FROM f GROUP BY k HAVING count(*) > {n} ORDER BY k" for n in range(4)]


@pytest.fixture
def owner(connect):
    session = connect(PATIENT)
    session.execute("CREATE TABLE f (n int, k int, v bigint) PARTITION BY RANGE (n)")
    for leaf in range(LEAVES):
        session.execute(f"CREATE TABLE f{leaf} PARTITION OF f FOR VALUES FROM ({leaf * ROWS}) TO ({(leaf + 1) * ROWS})")
    session.execute(f"INSERT INTO f SELECT g, g % 5, g FROM generate_series(0, {LEAVES * ROWS - 1}) g")
    session.execute("ANALYZE f")
    return session


def warm(owner):
    """Makes the form known as a slow one, and leaves no answer."""
    for question in QUESTIONS:
        owner.rows(question)
    owner.execute("SELECT arrow_cache.flush()")
    owner.execute("SELECT arrow_cache.reset_stats()")


def parts(owner):
    row = owner.execute("SELECT fragments_computed, fragments_served, fragments_stored, claims_held FROM arrow_cache.stats").fetchone()
    return dict(zip(("computed", "served", "stored", "held"), row))


def test_each_part_is_computed_once(owner, connect):
    warm(owner)
    sessions = [connect(PATIENT) for _ in QUESTIONS]
    asking = [Asking(session, question) for session, question in zip(sessions, QUESTIONS)]
    assert [one.result() for one in asking] == [owner.uncached(question) for question in QUESTIONS]
    found = parts(owner)
    assert found["computed"] + found["served"] == len(QUESTIONS) * LEAVES
    # Two that claim a part within a moment of each other may both compute it.
    assert LEAVES <= found["computed"] <= LEAVES + 2
    assert found["held"] == 0


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
def test_whoever_is_stopped_leaves_no_claim(owner, connect, end):
    expected = [owner.uncached(question) for question in QUESTIONS]
    for _ in range(5):
        warm(owner)
        sessions = [connect(PATIENT) for _ in QUESTIONS]
        asking = [Asking(session, question) for session, question in zip(sessions, QUESTIONS)]
        for session in sessions[:2]:
            owner.execute(f"SELECT {end}(%s)", [session.info.backend_pid])
        found = [one.result() for one in asking]
        assert all(rows in (answer, "57014", "57P01") for rows, answer in zip(found, expected))
        assert found[2:] == expected[2:]
        assert parts(owner)["held"] == 0


def test_writes_meanwhile(owner, connect):
    """Leaves are written while statements share parts: each answer is a sum of rows that are there at once."""
    warm(owner)
    owner.execute("CREATE TABLE total AS SELECT sum(v) AS v FROM f")
    wrong, over = [], threading.Event()

    def write():
        session = connect(autocommit=False)
        n = 0
        while not over.wait(0.01):
            # What is added to one leaf is taken from another one.
            session.execute("UPDATE f SET v = v + 1 WHERE n = %s", [n % LEAVES * ROWS])
            session.execute("UPDATE f SET v = v - 1 WHERE n = %s", [(n + 3) % LEAVES * ROWS + 1])
            session.commit()
            n += 1

    owner.execute("CREATE INDEX ON f (n)")
    expected = owner.execute("SELECT v FROM total").fetchone()[0]
    sessions = [connect(PATIENT) for _ in QUESTIONS]

    def read(session, question):
        for _ in range(15):
            if sum(row[2] for row in session.rows(question)) != expected:
                wrong.append(question)

    threads = [threading.Thread(target=read, args=pair) for pair in zip(sessions, QUESTIONS)]
    writer = threading.Thread(target=write)
    for thread in [writer, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    writer.join()
    assert not wrong
    assert parts(owner)["held"] == 0
