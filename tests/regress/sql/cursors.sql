-- Cursors: one that is read forward to its end in any number of parts stores, any other does not; a stored result is served to every
-- kind of cursor, in parts and backwards.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
CREATE TABLE seq (id int PRIMARY KEY, v text);
INSERT INTO seq SELECT i, 'v' || i FROM generate_series(1, 7) i;
-- A sort can be read backwards, and it is no scan whose current row could be updated.
SET enable_incremental_sort = off;

-- Read in parts, to the end: a fetch that returns fewer rows than it asks for shows the end.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM seq ORDER BY id, v;
:status
FETCH 2 FROM c;
FETCH 3 FROM c;
SELECT count(*) AS stored FROM arrow_cache.entries;
FETCH 10 FROM c;
SELECT count(*) AS stored, max(row_count) AS rows FROM arrow_cache.entries;
FETCH ALL FROM c;
CLOSE c;
COMMIT;
SELECT id FROM seq ORDER BY id, v;
:status

-- Read exactly as many rows as there are: only the next fetch shows the end.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, 'exact' AS x FROM seq ORDER BY id, v;
FETCH 7 FROM c;
SELECT count(*) AS stored FROM arrow_cache.entries WHERE query ILIKE '%exact%';
FETCH 1 FROM c;
SELECT row_count FROM arrow_cache.entries WHERE query ILIKE '%exact%';
COMMIT;

-- Read in part and closed, left open at the end of the transaction, or broken off by an error: nothing is stored.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, 'closed' AS x FROM seq ORDER BY id, v;
FETCH 6 FROM c;
CLOSE c;
DECLARE d NO SCROLL CURSOR FOR SELECT id, 'left' AS x FROM seq ORDER BY id, v;
FETCH 6 FROM d;
DECLARE e NO SCROLL CURSOR FOR SELECT id, 'never fetched' AS x FROM seq ORDER BY id, v;
COMMIT;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, 'aborted' AS x FROM seq ORDER BY id, v;
FETCH 6 FROM c;
ROLLBACK;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, 10 / (5 - id) AS failed FROM seq ORDER BY id;
FETCH 4 FROM c;
FETCH 4 FROM c;
ROLLBACK;
BEGIN;
SAVEPOINT s;
DECLARE c NO SCROLL CURSOR FOR SELECT id, 'savepoint' AS x FROM seq ORDER BY id, v;
FETCH 6 FROM c;
ROLLBACK TO s;
COMMIT;
SELECT query FROM arrow_cache.entries WHERE query ~ 'closed|left|never|aborted|failed|savepoint';
SELECT id, 'closed' AS x FROM seq ORDER BY id, v;
:status
-- MOVE reads rows and drops them: the result is stored whole or not at all, never with a gap.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, 'moved' AS x FROM seq ORDER BY id, v;
MOVE 3 FROM c;
FETCH ALL FROM c;
COMMIT;
SELECT row_count FROM arrow_cache.entries WHERE query ILIKE '%moved%' AND row_count <> 7;
SELECT id, 'moved' AS x FROM seq ORDER BY id, v;

-- A cursor that may go backward stores if it is read forward from its first row to its last. It may move before the first row and
-- behind the last one.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v FROM seq ORDER BY id, v;
:status
FETCH PRIOR FROM c;
FETCH 0 FROM c;
FETCH FIRST FROM c;
FETCH RELATIVE 2 FROM c;
MOVE 2 FROM c;
FETCH ALL FROM c;
SELECT row_count FROM arrow_cache.entries WHERE query ILIKE '%for select v from seq order by id, v';
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
COMMIT;
SELECT v FROM seq ORDER BY id, v;
:status
-- Any other movement ends that: one row back, the first row again, the same row again, though the portal then stands where it stood.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v, 'back' AS x FROM seq ORDER BY id, v;
FETCH 2 FROM c;
FETCH PRIOR FROM c;
FETCH ALL FROM c;
:status
DECLARE d SCROLL CURSOR FOR SELECT v, 'first' AS x FROM seq ORDER BY id, v;
FETCH 1 FROM d;
FETCH FIRST FROM d;
FETCH ALL FROM d;
:status
DECLARE e SCROLL CURSOR FOR SELECT v, 'again' AS x FROM seq ORDER BY id, v;
FETCH 2 FROM e;
FETCH RELATIVE 0 FROM e;
FETCH ALL FROM e;
DECLARE f SCROLL CURSOR FOR SELECT v, 'absolute' AS x FROM seq ORDER BY id, v;
MOVE 3 FROM f;
MOVE ABSOLUTE 0 FROM f;
MOVE 3 FROM f;
FETCH ALL FROM f;
DECLARE g SCROLL CURSOR FOR SELECT v, 'last' AS x FROM seq ORDER BY id, v;
FETCH LAST FROM g;
FETCH FIRST FROM g;
FETCH ALL FROM g;
COMMIT;
SELECT query FROM arrow_cache.entries WHERE query ~ 'back|first|again|absolute|last';
SELECT v, 'first' AS x FROM seq ORDER BY id, v;
:status
-- As many rows as there can be: the answer is complete before the server sees its end.
BEGIN;
DECLARE c CURSOR FOR SELECT v, 'three' AS x FROM seq ORDER BY id, v LIMIT 3;
FETCH 2 FROM c;
SELECT count(*) AS stored FROM arrow_cache.entries WHERE query ILIKE '%three%';
FETCH 1 FROM c;
SELECT row_count FROM arrow_cache.entries WHERE query ILIKE '%three%';
FETCH 1 FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
SELECT v, 'three' AS x FROM seq ORDER BY id, v LIMIT 3;
:status
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v FROM seq ORDER BY id, v;
:status
FETCH 2 FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH BACKWARD 1 FROM c;
FETCH BACKWARD 5 FROM c;
FETCH FORWARD 1 FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH BACKWARD ALL FROM c;
FETCH FIRST FROM c;
FETCH ABSOLUTE 5 FROM c;
FETCH ABSOLUTE -1 FROM c;
FETCH RELATIVE -3 FROM c;
FETCH RELATIVE 0 FROM c;
FETCH ABSOLUTE 99 FROM c;
FETCH ABSOLUTE 0 FROM c;
MOVE 4 FROM c;
FETCH 1 FROM c;
MOVE BACKWARD 2 FROM c;
FETCH 1 FROM c;
COMMIT;
-- A cursor without either word can go backward if its plan can; a served one can too.
BEGIN;
DECLARE c CURSOR FOR SELECT v FROM seq ORDER BY id, v;
:status
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
-- Served to a cursor that must not go backward.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT v FROM seq ORDER BY id, v;
:status
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
ROLLBACK;

-- Two cursors read one entry, which is dropped meanwhile: each reads on to its end.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v FROM seq ORDER BY id, v;
DECLARE d NO SCROLL CURSOR FOR SELECT v FROM seq ORDER BY id, v;
FETCH 2 FROM c;
FETCH 5 FROM d;
SELECT arrow_cache.flush() >= 1 AS flushed;
FETCH 2 FROM c;
FETCH ALL FROM d;
FETCH BACKWARD 3 FROM c;
COMMIT;

-- A cursor shows the moment of its opening: later changes, also of its own transaction, are not in it.
SELECT v FROM seq ORDER BY id, v;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT v FROM seq ORDER BY id, v;
:status
FETCH 2 FROM c;
UPDATE seq SET v = 'changed' WHERE id > 2;
FETCH 2 FROM c;
SELECT v FROM seq WHERE id = 3;
:status
DECLARE d NO SCROLL CURSOR FOR SELECT v FROM seq ORDER BY id, v;
:status
FETCH 3 FROM d;
ROLLBACK;
SELECT v FROM seq ORDER BY id, v;
:status
-- The reverse: a cursor that fills, a change of the same transaction, and then the end of the cursor.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT v, 'fill' AS x FROM seq ORDER BY id, v;
FETCH 2 FROM c;
UPDATE seq SET v = 'changed' WHERE id = 7;
FETCH ALL FROM c;
COMMIT;
SELECT v, 'fill' AS x FROM seq ORDER BY id, v;
UPDATE seq SET v = 'v7' WHERE id = 7;

-- A cursor WITH HOLD is copied at commit. It is served, and keeps its rows after the commit.
SELECT v FROM seq ORDER BY id, v;
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT v FROM seq ORDER BY id, v;
:status
FETCH 2 FROM c;
COMMIT;
UPDATE seq SET v = 'later' WHERE id = 3;
FETCH 2 FROM c;
CLOSE c;
-- Its copy has all rows, so it stores: what was not read before if it only goes forward, everything if it goes backward.
UPDATE seq SET v = 'v3' WHERE id = 3;
DECLARE a CURSOR WITH HOLD FOR SELECT v, 'at once' AS x FROM seq ORDER BY id, v;
BEGIN;
DECLARE f NO SCROLL CURSOR WITH HOLD FOR SELECT v, 'forward' AS x FROM seq ORDER BY id, v;
FETCH 2 FROM f;
DECLARE s SCROLL CURSOR WITH HOLD FOR SELECT v, 'scroll' AS x FROM seq ORDER BY id, v;
DECLARE r SCROLL CURSOR WITH HOLD FOR SELECT v, 'rewound' AS x FROM seq ORDER BY id, v;
FETCH 2 FROM r;
DECLARE g NO SCROLL CURSOR WITH HOLD FOR SELECT v, 'gone' AS x FROM seq ORDER BY id, v;
DECLARE h CURSOR WITH HOLD FOR SELECT v, 'own' AS x FROM seq ORDER BY id, v;
CLOSE g;
UPDATE seq SET v = 'changed' WHERE id = 1;
ROLLBACK;
SELECT query, row_count FROM arrow_cache.entries WHERE query ~ 'at once|forward|scroll|rewound|gone|own' ORDER BY query;
BEGIN;
DECLARE f NO SCROLL CURSOR WITH HOLD FOR SELECT v, 'forward' AS x FROM seq ORDER BY id, v;
FETCH 2 FROM f;
DECLARE s SCROLL CURSOR WITH HOLD FOR SELECT v, 'scroll' AS x FROM seq ORDER BY id, v;
DECLARE r SCROLL CURSOR WITH HOLD FOR SELECT v, 'rewound' AS x FROM seq ORDER BY id, v;
FETCH 2 FROM r;
COMMIT;
SELECT query, row_count FROM arrow_cache.entries WHERE query ~ 'at once|forward|scroll|rewound|gone|own' ORDER BY query;
FETCH 2 FROM f;
FETCH 2 FROM r;
FETCH BACKWARD 3 FROM r;
FETCH LAST FROM s;
FETCH ALL FROM a;
CLOSE ALL;
SELECT v, 'scroll' AS x FROM seq ORDER BY id, v;
:status
BEGIN;
DECLARE r SCROLL CURSOR WITH HOLD FOR SELECT v, 'scroll' AS x FROM seq ORDER BY id, v;
:status
FETCH 2 FROM r;
COMMIT;
FETCH 1 FROM r;
FETCH FIRST FROM r;
CLOSE r;
-- One that the error of its copy ends.
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT id, 10 / (5 - max(id)) AS failed FROM seq GROUP BY id ORDER BY id;
FETCH 2 FROM c;
COMMIT;
FETCH 1 FROM c;
SELECT count(*) AS stored FROM arrow_cache.entries WHERE query ILIKE '%failed%';
-- A cursor for a prepared parameter, and one that was executed by name.
PREPARE p(int) AS SELECT v FROM seq WHERE id >= $1 ORDER BY id;
EXECUTE p(6);
EXECUTE p(6);
:status
-- An answer that depends on settings is served to a cursor, if they are the same when its first row is read. If rows may be read later
-- that a plan would compute later, the plan runs.
CREATE TABLE stamps (id int PRIMARY KEY, at timestamptz);
INSERT INTO stamps SELECT g, timestamptz '2026-01-01 00:00 UTC' + g * interval '1 day' FROM generate_series(1, 4) g;
SET timezone = 'UTC';
SELECT at::text FROM stamps ORDER BY at, id;
SELECT id, max(at)::text AS at FROM stamps GROUP BY id ORDER BY id;
:status
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT at::text FROM stamps ORDER BY at, id;
FETCH 2 FROM c;
:status
SET LOCAL timezone = 'Asia/Tokyo';
FETCH 1 FROM c;
SET LOCAL timezone = 'UTC';
DECLARE s SCROLL CURSOR FOR SELECT at::text FROM stamps ORDER BY at, id;
FETCH 1 FROM s;
:status
SET LOCAL timezone = 'Asia/Tokyo';
FETCH FIRST FROM s;
FETCH LAST FROM s;
FETCH PRIOR FROM s;
SET LOCAL timezone = 'UTC';
DECLARE d SCROLL CURSOR FOR SELECT at::text FROM stamps ORDER BY at, id;
SET LOCAL timezone = 'Asia/Tokyo';
FETCH 2 FROM d;
:status
FETCH BACKWARD 1 FROM d;
FETCH ABSOLUTE -1 FROM d;
FETCH FIRST FROM d;
COMMIT;
SHOW timezone;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, max(at)::text AS at FROM stamps GROUP BY id ORDER BY id;
FETCH 2 FROM c;
:status
SET LOCAL timezone = 'Asia/Tokyo';
FETCH 1 FROM c;
SET LOCAL timezone = 'UTC';
DECLARE w NO SCROLL CURSOR FOR SELECT id, max(at)::text AS at FROM stamps GROUP BY id ORDER BY id;
FETCH ALL FROM w;
:status
ROLLBACK;
RESET timezone;
DROP TABLE stamps;
-- FETCH and CLOSE are not queries of their own: the status stays that of the statement before.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT max(v) AS v FROM seq WHERE id = 1;
FETCH ALL FROM c;
:status
CLOSE c;
DECLARE c NO SCROLL CURSOR FOR SELECT max(v) AS v FROM seq WHERE id = 1;
FETCH ALL FROM c;
:status
COMMIT;

-- Several cursors declared in one string: each has its own key, however similar they are, and shares the entry of the plain query.
CREATE TABLE pairs (a int, b int);
INSERT INTO pairs VALUES (1, 1), (1, 2), (2, 1), (NULL, NULL);
BEGIN READ ONLY \; DECLARE c NO SCROLL CURSOR FOR SELECT a, b FROM pairs WHERE a = 1 OR b = 1 \; FETCH ALL FROM c \; DECLARE d NO SCROLL CURSOR FOR SELECT a, b FROM pairs WHERE a = 1 AND b = 1 \; FETCH ALL FROM d \; COMMIT;
BEGIN READ ONLY \; DECLARE c NO SCROLL CURSOR FOR SELECT a FROM pairs WHERE a IS NULL \; FETCH ALL FROM c \; DECLARE d NO SCROLL CURSOR FOR SELECT a FROM pairs WHERE a IS NOT NULL \; FETCH ALL FROM d \; COMMIT;
SELECT a, b FROM pairs WHERE a = 1 AND b = 1;
:status
SELECT a, b FROM pairs WHERE a = 1 OR b = 1;
:status
SELECT a FROM pairs WHERE a IS NOT NULL;
:status
DROP TABLE pairs;

-- The current row of a cursor that scans a table can be updated, so such a cursor runs its own plan even if its answer is stored.
CREATE TABLE positions (id int, v text);
INSERT INTO positions VALUES (1, 'a'), (2, 'b'), (3, 'c');
SELECT id, v FROM positions;
SELECT id, v FROM positions;
:status
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM positions;
:status
FETCH 2 FROM c;
UPDATE positions SET v = 'B' WHERE CURRENT OF c RETURNING id, v;
COMMIT;
SELECT id, v FROM positions WHERE v < 'b' UNION ALL SELECT id, v FROM positions WHERE v > 'b';
SELECT count(*) FROM positions;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM positions WHERE v < 'b' UNION ALL SELECT id, v FROM positions WHERE v > 'b';
:status
-- One that gathers rows never has a current row, with the cache or without.
DECLARE d NO SCROLL CURSOR FOR SELECT count(*) FROM positions;
:status
FETCH 1 FROM d;
UPDATE positions SET v = 'x' WHERE CURRENT OF d;
ROLLBACK;
BEGIN;
SET LOCAL pg_arrow_cache.enabled = off;
DECLARE d NO SCROLL CURSOR FOR SELECT count(*) FROM positions;
FETCH 1 FROM d;
UPDATE positions SET v = 'x' WHERE CURRENT OF d;
ROLLBACK;
-- In a read-only transaction no statement can change the row, and the transaction stays so.
SELECT id, v FROM positions WHERE id > 0;
SELECT id, v FROM positions WHERE id > 0;
:status
BEGIN READ ONLY;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM positions WHERE id > 0;
:status
FETCH 1 FROM c;
SAVEPOINT s;
SET TRANSACTION READ WRITE;
ROLLBACK TO s;
UPDATE positions SET v = 'x' WHERE CURRENT OF c;
ROLLBACK;
-- A subtransaction that is read-only leaves its cursors to a transaction that is not.
BEGIN;
SAVEPOINT s;
SET TRANSACTION READ ONLY;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM positions WHERE id > 0;
:status
RELEASE s;
FETCH 1 FROM c;
UPDATE positions SET v = 'x' WHERE CURRENT OF c RETURNING id, v;
ROLLBACK;
-- No statement changes the rows of a materialized view.
CREATE MATERIALIZED VIEW kept_positions AS SELECT id, v FROM positions;
SELECT id, v FROM kept_positions;
SELECT id, v FROM kept_positions;
:status
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM kept_positions;
:status
FETCH 1 FROM c;
SAVEPOINT s;
UPDATE kept_positions SET v = 'x' WHERE CURRENT OF c;
ROLLBACK TO s;
UPDATE positions SET v = 'x' WHERE CURRENT OF c;
ROLLBACK;
SET pg_arrow_cache.enabled = off;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM kept_positions;
FETCH 1 FROM c;
SAVEPOINT s;
UPDATE kept_positions SET v = 'x' WHERE CURRENT OF c;
ROLLBACK TO s;
UPDATE positions SET v = 'x' WHERE CURRENT OF c;
ROLLBACK;
RESET pg_arrow_cache.enabled;
DROP MATERIALIZED VIEW kept_positions;
-- A cursor WITH HOLD of a message of its own is read to its end by the commit that follows: nobody can update its row.
DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT id, v, 'held' AS x FROM positions;
:status
FETCH 1 FROM c;
UPDATE positions SET v = 'x' WHERE CURRENT OF c;
CLOSE c;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id, v, 'held' AS x FROM positions;
:status
UPDATE positions SET v = 'a!' WHERE id = 1;
FETCH ALL FROM c;
FETCH BACKWARD 1 FROM c;
UPDATE positions SET v = 'x' WHERE CURRENT OF c;
CLOSE c;
DECLARE c CURSOR WITH HOLD FOR SELECT id, v, 'held' AS x FROM positions;
:status
CLOSE c;
-- With other statements in its message, or in a block, its row can be updated before: it is not served.
BEGIN\; DECLARE c CURSOR WITH HOLD FOR SELECT id, v, 'held' AS x FROM positions\; FETCH 1 FROM c\; UPDATE positions SET v = 'B' WHERE CURRENT OF c\; ROLLBACK;
DECLARE c CURSOR WITH HOLD FOR SELECT id, v, 'held' AS x FROM positions\; FETCH 1 FROM c\; UPDATE positions SET v = v || '?' WHERE CURRENT OF c RETURNING id;
CLOSE c;
DECLARE c CURSOR WITH HOLD FOR SELECT id, v, 'held' AS x FROM positions\; SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;
CLOSE c;
-- What would not be served is not stored either.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, 'in vain' AS x FROM positions;
:status
FETCH ALL FROM c;
COMMIT;
BEGIN READ ONLY;
DECLARE c NO SCROLL CURSOR FOR SELECT id, 'of use' AS x FROM positions;
:status
FETCH ALL FROM c;
COMMIT;
SELECT query FROM arrow_cache.entries WHERE query ~ 'in vain|of use';
DROP TABLE positions;

-- ORDER BY makes no difference where an index gives the order: the current row can be updated. It does where the plan sorts, and so does a read-only transaction.
SET enable_seqscan = off;
SET enable_sort = off;
SELECT v, id FROM seq ORDER BY id;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT v, id FROM seq ORDER BY id;
:status
ROLLBACK;
BEGIN READ ONLY;
DECLARE c NO SCROLL CURSOR FOR SELECT v, id FROM seq ORDER BY id;
:status
ROLLBACK;
SELECT v, id FROM seq ORDER BY v;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT v, id FROM seq ORDER BY v;
:status
ROLLBACK;
RESET enable_seqscan;
RESET enable_sort;

DEALLOCATE p;
DROP TABLE seq;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
