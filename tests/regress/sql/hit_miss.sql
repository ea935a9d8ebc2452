-- A query has one key however it is written; whatever can change its answer makes another key.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned

-- Before the first statement of a session there is nothing to report.
:status

CREATE TABLE word (id int, a text, "A" text);
INSERT INTO word VALUES (1, 'lower', 'UPPER'), (2, 'a', 'A'), (3, 'x  y', 'x y');

-- First a miss, then hits with the same rows in the same order.
SELECT a FROM word ORDER BY id;
:status
SELECT a FROM word ORDER BY id;
:status
-- Asking for the status is not a statement of its own: it can be asked again.
:status

-- White space, line breaks, comments and letter case are not part of a query.
select   a
	FROM word
    Order By   ID;
:status
SELECT a FROM word ORDER BY id -- x
;
:status
Select/**/a/* one /* nested */ comment */from word order by id;
:status
/* leading; comment */ SELECT a FROM word ORDER BY id; -- trailing
:status
SELECT a FROM word -- ORDER BY "A"
ORDER BY id;
:status
-- A quoted name in lower case is the same name.
SELECT "a" FROM word ORDER BY id;
:status

-- Quoted identifiers keep their case.
SELECT "A" FROM word ORDER BY id;
:status
SELECT "A" FROM word ORDER BY id;
:status
SELECT "a" FROM word ORDER BY id;
:status

-- Literals keep case, spaces and what looks like a comment in them.
SELECT id FROM word WHERE a = 'a' OR "A" = 'a';
:status
SELECT id FROM word WHERE a = 'A' OR "A" = 'A' ORDER BY id;
:status
SELECT id FROM word WHERE a = 'A' OR "A" = 'a' ORDER BY id;
:status
SELECT id FROM word WHERE a = 'x  y';
:status
SELECT id FROM word WHERE a = 'x y';
:status
SELECT id, 'x /* y */' AS s FROM word WHERE id = 1;
SELECT id, 'x ' AS s FROM word WHERE id = 1;
:status
SELECT id, 'x -- y' AS s FROM word WHERE id = 1;
:status
SELECT id, $$It's /* here */$$ AS s FROM word WHERE id = 1;
SELECT id, $$it's /* here */$$ AS s FROM word WHERE id = 1;
:status
SELECT id, $tag$It's /* here */$tag$ AS s FROM word WHERE id = 1;
:status
SELECT id, E'tab\t' AS s FROM word WHERE id = 1;
SELECT id, e'tab\t' AS s FROM word WHERE id = 1;
:status
SELECT id, 'tab\t' AS s FROM word WHERE id = 1;
:status
SELECT id, E'it\'s -- not a comment' AS s FROM word WHERE id = 1;
SELECT id, E'it\'s -- NOT a comment' AS s FROM word WHERE id = 1;
:status
-- Two parts of one string join across a line break only.
SELECT id, 'one'
    'two' AS s FROM word WHERE id = 1;
SELECT id, 'one' -- between
    'two' AS s FROM word WHERE id = 1;
:status
-- The same text means something else when backslashes do.
SET standard_conforming_strings = off;
SET escape_string_warning = off;
SELECT id, 'tab\t' = E'tab\t' AS escaped FROM word WHERE id = 1;
RESET standard_conforming_strings;
SELECT id, 'tab\t' = E'tab\t' AS escaped FROM word WHERE id = 1;
:status
-- Unicode identifiers and the letters they stand for.
SELECT U&"\0041" AS u FROM word WHERE id = 1;
SELECT U&"\0061" AS u FROM word WHERE id = 1;
:status
-- Column names are part of the answer.
SELECT a AS first FROM word WHERE id = 1;
SELECT a AS second FROM word WHERE id = 1;
:status
SELECT a AS "First" FROM word WHERE id = 1;
:status
SELECT a AS FIRST FROM word WHERE id = 1;
:status
-- Numbers keep their form: it decides their type and scale.
SELECT id + 1 AS n FROM word WHERE id = 1;
SELECT id + 1.0 AS n FROM word WHERE id = 1;
:status
SELECT id + 1.00 AS n FROM word WHERE id = 1;
:status
SELECT id + 1.00 AS n FROM word WHERE id = 1;
:status

-- The same text over another relation: search_path decides, then a temporary table of the same name.
CREATE SCHEMA other;
CREATE TABLE other.word (id int, a text);
INSERT INTO other.word VALUES (1, 'from other');
SELECT a FROM word WHERE id = 1;
SET search_path = other, public;
SELECT a FROM word WHERE id = 1;
:status
SELECT a FROM word WHERE id = 1;
:status
RESET search_path;
SELECT a FROM word WHERE id = 1;
:status
BEGIN;
SET LOCAL search_path = other;
SELECT a FROM word WHERE id = 1;
:status
ROLLBACK;
SELECT a FROM word WHERE id = 1;
:status
CREATE TEMPORARY TABLE word (id int, a text);
INSERT INTO word VALUES (1, 'temporary');
SELECT a FROM word WHERE id = 1;
:status
DROP TABLE pg_temp.word;
SELECT a FROM word WHERE id = 1;
SELECT a FROM word WHERE id = 1;
:status

-- A date constant that is worked out while parsing is part of the key by its value, not by its text.
SELECT id, 'epoch'::date AS d FROM word WHERE id = 1;
SELECT id, 'epoch'::date AS d FROM word WHERE id = 1;
:status

-- A statement that fails stores nothing and is not a hit later.
SELECT 1 / (id - 2) AS q FROM word ORDER BY id;
SELECT count(*) FROM arrow_cache.entries WHERE query ILIKE '%(id - 2)%';
SELECT 1 / (id - 2) AS q FROM word ORDER BY id;

-- DISCARD ALL resets the session, not the cache.
DISCARD ALL;
SELECT a FROM word WHERE id = 1;
:status

DROP SCHEMA other CASCADE;
DROP TABLE word;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
