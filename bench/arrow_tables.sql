-- What bench/arrow.py reads beside `million`, which bench/mixed.sql makes.

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
