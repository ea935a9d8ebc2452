"""Expressions that PostgreSQL compiles: what is stored of them, combined of parts or computed beside the clock is what executing gives. Elsewhere
in this suite the compiler is off."""

import pytest

from support.fidelity import check_store_and_hits

COMPILED = "-c jit=on -c jit_above_cost=0 -c jit_inline_above_cost=0 -c jit_optimize_above_cost=0"
SETUP = """
    CREATE TABLE t AS SELECT g AS id, g / 7.0 AS n, 'x' || g AS label, timestamptz '2024-01-01' + g * interval '5 hours' AS at, ARRAY[g, NULL] AS list
        FROM generate_series(1, 60) g;
    CREATE TABLE f (n int, k int) PARTITION BY RANGE (n);
    CREATE TABLE f0 PARTITION OF f FOR VALUES FROM (0) TO (30);
    CREATE TABLE f1 PARTITION OF f FOR VALUES FROM (30) TO (60);
    INSERT INTO f SELECT g, g % 5 FROM generate_series(0, 59) g"""
QUERIES = [
    "SELECT id + 1, n * 2, label || 'y', at - interval '1 hour', list FROM t WHERE id > 3 ORDER BY id",
    "SELECT id % 4, count(*) FILTER (WHERE n > 3), sum(n), max(label), date_trunc('day', max(at)) FROM t GROUP BY 1 HAVING sum(n) > 1 ORDER BY 1",
    "SELECT a.id, CASE WHEN a.n > b.n THEN a.label ELSE upper(b.label) END, a.list || b.id FROM t a JOIN t b ON b.id = a.id + 1 ORDER BY 1",
    "SELECT k, count(*), sum(n) FROM f WHERE n > 3 GROUP BY k ORDER BY k",
]


@pytest.mark.parametrize("options", ["", "-c pg_arrow_cache.debug_force_fragments=on"], ids=["whole", "of parts"])
@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_execution(connect, query, options):
    writer, reader = connect(f"{COMPILED} {options}"), connect(f"{COMPILED} {options}")
    if not writer.rows("SELECT pg_jit_available()")[0][0]:
        pytest.skip("this server cannot compile")
    writer.execute(SETUP)
    assert "JIT:" in str(writer.rows(f"/*+ no_cache */ EXPLAIN ANALYZE {query}"))
    check_store_and_hits(writer, reader, query)


def test_a_clock_beside_a_stored_answer(connect):
    session = connect(COMPILED)
    session.execute(SETUP)
    query = "SELECT id, now() - at AS age FROM t ORDER BY id"
    for status in ("MISS", "HIT", "HIT"):
        with session.transaction():
            rows = session.rows(query)
            assert session.status() == status
            assert rows == session.uncached(query)
