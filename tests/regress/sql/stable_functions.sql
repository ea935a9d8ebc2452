-- The STABLE built-in functions that a cacheable query may call, as src/query/volatility/stable.rs lists them. Each number must be a STABLE
-- function of this server with the very signature of its comment: a wrong digit would let a function through that reads the clock.
\pset footer off
\pset format unaligned
CREATE TABLE listed (oid oid PRIMARY KEY, signature text);
-- SETTINGS_ONLY
INSERT INTO listed VALUES
    (89, 'version()'),
    (1085, 'date_out(date)'),
    (1151, 'timestamptz_out(timestamp with time zone)'),
    (1160, 'interval_in(cstring,oid,integer)'),
    (1161, 'interval_out(interval)'),
    (1171, 'date_part(text,timestamp with time zone)'),
    (1174, 'timestamptz(date)'),
    (1176, 'timestamptz(date,time without time zone)'),
    (1178, 'date(timestamp with time zone)'),
    (1189, 'timestamptz_pl_interval(timestamp with time zone,interval)'),
    (1190, 'timestamptz_mi_interval(timestamp with time zone,interval)'),
    (1217, 'date_trunc(text,timestamp with time zone)'),
    (1284, 'date_trunc(text,timestamp with time zone,text)'),
    (1305, '"overlaps"(timestamp with time zone,interval,timestamp with time zone,interval)'),
    (1306, '"overlaps"(timestamp with time zone,timestamp with time zone,timestamp with time zone,interval)'),
    (1307, '"overlaps"(timestamp with time zone,interval,timestamp with time zone,timestamp with time zone)'),
    (1313, 'timestamp_out(timestamp without time zone)'),
    (1388, 'timetz(timestamp with time zone)'),
    (1619, 'pg_typeof("any")'),
    (1768, 'to_char(interval,text)'),
    (1770, 'to_char(timestamp with time zone,text)'),
    (1772, 'to_char(numeric,text)'),
    (1773, 'to_char(integer,text)'),
    (1774, 'to_char(bigint,text)'),
    (1775, 'to_char(real,text)'),
    (1776, 'to_char(double precision,text)'),
    (1777, 'to_number(text,text)'),
    (1778, 'to_timestamp(text,text)'),
    (1780, 'to_date(text,text)'),
    (2019, '"time"(timestamp with time zone)'),
    (2027, '"timestamp"(timestamp with time zone)'),
    (2028, 'timestamptz(timestamp without time zone)'),
    (2049, 'to_char(timestamp without time zone,text)'),
    (2351, 'date_lt_timestamptz(date,timestamp with time zone)'),
    (2352, 'date_le_timestamptz(date,timestamp with time zone)'),
    (2353, 'date_eq_timestamptz(date,timestamp with time zone)'),
    (2354, 'date_gt_timestamptz(date,timestamp with time zone)'),
    (2355, 'date_ge_timestamptz(date,timestamp with time zone)'),
    (2356, 'date_ne_timestamptz(date,timestamp with time zone)'),
    (2357, 'date_cmp_timestamptz(date,timestamp with time zone)'),
    (2377, 'timestamptz_lt_date(timestamp with time zone,date)'),
    (2378, 'timestamptz_le_date(timestamp with time zone,date)'),
    (2379, 'timestamptz_eq_date(timestamp with time zone,date)'),
    (2380, 'timestamptz_gt_date(timestamp with time zone,date)'),
    (2381, 'timestamptz_ge_date(timestamp with time zone,date)'),
    (2382, 'timestamptz_ne_date(timestamp with time zone,date)'),
    (2383, 'timestamptz_cmp_date(timestamp with time zone,date)'),
    (2520, 'timestamp_lt_timestamptz(timestamp without time zone,timestamp with time zone)'),
    (2521, 'timestamp_le_timestamptz(timestamp without time zone,timestamp with time zone)'),
    (2522, 'timestamp_eq_timestamptz(timestamp without time zone,timestamp with time zone)'),
    (2523, 'timestamp_gt_timestamptz(timestamp without time zone,timestamp with time zone)'),
    (2524, 'timestamp_ge_timestamptz(timestamp without time zone,timestamp with time zone)'),
    (2525, 'timestamp_ne_timestamptz(timestamp without time zone,timestamp with time zone)'),
    (2526, 'timestamp_cmp_timestamptz(timestamp without time zone,timestamp with time zone)'),
    (2527, 'timestamptz_lt_timestamp(timestamp with time zone,timestamp without time zone)'),
    (2528, 'timestamptz_le_timestamp(timestamp with time zone,timestamp without time zone)'),
    (2529, 'timestamptz_eq_timestamp(timestamp with time zone,timestamp without time zone)'),
    (2530, 'timestamptz_gt_timestamp(timestamp with time zone,timestamp without time zone)'),
    (2531, 'timestamptz_ge_timestamp(timestamp with time zone,timestamp without time zone)'),
    (2532, 'timestamptz_ne_timestamp(timestamp with time zone,timestamp without time zone)'),
    (2533, 'timestamptz_cmp_timestamp(timestamp with time zone,timestamp without time zone)'),
    (2549, 'interval_pl_timestamptz(interval,timestamp with time zone)'),
    (3462, 'make_timestamptz(integer,integer,integer,integer,integer,double precision)'),
    (3463, 'make_timestamptz(integer,integer,integer,integer,integer,double precision,text)'),
    (3506, 'enum_in(cstring,oid)'),
    (3507, 'enum_out(anyenum)'),
    (3528, 'enum_first(anyenum)'),
    (3529, 'enum_last(anyenum)'),
    (3530, 'enum_range(anyenum,anyenum)'),
    (3531, 'enum_range(anyenum)'),
    (3811, 'money(integer)'),
    (3812, 'money(bigint)'),
    (3823, '"numeric"(money)'),
    (3824, 'money(numeric)'),
    (4135, 'in_range(timestamp with time zone,timestamp with time zone,interval,boolean,boolean)'),
    (6203, '"extract"(text,timestamp with time zone)');
-- TYPE_GENERIC
INSERT INTO listed VALUES
    (1285, 'quote_literal(anyelement)'),
    (1290, 'quote_nullable(anyelement)'),
    (2003, 'textanycat(text,anynonarray)'),
    (2004, 'anytextcat(anynonarray,text)'),
    (2291, 'record_out(record)'),
    (3058, 'concat("any")'),
    (3059, 'concat_ws(text,"any")'),
    (3153, 'array_to_json(anyarray)'),
    (3154, 'array_to_json(anyarray,boolean)'),
    (3155, 'row_to_json(record)'),
    (3156, 'row_to_json(record,boolean)'),
    (3173, 'json_agg_transfn(internal,anyelement)'),
    (3175, 'json_agg(anyelement)'),
    (3176, 'to_json(anyelement)'),
    (3180, 'json_object_agg_transfn(internal,"any","any")'),
    (3197, 'json_object_agg("any","any")'),
    (3198, 'json_build_array("any")'),
    (3199, 'json_build_array()'),
    (3200, 'json_build_object("any")'),
    (3201, 'json_build_object()'),
    (3265, 'jsonb_agg_transfn(internal,anyelement)'),
    (3266, 'jsonb_agg_finalfn(internal)'),
    (3267, 'jsonb_agg(anyelement)'),
    (3268, 'jsonb_object_agg_transfn(internal,"any","any")'),
    (3269, 'jsonb_object_agg_finalfn(internal)'),
    (3271, 'jsonb_build_array("any")'),
    (3272, 'jsonb_build_array()'),
    (3273, 'jsonb_build_object("any")'),
    (3274, 'jsonb_build_object()'),
    (3539, 'format(text,"any")'),
    (3540, 'format(text)'),
    (3787, 'to_jsonb(anyelement)'),
    (3835, 'range_out(anyrange)'),
    (4232, 'multirange_out(anymultirange)');
-- SEARCHING
INSERT INTO listed VALUES
    (3749, 'to_tsvector(text)'),
    (3750, 'to_tsquery(text)'),
    (3751, 'plainto_tsquery(text)'),
    (3754, 'ts_headline(text,tsquery,text)'),
    (3755, 'ts_headline(text,tsquery)'),
    (3760, 'ts_match_tt(text,text)'),
    (3761, 'ts_match_tq(text,tsquery)'),
    (4203, 'ts_headline(jsonb,tsquery,text)'),
    (4204, 'ts_headline(jsonb,tsquery)'),
    (4207, 'ts_headline(json,tsquery,text)'),
    (4208, 'ts_headline(json,tsquery)'),
    (4209, 'to_tsvector(jsonb)'),
    (4210, 'to_tsvector(json)'),
    (4213, 'jsonb_to_tsvector(jsonb,jsonb)'),
    (4215, 'json_to_tsvector(json,jsonb)'),
    (5001, 'phraseto_tsquery(text)'),
    (5009, 'websearch_to_tsquery(text)');
SELECT count(*) FROM listed;
-- Every row of these results is a mistake in the list. From 16 on date_trunc with a time zone of its own (1284) is IMMUTABLE.
SELECT l.oid, l.signature, p.oid::regprocedure AS really, p.provolatile
FROM listed l LEFT JOIN pg_proc p ON p.oid = l.oid
WHERE p.oid IS NULL OR p.oid::regprocedure::text <> l.signature OR p.provolatile <> CASE WHEN l.oid = 1284 AND current_setting('server_version_num')::int >= 160000 THEN 'i' ELSE 's' END OR p.pronamespace <> 'pg_catalog'::regnamespace;
-- None of them writes, returns a trigger or an event, or asks for the time, the user or the transaction by its name.
SELECT signature FROM listed JOIN pg_proc p USING (oid)
WHERE prorettype IN ('trigger'::regtype, 'event_trigger'::regtype) OR prokind NOT IN ('f', 'a') OR proname ~ 'now|current|clock|timeofday|session|user|random|nextval|setval|txid|snapshot';

-- The lists in force: one call of each kind is served, and its neighbours that read the clock are not.
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

DROP TABLE listed, moment;
DROP TYPE moment_range;
DROP DOMAIN moment_domain;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
