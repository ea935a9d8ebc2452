# Nobody can make the objects of the extension run their code: neither by making its schema first, nor by
# objects with the names of those that its views and functions use, in the reader's search_path or in the schema itself.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $node = initialize('hostile');
$node->start;
$node->safe_psql('postgres', q{
	CREATE ROLE mallory LOGIN;
	GRANT CREATE ON DATABASE postgres TO mallory;
	CREATE ROLE other_admin SUPERUSER LOGIN;
});

# Runs statements in one session. Returns what the server said of the one that failed, or nothing.
sub failure
{
	my ($role, $statements) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', $statements, on_error_stop => 1,
		extra_params => [ '-U', $role, '-v', 'VERBOSITY=verbose' ]);
	return $status == 0 ? undef : $stderr;
}

my $user = $node->safe_psql('postgres', 'SELECT current_user');

# Operators and functions in a schema that tell who has run them, with every name that the extension's SQL uses or might use.
sub traps
{
	my ($schema, %without) = @_;
	my $sql = "CREATE TABLE $schema.victims (by_whom name); GRANT INSERT ON $schema.victims TO PUBLIC;";
	my $body = sub { my ($value) = @_; "LANGUAGE plpgsql AS \$\$ BEGIN INSERT INTO $schema.victims VALUES (current_user); RETURN $value; END \$\$;" };
	my $number = 0;
	for my $pair ([qw(oid regclass)], [qw(oid oid)], [qw(text text)], [qw(text unknown)], [qw(int4 int4)], [qw(int4 int8)], [qw(name name)], [qw(name text)])
	{
		my ($left, $right) = @$pair;
		next if $right eq 'unknown';
		for my $operator ('=', '<>', '<')
		{
			$number++;
			$sql .= "CREATE FUNCTION $schema.trap_$number($left, $right) RETURNS bool " . $body->('true')
				. "CREATE OPERATOR $schema.$operator (LEFTARG = $left, RIGHTARG = $right, FUNCTION = $schema.trap_$number);";
		}
	}
	for my $function (
		[ 'convert_from(bytea, name)', 'text', q{'x'} ], [ 'getdatabaseencoding()', 'name', q{'UTF8'} ], [ 'current_database()', 'name', q{'x'} ],
		[ 'regclass(oid)', 'regclass', '0' ], [ 'count(bigint)', 'bigint', '0' ],
		(map { [ "${_}_data()", 'bigint', '0' ] } qw(stats statements entries entry_kinds relations fragments waits statement_counts bypass_reasons)),
		(map { [ "$_()", 'bigint', '0' ] } qw(flush reset_stats last_status last_reason advise)),
		(map { [ "$_(regclass)", 'bigint', '0' ] } qw(invalidate policy)), (map { [ "$_(text)", 'bytea', 'NULL' ] } qw(query fetch messages schema why etag)), [ 'version(regclass)', 'text', 'NULL' ])
	{
		my ($signature, $type, $value) = @$function;
		next if $without{own} && $signature !~ /^(convert_from|get|current|regclass|count)/;
		$sql .= "CREATE FUNCTION $schema.\"" . ($signature =~ s/\(/"(/r) . " RETURNS $type " . $body->($value);
	}
	return $sql;
}

# Every view and function, as a superuser would look at them.
my $look_at_all = join('', map { "SELECT * FROM arrow_cache.$_;" } qw(stats entries relations policies bypass_reasons statements)) . q{
	SELECT * FROM arrow_cache.advise();
	SELECT arrow_cache.set_policy('public.t', 'never');
	SELECT * FROM arrow_cache.policies;
	SELECT arrow_cache.set_policy('public.t', 'default');
	SELECT a FROM public.t;
	SELECT arrow_cache.last_status(), arrow_cache.last_reason(), arrow_cache.policy('public.t');
	SELECT * FROM arrow_cache.entries;
	SELECT * FROM arrow_cache.relations;
	SELECT length(arrow_cache.query('SELECT a FROM public.t')), length(arrow_cache.query('SELECT a FROM public.t LIMIT $1', 1));
	SELECT arrow_cache.fetch('SELECT a FROM public.t');
	SELECT * FROM arrow_cache.messages('SELECT a FROM public.t');
	SELECT * FROM arrow_cache.schema('SELECT a FROM public.t');
	SELECT * FROM arrow_cache.why('SELECT a FROM public.t');
	SELECT arrow_cache.invalidate('public.t'), arrow_cache.reset_stats(), arrow_cache.flush();
	INSERT INTO public.told VALUES (1);
};

# The schema exists and belongs to another role, which may do anything in it at any time.
is(failure('mallory', 'CREATE SCHEMA arrow_cache;' . traps('arrow_cache', own => 1)), undef, 'a role with CREATE on the database makes the schema first');
my $told = failure($user, 'CREATE EXTENSION pg_arrow_cache');
like($told, qr/ERROR:  42P06: schema "arrow_cache" exists and is not safe/, 'the extension does not move in with others');
like($told // '', qr/DETAIL:  .*owned by role "mallory"/, 'and says why');
like($told // '', qr/HINT:  .*[Dd]rop/, 'and what to do');
if (!defined $told)
{
	$node->safe_psql('postgres', 'CREATE TABLE public.t (a int); CREATE TABLE public.told (a int)');
	failure($user, $look_at_all);
	is($node->safe_psql('postgres', 'SELECT DISTINCT by_whom FROM arrow_cache.victims'), '', 'nobody has run the code of others');
	$node->safe_psql('postgres', 'DROP TABLE public.t, public.told; DROP EXTENSION pg_arrow_cache');
}
$node->safe_psql('postgres', 'DROP SCHEMA arrow_cache CASCADE');
is(failure('mallory', 'CREATE SCHEMA arrow_cache'), undef, 'an empty schema of hers');
like(failure($user, 'CREATE EXTENSION pg_arrow_cache'), qr/ERROR:  42P06: .*DETAIL:  .*owned by role "mallory"/s, 'is none to move into either');
$node->safe_psql('postgres', 'DROP SCHEMA arrow_cache');

# The superuser's own schema, but open to others, or with something in it.
for my $case (
	[ 'CREATE SCHEMA arrow_cache; GRANT CREATE ON SCHEMA arrow_cache TO PUBLIC', qr/PUBLIC may create/, 'open to everybody' ],
	[ 'CREATE SCHEMA arrow_cache; GRANT ALL ON SCHEMA arrow_cache TO mallory', qr/role "mallory" may create/, 'open to one role' ],
	[ 'CREATE SCHEMA arrow_cache; CREATE TABLE arrow_cache.t (a int)', qr/not empty/, 'with a table' ],
	[ 'CREATE SCHEMA arrow_cache; CREATE OPERATOR arrow_cache.=== (LEFTARG = oid, RIGHTARG = oid, FUNCTION = oideq)', qr/not empty/, 'with an operator' ],
	[ 'CREATE SCHEMA arrow_cache; CREATE COLLATION arrow_cache.c FROM "C"', qr/not empty/, 'with a collation' ])
{
	my ($sql, $why, $name) = @$case;
	$node->safe_psql('postgres', $sql);
	like(failure($user, 'CREATE EXTENSION pg_arrow_cache'), qr/ERROR:  42P06: .*DETAIL:  .*$why/s, "a schema $name is refused");
	$node->safe_psql('postgres', 'DROP SCHEMA arrow_cache CASCADE');
}

# Schemas that are as safe as a new one: what DROP EXTENSION has left, and what pg_restore creates before the extension; the owner may be another superuser.
$node->safe_psql('postgres', 'CREATE EXTENSION pg_arrow_cache; DROP EXTENSION pg_arrow_cache; CREATE EXTENSION pg_arrow_cache');
pass('the schema that the extension has left serves it again');
$node->safe_psql('postgres', 'DROP EXTENSION pg_arrow_cache; ALTER SCHEMA arrow_cache OWNER TO other_admin; GRANT USAGE ON SCHEMA arrow_cache TO mallory');
is(failure($user, 'CREATE EXTENSION pg_arrow_cache'), undef, 'and so does an empty one of another superuser');

# Names in the reader's path, in front of the server's own: when the extension is made, and when it is used.
is(failure('mallory', 'CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC;' . traps('evil')), undef, 'a schema full of traps');
is(failure($user, q{
	CREATE TABLE public.t (a int); INSERT INTO public.t VALUES (1);
	CREATE TABLE public.told (a int);
	CREATE TRIGGER tell AFTER INSERT ON public.told EXECUTE FUNCTION arrow_cache.invalidate_on_change('public.t');
}), undef, 'something to look at');
for my $path ('evil, pg_catalog', 'evil, pg_catalog, arrow_cache', 'evil, arrow_cache, pg_catalog', 'arrow_cache, evil, pg_catalog')
{
	is(failure($user, "SET search_path = $path; $look_at_all"), undef, "all views and functions work with search_path = $path");
	is(failure($user, "SET search_path = $path; DROP TRIGGER tell ON public.told; DROP EXTENSION pg_arrow_cache; CREATE EXTENSION pg_arrow_cache;
		CREATE TRIGGER tell AFTER INSERT ON public.told EXECUTE FUNCTION arrow_cache.invalidate_on_change('public.t'); $look_at_all"),
		undef, "and so they do if the extension was made with search_path = $path");
}
is($node->safe_psql('postgres', 'SELECT DISTINCT by_whom FROM evil.victims'), '', 'nobody has run the code of others');
is(failure($user, 'SET search_path = evil, pg_catalog; SELECT 1 FROM pg_class WHERE oid = \'pg_class\'::regclass'), undef, 'a query of the same kind that is not qualified');
is($node->safe_psql('postgres', 'SELECT DISTINCT by_whom FROM evil.victims'), $user, 'walks into the trap');

# Objects that somebody puts into the schema later, as only its owner can let them.
$node->safe_psql('postgres', 'GRANT CREATE ON SCHEMA arrow_cache TO mallory; DELETE FROM evil.victims');
failure('mallory', $_) for map { "$_;" } traps('arrow_cache', own => 1) =~ /CREATE (?:TABLE|OPERATOR)[^;]*|CREATE FUNCTION.*?\$\$.*?\$\$/gs;
isnt($node->safe_psql('postgres', q{SELECT count(*) FROM pg_operator WHERE oprnamespace = 'arrow_cache'::regnamespace}), '0', 'traps in the schema itself');
for my $path ('public', 'arrow_cache, pg_catalog')
{
	is(failure($user, "SET search_path = $path; $look_at_all"), undef, "all views and functions work with search_path = $path");
}
is($node->safe_psql('postgres', 'SELECT DISTINCT by_whom FROM arrow_cache.victims'), '', 'nobody has run the code of others');

# The script, which pgrx puts together: whatever it names, it names with a schema.
my ($version) = $node->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'pg_arrow_cache'});
my $share = $node->config_data('--sharedir');
my $script = PostgreSQL::Test::Utils::slurp_file("$share/extension/pg_arrow_cache--$version.sql");
$script =~ s{/\*.*?\*/|--[^\n]*}{}gs;
my @made = $script =~ /\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:FUNCTION|VIEW)\s+(\S+)/g;
cmp_ok(scalar @made, '>', 15, 'the script makes functions and views');
is_deeply([ grep { !/^\@extschema\@\./ } @made ], [], 'each with its schema');
my @types = $script =~ /\b(?<!pg_catalog\.)(?<!")(text|bytea|jsonb|regclass|regtype|oid|bool|int[248]?|bigint|integer|void|trigger|name)\b(?=\s*(?:,|\)|\[|DEFAULT|STRICT|STABLE|VOLATILE|AS\b))/gi;
is_deeply(\@types, [], 'and no type without one');

done_testing();
