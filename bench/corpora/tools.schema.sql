-- A shop, for the statements of tools.queries.sql.
CREATE TABLE customers (id int PRIMARY KEY, tenant int NOT NULL, name varchar(80) NOT NULL, email text, city varchar(40), joined timestamptz NOT NULL, active bool NOT NULL);
INSERT INTO customers SELECT g, g % 7, 'customer ' || g, 'c' || g || '@example.org', 'city ' || g % 11, timestamptz '2026-01-01' + g * interval '3 hours', g % 5 > 0
  FROM generate_series(1, 1000) g;
CREATE TABLE products (id int PRIMARY KEY, title varchar(80) NOT NULL, price numeric(10, 2) NOT NULL, tags text[] NOT NULL, details jsonb NOT NULL);
INSERT INTO products SELECT g, 'product ' || g, g % 90 + 0.95, ARRAY['t' || g % 5, 't' || g % 3], jsonb_build_object('colour', g % 4, 'since', '2026-02-01')
  FROM generate_series(1, 200) g;
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, status varchar(12) NOT NULL, created_at timestamptz NOT NULL,
  shipped_at timestamptz, during tstzrange NOT NULL, total numeric(12, 2) NOT NULL);
INSERT INTO orders SELECT g, 1 + g % 1000, (ARRAY['new', 'paid', 'shipped'])[1 + g % 3], now() - g * interval '11 minutes',
  CASE WHEN g % 3 = 2 THEN now() - g * interval '9 minutes' END, tstzrange(now() - g * interval '11 minutes', now() - g * interval '9 minutes'), g % 500
  FROM generate_series(1, 20000) g;
CREATE INDEX ON orders (created_at);
CREATE TABLE items (order_id bigint NOT NULL REFERENCES orders, product_id int NOT NULL REFERENCES products, quantity int NOT NULL);
INSERT INTO items SELECT 1 + g % 20000, 1 + g % 200, 1 + g % 4 FROM generate_series(1, 40000) g;
CREATE VIEW orders_with_age AS SELECT *, now() - created_at AS age, random() < 2 AS sampled FROM orders;
CREATE VIEW orders_since AS SELECT *, extract(epoch FROM now() - created_at) AS seconds FROM orders;
CREATE FUNCTION search_products(wanted text) RETURNS SETOF products STABLE LANGUAGE sql AS $$ SELECT * FROM products WHERE title LIKE '%' || wanted || '%' $$;
CREATE FUNCTION orders_of(wanted int) RETURNS TABLE (id bigint, total numeric) STABLE LANGUAGE sql AS $$ SELECT o.id, o.total FROM orders o WHERE o.customer_id = wanted $$;
CREATE FUNCTION full_name(c customers) RETURNS text STABLE LANGUAGE sql AS $$ SELECT c.name || ' of ' || c.city $$;
ANALYZE;
