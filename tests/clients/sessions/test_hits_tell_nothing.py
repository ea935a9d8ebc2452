"""A hit is quicker than a miss. That tells a role what it has asked before, and nothing of what others have asked: not by an answer, a
counted run, an EXPLAIN, nor by waiting for somebody else's answer."""

import threading

import pytest

# Takes some tenths of a second, and reads one page or two.
SLOW = "SELECT count(*), sum((a.v * b.v) % 7) FROM t a, t b, t c WHERE a.v + b.v + c.v > 0"
ROLES = ("told_alice", "told_bob")


@pytest.fixture
def both(connect, session):
    """Makes sessions of two roles that may read the same."""
    session.execute("CREATE TABLE t AS SELECT g AS v FROM generate_series(1, 170) g")
    for role in ROLES:
        session.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {connect.schema} TO {role}; GRANT SELECT ON t TO {role}")
    yield [lambda options="", role=role: connect(f"-c role={role} {options}") for role in ROLES]
    session.execute(f"DROP OWNED BY {', '.join(ROLES)}; DROP ROLE {', '.join(ROLES)}")


def test_what_the_other_has_stored_is_not_found(both, session):
    alice, bob = (make() for make in both)
    query = "SELECT sum(v) FROM t WHERE v > 3"
    for _ in range(3):
        alice.execute(query)
    assert alice.status() == "HIT"
    assert "ArrowCache" in alice.rows(f"EXPLAIN {query}")[0][0]
    assert "ArrowCache" not in bob.rows(f"EXPLAIN {query}")[0][0]
    bob.execute(query)
    assert (bob.status(), bob.reason()) == ("MISS", None)
    # Not even that something was outdated.
    alice.execute("SELECT count(v) FROM t")
    session.execute("UPDATE t SET v = v WHERE v = 1")
    bob.execute("SELECT count(v) FROM t")
    assert bob.status() == "MISS"


def test_runs_of_the_other_are_not_counted(both):
    alice, bob = (make("-c pg_arrow_cache.min_runs=3") for make in both)
    query = "SELECT max(v) FROM t"
    alice.execute(query)
    alice.execute(query)
    for expected in ("too_few_runs", "too_few_runs", None):
        bob.execute(query)
        assert (bob.status(), bob.reason()) == ("MISS", expected)


def test_nobody_waits_for_the_other(both, session):
    patient = "-c pg_arrow_cache.max_wait=1min"
    alice, bob = (make(patient) for make in both)
    again = both[0](patient)
    assert waits(session, [alice, again], enough=1) >= 1, "who asks the same as the same role waits"
    assert waits(session, [alice, bob], enough=1) == 0


def waits(owner, sessions, enough, rounds=6):
    """How often somebody waited when an outdated answer was asked for by all at once, until it was often enough."""
    for session in sessions:
        session.execute(SLOW)
    owner.execute("SELECT arrow_cache.reset_stats()")
    for _ in range(rounds):
        owner.execute("UPDATE t SET v = v WHERE v = 1")
        barrier = threading.Barrier(len(sessions))
        threads = [threading.Thread(target=lambda session=session: (barrier.wait(), session.execute(SLOW))) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [(waited,)] = owner.rows("SELECT waits FROM arrow_cache.stats")
        if waited >= enough:
            break
    return waited
