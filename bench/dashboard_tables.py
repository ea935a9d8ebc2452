"""The tables of a dashboard, the questions that it asks, and the materialized views that could answer them."""

import datetime
import random

LAST_MONTH = 2025 * 12 + 11   # December 2025, as months since the year 0
SHOPS, PRODUCTS = 200, 1_000
REGIONS, CATEGORIES = 8, 20

DIMENSIONS = f"""
    CREATE TABLE shops (id int PRIMARY KEY, region text NOT NULL, name text NOT NULL);
    INSERT INTO shops SELECT n, 'region ' || n % {REGIONS}, 'shop ' || n FROM generate_series(1, {SHOPS}) AS n;
    CREATE TABLE products (id int PRIMARY KEY, category text NOT NULL, name text NOT NULL);
    INSERT INTO products SELECT n, 'category ' || n % {CATEGORIES}, 'product ' || n FROM generate_series(1, {PRODUCTS}) AS n;
"""

COLUMNS = ("sold_at timestamptz NOT NULL, shop int NOT NULL, product int NOT NULL, quantity int NOT NULL, "
           "amount numeric(10, 2) NOT NULL, weight float8 NOT NULL")
VALUES = (f"1 + n * 7919 % {SHOPS}, 1 + n * 104729 % {PRODUCTS}, 1 + n % 9, (n * 31 % 100000) / 100.0, "
          "(n * 37 % 1000) / 7.0")


def first_day(month):
    return datetime.date(month // 12, month % 12 + 1, 1)


class Facts:
    """A table of sales with one leaf for each month, and all that is asked of it."""

    def __init__(self, leaves, rows_per_leaf):
        self.leaves, self.rows_per_leaf = leaves, rows_per_leaf
        self.table = f"sales_{leaves}"
        self.months = range(LAST_MONTH - leaves + 1, LAST_MONTH + 1)
        self.random = random.Random(leaves)

    @property
    def title(self):
        return f"{self.leaves} leaves, {self.leaves * self.rows_per_leaf / 1e6:g} M rows"

    def making(self):
        """SQL that makes the table, with rows all over each month."""
        yield f"CREATE TABLE {self.table} ({COLUMNS}) PARTITION BY RANGE (sold_at);"
        for month in self.months:
            start, end = first_day(month), first_day(month + 1)
            leaf = f"{self.table}_{start:%Y_%m}"
            yield f"CREATE TABLE {leaf} PARTITION OF {self.table} FOR VALUES FROM ('{start}') TO ('{end}');"
            yield (f"INSERT INTO {leaf} SELECT timestamptz '{start}' + interval '{(end - start).days} days' * "
                   f"((n - 0.5) / {self.rows_per_leaf}), {VALUES} FROM generate_series(1::bigint, {self.rows_per_leaf}) AS n;")
        yield f"CREATE INDEX ON {self.table} (sold_at);"

    def insert(self):
        """One row for the newest leaf, written through the root."""
        n = self.random.randrange(10**6)
        moment = first_day(LAST_MONTH) + datetime.timedelta(days=27)
        return (f"INSERT INTO {self.table} SELECT timestamptz '{moment}' + interval '1 ms' * n, {VALUES} "
                f"FROM (VALUES ({n}::bigint)) AS one (n)")

    def moment(self, months_ago):
        """A literal with milliseconds, which was not asked for before: some time in the middle of a month."""
        start = first_day(LAST_MONTH - months_ago)
        moment = datetime.datetime(start.year, start.month, 10 + self.random.randrange(10))
        moment += datetime.timedelta(milliseconds=self.random.randrange(86_400_000))
        return f"'{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z'"

    def totals(self):
        return f"SELECT count(*) AS sales, sum(amount), avg(quantity), max(sold_at) FROM {self.table}"

    def by_month(self):
        return (f"SELECT date_trunc('month', sold_at) AS month, count(*), sum(amount), avg(quantity) FROM {self.table} "
                "GROUP BY 1 ORDER BY 1")

    def by_shop(self):
        return (f"SELECT shop, count(*), sum(amount), avg(quantity), max(sold_at) FROM {self.table} "
                "GROUP BY shop ORDER BY shop")

    def by_region(self):
        return (f"SELECT region, count(*), sum(amount), avg(quantity) FROM {self.table} JOIN shops ON shops.id = shop "
                "GROUP BY region ORDER BY region")

    def by_category(self):
        return (f"SELECT category, sum(amount), sum(quantity) FROM {self.table} JOIN products ON products.id = product "
                "GROUP BY category ORDER BY 2 DESC")

    def window(self, months=22):
        """A moving window, as Grafana writes it: literals that change with each refresh."""
        return (f"SELECT shop, count(*), sum(amount) FROM {self.table} "
                f"WHERE sold_at BETWEEN {self.moment(months)} AND {self.moment(0)} GROUP BY shop ORDER BY shop")

    def closed(self, select="shop, count(*), sum(amount)", group="shop"):
        """All months but the newest."""
        return (f"SELECT {select} FROM {self.table} WHERE sold_at < '{first_day(LAST_MONTH)}' "
                f"GROUP BY {group} ORDER BY {group}")

    def floats(self):
        """A sum that depends on the order of its rows, and so cannot be combined of parts."""
        return f"SELECT shop, count(*), sum(weight) FROM {self.table} GROUP BY shop ORDER BY shop"

    def panels(self):
        """Ten panels of a dashboard, at one refresh: some have new literals each time."""
        table = self.table
        return [
            self.by_month(), self.by_shop(), self.by_region(), self.by_category(), self.window(),
            self.window(months=11), self.closed(),
            f"SELECT count(*), sum(amount), avg(amount), count(*) FILTER (WHERE quantity > 5) FROM {table}",
            f"SELECT product, sum(amount) AS total FROM {table} GROUP BY product ORDER BY total DESC, product LIMIT 10",
            f"SELECT date_trunc('day', sold_at) AS day, sum(amount), max(amount) FROM {table} "
            f"WHERE sold_at >= {self.moment(2)} GROUP BY day ORDER BY day",
        ]


def view_of(name, query):
    """A materialized view that answers a query, with the index that REFRESH … CONCURRENTLY needs: on its first column."""
    key = {"totals": "sales", "by_month": "month", "by_shop": "shop", "by_region": "region"}[name.partition("_of_")[0]]
    return f"CREATE MATERIALIZED VIEW {name} AS {query}; CREATE UNIQUE INDEX ON {name} ({key});"
