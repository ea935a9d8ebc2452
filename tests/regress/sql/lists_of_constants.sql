-- Lists of constants. The server counts statements that differ in the length of such a list, or in the schema of a table, as one query, and turns lists of VALUES and
-- chains of OR into arrays. To the cache each list is a question of its own, planned or not.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '-'
SET compute_query_id = on;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, 'b' || g FROM generate_series(1, 9) g;
CREATE INDEX ON t (a);
-- The same first and last constant, and the same length; each twice, and each as a hit without planning.
SELECT a FROM t WHERE a IN (1, 2, 9) ORDER BY a;
SELECT a FROM t WHERE a IN (1, 3, 9) ORDER BY a;
SELECT a FROM t WHERE a IN (1, 3, 4, 9) ORDER BY a;
SELECT a FROM t WHERE a IN (1, 2, 9) ORDER BY a;
:status
SELECT a FROM t WHERE a IN (1, 3, 9) ORDER BY a;
:status
SELECT a FROM t WHERE a IN (1, 3, 4, 9) ORDER BY a;
:status
SELECT a FROM t WHERE a IN (1, 4, 9) ORDER BY a;
:status
SELECT a FROM t WHERE a IN (1, 4, NULL, 9) ORDER BY a;
SELECT a FROM t WHERE a NOT IN (1, 4, 9) ORDER BY a;
SELECT a FROM t WHERE a NOT IN (1, 4, NULL, 9) ORDER BY a;
:status
SELECT a, ARRAY[1, 2, a] FROM t WHERE a < 2;
SELECT a, ARRAY[1, 3, a] FROM t WHERE a < 2;
SELECT a, ARRAY[1, 3, a] FROM t WHERE a < 2;
:status
-- VALUES, which become arrays.
SELECT a FROM t WHERE a IN (VALUES (1), (2), (9)) ORDER BY a;
SELECT a FROM t WHERE a IN (VALUES (1), (3), (9)) ORDER BY a;
SELECT a FROM t WHERE a IN (VALUES (1), (2), (9)) ORDER BY a;
:status
SELECT a FROM t WHERE a IN (VALUES (1), (3), (9)) ORDER BY a;
:status
SELECT a FROM t WHERE a IN (VALUES (1), (4), (9)) ORDER BY a;
:status
SELECT b FROM t WHERE b IN (VALUES ('b1'), ('b2'), (NULL)) ORDER BY b;
SELECT b FROM t WHERE b IN (VALUES ('b1'), ('b3'), (NULL)) ORDER BY b;
SELECT b FROM t WHERE b NOT IN (VALUES ('b1'), ('b3'), (NULL)) ORDER BY b;
SELECT b FROM t WHERE b IN (VALUES ('b1'), ('b3'), (NULL)) ORDER BY b;
:status
-- OR, which becomes an array where an index is scanned.
SET enable_seqscan = off;
SELECT a FROM t WHERE a = 1 OR a = 2 OR a = 9 ORDER BY a;
SELECT a FROM t WHERE a = 1 OR a = 3 OR a = 9 ORDER BY a;
SELECT a FROM t WHERE a = 1 OR a = 2 OR a = 9 ORDER BY a;
:status
SELECT a FROM t WHERE a = 1 OR a = 3 OR a = 9 ORDER BY a;
:status
SELECT a FROM t WHERE a = 1 OR a = 4 OR a = 9 ORDER BY a;
:status
PREPARE either(int, int) AS SELECT a FROM t WHERE a = $1 OR a = 5 OR a = $2 ORDER BY a;
SET plan_cache_mode = force_generic_plan;
EXECUTE either(1, 2);
EXECUTE either(1, 3);
EXECUTE either(1, 2);
:status
EXECUTE either(1, 3);
:status
EXECUTE either(2, NULL);
RESET plan_cache_mode;
RESET enable_seqscan;
-- Tables of the same name in two schemas.
CREATE SCHEMA regress_cache_front;
CREATE TABLE regress_cache_front.t (a int, b text);
INSERT INTO regress_cache_front.t VALUES (1, 'front');
SELECT a, b FROM t WHERE a = 1;
SET search_path = regress_cache_front, public;
SELECT a, b FROM t WHERE a = 1;
SELECT a, b FROM t WHERE a = 1;
:status
SET search_path = public;
SELECT a, b FROM t WHERE a = 1;
:status
RESET search_path;
-- A self-join over a key that the planner drops: the right to each side is asked for, and a write to the table is seen.
CREATE TABLE keyed (id int PRIMARY KEY, v int);
INSERT INTO keyed VALUES (1, 10), (2, 20);
SELECT x.v, y.v FROM keyed x JOIN keyed y ON x.id = y.id ORDER BY 1;
SELECT x.v, y.v FROM keyed x JOIN keyed y ON x.id = y.id ORDER BY 1;
:status
UPDATE keyed SET v = 11 WHERE id = 1;
SELECT x.v, y.v FROM keyed x JOIN keyed y ON x.id = y.id ORDER BY 1;
:status
CREATE VIEW behind AS SELECT id, v FROM keyed;
CREATE ROLE regress_cache_reader;
GRANT SELECT (id) ON keyed TO regress_cache_reader;
GRANT SELECT ON behind TO regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT b.v FROM behind b JOIN keyed k ON k.id = b.id ORDER BY 1;
SELECT b.v FROM behind b JOIN keyed k ON k.id = b.id ORDER BY 1;
:status
RESET ROLE;
REVOKE SELECT (id) ON keyed FROM regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT b.v FROM behind b JOIN keyed k ON k.id = b.id ORDER BY 1;
RESET ROLE;
ALTER TABLE keyed DROP CONSTRAINT keyed_pkey;
INSERT INTO keyed VALUES (1, 12);
SELECT x.v, y.v FROM keyed x JOIN keyed y ON x.id = y.id ORDER BY 1, 2;
:status
DEALLOCATE either;
RESET compute_query_id;
DROP SCHEMA regress_cache_front CASCADE;
DROP TABLE t, keyed CASCADE;
DROP ROLE regress_cache_reader;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
