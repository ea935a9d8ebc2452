# Versions of the extension: ALTER EXTENSION UPDATE from 0.1.0, whose objects work with the present library before and after it; and a
# library or a script that is too old for the other.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use File::Copy;
use File::Path;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Runs statements in a session of its own. Returns what the server said of the one that failed, or nothing.
sub failure
{
	my ($node, $statements, $database) = @_;
	my ($status, $stdout, $stderr) = $node->psql($database // 'postgres', $statements, on_error_stop => 1, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	return $status == 0 ? '' : $stderr;
}

my $node = initialize('upgrade', conf => "max_prepared_transactions = 5\n");
$node->start;
my $version = $node->safe_psql('postgres', q{SELECT default_version FROM pg_available_extensions WHERE name = 'pg_arrow_cache'});

# The version stands in the control file, the library and the scripts, and each earlier one has a way to the present one.
is($node->safe_psql('postgres', 'SHOW pg_arrow_cache.version'), $version, 'the library has the version of the control file');
is($node->safe_psql('postgres', qq{SELECT string_agg(source, ' ') FROM pg_extension_update_paths('pg_arrow_cache') WHERE target = '$version' AND path IS NULL}), '',
	'from each version there is a way to the present one');
is($node->safe_psql('postgres', q{SELECT string_agg(version, ' ') FROM pg_available_extension_versions WHERE name = 'pg_arrow_cache' AND version = '0.1.0'}), '0.1.0', '0.1.0 can still be made');
like(failure($node, "SET pg_arrow_cache.version = '9.9.9'"), qr/ERROR:  55P02: parameter "pg_arrow_cache.version" cannot be changed/, 'nobody can set the version');
chomp(my $shared = `$ENV{PG_CONFIG} --sharedir`);
sub check_of { my ($script) = @_; return slurp_file("$shared/extension/pg_arrow_cache--$script.sql") =~ /^(DO LANGUAGE plpgsql \$check\$\nDECLARE\n    needed CONSTANT.*?^\$check\$;\n)/ms ? $1 : "none in $script" }
my $check = check_of($version);
like($check, qr/needed CONSTANT pg_catalog\.text := '\Q$version\E'/, 'the script asks for a library of its version');
is(check_of($_), $check, "and so does $_") for map { /--(.+--\Q$version\E)\.sql$/ } glob("$shared/extension/pg_arrow_cache--*--$version.sql");

# What the catalogs hold about the extension, without numbers of objects, which each database has its own of: definitions, and what a DBA may change.
my $members = q{SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_arrow_cache')};

sub definitions
{
	my ($database) = @_;
	return [ split /\n/, $node->safe_psql($database, qq{
		SELECT to_jsonb(e) - '{oid,extnamespace}'::text[] FROM pg_extension e WHERE extname = 'pg_arrow_cache';
		SELECT p.oid::regprocedure, to_jsonb(p) - '{oid,pronamespace,proargdefaults,proacl}'::text[], pg_get_expr(proargdefaults, 0) FROM pg_proc p
			WHERE pronamespace = 'arrow_cache'::regnamespace ORDER BY p.oid::regprocedure::text COLLATE "C";
		SELECT c.oid::regclass, relkind, relowner, reloptions, pg_get_viewdef(c.oid) FROM pg_class c WHERE relnamespace = 'arrow_cache'::regnamespace ORDER BY relname;
		SELECT attrelid::regclass, attnum, attname, atttypid::regtype FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
			WHERE relnamespace = 'arrow_cache'::regnamespace ORDER BY attrelid::regclass::text COLLATE "C", attnum;
		SELECT pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid), deptype FROM pg_depend
			WHERE (classid, objid) IN ($members) ORDER BY 1, 2, 3;
		SELECT pg_describe_object(classoid, objoid, objsubid), privtype, initprivs FROM pg_init_privs WHERE (classoid, objoid) IN ($members)
			OR classoid = 'pg_namespace'::regclass AND objoid = 'arrow_cache'::regnamespace ORDER BY 1;}) ];
}

sub rights_and_comments
{
	my ($database) = @_;
	return [ split /\n/, $node->safe_psql($database, qq{
		SELECT p.oid::regprocedure, proacl FROM pg_proc p WHERE pronamespace = 'arrow_cache'::regnamespace ORDER BY p.oid::regprocedure::text COLLATE "C";
		SELECT c.oid::regclass, relacl FROM pg_class c WHERE relnamespace = 'arrow_cache'::regnamespace ORDER BY relname;
		SELECT attrelid::regclass, attnum, attacl FROM pg_attribute WHERE attacl IS NOT NULL AND ('pg_class'::regclass, attrelid) IN ($members) ORDER BY 1, 2;
		SELECT pg_describe_object(classoid, objoid, objsubid), description FROM pg_description WHERE (classoid, objoid) IN ($members) ORDER BY 1;
		SELECT nspname, nspowner, nspacl FROM pg_namespace WHERE nspname = 'arrow_cache';}) ];
}
$node->safe_psql('postgres', 'CREATE DATABASE fresh; CREATE DATABASE updated; CREATE DATABASE used; CREATE ROLE dba LOGIN; CREATE ROLE plain LOGIN; CREATE ROLE mallory LOGIN');
$node->safe_psql('fresh', 'CREATE EXTENSION pg_arrow_cache');
my ($fresh, $fresh_rights) = (definitions('fresh'), rights_and_comments('fresh'));
is(scalar(grep { /"prosrc": "arrow_cache_\w+_0_2"/ } @$fresh), 29, 'a new extension names the symbols with versions');
$node->safe_psql('updated', q{CREATE EXTENSION pg_arrow_cache VERSION '0.1.0'});
unlike("@{ definitions('updated') }", qr/"prosrc": "\w+_0_2"/, 'the old script names the old symbols');
$node->safe_psql('updated', 'ALTER EXTENSION pg_arrow_cache UPDATE');
is_deeply(definitions('updated'), $fresh, 'after the update the definitions are those of a new extension');
is_deeply(rights_and_comments('updated'), $fresh_rights, 'and so are the rights and comments');
like(failure($node, 'ALTER EXTENSION pg_arrow_cache UPDATE', 'updated'), qr/^$/, 'a second update finds nothing to do');

# A database that uses 0.1.0.
$node->safe_psql('used', q{
	CREATE EXTENSION pg_arrow_cache VERSION '0.1.0';
	CREATE TABLE t (a int);
	INSERT INTO t SELECT generate_series(1, 100);
	CREATE TABLE noted (a int);
	CREATE TABLE never (a int);
	SELECT arrow_cache.set_policy('never', 'never');
	CREATE TRIGGER told AFTER INSERT ON noted FOR EACH STATEMENT EXECUTE FUNCTION arrow_cache.invalidate_on_change('t');
	CREATE VIEW own_view AS SELECT s.hits, arrow_cache.last_status() AS status FROM arrow_cache.stats s;
	CREATE FUNCTION own_function() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT arrow_cache.flush(); END;
	GRANT EXECUTE ON FUNCTION arrow_cache.flush(), arrow_cache.invalidate(regclass) TO dba;
	REVOKE EXECUTE ON FUNCTION arrow_cache.why(text) FROM PUBLIC;
	REVOKE SELECT ON arrow_cache.stats FROM PUBLIC;
	GRANT SELECT ON arrow_cache.stats TO dba;
	REVOKE EXECUTE ON FUNCTION arrow_cache.query(text, "any") FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION arrow_cache.query(text, "any") TO dba WITH GRANT OPTION;
	COMMENT ON FUNCTION arrow_cache.flush() IS 'mine';
});

# Everything that the extension offers, and what the rights of others are.
sub uses
{
	my ($when) = @_;
	my $t = 'SELECT sum(a) FROM t';
	$node->safe_psql('used', 'SELECT arrow_cache.flush()');
	answers_are($node, $t, 5050, [ 'MISS', 'HIT' ], "$when: results are stored and served", database => 'used');
	$node->safe_psql('used', 'INSERT INTO noted VALUES (1)');
	answers_are($node, $t, 5050, [ 'STALE', 'HIT' ], "$when: the trigger invalidates", database => 'used');
	answers_are($node, 'SELECT count(*) FROM never', 0, ['BYPASS policy_never'], "$when: the policy counts", database => 'used');
	is($node->safe_psql('used', q{
		SELECT length(arrow_cache.query('SELECT a FROM t')) > 100, length(arrow_cache.query('SELECT a FROM t WHERE a < $1', 5)) > 100;
		SELECT count(*) FROM arrow_cache.fetch('SELECT a FROM t');
		SELECT string_agg(format('%s %s', seq, n_rows), ',') FROM arrow_cache.messages('SELECT a FROM t');
		SELECT name, pg_type, arrow_type FROM arrow_cache.schema('SELECT a FROM t');
		SELECT cacheable, detail FROM arrow_cache.why('SELECT a FROM t');
		SELECT (SELECT count(*) FROM arrow_cache.stats), (SELECT sum(entries) > 0 FROM arrow_cache.relations), (SELECT count(*) > 0 FROM arrow_cache.entries), (SELECT count(*) > 0 FROM arrow_cache.bypass_reasons);
		SELECT relation, policy, arrow_cache.policy(relation) FROM arrow_cache.policies;
		SELECT arrow_cache.set_policy('noted', 'never'), arrow_cache.set_policy('noted', 'default');
		SELECT count(*), count(status) FROM own_view;
		SELECT arrow_cache.last_reason() IS NULL;
		SELECT arrow_cache.invalidate('t') > 0, own_function() >= 0, arrow_cache.reset_stats()}),
		"t|t\n1\n1 0,2 100\na|integer|Int32\nt|rests on public.t\n1|t|t|t\nnever|never|never\n|\n1|1\nf\nt|t|", "$when: all functions and views work");
	my $rights = join(' ', map { my $statement = $_; map { $node->psql('used', "SET ROLE $_; $statement") == 0 ? 'yes' : 'no' } 'dba', 'plain' }
		'SELECT arrow_cache.flush()', q{SELECT arrow_cache.invalidate('pg_class')}, q{SELECT * FROM arrow_cache.why('SELECT 1')}, 'SELECT * FROM arrow_cache.stats', q{SELECT arrow_cache.query('SELECT $1', 1)},
		'SELECT arrow_cache.reset_stats()', 'SELECT arrow_cache.last_status()', 'SELECT * FROM arrow_cache.entries');
	is($rights, 'yes no yes no no no yes no yes no no no yes yes yes yes', "$when: the rights are those that the DBA has given");
	is($node->safe_psql('used', q{SELECT obj_description('arrow_cache.flush()'::regprocedure)}), 'mine', "$when: so is the comment");
	my ($dump) = run_command([ 'pg_dump', '--dbname', $node->connstr('used') ]);
	return join("\n", sort grep { /^(GRANT|REVOKE|COMMENT|SECURITY LABEL)/ } split /\n/, $dump);
}
my $dumped = uses('0.1.0');
like($dumped, qr/GRANT ALL ON FUNCTION arrow_cache.flush\(\) TO dba;.*REVOKE SELECT ON TABLE arrow_cache.stats FROM PUBLIC/s, 'pg_dump keeps what the DBA has changed');
$node->safe_psql('used', q{
	CREATE TABLE first_use AS SELECT arrow_cache.last_status() AS status;
	BEGIN; INSERT INTO noted VALUES (2); PREPARE TRANSACTION 'across'});

my $used_rights = rights_and_comments('used');

# Objects with the names that the script uses, where the path of the one who updates looks first, and in other schemas.
my @operators = map { my ($left, $right) = @$_; map { [ $_, $left, $right ] } '=', '<', '<>', '||' } [qw(text text)], [qw(name text)], [qw(oid oid)], [qw(int4 int4)], [ 'int4[]', 'int4[]' ];
my $body = sub { "LANGUAGE plpgsql AS \$\$ BEGIN INSERT INTO evil.victims VALUES (current_user); RETURN $_[0]; END \$\$;\n" };
my $number = 0;
my $traps = join('', 'CREATE SCHEMA evil; CREATE TABLE evil.victims (by_whom text); GRANT ALL ON SCHEMA evil TO PUBLIC; GRANT INSERT ON evil.victims TO PUBLIC;',
	(map { $number++; my $type = $_->[0] eq '||' ? 'text' : 'bool';
		"CREATE FUNCTION evil.trap_$number($_->[1], $_->[2]) RETURNS $type " . $body->('NULL') . "CREATE OPERATOR evil.$_->[0] (LEFTARG = $_->[1], RIGHTARG = $_->[2], FUNCTION = evil.trap_$number);" } @operators),
	(map { "CREATE FUNCTION evil.$_->[0] RETURNS $_->[1] " . $body->('NULL') } [ 'string_to_array(text, text)', 'text[]' ], [ 'concat(VARIADIC text[])', 'text' ], [ 'coalesce(text)', 'text' ],
		[ 'flush()', 'int8' ], [ 'stats_data()', 'int8' ], [ 'why(text)', 'bool' ], [ 'int4(text)', 'int4' ], [ 'text(int4)', 'text' ]),
	'CREATE DOMAIN evil.text AS pg_catalog.text; CREATE DOMAIN evil.int8 AS pg_catalog.int8 CHECK (false); CREATE DOMAIN evil.regclass AS pg_catalog.regclass; CREATE TYPE evil.bytea AS (a int4);',
	'CREATE VIEW evil.pg_settings AS SELECT 1 AS name, 2 AS setting; CREATE VIEW evil.stats AS SELECT 1 AS x;',
	'CREATE FUNCTION public.flush() RETURNS text LANGUAGE sql AS $$SELECT NULL$$; CREATE VIEW public.stats AS SELECT 2 AS x; CREATE FUNCTION public.query(text) RETURNS int LANGUAGE sql AS $$SELECT 1$$;');
$node->safe_psql('used', $traps);
$node->safe_psql('used', 'SET search_path = evil, pg_catalog, public; ALTER EXTENSION pg_arrow_cache UPDATE');
is($node->safe_psql('used', q{SELECT string_agg(by_whom, ' ') FROM evil.victims}), '', 'the update runs the code of nobody else');
is($node->safe_psql('used', q{SELECT extversion FROM pg_extension WHERE extname = 'pg_arrow_cache'}), $version, 'the update under a hostile path');
is_deeply(definitions('used'), $fresh, 'makes what a new extension has');
my $added = qr/^arrow_cache\.("check"|advise|statements_data|fragments_data|waits_data|standby_state|entry_kinds_data|statement_counts_data|statements_dropped|etag|version)\(|arrow_cache\.statements\b/;
is_deeply([ grep { !/$added/ } @{ rights_and_comments('used') } ], $used_rights, 'and the rights and comments are those that the DBA has given');
is_deeply([ grep { /$added/ } @{ rights_and_comments('used') } ], [ grep { /$added/ } @$fresh_rights ], 'those of what is new are the default');
is($node->safe_psql('used', q{SELECT public.flush() IS NULL, (SELECT x FROM public.stats), (SELECT x FROM evil.stats), public.query('x')}), 't|2|1|1', 'objects of the same names stay what they were');
$node->safe_psql('used', 'DROP SCHEMA evil CASCADE; DROP FUNCTION public.flush(), public.query(text); DROP VIEW public.stats');
$node->safe_psql('used', q{COMMIT PREPARED 'across'});
is(uses('after the update'), $dumped, 'pg_dump writes the same rights, comments and policies as before');

# Functions that are not for PUBLIC, and have gone from their place: the update makes them anew, and not for PUBLIC either.
for my $case (
	[ 'renamed', 'ALTER FUNCTION arrow_cache.flush() RENAME TO flush_all; ALTER FUNCTION arrow_cache.reset_stats() RENAME TO reset' ],
	[ 'moved', 'ALTER FUNCTION arrow_cache.invalidate(regclass) SET SCHEMA public; ALTER FUNCTION arrow_cache.invalidate_on_change() SET SCHEMA public' ],
	[ 'dropped', join('; ', map { "ALTER EXTENSION pg_arrow_cache DROP FUNCTION arrow_cache.$_; DROP FUNCTION arrow_cache.$_" } 'flush()', 'invalidate(regclass)', 'invalidate_on_change()', 'reset_stats()') ],
	[ 'in another schema', 'ALTER SCHEMA arrow_cache RENAME TO "an other"; ALTER FUNCTION "an other".flush() RENAME TO flush_all' ])
{
	my ($what, $change) = @$case;
	$node->safe_psql('postgres', 'CREATE DATABASE gone');
	$node->safe_psql('gone', "CREATE EXTENSION pg_arrow_cache VERSION '0.1.0'; $change; ALTER EXTENSION pg_arrow_cache UPDATE");
	is($node->safe_psql('gone', q{SELECT string_agg(p.oid::regprocedure::text, ' ') FROM pg_proc p JOIN pg_depend ON objid = p.oid AND classid = 'pg_proc'::regclass AND deptype = 'e'
		WHERE prosrc ~ '(flush|invalidate|invalidate_on_change|reset_stats)(_wrapper|_0_2)$' AND has_function_privilege('plain', p.oid, 'EXECUTE')}), '', "functions that were $what before the update are not for PUBLIC after it");
	is($node->safe_psql('gone', q{SELECT count(*) FROM pg_proc WHERE pronamespace = (SELECT extnamespace FROM pg_extension WHERE extname = 'pg_arrow_cache') AND prosrc ~ '_0_2$'}), 29, 'and all functions are there');
	$node->safe_psql('postgres', 'DROP DATABASE gone');
}

# A session that has called the old functions goes on.
my $session = q{
	PREPARE p AS SELECT arrow_cache.flush() >= 0;
	EXECUTE p;
	SELECT count(*) FROM arrow_cache.stats;
	\! psql -X -q -d again -c 'ALTER EXTENSION pg_arrow_cache UPDATE'
	EXECUTE p;
	SELECT count(*) FROM arrow_cache.stats;
	SELECT prosrc FROM pg_proc WHERE oid = 'arrow_cache.flush()'::regprocedure};
$node->safe_psql('postgres', 'CREATE DATABASE again');
$node->safe_psql('again', q{CREATE EXTENSION pg_arrow_cache VERSION '0.1.0'});
is($node->safe_psql('again', $session), "t\n1\nt\n1\narrow_cache_flush_0_2", 'a session that has called the old functions goes on');

# An update that is rolled back, in part or whole, leaves what was there.
$node->safe_psql('postgres', 'CREATE DATABASE back');
$node->safe_psql('back', q{CREATE EXTENSION pg_arrow_cache VERSION '0.1.0'});
my $before = definitions('back');
$node->safe_psql('back', 'BEGIN; ALTER EXTENSION pg_arrow_cache UPDATE; SELECT * FROM arrow_cache.stats; ROLLBACK');
is_deeply(definitions('back'), $before, 'an update that is rolled back has not been');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|panicked/, 'no process of the server has crashed');
$node->stop;

# A private copy of the server's installation, so that files of the extension can be replaced. The server finds its other directories from the place
# of its program.
my %path = map { chomp(my $path = `$ENV{PG_CONFIG} --$_`); $_ => $path } 'bindir', 'sharedir', 'pkglibdir';
my $root = "$PostgreSQL::Test::Utils::tmp_check/installation";
mkpath("$root$_") for $path{bindir}, $path{pkglibdir}, "$path{sharedir}/extension";
for my $program (glob "$path{bindir}/*")
{
	my $copy = "$root$path{bindir}/" . ($program =~ s/.*\///r);
	copy($program, $copy) or die "$program: $!";
	chmod 0755, $copy;
}
symlink $_, "$root$_" or die "$_: $!" for grep { !/pg_arrow_cache/ && !-e "$root$_" } map { glob "$_/*" } $path{pkglibdir}, $path{sharedir}, "$path{sharedir}/extension";
copy($_, "$root$_") or die "$_: $!" for glob "$path{sharedir}/extension/pg_arrow_cache*";
my $extensions = "$root$path{sharedir}/extension";

# Replaces the library as a package does: by a new file.
sub install_library
{
	my ($library) = @_;
	my $installed = "$root$path{pkglibdir}/pg_arrow_cache.so";
	copy($library, "$installed.new") or die "$library: $!";
	chmod 0755, "$installed.new";
	rename "$installed.new", $installed or die "$installed: $!";
	return;
}
my $older = "$PostgreSQL::Test::Utils::tmp_check/older_library.so";
chomp(my $includes = `$ENV{PG_CONFIG} --includedir-server`);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$includes", "$FindBin::RealBin/older_library.c", '-o', $older);
install_library($older);

my $private = PostgreSQL::Test::Cluster->new('replaced', install_path => "$root$path{bindir}" =~ s/\/bin$//r);
$private->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
$private->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_arrow_cache'\nlog_statement = none\n");
$private->start;
is($private->safe_psql('postgres', q{SELECT count(*) FROM pg_config() WHERE setting LIKE '%/installation/%'}) > 3 ? 'yes' : 'no', 'yes', 'a server with a private installation');

# The new scripts are there, and the server has the old library: with its file as well as without.
my $too_old = qr/ERROR:  55000: version \Q$version\E of pg_arrow_cache needs its library in this version or a later one\n.*DETAIL:  The server has loaded an earlier version\.\nHINT:  Restart the server/s;
$private->safe_psql('postgres', q{CREATE SCHEMA arrow_cache; CREATE FUNCTION arrow_cache.flush() RETURNS int8 LANGUAGE c AS 'pg_arrow_cache', 'flush_wrapper'; SELECT arrow_cache.flush()});
$private->safe_psql('postgres', 'DROP SCHEMA arrow_cache CASCADE');
like(failure($private, 'CREATE EXTENSION pg_arrow_cache'), $too_old, 'a new script needs a new library');
install_library("$path{pkglibdir}/pg_arrow_cache.so");
like(failure($private, 'CREATE EXTENSION pg_arrow_cache'), $too_old, 'a new file is not enough, while the server has the old library');
is($private->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname = 'arrow_cache'}), 0, 'nothing is left of the attempt');
$private->restart;
is(failure($private, q{CREATE EXTENSION pg_arrow_cache VERSION '0.1.0'; ALTER EXTENSION pg_arrow_cache UPDATE; SELECT * FROM arrow_cache.stats; SELECT arrow_cache.flush()}), '', 'after a restart it is there');

# A script of the future.
for my $case ([ '9.9.9', qr/needs its library/ ], [ '0.10.0', qr/needs its library/ ], [ '0.2.1', qr/needs its library/ ], [ '0.2.0.1', qr/needs its library/ ], [ '0.1.10', undef ], [ '0.2', undef ])
{
	my ($future, $refused) = @$case;
	append_to_file("$extensions/pg_arrow_cache--$version--$future.sql", $check =~ s/'\Q$version\E'/'$future'/r);
	my $said = failure($private, "ALTER EXTENSION pg_arrow_cache UPDATE TO '$future'");
	if (!defined $refused)
	{
		is($said, '', "a script for $future is content with $version");
		$private->safe_psql('postgres', "DROP EXTENSION pg_arrow_cache; CREATE EXTENSION pg_arrow_cache");
		next;
	}
	like($said, qr/ERROR:  55000: version \Q$future\E of pg_arrow_cache needs.*DETAIL:  The server has loaded version \Q$version\E\.\nHINT:  Restart the server/s, "a script for $future is refused");
	is($private->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'pg_arrow_cache'}), $version, 'and the extension stays as it is');
}

# A library that is older than the objects: a package that was taken back.
install_library($older);
$private->restart;
my $said = failure($private, 'SELECT * FROM arrow_cache.stats');
like($said, qr/ERROR:  42883: could not find function "arrow_cache_stats_data_0_2" in file/, 'an older library lacks the symbols, and the server names them');
is($private->safe_psql('postgres', 'SELECT 1'), '1', 'the server is up');

# Without preloading, nothing is checked when the extension is made: the functions say what is missing.
install_library("$path{pkglibdir}/pg_arrow_cache.so");
$private->append_conf('postgresql.conf', "shared_preload_libraries = ''\npg_arrow_cache.memory = 64\npg_arrow_cache.version = '0.0.1'\n");
$private->restart;
is(failure($private, q{DROP EXTENSION pg_arrow_cache; CREATE EXTENSION pg_arrow_cache VERSION '0.1.0'; ALTER EXTENSION pg_arrow_cache UPDATE; DROP EXTENSION pg_arrow_cache; CREATE EXTENSION pg_arrow_cache}), '',
	'without the library in shared_preload_libraries the scripts run');
like(failure($private, 'SELECT arrow_cache.flush()'), qr/ERROR:  55000: pg_arrow_cache must be loaded via "shared_preload_libraries"/, 'and the functions say what is missing');
unlike(slurp_file($private->logfile), qr/terminated by signal|PANIC|panicked/, 'no process of the server has crashed');

done_testing();
