-- Every store within its region in the last 365 days: weekends, channels and revenue per square metre.
SELECT st.region, st.store_id, st.name, st.city,
       count(*) AS orders,
       count(*) FILTER (WHERE d.weekend) AS weekend_orders,
       count(*) FILTER (WHERE s.channel = 'web') AS web_orders,
       sum(s.quantity * s.unit_price)::numeric(14, 2) AS gross,
       (sum(s.quantity * s.unit_price) / st.floor_area)::numeric(14, 2) AS per_square_metre,
       rank() OVER (PARTITION BY st.region ORDER BY sum(s.quantity * s.unit_price) DESC) AS place
  FROM sales s
  JOIN stores st USING (store_id)
  JOIN dates d USING (date_id)
 WHERE s.date_id > CURRENT_DATE - 365
 GROUP BY st.store_id
 ORDER BY st.region, place, st.store_id
