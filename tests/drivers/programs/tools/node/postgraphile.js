// Pages of PostGraphile 5: queries of GraphQL, which it plans and sends as SQL, without its HTTP server.
'use strict';

process.env.GRAPHILE_ENV = 'production';

const { installed, servePages, midnight, tenYearsAgo } = require('../../node/talk');
const { postgraphile } = installed('postgraphile');
const { PostGraphileAmberPreset } = installed('postgraphile/presets/amber');
const { makePgService } = installed('postgraphile/adaptors/pg');
const { grafast } = installed('postgraphile/grafast');

servePages(async ({ url }) => {
  const instance = postgraphile({ extends: [PostGraphileAmberPreset], pgServices: [makePgService({ connectionString: url, schemas: ['public'] })] });
  const { schema, resolvedPreset } = await instance.getSchemaResult();
  const ask = async (source, variableValues) => {
    const { data, errors } = await grafast({ schema, resolvedPreset, requestContext: {}, source, variableValues });
    if (errors) throw new Error(errors.map((error) => error.message).join('; '));
    return data;
  };
  const pages = {
    list: () => ask('{ allProducts(condition: {category: "Books"}, orderBy: PRODUCT_ID_ASC, first: 20) { nodes { productId name brand } } }'),
    detail: () => ask('query ($id: Int!) { storeByStoreId(storeId: $id) { name city region } }', { id: 17 }),
    'page with count': () => ask(`{ allCustomers(condition: {country: "DE"}, orderBy: CUSTOMER_ID_ASC, first: 20, offset: 40) {
      totalCount pageInfo { hasNextPage } nodes { customerId name } } }`),
    'two lists': () => ask('{ allStores(first: 5) { nodes { name } } allProducts(first: 5) { nodes { name } } }'),
    'by a time': () => ask('query ($at: Datetime) { allSales(condition: {soldAt: $at}) { totalCount } }', { at: midnight().toISOString() }),
    'the time of the application': () => ask('query ($at: Datetime) { allSales(condition: {soldAt: $at}) { totalCount } }', { at: tenYearsAgo().toISOString() }),
  };
  return { pages, close: () => instance.release() };
});
