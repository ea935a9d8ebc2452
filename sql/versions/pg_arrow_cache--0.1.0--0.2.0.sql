-- From 0.1.0 to 0.2.0: all functions name the symbols of the library that have the version in their names, the views stats and entries get columns, and
-- the view statements is new.
-- Who may call them stays as it is; so do views and triggers that use them.
--
-- No name and no operator in these scripts is found through the search_path. IN, BETWEEN, IS DISTINCT FROM and similar constructs find
-- operators through it, so they are not used.

-- The library must have what this script declares. The server keeps the library that it has loaded at its start, though its file has been
-- replaced since. If the library is not preloaded, its functions say so when they are called. A setting that exists only because somebody
-- has set it, without the library, is not in pg_settings.

DO LANGUAGE plpgsql $check$
DECLARE
    needed CONSTANT pg_catalog.text := '0.2.0';
    preloaded CONSTANT pg_catalog.bool := EXISTS (
        SELECT FROM pg_catalog.pg_settings AS s WHERE s.name OPERATOR(pg_catalog.=) 'pg_arrow_cache.memory'::pg_catalog.text);
    loaded CONSTANT pg_catalog.text := (
        SELECT s.setting FROM pg_catalog.pg_settings AS s WHERE s.name OPERATOR(pg_catalog.=) 'pg_arrow_cache.version'::pg_catalog.text);
BEGIN
    IF preloaded AND (loaded IS NULL OR pg_catalog.string_to_array(loaded, '.')::pg_catalog.int4[]
                      OPERATOR(pg_catalog.<) pg_catalog.string_to_array(needed, '.')::pg_catalog.int4[]) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = pg_catalog.concat('version ', needed, ' of pg_arrow_cache needs its library in this version or a later one'),
            DETAIL = pg_catalog.concat('The server has loaded ', COALESCE('version ' OPERATOR(pg_catalog.||) loaded, 'an earlier version'), '.'),
            HINT = 'Restart the server: it goes on with the library that it has loaded at its start.';
    END IF;
END
$check$;

-- Four functions are not for PUBLIC. If one of them has been renamed, moved to another schema or dropped, this script makes it anew, and
-- PUBLIC may call a new function. So it is made here, without that right. One that is there keeps the rights that it has.

DO LANGUAGE plpgsql $missing$
BEGIN
    IF pg_catalog.to_regprocedure('@extschema@.flush()') IS NULL THEN
        CREATE FUNCTION @extschema@.flush() RETURNS pg_catalog.int8 LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_flush_0_2';
        REVOKE ALL ON FUNCTION @extschema@.flush() FROM PUBLIC;
    END IF;
    IF pg_catalog.to_regprocedure('@extschema@.invalidate(pg_catalog.regclass)') IS NULL THEN
        CREATE FUNCTION @extschema@.invalidate(relation pg_catalog.regclass) RETURNS pg_catalog.int8
            LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_invalidate_0_2';
        REVOKE ALL ON FUNCTION @extschema@.invalidate(pg_catalog.regclass) FROM PUBLIC;
    END IF;
    IF pg_catalog.to_regprocedure('@extschema@.invalidate_on_change()') IS NULL THEN
        CREATE FUNCTION @extschema@.invalidate_on_change() RETURNS pg_catalog.trigger
            LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_invalidate_on_change_0_2';
        REVOKE ALL ON FUNCTION @extschema@.invalidate_on_change() FROM PUBLIC;
    END IF;
    IF pg_catalog.to_regprocedure('@extschema@.reset_stats()') IS NULL THEN
        CREATE FUNCTION @extschema@.reset_stats() RETURNS pg_catalog.void LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_reset_stats_0_2';
        REVOKE ALL ON FUNCTION @extschema@.reset_stats() FROM PUBLIC;
    END IF;
END
$missing$;

-- src/functions/admin.rs

CREATE OR REPLACE FUNCTION @extschema@.flush() RETURNS pg_catalog.int8 STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_flush_0_2';
CREATE OR REPLACE FUNCTION @extschema@.invalidate(relation pg_catalog.regclass) RETURNS pg_catalog.int8 STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_invalidate_0_2';
CREATE OR REPLACE FUNCTION @extschema@.reset_stats() RETURNS pg_catalog.void STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_reset_stats_0_2';

-- src/functions/change_trigger.rs

CREATE OR REPLACE FUNCTION @extschema@.invalidate_on_change() RETURNS pg_catalog.trigger VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_invalidate_on_change_0_2';

-- src/functions/check.rs: a new function that is not for PUBLIC

CREATE FUNCTION @extschema@.check() RETURNS TABLE (part pg_catalog.text, finding pg_catalog.text, detail pg_catalog.text)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_check_0_2';
REVOKE ALL ON FUNCTION @extschema@.check() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.check() TO pg_monitor;

-- src/functions/last_status.rs

CREATE OR REPLACE FUNCTION @extschema@.last_status() RETURNS pg_catalog.text STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_last_status_0_2';
CREATE OR REPLACE FUNCTION @extschema@.last_reason() RETURNS pg_catalog.text STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_last_reason_0_2';

-- src/functions/set_policy.rs

CREATE OR REPLACE FUNCTION @extschema@.set_policy(relation pg_catalog.regclass, policy pg_catalog.text) RETURNS pg_catalog.void
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_set_policy_0_2';
CREATE OR REPLACE FUNCTION @extschema@.policy(relation pg_catalog.regclass) RETURNS pg_catalog.text STRICT STABLE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_policy_0_2';

-- src/export/

CREATE OR REPLACE FUNCTION @extschema@.query(query pg_catalog.text) RETURNS pg_catalog.bytea VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_query_0_2';
CREATE OR REPLACE FUNCTION @extschema@.query(query pg_catalog.text, VARIADIC params pg_catalog."any") RETURNS pg_catalog.bytea
    VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_query_0_2';
CREATE OR REPLACE FUNCTION @extschema@.fetch(query pg_catalog.text, options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb)
    RETURNS SETOF pg_catalog.bytea STRICT VOLATILE PARALLEL UNSAFE ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_fetch_0_2';
CREATE OR REPLACE FUNCTION @extschema@.messages(query pg_catalog.text, options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb)
    RETURNS TABLE (seq pg_catalog.int4, header pg_catalog.bool, n_rows pg_catalog.int8, ipc pg_catalog.bytea)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_messages_0_2';
CREATE OR REPLACE FUNCTION @extschema@.schema(query pg_catalog.text, options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb)
    RETURNS TABLE (ord pg_catalog.int4, name pg_catalog.text, pg_type pg_catalog.regtype, arrow_type pg_catalog.text,
                   zero_copy pg_catalog.bool, note pg_catalog.text)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 20
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_schema_0_2';

-- src/functions/why.rs

CREATE OR REPLACE FUNCTION @extschema@.why(query pg_catalog.text)
    RETURNS TABLE (cacheable pg_catalog.bool, reason pg_catalog.text, detail pg_catalog.text)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_why_0_2';

-- src/functions/change_token.rs

CREATE FUNCTION @extschema@.etag(query pg_catalog.text) RETURNS pg_catalog.text VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_etag_0_2';
CREATE FUNCTION @extschema@.etag(query pg_catalog.text, VARIADIC params pg_catalog."any") RETURNS pg_catalog.text
    VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_etag_0_2';
CREATE FUNCTION @extschema@.version(VARIADIC relations pg_catalog.regclass[]) RETURNS pg_catalog.text
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_version_0_2';

-- src/functions/stats.rs, fragment_stats.rs, wait_stats.rs, standby_stats.rs and statement_stats.rs, for the views

CREATE OR REPLACE FUNCTION @extschema@.stats_data()
    RETURNS TABLE (hits pg_catalog.int8, misses pg_catalog.int8, stale pg_catalog.int8, bypasses pg_catalog.int8, stores pg_catalog.int8,
                   evictions pg_catalog.int8, expirations pg_catalog.int8, invalidations pg_catalog.int8,
                   verify_checks pg_catalog.int8, verify_mismatches pg_catalog.int8, entries pg_catalog.int4,
                   max_entries pg_catalog.int4, bytes_used pg_catalog.int8, bytes_total pg_catalog.int8, hit_ratio pg_catalog.float8,
                   time_saved_ms pg_catalog.float8, stats_reset pg_catalog.timestamptz)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_stats_data_0_2';
CREATE FUNCTION @extschema@.statements_data()
    RETURNS TABLE (other_statements pg_catalog.int8, nested_statements pg_catalog.int8)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_statements_data_0_2';
CREATE FUNCTION @extschema@.fragments_data()
    RETURNS TABLE (fragments_stored pg_catalog.int8, fragments_served pg_catalog.int8, fragments_computed pg_catalog.int8,
                   fragment_runs pg_catalog.int8, fragment_time_saved_ms pg_catalog.float8, fragment_bytes pg_catalog.int8)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_fragments_data_0_2';
CREATE FUNCTION @extschema@.waits_data()
    RETURNS TABLE (waits pg_catalog.int8, waits_answered pg_catalog.int8, waits_taken_over pg_catalog.int8, waits_timed_out pg_catalog.int8,
                   waits_given_up pg_catalog.int8, waits_stopped pg_catalog.int8, wait_time_ms pg_catalog.float8,
                   claims_held pg_catalog.int8, stale_hits pg_catalog.int8)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_waits_data_0_2';
CREATE FUNCTION @extschema@.standby_state() RETURNS pg_catalog.text
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_standby_state_0_2';
CREATE FUNCTION @extschema@.statement_counts_data()
    RETURNS TABLE (userid pg_catalog.oid, dbid pg_catalog.oid, queryid pg_catalog.int8, hits pg_catalog.int8, misses pg_catalog.int8,
                   stale pg_catalog.int8, stale_hits pg_catalog.int8, bypasses pg_catalog.int8, last_reason pg_catalog.text,
                   time_saved_ms pg_catalog.float8)
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_statement_counts_data_0_2';
CREATE FUNCTION @extschema@.statements_dropped() RETURNS pg_catalog.int8
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_statements_dropped_0_2';
CREATE FUNCTION @extschema@.entry_kinds_data()
    RETURNS TABLE (entry_id pg_catalog.int8, kind pg_catalog.text, score pg_catalog.float8, rendition_bytes pg_catalog.int8)
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_entry_kinds_data_0_2';
CREATE OR REPLACE FUNCTION @extschema@.entries_data()
    RETURNS TABLE (entry_id pg_catalog.int8, datname pg_catalog.text, query pg_catalog.bytea, row_count pg_catalog.int8,
                   column_count pg_catalog.int4, batches pg_catalog.int4, bytes pg_catalog.int8, hits pg_catalog.int8,
                   execution_time_ms pg_catalog.float8, time_saved_ms pg_catalog.float8, created_at pg_catalog.timestamptz,
                   last_hit_at pg_catalog.timestamptz, expires_at pg_catalog.timestamptz, valid pg_catalog.bool,
                   relations pg_catalog.oid[])
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_entries_data_0_2';
CREATE OR REPLACE FUNCTION @extschema@.relations_data()
    RETURNS TABLE (relation pg_catalog.oid, entries pg_catalog.int4, changes pg_catalog.int8, last_change_at pg_catalog.timestamptz)
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_relations_data_0_2';
CREATE OR REPLACE FUNCTION @extschema@.bypass_reasons_data() RETURNS TABLE (reason pg_catalog.text, statements pg_catalog.int8)
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_bypass_reasons_data_0_2';

CREATE OR REPLACE VIEW @extschema@.stats AS
SELECT s.*, o.other_statements, o.nested_statements, f.*, w.*, @extschema@.standby_state() AS standby_state,
       @extschema@.statements_dropped() AS statements_dropped
FROM @extschema@.stats_data() AS s, @extschema@.statements_data() AS o, @extschema@.fragments_data() AS f,
     @extschema@.waits_data() AS w;

CREATE OR REPLACE VIEW @extschema@.entries AS
SELECT e.entry_id, e.datname, pg_catalog.convert_from(e.query, pg_catalog.getdatabaseencoding()) AS query, e.row_count,
       e.column_count, e.batches, e.bytes, e.hits, e.execution_time_ms, e.time_saved_ms, e.created_at, e.last_hit_at, e.expires_at,
       e.valid, e.relations::pg_catalog.regclass[] AS relations, k.kind, k.score, k.rendition_bytes
FROM @extschema@.entries_data() AS e JOIN @extschema@.entry_kinds_data() AS k ON k.entry_id OPERATOR(pg_catalog.=) e.entry_id;

CREATE VIEW @extschema@.statements AS SELECT * FROM @extschema@.statement_counts_data();
COMMENT ON VIEW @extschema@.statements IS 'One row per statement, role and database that the user may see: what became of its executions. Joins with pg_stat_statements.';
GRANT SELECT ON @extschema@.statements TO PUBLIC;
