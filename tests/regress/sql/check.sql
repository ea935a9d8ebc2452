-- The cache of this server after all tests before this one: everything in it agrees. Whoever left something behind is found here.
SELECT * FROM arrow_cache.check();

-- The same while this session holds an answer by a cursor, and after it was outdated and flushed.
CREATE TABLE checked (a int);
INSERT INTO checked SELECT generate_series(1, 1000);
SELECT count(*) FROM (SELECT a FROM checked) AS first_run;
SELECT a FROM checked ORDER BY a LIMIT 1;
SELECT a FROM checked ORDER BY a LIMIT 1;
BEGIN;
DECLARE c CURSOR FOR SELECT a FROM checked ORDER BY a LIMIT 1;
FETCH c;
SELECT * FROM arrow_cache.check();
SELECT arrow_cache.flush() > 0 AS flushed;
SELECT * FROM arrow_cache.check();
COMMIT;
SELECT * FROM arrow_cache.check();
DROP TABLE checked;
SELECT * FROM arrow_cache.check();

-- It tells of all sessions: it is for monitoring, not for everybody.
CREATE ROLE regress_cache_watcher IN ROLE pg_monitor;
CREATE ROLE regress_cache_nobody;
SET ROLE regress_cache_watcher;
SELECT count(*) FROM arrow_cache.check();
SET ROLE regress_cache_nobody;
SELECT count(*) FROM arrow_cache.check();
RESET ROLE;
DROP ROLE regress_cache_watcher;
DROP ROLE regress_cache_nobody;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
