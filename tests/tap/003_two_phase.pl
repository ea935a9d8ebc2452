# A prepared transaction outlives its session and a restart of the server. Its changes are announced when it is prepared
# and become visible when somebody commits it: neither before nor after that is anything stale served.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = new_server('two_phase', conf => "max_prepared_transactions = 10\n");
$node->safe_psql('postgres', q{
	CREATE TABLE t (a int);
	CREATE TABLE u (a int);
	INSERT INTO t SELECT generate_series(1, 10);
	INSERT INTO u SELECT generate_series(1, 10);
});
my ($t, $u) = ('SELECT sum(a) FROM t', 'SELECT sum(a) FROM u');

# The rows of a query, several times: what was stored in between must not change them.
sub rows_are
{
	my ($query, $rows, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is_deeply([ map { (answer($node, $query))[0] } 1 .. 3 ], [ ($rows) x 3 ], $name);
	return;
}

sub prepare
{
	my ($change) = @_;
	$node->safe_psql('postgres', "BEGIN; $change; PREPARE TRANSACTION 'p'");
	return;
}

# Without a restart.
answers_are($node, $t, '55', [ 'MISS', 'HIT' ], 'cached before PREPARE TRANSACTION');
answers_are($node, $u, '55', [ 'MISS', 'HIT' ], 'the other table, too');
prepare('UPDATE t SET a = a + 1');
rows_are($t, '55', 'prepared: the old rows');
isnt((answer($node, $t))[1], 'HIT', 'prepared: not from the cache');
answers_are($node, $u, '55', ['HIT'], 'prepared: the other table is still served');

my $older = $node->background_psql('postgres');
$older->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($older->query_safe($t), '55', 'an older snapshot');
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
answers_are($node, $t, '65', [ 'MISS', 'HIT' ], 'committed by another session: new rows, cached again');
is($older->query_safe($t), '55', 'the older snapshot still has the old rows beside the new entry');
$older->query_safe('COMMIT');
is($older->query_safe($t), '65', 'its next transaction has the new rows');
$older->quit;

prepare('DELETE FROM t');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});
rows_are($t, '65', 'rolled back: nothing has changed');
is((answer($node, $t))[1], 'HIT', 'rolled back: cached again');

# Over a restart, in both ways a server can go down.
my $sum = 65;
for my $mode (qw(fast immediate))
{
	answers_are($node, $t, $sum, ['HIT'], "cached before ($mode)");
	prepare('INSERT INTO t VALUES (1000)');
	$node->stop($mode);
	$node->start;
	rows_are($t, $sum, "after a restart ($mode), still prepared: the old rows");
	rows_are($u, '55', "after a restart ($mode), still prepared: the other table");

	my $reader = $node->background_psql('postgres');
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($reader->query_safe($t), $sum, "a snapshot from before COMMIT PREPARED ($mode)");

	$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
	$sum += 1000;
	is($reader->query_safe($t), $sum - 1000, "that snapshot after COMMIT PREPARED ($mode)");
	$reader->query_safe('COMMIT');
	$reader->quit;
	rows_are($t, $sum, "after a restart and COMMIT PREPARED ($mode): the new rows");
	is((answer($node, $t))[1], 'HIT', "after a restart and COMMIT PREPARED ($mode): cached again");
}

# Definitions change by a prepared transaction as well.
$node->safe_psql('postgres', 'CREATE VIEW v AS SELECT sum(a) AS s FROM u');
answers_are($node, 'SELECT * FROM v', '55', [ 'MISS', 'HIT' ], 'a view is cached');
prepare('CREATE OR REPLACE VIEW v AS SELECT sum(a) + 1 AS s FROM u');
$node->restart;
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is_deeply([ map { (answer($node, 'SELECT * FROM v'))[0] } 1 .. 2 ], [ '56', '56' ],
	'a view that was replaced by a prepared transaction');

done_testing();
