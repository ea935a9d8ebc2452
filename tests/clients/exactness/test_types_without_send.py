"""Types that have no binary form: the server raises an error when it has a row to send, and not before; a hit does the
same. All messages are compared."""

from support.sweeps import thinned
from support.wire import data_rows, error_fields, types

ACL = "'postgres=arwdDxt/postgres'::aclitem"
QUERIES = {
    "the type": (f"CREATE TABLE t AS SELECT g AS i, {ACL} AS x, g::text AS label FROM generate_series(1, 5) g", True),
    "last of all": (f"CREATE TABLE t AS SELECT g AS i, g / 7.0 AS q, {ACL} AS x FROM generate_series(1, 5) g", True),
    "NULL": ("CREATE TABLE t AS SELECT g AS i, NULL::aclitem AS x FROM generate_series(1, 5) g", True),
    "first NULL": (f"CREATE TABLE t AS SELECT g AS i, CASE WHEN g > 1 THEN {ACL} END AS x FROM generate_series(1, 5) g", True),
    "a domain": (f"CREATE DOMAIN d AS aclitem; CREATE TABLE t AS SELECT g AS i, ({ACL})::d AS x FROM generate_series(1, 5) g",
                 True),
    "an array": (f"CREATE TABLE t AS SELECT g AS i, CASE WHEN g > 1 THEN ARRAY[{ACL}] END AS x FROM generate_series(1, 5) g",
                 True),
    "a row type": (f"CREATE TYPE r AS (a int, x aclitem); CREATE TABLE t AS SELECT g AS i, "
                   f"CASE WHEN g > 2 THEN (g, {ACL})::r END AS x FROM generate_series(1, 5) g", True),
    "with a form": ("CREATE TABLE t AS SELECT g AS i, '{1,2}'::int[] AS x FROM generate_series(1, 5) g", False),
}


def simple(client, query, _):
    return client.query(query)


def extended(client, query, result_format):
    return client.parse(query).bind(result_format=result_format).describe().execute().sync()


def in_parts(client, query, result_format):
    """Two rows at a time, through a named portal."""
    client.query("BEGIN")
    client.parse(query).bind(portal="p", result_format=result_format).describe("p").execute("p", 2)
    messages = client.step("s", "C", "E")
    if messages[-1].type == "s":
        messages += client.execute("p", 2).execute("p").step("C", "E")
    messages += client.sync()
    client.query("ROLLBACK")
    return messages


def cursor(client, query, result_format):
    client.query("BEGIN")
    binary = "BINARY" if result_format else ""
    messages = client.query(f"DECLARE c {binary} NO SCROLL CURSOR FOR {query}") + client.query("FETCH 2 FROM c")
    messages += client.query("FETCH ALL FROM c")
    client.query("ROLLBACK")
    return messages


def fetched_by_execute(client, query, result_format):
    client.query("BEGIN")
    client.query(f"DECLARE c NO SCROLL CURSOR FOR {query}")
    messages = client.parse("FETCH ALL FROM c").bind(result_format=result_format).describe().execute().sync()
    client.query("ROLLBACK")
    return messages


def execute(client, query, result_format):
    client.query(f"PREPARE q AS {query}")
    messages = client.parse("EXECUTE q").bind(result_format=result_format).describe().execute().sync()
    client.query("DEALLOCATE q")
    return messages


WAYS = [simple, extended, in_parts, cursor, fetched_by_execute, execute]


def test_these_are_all(session):
    """Types that a column can have."""
    assert session.rows("SELECT typname FROM pg_type WHERE typsend = 0 AND typtype IN ('b', 'c', 'd', 'e', 'm', 'r') "
                        "AND typname NOT LIKE 'pg_ddl%' ORDER BY 1") == [("aclitem",), ("gtsvector",)]


@thinned("case, way, result_format, rows", QUERIES, WAYS, [0, 1], [0, 1, 5], one_in=3)
def test_same_messages(wire, case, way, result_format, rows):
    client = wire()
    setup, raises = QUERIES[case]
    client.query(setup)
    query = f"SELECT * FROM t WHERE i > {5 - rows} ORDER BY i"
    client.query("SET pg_arrow_cache.enabled = off")
    expected = way(client, query, result_format)
    client.query("SET pg_arrow_cache.enabled = on")
    assert way(client, query, result_format) == expected

    client.query(query)
    client.query(query)
    assert client.status() == "HIT"
    hits = "SELECT sum(hits) FROM arrow_cache.entries"
    before = int(client.value(hits))
    assert way(client, query, result_format) == expected
    assert int(client.value(hits)) == before + 1

    binary = result_format == 1 and way is not simple
    if binary and raises and rows > 0:
        assert next(error_fields(message)["C"] for message in expected if message.type == "E") == "42883"
    else:
        assert "E" not in types(expected) and len(data_rows(expected)) == rows
