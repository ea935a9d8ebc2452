"""One world of random runs: tables of all kinds, views, functions and roles, what is asked of them, and what changes them. {schema}, {role1} and {role2}
stand for names."""

SETUP = """
CREATE TABLE t (a int, b text, d date DEFAULT '2024-02-02');
INSERT INTO t SELECT g % 5, 'row ' || g, date '2024-01-01' + g FROM generate_series(1, 30) g;
CREATE TABLE t2 (a int, b text, d date);
INSERT INTO t2 SELECT g % 5, 'two ' || g, date '2024-01-01' + g FROM generate_series(1, 30) g;
CREATE TABLE u (a int, n numeric, f float8, secret text);
INSERT INTO u SELECT g % 5, g / 4.0, g / 3.0::float8, 's' || g FROM generate_series(1, 20) g;
CREATE TABLE p (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (2);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (2) TO (4);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (4) TO (8);
INSERT INTO p SELECT g % 8, 'part ' || g FROM generate_series(1, 32) g;
CREATE TABLE parent (a int, b text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT g % 5, 'parent ' || g FROM generate_series(1, 6) g;
INSERT INTO child SELECT g % 5, 'child ' || g FROM generate_series(1, 6) g;
CREATE TABLE fenced AS SELECT a, b, (ARRAY['{role1}', '{role2}'])[a % 2 + 1] AS who FROM t;
ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON fenced USING (who = CURRENT_USER);
CREATE POLICY few ON fenced AS RESTRICTIVE USING (a < (SELECT max(u.a) + 1 FROM {schema}.u));
CREATE TYPE mood AS ENUM ('calm', 'cross');
CREATE TYPE pair AS (x int, y text);
CREATE TABLE felt AS SELECT g AS a, (ARRAY['calm', 'cross'])[1 + g % 2]::mood AS m, (g, 'y')::pair AS two, now() - g * interval '1 day' AS at FROM generate_series(1, 9) g;
GRANT SELECT ON felt TO {role1}, {role2};
CREATE FUNCTION plus(a int, b int DEFAULT 1) RETURNS int LANGUAGE sql IMMUTABLE RETURN a + b;
CREATE FUNCTION kept(a int) RETURNS int LANGUAGE sql STABLE RETURN a * 2;
REVOKE EXECUTE ON FUNCTION kept FROM PUBLIC;
GRANT EXECUTE ON FUNCTION kept TO {role1};
CREATE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 2;
CREATE VIEW above AS SELECT a, count(*) AS c FROM seen GROUP BY a;
CREATE VIEW invoker WITH (security_invoker) AS SELECT a, n FROM u;
CREATE VIEW barrier WITH (security_barrier) AS SELECT a, b FROM fenced;
CREATE MATERIALIZED VIEW mat AS SELECT a, sum(n) AS s FROM u GROUP BY a;
GRANT SELECT ON t, t2, p, p1, parent, fenced, seen, above, barrier, invoker, mat TO {role1}, {role2};
GRANT SELECT (a, n, f) ON u TO {role1};
GRANT INSERT, UPDATE, DELETE ON t, p, parent TO {role1}, {role2};
GRANT USAGE, CREATE ON SCHEMA {schema} TO {role1}, {role2};
"""

# {0} stands for a number, {1} for a text. All rows come in one order.
QUERIES = [
    "SELECT b FROM t WHERE a = {0} ORDER BY b", "SELECT * FROM t WHERE a = {0} ORDER BY b", "SELECT t FROM t WHERE a = {0} ORDER BY b",
    "SELECT a AS x, count(*) FROM t WHERE a > {0} GROUP BY a ORDER BY a", "SELECT d::text, b FROM t WHERE a = {0} ORDER BY b",
    "SELECT sum(n) FROM u WHERE a <> {0}", "SELECT max(secret) FROM u WHERE a >= {0}", "SELECT t.b, u.n FROM t JOIN u ON t.a = u.a AND u.a = {0} ORDER BY 1, 2",
    "SELECT b FROM p WHERE a = {0} ORDER BY b", "SELECT a, b FROM p WHERE a >= {0} ORDER BY 1, 2", "SELECT count(*) FROM p", "SELECT count(*) FROM p1",
    "SELECT * FROM parent WHERE a = {0} ORDER BY 1, 2", "SELECT count(*) FROM ONLY parent WHERE a >= {0}", "SELECT * FROM seen WHERE a = {0} ORDER BY 1, 2, 3",
    "SELECT * FROM above WHERE a >= {0} ORDER BY 1", "SELECT count(*), min(n) FROM invoker WHERE a >= {0}", "SELECT count(*) FROM barrier WHERE a >= {0}",
    "SELECT a, b FROM fenced WHERE a = {0} ORDER BY b", "SELECT a, s FROM mat WHERE a >= {0} ORDER BY a",
    "SELECT a, plus(a, {0}), plus(a) FROM t WHERE a = {0} ORDER BY b", "SELECT kept(a) FROM t WHERE a >= {0} ORDER BY b",
    "SELECT a FROM t WHERE a = {0} UNION SELECT a FROM p WHERE a > {0} ORDER BY 1", "SELECT CASE WHEN {0} = 1 THEN (SELECT max(n) FROM u) ELSE 0 END FROM t ORDER BY b",
    "WITH w AS (SELECT a, b FROM t WHERE a < {0}) SELECT w.a, x.a FROM w, parent x WHERE w.a = x.a ORDER BY 1, 2",
    "SELECT b, CURRENT_USER FROM t WHERE a = {0} AND EXISTS (SELECT FROM p WHERE p.a = t.a) ORDER BY b",
    "SELECT a, m, m::text FROM felt WHERE a > {0} ORDER BY a", "SELECT a, two, (two).y FROM felt WHERE a > {0} ORDER BY a", "SELECT m, count(*) FROM felt WHERE a > {0} GROUP BY m ORDER BY m",
    "SELECT a, row_to_json(felt) ->> 'm' FROM felt WHERE a > {0} ORDER BY a", "SELECT b FROM t WHERE d < now() - make_interval(days => {0}) ORDER BY b",
    "SELECT a FROM felt WHERE at > now() - interval '100 hours' AND a > {0} ORDER BY a", "SELECT count(*) FROM t WHERE d > CURRENT_DATE - 200 * {0}",
    "SELECT a, CURRENT_DATE - DATE '2024-01-01' FROM t WHERE a = {0} ORDER BY b", "SELECT b, current_setting('app.tenant', true) FROM t WHERE a = {0} ORDER BY b",
    "SELECT a, sum(length(b)) FROM p GROUP BY a ORDER BY a", "SELECT date_trunc('month', d)::date::text, count(*) FROM t WHERE a >= {0} GROUP BY 1 ORDER BY 1",
    "SELECT row_to_json(p) FROM p WHERE a = {0} ORDER BY b", "SELECT (SELECT count(*) FROM t2), b FROM t WHERE a = {0} ORDER BY b",
    "SELECT {1}::text, {0} + a, NULLIF(a, {0}) FROM t WHERE a IN ({0}, 3) ORDER BY b", "SELECT * FROM t WHERE a = {0} AND b <> {1}::text ORDER BY b",
    "SELECT b::varchar(5), a::text || {1} FROM t WHERE a = {0} ORDER BY b", "SELECT d::text, b FROM t WHERE a = {0} AND d > '02/01/2024' ORDER BY b",
    "SELECT sum(n), max(f), avg(f) FROM u WHERE a <> {0}", "SELECT t.b, u.f FROM t JOIN u ON t.a = u.a AND u.a = {0} ORDER BY 1, 2 LIMIT 5",
    "SELECT a, b FROM p WHERE a BETWEEN {0} AND {0} + 2 ORDER BY 1, 2", "SELECT count(*) FROM p1 WHERE a >= {0}",
    "WITH w AS (SELECT a, b FROM t WHERE a < {0}) SELECT w.a, x.a FROM w, u x WHERE w.a = x.a ORDER BY 1, 2 LIMIT 7",
    "SELECT array_agg(b ORDER BY b) FROM t WHERE a IS NOT DISTINCT FROM {0}", "SELECT 12 / (a - {0}) FROM t WHERE a < 4 ORDER BY b",
    "SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) FROM t WHERE a >= {0} ORDER BY b",
    "SELECT a AS y, count(*) FROM t WHERE a > {0} GROUP BY a ORDER BY a",
]
WRITES = [
    "INSERT INTO t VALUES ({0}, 'new {0}', '2024-03-01')", "UPDATE t SET b = b || '.' WHERE a = {0}", "DELETE FROM t WHERE a = {0}",
    "UPDATE u SET n = n + 1 WHERE a = {0}", "UPDATE p SET b = b || '!' WHERE a = {0}", "UPDATE p SET a = 7 - a WHERE a = {0}", "INSERT INTO child VALUES ({0}, 'new')",
    "DELETE FROM parent WHERE a = {0}", "UPDATE felt SET m = 'cross' WHERE a = {0}", "UPDATE felt SET at = at - interval '2 days' WHERE a = {0}", "UPDATE fenced SET a = a + 1 WHERE a = {0}", "UPDATE seen SET a = 3 WHERE false", "INSERT INTO p1 VALUES (1, 'direct')",
    "MERGE INTO t USING t2 ON t.b = t2.b WHEN NOT MATCHED AND t2.a = {0} THEN INSERT VALUES (t2.a, t2.b, t2.d)",
    "WITH w AS (DELETE FROM t2 WHERE a = {0} RETURNING a) SELECT count(*) FROM w",
]
DEFINITIONS = [
    "TRUNCATE p1", "TRUNCATE t2", "TRUNCATE child", "ALTER TABLE t ADD COLUMN extra int DEFAULT 7", "ALTER TABLE t DROP COLUMN extra", "CREATE INDEX t_a ON t (a)", "DROP INDEX t_a",
    "ALTER TABLE t RENAME TO t3; ALTER TABLE t2 RENAME TO t; ALTER TABLE t3 RENAME TO t2", "ALTER TABLE u ALTER a TYPE bigint", "ALTER TABLE parent RENAME b TO c",
    "ALTER TABLE p DETACH PARTITION p3", "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (4) TO (8)", "ALTER TABLE child NO INHERIT parent", "ALTER TABLE child INHERIT parent",
    "DROP TABLE p2", "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (2) TO (4)",
    "CREATE OR REPLACE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 4",
    "CREATE OR REPLACE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 2",
    "CREATE OR REPLACE FUNCTION plus(a int, b int DEFAULT 2) RETURNS int LANGUAGE sql IMMUTABLE RETURN a + b",
    "CREATE OR REPLACE FUNCTION plus(a int, b int DEFAULT 1) RETURNS int LANGUAGE sql IMMUTABLE RETURN b - a",
    "ALTER TABLE fenced DISABLE ROW LEVEL SECURITY", "ALTER TABLE fenced ENABLE ROW LEVEL SECURITY", "ALTER TABLE fenced FORCE ROW LEVEL SECURITY",
    "ALTER POLICY own ON fenced USING (who <> CURRENT_USER)", "ALTER POLICY own ON fenced USING (who = CURRENT_USER)",
    "GRANT SELECT ON u TO {role2}", "REVOKE ALL ON u FROM {role2}", "REVOKE SELECT (n) ON u FROM {role1}", "GRANT SELECT (n) ON u TO {role1}", "REVOKE SELECT ON t FROM {role1}",
    "GRANT SELECT ON t TO {role1}", "REVOKE EXECUTE ON FUNCTION kept FROM {role1}", "GRANT EXECUTE ON FUNCTION kept TO {role1}, {role2}", "REVOKE EXECUTE ON FUNCTION kept FROM {role2}",
    "ALTER VIEW invoker SET (security_invoker = false)", "ALTER VIEW invoker SET (security_invoker = true)", "ALTER VIEW barrier OWNER TO {role1}", "ALTER VIEW barrier OWNER TO CURRENT_USER",
    "ALTER VIEW seen OWNER TO {role1}", "ALTER VIEW seen OWNER TO CURRENT_USER", "ALTER VIEW above OWNER TO {role2}", "ALTER VIEW above OWNER TO CURRENT_USER", "ANALYZE t",
    "ALTER TYPE mood ADD VALUE IF NOT EXISTS 'glad' BEFORE 'cross'", "ALTER TYPE mood RENAME VALUE 'calm' TO 'cool'", "ALTER TYPE mood RENAME VALUE 'cool' TO 'calm'",
    "ALTER TYPE pair RENAME ATTRIBUTE y TO z", "ALTER TYPE pair RENAME ATTRIBUTE z TO y", "ALTER TYPE pair ADD ATTRIBUTE more int", "ALTER TYPE pair DROP ATTRIBUTE IF EXISTS more",
    "REFRESH MATERIALIZED VIEW mat",
    "ALTER TABLE parent RENAME c TO b", "ALTER VIEW barrier RESET (security_barrier)", "ALTER VIEW barrier SET (security_barrier)",
]
# What a session sets for itself.
SETTINGS = [
    "SET ROLE {role1}", "SET ROLE {role2}", "RESET ROLE", "SET datestyle = 'ISO, DMY'", "SET datestyle = 'German'", "SET datestyle = 'ISO, MDY'",
    "SET app.tenant = 'one'", "SET app.tenant = 'two'", "SET TimeZone = 'Asia/Tokyo'", "SET TimeZone = 'UTC'", "SET plan_cache_mode = force_custom_plan", "SET plan_cache_mode = force_generic_plan", "SET plan_cache_mode = auto", "SET enable_seqscan = off", "SET enable_seqscan = on",
    "SET row_security = off", "SET row_security = on", "SET client_encoding = 'LATIN1'", "SET client_encoding = 'UTF8'",
    "SET extra_float_digits = 0", "SET extra_float_digits = 1",
]
