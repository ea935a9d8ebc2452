-- Changes that reach a relation by way of another: foreign keys, partitions, inheritance, materialized views, sequences.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned

-- Foreign key actions.
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child_cascade (p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE child_null (p int REFERENCES parent ON DELETE SET NULL);
CREATE TABLE child_default (p int DEFAULT 1 REFERENCES parent ON DELETE SET DEFAULT);
INSERT INTO parent VALUES (1), (2), (3), (4);
INSERT INTO child_cascade VALUES (2), (3);
INSERT INTO child_null VALUES (2), (3);
INSERT INTO child_default VALUES (2), (3);
\set read_cascade 'SELECT count(*), sum(p) FROM child_cascade;'
\set read_null 'SELECT count(*), sum(p) FROM child_null;'
\set read_default 'SELECT count(*), sum(p) FROM child_default;'
:read_cascade
:read_null
:read_default
DELETE FROM parent WHERE id = 2;
:read_cascade
:status
:read_null
:status
:read_default
:status
:read_cascade
:status
UPDATE child_null SET p = NULL;
UPDATE child_default SET p = 1;
UPDATE parent SET id = 30 WHERE id = 3;
:read_cascade
:status
TRUNCATE parent CASCADE;
:read_cascade
:status
:read_null
:status
:read_default
:status

-- Partitions: a result over the root rests on every leaf it can read, a result over one leaf on that leaf.
CREATE TABLE part (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE part_low PARTITION OF part FOR VALUES FROM (0) TO (100);
CREATE TABLE part_high PARTITION OF part FOR VALUES FROM (100) TO (1000) PARTITION BY LIST (v);
CREATE TABLE part_high_a PARTITION OF part_high FOR VALUES IN ('a');
CREATE TABLE part_high_rest PARTITION OF part_high DEFAULT;
INSERT INTO part VALUES (1, 'a'), (101, 'a'), (102, 'b');
\set read_root 'SELECT count(*), sum(k) FROM part;'
\set read_low 'SELECT count(*), sum(k) FROM part_low;'
\set read_high 'SELECT count(*), sum(k) FROM part_high;'
\set read_pruned 'SELECT count(*), sum(k) FROM part WHERE k < 50;'
:read_root
:read_low
:read_high
:read_pruned
-- Through the root, into one leaf.
INSERT INTO part VALUES (2, 'a');
:read_root
:status
:read_low
:status
:read_high
:status
:read_pruned
:status
-- A write through the root outdates, of the answers that were read through the root, those that rest on a leaf that it changed.
\set read_others 'SELECT count(*), sum(k) FROM part WHERE k >= 100;'
:read_others
INSERT INTO part VALUES (3, 'a');
:read_others
:status
:read_pruned
:status
UPDATE part SET v = v || '' WHERE k + 0 = 3;
:read_others
:status
:read_pruned
:status
DELETE FROM part WHERE k IN (SELECT 3 FROM part LIMIT 1);
:read_others
:status
:read_pruned
:status
COPY part FROM stdin;
4	a
\.
:read_others
:status
:read_pruned
:status
MERGE INTO part USING (VALUES (4, 'b'), (5, 'b')) new (k, v) ON part.k = new.k
    WHEN MATCHED THEN UPDATE SET v = new.v WHEN NOT MATCHED THEN INSERT VALUES (new.k, new.v);
:read_others
:status
:read_pruned
:status
-- No row is changed: nothing is outdated.
UPDATE part SET v = v WHERE k + 0 = 1000;
:read_others
:status
:read_pruned
:status
-- A key above leaves: the row goes from one to the other by a cascade, or is deleted by one.
CREATE TABLE above (k int PRIMARY KEY);
INSERT INTO above VALUES (1), (2), (4), (5), (6), (101), (102);
ALTER TABLE part ADD FOREIGN KEY (k) REFERENCES above ON UPDATE CASCADE ON DELETE CASCADE;
:read_others
:read_pruned
DELETE FROM above WHERE k = 4;
:read_others
:status
:read_pruned
:status
UPDATE above SET k = 105 WHERE k = 5;
:read_others
:status
:read_pruned
:status
DELETE FROM part WHERE k = 105;
ALTER TABLE part DROP CONSTRAINT part_k_fkey;
DROP TABLE above;
-- The leaves of a subordinate branch, through the root.
TRUNCATE part_high_rest;
INSERT INTO part VALUES (102, 'b');
:read_others
:status
:read_pruned
:status
-- Inheritance: the same.
CREATE TABLE old_style (k int);
CREATE TABLE old_style_child (CHECK (k < 100)) INHERITS (old_style);
INSERT INTO old_style VALUES (200);
INSERT INTO old_style_child VALUES (1);
SELECT sum(k) FROM ONLY old_style;
SELECT sum(k) FROM old_style_child;
UPDATE old_style SET k = k + 1 WHERE k + 0 = 1;
SELECT sum(k) FROM ONLY old_style;
:status
SELECT sum(k) FROM old_style_child;
:status
DROP TABLE old_style CASCADE;

-- Through a leaf; through the branch.
INSERT INTO part_high_a VALUES (103, 'a');
:read_root
:status
:read_high
:status
:read_low
:status
DELETE FROM part_high WHERE k = 103;
:read_root
:status
:read_low
:status
-- A row moves from one leaf to another: both are changed.
UPDATE part SET k = 200 WHERE k = 2;
:read_root
:status
:read_low
:status
:read_high
:status
UPDATE part_high SET v = 'z' WHERE k = 101;
:read_high
:status
:read_low
:status
MERGE INTO part USING (VALUES (1), (5)) AS s(k) ON part.k = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'm');
:read_low
:status
:read_root
:status
COPY part FROM stdin;
6	c
300	c
\.
:read_low
:status
:read_high
:status
TRUNCATE part_low;
:read_low
:status
:read_root
:status
:read_high
TRUNCATE part;
:read_high
:status
:read_root
:status
-- A prepared statement that prunes while it runs rests on all leaves.
INSERT INTO part VALUES (1, 'a'), (101, 'a');
SET plan_cache_mode = force_generic_plan;
PREPARE pruned(int) AS SELECT count(*) FROM part WHERE k < $1;
EXECUTE pruned(50);
EXECUTE pruned(500);
EXECUTE pruned(50);
:status
INSERT INTO part_high_a VALUES (104, 'a');
EXECUTE pruned(500);
:status
INSERT INTO part_low VALUES (3, 'a');
EXECUTE pruned(50);
:status
DEALLOCATE pruned;
RESET plan_cache_mode;
-- Attached and detached: other rows at once.
CREATE TABLE part_new (k int, v text);
INSERT INTO part_new VALUES (1500, 'new');
:read_root
ALTER TABLE part ATTACH PARTITION part_new FOR VALUES FROM (1000) TO (2000);
:read_root
:read_root
:status
ALTER TABLE part DETACH PARTITION part_low;
:read_root
:read_root
:status
DROP TABLE part_high_a;
:read_root

-- Inheritance: a result over the parent rests on its children, ONLY does not.
CREATE TABLE base (a int);
CREATE TABLE derived (b int) INHERITS (base);
INSERT INTO base VALUES (1);
INSERT INTO derived VALUES (2, 2);
\set read_all 'SELECT count(*), sum(a) FROM base;'
\set read_only 'SELECT count(*), sum(a) FROM ONLY base;'
:read_all
:read_only
INSERT INTO derived VALUES (3, 3);
:read_all
:status
:read_only
:status
UPDATE base SET a = a + 10;
:read_all
:status
:read_only
:status
DELETE FROM ONLY base;
:read_all
:status

-- A materialized view changes when it is refreshed, not before; a view changes with its tables.
CREATE TABLE fact (k int PRIMARY KEY, v int);
INSERT INTO fact VALUES (1, 10);
CREATE MATERIALIZED VIEW frozen AS SELECT k, v FROM fact;
CREATE UNIQUE INDEX ON frozen (k);
CREATE VIEW live AS SELECT f.v AS fact, m.v AS frozen FROM fact f LEFT JOIN frozen m USING (k);
\set read_frozen 'SELECT count(*), sum(v) FROM frozen;'
\set read_live 'SELECT fact, frozen FROM live ORDER BY 1;'
:read_frozen
:read_live
INSERT INTO fact VALUES (2, 20);
:read_frozen
:status
:read_live
:status
REFRESH MATERIALIZED VIEW frozen;
:read_frozen
:read_frozen
:status
:read_live
:read_live
:status
UPDATE fact SET v = v + 1;
REFRESH MATERIALIZED VIEW CONCURRENTLY frozen;
:read_frozen
:read_live
:read_live
:status
REFRESH MATERIALIZED VIEW CONCURRENTLY frozen;
:read_frozen
REFRESH MATERIALIZED VIEW frozen WITH NO DATA;
:read_frozen

-- Identity columns, serials and generated columns: their tables are as cacheable as others; drawing numbers changes no row.
CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY, s serial, g int GENERATED ALWAYS AS (s * 2) STORED);
INSERT INTO numbered DEFAULT VALUES;
SELECT * FROM numbered ORDER BY id;
SELECT nextval('numbered_s_seq') IS NOT NULL AS drawn;
SELECT * FROM numbered ORDER BY id;
:status
INSERT INTO numbered DEFAULT VALUES;
SELECT * FROM numbered ORDER BY id;
:status
-- An unlogged table is a permanent relation until a crash empties it.
CREATE UNLOGGED TABLE unlogged (a int);
INSERT INTO unlogged VALUES (1);
SELECT a FROM unlogged;
UPDATE unlogged SET a = 2;
SELECT a FROM unlogged;
:status
SELECT a FROM unlogged;
:status

DROP VIEW live;
DROP MATERIALIZED VIEW frozen;
DROP TABLE child_cascade, child_null, child_default, parent, part, part_low, derived, base, fact, numbered, unlogged;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
