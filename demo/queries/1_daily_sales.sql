-- Sales per day: one row for each of the five years' days.
SELECT s.date_id,
       count(*) AS orders,
       sum(s.quantity) AS units,
       sum(s.quantity * s.unit_price * (1 - s.discount))::numeric(14, 2) AS revenue,
       count(DISTINCT s.store_id) AS stores,
       min(s.sold_at) AS first_sale,
       max(s.sold_at) AS last_sale
  FROM sales s
 GROUP BY s.date_id
 ORDER BY s.date_id
