-- The tables of bench/arrow.py. Every value is a hash of its row's number, so that each run builds the same data.

SET timezone = 'UTC';

-- A number in 0 .. n-1 that looks random, for row i in stream s.
CREATE FUNCTION pick(i bigint, s bigint, n bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (hashint8extended(i, s) & 9007199254740991) % n;

-- A hexadecimal digest for row i in stream s.
CREATE FUNCTION digest(i bigint, s bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN md5(i::text || ' ' || s::text);

-- Twenty columns, no type twice except text, which is short in one and long in another. Some hold NULLs.
CREATE TABLE million AS
SELECT (pick(i, 1, 60000) - 30000)::int2 AS small,
       i::int4 AS id,
       pick(i, 2, 9007199254740991) AS large,
       (pick(i, 3, 100000) / 7.0)::float4 AS ratio,
       (pick(i, 4, 1000000000) / 977.0)::float8 AS measure,
       (pick(i, 5, 100000000) / 100.0)::numeric(12, 2) AS price,
       CASE WHEN pick(i, 6, 20) > 0 THEN pick(i, 7, 1000000000)::numeric / 8192 END AS amount,
       CASE WHEN pick(i, 8, 10) > 0 THEN pick(i, 9, 2) = 1 END AS flag,
       date '1990-01-01' + pick(i, 10, 15000)::int AS day,
       time '00:00' + pick(i, 11, 86400000) * interval '1 millisecond' AS clock,
       CASE WHEN pick(i, 12, 20) > 0 THEN timestamp '2001-01-01' + pick(i, 13, 800000000) * interval '1 second' END AS local_moment,
       timestamptz '2001-01-01' + pick(i, 14, 800000000000) * interval '1 millisecond' AS moment,
       digest(i, 15)::uuid AS token,
       CASE WHEN pick(i, 16, 20) > 0 THEN 'item ' || pick(i, 17, 10000) END AS label,
       left(digest(i, 18) || ' ' || digest(i, 19) || ' ' || digest(i, 20), 20 + pick(i, 21, 78)::int) AS remark,
       ('user' || pick(i, 22, 500000) || '@example.org')::varchar(40) AS address,
       left(digest(i, 23), 1 + pick(i, 24, 8)::int)::char(8) AS code,
       decode(left(digest(i, 25), 2 * (4 + pick(i, 26, 12)::int)), 'hex') AS image,
       json_build_object('id', i, 'kind', 'k' || pick(i, 27, 9)) AS envelope,
       jsonb_build_object('n', pick(i, 28, 1000), 'tags', ARRAY[left(digest(i, 29), 6), left(digest(i, 30), 6)], 'ok', i % 2 = 0) AS properties
  FROM generate_series(1, 1000000) AS i;

CREATE TABLE mixed AS SELECT * FROM million WHERE id <= 50000;

-- Types that are stored as PostgreSQL's own image and converted on the way out.
CREATE TYPE mood AS ENUM ('calm', 'glad', 'cross', 'weary');
CREATE TYPE place AS (floor int4, room text);
CREATE TABLE converted AS
SELECT id,
       (enum_range(NULL::mood))[1 + pick(id, 41, 4)] AS mood,
       ARRAY[pick(id, 42, 1000)::int4, NULL, pick(id, 43, 1000)::int4, id] AS numbers,
       ARRAY[label, code::text] AS words,
       make_interval(months => pick(id, 44, 30)::int, days => pick(id, 45, 40)::int, secs => pick(id, 46, 90000) / 8.0) AS span,
       ('10.' || pick(id, 47, 256) || '.' || pick(id, 48, 256) || '.7')::inet AS host,
       int4range(pick(id, 49, 1000)::int, 1000 + pick(id, 50, 1000)::int) AS bounds,
       ROW(pick(id, 51, 40), label)::place AS place
  FROM mixed;

CREATE TABLE ten_million AS
SELECT i AS id,
       pick(i, 61, 1000000)::int4 AS number,
       (pick(i, 62, 1000000000) / 977.0)::float8 AS measure,
       lpad(pick(i, 63, 100000000)::text, 8, '0') AS code
  FROM generate_series(1, 10000000::bigint) AS i;

VACUUM (FREEZE, ANALYZE) million, mixed, converted, ten_million;
CREATE EXTENSION pg_arrow_cache;
