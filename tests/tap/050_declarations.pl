# The C functions of the library trust no declaration: each symbol is declared in many wrong ways and called, and other code calls it in
# ways that no statement does. Each time there is an error that names the function, and the server stays up.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('declarations');
my $library = '$libdir/pg_arrow_cache';

# Runs statements in a session of its own. Returns what the server said of the one that failed, or nothing.
sub failure
{
	my ($statements) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', $statements, on_error_stop => 1, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	return $status == 0 ? '' : $stderr;
}

# Three declarations that took the server down before anybody checked them.
for my $case (
	[ "stats_wrong() RETURNS TABLE (a text, b text) LANGUAGE c AS '$library', 'arrow_cache_stats_data'", 'SELECT * FROM stats_wrong()', 'stats_wrong()' ],
	[ "fetch_wrong(text) RETURNS SETOF bytea LANGUAGE c AS '$library', 'arrow_cache_fetch'", q{SELECT fetch_wrong('SELECT 1')}, 'fetch_wrong(text)' ],
	[ "flush_wrong() RETURNS text LANGUAGE c AS '$library', 'arrow_cache_flush'", 'SELECT length(flush_wrong())', 'flush_wrong()' ])
{
	my ($declaration, $call, $name) = @$case;
	$node->safe_psql('postgres', "CREATE FUNCTION $declaration");
	my $said = failure($call);
	like($said, qr/ERROR:  42P13: function \Q$name\E is not declared or called as "\w+" of pg_arrow_cache [\d.]+ must be/, "$name: the error names it");
	like($said, qr/HINT:  Run ALTER EXTENSION pg_arrow_cache UPDATE/, "$name: and says what to do");
}

# Every symbol that SQL can name, from the library itself, with the declarations that fit it: arguments and result.
my %FITS = (
	check => ['() RETURNS TABLE (a text, b text, c text)'],
	flush => ['() RETURNS int8'], invalidate => ['(regclass) RETURNS int8'], reset_stats => ['() RETURNS void'],
	invalidate_on_change => ['() RETURNS trigger'], last_status => ['() RETURNS text'], last_reason => ['() RETURNS text'],
	policy => ['(regclass) RETURNS text'],
	query => [ '(text) RETURNS bytea', '(text, VARIADIC "any") RETURNS bytea' ], fetch => ['(text, jsonb) RETURNS SETOF bytea'],
	messages => ['(text, jsonb) RETURNS TABLE (a int4, b bool, c int8, d bytea)'],
	schema => ['(text, jsonb) RETURNS TABLE (a int4, b text, c regtype, d text, e bool, f text)'],
	why => ['(text) RETURNS TABLE (a bool, b text, c text)'], stats_data => [], entries_data => [],
	relations_data => ['() RETURNS TABLE (a oid, b int4, c int8, d timestamptz)'], bypass_reasons_data => ['() RETURNS TABLE (a text, b int8)'],
	etag => [ '(text) RETURNS text', '(text, VARIADIC "any") RETURNS text' ],
	statement_counts_data => [],
);
chomp(my $directory = `$ENV{PG_CONFIG} --pkglibdir`);
my %symbols = map { $_ => 1 } slurp_file("$directory/pg_arrow_cache.so") =~ /\0pg_finfo_(\w+)(?=\0)/g;
my %function_of = map { my $name = $_; $name =~ s/^arrow_cache_//; $_ => $name } keys %symbols;
is_deeply([ sort keys %{ { reverse %function_of } } ], [ sort keys %FITS ], 'the symbols are those of all functions');

# Arguments of a call, by those of the declaration.
my %CALLED_WITH = (
	'()' => '', '(text)' => q{'SELECT 1'::text}, '(regclass)' => q{'pg_class'::regclass}, '(oid)' => '1259::oid', '(int4)' => '1', '(int8)' => '1::int8',
	'(bytea)' => q{'\x00'::bytea}, '(text, jsonb)' => q{'SELECT 1'::text, '{}'::jsonb}, '(text, text)' => q{'SELECT 1'::text, '{}'::text},
	'(text, jsonb, text)' => q{'SELECT 1'::text, '{}'::jsonb, ''::text}, '(regclass, text)' => q{'pg_class'::regclass, 'never'::text},
	'(text, regclass)' => q{'never'::text, 'pg_class'::regclass}, '(text, int4)' => q{'SELECT 1'::text, 1}, '(text, VARIADIC "any")' => q{'SELECT $1'::text, 1},
	'(VARIADIC "any")' => q{'SELECT 1'::text, 2}, '(text, int4, VARIADIC "any")' => q{'SELECT $1'::text, 1, 2}, '(VARIADIC text[])' => q{'SELECT 1'::text},
	'(text, VARIADIC int4[])' => q{'SELECT $1'::text, 1, 2}, '(anyelement)' => '1', '(text, anyarray)' => q{'SELECT 1'::text, ARRAY[1]}, '(a_domain)' => '1::a_domain',
	'(a_row)' => 'ROW(1, 2)::a_row', '(OUT a int8)' => '', '(OUT a int8, OUT b text)' => '', '(INOUT a text)' => q{'SELECT 1'::text}, '(INOUT a int8)' => '1::int8',
	'(text, OUT a bool, OUT b text)' => q{'SELECT 1'::text}, '(INOUT a text, OUT b text, OUT c text)' => q{'SELECT 1'::text},
	'(' . join(', ', ('int4') x 100) . ')' => join(', ', (1) x 100),
);
my @values = ('void', 'int4', 'int8', 'text', 'bytea', 'bool', 'name', 'text[]', 'oid', 'float8', 'a_domain', 'a_row');
my @sets = ('SETOF int8', 'SETOF text', 'SETOF bytea', 'SETOF a_row', 'TABLE (a bytea)', 'TABLE (a text, b text)', 'TABLE (a text, b int8)', 'TABLE (a text, b int8, c int8)',
	'TABLE (a bool, b text)', 'TABLE (a text, b bool, c text)', 'TABLE (a int4, b bool, c int8, d text)', 'TABLE (' . join(', ', map { "c$_ int8" } 1 .. 17) . ')',
	'TABLE (' . join(', ', map { "c$_ text" } 1 .. 60) . ')');
my @shapes = map { { declared => $_->[0] . ($_->[1] ? " RETURNS $_->[1]" : ''), arguments => $CALLED_WITH{ $_->[0] } } } (
	(map { [ '()', $_ ] } @values, @sets), (map { [ '(text)', $_ ] } @values, @sets), (map { [ '(regclass)', $_ ] } @values), (map { [ '(text, jsonb)', $_ ] } @values, @sets),
	(map { my $arguments = $_; map { [ $arguments, $_ ] } 'int8', 'text', 'void', 'bytea', 'SETOF bytea', 'TABLE (a bool, b text, c text)' }
			grep { !/OUT|any(element|array)/ && $_ !~ /^\(\)$|^\(text\)$|^\(regclass\)$|^\(text, jsonb\)$/ } sort keys %CALLED_WITH),
	(map { [ $_, '' ] } grep { /OUT/ } sort keys %CALLED_WITH), [ '(anyelement)', 'anyelement' ], [ '(anyelement)', 'SETOF anyelement' ], [ '(text, anyarray)', 'anyelement' ]);
$_->{call} = "SELECT f($_->{arguments})" . ($_->{declared} =~ /SETOF|TABLE|a_row/ ? ", (SELECT count(x::text) FROM f($_->{arguments}) AS x)" : '') for @shapes;
# One function with two results by OUT arguments is called in FROM, and so is SETOF record, whose caller says what it wants.
push @shapes, { declared => '(OUT a int8) RETURNS SETOF int8', call => 'SELECT * FROM f()' },
	map {
		my $arguments = $_;
		map { { declared => "$arguments RETURNS $_", call => "SELECT * FROM f($CALLED_WITH{$arguments}) AS x (a bool, b text, c text)" } } 'SETOF record', 'record'
	} '()', '(text)', '(text, jsonb)';

# Calls that are no SELECT: what is made first, the call, what is dropped at the end.
push @shapes,
	{ declared => '() RETURNS int8 WINDOW', call => 'SELECT f() OVER ()' },
	{ declared => '(text) RETURNS bytea WINDOW', call => q{SELECT f('SELECT 1') OVER ()} },
	{ declared => '()', kind => 'PROCEDURE', call => 'CALL f()' },
	{ declared => '(text)', kind => 'PROCEDURE', call => q{CALL f('SELECT 1')} },
	{ declared => '(INOUT a text)', kind => 'PROCEDURE', call => q{CALL f('SELECT 1')} },
	{ declared => '(regclass, text)', kind => 'PROCEDURE', call => q{CALL f('pg_class', 'never')} },
	{ declared => '() RETURNS event_trigger', then => ['CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION f()'], call => 'CREATE TABLE never_made ()',
		before_drop => 'DROP EVENT TRIGGER e' },
	{ declared => '() RETURNS trigger', then => ['CREATE TRIGGER e BEFORE INSERT ON fired FOR EACH ROW EXECUTE FUNCTION f()'], call => 'INSERT INTO fired VALUES (1)' },
	{ declared => '(cstring) RETURNS a_type', before => ['CREATE TYPE a_type'], then => [ 'CREATE FUNCTION a_type_out(a_type) RETURNS cstring STRICT LANGUAGE internal AS $$textout$$',
			'CREATE TYPE a_type (INPUT = f, OUTPUT = a_type_out)' ], call => q{SELECT 'x'::a_type}, before_drop => 'DROP TYPE a_type CASCADE' },
	{ declared => '(cstring, oid, int4) RETURNS a_type STRICT', before => ['CREATE TYPE a_type'], then => [ 'CREATE FUNCTION a_type_out(a_type) RETURNS cstring STRICT LANGUAGE internal AS $$textout$$',
			'CREATE TYPE a_type (INPUT = f, OUTPUT = a_type_out)' ], call => q{SELECT 'x'::a_type}, before_drop => 'DROP TYPE a_type CASCADE' },
	{ declared => '(a_type) RETURNS cstring', before => ['CREATE TYPE a_type'], then => [ 'CREATE FUNCTION a_type_in(cstring) RETURNS a_type STRICT LANGUAGE internal AS $$textin$$',
			'CREATE TYPE a_type (INPUT = a_type_in, OUTPUT = f)' ], call => q{SELECT format('%s', 'x'::a_type)}, before_drop => 'DROP TYPE a_type CASCADE' },
	{ declared => '(int8, int8) RETURNS int8', then => ['CREATE AGGREGATE g(int8) (SFUNC = f, STYPE = int8, INITCOND = 0)'], call => 'SELECT g(x) FROM generate_series(1, 3) x',
		before_drop => 'DROP AGGREGATE g(int8)' },
	{ declared => '(text, text) RETURNS text STRICT', then => ['CREATE AGGREGATE g(text) (SFUNC = f, STYPE = text)'], call => 'SELECT g(x::text) FROM generate_series(1, 3) x',
		before_drop => 'DROP AGGREGATE g(text)' },
	{ declared => '(int8) RETURNS text', then => ['CREATE AGGREGATE g(int8) (SFUNC = int8pl, STYPE = int8, INITCOND = 0, FINALFUNC = f)'], call => 'SELECT g(x) FROM generate_series(1, 3) x',
		before_drop => 'DROP AGGREGATE g(int8)' },
	{ declared => '(a_row) RETURNS text', then => ['CREATE CAST (a_row AS text) WITH FUNCTION f(a_row)'], call => 'SELECT (ROW(1, 2)::a_row)::text', before_drop => 'DROP CAST (a_row AS text)' },
	{ declared => '(a_row, int4, bool) RETURNS text', then => ['CREATE CAST (a_row AS text) WITH FUNCTION f(a_row, int4, bool)'], call => 'SELECT (ROW(1, 2)::a_row)::text',
		before_drop => 'DROP CAST (a_row AS text)' },
	{ declared => '(int4, int4) RETURNS bool', then => ['CREATE OPERATOR ### (LEFTARG = int4, RIGHTARG = int4, FUNCTION = f)'], call => 'SELECT 1 ### 2', before_drop => 'DROP OPERATOR ### (int4, int4)' },
	{ declared => '(a_row, a_row) RETURNS int4', then => [ 'CREATE OPERATOR CLASS o FOR TYPE a_row USING btree AS OPERATOR 1 < (record, record), OPERATOR 3 = (record, record), FUNCTION 1 f(a_row, a_row)' ],
		call => 'WITH x AS MATERIALIZED (SELECT 1) SELECT 1 FROM x, made_index()', before_drop => 'DROP OPERATOR FAMILY o USING btree CASCADE' },
	{ declared => '(internal) RETURNS index_am_handler', then => ['CREATE ACCESS METHOD m TYPE INDEX HANDLER f'], call => 'CREATE INDEX ON fired USING m (a)', before_drop => 'DROP ACCESS METHOD m' },
	{ declared => '(internal) RETURNS table_am_handler', then => ['CREATE ACCESS METHOD m TYPE TABLE HANDLER f'], call => 'CREATE TABLE never_made (a int) USING m', before_drop => 'DROP ACCESS METHOD m' },
	{ declared => '() RETURNS fdw_handler', then => [ 'CREATE FOREIGN DATA WRAPPER w HANDLER f', 'CREATE SERVER s FOREIGN DATA WRAPPER w', 'CREATE FOREIGN TABLE far (a int) SERVER s' ],
		call => 'SELECT * FROM far', before_drop => 'DROP FOREIGN DATA WRAPPER w CASCADE' },
	{ declared => '(text[], oid) RETURNS void', call => 'CREATE FOREIGN DATA WRAPPER w VALIDATOR f' },
	{ declared => '(internal) RETURNS tsm_handler', call => 'SELECT * FROM fired TABLESAMPLE f (1)' },
	{ declared => '() RETURNS language_handler', then => [ 'CREATE LANGUAGE l HANDLER f', 'CREATE FUNCTION g() RETURNS int8 LANGUAGE l AS $$$$' ], call => 'SELECT g()', before_drop => 'DROP LANGUAGE l CASCADE' },
	{ declared => '() RETURNS language_handler', then => [ 'CREATE LANGUAGE l HANDLER f', 'CREATE FUNCTION g() RETURNS text LANGUAGE l AS $$$$' ], call => 'SELECT g()', before_drop => 'DROP LANGUAGE l CASCADE' },
	{ declared => '() RETURNS language_handler', then => [ 'CREATE LANGUAGE l HANDLER f', 'CREATE FUNCTION g() RETURNS void LANGUAGE l AS $$$$' ], call => 'SELECT g()', before_drop => 'DROP LANGUAGE l CASCADE' },
	{ declared => '() RETURNS language_handler', then => [ 'CREATE LANGUAGE l HANDLER f', 'CREATE FUNCTION g(text) RETURNS bytea LANGUAGE l AS $$$$' ], call => q{SELECT g('SELECT 1')},
		before_drop => 'DROP LANGUAGE l CASCADE' },
	{ declared => '(internal) RETURNS void', then => ['CREATE LANGUAGE l HANDLER plpgsql_call_handler INLINE f'], call => 'DO LANGUAGE l $$$$', before_drop => 'DROP LANGUAGE l' },
	{ declared => '(oid) RETURNS void', then => ['CREATE LANGUAGE l HANDLER plpgsql_call_handler VALIDATOR f'], call => 'CREATE FUNCTION g() RETURNS int4 LANGUAGE l AS $$$$', before_drop => 'DROP LANGUAGE l' },
	{ declared => '(internal) RETURNS internal', then => [ 'CREATE FUNCTION g(int4) RETURNS bool SUPPORT f LANGUAGE internal IMMUTABLE STRICT AS $$int4_bool$$' ],
		call => 'SELECT * FROM fired WHERE g(a)', before_drop => 'DROP FUNCTION g(int4)' };
# Arguments and result fit, but NULL comes where it must not.
for my $shape (map { @$_ } values %FITS)
{
	my ($arguments) = $shape =~ /^(\(.*?\)) RETURNS/;
	next if $arguments eq '()';
	push @shapes, { declared => $shape, call => 'SELECT f(' . join(', ', map { /^VARIADIC (.+\[\])$/ ? "VARIADIC NULL::$1" : "NULL::$_" } grep { !/VARIADIC "any"/ } split /, /, $arguments =~ s/[()]//gr) . ')', nulls => 1 };
}

$node->safe_psql('postgres', q{
	CREATE DOMAIN a_domain AS int8;
	CREATE TYPE a_row AS (a int4, b int4);
	CREATE TABLE fired (a int);
	INSERT INTO fired VALUES (1);
	CREATE TABLE rows_of (r a_row);
	INSERT INTO rows_of VALUES (ROW(1, 2)), (ROW(2, 3)), (ROW(0, 1));
	CREATE FUNCTION made_index() RETURNS int LANGUAGE plpgsql AS $$ BEGIN CREATE INDEX made ON rows_of (r o); RETURN 1; END $$;
	-- What became of a statement: 'ok', or the error.
	CREATE FUNCTION attempt(statement text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE statement;
		RETURN 'ok';
	EXCEPTION WHEN OTHERS THEN
		RETURN sqlstate || ' ' || sqlerrm;
	END $$;
});

sub quoted { my ($text) = @_; return '$attempt$' . $text . '$attempt$' }

# All shapes of one symbol, in one session.
for my $symbol (sort keys %symbols)
{
	my ($script, @asked) = ("SET client_min_messages = error;\n");
	for my $shape (@shapes)
	{
		my $fits = grep { $shape->{declared} eq $_ } @{ $FITS{ $function_of{$symbol} } };
		# A result by one OUT argument is the same as by RETURNS; so is a table of one column as a set.
		my %same = ('(OUT a int8)' => '() RETURNS int8', '(OUT a int8) RETURNS SETOF int8' => '() RETURNS SETOF int8', '(text, jsonb) RETURNS TABLE (a bytea)' => '(text, jsonb) RETURNS SETOF bytea',
			'(INOUT a text)' => '(text) RETURNS text', '(text, OUT a bool, OUT b text)' => '');
		$fits ||= grep { !$shape->{kind} && ($same{ $shape->{declared} } // '') eq $_ } @{ $FITS{ $function_of{$symbol} } };
		next if $shape->{nulls} ? !$fits || $function_of{$symbol} =~ /^(query|etag)$/ : $fits;
		my $kind = $shape->{kind} // 'FUNCTION';
		my ($arguments) = $shape->{declared} =~ /^(\(.*?\))(?: RETURNS| STRICT|$)/ or die $shape->{declared};
		my @statements = (@{ $shape->{before} // [] }, "CREATE $kind f$shape->{declared} LANGUAGE c AS '$library', '$symbol'", @{ $shape->{then} // [] }, $shape->{call});
		$script .= 'SELECT attempt(' . quoted($_) . ");\n" for @statements;
		$script .= ($shape->{before_drop} ? "$shape->{before_drop}; " : '') . "DROP $kind IF EXISTS f CASCADE;\n";
		push @asked, map { [ $shape, $_ ] } @statements;
	}
	my ($status, $stdout, $stderr) = $node->psql('postgres', $script, on_error_stop => 0);
	my @got = split /\n/, $stdout;
	my @wrong;
	for my $index (0 .. $#asked)
	{
		my ($shape, $statement) = @{ $asked[$index] };
		my $got = $got[$index] // 'nothing';
		my $expected = $statement ne $shape->{call} ? qr/^ok$/ : qr/^42P13 function .* is not declared or called as "$symbol" of pg_arrow_cache [\d.]+ must be$/;
		push @wrong, "$statement: $got" unless $got =~ $expected;
		last if $got eq 'nothing';
	}
	is(join("\n", @wrong), '', "$symbol: " . scalar(grep { $_->[1] eq $_->[0]{call} } @asked) . ' wrong declarations are refused');
	is($stderr, '', "$symbol: and nothing else fails");
}

# Declarations that fit, called in unusual ways: they work.
$node->safe_psql('postgres', qq{
	CREATE FUNCTION q(text) RETURNS bytea IMMUTABLE LANGUAGE c AS '$library', 'arrow_cache_query';
	CREATE FUNCTION q(text, VARIADIC "any") RETURNS bytea IMMUTABLE LANGUAGE c AS '$library', 'arrow_cache_query';
	CREATE FUNCTION keep(text, text) RETURNS text LANGUAGE sql AS 'SELECT \$2';
	CREATE AGGREGATE last_of(text) (SFUNC = keep, STYPE = text, FINALFUNC = q, FINALFUNC_EXTRA);
});
for my $case (
	[ q{SELECT length(q('SELECT 1')) > 0}, 't', 'without VARIADIC' ],
	[ q{SELECT q('SELECT $1', 1) = q('SELECT $1', VARIADIC ARRAY[1])}, 't', 'with VARIADIC' ],
	[ q{SELECT q(NULL) IS NULL AND q(NULL, 1) IS NULL}, 't', 'with NULL' ],
	[ q{SELECT last_of('SELECT $1::int4 AS a') = q('SELECT $1::int4 AS a', NULL::text)}, 't', 'as the final function of an aggregate' ],
	[ q{CREATE INDEX ON fired (q('SELECT ' || 1)); SELECT length(q('SELECT 1')) > 0}, 't', 'in an index' ],
	[ q{CREATE TYPE as_text AS (t text); CREATE FUNCTION q(as_text) RETURNS bytea LANGUAGE sql AS 'SELECT q($1.t)'; CREATE CAST (as_text AS bytea) WITH FUNCTION q(as_text); SELECT ROW('SELECT 1')::as_text::bytea = q('SELECT 1')}, 't', 'in a cast' ],
	[ q{CREATE OPERATOR |? (RIGHTARG = text, FUNCTION = q); SELECT (|? 'SELECT 1'::text) = q('SELECT 1')}, 't', 'as an operator' ])
{
	my ($sql, $expected, $name) = @$case;
	is($node->safe_psql('postgres', $sql), $expected, "a declaration that fits works $name");
}

# Code in C that calls without saying what it calls.
my $caller = "$PostgreSQL::Test::Utils::tmp_check/direct_caller.so";
chomp(my $includes = `$ENV{PG_CONFIG} --includedir-server`);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$includes", "$FindBin::RealBin/direct_caller.c", '-o', $caller);
$node->safe_psql('postgres', qq{
	CREATE FUNCTION call_symbol(text, int4) RETURNS void LANGUAGE c AS '$caller', 'call_symbol';
	CREATE FUNCTION call_function(oid, text, int4) RETURNS void LANGUAGE c AS '$caller', 'call_function';
});
my @symbols = sort keys %symbols;
my $values = join(', ', map { "('$_')" } @symbols);
is($node->safe_psql('postgres', qq{
	SELECT DISTINCT left(attempt(format('SELECT call_symbol(%L, %s)', s, n)), 49) FROM (VALUES $values) AS t (s), (VALUES (0), (1), (2), (100)) AS u (n)}),
	'42P13 what was called is not declared or called a', 'no symbol answers a call that describes no function');
is($node->safe_psql('postgres', q{
	SELECT string_agg(format('%s %s %s: %s', p.oid::regprocedure, how, n, told), E'\n')
	FROM pg_proc p, unnest(ARRAY['no oid', 'oid of another', 'unknown oid', 'nulls', 'another node', 'no expression context', 'materialized rows']) how, (VALUES (0), (1), (2), (3)) AS u (n),
		attempt(format('SELECT call_function(%s, %L, %s)', p.oid, how, n)) AS told
	WHERE pronamespace = 'arrow_cache'::regnamespace AND probin IS NOT NULL AND told !~ '^42P13 '
		-- Calls that fit, as far as the callee can see: what they then say is not the matter here.
		AND NOT (how !~ 'oid|nulls' AND n = pronargs) AND NOT (how = 'nulls' AND n = 0 AND pronargs = 0) AND NOT (how !~ 'oid' AND proname IN ('query', 'etag') AND n >= 1)}), '', 'nor does a function that is called with another description');
is($node->safe_psql('postgres', q{SELECT attempt(format('SELECT call_function(%s, %L, 2)', 'arrow_cache.query(text,"any")'::regprocedure::oid, 'no expression'))}),
	'42P18 the type of parameter $1 is not known', 'a value of an unknown type is none that a query can take');
for my $set ($node->safe_psql('postgres', q{SELECT oid FROM pg_proc WHERE pronamespace = 'arrow_cache'::regnamespace AND probin IS NOT NULL AND proretset AND pronargs = 0}) =~ /\d+/g)
{
	like(failure("SELECT call_function($set, 'another node', 0)"), qr/ERROR:  0A000: set-valued function called in context that cannot accept a set/, 'a set is for those who can take one');
	like(failure("SELECT call_function($set, 'no expression context', 0)"), qr/ERROR:  42P13/, 'who must tell when it is not asked for any more');
	like(failure("SELECT call_function($set, 'materialized rows', 0)"), qr/ERROR:  42P13/, 'and take it row by row');
}

is($node->safe_psql('postgres', 'SELECT count(*) FROM arrow_cache.stats'), 1, 'the extension itself works');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|panicked/, 'no process of the server has crashed');

done_testing();
