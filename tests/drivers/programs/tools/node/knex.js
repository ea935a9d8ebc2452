// Pages of Knex.
'use strict';

const { installed, servePages, midnight, tenYearsAgo } = require('../../node/talk');

servePages(async ({ url }) => {
  const knex = installed('knex')({ client: 'pg', connection: url });
  const store = () => knex('stores').where({ store_id: 17 });
  const germans = () => knex('customers').where({ country: 'DE' });
  const pages = {
    list: () => knex('products').where({ category: 'Books' }).orderBy('product_id').limit(20),
    detail: () => store().first(),
    aggregate: () => knex('sales').select('channel').count('* as orders').sum('quantity as units').groupBy('channel').orderBy('channel'),
    'page with count': async () => [await germans().count().first(), ...(await germans().orderBy('customer_id').limit(20).offset(40))],
    'related rows': () => knex('sales').join('products', 'products.product_id', 'sales.product_id').where('sale_id', '<=', 10).orderBy('sale_id'),
    'since midnight': () => knex('sales').where('sold_at', '>=', midnight()).count(),
    transaction: () => knex.transaction((transaction) => transaction('stores').count()),
    'raw(CURRENT_DATE)': () => knex('sales').where('sold_at', '<', knex.raw('CURRENT_DATE - 30')).count(),
    'now() in WHERE': () => knex('sales').where('sold_at', '<', knex.raw("now() - interval '3650 days'")).count(),
    'the time of the application': () => knex('sales').where('sold_at', '<', tenYearsAgo()).count(),
    'a row lock': () => knex.transaction((transaction) => transaction('stores').where({ store_id: 17 }).forUpdate()),
    'a random order': () => store().orderByRaw('random()'),
  };
  return { pages, close: () => knex.destroy() };
});
