# Who may invalidate the results of others: only roles that may change the data. Neither the trigger function nor a
# statement that was refused touches results over what one may not write, least of all those of other databases.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('rights', conf => "max_prepared_transactions = 5\n");
$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN;
	CREATE ROLE bob LOGIN;
	GRANT CREATE ON SCHEMA public TO alice, bob;
	CREATE DATABASE far;
});
$node->safe_psql('far', 'CREATE EXTENSION pg_arrow_cache; CREATE TABLE t (a int); INSERT INTO t VALUES (7)');

# What a role is told: the code of the first error, or nothing.
sub told
{
	my ($role, $statements) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', $statements, on_error_stop => 0,
		extra_params => [ '-U', $role, '-v', 'VERBOSITY=sqlstate' ]);
	return $stderr =~ /ERROR:  (\w{5})/ ? $1 : '';
}

$node->safe_psql('postgres', q{
	SET ROLE alice;
	CREATE TABLE hers (a int); INSERT INTO hers VALUES (1);
	CREATE TABLE shared (a int); INSERT INTO shared VALUES (2);
	CREATE TABLE partly (a int, b int); INSERT INTO partly VALUES (3);
	CREATE TABLE readable (a int); INSERT INTO readable VALUES (4);
	CREATE TABLE inbox (a int);
	CREATE TABLE open_to_triggers (a int);
	GRANT INSERT ON shared, inbox TO bob;
	GRANT UPDATE (b) ON partly TO bob;
	GRANT SELECT ON readable TO bob;
	SET ROLE bob;
	CREATE TABLE own (a int); INSERT INTO own VALUES (5);
	CREATE TABLE signal (a int);
	CREATE SEQUENCE counter;
	CREATE INDEX own_a ON own (a);
});
my %answers = (hers => 1, shared => 2, partly => 3, readable => 4, own => 5);

# Reads everything, here and in the other database. Returns the tables whose results were out of date.
sub outdated
{
	my $read = sub { my ($table, $name) = @_; "SELECT a FROM $table;\nSELECT '=> $name' WHERE arrow_cache.last_status() <> 'HIT';\n" };
	my $output = $node->safe_psql('postgres', join('', map { $read->($_, $_) } sort keys %answers)) . "\n"
		. $node->safe_psql('far', $read->('t', 'far'));
	return join(' ', $output =~ /^=> (\w+)/mg);
}

# Has everything stored.
sub fill
{
	outdated();
	is(outdated(), '', 'all is stored') or die;
	return;
}

# The trigger function is not for everybody.
is(told('bob', 'CREATE TRIGGER tell AFTER INSERT ON signal EXECUTE FUNCTION arrow_cache.invalidate_on_change()'), '42501',
	'one needs the right to execute the trigger function');
$node->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION arrow_cache.invalidate_on_change() TO alice, bob');

# What a trigger names, by whom it is fired, what that comes to, and what it outdates.
my @cases = (
	[ 'itself', 'signal', q{}, 'bob', '', '' ],
	[ 'an own table', 'signal', q{'own'}, 'bob', '', 'own' ],
	[ 'a table one may insert into', 'signal', q{'shared'}, 'bob', '', 'shared' ],
	[ 'a table of which one may update a column', 'signal', q{'public.partly'}, 'bob', '', 'partly' ],
	[ 'a table of others', 'signal', q{'hers'}, 'bob', '42501', '' ],
	[ 'a table of others, after one of ones own', 'signal', q{'own', 'hers'}, 'bob', '42501', '' ],
	[ 'a table one may read', 'signal', q{'readable'}, 'bob', '42501', '' ],
	[ 'the catalog of roles', 'signal', q{'pg_catalog.pg_authid'}, 'bob', '42501', '' ],
	[ 'the catalog of relations', 'signal', q{'pg_catalog.pg_class'}, 'bob', '42501', '' ],
	[ 'a view that everybody may write', 'signal', q{'pg_catalog.pg_settings'}, 'bob', '42809', '' ],
	[ 'a sequence', 'signal', q{'counter'}, 'bob', '42809', '' ],
	[ 'an index', 'signal', q{'own_a'}, 'bob', '42809', '' ],
	[ 'nothing', 'signal', q{'no_such'}, 'bob', '42P01', '' ],
	[ 'an own table, fired by a superuser', 'signal', q{'own'}, 'postgres', '', 'own' ],
	[ 'a catalog, fired by a superuser', 'signal', q{'pg_catalog.pg_class'}, 'postgres', '42809', '' ],
	# The owner of the table is responsible for the triggers on it.
	[ 'a table of the owner of the trigger\'s table', 'inbox', q{'hers'}, 'bob', '', 'hers' ],
);
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
for my $case (@cases)
{
	my ($name, $table, $arguments, $role, $code, $outdated) = @$case;
	$role = $superuser if $role eq 'postgres';
	$node->safe_psql('postgres', "DROP TRIGGER IF EXISTS tell ON signal; DROP TRIGGER IF EXISTS tell ON inbox;
		CREATE TRIGGER tell AFTER INSERT ON $table EXECUTE FUNCTION arrow_cache.invalidate_on_change($arguments)");
	fill();
	is(told($role, "INSERT INTO $table VALUES (1)"), $code, "$name: the error");
	is(outdated(), $outdated, "$name: what is outdated");
}

# Rights are those of whoever the code runs as, at that moment.
$node->safe_psql('postgres', q{
	DROP TRIGGER tell ON inbox;
	CREATE TRIGGER tell AFTER INSERT ON signal EXECUTE FUNCTION arrow_cache.invalidate_on_change('hers');
	GRANT INSERT ON signal TO alice;
	SET ROLE alice;
	CREATE FUNCTION as_alice() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'INSERT INTO public.signal VALUES (1)';
});
fill();
is(told('bob', 'SELECT as_alice()'), '', 'in a function of the owner: the error');
is(outdated(), 'hers', 'in a function of the owner: what is outdated');

# A name without a schema means a table beside the trigger's own, whatever the path of whoever fires it.
$node->safe_psql('postgres', q{
	DROP TRIGGER tell ON signal;
	CREATE TRIGGER tell AFTER INSERT ON inbox EXECUTE FUNCTION arrow_cache.invalidate_on_change('hers');
});
fill();
is(told('bob', 'CREATE TEMPORARY TABLE hers (a int); SET search_path = pg_temp, pg_catalog; INSERT INTO public.inbox VALUES (1)'), '', 'another path: the error');
is(outdated(), 'hers', 'another path: what is outdated');
$node->safe_psql('postgres', 'DROP TRIGGER tell ON inbox');

# A statement that was refused has changed nothing, although its transaction goes on and commits something.
for my $refused ('UPDATE pg_authid SET rolname = rolname', 'DELETE FROM pg_class', 'UPDATE hers SET a = a', 'DELETE FROM readable',
	'WITH gone AS (DELETE FROM hers RETURNING a) SELECT * FROM gone', 'INSERT INTO hers VALUES (9)', 'TRUNCATE hers',
	"COPY hers FROM stdin;\n9\n\\.\n", "COPY pg_authid FROM stdin;\n\\.\n", "COPY partly (a) FROM stdin;\n9\n\\.\n", 'EXPLAIN ANALYZE UPDATE hers SET a = a',
	'MERGE INTO hers USING own ON true WHEN MATCHED THEN DELETE', 'PREPARE p AS UPDATE hers SET a = a; EXECUTE p',
	'LOCK TABLE hers', 'REFRESH MATERIALIZED VIEW hers', 'ALTER TABLE hers ADD c int', 'DROP TABLE hers', 'CREATE INDEX ON hers (a)')
{
	fill();
	is(told('bob', "BEGIN; INSERT INTO own VALUES (5); DELETE FROM own WHERE ctid <> '(0,1)'; SAVEPOINT s; $refused; ROLLBACK TO s; COMMIT"),
		'42501', "$refused: refused");
	is(outdated(), 'own', "$refused: outdates nothing but what was written beside it");
}

# The end of a prepared transaction outdates what it has redefined; the wish for one does not, be it another's or none at all.
$node->safe_psql('postgres', q{BEGIN; CREATE TABLE prepared (a int); PREPARE TRANSACTION 'first'; COMMIT PREPARED 'first'; BEGIN; CREATE TABLE later (a int); PREPARE TRANSACTION 'hers'});
for my $case ([ q{COMMIT PREPARED 'none'}, '42704' ], [ q{ROLLBACK PREPARED 'none'}, '42704' ], [ q{COMMIT PREPARED 'hers'}, '42501' ],
	[ q{ROLLBACK PREPARED 'hers'}, '42501' ], [ q{BEGIN; COMMIT PREPARED 'hers'}, '25001' ])
{
	my ($statement, $code) = @$case;
	fill();
	is(told('bob', $statement), $code, "$statement: refused");
	is(outdated(), '', "$statement: outdates nothing");
}
fill();
is(told('bob', q{BEGIN; PREPARE TRANSACTION 'undone'}), '', 'a prepared transaction');
fill();
is(told('bob', q{ROLLBACK PREPARED 'undone'}), '', 'that is rolled back');
is(outdated(), '', 'outdates nothing by its end');
is(told('postgres', q{COMMIT PREPARED 'hers'}), '', 'the end of a prepared transaction');
isnt(outdated(), '', 'outdates what may rest on what it has redefined');

# An error that comes after the end hides nothing, whatever its code is: definitions count as changed.
chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
my $refuser = "$PostgreSQL::Test::Utils::tmp_check/late_refuser.so";
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include", "$FindBin::RealBin/late_refuser.c", '-o', $refuser);
$node->append_conf('postgresql.conf', "shared_preload_libraries = '$refuser,pg_arrow_cache'\n");
$node->restart;
$node->safe_psql('postgres', q{BEGIN; CREATE TABLE ended (a int); PREPARE TRANSACTION 'definitions'});
is(told('postgres', q{COMMIT PREPARED 'definitions'}), '42501', 'an error after the end');
$node->safe_psql('postgres', q{BEGIN; INSERT INTO inbox VALUES (1); PREPARE TRANSACTION 'rows'});
fill();
is(told('postgres', q{COMMIT PREPARED 'rows'}), '42501', 'an error after the end of another one');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'), '0', 'both have ended');
isnt(outdated(), '', 'an error after the end outdates what may rest on what was redefined');

done_testing();
