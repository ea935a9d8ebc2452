\set aid random(1, :entries)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
