-- Row level security: the query is checked and hashed with its policies in it, and the role and what the policies
-- read of the session are in the key. So everyone gets the rows that are theirs at that moment, or the statement is bypassed.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
CREATE ROLE regress_cache_alice;
CREATE ROLE regress_cache_bob;
CREATE ROLE regress_cache_auditor BYPASSRLS;
CREATE TABLE account (owner text, tenant int, amount int);
INSERT INTO account VALUES ('regress_cache_alice', 1, 10), ('regress_cache_bob', 2, 20), ('regress_cache_bob', 2, 200);
CREATE TABLE plain (a text);
INSERT INTO plain VALUES ('everyone');
GRANT SELECT ON account, plain TO regress_cache_alice, regress_cache_bob, regress_cache_auditor;
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
SELECT amount FROM account ORDER BY 1;
:status
RESET ROLE;

-- Switched on: what was stored before is not served any more.
ALTER TABLE account ENABLE ROW LEVEL SECURITY;
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
RESET ROLE;
CREATE POLICY own ON account USING (owner = CURRENT_USER);
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
:status
SELECT amount FROM account ORDER BY 1;
:status
SELECT count(*) FROM account;
:status
SELECT a, amount FROM plain, account ORDER BY 2;
:status
SELECT a FROM plain WHERE EXISTS (SELECT FROM account WHERE amount > 100);
:status
SELECT a FROM plain;
SELECT a FROM plain;
:status
SET ROLE regress_cache_bob;
SELECT amount FROM account ORDER BY 1;
:status
SELECT amount FROM account WHERE owner = 'regress_cache_alice';
SELECT a FROM plain WHERE EXISTS (SELECT FROM account WHERE amount > 100);
-- The owner, and who bypasses row security, see all.
RESET ROLE;
SELECT amount FROM account ORDER BY 1;
SELECT amount FROM account ORDER BY 1;
:status
SET ROLE regress_cache_auditor;
SELECT amount FROM account ORDER BY 1;
SELECT amount FROM account ORDER BY 1;
:status
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
RESET ROLE;
ALTER ROLE regress_cache_auditor NOBYPASSRLS;
SET ROLE regress_cache_auditor;
SELECT amount FROM account ORDER BY 1;
:status
RESET ROLE;
ALTER ROLE regress_cache_auditor BYPASSRLS;
SET ROLE regress_cache_auditor;
SELECT amount FROM account ORDER BY 1;
-- With row_security off PostgreSQL refuses the query, also if an answer is stored.
SET row_security = off;
SELECT amount FROM account ORDER BY 1;
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
RESET row_security;
SELECT amount FROM account ORDER BY 1;
RESET ROLE;
-- Forced on the owner; a superuser still passes.
ALTER TABLE account OWNER TO regress_cache_bob;
ALTER TABLE account FORCE ROW LEVEL SECURITY;
SET ROLE regress_cache_bob;
SELECT amount FROM account ORDER BY 1;
:status
RESET ROLE;
ALTER TABLE account NO FORCE ROW LEVEL SECURITY;
SET ROLE regress_cache_bob;
SELECT amount FROM account ORDER BY 1;
RESET ROLE;
-- A policy over a session's own setting.
DROP POLICY own ON account;
CREATE POLICY tenant ON account USING (tenant = current_setting('regress_cache.tenant', true)::int);
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
SET regress_cache.tenant = '1';
SELECT amount FROM account ORDER BY 1;
SET regress_cache.tenant = '2';
SELECT amount FROM account ORDER BY 1;
BEGIN;
SET LOCAL regress_cache.tenant = '1';
SELECT amount FROM account ORDER BY 1;
ROLLBACK;
SELECT amount FROM account ORDER BY 1;
PREPARE mine AS SELECT amount FROM account ORDER BY 1;
EXECUTE mine;
SET regress_cache.tenant = '1';
EXECUTE mine;
:status
DEALLOCATE mine;
-- A policy is checked like any other condition: each of these reads something that is not in the key. The name of a setting
-- may come from a table, and the server's own settings may show the state of more than themselves.
RESET ROLE;
CREATE FUNCTION allowed(int) RETURNS bool LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1 < 2; END';
ALTER POLICY tenant ON account USING (allowed(tenant));
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
:status
RESET ROLE;
ALTER POLICY tenant ON account USING (now()::text <> '' AND tenant = 1);
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
:status
RESET ROLE;
ALTER POLICY tenant ON account USING (current_setting('regress_cache.' || owner, true) IS NULL);
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
:status
RESET ROLE;
ALTER POLICY tenant ON account USING (current_setting('work_mem') IS NULL OR tenant = 1);
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
:status
RESET ROLE;
ALTER POLICY tenant ON account USING (pg_has_role(owner::name, 'MEMBER'));
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
:status
RESET ROLE;
ALTER POLICY tenant ON account USING (starts_with(current_setting('work_mem'), 'no such') OR owner = CURRENT_ROLE::text);
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
:status
-- Still eligible: the name of the role, compared in another type.
RESET ROLE;
ALTER POLICY tenant ON account USING (owner = CURRENT_ROLE::text);
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
SELECT amount FROM account ORDER BY 1;
:status
-- Through views: the policy of the view's owner or of the caller.
RESET ROLE;
DROP POLICY tenant ON account;
DROP FUNCTION allowed;
CREATE POLICY own ON account USING (owner = CURRENT_USER);
CREATE VIEW shown AS SELECT amount FROM account;
CREATE VIEW shown_invoker WITH (security_invoker) AS SELECT amount FROM account;
GRANT SELECT ON shown, shown_invoker TO regress_cache_alice, regress_cache_bob;
SELECT amount FROM shown ORDER BY 1;
SET ROLE regress_cache_alice;
SELECT amount FROM shown ORDER BY 1;
SELECT amount FROM shown_invoker ORDER BY 1;
:status
RESET ROLE;
-- Switched off: everyone sees everything.
ALTER TABLE account DISABLE ROW LEVEL SECURITY;
SET ROLE regress_cache_alice;
SELECT amount FROM account ORDER BY 1;
SELECT amount FROM account ORDER BY 1;
:status
SELECT amount FROM shown_invoker ORDER BY 1;
RESET ROLE;

DROP VIEW shown, shown_invoker;
DROP TABLE account, plain;
DROP ROLE regress_cache_alice, regress_cache_bob, regress_cache_auditor;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
