"""A kept plan of a combined query calls other functions than the query. Who may no longer execute one gets the error that executing the query
would raise, and no other."""

import psycopg
import pytest

FORCED = "-c pg_arrow_cache.debug_force_fragments=on -c jit=off"
PLAIN = "-c pg_arrow_cache.enabled=off -c jit=off"
ROLE = "few_rights"
QUERIES = {
    "average": "SELECT avg(v) FROM f",
    "counts": "SELECT count(*), sum(v) FROM f",
    "filtered": "SELECT kind, count(*) FROM f WHERE abs(v) > 2 GROUP BY kind ORDER BY kind",
    "nested": "SELECT a + 1 FROM (SELECT avg(v) AS a FROM f) s",
}
FUNCTIONS = ["avg(int)", "sum(int)", "sum(bigint)", 'count("any")', "count()", "abs(int)", "int8(numeric)", "numeric_div(numeric, numeric)",
             "numeric_add(numeric, numeric)", "int4gt(int, int)"]


@pytest.fixture
def owner(connect):
    owner = connect()
    owner.execute(f"""
        CREATE TABLE f (n int, kind text, v int) PARTITION BY RANGE (n);
        CREATE TABLE f0 PARTITION OF f FOR VALUES FROM (0) TO (10);
        CREATE TABLE f1 PARTITION OF f FOR VALUES FROM (10) TO (20);
        INSERT INTO f SELECT g, 'k' || g % 3, g FROM generate_series(0, 19) g;
        CREATE ROLE {ROLE}; GRANT USAGE ON SCHEMA {connect.schema} TO {ROLE}; GRANT SELECT ON f TO {ROLE}""")
    yield owner
    owner.execute("".join(f"GRANT EXECUTE ON FUNCTION {function} TO PUBLIC; " for function in FUNCTIONS))
    owner.execute(f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


def answer(session, name):
    try:
        return session.rows(f"EXECUTE {name}", prepare=False)
    except psycopg.errors.InsufficientPrivilege as error:
        return str(error)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_right_is_withdrawn(owner, connect, function):
    cached, plain = connect(FORCED), connect(PLAIN)
    for session in (cached, plain):
        session.execute(f"SET ROLE {ROLE}")
        for name, query in QUERIES.items():
            session.execute(f"PREPARE {name} AS {query}", prepare=False)
            for _ in range(2):
                assert isinstance(answer(session, name), list)
    for change in (f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC", "UPDATE f SET v = v + 1 WHERE n = 3",
                   f"GRANT EXECUTE ON FUNCTION {function} TO PUBLIC"):
        owner.execute(change)
        for name in QUERIES:
            assert answer(cached, name) == answer(plain, name), (name, change)


@pytest.mark.parametrize("way", ["simple", "prepared before", "prepared after"])
def test_a_right_is_withdrawn_in_the_own_transaction(owner, connect, way):
    """No version has moved yet."""
    reader = connect(FORCED)
    query = QUERIES["average"]
    if way != "simple":
        reader.execute(f"PREPARE average AS {query}", prepare=False)
    if way == "prepared before":
        reader.execute("EXECUTE average", prepare=False)
    reader.execute(query, prepare=False)
    reader.execute(f"BEGIN; REVOKE EXECUTE ON FUNCTION sum(int) FROM PUBLIC; SET ROLE {ROLE}")
    asked = query if way == "simple" else "EXECUTE average"
    assert reader.rows(asked, prepare=way == "simple") == connect(PLAIN).rows(query)
    reader.execute("ROLLBACK; BEGIN; REVOKE EXECUTE ON FUNCTION avg(int) FROM PUBLIC")
    reader.execute(f"SAVEPOINT s; SET ROLE {ROLE}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute(asked, prepare=way == "simple")
    reader.execute("ROLLBACK")
    assert reader.rows(asked, prepare=False) == connect(PLAIN).rows(query)
