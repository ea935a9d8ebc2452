-- Queries that ask for the time: the values of their clock expressions are in the key if they change by the minute at most.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset tuples_only on
-- Only indexes tell between which rows a time lies (clock_windows.sql has the others).
SET seq_page_cost = 1000000;
CREATE TABLE event (id int, at timestamptz, day date, plain timestamp, n int);
INSERT INTO event SELECT g, now() - g * interval '1 day', CURRENT_DATE - g, now() - g * interval '1 day', g FROM generate_series(1, 800) g;
-- Whether each of these queries is cacheable. What a value is depends on the day, so it is not shown here.
CREATE VIEW asked AS
SELECT number, query, (arrow_cache.why(query)).* FROM (VALUES
    (1, 'SELECT count(*) FROM event WHERE day > CURRENT_DATE - 7'),
    (2, 'SELECT count(*) FROM event WHERE at >= date_trunc(''month'', now() - interval ''12 months'')'),
    (3, 'SELECT count(*) FROM event WHERE at >= date_trunc(''DAY'', transaction_timestamp())'),
    (4, 'SELECT count(*) FROM event WHERE at >= date_trunc(''hours'', statement_timestamp())'),
    (5, 'SELECT count(*) FROM event WHERE plain >= date_trunc(''week'', LOCALTIMESTAMP)'),
    (6, 'SELECT count(*) FROM event WHERE plain >= date_trunc(''week'', LOCALTIMESTAMP(0)) AND at < date_trunc(''minute'', CURRENT_TIMESTAMP(2))'),
    (7, 'SELECT count(*) FROM event WHERE at >= date_trunc(''day'', now(), ''Europe/Berlin'')'),
    (8, 'SELECT count(*) FROM event WHERE day = (now() AT TIME ZONE ''Europe/Berlin'')::date'),
    (9, 'SELECT count(*) FROM event WHERE at >= date_bin(''15 minutes'', now(), ''2020-01-01'')'),
    (10, 'SELECT count(*) FROM event WHERE extract(year FROM at) = extract(year FROM now()) - 1'),
    (11, 'SELECT count(*) FROM event WHERE n = date_part(''doy'', now())::int % 7'),
    (12, 'SELECT to_char(now(), ''"on" YYYY-MM-DD HH24:MI''), id FROM event'),
    (13, 'SELECT extract(hour FROM LOCALTIME), extract(minute FROM CURRENT_TIME), id FROM event'),
    (14, 'SELECT count(*) FROM event WHERE at >= date_trunc(''month'', now() - make_interval(months => 3, days => 1))'),
    (15, 'SELECT count(*) FROM event WHERE at >= date_trunc(''day'', now() - ($1 || '' days'')::interval)'),
    (16, 'SELECT count(*) FROM event WHERE day > CURRENT_DATE - $1::int AND at > date_trunc($2, now())'),
    (17, 'SELECT count(*) FROM event WHERE at >= date_trunc(''day'', now() - 2 * interval ''1 week'')::date + interval ''3 hours'''),
    (18, 'SELECT date_trunc(''day'', now())::date - day AS age, count(*) FROM event GROUP BY 1'),
    (19, 'SELECT id FROM event WHERE CASE WHEN day > CURRENT_DATE THEN true ELSE at > date_trunc(''year'', now()) END'),
    (20, 'WITH w AS MATERIALIZED (SELECT id FROM event WHERE day > CURRENT_DATE - 3) SELECT count(*) FROM w WHERE id IN (SELECT n FROM event WHERE at < now()::date)'),
    (21, 'SELECT count(*) FROM event WHERE at >= date_trunc(''day'', COALESCE($1, now() - interval ''7 days''))'),
    (22, 'SELECT count(*) FROM event WHERE at >= COALESCE(''2020-01-01''::timestamptz, now() - interval ''7 days'')'),
    (23, 'SELECT count(*) FROM event WHERE day >= COALESCE(NULL, ''2020-01-01''::date, CURRENT_DATE + 2147483647)'),
    (24, 'SELECT COALESCE(day, CURRENT_DATE) FROM event'),
    (25, 'SELECT age(at), age(plain), age(day), id FROM event'),
    (26, 'SELECT count(*) FROM event WHERE date_part(''year'', age(at)) = 1 AND day > CURRENT_DATE'),
    (50, 'SELECT count(*) FROM event WHERE at >= to_timestamp(floor(extract(epoch FROM now()) / 3600) * 3600)'),
    (51, 'SELECT count(*) FROM event WHERE n = extract(epoch FROM now())::bigint / 86400'),
    (52, 'SELECT count(*) FROM event WHERE at < date_trunc(''day'', LEAST(now(), $1, ''2100-01-01''))'),
    (53, 'SELECT count(*) FROM event WHERE at < LEAST(now(), ''2020-01-01'')'),
    (54, 'SELECT count(*) FROM event WHERE plain > (CURRENT_DATE || '' 08:00'')::timestamp'),
    (55, 'SELECT count(*) FROM event WHERE day > (to_char(now(), ''YYYY-MM'') || ''-01'')::date AND at > ($1 || '' 08:00'')::timestamptz'),
    (56, 'SELECT CURRENT_DATE::text || ''T'' || extract(hour FROM LOCALTIME), id FROM event'),
    (63, 'SELECT date_trunc(''day'', (SELECT now())) FROM event'),
    (64, 'SELECT count(*) FROM event WHERE at >= $1::varchar::timestamptz AND at < date_trunc(''day''::varchar, now() - ''1 day''::bpchar::interval)'),
    (65, 'SELECT count(*) FROM event WHERE at >= date_trunc(''day'', now() - concat(3, '' days''::varchar)::interval) AND n > format(''%s'', CURRENT_DATE - 1)::date - CURRENT_DATE'),
    (66, 'SELECT count(*) FROM event WHERE now() > ''2020-01-01'' AND CURRENT_DATE <= ''2200-01-01''::timestamp'),
    -- What moves all the time.
    (57, 'SELECT count(*) FROM event WHERE n < round(extract(epoch FROM now())::float8)'),
    (58, 'SELECT count(*) FROM event WHERE at < LEAST(now(), ''2100-01-01'')'),
    (59, 'SELECT now()::text, id FROM event'),
    (30, 'SELECT count(*) FROM event WHERE at > now() - interval ''1 hour'''),
    (31, 'SELECT count(*) FROM event WHERE at > date_trunc(''second'', now())'),
    (32, 'SELECT count(*) FROM event WHERE at > date_trunc(''milliseconds'', now()) - interval ''1 day'''),
    (33, 'SELECT count(*) FROM event WHERE at > date_bin(''15 seconds'', now(), ''2020-01-01'')'),
    (34, 'SELECT extract(epoch FROM now()), id FROM event'),
    (35, 'SELECT extract(second FROM CURRENT_TIME), id FROM event'),
    (36, 'SELECT to_char(now(), ''HH24:MI:SS''), id FROM event'),
    (37, 'SELECT to_char(now(), ''US''), id FROM event'),
    (38, 'SELECT count(*) FROM event WHERE day > CURRENT_DATE - 7 AND at < now()'),
    (39, 'SELECT date_trunc(''day'', now() - at) FROM event'),
    (40, 'SELECT CURRENT_TIME, id FROM event'),
    (41, 'SELECT LOCALTIMESTAMP, id FROM event'),
    (42, 'SELECT date_trunc(''day'', CASE WHEN id = 1 THEN now() END) FROM event'),
    (44, 'SELECT date_trunc(''day'', GREATEST(now(), at)) FROM event'),
    (45, 'SELECT count(*) FROM event WHERE at >= COALESCE($1, now() - interval ''7 days'')'),
    (46, 'SELECT count(*) FROM event WHERE at >= COALESCE(now() - interval ''7 days'', ''2020-01-01'')'),
    (47, 'SELECT date_trunc(''day'', COALESCE(at, now())) FROM event'),
    (67, 'SELECT (SELECT now()), id FROM event'),
    (68, 'SELECT count(*) FROM event WHERE at > date_trunc(''second''::varchar, (SELECT now()))'),
    (69, 'SELECT count(*) FROM event WHERE date_trunc(''day'', (SELECT now() FROM event LIMIT 1)) > at'),
    -- What asks for this very moment, or for the time in other ways.
    (60, 'SELECT date_trunc(''day'', clock_timestamp()), id FROM event'),
    (61, 'SELECT timeofday()::date, id FROM event'),
    (62, 'SELECT age(now(), at), id FROM event')
) AS questions (number, query) ORDER BY number;
SELECT cacheable, reason, query FROM asked;
-- What cannot be computed is left to PostgreSQL, which may not need it.
SELECT cacheable, reason FROM arrow_cache.why('SELECT count(*) FROM event WHERE false AND day > CURRENT_DATE + 2147483647');
SELECT cacheable, reason FROM arrow_cache.why('SELECT count(*) FROM event WHERE day > CURRENT_DATE + 2147483647');

-- The second execution is a hit. A hit has the rows of an execution.
SELECT count(*), min(id), max(id) FROM event WHERE day > CURRENT_DATE - 7;
SELECT count(*), min(id), max(id) FROM event WHERE day > CURRENT_DATE - 7;
:status
-- Another constant is another question of the same form, and is served without planning once it is stored.
SELECT count(*), min(id), max(id) FROM event WHERE day > CURRENT_DATE - 8;
:status
SELECT count(*), min(id), max(id) FROM event WHERE day > CURRENT_DATE - 8;
:status
SELECT count(*), min(id), max(id) FROM event WHERE day > CURRENT_DATE - 8;
:status
-- A change of the table is seen.
INSERT INTO event VALUES (0, now(), CURRENT_DATE, now(), 0);
SELECT count(*), min(id), max(id) FROM event WHERE day > CURRENT_DATE - 8;
:status
-- A form is not refused for all constants because it is for one.
SELECT count(*) >= 0 FROM event WHERE at > date_trunc('second', now());
:status
SELECT count(*) FROM event WHERE at > date_trunc('day', now()) - interval '370 days' AND at < now()::date - 360;
:status
SELECT count(*) >= 0 FROM event WHERE at > date_trunc('year', now());
:status
SELECT count(*) >= 0 FROM event WHERE at > date_trunc('year', now());
:status

-- The zone of the session decides when a day begins.
SET TimeZone = 'Pacific/Kiritimati';
SELECT count(*) >= 0 FROM event WHERE day = CURRENT_DATE;
SET TimeZone = 'Pacific/Niue';
SELECT count(*) >= 0 FROM event WHERE day = CURRENT_DATE;
:status
SELECT count(*) >= 0 FROM event WHERE day = CURRENT_DATE;
:status
SET TimeZone = 'Pacific/Kiritimati';
SELECT count(*) >= 0 FROM event WHERE day = CURRENT_DATE;
:status
RESET TimeZone;

-- age() with one argument counts from today, as CURRENT_DATE does in a body of its own, which a superuser may replace.
SELECT count(*) > 0 FROM event WHERE age(at) > interval '2 years' OR age(plain) IS NULL;
SELECT count(*) > 0 FROM event WHERE age(at) > interval '2 years' OR age(plain) IS NULL;
:status
BEGIN;
CREATE OR REPLACE FUNCTION pg_catalog.age(timestamp) RETURNS interval LANGUAGE sql STABLE STRICT RETURN age(LOCALTIMESTAMP, $1);
COMMIT;
SELECT cacheable, reason FROM arrow_cache.why('SELECT age(plain) FROM event');
SELECT cacheable, reason FROM arrow_cache.why('SELECT age(at) FROM event');
CREATE OR REPLACE FUNCTION pg_catalog.age(timestamp) RETURNS interval LANGUAGE sql STABLE STRICT PARALLEL SAFE COST 1 RETURN age(CAST(CURRENT_DATE AS timestamp), $1);
SELECT cacheable, reason FROM arrow_cache.why('SELECT age(plain) FROM event');

-- An optional limit: only one that is given makes the answer last. What COALESCE does not choose is not computed.
PREPARE optional (timestamptz, int) AS SELECT count(*) >= 0 FROM event WHERE at >= COALESCE($1, date_trunc('day', now()), now()) AND day < COALESCE($1::date, CURRENT_DATE + $2);
EXECUTE optional ('2020-01-01', 2147483647);
EXECUTE optional ('2020-01-01', 2147483647);
:status
EXECUTE optional (NULL, 2147483647);
:status
EXECUTE optional (NULL, 1);
EXECUTE optional (NULL, 1);
:status
PREPARE moving (timestamptz) AS SELECT count(*) >= 0 FROM event WHERE at >= COALESCE($1, now() - interval '1 day');
EXECUTE moving ('2020-01-01');
EXECUTE moving ('2020-01-01');
:status
EXECUTE moving (NULL);
:status
SET plan_cache_mode = force_generic_plan;
EXECUTE moving ('2020-01-02');
EXECUTE moving ('2020-01-02');
:status
EXECUTE moving (NULL);
:status
EXECUTE optional ('2020-01-02', 2147483647);
EXECUTE optional ('2020-01-02', 2147483647);
:status
RESET plan_cache_mode;

-- Prepared statements: with plans for their values, and with plans for all values.
PREPARE since (int) AS SELECT count(*) FROM event WHERE day > CURRENT_DATE - $1;
EXECUTE since(7);
:status
EXECUTE since(7);
:status
EXECUTE since(9);
:status
SET plan_cache_mode = force_generic_plan;
EXECUTE since(7);
EXECUTE since(7);
:status
EXECUTE since(9);
EXECUTE since(9);
:status
EXECUTE since(10);
:status
EXECUTE since(NULL);
EXECUTE since(NULL);
:status
EXECUTE since(2147483647);
:status
PREPARE from_unit (text, text) AS SELECT count(*) FROM event WHERE at > date_trunc($1, now() - ($2 || ' days')::interval) AND at < now()::date;
EXECUTE from_unit('year', '1000');
EXECUTE from_unit('year', '1000');
:status
EXECUTE from_unit('second', '1000');
:status
EXECUTE from_unit('no unit', '1000');
:status
EXECUTE from_unit('year', 'no number of');
:status
EXECUTE from_unit(NULL, '1');
EXECUTE from_unit(NULL, '1');
:status
RESET plan_cache_mode;

-- The time of a transaction is that of its start, however late a statement in it is.
BEGIN;
SELECT count(*) FROM event WHERE day > CURRENT_DATE - 9;
SELECT count(*) FROM event WHERE day > CURRENT_DATE - 9;
:status
COMMIT;
SELECT count(*) FROM event WHERE day > CURRENT_DATE - 9;
:status
-- statement_timestamp() moves within a transaction, and not within a statement.
SELECT count(*) FROM event WHERE at < date_trunc('day', statement_timestamp()) - interval '730 days';
SELECT count(*) FROM event WHERE at < date_trunc('day', statement_timestamp()) - interval '730 days';
:status
PREPARE by_statement AS SELECT count(*) FROM event WHERE at < date_trunc('day', statement_timestamp()) - interval '730 days';
EXECUTE by_statement;
EXECUTE by_statement;
:status

-- Views, row security, EXPLAIN, cursors.
CREATE VIEW recent AS SELECT id FROM event WHERE day > CURRENT_DATE - 30;
SELECT count(*) FROM recent;
SELECT count(*) FROM recent;
:status
EXPLAIN (COSTS OFF) SELECT count(*) FROM recent;
CREATE ROLE regress_cache_clock;
GRANT SELECT ON event TO regress_cache_clock;
ALTER TABLE event ENABLE ROW LEVEL SECURITY;
CREATE POLICY young ON event USING (day > CURRENT_DATE - 10);
SET ROLE regress_cache_clock;
SELECT count(*) FROM event;
SELECT count(*) FROM event;
:status
RESET ROLE;
SELECT count(*) FROM event WHERE id >= 0;
ALTER POLICY young ON event USING (at > now() - interval '10 days');
SET ROLE regress_cache_clock;
SELECT count(*) FROM event;
:status
RESET ROLE;
ALTER TABLE event DISABLE ROW LEVEL SECURITY;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM event WHERE day > CURRENT_DATE - 3 ORDER BY id;
FETCH ALL FROM c;
COMMIT;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM event WHERE day > CURRENT_DATE - 3 ORDER BY id;
:status
FETCH ALL FROM c;
COMMIT;

-- Exports.
SELECT octet_length(arrow_cache.query('SELECT count(*) FROM event WHERE day > CURRENT_DATE - 11')) > 0;
:status
SELECT octet_length(arrow_cache.query('SELECT count(*) FROM event WHERE day > CURRENT_DATE - 11')) > 0;
:status
SELECT count(*) FROM event WHERE day > CURRENT_DATE - 11;
:status

-- What is not part of a query has no value of the clock in a key: a constraint that excludes a child. The body of a function is part of it.
CREATE FUNCTION today() RETURNS date LANGUAGE sql STABLE RETURN CURRENT_DATE;
SELECT count(*) FROM event WHERE day > today();
:status
-- A function of the server that is marked otherwise is computed when a query is planned.
ALTER FUNCTION pg_catalog.now() IMMUTABLE;
SELECT count(*) FROM event WHERE at > date_trunc('year', now()) - interval '1 year' AND id < 0;
:status
ALTER FUNCTION pg_catalog.now() STABLE;
SELECT count(*) FROM event WHERE at > date_trunc('year', now()) - interval '1 year' AND id < 0;
:status
-- More than a key can hold.
SELECT cacheable, reason FROM arrow_cache.why('SELECT count(*) FROM event WHERE ' || (SELECT string_agg(format('day > CURRENT_DATE - %s', n), ' OR ') FROM generate_series(1, 17) n));
SELECT cacheable, reason FROM arrow_cache.why('SELECT count(*) FROM event WHERE ' || (SELECT string_agg(format('day > CURRENT_DATE - %s', n), ' OR ') FROM generate_series(1, 16) n));
-- Of an expression that is nested deeply, a part is one of the clock.
SELECT cacheable, reason FROM arrow_cache.why('SELECT count(*) FROM event WHERE day > ' || repeat('(', 30) || 'CURRENT_DATE' || repeat(' - 1)', 30));

SELECT reason FROM arrow_cache.bypass_reasons WHERE reason = 'moving_clock' AND statements > 0;
DROP FUNCTION today();
DROP VIEW recent, asked;
DROP OWNED BY regress_cache_clock;
DROP ROLE regress_cache_clock;
DROP TABLE event;
