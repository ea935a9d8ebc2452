-- STABLE built-in functions that a cacheable query may call: one call of each kind is served, and its neighbours that read the clock are not.
\pset footer off
\pset format unaligned
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
CREATE TABLE moment (id int, ts timestamptz, d date, m money, a int[]);
INSERT INTO moment VALUES (1, '2024-06-01 12:00+00', '2024-06-01', 12.5, '{1,NULL,3}');
SELECT date_trunc('month', ts) AS month, extract(hour FROM ts) AS hour, to_char(ts, 'YYYY-MM-DD HH24:MI TZ') AS shown, ts + interval '1 day' AS later, ts::date AS d, d::timestamptz AS t, ts > d AS after FROM moment;
SELECT date_trunc('month', ts) AS month, extract(hour FROM ts) AS hour, to_char(ts, 'YYYY-MM-DD HH24:MI TZ') AS shown, ts + interval '1 day' AS later, ts::date AS d, d::timestamptz AS t, ts > d AS after FROM moment;
:status
SELECT m::numeric, m::text, concat(id, d), format('%s %s', id, ts), array_to_string(a, ',', '-'), to_json(a), jsonb_agg(moment), row_to_json(moment), quote_literal(id) FROM moment GROUP BY id, ts, d, m, a, moment;
SELECT m::numeric, m::text, concat(id, d), format('%s %s', id, ts), array_to_string(a, ',', '-'), to_json(a), jsonb_agg(moment), row_to_json(moment), quote_literal(id) FROM moment GROUP BY id, ts, d, m, a, moment;
:status
SELECT count(*) FROM generate_series('2024-01-01 00:00+00'::timestamptz, '2024-01-02 00:00+00', '1 hour') g, moment;
SELECT count(*) FROM generate_series('2024-01-01 00:00+00'::timestamptz, '2024-01-02 00:00+00', '1 hour') g, moment;
:status
SELECT date_trunc('day', ts, 'Asia/Tokyo') AS day FROM moment;
SELECT date_trunc('day', ts, 'Asia/Tokyo') AS day FROM moment;
:status
-- Under another setting, another answer.
SET TimeZone = 'UTC';
SELECT date_trunc('month', ts) AS month, extract(hour FROM ts) AS hour, to_char(ts, 'YYYY-MM-DD HH24:MI TZ') AS shown, ts + interval '1 day' AS later, ts::date AS d, d::timestamptz AS t, ts > d AS after FROM moment;
:status
RESET TimeZone;
SELECT age(ts) > interval '0' AS a FROM moment;
:status
SELECT ts::text::timestamptz = ts AS a FROM moment;
:status
SELECT '12:00'::time::timetz IS NULL AS a FROM moment;
:status
-- Marked IMMUTABLE all the same: what reads the encoding of the client or the state of the server is refused, what reads settings is not.
SELECT json_send(to_json(id)) AS sent FROM moment;
:status
SELECT pg_walfile_name('0/1') IS NULL AS unknown FROM moment;
:status
SELECT textin(point_out(point(1, 2))) AS shown FROM moment;
SELECT textin(point_out(point(1, 2))) AS shown FROM moment;
:status
-- A user-defined type has a user-defined output function: it is refused with the type-generic functions.
CREATE TYPE moment_range AS RANGE (subtype = date);
SELECT concat(id, moment_range(d, d + 1)) FROM moment;
:status
SELECT format('%s', moment_range(d, d + 1)) FROM moment;
:status
CREATE DOMAIN moment_domain AS text;
SELECT concat(id, d::text::moment_domain) FROM moment;
:status

DROP TABLE moment;
DROP TYPE moment_range;
DROP DOMAIN moment_domain;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
