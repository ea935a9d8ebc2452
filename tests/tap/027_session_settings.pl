# Every setting that can shape an answer changes the key, or shapes it only after the cache: under each of two values, whoever stored first
# and however the value came to be in force, a statement is answered as it would be without the cache. Settings that
# cannot shape an answer do not part one session's results from another's.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $node = new_server('session_settings');
$node->safe_psql('postgres', <<'SQL');
SET TimeZone = 'UTC';
CREATE TABLE s (id int, ts timestamptz, d date, i interval, f float8, r real, b bytea, m money, t text, words tsvector, x xml);
INSERT INTO s VALUES (1, '2024-03-10 20:30:00+00', '2024-03-04', '1 year 2 mons -3 days 04:05:06', 1::float8 / 3, 1::float4 / 3, '\x00ff5c', 12345.678,
	'a name', to_tsvector('english', 'running dogs'), '<a>one</a>'), (2, '2024-07-01 03:00:00+00', '2024-12-11', '-1 day', 1e300, 3, 'text', -1, NULL, '', NULL);
CREATE SCHEMA front;
CREATE TABLE front.s AS TABLE s WITH NO DATA;
CREATE TABLE fuzzy AS SELECT g AS id, ARRAY[g % 2] AS a FROM generate_series(1, 200) g;
CREATE INDEX ON fuzzy USING gin (a);
CREATE ROLE regress_cache_one;
CREATE ROLE regress_cache_two;
GRANT SELECT ON s TO PUBLIC;
SQL

# What an uncached execution under a value gives.
sub uncached
{
	my ($query, $set) = @_;
	return $node->safe_psql('postgres', "$set SET pg_arrow_cache.enabled = off;\n$query");
}

# SET with a value that may be a list.
sub set
{
	my ($name, $value) = @_;
	return "SET $name TO " . join(', ', map { "'$_'" } split /, /, $value) . ';';
}

# Settings that do shape answers: name, two values, queries that show it. Each query must differ between the values.
my @shaping = (
	[ 'TimeZone', 'UTC', 'Asia/Tokyo', 'SELECT ts FROM s ORDER BY id', 'SELECT ts::text FROM s ORDER BY id', 'SELECT ts::date FROM s ORDER BY id',
		q{SELECT date_trunc('day', ts) = ts FROM s UNION SELECT to_char(ts, 'HH24:MI') = '20:30' FROM s}, 'SELECT extract(hour FROM ts) FROM s ORDER BY id',
		q{SELECT id FROM s WHERE ts < '2024-03-10 20:30:01'::timestamptz}, q{SELECT d::timestamptz = timestamptz '2024-03-04 00:00:00+00' FROM s ORDER BY id},
		'SELECT json_agg(ts) FROM s', 'SELECT array_agg(ts)::text FROM s' ],
	[ 'TimeZone', 'UTC', 'Europe/Berlin', q{SELECT age(timestamptz '2024-03-31 23:00:00+00', ts) FROM s WHERE id = 1 ORDER BY id} ],
	[ 'timezone_abbreviations', 'Default', 'Australia', q{SELECT ts AT TIME ZONE 'EST' FROM s ORDER BY id}, q{SELECT id FROM s WHERE ts > '2024-03-10 16:00 EST'::timestamptz ORDER BY id} ],
	[ 'DateStyle', 'ISO, DMY', 'German', 'SELECT d FROM s ORDER BY id', 'SELECT d::text FROM s ORDER BY id', 'SELECT concat(d, ts) FROM s ORDER BY id' ],
	[ 'DateStyle', 'ISO, DMY', 'ISO, MDY', q{SELECT id FROM s WHERE d = '04/03/2024'}, q{SELECT id FROM s WHERE d = to_date('04/03/2024', 'DD/MM/YYYY') AND d = '04/03/2024'} ],
	[ 'IntervalStyle', 'postgres', 'iso_8601', 'SELECT i FROM s ORDER BY id', 'SELECT i::text FROM s ORDER BY id', 'SELECT array_to_string(array_agg(i ORDER BY id), $$;$$) FROM s' ],
	[ 'IntervalStyle', 'postgres', 'sql_standard', q{SELECT i + interval '-1 2:03' FROM s ORDER BY id} ],
	[ 'extra_float_digits', '1', '-3', 'SELECT f, r FROM s ORDER BY id', 'SELECT f::text FROM s ORDER BY id', 'SELECT json_build_array(f) FROM s ORDER BY id' ],
	[ 'bytea_output', 'hex', 'escape', 'SELECT b FROM s ORDER BY id', 'SELECT b::text FROM s ORDER BY id' ],
	[ 'quote_all_identifiers', 'off', 'on', 'SELECT quote_ident($$plain$$ || id) FROM s ORDER BY id', 'SELECT quote_ident(left(t, 1)) FROM s ORDER BY id', 'SELECT format($$%I$$, $$plain$$ || id) FROM s ORDER BY id' ],
	[ 'xmlbinary', 'base64', 'hex', 'SELECT xmlelement(name e, b) FROM s ORDER BY id' ],
	[ 'xmloption', 'content', 'document', q{SELECT xpath('count(/a)', x) FROM s WHERE x IS DOCUMENT UNION ALL SELECT ARRAY[xmlparse(CONTENT '')] WHERE current_setting('xmloption') = 'content'} ],
	[ 'array_nulls', 'on', 'off', q{SELECT id, ('{NULL}'::text[])[1] IS NULL FROM s ORDER BY id}, q{SELECT id, (('{' || 'NULL' || '}')::text[])[1] IS NULL FROM s ORDER BY id} ],
	[ 'default_text_search_config', 'english', 'simple', q{SELECT to_tsvector('running ' || id) FROM s ORDER BY id}, q{SELECT id FROM s WHERE words @@ to_tsquery('running')},
		q{SELECT id, ts_headline('running', to_tsquery('run')) FROM s ORDER BY id} ],
	[ 'transform_null_equals', 'off', 'on', 'SELECT id FROM s WHERE t = NULL' ],
	[ 'standard_conforming_strings', 'on', 'off', q{SELECT 'a\\141' || id FROM s ORDER BY id} ],
	[ 'search_path', 'public', 'front, public', 'SELECT count(*) FROM s' ],
	[ 'role', 'regress_cache_one', 'regress_cache_two', 'SELECT id, CURRENT_USER FROM s ORDER BY id' ],
	[ 'session_authorization', 'regress_cache_one', 'regress_cache_two', 'SELECT id, SESSION_USER FROM s ORDER BY id', 'SELECT id, CURRENT_USER FROM s ORDER BY id' ],
	[ 'regress_cache.own', 'one', 'two', q{SELECT id, current_setting('regress_cache.own') FROM s ORDER BY id} ],
	# Settings of the server that a query asks for by name are not in the key.
	[ 'work_mem', '4MB', '5MB', q{SELECT id, current_setting('work_mem') FROM s ORDER BY id} ],
);

# The locales that the machine has decide how much these can show.
my ($locale) = grep { /^(de|fr|es|ja|en_GB)\S*utf-?8$/i } split /\n/, `locale -a`;
if ($locale)
{
	push @shaping, [ 'lc_monetary', 'C', $locale, 'SELECT m FROM s ORDER BY id', 'SELECT m::text FROM s ORDER BY id' ],
		[ 'lc_time', 'C', $locale, q{SELECT to_char(d, 'TMDay') FROM s ORDER BY id} ];
}
else
{
	note('no other locale: lc_monetary and lc_time are not looked at');
}

my $served = 0;
for my $case (@shaping)
{
	my ($name, $one, $two, @queries) = @$case;
	for my $query (@queries)
	{
		my %plain = map { $_ => uncached($query, set($name, $_)) } $one, $two;
		isnt($plain{$one}, $plain{$two}, "$name shapes: $query");
		for my $value ($one, $two, $one)
		{
			my ($rows, $status) = answer($node, $query, before => set($name, $value));
			is($rows, $plain{$value}, "... under $value");
			$served++ if $status eq 'HIT';
		}
		# In one session, with the value coming and going in other ways. Marks stand between its rows.
		my ($first, $second, $mark) = (set($name, $one), set($name, $two), q{SELECT '-'});
		my $session = join("\n", $first, "$query; $mark;", "BEGIN; SELECT set_config('$name', '$two', true) \\g /dev/null", "$query; $mark; ROLLBACK;",
			"$query; $mark;", "BEGIN; SAVEPOINT x; $second", "$query; $mark; ROLLBACK TO x; $query; $mark;", $second, "COMMIT; $query;");
		my @expected = map { ($_ eq '' ? () : $_), '-' } @plain{ $one, $two, $one, $two, $one, $two };
		pop @expected;
		is($node->safe_psql('postgres', $session), join("\n", @expected), '... SET LOCAL, ROLLBACK, savepoints');
		# A cursor is read under the settings of its reading, which may be others than those it was opened with.
		my $cursor = join "\n", $first, "$query; $mark;", "BEGIN; DECLARE c NO SCROLL CURSOR FOR $query;", $second, 'FETCH ALL FROM c; COMMIT;';
		is($node->safe_psql('postgres', $cursor), uncached($cursor, ''), '... read by a cursor');
	}
}
# The rest calls functions whose answers are not kept.
cmp_ok($served, '>=', 25, 'most of these were served from the cache when the first value came back');

# Settings that matter to how an answer is found, or to nothing here: one session's result serves the other.
for my $set ('enable_seqscan = off', 'enable_hashagg = off', 'constraint_exclusion = on', 'enable_partition_pruning = off', 'work_mem = 64', 'random_page_cost = 1', 'jit = on', 'geqo = off', 'from_collapse_limit = 1',
	'cursor_tuple_fraction = 1', 'max_parallel_workers_per_gather = 0', 'statement_timeout = 100000', 'lock_timeout = 100000',
	"lc_messages = 'C'", "application_name = 'another'", 'client_min_messages = debug1', "log_min_messages = 'error'", 'default_transaction_read_only = on',
	"default_transaction_isolation = 'repeatable read'", 'synchronous_commit = off', 'track_activities = off', 'escape_string_warning = off',
	'check_function_bodies = off', 'temp_buffers = 200', 'synchronize_seqscans = off')
{
	my $query = 'SELECT id, ts, f FROM s ORDER BY id';
	answer($node, $query);
	my ($rows, $status) = answer($node, $query, before => "SET $set;");
	is($status, 'HIT', "$set is not part of the key");
	is($rows, uncached($query, "SET $set;"), '... and the answer is the same');
}

# These are part of the key without a difference that could be shown here: one drops rows at random, some refuse, some are other names for the same.
for my $set ('gin_fuzzy_search_limit = 5', 'row_security = off', 'backslash_quote = on', "client_encoding = 'LATIN1'", map { "$_ = 'POSIX'" } qw(lc_monetary lc_numeric lc_time))
{
	my $query = 'SELECT count(*) FROM fuzzy WHERE a @> ARRAY[1]';
	answers_are($node, $query, '100', ['HIT'], 'warm') if answer($node, $query);
	my (undef, $status) = answer($node, $query, before => "SET $set;");
	is($status, 'MISS', "$set is part of the key");
}

# SET clauses of functions hold inside them and nowhere else; RESET ALL and DISCARD ALL bring back what the session began with, which its role,
# its database and its client may have chosen.
my $query = 'SELECT ts FROM s WHERE id = 1';
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION in_tokyo() RETURNS text LANGUAGE plpgsql SET TimeZone = 'Asia/Tokyo' AS
	$$ DECLARE r text; BEGIN SELECT ts INTO r FROM s WHERE id = 1; RETURN r; END $$;
CREATE FUNCTION moves() RETURNS text LANGUAGE plpgsql AS
	$$ DECLARE r text; BEGIN SET TimeZone = 'Asia/Tokyo'; SELECT ts INTO r FROM s WHERE id = 1; RETURN r; END $$;
CREATE ROLE regress_cache_login LOGIN;
ALTER ROLE regress_cache_login SET TimeZone = 'Asia/Tokyo';
CREATE DATABASE away TEMPLATE postgres;
ALTER DATABASE away SET TimeZone = 'Asia/Tokyo';
SQL
my ($utc, $tokyo) = ('2024-03-10 20:30:00+00', '2024-03-11 05:30:00+09');
is($node->safe_psql('postgres', "SET TimeZone = 'UTC'; $query; SELECT in_tokyo(); $query; SELECT moves(); $query; SET TimeZone = 'UTC'; $query"),
	join("\n", $utc, $tokyo, $utc, $tokyo, $tokyo, $utc), 'SET clauses of functions, and SET in a function');
is($node->safe_psql('postgres', "SET TimeZone = 'UTC'; $query; RESET ALL; $query; SET TimeZone = 'UTC'; DISCARD ALL; $query", extra_params => [ '-U', 'regress_cache_login' ]),
	join("\n", $utc, $tokyo, $tokyo), 'RESET ALL and DISCARD ALL give the role its own setting back');
is($node->safe_psql('away', "$query; SET TimeZone = 'UTC'; $query; RESET TimeZone; $query"), join("\n", $tokyo, $utc, $tokyo), 'a setting of the database');
{
	local $ENV{PGOPTIONS} = '-c TimeZone=Asia/Tokyo';
	is($node->safe_psql('postgres', "$query; SET TimeZone = 'UTC'; $query; DISCARD ALL; $query"), join("\n", $tokyo, $utc, $tokyo), 'a setting of the connection');
	local $ENV{PGTZ} = 'UTC';
	is($node->safe_psql('postgres', "$query; RESET ALL; $query"), "$utc\n$utc", 'a setting of the client');
}

# client_encoding: it is in the key. Results are kept in the server's encoding and converted on their way out; what cannot be converted is the error
# that it would be.
$node->safe_psql('postgres', "CREATE TABLE speech (id int, v text); INSERT INTO speech VALUES (1, U&'\\00e9t\\00e9'), (2, U&'\\20ac')");
my $one = 'SELECT v FROM speech WHERE id = 1';
my ($latin_rows, $utf_rows) = ("\xe9t\xe9", "\xc3\xa9t\xc3\xa9");
my @latin = (before => "SET client_encoding = 'LATIN1';");
answers_are($node, $one, $utf_rows, [ 'MISS', 'HIT' ], 'a client in UTF8');
answers_are($node, $one, $latin_rows, [ 'MISS', 'HIT' ], 'a client in LATIN1', @latin);
answers_are($node, $one, $utf_rows, ['HIT'], 'and in UTF8 again');
my @filter = map { "SELECT id FROM speech WHERE v = '$_'" } $latin_rows, $utf_rows;
answers_are($node, $filter[0], '1', [ 'MISS', 'HIT' ], 'a text in LATIN1', @latin);
answers_are($node, $filter[1], '1', [ 'MISS', 'HIT' ], 'is another question in UTF8');
answers_are($node, $filter[1], '', ['MISS'], 'and the bytes of that are another text in LATIN1', @latin);
my $euro = 'SELECT v FROM speech WHERE id = 2';
answers_are($node, $euro, "\xe2\x82\xac", [ 'MISS', 'HIT' ], 'a character that LATIN1 lacks');
for my $enabled (qw(on off))
{
	my ($status, undef, $stderr) = $node->psql('postgres', "SET pg_arrow_cache.enabled = $enabled; SET client_encoding = 'LATIN1'; $euro");
	isnt($status, 0, "cannot be sent to a client in LATIN1 (enabled $enabled)");
	like($stderr, qr/has no equivalent in encoding "LATIN1"/, '... for the server\'s own reason');
}
answers_are($node, $euro, "\xe2\x82\xac", ['HIT'], 'the entry is as good as before');
for my $encoding (qw(UTF8 LATIN1 SQL_ASCII WIN1252))
{
	is($node->safe_psql('postgres', "SET client_encoding = '$encoding'; $one"), uncached($one, "SET client_encoding = '$encoding';"), "client_encoding $encoding");
}

done_testing();
