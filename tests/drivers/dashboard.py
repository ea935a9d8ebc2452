"""The dashboard that every driver reads: panels over the demo's tables, written with relative dates.

`{1}` stands for the first bound parameter. What reads the clock stands in [[ ]], so that the same panel can be written with literal
dates instead.
"""

import re

# A page that binds another value each time: a miss.
ANOTHER_QUESTION = "another question"


class Panel:
    def __init__(self, name, sql, parameters=(), one_row=False, in_cursors=True, statements=1, refused=None):
        """`one_row`: the answer has one row at most, and the server can tell from the plan. `in_cursors`: it is also read by way of
        cursors and named portals. `statements`: how many it takes. `refused`: the reason by which it is never a hit, or
        ANOTHER_QUESTION."""
        self.name, self.sql, self.parameters = name, " ".join(sql.split()), list(parameters)
        self.one_row, self.in_cursors, self.statements, self.refused = one_row, in_cursors, statements, refused

    def read_by(self, mode):
        return (self.one_row or not mode.one_row) and (self.in_cursors or not mode.cursor)

    def answered(self, done):
        """Is what was counted of a run but the first as it should be?"""
        if self.refused is None:
            return done.hits == self.statements and done.misses == 0
        if self.refused == ANOTHER_QUESTION:
            return done.hits == 0 and done.misses == self.statements
        return done.hits == 0 and self.refused in done.reasons

    def text(self, placeholder, clock):
        """The statement in the words of a driver: `placeholder(n)` is its n-th parameter, `clock(expression)` is what stands
        in the place of an expression that reads the clock."""
        written = re.sub(r"\[\[(.*?)\]\]", lambda found: clock(found[1]), self.sql)
        return re.sub(r"\{(\d+)\}", lambda found: placeholder(int(found[1])), written)


PANELS = [
    Panel("revenue_by_month", """
        SELECT date_trunc('month', s.sold_at) AS month, count(*) AS orders, sum(s.quantity * s.unit_price) AS revenue
          FROM sales s
         WHERE s.sold_at >= [[date_trunc('month', now() - interval '12 months')]]
         GROUP BY 1 ORDER BY 1"""),
    Panel("last_seven_days", """
        SELECT s.date_id, s.channel, count(*) AS orders, avg(s.discount) AS discount
          FROM sales s
         WHERE s.date_id > [[CURRENT_DATE - 7]]
         GROUP BY s.date_id, s.channel ORDER BY s.date_id, s.channel"""),
    Panel("this_month", """
        SELECT count(*) AS orders, sum(s.quantity) AS units, max(s.sold_at) AS last_sale
          FROM sales s
         WHERE s.date_id >= [[date_trunc('month', CURRENT_DATE)::date]]""", one_row=True),
    Panel("previous_quarter", """
        SELECT p.category, sum(s.quantity * s.unit_price)::numeric(14, 2) AS revenue
          FROM sales s
          JOIN products p USING (product_id)
         WHERE s.sold_at >= [[date_trunc('quarter', now()) - interval '3 months']]
           AND s.sold_at < [[date_trunc('quarter', now())]]
         GROUP BY p.category ORDER BY p.category"""),
    Panel("top_customers", """
        SELECT c.customer_id, c.name, c.country, sum(s.quantity * s.unit_price) AS revenue
          FROM sales s
          JOIN customers c USING (customer_id)
         WHERE s.date_id BETWEEN [[CURRENT_DATE - 30]] AND [[CURRENT_DATE - 1]]
         GROUP BY c.customer_id ORDER BY revenue DESC, c.customer_id LIMIT 20"""),
    Panel("channel_by_week", """
        SELECT to_char(date_trunc('week', s.sold_at), 'IYYY-IW') AS week, count(DISTINCT s.store_id) AS stores
          FROM sales s
         WHERE s.channel = {1}
           AND s.sold_at >= [[date_trunc('week', now()) - interval '8 weeks']]
         GROUP BY 1 ORDER BY 1""", parameters=["web"]),
    # More rows than one fetch of 500 brings, so that readers of parts come back for more.
    Panel("products_of_the_year", """
        SELECT p.product_id, p.sku, p.brand, count(*) AS orders, min(s.sold_at) AS first_sale, max(s.sold_at) AS last_sale
          FROM sales s
          JOIN products p USING (product_id)
         WHERE s.sold_at >= [[date_trunc('month', now() - interval '12 months')]]
           AND p.product_id <= 1700
         GROUP BY p.product_id ORDER BY p.product_id"""),
    Panel("region_of_the_year", """
        SELECT st.region, count(*) AS orders, count(*) FILTER (WHERE d.weekend) AS at_weekends
          FROM sales s
          JOIN stores st USING (store_id)
          JOIN dates d USING (date_id)
         WHERE d.year = [[extract(year FROM CURRENT_DATE)]] AND st.region = {1}
         GROUP BY st.region""", parameters=["North"]),
    # The current row of a cursor over a plain scan could be updated (WHERE CURRENT OF), so it is served in read-only transactions alone.
    Panel("store_card", """
        SELECT st.name, st.city, st.floor_area, [[CURRENT_DATE - 1]] - st.opened_on AS days_open
          FROM stores st
         WHERE st.store_id = CAST(CAST({1} AS text) AS int)""", parameters=["17"], one_row=True, in_cursors=False),
    Panel("since_midnight", """
        SELECT count(*) AS orders, coalesce(sum(s.quantity * s.unit_price), 0) AS revenue
          FROM sales s
         WHERE s.sold_at >= [[CURRENT_DATE - 1]]""", one_row=True),
    Panel("best_day", """
        SELECT s.date_id, sum(s.quantity * s.unit_price) AS revenue
          FROM sales s
         WHERE s.date_id >= [[date_trunc('month', now())::date - 90]]
         GROUP BY s.date_id ORDER BY revenue DESC, s.date_id LIMIT 1""", one_row=True),
]

# What programs/read_django.py makes by itself. Django's Now() is STATEMENT_TIMESTAMP(), which moves while a cursor is read.
DJANGO_PANELS = [
    Panel("months, TruncMonth(Now())", "", in_cursors=False),
    Panel("months, TruncMonth(TransactionNow())", ""),
    Panel("days, TruncDate(Now())", "", in_cursors=False),
    Panel("days, TruncDate(TransactionNow())", ""),
    Panel("days, relative in Python", ""),
    Panel("weeks, relative in Python", ""),
    Panel("year, ExtractYear(TransactionNow())", ""),
    Panel("products, TruncMonth(TransactionNow())", ""),
]
