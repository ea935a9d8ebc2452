// Pages of Drizzle over node-postgres.
'use strict';

const { installed, servePages, midnight, tenYearsAgo } = require('../../node/talk');
const { drizzle } = installed('drizzle-orm/node-postgres');
const { bigint, integer, pgTable, text, timestamp } = installed('drizzle-orm/pg-core');
const { asc, count, eq, gte, lt, lte, relations, sql, sum } = installed('drizzle-orm');

const stores = pgTable('stores', { id: integer('store_id').primaryKey(), name: text(), city: text(), region: text() });
const products = pgTable('products', { id: integer('product_id').primaryKey(), name: text(), brand: text(), category: text() });
const customers = pgTable('customers', { id: integer('customer_id').primaryKey(), name: text(), country: text() });
const sales = pgTable('sales', {
  id: bigint('sale_id', { mode: 'number' }).primaryKey(), productId: integer('product_id'), soldAt: timestamp('sold_at', { withTimezone: true }),
  quantity: integer(), channel: text(),
});
const productsRelations = relations(products, ({ many }) => ({ sales: many(sales) }));
const salesRelations = relations(sales, ({ one }) => ({ product: one(products, { fields: [sales.productId], references: [products.id] }) }));

servePages(async ({ url }) => {
  const db = drizzle(url, { schema: { stores, products, customers, sales, productsRelations, salesRelations } });
  const germans = eq(customers.country, 'DE');
  const store = () => db.select().from(stores).where(eq(stores.id, 17));
  const pages = {
    list: () => db.select().from(products).where(eq(products.category, 'Books')).orderBy(products.id).limit(20),
    detail: () => db.query.stores.findFirst({ where: eq(stores.id, 17) }),
    aggregate: () => db.select({ channel: sales.channel, orders: count(), units: sum(sales.quantity) }).from(sales).groupBy(sales.channel).orderBy(sales.channel),
    'page with count': async () => [await db.$count(customers, germans), ...(await db.select().from(customers).where(germans).orderBy(customers.id).limit(20).offset(40))],
    'related rows': () => db.query.sales.findMany({ where: lte(sales.id, 10), orderBy: asc(sales.id), with: { product: true } }),
    'since midnight': () => db.select({ orders: count() }).from(sales).where(gte(sales.soldAt, midnight())),
    transaction: () => db.transaction((transaction) => transaction.select({ number: count() }).from(stores)),
    'a prepared statement': () => db.select().from(stores).where(eq(stores.id, sql.placeholder('id'))).prepare('one_store').execute({ id: 17 }),
    'the time of the application': () => db.select({ orders: count() }).from(sales).where(lt(sales.soldAt, tenYearsAgo())),
    'a row lock': () => db.transaction((transaction) => transaction.select().from(stores).where(eq(stores.id, 17)).for('update')),
    'a random order': () => store().orderBy(sql`random()`),
  };
  return { pages, close: () => db.$client.end() };
});
