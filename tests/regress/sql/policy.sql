-- Policies, by which owners decide about caching of their relations: set_policy, the label behind it, and trusted foreign tables.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '-'
CREATE TABLE plain (a int);
INSERT INTO plain VALUES (1), (2);
CREATE VIEW over_plain AS SELECT a FROM plain;
CREATE TABLE parted (a int) PARTITION BY LIST (a);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
INSERT INTO parted VALUES (1), (2);
CREATE TABLE parent (a int);
CREATE TABLE child () INHERITS (parent);
INSERT INTO child VALUES (7);

-- never: neither stored nor served; default brings it back.
SELECT sum(a) FROM plain;
SELECT sum(a) FROM plain;
:status
PREPARE kept AS SELECT sum(a) FROM plain;
EXECUTE kept;
:status
SELECT arrow_cache.set_policy('plain', 'never');
SELECT arrow_cache.policy('plain'), arrow_cache.policy('over_plain');
SELECT * FROM arrow_cache.policies;
SELECT sum(a) FROM plain;
:status
EXECUTE kept;
:status
SELECT sum(a) FROM over_plain;
:status
SELECT statements > 0 AS counted FROM arrow_cache.bypass_reasons WHERE reason = 'policy_never';
-- It belongs to the relation, not to its name.
ALTER TABLE plain RENAME TO renamed;
SELECT sum(a) FROM renamed;
:status
ALTER TABLE renamed RENAME TO plain;
-- A change of policy that is rolled back has no effect.
BEGIN;
SELECT arrow_cache.set_policy('plain', 'default');
SELECT arrow_cache.policy('plain');
ROLLBACK;
SELECT arrow_cache.policy('plain');
SELECT sum(a) FROM plain;
:status
SELECT arrow_cache.set_policy('plain', 'default');
SELECT count(*) AS policies FROM arrow_cache.policies;
SELECT sum(a) FROM plain;
SELECT sum(a) FROM plain;
:status
EXECUTE kept;
EXECUTE kept;
:status
DEALLOCATE kept;

-- A policy counts for every query that reads the relation: a view's, a partition's, a child's, and the parents' own.
SELECT arrow_cache.set_policy('over_plain', 'never');
SELECT sum(a) FROM over_plain;
:status
SELECT sum(a) FROM plain;
SELECT sum(a) FROM plain;
:status
SELECT arrow_cache.set_policy('parted_2', 'never');
SELECT sum(a) FROM parted;
:status
SELECT sum(a) FROM parted_2;
:status
SELECT sum(a) FROM parted WHERE a = 1;
SELECT sum(a) FROM parted WHERE a = 1;
:status
SELECT arrow_cache.set_policy('parted_2', 'default');
SELECT arrow_cache.set_policy('parted', 'never');
SELECT sum(a) FROM parted;
:status
SELECT sum(a) FROM parted_2;
SELECT sum(a) FROM parted_2;
:status
SELECT arrow_cache.set_policy('child', 'never');
SELECT sum(a) FROM parent;
:status
SELECT sum(a) FROM ONLY parent;
SELECT sum(a) FROM ONLY parent;
:status
SELECT arrow_cache.set_policy(relation, 'default') FROM arrow_cache.policies;
SELECT count(*) AS policies FROM arrow_cache.policies;

-- The label is the policy.
SECURITY LABEL FOR pg_arrow_cache ON TABLE plain IS 'never';
SELECT arrow_cache.policy('plain');
SELECT sum(a) FROM plain;
:status
SECURITY LABEL FOR pg_arrow_cache ON TABLE plain IS NULL;
SELECT arrow_cache.policy('plain');
SECURITY LABEL FOR pg_arrow_cache ON VIEW over_plain IS 'never';
SELECT relation, policy FROM arrow_cache.policies;
DROP VIEW over_plain;
SELECT relation, policy FROM arrow_cache.policies;

-- Functions in PL/pgSQL are declared pure by a label. It is no policy of a relation.
CREATE FUNCTION plain_sum() RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS 'BEGIN RETURN (SELECT sum(a) FROM plain); END';
SELECT cacheable, reason, detail FROM arrow_cache.why('SELECT a, plain_sum() FROM plain');
SECURITY LABEL FOR pg_arrow_cache ON FUNCTION plain_sum() IS 'pure';
SELECT cacheable, reason, detail FROM arrow_cache.why('SELECT a, plain_sum() FROM plain');
SELECT a, plain_sum() FROM plain;
:status
SELECT a, plain_sum() FROM plain;
:status
ALTER FUNCTION plain_sum() RESET search_path;
SELECT detail FROM arrow_cache.why('SELECT a, plain_sum() FROM plain');
ALTER FUNCTION plain_sum() SET search_path FROM CURRENT;
SELECT count(*) AS policies FROM arrow_cache.policies;
ALTER FUNCTION plain_sum() VOLATILE;
SELECT detail FROM arrow_cache.why('SELECT a, plain_sum() FROM plain');
ALTER FUNCTION plain_sum() STABLE PARALLEL SAFE;
SELECT detail FROM arrow_cache.why('SELECT a, plain_sum() FROM plain');
SECURITY LABEL FOR pg_arrow_cache ON FUNCTION plain_sum() IS 'never';
SECURITY LABEL FOR pg_arrow_cache ON FUNCTION abs(int) IS 'pure';
SECURITY LABEL FOR pg_arrow_cache ON FUNCTION plain_sum() IS NULL;
DROP FUNCTION plain_sum();

-- Refused calls.
SELECT arrow_cache.set_policy('plain', 'always');
SELECT arrow_cache.set_policy('plain', 'Never');
SELECT arrow_cache.set_policy('plain', '');
SECURITY LABEL FOR pg_arrow_cache ON TABLE plain IS 'default';
SECURITY LABEL FOR pg_arrow_cache ON TABLE plain IS 'secret';
SECURITY LABEL FOR pg_arrow_cache ON COLUMN plain.a IS 'never';
SECURITY LABEL FOR pg_arrow_cache ON SCHEMA public IS 'never';
CREATE SEQUENCE counter;
SELECT arrow_cache.set_policy('counter', 'never');
SELECT arrow_cache.set_policy(4294967295::oid, 'never');
BEGIN READ ONLY;
SELECT arrow_cache.set_policy('plain', 'never');
ROLLBACK;
SELECT arrow_cache.set_policy('plain', NULL);
CREATE ROLE regress_cache_other;
GRANT ALL ON plain TO regress_cache_other;
SET ROLE regress_cache_other;
SELECT arrow_cache.set_policy('plain', 'never');
SECURITY LABEL FOR pg_arrow_cache ON TABLE plain IS 'never';
SELECT arrow_cache.policy('plain');
SELECT count(*) AS policies FROM arrow_cache.policies;
RESET ROLE;
DROP OWNED BY regress_cache_other;
DROP ROLE regress_cache_other;
DO $$ BEGIN PERFORM arrow_cache.set_policy('plain', 'x'); EXCEPTION WHEN invalid_parameter_value THEN RAISE NOTICE '22023: %', SQLERRM; END $$;

-- A file that the server cannot watch: cached once it is trusted, and then as fresh as invalidate() and ttl make it.
SELECT current_setting('data_directory') || '/regress_cache_policy.csv' AS file \gset
COPY (VALUES (1), (2)) TO :'file';
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE lines (a int) SERVER files OPTIONS (filename :'file');
SELECT sum(a) FROM lines;
:status
SELECT arrow_cache.set_policy('lines', 'trusted');
SELECT sum(a) FROM lines;
SELECT sum(a) FROM lines;
:status
COPY (VALUES (10)) TO :'file';
SELECT sum(a) FROM lines;
:status
SELECT arrow_cache.invalidate('lines');
SELECT sum(a) FROM lines;
:status
SELECT sum(a) FROM lines;
:status
COPY (VALUES (20)) TO :'file';
SELECT pg_sleep(1.1);
/*+ arrow_cache(ttl=1) */ SELECT sum(a) FROM lines;
:status
/*+ arrow_cache(ttl=0) */ SELECT sum(a) FROM lines;
:status
-- A transaction that began before the change does not store for others.
BEGIN;
SELECT arrow_cache.invalidate('lines');
SELECT sum(a) FROM lines;
:status
COMMIT;
SELECT sum(a) FROM lines;
:status
-- never is stronger, default makes it a foreign table like any other.
SELECT arrow_cache.set_policy('lines', 'never');
SELECT sum(a) FROM lines;
:status
SELECT arrow_cache.set_policy('lines', 'default');
SELECT sum(a) FROM lines;
:status
DROP EXTENSION file_fdw CASCADE;

-- Changes through this server: seen by those who make them, and at commit by all.
CREATE EXTENSION postgres_fdw;
DO $$
BEGIN
    EXECUTE format('CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (dbname %L, host %L, port %L)',
        current_database(), current_setting('unix_socket_directories'), current_setting('port'));
    EXECUTE format('CREATE USER MAPPING FOR CURRENT_USER SERVER loopback OPTIONS (user %L)', current_user);
END $$;
CREATE TABLE there (a int);
CREATE FOREIGN TABLE here (a int) SERVER loopback OPTIONS (table_name 'there');
SELECT arrow_cache.set_policy('here', 'trusted');
INSERT INTO here VALUES (1);
SELECT sum(a) FROM here;
SELECT sum(a) FROM here;
:status
INSERT INTO here VALUES (2);
SELECT sum(a) FROM here;
:status
SELECT sum(a) FROM here;
:status
BEGIN;
UPDATE here SET a = a * 10;
SELECT sum(a) FROM here;
:status
COMMIT;
SELECT sum(a) FROM here;
:status
BEGIN;
DELETE FROM here;
ROLLBACK;
SELECT sum(a) FROM here;
SELECT sum(a) FROM here;
:status
COPY here FROM STDIN;
100
\.
SELECT sum(a) FROM here;
:status
TRUNCATE here;
SELECT sum(a) FROM here;
:status
-- A change on the far side is not seen, unless a trigger there or a function call here tells.
SELECT sum(a) FROM here;
:status
INSERT INTO there VALUES (5);
SELECT sum(a) FROM here;
:status
CREATE TRIGGER tell AFTER INSERT ON there FOR EACH STATEMENT EXECUTE FUNCTION arrow_cache.invalidate_on_change('here');
INSERT INTO there VALUES (6);
SELECT sum(a) FROM here;
:status
DROP TRIGGER tell ON there;
SELECT sum(a) FROM here;
-- As a partition, reached through its parent.
CREATE TABLE spread (a int) PARTITION BY RANGE (a);
CREATE FOREIGN TABLE spread_far PARTITION OF spread FOR VALUES FROM (0) TO (1000000) SERVER loopback OPTIONS (table_name 'there');
SELECT arrow_cache.set_policy('spread_far', 'trusted');
SELECT count(*) FROM spread;
SELECT count(*) FROM spread;
:status
SELECT count(*) FROM spread_far;
SELECT count(*) FROM spread_far;
:status
INSERT INTO spread VALUES (7);
SELECT count(*) FROM spread_far;
:status
SELECT count(*) FROM spread;
:status
SELECT count(*) FROM spread_far;
:status
COPY spread FROM STDIN;
8
\.
SELECT count(*) FROM spread_far;
:status
TRUNCATE spread;
SELECT count(*) FROM spread_far;
:status
SELECT count(*) FROM spread;
:status
SET client_min_messages = warning;
DROP EXTENSION postgres_fdw CASCADE;
RESET client_min_messages;
DROP TABLE there, spread, parent, child, parted, plain;
DROP SEQUENCE counter;
