-- What is counted: queries of clients as hits, misses, stale or bypasses; what no cache answers, and what others run inside, apart.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\set counted 'SELECT hits, misses, stale, bypasses, other_statements, nested_statements, hit_ratio FROM arrow_cache.stats;'
\pset footer off
CREATE TABLE parent (id int PRIMARY KEY, v text);
CREATE TABLE child (id int, parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE prompt_child (id int, parent int REFERENCES parent);
CREATE TABLE ruled (id int);
CREATE TABLE log (id int);
CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO log VALUES (new.id);
CREATE FUNCTION inside() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM count(*) FROM parent; PERFORM v FROM parent; RETURN 1; END $$;
INSERT INTO parent VALUES (1, 'one'), (2, 'two');
SELECT arrow_cache.flush() >= 0 AS flushed;

-- A query that asks for the counters is a bypass itself: it calls a function that is not built in.
SELECT arrow_cache.reset_stats();
:counted
-- Writes and commands are other statements. The check of a foreign key is nested, at the commit too, and no statement of its own.
SELECT arrow_cache.reset_stats();
INSERT INTO child VALUES (1, 1);
:status
:counted
SELECT arrow_cache.reset_stats();
BEGIN;
INSERT INTO child VALUES (1, 2);
COMMIT;
:status
:counted
SELECT arrow_cache.reset_stats();
INSERT INTO prompt_child VALUES (1, 1);
:counted
-- What a rule adds is nested.
SELECT arrow_cache.reset_stats();
INSERT INTO ruled VALUES (1);
:counted
-- Two queries in a function that reads no relation itself.
SELECT arrow_cache.reset_stats();
SELECT inside();
:counted
-- SELECT 1, a command, EXPLAIN of a query, a WITH that writes, and the same prepared.
SELECT arrow_cache.reset_stats();
SELECT 1 AS one;
SET work_mem = '4MB';
EXPLAIN (COSTS OFF) SELECT v FROM parent;
WITH w AS (UPDATE parent SET v = v RETURNING id) SELECT count(*) FROM w;
PREPARE writing AS UPDATE parent SET v = v;
EXECUTE writing;
:counted
-- Queries: a miss, a hit, a stale one, and one that locks rows.
SELECT arrow_cache.reset_stats();
SELECT count(*) FROM parent;
SELECT count(*) FROM parent;
UPDATE parent SET v = v;
SELECT count(*) FROM parent;
SELECT id FROM parent WHERE id = 1 FOR UPDATE;
:status
:counted
SELECT reason, statements FROM arrow_cache.bypass_reasons ORDER BY reason;
-- Statements of a session that has switched the cache off are not counted.
SELECT arrow_cache.reset_stats();
SET pg_arrow_cache.enabled = off;
SELECT count(*) FROM parent;
INSERT INTO ruled VALUES (2);
SELECT inside();
:counted
RESET pg_arrow_cache.enabled;

DEALLOCATE writing;
DROP FUNCTION inside;
DROP TABLE parent, child, prompt_child, ruled, log;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
