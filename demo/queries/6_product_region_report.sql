-- A wide report: every product in every region, 10 000 rows of 20 columns.
SELECT p.product_id, p.sku, p.name, p.brand, p.category, st.region, p.list_price, p.unit_cost,
       count(*) AS orders,
       sum(s.quantity) AS units,
       min(s.unit_price) AS lowest_price,
       max(s.unit_price) AS highest_price,
       avg(s.unit_price)::numeric(10, 2) AS average_price,
       sum(s.quantity * s.unit_price)::numeric(14, 2) AS gross,
       sum(s.quantity * s.unit_price * s.discount)::numeric(14, 2) AS discounts,
       sum(s.quantity * p.unit_cost)::numeric(14, 2) AS cost,
       count(*) FILTER (WHERE s.channel = 'web') AS web_orders,
       count(*) FILTER (WHERE s.channel = 'shop') AS shop_orders,
       min(s.sold_at) AS first_sale,
       max(s.sold_at) AS last_sale
  FROM sales s
  JOIN products p USING (product_id)
  JOIN stores st USING (store_id)
 GROUP BY p.product_id, st.region
 ORDER BY p.product_id, st.region
