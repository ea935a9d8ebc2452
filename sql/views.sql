-- Views over the functions of src/functions/stats.rs and statement_stats.rs, and who may use which function and view.

CREATE VIEW @extschema@.stats AS SELECT * FROM @extschema@.stats_data();
COMMENT ON VIEW @extschema@.stats IS 'One row: what the cache has done since the last reset, and how full it is.';

CREATE VIEW @extschema@.entries AS
SELECT e.entry_id, e.datname, pg_catalog.convert_from(e.query, pg_catalog.getdatabaseencoding()) AS query, e.row_count,
       e.column_count, e.batches, e.bytes, e.hits, e.execution_time_ms, e.time_saved_ms, e.created_at, e.last_hit_at, e.expires_at,
       e.valid, e.relations::pg_catalog.regclass[] AS relations, e.kind, e.score, e.rendition_bytes,
       e.relations_by_value::pg_catalog.regclass[] AS relations_by_value, e.disk_bytes
FROM @extschema@.entries_data() AS e;
COMMENT ON VIEW @extschema@.entries IS 'One row per cached result of this database that the user may see.';

CREATE VIEW @extschema@.relations AS
SELECT r.relation::pg_catalog.regclass AS relation, r.entries, r.changes, r.last_change_at
FROM @extschema@.relations_data() AS r;
COMMENT ON VIEW @extschema@.relations IS 'One row per relation that some of the results in entries rests on.';

CREATE VIEW @extschema@.tracked AS
SELECT t.relation::pg_catalog.regclass AS relation,
       pg_catalog.array_agg(CASE WHEN t.column_number OPERATOR(pg_catalog.=) 32767 THEN '*' WHEN a.attname IS NULL THEN 'ctid' ELSE pg_catalog.concat_ws(' and ', a.attname, b.attname) END
                            ORDER BY t.column_number, t.second_number NULLS FIRST) FILTER (WHERE NOT t.is_quiet) AS columns,
       coalesce(pg_catalog.array_agg(a.attname ORDER BY t.column_number) FILTER (WHERE t.is_quiet AND NOT a.attisdropped),
                '{}'::pg_catalog.name[]) AS quiet_columns,
       t.since, t.entries, t.changes, t.coarse_changes
FROM @extschema@.tracked_data() AS t
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.relation
LEFT JOIN pg_catalog.pg_attribute AS a
  ON a.attrelid OPERATOR(pg_catalog.=) t.relation AND a.attnum OPERATOR(pg_catalog.=) t.column_number::pg_catalog.int2
LEFT JOIN pg_catalog.pg_attribute AS b
  ON b.attrelid OPERATOR(pg_catalog.=) t.relation AND b.attnum OPERATOR(pg_catalog.=) t.second_number::pg_catalog.int2
WHERE a.attname IS NOT NULL OR NOT t.is_quiet
GROUP BY t.relation, t.since, t.entries, t.changes, t.coarse_changes;
COMMENT ON VIEW @extschema@.tracked IS 'One row per relation of which changes outdate only the results over the values that they concern: of these columns, alone or two together (* for all rows, ctid for ranges of blocks), and of quiet columns those that read them.';

CREATE VIEW @extschema@.bypass_reasons AS SELECT * FROM @extschema@.bypass_reasons_data();
COMMENT ON VIEW @extschema@.bypass_reasons IS 'How many statements were not served or not stored, by reason.';

CREATE VIEW @extschema@.statements AS SELECT * FROM @extschema@.statement_counts_data();
COMMENT ON VIEW @extschema@.statements IS 'One row per statement, role and database that the user may see: what became of its executions. Joins with pg_stat_statements.';

CREATE VIEW @extschema@.policies AS
SELECT l.objoid::pg_catalog.regclass AS relation, l.label AS policy
FROM pg_catalog.pg_seclabel AS l
WHERE l.provider OPERATOR(pg_catalog.=) 'pg_arrow_cache'::pg_catalog.text
  AND l.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
  AND l.objsubid OPERATOR(pg_catalog.=) 0::pg_catalog.int4;
COMMENT ON VIEW @extschema@.policies IS 'One row per relation of this database with a policy that is not the default.';

GRANT USAGE ON SCHEMA @extschema@ TO PUBLIC;
GRANT SELECT ON @extschema@.stats, @extschema@.entries, @extschema@.relations, @extschema@.tracked, @extschema@.bypass_reasons, @extschema@.policies,
    @extschema@.statements TO PUBLIC;

REVOKE ALL ON FUNCTION @extschema@.check() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.check() TO pg_monitor;
REVOKE ALL ON FUNCTION @extschema@.flush() FROM PUBLIC;
REVOKE ALL ON FUNCTION @extschema@.invalidate(pg_catalog.regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION @extschema@.invalidate_on_change() FROM PUBLIC;
REVOKE ALL ON FUNCTION @extschema@.reset_stats() FROM PUBLIC;
