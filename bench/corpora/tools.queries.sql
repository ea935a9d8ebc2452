-- source: written for this bench, in the forms in which tools send their statements: Superset's virtual datasets, Cube's rolling windows, jOOQ and MyBatis with setString, SQLAlchemy 2, Hibernate, Django's admin, Prisma, PostgREST, PostGraphile, Zabbix, Metabase, Grafana
-- kind: tools

-- jOOQ, MyBatis and SQLAlchemy 2 bind strings as varchar.
SELECT count(*) FROM orders WHERE created_at >= '2026-02-01'::varchar::timestamptz;
SELECT count(*) FROM orders WHERE created_at >= cast('2026-02-01'::varchar AS timestamp);
SELECT count(*) FROM orders WHERE created_at >= now() - '90 days'::varchar::interval;
SELECT count(*) FROM orders WHERE created_at >= now() - ('90'::varchar || ' days')::interval;
SELECT count(*) FROM orders WHERE created_at >= date_trunc('day'::varchar, now());
SELECT count(*) FROM orders WHERE created_at >= date_trunc('day', now() AT TIME ZONE 'Europe/Berlin'::varchar) AT TIME ZONE 'Europe/Berlin'::varchar;
SELECT count(*) FROM orders WHERE to_char(created_at, 'YYYY-MM') = to_char(now(), 'YYYY-MM'::varchar);
SELECT count(*) FROM orders WHERE created_at::time >= cast('10:00'::varchar AS time);
SELECT count(*) FROM orders WHERE created_at >= cast('2026-02-01'::varchar AS date);
SELECT status, count(*) FROM orders WHERE status IN ('new'::varchar, 'paid'::varchar) GROUP BY status;
SELECT orders.id, orders.total FROM orders JOIN customers ON customers.id = orders.customer_id WHERE customers.city = $1::varchar ORDER BY orders.id LIMIT $2::integer;

-- Cube's time series for a rolling window.
SELECT s.date_from, sum(o.total) FROM (SELECT date_from::timestamp AS date_from, date_to::timestamp AS date_to
   FROM (VALUES ('2026-11-01T00:00:00.000', '2026-11-01T23:59:59.999'), ('2026-11-02T00:00:00.000', '2026-11-02T23:59:59.999')) AS dates (date_from, date_to)) AS s
 LEFT JOIN (SELECT date_trunc('day', created_at AT TIME ZONE 'UTC') AS d, sum(total) AS total FROM orders GROUP BY 1) AS o
   ON o.d > s.date_to - interval '7 day' AND o.d <= s.date_to GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM orders o, (VALUES ('2026-11-01'), ('2026-11-02')) v(d) WHERE o.created_at >= v.d::timestamp;
SELECT count(*) FROM orders o, unnest(ARRAY['2026-11-01', '2026-11-02']) d WHERE o.created_at >= d::timestamptz;
WITH days AS (SELECT '2026-11-01' AS d UNION ALL SELECT '2026-11-02') SELECT d, count(*) FROM days JOIN orders ON created_at >= d::timestamptz GROUP BY d ORDER BY d;
SELECT date_trunc('day', (o.created_at::timestamptz AT TIME ZONE 'UTC')) AS day, count(*), sum(total) FROM orders AS o
 WHERE (o.created_at >= '2026-11-01T00:00:00.000Z'::timestamptz AND o.created_at <= '2026-11-07T23:59:59.999Z'::timestamptz) GROUP BY 1 ORDER BY 1 LIMIT 10000;

-- Superset: virtual datasets and views with columns that are not used.
SELECT status, sum(total) FROM (SELECT *, extract(epoch FROM now() - created_at) AS age FROM orders) AS virtual_table GROUP BY status ORDER BY 2 DESC LIMIT 1000;
SELECT status, sum(total) FROM (SELECT *, now() - created_at AS age FROM orders) AS virtual_table GROUP BY status LIMIT 1000;
SELECT status, count(*) FROM (SELECT *, now() AS asof FROM orders) AS virtual_table GROUP BY status LIMIT 1000;
SELECT count(*) FROM orders_since;
SELECT id, total FROM orders_since WHERE status = 'new' ORDER BY id LIMIT 5;
SELECT id, seconds FROM orders_since WHERE status = 'new' ORDER BY id LIMIT 5;
SELECT count(*) FROM orders_with_age;
WITH recent AS (SELECT *, now() AS asof FROM orders WHERE total > 100) SELECT status, count(*) FROM recent GROUP BY status;
SELECT DATE_TRUNC('day', created_at) AS __timestamp, sum(total) AS "SUM(total)" FROM orders WHERE created_at >= TO_TIMESTAMP('2026-11-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
 AND created_at < TO_TIMESTAMP('2026-11-08 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('day', created_at) ORDER BY "SUM(total)" DESC LIMIT 50000;

-- Relative times.
SELECT count(*) FROM orders WHERE age(now(), created_at) < interval '7 days';
SELECT count(*) FROM orders WHERE extract(epoch FROM now() - created_at) < 86400;
SELECT count(*) FROM orders WHERE created_at > now() - concat($1::integer, ' days')::interval;
SELECT count(*) FROM orders WHERE created_at > now() - format('%s days', 7)::interval;
SELECT count(*) FROM orders WHERE created_at > now() - make_interval(days => $1::integer);
SELECT count(*) FROM orders WHERE created_at > now() - make_interval(hours => 24);
SELECT count(*) FROM orders WHERE created_at > (SELECT now() - interval '1 day');
WITH w AS (SELECT now() - interval '1 day' AS since) SELECT count(*) FROM orders, w WHERE created_at > w.since;
WITH w AS (SELECT date_trunc('day', now()) AS since) SELECT count(*) FROM orders JOIN w ON created_at >= w.since;
SELECT status, max(created_at) FROM orders GROUP BY status HAVING max(created_at) > now() - interval '30 days' ORDER BY status;
SELECT count(*) FROM orders WHERE during && tstzrange(date_trunc('day', now()) - interval '7 days', date_trunc('day', now()));
SELECT d, count(o.id) FROM generate_series(date_trunc('day', now()) - interval '6 days', date_trunc('day', now()), interval '1 day') d
 LEFT JOIN orders o ON o.created_at >= d AND o.created_at < d + interval '1 day' GROUP BY d ORDER BY d;
SELECT count(*) FROM orders WHERE extract(hour FROM date_trunc('hour', now())) >= 0 AND total > 100;
SELECT count(*) FROM orders WHERE created_at BETWEEN now() - interval '1 day' AND now();
SELECT date_trunc('hour', created_at) AS time, count(*) FROM orders WHERE created_at > date_trunc('hour', now()) - interval '1 day' GROUP BY 1 ORDER BY 1;
SELECT now() AS time, status AS metric, count(*) FROM orders GROUP BY status ORDER BY status;
SELECT current_schema(), count(*) FROM orders;
SELECT count(*) FROM customers WHERE tenant = coalesce(nullif(current_setting('app.tenant', true), ''), '3')::int;
SELECT count(*) FROM customers WHERE tenant::text = current_setting($1::text, true);

-- PostgREST, PostGraphile and Supabase call functions in SQL.
SELECT * FROM search_products('7') ORDER BY id LIMIT 20;
SELECT id, total FROM orders_of(17) ORDER BY id;
SELECT c.name, o.total FROM customers c CROSS JOIN LATERAL orders_of(c.id) o WHERE c.id < 10 ORDER BY 1, 2;
SELECT c.id, full_name(c) FROM customers c ORDER BY c.id LIMIT 10;
WITH pgrst_source AS (SELECT products.* FROM search_products('7') AS products LIMIT 20 OFFSET 0)
SELECT null::bigint AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, coalesce(json_agg(_postgrest_t), '[]') AS body FROM (SELECT * FROM pgrst_source) _postgrest_t;
WITH pgrst_source AS (SELECT orders.id, orders.total, row_to_json(customers_1.*) AS customer FROM orders
 LEFT JOIN LATERAL (SELECT customers.name, customers.city FROM customers WHERE customers.id = orders.customer_id) AS customers_1 ON true WHERE orders.status = 'paid' ORDER BY orders.id LIMIT 25)
SELECT coalesce(json_agg(t), '[]') FROM (SELECT * FROM pgrst_source) t;
SELECT to_json(json_build_object('id', o.id, 'items', (SELECT json_agg(json_build_object('product', i.product_id, 'n', i.quantity)) FROM items i WHERE i.order_id = o.id)))
 FROM orders o WHERE o.customer_id = 17 ORDER BY o.id;

-- Django, Hibernate, Prisma, Sequelize, TypeORM, Zabbix, Metabase.
SELECT "customers"."id", "customers"."name" FROM "customers" WHERE "customers"."active" ORDER BY "customers"."name" ASC LIMIT 100;
SELECT COUNT(*) AS "__count" FROM "orders" WHERE ("orders"."status" = 'paid' AND "orders"."created_at" >= '2026-11-01T00:00:00+00:00'::timestamptz);
SELECT DATE_TRUNC('month', "orders"."created_at" AT TIME ZONE 'UTC') AS "month", COUNT("orders"."id") AS "n" FROM "orders" GROUP BY 1 ORDER BY 1 ASC;
select o1_0.id, o1_0.total, c1_0.name from orders o1_0 join customers c1_0 on c1_0.id = o1_0.customer_id where o1_0.status = $1::varchar order by o1_0.id offset 1 rows fetch first 20 rows only;
SELECT "public"."orders"."id", "public"."orders"."total" FROM "public"."orders" WHERE ("public"."orders"."customer_id" IN (1,2,3,4,5) AND 1=1) ORDER BY "public"."orders"."id" ASC OFFSET 0;
SELECT COUNT(*) FROM (SELECT "public"."orders"."id" FROM "public"."orders" WHERE 1=1 OFFSET 0) AS "sub";
SELECT DISTINCT "t"."status" FROM "orders" "t" LEFT JOIN "customers" "c" ON "c"."id" = "t"."customer_id" WHERE "c"."city" ILIKE '%city%';
SELECT id, title, price FROM products WHERE tags @> ARRAY['t1']::text[] AND details ->> 'colour' = '2' ORDER BY price DESC, id LIMIT 12;
SELECT p.id, p.title, sum(i.quantity) AS sold FROM products p JOIN items i ON i.product_id = p.id GROUP BY p.id ORDER BY sold DESC, p.id LIMIT 10;
SELECT CAST("created_at" AS date) AS "created_at", count(*) AS "count" FROM "orders" WHERE ("created_at" >= CAST((NOW() + (INTERVAL '-30 day')) AS date) AND "created_at" < CAST(NOW() AS date))
 GROUP BY CAST("created_at" AS date) ORDER BY CAST("created_at" AS date) ASC;
SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders GROUP BY status ORDER BY status;
