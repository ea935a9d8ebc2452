-- RETURNING with OLD and NEW, alone and in WITH: it is never cached, and what it has changed is seen at once. The words are names like any others in a query that
-- only reads.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '-'
CREATE TABLE stock (id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (n * 2));
INSERT INTO stock VALUES (1, 5), (2, 7);
CREATE VIEW shown AS SELECT * FROM stock;
SELECT * FROM stock ORDER BY id;
SELECT * FROM stock ORDER BY id;
:status
UPDATE stock SET n = n + 1 WHERE id = 1 RETURNING old.n, new.n, old.twice, new.twice;
:status
SELECT * FROM stock ORDER BY id;
:status
UPDATE stock SET n = n + 1 WHERE id = 1 RETURNING WITH (OLD AS o, NEW AS n) o, n;
SELECT * FROM stock ORDER BY id;
:status
WITH changed AS (UPDATE stock SET n = n - 1 WHERE id = 2 RETURNING old.n AS before, new.n AS after) SELECT before, after, (SELECT sum(n) FROM stock) FROM changed;
:status
SELECT * FROM stock ORDER BY id;
:status
INSERT INTO stock VALUES (1, 100) ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING old.n, new.n, old IS NULL AS is_new;
INSERT INTO stock VALUES (3, 3) ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING old.n, new.n, old IS NULL AS is_new;
SELECT * FROM shown ORDER BY id;
SELECT * FROM shown ORDER BY id;
:status
UPDATE shown SET n = 0 WHERE id = 3 RETURNING old.twice, new.twice, new.n + old.n;
SELECT * FROM shown ORDER BY id;
:status
MERGE INTO stock USING (VALUES (1, 11), (4, 44)) AS s (id, n) ON stock.id = s.id
    WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n) RETURNING merge_action(), old.n, new.n, new.twice;
SELECT * FROM shown ORDER BY id;
:status
DELETE FROM stock WHERE id = 4 RETURNING old.twice, new.twice;
SELECT * FROM shown ORDER BY id;
:status
-- A statement that has found no row to change has changed nothing.
BEGIN;
UPDATE stock SET n = 1 WHERE false RETURNING old.n;
SELECT * FROM shown ORDER BY id;
:status
COMMIT;
-- Prepared statements and functions that return rows.
PREPARE raise(int) AS UPDATE stock SET n = n + $1 WHERE id = 2 RETURNING old.n, new.n;
EXECUTE raise(1);
EXECUTE raise(1);
:status
CREATE FUNCTION raised() RETURNS TABLE (before int, after int) LANGUAGE sql AS 'UPDATE stock SET n = n + 1 WHERE id = 2 RETURNING old.n, new.n';
SELECT * FROM shown ORDER BY id;
SELECT before, after FROM raised();
SELECT * FROM shown ORDER BY id;
:status
-- Names.
SELECT old.n, new.n FROM stock old JOIN stock new USING (id) ORDER BY id;
SELECT old.n, new.n FROM stock old JOIN stock new USING (id) ORDER BY id;
:status
SELECT cacheable, reason FROM arrow_cache.why('WITH c AS (DELETE FROM stock RETURNING old.*) SELECT * FROM c');
DEALLOCATE raise;
DROP FUNCTION raised;
DROP TABLE stock CASCADE;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
