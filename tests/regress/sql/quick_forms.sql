-- A form whose executions were always too quick to be stored is no longer looked up, whatever the constants; but now and then
-- an execution is looked up, because another session may have stored an answer.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset tuples_only on
CREATE TABLE quick (id int, v int);
INSERT INTO quick SELECT i, i * 10 FROM generate_series(1, 5000) i;
SELECT arrow_cache.flush() >= 0 AS flushed;
SET pg_arrow_cache.min_execution_time = '10s';

-- Sixteen times in a row, with other constants each time.
\set ECHO none
\o /dev/null
SELECT format('SELECT v FROM quick WHERE id = %s', n) FROM generate_series(1, 16) n \gexec
\o
\set ECHO all
:status
SELECT v FROM quick WHERE id = 17;
:status
-- The rows are those of the table.
UPDATE quick SET v = v + 1 WHERE id = 17;
SELECT v FROM quick WHERE id = 17;
:status
-- Other forms are looked up: another column, another operator, the same through EXPLAIN.
SELECT id FROM quick WHERE id = 17;
:status
SELECT v FROM quick WHERE id < 2;
:status
-- A statement with a hint that asks for it is looked up too; with another hint it is not.
/*+ arrow_cache */ SELECT v FROM quick WHERE id = 18;
:status
/*+ no_arrow_cache */ SELECT v FROM quick WHERE id = 18;
:status
SELECT v FROM quick WHERE id = 19;
:status

-- An answer that was stored meanwhile is found by the 64th execution at the latest; from then on all are looked up.
\set ECHO none
\o /dev/null
SELECT 'SELECT v FROM quick WHERE id = 18' FROM generate_series(1, 64) \gexec
\o
\set ECHO all
SELECT v FROM quick WHERE id = 18;
:status
SELECT v FROM quick WHERE id = 20;
:status

-- After look-ups in vain they become rarer: these executions are looked up.
CREATE TABLE seen (n int, status text);
\set ECHO none
\o /dev/null
SELECT format('SELECT v * 2 FROM quick WHERE id = %s', n), format('INSERT INTO seen SELECT %s, arrow_cache.last_status()', n)
    FROM generate_series(1, 721) n \gexec
\o
\set ECHO all
SELECT string_agg(n::text, ' ' ORDER BY n) FROM seen WHERE status = 'MISS' AND n > 14;
SELECT count(*), string_agg(DISTINCT status, ' ') FROM seen WHERE n > 16;
DROP TABLE seen;

-- Parameters count as constants: in an EXECUTE with a custom plan and with a generic one.
PREPARE p (int) AS SELECT id + v FROM quick WHERE id = $1;
\set ECHO none
\o /dev/null
SELECT format('EXECUTE p (%s)', n) FROM generate_series(1, 16) n \gexec
\o
\set ECHO all
:status
EXECUTE p (17);
:status

-- The setting defines what is too quick: after a change of it all are looked up; at 0 all are stored at once.
\set ECHO none
\o /dev/null
SELECT format('SELECT v + 1 FROM quick WHERE id = %s', n) FROM generate_series(1, 17) n \gexec
\o
\set ECHO all
:status
SET pg_arrow_cache.min_execution_time = '9s';
SELECT v + 1 FROM quick WHERE id = 17;
:status
SET pg_arrow_cache.min_execution_time = 0;
SELECT v + 1 FROM quick WHERE id = 18;
:status
SELECT v + 1 FROM quick WHERE id = 18;
:status
SET pg_arrow_cache.min_execution_time = '10s';
SELECT v + 1 FROM quick WHERE id = 18;
:status

-- A query that is not eligible reports its reason, however often it runs.
\set ECHO none
\o /dev/null
SELECT format('SELECT v > random() FROM quick WHERE id = %s', n) FROM generate_series(1, 20) n \gexec
\o
\set ECHO all
:status
-- Where the constant decides about eligibility, each constant reports its own reason.
SET quick.own = 'mine';
SELECT current_setting('quick.own') FROM quick WHERE id = 1;
:status
SELECT current_setting('work_mem') IS NULL FROM quick WHERE id = 1;
:status
SELECT current_setting('quick.own') FROM quick WHERE id = 1;
:status
RESET pg_arrow_cache.min_execution_time;
DROP TABLE quick;
