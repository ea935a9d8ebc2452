-- Virtual columns: their expressions stand in no query, and the planner puts them in the place of the columns. A new expression is a new answer. An expression that
-- reads settings is not cached.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '-'
CREATE TABLE goods (id int PRIMARY KEY, price int, doubled int GENERATED ALWAYS AS (price * 2), label text GENERATED ALWAYS AS ('p' || price::text) VIRTUAL, kept int GENERATED ALWAYS AS (price + 1) STORED);
INSERT INTO goods VALUES (1, 10), (2, 20), (3, NULL);
SELECT id, doubled, label, kept FROM goods ORDER BY id;
SELECT id, doubled, label, kept FROM goods ORDER BY id;
:status
UPDATE goods SET price = 11 WHERE id = 1;
SELECT id, doubled, label, kept FROM goods ORDER BY id;
:status

-- In conditions, groups, sorting, sub-queries, joins and aggregates, which do not name the column that it is computed from.
SELECT id FROM goods WHERE doubled = 40;
SELECT id FROM goods WHERE doubled = 40;
:status
SELECT doubled, count(*) FROM goods GROUP BY doubled ORDER BY doubled DESC NULLS LAST;
SELECT doubled, count(*) FROM goods GROUP BY doubled ORDER BY doubled DESC NULLS LAST;
:status
SELECT g.label, (SELECT max(doubled) FROM goods h WHERE h.doubled < g.doubled) FROM goods g LEFT JOIN goods n ON n.doubled = g.kept + 1 ORDER BY g.id;
SELECT g.label, (SELECT max(doubled) FROM goods h WHERE h.doubled < g.doubled) FROM goods g LEFT JOIN goods n ON n.doubled = g.kept + 1 ORDER BY g.id;
:status
-- Rows without a partner have a null, whatever the expression gives for nulls.
CREATE TABLE filled (id int, v int, sure text GENERATED ALWAYS AS (coalesce(v::text, 'none')) VIRTUAL NOT NULL);
INSERT INTO filled (id) VALUES (1);
SELECT g.id, f.sure FROM goods g LEFT JOIN filled f USING (id) ORDER BY 1;
SELECT g.id, f.sure FROM goods g LEFT JOIN filled f USING (id) ORDER BY 1;
:status
SELECT g.id, f.sure, grouping(f.sure) FROM goods g LEFT JOIN filled f USING (id) GROUP BY ROLLUP (g.id, f.sure) ORDER BY 1, 2, 3;
SELECT g.id, f.sure, grouping(f.sure) FROM goods g LEFT JOIN filled f USING (id) GROUP BY ROLLUP (g.id, f.sure) ORDER BY 1, 2, 3;
:status

-- Whole rows, also as text and in functions.
SELECT goods FROM goods WHERE id < 3 ORDER BY id;
SELECT goods FROM goods WHERE id < 3 ORDER BY id;
:status
SELECT goods::text, (goods).doubled, row_to_json(goods) FROM goods WHERE id < 3 ORDER BY id;
SELECT goods::text, (goods).doubled, row_to_json(goods) FROM goods WHERE id < 3 ORDER BY id;
:status

-- Views, rules of row security and prepared statements.
CREATE VIEW dear AS SELECT id, doubled FROM goods WHERE doubled > 30;
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM goods WHERE label <> 'p11';
SELECT * FROM dear ORDER BY id;
SELECT * FROM dear ORDER BY id;
:status
SELECT * FROM guarded ORDER BY id;
SELECT * FROM guarded ORDER BY id;
:status
CREATE ROLE regress_cache_reader;
GRANT SELECT (id, doubled) ON goods TO regress_cache_reader;
ALTER TABLE goods ENABLE ROW LEVEL SECURITY;
CREATE POLICY cheap ON goods TO regress_cache_reader USING (label = 'p11');
SET plan_cache_mode = force_generic_plan;
PREPARE known(int) AS SELECT id, doubled FROM goods WHERE doubled >= $1 ORDER BY id;
EXECUTE known(0);
EXECUTE known(0);
:status
-- The right to read a virtual column is its own: neither needs nor gives that to read what it is computed from.
SET ROLE regress_cache_reader;
SELECT id, doubled FROM goods ORDER BY id;
SELECT id, doubled FROM goods ORDER BY id;
:status
EXECUTE known(0);
EXECUTE known(0);
:status
SELECT id, label FROM goods ORDER BY id;
SELECT price FROM goods;
SELECT goods FROM goods;
RESET ROLE;

-- Another expression: no row is written, and each answer is another one. All of these were stored with the old one.
SELECT sum(doubled) FROM goods;
SELECT id FROM goods WHERE doubled = 40;
SELECT * FROM dear ORDER BY id;
SELECT goods FROM goods WHERE id < 3 ORDER BY id;
SELECT goods FROM goods WHERE id < 3 ORDER BY id;
:status
ALTER TABLE goods ALTER doubled SET EXPRESSION AS (price * 3);
SELECT sum(doubled) FROM goods;
:status
SELECT sum(doubled) FROM goods;
:status
SELECT id FROM goods WHERE doubled = 40;
:status
SELECT * FROM dear ORDER BY id;
:status
SELECT goods FROM goods WHERE id < 3 ORDER BY id;
:status
EXECUTE known(0);
:status
EXECUTE known(0);
:status
ALTER TABLE goods ALTER label SET EXPRESSION AS (CASE price WHEN 20 THEN 'p11' END);
SET ROLE regress_cache_reader;
SELECT id, doubled FROM goods ORDER BY id;
:status
EXECUTE known(0);
:status
RESET ROLE;
-- Rolled back, nothing has changed for anybody.
SELECT sum(doubled) FROM goods;
BEGIN;
ALTER TABLE goods ALTER doubled SET EXPRESSION AS (price * 4);
SELECT sum(doubled) FROM goods;
:status
EXECUTE known(0);
:status
ROLLBACK;
SELECT sum(doubled) FROM goods;
:status
EXECUTE known(0);
:status

-- Expressions over what is not stored, or of a constant; with tableoid, which is another one in each partition.
CREATE TABLE parted (id int, a int, v int GENERATED ALWAYS AS (a * 2), there oid GENERATED ALWAYS AS (tableoid), one int GENERATED ALWAYS AS (1)) PARTITION BY LIST (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted (v GENERATED ALWAYS AS (a * 100)) FOR VALUES IN (2);
INSERT INTO parted VALUES (1, 5), (2, 5);
SELECT id, v, there = tableoid AS own, one FROM parted ORDER BY id;
SELECT id, v, there = tableoid AS own, one FROM parted ORDER BY id;
:status
-- The partition by itself has its own expression.
SELECT id, v FROM parted_2;
SELECT id, v FROM parted_2;
:status
ALTER TABLE ONLY parted ALTER v SET EXPRESSION AS (a * 3);
SELECT id, v, there = tableoid AS own, one FROM parted ORDER BY id;
:status
SELECT id, v FROM parted_2;
:status
ALTER TABLE parted_2 ALTER v SET EXPRESSION AS (a * 200);
SELECT id, v FROM parted_2;
:status
SELECT id, v, there = tableoid AS own, one FROM parted ORDER BY id;
SELECT id, v FROM parted WHERE v > 14 AND id = 2;
SELECT id, v FROM parted WHERE v > 14 AND id = 2;
:status
CREATE TABLE elder (a int, v int GENERATED ALWAYS AS (a + 1));
CREATE TABLE heir (v int GENERATED ALWAYS AS (a + 1000) VIRTUAL) INHERITS (elder);
INSERT INTO elder VALUES (1);
INSERT INTO heir VALUES (2);
SELECT a, v FROM elder ORDER BY a;
SELECT a, v FROM elder ORDER BY a;
:status
SELECT a, v FROM heir;
ALTER TABLE ONLY elder ALTER v SET EXPRESSION AS (a + 2);
SELECT a, v FROM elder ORDER BY a;
:status

-- What CHECK and NOT NULL say of a virtual column leads the planner, not the answer.
CREATE TABLE checked (a int, v int GENERATED ALWAYS AS (a * 2) CHECK (v > 0) NOT NULL);
INSERT INTO checked VALUES (1), (2);
INSERT INTO checked VALUES (NULL);
SET constraint_exclusion = on;
SELECT a FROM checked WHERE v < 0 OR v IS NULL;
SELECT a FROM checked WHERE v < 0 OR v IS NULL;
:status
SELECT a FROM checked WHERE v IS NOT NULL ORDER BY a;
SELECT a FROM checked WHERE v IS NOT NULL ORDER BY a;
:status
ALTER TABLE checked ALTER v DROP NOT NULL, DROP CONSTRAINT checked_v_check;
INSERT INTO checked VALUES (NULL), (-1);
SELECT a FROM checked WHERE v < 0 OR v IS NULL ORDER BY a;
:status
SELECT a FROM checked WHERE v IS NOT NULL ORDER BY a;
:status
RESET constraint_exclusion;

-- An expression that reads a setting, though only through a function that is marked IMMUTABLE: refused, as the query does not show it. The other columns, too.
CREATE TABLE reads (id int, f float8, shown text GENERATED ALWAYS AS (f::text));
INSERT INTO reads VALUES (1, 0.1::float8 + 0.2::float8);
SELECT shown FROM reads;
:status
SET extra_float_digits = 0;
SELECT shown FROM reads;
:status
RESET extra_float_digits;
SELECT id FROM reads;
:status
SELECT cacheable, reason FROM arrow_cache.why('SELECT shown FROM reads');
SELECT cacheable, reason FROM arrow_cache.why('SELECT f::text FROM reads');
ALTER TABLE reads ALTER shown SET EXPRESSION AS (id::text);
SELECT shown FROM reads;
SELECT shown FROM reads;
:status
-- It is refused again once it reads one again, prepared before or not.
PREPARE shows AS SELECT shown FROM reads;
EXECUTE shows;
:status
ALTER TABLE reads ALTER shown SET EXPRESSION AS (f::text);
EXECUTE shows;
:status
SELECT shown FROM reads;
:status
-- A function of the server that a superuser has given another body is checked by that.
CREATE TABLE padded (t text, v text GENERATED ALWAYS AS (lpad(t, 2)));
INSERT INTO padded VALUES ('a');
SELECT replace(v, ' ', '.') FROM padded;
SELECT replace(v, ' ', '.') FROM padded;
:status
CREATE OR REPLACE FUNCTION pg_catalog.lpad(text, integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT RETURN lpad($1, $2, '-');
SELECT replace(v, ' ', '.') FROM padded;
:status
SELECT replace(v, ' ', '.') FROM padded;
:status
CREATE OR REPLACE FUNCTION pg_catalog.lpad(text, integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT RETURN lpad($1, $2, current_setting('application_name'));
SELECT replace(v, ' ', '.') FROM padded WHERE t > 'b';
:status
CREATE OR REPLACE FUNCTION pg_catalog.lpad(text, integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT RETURN lpad($1, $2, ' ');
SELECT replace(v, ' ', '.') FROM padded;
SELECT replace(v, ' ', '.') FROM padded;
:status

-- Columns that come and go.
CREATE TABLE shifting (a int, v int GENERATED ALWAYS AS (abs(a)));
INSERT INTO shifting VALUES (-1);
ALTER TABLE shifting ADD w int GENERATED ALWAYS AS (a * 7);
SELECT * FROM shifting;
SELECT * FROM shifting;
:status
ALTER TABLE shifting DROP v;
SELECT * FROM shifting;
:status
ALTER TABLE shifting ALTER w TYPE bigint;
SELECT * FROM shifting;
:status
ALTER TABLE shifting RENAME a TO b;
SELECT w FROM shifting;
SELECT w FROM shifting;
:status

DEALLOCATE ALL;
RESET plan_cache_mode;
DROP TABLE goods, filled, parted, elder, checked, reads, padded, shifting CASCADE;
DROP ROLE regress_cache_reader;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;

-- What a run has never scanned does not count, though computing one may fail.
CREATE TABLE few (a int, b int);
INSERT INTO few SELECT 2, g FROM generate_series(1, 1000) g;
CREATE INDEX ON few (b);
ANALYZE few;
CREATE TABLE quotients (k int, d int, q int GENERATED ALWAYS AS (100 / d) VIRTUAL) PARTITION BY RANGE (k);
CREATE TABLE quotients_1 PARTITION OF quotients FOR VALUES FROM (0) TO (10);
INSERT INTO quotients VALUES (1, 5);
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SELECT count(*) FROM few WHERE a = 1 AND b = (SELECT max(q) FROM quotients);
SELECT count(*) FROM few WHERE a = 1 AND b = (SELECT max(d) FROM quotients_1);
UPDATE quotients SET k = k;
SELECT count(*) FROM few WHERE a = 1 AND b = (SELECT max(q) FROM quotients);
:status
RESET ALL;
DROP TABLE few, quotients;

-- No row has a value for one, so nothing tells how long a window over it lasts. Where a CASE does not reach one that may fail, it is not computed.
CREATE TABLE visits (k int, at timestamp, due timestamp GENERATED ALWAYS AS (at + interval '1 hour') VIRTUAL, n int, q int GENERATED ALWAYS AS (10 / n) VIRTUAL);
INSERT INTO visits (k, at, n) SELECT g % 2, timestamp '2020-01-01' + g * interval '1 day', g FROM generate_series(1, 100) g;
INSERT INTO visits (k, at, n) VALUES (0, localtimestamp - interval '1 hour 5 minutes', 1), (1, '2020-01-01', 0);
CREATE INDEX ON visits (k, at);
SELECT cacheable, reason FROM arrow_cache.why($$SELECT count(*) FROM visits WHERE due > localtimestamp - interval '10 minutes'$$);
SELECT count(*) FROM visits WHERE due > localtimestamp - interval '10 minutes';
SELECT count(*) FROM visits WHERE due > localtimestamp - interval '10 minutes';
:status
SELECT count(*) FROM visits WHERE k = 0 AND q = 5 AND at > localtimestamp - interval '1 day';
SELECT count(*) FROM visits WHERE k = 0 AND q = 5 AND at > localtimestamp - interval '1 day';
:status
SELECT count(*) FROM visits WHERE k = 0 AND n = 5 AND at > localtimestamp - interval '1 year';
SELECT max(CASE WHEN now()::text = '' THEN q END), count(*) FROM visits;
SELECT k, CASE WHEN now()::text = '' THEN q END AS q FROM visits ORDER BY at DESC LIMIT 1;
SELECT k, CASE WHEN now()::text = '' THEN q END AS q FROM visits ORDER BY at DESC LIMIT 1;
:status
DROP TABLE visits;
