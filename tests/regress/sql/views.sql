-- What the views show: counters that add up, one row per entry and per relation, all of the own database.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
CREATE TABLE a (id int, v text);
CREATE TABLE b (id int);
CREATE VIEW joined AS SELECT a.id, v FROM a JOIN b USING (id);
INSERT INTO a SELECT i, repeat('v', i) FROM generate_series(1, 100) i;
INSERT INTO b SELECT i FROM generate_series(1, 50) i;
SELECT arrow_cache.flush() >= 0 AS flushed;
SELECT arrow_cache.reset_stats();

-- Nothing happened yet.
SELECT hits, misses, stale, stores, evictions, expirations, invalidations, verify_samples, verify_checks, verify_mismatches, entries, hit_ratio, eligible_hit_ratio, time_saved_ratio, time_saved_ms, time_executed_ms FROM arrow_cache.stats;
SELECT stats_reset <= clock_timestamp() AND stats_reset > clock_timestamp() - interval '1 min' AS reset_now FROM arrow_cache.stats;
SELECT count(*) FROM arrow_cache.entries;
SELECT count(*) FROM arrow_cache.relations;

-- Two misses, three hits; then a change: one stale, and hits for what it does not concern.
SELECT count(*) FROM joined;
SELECT count(*) FROM a;
SELECT count(*) FROM a;
SELECT count(*) FROM a;
SELECT count(*) FROM joined;
SELECT hits, misses, stale, stores, invalidations, entries, hit_ratio, time_saved_ms > 0 AS saved FROM arrow_cache.stats;
SELECT eligible_hit_ratio, time_executed_ms > 0 AS executed, abs(time_saved_ratio - time_saved_ms / (time_saved_ms + time_executed_ms)) < 1e-9 AS share FROM arrow_cache.stats;
-- What is bypassed counts in one ratio alone, and its time nowhere. A result that the client does not read to its end has no time.
SELECT time_executed_ms AS before FROM arrow_cache.stats \gset
SELECT count(*) FROM a WHERE random() < 2;
BEGIN READ ONLY;
DECLARE c CURSOR FOR SELECT id FROM a;
FETCH 1 FROM c;
COMMIT;
SELECT hit_ratio, eligible_hit_ratio, time_executed_ms - :before AS executed FROM arrow_cache.stats;
DELETE FROM b WHERE id = 1;
SELECT count(*) FROM joined;
SELECT count(*) FROM a;
SELECT hits, misses, stale, stores, invalidations, entries, hit_ratio FROM arrow_cache.stats;
SELECT bytes_used > 0 AND bytes_used <= bytes_total AS within, entries <= max_entries AS fits FROM arrow_cache.stats;

-- entries: one row per result.
SELECT datname = current_database() AS own, query, row_count, column_count, batches, hits, valid, relations FROM arrow_cache.entries ORDER BY query;
SELECT query, bytes > 0 AS bytes, execution_time_ms > 0 AS took, abs(time_saved_ms - hits * execution_time_ms) < 1e-9 AS saved, created_at <= clock_timestamp() AS created,
    last_hit_at IS NOT NULL AS was_hit, last_hit_at >= created_at AS hit_later, expires_at = created_at + interval '1 h' AS expires FROM arrow_cache.entries ORDER BY query;
SELECT count(DISTINCT entry_id) = count(*) AS ids_differ FROM arrow_cache.entries;
SELECT sum(bytes) <= (SELECT bytes_used FROM arrow_cache.stats) AS counted FROM arrow_cache.entries;
-- The kind of an entry stands beside it. Nothing was computed from fragments.
SELECT query, kind FROM arrow_cache.entries ORDER BY query;
SELECT fragments_stored, fragments_served, fragments_computed, fragment_runs, fragment_time_saved_ms, fragment_bytes FROM arrow_cache.stats;
-- The savings of all entries add up to those of the server, as long as no entry was dropped.
SELECT arrow_cache.flush();
SELECT arrow_cache.reset_stats();
SELECT v FROM a WHERE id = 3;
SELECT v FROM a WHERE id = 3;
SELECT v FROM a WHERE id = 3;
SELECT e.hits, abs(e.time_saved_ms - s.time_saved_ms) < 1e-9 AS same FROM arrow_cache.entries e, arrow_cache.stats s;
-- The text is the one with which the answer was stored, with placeholders for parameters.
PREPARE p(int) AS SELECT v   FROM a /* comment */ WHERE id = $1;
EXECUTE p(4);
EXECUTE p(5);
EXECUTE p(5);
SELECT query, row_count, hits FROM arrow_cache.entries ORDER BY query, hits;
DEALLOCATE p;
-- An entry whose relation has changed since is not valid; asked for again, it is replaced.
UPDATE a SET v = 'changed' WHERE id = 3;
SELECT query, valid FROM arrow_cache.entries WHERE query ILIKE '%id = 3';
SELECT v FROM a WHERE id = 3;
:status
SELECT query, valid, hits, last_hit_at FROM arrow_cache.entries WHERE query ILIKE '%id = 3';

-- relations: what the entries rest on, tables behind views among them; how often each changed, and when last.
SELECT arrow_cache.flush() > 0 AS flushed;
SELECT count(*) FROM joined;
SELECT count(*) FROM a;
SELECT relation, entries FROM arrow_cache.relations ORDER BY relation::text;
SELECT changes FROM arrow_cache.relations WHERE relation = 'b'::regclass \gset before_
SELECT clock_timestamp() AS before \gset
UPDATE b SET id = id WHERE id = 2;
BEGIN;
UPDATE b SET id = id WHERE id = 2;
UPDATE b SET id = id WHERE id = 3;
COMMIT;
BEGIN;
UPDATE b SET id = id WHERE id = 2;
ROLLBACK;
SELECT relation, changes - :before_changes AS changes, last_change_at > :'before' AND last_change_at <= clock_timestamp() AS just_now FROM arrow_cache.relations WHERE relation = 'b'::regclass;

-- bypass_reasons: only those that occurred.
SELECT arrow_cache.reset_stats();
SELECT count(*) FROM arrow_cache.bypass_reasons WHERE reason = 'volatile_function';
SELECT v FROM a WHERE id = 1 AND random() < 2;
SELECT v FROM a WHERE id = 1 AND random() < 2;
SELECT reason, statements FROM arrow_cache.bypass_reasons WHERE reason = 'volatile_function';
SELECT bypasses >= 2 AS counted FROM arrow_cache.stats;

-- A dropped relation leaves its entries invalid, and the views readable.
SELECT count(*) FROM b;
DROP VIEW joined;
DROP TABLE b;
SELECT query, valid, array_length(relations, 1) AS relations FROM arrow_cache.entries ORDER BY query;
SELECT count(*) AS relations FROM arrow_cache.relations;

DROP TABLE a;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
