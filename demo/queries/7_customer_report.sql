-- A wide report: every customer's history, 50 000 rows of 20 columns.
SELECT c.customer_id, c.name, c.email, c.segment, c.country, c.customer_since, c.credit_limit,
       count(*) AS orders,
       sum(s.quantity) AS units,
       sum(s.quantity * s.unit_price)::numeric(14, 2) AS gross,
       sum(s.quantity * s.unit_price * (1 - s.discount))::numeric(14, 2) AS net,
       max(s.quantity * s.unit_price)::numeric(14, 2) AS largest_order,
       avg(s.discount)::numeric(6, 4) AS average_discount,
       count(DISTINCT s.store_id) AS stores,
       count(DISTINCT s.product_id) AS products,
       count(*) FILTER (WHERE s.channel = 'web') AS web_orders,
       count(*) FILTER (WHERE s.channel = 'app') AS app_orders,
       min(s.date_id) AS first_day,
       max(s.date_id) AS last_day,
       max(s.sold_at) AS last_sale
  FROM sales s
  JOIN customers c USING (customer_id)
 GROUP BY c.customer_id
 ORDER BY c.customer_id
