-- Columns that are compared with a time to the microsecond: the answer is kept between two rows.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset tuples_only on
SET TimeZone = UTC;
SET seq_page_cost = 1000000;
CREATE TABLE seen (id int, at timestamptz, plain timestamp, day date, n int);
INSERT INTO seen SELECT g, t, t, t, g FROM generate_series(1, 20) g, LATERAL (SELECT timestamptz '2020-01-01 12:00' + g * interval '1 day') d (t);
INSERT INTO seen VALUES (21, NULL, NULL, NULL, NULL), (22, 'infinity', 'infinity', 'infinity', 22);
CREATE TABLE parts (id int, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
CREATE INDEX ON parts (at);
CREATE TABLE parent (id int, at timestamptz);
CREATE INDEX ON parent (at);
CREATE TABLE child () INHERITS (parent);
CREATE MATERIALIZED VIEW stored AS SELECT * FROM seen;
CREATE INDEX ON stored (at);
CREATE VIEW recent AS SELECT id, at FROM seen WHERE at > now() - interval '1 hour';
CREATE VIEW named AS SELECT s.at AS moment, s.id FROM (SELECT at, id FROM seen) s;
CREATE VIEW united AS SELECT at FROM seen UNION ALL SELECT at FROM stored;
CREATE VIEW asked AS
SELECT number, query, (arrow_cache.why(query)).* FROM (VALUES
    (1, 'SELECT count(*) FROM seen WHERE at > now() - interval ''1 hour'''),
    (2, 'SELECT count(*) FROM seen WHERE at BETWEEN now() - interval ''1 day'' AND now()'),
    (3, 'SELECT count(*) FROM seen WHERE localtimestamp - interval ''30 minutes'' <= plain'),
    (4, 'SELECT count(*) FILTER (WHERE at <= now()), sum(CASE WHEN at < statement_timestamp() THEN n END) FROM seen'),
    (5, 'SELECT count(*) FROM seen WHERE at > now() - interval ''100 years'''),
    (6, 'SELECT count(*) FROM seen WHERE at > now() - $1::interval'),
    (7, 'SELECT count(*) FROM seen WHERE day > CURRENT_DATE + extract(second FROM now())::int'),
    (8, 'SELECT count(*) FROM recent'),
    (9, 'SELECT count(*) FROM named WHERE moment > now()'),
    (10, 'SELECT count(*) FROM stored WHERE at > now()'),
    (11, 'SELECT s.id FROM seen s LEFT JOIN stored t ON t.id = s.id AND t.at > now() WHERE EXISTS (SELECT FROM stored WHERE s.at < now())'),
    (12, 'SELECT count(*) FROM seen WHERE at > (SELECT now())'),
    (13, 'SELECT count(*) FROM (SELECT max(at) AS at FROM seen) s WHERE at < now()'),
    (14, 'SELECT n % 2 FROM seen GROUP BY 1 HAVING now() - min(at) FILTER (WHERE n > 2) > interval ''1 day'''),
    -- The time itself is part of the answer, or is compared with something else than such a column.
    (20, 'SELECT now(), id FROM seen WHERE at > now()'),
    (21, 'SELECT id, now() - at FROM seen WHERE at > now()'),
    (22, 'SELECT count(*) FROM seen WHERE at + interval ''1 hour'' > now()'),
    (23, 'SELECT count(*) FROM seen WHERE plain > now()'),
    (24, 'SELECT count(*) FROM seen WHERE at::timestamp > localtimestamp'),
    (25, 'SELECT count(*) FROM seen WHERE at = now()'),
    (26, 'SELECT count(*) FROM seen WHERE (at, id) > (now(), 1)'),
    (27, 'SELECT count(*) FROM seen WHERE at > ANY (ARRAY[now()])'),
    (30, 'SELECT count(*) FROM united WHERE at < now()'),
    (31, 'WITH w AS MATERIALIZED (SELECT at FROM seen) SELECT count(*) FROM w WHERE at < now()'),
    (32, 'SELECT count(*) FROM seen WHERE n > extract(epoch FROM now())'),
    (33, 'SELECT count(*) FROM parts WHERE at > now()'),
    (34, 'SELECT count(*) FROM parent WHERE at > now()'),
    (35, 'SELECT count(*) FROM seen WHERE at > clock_timestamp()'),
    (36, 'SELECT count(*) FROM seen WHERE at > (SELECT now() FROM seen)'),
    (37, 'SELECT n FROM seen GROUP BY 1 HAVING max(at + interval ''1 day'') > now()'),
    (38, 'SELECT n FROM seen GROUP BY 1 HAVING avg(at - ''2000-01-01'') > now() - ''2000-01-01''')
) AS questions (number, query) ORDER BY number;
-- Without an index nothing tells which row is the last one.
SELECT cacheable, reason, detail FROM arrow_cache.why('SELECT count(*) FROM seen WHERE at > now()');
CREATE INDEX ON seen (at DESC);
CREATE INDEX ON seen (plain, id);
CREATE INDEX ON seen (day);
SELECT number, cacheable, reason, CASE WHEN cacheable THEN detail END FROM asked;

-- Later executions are hits, until a row enters or leaves.
SELECT count(*), max(id) FROM seen WHERE at <= now() AND at > now() - interval '100 years';
SELECT pg_sleep(0.01);
SELECT count(*), max(id) FROM seen WHERE at <= now() AND at > now() - interval '100 years';
:status
SELECT count(*), max(id) FROM seen WHERE at <= now() AND at > now() - interval '100 years';
:status
INSERT INTO seen VALUES (23, now(), now(), now(), 23);
SELECT count(*), max(id) FROM seen WHERE at <= now() AND at > now() - interval '100 years';
:status
SELECT count(*), max(id) FROM seen WHERE at <= now() AND at > now() - interval '100 years';
:status
-- The answer is that of all such times, in plans for all values too.
SET plan_cache_mode = force_generic_plan;
PREPARE since (interval) AS SELECT count(*) FROM seen WHERE at > now() - $1;
EXECUTE since ('90 years');
EXECUTE since ('90 years');
:status
EXPLAIN (COSTS OFF) EXECUTE since ('90 years');
DROP INDEX seen_at_idx;
EXECUTE since ('90 years');
:status
CREATE INDEX ON seen (at) WHERE id > 0;
EXECUTE since ('90 years');
:status
CREATE INDEX ON seen (at);
EXECUTE since ('90 years');
EXECUTE since ('90 years');
:status
EXECUTE since (NULL);
EXECUTE since (NULL);
:status
-- A superuser may give the operator another meaning. The function behind it counts.
UPDATE pg_operator SET oprcode = 'timestamptz_ne' WHERE oid = '>(timestamptz,timestamptz)'::regoperator;
SELECT cacheable, reason FROM arrow_cache.why('SELECT count(*) FROM seen WHERE at > now()');
UPDATE pg_operator SET oprcode = 'timestamptz_gt' WHERE oid = '>(timestamptz,timestamptz)'::regoperator;
SELECT cacheable, reason FROM arrow_cache.why('SELECT count(*) FROM seen WHERE at > now()');
-- A small table needs no index.
RESET seq_page_cost;
RESET plan_cache_mode;
DROP INDEX seen_at_idx, seen_at_idx1;
SELECT cacheable, detail FROM arrow_cache.why('SELECT count(*) FROM seen WHERE at > now()');
SELECT count(*) FROM seen WHERE at > now();
SELECT count(*) FROM seen WHERE at > now();
:status
DELETE FROM seen WHERE at > now();
SELECT count(*) FROM seen WHERE at > now();
:status
SELECT count(*) FROM seen WHERE at > now();
:status
SET seq_page_cost = 1000000;
UPDATE seen SET n = n + 1;
SELECT count(*) FROM seen WHERE at > now();
:status
DROP VIEW asked, united, named, recent;
DROP MATERIALIZED VIEW stored;
DROP TABLE seen, parts, parent, child;
