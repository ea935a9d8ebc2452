-- A change of definitions is seen by the next statement, whatever it changes: names, columns, types, views, functions behind
-- operators, roles. Every statement here is repeated, so that without invalidation the second would be served from before.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset footer off
\pset format unaligned
CREATE TABLE thing (id int, v text);
INSERT INTO thing VALUES (1, 'one'), (2, 'two');
\set read 'SELECT * FROM thing ORDER BY 1;'
:read
:read
:status

-- Columns.
ALTER TABLE thing ADD COLUMN c int DEFAULT 7;
:read
:read
:status
ALTER TABLE thing RENAME COLUMN c TO d;
:read
ALTER TABLE thing ALTER COLUMN d TYPE numeric(5, 2);
:read
ALTER TABLE thing ALTER COLUMN d TYPE text USING 'd' || d;
:read
:read
:status
ALTER TABLE thing DROP COLUMN d;
:read
ALTER TABLE thing ADD COLUMN d text;
:read
ALTER TABLE thing DROP COLUMN d;
:read
:read
:status
-- Renamed away, replaced by another of the same name, and back.
ALTER TABLE thing RENAME TO thing_old;
:read
CREATE TABLE thing AS SELECT 'new' AS only;
:read
:read
:status
BEGIN;
ALTER TABLE thing RENAME TO thing_new;
ALTER TABLE thing_old RENAME TO thing;
:read
:status
ROLLBACK;
:read
BEGIN;
ALTER TABLE thing RENAME TO thing_new;
ALTER TABLE thing_old RENAME TO thing;
COMMIT;
:read
:read
:status
DROP TABLE thing_new;
-- A dropped table gives an error; a new one under its name gives its own rows.
DROP TABLE thing;
:read
CREATE TABLE thing (id int, v text);
:read
INSERT INTO thing VALUES (1, 'one'), (2, 'two');
:read
:read
:status
BEGIN;
DROP TABLE thing;
:read
ROLLBACK;
:read
-- A new table that comes first in the search path; a schema renamed to another.
CREATE SCHEMA front;
SET search_path = front, public;
:read
:read
:status
CREATE TABLE front.thing AS SELECT 'front' AS only;
:read
:read
:status
ALTER TABLE front.thing RENAME TO thing_front;
:read
ALTER SCHEMA front RENAME TO back;
CREATE SCHEMA front;
ALTER TABLE back.thing_front SET SCHEMA front;
:read
ALTER TABLE front.thing_front RENAME TO thing;
:read
SET client_min_messages = warning;
DROP SCHEMA front, back CASCADE;
RESET client_min_messages;
:read
:read
:status
RESET search_path;
:read

-- Rewrites keep the rows.
:read
VACUUM FULL thing;
:read
CREATE INDEX thing_id ON thing (id);
CLUSTER thing USING thing_id;
:read
ALTER TABLE thing SET UNLOGGED;
:read
ALTER TABLE thing SET LOGGED;
:read
:read
:status

-- Views: the text stays, its meaning changes.
CREATE VIEW shown AS SELECT id, v FROM thing;
SELECT * FROM shown ORDER BY 1;
SELECT * FROM shown ORDER BY 1;
:status
CREATE OR REPLACE VIEW shown AS SELECT id, upper(v) AS v FROM thing;
SELECT * FROM shown ORDER BY 1;
SELECT * FROM shown ORDER BY 1;
:status
CREATE OR REPLACE VIEW shown AS SELECT id, v, id * 2 AS twice FROM thing WHERE id > 1;
SELECT * FROM shown ORDER BY 1;
CREATE VIEW above AS SELECT twice FROM shown;
SELECT * FROM above;
SELECT * FROM above;
:status
CREATE OR REPLACE VIEW shown AS SELECT id, v, id * 3 AS twice FROM thing WHERE id > 1;
SELECT * FROM above;
ALTER VIEW shown RENAME COLUMN twice TO thrice;
SELECT * FROM shown;
SELECT * FROM above;
CREATE RULE shown_rule AS ON INSERT TO shown DO INSTEAD NOTHING;
SELECT * FROM above;
DROP VIEW shown CASCADE;
SELECT * FROM above;

-- Collations, types, defaults of arrays and domains, text search: what a query calls may change under the same name.
CREATE COLLATION mine FROM "C";
ALTER TABLE thing ALTER COLUMN v TYPE text COLLATE mine;
SELECT v FROM thing WHERE v < 'p' COLLATE mine;
SELECT v FROM thing WHERE v < 'p' COLLATE mine;
:status
CREATE TEXT SEARCH CONFIGURATION own_search (COPY = english);
SELECT to_tsvector('own_search', v || 's running') FROM thing WHERE id = 1;
SELECT to_tsvector('own_search', v || 's running') FROM thing WHERE id = 1;
ALTER TEXT SEARCH CONFIGURATION own_search ALTER MAPPING FOR asciiword WITH simple;
SELECT to_tsvector('own_search', v || 's running') FROM thing WHERE id = 1;
CREATE TYPE size AS ENUM ('small', 'large');
SELECT id, 'small'::size FROM thing WHERE id = 1;
SELECT id, 'small'::size FROM thing WHERE id = 1;
:status
ALTER TYPE size RENAME VALUE 'small' TO 'tiny';
SELECT id, 'small'::size FROM thing WHERE id = 1;
ALTER TYPE size RENAME VALUE 'large' TO 'small';
SELECT id, 'small'::size FROM thing WHERE id = 1;

-- Defaults of roles and databases do not change a running session; constraints may change a plan, never an answer.
ALTER TABLE thing ADD CONSTRAINT positive CHECK (id > 0);
SELECT id FROM thing WHERE id < 0;
SELECT id FROM thing WHERE id < 0;
ALTER TABLE thing DROP CONSTRAINT positive;
INSERT INTO thing VALUES (-1, 'minus');
SELECT id FROM thing WHERE id < 0;

-- Statistics, comments and vacuum change no answer and no definition: results over the table stay.
SELECT count(*) FROM thing;
COMMENT ON TABLE thing IS 'nothing changes';
SELECT count(*) FROM thing;
:status
VACUUM thing;
SELECT count(*) FROM thing;

-- DDL in a function.
CREATE FUNCTION add_column() RETURNS void LANGUAGE plpgsql AS $$ BEGIN ALTER TABLE thing ADD COLUMN late int DEFAULT 1; END $$;
:read
SELECT add_column();
:read
:read
:status
-- A prepared statement over a changed table: PostgreSQL's own error, then the new answer.
PREPARE star AS SELECT id, v FROM thing ORDER BY 1;
EXECUTE star;
EXECUTE star;
:status
ALTER TABLE thing ALTER COLUMN id TYPE bigint;
EXECUTE star;
ALTER TABLE thing ALTER COLUMN id TYPE int;
EXECUTE star;
EXECUTE star;
:status
DEALLOCATE star;

DROP TABLE thing;
DROP COLLATION mine;
DROP TEXT SEARCH CONFIGURATION own_search;
DROP TYPE size;
DROP FUNCTION add_column;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
