-- Statements inside other statements are executed as usual: not served, not stored, not counted. Only statements of the client are.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset footer off
\pset format unaligned
CREATE TABLE inner_t (id int, v text);
INSERT INTO inner_t VALUES (1, 'one'), (2, 'two');
SELECT arrow_cache.flush() >= 0 AS flushed;
SELECT v FROM inner_t WHERE id = 1;
SELECT v FROM inner_t WHERE id = 1;
:status
SELECT arrow_cache.reset_stats();

-- In SQL, PL/pgSQL, static and dynamic, in loops and cursors.
CREATE FUNCTION in_sql() RETURNS text LANGUAGE sql STABLE AS 'SELECT v FROM inner_t WHERE id = 1';
CREATE FUNCTION in_sql_rows() RETURNS SETOF text LANGUAGE sql VOLATILE AS 'SELECT v FROM inner_t ORDER BY id';
CREATE FUNCTION in_plpgsql() RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text; s text := ''; c CURSOR FOR SELECT v FROM inner_t WHERE id = 1;
BEGIN
    SELECT v INTO r FROM inner_t WHERE id = 1;
    s := s || r;
    EXECUTE 'SELECT v FROM inner_t WHERE id = 1' INTO r;
    s := s || r;
    FOR r IN SELECT v FROM inner_t WHERE id = 1 LOOP s := s || r; END LOOP;
    OPEN c;
    FETCH c INTO r;
    CLOSE c;
    RETURN s || r;
END $$;
SELECT in_sql();
SELECT in_sql_rows();
SELECT * FROM in_sql_rows();
SELECT in_plpgsql();
:status
SELECT id, in_plpgsql() FROM inner_t WHERE id = 2;
DO $$ BEGIN PERFORM v FROM inner_t WHERE id = 1; END $$;
:status
CREATE PROCEDURE in_procedure() LANGUAGE plpgsql AS $$ BEGIN PERFORM v FROM inner_t WHERE id = 1; COMMIT; PERFORM v FROM inner_t WHERE id = 1; END $$;
CALL in_procedure();
:status
-- As the source of another statement.
CREATE TABLE made AS SELECT v FROM inner_t WHERE id = 1;
:status
SELECT v INTO made_too FROM inner_t WHERE id = 1;
INSERT INTO made SELECT v FROM inner_t WHERE id = 1;
CREATE MATERIALIZED VIEW made_view AS SELECT v FROM inner_t WHERE id = 1;
REFRESH MATERIALIZED VIEW made_view;
CREATE TABLE made_exec AS EXECUTE no_such_statement;
PREPARE s AS SELECT v FROM inner_t WHERE id = 1;
CREATE TABLE made_exec AS EXECUTE s;
SELECT hits, misses, stale, stores FROM arrow_cache.stats;
SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'nested_statement';
SELECT count(*) AS stored FROM arrow_cache.entries WHERE query ILIKE '%inner_t%';
SELECT (SELECT count(*) FROM made) + (SELECT count(*) FROM made_too) + (SELECT count(*) FROM made_exec) AS rows;

-- A status asked for by a function that queries: the status of the statement before, not of what ran inside.
CREATE FUNCTION asks() RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM v FROM inner_t WHERE id = 1; RETURN arrow_cache.last_status(); END $$;
SELECT v FROM inner_t WHERE id = 2;
SELECT asks();
SELECT v FROM inner_t WHERE id = 2;
SELECT asks();

-- Several statements in one string: each is a statement of its own, with the text that is its own.
SELECT v FROM inner_t WHERE id = 1 \; SELECT v FROM inner_t WHERE id = 2;
:status
SELECT id FROM inner_t WHERE id = 1 \; SELECT id FROM inner_t WHERE id = 2 \; SELECT arrow_cache.last_status();
SELECT id FROM inner_t WHERE id = 1 \; SELECT arrow_cache.last_status() \; SELECT id FROM inner_t WHERE id = 2 \; SELECT arrow_cache.last_status();
SELECT id FROM inner_t WHERE id = 1;
:status
-- Comments and semicolons between them belong to none.
/* first; */ SELECT id FROM inner_t WHERE id = 1 /* ; */ \; -- then
 /* second */ SELECT   id FROM inner_t WHERE id = 2 ;
:status
-- A string of statements is one transaction: a write in it makes the rest of it execute.
SELECT v FROM inner_t WHERE id = 1 \; UPDATE inner_t SET v = 'uno' WHERE id = 1 \; SELECT v FROM inner_t WHERE id = 1;
:status
SELECT v FROM inner_t WHERE id = 1;
:status
-- The last one fails: all is undone, and nothing that was read in between stays.
SELECT v FROM inner_t WHERE id = 1 \; UPDATE inner_t SET v = 'eins' WHERE id = 1 \; SELECT v, 'between' AS b FROM inner_t WHERE id = 1 \; SELECT 1 / 0;
SELECT v FROM inner_t WHERE id = 1;
:status
SELECT count(*) AS stored FROM arrow_cache.entries WHERE query ILIKE '%between%';
-- An error inside a function leaves the nesting as it was: the next statement of the client is at the top again.
-- The context of the error is not shown: from 18 on it calls the expression another name.
\set SHOW_CONTEXT never
CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM v FROM inner_t; RETURN 1 / 0; END $$;
CREATE FUNCTION catches() RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM fails(); RETURN 'no'; EXCEPTION WHEN division_by_zero THEN RETURN 'caught'; END $$;
SELECT v FROM inner_t WHERE id = 1;
SELECT fails();
SELECT v FROM inner_t WHERE id = 1;
:status
SELECT catches();
DO $$ BEGIN PERFORM fails(); END $$;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT fails();
SELECT v FROM inner_t WHERE id = 1;
:status
\set SHOW_CONTEXT errors

-- A trigger that is deferred to the commit runs inside no other statement; its queries still are not statements of the client.
CREATE TABLE deferred_t (id int);
CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
    FOR r IN SELECT v || ' at commit' FROM inner_t ORDER BY 1 LOOP NULL; END LOOP;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON deferred_t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit();
INSERT INTO deferred_t VALUES (1);
INSERT INTO deferred_t VALUES (2);
SELECT count(*) AS stored FROM arrow_cache.entries WHERE query ILIKE '%at commit%';

DEALLOCATE s;
DROP MATERIALIZED VIEW made_view;
DROP TABLE inner_t, made, made_too, made_exec, deferred_t;
DROP FUNCTION in_sql, in_sql_rows, in_plpgsql, asks, fails, catches, at_commit;
DROP PROCEDURE in_procedure;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
