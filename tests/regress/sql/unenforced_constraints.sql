-- Constraints that say less than they seem to: NOT ENFORCED, and NOT NULL that is NOT VALID. The planner must not believe them, nor the cache what was planned while they
-- were believed.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '-'
SET constraint_exclusion = on;
-- NOT ENFORCED: rows that break it are found, by a parent as well.
CREATE TABLE loose (a int, CONSTRAINT positive CHECK (a > 0) NOT ENFORCED);
INSERT INTO loose VALUES (1), (-1);
SELECT a FROM loose WHERE a < 0;
SELECT a FROM loose WHERE a < 0;
:status
CREATE TABLE child (CONSTRAINT large CHECK (a > 100) NOT ENFORCED) INHERITS (loose);
INSERT INTO child VALUES (5);
SELECT a FROM loose WHERE a < 10 ORDER BY a;
SELECT a FROM loose WHERE a < 10 ORDER BY a;
:status
-- A user's function in one that is not enforced shapes no plan.
CREATE FUNCTION mine(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END';
ALTER TABLE loose ADD CONSTRAINT by_me CHECK (mine(a)) NOT ENFORCED;
SELECT a FROM loose WHERE a < 3 ORDER BY a;
SELECT a FROM loose WHERE a < 3 ORDER BY a;
:status
ALTER TABLE loose DROP CONSTRAINT by_me;
ALTER TABLE loose ADD CONSTRAINT by_me CHECK (mine(a));
SELECT a FROM loose WHERE a < 3 ORDER BY a;
:status
ALTER TABLE loose DROP CONSTRAINT by_me;
-- Enforced again: by a new constraint, and only once it holds.
DELETE FROM loose WHERE a < 0;
ALTER TABLE loose DROP CONSTRAINT positive, ADD CONSTRAINT positive CHECK (a > 0);
SELECT a FROM loose WHERE a < 0;
SELECT a FROM loose WHERE a < 0;
:status
ALTER TABLE loose DROP CONSTRAINT positive;
INSERT INTO loose VALUES (-2);
SELECT a FROM loose WHERE a < 0;
:status

-- A foreign key that is not enforced, then is, then is not; what it lets in is seen.
CREATE TABLE parent (id int PRIMARY KEY, v int);
CREATE TABLE points (id int NOT NULL, CONSTRAINT points_fk FOREIGN KEY (id) REFERENCES parent NOT ENFORCED);
INSERT INTO parent VALUES (1, 10);
INSERT INTO points VALUES (1), (2);
SELECT count(*) FROM points JOIN parent USING (id);
SELECT count(*) FROM points JOIN parent USING (id);
:status
ALTER TABLE points ALTER CONSTRAINT points_fk ENFORCED;
DELETE FROM points WHERE id = 2;
ALTER TABLE points ALTER CONSTRAINT points_fk ENFORCED;
INSERT INTO points VALUES (3);
SELECT count(*), sum(v) FROM points LEFT JOIN parent USING (id);
SELECT count(*), sum(v) FROM points LEFT JOIN parent USING (id);
:status
ALTER TABLE points ALTER CONSTRAINT points_fk NOT ENFORCED;
INSERT INTO points VALUES (3);
SELECT count(*), sum(v) FROM points LEFT JOIN parent USING (id);
:status

-- NOT NULL that is not valid: old nulls stay, and are found.
CREATE TABLE sparse (id int, v int);
INSERT INTO sparse VALUES (1, NULL), (2, 2);
SELECT id FROM sparse WHERE v IS NULL;
SELECT id FROM sparse WHERE v IS NULL;
:status
ALTER TABLE sparse ADD CONSTRAINT filled NOT NULL v NOT VALID;
SELECT id FROM sparse WHERE v IS NULL;
SELECT id FROM sparse WHERE v IS NULL;
:status
INSERT INTO sparse VALUES (3, NULL);
SELECT id FROM sparse WHERE v IS NOT NULL ORDER BY id;
SELECT id FROM sparse WHERE v IS NOT NULL ORDER BY id;
:status
PREPARE nulls AS SELECT id FROM sparse WHERE v IS NULL;
EXECUTE nulls;
EXECUTE nulls;
:status
UPDATE sparse SET v = 1 WHERE v IS NULL;
EXECUTE nulls;
:status
ALTER TABLE sparse VALIDATE CONSTRAINT filled;
EXECUTE nulls;
EXECUTE nulls;
:status
ALTER TABLE sparse DROP CONSTRAINT filled;
UPDATE sparse SET v = NULL WHERE id = 1;
EXECUTE nulls;
:status
SELECT id FROM sparse WHERE v IS NULL;
:status
-- Inherited and not: with NO INHERIT the children keep their nulls.
CREATE TABLE above (id int, v int CONSTRAINT sure NOT NULL NO INHERIT);
CREATE TABLE below () INHERITS (above);
INSERT INTO above VALUES (1, 1);
INSERT INTO below VALUES (2, NULL);
SELECT id FROM above WHERE v IS NULL;
SELECT id FROM above WHERE v IS NULL;
:status
SELECT id FROM above WHERE v IS NOT NULL ORDER BY id;
SELECT id FROM above WHERE v IS NOT NULL ORDER BY id;
:status
DELETE FROM below;
ALTER TABLE above ALTER CONSTRAINT sure INHERIT;
INSERT INTO below VALUES (2, NULL);
SELECT id FROM above WHERE v IS NULL;
SELECT id FROM above WHERE v IS NULL;
:status
ALTER TABLE above ALTER CONSTRAINT sure NO INHERIT;
ALTER TABLE below ALTER v DROP NOT NULL;
INSERT INTO below VALUES (2, NULL);
SELECT id FROM above WHERE v IS NULL;
:status
DEALLOCATE nulls;
RESET constraint_exclusion;
DROP TABLE loose, parent, points, sparse, above CASCADE;
DROP FUNCTION mine;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
