"""Pages of Ibis: expressions over tables of PostgreSQL, read as tables of Arrow and frames of pandas."""

import datetime
import os
import sys

import ibis
from ibis import _

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import talk  # noqa: E402


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def pages(connection):
    """Name → (expression, …)."""
    stores, products, customers, sales = map(connection.table, ("stores", "products", "customers", "sales"))
    of_germany = customers.filter(customers.country == "DE")
    by_channel = sales.group_by("channel").agg(orders=_.count(), units=_.quantity.sum()).order_by("channel")
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
    by_month = sales.group_by(month=sales.sold_at.truncate("M")).agg(orders=_.count()).order_by("month")
    of_products = sales.filter(sales.sale_id <= 10).join(products, "product_id").select("sale_id", "name").order_by("sale_id")
    ten_years = ibis.interval(days=3650)
    return {
        "list": lambda: [products.filter(products.category == "Books").order_by("product_id").limit(20)],
        "detail": lambda: [stores.filter(stores.store_id == 17)],
        "aggregate": lambda: [by_channel],
        "page with count": lambda: [of_germany.count().as_table(), of_germany.order_by("customer_id").limit(20, offset=40)],
        "related rows": lambda: [of_products],
        "since midnight": lambda: [sales.filter(sales.sold_at >= midnight).agg(orders=_.count(), last=_.sold_at.max())],
        "truncate": lambda: [by_month],
        "ibis.today()": lambda: [sales.filter(sales.sold_at < ibis.today() - ibis.interval(days=30)).agg(orders=_.count())],
        "now() in WHERE": lambda: [sales.filter(sales.sold_at < ibis.now() - ten_years).agg(orders=_.count())],
        "the time of the application": lambda: [sales.filter(sales.sold_at < now() - datetime.timedelta(days=3650)).agg(orders=_.count())],
        "a random order": lambda: [stores.filter(stores.store_id == 17).order_by(ibis.random())],
    }


class Reader:
    def __init__(self, mode, host, port, database, user, password):
        self.mode = mode
        self.connection = ibis.postgres.connect(host=host, port=int(port), database=database, user=user, password=password,
                                                # Rows come by a cursor, which is served if its row cannot be updated.
                                                options="-c default_transaction_read_only=on")
        self.pages = pages(self.connection)

    def read(self, name, _):
        """The rows of all expressions of a page, whatever their columns."""
        for expression in self.pages[name]():
            if self.mode == "to_pandas":
                yield from expression.to_pandas().itertuples(index=False)
            else:
                yield from (row.values() for row in expression.to_pyarrow().to_pylist())

    def close(self):
        self.connection.disconnect()


talk.serve(Reader)
