-- Makes `sales` a table with a partition for each quarter, and takes the sales of today and later out of it.

ALTER TABLE sales RENAME TO generated_sales;

CREATE TABLE sales (LIKE generated_sales INCLUDING DEFAULTS) PARTITION BY RANGE (date_id);

SELECT format('CREATE TABLE %I PARTITION OF sales FOR VALUES FROM (%L) TO (%L)',
              to_char(quarter, '"sales_"YYYY"q"Q'), quarter::date, (quarter + interval '3 months')::date)
  FROM generate_series((SELECT date_trunc('quarter', min(date_id)::timestamp) FROM generated_sales),
                       date_trunc('quarter', CURRENT_DATE + interval '3 months'), interval '3 months') AS quarter
\gexec

INSERT INTO sales SELECT * FROM generated_sales WHERE sold_at < CURRENT_DATE AND date_id < CURRENT_DATE;
DROP TABLE generated_sales;
ALTER TABLE sales ADD PRIMARY KEY (sale_id, date_id);

VACUUM (ANALYZE) sales;
