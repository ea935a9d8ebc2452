-- Functions, casts and collations that are new in 18, or mean something else there: those that depend on their arguments alone are cached.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '-'
CREATE TABLE v (id int, i int, t text, b bytea, j jsonb, arr int[]);
INSERT INTO v VALUES (1, 258, 'Straße', '\x0102', '{"n": null, "a": [null, 1]}', '{3,1,2}'), (2, -1, 'STRASSE', '\xff', 'null', '{2,NULL}');
-- A new value each time.
SELECT count(uuidv7()), count(uuidv7(interval '1 h')) FROM v;
:status
SELECT count(uuidv4()) FROM v;
:status
SELECT uuid_extract_version(uuidv7()) FROM v WHERE id = 1;
:status
SELECT uuid_extract_version('01980de8-ad3d-715c-b739-faf2bb1a7aad'), uuid_extract_timestamp('01980de8-ad3d-715c-b739-faf2bb1a7aad') AT TIME ZONE 'UTC' FROM v WHERE id = 1;
SELECT uuid_extract_version('01980de8-ad3d-715c-b739-faf2bb1a7aad'), uuid_extract_timestamp('01980de8-ad3d-715c-b739-faf2bb1a7aad') AT TIME ZONE 'UTC' FROM v WHERE id = 1;
:status
-- Bytes, numbers, arrays.
SELECT id, reverse(b), crc32(b), crc32c(b), i::bytea, i::bytea::int, gamma(id + 4), lgamma(id) FROM v ORDER BY id;
SELECT id, reverse(b), crc32(b), crc32c(b), i::bytea, i::bytea::int, gamma(id + 4), lgamma(id) FROM v ORDER BY id;
:status
SELECT array_sort(arr), array_sort(arr, true), array_sort(arr, true, true), array_reverse(arr) FROM v ORDER BY id;
SELECT array_sort(arr), array_sort(arr, true), array_sort(arr, true, true), array_reverse(arr) FROM v ORDER BY id;
:status
SELECT max(b), min(b), max(arr), min(ROW(id, t)::text), max(ROW(i, id))::text FROM v;
SELECT max(b), min(b), max(arr), min(ROW(id, t)::text), max(ROW(i, id))::text FROM v;
:status
SELECT to_number('MMXXVI', 'RN'), to_char(interval '-8 months', 'MM'), extract(week FROM interval '-20 days'), extract(quarter FROM interval '-8 months') FROM v WHERE id = 1;
SELECT to_number('MMXXVI', 'RN'), to_char(interval '-8 months', 'MM'), extract(week FROM interval '-20 days'), extract(quarter FROM interval '-8 months') FROM v WHERE id = 1;
:status
-- An argument that is left out has its default.
SELECT jsonb_strip_nulls(j), jsonb_strip_nulls(j, true), json_strip_nulls(j::json, strip_in_arrays => true), (j -> 'n')::int FROM v ORDER BY id;
SELECT jsonb_strip_nulls(j), jsonb_strip_nulls(j, true), json_strip_nulls(j::json, strip_in_arrays => true), (j -> 'n')::int FROM v ORDER BY id;
:status
SELECT regexp_replace(string => t, pattern => 's+', replacement => 'z', flags => 'gi') FROM v ORDER BY id;
SELECT regexp_replace(string => t, pattern => 's+', replacement => 'z', flags => 'gi') FROM v ORDER BY id;
:status
-- What asks for the state of the server, or changes it.
SELECT count(pg_get_acl('pg_class'::regclass, id, 0)) FROM v;
:status
SELECT count(has_largeobject_privilege(id::oid, 'SELECT')) FROM v;
:status
SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', 'v', 'relpages', 7::integer) FROM v WHERE id = 1;
:status
SELECT pg_clear_attribute_stats('public', 'v', 'id', false) FROM v WHERE id = 1;
:status
-- Collations: what they make of a text is in the question.
CREATE TABLE words (w text COLLATE pg_unicode_fast);
INSERT INTO words SELECT t FROM v;
SELECT upper(w), lower(w), initcap(w), casefold(w), w ~* 'STRASSE' FROM words ORDER BY w;
SELECT upper(w), lower(w), initcap(w), casefold(w), w ~* 'STRASSE' FROM words ORDER BY w;
:status
SELECT count(DISTINCT casefold(w)) FROM words;
SELECT count(DISTINCT casefold(w)) FROM words;
:status
SELECT count(DISTINCT casefold(w COLLATE "C")), upper(min(w) COLLATE "C"), upper(max(w) COLLATE pg_c_utf8) FROM words;
SELECT count(DISTINCT casefold(w COLLATE "C")), upper(min(w) COLLATE "C"), upper(max(w) COLLATE pg_c_utf8) FROM words;
:status
-- Only since 18 do LIKE and searches in texts know collations under which other bytes are equal.
CREATE COLLATION loose_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT w LIKE 'STR%' COLLATE loose_case, strpos(w COLLATE loose_case, 'ASS'), split_part(w COLLATE loose_case, 'R', 1), replace(w COLLATE loose_case, 'str', '-') FROM words ORDER BY w;
SELECT w LIKE 'STR%' COLLATE loose_case, strpos(w COLLATE loose_case, 'ASS'), split_part(w COLLATE loose_case, 'R', 1), replace(w COLLATE loose_case, 'str', '-') FROM words ORDER BY w;
:status
SELECT w LIKE 'STR%' COLLATE "C" FROM words ORDER BY w;
:status
-- Under one name another collation.
DROP COLLATION loose_case;
CREATE COLLATION loose_case (provider = icu, locale = 'und', deterministic = true);
SELECT w LIKE 'STR%' COLLATE loose_case, strpos(w COLLATE loose_case, 'ASS'), split_part(w COLLATE loose_case, 'R', 1), replace(w COLLATE loose_case, 'str', '-') FROM words ORDER BY w;
:status
DROP COLLATION loose_case;
DROP TABLE v, words;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
