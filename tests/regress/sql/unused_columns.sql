-- Columns of sub-queries, views and WITH queries that nothing uses: the planner leaves them out, so what they ask for does not count.
\pset footer off
\pset format unaligned
\pset tuples_only on
SET seq_page_cost = 1000000;
CREATE TABLE event (id int PRIMARY KEY, at timestamptz, kind int);
INSERT INTO event SELECT g, timestamptz '2026-01-01' + g * interval '1 day', g % 3 FROM generate_series(1, 20) g;
CREATE TABLE label (kind int, name text);
INSERT INTO label VALUES (0, 'zero'), (1, 'one'), (2, 'two');
CREATE VIEW aged AS SELECT *, extract(epoch FROM now() - at) AS age FROM event;
CREATE VIEW above_aged AS SELECT id, kind, age, age * 2 AS twice FROM aged;
CREATE VIEW fenced WITH (security_barrier) AS SELECT *, extract(epoch FROM now() - at) AS age FROM event WHERE kind < 2;
CREATE SEQUENCE counted;
CREATE FUNCTION by_default(float8) RETURNS float8 LANGUAGE sql RETURN $1 * 2;
CREATE FUNCTION seen() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RAISE NOTICE 'seen'; RETURN 1; END $$;
CREATE VIEW asked AS
SELECT number, query, (arrow_cache.why(query)).* FROM (VALUES
    -- Nothing uses it.
    (1, 'SELECT count(*) FROM aged'),
    (2, 'SELECT id, kind FROM aged WHERE kind = 1 ORDER BY id LIMIT 5'),
    (3, 'SELECT kind, count(*) FROM (SELECT *, now() AS asof FROM event) v GROUP BY kind'),
    (4, 'SELECT kind, count(*) FROM (SELECT *, now()::timestamp AS asof, pg_typeof(now()) AS x FROM event OFFSET 0) v GROUP BY kind'),
    (5, 'SELECT count(*) FROM above_aged'),
    (6, 'SELECT id FROM fenced'),
    (7, 'WITH w AS (SELECT *, now() - at AS age FROM event) SELECT count(*) FROM w'),
    (8, 'WITH w AS (SELECT *, now() - at AS age FROM event), x AS (SELECT *, age * 2 AS twice FROM w) SELECT count(*) FROM x'),
    (9, 'WITH w AS NOT MATERIALIZED (SELECT *, now() - at AS age FROM event) SELECT (SELECT count(*) FROM w), (SELECT max(id) FROM w)'),
    (10, 'WITH w AS (SELECT now() FROM event) SELECT id FROM event'),
    (11, 'SELECT name, count(*) FROM aged JOIN label USING (kind) GROUP BY name'),
    (12, 'SELECT name, count(*) FROM (aged JOIN label USING (kind)) j GROUP BY name'),
    (13, 'SELECT id FROM event WHERE id IN (SELECT id FROM aged)'),
    (14, 'SELECT id FROM (SELECT id, seen() AS s FROM event) v'),
    (15, 'SELECT kind, n FROM (SELECT kind, count(*) AS n, max(now() - at) AS oldest FROM event GROUP BY kind) v'),
    (16, 'SELECT id FROM (SELECT id, row_number() OVER (ORDER BY at), lag(now()) OVER (ORDER BY at) AS l FROM event) v'),
    (17, 'SELECT id, (SELECT count(*) FROM (SELECT now() AS t, e.id) v) FROM event e'),
    (18, 'SELECT e.id, l.name FROM event e, LATERAL (SELECT name, now() - e.at AS age FROM label WHERE label.kind = e.kind) l'),
    (19, 'SELECT id FROM (SELECT id, ''tomorrow''::text::date - at::date AS left_over FROM event) v'),
    (20, 'SELECT id FROM (SELECT id, current_setting(''work_mem'') AS w, at::text::timestamptz AS again FROM event) v'),
    (21, 'SELECT id FROM (SELECT id, date_trunc(''day'', now()) AS day FROM event) v WHERE at_day(id)'),
    (22, 'SELECT l.name FROM (SELECT kind, now() - at AS age FROM event) e, LATERAL (SELECT name, (SELECT e.age) AS age FROM label) l'),
    -- Something uses it.
    (30, 'SELECT sum(age) FROM aged'),
    (31, 'SELECT id FROM aged WHERE age > 5'),
    (32, 'SELECT id FROM aged ORDER BY age'),
    (33, 'SELECT v FROM aged v'),
    (34, 'SELECT twice FROM above_aged'),
    (35, 'SELECT count(v.*) FROM (SELECT id, now() AS t FROM event) v'),
    (36, 'SELECT id FROM (SELECT DISTINCT id, now() AS t FROM event) v'),
    (37, 'SELECT id FROM (SELECT DISTINCT ON (kind) id, kind, now() - at AS t FROM event ORDER BY kind, t) v'),
    (38, 'SELECT id FROM (SELECT id, now() AS t FROM event UNION ALL SELECT id, now() FROM event) v'),
    (39, 'SELECT id FROM (SELECT id, now() - at AS t FROM event ORDER BY t LIMIT 3) v'),
    (40, 'SELECT n FROM (SELECT now() - at AS t, count(*) AS n FROM event GROUP BY 1) v'),
    (41, 'SELECT id FROM (SELECT id, generate_series(1, extract(day FROM now() - at)::int) FROM event) v'),
    (42, 'WITH w AS MATERIALIZED (SELECT *, now() - at AS age FROM event) SELECT count(*) FROM w'),
    (43, 'WITH w AS (SELECT *, now() - at AS age FROM event) SELECT (SELECT count(*) FROM w), (SELECT max(id) FROM w)'),
    (44, 'SELECT e.id FROM aged a, LATERAL (SELECT id FROM event WHERE id < a.age) e'),
    (45, 'SELECT v.id FROM (SELECT id, now() AS t FROM event) v JOIN (SELECT now() AS t) x USING (t)'),
    (46, 'SELECT s FROM (SELECT sum(extract(epoch FROM now() - at)) AS s FROM event) v'),
    (47, 'SELECT l.age FROM (SELECT kind, now() - at AS age FROM event) e, LATERAL (SELECT name, (SELECT e.age) AS age FROM label) l'),
    (48, 'SELECT j.age FROM (aged JOIN label USING (kind)) j'),
    (49, 'WITH RECURSIVE r AS (SELECT 1 AS n, now() AS t FROM event UNION ALL SELECT n + 1, t FROM r WHERE n < 3) SELECT n FROM r'),
    (50, 'SELECT id FROM (SELECT id, now() AS t FROM event) v WHERE EXISTS (SELECT FROM label WHERE v.t > now() - kind * interval ''1 day'')'),
    -- The planner keeps what calls a volatile function, whatever uses it.
    (60, 'SELECT count(*) FROM (SELECT *, random() AS r FROM event) v'),
    (61, 'SELECT count(*) FROM (SELECT *, nextval(''counted'') AS n FROM event) v'),
    (62, 'SELECT id FROM (SELECT id, by_default(1.0 * kind) AS b FROM event) v'),
    (63, 'SELECT id FROM (SELECT id, by_default(extract(day FROM now())::float8) AS b FROM event) v')
) AS queries (number, query);
CREATE FUNCTION at_day(int) RETURNS bool LANGUAGE sql IMMUTABLE RETURN $1 > 0;
-- A function that is VOLATILE by its declaration alone does not have the planner compute a WITH query whole, nor what a column is made of.
CREATE FUNCTION volatile_one(int) RETURNS int LANGUAGE sql RETURN $1;
SELECT cacheable, reason FROM arrow_cache.why('WITH w AS (SELECT id, volatile_one(id) AS z, now() - at AS age FROM event) SELECT id, z FROM w');
SELECT cacheable, reason FROM arrow_cache.why('WITH w AS (SELECT id, volatile_one(id) AS z, now() - at AS age FROM event) SELECT id FROM w');
SELECT cacheable, reason FROM arrow_cache.why('SELECT id FROM (SELECT id, volatile_one(n) AS z FROM (SELECT id, extract(day FROM now())::int AS n FROM event) a) b');
SELECT cacheable, reason FROM arrow_cache.why('SELECT id, z FROM (SELECT id, volatile_one(id) AS z, now() - at AS age FROM event) v');
DROP FUNCTION volatile_one;
SELECT number, cacheable, reason FROM asked WHERE number < 30 ORDER BY number;
SELECT number, cacheable, reason FROM asked WHERE number >= 30 ORDER BY number;

-- An answer without the column is served as long as the rows are the same, at any time.
\set status 'SELECT arrow_cache.last_status(), arrow_cache.last_reason();'
SELECT kind, count(*) FROM aged GROUP BY kind ORDER BY kind;
:status
SELECT pg_sleep(0.01);
SELECT kind, count(*) FROM aged GROUP BY kind ORDER BY kind;
:status
UPDATE event SET kind = 0 WHERE id = 1;
SELECT kind, count(*) FROM aged GROUP BY kind ORDER BY kind;
:status
-- So is that of a prepared statement.
PREPARE of_kind AS SELECT id FROM above_aged WHERE kind = $1 ORDER BY id LIMIT 2;
EXECUTE of_kind(1);
EXECUTE of_kind(1);
:status
EXECUTE of_kind(2);
:status
-- What is left asks for the day: that is in the key, and the column that moves is not.
SELECT count(*) FROM (SELECT at, now() - at AS age, CURRENT_DATE - at::date AS days FROM event) v WHERE days > 1000000;
SELECT count(*) FROM (SELECT at, now() - at AS age, CURRENT_DATE - at::date AS days FROM event) v WHERE days > 1000000;
:status
DROP VIEW asked, above_aged, aged, fenced;
DROP TABLE event, label;
DROP SEQUENCE counted;
DROP FUNCTION by_default, seen, at_day;
