-- However a statement ends, it leaves nothing behind: no incomplete entry, no pin, no byte.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
CREATE TABLE load (id int PRIMARY KEY, v text);
INSERT INTO load SELECT i, repeat('x', 200) FROM generate_series(1, 20000) i;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;

-- Fills that break off after several batches were stored: by an error, a closed cursor, a rollback. What an error leaves is
-- reclaimed by the next fill or flush.
SELECT id, v, 1 / (19000 - id) AS q FROM load;
SELECT arrow_cache.flush();
TABLE cache_leftovers;
SELECT id, v, 1 / (19000 - id) AS q FROM load;
SELECT count(v) FROM load;
SELECT entries, leaked_bytes < 10000 AS only_that FROM cache_leftovers;
SELECT arrow_cache.flush();
TABLE cache_leftovers;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
MOVE 15000 FROM c;
CLOSE c;
COMMIT;
SELECT arrow_cache.flush();
TABLE cache_leftovers;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
MOVE 15000 FROM c;
ROLLBACK;
SELECT arrow_cache.flush();
TABLE cache_leftovers;
BEGIN;
SAVEPOINT s;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
MOVE 15000 FROM c;
ROLLBACK TO s;
DECLARE d NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
MOVE 15000 FROM d;
SELECT 1 / 0;
ROLLBACK;
SELECT arrow_cache.flush();
TABLE cache_leftovers;
DO $$
DECLARE n int := 0; r record;
BEGIN
    FOR r IN SELECT id, v FROM load LOOP n := n + 1; EXIT WHEN n = 15000; END LOOP;
    RAISE division_by_zero;
EXCEPTION WHEN division_by_zero THEN NULL;
END $$;
SELECT arrow_cache.flush();
TABLE cache_leftovers;
-- Two fills of one query at once, one of them broken off; the other stores.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
DECLARE d NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
MOVE 15000 FROM c;
MOVE 15000 FROM d;
CLOSE c;
MOVE ALL FROM d;
COMMIT;
SELECT row_count FROM arrow_cache.entries;
SELECT arrow_cache.flush();
TABLE cache_leftovers;
-- Both read to the end: one entry is left, not two.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
DECLARE d NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
MOVE ALL FROM c;
MOVE ALL FROM d;
COMMIT;
SELECT row_count FROM arrow_cache.entries;
SELECT arrow_cache.flush();
TABLE cache_leftovers;

-- A hit that ends early releases its pin: closed, rolled back, ended by an error of another statement or of its own consumer.
\o /dev/null
SELECT id, v FROM load ORDER BY id, v;
\o
:status
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
:status
MOVE 15000 FROM c;
FETCH BACKWARD 1 FROM c \g /dev/null
CLOSE c;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
MOVE 10 FROM c;
SELECT 1 / 0;
ROLLBACK;
BEGIN;
SAVEPOINT s;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
MOVE 10 FROM c;
ROLLBACK TO s;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
COMMIT;
-- While it is read, a flush only hides it: the bytes go with the last reader.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, v FROM load ORDER BY id, v;
:status
MOVE 10 FROM c;
SELECT arrow_cache.flush();
SELECT count(*) AS visible FROM arrow_cache.entries;
SELECT leaked_bytes > 4000000 AS still_held FROM cache_leftovers;
FETCH 1 FROM c \g /dev/null
\echo :ROW_COUNT row
COMMIT;
SELECT arrow_cache.flush();
TABLE cache_leftovers;

-- After many changes, outdated results do not accumulate.
SELECT id, v FROM load WHERE id < 5000 \g /dev/null
SELECT bytes_used AS once FROM arrow_cache.stats \gset
UPDATE load SET v = repeat('y', 200) WHERE id = 1;
SELECT id, v FROM load WHERE id < 5000 \g /dev/null
UPDATE load SET v = repeat('z', 200) WHERE id = 1;
SELECT id, v FROM load WHERE id < 5000 \g /dev/null
:status
SELECT bytes_used = :once AS same, entries FROM arrow_cache.stats;
SELECT arrow_cache.flush();
TABLE cache_leftovers;

-- Results too large to store, and the export function, leave nothing behind either.
SET pg_arrow_cache.max_entry_size = '1MB';
SELECT id, v FROM load ORDER BY id, v \g /dev/null
:status
RESET pg_arrow_cache.max_entry_size;
SELECT length(arrow_cache.query('SELECT id, v FROM load')) > 4000000 AS exported;
SELECT length(arrow_cache.query('SELECT id, v FROM load')) > 4000000 AS exported;
:status
SELECT arrow_cache.query('SELECT 1 / (19000 - id) FROM load');
SELECT arrow_cache.flush();
TABLE cache_leftovers;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;

DROP TABLE load;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
