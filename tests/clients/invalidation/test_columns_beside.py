"""Another column is tracked beside the first one: answers over values of the first stay, and those of both are right."""

import pytest

from support.asking import Asking, until_locked_out
from test_values import tracked, until_tracked

SETUP = """
    CREATE TABLE t (id int PRIMARY KEY, tenant int, v int DEFAULT 0, seen int DEFAULT 0, visits int DEFAULT 0);
    INSERT INTO t SELECT n, n / 10, n FROM generate_series(10, 209) AS n;
    CREATE TABLE unrelated (id int PRIMARY KEY, v int); INSERT INTO unrelated VALUES (1, 1);
    ANALYZE t;
"""
BY_TENANT = "SELECT id, tenant, v, seen FROM t WHERE tenant = {} ORDER BY id"
BY_ID = "SELECT id, tenant, v, seen FROM t WHERE id = {}"


def is_hit(session, query):
    rows = session.rows(query)
    hit = session.status() == "HIT"
    assert rows == session.uncached(query), query
    return hit


def first(session):
    session.execute(SETUP)
    until_tracked(session, lambda number: session.rows(BY_TENANT.format(number + 100)), ["tenant"])
    session.execute("SELECT arrow_cache.flush()")
    for tenant in (5, 6, 7):
        session.rows(BY_TENANT.format(tenant))


def then(session):
    until_tracked(session, lambda number: session.rows(BY_ID.format(number + 1000)), ["id", "tenant"])


def test_answers_stay(session, other):
    first(session)
    then(session)
    assert all(is_hit(session, BY_TENANT.format(tenant)) for tenant in (5, 6, 7))
    other.execute("UPDATE t SET v = -1 WHERE id = 65")
    assert [is_hit(session, BY_TENANT.format(tenant)) for tenant in (5, 6, 7)] == [True, False, True]
    session.rows(BY_ID.format(65))
    assert is_hit(session, BY_ID.format(65))


# What a writer does before the column is taken in, and after that, and whose answers that outdates.
WRITERS = {
    "began before": ("UPDATE t SET v = -1 WHERE id = 65", "SELECT 1", {6}),
    "goes on": ("UPDATE t SET v = -1 WHERE id = 65", "UPDATE t SET v = -2 WHERE id = 71", {6, 7}),
    "begins then": ("UPDATE unrelated SET v = 2", "UPDATE t SET v = -1 WHERE id = 65", {6}),
    "has only read": ("SELECT * FROM t", "UPDATE t SET v = -1 WHERE id = 65", {6}),
    "in a savepoint": ("SAVEPOINT a; UPDATE t SET v = -1 WHERE id = 65; RELEASE a", "SAVEPOINT b; DELETE FROM t WHERE id = 75; ROLLBACK TO b", {6, 7}),
    "moves a row": ("UPDATE t SET tenant = 7 WHERE id = 65", "UPDATE t SET id = 1000 WHERE id = 71", {6, 7}),
}


@pytest.mark.parametrize("way", WRITERS)
def test_a_writer_meanwhile(session, other, connect, way):
    """Of its rows it is not known which values they have in the new column: answers over that wait for its end."""
    before, after, tenants = WRITERS[way]
    reader = connect()
    first(session)
    other.execute("BEGIN")
    for step in before.split("; "):
        other.execute(step)
    then(session)
    assert all(is_hit(session, BY_TENANT.format(tenant)) for tenant in (5, 6, 7))
    old = connect()
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM unrelated")
    for step in after.split("; "):
        other.execute(step)
    by_id = [BY_ID.format(number) for number in (55, 65, 71, 75, 1000)]
    for query in by_id:
        is_hit(reader, query)
        is_hit(reader, query)
    other.execute("COMMIT")
    for query in by_id:
        is_hit(reader, query)
        # An answer with what the writer has changed is none for those who do not see that.
        is_hit(old, query)
    old.execute("COMMIT")
    assert {tenant for tenant in (5, 6, 7) if not is_hit(reader, BY_TENANT.format(tenant))} == tenants
    for query in by_id:
        reader.rows(query)
        assert is_hit(reader, query)


@pytest.mark.parametrize("change", ["v = -1", "id = 1000"])
def test_a_statement_that_has_begun(session, other, connect, change):
    """It gets its id, and notes its first row, when nobody looks for those of before any more: by all columns."""
    holder = connect()
    first(session)
    holder.execute("BEGIN; SELECT pg_advisory_xact_lock(1)")
    asking = Asking(other, f"UPDATE t SET {change} WHERE id = 65 AND pg_advisory_xact_lock_shared(1) IS NOT NULL RETURNING id")
    until_locked_out(session)
    then(session)
    by_id = [BY_ID.format(number) for number in (64, 65, 1000)]
    for query in by_id:
        session.rows(query)
        assert is_hit(session, query)
    assert all(is_hit(session, BY_TENANT.format(tenant)) for tenant in (5, 6, 7))
    holder.execute("COMMIT")
    assert len(asking.result()) == 1
    # The answer to 1000 was stored when the column was not tracked yet.
    assert [is_hit(session, query) for query in by_id] == [True, False, False]
    assert [is_hit(session, BY_TENANT.format(tenant)) for tenant in (5, 6, 7)] == [True, False, True]
