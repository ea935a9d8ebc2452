# pg_stat_statements and auto_explain preloaded beside the library, before it and after it: each keeps doing its work,
# on hits as well.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

for my $libraries ('pg_stat_statements, auto_explain, pg_arrow_cache',
	'pg_arrow_cache, auto_explain, pg_stat_statements')
{
	my $first = $libraries =~ /^pg_arrow_cache/ ? 'cache first' : 'cache last';
	my $node = new_watched_server($first =~ s/ /_/r, $libraries);
	$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');

	# What pg_stat_statements has counted for statements like this one.
	my $counted = sub {
		my ($pattern) = @_;
		return $node->safe_psql('postgres', qq{
			SET pg_arrow_cache.enabled = off;
			SELECT sum(calls), sum(rows) FROM pg_stat_statements WHERE query LIKE '$pattern'});
	};
	my $query = 'SELECT a, b FROM t ORDER BY a LIMIT 50';
	my $rows = join "\n", map { "$_|row $_" } 1 .. 50;
	my $log = -s $node->logfile;
	answers_are($node, $query, $rows, [ 'MISS', 'HIT', 'HIT' ], "$first: cached");
	is($counted->('SELECT a, b FROM t%'), '3|150', "$first: pg_stat_statements counts hits and their rows");

	my $logged = slurp_file($node->logfile, $log);
	my @plans = $logged =~ /plan:\n\tQuery Text: \Q$query\E;?\n\t(.*)\n/g;
	is(scalar @plans, 3, "$first: auto_explain logs each execution");
	unlike($plans[0] // '', qr/ArrowCache/, "$first: with the plan of the miss");
	# From 18 on, EXPLAIN ANALYZE writes the average number of rows with two digits after the point.
	like($plans[$_] // '', qr/^Custom Scan \(ArrowCache\).*actual rows=50(?:\.00)? loops=1/, "$first: with the node of hit $_")
		for 1 .. 2;

	# A prepared statement, and one with parameters.
	my $prepared = q{PREPARE p (int) AS SELECT count(*) FROM t WHERE a > $1; EXECUTE p (90)};
	my @statuses = map {
		$node->safe_psql('postgres', "$prepared; EXECUTE p (90); SELECT arrow_cache.last_status()") } 1 .. 2;
	is_deeply(\@statuses, [ ("10\n10\nHIT") x 2 ], "$first: EXECUTE is served");
	is($counted->('PREPARE p%'), '4|4', "$first: and counted");

	# Writes are counted, and invalidate.
	$node->safe_psql('postgres', q{UPDATE t SET b = 'new' WHERE a <= 10});
	is($counted->('UPDATE t%'), '1|10', "$first: a write is counted");
	$rows =~ s/row \d+$/new/m for 1 .. 10;
	answers_are($node, $query, $rows, [ 'STALE', 'HIT' ], "$first: and invalidates");

	# Statements inside functions are nested for all of them.
	$node->append_conf('postgresql.conf', "pg_stat_statements.track = all\nauto_explain.log_nested_statements = on");
	$node->reload;
	$node->safe_psql('postgres', q{
		CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT sum(a) FROM t); END'});
	$node->poll_query_until('postgres', q{SELECT current_setting('pg_stat_statements.track') = 'all'});
	is($node->safe_psql('postgres', "SELECT total();\nSELECT total()"), "5050\n5050", "$first: a function");
	is($counted->('(SELECT sum(a) FROM t)%'), '2|2', "$first: its statement is counted each time");

	# An answer that is combined of parts is one statement, with its rows, also if nested ones are counted; the log has its one plan.
	$node->safe_psql('postgres', q{
		CREATE TABLE halves (k int, v int) PARTITION BY RANGE (k);
		CREATE TABLE half_1 PARTITION OF halves FOR VALUES FROM (0) TO (10);
		CREATE TABLE half_2 PARTITION OF halves FOR VALUES FROM (10) TO (20);
		INSERT INTO halves SELECT k, k FROM generate_series(0, 19) AS k});
	$log = -s $node->logfile;
	my $sums = 'SELECT v % 2 AS odd, sum(v) FROM halves GROUP BY 1 ORDER BY 1';
	for my $step (1 .. 2)
	{
		is($node->safe_psql('postgres', "SET pg_arrow_cache.debug_force_fragments = on;
$sums"), "0|90
1|100",
			"$first: combined of parts, $step");
		$node->safe_psql('postgres', 'UPDATE halves SET v = v WHERE k = 15');
	}
	is($counted->('%AS odd, sum(v) FROM halves%'), '2|4', "$first: pg_stat_statements counts each once");
	my @combined = slurp_file($node->logfile, $log) =~ /(Custom Scan \(ArrowCacheFragments\))/g;
	is(scalar @combined, 2, "$first: auto_explain logs one plan for each");
	unlike(slurp_file($node->logfile, $log), qr/Seq Scan on half_1/, "$first: and none of parts");

	# So is a bound statement, of which that is decided when it is run: it depends on settings, or may fail.
	$node->append_conf('postgresql.conf', "pg_arrow_cache.debug_force_fragments = on\nauto_explain.log_buffers = on");
	$node->reload;
	$node->poll_query_until('postgres', q{SELECT current_setting('pg_arrow_cache.debug_force_fragments') = 'on'});
	for my $bound (
		[ 'zoned', q{SELECT date_trunc('day', to_timestamp(v * 7200)) AS zoned, count(*) FROM halves WHERE k >= $1 GROUP BY 1 ORDER BY 1}, 2 ],
		[ 'ratio', 'SELECT v % 2, sum(v) / count(*) AS ratio FROM halves WHERE k >= $1 GROUP BY 1 ORDER BY 1', 2 ])
	{
		my ($name, $text, $groups) = @$bound;
		my $expected = $node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; PREPARE s (int) AS $text; EXECUTE s (0)");
		$log = -s $node->logfile;
		my $runs = $node->safe_psql('postgres', 'SELECT fragment_runs FROM arrow_cache.stats');
		is($node->safe_psql('postgres', "PREPARE s (int) AS $text;
EXECUTE s (0)"), $expected, "$first: $name: EXECUTE");
		$node->safe_psql('postgres', 'UPDATE halves SET v = v WHERE k = 15');
		# The extended protocol.
		my $script = PostgreSQL::Test::Utils::tempdir() . "/$name.sql";
		append_to_file($script, "\\set low 0\n" . $text =~ s/\$1/:low/r . ";\n");
		$node->command_ok([ qw(pgbench -n -M extended -t 1 -f), $script, 'postgres' ], "$first: $name: extended protocol");
		is($node->safe_psql('postgres', "SELECT fragment_runs - $runs FROM arrow_cache.stats"), '2', "$first: $name: both are combined");
		is($counted->("%$name%FROM halves%"), '3|' . 3 * $groups, "$first: $name: and counted with their rows");
		my $written = slurp_file($node->logfile, $log);
		my @runs = $written =~ /Custom Scan \(ArrowCacheFragments\).*?actual .*?rows=(\d+)/g;
		is(scalar @runs, 2, "$first: $name: the log has the plan that was run");
		unlike($written, qr/never executed|Seq Scan on half_1/, "$first: $name: and not the one in its place");
	}
	$node->stop;
}

done_testing();
