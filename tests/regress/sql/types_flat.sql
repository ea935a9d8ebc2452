-- Every kind of type that is stored as the flat image of its values: executed without the cache, executed and stored, and served,
-- each under two sets of output settings. The uncached text is shown; the other two must equal it to the byte.
\pset null '(null)'
\pset footer off
\pset format unaligned
\getenv builddir PG_ABS_BUILDDIR

CREATE SCHEMA flat_types;
SET search_path = flat_types, public;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'between' BEFORE 'ok';
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN postcode AS text;
CREATE DOMAIN moods AS mood[];
CREATE TYPE pair AS (a int, b text);
CREATE TYPE nest AS (p pair, list pair[], m mood, t timestamptz, f float8, x bytea);

CREATE TABLE t_char AS SELECT * FROM (VALUES (1, 'a'::"char"), (2, ''), (3, '\303'), (4, NULL), (5, '\\')) AS v(id, v);
-- Intervals keep months, days and microseconds apart.
CREATE TABLE t_interval AS SELECT * FROM (VALUES
    (1, '0'::interval), (2, '1 mon'), (3, '30 days'), (4, '720 hours'), (5, '-1 year 2 mons -3 days 04:05:06.789'), (6, NULL),
    (7, '178000000 years'), (8, '-0.000001 s'), (9, '2147483647 days')) AS v(id, v);
CREATE TABLE t_timetz AS SELECT * FROM (VALUES
    (1, '00:00+00'::timetz), (2, '24:00:00-12'), (3, '12:34:56.789+05:30'), (4, NULL), (5, '23:59:59.999999+15:59:59')) AS v(id, v);
CREATE TABLE t_network (id int, a inet, b cidr, c macaddr, d macaddr8);
INSERT INTO t_network VALUES (1, '192.168.1.5/24', '192.168.1.0/24', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05'),
    (2, '::ffff:1.2.3.4', '2001:db8::/32', '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff:ff:ff'), (3, NULL, NULL, NULL, NULL), (4, '0.0.0.0/0', '0.0.0.0/0', NULL, NULL);
CREATE TABLE t_bit (id int, a bit(3), b varbit, c bit(64));
INSERT INTO t_bit VALUES (1, '101', '', repeat('10', 32)::bit(64)), (2, '000', '1', 0::bit(64)), (3, NULL, NULL, NULL), (4, '111', repeat('1', 100)::varbit, (-1)::bit(64));
CREATE TABLE t_geometry (id int, a point, b line, c lseg, d box, e path, f polygon, g circle);
INSERT INTO t_geometry VALUES (1, '(1,-0)', '{1,-1,0}', '[(0,0),(1,1)]', '(1,1),(0,0)', '((0,0),(1,1),(2,0))', '((0,0),(1,1),(2,0))', '<(0,0),1.5>'),
    (2, '(NaN,Infinity)', NULL, NULL, '(0.1,0.2),(0.3,0.4)', '[(0,0),(0.1,0.2)]', NULL, '<(0.1,0.2),0>');
CREATE TABLE t_search AS SELECT * FROM (VALUES
    (1, 'a fat cat sat'::tsvector, 'fat & (rat | !cat:AB)'::tsquery), (2, 'a:1A,3B fat:2,16383', 'super:*'), (3, '', ''), (4, NULL, NULL),
    (5, '''with '''' quote''', 'a <-> b <2> c')) AS v(id, a, b);
CREATE TABLE t_money AS SELECT * FROM (VALUES (1, '0'::money), (2, '-92233720368547758.08'), (3, '1234.5'), (4, NULL)) AS v(id, v);
CREATE TABLE t_range (id int, a int4range, b numrange, c tstzrange, d daterange, e int8multirange, f datemultirange);
INSERT INTO t_range VALUES (1, '[1,5)', '(1.10,2.200]', '[2024-01-01 00:00+00,2024-06-01 00:00+00)', '[2024-01-01,2024-01-31]', '{[1,3),[7,8)}', '{[2024-01-01,infinity)}'),
    (2, 'empty', '(,)', '(-infinity,infinity)', '[,2000-01-01)', '{}', '{(,)}'), (3, NULL, NULL, NULL, NULL, NULL, NULL), (4, '(,3]', '[NaN,NaN]', NULL, 'empty', NULL, NULL);
-- Arrays: NULL elements, no elements, more dimensions, lower bounds other than 1, elements that need quotes.
CREATE TABLE t_array (id int, a int[], b text[], c float8[], d numeric[], e timestamptz[], f mood[], g pair[], h date[], i bytea[]);
INSERT INTO t_array VALUES
    (1, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'),
    (2, '{1,NULL,3}', '{a,NULL,"NULL","",",","\"","\\"}', '{-0,NaN,Infinity,0.1,NULL}', '{1.0,1.00,NaN,Infinity}', '{infinity,2024-01-01 00:00+00,NULL}',
     '{happy,sad,NULL,between}', ARRAY[(1, 'x')::pair, NULL, (NULL, NULL)::pair, (2, 'q"uo,te')::pair], '{0001-01-01 BC,-infinity}', '{"\\x00ff","\\x",NULL}'),
    (3, '[-2:0]={7,8,9}', '[0:0]={zero}', '{{1,2},{3,4}}', '[5:5][-1:0]={{1,2}}', NULL, '{{sad,ok},{happy,NULL}}', '{}', '{{2024-01-01},{2024-02-29}}', NULL),
    (4, '{{{1},{2}},{{3},{4}}}', '{{a,b},{c,d}}', NULL, NULL, '{}', NULL, NULL, NULL, NULL), (5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE t_user (id int, a mood, b positive, c postcode, d moods, e pair, f nest);
INSERT INTO t_user VALUES
    (1, 'sad', 1, '', '{sad,happy}', (1, 'x'), ROW((1, 'in'), ARRAY[(2, 'list')::pair, NULL], 'happy', '2024-06-01 12:00+00', 0.1, '\x0001')::nest),
    (2, 'between', 2147483647, 'EC1A 1BB', '{}', (NULL, NULL), ROW(NULL, NULL, NULL, NULL, NULL, NULL)::nest),
    (3, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 'ok', 42, ' ', '[0:1]={ok,NULL}', (4, repeat('wide ', 100)), ROW((5, ''), '{}', 'ok', '-infinity', '-0', '')::nest);
CREATE TABLE t_system (id int, a oid, b pg_lsn, c xid8, d pg_snapshot, e tid, f xid, g cid, h int2vector, i oidvector, j jsonpath, k regtype);
INSERT INTO t_system VALUES (1, 4294967295, 'FFFFFFFF/FFFFFFFF', '18446744073709551615', '10:20:10,14,15', '(4294967295,65535)', '4294967295', '0', '1 2 3', '4294967295 1', '$.a[*] ? (@ > 1)', 'int4'),
    (2, 0, '0/0', '0', '1:1:', '(0,0)', '0', '1', '', '', 'strict $', 'flat_types.mood'), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- Values long enough to be compressed, and stored out of line.
CREATE TABLE t_long (id int, a int[], b text[], c tsvector, d nest, e varbit);
ALTER TABLE t_long ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTENDED;
INSERT INTO t_long SELECT 1, array_agg(i), array_agg(repeat('x', i % 50)), array_to_tsvector(array_agg('w' || i)),
    ROW((1, string_agg(i::text, ',')), array_agg((i, 'p')::pair), 'ok', '2024-01-01 00:00+00', 1, decode(repeat('ab', 5000), 'hex'))::nest, repeat('10', 40000)::varbit
    FROM generate_series(1, 3000) i;

\set all_types 'SELECT format(''SELECT * FROM %I ORDER BY id'', relname) FROM pg_class WHERE relnamespace = ''flat_types''::regnamespace AND relkind = ''r'' ORDER BY relname'

SELECT count(*) AS types FROM pg_class WHERE relnamespace = 'flat_types'::regnamespace AND relkind = 'r' \gset
SELECT arrow_cache.flush() >= 0 AS flushed;

-- First settings: those of the test driver.
SHOW DateStyle;
SHOW TimeZone;
SET pg_arrow_cache.enabled = off;
SELECT format('SELECT * FROM %I ORDER BY id', relname) FROM pg_class
WHERE relnamespace = 'flat_types'::regnamespace AND relkind = 'r' AND relname <> 't_long' ORDER BY relname
\gexec
SELECT md5(a::text) = (SELECT md5('{' || string_agg(i::text, ',') || '}') FROM generate_series(1, 3000) i) AS a, length(t_long::text) FROM t_long;
\set file :builddir '/results/flat_uncached.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
RESET pg_arrow_cache.enabled;
SELECT arrow_cache.reset_stats();
\set file :builddir '/results/flat_stored.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
\set file :builddir '/results/flat_served.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
SELECT stores = :types AS all_stored, hits = :types AS all_served FROM arrow_cache.stats;
\! cmp "$PG_ABS_BUILDDIR/results/flat_uncached.txt" "$PG_ABS_BUILDDIR/results/flat_stored.txt" && echo stored run equal
\! cmp "$PG_ABS_BUILDDIR/results/flat_uncached.txt" "$PG_ABS_BUILDDIR/results/flat_served.txt" && echo served run equal

-- Other settings: what was stored under the first must not be served now, and all three must agree again.
SET DateStyle = 'SQL, DMY';
SET TimeZone = 'Asia/Kolkata';
SET extra_float_digits = -10;
SET bytea_output = 'escape';
SET IntervalStyle = 'iso_8601';
SET xmlbinary = 'hex';
SET pg_arrow_cache.enabled = off;
SELECT format('SELECT * FROM %I ORDER BY id', relname) FROM pg_class
WHERE relnamespace = 'flat_types'::regnamespace AND relname IN ('t_geometry', 't_interval', 't_range', 't_timetz', 't_user') ORDER BY relname
\gexec
\set file :builddir '/results/flat_uncached.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
RESET pg_arrow_cache.enabled;
SELECT arrow_cache.reset_stats();
\set file :builddir '/results/flat_stored.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
\set file :builddir '/results/flat_served.txt'
\o :file
\set ECHO none
:all_types \gexec
\set ECHO all
\o
SELECT stores = :types AS all_stored, hits = :types AS all_served FROM arrow_cache.stats;
\! cmp "$PG_ABS_BUILDDIR/results/flat_uncached.txt" "$PG_ABS_BUILDDIR/results/flat_stored.txt" && echo stored run equal
\! cmp "$PG_ABS_BUILDDIR/results/flat_uncached.txt" "$PG_ABS_BUILDDIR/results/flat_served.txt" && echo served run equal

-- Values that the executor keeps in memory in another form (expanded arrays, records built on the way) are stored flat.
RESET ALL;
SET search_path = flat_types, public;
\set status 'SELECT arrow_cache.last_status() AS status;'
SELECT id, array_append(a, 4) AS appended, a || ARRAY[5] AS joined, a[1:2] AS slice, (g[1]).b FROM t_array WHERE id = 2;
SELECT id, array_append(a, 4) AS appended, a || ARRAY[5] AS joined, a[1:2] AS slice, (g[1]).b FROM t_array WHERE id = 2;
:status
SELECT ROW(id, 'made')::pair AS made, u AS whole_row, ARRAY[e, NULL] AS list FROM t_user u WHERE id = 1;
SELECT ROW(id, 'made')::pair AS made, u AS whole_row, ARRAY[e, NULL] AS list FROM t_user u WHERE id = 1;
:status
SELECT array_agg(e ORDER BY id) AS pairs, range_agg(int4range(id, id + 1)) AS ids, min(a) AS lowest, array_agg(DISTINCT a) AS moods FROM t_user;
SELECT array_agg(e ORDER BY id) AS pairs, range_agg(int4range(id, id + 1)) AS ids, min(a) AS lowest, array_agg(DISTINCT a) AS moods FROM t_user;
:status

-- Enum values are stored by identity, not by name or place: a new name is shown, by an execution of its own.
SELECT a FROM t_user ORDER BY a;
ALTER TYPE mood RENAME VALUE 'between' TO 'so-so';
SELECT a FROM t_user ORDER BY a;
:status
SELECT a FROM t_user ORDER BY a;
:status
-- So are the attributes of a composite.
SELECT e FROM t_user WHERE id = 1;
ALTER TYPE pair ADD ATTRIBUTE c date;
SELECT e FROM t_user WHERE id = 1;
:status
SELECT e FROM t_user WHERE id = 1;
:status

SET client_min_messages = warning;
DROP SCHEMA flat_types CASCADE;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
