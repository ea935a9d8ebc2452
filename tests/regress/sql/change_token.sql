-- etag and version: tokens that change with what the answer rests on, with who asks and how, and that are NULL if nothing can be promised.
\pset footer off
\pset format unaligned
\pset tuples_only on
\pset null NULL
CREATE ROLE regress_token_reader;
CREATE TABLE sales (id int PRIMARY KEY, amount numeric, at timestamptz);
CREATE TABLE secret (id int);
CREATE TABLE readings (at date, v int) PARTITION BY RANGE (at);
CREATE TABLE readings_1 PARTITION OF readings FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE readings_2 PARTITION OF readings FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE VIEW totals AS SELECT sum(amount) AS total FROM sales;
INSERT INTO sales VALUES (1, 10, '2024-01-01 00:00+00'), (2, 20, '2024-02-01 00:00+00');
GRANT SELECT ON sales TO regress_token_reader;
\set q 'SELECT sum(amount) FROM sales'

-- Two hashes, and what the answer rests on. The same query written otherwise is the same; another one, or the same in other words, is not.
SELECT arrow_cache.etag(:'q') ~ '^[0-9a-f]{64}(\.[0-9a-f]+)+$';
SELECT arrow_cache.etag(:'q') AS token \gset
SELECT arrow_cache.etag(:'q') = :'token', arrow_cache.etag('/* c */ select  SUM(amount) from sales') = :'token', arrow_cache.etag('SELECT sum(amount + 0) FROM sales') = :'token';
-- Nothing is executed, stored or served.
SELECT arrow_cache.flush() >= 0;
SELECT arrow_cache.etag('SELECT id / 0 FROM sales') IS NULL;
SELECT count(*) FROM arrow_cache.entries;
-- A write changes it, and only to what is read. It never comes back.
UPDATE sales SET amount = 11 WHERE id = 1;
SELECT arrow_cache.etag(:'q') = :'token';
UPDATE sales SET amount = 10 WHERE id = 1;
SELECT arrow_cache.etag(:'q') = :'token';
SELECT arrow_cache.etag(:'q') AS token \gset
INSERT INTO secret VALUES (1);
INSERT INTO readings VALUES ('2024-01-05', 1);
SELECT arrow_cache.etag(:'q') = :'token';
-- A transaction that is rolled back has changed nothing. In a transaction that has changed the table, nothing is promised.
BEGIN;
DELETE FROM sales;
SELECT arrow_cache.etag(:'q'), arrow_cache.version('sales');
ROLLBACK;
SELECT arrow_cache.etag(:'q') = :'token';
-- Settings in the key, the encoding of the client, the role.
SET TimeZone = 'Asia/Tokyo';
SELECT arrow_cache.etag(:'q') = :'token';
RESET TimeZone;
SET search_path = public, pg_catalog;
SELECT arrow_cache.etag(:'q') = :'token';
RESET search_path;
SET client_encoding = 'LATIN1';
SELECT arrow_cache.etag(:'q') = :'token';
RESET client_encoding;
SELECT arrow_cache.etag(:'q') = :'token';
SET ROLE regress_token_reader;
SELECT arrow_cache.etag(:'q') IS NOT NULL, arrow_cache.etag(:'q') = :'token';
-- Who may not run the query gets the error of running it, and learns nothing.
SELECT arrow_cache.etag('SELECT count(*) FROM secret');
SELECT arrow_cache.version('secret');
SELECT arrow_cache.version('sales', 'secret');
RESET ROLE;
-- Parameters, by value and by type.
SELECT arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', 1) = arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', 1) AS same,
    arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', 1) = arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', 2) AS other_value,
    arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', 1) = arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', 1::bigint) AS other_type,
    arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', NULL::int) IS NOT NULL AS null_value,
    arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', VARIADIC ARRAY[1]) = arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', 1) AS as_array;
-- Partitions: those that are read. A write by way of the parent counts for all of them.
SELECT arrow_cache.etag('SELECT sum(v) FROM readings') AS year, arrow_cache.etag($$SELECT sum(v) FROM readings WHERE at < '2024-02-01'$$) AS month \gset
INSERT INTO readings_2 VALUES ('2024-02-05', 2);
SELECT arrow_cache.etag('SELECT sum(v) FROM readings') = :'year', arrow_cache.etag($$SELECT sum(v) FROM readings WHERE at < '2024-02-01'$$) = :'month';
-- Definitions: of the relation, of a role.
SELECT arrow_cache.etag(:'q') AS token \gset
ALTER TABLE sales ADD COLUMN note text;
SELECT arrow_cache.etag(:'q') = :'token' AS altered;
SELECT arrow_cache.etag(:'q') AS token \gset
ALTER ROLE regress_token_reader CREATEDB;
SELECT arrow_cache.etag(:'q') = :'token' AS role_altered;
-- What the cache would bypass.
SELECT arrow_cache.etag('SELECT max(now() - at) > $1 FROM sales', '1 day'::interval), arrow_cache.etag('SELECT random() FROM sales'),
    arrow_cache.etag('SELECT count(*) FROM pg_class'), arrow_cache.etag('SELECT 1'), arrow_cache.etag('/*+ no_arrow_cache */ SELECT sum(amount) FROM sales');
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT arrow_cache.etag(:'q'), arrow_cache.version('sales');
COMMIT;
SET pg_arrow_cache.enabled = off;
SELECT arrow_cache.etag(:'q'), arrow_cache.version('sales');
RESET pg_arrow_cache.enabled;
SELECT arrow_cache.set_policy('sales', 'never');
SELECT arrow_cache.etag(:'q');
SELECT arrow_cache.set_policy('sales', 'trusted');
SELECT arrow_cache.etag(:'q');
SELECT arrow_cache.set_policy('sales', 'default');
SELECT arrow_cache.etag(:'q') IS NOT NULL;
-- invalidate() changes tokens, too.
SELECT arrow_cache.etag(:'q') AS token \gset
SELECT arrow_cache.invalidate('sales') >= 0;
SELECT arrow_cache.etag(:'q') = :'token';
-- Errors: of the query, of what is no query, of missing values.
SELECT arrow_cache.etag('SELECT no_column FROM sales');
SELECT arrow_cache.etag('INSERT INTO sales VALUES (3)');
SELECT arrow_cache.etag('SELECT id FROM sales FOR UPDATE');
SELECT arrow_cache.etag('SELECT id FROM sales WHERE id = $1');
SELECT arrow_cache.etag(''), 1;
SELECT arrow_cache.etag(NULL), arrow_cache.etag(NULL, 1);

-- version: rows of relations. Those of views are what the views read.
SELECT arrow_cache.version('sales', 'readings') AS token, arrow_cache.version('totals') AS view, arrow_cache.version('readings') AS parted \gset
SELECT arrow_cache.version('sales', 'readings') = :'token', arrow_cache.version('totals') = :'view';
SELECT arrow_cache.version('readings', 'sales') = :'token';
SELECT arrow_cache.version(VARIADIC ARRAY['sales', 'readings']::regclass[]) = :'token';
UPDATE sales SET amount = 12 WHERE id = 1;
SELECT arrow_cache.version('sales', 'readings') = :'token', arrow_cache.version('totals') = :'view', arrow_cache.version('readings') = :'parted';
INSERT INTO readings_1 VALUES ('2024-01-06', 3);
SELECT arrow_cache.version('readings') = :'parted';
SELECT arrow_cache.version('pg_class'), arrow_cache.version('sales', 'pg_class'), arrow_cache.version(VARIADIC '{}'), arrow_cache.version(VARIADIC ARRAY['sales', NULL]::regclass[]),
    arrow_cache.version(VARIADIC NULL::regclass[]), arrow_cache.version(0::oid);
\set VERBOSITY sqlstate
SELECT arrow_cache.version('sales_pkey');
\set VERBOSITY default
SELECT arrow_cache.version('no_such_table');
-- One statement, one snapshot: the same token twice.
SELECT arrow_cache.etag(:'q') = arrow_cache.etag(:'q'), arrow_cache.version('sales') = arrow_cache.version('sales');
-- Once per row of a query, and with names that need quotes.
CREATE TABLE "Odd "". name" ("a b" int);
SELECT arrow_cache.version('"Odd "". name"') = arrow_cache.version('"Odd "". name"'), count(*) FROM sales;
SELECT id, arrow_cache.etag('SELECT amount FROM sales WHERE id = $1', id) IS NOT NULL FROM sales ORDER BY id;

DROP TABLE sales, secret, readings, "Odd "". name" CASCADE;
DROP ROLE regress_token_reader;
SELECT arrow_cache.flush() >= 0;
\pset tuples_only off
TABLE cache_leftovers;
