# A subscription with streaming = on and two_phase = on: the apply worker receives transactions before they have ended, and
# prepares them when the publisher does. Subscribers are served the old rows until the end, the new ones from then on.

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
$_->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, v int, pad text);
	CREATE TABLE u (id int PRIMARY KEY, v int);
	CREATE TABLE still (v int);
	CREATE TABLE renamer (v text);
}) for $publisher, $subscriber;
$publisher->safe_psql('postgres', q{
	INSERT INTO t SELECT g, 1, '' FROM generate_series(1, 100) g;
	INSERT INTO u VALUES (1, 1);
	CREATE PUBLICATION p FOR TABLE t, u, still, renamer;
});
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p WITH (streaming = on, two_phase = on)");
$subscriber->wait_for_subscription_sync($publisher, 's');

my ($t, $u, $still) = ('SELECT count(*), sum(v) FROM t', 'SELECT sum(v) FROM u', 'SELECT count(*) FROM still');
# More than logical_decoding_work_mem holds, so that it is streamed.
my $many = q{INSERT INTO t SELECT g, 1, repeat('x', 100) FROM generate_series(1001, 3000) g};

# How many transactions the publisher has streamed so far, and how many parts of them.
sub streamed
{
	my ($what) = @_;
	return $publisher->safe_psql('postgres', "SELECT sum(stream_$what) FROM pg_stat_replication_slots");
}

# Lets the publisher stream what a session has done, though its transaction has not ended: further, small ones make it
# decode up to there, and the subscriber confirms them.
sub pass_by
{
	my ($streamed) = @_;
	$publisher->safe_psql('postgres', 'INSERT INTO still VALUES (1)');
	$publisher->wait_for_catchup('s');
	return $publisher->poll_query_until('postgres',
		"SELECT sum(stream_count) > $streamed FROM pg_stat_replication_slots");
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

# In-progress transactions, ended in each way. Each begins with the rows that the one before it has left.
for my $case (
	[ 'INSERT', $many, 'COMMIT', '100|100', '2100|2100' ],
	[ 'UPDATE', 'UPDATE t SET v = 2', 'ROLLBACK', '2100|2100', '2100|2100' ],
	[ 'UPDATE', 'UPDATE t SET v = 2 WHERE id > 1000', 'COMMIT', '2100|2100', '2100|4100' ],
	[ 'a subtransaction that is released', 'SAVEPOINT a; UPDATE t SET v = 3 WHERE id > 1000; RELEASE a', 'COMMIT',
		'2100|4100', '2100|6100' ],
	[ 'a subtransaction that is rolled back', 'INSERT INTO t VALUES (0, 5); SAVEPOINT a; UPDATE t SET v = 7; ROLLBACK TO a',
		'COMMIT', '2100|6100', '2101|6105' ],
	[ 'DELETE', 'DELETE FROM t WHERE id > 1000', 'COMMIT', '2101|6105', '101|105' ],
	[ 'TRUNCATE', "$many; TRUNCATE t; INSERT INTO t VALUES (1, 1)", 'COMMIT', '101|105', '1|1' ],
	[ 'INSERT', $many, 'COMMIT', '1|1', '2001|2001' ],)
{
	my ($what, $change, $end, $before, $after) = @$case;
	my $name = "streamed $what, $end";
	warm($name, $before);
	my ($transactions, $parts) = (streamed('txns'), streamed('count'));
	my $session = $publisher->background_psql('postgres');
	$session->query_safe('BEGIN');
	$session->query_safe($_) for split /; /, $change;
	ok(pass_by($parts), "$name: streamed while in progress");
	answers_are($subscriber, $t, $before, ['HIT'], "$name: in progress, the old rows are served");
	$session->query_safe($end);
	$session->quit;
	$publisher->wait_for_catchup('s');
	answers_are($subscriber, $t, $after, $before eq $after ? ['HIT'] : [ 'STALE', 'HIT' ], "$name: at its end");
	answers_are($subscriber, $u, '1', ['HIT'], "$name: the other table is served all along");
	cmp_ok(streamed('txns'), '>', $transactions, "$name: it was streamed");
}

# Prepared on the publisher, so prepared by the apply worker, streamed or not; ended there, over a restart of the
# subscriber too.
my ($count, $sum) = (2001, 2001);
for my $restart ('', 'fast', 'immediate')
{
	for my $end ('COMMIT', 'ROLLBACK')
	{
		for my $case ([ 'small', 'UPDATE t SET v = v + 1 WHERE id = 1', 1 ], [ 'streamed', 'UPDATE t SET v = v + 1', $count ])
		{
			my ($what, $change, $more) = @$case;
			my $name = "$what, $end PREPARED" . ($restart ? ", restart ($restart)" : '');
			warm($name, "$count|$sum");
			$publisher->safe_psql('postgres', "BEGIN; $change; PREPARE TRANSACTION 'p'");
			ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_prepared_xacts'),
				"$name: prepared on the subscriber");
			if ($restart)
			{
				$subscriber->stop($restart);
				$subscriber->start;
			}
			is_deeply([ map { (answer($subscriber, $t))[0] } 1 .. 3 ], [ ("$count|$sum") x 3 ],
				"$name: while prepared, the old rows");
			isnt((answer($subscriber, $t))[1], 'HIT', "$name: which are not stored");
			$publisher->safe_psql('postgres', "$end PREPARED 'p'");
			ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_prepared_xacts'),
				"$name: ended on the subscriber");
			$sum += $more if $end eq 'COMMIT';
			is_deeply([ map { (answer($subscriber, $t))[0] } 1 .. 3 ], [ ("$count|$sum") x 3 ], "$name: what is left");
			is((answer($subscriber, $t))[1], 'HIT', "$name: cached again");
		}
	}
}

# A commit without any read since the PREPARE: the entry from before the PREPARE must not be served.
warm('unwatched', "$count|$sum");
$publisher->safe_psql('postgres', q{BEGIN; DELETE FROM t WHERE id = 1; PREPARE TRANSACTION 'p'});
$publisher->safe_psql('postgres', q{COMMIT PREPARED 'p'});
$publisher->wait_for_catchup('s');
my $rows = $subscriber->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; $t");
like($rows, qr/^2000\|/, 'unwatched: one row less');
answers_are($subscriber, $t, $rows, [ 'STALE', 'HIT' ], 'unwatched: the new rows');
answers_are($subscriber, $u, '1', ['HIT'], 'unwatched: the other table is still served');
# TRUNCATE, which keeps readers of the table waiting while it is prepared.
for my $end ('ROLLBACK', 'COMMIT')
{
	my $name = "TRUNCATE, $end PREPARED";
	warm($name, $rows);
	$publisher->safe_psql('postgres', q{BEGIN; TRUNCATE t; PREPARE TRANSACTION 'p'});
	ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_prepared_xacts'), "$name: prepared");
	is((answer($subscriber, $u))[0], '1', "$name: another table meanwhile");
	$publisher->safe_psql('postgres', "$end PREPARED 'p'");
	ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_prepared_xacts'), "$name: ended");
	$rows = '0|' if $end eq 'COMMIT';
	is_deeply([ map { (answer($subscriber, $t))[0] } 1 .. 3 ], [ ($rows) x 3 ], "$name: what is left");
	# It gives the table another file, which is a definition. Once one was prepared, nothing is stored as long as there is an apply worker.
	answers_are($subscriber, $t, $rows, ['BYPASS ddl_in_progress'], "$name: not cached");
	$subscriber->restart;
}

# A trigger of the subscriber that changes a definition in the transaction that the apply worker prepares and commits.
$subscriber->safe_psql('postgres', q{
	CREATE TYPE mood AS ENUM ('sad');
	CREATE TABLE feeling (m mood);
	INSERT INTO feeling VALUES ('sad');
	CREATE FUNCTION rename() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE format('ALTER TYPE public.mood RENAME VALUE %L TO %L', (SELECT m FROM public.feeling), NEW.v);
		RETURN NULL;
	END $$;
	CREATE TRIGGER rename AFTER INSERT ON renamer FOR EACH ROW EXECUTE FUNCTION rename();
	ALTER TABLE renamer ENABLE ALWAYS TRIGGER rename;
});
my $feeling = 'SELECT m FROM feeling';
my $label = 'sad';
for my $case ([ '', 'calm' ], [ 'COMMIT', 'happy' ], [ 'ROLLBACK', 'angry' ])
{
	my ($end, $new) = @$case;
	my $name = $end ? "an enum label, $end PREPARED" : 'an enum label';
	answer($subscriber, $feeling);
	answers_are($subscriber, $feeling, $label, ['HIT'], "$name: cached before") if $end ne 'ROLLBACK';
	my $insert = "INSERT INTO renamer VALUES ('$new')";
	$publisher->safe_psql('postgres', $end ? "BEGIN; $insert; PREPARE TRANSACTION 'p'" : $insert);
	if ($end)
	{
		ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_prepared_xacts'), "$name: prepared");
		is_deeply([ map { (answer($subscriber, $feeling))[0] } 1 .. 3 ], [ ($label) x 3 ], "$name: the old label");
		$publisher->safe_psql('postgres', "$end PREPARED 'p'");
	}
	$publisher->wait_for_catchup('s');
	ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_prepared_xacts'), "$name: ended");
	$label = $new if $end ne 'ROLLBACK';
	is_deeply([ map { (answer($subscriber, $feeling))[0] } 1 .. 3 ], [ ($label) x 3 ], "$name: the label at the end");
	answers_are($subscriber, $feeling, $label, [ $end ? 'BYPASS ddl_in_progress' : 'HIT' ], "$name: cached again");
}
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
$subscriber->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_subscription');
answers_are($subscriber, $feeling, $label, [ 'MISS', 'HIT' ], 'cached without a worker');

done_testing();
