# Zones on a standby: a change on the primary has only those parts computed again in whose zones rows were before and after it. Who has the
# zones tracked is a session of the standby, in the midst of transactions of which replay has noted changes without zones.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use StandbyTest;
use Test::More;

my $primary = new_primary('primary');
my $standby = new_standby('standby', $primary, conf => "pg_arrow_cache.debug_force_fragments = on\n");
my $writer = session($primary);
my ($reader, $other, $plain);

sub connect_readers
{
	($reader, $other, $plain) = (session($standby), session($standby), session($standby, 'SET pg_arrow_cache.enabled = off'));
	return;
}
connect_readers();

sub query_of { return "SELECT count(*), sum(v), max(id) FROM $_[0]" }

# A table of some 150 blocks, whose zones have 16 blocks each, with 464 rows.
sub new_table
{
	my ($name) = @_;
	write_sql($writer, "CREATE TABLE $name (id int, k int, v int, pad text) WITH (fillfactor = 50, autovacuum_enabled = off)",
		"ALTER TABLE $name ALTER pad SET STORAGE PLAIN",
		"INSERT INTO $name SELECT g, g % 5, g * 7 % 1000, repeat('x', 100) FROM generate_series(1, 4000) g",
		"CREATE INDEX ON $name (id)", "VACUUM ANALYZE $name");
	caught_up($writer, $reader);
	return;
}

# How many parts of the answer would be read, and computed, now. Each time it is another question with the same parts.
my $asked = 0;

sub parts
{
	my ($table, $run, $session) = @_;
	my $options = $run ? 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF' : 'COSTS OFF';
	my $plan = ($session // $reader)->query_safe("EXPLAIN ($options) /* arrow_cache: store */ " . query_of($table) . ' HAVING count(*) <> -' . ++$asked);
	my ($stored, $computed) = $plan =~ /Stored Parts: (\d+).*Computed Parts: (\d+)/s;
	die "no parts: $plan" if !defined $computed;
	return ($stored, $computed);
}

# Changes one row of each zone: its group is computed zone by zone from now on.
sub refine
{
	my ($table) = @_;
	parts($table, 1) for 1 .. 2;
	write_sql($writer, "UPDATE $table SET v = v WHERE id % 400 = 0");
	return;
}

sub stores
{
	my ($table, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	caught_up($writer, $reader);
	refine($table);
	caught_up($writer, $reader);
	parts($table, 1) for 1 .. 3;
	my ($stored, $computed) = parts($table);
	ok($stored > 0 && $computed == 0, "$name: all parts are stored") or diag("$stored stored, $computed computed");
	agree($table, $name);
	return $stored;
}

sub agree
{
	my ($table, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $expected = ask_plainly($plain, query_of($table));
	is(ask_plainly($_, query_of($table)), $expected, "$name: the rows") for $reader, $other;
	return;
}

# After these statements of the primary at least and at most so many parts are computed, with all that are stored kept, or none of them.
sub outdates
{
	my ($table, $name, $least, $most, @change) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	stores($table, "before $name");
	my $before = ask_plainly($plain, query_of($table));
	write_sql($writer, @change);
	caught_up($writer, $reader);
	my ($stored, $computed) = parts($table);
	ok($computed >= $least && $computed <= $most && ($stored > 0 || $most > 8), "$name: $computed parts are computed, $stored are stored");
	is($stored, 0, "$name: none is kept") if $most > 1000;
	agree($table, $name);
	return;
}
my $NONE = 1_000_000;

new_table('t');
outdates('t', 'a row that stays in its block', 1, 1, 'UPDATE t SET v = v + 1 WHERE id = 100');
outdates('t', 'a row that moves to another block', 2, 3, "UPDATE t SET v = v + 1, pad = repeat('y', 6000) WHERE id = 3");
outdates('t', 'rows that go', 2, 2, 'DELETE FROM t WHERE id IN (1200, 3400)');
outdates('t', 'a row that comes', 1, 1, "INSERT INTO t VALUES (1000, 1, 1, 'x')");
outdates('t', 'rows that come together', 1, 2, 'INSERT INTO t SELECT 1000, 1, g FROM generate_series(1, 20) g', q{COPY t (id, k, v) FROM PROGRAM 'echo 1,2,3' (FORMAT csv)});
outdates('t', 'what is rolled back', 0, 0, 'BEGIN', 'UPDATE t SET v = 0', 'ROLLBACK');
outdates('t', 'what is rolled back to a savepoint', 1, 1, 'BEGIN', 'SAVEPOINT s', 'UPDATE t SET v = 0 WHERE id < 2000', 'ROLLBACK TO s', 'UPDATE t SET v = 0 WHERE id = 3000', 'COMMIT');
outdates('t', 'a savepoint that stays', 2, 2, 'BEGIN', 'UPDATE t SET v = 1 WHERE id = 3000', 'SAVEPOINT s', 'UPDATE t SET v = 0 WHERE id = 30', 'RELEASE s', 'COMMIT');
outdates('t', 'locks, and VACUUM', 0, 0, 'BEGIN', 'SELECT FROM t WHERE id < 100 FOR UPDATE', 'COMMIT', 'VACUUM FREEZE t');
outdates('t', 'a definition', 8, $NONE, 'ALTER TABLE t ADD w int DEFAULT 5');
outdates('t', 'another file', 8, $NONE, 'VACUUM FULL t');
outdates('t', 'a row of the new file', 1, 1, 'UPDATE t SET v = v + 1 WHERE id = 100');
outdates('t', 'its definition', 8, $NONE, 'ALTER TABLE t ADD x int');
outdates('t', 'many sub-transactions', 5, 5, q{DO $$ BEGIN
	FOR i IN 1 .. 200 LOOP
		BEGIN
			UPDATE t SET v = v + 1 WHERE id = i % 50 * 40;
			IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
		EXCEPTION WHEN division_by_zero THEN END;
	END LOOP; END $$});
outdates('t', 'TRUNCATE', 8, $NONE, 'TRUNCATE t', "INSERT INTO t SELECT g, g % 5, g, repeat('x', 100) FROM generate_series(1, 4000) g", 'ANALYZE t');

# More zones than are noted of a transaction. New ones are computed in groups of four.
my $overflows = stat($standby, 'coarse_overflow');
outdates('t', 'a hundred zones', 24, 32, "INSERT INTO t SELECT g, g % 5, g, repeat('x', 4000) FROM generate_series(1, 1600) g");
is(stat($standby, 'coarse_overflow'), $overflows, 'a hundred zones are noted');
outdates('t', 'three hundred zones', 100, $NONE, "INSERT INTO t SELECT g, g % 5, g, repeat('x', 4000) FROM generate_series(1, 4800) g");
is(stat($standby, 'coarse_overflow'), $overflows + 1, 'three hundred are not');
outdates('t', 'three hundred, by a sub-transaction whose first notes have passed on', 300, $NONE, q{DO $$ BEGIN
	BEGIN
		UPDATE t SET v = v WHERE id = 1;
		FOR i IN 1 .. 100 LOOP
			BEGIN UPDATE t SET v = v WHERE id = 2; EXCEPTION WHEN division_by_zero THEN END;
		END LOOP;
		UPDATE t SET v = v + 1;
	EXCEPTION WHEN division_by_zero THEN END; END $$});
outdates('t', 'one of many zones', 1, 4, 'UPDATE t SET v = v + 1 WHERE id = 4700');

# Transactions that began before the zones were tracked, and end after it. `begin` and `end` surround changes of two zones.
sub in_between
{
	my ($table, $name, $session, $begin, $track, @end) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	new_table($table);
	write_sql($session, @$begin);
	caught_up($writer, $reader);
	write_sql($other, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $before = ask_plainly($other, query_of($table));
	is($before, ask_plainly($plain, query_of($table)), "$name: the rows from before");
	$track->();
	parts($table, 1) for 1 .. 3;
	my ($stored) = parts($table);
	is($stored, 0, "$name: nothing is stored while it runs");
	write_sql($session, @end);
	caught_up($writer, $reader);
	my $after = ask_plainly($plain, query_of($table));
	isnt($after, $before, "$name: the change shows");
	parts($table, 1) for 1 .. 3;
	is(ask_plainly($reader, query_of($table)), $after, "$name: the rows");
	is(ask_plainly($other, query_of($table)), $before, "$name: the snapshot from before") for 1 .. 2;
	write_sql($other, 'COMMIT');
	stores($table, $name);
	outdates($table, "$name, then a change", 1, 1, "UPDATE $table SET v = v + 1 WHERE id = 100");
	return;
}

my $long = session($primary);
my $nothing = sub { };
in_between('a', 'a transaction', $long, [ 'BEGIN', 'UPDATE a SET v = v + 1 WHERE id = 10' ], $nothing, 'UPDATE a SET v = v + 1 WHERE id IN (11, 3450)', 'COMMIT');
in_between('b', 'a sub-transaction', $long, [ 'BEGIN', 'SAVEPOINT s', 'UPDATE b SET v = v + 1 WHERE id = 10' ], $nothing,
	'UPDATE b SET v = v + 1 WHERE id = 3450', 'RELEASE s', 'SAVEPOINT s', 'DELETE FROM b WHERE id = 3000', 'ROLLBACK TO s', 'COMMIT');
in_between('c', 'a prepared transaction', $long, [ 'BEGIN', 'UPDATE c SET v = v + 1 WHERE id IN (10, 3450)', "PREPARE TRANSACTION 'p'" ], $nothing, "COMMIT PREPARED 'p'");
in_between('d', 'a sub-transaction that is rolled back', $long, [ 'BEGIN', 'SAVEPOINT s', 'UPDATE d SET v = v + 1 WHERE id = 10' ], $nothing,
	'ROLLBACK TO s', 'UPDATE d SET v = v + 1 WHERE id = 3450', 'COMMIT');
in_between('e', 'a standby that begins in the midst', $long, [ 'BEGIN', 'UPDATE e SET v = v + 1 WHERE id = 10' ], sub {
	$_->quit for $reader, $other, $plain;
	$standby->restart;
	connect_readers();
	write_sql($other, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
}, 'UPDATE e SET v = v + 1 WHERE id = 3450', 'COMMIT');

# Replay stands while the zones become tracked. What is replayed after that began before it, or not.
new_table('f');
write_sql($long, 'BEGIN', 'UPDATE f SET v = v + 1 WHERE id = 10');
caught_up($writer, $reader);
write_sql($other, 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'replay goes on';
write_sql($long, 'UPDATE f SET v = v + 1 WHERE id = 3450', 'COMMIT');
write_sql($writer, 'UPDATE f SET v = v + 1 WHERE id = 3000');
parts('f', 1) for 1 .. 3;
is((parts('f'))[0], 0, 'replay stands in the midst of a transaction: nothing is stored');
write_sql($other, 'SELECT pg_wal_replay_resume()');
stores('f', 'replay goes on');
outdates('f', 'replay goes on', 1, 1, 'UPDATE f SET v = v + 1 WHERE id = 3000');

# What is stored of zones outlives a restart, unless a transaction that is under way has changed the table.
sub restart_standby
{
	$_->quit for $reader, $other, $plain;
	$standby->restart;
	connect_readers();
	return;
}
my $parts = stores('f', 'before a restart');
restart_standby();
is_deeply([ parts('f') ], [ $parts, 0 ], 'a restart: all parts are there');
outdates('f', 'after a restart', 1, 1, 'UPDATE f SET v = v + 1 WHERE id = 2990');
stores('f', 'before a restart in the midst of a transaction');
write_sql($long, 'BEGIN', 'UPDATE f SET v = v + 1 WHERE id = 10');
write_sql($writer, 'CHECKPOINT');
caught_up($writer, $reader);
write_sql($reader, 'CHECKPOINT');
restart_standby();
write_sql($long, 'COMMIT');
caught_up($writer, $reader);
is((parts('f'))[0], 0, 'a restart in the midst of a transaction: no part is kept');
agree('f', 'a restart in the midst of a transaction');
outdates('f', 'after that', 1, 1, 'UPDATE f SET v = v + 1 WHERE id = 2990');

# A promoted standby. Its zones are tracked by numbers of files, which may be those of other relations.
new_table('g');
write_sql($writer, 'VACUUM FULL f');
stores($_, 'before it is promoted') for 'f', 'g';
write_sql($long, 'BEGIN', 'UPDATE g SET v = v + 1 WHERE id = 10', "PREPARE TRANSACTION 'kept'");
caught_up($writer, $reader);
write_sql($other, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
my %before = map { $_ => ask_plainly($other, query_of($_)) } 'f', 'g';
$_->quit for $writer, $long;
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'it is not promoted';
$writer = session($standby);
for my $table ('f', 'g')
{
	write_sql($writer, "UPDATE $table SET v = v + 1 WHERE id = 100");
	is(ask_plainly($_, query_of($table)), ask_plainly($plain, query_of($table)), "promoted, $table: the rows") for $reader, $reader;
	is(ask_plainly($other, query_of($table)), $before{$table}, "promoted, $table: the snapshot of recovery");
}
write_sql($writer, "COMMIT PREPARED 'kept'");
write_sql($other, 'COMMIT');
for my $table ('f', 'g')
{
	refine($table);
	for my $id (20, 3450)
	{
		parts($table, 1) for 1 .. 3;
		write_sql($writer, "UPDATE $table SET v = v + 1 WHERE id = $id");
		is((parts($table))[1], 1, "promoted, $table: one part is computed");
		is(ask_plainly($_, query_of($table)), ask_plainly($plain, query_of($table)), "promoted, $table: the new rows") for $reader, $other;
	}
}

$_->quit for $reader, $other, $plain, $writer;
done_testing();
