-- Entries belong to one database: another one neither sees nor flushes them, and they go when it goes.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
SELECT arrow_cache.flush() >= 0 AS flushed;
CREATE DATABASE regress_cache_other TEMPLATE template0;
CREATE TABLE twin (a text);
INSERT INTO twin VALUES ('first database');
SELECT a FROM twin;
SELECT a FROM twin;
:status
\set home :DBNAME
\c regress_cache_other
CREATE EXTENSION pg_arrow_cache;
CREATE TABLE twin (a text);
INSERT INTO twin VALUES ('second database');
SELECT a FROM twin;
SELECT a FROM twin;
:status
SELECT datname, query FROM arrow_cache.entries;
SELECT relation, entries FROM arrow_cache.relations;
-- The numbers of stats are those of the server.
SELECT entries FROM arrow_cache.stats;
SELECT arrow_cache.flush();
SELECT entries FROM arrow_cache.stats;
SELECT a FROM twin;
\c :home
SELECT a FROM twin;
:status
SELECT datname = current_database() AS own, query FROM arrow_cache.entries;
-- Nobody could read or flush the entries of a dropped database, so they are removed.
DROP DATABASE regress_cache_other;
DROP TABLE twin;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
