-- Columns below set operations: what converts them, and when.
\pset format unaligned
\pset tuples_only on
\set status 'SELECT arrow_cache.last_status(), arrow_cache.last_reason()'
SELECT arrow_cache.flush() IS NOT NULL;

-- The planner converts the columns below a set operation, by casts that no query names. They must be as harmless as those of queries.
CREATE TYPE step_of_a AS ENUM ('1', '2', '3', '4', '5', '6', '7', '8', '9');
CREATE TYPE step_of_b AS ENUM ('a');
CREATE SEQUENCE edge_steps;
CREATE FUNCTION step(step_of_b) RETURNS step_of_a VOLATILE LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('edge_steps')::text::step_of_a; END $$;
CREATE CAST (step_of_b AS step_of_a) WITH FUNCTION step(step_of_b) AS IMPLICIT;
CREATE TABLE steps_a (e step_of_a);
CREATE TABLE steps_b (e step_of_b);
INSERT INTO steps_a VALUES ('9');
INSERT INTO steps_b VALUES ('a');
SELECT e FROM steps_a UNION ALL SELECT e FROM steps_b;
SELECT e FROM steps_a UNION ALL SELECT e FROM steps_b;
:status;
SELECT e FROM steps_a UNION ALL (SELECT '8'::step_of_a UNION ALL SELECT e FROM steps_b);
SELECT e FROM steps_a UNION ALL (SELECT '8'::step_of_a UNION ALL SELECT e FROM steps_b);
:status;
DROP TABLE steps_a, steps_b;
DROP TYPE step_of_b, step_of_a CASCADE;
DROP SEQUENCE edge_steps;
-- A conversion that reads settings is seen, too: a cursor counts under those of its first row.
CREATE TABLE days (d date);
CREATE TABLE moments (z timestamptz);
SET timezone = 'UTC';
INSERT INTO days VALUES ('2024-01-01');
INSERT INTO moments VALUES ('2024-01-01 00:00+00');
SELECT count(*) FROM (SELECT d FROM days UNION SELECT z FROM moments) y;
SELECT count(*) FROM (SELECT d FROM days UNION SELECT z FROM moments) y;
:status;
BEGIN;
DECLARE c CURSOR FOR SELECT count(*) FROM (SELECT d FROM days UNION SELECT z FROM moments) y;
SET timezone = 'Asia/Tokyo';
FETCH ALL FROM c;
COMMIT;
RESET timezone;
-- One that raises an error in a plan for all values alone. The answer of the other kind of plan serves both.
CREATE TABLE exact (k numeric);
CREATE TABLE rough (k float8);
INSERT INTO exact VALUES ('1e400');
INSERT INTO rough VALUES (1);
PREPARE converted (bool) AS SELECT k FROM (SELECT k FROM exact UNION ALL SELECT k FROM rough) s WHERE COALESCE($1, k > 5);
SET plan_cache_mode = force_custom_plan;
EXECUTE converted (false);
EXECUTE converted (false);
:status;
SET plan_cache_mode = force_generic_plan;
EXECUTE converted (false);
:status;
RESET plan_cache_mode;
-- Casts to wider numbers, and to a type of the same form.
CREATE TABLE whole (i int, v text);
INSERT INTO whole VALUES (1, 'v1');
SELECT i FROM whole UNION SELECT 2::bigint FROM whole ORDER BY 1;
SELECT i FROM whole UNION SELECT 2::bigint FROM whole ORDER BY 1;
:status;
SELECT v::varchar FROM whole UNION ALL SELECT v FROM whole;
SELECT v::varchar FROM whole UNION ALL SELECT v FROM whole;
:status;
DEALLOCATE ALL;
DROP TABLE days, moments, exact, rough, whole;

SELECT arrow_cache.flush() IS NOT NULL;
TABLE cache_leftovers;
