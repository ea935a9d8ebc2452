-- Statements for which a cache that hashes the wrong thing, or checks at the wrong time, gives a wrong answer. Each shows the right answer.
\pset format unaligned
\pset tuples_only on
\set status 'SELECT arrow_cache.last_status(), arrow_cache.last_reason()'
SELECT arrow_cache.flush() IS NOT NULL;
CREATE TABLE edge (i int, v text);
INSERT INTO edge SELECT g, 'v' || g FROM generate_series(1, 20) g;

-- Two cursors declared in one query string have two keys.
BEGIN\; DECLARE a NO SCROLL CURSOR FOR SELECT i FROM edge WHERE i < 8 AND i > 5 ORDER BY i\; FETCH ALL FROM a\; DECLARE b NO SCROLL CURSOR FOR SELECT i FROM edge WHERE i < 2 OR i > 19 ORDER BY i\; FETCH ALL FROM b\; COMMIT;

-- FETCH 0 reads nothing, which is not the end of the result.
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT i FROM edge WHERE i = 3; FETCH 0 FROM c; COMMIT;
SELECT i FROM edge WHERE i = 3;

-- A setting that changes between the start of a cursor and the reading of its rows counts for what is read.
CREATE TABLE edge_time (ts timestamptz);
INSERT INTO edge_time VALUES ('2024-01-01 00:00+00');
SET TimeZone = 'UTC';
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT to_char(ts, 'HH24:MI') FROM edge_time; SET LOCAL TimeZone = 'Asia/Tokyo'; FETCH ALL FROM c; COMMIT;
SELECT to_char(ts, 'HH24:MI') FROM edge_time;
:status;
SELECT to_char(ts, 'HH24:MI') FROM edge_time;
:status;
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT to_char(ts, 'HH24:MI') FROM edge_time;
:status;
SET LOCAL TimeZone = 'Asia/Tokyo'; FETCH ALL FROM c; COMMIT;
RESET TimeZone;

-- The key of a statement that fails while it starts is not used for the next one.
CREATE ROLE edge_reader;
CREATE TABLE edge_secret (a text, b text);
GRANT SELECT ON edge TO edge_reader;
SET ROLE edge_reader;
SELECT a, b FROM edge_secret;
SELECT i, v, random() > 2 FROM edge WHERE i = 1;
RESET ROLE;
SELECT count(*) FROM arrow_cache.entries WHERE query ILIKE '%edge_secret%';

-- to_json and similar functions call a user-defined cast to JSON, which is not visible in the query.
CREATE TYPE edge_enum AS ENUM ('a', 'b');
CREATE SEQUENCE edge_calls;
CREATE FUNCTION edge_to_json(edge_enum) RETURNS json VOLATILE LANGUAGE sql AS $$ SELECT to_json(nextval('edge_calls')) $$;
CREATE CAST (edge_enum AS json) WITH FUNCTION edge_to_json(edge_enum);
CREATE TABLE edge_enums (k text, e edge_enum);
INSERT INTO edge_enums VALUES ('x', 'a');
SELECT to_json(e) FROM edge_enums;
SELECT to_json(e) FROM edge_enums;
:status;
SELECT jsonb_object_agg(k, e) FROM edge_enums;
SELECT jsonb_object_agg(k, e) FROM edge_enums;
:status;
-- The enum alone is cached.
SELECT e FROM edge_enums;
SELECT e FROM edge_enums;
:status;

-- An ordering operator of a user's own may read tables.
CREATE TABLE edge_direction (d int);
INSERT INTO edge_direction VALUES (1);
CREATE FUNCTION edge_cmp(text, text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT d FROM edge_direction) * bttextcmp($1, $2); END $$;
CREATE FUNCTION edge_lt(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) < 0';
CREATE FUNCTION edge_le(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) <= 0';
CREATE FUNCTION edge_eq(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) = 0';
CREATE FUNCTION edge_ge(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) >= 0';
CREATE FUNCTION edge_gt(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) > 0';
CREATE OPERATOR <<< (PROCEDURE = edge_lt, LEFTARG = text, RIGHTARG = text, COMMUTATOR = >>>);
CREATE OPERATOR <<=< (PROCEDURE = edge_le, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR =<>= (PROCEDURE = edge_eq, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR >>=> (PROCEDURE = edge_ge, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR >>> (PROCEDURE = edge_gt, LEFTARG = text, RIGHTARG = text, COMMUTATOR = <<<);
CREATE OPERATOR CLASS edge_ops FOR TYPE text USING btree AS
    OPERATOR 1 <<<, OPERATOR 2 <<=<, OPERATOR 3 =<>=, OPERATOR 4 >>=>, OPERATOR 5 >>>, FUNCTION 1 edge_cmp(text, text);
SELECT v FROM edge WHERE i < 4 ORDER BY v USING <<<;
UPDATE edge_direction SET d = -1;
SELECT v FROM edge WHERE i < 4 ORDER BY v USING <<<;
:status;

-- The text of a regclass depends on temporary tables, which no key holds.
CREATE TABLE edge_names (o oid);
INSERT INTO edge_names VALUES ('edge'::regclass);
SELECT concat(o::regclass) FROM edge_names;
SELECT concat(o::regclass) FROM edge_names;
:status;

-- An expression that PostgreSQL can run is not refused for being deep.
-- (Its text is not shown.)
\set ECHO none
SELECT 'SELECT count(*) FROM edge WHERE i = ' || string_agg('i', '+') || ' - i * 2999' FROM generate_series(1, 3000) \gexec
\set ECHO all

-- A row of many large values is not gathered in memory once it is known to be too large to store.
SET pg_arrow_cache.max_entry_size = '1MB';
CREATE TABLE edge_wide AS SELECT repeat('x', 400000) AS t;
BEGIN READ ONLY; DECLARE c NO SCROLL CURSOR FOR SELECT t, t, t, t, t, t, t, t FROM edge_wide; MOVE ALL FROM c;
:status;
COMMIT;
RESET pg_arrow_cache.max_entry_size;

-- Membership and roles belong to all databases: a change reaches the results of each.
SELECT i FROM edge WHERE i = 5;
SELECT i FROM edge WHERE i = 5;
:status;
ALTER ROLE edge_reader NOINHERIT;
SELECT i FROM edge WHERE i = 5;
:status;

DROP TABLE edge, edge_time, edge_secret, edge_enums, edge_direction, edge_names, edge_wide CASCADE;
DROP OPERATOR FAMILY edge_ops USING btree CASCADE;
DROP FUNCTION edge_cmp, edge_lt, edge_le, edge_eq, edge_ge, edge_gt CASCADE;
DROP TYPE edge_enum CASCADE;
DROP SEQUENCE edge_calls;
DROP ROLE edge_reader;

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

-- Arguments with names, where quotes are read in another way than when the statement was parsed: the names are not in the tree, and a text that
-- can be read in two ways is compared as it stands.
CREATE TABLE named (id int);
INSERT INTO named VALUES (1), (2);
CREATE FUNCTION less(a int, "A" int) RETURNS int IMMUTABLE LANGUAGE sql RETURN a - "A";
PREPARE named_1 AS SELECT '\' AS "k\'", 'w' AS "x'", less("a" => id, "A" => 100) FROM named;
PREPARE named_2 AS SELECT '\' AS "k\'", 'w' AS "x'", less("A" => id, "a" => 100) FROM named;
SET standard_conforming_strings = off;
EXECUTE named_1;
EXECUTE named_1;
EXECUTE named_2;
:status;
RESET standard_conforming_strings;
SELECT less("a" => id, "A" => 100) FROM named;
SELECT less("A" => id, "a" => 100) FROM named;
SELECT less(id, 100) FROM named;
:status;
DEALLOCATE ALL;
DROP FUNCTION less;
DROP TABLE named;

SELECT arrow_cache.flush() IS NOT NULL;
TABLE cache_leftovers;
