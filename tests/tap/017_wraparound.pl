# Transaction ids wrap around after 2^32, and those after 2^31 are negative as signed numbers. They are kept as 64-bit numbers, so nothing
# changes when ids from either side of such a border meet in one slot or in one snapshot. The server is set close to each, and every kind
# of writer falls on either side.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Ids that are left when the server has been set close to a border.
my $MARGIN = 200;
my $BLOCK_BYTES = 8192;
my $BLOCKS_PER_SEGMENT = 32;
my $IDS_PER_BYTE = 4;

my $EPOCH = 5;
# The number of the first id after the border, and how many are skipped there, since they stand for something else.
my ($BORDER, $SKIPPED);

my $node;
my @tables = qw(kept changed seen open_before open_after prepared restarted crowded);
my %query = map { $_ => "SELECT sum(v) FROM $_" } @tables;

# The next id as a 64-bit number. Reading it uses no id.
sub next_id
{
	return $node->safe_psql('postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())');
}

# A new server whose next id is close to the border. All rows are frozen first, since their ids would lie in the future. The
# oldest id is moved along, or an emergency vacuum would begin, and the part of pg_xact that holds the new ids is made.
sub server_close_to_border
{
	my ($name) = @_;
	$node = new_server($name, conf => "max_prepared_transactions = 20\n");
	$node->safe_psql('postgres', "CREATE TABLE $_ (v int); INSERT INTO $_ VALUES (1)") for @tables;
	$node->safe_psql('postgres', 'VACUUM (FREEZE)');
	$node->stop;
	my ($data, $next) = ($node->data_dir, $BORDER - $EPOCH * 2**32 - $MARGIN);
	command_ok([ 'pg_resetwal', '-D', $data, '-e', $EPOCH, '-x', $next, '-u', $next - 1000 ], "$name: the next id is set");
	my $segment_bytes = $BLOCKS_PER_SEGMENT * $BLOCK_BYTES;
	append_to_file(sprintf('%s/pg_xact/%04X', $data, $next / ($segment_bytes * $IDS_PER_BYTE)), "\0" x $segment_bytes);
	$node->start;
	is(next_id(), $BORDER - $MARGIN, "$name: the border is close");
	return;
}

# Uses up ids until so many are left.
sub leave_ids
{
	my ($left) = @_;
	my $used = $BORDER - next_id() - $left;
	$node->safe_psql('postgres',
		"DO 'BEGIN FOR i IN 1 .. $used LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END'");
	is(next_id(), $BORDER - $left, "$left ids before the border");
	return;
}

sub cross_border
{
	leave_ids(1);
	$node->safe_psql('postgres', 'SELECT pg_current_xact_id()');
	is(next_id(), $BORDER + $SKIPPED, 'after the border');
	return;
}

sub write_sql
{
	my ($table) = @_;
	return "UPDATE $table SET v = v + 1";
}

sub cached
{
	my ($table, $rows, $name, @statuses) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	@statuses = qw(MISS HIT) if !@statuses;
	answers_are($node, $query{$table}, $rows, \@statuses, $name);
	return;
}

sub session
{
	my ($begin) = @_;
	my $session = $node->background_psql('postgres');
	$session->query_safe($begin);
	return $session;
}

sub crowd
{
	my (@values) = @_;
	$node->safe_psql('postgres', "BEGIN; INSERT INTO crowded VALUES ($_); PREPARE TRANSACTION 'crowded$_'") for @values;
	return;
}

# Each id around the border, one after the other.
sub each_id
{
	my ($name) = @_;
	server_close_to_border("${name}_each_id");
	cached('kept', 1, 'stored before the border');
	cached('changed', 1, 'before the border');
	leave_ids(5);
	my $snapshot = session('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($snapshot->query_safe($query{changed}), '1', 'a snapshot from before the border');
	for my $n (1 .. 10)
	{
		my $id = $node->safe_psql('postgres', write_sql('changed') . ' RETURNING pg_current_xact_id()');
		cached('changed', 1 + $n, sprintf('written by the id at the border %+d', $id - $BORDER), qw(STALE HIT));
	}
	cmp_ok(next_id(), '>', $BORDER, 'the border has been crossed');
	is($snapshot->query_safe($query{changed}), '1', 'the snapshot from before the border sees nothing of it');
	is($snapshot->query_safe('SELECT arrow_cache.last_reason()'), 'writer_in_progress', 'and executes');
	is($snapshot->query_safe($query{kept}), '1', 'a table that has not changed');
	is($snapshot->query_safe('SELECT arrow_cache.last_status()'), 'HIT', 'is served to it');
	cached('kept', 1, 'and to others', 'HIT');
	cached('changed', 11, 'the newest result is still there', 'HIT');
	$snapshot->query_safe('COMMIT');
	is($snapshot->query_safe($query{changed}), '11', 'its next snapshot sees everything');
	$snapshot->quit;

	$node->stop;
	return;
}

# Writers that overlap the border.
sub overlapping
{
	my ($name) = @_;
	server_close_to_border("${name}_overlapping");
	cached($_, 1, "$_: stored before the border") for qw(kept seen open_before open_after prepared crowded restarted);
	my $before = session('BEGIN; ' . write_sql('open_before'));
	my $snapshot = session('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($snapshot->query_safe($query{seen}), '1', 'a snapshot with a writer in it');
	$node->safe_psql('postgres', "BEGIN; @{[write_sql($_)]}; PREPARE TRANSACTION '$_'") for qw(prepared restarted);
	crowd(10, 20, 30);
	$node->safe_psql('postgres', write_sql('seen'));
	cached('seen', 2, 'written before the border, beside writers', qw(STALE HIT));

	cross_border();
	cached('kept', 1, 'stored before the border and served after it', 'HIT');
	cached('seen', 2, 'so is what was written shortly before', 'HIT');
	cached('open_before', 1, 'so is a table with a writer from before the border', 'HIT');
	my $after = session('BEGIN; ' . write_sql('open_after'));
	my $between = session('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($between->query_safe($query{kept}), '1', 'a snapshot from after the border with writers from both sides');

	$after->query_safe('COMMIT');
	cached('open_after', 2, 'the writer from after the border ends first', qw(STALE HIT));
	cached('open_before', 1, 'the one from before it goes on', 'HIT');
	$before->query_safe('COMMIT');
	cached('open_before', 2, 'and ends', qw(STALE HIT));
	for my $table (qw(open_before open_after))
	{
		is($_->query_safe($query{$table}), '1', "$table: older snapshots see the old rows") for $snapshot, $between;
		cached($table, 2, "$table: and leave the newer result alone", 'HIT');
	}
	is($snapshot->query_safe($query{seen}), '1', 'the snapshot from before the border');
	is($between->query_safe($query{seen}), '2', 'and the one from after it, of a write between them');
	is($between->query_safe('SELECT arrow_cache.last_status()'), 'HIT', 'which is served to the latter');
	$_->query_safe('COMMIT') for $snapshot, $between;

	cached('prepared', 1, 'prepared before the border', 'BYPASS writer_in_progress');
	$node->safe_psql('postgres', q{COMMIT PREPARED 'prepared'});
	cached('prepared', 2, 'and committed after it');

	# More of them than are remembered one by one, ended in another order than they began.
	crowd(40, 50, 60);
	my $sum = 1;
	for my $value (40, 10, 60, 20, 30)
	{
		$node->safe_psql('postgres', "COMMIT PREPARED 'crowded$value'");
		$sum += $value;
		cached('crowded', $sum, "crowded: $value has ended, others have not", ('BYPASS writer_in_progress') x 2);
	}
	$node->safe_psql('postgres', q{COMMIT PREPARED 'crowded50'});

	# Of all writers one is left that began before the border. It survives a restart, after which all are older than the server.
	$node->restart;
	is_deeply([ map { (answer($node, $query{restarted}))[0] } 1 .. 3 ], [ 1, 1, 1 ],
		'prepared before the border, after a restart: the old rows');
	$node->safe_psql('postgres', q{COMMIT PREPARED 'restarted'});
	is_deeply([ map { (answer($node, $query{restarted}))[0] } 1 .. 3 ], [ 2, 2, 2 ], 'committed: the new rows');
	$_->quit for $before, $after, $snapshot, $between;
	$node->safe_psql('postgres', write_sql($_)) for @tables;
	my %rows = (kept => 2, changed => 2, seen => 3, open_before => 3, open_after => 3, prepared => 3, restarted => 3,
		crowded => 1 + 10 + 20 + 30 + 40 + 50 + 60 + 7);
	for my $table (@tables)
	{
		my ($seen) = answer($node, $query{$table});
		is($seen, $rows{$table}, "$table: the rows at the end");
		cached($table, $rows{$table}, "$table: cached at the end", 'HIT');
	}
	return;
}

for my $border ([ 'wrap', ($EPOCH + 1) * 2**32, 3 ], [ 'sign', $EPOCH * 2**32 + 2**31, 0 ])
{
	(my $name, $BORDER, $SKIPPED) = @$border;
	each_id($name);
	overlapping($name);
}

done_testing();
