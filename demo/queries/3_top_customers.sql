-- The hundred customers who bought most in 2024.
SELECT c.customer_id, c.name, c.segment, c.country,
       count(*) AS orders,
       sum(s.quantity * s.unit_price * (1 - s.discount))::numeric(14, 2) AS revenue
  FROM sales s
  JOIN customers c USING (customer_id)
 WHERE s.date_id BETWEEN date '2024-01-01' AND date '2024-12-31'
 GROUP BY c.customer_id
 ORDER BY revenue DESC, c.customer_id
 LIMIT 100
