-- What 17 does beside queries: event triggers at the start of a session, COPY that goes on after errors, what EXPLAIN shows, infinite intervals, numbers at random.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
CREATE TABLE read_at_login (v int);
CREATE TABLE written_at_login (v int);
INSERT INTO read_at_login VALUES (1);
CREATE FUNCTION at_login() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE r int;
BEGIN
    FOR i IN 1..3 LOOP
        SELECT sum(v) INTO r FROM read_at_login;
    END LOOP;
    INSERT INTO written_at_login VALUES (r);
END $$;
SELECT sum(v) FROM read_at_login;
SELECT count(*) FROM written_at_login;
CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION at_login();
SELECT arrow_cache.reset_stats();
-- What a trigger reads is not the client's: neither served nor stored nor counted. What it writes is seen. CREATE EVENT TRIGGER has marked the database,
-- which outdates nothing.
\c -
SELECT arrow_cache.last_status() IS NULL AS nothing_yet;
SELECT hits, misses, stale, stores FROM arrow_cache.stats;
SELECT count(*) FROM written_at_login;
:status
SELECT sum(v) FROM read_at_login;
:status
INSERT INTO read_at_login VALUES (5);
\c -
SELECT max(v) FROM written_at_login;
SELECT sum(v) FROM read_at_login;
:status
-- Switched off, it changes nothing.
SET event_triggers = off;
DROP EVENT TRIGGER at_login;
\c -
SELECT count(*) FROM written_at_login;
SELECT count(*) FROM written_at_login;
:status
-- COPY that leaves out the lines that it cannot read.
CREATE TABLE copied (a int, b int);
INSERT INTO copied VALUES (0, 0);
SELECT sum(a) FROM copied;
SELECT sum(a) FROM copied;
:status
COPY copied FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY verbose);
1	1
one	2
3	3
\.
SELECT sum(a) FROM copied;
:status
COPY copied FROM STDIN (ON_ERROR ignore);
one	2
\.
SELECT sum(a) FROM copied;
:status
-- What EXPLAIN shows of a hit.
CREATE FUNCTION shown(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, SERIALIZE) ' || statement LOOP
        RETURN NEXT regexp_replace(substring(line FROM 'Seq Scan|Serialization'), ' *$', '');
    END LOOP;
END $$;
SELECT a FROM copied WHERE b > 0 ORDER BY a;
-- What EXPLAIN executes and has written out is not stored.
SELECT * FROM shown('SELECT a FROM copied WHERE b = 77') AS line WHERE line <> '';
SELECT count(*) FROM arrow_cache.entries WHERE query ILIKE '%b = 77%';
EXPLAIN (COSTS OFF) SELECT a FROM copied WHERE b > 0 ORDER BY a;
EXPLAIN (GENERIC_PLAN, COSTS OFF) SELECT a FROM copied WHERE b = $1;
PREPARE with_value AS SELECT a FROM copied WHERE b = $1;
EXECUTE with_value(3);
EXECUTE with_value(3);
:status
EXPLAIN (GENERIC_PLAN, COSTS OFF) SELECT a FROM copied WHERE b = $1;
-- Infinite intervals, in each style.
CREATE TABLE spans (k int, v interval);
INSERT INTO spans VALUES (1, 'infinity'), (2, '-infinity'), (3, '1 day');
SELECT v, isfinite(v), -v, date '2024-01-01' + v FROM spans ORDER BY v;
SELECT v, isfinite(v), -v, date '2024-01-01' + v FROM spans ORDER BY v;
:status
SET intervalstyle = iso_8601;
SELECT v, isfinite(v), -v, date '2024-01-01' + v FROM spans ORDER BY v;
:status
RESET intervalstyle;
SELECT max(v), min(v), sum(v) FILTER (WHERE k <> 2), avg(v) FILTER (WHERE k <> 1) FROM spans;
SELECT max(v), min(v), sum(v) FILTER (WHERE k <> 2), avg(v) FILTER (WHERE k <> 1) FROM spans;
:status
SELECT sum(v) FROM spans;
-- Arrow has none.
\set VERBOSITY sqlstate
SELECT count(*) > 0 AS delivered FROM arrow_cache.fetch('SELECT v FROM spans WHERE k = 1', '{"interval": "month_day_nano"}');
SELECT count(*) > 0 AS delivered FROM arrow_cache.fetch('SELECT v FROM spans WHERE k = 2', '{"interval": "month_day_nano"}');
\set VERBOSITY default
SELECT count(*) > 0 AS delivered FROM arrow_cache.fetch('SELECT v FROM spans', '{"interval": "month_day_nano", "on_unrepresentable": "text"}');
-- Numbers at random, and what the session alone knows.
SELECT k FROM spans WHERE random(1, 1) = k;
:status
SELECT k FROM spans WHERE random_normal(1, 0) = k;
:status
SELECT k, timestamp '2024-01-01' AT LOCAL IS NULL FROM spans ORDER BY k;
:status
SELECT k, SYSTEM_USER IS NULL FROM spans ORDER BY k;
:status
-- A number may be written in groups of digits; a space makes it a number and a name.
SELECT 1_000, 0x1F FROM spans WHERE k = 1;
SELECT 1_000, 0x1F FROM spans WHERE k = 1;
:status
SELECT 1 _000, 0 x1F FROM spans WHERE k = 1;
:status
DROP TABLE read_at_login, written_at_login, copied, spans;
DROP FUNCTION at_login;
DROP FUNCTION shown;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
