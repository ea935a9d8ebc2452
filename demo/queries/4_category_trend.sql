-- Each category's months beside the month before, the running year and the rank in the month.
WITH monthly AS (
    SELECT p.category, d.year, d.month_name,
           sum(s.quantity * s.unit_price * (1 - s.discount)) AS revenue
      FROM sales s
      JOIN products p USING (product_id)
      JOIN dates d USING (date_id)
     GROUP BY p.category, d.year, d.month_name
)
SELECT category, month_name,
       revenue::numeric(14, 2) AS revenue,
       (revenue - lag(revenue) OVER of_category)::numeric(14, 2) AS change,
       (sum(revenue) OVER (PARTITION BY category, year ORDER BY month_name))::numeric(14, 2) AS year_to_date,
       (avg(revenue) OVER (of_category ROWS 2 PRECEDING))::numeric(14, 2) AS three_month_average,
       rank() OVER (PARTITION BY month_name ORDER BY revenue DESC) AS place
  FROM monthly
WINDOW of_category AS (PARTITION BY category ORDER BY month_name)
 ORDER BY category, month_name
