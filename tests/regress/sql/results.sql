-- Shapes of results: none, no columns, the same name twice, as many columns as can be, many batches, large values.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\getenv builddir PG_ABS_BUILDDIR
CREATE TABLE shape (id int PRIMARY KEY, v text);
INSERT INTO shape SELECT i, 'v' || i FROM generate_series(1, 5) i;

-- No rows: the columns are still there.
SELECT id, v FROM shape WHERE id < 0;
SELECT id, v FROM shape WHERE id < 0;
:status
SELECT row_count, column_count, batches FROM arrow_cache.entries WHERE query ILIKE 'select id, v from shape where id < 0';
INSERT INTO shape VALUES (-1, 'now there');
SELECT id, v FROM shape WHERE id < 0;
:status
DELETE FROM shape WHERE id < 0;

-- No columns: the rows are still there.
SELECT FROM shape;
SELECT FROM shape;
:status
SELECT row_count, column_count FROM arrow_cache.entries WHERE query ILIKE 'select from shape';
SELECT FROM shape WHERE id < 0;
SELECT FROM shape WHERE id < 0;
:status

-- The same name twice, no name, the same column twice.
SELECT id, v AS id, id, 1, 2 FROM shape WHERE id = 1;
SELECT id, v AS id, id, 1, 2 FROM shape WHERE id = 1;
:status
SELECT *, * FROM shape WHERE id = 1;
SELECT *, * FROM shape WHERE id = 1;
:status

-- Only NULLs; an untyped literal becomes text.
SELECT NULL AS n, NULL::int AS i, 'x' AS x FROM shape WHERE id = 1;
SELECT NULL AS n, NULL::int AS i, 'x' AS x FROM shape WHERE id = 1;
:status
-- A column that the executor needs and the client does not see.
SELECT v FROM shape ORDER BY -id, lower(v) LIMIT 2;
SELECT v FROM shape ORDER BY -id, lower(v) LIMIT 2;
:status

-- Every kind of one SELECT: VALUES, WITH, set operations, sub-queries, grouping sets, windows, lateral joins, recursion.
\pset footer off
\pset format unaligned
VALUES (1, 'one'), (2, NULL), (NULL, 'three');
VALUES (1, 'one'), (2, NULL), (NULL, 'three');
:status
TABLE shape;
TABLE shape;
:status
WITH w AS MATERIALIZED (SELECT id FROM shape WHERE id > 3) SELECT count(*), max(id) FROM w;
WITH w AS MATERIALIZED (SELECT id FROM shape WHERE id > 3) SELECT count(*), max(id) FROM w;
:status
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM shape)) SELECT sum(n) FROM r;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM shape)) SELECT sum(n) FROM r;
:status
SELECT id FROM shape WHERE id < 3 UNION SELECT id FROM shape WHERE id > 4 EXCEPT SELECT 1 ORDER BY id DESC;
SELECT id FROM shape WHERE id < 3 UNION SELECT id FROM shape WHERE id > 4 EXCEPT SELECT 1 ORDER BY id DESC;
:status
SELECT id % 2 AS odd, count(*), grouping(id % 2) FROM shape GROUP BY ROLLUP (id % 2) ORDER BY 1, 3;
SELECT id % 2 AS odd, count(*), grouping(id % 2) FROM shape GROUP BY ROLLUP (id % 2) ORDER BY 1, 3;
:status
SELECT id, rank() OVER (PARTITION BY id % 2 ORDER BY id DESC), lag(v) OVER w FROM shape WINDOW w AS (ORDER BY id) ORDER BY id;
SELECT id, rank() OVER (PARTITION BY id % 2 ORDER BY id DESC), lag(v) OVER w FROM shape WINDOW w AS (ORDER BY id) ORDER BY id;
:status
SELECT s.id, l.next FROM shape s, LATERAL (SELECT min(id) AS next FROM shape x WHERE x.id > s.id) l WHERE EXISTS (SELECT FROM shape y WHERE y.id = s.id + 1) ORDER BY 1;
SELECT s.id, l.next FROM shape s, LATERAL (SELECT min(id) AS next FROM shape x WHERE x.id > s.id) l WHERE EXISTS (SELECT FROM shape y WHERE y.id = s.id + 1) ORDER BY 1;
:status
SELECT g, v FROM generate_series(1, 3) g LEFT JOIN shape ON id = g * 2 ORDER BY g;
SELECT g, v FROM generate_series(1, 3) g LEFT JOIN shape ON id = g * 2 ORDER BY g;
:status
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id), string_agg(v, ',' ORDER BY id DESC) FILTER (WHERE id <> 3) FROM shape;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id), string_agg(v, ',' ORDER BY id DESC) FILTER (WHERE id <> 3) FROM shape;
:status
SELECT id FROM shape ORDER BY id FETCH FIRST 2 ROWS WITH TIES;
SELECT id FROM shape ORDER BY id FETCH FIRST 2 ROWS WITH TIES;
:status

-- As many columns as a query can have, with NULLs between them; and the limit of a table's columns.
SELECT 'SELECT ' || string_agg(CASE WHEN i % 7 = 0 THEN 'NULL::text' WHEN i % 3 = 0 THEN 'v' ELSE 'id + ' || i END || ' AS c' || i, ', ') || ' FROM shape ORDER BY 1'
    AS wide FROM generate_series(1, 1600) i \gset
SELECT 'SELECT ' || string_agg('NULL::int', ', ') || ' FROM shape' AS too_wide FROM generate_series(1, 1665) i \gset
SET pg_arrow_cache.enabled = off;
\set ECHO none
\set file :builddir '/results/wide_uncached.txt'
\o :file
:wide;
RESET pg_arrow_cache.enabled;
\set file :builddir '/results/wide_stored.txt'
\o :file
:wide;
\set file :builddir '/results/wide_served.txt'
\o :file
:wide;
\o
\set ECHO all
:status
\! cmp "$PG_ABS_BUILDDIR/results/wide_uncached.txt" "$PG_ABS_BUILDDIR/results/wide_stored.txt" && echo stored run equal
\! cmp "$PG_ABS_BUILDDIR/results/wide_uncached.txt" "$PG_ABS_BUILDDIR/results/wide_served.txt" && echo served run equal
SELECT row_count, column_count FROM arrow_cache.entries WHERE column_count > 100;
\set ECHO none
:too_wide;
\set ECHO all

-- More than one batch: rows of every size come back complete and in order.
CREATE TABLE tall AS SELECT i AS id, md5(i::text) AS a, CASE WHEN i % 5 = 0 THEN NULL ELSE repeat('r', i % 40) END AS b, i * 0.01 AS c FROM generate_series(1, 40000) i;
SET pg_arrow_cache.enabled = off;
\set file :builddir '/results/tall_uncached.txt'
\o :file
SELECT * FROM tall ORDER BY a;
RESET pg_arrow_cache.enabled;
\set file :builddir '/results/tall_stored.txt'
\o :file
SELECT * FROM tall ORDER BY a;
\set file :builddir '/results/tall_served.txt'
\o :file
SELECT * FROM tall ORDER BY a;
\o
\echo :ROW_COUNT rows
:status
\! cmp "$PG_ABS_BUILDDIR/results/tall_uncached.txt" "$PG_ABS_BUILDDIR/results/tall_stored.txt" && echo stored run equal
\! cmp "$PG_ABS_BUILDDIR/results/tall_uncached.txt" "$PG_ABS_BUILDDIR/results/tall_served.txt" && echo served run equal
SELECT row_count, batches > 4 AS many_batches, bytes > 4 * 512 * 1024 AS megabytes FROM arrow_cache.entries WHERE query ILIKE '%from tall%';

-- Values larger than a batch, compressed and out of line, among small ones.
CREATE TABLE heavy (id int, t text, j jsonb, b bytea, a int[]);
ALTER TABLE heavy ALTER t SET STORAGE EXTERNAL;
INSERT INTO heavy SELECT i, repeat(md5(i::text), i * 30000), jsonb_build_object('k', repeat('j', i * 200000)), decode(repeat('00ff', i * 300000), 'hex'), array_fill(i, ARRAY[i * 50000])
    FROM generate_series(0, 3) i;
SELECT id, length(t), length(j::text), length(b), array_length(a, 1) FROM heavy ORDER BY id;
SET pg_arrow_cache.enabled = off;
\set file :builddir '/results/heavy_uncached.txt'
\o :file
SELECT * FROM heavy ORDER BY id;
RESET pg_arrow_cache.enabled;
\set file :builddir '/results/heavy_stored.txt'
\o :file
SELECT * FROM heavy ORDER BY id;
\set file :builddir '/results/heavy_served.txt'
\o :file
SELECT * FROM heavy ORDER BY id;
\o
:status
\! cmp "$PG_ABS_BUILDDIR/results/heavy_uncached.txt" "$PG_ABS_BUILDDIR/results/heavy_stored.txt" && echo stored run equal
\! cmp "$PG_ABS_BUILDDIR/results/heavy_uncached.txt" "$PG_ABS_BUILDDIR/results/heavy_served.txt" && echo served run equal
SELECT row_count, bytes > 5000000 AS megabytes FROM arrow_cache.entries WHERE query ILIKE 'select * from heavy order by id';

DROP TABLE shape, tall, heavy;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
