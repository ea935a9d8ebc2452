"""The planner puts things into a plan that are not in the query: negators and commutators of operators, hash functions,
comparison functions of types. If any of them is code of a user, the answer is not cached."""

import psycopg
import pytest

from support.agreement import agree

CONFIG = """
CREATE TABLE config (v int);
INSERT INTO config VALUES (1);
"""
READS = "LANGUAGE plpgsql {} AS $$ BEGIN RETURN {}; END $$"


def around(session, query, change):
    """The answers before and after a change are those of an execution. Returns why the last one was not cached, if it
    was not."""
    agree(session, query, prepare=False)
    session.execute(change)
    return agree(session, query, prepare=False)[1]


@pytest.fixture
def schema(connect, session):
    session.execute(CONFIG)
    yield connect.schema
    session.execute("ROLLBACK")


@pytest.mark.parametrize("condition", ["NOT (a === 1)", "NOT (a === ANY (ARRAY[1, 2]))", "(a === 1) = false", "(a === 1) IS NOT TRUE"])
def test_negators(session, schema, condition):
    session.execute("CREATE FUNCTION nef(int, int) RETURNS bool " + READS.format("STABLE", "$1 >= (SELECT v FROM config)"))
    session.execute("CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)")
    session.execute("CREATE OPERATOR !== (LEFTARG = int, RIGHTARG = int, FUNCTION = nef, NEGATOR = ===)")
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 3) g")
    assert around(session, f"SELECT a FROM t WHERE {condition} ORDER BY a", "UPDATE config SET v = 3") == "user_defined_function"


def test_commutators(session, schema):
    session.execute("CREATE FUNCTION later(int, int) RETURNS bool " + READS.format("STABLE", "$1 > $2 + (SELECT v FROM config)"))
    session.execute("CREATE OPERATOR <<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = int4lt)")
    session.execute("CREATE OPERATOR >>>> (LEFTARG = int, RIGHTARG = int, FUNCTION = later, COMMUTATOR = <<<<)")
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 9) g; CREATE INDEX ON t (a); SET enable_seqscan = off")
    assert around(session, "SELECT a FROM t WHERE 5 <<<< a ORDER BY a", "UPDATE config SET v = 3") == "user_defined_function"


def test_bounds_of_ranges(session, schema):
    """From 17 on the planner compares with the bounds of a constant range, by the operators of the range's operator class."""
    session.execute("CREATE FUNCTION below(int, int) RETURNS bool " + READS.format("STABLE", "$1 < $2 * (SELECT v FROM config)"))
    session.execute("CREATE OPERATOR <<# (LEFTARG = int, RIGHTARG = int, FUNCTION = below)")
    session.execute("""CREATE OPERATOR CLASS scaled FOR TYPE int USING btree AS
                           OPERATOR 1 <<#, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int)""")
    session.execute("CREATE TYPE span AS RANGE (SUBTYPE = int, SUBTYPE_OPCLASS = scaled)")
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 9) g")
    for condition in "a <@ '[2,4)'::span", "'[2,4)'::span @> a":
        query = f"SELECT a FROM t WHERE {condition} ORDER BY a"
        assert around(session, query, "UPDATE config SET v = 3 - v") == "user_defined_function"
    # Ranges of the server's own are compared by its own operators.
    query = "SELECT a FROM t WHERE a <@ '[2,4)'::int4range ORDER BY a"
    assert around(session, query, "UPDATE config SET v = v") is None
    assert session.rows(query, prepare=False) == [(2,), (3,)]
    assert session.status() == "HIT"


def test_hash_functions_of_operators(session, schema):
    """Values of money have no hash function of the server's. A superuser may add one, and the planner has a list of nine or more hashed."""
    session.execute("CREATE FUNCTION hash(money) RETURNS int " + READS.format("STABLE", "(SELECT v FROM config)"))
    session.execute("CREATE TABLE t AS SELECT g::money AS m FROM generate_series(1, 20) g")
    values = ", ".join(f"'{value}'::money" for value in range(1, 13))
    query = f"SELECT count(*) FROM t WHERE m IN ({values})"
    assert around(session, query, "UPDATE config SET v = v") is None
    session.execute("CREATE OPERATOR CLASS hashed FOR TYPE money USING hash AS OPERATOR 1 =, FUNCTION 1 hash(money)")
    assert around(session, query, "UPDATE config SET v = 3") == "user_defined_function"
    session.execute("DROP OPERATOR FAMILY hashed USING hash")
    assert around(session, query, "UPDATE config SET v = v") is None


def test_operator_classes_of_the_server(session, schema):
    session.execute("CREATE TABLE t (id uuid PRIMARY KEY, tags int[]); INSERT INTO t VALUES (gen_random_uuid(), '{1}'); CREATE INDEX ON t USING gin (tags)")
    session.execute("SET enable_seqscan = off")
    for query in "SELECT count(*) FROM t WHERE id <> '00000000-0000-0000-0000-000000000000' AND id > '00000000-0000-0000-0000-000000000000'", \
            "SELECT count(*) FROM t WHERE tags @> '{1}'":
        for status in "MISS", "HIT":
            assert session.rows(query, prepare=False) == [(1,)]
            assert session.status() == status


def test_ranges_with_functions_of_users(session, schema):
    session.execute("CREATE FUNCTION diff(float8, float8) RETURNS float8 " + READS.format("IMMUTABLE", "$1 - $2"))
    session.execute("CREATE TYPE span AS RANGE (subtype = float8, subtype_diff = diff); CREATE TABLE t (r span); INSERT INTO t VALUES ('[1,2]')")
    session.rows("SELECT count(*) FROM t WHERE r << '[10,11)'::span", prepare=False)
    assert session.reason() == "user_defined_function"


@pytest.mark.parametrize("type, query", [
    ("json", "SELECT greatest(a, b)::text FROM t"), ("xid", "SELECT ARRAY[a] AS x FROM t ORDER BY x"), ("varchar", "SELECT ARRAY[a] AS x FROM t ORDER BY x"),
    ("varchar", "SELECT DISTINCT ROW(a, b)::pair::text FROM t ORDER BY 1"), ("xid", "SELECT a FROM t ORDER BY a"),
    # Rows of sub-queries, VALUES, joins and CTEs, which have no name.
    ("json", "SELECT s::text FROM (SELECT a, b FROM t) s ORDER BY s"), ("json", "SELECT count(*) FROM (SELECT a FROM t) s, (SELECT b FROM t) u WHERE s < u"),
    ("xid", "SELECT array_agg(s ORDER BY s)::text FROM (SELECT 1, a FROM t) s"), ("json", "WITH w AS (SELECT a FROM t) SELECT w::text FROM w ORDER BY w"),
    ("json", "SELECT w::text FROM (VALUES ('1'::json), ('3')) w, t ORDER BY w, a::text"), ("json", "SELECT j::text FROM (t NATURAL JOIN (SELECT 1) o) j ORDER BY j"),
    ("json", "SELECT x::text FROM (SELECT s FROM (SELECT a FROM t) s UNION ALL SELECT s FROM (SELECT b FROM t) s) x ORDER BY x"),
    ("json", "SELECT ARRAY(SELECT s FROM (SELECT a FROM t) s)::text < ARRAY(SELECT s FROM (SELECT b FROM t) s)::text AS x, "
             "ARRAY(SELECT s FROM (SELECT a FROM t) s) < ARRAY(SELECT s FROM (SELECT b FROM t) s) AS y FROM t"),
    ("json", "SELECT u::text FROM ROWS FROM (unnest(ARRAY['1'::json, '3'])) WITH ORDINALITY u (x, n), t ORDER BY u, t.a::text")])
def test_comparison_functions_of_types(session, schema, type, query):
    """A class that a superuser makes for a type of the server's own, inside a transaction that is undone."""
    session.execute(f"CREATE TYPE pair AS (a {type}, b {type}); CREATE TABLE t (a {type}, b {type}); INSERT INTO t VALUES ('1', '2'), ('3', '1')")
    session.execute(f"CREATE FUNCTION mycmp({type}, {type}) RETURNS int " + READS.format("STABLE", "(SELECT v FROM config) * bttextcmp($1::text, $2::text)"))
    for name, sign in (("<<|", "<"), ("<=|", "<="), ("=|", "="), (">=|", ">="), (">>|", ">")):
        session.execute(f"CREATE FUNCTION f{ord(sign[0])}{len(sign)}({type}, {type}) RETURNS bool " + READS.format("STABLE", f"mycmp($1, $2) {sign} 0"))
        session.execute(f"CREATE OPERATOR {name} (LEFTARG = {type}, RIGHTARG = {type}, FUNCTION = f{ord(sign[0])}{len(sign)})")
    session.execute(f"CREATE OPERATOR CLASS own DEFAULT FOR TYPE {type} USING btree AS OPERATOR 1 <<|, OPERATOR 2 <=|, OPERATOR 3 =|, "
                    f"OPERATOR 4 >=|, OPERATOR 5 >>|, FUNCTION 1 mycmp({type}, {type})")
    try:
        assert around(session, query, "UPDATE config SET v = -1") == "user_defined_function"
    finally:
        session.execute("DROP OPERATOR CLASS own USING btree CASCADE")


def test_extremes_of_rows(session, schema):
    """From 18 on there are min and max of rows, which compare their columns."""
    session.execute("CREATE EXTENSION citext; CREATE TABLE t (a citext, b int); INSERT INTO t VALUES ('A', 1), ('a', 2), ('b', 3)")
    query = "SELECT max(s) IS NULL FROM (SELECT a FROM t) s"
    if session.info.server_version < 180000:
        with pytest.raises(psycopg.errors.UndefinedFunction):
            session.execute(query)
    else:
        assert around(session, query, "DELETE FROM t WHERE b = 3") == "user_defined_function"
        assert around(session, "SELECT max(s)::text FROM (SELECT b FROM t) s", "DELETE FROM t WHERE b = 2") is None
    assert around(session, "SELECT count(DISTINCT s) FROM (SELECT a FROM t) s", "DELETE FROM t WHERE b = 1") == "user_defined_function"
    # Where no row without a name is met, nothing compares the values.
    assert around(session, "SELECT count(*), count(a) FROM t", "INSERT INTO t VALUES ('c', 4)") is None
    session.execute("DROP EXTENSION citext CASCADE")


def test_constants_that_name_tables(session, connect, schema):
    """A constant that is the number of a table does not lock that table, wait for it or depend on it."""
    session.execute("CREATE TABLE pt (a int, b int) PARTITION BY LIST (a); CREATE TABLE pt1 PARTITION OF pt FOR VALUES IN (1); INSERT INTO pt VALUES (1, 2)")
    session.execute("CREATE TABLE other (n int); SET lock_timeout = '300ms'")
    query = "SELECT a, b FROM pt WHERE a = 1 AND 'other'::regclass::oid <> b::oid"
    for _ in range(3):
        assert session.rows(query, prepare=False) == [(1, 2)]
    other = connect()
    other.execute("BEGIN; LOCK TABLE other IN ACCESS EXCLUSIVE MODE; INSERT INTO other VALUES (1)")
    try:
        assert session.rows(query, prepare=False) == [(1, 2)]
        assert session.status() == "HIT"
    finally:
        other.execute("COMMIT")
    assert session.rows(query, prepare=False) == [(1, 2)]
    assert session.status() == "HIT", "who writes the table of the constant outdates nothing"
    with pytest.raises(psycopg.errors.UndefinedTable):
        session.execute("SELECT 'nothing'::regclass")
