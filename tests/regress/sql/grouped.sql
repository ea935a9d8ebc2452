-- From 18 on a query that groups has an entry of its range table for what it groups by, and its columns are those of this entry. Rights to columns, sub-queries, functions
-- and types in it count as those anywhere else; other expressions are other questions.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '-'
CREATE ROLE regress_cache_reader;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (a int, b int, secret int, m mood, x text COLLATE "C");
INSERT INTO t VALUES (1, 1, 1, 'ok', 'x'), (1, 2, 2, 'sad', 'x'), (2, 2, 1, 'ok', 'y');
CREATE TABLE other (a int);
INSERT INTO other VALUES (1), (2), (3);
GRANT SELECT (a, b) ON t TO regress_cache_reader;
SELECT a, sum(b) FROM t GROUP BY a ORDER BY a;
SELECT a, sum(b) FROM t GROUP BY a ORDER BY a;
:status
SELECT a, b, count(*), grouping(a, b) FROM t GROUP BY GROUPING SETS ((a, b), (a), ()) ORDER BY 1, 2, 3;
SELECT a, b, count(*), grouping(a, b) FROM t GROUP BY GROUPING SETS ((a, b), (a), ()) ORDER BY 1, 2, 3;
:status
-- The same texts but for what is grouped by.
SELECT sum(b) FROM t GROUP BY a + 1 ORDER BY 1;
SELECT sum(b) FROM t GROUP BY a + 2 ORDER BY 1;
SELECT sum(b) FROM t GROUP BY a % 2 ORDER BY 1;
:status
SELECT sum(b) FROM t GROUP BY b % 2 ORDER BY 1;
:status
PREPARE by(int) AS SELECT a % $1 AS r, sum(b) FROM t GROUP BY a % $1 ORDER BY 1;
EXECUTE by(2);
EXECUTE by(3);
EXECUTE by(2);
:status
-- Conditions on groups: whether they look at rows before or after grouping, the answer is the same.
SELECT a, b, count(*) FROM t GROUP BY CUBE (a, b) HAVING a = 1 AND b IS NULL ORDER BY 1;
SELECT a, b, count(*) FROM t GROUP BY CUBE (a, b) HAVING a = 1 AND b IS NULL ORDER BY 1;
:status
SELECT a, b, count(*) FROM t GROUP BY CUBE (a, b) HAVING a = 2 AND b IS NULL ORDER BY 1;
:status
-- A column that is only grouped by is read, too.
SELECT count(*) FROM t GROUP BY secret ORDER BY 1;
SELECT count(*) FROM t GROUP BY secret ORDER BY 1;
:status
SET ROLE regress_cache_reader;
SELECT a, sum(b) FROM t GROUP BY a ORDER BY a;
SELECT a, sum(b) FROM t GROUP BY a ORDER BY a;
:status
SELECT count(*) FROM t GROUP BY secret ORDER BY 1;
SELECT a FROM t GROUP BY GROUPING SETS ((a), (secret));
RESET ROLE;
GRANT SELECT (secret) ON t TO regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT count(*) FROM t GROUP BY secret ORDER BY 1;
SELECT count(*) FROM t GROUP BY secret ORDER BY 1;
:status
RESET ROLE;
REVOKE SELECT (secret) ON t FROM regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT count(*) FROM t GROUP BY secret ORDER BY 1;
RESET ROLE;
-- Sub-queries, volatile functions, enums, views and rules in it.
SELECT (SELECT max(other.a) FROM other WHERE other.a <= t.a) AS top, count(*) FROM t GROUP BY 1 ORDER BY 1;
SELECT (SELECT max(other.a) FROM other WHERE other.a <= t.a) AS top, count(*) FROM t GROUP BY 1 ORDER BY 1;
:status
UPDATE other SET a = 0 WHERE a = 2;
SELECT (SELECT max(other.a) FROM other WHERE other.a <= t.a) AS top, count(*) FROM t GROUP BY 1 ORDER BY 1;
:status
SELECT count(*) FROM t GROUP BY random() < 0;
:status
SELECT count(*) FROM t GROUP BY date_trunc('year', now());
:status
SELECT count(*) FROM t GROUP BY m::text ORDER BY 1;
SELECT count(*) FROM t GROUP BY m::text ORDER BY 1;
:status
ALTER TYPE mood RENAME VALUE 'sad' TO 'low';
SELECT m::text, count(*) FROM t GROUP BY m::text ORDER BY 1;
SELECT m::text, count(*) FROM t GROUP BY m::text ORDER BY 1;
:status
ALTER TYPE mood RENAME VALUE 'low' TO 'sad';
SELECT m::text, count(*) FROM t GROUP BY m::text ORDER BY 1;
:status
CREATE FUNCTION mine(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
SELECT count(*) FROM t GROUP BY mine(a) ORDER BY 1;
:status
CREATE VIEW grouped AS SELECT a, secret, count(*) AS n FROM t GROUP BY ROLLUP (a, secret);
GRANT SELECT ON grouped TO regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT n FROM grouped WHERE secret = 1 ORDER BY a;
SELECT n FROM grouped WHERE secret = 1 ORDER BY a;
:status
RESET ROLE;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON t TO regress_cache_reader USING (b = 2);
SET ROLE regress_cache_reader;
SELECT a, sum(b) FROM t GROUP BY a ORDER BY a;
:status
SELECT a, sum(b) FROM t GROUP BY a ORDER BY a;
:status
SELECT n FROM grouped WHERE secret = 1 ORDER BY a;
:status
RESET ROLE;
-- A key, or a unique index over columns that are not null, makes the other columns of its table superfluous.
CREATE TABLE keyed (id int NOT NULL, v int, w numeric);
CREATE UNIQUE INDEX keyed_id ON keyed (id);
INSERT INTO keyed VALUES (1, 1, 1.0), (2, 1, 1.00);
SELECT v, w, count(*) FROM keyed GROUP BY id, v, w ORDER BY v::text, w::text;
SELECT v, w, count(*) FROM keyed GROUP BY id, v, w ORDER BY v::text, w::text;
:status
DROP INDEX keyed_id;
INSERT INTO keyed VALUES (1, 2, 3.0);
SELECT v, w, count(*) FROM keyed GROUP BY id, v, w ORDER BY v::text, w::text;
:status
-- The order of DISTINCT and GROUP BY columns is the planner's choice.
CREATE INDEX ON keyed (v, id);
SET enable_seqscan = off;
SELECT DISTINCT id, v FROM keyed ORDER BY id, v;
SELECT DISTINCT id, v FROM keyed ORDER BY id, v;
:status
SET enable_distinct_reordering = off;
SET enable_self_join_elimination = off;
SELECT DISTINCT id, v FROM keyed ORDER BY id, v;
:status
RESET ALL;
DEALLOCATE by;
DROP TABLE t, other, keyed CASCADE;
DROP TYPE mood;
DROP FUNCTION mine;
DROP ROLE regress_cache_reader;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
