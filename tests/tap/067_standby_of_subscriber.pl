# Changes that a primary gets by logical replication reach its standby like any other: the initial copy, rows that are applied, in streams
# as well, TRUNCATE, what triggers do then, and changes for another origin.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use StandbyTest;
use Test::More;

my $publisher = new_primary('publisher', init => { allows_streaming => 'logical' }, conf => "logical_decoding_work_mem = 64kB\n");
my $primary = new_primary('primary', init => { allows_streaming => 'logical' });
my $tables = q{
	CREATE TABLE t (id int PRIMARY KEY, v int, pad text);
	CREATE TABLE parts (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
	CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100);
	CREATE TABLE high PARTITION OF parts FOR VALUES FROM (100) TO (200);
	CREATE TABLE log (n int); CREATE TABLE untouched (v int); INSERT INTO untouched VALUES (1);
};
$_->safe_psql('postgres', $tables) for $publisher, $primary;
$publisher->safe_psql('postgres', q{
	INSERT INTO t SELECT g, g, 'x' FROM generate_series(1, 10) g;
	INSERT INTO parts SELECT g, g FROM generate_series(1, 10) g;
	CREATE PUBLICATION p FOR TABLE t, parts;
});
$primary->safe_psql('postgres', q{
	CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.log VALUES (1); RETURN NULL; END';
	CREATE TRIGGER count_change AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION count_change();
	ALTER TABLE t ENABLE ALWAYS TRIGGER count_change;
});
my $standby = new_standby('standby', $primary);
my ($source, $writer, $reader, $other) = (session($publisher), session($primary), session($standby), session($standby));
my $plain = session($standby, 'SET pg_arrow_cache.enabled = off');
my %query = (t => 'SELECT sum(v), count(*) FROM t', parts => 'SELECT sum(v) FROM parts', low => 'SELECT sum(v) FROM low',
	high => 'SELECT sum(v) FROM high', log => 'SELECT count(*) FROM log', untouched => 'SELECT sum(v) FROM untouched');

sub applied
{
	$publisher->wait_for_catchup('s');
	caught_up($writer, $reader);
	return;
}

# Makes a change on the publisher. Asserts which answers it outdates on the standby; the others are hits.
sub outdates
{
	my ($change, $outdated, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	caught_up($writer, $reader);
	my %old = map { $_ => cached($reader, $query{$_}, "before $name: $_") } sort keys %query;
	write_sql($source, @$change);
	applied();
	my %is_outdated = map { $_ => 1 } @$outdated;
	for my $what (sort keys %query)
	{
		my ($rows, $status) = ask($reader, $query{$what});
		is($rows, ask_plainly($plain, $query{$what}), "$name: the rows of $what");
		is($status, $is_outdated{$what} ? 'STALE' : 'HIT', "$name: $what");
		ok($rows ne $old{$what}, "$name: $what has changed") if $is_outdated{$what};
		is((ask($other, $query{$what}))[0], $rows, "$name: $what in another session");
	}
	return;
}

caught_up($writer, $reader);
my %empty = map { $_ => cached($reader, $query{$_}, "empty: $_") } sort keys %query;
my $connection = $publisher->connstr . ' dbname=postgres';
write_sql($writer, "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p WITH (streaming = on)");
$primary->wait_for_subscription_sync($publisher, 's');
caught_up($writer, $reader);
isnt(ask_plainly($reader, $query{$_}), $empty{$_}, "the initial copy of $_") for qw(t parts low);
is(ask_plainly($_, $query{t}), '55|10', 'its rows') for $reader, $other, $plain;

outdates(['INSERT INTO t VALUES (11, 11)'], [qw(t log)], 'INSERT');
outdates(['UPDATE t SET v = v + 1 WHERE id < 5'], [qw(t log)], 'UPDATE');
outdates(['DELETE FROM t WHERE id = 1'], [qw(t log)], 'DELETE');
outdates(['BEGIN; UPDATE t SET v = 0; ROLLBACK'], [], 'ROLLBACK');
outdates(['UPDATE parts SET v = v + 1 WHERE id = 3'], [qw(parts low)], 'a leaf');
outdates(['INSERT INTO parts VALUES (150, 7)'], [qw(parts high)], 'the other leaf');
outdates([q{INSERT INTO t SELECT g, g, repeat('y', 200) FROM generate_series(100, 3000) g}], [qw(t log)], 'a large transaction, streamed');
outdates([q{BEGIN; INSERT INTO t SELECT g, g, repeat('z', 200) FROM generate_series(5000, 8000) g; SAVEPOINT s;
	UPDATE t SET v = v + 1 WHERE id > 5000; ROLLBACK TO s; COMMIT}], [qw(t log)], 'a streamed savepoint rolled back');
outdates(['TRUNCATE t'], [qw(t)], 'TRUNCATE');
outdates(['INSERT INTO t VALUES (1, 1)'], [qw(t log)], 'then INSERT');

is(state($standby), 'replaying', 'nothing has switched the cache off');
write_sql($writer, 'DROP SUBSCRIPTION s');
$_->quit for $source, $writer, $reader, $other, $plain;
done_testing();
