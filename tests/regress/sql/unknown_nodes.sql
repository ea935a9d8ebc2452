-- A node of a kind that is not known may compute anything, so a query that rests on it is not cached. No query has one in the versions that are
-- supported; here a superuser puts one into a catalog, in the place of a constraint.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
CREATE TABLE odd (i int CONSTRAINT odd_check CHECK (i > 0));
CREATE TABLE odd_parts (i int) PARTITION BY LIST (i);
CREATE TABLE odd_part PARTITION OF odd_parts FOR VALUES IN (1, 2);
INSERT INTO odd VALUES (1), (2);
-- As it was made, it is cached.
SELECT i FROM odd UNION SELECT 3 FROM odd ORDER BY 1;
SELECT i FROM odd UNION SELECT 3 FROM odd ORDER BY 1;
:status
-- The bounds of a partition are no expression. Only the cache reads them: the planner asks for constraints of partitions and children alone.
UPDATE pg_constraint SET conbin = (SELECT relpartbound FROM pg_class WHERE relname = 'odd_part') WHERE conname = 'odd_check';
ALTER TABLE odd SET (fillfactor = 90);
SELECT i FROM odd UNION SELECT 3 FROM odd ORDER BY 1;
SELECT i FROM odd UNION SELECT 3 FROM odd ORDER BY 1;
:status
SELECT cacheable, reason FROM arrow_cache.why('SELECT i FROM odd UNION SELECT 3 FROM odd');
DROP TABLE odd, odd_parts;
