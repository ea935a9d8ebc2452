# What the cache makes of answers besides serving them whole follows a primary as well: answers combined of stored parts, change tokens,
# kept plans, portals that are bound before a change is replayed and read after it, functions that are declared pure, row types.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use StandbyTest;
use Test::More;

# The primary preloads the library: labels are checked by it.
my $primary = new_primary('primary', conf => "shared_preload_libraries = 'pg_arrow_cache'\n");
$primary->safe_psql('postgres', q{
	CREATE TABLE untouched (v int); INSERT INTO untouched VALUES (1);
	CREATE TABLE sale (day int, shop int, v int) PARTITION BY RANGE (day);
	CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM (0) TO (100);
	CREATE TABLE sale_2 PARTITION OF sale FOR VALUES FROM (100) TO (200);
	CREATE TABLE sale_3 (day int, shop int, v int);
	INSERT INTO sale SELECT g, g % 3, g FROM generate_series(0, 199) g;
	INSERT INTO sale_3 VALUES (250, 1, 1000);
	CREATE TABLE rate (r int); INSERT INTO rate VALUES (2);
	CREATE FUNCTION rated(int) RETURNS int LANGUAGE plpgsql STABLE SET search_path = public AS 'BEGIN RETURN $1 * (SELECT r FROM rate); END';
	SECURITY LABEL FOR pg_arrow_cache ON FUNCTION rated(int) IS 'pure';
	CREATE TABLE point (x int, y int); INSERT INTO point VALUES (1, 2);
	CREATE VIEW total AS SELECT shop, sum(v) AS s FROM sale GROUP BY shop;
	ANALYZE;
});
my $standby = new_standby('standby', $primary);
my %on = (writer => session($primary), first => session($standby), second => session($standby),
	plain => session($standby, 'SET pg_arrow_cache.enabled = off'));

# Plans that are kept by the sessions, for all values of their parameter and for each, and answers of them.
for my $kind ('force_generic_plan', 'force_custom_plan', 'auto')
{
	my @prepare = ("SET plan_cache_mode = $kind", 'DEALLOCATE ALL', 'PREPARE by_shop(int) AS SELECT count(*), sum(v) FROM sale WHERE shop = $1',
		'PREPARE by_key(int) AS SELECT * FROM {t} WHERE id = $1');
	try_cases(\%on,
		{ name => "$kind: partitions", before => \@prepare, query => 'EXECUTE by_shop(1)', change => ['INSERT INTO sale_2 VALUES (150, 1, 5)'] },
		{ name => "$kind: a row", before => \@prepare, query => 'EXECUTE by_key(3)', change => ['UPDATE {t} SET v = 0 WHERE id = 3'],
			steps => [
				{ name => 'a new file', change => ['VACUUM FULL {t}'], same => 1 },
				{ name => 'then UPDATE', change => ['UPDATE {t} SET v = 1 WHERE id = 3'] },
				{ name => 'an index is gone', change => ['ALTER TABLE {t} DROP CONSTRAINT {t}_pkey'], same => 1 },
				{ name => 'then UPDATE', change => ['UPDATE {t} SET v = 2 WHERE id = 3'] },
			] });
}

# Rows that a function reads, which only running it shows; composite values; views.
try_cases(\%on,
	{ name => 'rows that a declared function reads', query => 'SELECT sum(rated(v)) FROM {t}', change => ['UPDATE rate SET r = r + 1'],
		steps => [ { name => 'in a new file', change => ['TRUNCATE rate; INSERT INTO rate VALUES (9)'] },
			{ name => 'and again', change => ['UPDATE rate SET r = 11'] },
			{ name => 'the function', others => 'either', change => [ q{CREATE OR REPLACE FUNCTION rated(int) RETURNS int LANGUAGE plpgsql STABLE SET search_path = public AS
				'BEGIN RETURN $1 * 2 * (SELECT r FROM rate); END'} ] } ] },
	{ name => 'whole rows', query => 'SELECT p FROM point p', change => ['ALTER TABLE point ADD z int DEFAULT 3'],
		steps => [ { name => 'then UPDATE', change => ['UPDATE point SET x = 5'] } ] },
	{ name => 'an aggregating view', query => 'SELECT sum(s) FROM total', change => ['DELETE FROM sale_1 WHERE day = 50'] });

write_sql($on{writer}, 'SECURITY LABEL FOR pg_arrow_cache ON FUNCTION rated(int) IS NULL');
caught_up(@on{qw(writer first)});
my $new = session($standby);
is((ask($new, 'SELECT sum(rated(v)) FROM untouched'))[1], 'BYPASS user_defined_function', 'a declaration that is withdrawn');
$new->quit;

# Answers that are combined of one stored part for each partition.
my $SHOPS = 'SELECT shop, count(*), sum(v) FROM sale GROUP BY shop ORDER BY shop';
my @parts = map { session($standby, 'SET pg_arrow_cache.debug_force_fragments = on') } 1 .. 2;
sub combined
{
	my ($name, @changes) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	write_sql($on{writer}, @changes);
	caught_up(@on{qw(writer first)});
	my $rows = ask_plainly($on{plain}, $SHOPS);
	is(ask_plainly($_, $SHOPS), $rows, "$name: combined of parts") for @parts, @parts;
	return $rows;
}
my $at_first = combined('at first');
like($parts[0]->query_safe("EXPLAIN (COSTS OFF) $SHOPS"), qr/ArrowCache/, 'parts are stored');
isnt(combined('a leaf has changed', 'UPDATE sale_1 SET v = v + 1 WHERE day = 3'), $at_first, 'it shows');
like($parts[0]->query_safe("EXPLAIN (COSTS OFF) SELECT sum(v) FROM sale"), qr/ArrowCacheFragments/, 'and combined');
combined('the other leaf', 'INSERT INTO sale VALUES (199, 2, 7)');
combined('a leaf in a new file', 'VACUUM FULL sale_2');
combined('a leaf in a new file has changed', 'UPDATE sale_2 SET v = v + 1 WHERE day = 199');
combined('a leaf is emptied', 'TRUNCATE sale_2');
combined('a leaf is attached', 'ALTER TABLE sale ATTACH PARTITION sale_3 FOR VALUES FROM (200) TO (300)');
combined('the new leaf has changed', 'INSERT INTO sale VALUES (260, 0, 9)');
combined('a leaf is detached', 'ALTER TABLE sale DETACH PARTITION sale_3 CONCURRENTLY');
combined('the detached leaf has changed', 'DELETE FROM sale_3');
combined('rolled back', 'BEGIN; UPDATE sale SET v = 0; ROLLBACK');
$_->quit for @parts;

# Change tokens: of an answer, and of all rows of relations.
sub tokens
{
	caught_up(@on{qw(writer first)});
	return map { $on{first}->query_safe($_) } q{SELECT arrow_cache.etag('SELECT sum(v) FROM sale')}, q{SELECT arrow_cache.version('sale')},
	  q{SELECT arrow_cache.version('untouched')}, q{SELECT arrow_cache.version('total')};
}
my @old = tokens();
is_deeply([ tokens() ], \@old, 'tokens stay');
for my $change ('UPDATE sale SET v = v + 1 WHERE day = 7', 'VACUUM FULL sale_1', 'UPDATE sale SET v = v + 1 WHERE day = 8', 'TRUNCATE sale_2',
	'INSERT INTO sale VALUES (101, 1, 1)')
{
	write_sql($on{writer}, $change);
	my @new = tokens();
	isnt($new[$_], $old[$_], "$change: " . (qw(etag version untouched view))[$_]) for 0, 1, 3;
	is($new[2], $old[2], "$change: another table");
	@old = @new;
}
write_sql($on{writer}, 'VACUUM (ANALYZE) sale', 'BEGIN; UPDATE sale SET v = 0; ROLLBACK');
is_deeply([ (tokens())[ 2, 3 ] ], [ @old[ 2, 3 ] ], 'upkeep and rollbacks change none');

# A portal that is bound to a stored answer before a change is replayed, and read after it: rows of its own snapshot.
my $rows = cached($on{first}, 'SELECT x, y FROM point', 'a portal');
for my $change ('UPDATE point SET x = x + 1', 'ALTER TABLE untouched ADD w int', 'CREATE OR REPLACE FUNCTION rated(int) RETURNS int LANGUAGE sql AS \'SELECT 1\'')
{
	caught_up(@on{qw(writer first)});
	$rows = cached($on{first}, 'SELECT x, y FROM point', "a portal before: $change");
	write_sql($on{first}, 'BEGIN', 'DECLARE c NO SCROLL CURSOR FOR SELECT x, y FROM point');
	write_sql($on{writer}, $change);
	caught_up(@on{qw(writer second)});
	is($on{first}->query_safe('FETCH ALL FROM c'), $rows, "a portal bound before: $change");
	write_sql($on{first}, 'COMMIT');
	is(ask_plainly($on{first}, 'SELECT x, y FROM point'), ask_plainly($on{plain}, 'SELECT x, y FROM point'), "and after: $change");
}

# What is stored elsewhere is trusted on no standby: its changes are in no WAL.
write_sql($on{writer}, 'CREATE EXTENSION postgres_fdw', 'CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw OPTIONS (dbname \'postgres\', host \''
	  . $primary->host . '\', port \'' . $primary->port . '\')', 'CREATE USER MAPPING FOR public SERVER itself',
	'CREATE FOREIGN TABLE far (x int) SERVER itself OPTIONS (table_name \'point\')', q{SELECT arrow_cache.set_policy('far', 'trusted')});
caught_up(@on{qw(writer first)});
for my $change ('SELECT 1', 'UPDATE far SET x = x + 100')
{
	write_sql($on{writer}, $change);
	caught_up(@on{qw(writer first)});
	my ($x) = $on{writer}->query_safe('SET pg_arrow_cache.enabled = off; SELECT x FROM point; SET pg_arrow_cache.enabled = on');
	is_deeply([ ask($on{first}, 'SELECT x FROM far') ], [ $x, 'BYPASS foreign_table' ], "a foreign table, $change") for 1 .. 2;
}

# An unlogged table has no file here, so its zones are not looked at.
write_sql($on{writer}, 'CREATE UNLOGGED TABLE unlogged AS SELECT generate_series(1, 5000) AS v', 'ANALYZE unlogged');
caught_up(@on{qw(writer first)});
my (undef, undef, $refusal) = $standby->psql('postgres', 'SET pg_arrow_cache.debug_force_fragments = on; SELECT count(*) FROM unlogged');
like($refusal, qr/cannot access temporary or unlogged relations during recovery/, 'an unlogged table is refused as ever');

is(state($standby), 'replaying', 'nothing has switched the cache off');
$_->quit for values %on;
done_testing();
