"""Statements that differ in one respect are two questions: the answer to one is not given for the other. Statements with other texts
that ask the same are one question."""

import itertools

import pytest
from support.fidelity import FORMATS, answer, check_outcome, check_same, executed, failed

SETUP = """
    CREATE TYPE pair AS (a int, b text);
    CREATE TABLE t AS SELECT g AS id, g % 5 AS k, CASE WHEN g % 7 <> 0 THEN g % 3 END AS n, 'v' || g % 4 AS v,
        (g * 37 % 11)::numeric AS m, ARRAY[g % 4, g % 6] AS l, chr(65 + g % 2 * 32 + g % 5) AS c FROM generate_series(1, 40) g;
    CREATE TABLE u AS SELECT g AS id, g % 4 AS k, g AS n FROM generate_series(1, 12) g;
    CREATE VIEW w AS SELECT id, k FROM t;
    CREATE TABLE p (id int, k int) PARTITION BY LIST (k);
    CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
    INSERT INTO p SELECT g, g % 2 + 1 FROM generate_series(1, 10) g;
    CREATE TABLE parent (id int); CREATE TABLE child () INHERITS (parent);
    INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2);
    CREATE FUNCTION plus(a int, b int DEFAULT 1) RETURNS int LANGUAGE sql IMMUTABLE RETURN a + b;
    CREATE FUNCTION minus(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE RETURN a - b"""

WINDOW = "SELECT id, sum(m) OVER (ORDER BY k {}) FROM t ORDER BY id"
FRAMES = ["", "ROWS UNBOUNDED PRECEDING", "ROWS 1 PRECEDING", "ROWS 2 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE 1 PRECEDING",
          "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING", "GROUPS BETWEEN 1 PRECEDING AND 0 FOLLOWING",
          "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW", "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP",
          "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES"]
SEARCH = """WITH RECURSIVE s(id, k) AS (SELECT id, k FROM u WHERE id = 1 UNION ALL SELECT u.id, u.k FROM u, s WHERE u.id IN (2 * s.id, 2 * s.id + 1))
    SEARCH {} FIRST BY id SET place SELECT id FROM s ORDER BY place"""
CYCLE = """WITH RECURSIVE s(id) AS (SELECT 1 UNION ALL SELECT (s.id + {}) % 5 FROM s, u WHERE u.id = 1)
    CYCLE id SET mark TO '{}' DEFAULT '{}' USING way SELECT id, mark FROM s"""

ALIKE = {
    "names": ["SELECT id AS a FROM t ORDER BY id", "SELECT id AS b FROM t ORDER BY id", "SELECT id FROM t ORDER BY id"],
    "origins": ["SELECT id FROM u ORDER BY id", "SELECT id + 0 AS id FROM u ORDER BY id", "SELECT n AS id FROM u ORDER BY id"],
    "junk": ["SELECT id, k FROM t ORDER BY k, id", "SELECT id FROM t ORDER BY k, id"],
    "constants": [f"SELECT id FROM t WHERE k = {k} ORDER BY id" for k in (0, 1, "NULL", "1.5", "'2'")],
    "wide constants": [f"SELECT id FROM t WHERE {what} ORDER BY id" for what in (
        "id > '2'::int8", "id > '4294967298'::int8", "id < '1.5'::float8", "id < '2.5'::float8", "id < '4.5'::float8")],
    "types": ["SELECT 1 AS x FROM u", "SELECT 1::int8 AS x FROM u", "SELECT 1::numeric AS x FROM u", "SELECT '1' AS x FROM u",
              "SELECT '1'::varchar AS x FROM u", "SELECT '1'::char(3) AS x FROM u", "SELECT '1'::char(4) AS x FROM u", "SELECT true AS x FROM u"],
    "modifiers": ["SELECT m::numeric(5, 1) AS x FROM t ORDER BY id", "SELECT m::numeric(5, 2) AS x FROM t ORDER BY id"],
    "orders": [f"SELECT id FROM t ORDER BY n {how}, id" for how in ("", "DESC", "NULLS FIRST", "DESC NULLS LAST")] + [
               "SELECT id FROM t ORDER BY id, n", "SELECT id FROM t ORDER BY id DESC"],
    "limits": [f"SELECT k FROM t ORDER BY k {limit}" for limit in (
        "LIMIT 3", "LIMIT 4", "OFFSET 3", "LIMIT 3 OFFSET 3", "FETCH FIRST 3 ROWS WITH TIES", "FETCH FIRST 12 ROWS WITH TIES")],
    "distinct": ["SELECT k, n FROM t ORDER BY k, n, id", "SELECT DISTINCT k, n FROM t ORDER BY k, n", "SELECT DISTINCT ON (k) k, n FROM t ORDER BY k, n"],
    "groups": [f"SELECT k, n, count(*) FROM t GROUP BY {by} ORDER BY k, n, 3" for by in (
        "k, n", "ROLLUP (k, n)", "ROLLUP (n, k)", "CUBE (k, n)", "GROUPING SETS (k, n)", "GROUPING SETS ((k, n), ())", "GROUPING SETS (k, n, ())")] + [
        f"SELECT k, n, count(*) FROM t GROUP BY {how} ROLLUP (k, n), ROLLUP (k) ORDER BY k, n, 3" for how in ("ALL", "DISTINCT")],
    "grouping": [f"SELECT k, n, GROUPING({of}) FROM t GROUP BY ROLLUP (k, n) ORDER BY k, n, 3" for of in ("k", "n", "k, n", "n, k")],
    "having": [f"SELECT k FROM t GROUP BY k HAVING {having} ORDER BY k" for having in ("count(*) > 7", "count(n) > 7", "sum(m) > 40", "min(m) > 1")],
    "aggregates": [f"SELECT k, {what} AS x FROM t GROUP BY k ORDER BY k" for what in (
        "count(*)", "count(n)", "count(DISTINCT n)", "count(n) FILTER (WHERE id > 9)", "sum(n)", "sum(DISTINCT n)", "max(n)", "min(n)",
        "string_agg(v, ',' ORDER BY id)", "string_agg(v, ',' ORDER BY id DESC)", "string_agg(v, ';' ORDER BY id)",
        "string_agg(DISTINCT v, ',')", "percentile_disc(0.5) WITHIN GROUP (ORDER BY m)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY m DESC)",
        "percentile_disc(0.9) WITHIN GROUP (ORDER BY m)", "mode() WITHIN GROUP (ORDER BY m)")],
    "frames": [WINDOW.format(frame) for frame in FRAMES],
    "windows": [f"SELECT id, {call} FROM t WINDOW a AS (ORDER BY k, id), b AS (PARTITION BY k ORDER BY id) ORDER BY id" for call in (
        "rank() OVER a", "rank() OVER b", "row_number() OVER (ORDER BY id DESC)", "lag(id) OVER a", "lead(id) OVER a", "lag(id, 2) OVER a",
        "first_value(v) OVER b", "sum(m) OVER b", "sum(m) FILTER (WHERE k > 2) OVER b", "count(*) OVER b", "count(n) OVER b")],
    "joins": [f"SELECT t.id, u.id FROM t {join} u ON t.id = u.n + 5 ORDER BY 1, 2" for join in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")] + [
              "SELECT t.id, u.id FROM t LEFT JOIN u ON t.id = u.n + 5 AND t.k = 1 ORDER BY 1, 2",
              "SELECT t.id, u.id FROM t LEFT JOIN u ON t.id = u.n + 5 WHERE t.k = 1 ORDER BY 1, 2"],
    "using": ["SELECT id FROM t FULL JOIN u USING (id) ORDER BY 1", "SELECT t.id FROM t FULL JOIN u USING (id) ORDER BY 1",
              "SELECT u.id FROM t FULL JOIN u USING (id) ORDER BY 1", "SELECT id FROM t JOIN u USING (id, k) ORDER BY 1"],
    "sets": [f"SELECT k FROM t {how} SELECT k FROM u ORDER BY 1" for how in (
        "UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")] + [
        "SELECT k FROM u EXCEPT SELECT k FROM t ORDER BY 1", "SELECT k FROM u EXCEPT ALL SELECT k FROM t ORDER BY 1",
        "SELECT k FROM t UNION ALL SELECT k FROM u UNION SELECT n FROM u ORDER BY 1", "SELECT k FROM t UNION ALL (SELECT k FROM u UNION SELECT n FROM u) ORDER BY 1"],
    "sub-queries": [f"SELECT id FROM u WHERE {where} ORDER BY id" for where in (
        "n IN (SELECT k FROM t)", "n NOT IN (SELECT k FROM t)", "n > ALL (SELECT k FROM t)", "n > ANY (SELECT k FROM t)", "n < ANY (SELECT k FROM t)",
        "EXISTS (SELECT FROM t WHERE t.k = u.n)", "EXISTS (SELECT FROM t WHERE t.n = u.n)", "n = (SELECT max(k) FROM t)",
        "(n, k) IN (SELECT k, n FROM t)", "(n, k) < (3, 2)", "(n, k) <= (3, 2)", "(k, n) < (3, 2)", "(n, k) > (3, 2)")],
    "arrays": [f"SELECT id FROM t WHERE {where} ORDER BY id" for where in (
        "k = ANY (ARRAY[1, 2])", "k = ALL (ARRAY[1, 2])", "k <> ALL (ARRAY[1, 2])", "k <> ANY (ARRAY[1, 2])", "k = ANY (l)", "k IN (1, 3)", "k NOT IN (1, 3)")] + [
        f"SELECT id, {what} AS x FROM t ORDER BY id" for what in ("l[1]", "l[2]", "l[1:1]", "l[:1]", "l[1:]", "l[2:]", "l[:]", "array_length(l, 1)", "ARRAY(SELECT k)")],
    "logic": [f"SELECT id FROM t WHERE {where} ORDER BY id" for where in (
        "k = 1 AND n = 1", "k = 1 OR n = 1", "NOT (k = 1 AND n = 1)", "NOT (k = 1 OR n = 1)", "n IS NULL", "n IS NOT NULL", "(n = 1) IS TRUE", "(n = 1) IS NOT TRUE",
        "(n = 1) IS FALSE", "(n = 1) IS UNKNOWN", "n IS DISTINCT FROM 1", "n IS NOT DISTINCT FROM 1", "n = 1", "k = 1", "n < 1", "n <= 1")] + [
        "SELECT id FROM t WHERE ROW(n, k) IS NULL ORDER BY id", "SELECT id FROM t WHERE ROW(n, k) IS NOT NULL ORDER BY id"],
    "values": [f"SELECT id, {what} AS x FROM t ORDER BY id" for what in (
        "CASE WHEN k = 1 THEN 'a' ELSE 'b' END", "CASE WHEN k = 1 THEN 'a' END", "CASE WHEN k = 1 THEN 'a' WHEN k = 2 THEN 'b' END",
        "CASE k WHEN 1 THEN 'a' WHEN 3 THEN 'b' END", "CASE n WHEN 1 THEN 'a' WHEN 3 THEN 'b' END", "greatest(k, n)", "least(k, n)", "coalesce(n, k)",
        "coalesce(n, 0)", "nullif(k, n)", "nullif(n, k)", "k + n", "k - n", "n - k", "-k", "plus(k)", "plus(k, 2)", "plus(a => k, b => n)", "plus(b => k, a => 7)",
        "minus(a => k, b => 7)", "minus(b => k, a => 7)", "minus(7, k)", "ROW(k, n)::text", "ROW(n, k)::text", "(ROW(k, v)::pair).a::text", "(ROW(k, v)::pair).b",
        "concat_ws(',', k, n)", "concat_ws(',', VARIADIC ARRAY[k, n])", "upper(v)", "lower(v)", "length(v)", "v || k", "substr(v, 2)", "substr(v, 1)",
        "v COLLATE \"C\" < 'v2'", "v < 'v2' COLLATE \"POSIX\" AND k = 1", "l::text", "l::numeric[]", "m::int", "m::float8", "current_user", "current_setting('DateStyle')")],
    "collations": ["SELECT c FROM t ORDER BY c COLLATE \"C\", id", "SELECT c FROM t ORDER BY lower(c) COLLATE \"C\", id", "SELECT c FROM t ORDER BY c COLLATE \"en-x-icu\", id"],
    "rows": ["SELECT row_to_json(s) FROM (SELECT id, k FROM u) s ORDER BY id", "SELECT row_to_json(s) FROM (SELECT id, k FROM u) s(a, b) ORDER BY a",
             "SELECT row_to_json(s) FROM (SELECT id AS x, k AS y FROM u) s ORDER BY x", "SELECT row_to_json(u) FROM u ORDER BY id",
             "SELECT row_to_json(u) FROM u AS u(x, y, z) ORDER BY x", "SELECT row_to_json(w) FROM w ORDER BY id", "SELECT row_to_json(w) FROM w AS w(x, y) ORDER BY x",
             "SELECT row_to_json(ROW(id, k)) FROM u ORDER BY id", "SELECT row_to_json(s) FROM (VALUES (1, 2), (3, 4)) s(a, b), parent",
             "SELECT row_to_json(s) FROM (VALUES (1, 2), (3, 4)) s(a, c), parent", "WITH s AS (SELECT id FROM u) SELECT row_to_json(s) FROM s ORDER BY id",
             "WITH s(x) AS (SELECT id FROM u) SELECT row_to_json(s) FROM s ORDER BY x"],
    "functions in FROM": [f"SELECT * FROM u, {function} ORDER BY 1, 2, 3, 4" for function in (
        "generate_series(1, 3) g", "generate_series(1, 3) WITH ORDINALITY g", "generate_series(1, u.id) g", "unnest(ARRAY[3, 1, 2]) g",
        "unnest(ARRAY[3, 1, 2]) WITH ORDINALITY g", "ROWS FROM (generate_series(1, 2), generate_series(1, 3)) g", "ROWS FROM (generate_series(1, 3), generate_series(1, 2)) g",
        "json_to_recordset('[{\"a\": 1, \"b\": \"2\"}]') g(a int, b text)", "json_to_recordset('[{\"a\": 1, \"b\": \"2\"}]') g(b int, a text)",
        "json_to_recordset('[{\"a\": 1, \"b\": \"2\"}]') g(a int, b int)", "json_to_recordset('[{\"a\": 1, \"b\": \"2\"}]') g(a int, b char(3))")],
    "inheritance": ["SELECT id FROM parent ORDER BY id", "SELECT id FROM ONLY parent ORDER BY id", "SELECT id FROM child"],
    "partitions": ["SELECT id, k FROM p ORDER BY id", "SELECT id, k FROM p1 ORDER BY id", "SELECT id, k FROM p WHERE k = 1 AND id > 5 ORDER BY id",
                   "SELECT id, k FROM p WHERE k = 2 AND id > 5 ORDER BY id"],
    "WITH": [SEARCH.format("DEPTH"), SEARCH.format("BREADTH")] + [CYCLE.format(*marks) for marks in ((1, "y", "n"), (2, "y", "n"), (1, "n", "y"), (1, "yes", "n"))] + [
        "WITH a AS (SELECT id FROM u), b AS (SELECT k AS id FROM t) SELECT id FROM a ORDER BY 1", "WITH a AS (SELECT id FROM u), b AS (SELECT k AS id FROM t) SELECT id FROM b ORDER BY 1",
        "WITH RECURSIVE r(n) AS (SELECT 1 FROM parent UNION SELECT n % 3 + 1 FROM r) SELECT n FROM r ORDER BY n",
        "WITH RECURSIVE r(n) AS (SELECT 1 FROM parent UNION ALL SELECT n + 1 FROM r WHERE n < 6) SELECT n FROM r ORDER BY n"],
    "lateral": ["SELECT u.id, s.n FROM u, LATERAL (SELECT n FROM t WHERE t.id = u.id) s ORDER BY 1", "SELECT u.id, s.n FROM u, LATERAL (SELECT n FROM t WHERE t.k = u.id) s ORDER BY 1, 2",
                "SELECT u.id, s.n FROM u LEFT JOIN LATERAL (SELECT n FROM t WHERE t.id = u.id * 7) s ON true ORDER BY 1"],
    "levels": ["SELECT id FROM u a WHERE EXISTS (SELECT FROM t b WHERE EXISTS (SELECT FROM u c WHERE c.n = a.n AND c.k = b.n)) ORDER BY id",
               "SELECT id FROM u a WHERE EXISTS (SELECT FROM t b WHERE EXISTS (SELECT FROM u c WHERE c.n = b.n AND c.k = a.n)) ORDER BY id",
               "SELECT id, (SELECT count(*) FROM t WHERE t.k = u.k) FROM u ORDER BY id", "SELECT id, (SELECT count(u.id) FROM child) FROM u GROUP BY id ORDER BY id"],
}


@pytest.mark.parametrize("kind", ALIKE)
def test_each_has_its_own_answer(session, kind):
    """The answers are those of execution, whichever of the statements were stored before."""
    session.execute(SETUP)
    queries = ALIKE[kind]
    expected = {query: [executed(session, query, form) for form in FORMATS] for query in queries}
    assert [query for query in queries if failed(expected[query][0])] == []
    for order in (queries, queries[::-1]):
        session.execute("SELECT arrow_cache.flush()")
        for _, query in itertools.product(range(3), order):
            for form, wanted in zip(FORMATS, expected[query], strict=True):
                check_same(wanted, answer(session, query, form))


SAME = [
    ["SELECT id FROM u WHERE n > 3 ORDER BY id", "select id from u where n > 3 order by id;", "SELECT  id\nFROM u -- all\nWHERE n>3 /* or not */ ORDER BY 1",
     "SELECT u.id FROM u AS u WHERE u.n > 3 ORDER BY u.id ASC", "SELECT x.id FROM u x WHERE (x.n > 3) ORDER BY x.id", "SELECT id FROM u WHERE n OPERATOR(pg_catalog.>) 3 ORDER BY id"],
    ["SELECT '1'::int AS x, count(*) FROM t", "SELECT int '1' AS x, count(*) FROM t", "SELECT CAST('1' AS int4) AS x, count(*) FROM t"],
    ["SELECT t.v FROM t JOIN u ON t.id = u.id ORDER BY t.id", "SELECT t.v FROM t INNER JOIN u ON (t.id = u.id) ORDER BY t.id"],
]


@pytest.mark.parametrize("texts", SAME)
def test_other_texts_of_one_question_share_an_answer(session, texts):
    session.execute(SETUP)
    first, *others = texts
    expected = executed(session, first, FORMATS[0])
    answer(session, first, FORMATS[0])
    for text in others:
        check_same(expected, answer(session, text, FORMATS[0]))
        check_outcome(session, "HIT")
