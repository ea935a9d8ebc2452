-- Every statement that changes rows makes the results over its table out of date, at once for this session and never for others
-- before it commits; results over other tables go on being served.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
CREATE TABLE item (id int PRIMARY KEY, v int);
CREATE TABLE other (v int);
INSERT INTO other VALUES (42);
\set read 'SELECT count(*), sum(v) FROM item;'
\set read_other 'SELECT v FROM other;'
:read
:read_other
:read
:status

INSERT INTO item VALUES (1, 10), (2, 20), (3, 30);
:read
:status
:read
:status
:read_other
:status
INSERT INTO item VALUES (3, 1) ON CONFLICT (id) DO UPDATE SET v = item.v + 1;
:read
:status
INSERT INTO item VALUES (4, 40) RETURNING v;
:read
:status
UPDATE item SET v = v + 1 WHERE id = 1;
:read
:status
UPDATE item SET v = other.v FROM other WHERE id = 2 RETURNING item.v;
:read
:status
DELETE FROM item WHERE id = 4;
:read
:status
DELETE FROM item USING other WHERE item.v = other.v;
:read
:status
MERGE INTO item USING (VALUES (1, 100), (7, 70), (3, 0)) AS s(id, v) ON item.id = s.id
    WHEN MATCHED AND s.v = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v);
:read
:status
MERGE INTO item USING other ON false WHEN NOT MATCHED THEN INSERT VALUES (8, other.v);
:read
:status
WITH gone AS (DELETE FROM item WHERE id = 8 RETURNING v) SELECT v FROM gone;
:status
:read
:status
WITH came AS (INSERT INTO item VALUES (9, 9) RETURNING v) INSERT INTO other SELECT v FROM came;
:read
:status
:read_other
:status
COPY item FROM stdin;
10	1000
11	1100
\.
:read
:status
COPY (DELETE FROM item WHERE id = 10 RETURNING id) TO STDOUT;
:read
:status
BEGIN;
COPY item FROM stdin (FREEZE off);
12	1200
\.
COMMIT;
:read
:status
TRUNCATE item;
:read
:status
:read_other
INSERT INTO item SELECT i, i FROM generate_series(1, 5) i;
:read
PREPARE change(int) AS UPDATE item SET v = v + 1 WHERE id = $1;
EXECUTE change(1);
:read
:status
EXECUTE change(1);
:read
:status
\o /dev/null
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) DELETE FROM item WHERE id = 5;
\o
:read
:status
UPDATE item SET v = 0 WHERE id = 1 \; SELECT count(*), sum(v) FROM item;
:read
:status
:read_other
:status

-- Through a cursor, a function, a procedure that commits, DO, dynamic SQL.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM item WHERE id = 2 FOR UPDATE;
FETCH 1 FROM c;
UPDATE item SET v = 22 WHERE CURRENT OF c;
COMMIT;
:read
:status
CREATE FUNCTION write_sql() RETURNS void LANGUAGE sql AS 'UPDATE item SET v = v + 1 WHERE id = 3';
CREATE FUNCTION write_plpgsql() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'UPDATE item SET v = v + 1 WHERE id = 3';
    RETURN (SELECT v FROM item WHERE id = 3);
END $$;
CREATE PROCEDURE write_committing() LANGUAGE plpgsql AS $$
BEGIN
    UPDATE item SET v = v + 1 WHERE id = 3;
    COMMIT;
    PERFORM count(*) FROM item;
    UPDATE item SET v = v + 1 WHERE id = 4;
    ROLLBACK;
END $$;
:read
SELECT write_sql();
:read
:status
SELECT write_plpgsql();
:read
:status
CALL write_committing();
:read
:status
DO $$ BEGIN DELETE FROM item WHERE id = 4; END $$;
:read
:status
SELECT id, write_plpgsql() FROM item WHERE id = 3;
:status
:read
:status

-- Triggers on another table, rules, an updatable view.
CREATE TABLE source (id int);
CREATE FUNCTION on_source() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO item VALUES (NEW.id, NEW.id * 100);
    RETURN NULL;
END $$;
CREATE TRIGGER after_source AFTER INSERT ON source FOR EACH ROW EXECUTE FUNCTION on_source();
CREATE CONSTRAINT TRIGGER deferred_source AFTER UPDATE ON source DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION on_source();
CREATE TABLE ruled (id int);
CREATE RULE instead AS ON INSERT TO ruled DO INSTEAD INSERT INTO item VALUES (NEW.id, 1);
CREATE VIEW item_view AS SELECT id, v FROM item WHERE v > 0;
:read
INSERT INTO source VALUES (20);
:read
:status
-- A deferred trigger writes at the commit itself.
UPDATE source SET id = 21;
:read
:status
INSERT INTO ruled VALUES (22);
:read
:status
UPDATE item_view SET v = v + 1 WHERE id = 22;
:read
:status
COPY source FROM stdin;
23
\.
:read
:status

-- Statements that change nothing: no rows match, DO NOTHING, a read, a lock.
:read
UPDATE item SET v = 0 WHERE false;
DELETE FROM item WHERE id = -1;
INSERT INTO item VALUES (1, 1) ON CONFLICT DO NOTHING;
SELECT v FROM item WHERE id = 1 FOR UPDATE;
:read_other
:read

-- After a rollback the result from before is still right.
:read
BEGIN;
INSERT INTO item VALUES (30, 30);
ROLLBACK;
:read
:status
BEGIN;
UPDATE item SET v = -1;
TRUNCATE other;
ROLLBACK;
:read_other
:status
INSERT INTO item VALUES (1, 1);
:read
:status
-- A savepoint rolled back is not a change; one released is.
BEGIN;
SAVEPOINT a;
INSERT INTO item VALUES (31, 31);
ROLLBACK TO a;
COMMIT;
:read
BEGIN;
SAVEPOINT a;
INSERT INTO item VALUES (32, 32);
RELEASE a;
COMMIT;
:read
:status

-- Inside a transaction: before its first write served, after it executed with its own changes, for the tables it wrote.
:read
:read_other
BEGIN;
:read
:status
INSERT INTO item VALUES (40, 40);
:read
:status
:read_other
:status
SELECT count(*) FROM item JOIN other ON true;
:status
SAVEPOINT a;
DELETE FROM item;
:read
:status
ROLLBACK TO a;
:read
:status
COMMIT;
:read
:status
:read
:status

-- A statement that changes no row outdates nothing, whatever else its transaction changes; nor does one that was undone.
:read
:read_other
BEGIN;
UPDATE item SET v = 0 WHERE id = -1;
SAVEPOINT undone;
DELETE FROM item;
ROLLBACK TO undone;
UPDATE other SET v = v + 1;
COMMIT;
:read
:status
:read_other
:status

-- The same when the server does not count changes for its statistics: nothing is known, so all entries are outdated.
SET track_counts = off;
:read
:status
DELETE FROM item WHERE id = 40;
:read
:status
:read_other
RESET track_counts;
:read
:read
:status
:read_other
:status

DROP VIEW item_view;
DROP TABLE ruled, source, item, other;
DROP FUNCTION write_sql, write_plpgsql, on_source;
DROP PROCEDURE write_committing;
DEALLOCATE change;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
