-- Aggregates over tables with partitions, combined of parts: the plans, every aggregate that can be combined, and what stands in the way of
-- the other queries. Each answer is asked for without the cache first.
\pset footer off
\pset format unaligned
\pset null '-'
SET timezone = 'UTC';
CREATE TABLE sale (at date, shop int, product text, i2 smallint, i4 int, i8 bigint, n numeric, n2 numeric(10, 2), b bool, f float8, c char(4), iv interval)
    PARTITION BY RANGE (at);
CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE sale_2 PARTITION OF sale FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
-- The same columns in other places.
CREATE TABLE sale_3 (iv interval, c char(4), f float8, b bool, gone int, n2 numeric(10, 2), n numeric, i8 bigint, i4 int, i2 smallint, product text, shop int, at date);
ALTER TABLE sale_3 DROP COLUMN gone;
ALTER TABLE sale ATTACH PARTITION sale_3 FOR VALUES FROM ('2024-03-01') TO ('2024-04-01');
CREATE TABLE shop (id int PRIMARY KEY, name text, country text);
INSERT INTO shop VALUES (1, 'one', 'x'), (2, 'two', 'x'), (3, 'three', 'y');
INSERT INTO sale VALUES
    ('2024-01-05', 1, 'a', 1, 1, 9223372036854775807, 1.0, 1.5, true, 1, 'c', '1 day'),
    ('2024-01-06', 1, 'b', 2, 2147483647, 9223372036854775807, 1.000, 2, true, 1, 'd', '1 day'),
    ('2024-02-05', 2, 'a', 32767, 2147483647, 1, 'NaN', NULL, false, 1, NULL, '1 day'),
    ('2024-02-06', NULL, 'a', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'c', '1 day'),
    ('2024-03-05', 3, NULL, -5, -7, -3, 0.25, 0.01, false, 1, 'e', '1 day'),
    ('2024-03-06', 3, 'a', 6, 12, 4, 'Infinity', 100, true, 1, 'c', '1 day');
CREATE TABLE other (at date, shop int) PARTITION BY LIST (shop);
CREATE TABLE other_1 PARTITION OF other DEFAULT;
ANALYZE sale, shop, other;
SET pg_arrow_cache.debug_force_fragments = on;

-- Plans. What is left out of FROM and WHERE is asked of the parts.
EXPLAIN (COSTS OFF) SELECT shop, sum(i4) FROM sale GROUP BY shop;
EXPLAIN (COSTS OFF) SELECT count(*) FROM sale;
EXPLAIN (COSTS OFF) SELECT product, avg(n2) FROM sale WHERE at >= '2024-02-01' AND shop > 1 GROUP BY product HAVING count(*) > 1 ORDER BY 2 LIMIT 3;
EXPLAIN (COSTS OFF) SELECT country, sum(i8) FROM sale JOIN shop ON id = shop WHERE name <> 'two' GROUP BY country;
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT shop, count(*) AS sales FROM sale GROUP BY shop) s LEFT JOIN shop ON id = shop;
EXPLAIN (COSTS OFF) WITH s AS MATERIALIZED (SELECT shop, count(*) AS sales FROM sale GROUP BY shop) SELECT max(sales) FROM s;
-- The parts of one question are stored, and those of another that asks for the same of each leaf.
SELECT shop, sum(i4) FROM sale WHERE at >= '2024-02-01' GROUP BY shop ORDER BY shop;
EXPLAIN (COSTS OFF) SELECT shop, sum(i4) FROM sale GROUP BY shop;
SELECT shop, sum(i4) FROM sale GROUP BY shop ORDER BY sum(i4);
EXPLAIN (COSTS OFF) SELECT sum(i4) FROM sale WHERE at > '2024-02-05';
UPDATE sale SET i4 = i4 WHERE at = '2024-02-05';
EXPLAIN (COSTS OFF) SELECT shop, sum(i4) FROM sale GROUP BY shop ORDER BY 2, 1;

-- Bounds in views, in sub-queries of FROM and in ON: what the definition of a leaf implies is left out of its part.
CREATE VIEW recent AS SELECT shop, i4, at AS day FROM sale WHERE at >= '2024-01-06';
CREATE VIEW recent_names AS SELECT r.day, r.i4, name FROM recent r JOIN shop ON id = shop AND r.day < '2024-04-01';
SELECT shop, sum(i4) FROM recent WHERE day < '2024-03-06' GROUP BY shop ORDER BY shop;
EXPLAIN (COSTS OFF) SELECT shop, sum(i4) FROM recent WHERE day < '2024-03-20' GROUP BY shop;
EXPLAIN (COSTS OFF) SELECT shop, sum(i4) FROM recent GROUP BY shop;
SELECT name, sum(i4) FROM recent_names WHERE day > '2024-02-05' GROUP BY name ORDER BY name;
EXPLAIN (COSTS OFF) SELECT name, sum(i4) FROM recent_names WHERE day > '2024-02-25' GROUP BY name;
SELECT sum(i4) FROM (SELECT * FROM sale WHERE at >= '2024-02-01') s;
EXPLAIN (COSTS OFF) SELECT sum(i4) FROM (SELECT * FROM sale WHERE at >= '2024-02-06') s;
SELECT sum(i4) FROM sale JOIN shop ON id = shop AND at < '2024-03-01';
EXPLAIN (COSTS OFF) SELECT sum(i4) FROM sale JOIN shop ON id = shop AND at < '2024-03-06';

-- Aggregates: values, and what they look like. Without parts, with them, and with stored ones.
CREATE VIEW questions AS SELECT * FROM (VALUES
    (1, 'count(*), count(i4), count(n), count(f)'),
    (2, 'sum(i2), sum(i4), sum(i8)'),
    (3, 'sum(n), sum(n2)'),
    (4, 'avg(i2), avg(i4), avg(i8)'),
    (5, 'avg(n), avg(n2)'),
    (6, 'min(i2), max(i4), min(i8), max(n2), min(at), max(product), min(c), max(f * 0 + 1)'),
    (7, 'bool_and(b), bool_or(b), every(b)'),
    (8, 'bit_and(i2), bit_or(i4), bit_xor(i8)'),
    (9, 'count(*) FILTER (WHERE b), sum(i4) FILTER (WHERE NOT b), avg(n2) FILTER (WHERE product = ''a'')'),
    (10, 'sum(i4) / nullif(count(*), 0), CASE WHEN count(*) > 1 THEN max(i4) END, coalesce(sum(n2), 0)')
    ) q (number, columns);
SELECT format('SET pg_arrow_cache.enabled = %s', enabled),
        format('SELECT %s AS key, %s FROM sale WHERE at < ''2024-03-06''%s', key, columns, rest)
    FROM questions, (VALUES (1, 'true', ''), (2, 'product', ' GROUP BY product ORDER BY product'), (3, 'false', ' AND shop = 99')) AS shapes (shape, key, rest),
        (VALUES ('off'), ('on')) AS _ (enabled) ORDER BY number, shape, enabled \gexec
-- Keys.
SELECT format('SET pg_arrow_cache.enabled = %s', enabled), format('SELECT %s AS key, count(*) FROM sale GROUP BY 1 ORDER BY 1', key)
    FROM (VALUES (1, 'n2'), (2, 'c'), (3, 'at'), (4, 'b'), (5, 'date_trunc(''month'', at)'), (6, 'extract(month FROM at)'),
            (7, 'coalesce(product, ''none'')'), (8, 'i4 % 2')) AS keys (number, key),
        (VALUES ('off'), ('on')) AS _ (enabled) ORDER BY number, enabled \gexec
-- A cast of a sum fails.
SELECT sum(i8)::bigint FROM sale;
SELECT product, sum(i4)::int FROM sale GROUP BY product;

-- What stands in the way.
CREATE VIEW barred WITH (security_barrier) AS SELECT at, shop FROM sale WHERE shop > 0;
\pset tuples_only on
SELECT regexp_replace(detail, '^.*; ', '') AS detail, query FROM (VALUES
    ('SELECT sum(i4) FROM sale'),
    ('SELECT sum(i4) FROM sale WHERE at > $1'),
    ('SELECT i4 FROM sale'),
    ('SELECT count(*) FROM shop'),
    ('SELECT count(*) FROM sale JOIN other USING (shop)'),
    ('SELECT count(*) FROM recent_names WHERE day < ''2024-03-01'''),
    ('SELECT count(*) FROM recent WHERE day IN (''2024-02-01'', ''2024-03-05'')'),
    ('SELECT count(*) FROM (SELECT * FROM sale WHERE at < ''2024-02-01'' OR at > ''2024-03-01'') s'),
    ('SELECT count(*) FROM sale LEFT JOIN shop ON id = shop AND at < ''2024-02-01'''),
    ('SELECT count(*) FROM sale JOIN (SELECT id FROM shop WHERE name <> ''two'') s ON s.id = shop AND at < ''2024-02-01'''),
    ('SELECT count(*) FROM barred WHERE at < ''2024-02-01'''),
    ('SELECT count(*) FROM barred WHERE at < timestamp ''2024-02-01 12:00'''),
    ('SELECT count(*) FROM sale JOIN generate_series(1, 3) g ON g = shop'),
    ('SELECT count(*) FROM sale JOIN (SELECT id FROM shop LIMIT 1) s ON s.id = shop'),
    ('SELECT count(*) FROM sale RIGHT JOIN shop ON id = shop'),
    ('SELECT count(*) FROM sale FULL JOIN shop ON id = shop'),
    ('SELECT shop, product, count(*) FROM sale GROUP BY ROLLUP (shop, product)'),
    ('SELECT shop, grouping(shop) FROM sale GROUP BY shop'),
    ('SELECT generate_series(1, 2), count(*) FROM sale'),
    ('SELECT n, count(*) FROM sale GROUP BY n'),
    ('SELECT f, count(*) FROM sale GROUP BY f'),
    ('SELECT iv, count(*) FROM sale GROUP BY iv'),
    ('SELECT sum(f) FROM sale'),
    ('SELECT string_agg(product, '','' ORDER BY product) FROM sale'),
    ('SELECT stddev(i4) FROM sale'),
    ('SELECT json_agg(i4) FROM sale'),
    ('SELECT max(n) FROM sale'),
    ('SELECT min(f) FROM sale'),
    ('SELECT count(DISTINCT shop) FROM sale'),
    ('SELECT sum(i4 ORDER BY i4) FROM sale'),
    ('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY i4) FROM sale'),
    ('SELECT count(*) FROM sale WHERE shop IN (SELECT id FROM shop)'),
    ('SELECT (SELECT max(id) FROM shop) + shop AS key, count(*) FROM sale GROUP BY 1'),
    ('SELECT count(sale) FROM sale'),
    ('SELECT shop, count(*) FROM sale WHERE shop IN (1, 2) AND 10 / shop > 1 GROUP BY shop'),
    ('SELECT shop, count(*) FROM sale GROUP BY shop HAVING max(i4) > 1 AND 10 / max(i4) > 1'),
    ('SELECT shop, sum(10 / i4) FROM sale GROUP BY shop ORDER BY shop LIMIT 1'),
    ('SELECT shop, sum(10 / i4) FROM sale GROUP BY shop ORDER BY sum(10 / i4) LIMIT 1'),
    ('SELECT * FROM (SELECT shop, sum(10 / i4) FROM sale GROUP BY shop) s WHERE shop = 1')
    ) questions (query), LATERAL arrow_cache.why(query);
\pset tuples_only off

-- Rights are those of the client's query: the columns of the table that it names, and no right to a leaf.
CREATE ROLE regress_cache_seller;
GRANT SELECT (shop, i4) ON sale TO regress_cache_seller;
GRANT SET ON PARAMETER pg_arrow_cache.debug_force_fragments TO regress_cache_seller;
SET ROLE regress_cache_seller;
SELECT shop, sum(i4) FROM sale GROUP BY shop ORDER BY shop;
SELECT sum(i8) FROM sale;
SELECT sum(i4) FROM sale_1;
SELECT sum(i4) FROM sale WHERE at > '2024-02-01';
RESET ROLE;
-- Policies of the table, by role, are part of the question; those of leaves are not asked through it.
ALTER TABLE sale ENABLE ROW LEVEL SECURITY;
ALTER TABLE sale_2 ENABLE ROW LEVEL SECURITY;
CREATE POLICY nobody ON sale_2 USING (false);
CREATE POLICY sellers ON sale TO regress_cache_seller USING (shop <> 1);
SET ROLE regress_cache_seller;
SELECT shop, sum(i4) FROM sale GROUP BY shop ORDER BY shop;
EXPLAIN (COSTS OFF) SELECT sum(i4), shop FROM sale GROUP BY shop;
RESET ROLE;
CREATE POLICY by_name ON sale TO regress_cache_seller USING (product = CURRENT_USER OR shop = (SELECT 1));
SET ROLE regress_cache_seller;
SELECT shop, sum(i4) FROM sale GROUP BY shop ORDER BY shop;
SELECT regexp_replace(detail, '^.*; ', '') AS detail FROM arrow_cache.why('SELECT sum(i4), shop FROM sale GROUP BY shop');
RESET ROLE;
SELECT shop, sum(i4) FROM sale GROUP BY shop ORDER BY shop;
REVOKE SELECT (i4) ON sale FROM regress_cache_seller;
SET ROLE regress_cache_seller;
SELECT shop, sum(i4) FROM sale GROUP BY shop ORDER BY shop;
RESET ROLE;
REVOKE ALL ON PARAMETER pg_arrow_cache.debug_force_fragments FROM regress_cache_seller;
DROP VIEW questions, recent_names, recent, barred;
DROP TABLE sale, shop, other;
DROP ROLE regress_cache_seller;
