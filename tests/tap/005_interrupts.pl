# A backend that is terminated, a statement that is cancelled or runs into its timeout, an error in the middle: what it
# had stored so far is freed, what it was reading is released, and no incomplete result is ever served.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = new_server('interrupts', conf => "max_parallel_workers_per_gather = 0\n");
create_big($node);
my $at_rest = bytes_at_rest($node);
my $report = 'SELECT a, pad FROM big ORDER BY a';
my $rows = $node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; $report");

# A session in the middle of a fill, and its process.
sub filling
{
	my ($name, %params) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_safe($params{before}) if $params{before};
	$session->query_until(qr/started/, "\\echo started\n$SLOW_FILL;\n\\warn over\n");
	ok(wait_for_fill($node, $at_rest), "$name: part of a result stands in shared memory");
	return ($session, $pid);
}

# Waits for the end of the statement and returns what the session was told.
sub outcome
{
	my ($session) = @_;
	PostgreSQL::Test::Utils::pump_until($session->{run}, $session->{timeout}, \$session->{stderr}, qr/over/);
	my $said = $session->{stderr};
	($session->{stdout}, $session->{stderr}) = ('', '');
	return $said;
}

# No entry, and after a flush the bytes of the start; the cache works.
sub nothing_left
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(stat($node, 'entries'), '0', "$name: no entry");
	is(bytes_at_rest($node), $at_rest, "$name: starting bytes after flush");
	answers_are($node, $report, $rows, [ 'MISS', 'HIT' ], "$name: the cache works");
	is(bytes_at_rest($node), $at_rest, "$name: and gives everything back again");
	return;
}

# Mid-fill.
my ($session, $pid) = filling('terminated');
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 60000)"), 't', 'the filler is terminated');
like(outcome($session), qr/terminating connection due to administrator command/, 'and is told so');
eval { $session->quit };
nothing_left('terminated while filling');

($session, $pid) = filling('cancelled');
is($node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)"), 't', 'the fill is cancelled');
like(outcome($session), qr/canceling statement due to user request/, 'and says so');
nothing_left('cancelled while filling');
is($session->query_safe('SELECT count(*) FROM big'), '20000', 'the cancelled session goes on');
is($session->query_safe('SELECT arrow_cache.last_status()'), 'MISS', 'and fills the cache');
$session->quit;
bytes_at_rest($node);

($session) = filling('timeout', before => q{SET statement_timeout = '3s'});
like(outcome($session), qr/canceling statement due to statement timeout/, 'the fill runs into its timeout');
nothing_left('timed out while filling');
$session->quit;

# A timeout of the transaction (17) ends the session. Before 17 there is none, and the session is terminated.
my $has_transaction_timeout = $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
($session, $pid) = filling('transaction timeout', before => $has_transaction_timeout ? q{SET transaction_timeout = '3s'} : '');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 60000)") unless $has_transaction_timeout;
like(outcome($session), qr/terminating connection due to (transaction timeout|administrator command)/, 'the transaction of a fill runs into its timeout');
eval { $session->quit };
nothing_left('its transaction timed out while filling');

# In a subtransaction: its abort lets go while the transaction lives on.
($session, $pid) = filling('savepoint', before => 'BEGIN; SAVEPOINT s');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
outcome($session);
$session->query_safe('ROLLBACK TO s');
nothing_left('cancelled in a subtransaction');
is($session->query_safe('SELECT count(*) FROM big'), '20000', 'the transaction goes on');
$session->query_safe('COMMIT');
$session->quit;
bytes_at_rest($node);

# A partial fill that is idle: a cursor fetched half-way, then terminated.
$session = $node->background_psql('postgres', on_error_stop => 0);
$pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe('BEGIN READ ONLY; DECLARE c NO SCROLL CURSOR FOR SELECT a, pad FROM big');
$session->query_safe('FETCH 10000 FROM c');
ok(wait_for_fill($node, $at_rest), 'half of a cursor stands in shared memory');
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 60000)"), 't', 'its backend is terminated');
eval { $session->quit };
nothing_left('terminated with a cursor half-way');

# An error from the query itself, after whole batches.
$node->psql('postgres', 'SELECT a, pad, 1 / (20000 - a) FROM big', stderr => \my $errors);
like($errors, qr/division by zero/, 'a query fails in its last row');
nothing_left('failed in its last row');

# Mid-serve: the pin goes with whoever held it.
for my $end (qw(terminate timeout cancel close rollback))
{
	answers_are($node, $report, $rows, [ 'MISS', 'HIT' ], "$end: an entry to be read");
	$session = $node->background_psql('postgres', on_error_stop => 0);
	$pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_safe(q{SET transaction_timeout = '3s'}) if $end eq 'timeout' && $has_transaction_timeout;
	$session->query_safe("BEGIN; DECLARE c NO SCROLL CURSOR FOR $report");
	is($session->query_safe('SELECT arrow_cache.last_status()'), 'HIT', "$end: a cursor on a hit");
	$session->query_safe('FETCH 5 FROM c');
	is($node->safe_psql('postgres', 'SELECT arrow_cache.flush()'), '1', "$end: its entry is flushed meanwhile");
	cmp_ok(stat($node, 'bytes_used'), '>', (split /\|/, $at_rest)[1], "$end: it stays in memory while it is read");
	my $left = join "\n", (split /\n/, $rows)[5 .. 9];
	is($session->query_safe('FETCH 5 FROM c'), $left, "$end: and can be read on");

	if ($end eq 'terminate') { $node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 60000)") }
	elsif ($end eq 'cancel')
	{
		$session->query_until(qr/started/, "\\echo started\nSELECT pg_sleep(600);\n\\warn over\n");
		$node->poll_query_until('postgres',
			"SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $pid");
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
		outcome($session);
	}
	elsif ($end eq 'timeout')
	{
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 60000)") unless $has_transaction_timeout;
		ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"), "$end: the session is over");
	}
	elsif ($end eq 'close') { $session->query_safe('CLOSE c') }
	else { $session->query_safe('ROLLBACK') }

	nothing_left("$end while reading");
	eval { $session->quit };
}

done_testing();
