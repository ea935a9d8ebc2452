-- What a session remembers of earlier queries must not outlive what it depends on, nor be used for another query.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset format unaligned
\pset footer off
CREATE TABLE kf (id int, v numeric);
INSERT INTO kf VALUES (1, 1.0), (2, 1.00), (3, 2);
SELECT arrow_cache.flush() >= 0 AS flushed;

-- Learned under own definitions that are rolled back: a refusal …
BEGIN;
SELECT arrow_cache.set_policy('kf', 'never');
SELECT sum(v) FROM kf WHERE id > 1;
:status
ROLLBACK;
SELECT sum(v) FROM kf WHERE id > 1;
:status
SELECT sum(v) FROM kf WHERE id > 2;
:status
SELECT sum(v) FROM kf WHERE id > 1;
:status
-- … in a savepoint, too …
BEGIN;
SAVEPOINT a;
SELECT arrow_cache.set_policy('kf', 'never');
SELECT count(v) FROM kf WHERE id > 1;
ROLLBACK TO a;
COMMIT;
SELECT count(v) FROM kf WHERE id > 1;
:status
-- … and an approval, which would keep one random number for good.
BEGIN;
ALTER FUNCTION pg_catalog.random() IMMUTABLE;
SELECT random() < 2 AS below, count(*) FROM kf;
ROLLBACK;
SELECT random() < 2 AS below, count(*) FROM kf;
:status
SELECT random() < 2 AS below, count(*) FROM kf;
:status

-- Learned before a definition changed.
SELECT max(v) FROM kf WHERE id > 0;
SELECT max(v) FROM kf WHERE id > 0;
SELECT max(v) FROM kf WHERE id > 0;
:status
SELECT arrow_cache.set_policy('kf', 'never');
SELECT max(v) FROM kf WHERE id > 0;
:status
SELECT max(v) FROM kf WHERE id > 1;
:status
SELECT arrow_cache.set_policy('kf', 'default');
SELECT max(v) FROM kf WHERE id > 0;
:status

-- Constants that name relations decide for themselves alone.
SELECT v, 1247::oid AS type FROM kf WHERE id = 3;
:status
SELECT v, NULL::oid AS type FROM kf WHERE id = 3;
SELECT v, 'kf'::regclass = 'kf'::regclass AS same FROM kf WHERE id = 3;
SELECT v, 'kf'::regclass = 'kf'::regclass AS same FROM kf WHERE id = 3;
:status

-- Two aggregates with the same parts but other meanings: different things are compared on a hit.
SELECT arrow_cache.reset_stats();
SET pg_arrow_cache.verify_sample_rate = 1;
SELECT sum(v ORDER BY v) FROM kf WHERE id > 0;
SELECT sum(v ORDER BY v) FROM kf WHERE id > 0;
SELECT sum(DISTINCT v) FROM kf WHERE id > 0;
SELECT sum(DISTINCT v) FROM kf WHERE id > 0;
SELECT verify_checks AS checks, verify_mismatches AS mismatches FROM arrow_cache.stats;
RESET pg_arrow_cache.verify_sample_rate;

-- Too quick to be stored: after sixteen executions queries of its form are not looked up, whatever their constants …
SET pg_arrow_cache.min_execution_time = '1h';
SELECT format('SELECT v FROM kf WHERE id = %s', i % 3 + 1) FROM generate_series(1, 16) i
\set ECHO none
\gexec
\set ECHO all
:status
SELECT v FROM kf WHERE id = 1;
:status
-- … unless a hint asks for it.
/*+ arrow_cache */ SELECT v FROM kf WHERE id = 1;
:status
SELECT v FROM kf WHERE id = 2;
:status
-- Another threshold, another decision.
SET pg_arrow_cache.min_execution_time = 0;
SELECT v FROM kf WHERE id = 2;
:status
SELECT v FROM kf WHERE id = 2;
:status
RESET pg_arrow_cache.min_execution_time;
-- A stored answer that saves more than its lookup takes is found within sixty-four executions; then all are looked up again.
SET pg_arrow_cache.min_execution_time = '1h';
SELECT format('SELECT id FROM kf WHERE id = %s AND length(repeat(''kf'', 1000000 + id)) > 0', 3 - i % 3) FROM generate_series(1, 18) i
\set ECHO none
\gexec
\set ECHO all
:status
/*+ arrow_cache */ SELECT id FROM kf WHERE id = 1 AND length(repeat('kf', 1000000 + id)) > 0;
SELECT 'SELECT id FROM kf WHERE id = 1 AND length(repeat(''kf'', 1000000 + id)) > 0' FROM generate_series(1, 64)
\set ECHO none
\o /dev/null
\gexec
\o
\set ECHO all
:status
SELECT id FROM kf WHERE id = 1 AND length(repeat('kf', 1000000 + id)) > 0;
:status
RESET pg_arrow_cache.min_execution_time;
DROP TABLE kf;
