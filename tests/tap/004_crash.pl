# A backend that is killed by SIGKILL makes the server create its shared memory again. Nothing of the cache survives: no
# incomplete entry, no pin of the killed backend, no lost byte.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = new_server('crash', conf => "restart_after_crash = on\nmax_parallel_workers_per_gather = 0\n");
create_big($node);
$node->safe_psql('postgres', 'CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 100)');
my $at_rest = bytes_at_rest($node);
my $report = 'SELECT a, pad FROM big ORDER BY a';
my $rows = $node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; $report");

# Kills the backend of a session, then asserts that the server comes back with a cache like new.
sub survives
{
	my ($session, $pid, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $started = 'SELECT pg_postmaster_start_time()';
	my $postmaster = $node->safe_psql('postgres', $started);
	my $log = -s $node->logfile;

	is(kill('KILL', $pid), 1, "$name: killed");
	$node->wait_for_log(qr/database system is ready to accept connections/, $log);
	eval { $session->{run}->finish };

	is($node->safe_psql('postgres', $started), $postmaster, "$name: the same postmaster goes on");
	is(stat($node, 'entries, bytes_used'), $at_rest, "$name: no entries, starting bytes");
	answers_are($node, 'SELECT sum(a) FROM t', '5050', [ 'MISS', 'HIT' ], "$name: the cache works");
	answers_are($node, $report, $rows, [ 'MISS', 'HIT' ], "$name: so it does for a large result");
	is(bytes_at_rest($node), $at_rest, "$name: nothing is left after flush");
	return;
}

# In the middle of a fill.
my $filler = $node->background_psql('postgres');
my $pid = $filler->query_safe('SELECT pg_backend_pid()');
$filler->query_until(qr/started/, "\\echo started\n$SLOW_FILL;\n");
ok(wait_for_fill($node, $at_rest), 'part of a result stands in shared memory');
survives($filler, $pid, 'killed while filling');

# With a cursor open on a hit: its pin dies with it.
my $sorted = 'SELECT a, pad FROM big ORDER BY a, pad';
answers_are($node, $sorted, (answer($node, $sorted))[0], ['HIT'], 'a large hit');
my $reader = $node->background_psql('postgres');
$pid = $reader->query_safe('SELECT pg_backend_pid()');
$reader->query_safe('BEGIN');
$reader->query_safe("DECLARE c NO SCROLL CURSOR FOR $sorted");
is($reader->query_safe('SELECT arrow_cache.last_status()'), 'HIT', 'the cursor is served from the cache');
like($reader->query_safe('FETCH 2 FROM c'), qr/^1\|b+\n2\|c+$/, 'two rows of it');
is($node->safe_psql('postgres', 'SELECT arrow_cache.flush()'), '1', 'its entry is flushed meanwhile');
cmp_ok(stat($node, 'bytes_used'), '>', (split /\|/, $at_rest)[1], 'and stays in memory as long as it is read');
survives($reader, $pid, 'killed while reading a hit');

# With entries of others around: all go, none is stale afterwards.
answers_are($node, 'SELECT sum(a) FROM t', '5050', [ 'MISS', 'HIT' ], 'an entry from before the crash');
my $writer = $node->background_psql('postgres');
$pid = $writer->query_safe('SELECT pg_backend_pid()');
$writer->query_safe('BEGIN; UPDATE t SET a = a + 1');
survives($writer, $pid, 'killed with an open transaction that has written');

done_testing();
