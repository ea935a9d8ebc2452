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

# What rests on the rows of one tenant. The worker changes rows without a node of a plan, so that nobody notes their
# values: the table is published as a whole, once for each transaction that has changed it.
$_->safe_psql('postgres', 'CREATE TABLE shop (id int PRIMARY KEY, tenant int, v int)') for $publisher, $subscriber;
$publisher->safe_psql('postgres', q{
	INSERT INTO shop SELECT g, g % 12, g FROM generate_series(1, 120) g;
	ALTER PUBLICATION p ADD TABLE shop;
});
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s REFRESH PUBLICATION');
$subscriber->wait_for_subscription_sync($publisher, 's');

sub of_tenant
{
	my ($tenant) = @_;
	return "SELECT count(*), sum(v), max(id) FROM shop WHERE tenant = $tenant";
}

# Asks for each tenant's rows, which have to be those of the publisher; returns the statuses.
sub of_tenants
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @answers = map { [ answer($subscriber, of_tenant($_)) ] } 0 .. 13;
	my $asked = join '; ', map { of_tenant($_) } 0 .. 13;
	is(join("\n", map { $_->[0] } @answers), $publisher->safe_psql('postgres', $asked), $name);
	return map { $_->[1] } @answers;
}

of_tenants('tenants') for 1 .. 3;
is($subscriber->safe_psql('postgres', q{SELECT columns FROM arrow_cache.tracked WHERE relation = 'shop'::regclass}),
	'{tenant}', 'the table is tracked');
# What was stored before it was tracked rests on all of it.
$subscriber->safe_psql('postgres', 'UPDATE shop SET v = v WHERE id = 1');
of_tenants('tenants, tracked') for 1 .. 2;
$subscriber->safe_psql('postgres', 'UPDATE shop SET v = v WHERE tenant = 5');
is(scalar(grep { $_ eq 'HIT' } of_tenants('an UPDATE of the subscriber itself')),
	13, 'it leaves the answers over other tenants');

for my $change (
	'INSERT INTO shop VALUES (1000, 5, 1)',
	'UPDATE shop SET tenant = 13 WHERE tenant = 5 AND id < 60',
	'UPDATE shop SET v = v + 1 WHERE tenant = 6',
	'DELETE FROM shop WHERE tenant = 7 AND id < 60',
	'MERGE INTO shop USING (VALUES (1000, 3), (1001, 4)) s(id, tenant) ON shop.id = s.id'
	. ' WHEN MATCHED THEN UPDATE SET tenant = s.tenant WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.tenant, 1)',
	'INSERT INTO shop VALUES (1000, 9, 1), (1002, 9, 1) ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant',
	'BEGIN; UPDATE shop SET tenant = 1 WHERE id = 8; SAVEPOINT a; UPDATE shop SET tenant = 2 WHERE id = 8;'
	. ' ROLLBACK TO a; UPDATE shop SET tenant = 3 WHERE id = 9; COMMIT')
{
	my $whole = stat($subscriber, 'coarse_not_noted');
	$publisher->safe_psql('postgres', $change);
	$publisher->wait_for_catchup('s');
	is(scalar(grep { $_ ne 'STALE' } of_tenants($change)), 0, "outdates all: $change");
	is(stat($subscriber, 'coarse_not_noted') - $whole, 1, "as a whole: $change");
	of_tenants("stored again: $change");
}

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
