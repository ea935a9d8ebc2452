-- What a cursor is given is what its statement gives at the moment that counts: when it is declared, or when its first row is read.
\pset format unaligned
\pset tuples_only on
\set status 'SELECT arrow_cache.last_status(), arrow_cache.last_reason()'
SELECT arrow_cache.flush() IS NOT NULL;
CREATE TABLE edge (i int, v text);
INSERT INTO edge SELECT g, 'v' || g FROM generate_series(1, 20) g;

-- Two cursors declared in one query string have two keys.
BEGIN\; DECLARE a NO SCROLL CURSOR FOR SELECT i FROM edge WHERE i < 8 AND i > 5 ORDER BY i\; FETCH ALL FROM a\; DECLARE b NO SCROLL CURSOR FOR SELECT i FROM edge WHERE i < 2 OR i > 19 ORDER BY i\; FETCH ALL FROM b\; COMMIT;

-- FETCH 0 reads nothing, which is not the end of the result.
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT i FROM edge WHERE i = 3; FETCH 0 FROM c; COMMIT;
SELECT i FROM edge WHERE i = 3;

-- A setting that changes between the start of a cursor and the reading of its rows counts for what is read.
CREATE TABLE edge_time (ts timestamptz);
INSERT INTO edge_time VALUES ('2024-01-01 00:00+00');
SET TimeZone = 'UTC';
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT to_char(ts, 'HH24:MI') FROM edge_time; SET LOCAL TimeZone = 'Asia/Tokyo'; FETCH ALL FROM c; COMMIT;
SELECT to_char(ts, 'HH24:MI') FROM edge_time;
:status;
SELECT to_char(ts, 'HH24:MI') FROM edge_time;
:status;
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT to_char(ts, 'HH24:MI') FROM edge_time;
:status;
SET LOCAL TimeZone = 'Asia/Tokyo'; FETCH ALL FROM c; COMMIT;
RESET TimeZone;

-- A row of many large values is not gathered in memory once it is known to be too large to store.
SET pg_arrow_cache.max_entry_size = '1MB';
CREATE TABLE edge_wide AS SELECT repeat('x', 400000) AS t;
BEGIN READ ONLY; DECLARE c NO SCROLL CURSOR FOR SELECT t, t, t, t, t, t, t, t FROM edge_wide; MOVE ALL FROM c;
:status;
COMMIT;
RESET pg_arrow_cache.max_entry_size;

DROP TABLE edge, edge_time, edge_wide;

SELECT arrow_cache.flush() IS NOT NULL;
TABLE cache_leftovers;
