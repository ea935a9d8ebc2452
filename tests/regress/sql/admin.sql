-- flush, invalidate, invalidate_on_change, reset_stats: what they drop, what they return, what they refuse.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset footer off
\pset format unaligned
CREATE TABLE one (a int);
CREATE TABLE two (a int);
INSERT INTO one VALUES (1);
INSERT INTO two VALUES (2);
SELECT arrow_cache.flush() >= 0 AS flushed;

-- flush returns how many entries it dropped, invalid ones included, and starts from nothing.
SELECT arrow_cache.flush();
SELECT a FROM one;
SELECT a FROM two;
SELECT one.a, two.a FROM one, two;
SELECT arrow_cache.flush();
TABLE cache_leftovers;
SELECT a FROM one;
:status
SELECT a FROM one;
:status
UPDATE one SET a = 1;
SELECT arrow_cache.flush();
-- It does not belong to the transaction that calls it.
SELECT a FROM one;
BEGIN;
SELECT arrow_cache.flush();
ROLLBACK;
SELECT a FROM one;
:status

-- invalidate drops the entries that depend on the relation, also through a view; the relation can be named in any way.
SELECT a FROM two;
SELECT one.a, two.a FROM one, two;
SELECT arrow_cache.invalidate('one');
SELECT a FROM one;
:status
SELECT a FROM two;
:status
SELECT arrow_cache.invalidate('public.two'::regclass);
SELECT arrow_cache.invalidate(relation => 'two');
CREATE VIEW over AS SELECT a FROM one;
SELECT a FROM over;
SELECT arrow_cache.invalidate('over');
SELECT a FROM over;
:status
SELECT arrow_cache.invalidate('one');
SELECT a FROM over;
:status
SELECT arrow_cache.invalidate(NULL);
SELECT arrow_cache.invalidate('no_such_relation');
\echo :LAST_ERROR_SQLSTATE
-- No relation has this number, so no entry depends on it.
SELECT a FROM two;
SELECT arrow_cache.invalidate('-');
SELECT arrow_cache.invalidate(4294967295);
SELECT a FROM two;
:status

-- invalidate_on_change: for a table whose changes the server cannot see; its arguments name further relations.
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE TABLE signal (a int);
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON signal FOR EACH STATEMENT EXECUTE FUNCTION arrow_cache.invalidate_on_change('two', 'public.one');
SELECT a FROM one;
SELECT a FROM two;
INSERT INTO signal VALUES (1);
SELECT a FROM one;
:status
SELECT a FROM two;
:status
-- A statement that changes no row still fires a statement trigger, and so invalidates.
DELETE FROM signal WHERE false;
SELECT a FROM one;
:status
TRUNCATE signal;
SELECT a FROM one;
-- At commit, not before, and not at all when rolled back; inside the transaction its own reads are executed.
SELECT a FROM one;
SELECT a FROM two;
BEGIN;
INSERT INTO signal VALUES (1);
SELECT a FROM two;
:status
ROLLBACK;
SELECT a FROM two;
:status
-- Without arguments, the table itself; per row as well as per statement.
CREATE TABLE silent (a int);
CREATE TRIGGER tell AFTER UPDATE ON silent FOR EACH ROW EXECUTE FUNCTION arrow_cache.invalidate_on_change();
INSERT INTO silent VALUES (1);
SELECT a FROM silent;
UPDATE silent SET a = a;
SELECT a FROM silent;
:status
-- A BEFORE row trigger must not swallow the row.
CREATE TRIGGER early BEFORE UPDATE ON silent FOR EACH ROW EXECUTE FUNCTION arrow_cache.invalidate_on_change('two');
UPDATE silent SET a = 5;
SELECT a FROM silent;
-- Names: quoted, in another schema, missing.
CREATE SCHEMA "Other Schema";
CREATE TABLE "Other Schema"."Odd.Name" (a int);
CREATE TABLE signal_odd (a int);
CREATE TRIGGER tell AFTER INSERT ON signal_odd EXECUTE FUNCTION arrow_cache.invalidate_on_change('"Other Schema"."Odd.Name"');
SELECT a FROM "Other Schema"."Odd.Name";
INSERT INTO signal_odd VALUES (1);
SELECT a FROM "Other Schema"."Odd.Name";
:status
CREATE TABLE signal_wrong (a int);
CREATE TRIGGER tell AFTER INSERT ON signal_wrong EXECUTE FUNCTION arrow_cache.invalidate_on_change('no_such_relation');
INSERT INTO signal_wrong VALUES (1);
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM signal_wrong;
CREATE TRIGGER tell_too AFTER INSERT ON one EXECUTE FUNCTION arrow_cache.invalidate_on_change('not a name');
INSERT INTO one VALUES (9);
DROP TRIGGER tell_too ON one;
-- It can be called only as a trigger.
\set VERBOSITY sqlstate
SELECT arrow_cache.invalidate_on_change();
\set VERBOSITY default

-- reset_stats zeroes the counters and keeps the entries.
SELECT a FROM one;
SELECT a FROM one;
SELECT hits > 0 AS hits, stores > 0 AS stores FROM arrow_cache.stats;
SELECT arrow_cache.reset_stats();
SELECT hits, misses, stale, stores, invalidations, entries > 0 AS entries FROM arrow_cache.stats;
SELECT a FROM one;
:status

SET client_min_messages = warning;
DROP SCHEMA "Other Schema" CASCADE;
DROP EXTENSION file_fdw CASCADE;
DROP VIEW over;
DROP TABLE one, two, signal, silent, signal_odd, signal_wrong;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
