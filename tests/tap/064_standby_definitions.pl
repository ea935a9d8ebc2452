# Changes of definitions on a primary, which does not preload the library, outdate on the standby what rests on them: columns, names,
# types, views, functions, rights, policies, partitions, databases. New relations, and other roles, outdate nothing. So it stays when catalogs have been
# rewritten and lie in other files than their first.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use StandbyTest;
use Test::More;

my $primary = new_primary('primary');
$primary->safe_psql('postgres', q{
	CREATE TABLE untouched (v int); INSERT INTO untouched VALUES (1);
	CREATE ROLE reader; CREATE ROLE team; CREATE ROLE idle;
	GRANT SELECT ON untouched TO public;
	CREATE SCHEMA front; CREATE SCHEMA later; CREATE SCHEMA attic;
});
my $standby = new_standby('standby', $primary);
my %on = (writer => session($primary), first => session($standby), second => session($standby),
	plain => session($standby, 'SET pg_arrow_cache.enabled = off'));

my ($ALL, $SUM) = ('SELECT * FROM {t} ORDER BY id', 'SELECT count(*), sum(v) FROM {t}');
my $INSERT = 'INSERT INTO {t} VALUES (11, 11)';
my @TWIN = ('CREATE TABLE twin_{n} AS SELECT id, v * 2 AS v FROM {t}');

my @TABLES = (
	{ name => 'ADD COLUMN', query => $ALL, change => [q{ALTER TABLE {t} ADD note text DEFAULT 'none'}] },
	{ name => 'DROP COLUMN', query => $ALL, change => ['ALTER TABLE {t} DROP v'] },
	{ name => 'RENAME COLUMN', query => 'SELECT v FROM {t} WHERE id = 1', change => ['ALTER TABLE {t} RENAME v TO w'] },
	{ name => 'another type', query => $ALL, change => [q{ALTER TABLE {t} ALTER v TYPE text USING v || '!'}] },
	{ name => 'another type without a rewrite', setup => ['ALTER TABLE {t} ADD x varchar(5) DEFAULT 1'], query => 'SELECT max(x) FROM {t}',
		change => ['ALTER TABLE {t} ALTER x TYPE varchar(9)'], same => 1 },
	{ name => 'SET DEFAULT', change => ['ALTER TABLE {t} ALTER v SET DEFAULT 3'], same => 1 },
	{ name => 'DROP', change => ['DROP TABLE {t}'] },
	{ name => 'DROP and CREATE of the name', change => [ 'DROP TABLE {t}', 'CREATE TABLE {t} (id int, v int)', $INSERT ] },
	{ name => 'a swap of names', setup => \@TWIN,
		change => ['BEGIN; ALTER TABLE {t} RENAME TO old_{n}; ALTER TABLE twin_{n} RENAME TO {t}; COMMIT'] },
	{ name => 'a swap of names rolled back', setup => \@TWIN, after => 'kept',
		change => ['BEGIN; ALTER TABLE {t} RENAME TO old_{n}; ALTER TABLE twin_{n} RENAME TO {t}; ROLLBACK'] },
	{ name => 'SET SCHEMA uncovers another', setup => ['CREATE TABLE later.{t} AS SELECT id, v * 2 AS v FROM {t}'],
		before => ['SET search_path = public, later'], change => ['ALTER TABLE public.{t} SET SCHEMA attic'] },
	{ name => 'a new table in an earlier schema', before => ['SET search_path = front, public'],
		change => ['CREATE TABLE front.{t} AS SELECT id, v * 2 AS v FROM {t}'] },
	{ name => 'RENAME of a schema', before => ['SET search_path = ahead_{n}, public'],
		setup => [ 'CREATE SCHEMA aside_{n}', 'CREATE TABLE aside_{n}.{t} AS SELECT id, v * 2 AS v FROM {t}' ],
		change => ['ALTER SCHEMA aside_{n} RENAME TO ahead_{n}'] },
	{ name => 'a new table', change => ['CREATE TABLE new_{n} (a int)'], after => 'kept' },
	{ name => 'a new table that refers', change => ['CREATE TABLE child_{n} (a int REFERENCES {t})'], same => 1 },
	{ name => 'a new view', change => ["CREATE VIEW new_{n} AS $SUM"], after => 'kept' },
	{ name => 'a new trigger', setup => [q{CREATE FUNCTION f_{n}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'}],
		change => ['CREATE TRIGGER f AFTER INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION f_{n}()'], same => 1 },
	{ name => 'a rule instead of rows', query => 'SELECT * FROM w_{n}', change => ['CREATE OR REPLACE VIEW w_{n} AS SELECT 2 AS a, v FROM {t}'],
		setup => ['CREATE VIEW w_{n} AS SELECT 1 AS a, v FROM {t}'] },
	{ name => 'a view below a view', query => 'SELECT count(*) FROM y_{n}', change => ['CREATE OR REPLACE VIEW x_{n} AS SELECT * FROM {t} WHERE id > 8'],
		setup => [ 'CREATE VIEW x_{n} AS SELECT * FROM {t}', 'CREATE VIEW y_{n} AS SELECT * FROM x_{n}' ] },
	{ name => 'a row type', query => 'SELECT a FROM of_{n}', change => ['ALTER TYPE pair_{n} ADD ATTRIBUTE z int'],
		setup => [ 'CREATE TYPE pair_{n} AS (x int, y int)', 'CREATE TABLE of_{n} (a pair_{n})', 'INSERT INTO of_{n} VALUES ((1, 2))' ] },
	{ name => 'ADD VALUE of an enum', query => q{SELECT count(*) FROM of_{n} WHERE a < 'b'}, same => 1, others => 'either',
		setup => [ q{CREATE TYPE e_{n} AS ENUM ('a', 'b')}, 'CREATE TABLE of_{n} (a e_{n})', q{INSERT INTO of_{n} VALUES ('a')} ],
		change => [q{ALTER TYPE e_{n} ADD VALUE 'ab' BEFORE 'b'}] },
	{ name => 'RENAME VALUE of an enum', query => 'SELECT a FROM of_{n}', others => 'either',
		setup => [ q{CREATE TYPE e_{n} AS ENUM ('a', 'b')}, 'CREATE TABLE of_{n} (a e_{n})', q{INSERT INTO of_{n} VALUES ('a')} ],
		change => [q{ALTER TYPE e_{n} RENAME VALUE 'a' TO 'z'}],
		steps => [ { name => 'again', change => [q{ALTER TYPE e_{n} RENAME VALUE 'z' TO 'y'}], others => 'either' } ] },
);

my @PARTS = (
	'CREATE TABLE p_{n} (id int, v int) PARTITION BY RANGE (id)',
	'CREATE TABLE p1_{n} PARTITION OF p_{n} FOR VALUES FROM (0) TO (6)',
	'CREATE TABLE p2_{n} PARTITION OF p_{n} FOR VALUES FROM (6) TO (20)',
	'CREATE TABLE p3_{n} (id int, v int)', 'INSERT INTO p3_{n} VALUES (25, 25)',
	'INSERT INTO p_{n} SELECT * FROM {t}'
);
my $ROOT = 'SELECT count(*), sum(v) FROM p_{n}';
my @FAMILY = ('CREATE TABLE heir_{n} (extra int) INHERITS ({t})', 'INSERT INTO heir_{n} VALUES (20, 20, 20)');

my @TREES = (
	{ name => 'a partition is attached', setup => \@PARTS, query => $ROOT,
		change => ['ALTER TABLE p_{n} ATTACH PARTITION p3_{n} FOR VALUES FROM (20) TO (30)'],
		steps => [ { name => 'then INSERT into it', change => ['INSERT INTO p3_{n} VALUES (26, 26)'] } ] },
	{ name => 'a partition is created', setup => \@PARTS, query => $ROOT,
		change => [ 'CREATE TABLE p4_{n} PARTITION OF p_{n} FOR VALUES FROM (20) TO (30)', 'INSERT INTO p_{n} VALUES (26, 26)' ] },
	{ name => 'a partition is detached', setup => \@PARTS, query => $ROOT, change => ['ALTER TABLE p_{n} DETACH PARTITION p2_{n}'],
		steps => [ { name => 'then INSERT into it', change => ['INSERT INTO p2_{n} VALUES (11, 11)'], after => 'kept' } ] },
	{ name => 'a partition is detached concurrently', setup => \@PARTS, query => $ROOT,
		change => ['ALTER TABLE p_{n} DETACH PARTITION p2_{n} CONCURRENTLY'] },
	{ name => 'a partition is dropped', setup => \@PARTS, query => $ROOT, change => ['DROP TABLE p2_{n}'] },
	{ name => 'a child is created', change => \@FAMILY },
	{ name => 'NO INHERIT', setup => \@FAMILY, change => ['ALTER TABLE heir_{n} NO INHERIT {t}'] },
	{ name => 'INHERIT', change => ['ALTER TABLE like_{n} INHERIT {t}'],
		setup => [ 'CREATE TABLE like_{n} (id int NOT NULL, v int)', 'INSERT INTO like_{n} VALUES (20, 20)' ] },
);

my $DOUBLE = q{FUNCTION double_{n}(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2'};
my ($OF_DOUBLE, $CALLED) = ($DOUBLE =~ s/ \* 2/ * 3/r, 'SELECT sum(double_{n}(v)) FROM {t}');

my @MEANINGS = (
	{ name => 'a function is replaced', setup => ["CREATE $DOUBLE"], query => $CALLED, change => ["CREATE OR REPLACE $OF_DOUBLE"],
		others => 'outdated' },
	{ name => 'a function is dropped', setup => ["CREATE $DOUBLE"], query => $CALLED, change => ['DROP FUNCTION double_{n}'],
		others => 'outdated' },
	{ name => 'a new function', change => ["CREATE $DOUBLE"], same => 1, others => 'outdated' },
	{ name => 'a new function in an earlier schema', setup => ["CREATE $DOUBLE"], query => $CALLED, others => 'outdated', before => ['SET search_path = front, public'],
		change => [ 'CREATE ' . $OF_DOUBLE =~ s/FUNCTION /FUNCTION front./r ] },
	{ name => 'an operator', query => q{SELECT sum(v) FROM {t}}, same => 1, others => 'outdated',
		change => ['CREATE OPERATOR === (leftarg = int, rightarg = int, function = int4eq)'] },
	{ name => 'a cast', same => 1, others => 'outdated',
		change => [ 'CREATE TYPE c_{n} AS (x int)', q{CREATE FUNCTION c_{n}(int) RETURNS c_{n} LANGUAGE sql IMMUTABLE AS 'SELECT ROW($1)::c_{n}'},
			'CREATE CAST (int AS c_{n}) WITH FUNCTION c_{n}(int)' ] },
	{ name => 'a superuser writes to a catalog', setup => ["CREATE $DOUBLE"], query => $CALLED, others => 'outdated',
		change => [q{UPDATE pg_proc SET prosrc = 'SELECT $1 * 4' WHERE proname = 'double_{n}'}] },
	{ name => 'statistics', change => [ 'CREATE STATISTICS s_{n} ON id, v FROM {t}', 'ANALYZE {t}' ], after => 'either', same => 1 },
	{ name => 'a publication', change => ['CREATE PUBLICATION pub_{n} FOR TABLE {t}'], after => 'either', same => 1 },
	{ name => 'a setting of the database', change => ['ALTER DATABASE postgres SET work_mem = 8192'], after => 'kept' },
);

my $GRANT = 'GRANT SELECT ON {t} TO reader';
my @FENCE = ($GRANT, 'CREATE POLICY fence ON {t} USING (id < 5)');
my $ENABLE = 'ALTER TABLE {t} ENABLE ROW LEVEL SECURITY';

my @RIGHTS = (
	{ name => 'REVOKE', role => 'reader', setup => [$GRANT], change => ['REVOKE SELECT ON {t} FROM reader'] },
	{ name => 'REVOKE of a column', role => 'reader', setup => ['GRANT SELECT (id, v) ON {t} TO reader'],
		change => ['REVOKE SELECT (v) ON {t} FROM reader'] },
	{ name => 'GRANT to another', setup => [$GRANT], role => 'reader', change => ['GRANT SELECT ON {t} TO idle'], same => 1 },
	{ name => 'REVOKE of a membership', role => 'reader', setup => [ 'GRANT SELECT ON {t} TO team', 'GRANT team TO reader' ],
		change => ['REVOKE team FROM reader'], others => 'either' },
	{ name => 'ENABLE ROW LEVEL SECURITY', role => 'reader', setup => \@FENCE, change => [$ENABLE] },
	{ name => 'ALTER POLICY', role => 'reader', setup => [ @FENCE, $ENABLE ], change => ['ALTER POLICY fence ON {t} USING (id = 3)'],
		steps => [ { name => 'again', change => ['ALTER POLICY fence ON {t} USING (id = 4)'] } ] },
	{ name => 'DROP POLICY', role => 'reader', setup => [ @FENCE, $ENABLE ], change => ['DROP POLICY fence ON {t}'] },
	{ name => 'a policy for a membership', role => 'reader', others => 'either', change => ['GRANT team TO reader'],
		setup => [ @FENCE, 'CREATE POLICY more ON {t} TO team USING (id > 8)', $ENABLE ],
		steps => [ { name => 'which ends', after => 'either', change => ['REVOKE team FROM reader'], others => 'either' } ] },
	{ name => 'BYPASSRLS', role => 'reader', setup => [ @FENCE, $ENABLE ], change => ['ALTER ROLE reader BYPASSRLS'], others => 'either',
		steps => [ { name => 'which ends', after => 'either', change => ['ALTER ROLE reader NOBYPASSRLS'], others => 'either' } ] },
	{ name => 'REVOKE on a function', role => 'reader', setup => [ $GRANT, "CREATE $DOUBLE" ], query => $CALLED, others => 'outdated',
		change => ['REVOKE EXECUTE ON FUNCTION double_{n} FROM public'] },
	{ name => 'a new owner of a view', query => 'SELECT count(*) FROM o_{n}', setup => [ 'CREATE VIEW o_{n} AS SELECT * FROM {t}' ],
		change => ['ALTER VIEW o_{n} OWNER TO idle'] },
	{ name => 'a new role', change => ['CREATE ROLE role_{n}'], same => 1, after => 'kept', others => 'either' },
	{ name => 'a setting of a role', change => ['ALTER ROLE reader SET work_mem = 8192'], after => 'kept' },
	{ name => 'a changed role', change => ['ALTER ROLE idle CREATEDB'], same => 1, after => 'kept', others => 'either' },
	{ name => 'a dropped role', setup => ['CREATE ROLE role_{n}'], change => ['DROP ROLE role_{n}'], same => 1, after => 'kept', others => 'either' },
);

# Catalogs in other files than their first: their records do not tell any more which catalog they are about.
my @REWRITTEN = map { "VACUUM FULL $_" } qw(pg_class pg_attribute pg_proc pg_type pg_enum pg_inherits pg_rewrite pg_policy pg_trigger
	pg_attrdef pg_constraint pg_index pg_authid pg_auth_members pg_database pg_namespace pg_partitioned_table pg_operator);

try_cases(\%on, @TABLES, @TREES, @MEANINGS, @RIGHTS);
write_sql($on{writer}, 'REVOKE team FROM reader', 'DROP OPERATOR === (int, int)', @REWRITTEN);
sub again
{
	my ($case) = @_;
	my $kept = ($case->{after} // '') eq 'kept';
	my %steps = (steps => [ map { again($_) } @{ $case->{steps} // [] } ]);
	return { %$case, name => "catalogs rewritten: $case->{name}", %steps, others => 'either', $kept ? (after => 'either', same => 1) : () };
}
try_cases(\%on, map { again($_) } @TABLES, @TREES, @MEANINGS, @RIGHTS);

# NO INHERIT of a parent without columns is in no message of the primary's, so such parents are executed.
for my $columns ('()', '(a int)')
{
	write_sql($on{writer}, "CREATE TABLE bare $columns", 'CREATE TABLE heir () INHERITS (bare)', 'INSERT INTO heir DEFAULT VALUES');
	write_sql($on{writer}, 'ALTER TABLE bare DROP a') if $columns ne '()';
	caught_up(@on{qw(writer first)});
	is_deeply([ map { ask($on{$_}, 'SELECT count(*) FROM bare') } 'first', 'second' ], [ ('1', 'BYPASS unsupported_relation') x 2 ],
		"a parent $columns without columns");
	write_sql($on{writer}, 'BEGIN; CREATE TABLE beside (a int); ALTER TABLE heir NO INHERIT bare; COMMIT');
	caught_up(@on{qw(writer first)});
	is((ask($on{first}, 'SELECT count(*) FROM bare'))[0], '0', 'has lost its child');
	write_sql($on{writer}, 'DROP TABLE bare, heir, beside');
}

# Databases: what is in a new one is cached, and one of the same name is another.
sub in_database
{
	my ($database, $run) = @_;
	caught_up(@on{qw(writer first)});
	my %there = (writer => session($primary, undef, $database), map { $_ => session($standby, undef, $database) } 'first', 'second');
	caught_up($there{writer}, $there{first});
	$run->(%there);
	$_->quit for values %there;
	return;
}

sub counts
{
	my ($database, $rows) = @_;
	in_database($database, sub {
		my (%there) = @_;
		is(cached($there{first}, 'SELECT sum(v) FROM mine', $database), $rows, "$database: its rows");
		is_deeply([ ask($there{second}, 'SELECT sum(v) FROM mine') ], [ $rows, 'HIT' ], "$database: served to another session");
		write_sql($there{writer}, 'UPDATE mine SET v = v + 1');
		caught_up($there{writer}, $there{first});
		is_deeply([ ask($there{first}, 'SELECT sum(v) FROM mine') ], [ $rows + 1, 'STALE' ], "$database: UPDATE");
		cached($there{second}, 'SELECT sum(v) FROM mine', "$database: after UPDATE");
	});
	return;
}

# Makes a database in which `mine` has this value.
sub make_database
{
	my ($database, $strategy, $value) = @_;
	write_sql($on{writer}, "CREATE DATABASE $database TEMPLATE pattern STRATEGY $strategy");
	in_database($database, sub { my (%there) = @_; write_sql($there{writer}, "UPDATE mine SET v = $value") });
	return;
}

write_sql($on{writer}, 'CREATE DATABASE pattern', q{CREATE TABLESPACE elsewhere LOCATION ''});
in_database('pattern', sub { my (%there) = @_;
	write_sql($there{writer}, 'CREATE EXTENSION pg_arrow_cache', 'CREATE TABLE mine AS SELECT 1 AS v') });
for my $strategy ('wal_log', 'file_copy')
{
	make_database($_, $strategy, 10) for 'one', 'two';
	counts('one', 10);
	counts('two', 10);
	cached($on{first}, 'SELECT sum(v) FROM untouched', 'another database');
	write_sql($on{writer}, 'DROP DATABASE one');
	make_database('one', $strategy, 30);
	counts('one', 30);
	write_sql($on{writer}, 'DROP DATABASE one', 'ALTER DATABASE two RENAME TO one');
	counts('one', 11);
	write_sql($on{writer}, 'ALTER DATABASE one SET TABLESPACE elsewhere', 'ALTER DATABASE one OWNER TO idle');
	counts('one', 12);
	write_sql($on{writer}, 'DROP DATABASE one');
	caught_up($on{writer}, $on{first});
}
is(ask_plainly($on{first}, q{SELECT count(*) FROM pg_database WHERE datname IN ('one', 'two')}), '0', 'all are gone');

is(state($standby), 'replaying', 'nothing has switched the cache off');
$_->quit for values %on;
done_testing();
