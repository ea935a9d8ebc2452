-- Views over the functions of stats.rs, and who may use what.

CREATE VIEW stats AS SELECT * FROM stats_data();
COMMENT ON VIEW stats IS 'One row: what the cache has done since the last reset, and how full it is.';

CREATE VIEW entries AS
SELECT e.entry_id, e.datname, convert_from(e.query, getdatabaseencoding()) AS query, e.row_count, e.column_count, e.batches, e.bytes, e.hits,
       e.execution_time_ms, e.time_saved_ms, e.created_at, e.last_hit_at, e.expires_at, e.valid,
       e.relations::regclass[] AS relations
FROM entries_data() AS e;
COMMENT ON VIEW entries IS 'One row per cached result of this database.';

CREATE VIEW relations AS
SELECT r.relation::regclass AS relation, r.entries, r.changes, r.last_change_at
FROM relations_data() AS r;
COMMENT ON VIEW relations IS 'One row per relation that some cached result of this database rests on.';

CREATE VIEW bypass_reasons AS SELECT * FROM bypass_reasons_data();
COMMENT ON VIEW bypass_reasons IS 'How many statements were not served or not stored, by reason.';

CREATE VIEW policies AS
SELECT l.objoid::regclass AS relation, l.label AS policy
FROM pg_catalog.pg_seclabel AS l
WHERE l.provider = 'pg_arrow_cache' AND l.classoid = 'pg_catalog.pg_class'::regclass AND l.objsubid = 0;
COMMENT ON VIEW policies IS 'One row per relation of this database with a policy that is not the default.';

GRANT USAGE ON SCHEMA @extschema@ TO PUBLIC;
GRANT SELECT ON stats, entries, relations, bypass_reasons, policies TO PUBLIC;

REVOKE ALL ON FUNCTION flush() FROM PUBLIC;
REVOKE ALL ON FUNCTION invalidate(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION reset_stats() FROM PUBLIC;
