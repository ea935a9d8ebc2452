-- verify_sample_rate: hits are executed as well and compared. At 1, each of them.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\set checks 'SELECT hits, verify_samples AS samples, verify_checks AS checks, verify_mismatches AS mismatches FROM arrow_cache.stats;'
\pset null '(null)'
\pset footer off
\pset format unaligned
CREATE EXTENSION pg_surgery;
CREATE TYPE vf_mood AS ENUM ('low', 'high');
CREATE TYPE vf_pair AS (a int, b text);
CREATE DOMAIN vf_short AS varchar(40);
CREATE COLLATION vf_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE vf (id int, k int, b bool, s smallint, l bigint, r real, f float8, n numeric, nn numeric(12, 3), t text, c char(6), q "char", nm name, v vf_short,
    d date, ti time, tz timetz, ts timestamp, tsz timestamptz, i interval, u uuid, x bytea, j json, jb jsonb, a int[], ta text[], p vf_pair, pa vf_pair[],
    m vf_mood, rg int4range, nr numrange, ip inet, mac macaddr, bits varbit, pt point, mon money, tv tsvector, o oid);
INSERT INTO vf SELECT g, g % 7, g % 2 = 0, g, g * 10000000000, CASE g % 5 WHEN 0 THEN 'NaN' ELSE 1.0 / g END, CASE g % 5 WHEN 0 THEN '-0' WHEN 1 THEN '-Infinity' ELSE 1.0 / g END,
    CASE g % 4 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' ELSE g * 1.10 END, g * 1000.5, CASE WHEN g % 6 = 0 THEN NULL ELSE repeat('é' || g, g) END, g, chr(64 + g % 60)::"char", 'name' || g, 'v' || g,
    date '2024-01-01' + g, time '00:00' + g * interval '1 min', '10:00+02', timestamp '2024-01-01' + g * interval '1 h', timestamptz '2024-01-01 00:00+00' + g * interval '1 h',
    g * interval '1 mon 1 day 1 s', md5(g::text)::uuid, decode(repeat(md5(g::text), 200), 'hex'), ('{"g" : ' || g || '}')::json, jsonb_build_object('g', g, 'big', repeat('x', g * 100)),
    ARRAY[g, NULL], ARRAY['é', g::text], (g, 'p' || g)::vf_pair, ARRAY[(g, repeat('y', 3000))::vf_pair, NULL], CASE WHEN g % 2 = 0 THEN 'low' ELSE 'high' END::vf_mood, int4range(g, g + 5),
    numrange(g, NULL), ('10.0.0.' || g % 250)::inet, '08:00:2b:01:02:03', (g % 8)::bit(3)::varbit, point(g, -g), g::money, to_tsvector('simple', 'word' || g), 4294967295 - g
    FROM generate_series(1, 60) g;
SELECT arrow_cache.flush() >= 0 AS flushed;
SELECT arrow_cache.reset_stats();

-- Off by default.
SHOW pg_arrow_cache.verify_sample_rate;
SELECT count(*), sum(k) FROM vf;
SELECT count(*), sum(k) FROM vf;
:checks
-- Switched on, the hit is still a hit with the same rows. A miss has nothing to be compared with.
SET pg_arrow_cache.verify_sample_rate = 1;
SELECT count(*), sum(k) FROM vf;
:status
:checks
SELECT min(id) FROM vf;
:status
:checks

-- Every query here is compared at its second execution, without a difference; and so are the readings of the list itself.
CREATE TABLE vf_queries (number int, q text);
INSERT INTO vf_queries VALUES
    (1, 'SELECT * FROM vf'),
    (2, 'SELECT v FROM vf v'),
    (3, 'SELECT FROM vf'),
    (4, 'SELECT * FROM vf WHERE false'),
    (5, 'SELECT id, id AS id, t || ''.'', (p).b, (p).a + 1, a[1], -f, n * 3, n / 7, jb->''g'', lower(t), ROW(id, t)::vf_pair, ARRAY[p, (2, t)::vf_pair] FROM vf'),
    (6, 'SELECT k, m, count(*), count(DISTINCT n), sum(id), avg(s), sum(l), sum(nn), avg(n), stddev(id), var_pop(nn), sum(i), avg(i), bool_or(b), every(b), bit_xor(s), sum(mon) FROM vf GROUP BY k, m'),
    (7, 'SELECT k, min(id), max(l), min(d), max(tsz), min(t), max(v), min(m), max(o), sum(DISTINCT s) FROM vf GROUP BY GROUPING SETS (k, ()) ORDER BY k'),
    (8, 'SELECT DISTINCT k, b, m, d, u, nm, x, t FROM vf'),
    (9, 'SELECT k, t FROM vf UNION SELECT id, v FROM vf ORDER BY 2, 1'),
    (10, 'SELECT n FROM vf UNION ALL SELECT f FROM vf'),
    (11, 'SELECT k, id FROM vf EXCEPT ALL SELECT 1, 1 ORDER BY k DESC NULLS FIRST, id'),
    (12, 'SELECT x.id, y.t, (SELECT max(id) FROM vf z WHERE z.k = x.k) FROM vf x LEFT JOIN vf y ON y.id = x.id + 30 WHERE EXISTS (SELECT FROM vf w WHERE w.id = x.k)'),
    (13, 'WITH RECURSIVE r AS (SELECT 1 AS z UNION SELECT z + 1 FROM r WHERE z < 40) SELECT id, t FROM vf JOIN r ON id = z ORDER BY id % 3, id'),
    (14, 'VALUES (1, ''a''), (2, NULL), (1, ''a'')'),
    (15, 'SELECT k, generate_series(1, k) FROM vf ORDER BY k, 2'),
    (16, 'SELECT id, k, b, d FROM vf ORDER BY k, b, d, id'),
    (17, 'SELECT n, id FROM vf ORDER BY n, id'),
    (18, 'SELECT to_char(n, ''999.99''), tsz::text, f::text FROM vf ORDER BY t, tsz');
\set each 'SELECT q FROM vf_queries ORDER BY number'
SELECT count(*) AS queries FROM vf_queries;
:each \g /dev/null
SELECT arrow_cache.reset_stats();
\set ECHO none
\o /dev/null
:each \gexec
:each \gexec
\o
\set ECHO all
:checks

-- Rows that sort alike may come in another order: the plan of the second execution reads them so.
CREATE INDEX vf_down ON vf (k, id DESC);
SELECT arrow_cache.reset_stats();
SELECT k, id FROM vf WHERE k < 2 AND id < 20 ORDER BY k;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
SELECT k, id FROM vf WHERE k < 2 AND id < 20 ORDER BY k;
:status
:checks
RESET enable_seqscan;
RESET enable_sort;
RESET enable_bitmapscan;

-- Nothing is compared where SQL leaves the answer open: each of these is a hit, none a check.
DELETE FROM vf_queries;
INSERT INTO vf_queries VALUES
    (1, 'SELECT id FROM vf LIMIT 3'),
    (2, 'SELECT n, id FROM vf ORDER BY n LIMIT 60 OFFSET 3'),
    (3, 'SELECT sum(id) FROM (SELECT id FROM vf FETCH FIRST 2 ROWS ONLY) s'),
    (4, 'SELECT DISTINCT ON (k) k, id FROM vf'),
    (5, 'SELECT row_number() OVER (ORDER BY k), id FROM vf'),
    (6, 'SELECT ARRAY(SELECT id FROM vf)'),
    (7, 'SELECT array_agg(id) FROM vf'),
    (8, 'SELECT string_agg(v, '','' ORDER BY k) FROM vf'),
    (9, 'SELECT sum(f) FROM vf'),
    (10, 'SELECT avg(r) FROM vf'),
    (11, 'SELECT max(n) FROM vf'),
    (12, 'SELECT min(i) FROM vf'),
    (13, 'SELECT max(c) FROM vf'),
    (14, 'SELECT sum(DISTINCT n) FROM vf'),
    (15, 'SELECT n FROM vf GROUP BY n'),
    (16, 'SELECT DISTINCT c FROM vf'),
    (17, 'SELECT DISTINCT jb FROM vf'),
    (18, 'SELECT f FROM vf UNION SELECT 1'),
    (19, 'SELECT i FROM vf INTERSECT SELECT i FROM vf'),
    (20, 'SELECT DISTINCT p FROM vf'),
    (21, 'SELECT DISTINCT a FROM vf'),
    (22, 'SELECT DISTINCT t COLLATE vf_loose FROM vf'),
    (23, 'SELECT min(t COLLATE vf_loose) FROM vf'),
    (24, 'WITH w AS (SELECT tz FROM vf GROUP BY tz) SELECT count(*) FROM w'),
    (25, 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM vf'),
    (26, 'SELECT id FROM vf WHERE id < (SELECT avg(f) FROM vf)');
SELECT count(*) AS queries FROM vf_queries;
SET pg_arrow_cache.verify_sample_rate = 0;
:each \g /dev/null
SELECT arrow_cache.reset_stats();
SET pg_arrow_cache.verify_sample_rate = 1;
\set ECHO none
\o /dev/null
:each \gexec
:each \gexec
\o
\set ECHO all
-- But for the two readings of the list.
:checks

-- Cursors: compared when read to the end, however many steps that takes; not when left half-read, read under other settings, or scrollable.
SELECT arrow_cache.reset_stats();
SELECT id, d FROM vf WHERE id < 6 ORDER BY id \g /dev/null
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, d FROM vf WHERE id < 6 ORDER BY id;
FETCH 2 FROM c;
:checks
FETCH 2 FROM c;
FETCH 2 FROM c;
:checks
CLOSE c;
DECLARE c NO SCROLL CURSOR FOR SELECT id, d FROM vf WHERE id < 6 ORDER BY id;
FETCH 4 FROM c;
CLOSE c;
:checks
DECLARE c NO SCROLL CURSOR FOR SELECT id, d FROM vf WHERE id < 6 ORDER BY id;
FETCH 1 FROM c;
SET LOCAL DateStyle = 'German';
FETCH ALL FROM c;
:checks
CLOSE c;
RESET DateStyle;
DECLARE c SCROLL CURSOR FOR SELECT id, d FROM vf WHERE id < 6 ORDER BY id;
FETCH ALL FROM c;
:checks
COMMIT;

-- Prepared statements too; EXPLAIN shows what a hit does.
SELECT arrow_cache.reset_stats();
PREPARE by_id(int) AS SELECT t, n FROM vf WHERE id = $1;
EXECUTE by_id(2);
EXECUTE by_id(2);
:checks
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE by_id(2) \g /dev/null
:checks
DEALLOCATE by_id;

-- Exports compare nothing: statements compare the same entries.
SELECT arrow_cache.flush() > 0 AS flushed;
SELECT arrow_cache.reset_stats();
SELECT md5(arrow_cache.query('SELECT * FROM vf')) AS stored \gset
:status
SELECT md5(arrow_cache.query('SELECT * FROM vf')) = :'stored' AS equal;
:checks

-- An error of the execution reaches the client; nothing was compared, and the result stays.
SELECT count(*) FROM vf, generate_series(1, 20000);
SELECT arrow_cache.reset_stats();
SET statement_timeout = '20ms';
SELECT count(*) FROM vf, generate_series(1, 20000);
:status
:checks
SET pg_arrow_cache.verify_sample_rate = 0;
SELECT count(*) FROM vf, generate_series(1, 20000);
:status
RESET statement_timeout;
SET pg_arrow_cache.verify_sample_rate = 1;
SELECT count(*) FROM vf, generate_series(1, 20000);
:checks

-- A difference: pg_surgery removes rows without any invalidation.
CREATE TABLE vf_cut (id int, k int);
INSERT INTO vf_cut VALUES (1, 10), (2, 20), (3, 30);
SELECT arrow_cache.reset_stats();
SELECT id FROM vf_cut;
SELECT sum(k) FROM vf_cut;
SELECT id FROM vf_cut LIMIT 2;
SELECT DISTINCT ON (id) id FROM vf_cut;
SELECT heap_force_kill('vf_cut', ARRAY['(0,2)']::tid[]);
SELECT id FROM vf_cut;
:status
SELECT sum(k) FROM vf_cut;
:checks
-- Which two of three there are is left open.
SELECT id FROM vf_cut LIMIT 2;
:status
:checks
-- The entries are gone, and the next ones are right.
SELECT id FROM vf_cut;
:status
SELECT id FROM vf_cut;
:status
SELECT sum(k) FROM vf_cut;
:status
:checks
-- A query that is not compared goes on showing what the cache holds, and so does every query at a rate of 0.
SELECT DISTINCT ON (id) id FROM vf_cut;
SELECT heap_force_kill('vf_cut', ARRAY['(0,3)']::tid[]);
SET pg_arrow_cache.verify_sample_rate = 0;
SELECT id FROM vf_cut;
SET pg_arrow_cache.verify_sample_rate = 1;
SELECT id FROM vf_cut;
:checks

-- Between 0 and 1 by chance: of 200 hits at one half, some and not all.
SELECT id FROM vf_cut;
SET pg_arrow_cache.verify_sample_rate = 0.5;
SELECT arrow_cache.reset_stats();
\set ECHO none
\o /dev/null
SELECT 'SELECT id FROM vf_cut' FROM generate_series(1, 200)
\gexec
\o
\set ECHO all
SELECT hits, verify_checks BETWEEN 50 AND 150 AS about_half FROM arrow_cache.stats;

-- Only a superuser may switch it on, because others pay for it; the value must be a rate.
SET pg_arrow_cache.verify_sample_rate = 1.5;
SET pg_arrow_cache.verify_sample_rate = -1;
CREATE ROLE regress_cache_verifier;
SET ROLE regress_cache_verifier;
SET pg_arrow_cache.verify_sample_rate = 1;
RESET ROLE;
DROP ROLE regress_cache_verifier;

RESET pg_arrow_cache.verify_sample_rate;
DROP TABLE vf, vf_cut, vf_queries;
DROP TYPE vf_mood, vf_pair;
DROP DOMAIN vf_short;
DROP COLLATION vf_loose;
DROP EXTENSION pg_surgery;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
