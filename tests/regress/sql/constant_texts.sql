-- Texts that become timestamps are in the key if they are constants, wherever they pass through.
\pset footer off
\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
CREATE TABLE sale (id int PRIMARY KEY, at timestamptz, total int, said text);
INSERT INTO sale SELECT g, timestamptz '2026-11-01' + g * interval '7 hours', g % 5, '2026-11-02' FROM generate_series(1, 12) g;
CREATE VIEW days AS SELECT d FROM (VALUES ('2026-11-01'), ('2026-11-02')) v (d);
CREATE VIEW asked AS
SELECT number, query, (arrow_cache.why(query)).* FROM (VALUES
    (1, 'SELECT count(*) FROM sale, (VALUES (''2026-11-01''), (''2026-11-02'')) v(d) WHERE at >= v.d::timestamp'),
    (2, 'SELECT count(*) FROM sale, (VALUES (1, ''2026-11-01''), (2, NULL)) v(n, d) WHERE at >= v.d::timestamptz'),
    (3, 'SELECT count(*) FROM sale JOIN days ON at >= d::timestamptz'),
    (4, 'WITH v AS (SELECT * FROM days), w AS MATERIALIZED (SELECT d FROM v) SELECT count(*) FROM sale JOIN w ON at >= d::timestamp'),
    (5, 'SELECT count(*) FROM sale, unnest(ARRAY[''2026-11-01'', ''2026-11-02'']) d WHERE at >= d::timestamp'),
    (6, 'SELECT count(*) FROM sale, unnest(''{2026-11-01,2026-11-02}''::text[]) d WHERE at >= d::timestamp'),
    (7, 'SELECT count(*) FROM sale, (SELECT unnest(''{2026-11-01}''::varchar[]) AS d) u WHERE at >= d::timestamptz'),
    (8, 'SELECT count(*) FROM sale, (SELECT ''2026-11-01'' AS d UNION ALL SELECT ''2026-11-02'') u WHERE at >= d::timestamp'),
    (9, 'SELECT count(*) FROM sale, unnest(ARRAY[''2026-11-01''], ARRAY[''2026-11-02'']) u(a, b) WHERE at BETWEEN a::timestamp AND b::timestamp'),
    (10, 'SELECT s.d, sum(total) FROM (SELECT a::timestamp AS d, b::timestamp(3) AS e FROM (VALUES (''2026-11-01T00:00:00.000'', ''2026-11-01T23:59:59.999''), (''2026-11-02T00:00:00.000'', ''2026-11-02T23:59:59.999'')) AS dates (a, b)) AS s'
        ' LEFT JOIN (SELECT date_trunc(''day'', at AT TIME ZONE ''UTC'') AS day, sum(total) AS total FROM sale GROUP BY 1) t ON day > s.e - interval ''7 day'' AND day <= s.e GROUP BY 1 ORDER BY 1'),
    (11, 'SELECT id, (SELECT max(d::timestamp) FROM (VALUES (''2026-11-01'')) v(d) WHERE id > 0) FROM sale'),
    (12, 'SELECT count(*) FROM sale LEFT JOIN (VALUES (''2026-11-01''::varchar)) v(d) ON true WHERE at >= d::timestamptz'),
    (13, 'SELECT count(*) FROM sale, (VALUES (''today''), (''2026-11-02'')) v(d) WHERE at::date >= v.d::date'),
    -- A word for the present time is among them, or they are not all constants.
    (30, 'SELECT count(*) FROM sale, (VALUES (''2026-11-01''), (''now'')) v(d) WHERE at >= v.d::timestamp'),
    (31, 'SELECT count(*) FROM sale, (VALUES (''2026-11-01''), (''  Yesterday 10:00'')) v(d) WHERE at >= v.d::timestamptz'),
    (32, 'SELECT count(*) FROM sale, unnest(''{2026-11-01,TODAY}''::text[]) d WHERE at >= d::timestamp'),
    (33, 'SELECT count(*) FROM sale, (SELECT ''2026-11-01'' AS d UNION ALL SELECT ''tomorrow'') u WHERE at >= d::timestamp'),
    (34, 'SELECT count(*) FROM sale, (VALUES ($1), (''2026-11-02'')) v(d) WHERE at >= v.d::timestamp'),
    (35, 'SELECT count(*) FROM sale, unnest($1::text[]) d WHERE at >= d::timestamp'),
    (36, 'SELECT count(*) FROM sale s, LATERAL (VALUES (s.said)) v(d) WHERE at >= v.d::timestamp'),
    (37, 'SELECT count(*) FROM sale, (SELECT ''2026-11-01'' AS d UNION ALL SELECT said FROM sale) u WHERE at >= d::timestamp'),
    (38, 'SELECT count(*) FROM sale, (VALUES (''no''), (''2026'')) v(d) WHERE at >= (v.d || ''w'')::timestamp'),
    (39, 'SELECT count(*) FROM sale, (VALUES (''10:00'')) v(d) WHERE at::time >= v.d::time'),
    (40, 'SELECT count(*) FROM sale, (VALUES (''10:00 CET'')) v(d) WHERE at::timetz >= v.d::timetz'),
    (41, 'WITH RECURSIVE r AS (SELECT ''2026-11-01'' AS d UNION ALL SELECT d || ''1'' FROM r WHERE length(d) < 12) SELECT count(*) FROM sale, r WHERE at >= d::timestamp'),
    (42, 'SELECT count(*) FROM sale, unnest(ARRAY[''2026-11-01'']) WITH ORDINALITY u(d, n) WHERE at >= n::text::timestamp'),
    (43, 'SELECT count(*) FROM sale, (VALUES (''2026-11-01''), (''now'')) v(d) WHERE at >= (SELECT v.d::timestamp)')
) AS queries (number, query);
SELECT number, cacheable, reason FROM asked WHERE number < 30 ORDER BY number;
SELECT number, cacheable, reason FROM asked WHERE number >= 30 ORDER BY number;

-- Each text is in the key, and so are the settings by which it is read.
\set status 'SELECT arrow_cache.last_status(), arrow_cache.last_reason();'
SELECT count(*), min(d::timestamptz) FROM sale, (VALUES ('2026-11-01'), ('2026-11-02')) v(d) WHERE at >= v.d::timestamptz;
SELECT count(*), min(d::timestamptz) FROM sale, (VALUES ('2026-11-01'), ('2026-11-02')) v(d) WHERE at >= v.d::timestamptz;
:status
SELECT count(*), min(d::timestamptz) FROM sale, (VALUES ('2026-11-01'), ('2026-11-03')) v(d) WHERE at >= v.d::timestamptz;
:status
SET timezone = 'Asia/Tokyo';
SELECT count(*), min(d::timestamptz) FROM sale, (VALUES ('2026-11-01'), ('2026-11-02')) v(d) WHERE at >= v.d::timestamptz;
:status
SET timezone = 'UTC';
SET datestyle = 'ISO, DMY';
SELECT count(*), min(d::timestamp) FROM sale, (VALUES ('04/11/2026')) v(d), (VALUES (1), (2)) w WHERE at >= v.d::timestamp;
SET datestyle = 'ISO, MDY';
SELECT count(*), min(d::timestamp) FROM sale, (VALUES ('04/11/2026')) v(d), (VALUES (1), (2)) w WHERE at >= v.d::timestamp;
:status
-- The form of a statement tells whether a word is among them: one is a hit, the other is not.
SELECT count(*) FROM sale, (VALUES ('2026-11-01'), ('2026-11-02')) v(d) WHERE at > v.d::timestamptz + interval '1 year';
SELECT count(*) FROM sale, (VALUES ('2026-11-01'), ('now')) v(d) WHERE at > v.d::timestamptz + interval '1 year';
:status
SELECT count(*) FROM sale, (VALUES ('2026-11-01'), ('2026-11-02')) v(d) WHERE at > v.d::timestamptz + interval '1 year';
:status
DROP VIEW asked, days;
DROP TABLE sale;
