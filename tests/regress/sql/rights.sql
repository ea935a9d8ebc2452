-- Who may use each object of the extension, and what an ordinary role gets from each function. A new object is named here, with the reason why
-- PUBLIC may use it, or this test fails.
\pset format unaligned
\pset footer off

-- What PUBLIC may call, and what makes that safe. Nothing else may be left to PUBLIC, and nothing of this may be missing.
CREATE TEMPORARY TABLE for_public (function text, because text);
INSERT INTO for_public VALUES
    ('last_status()', 'own'), ('last_reason()', 'own'), ('advise()', 'views'),
    ('etag(text)', 'checked'), ('etag(text,"any")', 'checked'), ('version(regclass[])', 'checked'), ('why(text)', 'checked'),
    ('schema(text,jsonb)', 'checked'), ('query(text)', 'checked'), ('query(text,"any")', 'checked'), ('"fetch"(text,jsonb)', 'checked'),
    ('messages(text,jsonb)', 'checked'), ('set_policy(regclass,text)', 'owner'), ('policy(regclass)', 'label'),
    ('entries_data()', 'own'), ('relations_data()', 'own'), ('tracked_data()', 'own'), ('statement_counts_data()', 'own'),
    ('stats_data()', 'sums'), ('bypass_reasons_data()', 'sums'), ('zone(tid,integer)', 'arithmetic'),
    ('wait(text,interval,boolean)', 'token'), ('wait(text[],interval,text[])', 'token');
CREATE TEMPORARY VIEW objects AS
SELECT classid, objid FROM pg_depend
WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_arrow_cache');
CREATE TEMPORARY VIEW functions AS
SELECT p.*, replace(p.oid::regprocedure::text, 'arrow_cache.', '') AS function
FROM pg_proc AS p JOIN objects ON classid = 'pg_proc'::regclass AND objid = p.oid;
SELECT CASE WHEN f.oid IS NULL THEN 'is not for PUBLIC' ELSE 'is for PUBLIC' END AS unexpected, coalesce(f.function, p.function) AS function
FROM (SELECT * FROM functions WHERE has_function_privilege('public', oid, 'EXECUTE')) AS f FULL JOIN for_public AS p ON f.function = p.function
WHERE f.oid IS NULL OR p.function IS NULL;
-- Those that are not.
SELECT function FROM functions WHERE NOT has_function_privilege('public', oid, 'EXECUTE') ORDER BY function;

-- All functions run as who calls them. Those in C find no object by its name, so none of them needs a search_path of its own; the one in SQL has
-- one. No object is of another kind than function and view.
SELECT function, prosecdef, proconfig, lanname FROM functions JOIN pg_language AS l ON l.oid = prolang
WHERE prosecdef OR proconfig IS NOT NULL OR lanname <> 'c' OR pronamespace <> 'arrow_cache'::regnamespace;
SELECT relname, relkind, relacl FROM pg_class JOIN objects ON classid = 'pg_class'::regclass AND objid = oid
WHERE relkind <> 'v' OR relnamespace <> 'arrow_cache'::regnamespace
    OR EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee <> relowner AND (grantee <> 0 OR privilege_type <> 'SELECT'));
-- (From 17 on the row types of views belong to the extension, too.)
SELECT DISTINCT classid::regclass FROM objects WHERE classid NOT IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass);
SELECT privilege_type FROM pg_namespace, aclexplode(nspacl) WHERE nspname = 'arrow_cache' AND grantee <> nspowner ORDER BY 1;

-- Each function, called by a role that owns nothing and may read nothing, while another role has results.
CREATE TABLE secret (id int, hidden text);
INSERT INTO secret VALUES (1, 'private');
CREATE ROLE regress_cache_nobody;
SELECT hidden FROM secret;
CREATE TEMPORARY TABLE calls (function text, call text);
INSERT INTO calls VALUES
    ('"check"()', 'check()'), ('flush()', 'flush()'), ('invalidate(regclass)', $$invalidate('secret')$$), ('reset_stats()', 'reset_stats()'),
    ('invalidate_on_change()', 'invalidate_on_change()'), ('set_policy(regclass,text)', $$set_policy('secret', 'never')$$),
    ('policy(regclass)', $$policy('secret')$$), ('last_status()', 'last_status()'), ('last_reason()', 'last_reason()'),
    ('etag(text)', $$etag('SELECT hidden FROM secret')$$), ('etag(text,"any")', $$etag('SELECT hidden FROM secret WHERE id = $1', 1)$$),
    ('version(regclass[])', $$version('secret')$$), ('why(text)', $$why('SELECT hidden FROM secret')$$),
    ('schema(text,jsonb)', $$schema('SELECT hidden FROM secret')$$), ('query(text)', $$query('SELECT hidden FROM secret')$$),
    ('query(text,"any")', $$query('SELECT hidden FROM secret WHERE id = $1', 1)$$), ('"fetch"(text,jsonb)', $$fetch('SELECT hidden FROM secret')$$),
    ('messages(text,jsonb)', $$messages('SELECT hidden FROM secret')$$),
    ('advise()', 'advise()'), ('entries_data()', 'entries_data()'), ('relations_data()', 'relations_data()'),
    ('tracked_data()', 'tracked_data()'), ('statement_counts_data()', 'statement_counts_data()'),
    ('stats_data()', 'stats_data()'), ('bypass_reasons_data()', 'bypass_reasons_data()'), ('zone(tid,integer)', $$zone('(9,1)', 2)$$),
    ('wait(text,interval,boolean)', $$wait('none'::text, '0')$$), ('wait(text[],interval,text[])', $$wait('{}'::text[], '0')$$);
SELECT coalesce(f.function, c.function) AS not_called FROM functions AS f FULL JOIN calls AS c USING (function) WHERE f.oid IS NULL OR c.call IS NULL;
CREATE TEMPORARY TABLE outcomes (function text, outcome text);
GRANT SELECT ON calls TO regress_cache_nobody;
GRANT INSERT ON outcomes TO regress_cache_nobody;
SET ROLE regress_cache_nobody;
DO $$
DECLARE
    c record;
    found bigint;
    message text;
    detail text;
BEGIN
    FOR c IN SELECT * FROM calls LOOP
        BEGIN
            EXECUTE 'SELECT count(called) FROM (SELECT arrow_cache.' || c.call || ' OFFSET 0) AS called' INTO found;
            -- How many reasons were met is nothing about anybody, nor is what the sums ask for.
            INSERT INTO outcomes VALUES (c.function, CASE WHEN c.function IN ('advise()', 'bypass_reasons_data()') THEN 'rows' ELSE found || ' rows' END);
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
            INSERT INTO outcomes VALUES (c.function, rtrim(concat_ws(' ', SQLSTATE, message, detail)));
        END;
    END LOOP;
END
$$;
RESET ROLE;
SELECT * FROM outcomes ORDER BY function COLLATE "C";
-- Nothing of it has changed anything.
SELECT count(*) AS results FROM arrow_cache.entries WHERE query ILIKE '%hidden%' AND valid;
DROP TABLE secret;
DROP OWNED BY regress_cache_nobody;
DROP ROLE regress_cache_nobody;
