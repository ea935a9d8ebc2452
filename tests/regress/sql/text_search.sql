-- Functions of text search that name no configuration: the one that the session would use is in the key.
\pset null '(null)'
\pset footer off
\pset format unaligned
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
CREATE SCHEMA searched;
CREATE SCHEMA aside;
SET search_path = searched, public;
CREATE TABLE doc (id int, body text, j jsonb);
INSERT INTO doc VALUES (1, 'the running dogs', '{"a": "walking cats"}');
SET default_text_search_config = 'pg_catalog.english';
SELECT to_tsvector(body) FROM doc;
SELECT to_tsvector(body) FROM doc;
:status
SELECT id FROM doc WHERE to_tsvector(body) @@ to_tsquery('run');
SELECT id FROM doc WHERE to_tsvector(body) @@ to_tsquery('run');
:status
-- All of them.
\set all 'SELECT to_tsvector(body), to_tsquery(\'dogs\'), plainto_tsquery(body), phraseto_tsquery(body), websearch_to_tsquery(body), ts_headline(body, \'dog\'::tsquery), ts_headline(body, \'dog\'::tsquery, \'StartSel=*\'), ts_headline(j, \'cat\'::tsquery), ts_headline(j::json, \'cat\'::tsquery), to_tsvector(j), to_tsvector(j::json), jsonb_to_tsvector(j, \'"all"\'), json_to_tsvector(j::json, \'"all"\'), body @@ \'dog\', body @@ \'dog\'::tsquery FROM doc;'
:all
:all
:status
-- Another configuration is another question.
SET default_text_search_config = 'simple';
SELECT to_tsvector(body) FROM doc;
:status
:all
:status
SET default_text_search_config = 'english';
SELECT to_tsvector(body) FROM doc;
:status
-- One of a user's, which then changes.
CREATE TEXT SEARCH CONFIGURATION own (COPY = english);
SET default_text_search_config = 'own';
SELECT to_tsvector(body) FROM doc;
SELECT to_tsvector(body) FROM doc;
:status
ALTER TEXT SEARCH CONFIGURATION own ALTER MAPPING FOR asciiword WITH simple;
SELECT to_tsvector(body) FROM doc;
:status
-- The schema gets another name: the server goes on with what it has found, but the name stands for nothing.
CREATE TEXT SEARCH CONFIGURATION aside.own (COPY = simple);
SET default_text_search_config = 'aside.own';
SELECT to_tsvector(body) FROM doc;
SELECT to_tsvector(body) FROM doc;
:status
ALTER SCHEMA aside RENAME TO beside;
SELECT to_tsvector(body) FROM doc;
:status
-- Another schema of that name has another configuration: the server looks again.
CREATE SCHEMA aside;
CREATE TEXT SEARCH CONFIGURATION aside.own (COPY = english);
SELECT to_tsvector(body) FROM doc;
SELECT to_tsvector(body) FROM doc;
:status
-- A role without the right to use the schema meets an error when the function is called, and only then.
CREATE ROLE searcher;
GRANT USAGE ON SCHEMA searched TO searcher;
GRANT SELECT ON doc TO searcher;
\c -
SET search_path = searched, public;
SET default_text_search_config = 'aside.own';
SET ROLE searcher;
SELECT id FROM doc WHERE id > 5 AND to_tsvector(body) = '';
SELECT to_tsvector(body) FROM doc;
RESET ROLE;
-- It is read between Bind and the rows of a cursor.
BEGIN;
DECLARE c CURSOR FOR SELECT to_tsvector(body) FROM doc;
SET LOCAL default_text_search_config = 'simple';
FETCH c;
COMMIT;
-- The body of a function in SQL may read it where PostgreSQL inlines it. A plan may keep the value of one that is marked IMMUTABLE.
CREATE FUNCTION words(text) RETURNS tsvector LANGUAGE sql STABLE RETURN to_tsvector($1);
CREATE FUNCTION fixed_words(text) RETURNS tsvector LANGUAGE sql IMMUTABLE RETURN to_tsvector($1);
SELECT words(body) FROM doc;
SELECT words(body) FROM doc;
:status
SELECT fixed_words(body) FROM doc;
:status
-- The name of the configuration is no answer to keep.
SELECT get_current_ts_config(), id FROM doc;
:status
SET client_min_messages = warning;
DROP SCHEMA searched, aside, beside CASCADE;
DROP ROLE searcher;
