// Pages of Sequelize.
'use strict';

const { installed, servePages, midnight, tenYearsAgo } = require('../../node/talk');
const { Sequelize, DataTypes, Op } = installed('sequelize');

servePages(async ({ url }) => {
  const sequelize = new Sequelize(url, { logging: false, define: { timestamps: false } });
  // Sequelize writes into what it is given.
  const key = () => ({ type: DataTypes.INTEGER, primaryKey: true });
  const texts = (...names) => Object.fromEntries(names.map((name) => [name, DataTypes.TEXT]));
  const Store = sequelize.define('Store', { store_id: key(), ...texts('name', 'city', 'region') }, { tableName: 'stores' });
  const Product = sequelize.define('Product', { product_id: key(), ...texts('name', 'brand', 'category') }, { tableName: 'products' });
  const Customer = sequelize.define('Customer', { customer_id: key(), ...texts('name', 'country') }, { tableName: 'customers' });
  const Sale = sequelize.define('Sale', {
    sale_id: { type: DataTypes.BIGINT, primaryKey: true }, sold_at: DataTypes.DATE, quantity: DataTypes.INTEGER, channel: DataTypes.TEXT,
  }, { tableName: 'sales' });
  Sale.belongsTo(Product, { foreignKey: 'product_id' });
  Product.hasMany(Sale, { foreignKey: 'product_id' });
  const { fn, col } = sequelize;
  const ofBrand = (how) => ({ where: { brand: 'Brand 007' }, order: [['product_id', 'ASC'], ...how.order], include: [how.include] });
  const pages = {
    list: () => Product.findAll({ where: { category: 'Books' }, order: [['product_id', 'ASC']], limit: 20 }),
    detail: () => Store.findByPk(17),
    aggregate: () => Sale.findAll({
      attributes: ['channel', [fn('count', '*'), 'orders'], [fn('sum', col('quantity')), 'units']], group: 'channel', order: ['channel'],
    }),
    'page with count': async () => {
      const { count, rows } = await Customer.findAndCountAll({ where: { country: 'DE' }, order: [['customer_id', 'ASC']], limit: 20, offset: 40 });
      return [count, ...rows];
    },
    'related rows': () => Product.findAll(ofBrand({ include: Sale, order: [[Sale, 'sale_id', 'ASC']] })),
    'related rows, separate': () => Product.findAll(ofBrand({ include: { model: Sale, separate: true, order: [['sale_id', 'ASC']] }, order: [] })),
    'since midnight': () => Sale.findAll({ attributes: [[fn('count', '*'), 'orders'], [fn('max', col('sold_at')), 'last']], where: { sold_at: { [Op.gte]: midnight() } } }),
    transaction: () => sequelize.transaction((transaction) => Store.count({ transaction })),
    'the time of the application': () => Sale.count({ where: { sold_at: { [Op.lt]: tenYearsAgo() } } }),
    'a row lock': () => sequelize.transaction((transaction) => Store.findByPk(17, { transaction, lock: true })),
    'a random order': () => Store.findAll({ where: { store_id: 17 }, order: sequelize.random() }),
  };
  return { pages, close: () => sequelize.close() };
});
