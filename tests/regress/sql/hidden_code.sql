-- Code of users, and reads of the catalog, that a statement calls without naming them. What rests on them is not cached.
\pset format unaligned
\pset tuples_only on
\set status 'SELECT arrow_cache.last_status(), arrow_cache.last_reason()'
SELECT arrow_cache.flush() IS NOT NULL;
CREATE TABLE edge (i int, v text);
INSERT INTO edge SELECT g, 'v' || g FROM generate_series(1, 20) g;

-- to_json and similar functions call a user-defined cast to JSON, which is not visible in the query.
CREATE TYPE edge_enum AS ENUM ('a', 'b');
CREATE SEQUENCE edge_calls;
CREATE FUNCTION edge_to_json(edge_enum) RETURNS json VOLATILE LANGUAGE sql AS $$ SELECT to_json(nextval('edge_calls')) $$;
CREATE CAST (edge_enum AS json) WITH FUNCTION edge_to_json(edge_enum);
CREATE TABLE edge_enums (k text, e edge_enum);
INSERT INTO edge_enums VALUES ('x', 'a');
SELECT to_json(e) FROM edge_enums;
SELECT to_json(e) FROM edge_enums;
:status;
SELECT jsonb_object_agg(k, e) FROM edge_enums;
SELECT jsonb_object_agg(k, e) FROM edge_enums;
:status;
-- The enum alone is cached.
SELECT e FROM edge_enums;
SELECT e FROM edge_enums;
:status;

-- An ordering operator of a user's own may read tables.
CREATE TABLE edge_direction (d int);
INSERT INTO edge_direction VALUES (1);
CREATE FUNCTION edge_cmp(text, text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT d FROM edge_direction) * bttextcmp($1, $2); END $$;
CREATE FUNCTION edge_lt(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) < 0';
CREATE FUNCTION edge_le(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) <= 0';
CREATE FUNCTION edge_eq(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) = 0';
CREATE FUNCTION edge_ge(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) >= 0';
CREATE FUNCTION edge_gt(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT edge_cmp($1, $2) > 0';
CREATE OPERATOR <<< (PROCEDURE = edge_lt, LEFTARG = text, RIGHTARG = text, COMMUTATOR = >>>);
CREATE OPERATOR <<=< (PROCEDURE = edge_le, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR =<>= (PROCEDURE = edge_eq, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR >>=> (PROCEDURE = edge_ge, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR >>> (PROCEDURE = edge_gt, LEFTARG = text, RIGHTARG = text, COMMUTATOR = <<<);
CREATE OPERATOR CLASS edge_ops FOR TYPE text USING btree AS
    OPERATOR 1 <<<, OPERATOR 2 <<=<, OPERATOR 3 =<>=, OPERATOR 4 >>=>, OPERATOR 5 >>>, FUNCTION 1 edge_cmp(text, text);
SELECT v FROM edge WHERE i < 4 ORDER BY v USING <<<;
UPDATE edge_direction SET d = -1;
SELECT v FROM edge WHERE i < 4 ORDER BY v USING <<<;
:status;

-- The text of a regclass depends on temporary tables, which no key holds.
CREATE TABLE edge_names (o oid);
INSERT INTO edge_names VALUES ('edge'::regclass);
SELECT concat(o::regclass) FROM edge_names;
SELECT concat(o::regclass) FROM edge_names;
:status;

DROP TABLE edge, edge_enums, edge_direction, edge_names;
DROP OPERATOR FAMILY edge_ops USING btree CASCADE;
DROP FUNCTION edge_cmp, edge_lt, edge_le, edge_eq, edge_ge, edge_gt CASCADE;
DROP TYPE edge_enum CASCADE;
DROP SEQUENCE edge_calls;

SELECT arrow_cache.flush() IS NOT NULL;
TABLE cache_leftovers;
