# The life of a standby: made under load, restarted, crashed, paused, behind, with standbys of its own, with readers whose snapshots are old,
# behind a primary that crashes. It answers exactly all the time, and hits need no cleaned-up row, so that recovery does not cancel them.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StandbyTest;
use Test::More;
use Time::HiRes qw(usleep);

my $HELD = qr/^BYPASS (?:writer|ddl)_in_progress$/;
my $ACCOUNTS = 20;
my $TOTAL = 'SELECT sum(v) FROM accounts';
my $PAIRS = 'SELECT (SELECT sum(v) FROM accounts), (SELECT count(*) FROM moves), (SELECT sum(v) FROM counter)';

my $primary = new_primary('primary', conf => "restart_after_crash = on\nmax_wal_senders = 10\n");
$primary->safe_psql('postgres', qq{
	CREATE TABLE accounts (id int PRIMARY KEY, v int); INSERT INTO accounts SELECT g, 100 FROM generate_series(1, $ACCOUNTS) g;
	CREATE TABLE moves (a int, b int);
	CREATE TABLE counter (v int); INSERT INTO counter VALUES (0);
	CREATE TABLE t (v int); INSERT INTO t VALUES (1);
	CREATE TABLE untouched (v int); INSERT INTO untouched VALUES (1);
	CREATE PROCEDURE move(count int) LANGUAGE plpgsql AS \$\$
		DECLARE x int; y int;
		BEGIN
			FOR i IN 1 .. count LOOP
				x := 1 + random() * ($ACCOUNTS - 1); y := 1 + random() * ($ACCOUNTS - 1);
				UPDATE accounts SET v = v - 1 WHERE id = least(x, y);
				UPDATE accounts SET v = v + 1 WHERE id = greatest(x, y);
				INSERT INTO moves VALUES (x, y);
				UPDATE counter SET v = v + 1;
				IF i % 10 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
			END LOOP;
		END \$\$;
});
my $writer = session($primary);

# Sends a statement that goes on until a file tells the server that it may end, or until its session ends.
sub load
{
	my $session = session($primary);
	$session->query_until(qr/begun/, "\\echo begun\nCALL move(1000000);\n");
	return $session;
}

# The primary's load ends, and with it its session.
sub unload
{
	my (@sessions) = @_;
	$primary->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CALL move%'});
	eval { $_->quit } for @sessions;
	$primary->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'CALL move%'})
	  or die 'the load goes on';
	return;
}

# Reads again and again with and without the cache under one snapshot. Each transaction sees the sums whole, and both ways to read agree.
sub agrees
{
	my ($node, $rounds, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($cached, $plain) = (session($node), session($node, 'SET pg_arrow_cache.enabled = off'));
	my (@wrong, %seen);
	for (1 .. $rounds)
	{
		write_sql($cached, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
		my $snapshot = $cached->query_safe('SELECT pg_export_snapshot()');
		write_sql($plain, 'BEGIN ISOLATION LEVEL REPEATABLE READ', "SET TRANSACTION SNAPSHOT '$snapshot'");
		for my $query ($PAIRS, $TOTAL, 'SELECT v FROM untouched')
		{
			my ($rows, $status) = ask($cached, $query);
			my $truth = ask_plainly($plain, $query);
			$seen{$status}++;
			push @wrong, "$query: $rows is not $truth ($status)" if $rows ne $truth;
			push @wrong, "$rows is not one state" if $query eq $PAIRS && !is_one_state($rows);
		}
		write_sql($_, 'COMMIT') for $cached, $plain;
	}
	$_->quit for $cached, $plain;
	is_deeply(\@wrong, [], "$name: $rounds snapshots, with and without the cache");
	note "$name: ", explain \%seen;
	return \%seen;
}

sub is_one_state
{
	my ($total, $moves, $counter) = split /\|/, $_[0];
	return $total == 100 * $ACCOUNTS && $moves == $counter;
}

sub follows
{
	my ($node, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $reader = session($node);
	caught_up($writer, $reader);
	my $old = cached($reader, 'SELECT v FROM t', $name);
	cached($reader, 'SELECT v FROM untouched', $name);
	write_sql($writer, 'UPDATE t SET v = v + 1');
	caught_up($writer, $reader);
	is_deeply([ ask($reader, 'SELECT v FROM t') ], [ $old + 1, 'STALE' ], "$name: a change is seen");
	is_deeply([ ask($reader, 'SELECT v FROM untouched') ], [ '1', 'HIT' ], "$name: it concerns one table");
	is(state($node), 'replaying', "$name: the state");
	$reader->quit;
	return;
}

# Made and started while transactions run, some of which stay open for long.
my $open = session($primary);
write_sql($open, 'BEGIN', 'UPDATE t SET v = v + 10', 'SAVEPOINT s', 'INSERT INTO t VALUES (100)', 'RELEASE s');
my @load = map { load() } 1 .. 2;
my $standby = new_standby('standby', $primary, conf => "restart_after_crash = on\nmax_standby_streaming_delay = -1\n");
agrees($standby, 20, 'made under load');
my $reader = session($standby);
caught_up($writer, $reader);
for my $n (1 .. 2)
{
	my ($rows, $status) = ask($reader, 'SELECT sum(v) FROM t');
	is($rows, '1', "$n: a transaction that ran when the standby came");
	like($status, $HELD, "$n: holds the cache back");
}
write_sql($open, 'COMMIT');
$open->quit;
caught_up($writer, $reader);
is((ask($reader, 'SELECT sum(v) FROM t'))[0], '111', 'until it commits');
write_sql($writer, 'DELETE FROM t WHERE v = 100');
follows($standby, 'under load');

# A restartpoint, restarts, and crashes.
write_sql($writer, 'CHECKPOINT');
caught_up($writer, $reader);
write_sql($reader, 'CHECKPOINT');
follows($standby, 'after a restartpoint');
$reader->quit;
for my $mode ('fast', 'immediate')
{
	$standby->stop($mode);
	$standby->start;
	agrees($standby, 10, "after stop ($mode)");
}
my $victim = session($standby);
my $pid = $victim->query_safe('SELECT pg_backend_pid()');
my $log = -s $standby->logfile;
is(kill('KILL', $pid), 1, 'a backend of the standby is killed');
$standby->wait_for_log(qr/database system is ready to accept read-only connections/, $log);
eval { $victim->{run}->finish };
$standby->poll_query_until('postgres', 'SELECT pg_is_in_recovery()') or die 'the standby is gone';
agrees($standby, 20, 'after a crash of a backend');
unload(@load);
follows($standby, 'after a crash of a backend');

# Replay that pauses, and replay that is behind: hits of the state of then.
$reader = session($standby);
my ($reached, $before);
write_sql($reader, 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'no pause';
$before = cached($reader, 'SELECT v FROM t', 'paused');
write_sql($writer, 'UPDATE t SET v = v + 1');
$primary->wait_for_catchup($standby, 'flush');
is_deeply([ ask($reader, 'SELECT v FROM t') ], [ $before, 'HIT' ], 'paused: the old rows') for 1 .. 2;
write_sql($reader, 'SELECT pg_wal_replay_resume()');
caught_up($writer, $reader);
is_deeply([ ask($reader, 'SELECT v FROM t') ], [ $before + 1, 'STALE' ], 'resumed');
my $delay = 'ALTER SYSTEM SET recovery_min_apply_delay =';
write_sql($reader, "$delay '1h'", 'SELECT pg_reload_conf()');
$standby->poll_query_until('postgres', q{SELECT current_setting('recovery_min_apply_delay') = '1h'}) or die 'no delay';
$before = cached($reader, 'SELECT v FROM t', 'behind');
write_sql($writer, 'UPDATE t SET v = v + 1');
$primary->wait_for_catchup($standby, 'flush');
is_deeply([ ask($reader, 'SELECT v FROM t') ], [ $before, 'HIT' ], 'behind: the old rows');
write_sql($reader, "$delay 0", 'SELECT pg_reload_conf()');
caught_up($writer, $reader);
is_deeply([ ask($reader, 'SELECT v FROM t') ], [ $before + 1, 'STALE' ], 'no longer behind');

# A standby of the standby.
my $cascade = new_standby('cascade', $standby);
follows($cascade, 'a standby of a standby');
@load = load();
agrees($cascade, 20, 'a standby of a standby');

# An old snapshot, exported to another session, while changes are replayed. A transaction of the primary sees to it that the rows which
# the snapshot needs are not removed there: replay would wait for the snapshot.
my $keeper = session($primary);
write_sql($keeper, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT v FROM untouched');
caught_up($writer, $reader);
my $old = session($standby);
write_sql($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
my $state = ask_plainly($old, $PAIRS);
ok(is_one_state($state), 'an old snapshot sees one state');
my $snapshot = $old->query_safe('SELECT pg_export_snapshot()');
agrees($standby, 20, 'newer ones');
unload(@load);
follows($standby, 'beside an old snapshot');
my $twin = session($standby);
write_sql($twin, 'BEGIN ISOLATION LEVEL REPEATABLE READ', "SET TRANSACTION SNAPSHOT '$snapshot'");
is(ask_plainly($_, $PAIRS), $state, 'the old snapshot sees the state of then') for $old, $twin, $old, $twin;
is_deeply([ ask($twin, 'SELECT v FROM untouched') ], [ '1', 'HIT' ], 'and is served what has not changed');
write_sql($_, 'COMMIT') for $old, $twin;
isnt(ask_plainly($old, $PAIRS), $state, 'the next one sees more');
$keeper->quit;
$_->quit for $old, $twin;

# The primary crashes with transactions running, of whose end no record tells.
cached($reader, 'SELECT v FROM t', 'before a crash of the primary');
my @lost = map { session($primary) } 1 .. 3;
write_sql($_, 'BEGIN', 'INSERT INTO t VALUES (1000)', 'INSERT INTO moves VALUES (0, 0)') for @lost;
caught_up($writer, $reader);
my $of_t = $reader->query_safe('SET pg_arrow_cache.enabled = off; SELECT v FROM t; SET pg_arrow_cache.enabled = on');
is_deeply([ ask($reader, 'SELECT v FROM t') ], [ $of_t, 'HIT' ], 'transactions run on the primary');
$_->quit for $writer;
$primary->stop('immediate');
eval { $_->{run}->finish } for @lost;
is_deeply([ ask($reader, 'SELECT v FROM t') ], [ $of_t, 'HIT' ], 'the primary is down');
$primary->start;
$writer = session($primary);
caught_up($writer, $reader);
is_deeply([ ask($reader, 'SELECT v FROM t') ], [ $of_t, 'HIT' ], 'it is back, without the transactions');
follows($_, 'after a crash of the primary') for $standby, $cascade;
agrees($standby, 5, 'after a crash of the primary');
$reader->quit;

# Conflicts: vacuum on the primary removes rows that an old snapshot of the standby needs. Executing is cancelled; hits read no rows.
$cascade->stop;
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 0\nhot_standby_feedback = off\n");
$standby->reload;
$standby->poll_query_until('postgres', q{SELECT current_setting('max_standby_streaming_delay') = '0'}) or die 'no delay';
my ($served, $executed) = (session($standby), session($standby, 'SET pg_arrow_cache.enabled = off'));
caught_up($writer, $served);
cached($served, $TOTAL, 'a dashboard');
for my $round (1 .. 3)
{
	cached($served, $TOTAL, "a dashboard, $round");
	my $start = -s $standby->logfile;
	# A long query without the cache holds a snapshot when the rows that it may need are removed.
	$executed->query_until(qr/begun/, "\\echo begun\nSELECT pg_sleep(600), count(*) FROM moves;\n");
	$standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'})
	  or die 'the long query does not run';
	write_sql($writer, 'INSERT INTO moves SELECT 1, 1 FROM generate_series(1, 500)', 'DELETE FROM moves', 'VACUUM moves');
	caught_up($writer, $served);
	$standby->wait_for_log(qr/canceling statement due to conflict with recovery/, $start);
	is_deeply([ ask($served, $TOTAL) ], [ 100 * $ACCOUNTS, 'HIT' ], "round $round: executing is cancelled, a hit is not");
	ask_plainly($executed, 'SELECT 1');
}
$_->quit for $served, $executed;

is(state($standby), 'replaying', 'nothing has switched the cache off');
$writer->quit;
done_testing();
