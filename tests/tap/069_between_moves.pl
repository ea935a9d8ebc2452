# A transaction that changes a definition is visible to snapshots before other sessions hear of the change, and its versions move for
# the last time after that. Who has not heard yet computes the old answer: nobody who has heard may get it.

use strict;
use warnings FATAL => 'all';

use File::Basename;
use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
my ($definer_library, $starter_library) = map { "$PostgreSQL::Test::Utils::tmp_check/$_.so" } qw(slow_definer slow_starter);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include",
	"$FindBin::RealBin/" . basename($_, '.so') . '.c', '-o', $_) for $definer_library, $starter_library;

my $node = new_server('between_moves', conf => qq{
shared_preload_libraries = '$definer_library,pg_arrow_cache,$starter_library'
max_prepared_transactions = 5
});
$node->safe_psql('postgres', q{
	CREATE TABLE sales (v int) PARTITION BY RANGE (v);
	CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (1) TO (11);
	CREATE TABLE sales_2 (v int);
	CREATE TABLE sales_3 (v int);
	INSERT INTO sales_1 SELECT generate_series(1, 10);
	INSERT INTO sales_2 SELECT generate_series(11, 20);
	INSERT INTO sales_3 SELECT generate_series(21, 30);
	CREATE TYPE color AS ENUM ('red', 'green');
	CREATE TABLE cars (v color);
	INSERT INTO cars VALUES ('red');
	CREATE TABLE other (v int);
	INSERT INTO other VALUES (7);
	CREATE FUNCTION doubled(v int) RETURNS int IMMUTABLE LANGUAGE sql RETURN v * 2;
});
my $STATUS = q{SELECT '=> ' || arrow_cache.last_status() || coalesce(' ' || arrow_cache.last_reason(), '')};

# Rows and status of a query in a session.
sub ask
{
	my ($session, $query) = @_;
	my ($rows, $status) = $session->query_safe("$query; $STATUS;") =~ /\A(.*?)\n?=> (.*)\z/s or die 'no status';
	return ($rows, $status);
}

# A session whose caches know all that the query needs. It has not got the answer from the cache.
sub warm_session
{
	my ($query, $before) = @_;
	my $session = $node->background_psql('postgres');
	$session->query_safe("SET plan_cache_mode = force_generic_plan; $before");
	$session->query_safe("SET pg_arrow_cache.populate = off; $query; SET pg_arrow_cache.populate = on");
	return $session;
}

# Starts statements in a session that stops at the stages.
sub start_slowly
{
	my ($statements) = @_;
	my $folder = PostgreSQL::Test::Utils::tempdir();
	chmod 0777, $folder;
	my $session = $node->background_psql('postgres');
	$session->query_until(qr/begins/, "\\echo begins\nSET slow_definer.folder = '$folder'\\; $statements;\n");
	return ($session, $folder);
}

# What changes, a query and what it gives before and after.
my @CHANGES = (
	[ 'ATTACH PARTITION', q{ALTER TABLE sales ATTACH PARTITION sales_2 FOR VALUES FROM (11) TO (21)},
		'SELECT count(*) FROM sales', 10, 20 ],
	[ 'ATTACH PARTITION, a kept plan', q{ALTER TABLE sales ATTACH PARTITION sales_3 FOR VALUES FROM (21) TO (31)},
		'EXECUTE kept', 20, 30, 'PREPARE kept AS SELECT count(*) FROM sales' ],
	[ 'a label of an enum', q{ALTER TYPE color RENAME VALUE 'red' TO 'rouge'}, 'SELECT v FROM cars', 'red', 'rouge' ],
	[ 'a function', q{CREATE OR REPLACE FUNCTION doubled(v int) RETURNS int IMMUTABLE LANGUAGE sql RETURN v * 2 + 1},
		'SELECT doubled(v) FROM other', 14, 15 ],
);
for my $change (@CHANGES)
{
	my ($what, $statement, $query, $old, $new, $before) = @$change;
	$before //= 'SELECT 1';
	$node->safe_psql('postgres', 'SELECT arrow_cache.flush()');
	my ($deaf, $informed) = map { warm_session($query, $before) } 1 .. 2;
	is_deeply([ map { [ ask($informed, $query) ] } 1 .. 2 ], [ [ $old, 'MISS' ], [ $old, 'HIT' ] ], "$what: cached before");

	my ($definer, $folder) = start_slowly($statement);
	wait_for_file("$folder/visible.reached");
	my ($rows, $status) = ask($deaf, $query);
	is($rows, $old, "$what: who has not heard of it computes the old answer");
	is($status, 'BYPASS ddl_in_progress', "$what: which is not stored");

	touch("$folder/visible.go");
	wait_for_file("$folder/told.reached");
	is((ask($informed, $query))[0], $new, "$what: who has heard of it gets the new answer");
	is((ask($deaf, $query))[0], $new, "$what: and so does the other session");

	touch("$folder/told.go");
	$definer->quit;
	is_deeply([ map { [ ask($informed, $query) ] } 1 .. 2 ], [ [ $new, 'MISS' ], [ $new, 'HIT' ] ], "$what: cached again");
	$_->quit for $deaf, $informed;
}

# A prepared plan of who had not heard, started under a snapshot that sees the change, and looked at when all has been told: PostgreSQL does
# not hold it valid any more, or never did.
my $rows = 30;
for my $mode (qw(generic custom))
{
	my $before = "PREPARE counts(int) AS SELECT count(*) FROM sales WHERE v > \$1; SET plan_cache_mode = force_${mode}_plan";
	my $what = "a $mode plan that is started late";
	my ($deaf, $informed) = map { warm_session('EXECUTE counts(0)', $before) } 1 .. 2;
	my ($first, $last) = ($rows + 1, $rows + 10);
	$node->safe_psql('postgres', "CREATE TABLE late_$mode AS SELECT v FROM generate_series($first, $last) v");
	my ($definer, $folder) = start_slowly("ALTER TABLE sales ATTACH PARTITION late_$mode FOR VALUES FROM ($first) TO ($last + 1)");
	wait_for_file("$folder/visible.reached");
	my $held = PostgreSQL::Test::Utils::tempdir();
	chmod 0777, $held;
	touch("$held/planned.go");
	$deaf->query_until(qr/begins/, "\\echo begins\nSET slow_starter.word = 'sales'; SET slow_starter.folder = '$held'; "
		  . "EXECUTE counts(0); SET slow_starter.folder = '';\n");
	wait_for_file("$held/starting.reached");
	touch("$folder/$_.go") for qw(visible told);
	$definer->quit;
	touch("$held/starting.go");
	is($deaf->query_safe("\\echo ends"), "$rows\nends", "$what: who had not heard computes the old answer");
	$rows += 10;
	is_deeply([ map { [ ask($informed, 'EXECUTE counts(0)') ] } 1 .. 2 ], [ [ $rows, 'MISS' ], [ $rows, 'HIT' ] ], "$what: it is not stored");
	$_->quit for $deaf, $informed;
}

# A plan that was made between the moves, by who had not heard: PostgreSQL does not make it anew for a cast, so the last move must tell
# that what was found out about it is old.
{
	$node->safe_psql('postgres', q{CREATE FUNCTION tinted(color) RETURNS json LANGUAGE plpgsql AS $$BEGIN RETURN '"tinted"'; END$$});
	my $query = 'SELECT to_json(v) FROM cars';
	my $deaf = warm_session($query, 'SELECT 1');
	my ($definer, $folder) = start_slowly('CREATE CAST (color AS json) WITH FUNCTION tinted(color)');
	wait_for_file("$folder/visible.reached");
	$deaf->query_safe("PREPARE early AS $query");
	is((ask($deaf, 'EXECUTE early'))[1], 'BYPASS ddl_in_progress', 'a plan that is made between the moves: not stored');
	touch("$folder/$_.go") for qw(visible told);
	$definer->quit;
	for (1 .. 3)
	{
		my ($rows, $status) = ask($deaf, 'EXECUTE early');
		is($rows, '"tinted"', 'a plan that was made between the moves: the cast is called');
		like($status, qr/^BYPASS/, 'a plan that was made between the moves: what calls it is not stored');
	}
	$deaf->quit;
	$node->safe_psql('postgres', 'DROP CAST (color AS json)');
	# As those that follow expect it.
	answer($node, 'SELECT doubled(v) FROM other') for 1 .. 2;
}

# A change that is under way forbids to store what rests on it, and nothing else.
my ($definer, $folder) = start_slowly('ALTER TABLE sales_1 ALTER v SET STATISTICS 50');
wait_for_file("$folder/visible.reached");
answers_are($node, 'SELECT sum(v) FROM other', 7, [ 'MISS', 'HIT' ], 'another table is cached during a change');
touch("$folder/$_.go") for qw(visible told);
$definer->quit;

# COMMIT PREPARED that has begun before anything was ever prepared that redefines something, and commits the first such transaction.
my $query = 'SELECT doubled(v) FROM other';
($definer, $folder) = start_slowly('SELECT 1');
touch("$folder/$_.go") for qw(visible told);
$definer->query_until(qr/commits/, "\\echo commits\nCOMMIT PREPARED 'first';\n");
wait_for_file("$folder/committing.reached");
answers_are($node, $query, 15, [ 'HIT', 'HIT' ], 'COMMIT PREPARED that commits nothing so far forbids nothing');
$node->safe_psql('postgres', q{BEGIN; CREATE OR REPLACE FUNCTION doubled(v int) RETURNS int IMMUTABLE LANGUAGE sql RETURN v * 2 + 1 + 0;
	PREPARE TRANSACTION 'first'});
touch("$folder/committing.go");
wait_for_file("$folder/committed.reached");
answers_are($node, $query, 15, [ ('BYPASS ddl_in_progress') x 2 ], 'during the first COMMIT PREPARED nothing is stored');
touch("$folder/committed.go");
$definer->quit;
answers_are($node, $query, 15, [ 'MISS', 'HIT' ], 'after the first COMMIT PREPARED it is');

# COMMIT PREPARED, by a session that does not know what was changed.
$node->safe_psql('postgres', q{BEGIN; CREATE OR REPLACE FUNCTION doubled(v int) RETURNS int IMMUTABLE LANGUAGE sql RETURN v * 3;
	PREPARE TRANSACTION 'p'});
is((answer($node, $query))[0], 15, 'prepared: the old answer');
($definer, $folder) = start_slowly('SELECT 1');
touch("$folder/$_.go") for qw(visible told committing);
$definer->query_until(qr/commits/, "\\echo commits\nCOMMIT PREPARED 'p';\n");
wait_for_file("$folder/committed.reached");
answers_are($node, $query, 21, [ ('BYPASS ddl_in_progress') x 2 ], 'during COMMIT PREPARED nothing is stored');
touch("$folder/committed.go");
$definer->quit;
answers_are($node, $query, 21, [ 'MISS', 'HIT' ], 'after COMMIT PREPARED it is');

# The same of one that was prepared before a restart, after which nobody knows what it has changed.
$node->safe_psql('postgres', q{BEGIN; CREATE OR REPLACE FUNCTION doubled(v int) RETURNS int IMMUTABLE LANGUAGE sql RETURN v * 3 + 0;
	PREPARE TRANSACTION 'old'});
$node->restart;
$node->safe_psql('postgres', 'CREATE TABLE made_after_the_restart (v int)');
($definer, $folder) = start_slowly('SELECT 1');
touch("$folder/$_.go") for qw(visible told committing);
$definer->query_until(qr/commits/, "\\echo commits\nCOMMIT PREPARED 'old';\n");
wait_for_file("$folder/committed.reached");
answers_are($node, $query, 21, [ ('BYPASS ddl_in_progress') x 2 ], 'prepared before the restart: nothing is stored during its commit');
touch("$folder/committed.go");
$definer->quit;
answers_are($node, $query, 21, [ 'MISS', 'HIT' ], 'prepared before the restart: after its commit it is');

# Ways out that are none to a commit. Whoever is not counted off would forbid storing for ever.
my $REPLACE = 'CREATE OR REPLACE FUNCTION doubled(v int) RETURNS int IMMUTABLE LANGUAGE sql RETURN v * 4';
my $psql = sub { return scalar $node->psql('postgres', $_[0], on_error_stop => 1) };
isnt($psql->(q{COMMIT PREPARED 'unknown'}), 0, 'COMMIT PREPARED of nothing is refused');
answers_are($node, $query, 21, ['HIT'], 'and outdates nothing');
isnt($psql->("BEGIN; $REPLACE; CREATE TEMP TABLE mine (); PREPARE TRANSACTION 'q'"), 0, 'PREPARE is refused late');
answers_are($node, $query, 21, [ 'STALE', 'HIT' ], 'PREPARE that was refused: cached again');

my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
$node->safe_psql('postgres', 'CREATE TABLE left_one (v int); CREATE TABLE right_one (v int)');
$_->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM left_one; SELECT count(*) FROM right_one') for @sessions;
$sessions[0]->query_safe('INSERT INTO left_one VALUES (1)');
$sessions[1]->query_safe("INSERT INTO right_one VALUES (1); $REPLACE");
$sessions[0]->query_safe('COMMIT');
like(($sessions[1]->query('COMMIT'))[0] . $sessions[1]->{stderr}, qr/could not serialize/, 'a commit fails late');
$_->quit for @sessions;
answers_are($node, $query, 21, [ 'STALE', 'HIT' ], 'a commit that has failed: cached again');

$node->safe_psql('postgres', "BEGIN; $REPLACE; SAVEPOINT s; DROP TABLE left_one; ROLLBACK TO s; COMMIT");
answers_are($node, $query, 28, [ 'MISS', 'HIT' ], 'a commit with a savepoint: cached again');
$node->safe_psql('postgres', "BEGIN; $REPLACE; PREPARE TRANSACTION 'r'");
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'r'});
answers_are($node, $query, 28, [ 'STALE', 'HIT' ], 'ROLLBACK PREPARED: cached again');

$node->stop;
done_testing();
