# Parallel query: the leader caches the whole result, workers never touch the cache, and a hit starts no worker.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $node = new_server('parallel', conf => q{
max_worker_processes = 8
max_parallel_workers = 4
max_parallel_workers_per_gather = 2
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
});
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT g AS a, g % 10 AS k, repeat('x', 100) AS pad FROM generate_series(1, 50000) g;
	ANALYZE t;
});

my $aggregate = 'SELECT k, count(*), sum(a) FROM t GROUP BY k ORDER BY k';
my $wide = 'SELECT a, pad FROM t WHERE a % 2 = 0 ORDER BY a';
my %uncached;
for my $query ($aggregate, $wide)
{
	$uncached{$query} = $node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; $query");
	like($node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off;
			EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query"),
		qr/Workers Launched: [12]/, 'a parallel plan with workers');
	answers_are($node, $query, $uncached{$query}, [ 'MISS', 'HIT', 'HIT' ], 'it is stored and served');
	like($node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $query"), qr/\ACustom Scan \(ArrowCache\)\z/,
		'a hit starts no worker');
}
is(stat($node, 'stores'), '2', 'each result is stored once, by its leader alone');

$node->safe_psql('postgres', 'UPDATE t SET a = -a WHERE a <= 1000');
for my $query ($aggregate, $wide)
{
	my $rows = $node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; $query");
	ok($rows ne $uncached{$query}, 'the update changes the result');
	answers_are($node, $query, $rows, [ 'STALE', 'HIT' ], 'which is stored anew');
}

# A parallel plan read through a cursor runs without workers; with and without them there is one answer.
my $session = $node->background_psql('postgres');
$session->query_safe("BEGIN; DECLARE c NO SCROLL CURSOR FOR $aggregate");
is($session->query_safe('FETCH ALL FROM c'), (answer($node, $aggregate))[0], 'a cursor over it');
$session->query_safe('COMMIT');
$session->quit;

# A worker that fails: the error is the leader's, nothing is stored, nothing is left.
my $at_rest = bytes_at_rest($node);
my ($status, undef, $errors) = $node->psql('postgres', 'SELECT sum(1 / (a - 40000)) FROM t');
isnt($status, 0, 'an error in a parallel plan');
like($errors, qr/ERROR:  division by zero/, 'reaches the client');
is(stat($node, 'entries, bytes_used'), $at_rest, 'and leaves nothing behind');

done_testing();
