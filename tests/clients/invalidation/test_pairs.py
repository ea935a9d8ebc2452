"""An answer over two columns outlives changes of rows that have one of its values, once both are tracked together.

They are when answers over one of them keep being outdated by changes of its value."""

import pytest

from support.shared_slots import outlives
from test_values import tracked

TENANTS = 20
SETUP = """
    CREATE TABLE t (id int PRIMARY KEY, tenant int, status text, kind text DEFAULT 'a', v int DEFAULT 0, seen int DEFAULT 0);
    CREATE INDEX ON t (tenant);
    INSERT INTO t (id, tenant, status) SELECT n, n / 10, (ARRAY['open', 'paid', 'sent', NULL, 'done'])[n % 5 + 1] FROM generate_series(10, 309) AS n;
    CREATE TABLE unrelated (id int PRIMARY KEY, v int); INSERT INTO unrelated VALUES (1, 5);
    ANALYZE t;
"""
OPEN = "SELECT id, v FROM t WHERE tenant = {} AND status = 'open' ORDER BY id"
CHANGE = "UPDATE t SET v = v + 1 WHERE tenant = {} AND status = 'sent'"
BOTH = ["tenant", "tenant and status"]


@pytest.fixture
def pair(session, other):
    """A table whose columns are tracked together. Another table may have wished for the same line of the registry before."""
    session.execute(SETUP)
    take_in(session, other, OPEN, CHANGE, BOTH)
    for _ in range(20):
        other.execute("UPDATE t SET seen = seen WHERE id = 10")
    session.execute("SELECT arrow_cache.flush()")
    return session


def take_in(session, other, query, change, columns):
    """Asks what is outdated by changes of rows with one of its values, until both are tracked."""
    for number in range(60):
        if tracked(session) == [columns]:
            session.execute("SELECT arrow_cache.flush()")
            return
        tenant = number % TENANTS + 1
        session.rows(query.format(tenant))
        other.execute(change.format(tenant))
        session.rows(query.format(tenant))
    pytest.fail(f"not tracked together: {tracked(session)}")


def is_hit(session, query):
    rows = session.rows(query)
    hit = session.status() == "HIT"
    assert rows == session.uncached(query), query
    return hit


def check(session, other, query, kept, outdating):
    """Changes that leave an answer, and changes that outdate it."""
    for change, keeps in [*[(change, True) for change in kept], *[(change, False) for change in outdating]]:
        session.rows(query)
        assert is_hit(session, query), change
        other.execute(change)
        assert is_hit(session, query) == keeps, change


WAYS = {
    "update of others": ("UPDATE t SET v = 1 WHERE tenant = 7 AND status <> 'open'", True),
    "update of another tenant's": ("UPDATE t SET v = 1 WHERE tenant = 8", True),
    "update": ("UPDATE t SET v = 1 WHERE tenant = 7 AND status = 'open'", False),
    "update by the key": ("UPDATE t SET v = 1 WHERE id = 75", False),
    "update of another row by the key": ("UPDATE t SET v = 1 WHERE id = 76", True),
    "update of null": ("UPDATE t SET v = 1 WHERE tenant = 7 AND status IS NULL", True),
    "comes by the first": ("UPDATE t SET tenant = 7 WHERE id = 85", False),
    "comes by the second": ("UPDATE t SET status = 'open' WHERE id = 76", False),
    "comes by the second from null": ("UPDATE t SET status = 'open' WHERE tenant = 7 AND status IS NULL", False),
    "comes by the first from null": ("UPDATE t SET tenant = NULL WHERE id = 85; UPDATE t SET tenant = 7 WHERE id = 85", False),
    "goes by the first": ("UPDATE t SET tenant = 8 WHERE id = 75", False),
    "goes by the second": ("UPDATE t SET status = 'paid' WHERE id = 75", False),
    "goes to null by the first": ("UPDATE t SET tenant = NULL WHERE id = 75", False),
    "goes to null by the second": ("UPDATE t SET status = NULL WHERE id = 75", False),
    "from elsewhere to elsewhere": ("UPDATE t SET tenant = 8 WHERE id = 76", True),
    "both exchanged": ("UPDATE t SET tenant = 8, status = 'paid' WHERE id = 75", False),
    "insert": ("INSERT INTO t VALUES (1000, 7, 'open')", False),
    "insert of others": ("INSERT INTO t VALUES (1000, 7, 'paid'), (1001, 8, 'open'), (1002, 7, NULL), (1003, NULL, 'open')", True),
    "delete": ("DELETE FROM t WHERE id = 75", False),
    "delete of others": ("DELETE FROM t WHERE tenant = 7 AND status IS DISTINCT FROM 'open'", True),
    "delete of the tenant": ("DELETE FROM t WHERE tenant = 7", False),
    "on conflict, updated": ("INSERT INTO t VALUES (76, 9, 'done') ON CONFLICT (id) DO UPDATE SET status = 'open'", False),
    "on conflict, updated elsewhere": ("INSERT INTO t VALUES (76, 9, 'done') ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status", True),
    "on conflict, inserted": ("INSERT INTO t VALUES (1000, 7, 'open') ON CONFLICT (id) DO NOTHING", False),
    "merge": ("MERGE INTO t USING (VALUES (75)) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE", False),
    "merge of others": ("MERGE INTO t USING (VALUES (76)) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1", True),
    "long text": ("UPDATE t SET status = repeat('x', 2000) WHERE id = 76", False),
    "long text of no tenant": ("INSERT INTO t VALUES (1000, NULL, repeat('x', 2000))", True),
    "copy": ("COPY t (id, tenant, status) FROM PROGRAM 'echo 1000,8,paid' CSV", True),
    "savepoint": ("BEGIN; UPDATE t SET v = 1 WHERE id = 76; SAVEPOINT a; UPDATE t SET v = 1 WHERE id = 85; ROLLBACK TO a; COMMIT", True),
    "quiet": ("UPDATE t SET seen = 1 WHERE id = 75", True),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_write(pair, other, way):
    change, keeps = WAYS[way]
    pair.rows(OPEN.format(7))
    assert is_hit(pair, OPEN.format(7))
    for step in change.split("; "):
        other.execute(step)
    # A row by which another writer is outdated: both conditions still hold for it.
    hit = is_hit(pair, OPEN.format(7))
    assert keeps or not hit
    outlives(hit or not keeps)
    # The other answers are as exact.
    for tenant in range(1, TENANTS):
        assert pair.rows(OPEN.format(tenant)) == pair.uncached(OPEN.format(tenant))


# Each with a change that leaves the answer, and with one that outdates it.
SHAPES = {
    "the other order": ("SELECT v FROM t WHERE 'open' = status AND tenant = 7", CHANGE.format(7), "UPDATE t SET v = 1 WHERE id = 75"),
    "lists": ("SELECT v FROM t WHERE tenant IN (7, 8) AND status IN ('open', 'paid') ORDER BY id",
              "UPDATE t SET v = 1 WHERE tenant IN (7, 8) AND status IN ('sent', 'done')", "UPDATE t SET v = 1 WHERE tenant = 8 AND status = 'paid'"),
    "lists of sixteen": ("SELECT v FROM t WHERE tenant IN (5, 6, 7, 8) AND status IN ('open', 'paid', 'a', 'b') ORDER BY id",
                         CHANGE.format(7), "UPDATE t SET v = 1 WHERE tenant = 8 AND status = 'paid'"),
    "two scans": ("SELECT a.v, b.v FROM t AS a JOIN t AS b ON a.v = b.v WHERE a.tenant = 7 AND a.status = 'open' AND b.tenant = 8 AND b.status = 'paid' "
                  "ORDER BY a.id, b.id", "UPDATE t SET v = 1 WHERE tenant = 8 AND status = 'open' OR tenant = 7 AND status = 'paid'",
                  "UPDATE t SET v = 1 WHERE tenant = 8 AND status = 'paid'"),
    "by one column in one of two scans": ("SELECT a.v, (SELECT sum(v) FROM t WHERE tenant = 8) FROM t AS a WHERE tenant = 7 AND status = 'open' ORDER BY id",
                                          CHANGE.format(7), CHANGE.format(8)),
}
TOO_MANY = {
    "long lists": "SELECT v FROM t WHERE tenant IN (5, 6, 7, 8, 9) AND status IN ('open', 'paid', 'a', 'b') ORDER BY id",
    "one column": "SELECT v FROM t WHERE tenant = 7 ORDER BY id",
    "a range": "SELECT v FROM t WHERE tenant = 7 AND status > 'n' AND status < 'p' ORDER BY id",
    "or": "SELECT v FROM t WHERE tenant = 7 AND (status = 'open' OR v = 9) ORDER BY id",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(pair, other, shape):
    query, kept, outdating = SHAPES[shape]
    check(pair, other, query, [kept], [outdating])


@pytest.mark.parametrize("shape", TOO_MANY)
def test_by_one_column_alone(pair, other, shape):
    """Rows of another tenant are of no account, those of the tenant are."""
    check(pair, other, TOO_MANY[shape], [CHANGE.format(11)], [CHANGE.format(7)])


@pytest.mark.parametrize("plans", ["force_generic_plan", "force_custom_plan"])
def test_parameters(pair, other, plans):
    pair.execute(f"SET plan_cache_mode = {plans}")
    query = "SELECT id, v FROM t WHERE tenant = %s AND status = %s ORDER BY id"

    def hits():
        found = []
        for values in ([7, "open"], [7, "paid"], [8, "open"]):
            rows = pair.rows(query, values, prepare=True)
            found.append(pair.status() == "HIT")
            assert rows == pair.uncached(query.replace("%s", "{}").format(values[0], f"'{values[1]}'"))
        return found

    hits()
    assert hits() == [True] * 3
    other.execute("UPDATE t SET v = -1 WHERE id = 76")
    assert hits() == [True, False, True]
    other.execute("UPDATE t SET v = -1 WHERE id = 80")
    assert hits() == [True, True, False]
    assert pair.rows(query, [7, None], prepare=True) == []


def test_probed_keys(session, other):
    """The key of a nested loop with a constant beside it, and the other way round."""
    session.execute(SETUP)
    session.execute("CREATE TABLE wanted (tenant int, name text); INSERT INTO wanted VALUES (7, 'x'), (8, 'x'), (40, 'x'), (9, 'y'), (NULL, 'x'); "
                    "ANALYZE wanted; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_material = off")
    query = "SELECT w.tenant, t.id, t.v FROM wanted AS w JOIN t USING (tenant) WHERE w.name = 'x' AND t.status = 'open' ORDER BY t.id"
    take_in(session, other, OPEN, CHANGE, BOTH)
    check(session, other, query, [CHANGE.format(7), "UPDATE t SET v = 1 WHERE tenant = 9", "INSERT INTO t VALUES (1000, 40, 'paid')"],
          ["UPDATE t SET v = 1 WHERE id = 85", "INSERT INTO t VALUES (1001, 40, 'open')", "UPDATE t SET status = 'open' WHERE id = 81",
           "UPDATE wanted SET tenant = 9 WHERE tenant = 40"])
    session.execute("SET app.tenant = '7'")
    by_setting = "SELECT id, v FROM t WHERE tenant = current_setting('app.tenant')::int AND status = 'open' ORDER BY id"
    check(session, other, by_setting, [CHANGE.format(7), "UPDATE t SET v = 2 WHERE tenant = 8"], ["UPDATE t SET v = 2 WHERE id = 75"])


def test_not_with_a_key(session, other):
    """Another condition adds nothing to that on a primary key."""
    session.execute(SETUP)
    query = "SELECT v FROM t WHERE id = {} AND tenant IS NOT NULL AND status = 'open'"
    for number in range(30):
        session.rows(query.format(number * 5 + 10))
        other.execute(f"UPDATE t SET v = v + 1 WHERE id = {number * 5 + 10}")
        session.rows(query.format(number * 5 + 10))
    assert tracked(session) == [["id"]]


def test_the_last_pair_counts(session, other):
    """The first other condition holds for all rows: then both are tracked with the next one."""
    session.execute(SETUP)
    query = "SELECT id, v FROM t WHERE tenant = {} AND kind = 'a' AND status = 'open' ORDER BY id"
    take_in(session, other, query, CHANGE, ["tenant", "tenant and status", "tenant and kind"])
    check(session, other, query.format(7), [CHANGE.format(7)], ["UPDATE t SET v = 1 WHERE id = 75", "UPDATE t SET status = 'open' WHERE id = 76"])


def test_shown(pair):
    assert pair.rows("SELECT replace(detail, current_schema() || '.', '') FROM arrow_cache.why(%s)", [OPEN.format(7)]) == [
        ("rests on t (rows by tenant and status)",)]
    assert pair.rows("SELECT replace(detail, current_schema() || '.', '') FROM arrow_cache.why('SELECT v FROM t WHERE tenant = 7')") == [
        ("rests on t (rows by tenant)",)]


def test_a_definition_that_changes(pair, other):
    """A column of the pair gets another type, or goes: changes count with the table, and answers are right."""
    for definition, query in [("ALTER TABLE t ALTER status TYPE varchar(20)", OPEN), ("ALTER TABLE t ALTER tenant TYPE bigint", OPEN),
                              ("ALTER TABLE t ALTER tenant TYPE numeric", OPEN),
                              ("ALTER TABLE t DROP status", "SELECT id, v FROM t WHERE tenant = {} ORDER BY id")]:
        other.execute(definition)
        for change in ("UPDATE t SET v = v + 1 WHERE id = 75", "UPDATE t SET v = v + 1 WHERE id = 76", "INSERT INTO t (id, tenant) SELECT max(id) + 1, 7 FROM t"):
            pair.rows(query.format(7))
            other.execute(change)
            is_hit(pair, query.format(7))
