-- Statements for which a cache that hashes the wrong thing, or finds an answer too late, gives a wrong answer. Each shows the right answer.
\pset format unaligned
\pset tuples_only on
\set status 'SELECT arrow_cache.last_status(), arrow_cache.last_reason()'
SELECT arrow_cache.flush() IS NOT NULL;
CREATE TABLE edge (i int, v text);
INSERT INTO edge SELECT g, 'v' || g FROM generate_series(1, 20) g;

-- The key of a statement that fails while it starts is not used for the next one.
CREATE ROLE edge_reader;
CREATE TABLE edge_secret (a text, b text);
GRANT SELECT ON edge TO edge_reader;
SET ROLE edge_reader;
SELECT a, b FROM edge_secret;
SELECT i, v, random() > 2 FROM edge WHERE i = 1;
RESET ROLE;
SELECT count(*) FROM arrow_cache.entries WHERE query ILIKE '%edge_secret%';

-- An expression that PostgreSQL can run is not refused for being deep.
-- (Its text is not shown.)
\set ECHO none
SELECT 'SELECT count(*) FROM edge WHERE i = ' || string_agg('i', '+') || ' - i * 2999' FROM generate_series(1, 3000) \gexec
\set ECHO all

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

-- Membership and roles belong to all databases: a change reaches the results of each.
SELECT i FROM edge WHERE i = 5;
SELECT i FROM edge WHERE i = 5;
:status;
ALTER ROLE edge_reader NOINHERIT;
SELECT i FROM edge WHERE i = 5;
:status;

DROP TABLE edge, edge_secret;
DROP ROLE edge_reader;

SELECT arrow_cache.flush() IS NOT NULL;
TABLE cache_leftovers;
