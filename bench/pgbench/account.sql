SELECT abalance FROM pgbench_accounts WHERE aid = 1;
