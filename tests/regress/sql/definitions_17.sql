-- Definitions and rights that 17 can change: expressions of generated columns, access methods of partitioned tables, exclusion constraints and identity columns of
-- partitioned tables, the right to maintain, options of memberships, collations of the server's own provider and with rules of their own, NOT NULL as the planner sees it, attributes of operators.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
-- An expression.
CREATE TABLE computed (a int, b int GENERATED ALWAYS AS (a * 2) STORED);
INSERT INTO computed VALUES (1);
SELECT b FROM computed;
SELECT b FROM computed;
:status
ALTER TABLE computed ALTER COLUMN b SET EXPRESSION AS (a * 3);
SELECT b FROM computed;
:status
-- A partitioned table.
CREATE TABLE parts (id int GENERATED ALWAYS AS IDENTITY, g int, v int, EXCLUDE USING btree (g WITH =, v WITH =)) PARTITION BY LIST (g);
CREATE TABLE part PARTITION OF parts FOR VALUES IN (1);
INSERT INTO parts (g, v) VALUES (1, 1);
SELECT id, v FROM parts ORDER BY id;
INSERT INTO parts (g, v) VALUES (1, 1);
INSERT INTO part (g, v) VALUES (1, 2);
SELECT id, v FROM parts ORDER BY id;
:status
ALTER TABLE parts SET ACCESS METHOD heap;
SELECT id, v FROM parts ORDER BY id;
SELECT id, v FROM parts ORDER BY id;
:status
-- The right to maintain shows nothing, and what it is used for is seen.
CREATE ROLE regress_cache_keeper;
CREATE MATERIALIZED VIEW kept AS SELECT a FROM computed;
CREATE UNIQUE INDEX ON kept (a);
GRANT MAINTAIN ON kept, computed TO regress_cache_keeper;
SELECT a FROM kept;
SELECT a FROM kept;
:status
INSERT INTO computed VALUES (2);
SELECT a FROM kept;
:status
SET ROLE regress_cache_keeper;
SELECT a FROM kept;
REFRESH MATERIALIZED VIEW kept;
RESET ROLE;
SELECT a FROM kept ORDER BY a;
SELECT a FROM kept;
:status
DELETE FROM computed WHERE a = 1;
SET ROLE regress_cache_keeper;
REFRESH MATERIALIZED VIEW CONCURRENTLY kept;
RESET ROLE;
SELECT a FROM kept;
:status
SELECT a FROM computed;
GRANT SELECT ON computed TO regress_cache_keeper;
SET ROLE regress_cache_keeper;
VACUUM computed;
ANALYZE computed;
SELECT a FROM computed;
SELECT a FROM computed;
:status
REINDEX TABLE kept;
VACUUM FULL computed;
SELECT a FROM computed;
RESET ROLE;
REVOKE SELECT ON computed FROM regress_cache_keeper;
SET ROLE regress_cache_keeper;
SELECT a FROM computed;
RESET ROLE;
GRANT pg_maintain TO regress_cache_keeper;
SET ROLE regress_cache_keeper;
SELECT a FROM computed;
RESET ROLE;
-- Each membership says by itself whether its rights are inherited, and whether the member may become the role, which shows nothing (16).
CREATE ROLE regress_cache_group;
CREATE ROLE regress_cache_member;
GRANT SELECT ON computed TO regress_cache_group;
GRANT regress_cache_group TO regress_cache_member WITH INHERIT TRUE, SET FALSE;
SET ROLE regress_cache_member;
SELECT a FROM computed;
SELECT a FROM computed;
:status
RESET ROLE;
GRANT regress_cache_group TO regress_cache_member WITH INHERIT FALSE;
SET ROLE regress_cache_member;
SELECT a FROM computed;
RESET ROLE;
-- A role that has its rights again finds its answers.
GRANT regress_cache_group TO regress_cache_member WITH INHERIT TRUE;
SET ROLE regress_cache_member;
SELECT a FROM computed;
:status
RESET ROLE;
-- Collations of the server's own provider. The same name may stand for another one later.
CREATE TABLE words (w text);
INSERT INTO words VALUES ('ä'), ('Z'), ('a');
SELECT upper(w COLLATE pg_c_utf8) FROM words ORDER BY w COLLATE pg_c_utf8;
SELECT upper(w COLLATE pg_c_utf8) FROM words ORDER BY w COLLATE pg_c_utf8;
:status
CREATE COLLATION mine (PROVIDER = builtin, LOCALE = 'C.UTF-8');
SELECT upper(w COLLATE mine) FROM words ORDER BY 1;
SELECT upper(w COLLATE mine) FROM words ORDER BY 1;
:status
DROP COLLATION mine;
CREATE COLLATION mine (PROVIDER = builtin, LOCALE = 'C');
SELECT upper(w COLLATE mine) FROM words ORDER BY 1;
:status
DROP COLLATION mine;
CREATE COLLATION mine (PROVIDER = icu, LOCALE = 'und', RULES = '&z < a');
SELECT w FROM words ORDER BY w COLLATE mine;
SELECT w FROM words ORDER BY w COLLATE mine;
:status
DROP COLLATION mine;
CREATE COLLATION mine (PROVIDER = icu, LOCALE = 'und');
SELECT w FROM words ORDER BY w COLLATE mine;
:status
-- A conjunct that the planner leaves out because of NOT NULL.
ALTER TABLE words ALTER COLUMN w SET NOT NULL;
SELECT count(*) FROM words WHERE w IS NULL;
SELECT count(*) FROM words WHERE w IS NULL;
:status
ALTER TABLE words ALTER COLUMN w DROP NOT NULL;
INSERT INTO words VALUES (NULL);
SELECT count(*) FROM words WHERE w IS NULL;
:status
-- Values of xid have no order. A superuser may give them one, and say that joins may use it.
CREATE TABLE ids (x xid);
INSERT INTO ids VALUES ('1'), ('2');
SELECT count(*) FROM ids JOIN ids other USING (x);
SELECT count(*) FROM ids JOIN ids other USING (x);
:status
CREATE FUNCTION id_less(xid, xid) RETURNS bool LANGUAGE sql RETURN $1::text < $2::text;
CREATE FUNCTION id_order(xid, xid) RETURNS int LANGUAGE sql RETURN CASE WHEN $1 = $2 THEN 0 WHEN $1::text < $2::text THEN -1 ELSE 1 END;
CREATE OPERATOR <<< (FUNCTION = id_less, LEFTARG = xid, RIGHTARG = xid);
CREATE OPERATOR CLASS id_order FOR TYPE xid USING btree AS OPERATOR 1 <<<, OPERATOR 3 =, FUNCTION 1 id_order(xid, xid);
ALTER OPERATOR = (xid, xid) SET (MERGES);
SELECT count(*) FROM ids JOIN ids other USING (x);
:status
DROP OPERATOR FAMILY id_order USING btree;
SELECT count(*) FROM ids JOIN ids other USING (x);
SELECT count(*) FROM ids JOIN ids other USING (x);
:status
DROP OPERATOR <<< (xid, xid);
DROP FUNCTION id_less, id_order;
DROP TABLE ids;
DROP MATERIALIZED VIEW kept;
DROP TABLE words, computed, parts;
DROP COLLATION mine;
DROP ROLE regress_cache_keeper, regress_cache_group, regress_cache_member;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
