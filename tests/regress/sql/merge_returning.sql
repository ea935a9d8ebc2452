-- MERGE as 17 has it: RETURNING, WHEN NOT MATCHED BY SOURCE, inside WITH, as the query of COPY, and into views. It changes rows like any other statement: what rests
-- on its target is executed again, and nothing else is.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '(null)'
CREATE TABLE target (k int PRIMARY KEY, v int);
CREATE TABLE other (k int, v int);
CREATE TABLE parts (k int, v int) PARTITION BY LIST (k);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE part_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO target VALUES (1, 1), (2, 2);
INSERT INTO other VALUES (1, 1);
INSERT INTO parts VALUES (1, 1);
CREATE VIEW through AS SELECT k, v FROM target;
CREATE VIEW instead AS SELECT k, v FROM target;
CREATE FUNCTION into_other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO other VALUES (NEW.k, NEW.v); RETURN NEW; END $$;
CREATE TRIGGER into_other INSTEAD OF INSERT ON instead FOR EACH ROW EXECUTE FUNCTION into_other();
SELECT sum(v) FROM target;
SELECT sum(v) FROM other;
SELECT sum(v) FROM parts;

MERGE INTO target t USING (VALUES (1, 10), (3, 3)) s(k, v) ON t.k = s.k
    WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v) RETURNING merge_action(), t.*;
:status
SELECT sum(v) FROM target;
:status
SELECT sum(v) FROM other;
:status
-- Rows that no source has.
WITH m AS (MERGE INTO target t USING (VALUES (1, 100)) s(k, v) ON t.k = s.k
    WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING merge_action(), t.k) SELECT * FROM m ORDER BY k;
:status
SELECT sum(v) FROM target;
:status
-- Through a view that can be updated, and one with a trigger instead.
MERGE INTO through t USING (VALUES (5, 5)) s(k, v) ON t.k = s.k WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v) RETURNING t.*;
SELECT sum(v) FROM target;
:status
MERGE INTO instead t USING (VALUES (7, 7)) s(k, v) ON t.k = s.k WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v);
SELECT sum(v) FROM other;
:status
SELECT sum(v) FROM target;
:status
-- Partitions, one of which no row of the plan's start is in; and as the query of COPY.
MERGE INTO parts t USING (VALUES (1, 50), (2, 2)) s(k, v) ON t.k = s.k
    WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v);
SELECT sum(v) FROM parts;
:status
SELECT sum(v) FROM part_2;
COPY (MERGE INTO parts t USING (VALUES (1, 51)) s(k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v RETURNING t.v) TO STDOUT;
SELECT sum(v) FROM parts;
:status
SELECT sum(v) FROM part_2;
:status
-- Arrow takes queries that only read.
COPY (MERGE INTO parts t USING (VALUES (1, 52)) s(k, v) ON t.k = s.k WHEN MATCHED THEN DELETE RETURNING t.v) TO STDOUT (FORMAT arrow);
SELECT cacheable, reason FROM arrow_cache.why('MERGE INTO parts t USING other s ON t.k = s.k WHEN MATCHED THEN DELETE RETURNING t.v');
SELECT cacheable, reason FROM arrow_cache.why('WITH m AS (MERGE INTO parts t USING other s ON t.k = s.k WHEN MATCHED THEN DELETE RETURNING t.v) TABLE m');
SELECT sum(v) FROM parts;
:status
-- In a transaction that is rolled back, and with nothing done.
BEGIN;
MERGE INTO target t USING (VALUES (1, 0)) s(k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v RETURNING t.v;
SELECT sum(v) FROM target;
:status
ROLLBACK;
SELECT sum(v) FROM target;
:status
DROP VIEW instead, through;
DROP FUNCTION into_other;
DROP TABLE target, other, parts;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
