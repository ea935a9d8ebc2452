-- Margin of each brand: 500 rows.
SELECT p.brand,
       count(*) AS orders,
       sum(s.quantity) AS units,
       sum(s.quantity * s.unit_price)::numeric(14, 2) AS gross,
       sum(s.quantity * s.unit_price * (1 - s.discount))::numeric(14, 2) AS net,
       sum(s.quantity * (s.unit_price * (1 - s.discount) - p.unit_cost))::numeric(14, 2) AS margin
  FROM sales s
  JOIN products p USING (product_id)
 GROUP BY p.brand
 ORDER BY margin DESC, p.brand
