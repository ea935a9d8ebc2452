-- From 0.1.0 to 0.2.0: all functions name the symbols of the library that have the version in their names, the views stats and entries get columns, and
-- the view statements and the function advise are new.
-- Who may call them stays as it is; so do views and triggers that use them.
--
-- No name and no operator in these scripts is found through the search_path. IN, BETWEEN, IS DISTINCT FROM and similar constructs find
-- operators through it, so they are not used. Only the body of advise() is otherwise, which has a search_path of its own.

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
    RETURNS TABLE (other_statements pg_catalog.int8, nested_statements pg_catalog.int8, verify_samples pg_catalog.int8,
                   time_executed_ms pg_catalog.float8, time_saved_ratio pg_catalog.float8, eligible_hit_ratio pg_catalog.float8)
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
       @extschema@.statements_dropped() AS statements_dropped, o.verify_samples, o.time_executed_ms, o.time_saved_ratio,
       o.eligible_hit_ratio
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

-- What the counters ask the DBA to change: as in sql/advise.sql, which explains it.

CREATE FUNCTION @extschema@.advise() RETURNS TABLE (finding pg_catalog.text, evidence pg_catalog.text, suggestion pg_catalog.text)
    VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp SET jit = off
    LANGUAGE sql AS $advise$
WITH s AS MATERIALIZED (
    SELECT v.*, v.hits + v.stale_hits + v.misses + v.stale + v.bypasses AS queries FROM @extschema@.stats AS v
), reasons AS MATERIALIZED (
    SELECT b.reason, b.statements FROM @extschema@.bypass_reasons AS b
), results AS MATERIALIZED (
    -- Answers of this database that the caller may see. Outdated ones go first when room is needed, and say nothing about the others.
    SELECT e.relations, e.bytes, e.hits, e.valid FROM @extschema@.entries AS e WHERE e.kind = 'answer'
), memory AS MATERIALIZED (
    SELECT s.entries, s.max_entries, s.evictions, s.bytes_used >= 0.8 * s.bytes_total AS bytes_full, s.entries >= 0.95 * s.max_entries AS entries_full,
           r.seen, r.unserved, r.bytes, r.unserved_bytes, r.bytes >= 0.25 * s.bytes_total AS bytes_seen, r.seen >= 0.25 * s.max_entries AS entries_seen,
           format('%s of %s results, %s of %s, %s evictions, %s results refused (outweighed, no_room); of the %s results seen here (%s), %s (%s) were never served',
                  s.entries, s.max_entries, pg_size_pretty(s.bytes_used), pg_size_pretty(s.bytes_total), s.evictions, d.refused,
                  r.seen, pg_size_pretty(r.bytes), r.unserved, pg_size_pretty(r.unserved_bytes)) AS evidence
    FROM s CROSS JOIN (
        SELECT coalesce(sum(statements), 0) AS refused FROM reasons WHERE reason IN ('no_room', 'outweighed')
    ) AS d CROSS JOIN (
        SELECT count(*) AS seen, coalesce(sum(bytes), 0) AS bytes, count(*) FILTER (WHERE hits = 0) AS unserved,
               coalesce(sum(bytes) FILTER (WHERE hits = 0), 0) AS unserved_bytes
        FROM results WHERE valid
    ) AS r
    WHERE s.evictions + d.refused >= 100
), settings AS MATERIALIZED (
    SELECT p.* FROM pg_settings AS p WHERE p.name LIKE 'pg_arrow_cache.%'
), switched_off AS MATERIALIZED (
    SELECT concat_ws(' in ', 'role ' || quote_ident(r.rolname), 'database ' || quote_ident(d.datname)) AS place
    FROM pg_db_role_setting AS x CROSS JOIN unnest(x.setconfig) AS c LEFT JOIN pg_roles AS r ON r.oid = x.setrole LEFT JOIN pg_database AS d ON d.oid = x.setdatabase
    WHERE lower(c) ~ '^pg_arrow_cache[.]enabled=(off?|f|fa|fal|fals|false|no?|0)$'
        AND (x.setdatabase = 0 OR d.datname = current_database())
        -- What holds for the caller shows in pg_settings.
        AND CASE WHEN x.setrole = 0 THEN EXISTS (SELECT FROM settings WHERE settings.name = 'pg_arrow_cache.enabled' AND reset_val = 'on') ELSE r.rolname <> session_user END
), prepared AS MATERIALIZED (
    SELECT p.prepared AS since, format('prepared transaction %L of role %I in database %I is open since %s', p.gid, p.owner, p.database, p.prepared) AS what
    FROM pg_prepared_xacts AS p WHERE p.prepared < clock_timestamp() - interval '1 minute'
), found (rank, weight, finding, evidence, suggestion) AS (
    SELECT 1, 0.0, 'Verified hits differed from executing', format('%s of %s hits that were verified', verify_mismatches, verify_checks),
           'The WARNINGs in the server''s log have the query ids. If such a query reads a relation with the policy trusted, see first whether invalidate() is told of all its changes. If not, set pg_arrow_cache.enabled = off for the roles that ask it, and report it.'
    FROM s WHERE verify_mismatches > 0
    UNION ALL
    SELECT 2, 0, 'The cache of this standby has switched itself off',
           format('standby_state is %s; %s queries bypassed with the reason recovery', standby_state, coalesce((SELECT statements FROM reasons WHERE reason = 'recovery'), 0)),
           'docs/replicas.md says what this state asks for. A restart of the standby switches the cache on again.'
    FROM s WHERE starts_with(standby_state, 'off')
    UNION ALL
    SELECT 3, 0, 'The cache is switched off here',
           format('pg_arrow_cache.enabled is off for new sessions of role %I in database %I (source of the present value: %s)', session_user, current_database(), source),
           'If their queries should be answered from the cache, take the setting back: ALTER SYSTEM, ALTER DATABASE or ALTER ROLE ... RESET pg_arrow_cache.enabled.'
    FROM settings WHERE settings.name = 'pg_arrow_cache.enabled' AND reset_val = 'off'
    UNION ALL
    SELECT 4, 0, 'The cache is switched off for others', format('pg_arrow_cache.enabled is off for %s', string_agg(place, ', ' ORDER BY place)),
           'If their queries should be answered from the cache: ALTER ROLE ... or ALTER DATABASE ... RESET pg_arrow_cache.enabled.'
    FROM switched_off HAVING count(*) > 0
    UNION ALL
    (SELECT 5, extract(epoch FROM clock_timestamp() - since), 'A prepared transaction is open while queries are bypassed because of writers',
           format('%s of %s queries of clients (%s %%) bypassed with the reasons writer_in_progress and ddl_in_progress; %s', n, queries, round(100.0 * n / greatest(queries, 1)), what),
           'If it is forgotten, end it: COMMIT PREPARED or ROLLBACK PREPARED, by whoever made it.'
    FROM s CROSS JOIN (SELECT sum(statements) AS n FROM reasons WHERE reason IN ('writer_in_progress', 'ddl_in_progress')) AS b CROSS JOIN prepared
    WHERE n >= 100 AND n >= 0.1 * queries ORDER BY since LIMIT 5)
    UNION ALL
    SELECT 6, 0, 'max_entries is reached while bytes are free', evidence,
           format('Raise pg_arrow_cache.max_entries (now %s), with a restart. Each takes about 200 bytes of pg_arrow_cache.memory.', max_entries)
    FROM memory WHERE entries_full AND NOT bytes_full AND entries_seen AND unserved < 0.75 * seen
    UNION ALL
    SELECT 7, 0, 'The memory is full of results that are served', evidence,
           'Double pg_arrow_cache.memory, restart, and compare time_saved_ratio in arrow_cache.stats after the same time. If it is the same, take the smaller one.'
    FROM memory WHERE bytes_full AND bytes_seen AND unserved_bytes <= 0.2 * bytes
    UNION ALL
    SELECT 8, 0, 'The room is full of results that were never served', evidence,
           'First keep out what nobody asks again, since more memory alone would hold more of it: pg_arrow_cache.min_runs = 2, or populate = off, for the roles that send such queries; a smaller max_entry_size if the results are large.'
    FROM memory WHERE evictions >= entries
        AND CASE WHEN bytes_full THEN bytes_seen AND unserved_bytes >= 0.75 * bytes ELSE entries_full AND entries_seen AND unserved >= 0.75 * seen END
    UNION ALL
    (SELECT 9, r.changes, 'Changes outdate answers more often than these are served',
           format('%s changed %s times, last at %s; its %s results were served %s times since they were stored. In all databases %s answers were found outdated, and %s hits',
                  r.relation, r.changes, r.last_change_at, u.n, u.hits, s.stale, s.hits + s.stale_hits),
           'Fewer and larger transactions, or partitions, of which only the changed ones are computed again; pg_arrow_cache.max_stale for roles that may see answers of some seconds ago; set_policy(..., ''never'') only if nobody is served.'
    FROM s CROSS JOIN @extschema@.relations AS r JOIN (
        SELECT relation, count(*) AS n, sum(hits) AS hits FROM results CROSS JOIN unnest(relations) AS relation GROUP BY relation
    ) AS u ON u.relation = r.relation
    WHERE s.stale >= 100 AND s.stale > s.hits + s.stale_hits AND r.changes >= 100 AND r.changes > u.hits
    ORDER BY r.changes DESC LIMIT 5)
    UNION ALL
    SELECT 10, 0, 'Those who wait for an answer seldom get it',
           format('%s waits: %s answered, %s taken over, %s timed out, %s given up, %s stopped; %s ms in all', waits, waits_answered, waits_taken_over, waits_timed_out, waits_given_up, waits_stopped, round(wait_time_ms)),
           format('Lower pg_arrow_cache.max_wait (%s %s in this session), or set it to 0 for the roles whose answers take longer than that or are not stored.', settings.setting, settings.unit)
    FROM s JOIN settings ON settings.name = 'pg_arrow_cache.max_wait' WHERE waits >= 100 AND waits_answered + waits_taken_over < 0.2 * waits
    UNION ALL
    SELECT 11, b.statements, a.finding,
           format('%s of %s queries of clients (%s %%) with the reason %s', b.statements, s.queries, round(100.0 * b.statements / s.queries), b.reason), a.suggestion
    FROM s CROSS JOIN reasons AS b JOIN (VALUES
        ('user_defined_function', 'Many queries call functions that are not built in',
         'arrow_cache.why() names the function. Write it in SQL; or declare it pure, if that is true; or, if it belongs to an extension that you know, name that in pg_arrow_cache.trusted_extensions. Those who read stats and other views of the cache count here, too: for these do nothing.'),
        ('moving_clock', 'Many answers change with the clock',
         'arrow_cache.why() tells for each query. Round the time, as by date_trunc(''minute'', now()); or give the column that is compared with it an index.'),
        ('session_function', 'Many queries ask for the state of the session',
         'arrow_cache.why() names the function. Pass its value as a parameter; ask for now() where clock_timestamp() is not needed.'),
        ('populate_off', 'Many results are not stored because storing is switched off',
         'If these queries are asked again, set pg_arrow_cache.populate = on for the roles that send them.'),
        ('incomplete_read', 'Many results are not read to their end',
         'A larger fetch size in the client; a LIMIT in the query in the place of a limit of rows.'),
        ('too_large', 'Many results are too large to be stored',
         'If these queries are asked again, ask for fewer columns or rows, or raise pg_arrow_cache.max_entry_size as far as pg_arrow_cache.memory has room.')
    ) AS a (reason, finding, suggestion) ON a.reason = b.reason
    WHERE s.queries >= 1000 AND b.statements >= 0.2 * s.queries
)
SELECT finding, evidence, suggestion FROM found ORDER BY rank, weight DESC
$advise$;
