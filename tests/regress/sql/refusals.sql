-- Queries beside those that must be refused: what is not used, or not there, is no reason.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset tuples_only on
\pset null '-'
CREATE TYPE feeling AS ENUM ('sad', 'glad');
CREATE TABLE a (id int, v text, m feeling, o oid);
CREATE TABLE b (id int, m feeling, w text);
INSERT INTO a VALUES (1, 'one', 'sad', 1259), (2, 'two', 'glad', 0);
INSERT INTO b VALUES (1, 'glad', 'uno'), (2, 'glad', 'due');
SELECT arrow_cache.flush() >= 0;

-- Of the columns of a join those count that are used. With a cast to JSON of somebody's own, an enum that is used is refused.
CREATE FUNCTION feeling_json(feeling) RETURNS json LANGUAGE plpgsql AS $$BEGIN RETURN '"felt"'; END$$;
CREATE CAST (feeling AS json) WITH FUNCTION feeling_json(feeling);
SELECT json_object_agg(a.id, a.v ORDER BY a.id) FROM a JOIN b ON a.id = b.id;
SELECT json_object_agg(a.id, a.v ORDER BY a.id) FROM a JOIN b ON a.id = b.id;
:status
SELECT json_agg(id ORDER BY id) FROM a FULL JOIN b USING (id);
SELECT json_agg(id ORDER BY id) FROM a FULL JOIN b USING (id);
:status
SELECT json_agg(j.id ORDER BY j.id) FROM (a JOIN b USING (id)) AS j;
SELECT json_agg(j.id ORDER BY j.id) FROM (a JOIN b USING (id)) AS j;
:status
-- As a column of one side, merged by USING, through another query, as part of a row of the join.
SELECT json_agg(b.m) FROM a JOIN b ON a.id = b.id;
:status
SELECT json_agg(m ORDER BY m) FROM a FULL JOIN b USING (m);
:status
SELECT (SELECT to_json(m)) FROM a FULL JOIN b USING (m) WHERE a.id = 1;
:status
SELECT json_agg(j ORDER BY j.id) FROM (a JOIN b USING (id)) AS j (id, v, m, o, n, w);
:status
SELECT (SELECT row_to_json(j) FROM (SELECT 1) AS s) FROM (a JOIN b USING (id)) AS j (id, v, m, o, n, w) WHERE j.id = 1;
:status
SELECT json_agg(k) FROM ((a JOIN b USING (id)) AS j (id, v, m, o, n, w) FULL JOIN b AS c (id, k) USING (id)) WHERE id = 1;
:status
SELECT json_agg(m ORDER BY id) FROM (a FULL JOIN b USING (m, id)) FULL JOIN b AS c (id, m) USING (m, id);
:status

-- Without such a cast, JSON has the labels, and a new label or another name of one is another answer.
DROP CAST (feeling AS json);
SELECT json_agg(m ORDER BY id), to_jsonb(max(m)), json_object_agg(m, id ORDER BY id) FROM a;
SELECT json_agg(m ORDER BY id), to_jsonb(max(m)), json_object_agg(m, id ORDER BY id) FROM a;
:status
SELECT row_to_json(a) FROM a WHERE id = 1;
SELECT row_to_json(a) FROM a WHERE id = 1;
:status
SELECT id, greatest(m, 'sad') FROM a ORDER BY id;
SELECT id, greatest(m, 'sad') FROM a ORDER BY id;
:status
ALTER TYPE feeling RENAME VALUE 'sad' TO 'blue';
SELECT json_agg(m ORDER BY id), to_jsonb(max(m)), json_object_agg(m, id ORDER BY id) FROM a;
:status
SELECT row_to_json(a) FROM a WHERE id = 1;
:status
SELECT json_object_agg(a.id, a.v ORDER BY a.id) FROM a JOIN b ON a.id = b.id;
-- A cast that comes later is found by plans that are kept: those are not answered any more.
SET plan_cache_mode = force_generic_plan;
PREPARE felt AS SELECT json_build_array(m) FROM a WHERE id = 2;
EXECUTE felt;
EXECUTE felt;
:status
CREATE CAST (feeling AS json) WITH FUNCTION feeling_json(feeling);
EXECUTE felt;
:status
EXECUTE felt;
:status
SELECT row_to_json(a) FROM a WHERE id = 1;
:status
RESET plan_cache_mode;
-- Such an enum is refused wherever it is printed.
SELECT array_agg(m ORDER BY id), concat(max(m), '!') FROM a;
SELECT array_agg(m ORDER BY id), concat(max(m), '!') FROM a;
:status

-- A number of a catalog is a number; what reads a catalog is refused for that, whatever else it does.
SELECT id FROM a WHERE o = 1259::oid;
SELECT id FROM a WHERE o = 1259::oid;
:status
SELECT id FROM a WHERE o = 'pg_class'::regclass;
SELECT id FROM a WHERE o = 'pg_class'::regclass;
:status
SELECT * FROM arrow_cache.why('SELECT table_name FROM information_schema.tables');
SELECT * FROM arrow_cache.why('SELECT pg_relation_size(oid) FROM pg_class');
SELECT * FROM arrow_cache.why('SELECT id FROM a WHERE EXISTS (SELECT FROM pg_class c WHERE c.oid = a.o AND random() < 2)');

-- A text that becomes a date may be the word today, so the date is in the key. One that becomes a timestamp may be now, another one each time.
CREATE TABLE said (id int, d text, j jsonb);
INSERT INTO said VALUES (1, '2024-02-01', '{"d": "2024-02-03"}'), (2, 'today', '{"d": "03.02.2024"}'), (3, 'tomorrow', '{"d": "now"}');
SELECT id, d::date = CURRENT_DATE, (j->>'d')::date < CURRENT_DATE FROM said ORDER BY id;
SELECT id, d::date = CURRENT_DATE, (j->>'d')::date < CURRENT_DATE FROM said ORDER BY id;
:status
SELECT count(*) FROM said WHERE d::date > '2024-01-01' AND date(d) IS NOT NULL;
SELECT count(*) FROM said WHERE d::date > '2024-01-01' AND date(d) IS NOT NULL;
:status
SELECT (j->>'d')::date FROM said WHERE id < 3;
SELECT (j->>'d')::date FROM said WHERE id < 3;
:status
SET DateStyle = 'ISO, DMY';
SELECT (j->>'d')::date FROM said WHERE id < 3;
:status
RESET DateStyle;
SET TimeZone = 'Pacific/Kiritimati';
SELECT count(*) FROM said WHERE d::date > '2024-01-01' AND date(d) IS NOT NULL;
:status
RESET TimeZone;
SELECT regexp_replace(detail, '[-0-9]{10}', 'DATE') FROM arrow_cache.why('SELECT d::date FROM said');
SET plan_cache_mode = force_generic_plan;
PREPARE dated AS SELECT $1::text::date + id FROM said WHERE d::date = $2::text::date ORDER BY id;
EXECUTE dated('2024-05-01', '2024-02-01');
EXECUTE dated('2024-05-01', '2024-02-01');
:status
EXECUTE dated('2024-05-02', '2024-02-01');
:status
DEALLOCATE dated;
RESET plan_cache_mode;
SELECT count(d::timestamp) FROM said;
:status
SELECT count((j->>'d')::timestamptz) FROM said WHERE id < 2;
:status
CREATE FUNCTION day_of(text) RETURNS date LANGUAGE sql STABLE RETURN $1::date;
SELECT count(day_of(d)) FROM said;
:status
DROP FUNCTION day_of;

DEALLOCATE felt;
DROP TABLE a, b, said;
DROP CAST (feeling AS json);
DROP FUNCTION feeling_json;
DROP TYPE feeling;
SELECT arrow_cache.flush() >= 0;
\pset tuples_only off
TABLE cache_leftovers;
