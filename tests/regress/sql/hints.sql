-- Hints: a comment before a statement says how the cache treats it. What a hint must not do is change an answer or fail.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
CREATE TABLE hinted (id int, v int);
INSERT INTO hinted SELECT i, i * 10 FROM generate_series(1, 5) i;
SELECT arrow_cache.flush() >= 0 AS flushed;

-- no_arrow_cache: not stored, and not served either.
/*+ no_arrow_cache */ SELECT sum(v) FROM hinted;
:status
SELECT sum(v) FROM hinted;
:status
/*+ no_arrow_cache */ SELECT sum(v) FROM hinted;
:status
SELECT statements > 0 AS counted FROM arrow_cache.bypass_reasons WHERE reason = 'no_cache_hint';
-- A hint is a comment: with and without it is the same statement.
/*+ arrow_cache */ SELECT sum(v) FROM hinted;
:status
-- A reason that holds for every execution of the statement comes first.
/*+ no_arrow_cache */ SELECT random() > 2 FROM hinted WHERE id = 1;
:status

-- arrow_cache: stored whatever its run time and however seldom it runs.
SET pg_arrow_cache.min_execution_time = '1h';
SET pg_arrow_cache.min_runs = 3;
SELECT max(v) FROM hinted;
:status
/*+ arrow_cache */ SELECT max(v) FROM hinted;
:status
SELECT max(v) FROM hinted;
:status
-- Also a statement that is known to be too quick.
RESET pg_arrow_cache.min_runs;
SELECT min(v) FROM hinted;
:status
SELECT min(v) FROM hinted;
:status
/*+ SeqScan(hinted) Arrow_Cache */ SELECT min(v) FROM hinted;
:status
SELECT min(v) FROM hinted;
:status
-- The hint does not override any other reason not to store it.
SET pg_arrow_cache.populate = off;
/*+ arrow_cache */ SELECT avg(v)::int FROM hinted;
:status
RESET pg_arrow_cache.populate;
SET pg_arrow_cache.enabled = off;
/*+ arrow_cache */ SELECT avg(v)::int FROM hinted;
:status
RESET pg_arrow_cache.enabled;
/*+ arrow_cache */ SELECT now() IS NULL AS n FROM hinted WHERE id = 1;
:status
RESET pg_arrow_cache.min_execution_time;

-- fragments=off: stored like any other, but not computed from parts.
/*+ arrow_cache(fragments=off) */ SELECT max(v) + 1 AS m FROM hinted;
:status
/*+ arrow_cache(ttl=60, fragments=off) */ SELECT max(v) + 1 AS m FROM hinted;
:status

-- ttl: the age that this statement accepts, and the life of what it stores.
/*+ arrow_cache(ttl=0) */ SELECT count(*) FROM hinted;
:status
/*+ arrow_cache(ttl=7200) */ SELECT count(*) + 1 AS c FROM hinted;
:status
SELECT count(*) + 2 AS c FROM hinted;
:status
SELECT substring(query FROM 'SELECT.*') AS query, extract(epoch FROM expires_at - created_at)::int AS life FROM arrow_cache.entries WHERE query ILIKE '%select count(*)%' ORDER BY substring(query FROM 'SELECT.*') COLLATE "C";
SELECT pg_sleep(1.1);
/*+ arrow_cache(ttl=3600) */ SELECT count(*) + 2 AS c FROM hinted;
:status
/*+ arrow_cache(ttl=1) */ SELECT count(*) + 2 AS c FROM hinted;
:status
-- It overrides the ttl of the session, in both directions.
SET pg_arrow_cache.ttl = 1;
SET pg_arrow_cache.populate = off;
SELECT count(*) FROM hinted;
:status
/*+ arrow_cache(ttl=0) */ SELECT count(*) FROM hinted;
:status
RESET pg_arrow_cache.ttl;
RESET pg_arrow_cache.populate;

-- A comment that does not parse as a hint is ignored. If it seems to be meant for the cache, the client is told, once for each such comment.
SELECT arrow_cache.flush() > 0 AS flushed;
/*+ arrow_cache(ttl=-1) no_arrow_cache */ SELECT count(*) FROM hinted;
:status
/*+ no_arrow_cache( */ SELECT count(*) FROM hinted;
:status
/*+ arrow_cache(fragments=perhaps) no_arrow_cache */ SELECT count(*) FROM hinted;
:status
/* no_arrow_cache */ SELECT count(*) FROM hinted;
:status
SELECT /*+ no_arrow_cache */ count(*) FROM hinted;
:status
/*+ no_arrow_cache( */ SELECT count(*) FROM hinted;
/*+ no_arow_cache */ SELECT count(*) FROM hinted;
:status
/*+ arrow_cache, ttl=5 */ SELECT max(id) FROM hinted;
/*+ SeqScan(hinted) IndexScan(hinted arow_cache) Rows(hinted #3) */ SELECT max(id) FROM hinted;
/*+ arrow_cache(ttl=1) */ SELECT max(id) FROM hinted;
PREPARE half AS /*+ arrow_cache(tll=5) */ SELECT max(id) FROM hinted;
EXECUTE half;
EXECUTE half;
DEALLOCATE half;
EXPLAIN (COSTS OFF) /*+ arrow_cach */ SELECT max(id) FROM hinted;
SET client_min_messages = warning;
/*+ arowcache */ SELECT max(id) FROM hinted;
RESET client_min_messages;
-- With the cache off nobody asks. why() tells each time.
SET pg_arrow_cache.enabled = off;
/*+ arrow_kache */ SELECT max(id) FROM hinted;
RESET pg_arrow_cache.enabled;
SELECT cacheable, detail LIKE 'rests on %hinted; a hint before it is not understood' AS told FROM arrow_cache.why('/*+ arrow_cache(tll=5) */ SELECT max(id) FROM hinted');
SELECT cacheable, detail FROM arrow_cache.why('/*+ arow_cache */ SELECT max(id) FROM hinted WHERE random() < 2');
SELECT cacheable, detail LIKE '%understood%' AS told FROM arrow_cache.why('/*+ arrow_cache(ttl=5) */ SELECT max(id) FROM hinted');

-- Each statement of a string has its own; queries inside EXPLAIN, DECLARE and PREPARE have one, too.
SELECT count(*) FROM hinted\; /*+ no_arrow_cache */ SELECT count(*) FROM hinted;
:status
/*+ no_arrow_cache */ SELECT count(*) FROM hinted\; SELECT count(*) FROM hinted;
:status
EXPLAIN (COSTS OFF) SELECT count(*) FROM hinted;
EXPLAIN (COSTS OFF) /*+ no_arrow_cache */ SELECT count(*) FROM hinted;
/*+ no_arrow_cache */ EXPLAIN (COSTS OFF) SELECT count(*) FROM hinted;
BEGIN;
DECLARE plain NO SCROLL CURSOR FOR SELECT count(*) FROM hinted;
:status
DECLARE warned NO SCROLL CURSOR FOR /*+ no_arrow_cache */ SELECT count(*) FROM hinted;
:status
FETCH warned;
COMMIT;
PREPARE warned AS /*+ no_arrow_cache */ SELECT count(*) FROM hinted;
EXECUTE warned;
:status
DEALLOCATE warned;
SELECT length(arrow_cache.query('/*+ no_arrow_cache */ SELECT count(*) FROM hinted')) > 0 AS streamed;
:status
DROP TABLE hinted;
SELECT arrow_cache.flush() >= 0 AS flushed;
