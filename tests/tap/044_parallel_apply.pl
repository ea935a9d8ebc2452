# A subscription with streaming = parallel, the default of 18: a process of its own applies a large transaction while that goes on, so the rows are written long
# before they are visible, with subtransactions of that process, and it commits, prepares or aborts by itself. The subscriber computes a generated
# column, which is virtual from 18 on, and gets another one from the publisher. Before 16 there is no such process, and the leader applies at the end.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $publisher = new_server('publisher', init => { allows_streaming => 'logical' },
	conf => "logical_decoding_work_mem = 64kB\nmax_prepared_transactions = 10\n");
my $subscriber = new_server('subscriber', init => { allows_streaming => 'logical' },
	conf => "max_prepared_transactions = 10\n");
my $major = int($publisher->safe_psql('postgres', 'SHOW server_version_num') / 10000);
my ($streaming, $kind, $publish) = ($major >= 16 ? 'parallel' : 'on', $major >= 18 ? 'VIRTUAL' : 'STORED',
	$major >= 18 ? 'WITH (publish_generated_columns = stored)' : '');
# The column `sent` is generated on the publisher, and sent from 18 on; before, a default stands in for it.
$publisher->safe_psql('postgres', 'CREATE TABLE t (id int PRIMARY KEY, v int, pad text, sent int GENERATED ALWAYS AS (v * 2) STORED)');
$subscriber->safe_psql('postgres', "CREATE TABLE t (id int PRIMARY KEY, v int, pad text, sent int, own int GENERATED ALWAYS AS (v * 3) $kind)");
$_->safe_psql('postgres', 'CREATE TABLE u (id int PRIMARY KEY, v int); CREATE TABLE still (v int)') for $publisher, $subscriber;
$publisher->safe_psql('postgres', qq{
	INSERT INTO t SELECT g, 1, '' FROM generate_series(1, 100) g;
	INSERT INTO u VALUES (1, 1);
	CREATE PUBLICATION p FOR TABLE t, u, still $publish;
});
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p WITH (streaming = $streaming, two_phase = on)");
$subscriber->wait_for_subscription_sync($publisher, 's');

my ($t, $u) = ('SELECT count(*), sum(v), sum(own) FROM t', 'SELECT sum(v) FROM u');
my $sent = 'SELECT sum(sent) = sum(v) * 2 FROM t';
is($subscriber->safe_psql('postgres', $sent), $major >= 18 ? 't' : '', 'generated columns are sent from 18 on');
my $many = q{INSERT INTO t SELECT g, 1, repeat('x', 100) FROM generate_series(1001, 3000) g};

# Lets the publisher decode, and the subscriber get, what a session has done though its transaction has not ended.
sub pass_by
{
	my ($streamed) = @_;
	$publisher->safe_psql('postgres', 'INSERT INTO still VALUES (1)');
	$publisher->wait_for_catchup('s');
	return $publisher->poll_query_until('postgres', "SELECT sum(stream_count) > $streamed FROM pg_stat_replication_slots");
}

sub warm
{
	my ($name, $rows) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	answer($subscriber, $_) for $t, $u;
	answers_are($subscriber, $t, $rows, ['HIT'], "$name: cached before");
	answers_are($subscriber, $u, '1', ['HIT'], "$name: so is the other table");
	return;
}

sub row { my ($count, $sum) = @_; return join '|', $count, $sum, $sum * 3 }

for my $case (
	[ 'INSERT', $many, 'COMMIT', row(100, 100), row(2100, 2100) ],
	[ 'UPDATE', 'UPDATE t SET v = 2', 'ROLLBACK', row(2100, 2100), row(2100, 2100) ],
	[ 'UPDATE', 'UPDATE t SET v = 2 WHERE id > 1000', 'COMMIT', row(2100, 2100), row(2100, 4100) ],
	[ 'a subtransaction that is released', 'SAVEPOINT a; UPDATE t SET v = 3 WHERE id > 1000; RELEASE a', 'COMMIT', row(2100, 4100), row(2100, 6100) ],
	[ 'a subtransaction that is rolled back', 'INSERT INTO t VALUES (0, 5); SAVEPOINT a; UPDATE t SET v = 7; ROLLBACK TO a', 'COMMIT', row(2100, 6100), row(2101, 6105) ],
	[ 'only a subtransaction that is rolled back', 'SAVEPOINT a; UPDATE t SET v = 7; ROLLBACK TO a', 'COMMIT', row(2101, 6105), row(2101, 6105) ],
	[ 'subtransactions in one another', 'SAVEPOINT a; UPDATE t SET v = 1 WHERE id > 2000; SAVEPOINT b; DELETE FROM t WHERE id <= 2000; ROLLBACK TO b; DELETE FROM t WHERE id < 1000',
		'COMMIT', row(2101, 6105), row(2000, 4000) ],)
{
	my ($what, $change, $end, $before, $after) = @$case;
	my $name = "streamed $what, $end";
	warm($name, $before);
	my $parts = $publisher->safe_psql('postgres', 'SELECT sum(stream_count) FROM pg_stat_replication_slots');
	my $session = $publisher->background_psql('postgres');
	$session->query_safe('BEGIN');
	$session->query_safe($_) for split /; /, $change;
	ok(pass_by($parts), "$name: streamed while in progress");
	# A subtransaction that is gone has left no lock.
	if ($streaming eq 'parallel' && $what !~ /^only/)
	{
		ok($subscriber->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE relation = 't'::regclass AND mode = 'RowExclusiveLock' AND backend_type LIKE 'logical replication parallel worker'"),
			"$name: it is being applied");
	}
	answers_are($subscriber, $t, $before, ['HIT'], "$name: in progress, the old rows are served");
	$session->query_safe($end);
	$session->quit;
	$publisher->wait_for_catchup('s');
	is_deeply([ map { (answer($subscriber, $t))[0] } 1 .. 2 ], [ ($after) x 2 ], "$name: at its end");
	answers_are($subscriber, $t, $after, ['HIT'], "$name: cached again");
	answers_are($subscriber, $u, '1', ['HIT'], "$name: the other table is served all along");
}

my ($count, $sum) = (2000, 4000);
for my $end ('COMMIT', 'ROLLBACK')
{
	my $name = "streamed UPDATE, $end PREPARED";
	warm($name, row($count, $sum));
	$publisher->safe_psql('postgres', "BEGIN; UPDATE t SET v = v + 1; PREPARE TRANSACTION 'p'");
	ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_prepared_xacts'), "$name: prepared on the subscriber");
	is_deeply([ map { (answer($subscriber, $t))[0] } 1 .. 3 ], [ (row($count, $sum)) x 3 ], "$name: while prepared, the old rows");
	isnt((answer($subscriber, $t))[1], 'HIT', "$name: which are not stored");
	$publisher->safe_psql('postgres', "$end PREPARED 'p'");
	ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_prepared_xacts'), "$name: ended on the subscriber");
	$sum += $count if $end eq 'COMMIT';
	is_deeply([ map { (answer($subscriber, $t))[0] } 1 .. 3 ], [ (row($count, $sum)) x 3 ], "$name: what is left");
	is((answer($subscriber, $t))[1], 'HIT', "$name: cached again");
}

# Another expression on the subscriber.
if ($major >= 18)
{
	warm('another expression', row($count, $sum));
	$subscriber->safe_psql('postgres', 'ALTER TABLE t ALTER own SET EXPRESSION AS (v * 5)');
	answers_are($subscriber, $t, "$count|$sum|" . $sum * 5, [ 'STALE', 'HIT' ], 'another expression');
}
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');

done_testing();
