"""Records that a query writes as ROW(…). Each session numbers their types as it meets them; an answer is the same for all."""

import random

import pytest

from support.exports import by_fetch, read
from support.fidelity import BINARY, TEXT, check_hit, check_store_and_hits, executed, outcome

KINDS = {
    "i": "int4", "s": "text", "n": "numeric(8,2)", "d": "date", "z": "timestamptz", "f": "float8", "a": "int4[]", "m": "mood", "p": "pair",
    "j": "jsonb", "x": "bytea", "c": "char(5)", "r": "int4range", "e": "varchar(9)", "l": "mood[]", "b": "bool", "o": "label",
}
VALUES = """
    (1, 'one, "two"', 1.5, '2024-02-29', '2024-01-01 12:00+00', 0.1, '{1,NULL,3}', 'ok', '(1,"a b")', '{"a":[1]}', '\\x00ff', 'ab', '[1,5)',
     '', '{sad,ok}', true, 'l'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (-7, repeat('x', 3000), 'NaN', 'infinity', '-infinity', '-Infinity', '[2:3]={4,5}', 'sad', '(,)', 'null', '', '', 'empty',
     '()', '{}', false, '')"""


@pytest.fixture
def table(session):
    session.execute(f"""
        CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (a int, b text); CREATE DOMAIN label AS text;
        CREATE TABLE t ({", ".join(f"{name} {kind}" for name, kind in KINDS.items())});
        INSERT INTO t VALUES {VALUES}""")


@pytest.fixture
def reader(other):
    """A session that has met other types before."""
    for number in range(5):
        other.execute(f"SELECT ROW({', '.join(['1'] * (number + 3))}), ROW('{number}'::text, {number})")
    return other


def test_all_types(session, reader, table):
    check_store_and_hits(session, reader, f"SELECT ROW({', '.join(KINDS)}) AS r FROM t")
    check_store_and_hits(session, reader, "SELECT (i, s), ROW(), ROW(NULL), ROW('a', 1), ROW(n), i, ROW(t), ROW(t.*) FROM t ORDER BY i")


def test_random_records(session, reader, table):
    rng = random.Random(4)
    for _ in range(25):
        records = [f"ROW({', '.join(rng.choices([*KINDS, 'i + 1', 's || 1', 'NULL', '7', 't'], k=rng.randint(0, 6)))})"
                   for _ in range(rng.randint(1, 3))]
        distinct = rng.choice(["", "WHERE i IS NOT NULL", "ORDER BY i", "LIMIT 2"])
        check_store_and_hits(session, reader, f"SELECT {', '.join(records)} FROM t {distinct}")


def test_the_writers_plan_is_parallel(session, reader, table):
    """A worker numbers the types that it makes, too."""
    session.execute("CREATE TABLE wide AS SELECT g AS a, g::text AS b FROM generate_series(1, 20000) g; ANALYZE wide")
    for setting in ("parallel_setup_cost = 0", "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0", "force_parallel_mode = on"):
        if setting.startswith("force") and session.info.server_version >= 160000:
            setting = "debug_parallel_query = on"
        session.execute(f"SET {setting}")
    check_store_and_hits(session, reader, "SELECT ROW(a, b) FROM wide WHERE a % 100 = 0", formats=(TEXT,))


def test_what_they_are_made_of_changes(session, reader, table):
    query = "SELECT ROW(m, p, l) FROM t"
    for change in ("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'", "ALTER TYPE pair ADD ATTRIBUTE c int", "ALTER TYPE pair RENAME TO pairs"):
        check_store_and_hits(session, reader, query)
        session.execute(change)
        got = executed(reader, query, TEXT)
        reader.rows(query)
        assert outcome(reader) == ("STALE", None), change
        check_hit(reader, query, got)
    session.execute("ALTER TABLE t ALTER i TYPE int8")
    check_store_and_hits(session, reader, "SELECT ROW(i, m) FROM t")


def test_a_cursor_goes_both_ways(session, reader, table):
    query = "SELECT ROW(i, s, n) AS r, i FROM t ORDER BY i"
    session.rows(query)
    with reader.transaction():
        reader.execute(f"DECLARE c SCROLL CURSOR FOR {query}")
        forward = reader.rows("FETCH ALL FROM c")
        backward = reader.rows("FETCH BACKWARD ALL FROM c")
    assert forward == backward[::-1] == reader.uncached(query)


def test_as_arrow(session, reader, table):
    query = "SELECT ROW(i, s) AS r, ARRAY[i] AS a FROM t"
    expected = [{"r": text, "a": a} for text, a in session.uncached("SELECT ROW(i, s)::text, ARRAY[i] FROM t")]
    assert read(by_fetch(session, query)).to_pylist() == expected
    assert outcome(session) == ("MISS", None)
    assert read(by_fetch(reader, query)).to_pylist() == expected
    assert outcome(reader) == ("HIT", None)
    check_hit(reader, query, executed(reader, query, BINARY), BINARY)


def test_hits_are_verified(session, reader, table):
    query = "SELECT ROW(i, s, m, p), ROW(n, f, a) FROM t ORDER BY i"
    session.rows(query)
    reader.execute("SET pg_arrow_cache.verify_sample_rate = 1")
    count = "SELECT verify_checks, verify_mismatches FROM arrow_cache.stats"
    before = reader.rows(count)[0]
    reader.rows(query)
    assert outcome(reader) == ("HIT", None)
    after = reader.rows(count)[0]
    assert (after[0] - before[0], after[1] - before[1]) == (1, 0)


def test_the_planner_computes_it(session, reader, table):
    """One of constants is a constant of the plan, with the number of this session."""
    check_store_and_hits(session, reader, "SELECT ROW(1, 'x'::text, NULL::mood) FROM t")
    for client in (session, reader):
        client.execute("PREPARE p AS SELECT ROW(1::int2, 2) FROM t; SET plan_cache_mode = force_generic_plan")
        client.rows("EXECUTE p")
    assert outcome(reader) == ("HIT", None)


@pytest.mark.parametrize("query", [
    "SELECT ROW(i, ROW(s)) FROM t",
    "SELECT ROW(ARRAY[ROW(i)]) FROM t",
    "SELECT ARRAY[ROW(i)] FROM t",
    "SELECT CASE WHEN i > 0 THEN ROW(i) ELSE ROW(s) END FROM t",
    "SELECT u FROM (SELECT i, s FROM t OFFSET 0) u",
    "SELECT r FROM (SELECT ROW(i, s) AS r FROM t) u",
    "SELECT ROW(i) FROM t UNION ALL SELECT ROW(i) FROM t",
    "SELECT jsonb_each(j) FROM t WHERE jsonb_typeof(j) = 'object'",
])
def test_what_is_refused(session, table, query):
    session.rows(query)
    session.rows(query)
    assert outcome(session) == ("BYPASS", "record_type")


def test_what_is_refused_is_exported(session, table):
    assert read(by_fetch(session, "SELECT ROW(i, ROW(b)) AS r FROM t WHERE i = 1")).to_pylist() == [{"r": '(1,"(t)")'}]


def test_no_token_for_what_is_printed_later(session, table):
    assert session.rows("SELECT arrow_cache.etag('SELECT ROW(i) FROM t'), arrow_cache.etag('SELECT i FROM t') IS NULL") == [(None, False)]
