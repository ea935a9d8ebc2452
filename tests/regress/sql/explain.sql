-- EXPLAIN shows a Custom Scan for what would be a hit and leaves every other plan as it is; it never stores and never counts.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
-- What the versions of the server print differently goes through this file: from 18 on row counts are written as 3.00, and plans as JSON
-- have a line more.
\getenv builddir PG_ABS_BUILDDIR
\set file :builddir '/results/explain.txt'
CREATE TABLE plan (id int PRIMARY KEY, v text);
INSERT INTO plan SELECT i, 'v' || i FROM generate_series(1, 3) i;
ANALYZE plan;

EXPLAIN (COSTS OFF) SELECT v FROM plan ORDER BY v;
:status
\o :file
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM plan;
\o
\! sed -E 's/(rows=[0-9]+)\.00/\1/' "$PG_ABS_BUILDDIR/results/explain.txt"
SELECT count(*) AS stored FROM arrow_cache.entries;
SELECT v FROM plan ORDER BY v;
:status
SELECT hits, misses FROM arrow_cache.stats \gset before_
EXPLAIN (COSTS OFF) SELECT v FROM plan ORDER BY v;
EXPLAIN (COSTS OFF) select   V from PLAN /* the same */ order by v;
\o :file
EXPLAIN (COSTS OFF, FORMAT JSON) SELECT v FROM plan ORDER BY v;
\o
\! sed -E -z 's/,\n +"Disabled": false//' "$PG_ABS_BUILDDIR/results/explain.txt"
SELECT hits - :before_hits AS hits, misses - :before_misses AS misses FROM arrow_cache.stats;
SELECT hits FROM arrow_cache.entries;

-- The costs and the width are those of the plan that the hit spares, the rows those that are stored: in any transaction, and before the session has had a hit.
SET pg_arrow_cache.enabled = off;
EXPLAIN SELECT v FROM plan ORDER BY v;
EXPLAIN SELECT v FROM plan WHERE id > 1;
RESET pg_arrow_cache.enabled;
SELECT v FROM plan WHERE id > 1;
\c
EXPLAIN SELECT v FROM plan ORDER BY v;
BEGIN ISOLATION LEVEL REPEATABLE READ;
EXPLAIN SELECT v FROM plan ORDER BY v;
COMMIT;
SELECT v FROM plan WHERE id > 1;
EXPLAIN SELECT v FROM plan WHERE id > 1;

-- With ANALYZE: the stored rows, their batches and bytes, their age and what they save. Numbers that vary are masked.
SELECT v FROM plan ORDER BY v;
\o :file
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT v FROM plan ORDER BY v;
\o
:status
\! sed -E 's/(Bytes|Age|Execution Time Saved): [0-9.]+/\1: N/; s/(rows=[0-9]+)\.00/\1/' "$PG_ABS_BUILDDIR/results/explain.txt"

-- An outdated entry: the plan is that of the query again.
UPDATE plan SET v = 'w1' WHERE id = 1;
EXPLAIN (COSTS OFF) SELECT v FROM plan ORDER BY v;
SELECT v FROM plan ORDER BY v;
EXPLAIN (COSTS OFF) SELECT v FROM plan ORDER BY v;
-- No hit in this session, in this transaction, for this user.
SET pg_arrow_cache.enabled = off;
EXPLAIN (COSTS OFF) SELECT v FROM plan ORDER BY v;
RESET pg_arrow_cache.enabled;
BEGIN;
INSERT INTO plan VALUES (4, 'v4');
EXPLAIN (COSTS OFF) SELECT v FROM plan ORDER BY v;
ROLLBACK;
CREATE ROLE regress_cache_explainer;
GRANT SELECT ON plan TO regress_cache_explainer;
SELECT v FROM plan ORDER BY v;
SET ROLE regress_cache_explainer;
EXPLAIN (COSTS OFF) SELECT v FROM plan ORDER BY v;
RESET ROLE;

-- EXPLAIN of EXECUTE and of DECLARE CURSOR; of what is not a query; EXPLAIN ANALYZE of a change invalidates.
SELECT v FROM plan ORDER BY v;
PREPARE p(int) AS SELECT v FROM plan WHERE id = $1;
EXECUTE p(1);
EXPLAIN (COSTS OFF) EXECUTE p(1);
EXPLAIN (COSTS OFF) EXECUTE p(2);
EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR SELECT v FROM plan ORDER BY v;
EXPLAIN (COSTS OFF) UPDATE plan SET v = v;
EXPLAIN (COSTS OFF) CREATE TABLE copy AS SELECT v FROM plan ORDER BY v;
\o :file
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) UPDATE plan SET v = 'w2' WHERE id = 2;
\o
\! sed -E 's/(rows=[0-9]+)\.00/\1/' "$PG_ABS_BUILDDIR/results/explain.txt"
SELECT v FROM plan ORDER BY v;
:status
DROP TABLE plan;
DROP ROLE regress_cache_explainer;
DEALLOCATE p;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
