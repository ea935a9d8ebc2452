-- debug_serve_fills: each execution is stored first and the client answered from the entry. Every query gives the same output as without.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset footer off
\pset format unaligned
\getenv builddir PG_ABS_BUILDDIR
CREATE TYPE df_mood AS ENUM ('low', 'high');
CREATE TYPE df_pair AS (a int, b text);
CREATE TABLE df (id int PRIMARY KEY, n numeric, t text, c char(6), ts timestamptz, i interval, j jsonb, a int[], p df_pair, m df_mood, f float8, b bytea);
INSERT INTO df SELECT g, CASE WHEN g % 10 = 0 THEN 'NaN' ELSE g * 1.10 END, CASE WHEN g % 7 = 0 THEN NULL ELSE repeat('é', g % 30) END, g::text, '2024-01-01 00:00+00'::timestamptz + g * interval '1 hour',
    g * interval '1 day 1 s', jsonb_build_object('g', g), CASE WHEN g % 3 = 0 THEN NULL ELSE ARRAY[g, NULL] END, (g, 'p' || g)::df_pair, CASE WHEN g % 2 = 0 THEN 'low' ELSE 'high' END::df_mood, 1.0 / g, decode(md5(g::text), 'hex')
    FROM generate_series(1, 3000) g;
CREATE TABLE df_queries (q text);
INSERT INTO df_queries VALUES
    ('SELECT * FROM df ORDER BY id'),
    ('SELECT * FROM df ORDER BY t COLLATE "C" DESC NULLS LAST, id LIMIT 50 OFFSET 10'),
    ('SELECT m, count(*), sum(n), avg(f), min(ts), max(i), array_agg(id ORDER BY id) FROM df WHERE id <= 20 GROUP BY m ORDER BY m'),
    ('SELECT FROM df WHERE id < 4'),
    ('SELECT id, id, t AS id FROM df WHERE id < 4'),
    ('SELECT * FROM df WHERE false'),
    ('SELECT p, (p).b, a[1], j->''g'', c || ''.'', b FROM df WHERE id = 5'),
    ('SELECT x.id, y.t FROM df x LEFT JOIN df y ON y.id = x.id + 2998 WHERE x.id < 6 ORDER BY 1'),
    ('SELECT id, sum(id) OVER (ORDER BY id ROWS 2 PRECEDING) FROM df WHERE id < 6'),
    ('VALUES (1, ''a''), (2, NULL)'),
    ('WITH w AS MATERIALIZED (SELECT id, n FROM df) SELECT * FROM w WHERE id BETWEEN 9 AND 11'),
    ('SELECT id, 10 / (3 - id) AS fails FROM df ORDER BY id'),
    ('SELECT id, random() < 2 AS bypassed FROM df WHERE id = 1'),
    ('SELECT 1 AS bypassed');
SELECT arrow_cache.flush() >= 0 AS flushed;
-- The error of the failing query must be the same too.
\set all_queries 'SELECT q FROM df_queries'
SET pg_arrow_cache.enabled = off;
\set file :builddir '/results/fills_off.txt'
\o :file
:all_queries \gexec
\o
RESET pg_arrow_cache.enabled;
SET pg_arrow_cache.debug_serve_fills = on;
SELECT arrow_cache.reset_stats();
\set file :builddir '/results/fills_on.txt'
\o :file
:all_queries \gexec
\o
\! cmp "$PG_ABS_BUILDDIR/results/fills_off.txt" "$PG_ABS_BUILDDIR/results/fills_on.txt" && echo equal
-- Eleven of them were stored, and the list of queries itself; none could have been served. The one that failed was a miss too.
SELECT stores, hits, misses FROM arrow_cache.stats;
\set file :builddir '/results/fills_again.txt'
\o :file
:all_queries \gexec
\o
\! cmp "$PG_ABS_BUILDDIR/results/fills_off.txt" "$PG_ABS_BUILDDIR/results/fills_again.txt" && echo equal
SELECT stores, hits FROM arrow_cache.stats;
-- The status says MISS, each time: it was not served from what was there before.
SELECT id, t FROM df WHERE id = 3;
:status
SELECT id, t FROM df WHERE id = 3;
:status
-- In this mode no query is too quick to be stored.
SET pg_arrow_cache.min_execution_time = '1d';
SELECT id, t FROM df WHERE id = 4;
:status
RESET pg_arrow_cache.min_execution_time;
-- A result that cannot be stored is delivered completely.
SET pg_arrow_cache.max_entry_size = '16kB';
\set file :builddir '/results/fills_large.txt'
SELECT arrow_cache.flush() >= 0 AS flushed;
\o :file
:all_queries \gexec
\o
\! cmp "$PG_ABS_BUILDDIR/results/fills_off.txt" "$PG_ABS_BUILDDIR/results/fills_large.txt" && echo equal
SELECT * FROM df ORDER BY id \g /dev/null
\echo :ROW_COUNT rows
:status
RESET pg_arrow_cache.max_entry_size;

-- Cursors, in parts, forward and back; a limit of rows; prepared statements; a change between.
SELECT arrow_cache.flush() >= 0 AS flushed;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, p FROM df WHERE id < 8 ORDER BY id;
FETCH 2 FROM c;
MOVE 1 FROM c;
FETCH 2 FROM c;
FETCH ALL FROM c;
FETCH 1 FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT id, n FROM df WHERE id < 8 ORDER BY id;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
COMMIT;
PREPARE by_id(int) AS SELECT n, t FROM df WHERE id = $1;
EXECUTE by_id(7);
EXECUTE by_id(10);
UPDATE df SET t = 'changed' WHERE id = 7;
EXECUTE by_id(7);
:status
BEGIN;
UPDATE df SET t = 'mine' WHERE id = 7;
EXECUTE by_id(7);
:status
ROLLBACK;
EXECUTE by_id(7);
:status
DEALLOCATE by_id;
-- EXPLAIN is left unchanged, for what is stored as well.
EXPLAIN (COSTS OFF) SELECT id, p FROM df WHERE id < 0;
SELECT id, p FROM df WHERE id < 0;
EXPLAIN (COSTS OFF) SELECT id, p FROM df WHERE id < 0;
SHOW pg_arrow_cache.debug_serve_fills;

RESET pg_arrow_cache.debug_serve_fills;
DROP TABLE df, df_queries;
DROP TYPE df_mood, df_pair;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
