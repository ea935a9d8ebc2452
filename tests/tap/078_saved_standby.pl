# Answers of a standby outlive its restart. It replays some WAL again then, up to where it stopped: what was written there before the stop
# costs nothing, and all that was under way, or comes later, outdates what it changes.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StandbyTest;
use Test::More;

my $HELD = qr/^BYPASS (?:writer|ddl)_in_progress$/;
my $EXECUTED = qr/^(?:STALE|MISS)/;
my $SAVED = 'pg_stat/pg_arrow_cache.saved';
my @TABLES = qw(t u w x untouched);

my $primary = new_primary('primary', conf => "wal_keep_size = 128MB\ncheckpoint_timeout = 1h\n");
$primary->safe_psql('postgres', join '', map { "CREATE TABLE $_ (v int); INSERT INTO $_ VALUES (1);" } @TABLES);
$primary->safe_psql('postgres', q{
	CREATE TABLE big (id int PRIMARY KEY, a int, b text, n numeric, at timestamptz);
	INSERT INTO big SELECT g, g % 8, 'row ' || g, g / 7.0, '2026-01-01'::timestamptz + g * interval '1 hour' FROM generate_series(1, 800) g;
	TRUNCATE w; INSERT INTO w VALUES (1);
	CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 * 2;
	CREATE FUNCTION named(int) RETURNS int STRICT IMMUTABLE LANGUAGE sql AS 'SELECT coalesce($1, 0) + 1';
	CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TABLE moods AS SELECT 'sad'::mood AS mood;
});
my $standby = new_standby('standby', $primary, conf => "checkpoint_timeout = 1h\npg_arrow_cache.debug_force_fragments = off\n");
my $file = $standby->data_dir . "/$SAVED";
my $writer = session($primary);
my ($reader, $plain);

sub connect_readers { ($reader, $plain) = (session($standby), session($standby, 'SET pg_arrow_cache.enabled = off')); return; }

sub disconnect { $_->quit for $reader, $plain; return; }

# The standby's next start replays from here on.
sub restartpoint
{
	write_sql($writer, 'CHECKPOINT');
	caught_up($writer, $reader);
	write_sql($reader, 'CHECKPOINT');
	return;
}

sub restart
{
	my ($mode, $meanwhile) = @_;
	disconnect();
	$standby->stop($mode // 'fast');
	$meanwhile->() if $meanwhile;
	$standby->start;
	connect_readers();
	return;
}

sub of { return "SELECT count(*), sum(v) FROM $_[0]"; }

# Asserts that an answer has the rows that executing gives, and a status.
sub asked_is
{
	my ($query, $status, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($rows, $got) = ask($reader, $query);
	is($rows, ask_plainly($plain, $query), "$name: the rows");
	return ref $status ? like($got, $status, $name) : is($got, $status, $name);
}

connect_readers();
caught_up($writer, $reader);

# The same answers after a fast and a smart stop. Tables are written between the restartpoint and the stop.
my @queries = ((map { of($_) } @TABLES), (map { "SELECT * FROM big WHERE a = $_ ORDER BY id" } 0 .. 7),
	'SELECT sum(twice(v)) FROM untouched', 'SELECT sum(named(v)) FROM untouched', 'SELECT mood FROM moods');
for my $mode (qw(fast smart))
{
	restartpoint();
	write_sql($writer, 'UPDATE t SET v = v + 1', 'BEGIN', 'UPDATE u SET v = v + 1', 'SAVEPOINT s', 'INSERT INTO w VALUES (2)', 'RELEASE s', 'COMMIT',
		'BEGIN', 'DELETE FROM x', 'ROLLBACK', 'TRUNCATE w', 'INSERT INTO w VALUES (3)',
		'CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 + $1');
	caught_up($writer, $reader);
	my %before = map { $_ => cached($reader, $_, "$mode: $_") } @queries;
	disconnect();
	my $log = -s $standby->logfile;
	$standby->stop($mode);
	ok(-f $file, "$mode: there is a file");
	$standby->start;
	connect_readers();
	ok(!-e $file, "$mode: the file is gone");
	is_deeply([ ask($reader, $_) ], [ $before{$_}, 'HIT' ], "$mode: $_") for @queries;
	is(ask_plainly($plain, $_), $before{$_}, "$mode: $_ is right") for @queries;
	like(slurp_file($standby->logfile, $log), qr/the cache begins with \d\d results of before the restart/, "$mode: the log tells it");
	is($reader->query_safe('SELECT count(*) FROM arrow_cache.check()'), '0', "$mode: everything in the cache agrees");
}

# Nothing has been replayed between two stops.
restart();
asked_is(of('t'), 'HIT', 'restarted twice');
restartpoint();
restart();
restart();
asked_is(of('t'), 'HIT', 'restarted twice, with nothing to replay');

# Writes before the stop, while it is down, and afterwards.
write_sql($writer, 'UPDATE t SET v = v + 1');
caught_up($writer, $reader);
restart();
asked_is(of('t'), $EXECUTED, 'a write right before the stop');
asked_is(of('u'), 'HIT', 'and nothing else');
cached($reader, of('t'), 'stored again');
restart('fast', sub { write_sql($writer, 'UPDATE t SET v = v + 1'); });
caught_up($writer, $reader);
asked_is(of('t'), $EXECUTED, 'a write while it is down');
asked_is(of('u'), 'HIT', 'a write while it is down, elsewhere');
cached($reader, of('t'), 'stored again');
restart();
asked_is(of('t'), 'HIT', 'before a write after the start');
write_sql($writer, 'UPDATE t SET v = v + 1');
caught_up($writer, $reader);
asked_is(of('t'), $EXECUTED, 'a write after the start');
asked_is(of('u'), 'HIT', 'a write after the start, elsewhere');

# Transactions that are under way when it stops. What they have changed lies before the place from which it replays.
my %ways = (
	'a transaction' => [ 'UPDATE t SET v = v + 10' ],
	'a transaction with a savepoint' => [ 'SAVEPOINT s', 'INSERT INTO t VALUES (7)' ],
	'a transaction that has released a savepoint' => [ 'SAVEPOINT s', 'INSERT INTO t VALUES (7)', 'RELEASE s' ],
	'a transaction with two tables' => [ 'INSERT INTO w VALUES (8)', 'DELETE FROM t WHERE v % 2 = 0', 'INSERT INTO t VALUES (9)' ],
);
my $open;
for my $way (sort keys %ways)
{
	for my $end ('COMMIT', 'ROLLBACK')
	{
		my $name = "$way, then $end";
		$open = session($primary);
		write_sql($open, 'BEGIN', @{ $ways{$way} });
		restartpoint();
		cached($reader, of($_), "$name: $_") for @TABLES;
		restart();
		asked_is(of('t'), $HELD, "$name: while it runs");
		asked_is(of('untouched'), $HELD, "$name: while it runs, another table");
		write_sql($open, $end);
		$open->quit;
		caught_up($writer, $reader);
		asked_is(of('t'), $EXECUTED, "$name: at its end");
		asked_is(of('untouched'), 'HIT', "$name: another table");
	}
}

# The same, with a standby that nobody asks before the end.
$open = session($primary);
write_sql($open, 'BEGIN', 'INSERT INTO t VALUES (11)');
restartpoint();
cached($reader, of($_), "nobody asks: $_") for qw(t u);
restart('fast', sub { write_sql($open, 'INSERT INTO u VALUES (11)', 'COMMIT'); });
caught_up($writer, $reader);
asked_is(of($_), $EXECUTED, "it ends while the standby is down: $_") for qw(t u);
asked_is(of('untouched'), 'HIT', 'it ends while the standby is down: another table');

# Over two restarts: it changes something before each of them.
write_sql($open, 'BEGIN', 'INSERT INTO t VALUES (12)');
restartpoint();
restart();
write_sql($open, 'INSERT INTO u VALUES (12)');
restartpoint();
restart();
write_sql($open, 'COMMIT');
caught_up($writer, $reader);
asked_is(of($_), $EXECUTED, "two restarts: $_") for qw(t u);
asked_is(of('untouched'), 'HIT', 'two restarts: another table');

# Definitions that are changed by a transaction which is under way.
for my $sql ('CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 * 3', 'ALTER TABLE u ADD z int DEFAULT 5',
	q{ALTER TYPE mood RENAME VALUE 'sad' TO 'bad'}, 'CREATE POLICY p ON untouched USING (false)', 'TRUNCATE x', 'CREATE INDEX ON t (v)')
{
	my @asked = ('SELECT sum(twice(v)) FROM untouched', 'SELECT * FROM u', 'SELECT mood FROM moods', of('x'), of('t'));
	write_sql($open, 'BEGIN', $sql);
	restartpoint();
	# A table may be locked.
	write_sql($_, q{SET lock_timeout = '100ms'}) for $reader, $plain;
	ask($reader, $_) for @asked, @asked;
	restart();
	write_sql($open, 'COMMIT');
	caught_up($writer, $reader);
	asked_is($_, $EXECUTED, "$sql: $_") for @asked;
	cached($reader, $_, "$sql: $_, stored") for @asked;
	restart();
	asked_is($_, 'HIT', "$sql: $_, after another restart") for @asked;
}
# A superuser changes a catalog by hand: no message tells of it.
write_sql($writer, 'CREATE TABLE parent (v int)', 'CREATE TABLE child () INHERITS (parent)', 'INSERT INTO child VALUES (1)');
write_sql($open, 'SET allow_system_table_mods = on', 'BEGIN', q{DELETE FROM pg_inherits WHERE inhparent = 'parent'::regclass});
restartpoint();
is(cached($reader, of('parent'), 'by hand'), '1|1', 'by hand: before the change');
restart('fast', sub { write_sql($open, 'COMMIT') });
caught_up($writer, $reader);
asked_is(of('parent'), $EXECUTED, 'by hand: after the change');
is(ask_plainly($reader, of('parent')), '0|', 'by hand: the change shows');
$open->quit;

# Definitions that are changed while it is down, and afterwards.
my $twice = 'SELECT sum(twice(v)) FROM untouched';
restart('fast', sub { write_sql($writer, 'CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 * 4'); });
caught_up($writer, $reader);
asked_is($twice, $EXECUTED, 'a function that is changed while it is down');
cached($reader, $twice, 'stored again');
restart();
write_sql($writer, 'CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 * 5');
caught_up($writer, $reader);
asked_is($twice, $EXECUTED, 'a function that is changed after the start');

# Prepared transactions.
for my $end ('COMMIT', 'ROLLBACK')
{
	write_sql($writer, "BEGIN; INSERT INTO t VALUES (20); PREPARE TRANSACTION 'p'");
	restartpoint();
	cached($reader, of($_), "prepared: $_") for qw(t u);
	restart();
	asked_is(of($_), $HELD, "prepared, $end: before it, $_") for qw(t u);
	write_sql($writer, "$end PREPARED 'p'");
	caught_up($writer, $reader);
	asked_is(of('t'), $EXECUTED, "prepared, $end: after it");
	asked_is(of('u'), 'HIT', "prepared, $end: another table");
}
write_sql($writer, "BEGIN; CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN \$1 * 6; PREPARE TRANSACTION 'd'");
restartpoint();
cached($reader, $twice, 'a prepared definition');
restart();
write_sql($writer, "COMMIT PREPARED 'd'");
caught_up($writer, $reader);
asked_is($twice, $EXECUTED, 'a prepared definition, after its commit');

# An immediate stop, and a file of before it.
cached($reader, of('t'), 'before an immediate stop');
disconnect();
$standby->stop('fast');
copy($file, "$PostgreSQL::Test::Utils::tmp_check/before") or die $!;
$standby->start;
connect_readers();
asked_is(of('t'), 'HIT', 'before an immediate stop');
my $log = -s $standby->logfile;
restart('immediate');
unlike(slurp_file($standby->logfile, $log), qr/the cache begins/, 'an immediate stop leaves nothing');
asked_is(of('t'), $EXECUTED, 'after an immediate stop');
$log = -s $standby->logfile;
restart('immediate', sub { copy("$PostgreSQL::Test::Utils::tmp_check/before", $file) or die $!; });
asked_is(of('t'), $EXECUTED, 'a file of before an immediate stop');
like(slurp_file($standby->logfile, $log), qr/the cache begins empty: The server was not shut down/, 'a file of before an immediate stop: the log');
cached($reader, of('t'), 'stored again');
# Two stops in one second at the same place leave the same control file, and the same answers.
write_sql($writer, 'UPDATE t SET v = v + 1');
caught_up($writer, $reader);
cached($reader, of('t'), 'stored after a write');
restart('fast', sub { copy("$PostgreSQL::Test::Utils::tmp_check/before", $file) or die $!; });
asked_is(of('t'), $EXECUTED, 'a file of an earlier stop');

# It has run without the library in between, with and without anything to replay.
for my $change ('UPDATE t SET v = v + 1', 'SELECT 1')
{
	cached($reader, of('t'), "without the library, $change: stored");
	disconnect();
	$standby->stop('fast');
	$standby->append_conf('postgresql.conf', "shared_preload_libraries = ''");
	$standby->start;
	write_sql($writer, $change, 'CHECKPOINT');
	my $without = session($standby);
	caught_up($writer, $without);
	write_sql($without, 'CHECKPOINT');
	$without->quit;
	$standby->stop('fast');
	ok(-f $file, "without the library, $change: the file is still there");
	$standby->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_arrow_cache'");
	$standby->start;
	connect_readers();
	asked_is(of('t'), $EXECUTED, "without the library, $change: nothing is left");
}

# A cold copy begins with the same, and both go on.
my %stored = map { $_ => cached($reader, of($_), "copied: $_") } @TABLES;
disconnect();
$standby->stop('fast');
$standby->backup_fs_cold('cold');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($standby, 'cold', has_streaming => 0);
$copy->enable_streaming($primary);
$standby->start;
connect_readers();
asked_is(of('t'), 'HIT', 'copied: the original');
$copy->start;
my $of_copy = session($copy);
is_deeply([ ask($of_copy, of('t')) ], [ $stored{t}, 'HIT' ], 'copied: the copy');
write_sql($writer, 'UPDATE t SET v = v + 1');
caught_up($writer, $reader, $of_copy);
asked_is(of('t'), $EXECUTED, 'copied: the original, after a write');
is((ask($of_copy, of('t')))[0], ask_plainly($plain, of('t')), 'copied: the copy, after a write');
$of_copy->quit;

# It follows a standby that was promoted, on another timeline, from behind the place where it stopped.
cached($reader, of($_), "before a promotion: $_") for qw(t u untouched);
$writer->quit;
disconnect();
$standby->stop('fast');
$primary->safe_psql('postgres', 'UPDATE t SET v = v + 1');
$primary->wait_for_catchup($copy);
$primary->stop('fast');
$copy->promote;
$copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'it is not promoted';
$copy->safe_psql('postgres', 'UPDATE u SET v = v + 1');
$standby->enable_streaming($copy);
$standby->start;
$writer = session($copy);
connect_readers();
caught_up($writer, $reader);
asked_is(of($_), $EXECUTED, "another timeline: $_, which has changed") for qw(t u);
asked_is(of('untouched'), 'HIT', 'another timeline: what has not changed');

# It is promoted itself, right after a start.
cached($reader, of($_), "promoted: $_") for qw(t untouched);
write_sql($writer, "BEGIN; INSERT INTO t VALUES (30); PREPARE TRANSACTION 'q'");
caught_up($writer, $reader);
restartpoint();
$writer->quit;
disconnect();
$standby->stop('fast');
$copy->stop('fast');
$standby->start;
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'it is not promoted';
connect_readers();
asked_is(of($_), $HELD, "promoted: $_, beside a prepared transaction") for qw(t untouched);
$standby->safe_psql('postgres', q{COMMIT PREPARED 'q'});
asked_is(of('t'), $EXECUTED, 'promoted: what was prepared');
cached($reader, of('t'), 'promoted: stored');
$standby->safe_psql('postgres', 'UPDATE t SET v = v + 1');
asked_is(of('t'), 'STALE', 'promoted: a write');

# As a primary it is saved as such, and is no standby's file.
cached($reader, of('t'), 'a primary');
restart();
asked_is(of('t'), 'HIT', 'a primary, after a restart');
$log = -s $standby->logfile;
restart('fast', sub { $standby->append_conf('postgresql.conf', "primary_conninfo = ''"); $standby->set_standby_mode; });
asked_is(of('t'), $EXECUTED, 'a primary that comes to be a standby');
like(slurp_file($standby->logfile, $log), qr/begins empty: .* does not start as what it was/, 'a primary that comes to be a standby: the log');

# And one that is no standby any more goes on as a primary.
cached($reader, of('t'), 'a standby again');
restart('fast', sub { unlink $standby->data_dir . '/standby.signal'; });
asked_is(of('t'), $EXECUTED, 'a standby that starts as a primary');
$standby->safe_psql('postgres', 'UPDATE t SET v = v + 1');
asked_is(of('t'), qr/^(?:STALE|MISS)$/, 'a standby that starts as a primary, after a write');
disconnect();

done_testing();
