// Reads through node-postgres: plain, named statements, pg-cursor.
'use strict';

const { installed, serve } = require('./talk');
const { Client } = installed('pg');
const Cursor = installed('pg-cursor');

const PART = 500;
let mode;
let client;

// The texts of the server: what JavaScript makes of dates and numbers is not what is compared.
const asText = { getTypeParser: () => (value) => value };

async function open([wanted, host, port, database, user, password]) {
  mode = wanted;
  client = new Client({ host, port: Number(port), database, user, password, types: asText });
  await client.connect();
}

async function read([sql, ...parameters]) {
  if (mode === 'pg-cursor') return inParts(sql, parameters);
  const name = mode === 'named statement' ? { name: 'panel ' + hash(sql) } : {};
  const answer = await client.query({ text: sql, values: parameters, rowMode: 'array', ...name });
  return answer.rows;
}

// Names are cut at 63 bytes, so the text itself cannot be one.
const hash = (text) => require('crypto').createHash('sha256').update(text).digest('hex').slice(0, 32);

async function inParts(sql, parameters) {
  const rows = [];
  await client.query('BEGIN');
  const cursor = client.query(new Cursor(sql, parameters, { rowMode: 'array', types: asText }));
  for (let part = await cursor.read(PART); part.length > 0; part = await cursor.read(PART)) rows.push(...part);
  await cursor.close();
  await client.query('COMMIT');
  return rows;
}

serve({ open, read, close: () => client.end() });
