-- arrow_cache.schema, messages and fetch with each option: what the columns become, how rows are cut into messages and chunks, and
-- each error with its code. What the bytes contain is for the client tests.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset null '(null)'
\pset footer off
\pset format unaligned
SELECT arrow_cache.flush() >= 0 AS flushed;

CREATE TYPE export_mood AS ENUM ('sad', 'ok');
CREATE TYPE export_pair AS (n int, t numeric(10,2));
CREATE DOMAIN export_money AS numeric(12,2);
CREATE TABLE x (
    b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, n12 numeric(12,2), neg numeric(5,-2), fine numeric(2,4), wide numeric(50,10),
    t text, vc varchar(9), c char(3), nm name, ch "char", by bytea, u uuid, d date, tm time, tz timetz, ts timestamp, tstz timestamptz, iv interval,
    js json, jb jsonb, o oid, rc regclass, x8 xid8, ls pg_lsn, m money, mood export_mood, dom export_money, pair export_pair,
    ai int[], at text[][], an export_money[], ap export_pair[], r int4range, ip inet, bits bit(3), p point, v tsvector);

-- The defaults: a function of the row type.
SELECT ord, name, pg_type, arrow_type, zero_copy FROM arrow_cache.schema('SELECT * FROM x') ORDER BY ord;
-- The notes: where a type differs from what one would expect.
SELECT note, string_agg(name, ' ' ORDER BY ord) AS columns FROM arrow_cache.schema('SELECT * FROM x') WHERE note IS NOT NULL GROUP BY note ORDER BY min(ord);
-- It runs and stores nothing, and its answer does not depend on the data.
SELECT name, arrow_type FROM arrow_cache.schema('SELECT 1 / (i4 - i4) AS failing, ARRAY[ARRAY[i4]] AS cube, ROW(i4, t) AS record, NULL AS nothing FROM x') ORDER BY ord;
SELECT count(*) AS entries FROM arrow_cache.entries;

-- Each option that changes types: it changes only the columns of its types.
CREATE VIEW shapes AS SELECT name, arrow_type FROM arrow_cache.schema('SELECT b, n12, neg, fine, n, dom, iv, u, js, jb, ts, tstz, d, pair, ai, an FROM x');
SELECT s.name, s.arrow_type FROM arrow_cache.schema('SELECT b, n12, neg, fine, n, dom, iv, u, js, jb, ts, tstz, d, pair, ai, an FROM x', '{"numeric": "decimal128"}') s EXCEPT TABLE shapes ORDER BY 1;
SELECT s.name, s.arrow_type FROM arrow_cache.schema('SELECT b, n12, neg, fine, n, dom, iv, u, js, jb, ts, tstz, d, pair, ai, an FROM x', '{"numeric": "float64"}') s EXCEPT TABLE shapes ORDER BY 1;
SELECT s.name, s.arrow_type FROM arrow_cache.schema('SELECT b, n12, neg, fine, n, dom, iv, u, js, jb, ts, tstz, d, pair, ai, an FROM x', '{"interval": "month_day_nano"}') s EXCEPT TABLE shapes ORDER BY 1;
SELECT s.name, s.arrow_type FROM arrow_cache.schema('SELECT b, n12, neg, fine, n, dom, iv, u, js, jb, ts, tstz, d, pair, ai, an FROM x', '{"on_unrepresentable": "text"}') s EXCEPT TABLE shapes ORDER BY 1;
SELECT s.name, s.arrow_type FROM arrow_cache.schema('SELECT b, n12, neg, fine, n, dom, iv, u, js, jb, ts, tstz, d, pair, ai, an FROM x', '{"limit": 5, "batch_rows": 7, "chunk_bytes": 4096, "compression": "lz4"}') s EXCEPT TABLE shapes ORDER BY 1;
SELECT ord, name, arrow_type FROM arrow_cache.schema('SELECT b, n12, iv FROM x', '{"columns": ["iv", "b"]}') ORDER BY ord;
SELECT ord, name, arrow_type FROM arrow_cache.schema('SELECT b, n12, iv FROM x', '{"columns": ["iv", "b"], "numeric": "decimal128"}') ORDER BY ord;
-- A precision that no decimal has is an error of the type.
SELECT count(*) FROM arrow_cache.schema('SELECT wide FROM x', '{"numeric": "decimal128"}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_type FROM arrow_cache.schema('SELECT wide FROM x', '{"numeric": "decimal128", "on_unrepresentable": "text"}');
DROP VIEW shapes;
DROP TABLE x;

-- Messages: the schema first, then batches; cut by rows, and ended by the limit.
CREATE TABLE q AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 10) g;
SELECT seq - min(seq) OVER () AS nth, header, n_rows, length(ipc) > 0 AS bytes FROM arrow_cache.messages('SELECT a, b FROM q ORDER BY a') ORDER BY seq;
:status
SELECT seq - min(seq) OVER () AS nth, header, n_rows FROM arrow_cache.messages('SELECT a, b FROM q ORDER BY a', '{"batch_rows": 4}') ORDER BY seq;
:status
SELECT seq - min(seq) OVER () AS nth, header, n_rows FROM arrow_cache.messages('SELECT a, b FROM q ORDER BY a', '{"batch_rows": 4, "limit": 6}') ORDER BY seq;
SELECT seq - min(seq) OVER () AS nth, header, n_rows FROM arrow_cache.messages('SELECT a, b FROM q ORDER BY a', '{"limit": 0}') ORDER BY seq;
SELECT seq - min(seq) OVER () AS nth, header, n_rows FROM arrow_cache.messages('SELECT a, b FROM q WHERE a < 0') ORDER BY seq;

-- A limit on a miss: that many rows are executed, and nothing is stored.
SELECT arrow_cache.flush() > 0 AS flushed;
SELECT sum(n_rows) AS rows FROM arrow_cache.messages('SELECT a, b FROM q ORDER BY a', '{"limit": 3}');
:status
SELECT count(*) AS entries FROM arrow_cache.entries;
SELECT sum(n_rows) AS rows FROM arrow_cache.messages('SELECT 1 / (4 - a) AS x FROM q', '{"limit": 3}');
SELECT sum(n_rows) AS rows FROM arrow_cache.messages('SELECT a, b FROM q ORDER BY a', '{"limit": 11}');
:status
SELECT sum(n_rows) AS rows FROM arrow_cache.messages('SELECT a, b FROM q ORDER BY a', '{"limit": 3}');
:status

-- Chunks: none larger than asked for; joined they are the stream of query().
SELECT arrow_cache.flush() > 0 AS flushed;
CREATE TABLE large AS SELECT g AS a, repeat('x', 100) AS b FROM generate_series(1, 5000) g;
SELECT count(*) > 100 AS many, max(length(c)) <= 4096 AS small, min(length(c)) > 0 AS full
FROM (SELECT arrow_cache.fetch('SELECT a, b FROM large ORDER BY a', '{"chunk_bytes": 4096}') AS c) s;
:status
SELECT count(*) AS chunks FROM (SELECT arrow_cache.fetch('SELECT a, b FROM large ORDER BY a', '{"chunk_bytes": 67108864, "limit": 1}') AS c) s WHERE length(c) > 4096;
SELECT string_agg(c, '' ORDER BY n) = arrow_cache.query('SELECT a, b FROM large ORDER BY a') AS same
FROM (SELECT arrow_cache.fetch('SELECT a, b FROM large ORDER BY a', '{"chunk_bytes": 10000}') AS c, generate_series(1, 1000) AS n) s WHERE c IS NOT NULL;
:status
SELECT string_agg(ipc, '' ORDER BY seq) || '\xffffffff00000000' = arrow_cache.query('SELECT a, b FROM large ORDER BY a') AS same FROM arrow_cache.messages('SELECT a, b FROM large ORDER BY a');
-- In FROM, and left half-way by LIMIT and by a cursor.
SELECT count(*) > 1 AS chunks FROM arrow_cache.fetch('SELECT a, b FROM large ORDER BY a');
SELECT length(arrow_cache.fetch('SELECT a, b FROM large ORDER BY a', '{"chunk_bytes": 4096}')) > 0 AS chunk LIMIT 2;
BEGIN;
DECLARE c CURSOR FOR SELECT length(arrow_cache.fetch('SELECT a, b FROM large ORDER BY a', '{"chunk_bytes": 4096}')) > 0 AS chunk;
FETCH 2 FROM c;
SELECT arrow_cache.flush() > 0 AS flushed;
FETCH 1 FROM c;
COMMIT;
-- Two at once in one SELECT list, and one of every row.
SELECT count(x) > 1 AS first, count(x) = count(y) AS alike
FROM (SELECT arrow_cache.fetch('SELECT a, b FROM large ORDER BY a') AS x, arrow_cache.fetch('SELECT a, b FROM large ORDER BY a') AS y) s;
SELECT q.a, count(c) AS chunks FROM q, LATERAL arrow_cache.fetch('SELECT b FROM q ORDER BY a', jsonb_build_object('limit', q.a)) c WHERE q.a <= 3 GROUP BY 1 ORDER BY 1;
-- Through a cursor the query sees what the cursor sees: what was there when it was declared.
BEGIN;
DECLARE c CURSOR FOR SELECT sum(n_rows) AS rows FROM arrow_cache.messages('SELECT a FROM q');
DELETE FROM q WHERE a = 10;
FETCH 1 FROM c;
ROLLBACK;

-- A JSON null is an option that is not given.
SELECT sum(n_rows) AS rows FROM arrow_cache.messages('SELECT a FROM q', '{"limit": null, "columns": null, "compression": null}');

-- Wrong options: each named, each with its code; nothing is stored.
SELECT arrow_cache.flush() >= 0 AS flushed;
SELECT arrow_cache.fetch('SELECT a FROM q', '{"limits": 1}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"limit": -1}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"limit": true}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"batch_rows": 0}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"chunk_bytes": 10}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"compression": "gzip"}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"numeric": "decimal256"}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"interval": ["text"]}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"extension_types": "all"}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"on_unrepresentable": "null"}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"columns": []}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '{"columns": ["a", "a"]}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a, b FROM q', '{"columns": ["c"]}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a, b AS a FROM q', '{"columns": "a"}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT a FROM q', '[1]');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.messages('SELECT a FROM q', '"limit"');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.schema('SELECT a FROM q', '5');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('INSERT INTO q VALUES (11)');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.messages('SELECT 1; SELECT 2');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.schema('');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch(NULL), arrow_cache.messages('SELECT 1', NULL), arrow_cache.schema(NULL);
SELECT count(*) AS entries FROM arrow_cache.entries;
SELECT count(*) AS rows FROM q;

-- A value that the Arrow type cannot hold: the error names it and what helps; an option delivers it as text, without the cache and from it.
CREATE TABLE odd (id int, cube int[], late timestamp, n numeric, iv interval);
INSERT INTO odd VALUES (1, '{1}', 'infinity', 1.5, '1 day'), (2, '{{1},{2}}', '294276-12-31', 'NaN', '2562048 hours');
SELECT arrow_cache.fetch('SELECT id, cube FROM odd ORDER BY id');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT id, late FROM odd ORDER BY id');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT id, n FROM odd ORDER BY id', '{"numeric": "decimal128"}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT id, n / 7 AS share FROM odd WHERE id = 1', '{"numeric": "decimal128"}');
\echo :LAST_ERROR_SQLSTATE
SELECT arrow_cache.fetch('SELECT id, iv FROM odd ORDER BY id', '{"interval": "month_day_nano"}');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) AS entries FROM arrow_cache.entries;
SELECT sum(n_rows) AS rows FROM arrow_cache.messages('SELECT * FROM odd ORDER BY id', '{"on_unrepresentable": "text", "numeric": "decimal128", "interval": "month_day_nano"}');
:status
SELECT sum(n_rows) AS rows FROM arrow_cache.messages('SELECT * FROM odd ORDER BY id', '{"on_unrepresentable": "text"}');
:status
SELECT arrow_cache.fetch('SELECT * FROM odd ORDER BY id', '{"columns": ["id", "cube"]}');
SELECT sum(n_rows) AS rows FROM arrow_cache.messages('SELECT * FROM odd ORDER BY id', '{"columns": "id", "numeric": "decimal128"}');
:status

DROP TABLE odd, large, q;
DROP TYPE export_pair, export_mood;
DROP DOMAIN export_money;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
