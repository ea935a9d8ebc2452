# Random changes and restarts of all kinds: after each start, answers with the cache are those without it.
# RANDOM_RESTARTS_SEED repeats a run, RANDOM_RESTARTS is the number of restarts.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = srand($ENV{RANDOM_RESTARTS_SEED} // int(rand(2**31)));
note "RANDOM_RESTARTS_SEED=$seed";
my $restarts = $ENV{RANDOM_RESTARTS} // 12;

my $node = new_server('random', conf => "max_prepared_transactions = 5\nautovacuum = on\n");
$node->safe_psql('postgres', q{
	CREATE TABLE tenants (id serial PRIMARY KEY, tenant int, amount int, seen int DEFAULT 0);
	CREATE INDEX ON tenants (tenant);
	INSERT INTO tenants (tenant, amount) SELECT g % 40, g FROM generate_series(1, 4000) g;
	CREATE TABLE parts (id int, day int, n int) PARTITION BY RANGE (day);
	CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
	CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
	INSERT INTO parts SELECT g, g % 20, g FROM generate_series(1, 4000) g;
	CREATE UNLOGGED TABLE loose AS SELECT generate_series(1, 10) AS a;
	CREATE TYPE mood AS ENUM ('sad', 'glad');
	CREATE TABLE moods AS SELECT 'sad'::mood AS mood;
	CREATE FUNCTION f(int) RETURNS int LANGUAGE sql RETURN $1 + 1;
	CREATE FUNCTION g(int) RETURNS int STRICT IMMUTABLE LANGUAGE sql AS 'SELECT coalesce($1, 0) + 1';
	CREATE VIEW v AS SELECT tenant, sum(amount) AS sum FROM tenants GROUP BY tenant;
});

my @questions = (
	sub { 'SELECT sum(amount), count(*) FROM tenants WHERE tenant = ' . int rand 40 },
	sub { 'SELECT * FROM tenants WHERE tenant = ' . int(rand 40) . ' ORDER BY id' },
	sub { 'SELECT sum(amount) FROM tenants WHERE id = ' . (1 + int rand 10) },
	sub { 'SELECT * FROM v ORDER BY tenant' },
	sub { 'SELECT day, sum(n) FROM parts WHERE day >= ' . int(rand 20) . ' GROUP BY day ORDER BY day' },
	sub { 'SELECT sum(a) FROM loose' },
	sub { 'SELECT mood, count(*) FROM moods GROUP BY mood ORDER BY mood' },
	sub { 'SELECT sum(f(n)) FROM parts WHERE day = ' . int rand 20 },
	sub { 'SELECT sum(g(n)) FROM parts' },
	sub { q{SELECT count(*) FROM tenants WHERE now() > '2000-01-01'} },
);

my $number = 0;
my @changes = (
	(sub { 'UPDATE tenants SET amount = amount + 1 WHERE tenant = ' . int rand 40 }) x 3,
	sub { 'UPDATE tenants SET seen = seen + 1 WHERE tenant = ' . int rand 40 },
	sub { 'UPDATE tenants SET tenant = ' . int(rand 40) . ' WHERE id = ' . int rand 4000 },
	sub { 'DELETE FROM tenants WHERE id = ' . int rand 4000 },
	sub { 'INSERT INTO parts VALUES (1, ' . int(rand 20) . ', 5)' },
	sub { 'BEGIN; DELETE FROM parts; ROLLBACK' },
	sub { 'INSERT INTO loose VALUES (1)' },
	sub { 'TRUNCATE loose; INSERT INTO loose VALUES (3)' },
	sub { 'INSERT INTO moods VALUES (enum_first(NULL::mood))' },
	sub { $number++; "ALTER TYPE mood RENAME VALUE '" . ($number % 2 ? 'sad' : 'bad') . "' TO '" . ($number % 2 ? 'bad' : 'sad') . "'" },
	sub { 'CREATE OR REPLACE FUNCTION f(int) RETURNS int LANGUAGE sql RETURN $1 + ' . int rand 5 },
	sub { "CREATE OR REPLACE FUNCTION g(int) RETURNS int STRICT IMMUTABLE LANGUAGE sql AS 'SELECT coalesce(\$1, 0) + " . int(rand 5) . q{'} },
	sub { 'CREATE TABLE x (a int); DROP TABLE x' },
	sub { 'VACUUM tenants' }, sub { 'ANALYZE parts' },
	sub { q{BEGIN; UPDATE tenants SET amount = 0 WHERE tenant = 7; PREPARE TRANSACTION 'rows'} },
	sub { q{BEGIN; ALTER TABLE moods ADD COLUMN IF NOT EXISTS z int DEFAULT 3; INSERT INTO moods VALUES ('glad'); PREPARE TRANSACTION 'definition'} },
	sub { q{COMMIT PREPARED 'rows'} }, sub { q{COMMIT PREPARED 'definition'} }, sub { q{ROLLBACK PREPARED 'rows'} },
);

# What a change collides with, such as the lock of a prepared transaction, does not matter.
sub change
{
	my $sql = $changes[ rand @changes ]->();
	my @pieces = map { ('-c', $_) } "SET lock_timeout = '100ms'", split /;\s*/, $sql;
	run_log([ 'psql', '-X', '-q', '-d', $node->connstr('postgres'), @pieces ], '>', \my $out, '2>', \my $err);
	return $sql;
}

# Asks some questions with and without the cache, in one snapshot, and returns how many were hits.
sub ask
{
	my ($name) = @_;
	my @asked = map { $questions[ rand @questions ]->() } 1 .. 15;
	my $sql = join '', map {
		"BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '100ms';\n"
		  . "SET LOCAL pg_arrow_cache.enabled = off; $_; SELECT '=>';\n"
		  . "SET LOCAL pg_arrow_cache.enabled = on; $_; SELECT '=> ' || arrow_cache.last_status(); COMMIT;\n" } @asked;
	my ($status, $output, $error) = $node->psql('postgres', $sql, on_error_stop => 0);
	my ($hits, @wrong) = (0);
	my @parts = split /^=>(.*)\n?/m, $output;
	for my $n (0 .. $#asked)
	{
		my ($right, undef, $given, $status) = map { $_ // '' } @parts[ 4 * $n .. 4 * $n + 3 ];
		# A lock of a prepared definition fails both, and what follows.
		return $hits if $error ne '';
		$hits++ if $status =~ /HIT/;
		push @wrong, "$asked[$n] ($status): $given instead of $right" if $given ne $right;
	}
	is_deeply(\@wrong, [], $name) if @wrong;
	return $hits;
}

my $swept = 0;
for my $n (1 .. $restarts)
{
	my @done;
	for (1 .. 4) { ask("before restart $n") for 1 .. 2; push @done, change(); }
	if (rand() < 0.7) { ask("before restart $n") for 1 .. 3; }
	else { push @done, change(); }
	my $way = (qw(fast fast fast smart immediate without twice))[ rand 7 ];
	my $log = -s $node->logfile;
	$node->stop($way eq 'without' || $way eq 'twice' ? 'fast' : $way);
	if ($way eq 'without')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
		$node->start;
		push @done, change();
		$node->stop('fast');
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_arrow_cache'");
	}
	$node->start;
	if ($way eq 'twice') { $node->stop('fast'); $node->start; }
	push @done, change() if rand() < 0.5;
	my $hits = ask("after restart $n ($way), seed $seed, changes: @done");
	$hits += ask("after restart $n ($way), seed $seed, changes: @done") for 1 .. 3;
	my ($count) = slurp_file($node->logfile, $log) =~ /the cache begins with (\d+) results.*\z/s;
	$swept += $count // 0;
	pass("restart $n ($way): " . ($count // 'no') . " results, $hits hits");
	$node->safe_psql('postgres', "ROLLBACK PREPARED '$_'")
	  for split /\n/, rand() < 0.5 ? $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts') : '';
}
ok($swept > 0, "$swept results have outlived restarts");

done_testing();
