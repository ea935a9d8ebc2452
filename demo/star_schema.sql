-- The star schema of the demo: four dimensions and the fact table `sales` with :sales rows.
-- Every value is a hash of its row's number, so that each run, on each machine, builds the same data. Only the days differ: the
-- five years end today, for queries with relative dates.

SET work_mem = '128MB';
SET maintenance_work_mem = '256MB';
SET timezone = 'UTC';

-- A number in 0 .. n-1 that looks random, for row i in stream s.
CREATE FUNCTION pick(i bigint, s bigint, n bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (hashint8extended(i, s) & 9007199254740991) % n;

SELECT CURRENT_DATE - 1826 AS first_day
\gset

CREATE TABLE dates AS
SELECT day::date AS date_id,
       extract(year FROM day)::int AS year,
       extract(quarter FROM day)::int AS quarter,
       extract(month FROM day)::int AS month,
       to_char(day, 'YYYY-MM') AS month_name,
       extract(isodow FROM day)::int AS weekday,
       extract(isodow FROM day) IN (6, 7) AS weekend
  FROM generate_series(timestamp :'first_day', timestamp :'first_day' + interval '1826 days', interval '1 day') AS day;

CREATE TABLE stores AS
SELECT i::int AS store_id,
       'Store ' || lpad(i::text, 3, '0') AS name,
       (ARRAY['North', 'East', 'South', 'West'])[1 + i % 4] AS region,
       'City ' || lpad(pick(i, 11, 60)::text, 2, '0') AS city,
       date '2005-01-01' + pick(i, 12, 5000)::int AS opened_on,
       (150 + pick(i, 13, 2000))::numeric(8, 1) AS floor_area
  FROM generate_series(1, 200) AS i;

CREATE TABLE products AS
SELECT i::int AS product_id,
       'P-' || lpad(i::text, 5, '0') AS sku,
       'Product ' || substr(md5(i::text), 1, 12) AS name,
       'Brand ' || lpad((i % 500)::text, 3, '0') AS brand,
       (ARRAY['Garden', 'Kitchen', 'Books', 'Toys', 'Sports', 'Music', 'Office', 'Travel', 'Health', 'Tools'])[1 + i % 10] AS category,
       (3 + pick(i, 21, 24000) / 100.0)::numeric(10, 2) AS list_price,
       (2 + pick(i, 22, 12000) / 100.0)::numeric(10, 2) AS unit_cost
  FROM generate_series(1, 2500) AS i;

CREATE TABLE customers AS
SELECT i::int AS customer_id,
       'Customer ' || substr(md5('c' || i), 1, 10) AS name,
       'customer' || i || '@example.com' AS email,
       (ARRAY['Consumer', 'Business', 'Public', 'Partner'])[1 + pick(i, 31, 4)] AS segment,
       (ARRAY['DE', 'FR', 'IT', 'ES', 'PL', 'NL', 'SE', 'AT', 'PT', 'CZ'])[1 + pick(i, 32, 10)] AS country,
       date '2015-01-01' + pick(i, 33, 1800)::int AS customer_since,
       (pick(i, 34, 500000) / 100.0)::numeric(10, 2) AS credit_limit
  FROM generate_series(1, 50000) AS i;

CREATE TABLE sales AS
SELECT i AS sale_id,
       date :'first_day' + pick(i, 1, 1827)::int AS date_id,
       (1 + pick(i, 2, 50000))::int AS customer_id,
       (1 + pick(i, 3, 2500))::int AS product_id,
       (1 + pick(i, 4, 200))::int AS store_id,
       -- The time of day lies apart from the date, in the shops' opening hours.
       timestamptz :'first_day' + interval '8 hours' + make_interval(days => pick(i, 1, 1827)::int, secs => pick(i, 5, 43200)) AS sold_at,
       (1 + pick(i, 6, 9))::int AS quantity,
       (3 + pick(i, 7, 24000) / 100.0)::numeric(10, 2) AS unit_price,
       (pick(i, 8, 30) / 100.0)::numeric(4, 2) AS discount,
       (ARRAY['web', 'shop', 'phone', 'app', 'partner'])[1 + pick(i, 9, 5)] AS channel
  FROM generate_series(1::bigint, :sales) AS i;

ALTER TABLE dates ADD PRIMARY KEY (date_id);
ALTER TABLE stores ADD PRIMARY KEY (store_id);
ALTER TABLE products ADD PRIMARY KEY (product_id);
ALTER TABLE customers ADD PRIMARY KEY (customer_id);
ALTER TABLE sales ADD PRIMARY KEY (sale_id);
CREATE INDEX sales_date ON sales (date_id);

VACUUM (ANALYZE) dates, stores, products, customers, sales;
