"""Values that a statement compares a column with are known before it runs if settings and the role make them.

So a sequential scan, which looks nothing up, reads the rows with one value, and its answer outlives changes of others."""

import psycopg
import pytest

from test_values import until_tracked

SETUP = """
    CREATE TABLE t (id int PRIMARY KEY, tenant int, key uuid, owner text, v int DEFAULT 0);
    INSERT INTO t SELECT n, n / 5, ('00000000-0000-0000-0000-0000000000' || lpad((n / 5)::text, 2, '0'))::uuid, 'role' || n / 5
        FROM generate_series(5, 104) AS n;
    ANALYZE t;
"""
SETTINGS = "SET app.tenant = '7'; SET app.key = '00000000-0000-0000-0000-000000000007'; SET app.owner = 'role7'; SET app.none = ''"
SEVEN, EIGHT = "UPDATE t SET v = v + 1 WHERE tenant = 7", "UPDATE t SET v = v + 1 WHERE tenant = 8"

CONDITIONS = {
    "tenant = current_setting('app.tenant')::int": ["tenant"],
    "current_setting('app.tenant')::bigint = tenant": ["tenant"],
    "tenant = current_setting('app.tenant', true)::int": ["tenant"],
    "tenant = nullif(current_setting('app.tenant', true), '')::int": ["tenant"],
    "tenant = coalesce(nullif(current_setting('app.none', true), ''), current_setting('app.tenant'))::int": ["tenant"],
    "tenant IN (current_setting('app.tenant')::int, 9)": ["tenant"],
    "key = current_setting('app.key')::uuid": ["key"],
    "owner = current_setting('app.owner')": ["owner"],
}
NOT_KNOWN = {
    "tenant = current_setting('app.tenant')::int + 0": "arithmetic, which is not on the list",
    "tenant = length(current_setting('app.owner')) + 2": "a function that is not on the list",
    "tenant = (SELECT max(tenant) - 13 FROM t)": "the rows",
}


def is_hit(session, query):
    rows = session.rows(query, prepare=False)
    hit = session.status() == "HIT"
    assert rows == session.uncached(query, prepare=False), query
    return hit


def stored(session, query):
    session.rows(query, prepare=False)
    assert is_hit(session, query), session.outcome()


def track(session, column, value="{}"):
    until_tracked(session, lambda number: session.rows(f"SELECT v, {number} FROM t WHERE {column} = {value.format(number)}"), [column])
    session.execute("SELECT arrow_cache.flush()")


@pytest.fixture
def shop(session):
    session.execute(SETUP)
    session.execute(SETTINGS)
    session.execute("SET enable_indexscan = off; SET enable_bitmapscan = off")
    return session


@pytest.mark.parametrize("condition", CONDITIONS)
def test_settings(shop, other, condition):
    query = f"SELECT id, v FROM t WHERE {condition} ORDER BY id"
    assert "Seq Scan" in str(shop.rows(f"EXPLAIN {query}"))
    until_tracked(shop, lambda number: shop.rows(query.replace("SELECT", f"SELECT {number},")), CONDITIONS[condition])
    stored(shop, query)
    other.execute(EIGHT)
    assert is_hit(shop, query)
    for change in (SEVEN, "INSERT INTO t SELECT 1000, tenant, key, owner FROM t WHERE id = 35", "DELETE FROM t WHERE id = 1000"):
        stored(shop, query)
        other.execute(change)
        assert not is_hit(shop, query), change


@pytest.mark.parametrize("condition", NOT_KNOWN)
def test_what_is_not_known(shop, other, condition):
    """These answers count with the whole table."""
    track(shop, "tenant")
    query = f"SELECT id, v FROM t WHERE {condition} ORDER BY id"
    stored(shop, query)
    other.execute(EIGHT)
    assert not is_hit(shop, query)
    stored(shop, query)
    other.execute(SEVEN)
    assert not is_hit(shop, query)


@pytest.mark.parametrize("column, condition", [
    ("tenant", "tenant = nullif(current_setting('app.none', true), '')::int"), ("key", "key = nullif(current_setting('app.none', true), '')::uuid"),
    ("owner", "owner = nullif(current_setting('app.owner'), 'role7')")])
def test_null_is_no_value(shop, other, column, condition):
    """It equals nothing, and there is nothing to hash."""
    track(shop, column, {"tenant": "{}", "key": "'00000000-0000-0000-0000-{:012}'", "owner": "'role{}'"}[column])
    query = f"SELECT id, v FROM t WHERE {condition} ORDER BY id"
    stored(shop, query)
    other.execute(SEVEN)
    is_hit(shop, query)
    assert shop.rows(query) == []


def test_each_setting_has_its_own(shop, other):
    track(shop, "tenant")
    query = "SELECT id, v FROM t WHERE tenant = current_setting('app.tenant')::int ORDER BY id"
    for tenant in (7, 8):
        shop.execute(f"SET app.tenant = '{tenant}'")
        stored(shop, query)
    other.execute(SEVEN)
    assert is_hit(shop, query)
    shop.execute("SET app.tenant = '7'")
    assert not is_hit(shop, query)


@pytest.mark.parametrize("value", ["seven", "", "99999999999"])
def test_no_error_that_no_row_raises(shop, other, value):
    """A value that is none raises an error for a row, and none if there is no row to compare with."""
    track(shop, "tenant")
    shop.execute("CREATE TABLE empty (tenant int, v int); SET plan_cache_mode = force_generic_plan")
    shop.execute("PREPARE of_empty AS SELECT v FROM empty WHERE tenant = current_setting('app.tenant')::int")
    shop.execute("PREPARE of_t AS SELECT v FROM t WHERE id < 0 AND tenant = current_setting('app.tenant')::int")
    for statement in ("of_empty", "of_t"):
        assert shop.rows(f"EXECUTE {statement}") == []
        shop.execute(f"SET app.tenant = '{value}'")
        for _ in range(3):
            assert shop.rows(f"EXECUTE {statement}") == [] and shop.status() in ("HIT", "MISS", "STALE", "BYPASS")
        shop.execute("SET app.tenant = '7'")
    shop.execute(f"SET app.tenant = '{value}'")
    with pytest.raises(psycopg.DataError):
        shop.rows("SELECT v FROM t WHERE tenant = current_setting('app.tenant')::int")


def test_roles(connect, shop, other, administrator):
    """A policy by the role's name: each role's answers rest on its own rows."""
    schema = connect.schema
    roles = [f"role7_{schema}", f"role8_{schema}"]
    for role in roles:
        administrator.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON {schema}.t TO {role}")
    administrator.execute(f"UPDATE {schema}.t SET owner = owner || '_{schema}'; ALTER TABLE {schema}.t ENABLE ROW LEVEL SECURITY; "
                          f"CREATE POLICY p ON {schema}.t USING (owner = current_user::text)")
    try:
        track(shop, "owner", "'role{}'")
        query = "SELECT id, v FROM t ORDER BY id"
        for role in roles:
            shop.execute(f"SET ROLE {role}")
            stored(shop, query)
        other.execute(SEVEN)
        assert is_hit(shop, query)
        shop.execute(f"SET ROLE {roles[0]}")
        assert not is_hit(shop, query) and len(shop.rows(query)) == 5
    finally:
        shop.execute("RESET ROLE")
        for role in roles:
            administrator.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_setting_that_changes_while_rows_are_read(shop, other):
    """What a cursor reads under another setting is stored for neither."""
    track(shop, "tenant")
    query = "SELECT id, v FROM t WHERE tenant = current_setting('app.tenant')::int"
    for steps in ([0, 100], [2, 100], [2, 0, 100]):
        shop.execute(f"SET app.tenant = '7'; BEGIN; DECLARE c NO SCROLL CURSOR FOR {query}")
        for number, step in enumerate(steps):
            if step:
                shop.rows(f"FETCH {step} FROM c")
            shop.execute(f"SET app.tenant = '{8 - number % 2}'")
        shop.execute("SET app.tenant = '7'; FETCH 1 FROM c; COMMIT")
        for tenant in (7, 8):
            shop.execute(f"SET app.tenant = '{tenant}'")
            is_hit(shop, query)
            other.execute(f"UPDATE t SET v = v + 1 WHERE tenant = {tenant}")
            assert not is_hit(shop, query)
        shop.execute("SELECT arrow_cache.flush()")
