// How a reading program of Node talks with run.py: talk.py describes the lines.
'use strict';

const path = require('path');
const readline = require('readline');
const { createRequire } = require('module');

// The packages lie in the folder that prepare.sh made, and not beside the programs.
const installed = createRequire(path.resolve(process.argv[2], 'package.json'));

const decoded = (word) => decodeURIComponent(word.replace(/\+/g, '%20'));
const field = (value) => (value === null ? '-' : '=' + encodeURIComponent(String(value)));

// `reader` has open([mode, host, port, database, user, password]), read([what, ...parameters]), whose rows are arrays, and close().
async function serve(reader) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [request, ...words] = line.split(' ').map(decoded);
    const lines = [];
    try {
      if (request === 'open') await reader.open(words);
      else if (request === 'read') for (const row of await reader.read(words)) lines.push(['row', ...row.map(field)].join(' '));
      else await reader.close();
      lines.push('done');
    } catch (error) {
      lines.push('failed ' + encodeURIComponent(String(error)));
    }
    process.stdout.write(lines.join('\n') + '\n');
  }
}

// A program of a tool: `opened({host, port, database, user, password, url}, mode)` gives {pages, close}, and each page what the tool returns.
function servePages(opened) {
  let tool;
  serve({
    async open([mode, host, port, database, user, password]) {
      const url = `postgresql://${user}:${password}@${host}:${port}/${database}`;
      tool = await opened({ host, port: Number(port), database, user, password, url }, mode);
    },
    async read([name]) {
      return [].concat(await tool.pages[name]()).map((row) => [JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value))]);
    },
    close: () => tool.close(),
  });
}

const midnight = () => new Date(new Date().setUTCHours(0, 0, 0, 0));
// As an application computes it: another value each millisecond.
const tenYearsAgo = () => new Date(Date.now() - 10 * 365 * 86400e3);

module.exports = { installed, serve, servePages, midnight, tenYearsAgo };
