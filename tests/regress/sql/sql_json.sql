-- SQL/JSON: constructors, tests, queries and JSON_TABLE. Their trees have kinds of nodes of their own, none of which is cached: a path may read settings, and
-- a value is converted by casts that a user may have made.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '(null)'
CREATE TABLE doc (k int, v jsonb, t text);
INSERT INTO doc VALUES (1, '{"a": [1, 2], "at": "2024-05-01 12:00:00+02"}', '[1]'), (2, '{}', 'no');
SELECT JSON_VALUE(v, '$.a[0]' RETURNING int) FROM doc ORDER BY k;
:status
SELECT JSON_VALUE(v, '$.at' RETURNING timestamptz) AT TIME ZONE 'UTC' FROM doc ORDER BY k;
:status
SELECT JSON_QUERY(v, '$.a') FROM doc ORDER BY k;
:status
SELECT JSON_EXISTS(v, '$.a') FROM doc ORDER BY k;
:status
SELECT t IS JSON AS is_json, t IS JSON OBJECT WITH UNIQUE KEYS AS is_object FROM doc ORDER BY k;
:status
SELECT JSON_OBJECT('k': k, 't': t) FROM doc ORDER BY k;
:status
SELECT JSON_ARRAY(k, t ABSENT ON NULL) FROM doc ORDER BY k;
:status
SELECT JSON_ARRAY(SELECT k FROM doc ORDER BY k);
:status
SELECT JSON_ARRAYAGG(k ORDER BY k), JSON_OBJECTAGG(k: t) FROM doc WHERE k = 1;
:status
SELECT k, JSON_SCALAR(t), JSON('{}') FROM doc ORDER BY k;
:status
SELECT j.* FROM doc, JSON_TABLE(v, '$.a[*]' COLUMNS (n FOR ORDINALITY, x int PATH '$', NESTED PATH '$.b' COLUMNS (y int PATH '$'))) j;
:status
SELECT count(*) FROM doc WHERE k IN (SELECT x FROM JSON_TABLE('[1, 5]', '$[*]' COLUMNS (x int PATH '$')));
:status
-- Inside a view, whether the column is asked for or not.
CREATE VIEW doc_view AS SELECT k, JSON_VALUE(v, '$.a[1]') AS second FROM doc;
SELECT second FROM doc_view ORDER BY k;
:status
SELECT cacheable, reason FROM arrow_cache.why('SELECT second FROM doc_view');
SELECT cacheable, reason FROM arrow_cache.why($$SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (x int PATH '$'))$$);
SELECT cacheable, reason FROM arrow_cache.why($$SELECT * FROM doc, XMLTABLE('/r' PASSING XML '<r/>' COLUMNS x int)$$);
-- The functions beside them are cached. They may read settings, which are in the key.
SELECT jsonb_path_query(v, '$.at.timestamp_tz().string()') FROM doc;
SELECT jsonb_path_query(v, '$.at.timestamp_tz().string()') FROM doc;
:status
SET datestyle = 'German';
SELECT jsonb_path_query(v, '$.at.timestamp_tz().string()') FROM doc;
:status
RESET datestyle;
SELECT jsonb_path_query(v, '$.at.timestamp_tz().string()') FROM doc;
:status
SELECT any_value(t) FROM doc WHERE k = 1;
SELECT any_value(t) FROM doc WHERE k = 1;
:status
DROP VIEW doc_view;
DROP TABLE doc;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
