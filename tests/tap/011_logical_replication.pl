# The apply worker of a subscription writes tables without the executor's hooks. What it inserts, updates, deletes and
# truncates still invalidates on the subscriber, with the statistics of the server switched off as well.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $publisher = new_server('publisher', init => { allows_streaming => 'logical' });
my $subscriber = new_server('subscriber', init => { allows_streaming => 'logical' });
my $tables = q{
	CREATE TABLE t (id int PRIMARY KEY, v int);
	CREATE TABLE parts (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
	CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100);
	CREATE TABLE high PARTITION OF parts FOR VALUES FROM (100) TO (200);
	CREATE TABLE log (n int);
};
$_->safe_psql('postgres', $tables) for $publisher, $subscriber;
$publisher->safe_psql('postgres', q{
	INSERT INTO t SELECT g, g FROM generate_series(1, 10) g;
	INSERT INTO parts SELECT g, g FROM generate_series(1, 10) g;
	CREATE PUBLICATION p FOR TABLE t, parts;
});

# A trigger of the subscriber's own that fires on replicated changes and writes a further table. (An apply worker has an
# empty search path.)
$subscriber->safe_psql('postgres', q{
	CREATE TABLE untouched (v int);
	INSERT INTO untouched VALUES (1);
	CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN INSERT INTO public.log VALUES (1); RETURN NULL; END';
	CREATE TRIGGER count_change AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION count_change();
	ALTER TABLE t ENABLE ALWAYS TRIGGER count_change;
});
my $connection = $publisher->connstr . ' dbname=postgres';
my $t = 'SELECT sum(v), count(*) FROM t';
my $parts = 'SELECT sum(v) FROM parts';
my $leaf = 'SELECT sum(v) FROM low';
my $logged = 'SELECT count(*) FROM log';
my $untouched = 'SELECT sum(v) FROM untouched';

answers_are($subscriber, $t, '|0', [ 'MISS', 'HIT' ], 'empty before the subscription');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p");
$subscriber->wait_for_subscription_sync($publisher, 's');
answers_are($subscriber, $t, '55|10', [ 'STALE', 'HIT' ], 'the initial copy is seen');

# Applies a change, then asserts what the subscriber answers and that it knew of the change.
sub applied
{
	my ($change, $query, $rows, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$publisher->safe_psql('postgres', $change);
	$publisher->wait_for_catchup('s');
	answers_are($subscriber, $query, $rows, [ 'STALE', 'HIT' ], $name);
	return;
}

answers_are($subscriber, $parts, '55', [ 'MISS', 'HIT' ], 'a partitioned table');
answers_are($subscriber, $leaf, '55', [ 'MISS', 'HIT' ], 'a leaf of it');
answers_are($subscriber, $logged, '10', [ 'MISS', 'HIT' ], 'the log of the trigger, which the initial copy fires, too');
answers_are($subscriber, $untouched, '1', [ 'MISS', 'HIT' ], 'a table that is not replicated');

applied('INSERT INTO t VALUES (11, 100)', $t, '155|11', 'INSERT');
answers_are($subscriber, $logged, '11', [ 'STALE', 'HIT' ], 'INSERT, through the trigger');
applied('UPDATE t SET v = 101 WHERE id = 11', $t, '156|11', 'UPDATE');
applied('UPDATE t SET id = 12 WHERE id = 11', $t, '156|11', 'UPDATE of the key');
applied('DELETE FROM t WHERE id = 12', $t, '55|10', 'DELETE');
answers_are($subscriber, $logged, '14', [ 'STALE', 'HIT' ], 'each of them, through the trigger');
applied('BEGIN; INSERT INTO t VALUES (21, 1), (22, 2); SAVEPOINT s; INSERT INTO t VALUES (23, 3); ROLLBACK TO s; COMMIT',
	$t, '58|12', 'a transaction with a subtransaction that is rolled back');
applied('INSERT INTO parts VALUES (150, 45)', $parts, '100', 'INSERT into a partition');
answers_are($subscriber, $leaf, '55', ['HIT'], 'and not into the other');
applied('UPDATE parts SET id = 20 WHERE id = 150', $leaf, '100', 'UPDATE that moves a row to the other partition');
answers_are($subscriber, $untouched, '1', ['HIT'], 'the table that is not replicated was served all along');
applied('TRUNCATE t', $t, '|0', 'TRUNCATE');
applied('INSERT INTO t VALUES (1, 1)', $t, '1|1', 'INSERT after TRUNCATE');

# Without statistics the server keeps no list of what a transaction has changed.
$subscriber->append_conf('postgresql.conf', 'track_counts = off');
$subscriber->restart;
answers_are($subscriber, $t, '1|1', ['HIT'], 'track_counts = off: cached');
applied('INSERT INTO t VALUES (3, 3)', $t, '4|2', 'track_counts = off: INSERT');
applied('UPDATE t SET v = 4 WHERE id = 3', $t, '5|2', 'track_counts = off: UPDATE');
applied('DELETE FROM t WHERE id = 3', $t, '1|1', 'track_counts = off: DELETE');
applied('TRUNCATE t', $t, '|0', 'track_counts = off: TRUNCATE');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');

done_testing();
