-- What all other tests of this suite need: the library is preloaded, the settings have their documented defaults,
-- the extension can be installed, dropped and installed again, and a freshly started cache is empty.

SELECT current_setting('shared_preload_libraries') ~ '\mpg_arrow_cache\M' AS preloaded;

SELECT e.extname, n.nspname AS schema, e.extrelocatable AS relocatable, r.rolsuper AS by_superuser
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles r ON r.oid = e.extowner
WHERE e.extname = 'pg_arrow_cache';

-- Settings: names, units, ranges, defaults and who may change them. debug_force_fragments is a developer option.
SELECT name, vartype, unit, boot_val, min_val, max_val, context
FROM pg_settings WHERE name LIKE 'pg\_arrow\_cache.%' ORDER BY name;
SHOW pg_arrow_cache.debug_force_fragments;

-- The prefix is reserved, values are checked, and memory cannot be changed while the server runs.
SET pg_arrow_cache.no_such_setting = 1;
-- PostgreSQL 15 writes the ends of a range without their unit, later versions with it.
DO $$ BEGIN SET pg_arrow_cache.ttl = -1; EXCEPTION WHEN invalid_parameter_value THEN RAISE NOTICE '%', regexp_replace(SQLERRM, '(\d) s( \.\.|\))', '\1\2', 'g'); END $$;
SET pg_arrow_cache.min_runs = 0;
SET pg_arrow_cache.enabled = 'perhaps';
SET pg_arrow_cache.enable_fragments = 'perhaps';
DO $$ BEGIN SET pg_arrow_cache.fragment_min_time = -1; EXCEPTION WHEN invalid_parameter_value THEN RAISE NOTICE '%', regexp_replace(SQLERRM, '([-\d]) ms( \.\.|\))', '\1\2', 'g'); END $$;
SET pg_arrow_cache.memory = '64MB';
SET pg_arrow_cache.max_entries = 5;

-- Only a superuser may change settings that cost others something.
CREATE ROLE regress_cache_plain;
SET ROLE regress_cache_plain;
SET pg_arrow_cache.max_entry_size = '1GB';
SET pg_arrow_cache.debug_force_fragments = on;
SET pg_arrow_cache.ttl = '10min';
SHOW pg_arrow_cache.ttl;
RESET pg_arrow_cache.ttl;
SET pg_arrow_cache.enable_fragments = off;
SET pg_arrow_cache.fragment_min_time = '1s';
SHOW pg_arrow_cache.fragment_min_time;
RESET pg_arrow_cache.enable_fragments;
RESET pg_arrow_cache.fragment_min_time;
RESET ROLE;
DROP ROLE regress_cache_plain;

-- Loading the library once more does nothing.
LOAD 'pg_arrow_cache';

-- Without the SQL objects the cache goes on working; with them back, they show what it did. They live in one schema only.
CREATE TABLE kept (a int);
INSERT INTO kept VALUES (1);
SELECT arrow_cache.reset_stats();
DROP EXTENSION pg_arrow_cache;
SELECT a FROM kept;
SELECT a FROM kept;
SELECT a FROM kept;
SELECT arrow_cache.last_status();
CREATE EXTENSION pg_arrow_cache SCHEMA public;
CREATE EXTENSION pg_arrow_cache;
ALTER EXTENSION pg_arrow_cache SET SCHEMA public;
SELECT hits, misses FROM arrow_cache.stats;
SELECT a FROM kept;
SELECT a FROM kept;
SELECT arrow_cache.last_status(), arrow_cache.last_reason();
DROP TABLE kept;

-- Each test ends with TABLE cache_leftovers: flushed, and with no query running, the cache holds what it held at the start,
-- to the byte. A row is a leak.
SELECT arrow_cache.flush() >= 0 AS flushed;
SELECT entries, bytes_used > 0 AS has_bookkeeping, bytes_used < bytes_total AS has_room, max_entries, bytes_total
FROM arrow_cache.stats;
CREATE TABLE cache_baseline AS SELECT bytes_used FROM arrow_cache.stats;
CREATE VIEW cache_leftovers AS
    SELECT s.entries, s.bytes_used - b.bytes_used AS leaked_bytes
    FROM arrow_cache.stats s CROSS JOIN cache_baseline b
    WHERE s.entries <> 0 OR s.bytes_used <> b.bytes_used;
TABLE cache_leftovers;
