-- A result is served only to roles that may read it now: PostgreSQL checks this on every hit, and the role is part of the key.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset footer off
\pset format unaligned
CREATE ROLE regress_cache_owner;
CREATE ROLE regress_cache_reader;
CREATE ROLE regress_cache_outsider;
CREATE ROLE regress_cache_group;
GRANT CREATE, USAGE ON SCHEMA public TO regress_cache_owner;
SET ROLE regress_cache_owner;
CREATE TABLE secret (id int, open text, hidden text);
INSERT INTO secret VALUES (1, 'public', 'private');
GRANT SELECT ON secret TO regress_cache_reader;
SELECT open, hidden FROM secret;
SELECT open, hidden FROM secret;
:status

-- Each role has entries of its own; one without the privilege gets the error, not the answer.
SET ROLE regress_cache_reader;
SELECT open, hidden FROM secret;
:status
SELECT open, hidden FROM secret;
:status
SET ROLE regress_cache_outsider;
SELECT open, hidden FROM secret;
:status
EXPLAIN SELECT open, hidden FROM secret;
RESET ROLE;
SET SESSION AUTHORIZATION regress_cache_outsider;
SELECT open, hidden FROM secret;
RESET SESSION AUTHORIZATION;

-- Revoked: the next execution fails, plain or prepared, cached or not; granted again: it is served or executed again.
SET ROLE regress_cache_reader;
PREPARE held AS SELECT open, hidden FROM secret;
EXECUTE held;
EXECUTE held;
:status
SET ROLE regress_cache_owner;
REVOKE SELECT ON secret FROM regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT open, hidden FROM secret;
EXECUTE held;
-- The change of privileges is DDL: it may only be seen at once, so the same within one transaction, and undone with it.
SET ROLE regress_cache_owner;
GRANT SELECT ON secret TO regress_cache_reader;
SET ROLE regress_cache_reader;
EXECUTE held;
EXECUTE held;
:status
RESET ROLE;
BEGIN;
REVOKE SELECT ON secret FROM regress_cache_reader;
SET LOCAL ROLE regress_cache_reader;
EXECUTE held;
ROLLBACK;
SET ROLE regress_cache_reader;
EXECUTE held;
:status
EXECUTE held;
:status
DEALLOCATE held;
RESET ROLE;
-- A user created again under the same name is another user.
CREATE ROLE regress_cache_again;
GRANT SELECT ON secret TO regress_cache_again;
SET ROLE regress_cache_again;
SELECT open FROM secret;
RESET ROLE;
DROP OWNED BY regress_cache_again;
DROP ROLE regress_cache_again;
CREATE ROLE regress_cache_again;
SET ROLE regress_cache_again;
SELECT open FROM secret;
RESET ROLE;
DROP ROLE regress_cache_again;

-- Column privileges.
REVOKE SELECT ON secret FROM regress_cache_reader;
GRANT SELECT (id, open) ON secret TO regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT open FROM secret;
SELECT open FROM secret;
:status
SELECT open, hidden FROM secret;
SELECT count(*) FROM secret WHERE hidden = 'private';
RESET ROLE;
REVOKE SELECT (open) ON secret FROM regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT open FROM secret;
SELECT id FROM secret;
RESET ROLE;
-- Schema privileges, membership in a role, functions.
GRANT SELECT ON secret TO regress_cache_group;
GRANT regress_cache_group TO regress_cache_outsider;
SET ROLE regress_cache_outsider;
SELECT hidden FROM secret;
SELECT hidden FROM secret;
:status
RESET ROLE;
REVOKE regress_cache_group FROM regress_cache_outsider;
SET ROLE regress_cache_outsider;
SELECT hidden FROM secret;
RESET ROLE;
CREATE SCHEMA closed AUTHORIZATION regress_cache_owner;
GRANT USAGE ON SCHEMA closed TO regress_cache_reader;
CREATE TABLE closed.secret AS SELECT 'inside'::text AS open;
GRANT SELECT ON closed.secret TO regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT open FROM closed.secret;
SELECT open FROM closed.secret;
:status
RESET ROLE;
REVOKE USAGE ON SCHEMA closed FROM regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT open FROM closed.secret;
RESET ROLE;
GRANT SELECT ON secret TO regress_cache_reader;
GRANT EXECUTE ON FUNCTION pg_catalog.upper(text) TO regress_cache_owner;
REVOKE EXECUTE ON FUNCTION pg_catalog.upper(text) FROM PUBLIC;
SET ROLE regress_cache_reader;
SELECT upper(open) FROM secret;
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_catalog.upper(text) TO PUBLIC;
SET ROLE regress_cache_reader;
SELECT upper(open) FROM secret;
SELECT upper(open) FROM secret;
:status
RESET ROLE;
REVOKE EXECUTE ON FUNCTION pg_catalog.upper(text) FROM PUBLIC;
SET ROLE regress_cache_reader;
SELECT upper(open) FROM secret;
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_catalog.upper(text) TO PUBLIC;

-- Views: read with their owner's rights, with security_invoker with the caller's, also when served.
SET ROLE regress_cache_owner;
CREATE VIEW by_owner AS SELECT open FROM secret;
CREATE VIEW by_invoker WITH (security_invoker) AS SELECT open FROM secret;
CREATE VIEW behind_barrier WITH (security_barrier) AS SELECT open FROM secret WHERE id = 1;
GRANT SELECT ON by_owner, by_invoker, behind_barrier TO regress_cache_outsider;
SELECT open FROM by_invoker;
SET ROLE regress_cache_outsider;
SELECT open FROM by_owner;
SELECT open FROM by_owner;
:status
SELECT open FROM by_invoker;
SELECT open FROM by_invoker;
SELECT open FROM behind_barrier;
SELECT open FROM behind_barrier;
:status
RESET ROLE;
REVOKE SELECT ON secret FROM regress_cache_owner;
SET ROLE regress_cache_outsider;
SELECT open FROM by_owner;
RESET ROLE;
GRANT SELECT ON secret TO regress_cache_owner;
REVOKE SELECT ON by_owner FROM regress_cache_outsider;
SET ROLE regress_cache_outsider;
SELECT open FROM by_owner;
RESET ROLE;

-- A SECURITY DEFINER function reads as its owner; what it reads is not cached for its caller.
CREATE FUNCTION as_owner() RETURNS text SECURITY DEFINER LANGUAGE sql AS 'SELECT hidden FROM secret';
SET ROLE regress_cache_outsider;
SELECT as_owner();
SELECT hidden FROM secret;
RESET ROLE;

-- Everyone may read the views; of other users' results nothing; pg_read_all_stats shows all.
SELECT arrow_cache.flush() >= 0 AS flushed;
SELECT open FROM secret;
SET ROLE regress_cache_reader;
SELECT id FROM secret;
SELECT query, row_count, relations FROM arrow_cache.entries ORDER BY query;
SELECT relation, entries FROM arrow_cache.relations;
SELECT entries FROM arrow_cache.stats;
SELECT count(*) > 0 AS reasons FROM arrow_cache.bypass_reasons;
RESET ROLE;
SELECT query FROM arrow_cache.entries ORDER BY query;
GRANT pg_read_all_stats TO regress_cache_reader;
SET ROLE regress_cache_reader;
SELECT query FROM arrow_cache.entries ORDER BY query;
RESET ROLE;
-- Functions that change the cache need a grant.
SET ROLE regress_cache_outsider;
SELECT arrow_cache.flush();
SELECT arrow_cache.invalidate('secret');
SELECT arrow_cache.reset_stats();
SELECT arrow_cache.last_status() IS NOT NULL AS answers, arrow_cache.last_reason() AS reason;
SELECT arrow_cache.query('SELECT open FROM secret');
SELECT length(arrow_cache.query('SELECT 1 AS one')) > 0 AS exported;
RESET ROLE;
GRANT EXECUTE ON FUNCTION arrow_cache.flush() TO regress_cache_outsider;
SET ROLE regress_cache_outsider;
SELECT arrow_cache.flush() >= 2 AS flushed;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION arrow_cache.flush() FROM regress_cache_outsider;

DROP FUNCTION as_owner;
DROP SCHEMA closed CASCADE;
DROP OWNED BY regress_cache_owner, regress_cache_reader, regress_cache_outsider, regress_cache_group;
DROP ROLE regress_cache_owner, regress_cache_reader, regress_cache_outsider, regress_cache_group;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
