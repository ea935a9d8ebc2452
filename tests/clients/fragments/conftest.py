import pytest


@pytest.fixture
def world(session):
    """A table `p` with so many partitions."""
    session.execute("CREATE TABLE p (at int, x int) PARTITION BY RANGE (at)")
    for leaf in range(20):
        session.execute(f"CREATE TABLE p{leaf} PARTITION OF p FOR VALUES FROM ({leaf * 10}) TO ({leaf * 10 + 10})")
    session.execute("INSERT INTO p SELECT g % 200, g FROM generate_series(1, 2000) g; ANALYZE p")
    return session
