# A standby that is promoted, with readers connected and under load: what it has stored in recovery is not served any more, plans and
# snapshots of then give exact answers, prepared transactions of then may end, and writes invalidate. Other standbys follow it, the old
# primary among them.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StandbyTest;
use Test::More;

my $EXECUTED = qr/^(?:STALE|MISS)$/;
my $HELD = qr/^BYPASS (?:writer|ddl)_in_progress$/;
my $CACHE = "shared_preload_libraries = 'pg_arrow_cache'\n";

my $primary = new_primary('primary', conf => "wal_log_hints = on\nwal_keep_size = 128MB\n");
$primary->safe_psql('postgres', q{
	CREATE TABLE t (v int); INSERT INTO t VALUES (1);
	CREATE TABLE u (v int); INSERT INTO u VALUES (1);
	CREATE TABLE rows (a int, v int); INSERT INTO rows SELECT g, g FROM generate_series(1, 10) g;
	CREATE FUNCTION times(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
	CREATE TABLE untouched (v int); INSERT INTO untouched VALUES (1);
});
my $standby = new_standby('standby', $primary);
my $second = new_standby('second', $primary);
my $cascade = new_standby('cascade', $standby);
my $writer = session($primary);
my %query = map { $_ => "SELECT sum(v) FROM $_" } qw(t u rows untouched);

# Readers of before: one with prepared statements, one with open portals, one with a snapshot.
my ($reader, $portals, $snapshot, $prepares) = map { session($standby) } 1 .. 4;
caught_up($writer, $reader);
cached($reader, $query{$_}, "in recovery: $_") for sort keys %query;

my $BY_KEY = 'EXECUTE by_key(%d)';
write_sql($prepares, 'PREPARE by_key(int) AS SELECT v FROM rows WHERE a = $1', 'PREPARE whole AS SELECT sum(v) FROM t');
cached($prepares, sprintf($BY_KEY, $_), "a prepared statement, $_") for 1 .. 7;
cached($prepares, 'EXECUTE whole', 'a prepared statement without parameters');

# The first portal was served from the cache, the second one executes.
write_sql($portals, 'BEGIN', 'DECLARE served NO SCROLL CURSOR FOR SELECT a, v FROM rows ORDER BY a');
$portals->query_safe('COMMIT');
cached($portals, 'SELECT a, v FROM rows ORDER BY a', 'rows of a portal');
write_sql($portals, 'BEGIN', 'DECLARE served NO SCROLL CURSOR FOR SELECT a, v FROM rows ORDER BY a',
	'DECLARE untouched NO SCROLL CURSOR FOR SELECT a, v FROM rows ORDER BY a', 'DECLARE executed CURSOR FOR SELECT v, a FROM rows ORDER BY v');
is($portals->query_safe('FETCH 2 FROM served'), "1|1\n2|2", 'a portal is open');
is($portals->query_safe('FETCH 2 FROM executed'), "1|1\n2|2", 'and one that executes');

write_sql($snapshot, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
is_deeply([ ask($snapshot, $query{t}) ], [ '1', 'HIT' ], 'a snapshot of recovery');

# Two transactions are prepared, and a load runs on the primary to its end.
my $CALLED = 'SELECT sum(times(v)) FROM u';
my ($below, $beside) = map { session($cascade) } 1 .. 2;
is(cached($reader, $CALLED, 'a function'), '2', 'the rows of a function');
caught_up($writer, $below);
is(cached($below, $_, 'the standby of the standby'), ask_plainly($reader, $_), 'the standby of the standby has the same') for $query{t}, $CALLED;
write_sql($writer, "BEGIN; UPDATE u SET v = v + 10; CREATE OR REPLACE FUNCTION times(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT \$1 * 3'; "
	  . "PREPARE TRANSACTION 'kept'",
	"BEGIN; INSERT INTO u VALUES (100); UPDATE rows SET v = 0; ROLLBACK",
	"BEGIN; INSERT INTO rows VALUES (11, 11); SAVEPOINT s; INSERT INTO t VALUES (1000); RELEASE s; PREPARE TRANSACTION 'dropped'");
my $load = session($primary);
$load->query_until(qr/begun/, "\\echo begun\nDO \$\$ BEGIN LOOP UPDATE t SET v = v + 1; COMMIT; END LOOP; END \$\$;\n");
my $running = session($primary);
write_sql($running, 'BEGIN', 'INSERT INTO rows VALUES (12, 12)', 'INSERT INTO untouched VALUES (12)');
caught_up($writer, $reader);

# Reads of other sessions go on while the standby is promoted.
my @asking = map { session($standby) } 1 .. 2;
my $last = (ask($reader, $query{t}))[0];
sub does_not_go_back
{
	my ($session, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($now) = ask($session, $query{t});
	cmp_ok($now, '>=', $last, "$name: never older than before");
	$last = $now;
	return;
}
does_not_go_back($_, 'under load') for @asking, @asking;
# The other standby must not know more than the server that will be promoted: then it could not follow.
$second->stop;
$primary->wait_for_catchup($standby);
$primary->stop('immediate');
for my $dead ($load, $running, $writer)
{
	eval { $dead->{run}->finish };
}
$standby->promote;
does_not_go_back($_, 'while it is promoted') for @asking, @asking;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'it is not promoted';
is(state($standby), 'primary', 'promoted');
does_not_go_back($_, 'promoted') for @asking, @asking;
my $plain = session($standby, 'SET pg_arrow_cache.enabled = off');

# Held back by what is prepared; exact all the same.
for my $table (sort keys %query)
{
	for my $session ($reader, $asking[0])
	{
		my ($rows, $status) = ask($session, $query{$table});
		is($rows, ask_plainly($plain, $query{$table}), "$table: rows beside prepared transactions");
		like($status, $HELD, "$table: not stored beside them");
	}
}
is(ask_plainly($plain, $query{rows}), '55', 'what had not committed is gone');

# Snapshots, portals and plans of recovery.
is(ask_plainly($snapshot, $query{$_}), $_ eq 'rows' ? '55' : '1', "the snapshot of recovery: $_") for qw(t u rows untouched);
$standby->safe_psql('postgres', 'UPDATE rows SET v = v + 1; UPDATE t SET v = 7; INSERT INTO untouched VALUES (1)');
is(ask_plainly($snapshot, $query{$_}), $_ eq 'rows' ? '55' : '1', "the snapshot of recovery, after writes: $_")
  for qw(t u rows untouched);
is($portals->query_safe('FETCH ALL FROM served'), join("\n", map { "$_|$_" } 3 .. 10), 'a portal that was served goes on');
is($portals->query_safe('FETCH ALL FROM executed'), join("\n", map { "$_|$_" } 3 .. 10), 'so does one that executes');
is($portals->query_safe('FETCH ALL FROM untouched'), join("\n", map { "$_|$_" } 1 .. 10), 'one that had not begun has its own snapshot');
write_sql($portals, 'COMMIT');
is(ask_plainly($prepares, sprintf($BY_KEY, $_)), $_ + 1, "a prepared statement, $_: the new row") for 1 .. 7;
is(ask_plainly($prepares, 'EXECUTE whole'), '7', 'a prepared statement without parameters: the new rows');
write_sql($snapshot, 'COMMIT');

# The prepared transactions end, each by another session.
is(ask_plainly($plain, $query{u}), '1', 'prepared in recovery');
is((ask($_, $CALLED))[0], '2', 'the function as it was') for $reader, $asking[0], $reader;
$standby->safe_psql('postgres', q{COMMIT PREPARED 'kept'});
is((ask($reader, $query{u}))[0], '11', 'committed when promoted') for 1 .. 2;
is((ask($_, $CALLED))[0], '33', 'so is the function') for $reader, $asking[0], $reader;
$standby->safe_psql('postgres', q{ROLLBACK PREPARED 'dropped'});
my %rows = (t => 7, u => 11, rows => 65, untouched => 2);
for my $table (sort keys %rows)
{
	is(cached($reader, $query{$table}, "all are over: $table"), $rows{$table}, "all are over: the rows of $table");
	is_deeply([ ask($_, $query{$table}) ], [ $rows{$table}, 'HIT' ], "$table: served to others") for $snapshot, $portals, @asking;
}
is(cached($prepares, sprintf($BY_KEY, 3), 'a prepared statement of recovery'), '4', 'and its rows');

# Writes invalidate, by sessions of before and by new ones; so do definitions.
write_sql($reader, 'UPDATE t SET v = v + 1');
is_deeply([ ask($asking[0], $query{t}) ], [ '8', 'STALE' ], 'a session of recovery has written');
$standby->safe_psql('postgres', 'UPDATE t SET v = v + 1');
is_deeply([ ask($reader, $query{t}) ], [ '9', 'STALE' ], 'a new session has written');
is_deeply([ ask($reader, $query{u}) ], [ '11', 'HIT' ], 'another table');
$standby->safe_psql('postgres', 'ALTER TABLE rows ADD w int');
like((ask($reader, $query{rows}))[1], $EXECUTED, 'a definition');

# The standby of the standby has gone on to the new timeline without a restart.
my $now = session($standby);
write_sql($now, 'CHECKPOINT');
caught_up($now, $below);
for my $step (1 .. 2)
{
	for my $ask ($query{t}, $query{u}, $query{untouched}, $CALLED)
	{
		is(cached($below, $ask, "below, $step"), ask_plainly($plain, $ask), "below, $step: $ask");
		is_deeply([ ask($beside, $ask) ], [ ask_plainly($plain, $ask), 'HIT' ], "below, $step: $ask, served to another session");
	}
	write_sql($now, 'UPDATE t SET v = v + 1');
	caught_up($now, $below);
	is_deeply([ ask($below, $query{t}) ], [ ask_plainly($plain, $query{t}), 'STALE' ], "below, $step: a change");
}
is(state($cascade), 'replaying', 'and follows');
$_->quit for $now, $below, $beside;
$cascade->stop;

# Another standby of the old primary follows the new one, on its timeline.
$second->start;
my $other = session($second);
my $of_other = (ask($other, $query{t}))[0];
cmp_ok($of_other, '>=', 1, 'another standby is there');
$other->quit;
$second->stop;
$second->enable_streaming($standby);
$second->append_conf('postgresql.conf', "recovery_target_timeline = latest\n");
$second->start;

# The old primary follows it as well, with the library preloaded there.
my $config = "$PostgreSQL::Test::Utils::tmp_check/primary.conf";
$primary->start;
$primary->safe_psql('postgres', 'UPDATE t SET v = -1; INSERT INTO untouched VALUES (100); CHECKPOINT');
$primary->stop;
system_or_bail('cp', $primary->data_dir . '/postgresql.conf', $config);
command_ok([ 'pg_rewind', '--target-pgdata', $primary->data_dir, '--source-server', $standby->connstr('postgres'), '--config-file', $config,
		'--no-sync' ], 'pg_rewind of the old primary');
system_or_bail('cp', $config, $primary->data_dir . '/postgresql.conf');
$primary->append_conf('postgresql.conf', $CACHE);
$primary->enable_streaming($standby);
$primary->start;

# Followers take what ran when the old primary went for running still, until the new one lists what runs: here, at a checkpoint.
$writer = session($standby);
write_sql($writer, 'CHECKPOINT');
for my $node ($second, $primary)
{
	my $name = $node->name;
	my ($follower, $beside) = map { session($node) } 1 .. 2;
	caught_up($writer, $follower);
	is(state($node), 'replaying', "$name: follows the promoted server");
	for my $table (sort keys %rows)
	{
		is(cached($follower, $query{$table}, "$name: $table"), ask_plainly($writer, $query{$table}), "$name: the rows of $table");
	}
	my $value = (ask($beside, $query{t}))[0];
	write_sql($writer, 'UPDATE t SET v = v + 1');
	caught_up($writer, $follower);
	is_deeply([ ask($follower, $query{t}) ], [ $value + 1, 'STALE' ], "$name: a change");
	is_deeply([ ask($beside, $query{t}) ], [ $value + 1, 'HIT' ], "$name: served to another session");
	is_deeply([ ask($beside, $query{u}) ], [ '11', 'HIT' ], "$name: another table");
	$_->quit for $follower, $beside;
}

# And back: the new primary stops, the old one is promoted once more.
$writer->quit;
my $faithful = session($primary);
cached($faithful, $query{$_}, "before the second promotion: $_") for sort keys %rows;
$standby->stop;
$primary->promote;
$primary->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'it is not promoted';
is(state($primary), 'primary', 'the old primary again');
is(cached($faithful, $query{u}, 'promoted again'), '11', 'its rows');
write_sql($faithful, 'UPDATE u SET v = v + 1');
$primary->safe_psql('postgres', 'UPDATE u SET v = v + 1');
is(cached($faithful, $query{u}, 'promoted again, after writes'), '13', 'its new rows');

$_->quit for $reader, $portals, $snapshot, $prepares, $plain, @asking, $faithful;
done_testing();
