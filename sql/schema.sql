-- What must be so before anything is made.
--
-- No name and no operator in these scripts is found through the search_path. IN, BETWEEN, IS DISTINCT FROM and similar constructs find
-- operators through it, so they are not used. Only the body of advise() is otherwise, which has a search_path of its own.

-- The library must have what this script declares. The server keeps the library that it has loaded at its start, though its file has been
-- replaced since. If the library is not preloaded, its functions say so when they are called. A setting that exists only because somebody
-- has set it, without the library, is not in pg_settings.

DO LANGUAGE plpgsql $check$
DECLARE
    needed CONSTANT pg_catalog.text := '0.2.0';
    loaded CONSTANT pg_catalog.text := (
        SELECT s.setting FROM pg_catalog.pg_settings AS s WHERE s.name OPERATOR(pg_catalog.=) 'pg_arrow_cache.version'::pg_catalog.text);
BEGIN
    IF pg_catalog.string_to_array(loaded, '.')::pg_catalog.int4[]
       OPERATOR(pg_catalog.<) pg_catalog.string_to_array(needed, '.')::pg_catalog.int4[] THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = pg_catalog.concat('version ', needed, ' of pg_arrow_cache needs its library in this version or a later one'),
            DETAIL = pg_catalog.concat('The server has loaded version ', loaded, '.'),
            HINT = 'Restart the server: it goes on with the library that it has loaded at its start.';
    END IF;
END
$check$;

-- The schema must belong to this extension alone. A role that owns it, or may create objects in it,
-- could put functions and operators there, now or later, which other users would run without knowing. CREATE EXTENSION makes the schema.
-- A schema that exists already is used only if it is like a new one: DROP EXTENSION leaves one behind, and pg_restore makes one before
-- the extension.

DO LANGUAGE plpgsql $check$
DECLARE
    namespace CONSTANT pg_catalog.oid := '@extschema@'::pg_catalog.regnamespace;
    owner pg_catalog.pg_roles;
    grantee pg_catalog.text;
    problem pg_catalog.text;
BEGIN
    SELECT r.* INTO owner
    FROM pg_catalog.pg_namespace AS n JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) n.nspowner
    WHERE n.oid OPERATOR(pg_catalog.=) namespace;

    SELECT CASE WHEN r.rolname IS NULL THEN 'PUBLIC' ELSE pg_catalog.concat('role "', r.rolname, '"') END INTO grantee
    FROM pg_catalog.pg_namespace AS n
    CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) AS a
    LEFT JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) a.grantee
    WHERE n.oid OPERATOR(pg_catalog.=) namespace AND a.privilege_type OPERATOR(pg_catalog.=) 'CREATE'::pg_catalog.text
        AND a.grantee OPERATOR(pg_catalog.<>) n.nspowner
    LIMIT 1;

    IF NOT owner.rolsuper THEN
        problem := pg_catalog.concat('It is owned by role "', owner.rolname, '", which is no superuser.');
    ELSIF grantee IS NOT NULL THEN
        problem := pg_catalog.concat('Besides its owner, ', grantee, ' may create objects in it.');
    -- The extension itself, which has just been created, depends on the schema, too.
    ELSIF EXISTS (SELECT FROM pg_catalog.pg_depend AS d
                  WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid
                      AND d.refobjid OPERATOR(pg_catalog.=) namespace
                      AND d.classid OPERATOR(pg_catalog.<>) 'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid) THEN
        problem := 'It is not empty.';
    END IF;

    IF problem IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'duplicate_schema',
            MESSAGE = 'schema "arrow_cache" exists and is not safe to install pg_arrow_cache in',
            DETAIL = problem,
            HINT = 'Drop or rename the schema: CREATE EXTENSION makes one of its own.';
    END IF;
END
$check$;
