-- A form of query whose executions were always too quick to be stored is not looked at any more, whatever its constants; but one of
-- 64 is, since another session may have stored an answer.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset tuples_only on
CREATE TABLE quick (id int, v int);
INSERT INTO quick SELECT i, i * 10 FROM generate_series(1, 300) i;
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
-- Other forms are looked at: another column, another operator, the same through EXPLAIN.
SELECT id FROM quick WHERE id = 17;
:status
SELECT v FROM quick WHERE id < 2;
:status
-- So is one with a hint that asks for it, and that hint alone.
/*+ arrow_cache */ SELECT v FROM quick WHERE id = 18;
:status
/*+ no_arrow_cache */ SELECT v FROM quick WHERE id = 18;
:status
SELECT v FROM quick WHERE id = 19;
:status

-- What was stored meanwhile is found by the 64th of them at the latest, and once it was, all are looked at.
\set ECHO none
\o /dev/null
SELECT 'SELECT v FROM quick WHERE id = 18' FROM generate_series(1, 64) \gexec
\o
\set ECHO all
SELECT v FROM quick WHERE id = 18;
:status
SELECT v FROM quick WHERE id = 20;
:status

-- Parameters are constants, too: of an EXECUTE by a plan of its own and by a generic one.
PREPARE p (int) AS SELECT id + v FROM quick WHERE id = $1;
\set ECHO none
\o /dev/null
SELECT format('EXECUTE p (%s)', n) FROM generate_series(1, 16) n \gexec
\o
\set ECHO all
:status
EXECUTE p (17);
:status

-- What is too quick is a matter of the setting: another one, and all is looked at; none, and all is stored at once.
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

-- What cannot be cached says why, however often it comes.
\set ECHO none
\o /dev/null
SELECT format('SELECT v > random() FROM quick WHERE id = %s', n) FROM generate_series(1, 20) n \gexec
\o
\set ECHO all
:status
-- And of a form that depends on its constant, each constant says it for itself.
SET quick.own = 'mine';
SELECT current_setting('quick.own') FROM quick WHERE id = 1;
:status
SELECT current_setting('TimeZone') IS NULL FROM quick WHERE id = 1;
:status
SELECT current_setting('quick.own') FROM quick WHERE id = 1;
:status
RESET pg_arrow_cache.min_execution_time;
DROP TABLE quick;
