-- Every reason for a bypass: the statement is executed as usual, nothing is stored, and the reason is reported and counted.
-- Each statement runs twice: had the first stored anything, the second would be a hit.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
SET seq_page_cost = 1000000;
CREATE TABLE t (id int PRIMARY KEY, v text, d date, ts timestamptz, x xml);
INSERT INTO t VALUES (1, 'one', '2024-01-01', '2024-01-01 00:00+00', '<a>1</a>'), (2, 'two', '2024-02-01', '2024-02-01 00:00+00', '<a>2</a>');
SELECT arrow_cache.flush() >= 0 AS flushed;
SELECT arrow_cache.reset_stats();

-- not_select, utility_statement
INSERT INTO t VALUES (3, 'three');
:status
DELETE FROM t WHERE id = 3 RETURNING v;
:status
SET work_mem = '4MB';
:status
SHOW work_mem;
:status
COPY (DELETE FROM t WHERE id = 0 RETURNING v) TO STDOUT;
:status
-- nested_statement is silent inside functions; see nesting.
-- data_modifying_cte
WITH w AS (INSERT INTO t VALUES (4, 'four') RETURNING id) SELECT id FROM w;
:status
WITH w AS (DELETE FROM t WHERE id = 4 RETURNING id) SELECT id FROM w;
:status
-- row_locks
SELECT id FROM t WHERE id = 1 FOR UPDATE;
SELECT id FROM t WHERE id = 1 FOR UPDATE;
:status
SELECT id FROM t WHERE id = 1 FOR KEY SHARE SKIP LOCKED;
:status
SELECT id FROM (SELECT id FROM t WHERE id = 1 FOR SHARE) s;
:status
-- volatile_function: in the list, in WHERE, in a sub-query, behind a cast, in a function in FROM.
SELECT id, random() > 2 AS r FROM t WHERE id = 1;
SELECT id, random() > 2 AS r FROM t WHERE id = 1;
:status
SELECT id FROM t WHERE id = 1 AND random() < 2;
:status
SELECT id FROM t WHERE id = (SELECT 1 WHERE random() < 2);
:status
SELECT count(*) OVER (ORDER BY random()) > 0 AS c FROM t WHERE id = 1;
:status
SELECT id FROM t WHERE id = 1 ORDER BY random();
:status
SELECT id FROM t WHERE gen_random_uuid() IS NOT NULL AND id = 1;
:status
-- moving_clock; a similar query that is cached stands in clock.sql.
SELECT id FROM t WHERE now() IS NOT NULL AND id = 1;
SELECT id FROM t WHERE now() IS NOT NULL AND id = 1;
:status
SELECT id FROM t WHERE CURRENT_TIMESTAMP IS NOT NULL AND id = 1;
:status
SELECT id FROM t WHERE ts < LOCALTIMESTAMP AND id < 2;
:status
-- session_function, and the current schema, which is part of the key.
SELECT id, CURRENT_SCHEMA IS NULL AS same FROM t WHERE id = 1;
:status
SELECT id, current_setting('work_mem') FROM t WHERE id = 1;
:status
SELECT id, clock_timestamp() IS NULL AS n FROM t WHERE id = 1;
:status
-- A time that is computed while parsing is a constant of the query: each execution is another query.
SELECT id, 'now'::timestamptz IS NULL AS n FROM t WHERE id = 1;
SELECT id, 'now'::timestamptz IS NULL AS n FROM t WHERE id = 1;
:status
-- stable_function: reads something that the key does not cover.
SELECT id, to_regclass('t') IS NULL AS n FROM t WHERE id = 1;
SELECT id, to_regclass('t') IS NULL AS n FROM t WHERE id = 1;
:status
SELECT id, pg_column_size(ts) IS NULL AS n FROM t WHERE id = 1;
:status
SELECT id, ('to' || v)::timestamp IS NULL AS n FROM t WHERE id = 9;
:status
SELECT id, (substr('today', id))::timestamptz IS NULL AS n FROM t WHERE id = 1;
:status
SELECT id, has_table_privilege('t', 'SELECT') FROM t WHERE id = 1;
:status
-- user_defined_function: a function that reads a table or is not in SQL, an operator, an aggregate, a cast, the output of a type, the comparison of a range.
CREATE FUNCTION own_reader(int) RETURNS int LANGUAGE sql AS 'SELECT min(id) + $1 FROM t';
CREATE FUNCTION own_plain(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 + 1; END';
CREATE OPERATOR @#@ (PROCEDURE = own_plain, RIGHTARG = int);
CREATE AGGREGATE own_sum(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
CREATE TYPE own_type AS (a int);
CREATE FUNCTION own_cast(int) RETURNS own_type IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN ROW($1); END';
CREATE CAST (int AS own_type) WITH FUNCTION own_cast(int);
SELECT own_reader(id) FROM t WHERE id = 1;
SELECT own_reader(id) FROM t WHERE id = 1;
:status
SELECT own_plain(id) FROM t WHERE id = 1;
:status
SELECT @#@ id AS o FROM t WHERE id = 1;
:status
SELECT own_sum(id) FROM t;
:status
SELECT id::own_type FROM t WHERE id = 1;
:status
SELECT id FROM t WHERE id = own_plain(0);
:status
-- A function of the same name that is first in the search path is not the built-in one.
CREATE SCHEMA shadow;
CREATE FUNCTION shadow.lower(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN ''shadow''; END';
SELECT lower(v) FROM t WHERE id = 1;
SELECT lower(v) FROM t WHERE id = 1;
:status
SET search_path = shadow, pg_catalog, public;
SELECT lower(v) FROM t WHERE id = 1;
:status
RESET search_path;
-- system_catalog
SELECT relname FROM pg_class WHERE relname = 't' AND relnamespace = 'public'::regnamespace;
:status
SELECT count(*) FROM t, pg_namespace WHERE false;
:status
SELECT count(*) > 0 AS c FROM t WHERE EXISTS (SELECT FROM pg_type);
:status
-- system_column: all but tableoid, which belongs to the relation and not to the row's place.
SELECT ctid FROM t WHERE id = 1;
:status
SELECT id FROM t WHERE xmin IS NOT NULL AND id = 1;
:status
SELECT tableoid::regclass FROM t WHERE id = 1;
SELECT tableoid::regclass FROM t WHERE id = 1;
:status
-- temporary_relation
CREATE TEMPORARY TABLE temporary (id int);
SELECT id FROM temporary;
:status
SELECT count(*) FROM t JOIN temporary USING (id);
:status
-- foreign_table
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE far (id int) SERVER files OPTIONS (program 'echo 1');
SELECT id FROM far;
SELECT id FROM far;
:status
SELECT count(*) FROM t JOIN far USING (id);
:status
-- unsupported_relation: a sequence.
CREATE SEQUENCE number;
SELECT is_called FROM number;
SELECT is_called FROM number;
:status
-- unsupported_relation: another table access method.
CREATE ACCESS METHOD heap_too TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE elsewhere (id int) USING heap_too;
INSERT INTO elsewhere VALUES (1);
SELECT id FROM elsewhere;
SELECT id FROM elsewhere;
:status
-- A function in FROM is checked as a function.
CREATE FUNCTION own_rows() RETURNS SETOF int STABLE LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT t.id FROM t; END';
SELECT * FROM own_rows();
:status
SELECT count(*) > 0 AS c FROM pg_show_all_settings();
:status
-- tablesample
SELECT count(*) FROM t TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM t TABLESAMPLE BERNOULLI (100) REPEATABLE (1);
SELECT count(*) FROM t TABLESAMPLE BERNOULLI (100) REPEATABLE (1);
:status
-- no_relation
SELECT 1 AS one;
SELECT 1 AS one;
:status
SELECT upper('x') AS u WHERE true;
:status
-- record_type: a record whose type has no name, and an array of such
SELECT (id, v) AS pair FROM t WHERE id = 1;
SELECT (id, v) AS pair FROM t WHERE id = 1;
:status
SELECT ARRAY[(id, v)] AS pairs FROM t WHERE id = 1;
:status
-- domain_constraint
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
SELECT id::positive FROM t WHERE id = 1;
SELECT id::positive FROM t WHERE id = 1;
:status
-- xml_expression
SELECT xmlelement(name e, id) FROM t WHERE id = 1;
SELECT xmlelement(name e, id) FROM t WHERE id = 1;
:status
SELECT n FROM t, XMLTABLE('/a' PASSING x COLUMNS n int PATH '.') WHERE id = 1;
:status
-- scrollable_cursor, updatable_cursor
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v, 'back' AS back FROM t ORDER BY v;
FETCH 1 FROM c;
FETCH BACKWARD 1 FROM c;
:status
COMMIT;
SELECT v FROM t WHERE id = 1;
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT v FROM t WHERE id = 1;
:status
ROLLBACK;
-- serializable
SELECT v FROM t WHERE id = 1;
SELECT v FROM t WHERE id = 1;
:status
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT v FROM t WHERE id = 1;
:status
COMMIT;
-- own_writes, own_ddl
BEGIN;
UPDATE t SET v = 'uno' WHERE id = 1;
SELECT v FROM t WHERE id = 1;
:status
ROLLBACK;
BEGIN;
CREATE TABLE unrelated (a int);
SELECT v FROM t WHERE id = 1;
:status
ROLLBACK;
SELECT v FROM t WHERE id = 1;
:status
-- explain, disabled, populate_off, too_quick, too_few_runs, too_large: see explain and settings. incomplete_read:
BEGIN READ ONLY;
DECLARE c NO SCROLL CURSOR FOR SELECT id, 'part' AS part FROM t ORDER BY id;
FETCH 1 FROM c;
CLOSE c;
:status
COMMIT;
-- Bypassed statements have stored nothing.
SELECT query, count(*) FROM arrow_cache.entries GROUP BY query ORDER BY query;
-- All bypasses of queries were counted; other statements, and those without a relation, are counted apart (counters).
-- The calls of arrow_cache's own functions in this test are calls of functions that are not built in.
SELECT reason, CASE WHEN reason = 'user_defined_function' THEN 'more than ' || least(statements, 9) ELSE statements::text END AS statements
FROM arrow_cache.bypass_reasons ORDER BY reason;
SELECT (SELECT sum(statements) FROM arrow_cache.bypass_reasons WHERE reason NOT IN ('incomplete_read', 'scrollable_cursor')) - bypasses AS difference FROM arrow_cache.stats;

SET client_min_messages = warning;
DROP TABLE t, temporary, elsewhere CASCADE;
DROP EXTENSION file_fdw CASCADE;
DROP SEQUENCE number;
DROP ACCESS METHOD heap_too;
DROP CAST (int AS own_type);
DROP AGGREGATE own_sum(int);
DROP OPERATOR @#@ (NONE, int);
DROP FUNCTION own_reader, own_plain, own_cast, own_rows;
DROP TYPE own_type;
DROP DOMAIN positive;
DROP SCHEMA shadow CASCADE;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
