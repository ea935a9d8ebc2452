-- The hundred customers who bought most since the beginning of the month a year ago.
SELECT c.customer_id, c.name, c.segment, c.country,
       count(*) AS orders,
       sum(s.quantity * s.unit_price * (1 - s.discount))::numeric(14, 2) AS revenue
  FROM sales s
  JOIN customers c USING (customer_id)
 WHERE s.sold_at >= date_trunc('month', now() - interval '12 months')
 GROUP BY c.customer_id
 ORDER BY revenue DESC, c.customer_id
 LIMIT 100
