-- Every type that is stored as an Arrow type, with its hardest values: executed without the cache, executed and stored, and
-- served, each under two sets of output settings. The uncached text is shown; the other two must equal it to the byte.
\pset null '(null)'
\pset footer off
\pset format unaligned
\getenv builddir PG_ABS_BUILDDIR

CREATE SCHEMA scalar_types;
SET search_path = scalar_types, public;

CREATE TABLE t_bool AS SELECT * FROM (VALUES (1, true), (2, false), (3, NULL), (4, true)) AS v(id, v);
CREATE TABLE t_int AS SELECT * FROM (VALUES
    (1, 0::int2, 0::int4, 0::int8), (2, -32768, -2147483648, -9223372036854775808),
    (3, 32767, 2147483647, 9223372036854775807), (4, NULL, NULL, NULL), (5, -1, -1, -1)) AS v(id, a, b, c);
-- Negative zero, subnormals, the largest, infinities, NaN, and values that need all their digits.
CREATE TABLE t_float AS SELECT * FROM (VALUES
    (1, '-0'::float4, '-0'::float8), (2, '0', '0'), (3, '1e-45', '4.9e-324'), (4, '3.4028235e38', '1.7976931348623157e308'),
    (5, 'Infinity', 'Infinity'), (6, '-Infinity', '-Infinity'), (7, 'NaN', 'NaN'), (8, NULL, NULL),
    (9, '0.1', '0.1'), (10, '0.3'::float4, 0.1::float8 + 0.2::float8), (11, '1.17549435e-38', '2.2250738585072014e-308')) AS v(id, a, b);
-- Scale is part of a numeric's value; so are NaN, the infinities, and lengths beyond any fixed width.
CREATE TABLE t_numeric AS SELECT * FROM (VALUES
    (1, 0::numeric), (2, 0.000), (3, 1.0), (4, 1.00), (5, -1.10), (6, 10000), (7, 100000000), (8, 1e20), (9, 0.00001),
    (10, 1e-30), (11, 'NaN'), (12, 'Infinity'), (13, '-Infinity'), (14, NULL), (15, 12345678901234567890.1234567890),
    (16, 99999999999999999999999999999999999999), (17, -99999999999999999999999999999999999999.5),
    (18, 9223372036854775807), (19, 9223372036854775808), (20, -9223372036854775809), (21, 0.0001), (22, 9999.9999),
    (23, 10000.00010000)) AS v(id, v);
CREATE TABLE t_numeric_huge AS SELECT * FROM (VALUES
    (1, round(10::numeric ^ 1000, 16)), (2, round(-(10::numeric ^ 1000) + 0.5, 16)), (3, (1 / 3::numeric(1000, 999))::numeric(1000, 999)),
    (4, ('1' || repeat('0', 131071))::numeric)) AS v(id, v);
CREATE TABLE t_numeric_typmod (id int, a numeric(5, 2), b numeric(4, 0), c numeric(3, -2), d numeric(3, 5), e numeric(38, 10));
INSERT INTO t_numeric_typmod VALUES (1, 1, 1, 12345, 0.00123, 1), (2, -999.99, 9999, -99900, 0.00999, -9999999999999999999999999999.9999999999),
    (3, 'NaN', 'NaN', 'NaN', 'NaN', 'NaN'), (4, NULL, NULL, NULL, NULL, NULL), (5, 0, 0, 0, 0, 0);
-- Empty strings are not NULL; a char(n) keeps its padding; four-byte characters stay whole; varchar and name keep their types.
CREATE TABLE t_text (id int, a text, b varchar(5), c char(5), d char, e name, f varchar);
INSERT INTO t_text VALUES (1, '', '', '', '', '', ''), (2, 'a', 'b', 'c', 'd', 'e', 'f'), (3, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, U&'\+01F600 \00E9 e\0301', U&'\+01F600', U&'\+01F600', U&'\+01F600', U&'\+01F600', U&'\4E2D\6587'),
    (5, E'tab\tnewline\nbackslash\\quote''', ' a ', ' a ', ' ', ' a ', ' a '),
    (6, repeat('long', 50), 'abcde', 'abcde', 'x', repeat('n', 63), repeat('v', 13)),
    (7, 'twelve bytes', 'x', 'x', 'x', 'twelve bytes', 'thirteen byte');
CREATE TABLE t_bytea AS SELECT * FROM (VALUES
    (1, ''::bytea), (2, '\x00'), (3, '\x00ff5c27'), (4, NULL), (5, 'text'::bytea), (6, decode(repeat('5c00', 40), 'hex'))) AS v(id, v);
CREATE TABLE t_uuid AS SELECT * FROM (VALUES
    (1, '00000000-0000-0000-0000-000000000000'::uuid), (2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), (3, NULL),
    (4, '01234567-89ab-cdef-fedc-ba9876543210')) AS v(id, v);
CREATE TABLE t_date AS SELECT * FROM (VALUES
    (1, '2000-01-01'::date), (2, '1999-12-31'), (3, '1970-01-01'), (4, '0001-01-01'), (5, '0001-12-31 BC'), (6, '4713-11-24 BC'),
    (7, '5874897-12-31'), (8, 'infinity'), (9, '-infinity'), (10, NULL), (11, '2024-02-29')) AS v(id, v);
CREATE TABLE t_time (id int, a time, b time(0), c time(3));
INSERT INTO t_time VALUES (1, '00:00', '00:00', '00:00'), (2, '24:00:00', '24:00:00', '24:00:00'), (3, '23:59:59.999999', '12:34:56.7', '12:34:56.789'),
    (4, NULL, NULL, NULL), (5, '00:00:00.000001', '00:00:01', '00:00:00.001');
CREATE TABLE t_timestamp (id int, a timestamp, b timestamp(0), c timestamptz, d timestamptz(3));
INSERT INTO t_timestamp VALUES
    (1, '2000-01-01', '2000-01-01', '2000-01-01 00:00+00', '2000-01-01 00:00+00'),
    (2, '1999-12-31 23:59:59.999999', '1969-12-31 23:59:59', '1999-12-31 23:59:59.999999+00', '1969-12-31 23:59:59.999+00'),
    (3, 'infinity', 'infinity', 'infinity', 'infinity'), (4, '-infinity', '-infinity', '-infinity', '-infinity'), (5, NULL, NULL, NULL, NULL),
    (6, '0001-01-01 BC', '0044-03-15 12:00 BC', '0044-03-15 12:00+00 BC', '0001-01-01 00:00+00 BC'),
    (7, '4713-11-24 00:00 BC', '4713-11-24 00:00 BC', '4713-11-25 00:00+00 BC', '4713-11-25 00:00+00 BC'),
    (8, '294247-01-10 04:00:54.775806', '294247-01-10 04:00:54', '294247-01-10 04:00:54.775806+00', '294247-01-10 04:00:54+00'),
    (9, '1883-11-18 12:03:57', '2024-03-10 02:30', '2024-03-10 10:30+00', '2024-11-03 09:30+00');
-- json keeps white space, key order and duplicate keys; jsonb does not; both keep nulls apart from NULL.
CREATE TABLE t_json AS SELECT id, v::json AS a, v::jsonb AS b FROM (VALUES
    (1, '{"b" : 1,  "a":[1, 2 ], "b": 2}'), (2, 'null'), (3, NULL), (4, '""'), (5, '1.00'), (6, '1e30'), (7, '{}'), (8, '[]'),
    (9, '"\u00e9\ud83d\ude00 \" \\"'), (10, '  [ {"deep": [[[{"x": null}]]]} , true ]'), (11, '-0.0'), (12, '"' || repeat('x', 300) || '"')) AS v(id, v);

\set all_types 'SELECT format(''SELECT * FROM %I ORDER BY id'', relname) FROM pg_class WHERE relnamespace = ''scalar_types''::regnamespace AND relkind = ''r'' ORDER BY relname'

SELECT count(*) AS types FROM pg_class WHERE relnamespace = 'scalar_types'::regnamespace AND relkind = 'r' \gset
SELECT arrow_cache.flush() >= 0 AS flushed;

-- First settings: those of the test driver.
SHOW DateStyle;
SHOW TimeZone;
SET pg_arrow_cache.enabled = off;
SELECT format('SELECT * FROM %I ORDER BY id', relname) FROM pg_class
WHERE relnamespace = 'scalar_types'::regnamespace AND relkind = 'r' AND relname <> 't_numeric_huge' ORDER BY relname
\gexec
SELECT id, length(v::text), md5(v::text), scale(v) FROM t_numeric_huge ORDER BY id;
\set file :builddir '/results/scalar_uncached.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
RESET pg_arrow_cache.enabled;
SELECT arrow_cache.reset_stats();
\set file :builddir '/results/scalar_stored.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
\set file :builddir '/results/scalar_served.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
SELECT stores = :types AS all_stored, hits = :types AS all_served FROM arrow_cache.stats;
\! cmp "$PG_ABS_BUILDDIR/results/scalar_uncached.txt" "$PG_ABS_BUILDDIR/results/scalar_stored.txt" && echo stored run equal
\! cmp "$PG_ABS_BUILDDIR/results/scalar_uncached.txt" "$PG_ABS_BUILDDIR/results/scalar_served.txt" && echo served run equal

-- Other settings: what was stored under the first must not be served now, and all three must agree again.
SET DateStyle = 'SQL, DMY';
SET TimeZone = 'Asia/Kolkata';
SET extra_float_digits = -10;
SET bytea_output = 'escape';
SET pg_arrow_cache.enabled = off;
SELECT format('SELECT * FROM %I ORDER BY id', relname) FROM pg_class
WHERE relnamespace = 'scalar_types'::regnamespace AND relname IN ('t_bytea', 't_date', 't_float', 't_timestamp') ORDER BY relname
\gexec
\set file :builddir '/results/scalar_uncached.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
RESET pg_arrow_cache.enabled;
SELECT arrow_cache.reset_stats();
\set file :builddir '/results/scalar_stored.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
\set file :builddir '/results/scalar_served.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
SELECT stores = :types AS all_stored, hits = :types AS all_served FROM arrow_cache.stats;
\! cmp "$PG_ABS_BUILDDIR/results/scalar_uncached.txt" "$PG_ABS_BUILDDIR/results/scalar_stored.txt" && echo stored run equal
\! cmp "$PG_ABS_BUILDDIR/results/scalar_uncached.txt" "$PG_ABS_BUILDDIR/results/scalar_served.txt" && echo served run equal

-- Each of these settings alone makes another key, also where it changes nothing visible.
RESET ALL;
SET search_path = scalar_types, public;
\set status 'SELECT arrow_cache.last_status() AS status;'
SELECT id FROM t_bool WHERE id = 1;
SET DateStyle = 'ISO';
SELECT id FROM t_bool WHERE id = 1;
:status
RESET DateStyle;
SET TimeZone = 'UTC';
SELECT id FROM t_bool WHERE id = 1;
:status
RESET TimeZone;
SET IntervalStyle = 'iso_8601';
SELECT id FROM t_bool WHERE id = 1;
:status
RESET IntervalStyle;
SET extra_float_digits = 0;
SELECT id FROM t_bool WHERE id = 1;
:status
RESET extra_float_digits;
SET bytea_output = 'escape';
SELECT id FROM t_bool WHERE id = 1;
:status
RESET bytea_output;
SELECT id FROM t_bool WHERE id = 1;
:status

-- Arrow counts microseconds from 1970 in 64 bits, PostgreSQL from 2000: the last thirty years of PostgreSQL's range wrap around in
-- what is stored, and come back as they were.
CREATE TABLE t_late AS SELECT '294276-12-31 23:59:59.999999'::timestamp AS a, '294247-01-10 04:00:54.775807+00'::timestamptz AS b;
SELECT a, b FROM t_late;
:status
SELECT a, b FROM t_late;
:status

-- A served row is a row of the right types: what is built on top sees the same column types and modifiers.
SELECT * FROM t_text WHERE id = 2 \gdesc
SELECT * FROM t_numeric_typmod WHERE id = 1;
SELECT * FROM t_numeric_typmod WHERE id = 1 \gdesc
SELECT * FROM t_numeric_typmod WHERE id = 1;
:status

SET client_min_messages = warning;
DROP SCHEMA scalar_types CASCADE;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
