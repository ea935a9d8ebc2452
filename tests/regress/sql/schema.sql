-- A kept copy of the SQL interface: every object of the extension with its arguments, result, properties, privileges and columns.
-- A difference here is a change that users see.
\pset format unaligned
\pset null '-'
-- From 17 on the row types of views, and the arrays of them, are listed too: they say nothing more than the views.
SELECT object FROM (SELECT pg_describe_object(classid, objid, objsubid) AS object FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_arrow_cache') AND deptype = 'e'
    AND NOT EXISTS (SELECT FROM pg_type t JOIN pg_class v ON v.reltype = t.oid WHERE v.relkind = 'v' AND classid = 'pg_type'::regclass AND objid IN (t.oid, t.typarray))) AS objects
ORDER BY object COLLATE "C";

SELECT p.proname AS function, pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result, provolatile AS volatile, proparallel AS parallel,
    proisstrict AS strict, prosecdef AS definer, lanname AS language, coalesce((SELECT string_agg(CASE grantee WHEN 0 THEN 'PUBLIC' WHEN proowner THEN 'owner' ELSE grantee::regrole::text END || '=' || privilege_type, ',' ORDER BY grantee = 0, grantee) FROM aclexplode(coalesce(proacl, acldefault('f', proowner)))), 'none') AS privileges
FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE pronamespace = 'arrow_cache'::regnamespace ORDER BY p.proname COLLATE "C", p.pronargs, pg_get_function_arguments(p.oid) COLLATE "C";

SELECT c.relname AS view, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum) AS columns,
    (SELECT string_agg(CASE grantee WHEN 0 THEN 'PUBLIC' ELSE 'owner' END || '=' || privilege_type, ',' ORDER BY grantee = 0, privilege_type) FROM aclexplode(c.relacl) WHERE grantee = 0) AS privileges,
    obj_description(c.oid) AS comment
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 WHERE relnamespace = 'arrow_cache'::regnamespace AND relkind IN ('v', 'r') GROUP BY c.oid, c.relname, c.relacl ORDER BY c.relname COLLATE "C";

SELECT nspname AS schema, coalesce((SELECT string_agg(CASE grantee WHEN 0 THEN 'PUBLIC' ELSE 'owner' END || '=' || privilege_type, ',' ORDER BY grantee = 0, privilege_type) FROM aclexplode(nspacl)), 'none') AS privileges
FROM pg_namespace WHERE nspname = 'arrow_cache';
