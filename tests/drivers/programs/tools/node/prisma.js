// Pages of Prisma's client over its adapter for pg. prepare.sh has made the client of schema.prisma.
'use strict';

const { installed, servePages, midnight, tenYearsAgo } = require('../../node/talk');
const { PrismaClient } = installed('@prisma/client');
const { PrismaPg } = installed('@prisma/adapter-pg');

servePages(async ({ url }) => {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
  const ofGermany = { where: { country: 'DE' } };
  const firstSales = (strategy) => ({ where: { id: { lte: 10 } }, orderBy: { id: 'asc' }, include: { product: true }, relationLoadStrategy: strategy });
  const pages = {
    list: () => prisma.product.findMany({ where: { category: 'Books' }, orderBy: { id: 'asc' }, take: 20 }),
    detail: () => prisma.store.findUnique({ where: { id: 17 } }),
    aggregate: () => prisma.sale.groupBy({ by: ['channel'], _count: true, _sum: { quantity: true }, orderBy: { channel: 'asc' } }),
    'page with count': async () => {
      const [count, page] = await Promise.all([
        prisma.customer.count(ofGermany), prisma.customer.findMany({ ...ofGermany, orderBy: { id: 'asc' }, skip: 40, take: 20 })]);
      return [count, ...page];
    },
    'related rows': () => prisma.sale.findMany(firstSales('query')),
    'related rows, join': () => prisma.sale.findMany(firstSales('join')),
    '$transaction': () => prisma.$transaction([prisma.store.count(), prisma.product.count()]),
    'since midnight': () => prisma.sale.aggregate({ where: { soldAt: { gte: midnight() } }, _count: true, _max: { soldAt: true } }),
    $queryRaw: () => prisma.$queryRaw`SELECT date_trunc('month', sold_at) AS month, count(*) FROM sales WHERE channel = ${'web'} GROUP BY 1 ORDER BY 1`,
    'the time of the application': () => prisma.sale.count({ where: { soldAt: { lt: tenYearsAgo() } } }),
    'a row lock': () => prisma.$queryRaw`SELECT name FROM stores WHERE store_id = 17 FOR UPDATE`,
    'a random order': () => prisma.$queryRaw`SELECT name FROM stores WHERE store_id = 17 ORDER BY random()`,
  };
  return { pages, close: () => prisma.$disconnect() };
});
