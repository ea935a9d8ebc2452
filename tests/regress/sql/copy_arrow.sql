-- COPY ... TO STDOUT (FORMAT arrow): when it is served, who may use it, what it refuses, and that other COPYs do not change. The bytes go
-- to /dev/null here; the client tests read them.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset footer off
\pset format unaligned
CREATE TABLE c (a int, b text, g int GENERATED ALWAYS AS (a * 2) STORED);
INSERT INTO c SELECT g, 'row ' || g FROM generate_series(1, 10) g;
SELECT arrow_cache.flush() >= 0 AS flushed;

-- A query, a table, a column list: each has an entry of its own, and each is served.
COPY (SELECT a, b FROM c ORDER BY a) TO STDOUT (FORMAT arrow) \g /dev/null
:status
COPY (SELECT a, b FROM c ORDER BY a) TO STDOUT (FORMAT arrow) \g /dev/null
:status
COPY c TO STDOUT (FORMAT arrow) \g /dev/null
:status
COPY c TO STDOUT (FORMAT arrow) \g /dev/null
:status
COPY c (b) TO STDOUT (FORMAT arrow) \g /dev/null
:status
COPY c (b) TO STDOUT WITH (FORMAT 'arrow') \g /dev/null
:status
-- It shares its entry with the query sent alone, and with the functions.
SELECT a, b FROM c ORDER BY a LIMIT 1;
COPY (SELECT a, b FROM c ORDER BY a LIMIT 1) TO STDOUT (FORMAT arrows) \g /dev/null
:status
SELECT length(arrow_cache.query('SELECT a, b FROM c ORDER BY a')) > 0 AS stream;
:status
SELECT count(*) AS entries FROM arrow_cache.entries;
-- Options, written in every way that COPY has; they do not make other entries.
COPY (SELECT a, b FROM c ORDER BY a) TO STDOUT (FORMAT arrow_stream, COLUMNS (b, a), LIMIT 5, BATCH_ROWS 2, CHUNK_BYTES 65536, COMPRESSION lz4, NUMERIC decimal128, INTERVAL 'month_day_nano', EXTENSION_TYPES canonical, ON_UNREPRESENTABLE text) \g /dev/null
:status
COPY (SELECT a, b FROM c ORDER BY a) TO STDOUT (columns 'b', limit '5', compression ZSTD, format arrow) \g /dev/null
:status
SELECT count(*) AS entries FROM arrow_cache.entries;

-- A change is seen, also one of the same transaction; after a rollback it is served to nobody.
INSERT INTO c VALUES (11, 'row 11');
COPY c TO STDOUT (FORMAT arrow) \g /dev/null
:status
BEGIN;
DELETE FROM c WHERE a = 11;
COPY c TO STDOUT (FORMAT arrow) \g /dev/null
:status
ROLLBACK;
COPY c TO STDOUT (FORMAT arrow) \g /dev/null
:status
-- With a limit a miss stores nothing; without the cache it works the same way.
COPY (SELECT a FROM c) TO STDOUT (FORMAT arrow, LIMIT 3) \g /dev/null
:status
SET pg_arrow_cache.enabled = off;
COPY c TO STDOUT (FORMAT arrow) \g /dev/null
:status
RESET pg_arrow_cache.enabled;
COPY (SELECT random() AS r FROM c) TO STDOUT (FORMAT arrow) \g /dev/null
:status
COPY (SELECT 1 AS one) TO STDOUT (FORMAT arrow) \g /dev/null
:status
COPY (VALUES (1), (2)) TO STDOUT (FORMAT arrow) \g /dev/null
COPY (WITH w AS (SELECT a FROM c) SELECT * FROM w) TO STDOUT (FORMAT arrow) \g /dev/null
COPY (TABLE c) TO STDOUT (FORMAT arrow) \g /dev/null
COPY (SELECT FROM c) TO STDOUT (FORMAT arrow) \g /dev/null
COPY pg_class (relname) TO STDOUT (FORMAT arrow) \g /dev/null
:status

-- Refused: directions, places and options of the text formats.
SELECT arrow_cache.flush() > 0 AS flushed;
COPY c FROM '/nowhere/file' (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY c FROM STDIN (FORMAT arrow);
\.
\echo :LAST_ERROR_SQLSTATE
COPY c TO '/nowhere/file' (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY (SELECT a FROM c) TO PROGRAM 'false' (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, HEADER);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, NULL '');
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (DELIMITER ';', FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, QUOTE '"');
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, ESCAPE '"');
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, FORCE_QUOTE *);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, FORCE_NOT_NULL (a));
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, FORCE_NULL (a));
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, ENCODING 'UTF8');
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, FREEZE);
\echo :LAST_ERROR_SQLSTATE
-- Refused: wrong options.
COPY c TO STDOUT (FORMAT arrow, COLOUR red);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, LIMIT -1);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, LIMIT 1, LIMIT 1);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT csv, FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, COMPRESSION);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, COLUMNS *);
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, COLUMNS (a, g));
\echo :LAST_ERROR_SQLSTATE
COPY c TO STDOUT (FORMAT arrow, COLUMNS ("A"));
\echo :LAST_ERROR_SQLSTATE
-- Refused: statements other than SELECT, and what COPY itself refuses.
COPY (INSERT INTO c VALUES (12) RETURNING a) TO STDOUT (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY sqlstate
COPY (WITH w AS (DELETE FROM c RETURNING a) SELECT a FROM w) TO STDOUT (FORMAT arrow);
\set VERBOSITY default
COPY (SELECT a INTO no FROM c) TO STDOUT (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY (SELECT nothing FROM c) TO STDOUT (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY c (g) TO STDOUT (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY c (a, a) TO STDOUT (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
CREATE VIEW cv AS SELECT a FROM c;
COPY cv TO STDOUT (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
CREATE TABLE cp (a int) PARTITION BY LIST (a);
COPY cp TO STDOUT (FORMAT arrow);
\echo :LAST_ERROR_SQLSTATE
COPY (SELECT 1 / (a - 5) FROM c) TO STDOUT (FORMAT arrow) \g /dev/null
SELECT count(*) AS entries FROM arrow_cache.entries;
SELECT count(*) AS rows FROM c;

-- Other formats: their own output and their own errors.
COPY (SELECT a, b FROM c WHERE a = 1) TO STDOUT;
COPY (SELECT a, b FROM c WHERE a = 1) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE (b));
COPY c (a, b) FROM STDIN (FORMAT csv);
12,row 12
\.
COPY c (a) TO STDOUT (LIMIT 1);
COPY c TO STDOUT (FORMAT arow);
COPY c TO STDOUT (FORMAT csv, COMPRESSION lz4);

-- Permissions and row security.
CREATE ROLE regress_cache_copy;
COPY c TO STDOUT (FORMAT arrow) \g /dev/null
COPY c TO STDOUT (FORMAT arrow) \g /dev/null
:status
SET ROLE regress_cache_copy;
COPY c TO STDOUT (FORMAT arrow);
COPY (SELECT a FROM c) TO STDOUT (FORMAT arrow);
RESET ROLE;
GRANT SELECT (a) ON c TO regress_cache_copy;
SET ROLE regress_cache_copy;
COPY c TO STDOUT (FORMAT arrow);
COPY c (a) TO STDOUT (FORMAT arrow) \g /dev/null
:status
RESET ROLE;
ALTER TABLE c ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON c FOR SELECT TO regress_cache_copy USING (a <= 2);
SET ROLE regress_cache_copy;
COPY c (a) TO STDOUT (FORMAT arrow) \g /dev/null
:status
SELECT row_count FROM arrow_cache.entries WHERE query ILIKE '%c%' AND row_count < 5;
COPY c (a) TO STDOUT (FORMAT arrow) \g /dev/null
:status
SET row_security = off;
COPY c (a) TO STDOUT (FORMAT arrow);
RESET row_security;
RESET ROLE;
DROP VIEW cv;
DROP TABLE c, cp;
DROP ROLE regress_cache_copy;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
