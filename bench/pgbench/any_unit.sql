\set aid random(1, :entries)
SELECT 1;
