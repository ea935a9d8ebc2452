-- The functions of the library. All names of functions and types are qualified. The source files named below explain the functions;
-- views.sql grants who may call them.

-- src/functions/admin.rs

CREATE FUNCTION @extschema@.flush() RETURNS pg_catalog.int8 STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_flush';
CREATE FUNCTION @extschema@.invalidate(relation pg_catalog.regclass) RETURNS pg_catalog.int8 STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_invalidate';
CREATE FUNCTION @extschema@.reset_stats() RETURNS pg_catalog.void STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_reset_stats';

-- src/functions/change_trigger.rs

CREATE FUNCTION @extschema@.invalidate_on_change() RETURNS pg_catalog.trigger VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_invalidate_on_change';

-- src/functions/check.rs

CREATE FUNCTION @extschema@.check() RETURNS TABLE (part pg_catalog.text, finding pg_catalog.text, detail pg_catalog.text)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_check';

-- src/functions/last_status.rs

CREATE FUNCTION @extschema@.last_status() RETURNS pg_catalog.text STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_last_status';
CREATE FUNCTION @extschema@.last_reason() RETURNS pg_catalog.text STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_last_reason';

-- src/functions/policy_label.rs

CREATE FUNCTION @extschema@.policy(relation pg_catalog.regclass) RETURNS pg_catalog.text STRICT STABLE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_policy';
-- Says how results over a relation may be cached: `default`, `never`, or `trusted` (although the server cannot see its changes). For the relation's owner.
CREATE FUNCTION @extschema@.set_policy(relation pg_catalog.regclass, policy pg_catalog.text) RETURNS pg_catalog.void
    STRICT VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    LANGUAGE plpgsql AS $set_policy$
BEGIN
    -- Raises if the library is not loaded.
    PERFORM @extschema@.policy($1);
    EXECUTE pg_catalog.format('SECURITY LABEL FOR pg_arrow_cache ON %s %s IS %L',
        (SELECT CASE c.relkind WHEN 'v'::"char" THEN 'VIEW' WHEN 'm'::"char" THEN 'MATERIALIZED VIEW' WHEN 'f'::"char" THEN 'FOREIGN TABLE' ELSE 'TABLE' END
         FROM pg_catalog.pg_class AS c WHERE c.oid OPERATOR(pg_catalog.=) $1::pg_catalog.oid),
        $1, CASE WHEN $2 OPERATOR(pg_catalog.<>) 'default'::pg_catalog.text THEN $2 END);
END
$set_policy$;

-- src/export/

CREATE FUNCTION @extschema@.query(query pg_catalog.text) RETURNS pg_catalog.bytea VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_query';
CREATE FUNCTION @extschema@.query(query pg_catalog.text, VARIADIC params pg_catalog."any") RETURNS pg_catalog.bytea
    VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_query';
CREATE FUNCTION @extschema@.fetch(query pg_catalog.text, options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb)
    RETURNS SETOF pg_catalog.bytea STRICT VOLATILE PARALLEL UNSAFE ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_fetch';
CREATE FUNCTION @extschema@.messages(query pg_catalog.text, options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb)
    RETURNS TABLE (seq pg_catalog.int4, header pg_catalog.bool, n_rows pg_catalog.int8, ipc pg_catalog.bytea)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_messages';
CREATE FUNCTION @extschema@.schema(query pg_catalog.text, options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb)
    RETURNS TABLE (ord pg_catalog.int4, name pg_catalog.text, pg_type pg_catalog.regtype, arrow_type pg_catalog.text,
                   zero_copy pg_catalog.bool, note pg_catalog.text)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 20
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_schema';

-- src/functions/why.rs

CREATE FUNCTION @extschema@.why(query pg_catalog.text)
    RETURNS TABLE (cacheable pg_catalog.bool, reason pg_catalog.text, detail pg_catalog.text)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_why';

-- src/functions/change_token.rs

CREATE FUNCTION @extschema@.etag(query pg_catalog.text) RETURNS pg_catalog.text VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_etag';
CREATE FUNCTION @extschema@.etag(query pg_catalog.text, VARIADIC params pg_catalog."any") RETURNS pg_catalog.text
    VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_etag';
-- The token of all rows of relations, as the user may see them. NULL if nothing can be promised of one of them, or if there is none. It is STABLE so that
-- it sees what the calling statement sees.
CREATE FUNCTION @extschema@.version(VARIADIC relations pg_catalog.regclass[]) RETURNS pg_catalog.text STRICT STABLE PARALLEL UNSAFE
    LANGUAGE sql AS $version$
SELECT CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.=) pg_catalog.count(e.token)
    THEN pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.string_agg(e.token, '' ORDER BY e.number)::pg_catalog.bytea), 'hex'), 32) END
FROM (SELECT r.number, CASE WHEN c.relname IS NOT NULL
          THEN @extschema@.etag(pg_catalog.format('SELECT * FROM %I.%I', n.nspname, c.relname)) END AS token
      FROM pg_catalog.unnest($1) WITH ORDINALITY AS r (relation, number)
      LEFT JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) r.relation::pg_catalog.oid
      LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace) AS e
$version$;

-- src/fragments/zones.rs: the range of `size` blocks, by its binary logarithm, in which a row lies

CREATE FUNCTION @extschema@.zone(place pg_catalog.tid, size pg_catalog.int4) RETURNS pg_catalog.int4 STRICT IMMUTABLE PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_zone';

-- src/functions/stats.rs and statement_stats.rs, for the views

CREATE FUNCTION @extschema@.stats_data()
    RETURNS TABLE (hits pg_catalog.int8, misses pg_catalog.int8, stale pg_catalog.int8, bypasses pg_catalog.int8, stores pg_catalog.int8,
                   evictions pg_catalog.int8, expirations pg_catalog.int8, invalidations pg_catalog.int8,
                   verify_checks pg_catalog.int8, verify_mismatches pg_catalog.int8, entries pg_catalog.int4,
                   max_entries pg_catalog.int4, bytes_used pg_catalog.int8, bytes_total pg_catalog.int8, hit_ratio pg_catalog.float8,
                   time_saved_ms pg_catalog.float8, stats_reset pg_catalog.timestamptz, other_statements pg_catalog.int8,
                   nested_statements pg_catalog.int8, verify_samples pg_catalog.int8, time_executed_ms pg_catalog.float8,
                   time_saved_ratio pg_catalog.float8, eligible_hit_ratio pg_catalog.float8,
                   fragments_stored pg_catalog.int8, fragments_served pg_catalog.int8, fragments_computed pg_catalog.int8,
                   fragment_runs pg_catalog.int8, fragment_time_saved_ms pg_catalog.float8, fragment_bytes pg_catalog.int8,
                   waits pg_catalog.int8, waits_answered pg_catalog.int8, waits_taken_over pg_catalog.int8, waits_timed_out pg_catalog.int8,
                   waits_given_up pg_catalog.int8, waits_stopped pg_catalog.int8, wait_time_ms pg_catalog.float8,
                   claims_held pg_catalog.int8, stale_hits pg_catalog.int8,
                   standby_state pg_catalog.text, statements_dropped pg_catalog.int8,
                   precise_publications pg_catalog.int8, coarse_not_noted pg_catalog.int8, coarse_overflow pg_catalog.int8,
                   coarse_generation pg_catalog.int8, coarse_definitions pg_catalog.int8,
                   disk_bytes pg_catalog.int8, disk_bytes_total pg_catalog.int8, disk_moves pg_catalog.int8, disk_hits pg_catalog.int8,
                   disk_failures pg_catalog.int8)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_stats_data';
CREATE FUNCTION @extschema@.statement_counts_data()
    RETURNS TABLE (userid pg_catalog.oid, dbid pg_catalog.oid, queryid pg_catalog.int8, hits pg_catalog.int8, misses pg_catalog.int8,
                   stale pg_catalog.int8, stale_hits pg_catalog.int8, bypasses pg_catalog.int8, last_reason pg_catalog.text,
                   time_saved_ms pg_catalog.float8)
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_statement_counts_data';
CREATE FUNCTION @extschema@.entries_data()
    RETURNS TABLE (entry_id pg_catalog.int8, datname pg_catalog.text, query pg_catalog.bytea, row_count pg_catalog.int8,
                   column_count pg_catalog.int4, batches pg_catalog.int4, bytes pg_catalog.int8, hits pg_catalog.int8,
                   execution_time_ms pg_catalog.float8, time_saved_ms pg_catalog.float8, created_at pg_catalog.timestamptz,
                   last_hit_at pg_catalog.timestamptz, expires_at pg_catalog.timestamptz, valid pg_catalog.bool,
                   relations pg_catalog.oid[], kind pg_catalog.text, score pg_catalog.float8, rendition_bytes pg_catalog.int8,
                   relations_by_value pg_catalog.oid[], disk_bytes pg_catalog.int8)
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_entries_data';
CREATE FUNCTION @extschema@.relations_data()
    RETURNS TABLE (relation pg_catalog.oid, entries pg_catalog.int4, changes pg_catalog.int8, last_change_at pg_catalog.timestamptz)
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_relations_data';
CREATE FUNCTION @extschema@.tracked_data()
    RETURNS TABLE (relation pg_catalog.oid, column_number pg_catalog.int4, second_number pg_catalog.int4, is_quiet pg_catalog.bool,
                   since pg_catalog.timestamptz, entries pg_catalog.int4, changes pg_catalog.int8, coarse_changes pg_catalog.int8)
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_tracked_data';
CREATE FUNCTION @extschema@.bypass_reasons_data() RETURNS TABLE (reason pg_catalog.text, statements pg_catalog.int8)
    STRICT VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'arrow_cache_bypass_reasons_data';
