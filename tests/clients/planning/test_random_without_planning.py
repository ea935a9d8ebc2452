"""Random statements in two sessions with the cache and in one without, while random changes happen between them: the
three answers agree, errors included. There are few constants, so that most statements repeat and are no longer
planned."""

import os

import pytest

from support import random_sessions

SEED = int(os.environ.get("RANDOM_SEED", 20261122))
STEPS = int(os.environ.get("RANDOM_STEPS", 3000))

SETUP = """
CREATE TABLE t (a int, b text, d date);
INSERT INTO t SELECT g % 7, 'row ' || g, date '2024-01-01' + g FROM generate_series(1, 40) g;
CREATE TABLE u (a int, n numeric, f float8);
INSERT INTO u SELECT g % 5, g / 4.0, g / 3.0::float8 FROM generate_series(1, 30) g;
CREATE TABLE p (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (2);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (2) TO (4);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (4) TO (8);
INSERT INTO p SELECT g % 8, 'part ' || g FROM generate_series(1, 40) g;
CREATE TABLE parent (a int, b text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT g % 6, 'parent ' || g FROM generate_series(1, 10) g;
INSERT INTO child SELECT g % 6, 'child ' || g FROM generate_series(1, 10) g;
CREATE TABLE fenced AS SELECT a, b, (ARRAY['{role1}', '{role2}'])[a % 2 + 1] AS who FROM t;
ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON fenced USING (who = CURRENT_USER);
CREATE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 2;
CREATE VIEW invoker WITH (security_invoker) AS SELECT a, n FROM u;
CREATE VIEW barrier WITH (security_barrier) AS SELECT a, b FROM fenced;
GRANT SELECT ON t, p, parent, fenced, seen, barrier, invoker TO {role1}, {role2};
GRANT SELECT ON u TO {role1};
GRANT INSERT ON t TO {role1}, {role2};
CREATE SCHEMA {front};
GRANT USAGE ON SCHEMA {front}, {schema} TO {role1}, {role2};
"""

# {0} and {1} stand for a constant or a parameter. Rows that may come in any order are compared as a set.
QUERIES = [
    "SELECT b FROM t WHERE a = {0} ORDER BY b",
    "SELECT * FROM t WHERE a = {0} AND b <> {1}::text ORDER BY b",
    "SELECT a AS x, count(*) AS c FROM t WHERE a > {0} GROUP BY a ORDER BY a",
    "SELECT a AS y, count(*) AS c FROM t WHERE a > {0} GROUP BY a ORDER BY a",
    "SELECT d::text, b FROM t WHERE a = {0} AND d > '02/01/2024' ORDER BY b",
    "SELECT sum(n), max(f), avg(f) FROM u WHERE a <> {0}",
    "SELECT t.b, u.f FROM t JOIN u ON t.a = u.a AND u.a = {0} ORDER BY 1, 2 LIMIT 5",
    "SELECT b FROM p WHERE a = {0} ORDER BY b",
    "SELECT a, b FROM p WHERE a BETWEEN {0} AND {0} + 2",
    "SELECT count(*) FROM p",
    "SELECT count(*) FROM p1 WHERE a >= {0}",
    "SELECT * FROM parent WHERE a = {0} ORDER BY 1, 2",
    "SELECT * FROM seen WHERE a = {0} ORDER BY 1, 2, 3",
    "SELECT count(*), min(n) FROM invoker WHERE a >= {0}",
    "SELECT count(*) FROM barrier WHERE a >= {0}",
    "SELECT a, b FROM fenced WHERE a = {0} ORDER BY b",
    "SELECT a FROM t WHERE a = {0} UNION SELECT a FROM p WHERE a > {0} ORDER BY 1",
    "WITH w AS (SELECT a, b FROM t WHERE a < {0}) SELECT w.a, x.a FROM w, u x WHERE w.a = x.a ORDER BY 1, 2 LIMIT 7",
    "SELECT b, CURRENT_USER FROM t WHERE a = {0} AND EXISTS (SELECT FROM p WHERE p.a = t.a) ORDER BY b",
    "SELECT {1}::text, {0} + a, NULLIF(a, {0}) FROM t WHERE a IN ({0}, 3) ORDER BY b",
    "SELECT array_agg(b ORDER BY b) FROM t WHERE a IS NOT DISTINCT FROM {0}",
    "SELECT 12 / (a - {0}) FROM t WHERE a < 4 ORDER BY b",
    "SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) FROM t WHERE a >= {0} ORDER BY b",
    "SELECT b::varchar(5), a::text || {1} FROM t WHERE a = {0} ORDER BY b",
]
CONSTANTS = ["0", "1", "2", "3", "5", "NULL"]
TEXTS = ["row 7", "", "it's"]

# What the writer does while no transaction is open. Each may fail, as when something is there already.
CHANGES = [
    "UPDATE t SET b = b || '.' WHERE a = {0}", "INSERT INTO t VALUES ({0}, 'new', '2024-03-01')",
    "DELETE FROM t WHERE b LIKE 'new%'", "UPDATE u SET n = n + 1 WHERE a = {0}", "UPDATE p SET b = b || '!' WHERE a = {0}",
    "UPDATE p SET a = 7 - a", "INSERT INTO child VALUES ({0}, 'new')", "DELETE FROM parent WHERE b = 'new'",
    "UPDATE fenced SET a = a + 1 WHERE a = {0}; UPDATE fenced SET a = 0 WHERE a > 6",
    "BEGIN; TRUNCATE p1; INSERT INTO p1 VALUES (0, 'zero'), (1, 'one'); COMMIT",
    "BEGIN; UPDATE t SET b = 'undone'; ROLLBACK",
]
DEFINITIONS = [
    "ALTER TABLE t ADD COLUMN extra int DEFAULT 7", "ALTER TABLE t DROP COLUMN extra", "CREATE INDEX t_a ON t (a)", "DROP INDEX t_a",
    "ALTER TABLE u ALTER a TYPE bigint", "ALTER TABLE parent RENAME b TO c", "ALTER TABLE parent RENAME c TO b",
    "CREATE OR REPLACE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 4",
    "CREATE OR REPLACE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 2",
    "ALTER TABLE p DETACH PARTITION p3", "ALTER TABLE p DETACH PARTITION p3 CONCURRENTLY",
    "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (4) TO (8)", "ALTER TABLE child NO INHERIT parent",
    "ALTER TABLE child INHERIT parent",
    "CREATE TABLE {front}.t AS SELECT 1 AS a, 'front' AS b, '2024-05-05'::date AS d; GRANT SELECT ON {front}.t TO PUBLIC",
    "DROP TABLE {front}.t", "ALTER TABLE fenced DISABLE ROW LEVEL SECURITY", "ALTER TABLE fenced ENABLE ROW LEVEL SECURITY",
    "ALTER POLICY own ON fenced USING (who <> CURRENT_USER)", "ALTER POLICY own ON fenced USING (who = CURRENT_USER)",
    "GRANT SELECT ON u TO {role2}", "REVOKE SELECT ON u FROM {role2}", "REVOKE SELECT ON t FROM {role1}", "GRANT SELECT ON t TO {role1}",
    "ALTER VIEW invoker SET (security_invoker = false)", "ALTER VIEW invoker SET (security_invoker = true)",
    "ALTER VIEW barrier RESET (security_barrier)", "ALTER VIEW barrier SET (security_barrier)",
    "ALTER VIEW barrier OWNER TO {role1}", "ALTER VIEW barrier OWNER TO CURRENT_USER", "ANALYZE",
]
# What all sessions do alike.
SETTINGS = [
    "SET ROLE {role1}", "SET ROLE {role2}", "RESET ROLE", "SET search_path = {front}, {schema}", "SET search_path = {schema}",
    "SET datestyle = 'ISO, DMY'", "SET datestyle = 'German'", "SET datestyle = 'ISO, MDY'", "SET extra_float_digits = 0",
    "SET extra_float_digits = 1", "SET plan_cache_mode = force_custom_plan", "SET plan_cache_mode = force_generic_plan",
    "SET plan_cache_mode = auto", "SET enable_seqscan = off", "SET enable_seqscan = on", "SET row_security = off", "SET row_security = on",
    "CREATE TEMPORARY TABLE u AS SELECT 1 AS a, 2.5 AS n, 0.5::float8 AS f", "DISCARD TEMP",
]
OWN_WRITES = ["INSERT INTO {schema}.t VALUES (1, 'own', '2024-01-01')"]
WORLD = random_sessions.World(SETUP, QUERIES, CONSTANTS, TEXTS, CHANGES, DEFINITIONS, SETTINGS, OWN_WRITES)


@pytest.fixture
def world(connect):
    yield
    random_sessions.remove(connect)


def test_answers_agree(connect, world):
    run = random_sessions.Run(connect, WORLD, SEED)
    print(f"seed {SEED}")
    print(run.steps(STEPS))
    # Enough of it was what the test is about.
    assert min(watched.placeholders for watched in run.cached) > STEPS / 20
    assert run.answers - run.failures > STEPS / 3
