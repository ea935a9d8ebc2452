-- why(): what the cache would do with a query, without running it.
\pset footer off
\pset format unaligned
\pset tuples_only on
\pset null '-'
CREATE TABLE t (id int PRIMARY KEY, v text, d date, x xml);
INSERT INTO t VALUES (1, 'one', '2024-01-01', '<a/>');
CREATE SCHEMA "Other";
CREATE TABLE "Other"."Odd.Name" (id int);
CREATE VIEW over_t AS SELECT id, v FROM t;
CREATE TABLE parted (id int) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES FROM (%s) TO (%s)', n, n, n + 1) FROM generate_series(10, 34) AS n \gexec
SELECT arrow_cache.flush() >= 0;

-- Casts of texts to times and timestamps.
SELECT * FROM arrow_cache.why('SELECT v::timestamp FROM t');
SELECT * FROM arrow_cache.why('SELECT v::timestamptz(3) FROM t');
SELECT * FROM arrow_cache.why('SELECT string_to_array(v, '','')::time[] FROM t');

-- Eligible: the relations that the answer would depend on. why() runs and stores nothing.
SELECT * FROM arrow_cache.why('SELECT v FROM t');
SELECT * FROM arrow_cache.why('SELECT v FROM over_t JOIN "Other"."Odd.Name" USING (id);');
SELECT * FROM arrow_cache.why('SELECT v FROM t WHERE id = $1 AND v = $2');
SELECT * FROM arrow_cache.why('WITH w AS (SELECT id FROM t) SELECT id FROM w UNION ALL VALUES (1)');
SELECT * FROM arrow_cache.why('VALUES (1)');
SELECT * FROM arrow_cache.why('TABLE t');
SELECT * FROM arrow_cache.why('SELECT id FROM parted WHERE id < 12');
SELECT * FROM arrow_cache.why('SELECT id FROM parted');
-- Planning computes constants as usual; no row is read.
SELECT * FROM arrow_cache.why('SELECT 1 / 0 FROM t');
SELECT * FROM arrow_cache.why('SELECT id / 0 FROM t');
SELECT count(*) FROM arrow_cache.entries;
-- The answer is the same for a query whose result is stored, and the result stays.
SELECT v FROM t;
SELECT * FROM arrow_cache.why('SELECT v FROM t');
SELECT v FROM t;
SELECT arrow_cache.last_status();
SELECT * FROM arrow_cache.why(NULL);

-- not_select, utility_statement, explain
SELECT * FROM arrow_cache.why('');
SELECT * FROM arrow_cache.why('-- nothing');
SELECT * FROM arrow_cache.why('SELECT 1; SELECT 2');
SELECT * FROM arrow_cache.why('INSERT INTO t VALUES (2)');
SELECT * FROM arrow_cache.why('DELETE FROM t RETURNING id');
SELECT * FROM arrow_cache.why('SET work_mem = 64');
SELECT * FROM arrow_cache.why('COPY t TO STDOUT');
SELECT * FROM arrow_cache.why('COPY (SELECT id FROM t) TO STDOUT');
SELECT * FROM arrow_cache.why('DECLARE c CURSOR FOR SELECT id FROM t');
SELECT * FROM arrow_cache.why('EXECUTE p');
SELECT * FROM arrow_cache.why('DROP TABLE t');
SELECT * FROM arrow_cache.why('SELECT id INTO new FROM t');
SELECT * FROM arrow_cache.why('EXPLAIN SELECT v FROM t');
-- What the query says.
SELECT * FROM arrow_cache.why('WITH w AS (DELETE FROM t RETURNING id) SELECT id FROM w');
SELECT * FROM arrow_cache.why('SELECT id FROM t FOR UPDATE');
CREATE SEQUENCE number;
SELECT * FROM arrow_cache.why($$SELECT nextval('number') FROM t$$);
SELECT * FROM arrow_cache.why('SELECT id FROM t WHERE random() < 2');
SELECT * FROM arrow_cache.why('SELECT pg_column_size(d) FROM t');
SELECT * FROM arrow_cache.why('SELECT now() FROM t');
SELECT * FROM arrow_cache.why('SELECT CURRENT_DATE FROM t');
CREATE FUNCTION "Other".plus(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 + 1; END';
CREATE OPERATOR @#@ (PROCEDURE = "Other".plus, RIGHTARG = int);
SELECT * FROM arrow_cache.why('SELECT "Other".plus(id) FROM t');
SELECT * FROM arrow_cache.why('SELECT @#@ id FROM t');
SELECT * FROM arrow_cache.why('SELECT ctid FROM t');
SELECT * FROM arrow_cache.why('SELECT id FROM t TABLESAMPLE SYSTEM (1)');
SELECT * FROM arrow_cache.why('SELECT 1');
SELECT * FROM arrow_cache.why('SELECT (id, (v, id)) FROM t');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
SELECT * FROM arrow_cache.why('SELECT id::positive FROM t');
-- Nor would an answer notice a constraint that is added later.
CREATE DOMAIN any_number AS int;
SELECT * FROM arrow_cache.why('SELECT id::any_number FROM t');
SELECT * FROM arrow_cache.why('SELECT xmlelement(name e, id) FROM t');
-- What it reads.
SELECT * FROM arrow_cache.why('SELECT relname FROM pg_class, t');
CREATE TEMPORARY TABLE passing (id int);
SELECT regexp_replace(detail, 'pg_temp_\d+', 'pg_temp') FROM arrow_cache.why('SELECT id FROM passing');
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE far (id int) SERVER files OPTIONS (filename '/nowhere');
SELECT * FROM arrow_cache.why('SELECT id FROM far');
SELECT arrow_cache.set_policy('"Other"."Odd.Name"', 'never');
SELECT * FROM arrow_cache.why('SELECT id FROM "Other"."Odd.Name"');
SELECT * FROM arrow_cache.why('SELECT is_called FROM number');
CREATE ACCESS METHOD heap_too TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE elsewhere (id int) USING heap_too;
SELECT * FROM arrow_cache.why('SELECT id FROM elsewhere');
-- What this session may do now.
SELECT * FROM arrow_cache.why('/*+ no_arrow_cache */ SELECT id FROM t');
SELECT v FROM t;
SET pg_arrow_cache.populate = off;
SELECT * FROM arrow_cache.why('SELECT id FROM t');
SELECT * FROM arrow_cache.why('SELECT v FROM t');
RESET pg_arrow_cache.populate;
SET pg_arrow_cache.enabled = off;
SELECT * FROM arrow_cache.why('SELECT id FROM t');
SELECT * FROM arrow_cache.why('SELECT now() FROM t');
RESET pg_arrow_cache.enabled;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM arrow_cache.why('SELECT id FROM t');
COMMIT;
BEGIN;
UPDATE t SET v = 'uno';
SELECT * FROM arrow_cache.why('SELECT id FROM t');
SELECT * FROM arrow_cache.why('SELECT count(*) FROM parted_10');
ROLLBACK;
BEGIN;
ALTER TABLE t ADD COLUMN more int;
SELECT * FROM arrow_cache.why('SELECT id FROM t');
ROLLBACK;
-- Reasons that only an execution can find are no refusal, and why() does not count as an execution.
SET pg_arrow_cache.min_execution_time = '1h';
SET pg_arrow_cache.min_runs = 2;
SELECT * FROM arrow_cache.why('SELECT id FROM t');
SELECT * FROM arrow_cache.why('SELECT id FROM t');
EXPLAIN (COSTS OFF) SELECT id FROM t;
SELECT id FROM t;
SELECT arrow_cache.last_status(), arrow_cache.last_reason();
SELECT id FROM t;
SELECT arrow_cache.last_status(), arrow_cache.last_reason();
RESET pg_arrow_cache.min_execution_time;
RESET pg_arrow_cache.min_runs;

-- The number of relations that a query may depend on is limited.
CREATE FUNCTION pg_temp.with_settings(many int) RETURNS text LANGUAGE sql RETURN
  'SELECT ' || (SELECT string_agg(format('current_setting(%L, true)', 'app.s' || g % many), ', ') FROM generate_series(1, 2 * many) g) || ' FROM t';
SELECT cacheable, reason FROM arrow_cache.why(pg_temp.with_settings(32));
SELECT * FROM arrow_cache.why(pg_temp.with_settings(33));
CREATE SCHEMA many_types;
DO $$ BEGIN FOR g IN 1..257 LOOP EXECUTE format('CREATE TYPE many_types.n%s AS (a int)', g); END LOOP; END $$;
CREATE FUNCTION pg_temp.with_types(many int) RETURNS text LANGUAGE sql RETURN
  'SELECT ' || (SELECT string_agg(format('NULL::many_types.n%s', g), ', ') FROM generate_series(1, many) g) || ' FROM t';
SELECT cacheable, reason FROM arrow_cache.why(pg_temp.with_types(256));
SELECT * FROM arrow_cache.why(pg_temp.with_types(257));

-- A text that PostgreSQL does not accept is an error.
SELECT * FROM arrow_cache.why('SELEC 1');
SELECT * FROM arrow_cache.why('SELECT no_such_column FROM t');
SELECT * FROM arrow_cache.why('SELECT id FROM no_such_table');
-- None of these queries has run.
SELECT is_called FROM number;
SELECT count(*) FROM t;

SET client_min_messages = warning;
DROP EXTENSION file_fdw CASCADE;
DROP TABLE elsewhere, passing, parted;
DROP ACCESS METHOD heap_too;
DROP OPERATOR @#@ (NONE, int);
DROP SCHEMA "Other" CASCADE;
DROP SCHEMA many_types CASCADE;
DROP TABLE t CASCADE;
DROP DOMAIN positive, any_number;
DROP SEQUENCE number;
