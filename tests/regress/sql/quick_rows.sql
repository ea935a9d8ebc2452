-- Rows that come about as fast as they can be stored are not stored before the same is asked again.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset tuples_only on
CREATE TABLE plain AS
    SELECT g AS a, g AS b, g AS c, g AS d, g AS e, g AS f, 'some text of ' || g AS t, 'more of it' || g AS u FROM generate_series(1, 10000) g;
CREATE TABLE one AS SELECT 1 AS v;
SELECT arrow_cache.reset_stats();
SELECT arrow_cache.flush() >= 0 AS flushed;

-- With min_execution_time 0, as in this suite, everything is stored at once.
\set ECHO none
\o /dev/null
SELECT format('SELECT * FROM plain WHERE a > -%s', n) FROM generate_series(1, 10) n \gexec
\o
\set ECHO all
SELECT count(*) AS let_go FROM arrow_cache.bypass_reasons WHERE reason = 'quick_rows';

-- Otherwise a plain scan is let go. The machine may be busy with something else, so that a run looks slow: at least one of many is.
SET pg_arrow_cache.min_execution_time = '0.001ms';
\set ECHO none
\o /dev/null
SELECT format('SELECT * FROM plain WHERE a > -%s', n) FROM generate_series(101, 125) n \gexec
\o
\set ECHO all
SELECT reason, statements > 0 AS let_go FROM arrow_cache.bypass_reasons WHERE reason = 'quick_rows';
-- Each is stored by its second run at the latest, and the third one is a hit.
\set ECHO none
\o /dev/null
SELECT format('SELECT * FROM plain WHERE a > -%s', n) FROM generate_series(101, 125) n \gexec
SELECT * FROM plain WHERE a > -120;
\o
\set ECHO all
:status
SELECT cacheable, reason FROM arrow_cache.why('SELECT * FROM plain WHERE a > -200');

-- A statement that asks for it is stored at once, and so is a small answer.
\o /dev/null
/*+ arrow_cache */ SELECT * FROM plain WHERE a > -300;
\o
:status
SELECT v FROM one WHERE v > 0;
:status
RESET pg_arrow_cache.min_execution_time;
DROP TABLE plain, one;
