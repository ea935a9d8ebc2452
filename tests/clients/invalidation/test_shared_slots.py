"""A test that expects an answer to outlive a change runs again, in a schema of its own, when it did not."""

from support.shared_slots import MOST_RUNS, outlives

RUNS = []


def test_runs_again(session):
    session.execute("CREATE TABLE t ()")
    RUNS.append(session)
    outlives(len(RUNS) == MOST_RUNS)
    assert len({id(one) for one in RUNS}) == MOST_RUNS
