-- What each setting does to what is served and stored.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
CREATE TABLE measure (id int PRIMARY KEY, v int, filler text);
INSERT INTO measure SELECT i, i * 10, repeat('f', 100) FROM generate_series(1, 5) i;
SELECT arrow_cache.flush() >= 0 AS flushed;

-- enabled: off neither serves nor stores, and what the session then changes still invalidates.
SELECT sum(v) FROM measure;
SET pg_arrow_cache.enabled = off;
SELECT sum(v) FROM measure;
:status
SELECT max(v) FROM measure;
SELECT count(*) AS stored FROM arrow_cache.entries;
UPDATE measure SET v = v + 1 WHERE id = 1;
RESET pg_arrow_cache.enabled;
SELECT sum(v) FROM measure;
:status
SELECT sum(v) FROM measure;
:status
-- Switched within a transaction.
BEGIN;
SET LOCAL pg_arrow_cache.enabled = off;
SELECT sum(v) FROM measure;
:status
COMMIT;
SELECT sum(v) FROM measure;
:status
-- A plan that was made while the cache was off has not been checked.
SET pg_arrow_cache.enabled = off;
PREPARE early AS SELECT min(v) FROM measure;
EXECUTE early;
RESET pg_arrow_cache.enabled;
EXECUTE early;
:status
DEALLOCATE early;

-- populate: off serves what there is and stores nothing new.
SET pg_arrow_cache.populate = off;
SELECT sum(v) FROM measure;
:status
SELECT avg(v)::int FROM measure;
:status
SELECT avg(v)::int FROM measure;
:status
RESET pg_arrow_cache.populate;
SELECT avg(v)::int FROM measure;
:status
SELECT avg(v)::int FROM measure;
:status

-- ttl: a session's value bounds the age it accepts. The entry stays for sessions that accept it.
SELECT count(*) FROM measure;
SELECT pg_sleep(1.1);
SET pg_arrow_cache.ttl = 1;
SET pg_arrow_cache.populate = off;
SELECT count(*) FROM measure;
:status
RESET pg_arrow_cache.populate;
RESET pg_arrow_cache.ttl;
SELECT count(*) FROM measure;
:status
-- ttl also bounds the life of what the session stores, whoever asks later; an expired entry is dropped and counted.
SET pg_arrow_cache.ttl = 1;
SELECT min(v) FROM measure;
RESET pg_arrow_cache.ttl;
SELECT expires_at = created_at + interval '1 s' AS one_second FROM arrow_cache.entries WHERE query ILIKE '%select min(v)%';
SELECT pg_sleep(1.1);
SELECT valid FROM arrow_cache.entries WHERE query ILIKE '%select min(v)%';
SELECT expirations AS expirations_before FROM arrow_cache.stats \gset
SELECT min(v) FROM measure;
:status
SELECT expirations - :expirations_before AS expired FROM arrow_cache.stats;
SELECT expires_at = created_at + interval '1 h' AS one_hour FROM arrow_cache.entries WHERE query ILIKE '%select min(v)%';
-- 0 means no limit.
SET pg_arrow_cache.ttl = 0;
SELECT max(v) - min(v) AS spread FROM measure;
SELECT expires_at IS NULL AS endless, valid FROM arrow_cache.entries WHERE query ILIKE '%as spread%';
SELECT max(v) - min(v) AS spread FROM measure;
:status
RESET pg_arrow_cache.ttl;

-- max_entry_size: a larger result is passed on whole and not stored, and leaves nothing behind; a smaller one is stored.
TRUNCATE measure;
INSERT INTO measure SELECT i, i, repeat('g', 100) FROM generate_series(1, 10000) i;
SELECT arrow_cache.flush() >= 0 AS flushed;
SET pg_arrow_cache.max_entry_size = '600kB';
\o /dev/null
SELECT id, filler FROM measure ORDER BY id;
\o
\echo :ROW_COUNT rows
:status
\o /dev/null
SELECT id, filler FROM measure ORDER BY id;
\o
\echo :ROW_COUNT rows
:status
TABLE cache_leftovers;
\o /dev/null
SELECT id, filler FROM measure WHERE id <= 4000 ORDER BY id;
SELECT id, filler FROM measure WHERE id <= 4000 ORDER BY id;
\o
:status
SELECT row_count, bytes > 4000 * 100 AS holds_all, bytes <= 600 * 1024 AS within_limit FROM arrow_cache.entries;
-- It bounds what is stored, not what is served.
SET pg_arrow_cache.max_entry_size = '1kB';
\o /dev/null
SELECT id, filler FROM measure WHERE id <= 4000 ORDER BY id;
\o
:status
RESET pg_arrow_cache.max_entry_size;
\o /dev/null
SELECT id, filler FROM measure ORDER BY id;
SELECT id, filler FROM measure ORDER BY id;
\o
\echo :ROW_COUNT rows
:status
TRUNCATE measure;
INSERT INTO measure SELECT i, i FROM generate_series(1, 1000) i;

-- min_runs: stored at the n-th execution of the same query and parameters.
SET pg_arrow_cache.min_runs = 3;
SELECT sum(id) FROM measure;
:status
SELECT sum(id) FROM measure;
:status
SELECT sum(id) FROM measure;
:status
SELECT sum(id) FROM measure;
:status
PREPARE runs(int) AS SELECT count(*) FROM measure WHERE id > $1;
EXECUTE runs(1);
EXECUTE runs(2);
EXECUTE runs(1);
:status
EXECUTE runs(1);
:status
EXECUTE runs(1);
:status
EXECUTE runs(2);
:status
DEALLOCATE runs;
RESET pg_arrow_cache.min_runs;

-- min_execution_time: what was quicker is not stored. A day is longer than any query here.
SET pg_arrow_cache.min_execution_time = '1d';
SELECT sum(v) AS quick FROM measure;
:status
SELECT sum(v) AS quick FROM measure;
:status
RESET pg_arrow_cache.min_execution_time;
SELECT sum(v) AS quick FROM measure;
:status
SELECT sum(v) AS quick FROM measure;
:status
-- It bounds what is stored, not what is served.
SET pg_arrow_cache.min_execution_time = '1d';
SELECT sum(v) AS quick FROM measure;
:status
RESET pg_arrow_cache.min_execution_time;

DROP TABLE measure;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
