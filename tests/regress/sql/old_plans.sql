-- Prepared plans that PostgreSQL keeps although a definition they depend on has changed: their answers belong to them alone. And what a
-- statement contains of row types, by number or name. In each case the prepared and the plain statement answer as without the cache.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
SET plan_cache_mode = force_generic_plan;

-- A row type gains an enum after the plan was made; then a label is renamed.
CREATE TYPE mood AS ENUM ('a');
CREATE TYPE comp AS (x int);
CREATE TABLE e (c comp);
INSERT INTO e VALUES (ROW(1));
PREPARE p AS SELECT c::text FROM e;
EXECUTE p;
EXECUTE p;
:status
ALTER TYPE comp ADD ATTRIBUTE m mood;
UPDATE e SET c = ROW(1, 'a')::comp;
EXECUTE p;
:status
EXECUTE p;
SELECT c::text FROM e;
ALTER TYPE mood RENAME VALUE 'a' TO 'zzz';
EXECUTE p;
SELECT c::text FROM e;
SELECT c::text FROM e;
:status
DEALLOCATE p;
DROP TABLE e;

-- Row types inside ranges.
CREATE TYPE pair AS (a int, b int);
CREATE TYPE pairs AS RANGE (SUBTYPE = pair);
CREATE TABLE r (x pairs, y pairs);
INSERT INTO r SELECT pairs(ROW(1, 1)::pair, ROW(5, 5)::pair), pairs(ROW(1, 2)::pair, ROW(5, 5)::pair);
SELECT x = y AS equal FROM r;
SELECT x = y AS equal FROM r;
:status
ALTER TYPE pair DROP ATTRIBUTE b;
SELECT x = y AS equal FROM r;
DROP TABLE r;
DROP TYPE pairs;
DROP TYPE pair;

-- Attributes that swap their names.
CREATE TYPE swapped AS (x int, y int);
CREATE TABLE s (c swapped);
INSERT INTO s VALUES (ROW(1, 2));
PREPARE p AS SELECT (c).x FROM s;
PREPARE q AS SELECT row_to_json(t)::text AS json FROM (SELECT (c).* FROM s) AS t;
EXECUTE p;
EXECUTE q;
BEGIN;
ALTER TYPE swapped RENAME ATTRIBUTE x TO tmp;
ALTER TYPE swapped RENAME ATTRIBUTE y TO x;
ALTER TYPE swapped RENAME ATTRIBUTE tmp TO y;
COMMIT;
EXECUTE p;
EXECUTE q;
SELECT (c).x FROM s;
SELECT row_to_json(t)::text AS json FROM (SELECT (c).* FROM s) AS t;
DEALLOCATE p;
DEALLOCATE q;
DROP TABLE s;
DROP TYPE swapped;

-- Constants that the planner has computed under the settings of its moment.
CREATE TABLE f (a int);
INSERT INTO f VALUES (1);
SET bytea_output = hex;
PREPARE p AS SELECT '\xab'::bytea::text AS b FROM f;
EXECUTE p;
SET bytea_output = escape;
EXECUTE p;
EXECUTE p;
:status
SELECT '\xab'::bytea::text AS b FROM f;
SELECT '\xab'::bytea::text AS b FROM f;
:status
EXECUTE p;
RESET bytea_output;
DEALLOCATE p;
PREPARE p AS SELECT quote_ident('abc') AS q FROM f;
EXECUTE p;
SET quote_all_identifiers = on;
EXECUTE p;
SELECT quote_ident('abc') AS q FROM f;
RESET quote_all_identifiers;
DEALLOCATE p;

-- Conversions to text that the planner finds inside of functions.
SET extra_float_digits = 1;
PREPARE p AS SELECT (1.1::float8 * 3) || 'x'::text AS t FROM f;
EXECUTE p;
SET extra_float_digits = -5;
EXECUTE p;
SELECT (1.1::float8 * 3) || 'x'::text AS t FROM f;
EXECUTE p;
RESET extra_float_digits;
DEALLOCATE p;

-- The collation of an attribute, which an analysed tree keeps and its next plan, too.
CREATE TYPE collated AS (x text COLLATE "C");
CREATE TABLE letters (a text, b int);
INSERT INTO letters VALUES ('a', 1), ('B', 2);
SET plan_cache_mode = force_custom_plan;
PREPARE p(int) AS SELECT (ROW(a)::collated).x FROM letters WHERE b > $1 ORDER BY 1;
EXECUTE p(0);
ALTER TYPE collated ALTER ATTRIBUTE x TYPE text COLLATE "en-x-icu";
EXECUTE p(0);
DEALLOCATE p;
PREPARE p(int) AS SELECT (ROW(a)::collated).x FROM letters WHERE b > $1 ORDER BY 1;
EXECUTE p(0);
DEALLOCATE p;
SET plan_cache_mode = force_generic_plan;
DROP TABLE letters;
DROP TYPE collated;

-- The same with text search, whose changes PostgreSQL does not invalidate plans for: the cache asks for a new plan.
CREATE TEXT SEARCH CONFIGURATION cfg (COPY = simple);
PREPARE p AS SELECT to_tsvector('cfg', 'running dogs') AS words FROM f;
EXECUTE p;
ALTER TEXT SEARCH CONFIGURATION cfg ALTER MAPPING FOR asciiword WITH english_stem;
EXECUTE p;
EXECUTE p;
:status
SELECT to_tsvector('cfg', 'running dogs') AS words FROM f;
EXECUTE p;
DEALLOCATE p;
DROP TEXT SEARCH CONFIGURATION cfg;

-- Nothing tells that a parent without columns has lost a child: it is not cached.
CREATE TABLE parent ();
CREATE TABLE child (x int) INHERITS (parent);
INSERT INTO child VALUES (1);
-- A plan that may be combined of parts is made anew when a transaction has ended.
SET pg_arrow_cache.enable_fragments = off;
PREPARE p AS SELECT count(*) FROM parent;
EXECUTE p;
EXECUTE p;
:status
ALTER TABLE child NO INHERIT parent;
EXECUTE p;
SELECT count(*) FROM parent;
SELECT count(*) FROM parent;
:status
DEALLOCATE p;
DROP TABLE child, parent;

-- A plan that is older than some other table's DDL goes on being served.
PREPARE p AS SELECT a FROM f;
EXECUTE p;
EXECUTE p;
:status
CREATE TABLE other ();
EXECUTE p;
EXECUTE p;
:status
DEALLOCATE p;
DROP TABLE other;

-- Definitions that a transaction changes and rolls back are in no stored answer and in no plan.
CREATE TYPE label AS ENUM ('a', 'b');
CREATE TABLE l (i int, m label);
INSERT INTO l VALUES (1, 'a'), (2, 'b');
BEGIN;
DECLARE k NO SCROLL CURSOR FOR SELECT m::text, i FROM l ORDER BY i;
:status
ALTER TYPE label RENAME VALUE 'b' TO 'zzz';
FETCH ALL FROM k;
ROLLBACK;
SELECT m::text, i FROM l ORDER BY i;
:status
SELECT arrow_cache.flush() >= 0 AS flushed;
BEGIN;
DECLARE k NO SCROLL CURSOR FOR SELECT m::text, i FROM l ORDER BY i;
SAVEPOINT s;
ALTER TYPE label RENAME VALUE 'b' TO 'zzz';
FETCH ALL FROM k;
ROLLBACK TO s;
FETCH ALL FROM k;
COMMIT;
SELECT m::text, i FROM l ORDER BY i;
:status
-- A cursor shows labels as they are when it is read, so a served one runs its plan if they have changed.
BEGIN;
DECLARE k NO SCROLL CURSOR FOR SELECT m::text, i FROM l ORDER BY i;
:status
ALTER TYPE label RENAME VALUE 'b' TO 'zzz';
FETCH ALL FROM k;
ROLLBACK;
CREATE TEXT SEARCH CONFIGURATION taken_back (COPY = simple);
BEGIN;
ALTER TEXT SEARCH CONFIGURATION taken_back ALTER MAPPING FOR asciiword WITH english_stem;
PREPARE p AS SELECT to_tsvector('taken_back', 'running dogs') AS words, i FROM l WHERE i = 1;
EXECUTE p;
ROLLBACK;
EXECUTE p;
:status
SELECT to_tsvector('taken_back', 'running dogs') AS words, i FROM l WHERE i = 1;
DEALLOCATE p;
DROP TEXT SEARCH CONFIGURATION taken_back;
DROP TABLE l;
DROP TYPE label;

-- Functions that are marked IMMUTABLE and read definitions.
CREATE TABLE roots (r regclass);
CREATE TABLE root (a int) PARTITION BY LIST (a);
CREATE TABLE leaf (a int);
INSERT INTO roots VALUES ('leaf');
SELECT pg_partition_root(r) FROM roots;
:status
ALTER TABLE root ATTACH PARTITION leaf FOR VALUES IN (1);
SELECT pg_partition_root(r) FROM roots;
DROP TABLE roots, root;

-- The row type of a temporary table in a column of another.
CREATE TEMPORARY TABLE shape (x int);
CREATE TABLE shaped (c shape);
INSERT INTO shaped VALUES (ROW(1));
SELECT row_to_json(c)::text AS json FROM shaped;
:status
ALTER TABLE shape RENAME COLUMN x TO y;
SELECT row_to_json(c)::text AS json FROM shaped;
SET client_min_messages = warning;
DROP TABLE shape CASCADE;
RESET client_min_messages;
DROP TABLE shaped;

-- While a cursor reads a hit, the session cannot change the table under it.
SELECT sum(a) FROM f GROUP BY a ORDER BY 1;
BEGIN;
DECLARE k CURSOR FOR SELECT sum(a) FROM f GROUP BY a ORDER BY 1;
:status
TRUNCATE f;
ROLLBACK;
BEGIN;
DECLARE k CURSOR FOR SELECT sum(a) FROM f GROUP BY a ORDER BY 1;
CLOSE k;
TRUNCATE f;
ROLLBACK;

-- The same with the index that it would scan, and with partitions that it need not scan.
CREATE TABLE indexed (id int);
INSERT INTO indexed SELECT generate_series(1, 1000);
CREATE INDEX indexed_id ON indexed (id);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT sum(id) FROM indexed WHERE id BETWEEN 5 AND 9 GROUP BY id ORDER BY id DESC LIMIT 1;
BEGIN;
DECLARE k CURSOR FOR SELECT sum(id) FROM indexed WHERE id BETWEEN 5 AND 9 GROUP BY id ORDER BY id DESC LIMIT 1;
:status
DROP INDEX indexed_id;
ROLLBACK;
DROP TABLE indexed;
RESET enable_seqscan;
RESET enable_bitmapscan;
CREATE TABLE kept (k int, v int) PARTITION BY LIST (k);
CREATE TABLE kept_1 PARTITION OF kept FOR VALUES IN (1);
CREATE TABLE kept_2 PARTITION OF kept FOR VALUES IN (2);
INSERT INTO kept VALUES (1, 10), (2, 20);
SELECT sum(v) FROM kept WHERE k = (SELECT min(a) FROM f) GROUP BY v ORDER BY v;
BEGIN;
DECLARE k CURSOR FOR SELECT sum(v) FROM kept WHERE k = (SELECT min(a) FROM f) GROUP BY v ORDER BY v;
:status
TRUNCATE kept_1;
ROLLBACK;
DROP TABLE kept;

-- Text search objects that are values: looked up when they are used.
CREATE TEXT SEARCH CONFIGURATION cfg (COPY = simple);
CREATE TABLE texts (c regconfig, t text);
INSERT INTO texts VALUES ('cfg', 'running dogs');
SELECT to_tsvector(c, t) FROM texts ORDER BY t;
BEGIN;
DECLARE k CURSOR FOR SELECT to_tsvector(c, t) FROM texts ORDER BY t;
:status
ALTER TEXT SEARCH CONFIGURATION cfg ALTER MAPPING FOR asciiword WITH english_stem;
FETCH ALL FROM k;
ROLLBACK;
DROP TABLE texts;
DROP TEXT SEARCH CONFIGURATION cfg;

-- The number of an anonymous record type is assigned by each session.
PREPARE r(record) AS SELECT row_to_json($1)::text AS json, a FROM f;
EXECUTE r(ROW(1));
:status
DEALLOCATE r;

-- Arrays of a type that has no order of its own.
CREATE TABLE places (a point[]);
INSERT INTO places VALUES (ARRAY[point(1, 1)]);
SELECT a FROM places;
:status
DROP TABLE places;

-- Rows that COPY adds to a catalog change what a parent means.
CREATE TABLE parent (a int);
CREATE TABLE child (a int) INHERITS (parent);
CREATE TABLE late (a int);
INSERT INTO late VALUES (7);
SELECT count(*) FROM parent;
SELECT 'late'::regclass::oid AS late, 'parent'::regclass::oid AS parent \gset
SET allow_system_table_mods = on;
\set line :late '\t' :parent '\t2\tf'
\getenv builddir PG_ABS_BUILDDIR
\set file :builddir '/results/inherits.txt'
\o :file
\qecho :line
\o
COPY pg_inherits FROM :'file';
SELECT count(*) FROM parent;
DELETE FROM pg_inherits WHERE inhrelid = :late;
RESET allow_system_table_mods;
DROP TABLE child, parent, late;

DROP TABLE f;
DROP TYPE comp;
DROP TYPE mood;
RESET plan_cache_mode;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
