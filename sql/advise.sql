-- What the counters ask the DBA to change; docs/sql.md explains the findings and their thresholds. The function reads views only, as the role that
-- calls it, so nobody learns more from it than from them. Its text is parsed when it is called, under a search_path of its own: what has no
-- schema is the server's. The plan runs for a moment, and compiling it would take longer.

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
    SELECT 5, 0, 'A subscriber bypasses queries because of definitions',
           format('%s of %s queries of clients (%s %%) bypassed with the reason ddl_in_progress, while changes are applied of %s', n, queries, round(100.0 * n / greatest(queries, 1)), names),
           'Once a transaction that changes a definition, or truncates a table, was prepared here, nothing is stored while a subscription is applied. When no such transaction is prepared any more, restart the server.'
    FROM s CROSS JOIN (SELECT sum(statements) AS n FROM reasons WHERE reason = 'ddl_in_progress') AS b
        CROSS JOIN (SELECT string_agg(quote_ident(subname), ', ' ORDER BY subname) AS names FROM pg_stat_subscription WHERE pid IS NOT NULL AND relid IS NULL) AS w
    WHERE n >= 100 AND n >= 0.1 * queries AND names IS NOT NULL
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
           'Conditions by which each query reads rows with one value of a column (arrow_cache.why() tells what it rests on); fewer and larger transactions; partitions, of which only the changed ones are computed again; pg_arrow_cache.max_stale for roles that may see answers of some seconds ago; set_policy(..., ''never'') only if nobody is served.'
    FROM s CROSS JOIN @extschema@.relations AS r JOIN (
        SELECT relation, count(*) AS n, sum(hits) AS hits FROM results CROSS JOIN unnest(relations) AS relation GROUP BY relation
    ) AS u ON u.relation = r.relation
    WHERE s.stale >= 100 AND s.stale > s.hits + s.stale_hits AND r.changes >= 100 AND r.changes > u.hits
    ORDER BY r.changes DESC LIMIT 5)
    UNION ALL
    (SELECT 9, t.coarse_changes, 'Changes of a tracked table outdate all answers over it',
           format('%s changed %s times, %s of them as a whole; %s results seen here rest on some of its rows. In all databases: coarse_not_noted %s, coarse_overflow %s, coarse_generation %s, coarse_definitions %s',
                  t.relation, t.changes, t.coarse_changes, t.entries, s.coarse_not_noted, s.coarse_overflow, s.coarse_generation, s.coarse_definitions),
           'Transactions of up to 1000 rows of the table; COPY to a partition instead of its parent; TRUNCATE and DDL in transactions of their own. docs/sql.md says what each of these counts.'
    FROM s CROSS JOIN @extschema@.tracked AS t WHERE t.entries > 0 AND t.coarse_changes >= 100 AND t.coarse_changes >= 0.1 * t.changes
    ORDER BY t.coarse_changes DESC LIMIT 5)
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
