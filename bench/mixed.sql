-- A table of mixed types, with as many rows as the variables say. Every value is a hash of its row's number, so that
-- each run builds the same data.

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
CREATE TABLE :name AS
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
  FROM generate_series(1, :rows) AS i;
