-- Partitions that a run of a plan leaves out, by the values that it meets: the answer does not rest on them. All other answers rest on every
-- partition that their plan names. Each answer is compared with an execution.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
CREATE TABLE log (at date, level int, amount int) PARTITION BY RANGE (at);
CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE log_2 PARTITION OF log FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE TABLE log_3 PARTITION OF log FOR VALUES FROM ('2026-03-01') TO ('2026-04-01');
CREATE INDEX ON log (at);
INSERT INTO log SELECT '2026-01-01'::date + g, g % 3, g FROM generate_series(0, 89) g;
CREATE TABLE closed (until date);
INSERT INTO closed VALUES ('2026-01-31');
ANALYZE log, closed;

-- A plan for all values leaves partitions out when it is started.
SET plan_cache_mode = force_generic_plan;
PREPARE month (date, date) AS SELECT count(*), sum(level) FROM log WHERE at >= $1 AND at < $2;
EXECUTE month ('2026-01-01', '2026-02-01');
EXECUTE month ('2026-02-01', '2026-04-01');
INSERT INTO log VALUES ('2026-03-31', 0, 0);
EXECUTE month ('2026-01-01', '2026-02-01');
:status
EXECUTE month ('2026-02-01', '2026-04-01');
:status
INSERT INTO log VALUES ('2026-01-31', 0, 0);
EXECUTE month ('2026-01-01', '2026-02-01');
:status
EXECUTE month ('2026-02-01', '2026-04-01');
:status
-- So does one with a division, which a row of another partition might make fail.
PREPARE quotient (date) AS SELECT sum(100 / amount) FROM log WHERE at = $1;
EXECUTE quotient ('2026-02-02');
UPDATE log SET level = level WHERE at = '2026-03-31';
EXECUTE quotient ('2026-02-02');
:status
RESET plan_cache_mode;

-- A bound that is computed when the plan is started.
SELECT count(*) FROM log WHERE at < '2026-02-01'::text::date;
INSERT INTO log VALUES ('2026-03-30', 0, 0);
SELECT count(*) FROM log WHERE at < '2026-02-01'::text::date;
:status

-- A bound that a sub-query gives: the other partitions are never scanned.
SELECT count(*) FROM log WHERE at <= (SELECT max(until) FROM closed);
INSERT INTO log VALUES ('2026-03-30', 0, 0);
SELECT count(*) FROM log WHERE at <= (SELECT max(until) FROM closed);
:status
UPDATE closed SET until = '2026-02-28';
SELECT count(*) FROM log WHERE at <= (SELECT max(until) FROM closed);
:status
INSERT INTO log VALUES ('2026-02-28', 0, 0);
SELECT count(*) FROM log WHERE at <= (SELECT max(until) FROM closed);
:status
-- That another plan might scan it, and meet an error there, does not matter.
SELECT sum(100 / (amount + 1)) FROM log WHERE at <= (SELECT max(until) FROM closed);
UPDATE log SET level = level WHERE at = '2026-03-31';
SELECT sum(100 / (amount + 1)) FROM log WHERE at <= (SELECT max(until) FROM closed);
:status

-- A bound that a join gives.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
UPDATE closed SET until = '2026-01-15';
SELECT count(*), sum(level) FROM closed JOIN log ON at = until;
INSERT INTO log VALUES ('2026-03-30', 0, 0);
SELECT count(*), sum(level) FROM closed JOIN log ON at = until;
:status
INSERT INTO log VALUES ('2026-01-15', 5, 0);
SELECT count(*), sum(level) FROM closed JOIN log ON at = until;
:status
INSERT INTO closed VALUES ('2026-03-30');
SELECT count(*), sum(level) FROM closed JOIN log ON at = until;
:status
DELETE FROM log WHERE at = '2026-03-30';
SELECT count(*), sum(level) FROM closed JOIN log ON at = until;
:status
RESET ALL;

-- What was never scanned does not count, whatever error another plan might meet in it: two rows where one is expected.
CREATE TABLE few (a int, b int);
INSERT INTO few SELECT 2, g FROM generate_series(1, 1000) g;
CREATE INDEX ON few (b);
ANALYZE few;
CREATE TABLE parts (k int, x int) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
INSERT INTO parts VALUES (1, 5);
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SELECT count(*) FROM few WHERE a = 1 AND b = (SELECT x FROM parts);
INSERT INTO parts VALUES (2, 5), (12, 6);
SELECT count(*) FROM few WHERE a = 1 AND b = (SELECT x FROM parts);
:status
RESET ALL;
DROP TABLE few, parts;

-- A table that a run scans in one place and leaves out in another.
PREPARE twice (date) AS SELECT (SELECT count(*) FROM log WHERE at < $1), (SELECT count(*) FROM log_3);
SET plan_cache_mode = force_generic_plan;
EXECUTE twice ('2026-02-01');
INSERT INTO log VALUES ('2026-03-30', 0, 0);
EXECUTE twice ('2026-02-01');
:status
-- Other processes scan: only what is left out at the start counts.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
PREPARE parallel (date) AS SELECT count(*), sum(level) FROM log WHERE at < $1;
EXECUTE parallel ('2026-02-01');
INSERT INTO log VALUES ('2026-03-30', 0, 0);
EXECUTE parallel ('2026-02-01');
:status
INSERT INTO log VALUES ('2026-01-30', 0, 0);
EXECUTE parallel ('2026-02-01');
:status
RESET ALL;
-- An export.
SELECT octet_length(arrow_cache.query('SELECT sum(amount) FROM log WHERE at < ''2026-02-01''::text::date')) > 0 AS exported;
INSERT INTO log VALUES ('2026-03-30', 0, 0);
SELECT sum(amount) FROM log WHERE at < '2026-02-01'::text::date;
:status
-- What it rests on, the table above among it: a partition more.
SELECT relation FROM arrow_cache.relations WHERE relation = ANY ('{log, log_1, log_2, log_3, closed}'::regclass[]) ORDER BY 1;
CREATE TABLE log_0 PARTITION OF log FOR VALUES FROM ('2025-12-01') TO ('2026-01-01');
EXECUTE month ('2026-01-01', '2026-02-01');
:status
DROP TABLE log, closed;
DEALLOCATE ALL;
