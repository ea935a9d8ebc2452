# A commit that waits for a synchronous standby is written and announced, and not yet visible. However long that takes,
# readers get the old rows and nobody stores them as if they were the new ones; whatever ends the wait, the new rows are
# read from then on. Each of many waiting writers counts.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

# The standby that is waited for does not exist; sessions wait if they ask for it.
my $node = new_server('commit_waits', init => { allows_streaming => 1 }, conf => q{
max_prepared_transactions = 10
synchronous_standby_names = 'nobody'
synchronous_commit = local
});
$node->safe_psql('postgres', q{
	CREATE TABLE t (id int, v int);
	INSERT INTO t SELECT g, 0 FROM generate_series(1, 10) g;
	CREATE TABLE u AS SELECT 1 AS v;
});
my ($t, $u) = ('SELECT sum(v) FROM t', 'SELECT v FROM u');
my $sum = 0;

sub waiting
{
	my ($number) = @_;
	return $node->poll_query_until('postgres',
		"SELECT count(*) = $number FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
}

# A session that commits a change and waits.
sub writer
{
	my ($sql) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe('SET synchronous_commit = on');
	$session->{pid} = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_until(qr/sent/, "\\echo sent\n$sql;\n");
	return $session;
}

sub warm
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	answer($node, $_) for $t, $u;
	answers_are($node, $t, $sum, ['HIT'], "$name: cached before");
	return;
}

# While somebody waits.
sub old_rows
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	answers_are($node, $t, $sum, [ ('BYPASS writer_in_progress') x 3 ], "$name: the old rows, and not stored");
	answers_are($node, $u, '1', ['HIT'], "$name: another table is served");
	return;
}

sub new_rows
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is_deeply([ map { (answer($node, $t))[0] } 1 .. 3 ], [ ($sum) x 3 ], "$name: the new rows");
	answers_are($node, $t, $sum, ['HIT'], "$name: cached again");
	answers_are($node, $u, '1', ['HIT'], "$name: another table is still served");
	return;
}

sub cancel
{
	my ($writer) = @_;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($writer->{pid})");
	return;
}

sub terminate
{
	my ($writer) = @_;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($writer->{pid}, 60000)");
	return;
}

sub go_without_standby
{
	$node->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = ''});
	$node->reload;
	return;
}

my $change = 'UPDATE t SET v = v + 1 WHERE id = 1';
for my $case ([ 'the wait is cancelled', \&cancel ], [ 'the session is terminated', \&terminate ])
{
	my ($name, $end) = @$case;
	warm($name);
	my $writer = writer("BEGIN; $change; COMMIT");
	ok(waiting(1), "$name: the commit waits");
	my $snapshot = $node->background_psql('postgres');
	$snapshot->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($snapshot->query_safe($t), $sum, "$name: a snapshot from the time of the wait");
	old_rows($name);
	$end->($writer);
	ok(waiting(0), "$name: it has gone on");
	is($snapshot->query_safe($t), $sum, "$name: that snapshot afterwards");
	$sum++;
	new_rows($name);
	is($snapshot->query_safe($t), $sum - 1, "$name: that snapshot beside the new result");
	$snapshot->query_safe('COMMIT');
	is($snapshot->query_safe($t), $sum, "$name: the next snapshot");
	$snapshot->quit;
	eval { $writer->quit };
}

# PREPARE TRANSACTION and COMMIT PREPARED wait as well.
warm('prepared');
my $preparer = writer("BEGIN; $change; PREPARE TRANSACTION 'p'");
ok(waiting(1), 'PREPARE TRANSACTION waits');
old_rows('PREPARE TRANSACTION waits');
cancel($preparer);
ok(waiting(0), 'it has gone on');
$preparer->quit;
old_rows('prepared');
my $finisher = writer(q{COMMIT PREPARED 'p'});
ok(waiting(1), 'COMMIT PREPARED waits');
old_rows('COMMIT PREPARED waits');
cancel($finisher);
ok(waiting(0), 'it has gone on, too');
$finisher->quit;
$sum++;
new_rows('COMMIT PREPARED');

# Many at once, let go one after the other and in another order than they came.
warm('many');
my @writers;
for my $id (1 .. 8)
{
	push @writers, writer("UPDATE t SET v = v + 1 WHERE id = $id");
	ok(waiting(scalar @writers), "many: $id waits");
}
old_rows('many');
my $last = pop @writers;
for my $writer (reverse @writers)
{
	cancel($writer);
	ok($node->poll_query_until('postgres', "SELECT state = 'idle' FROM pg_stat_activity WHERE pid = $writer->{pid}"),
		'many: one of them has ended');
	$sum++;
	answers_are($node, $t, $sum, [ ('BYPASS writer_in_progress') x 2 ], 'many: its row is seen, and not stored');
}
go_without_standby();
ok(waiting(0), 'many: the last one has ended');
$sum++;
new_rows('many');
$_->quit for @writers, $last;

done_testing();
