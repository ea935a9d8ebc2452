"""The tables of an application with many tenants, what a page of a tenant asks, and what writers change."""

import bisect
import itertools
import random
from dataclasses import dataclass

TABLES = ("customers", "orders", "items", "documents", "products")
# Of all rows.
SHARES = {"customers": 0.08, "orders": 0.30, "items": 0.52, "documents": 0.10}
PRODUCTS = 1000
BATCH = 100         # rows, each of another tenant
ORDERS_ASKED = 4    # of a tenant, by id

READER = "app"

MAKING = """
    CREATE EXTENSION pg_arrow_cache;
    CREATE ROLE {reader} LOGIN;
    CREATE TABLE products AS SELECT g AS id, 'product ' || g AS name, 100 + g AS price FROM generate_series(1, {products}) AS g;
    CREATE TABLE customers AS SELECT g AS id, (g - 1) % {tenants} + 1 AS tenant_id, 'customer ' || g AS name, 0::bigint AS credit
        FROM generate_series(1, {customers}) AS g;
    CREATE TABLE orders AS SELECT g AS id, (g - 1) % {tenants} + 1 AS tenant_id,
            ((g - 1) % {tenants} + 1 + (g / {tenants}) * 7 % ({customers} / {tenants}) * {tenants})::int AS customer_id,
            (ARRAY['open', 'paid', 'sent', 'done', 'done', 'done', 'done', 'done', 'done', 'done'])[g / {tenants} % 10 + 1] AS status,
            (g * 7919::bigint % 100000) AS amount, timestamptz '2026-01-01' + g * interval '1 second' AS placed_at
        FROM generate_series(1, {orders}) AS g;
    CREATE TABLE items AS SELECT g AS id, ((g - 1) % {orders} + 1)::int AS order_id, ((g - 1) % {orders}) % {tenants} + 1 AS tenant_id,
            (g * 31 % {products} + 1)::int AS product_id, g % 9 + 1 AS quantity
        FROM generate_series(1, {items}) AS g;
    CREATE TABLE documents AS SELECT g AS id, (g - 1) % {tenants} + 1 AS tenant_id, g / {tenants} % 4 AS kind, (g % 1000)::bigint AS pages
        FROM generate_series(1, {documents}) AS g;
    ALTER TABLE products ADD PRIMARY KEY (id);
    {keys}
    CREATE INDEX ON items (order_id);
    ALTER TABLE documents ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON documents TO {reader} USING (tenant_id = current_setting('app.tenant')::int);
    GRANT SELECT ON {tables} TO {reader};
    VACUUM (FREEZE, ANALYZE);
"""
KEYS = """
    ALTER TABLE {table} ADD PRIMARY KEY (id);
    ALTER TABLE {table} ALTER id ADD GENERATED ALWAYS AS IDENTITY (START {next});
    CREATE INDEX ON {table} (tenant_id);
"""


@dataclass(frozen=True)
class Shop:
    """How large everything is."""

    rows: int
    tenants: int

    def count(self, table):
        return round(self.rows * SHARES[table])

    def making(self):
        counts = {table: self.count(table) for table in SHARES}
        keys = "".join(KEYS.format(table=table, next=count + 1) for table, count in counts.items())
        return MAKING.format(reader=READER, products=PRODUCTS, tenants=self.tenants, keys=keys, tables=", ".join(TABLES), **counts)


@dataclass(frozen=True)
class Statement:
    """One of a page. `values` makes its values of the tenant and of the number of one of the tenant's orders."""

    name: str
    text: str
    # {table: (the columns that it reads of rows of the tenant, which of these rows it reads)}
    reads: dict
    values: object = lambda tenant, _order: (tenant,)
    # Its first value chooses the rows by this column.
    by: str = "tenant_id"

    @property
    def tables(self):
        return tuple(self.reads)

    @property
    def layers(self):
        """Asks for one text for each of `LAYERS`, which tells whether anything of that has changed."""
        sums = [f"(SELECT sum(hashtext(t::text)::bigint) AS rows, sum(hashtext(ROW({columns})::text)::bigint) AS columns, "
                f"sum(hashtext(ROW({columns})::text)::bigint) FILTER (WHERE {condition}) AS chosen FROM {table} AS t WHERE {self.by} = $1) AS {table}"
                for table, (columns, condition) in self.reads.items() if table != "products"]
        texts = [f"concat_ws(' ', {', '.join(f'{table}.{layer}' for table in self.tables if table != 'products')})"
                 for layer in ("rows", "columns", "chosen")]
        return f"SELECT {', '.join(texts)} FROM {', '.join(sums)}"


# What has changed since an answer was stored that is right nevertheless: all but what stands in the same place of
# `layers` and behind it.
LAYERS = ("nothing of the tenant", "columns that it does not read", "rows that its other conditions leave out")
BEYOND = "rows that leave its answer as it is"

OPEN = "tenant_id = $1 AND status = 'open'"
PAGE = (
    Statement("orders by status, by tenant",
              "SELECT status, count(*), sum(amount) FROM orders WHERE tenant_id = $1 GROUP BY status ORDER BY status",
              {"orders": ("status, amount", "true")}),
    Statement("newest orders, by tenant",
              "SELECT id, status, amount, placed_at FROM orders WHERE tenant_id = $1 ORDER BY placed_at DESC, id LIMIT 10",
              {"orders": ("id, status, amount, placed_at", "true")}),
    Statement("customers, by tenant",
              "SELECT id, name, credit FROM customers WHERE tenant_id = $1 ORDER BY credit DESC, id",
              {"customers": ("id, name, credit", "true")}),
    Statement("items sold, by tenant",
              "SELECT count(*), sum(quantity), count(DISTINCT product_id) FROM items WHERE tenant_id = $1",
              {"items": ("quantity, product_id", "true")}),
    Statement("open orders and their customers",
              "SELECT o.id, o.amount, c.name, c.credit FROM orders AS o JOIN customers AS c ON c.id = o.customer_id "
              "WHERE o.tenant_id = $1 AND o.status = 'open' ORDER BY o.id",
              {"orders": ("id, amount, customer_id, status", "status = 'open'"),
               "customers": ("id, name, credit", f"id IN (SELECT customer_id FROM orders WHERE {OPEN})")}),
    Statement("open orders, items and products",
              "SELECT o.id, i.id, i.quantity, p.name, p.price FROM orders AS o JOIN items AS i ON i.order_id = o.id "
              "JOIN products AS p ON p.id = i.product_id WHERE o.tenant_id = $1 AND o.status = 'open' ORDER BY o.id, i.id",
              {"orders": ("id, status", "status = 'open'"),
               "items": ("id, order_id, product_id, quantity", f"order_id IN (SELECT id FROM orders WHERE {OPEN})"), "products": ("", "")}),
    Statement("one order, by id", "SELECT id, tenant_id, status, amount, placed_at FROM orders WHERE id = $1",
              {"orders": ("id, tenant_id, status, amount, placed_at", "true")}, lambda _tenant, order: (order,), by="id"),
    Statement("documents, by row security", "SELECT kind, count(*), sum(pages) FROM documents GROUP BY kind ORDER BY kind",
              {"documents": ("kind, pages", "true")}, lambda _tenant, _order: ()),
)

# Where what is asked does not name the tenant, the session does.
SET_TENANT = "SELECT set_config('app.tenant', $1, false)"


class Visitors:
    """Who comes next: tenants by Zipf's law with exponent 1, each rank another tenant."""

    def __init__(self, shop, seed):
        self.random = random.Random(seed)
        weights = [1 / rank for rank in range(1, shop.tenants + 1)]
        self.cumulated = list(itertools.accumulate(weights))
        self.shop = shop

    def next(self):
        """(the rank, the tenant, one of its orders)"""
        rank = bisect.bisect(self.cumulated, self.random.random() * self.cumulated[-1]) + 1
        rank = min(rank, self.shop.tenants)
        tenant = tenant_of_rank(rank, self.shop.tenants)
        return rank, tenant, tenant + self.shop.tenants * self.random.randrange(ORDERS_ASKED)


def tenant_of_rank(rank, tenants):
    # 7 shares no factor with the usual numbers of tenants, so each rank has a tenant of its own.
    return rank * 7 % tenants + 1


@dataclass(frozen=True)
class Change:
    """A transaction of writers: its statements with their values, the tables, and the tenant if the application knows it."""

    statements: tuple
    tables: tuple
    tenant: int | None


class Changes:
    """Transactions over all tenants alike. `batches` is the share of those that change rows of many."""

    def __init__(self, shop, seed, batches):
        self.shop, self.random, self.batches = shop, random.Random(seed), batches
        self.kinds = [(0.30, self.pay), (0.25, self.sell), (0.15, self.order), (0.15, self.credit), (0.146, self.document), (0.004, self.price)]

    def next(self):
        if self.random.random() < self.batches:
            return self.batch()
        (_, kind), = self.random.choices(self.kinds, [weight for weight, _ in self.kinds])
        return kind()

    def some(self, table):
        """The id of a row that was there from the start, and its tenant."""
        number = self.random.randrange(self.shop.count(table)) + 1
        return number, (number - 1) % self.shop.tenants + 1

    def pay(self):
        order, tenant = self.some("orders")
        return Change((("UPDATE orders SET status = 'paid', amount = amount + 1 WHERE id = %s", (order,)),), ("orders",), tenant)

    def sell(self):
        order, tenant = self.some("orders")
        product = self.random.randrange(PRODUCTS) + 1
        return Change((("INSERT INTO items (order_id, tenant_id, product_id, quantity) VALUES (%s, %s, %s, 1)", (order, tenant, product)),
                       ("UPDATE orders SET amount = amount + 10 WHERE id = %s", (order,))), ("items", "orders"), tenant)

    def order(self):
        customer, tenant = self.some("customers")
        return Change((("INSERT INTO orders (tenant_id, customer_id, status, amount, placed_at) VALUES (%s, %s, 'open', 5, now())",
                        (tenant, customer)),), ("orders",), tenant)

    def credit(self):
        customer, tenant = self.some("customers")
        return Change((("UPDATE customers SET credit = credit + 1 WHERE id = %s", (customer,)),), ("customers",), tenant)

    def document(self):
        document, tenant = self.some("documents")
        return Change((("UPDATE documents SET pages = pages + 1 WHERE id = %s", (document,)),), ("documents",), tenant)

    def price(self):
        return Change((("UPDATE products SET price = price + 1 WHERE id = %s", (self.random.randrange(PRODUCTS) + 1,)),), ("products",), None)

    def batch(self):
        first = self.random.randrange(self.shop.count("orders") - BATCH) + 1
        return Change((("UPDATE orders SET amount = amount + 1 WHERE id BETWEEN %s AND %s", (first, first + BATCH - 1)),), ("orders",), None)
