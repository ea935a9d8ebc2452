# Transactions of every shape on a primary: long ones, many at once, sub-transactions beyond what a snapshot lists, prepared ones, and
# more changes than a standby remembers. While they run, the standby serves the rows from before them; when they have committed, theirs.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use StandbyTest;
use Test::More;

my $primary = new_primary('primary');
$primary->safe_psql('postgres', q{
	CREATE TABLE untouched (v int); INSERT INTO untouched VALUES (1);
	CREATE TABLE a (v int); CREATE TABLE b (v int); CREATE TABLE c (v int);
	INSERT INTO a VALUES (1); INSERT INTO b VALUES (1); INSERT INTO c VALUES (1);
});
$primary->safe_psql('postgres', "BEGIN; UPDATE a SET v = v + 1; PREPARE TRANSACTION 'early'");
my $standby = new_standby('standby', $primary);
my %on = (writer => session($primary), first => session($standby), second => session($standby),
	plain => session($standby, 'SET pg_arrow_cache.enabled = off'));
my %query = map { $_ => "SELECT sum(v) FROM $_" } qw(a b c untouched);

# While transactions run of which the standby does not know what they have changed.
my $HELD = qr/^BYPASS (?:writer|ddl)_in_progress$/;
my $EXECUTED = qr/^(?:STALE|MISS)$/;

# Replays all, then asserts what a session gets: the rows, and the status if one is given.
sub reads
{
	my ($table, $rows, $status, $name, $session) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	caught_up(@on{qw(writer first)});
	my ($got, $said) = ask($session // $on{first}, $query{$table});
	is($got, $rows, "$name: $table");
	like($said, ref $status ? $status : qr/^$status$/, "$name: $table: status") if defined $status;
	return;
}

sub is_cached
{
	my ($table, $rows, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	caught_up(@on{qw(writer first)});
	is(cached($on{first}, $query{$table}, "$name: $table"), $rows, "$name: the rows of $table");
	return;
}

# A session of the standby with a snapshot of now.
sub snapshot
{
	my $session = session($standby);
	write_sql($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT v FROM untouched');
	return $session;
}

sub release
{
	my (@sessions) = @_;
	for my $session (@sessions)
	{
		write_sql($session, 'COMMIT');
		$session->quit;
	}
	return;
}

# A transaction that was prepared before the standby was made: nobody there knows what it has changed.
reads('a', 1, $HELD, 'prepared before the standby') for 1 .. 2;
reads('b', 1, $HELD, 'prepared before the standby');
write_sql($on{writer}, "COMMIT PREPARED 'early'");
is_cached('a', 2, 'committed');
is_cached($_, 1, 'committed') for qw(b c untouched);

# Running transactions, more than a slot lists one by one, that end in another order than they began.
my @writers = map { session($primary) } 1 .. 6;
write_sql($writers[$_], 'BEGIN', 'INSERT INTO a VALUES (' . 10**($_ + 1) . ')') for 0 .. 5;
reads('a', 2, 'HIT', 'six writers run');
my $sum = 2;
my @snapshots;
for my $n (3, 0, 5, 1)
{
	push @snapshots, [ snapshot(), $sum ];
	write_sql($writers[$n], 'COMMIT');
	$sum += 10**($n + 1);
	reads('a', $sum, 'STALE', "writer $n has committed");
	is_cached('a', $sum, "writer $n has committed");
}
write_sql($writers[$_], 'ROLLBACK') for 2, 4;
reads('a', $sum, 'HIT', 'the others are rolled back');
reads('a', $_->[1], undef, 'a snapshot from before', $_->[0]) for @snapshots, @snapshots;
reads('untouched', 1, 'HIT', 'a snapshot of then', $_->[0]) for @snapshots;
reads('a', $sum, 'HIT', 'the newest answer is still there');
release(map { $_->[0] } @snapshots);

# Changes in sub-transactions alone, some of which are rolled back.
my $savepoints = q{SAVEPOINT s; UPDATE a SET v = v + 1; RELEASE s; SAVEPOINT s; UPDATE b SET v = v + 1; ROLLBACK TO s};
write_sql($on{writer}, "BEGIN; $savepoints; ROLLBACK");
reads($_, $_ eq 'a' ? $sum : 1, 'HIT', 'all rolled back') for qw(a b);
my $rows = $primary->safe_psql('postgres', 'SELECT count(*) FROM a');
write_sql($on{writer}, "BEGIN; $savepoints; COMMIT");
$sum += $rows;
reads('a', $sum, 'STALE', 'a released savepoint');
reads('b', 1, 'HIT', 'a savepoint rolled back');

# More sub-transactions than a snapshot lists. Every third is rolled back. Readers take snapshots in the middle.
sub many_savepoints
{
	my ($session, $table, $count) = @_;
	write_sql($session, qq{DO \$\$ BEGIN
		FOR i IN 1 .. $count LOOP
			BEGIN
				INSERT INTO $table VALUES (1);
				IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
			EXCEPTION WHEN division_by_zero THEN END;
		END LOOP; END \$\$});
	return;
}
for my $end ('COMMIT', 'ROLLBACK')
{
	my ($x, $y) = map { session($primary) } 1 .. 2;
	my $before = $primary->safe_psql('postgres', $query{b});
	my $of_c = $primary->safe_psql('postgres', $query{c});
	is_cached('b', $before, "before $end");
	write_sql($_, 'BEGIN') for $x, $y;
	many_savepoints($x, 'b', 200);
	write_sql($y, 'UPDATE c SET v = v + 1');
	# The standby learns from a record of running transactions that their lists are not complete.
	write_sql($on{writer}, 'CHECKPOINT');
	reads('b', $before, 'HIT', "$end: 200 savepoints");
	my $middle = snapshot();
	reads('b', $before, undef, "$end: a snapshot in the middle", $middle);
	many_savepoints($x, 'b', 100);
	reads('b', $before, 'HIT', "$end: 300 savepoints");
	write_sql($x, $end);
	my $after = $end eq 'COMMIT' ? $before + 200 - 66 + 100 - 33 : $before;
	reads('b', $after, $end eq 'COMMIT' ? 'STALE' : 'HIT', "$end: all have ended");
	reads('b', $before, undef, "$end: the snapshot in the middle", $middle) for 1 .. 2;
	is_cached('b', $after, $end);
	reads('c', $of_c, undef, "$end: the other still runs");
	write_sql($y, 'COMMIT');
	reads('c', $of_c + 1, undef, "$end: the other has committed");
	is_cached('c', $of_c + 1, "$end: the other has committed");
	reads('c', $of_c, undef, "$end: the snapshot in the middle", $middle);
	reads('b', $after, 'HIT', "$end: still there");
	release($middle);
	$_->quit for $x, $y;
}

# Prepared transactions: known to the standby from their beginning, or it has restarted in between.
sub value
{
	my ($table) = @_;
	return $primary->safe_psql('postgres', $query{$table});
}
for my $restart ('', 'fast', 'immediate')
{
	for my $end ('COMMIT', 'ROLLBACK')
	{
		my $name = "$end PREPARED" . ($restart && " after a restart ($restart)");
		my ($a, $b) = map { value($_) } qw(a b);
		is_cached($_, value($_), $name) for qw(a b c);
		write_sql($on{writer}, "BEGIN; INSERT INTO a VALUES (1); SAVEPOINT s; INSERT INTO b VALUES (1); RELEASE s; "
			  . "SAVEPOINT s; INSERT INTO c VALUES (1); ROLLBACK TO s; PREPARE TRANSACTION 'p'");
		if ($restart)
		{
			caught_up(@on{qw(writer first)});
			$_->quit for @on{qw(first second plain)};
			$standby->restart if $restart eq 'fast';
			$standby->stop($restart), $standby->start if $restart eq 'immediate';
			@on{qw(first second plain)} =
			  (session($standby), session($standby), session($standby, 'SET pg_arrow_cache.enabled = off'));
		}
		reads($_, value($_), $restart ? $HELD : 'HIT', "$name: prepared") for qw(a b c untouched);
		my $before = snapshot();
		write_sql($on{writer}, "$end PREPARED 'p'");
		my $added = $end eq 'COMMIT' ? 1 : 0;
		reads('a', $a + $added, undef, $name);
		reads('b', $b + $added, undef, $name);
		is_cached($_, value($_), $name) for qw(a b c untouched);
		reads('a', $a, undef, "$name: a snapshot from before", $before);
		reads('b', $b, undef, "$name: a snapshot from before", $before);
		reads('c', value('c'), 'HIT', "$name: untouched by it") if !$restart;
		release($before);
	}
}

# Definitions that are changed by a prepared transaction.
write_sql($on{writer}, 'CREATE VIEW shown AS SELECT sum(v) + 1 AS s FROM c');
$query{shown} = 'SELECT s FROM shown';
my $of_view = value('shown');
is_cached('shown', $of_view, 'a view');
write_sql($on{writer}, "BEGIN; CREATE OR REPLACE VIEW shown AS SELECT sum(v) + 2 AS s FROM c; PREPARE TRANSACTION 'p'");
caught_up(@on{qw(writer first)});
write_sql($on{writer}, "COMMIT PREPARED 'p'");
reads('shown', $of_view + 1, $EXECUTED, 'a view that was replaced by a prepared transaction');

# One transaction of very many sub-transactions is nothing special.
my $of_b = value('b');
my $giant = session($primary);
write_sql($giant, 'BEGIN');
many_savepoints($giant, 'b', 40000);
is_cached($_, value($_), 'a giant runs') for qw(a b c);
write_sql($giant, 'COMMIT');
reads('b', $of_b + 40000 - 13333, 'STALE', 'a giant has committed');
reads('a', value('a'), 'HIT', 'a giant has committed');

# More changes of running transactions than the standby remembers (8192 blocks of up to 14 tables of one sub-transaction): all that is
# stored is outdated, and nothing is stored until these transactions are over. Of 64 sub-transactions, those of one would be put together.
my ($crowd, $tables, $parts) = (16, 120, 60);
write_sql($on{writer}, "DO \$\$ BEGIN FOR i IN 1 .. $tables LOOP EXECUTE format('CREATE TABLE crowded_%s (v int)', i); END LOOP; END \$\$");
is_cached($_, value($_), 'before a crowd') for qw(a b c untouched);
my $idle = session($primary);
my %before = map { $_ => value($_) } qw(a b c);
write_sql($idle, 'BEGIN', 'INSERT INTO c VALUES (1)');
for my $n (1 .. $crowd)
{
	write_sql($on{writer}, qq{BEGIN; DO \$\$ BEGIN
		FOR i IN 1 .. $parts LOOP
			BEGIN
				FOR j IN 1 .. $tables LOOP EXECUTE format('INSERT INTO crowded_%s VALUES (1)', j); END LOOP;
			EXCEPTION WHEN division_by_zero THEN END;
		END LOOP; END \$\$; INSERT INTO b VALUES (1); PREPARE TRANSACTION 'crowd_$n'});
}
reads($_, $before{$_}, $HELD, 'a crowd runs') for qw(a b a b);
write_sql($on{writer}, "COMMIT PREPARED 'crowd_$_'") for 1 .. $crowd - 1;
write_sql($on{writer}, "ROLLBACK PREPARED 'crowd_$crowd'");
reads('b', $before{b} + $crowd - 1, $HELD, 'the crowd is gone, another transaction of then is not');
reads($_, $before{$_}, $HELD, 'the crowd is gone, another transaction of then is not') for qw(a c);
my %query_of = (first => 'SELECT count(*) FROM crowded_1', last => "SELECT count(*) FROM crowded_$tables");
is((ask($on{first}, $query_of{$_}))[0], $parts * ($crowd - 1), "the $_ table of the crowd") for sort keys %query_of;
write_sql($idle, 'COMMIT');
is_cached('a', $before{a}, 'all are over');
is_cached('b', $before{b} + $crowd - 1, 'all are over');
is_cached('c', $before{c} + 1, 'all are over');
is(cached($on{first}, $query_of{$_}, "all are over: $_"), $parts * ($crowd - 1), "all are over: the $_ table of the crowd")
  for sort keys %query_of;
write_sql($on{writer}, 'UPDATE c SET v = v');
reads('c', $before{c} + 1, 'STALE', 'and changes are followed');
$_->quit for @writers, $giant, $idle;

# A table that is rewritten is empty for the snapshots of before: the answer of after it is not theirs.
write_sql($on{writer}, 'CREATE TABLE rewritten AS SELECT 7 AS v');
$query{rewritten} = 'SELECT sum(v) FROM rewritten';
is_cached('rewritten', 7, 'before it is rewritten');
my $older = snapshot();
write_sql($on{writer}, 'ALTER TABLE rewritten ADD at timestamptz DEFAULT clock_timestamp()');
is_cached('rewritten', 7, 'after it is rewritten');
reads('rewritten', '', 'BYPASS writer_in_progress', 'a snapshot of before it is rewritten', $older);
release($older);

# A standby that starts beside a transaction whose sub-transactions are not all listed: it lets readers in when that is over.
my ($unlisted, $listed) = map { session($primary) } 1 .. 2;
write_sql($_, 'BEGIN') for $unlisted, $listed;
many_savepoints($unlisted, 'b', 200);
write_sql($listed, 'UPDATE c SET v = v + 1');
%before = map { $_ => value($_) } qw(a b c);
write_sql($on{writer}, 'CHECKPOINT');
caught_up(@on{qw(writer first)});
write_sql($on{first}, 'CHECKPOINT');
$_->quit for @on{qw(first second plain)};
$standby->stop;
# The name of this script must not become that of the standby.
delete local $ENV{PGAPPNAME};
system_or_bail('pg_ctl', '--no-wait', '-D', $standby->data_dir, '-l', $standby->logfile, '-o', '--cluster-name=standby', 'start');
$primary->wait_for_catchup($standby);
many_savepoints($unlisted, 'b', 100);
write_sql($on{writer}, 'INSERT INTO a VALUES (1)');
write_sql($unlisted, 'COMMIT');
write_sql($on{writer}, 'CHECKPOINT');
$primary->wait_for_catchup($standby);
$standby->poll_query_until('postgres', 'SELECT pg_is_in_recovery()') or die 'the standby has not started';
$standby->_update_pid(1);
@on{qw(first second plain)} = (session($standby), session($standby), session($standby, 'SET pg_arrow_cache.enabled = off'));
reads('a', $before{a} + 1, $HELD, 'started beside sub-transactions that are not listed');
reads('b', $before{b} + 200 - 66 + 100 - 33, $HELD, 'started beside sub-transactions that are not listed');
reads('c', $before{c}, $HELD, 'started beside sub-transactions that are not listed');
write_sql($listed, 'COMMIT');
is_cached($_, value($_), 'all of then are over') for qw(a b c);
write_sql($on{writer}, 'UPDATE c SET v = v + 1');
reads('c', value('c'), 'STALE', 'and changes are followed');
$_->quit for $unlisted, $listed;

is(state($standby), 'replaying', 'nothing has switched the cache off');
$_->quit for values %on;
done_testing();
