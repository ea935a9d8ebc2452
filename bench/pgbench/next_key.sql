\set number :number + 1
\set aid :first + :client_id * :share + :number
/*+ arrow_cache */ SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
