// Reads through node-postgres: plain, named statements, pg-cursor. talk.py describes the lines that it reads and writes.
'use strict';

const path = require('path');
const readline = require('readline');

// The packages lie in the folder that prepare.sh made, and not beside this file.
const installed = (name) => require(path.join(process.argv[2], 'node_modules', name));
const { Client } = installed('pg');
const Cursor = installed('pg-cursor');

const PART = 500;
let mode;
let client;

const decoded = (word) => decodeURIComponent(word.replace(/\+/g, '%20'));
const field = (value) => (value === null ? '-' : '=' + encodeURIComponent(String(value)));

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

async function answer(line) {
  const [request, ...words] = line.split(' ').map(decoded);
  const lines = [];
  try {
    if (request === 'open') await open(words);
    else if (request === 'read') for (const row of await read(words)) lines.push(['row', ...row.map(field)].join(' '));
    else await client.end();
    lines.push('done');
  } catch (error) {
    lines.push('failed ' + encodeURIComponent(String(error)));
  }
  process.stdout.write(lines.join('\n') + '\n');
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) await answer(line);
})();
