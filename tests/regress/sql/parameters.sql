-- Prepared statements: the values and types of parameters are part of the key, by value and not by text.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset footer off
\pset format unaligned
CREATE TABLE arg (id int, t text, n numeric, d date, ts timestamptz, f float8, b bool, a int[], j jsonb, u uuid, x bytea, c char(4), i interval);
INSERT INTO arg VALUES
    (1, 'one', 1.0, '2024-01-01', '2024-01-01 00:00+00', 1.5, true, '{1,2}', '{"k": 1}', '11111111-1111-1111-1111-111111111111', '\x01', 'c1', '1 day'),
    (2, '2', 2.00, '2024-02-29', 'infinity', '-0', false, '{NULL}', 'null', NULL, '\x', 'c', '24 hours'),
    (3, NULL, 'NaN', 'infinity', NULL, 'NaN', NULL, '{}', NULL, '33333333-3333-3333-3333-333333333333', NULL, NULL, NULL);

-- One value, one entry; a statement prepared twice under different names is one statement.
PREPARE by_id(int) AS SELECT id, t FROM arg WHERE id = $1;
EXECUTE by_id(1);
:status
EXECUTE by_id(1);
:status
EXECUTE by_id(2);
:status
EXECUTE by_id(2);
:status
EXECUTE by_id(1);
:status
PREPARE by_id_too(int) AS select ID, T from ARG where ID = $1;
EXECUTE by_id_too(1);
:status
-- The value of a parameter counts, not its expression; the same digits with another type are another key.
EXECUTE by_id(3 - 2);
:status
PREPARE by_id_wide(bigint) AS SELECT id, t FROM arg WHERE id = $1;
EXECUTE by_id_wide(1);
:status
PREPARE by_id_numeric(numeric) AS SELECT id, t FROM arg WHERE id = $1;
EXECUTE by_id_numeric(1);
:status
EXECUTE by_id_numeric(1.0);
:status
PREPARE plain AS SELECT id, t FROM arg WHERE id = 1;
EXECUTE plain;
:status
SELECT id, t FROM arg WHERE id = 1;
:status

-- NULL is a value of its own, apart from the empty string.
PREPARE nullable(text) AS SELECT id, $1 IS NULL AS is_null, length($1) FROM arg WHERE id = 1;
EXECUTE nullable(NULL);
EXECUTE nullable('');
:status
EXECUTE nullable(NULL);
:status
EXECUTE nullable('');
:status
-- Two parameters do not run together.
PREPARE two(text, text) AS SELECT $1 AS a, $2 AS b FROM arg WHERE id = 1;
EXECUTE two('ab', 'c');
EXECUTE two('a', 'bc');
:status
EXECUTE two(NULL, 'abc');
:status
EXECUTE two('abc', NULL);
:status

-- Text and numbers that are printed alike; scale, sign of zero, NaN.
PREPARE as_text(text) AS SELECT id, $1 AS p FROM arg WHERE t = $1;
EXECUTE as_text('2');
PREPARE as_numeric(numeric) AS SELECT id, $1 AS p FROM arg WHERE n = $1;
EXECUTE as_numeric(2);
EXECUTE as_numeric(2.0);
:status
EXECUTE as_numeric('NaN');
EXECUTE as_numeric(2.0);
:status
PREPARE as_float(float8) AS SELECT id, f, $1 AS p FROM arg WHERE f = $1;
EXECUTE as_float('-0');
EXECUTE as_float('0');
:status
EXECUTE as_float('NaN');
EXECUTE as_float('NaN');
:status

-- Every kind of type as a parameter: stored at the first execution, served at the second.
PREPARE many(bool, date, timestamptz, int[], jsonb, uuid, bytea, char, interval) AS SELECT id, $1 AS b, $2 AS d, $3 AS ts, $4 AS a, $5 AS j, $6 AS u, $7 AS x, $8 AS c, $9 AS i FROM arg WHERE id = 1;
EXECUTE many(true, '2024-02-29', '2024-01-01 00:00+00', '{1,NULL,3}', '{"a": [1, 2]}', '11111111-1111-1111-1111-111111111111', '\x00ff', 'c', '1 mon');
EXECUTE many(true, '2024-02-29', '2024-01-01 00:00+00', '{1,NULL,3}', '{"a": [1, 2]}', '11111111-1111-1111-1111-111111111111', '\x00ff', 'c', '1 mon');
:status
EXECUTE many(true, '2024-02-29', '2024-01-01 00:00+00', '[0:2]={1,NULL,3}', '{"a": [1, 2]}', '11111111-1111-1111-1111-111111111111', '\x00ff', 'c', '1 mon');
:status
-- Equal for the = operator and yet shown differently: 1 month and 30 days, 1 day and 24 hours.
EXECUTE many(true, '2024-02-29', '2024-01-01 00:00+00', '[0:2]={1,NULL,3}', '{"a": [1, 2]}', '11111111-1111-1111-1111-111111111111', '\x00ff', 'c', '30 days');
:status
EXECUTE many(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
EXECUTE many(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
:status
PREPARE listed(int[]) AS SELECT id FROM arg WHERE id = ANY ($1) ORDER BY id;
EXECUTE listed('{1,2}');
EXECUTE listed(ARRAY[1, 2]);
:status
EXECUTE listed('{2,1}');
:status
EXECUTE listed('{1,3}');
PREPARE paged(bigint, bigint) AS SELECT id FROM arg ORDER BY id LIMIT $1 OFFSET $2;
EXECUTE paged(1, 1);
EXECUTE paged(2, 1);
:status
EXECUTE paged(NULL, 0);
EXECUTE paged(1, 1);
:status
-- Composite, enum, range and domain parameters, a long value, and one that the planner folds away.
CREATE TYPE arg_pair AS (a int, b text);
CREATE TYPE arg_mood AS ENUM ('sad', 'happy');
CREATE DOMAIN arg_domain AS int CHECK (VALUE < 100);
PREPARE users(arg_pair, arg_mood, int4range, arg_domain) AS SELECT id, $1 AS p, $2 AS m, $3 AS r, $4 AS d FROM arg WHERE id = 1;
EXECUTE users((1, 'x'), 'sad', '[1,3)', 5);
EXECUTE users((1, 'x'), 'sad', '[1,3)', 5);
:status
EXECUTE users((1, 'y'), 'sad', '[1,3)', 5);
:status
EXECUTE users((1, 'x'), 'happy', '[1,3)', 5);
:status
PREPARE long(text) AS SELECT id, md5($1) FROM arg WHERE id = 1;
EXECUTE long(repeat('a', 100000));
EXECUTE long(repeat('a', 99999) || 'b');
:status
EXECUTE long(repeat('a', 100000));
:status

-- More executions than it takes to choose a generic plan: the answers stay those of each value.
SET plan_cache_mode = force_generic_plan;
EXECUTE by_id(1);
:status
EXECUTE by_id(3);
EXECUTE by_id(3);
:status
SET plan_cache_mode = force_custom_plan;
EXECUTE by_id(3);
:status
RESET plan_cache_mode;
-- A change of the table is seen by the prepared statement, generic or custom.
UPDATE arg SET t = 'new' WHERE id = 3;
EXECUTE by_id(3);
:status
EXECUTE by_id(3);
:status
SET plan_cache_mode = force_generic_plan;
UPDATE arg SET t = 'newer' WHERE id = 3;
EXECUTE by_id(3);
:status
EXECUTE by_id(3);
:status
-- A search path changed after PREPARE is seen as well.
CREATE SCHEMA arg_other;
CREATE TABLE arg_other.arg AS SELECT 1 AS id, 'other'::text AS t;
SET search_path = arg_other, public;
EXECUTE by_id(1);
:status
RESET search_path;
EXECUTE by_id(1);

-- Two statements prepared in one string have two keys, however similar they are.
PREPARE either AS SELECT id FROM arg WHERE id = 1 OR t = '2' ORDER BY id \; PREPARE neither AS SELECT id FROM arg WHERE id = 1 AND t = '2' ORDER BY id;
EXECUTE either \; EXECUTE neither;
EXECUTE either;
:status
EXECUTE neither;
:status

DEALLOCATE ALL;
DROP SCHEMA arg_other CASCADE;
DROP TABLE arg;
DROP TYPE arg_pair, arg_mood;
DROP DOMAIN arg_domain;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
