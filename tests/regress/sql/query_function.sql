-- arrow_cache.query takes one SELECT and gives one Arrow IPC stream, from the cache where the entry is valid. What a stream contains is for the
-- client tests; here: when it is served, that it changes with its query, and each of its errors with its code.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset footer off
\pset format unaligned
CREATE TABLE q (id int, v text);
INSERT INTO q VALUES (1, 'one'), (2, 'two');
SELECT arrow_cache.flush() >= 0 AS flushed;

SELECT length(arrow_cache.query('SELECT id, v FROM q ORDER BY id')) > 0 AS stream;
:status
SELECT length(arrow_cache.query('SELECT id, v FROM q ORDER BY id')) > 0 AS stream;
:status
-- A stream begins with a schema message and ends with the end-of-stream marker; a hit sends the same bytes as a miss.
SELECT arrow_cache.flush();
SELECT arrow_cache.query('SELECT id, v FROM q ORDER BY id') AS miss \gset
SELECT arrow_cache.query('SELECT id, v FROM q ORDER BY id') AS hit \gset
:status
SELECT :'miss' = :'hit' AS same, substr(:'hit'::bytea, 1, 4) = '\xffffffff' AS begins, substr(:'hit'::bytea, length(:'hit'::bytea) - 7) = '\xffffffff00000000' AS ends;
SELECT position('one'::bytea IN :'hit'::bytea) > 0 AS holds_values, position('id'::bytea IN :'hit'::bytea) > 0 AS holds_names;
-- The entry is shared with the plain query, in both directions; the key covers the text of the query, not of the call.
SELECT id, v FROM q ORDER BY id;
:status
SELECT v FROM q WHERE id = 1;
SELECT length(arrow_cache.query(' select V from q /* the same */ WHERE id = 1 ; ')) > 0 AS stream;
:status
-- A change is seen at once, also one of the same transaction; after a rollback the answer before is valid.
UPDATE q SET v = 'uno' WHERE id = 1;
SELECT position('uno'::bytea IN arrow_cache.query('SELECT v FROM q WHERE id = 1')) > 0 AS changed;
:status
BEGIN;
UPDATE q SET v = 'eins' WHERE id = 1;
SELECT position('eins'::bytea IN arrow_cache.query('SELECT v FROM q WHERE id = 1')) > 0 AS changed;
:status
ROLLBACK;
SELECT position('uno'::bytea IN arrow_cache.query('SELECT v FROM q WHERE id = 1')) > 0 AS back;
:status
-- No rows, no columns, many batches, what the cache bypasses, VALUES and WITH.
SELECT length(arrow_cache.query('SELECT id FROM q WHERE false')) > 0 AS stream;
SELECT length(arrow_cache.query('SELECT FROM q')) > 0 AS stream;
SELECT length(arrow_cache.query('SELECT i, repeat(''x'', 100) FROM generate_series(1, 20000) i')) > 2000000 AS stream;
SELECT length(arrow_cache.query('SELECT i, repeat(''x'', 100) FROM generate_series(1, 20000) i')) > 2000000 AS stream;
:status
SELECT length(arrow_cache.query('SELECT random() AS r')) > 0 AS stream;
:status
SELECT length(arrow_cache.query('SELECT 1 AS one')) > 0 AS stream;
:status
SELECT length(arrow_cache.query('VALUES (1), (2)')) > 0 AS stream;
SELECT length(arrow_cache.query('WITH w AS (SELECT id FROM q) SELECT * FROM w')) > 0 AS stream;
SELECT length(arrow_cache.query('TABLE q')) > 0 AS stream;
SELECT length(arrow_cache.query('SELECT (id, v) AS record FROM q')) > 0 AS stream;
SET pg_arrow_cache.enabled = off;
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = 1')) > 0 AS stream;
:status
RESET pg_arrow_cache.enabled;
-- In a function, in a query over a table, several in one query.
CREATE FUNCTION exports() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN length(arrow_cache.query('SELECT v FROM q WHERE id = 2')) > 0; END $$;
SELECT exports();
SELECT id, position(v::bytea IN arrow_cache.query('SELECT v FROM q WHERE id = $1', id)) > 0 AS own FROM q ORDER BY id;
SELECT arrow_cache.query('SELECT id FROM q') = arrow_cache.query('SELECT id FROM q') AS same;

SELECT arrow_cache.flush() > 0 AS flushed;
-- Parameters: by value, of any type, NULL, an untyped literal that takes the type its place asks for, VARIADIC.
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = $1', 1)) > 0 AS stream;
:status
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = $1', 1)) > 0 AS stream;
:status
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = $1', 2)) > 0 AS stream;
:status
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = $1', '1')) > 0 AS stream;
:status
PREPARE same(int) AS SELECT v FROM q WHERE id = $1;
EXECUTE same(1);
:status
DEALLOCATE same;
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = $1 OR v = $2', 1, 'two')) > 0 AS stream;
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = $1 OR v = $2', 1, NULL)) > 0 AS stream;
:status
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = ANY ($1)', ARRAY[1, 2])) > 0 AS stream;
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = $1 OR id = $2', VARIADIC ARRAY[1, 2])) > 0 AS stream;
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = $1 OR id = $2', 1, 2)) > 0 AS stream;
:status
SELECT length(arrow_cache.query('SELECT $1 AS d, $2 AS j, $3 AS u FROM q', '2024-01-01'::date, '{"a": 1}'::jsonb, '11111111-1111-1111-1111-111111111111'::uuid)) > 0 AS stream;
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = $1', NULL)) > 0 AS stream;
-- More than the query uses; a NULL query.
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = 1', 5)) > 0 AS stream;
SELECT arrow_cache.query(NULL);

-- Errors, each with its code. Nothing is stored.
SELECT arrow_cache.flush() >= 0 AS flushed;
SELECT arrow_cache.query('INSERT INTO q VALUES (3, ''three'')');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('UPDATE q SET v = v RETURNING v');
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY sqlstate
SELECT arrow_cache.query('WITH w AS (DELETE FROM q RETURNING v) SELECT v FROM w');
\set VERBOSITY default
SELECT arrow_cache.query('CREATE TABLE no (a int)');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('EXPLAIN SELECT v FROM q');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('SELECT v INTO no FROM q');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('COMMIT');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('SELECT 1; SELECT 2');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query(' -- nothing');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('SELECT FROM WHERE');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('SELECT v FROM no_such_table');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('SELECT v FROM q WHERE id = $1');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('SELECT v FROM q WHERE id = $2', 1);
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('SELECT v FROM q WHERE id = $1', 'not a number');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('SELECT v FROM q WHERE id = $1', 'text'::text);
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query('SELECT 1 / (id - 1) FROM q');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.query();
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) AS stored FROM arrow_cache.entries;
SELECT count(*) AS rows FROM q;
-- In a read-only transaction too.
BEGIN READ ONLY;
SELECT length(arrow_cache.query('SELECT v FROM q WHERE id = 2')) > 0 AS stream;
COMMIT;

DROP FUNCTION exports;
DROP TABLE q;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
