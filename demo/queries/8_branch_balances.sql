-- pgbench's accounts and tellers, by branch.
SELECT b.bid,
       count(*) AS accounts,
       sum(a.abalance) AS balance,
       min(a.abalance) AS lowest,
       max(a.abalance) AS highest,
       (SELECT count(*) FROM pgbench_tellers t WHERE t.bid = b.bid) AS tellers
  FROM pgbench_accounts a
  JOIN pgbench_branches b USING (bid)
 GROUP BY b.bid
 ORDER BY b.bid
