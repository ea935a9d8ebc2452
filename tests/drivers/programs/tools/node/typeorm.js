// Pages of TypeORM: repositories and its query builder.
'use strict';

const { installed, servePages, midnight, tenYearsAgo } = require('../../node/talk');
const { DataSource, EntitySchema, LessThan, LessThanOrEqual, MoreThanOrEqual } = installed('typeorm');

const column = (type) => ({ type });
const key = { type: 'int', primary: true };
const texts = (...names) => Object.fromEntries(names.map((name) => [name, column('text')]));
const Store = new EntitySchema({ name: 'Store', tableName: 'stores', columns: { store_id: key, ...texts('name', 'city', 'region') } });
const Product = new EntitySchema({
  name: 'Product', tableName: 'products', columns: { product_id: key, ...texts('name', 'brand', 'category') },
  relations: { sales: { type: 'one-to-many', target: 'Sale', inverseSide: 'product' } },
});
const Customer = new EntitySchema({ name: 'Customer', tableName: 'customers', columns: { customer_id: key, ...texts('name', 'country') } });
const Sale = new EntitySchema({
  name: 'Sale', tableName: 'sales',
  columns: { sale_id: { type: 'bigint', primary: true }, sold_at: column('timestamptz'), quantity: column('int'), ...texts('channel') },
  relations: { product: { type: 'many-to-one', target: 'Product', inverseSide: 'sales', joinColumn: { name: 'product_id' } } },
});

servePages(async ({ url }) => {
  const source = await new DataSource({ type: 'postgres', url, entities: [Store, Product, Customer, Sale], installExtensions: false }).initialize();
  const [stores, products, customers, sales] = [Store, Product, Customer, Sale].map((entity) => source.getRepository(entity));
  const store = () => stores.createQueryBuilder('store').where({ store_id: 17 });
  const pages = {
    list: () => products.find({ where: { category: 'Books' }, order: { product_id: 'ASC' }, take: 20 }),
    detail: () => stores.findOneBy({ store_id: 17 }),
    aggregate: () => sales.createQueryBuilder('s').select('s.channel').addSelect('count(*)', 'orders').addSelect('sum(s.quantity)', 'units')
      .groupBy('s.channel').orderBy('s.channel').getRawMany(),
    'page with count': async () => {
      const [page, count] = await customers.findAndCount({ where: { country: 'DE' }, order: { customer_id: 'ASC' }, skip: 40, take: 20 });
      return [count, ...page];
    },
    'related rows': () => sales.find({ where: { sale_id: LessThanOrEqual(10) }, order: { sale_id: 'ASC' }, relations: { product: true } }),
    'related rows, a page': () => products.find({ where: { brand: 'Brand 007' }, order: { product_id: 'ASC', sales: { sale_id: 'ASC' } }, relations: { sales: true }, take: 3 }),
    'related rows, query': () => products.find({ where: { brand: 'Brand 007' }, order: { product_id: 'ASC' }, relations: { sales: true }, relationLoadStrategy: 'query' })
      .then((found) => found.map(({ product_id, sales }) => [product_id, sales.map((sale) => sale.sale_id).sort()])),
    'since midnight': () => sales.countBy({ sold_at: MoreThanOrEqual(midnight()) }),
    transaction: () => source.transaction((manager) => manager.count(Store)),
    'the time of the application': () => sales.countBy({ sold_at: LessThan(tenYearsAgo()) }),
    'a row lock': () => source.transaction((manager) => manager.findOne(Store, { where: { store_id: 17 }, lock: { mode: 'pessimistic_write' } })),
    'a random order': () => store().orderBy('random()').getMany(),
  };
  return { pages, close: () => source.destroy() };
});
