-- What became of the executions of each statement, by query id, role and database.
\pset format unaligned
\pset footer off
\pset null '-'
-- Those that look at the view are among them, and are left out here.
\set others 'last_reason IS NULL OR last_reason NOT IN (''user_defined_function'', ''system_catalog'')'
\set shown 'SELECT hits, misses, stale, stale_hits, bypasses, last_reason FROM arrow_cache.statements WHERE ' :others ' ORDER BY last_reason'
CREATE ROLE regress_cache_asking;
CREATE TABLE asked (n int);
INSERT INTO asked VALUES (1), (2);
GRANT SELECT ON asked TO regress_cache_asking;
-- Without a query id nothing is counted.
SET compute_query_id = off;
SELECT arrow_cache.reset_stats();
SELECT sum(n) FROM asked WHERE n > 0;
SELECT sum(n) FROM asked WHERE n > 0;
SELECT count(*) AS rows FROM arrow_cache.statements;
SELECT hits, misses FROM arrow_cache.stats;

-- Two hits, a miss with another constant, and an answer that was outdated: one statement.
SET compute_query_id = on;
SELECT arrow_cache.reset_stats();
SELECT sum(n) FROM asked WHERE n > 0;
SELECT sum(n) FROM asked WHERE n > 0;
SELECT sum(n) FROM asked WHERE n > 1;
INSERT INTO asked VALUES (3);
SELECT sum(n) FROM asked WHERE n > 0;
:shown;
SELECT userid::regrole = current_user::regrole AS own, dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AS here,
    queryid <> 0 AS has_id, time_saved_ms > 0 AS saved FROM arrow_cache.statements WHERE hits > 0;

-- Bypasses and misses whose answers are not stored, with the last reason.
SELECT arrow_cache.reset_stats();
:shown;
SELECT n + random() > 0 AS positive FROM asked WHERE n = 1;
BEGIN;
INSERT INTO asked VALUES (5);
SELECT count(*) FROM asked;
ROLLBACK;
SET pg_arrow_cache.min_runs = 2;
SELECT max(n) FROM asked;
RESET pg_arrow_cache.min_runs;
SET pg_arrow_cache.min_execution_time = '1h';
SELECT min(n) FROM asked;
RESET pg_arrow_cache.min_execution_time;
:shown;

-- Prepared statements and exports are the statements that they run.
SELECT arrow_cache.reset_stats();
PREPARE one (int) AS SELECT count(n) FROM asked WHERE n > $1;
EXECUTE one (1);
EXECUTE one (1);
EXECUTE one (1);
DEALLOCATE one;
:shown;
SELECT arrow_cache.reset_stats();
SELECT length(arrow_cache.query('SELECT count(n) AS exported FROM asked')) > 0 AS is_exported;
SELECT length(arrow_cache.query('SELECT count(n) AS exported FROM asked')) > 0 AS is_exported;
:shown;

-- What is no query of a client over tables is counted in stats alone.
SELECT arrow_cache.reset_stats();
SELECT 1 AS one;
SET work_mem = '5MB';
UPDATE asked SET n = n WHERE n = 1;
DO $$ BEGIN PERFORM sum(n) FROM asked; END $$;
:shown;
RESET work_mem;

-- Each role has statements of its own, and sees no others.
SELECT arrow_cache.reset_stats();
SELECT min(n), max(n) FROM asked;
SET ROLE regress_cache_asking;
SELECT min(n), max(n) FROM asked;
SELECT min(n), max(n) FROM asked;
SELECT userid::regrole, hits, misses FROM arrow_cache.statements WHERE :others;
SELECT userid::regrole, hits, misses FROM arrow_cache.statement_counts_data() WHERE :others;
RESET ROLE;
SELECT userid = 'regress_cache_asking'::regrole AS others, hits, misses FROM arrow_cache.statements WHERE :others ORDER BY others;
SELECT count(DISTINCT queryid) AS ids FROM arrow_cache.statements WHERE misses > 0;
GRANT pg_read_all_stats TO regress_cache_asking;
SET ROLE regress_cache_asking;
SELECT userid = 'regress_cache_asking'::regrole AS own, hits, misses FROM arrow_cache.statements WHERE :others ORDER BY own;
RESET ROLE;
SELECT statements_dropped FROM arrow_cache.stats;
RESET compute_query_id;
DROP TABLE asked;
DROP ROLE regress_cache_asking;
