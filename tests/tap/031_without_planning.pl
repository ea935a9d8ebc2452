# Statements of a form that was served before are not planned: debug_print_plan shows which plans the server executed.
# pg_stat_statements and auto_explain, preloaded before and after the cache, see them like any other statement.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('without_planning', conf => "compute_query_id = on\nlog_line_prefix = ''\n");
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 100) g;
	CREATE TABLE p (id int, v text) PARTITION BY RANGE (id);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
	CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
	INSERT INTO p VALUES (1, 'one'), (11, 'eleven');
});

my $plan = qr/^LOG:\s+plan:\n(?:DETAIL:|STATEMENT:|\t).*?(?=^LOG:|\z)/ms;

# What the session that runs a script prints, and of each query that it plans whether it was handed a placeholder (1) or a plan (0).
sub run
{
	my ($script) = @_;
	my $start = -s $node->logfile;
	my $output = $node->safe_psql('postgres', "SET debug_pretty_print = off; SET debug_print_plan = on;\n$script");
	my $log = substr(slurp_file($node->logfile), $start);
	return ($output, [ map { /ArrowCachePlaceholder/ ? 1 : 0 } $log =~ /$plan/g ]);
}

sub plans_are
{
	my ($script, $plans, $name, $expected) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($output, $got) = run($script);
	is_deeply($got, $plans, $name);
	is($output, $expected, "$name: the rows") if defined $expected;
	return;
}

my $query = 'SELECT b FROM t WHERE a = 1;';
plans_are("$query $query $query $query", [ 0, 0, 1, 1 ], 'from the third execution on', join("\n", ('row 1') x 4));
plans_are("$query\n$query\n$query", [ 0, 1, 1 ], 'a new session knows no form');
plans_are("SELECT b FROM t WHERE a = 2; SELECT b FROM t WHERE a = 2; SELECT b FROM t WHERE a = 1; SELECT b FROM t WHERE a = 3;",
	[ 0, 0, 1, 0 ], 'another constant, if its answer is stored', "row 2\nrow 2\nrow 1\nrow 3");
plans_are("$query $query SELECT b AS c FROM t WHERE a = 1; SELECT b FROM t WHERE a + 0 = 1; SELECT b FROM t x WHERE a = 1;",
	[ 0, 1, 0, 0, 1 ], 'other names of columns and other expressions: no; another name of the table: yes');
plans_are("$query SET pg_arrow_cache.verify_sample_rate = 1; $query $query RESET pg_arrow_cache.verify_sample_rate; $query",
	[ 0, 0, 0, 1 ], 'not while hits are verified');
plans_are("$query $query SET pg_arrow_cache.enabled = off; $query RESET pg_arrow_cache.enabled; $query", [ 0, 1, 0, 1 ],
	'not while switched off');
plans_are("$query $query /*+ no_arrow_cache */ $query /*+ arrow_cache(ttl=0) */ $query $query", [ 0, 1, 0, 1, 1 ], 'hints');
plans_are("$query $query ALTER TABLE t ADD COLUMN c int; $query $query $query", [ 0, 1, 0, 0, 1 ], 'planned again after DDL');
plans_are("$query $query CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; $query DROP FUNCTION f(); $query $query $query",
	[ 0, 1, 0, 0, 0, 1 ], 'and after DDL of something else, once the answer is stored anew');
plans_are("$query $query UPDATE t SET b = b WHERE a = 50; $query $query $query", [ 0, 1, 0, 0, 1, 1 ],
	'planned after a change of its table, until the answer is stored anew');
plans_are("$query $query EXPLAIN $query $query", [ 0, 1, 0, 1 ], 'EXPLAIN plans');
plans_are("$query $query BEGIN; DECLARE c CURSOR FOR $query FETCH c; COMMIT; $query", [ 0, 1, 0, 1 ], 'cursors are planned');
plans_are("PREPARE s(int) AS SELECT b FROM t WHERE a = \$1; EXECUTE s(1); EXECUTE s(1); EXECUTE s(1); EXECUTE s(1);",
	[ 0, 0, 0, 0 ], 'EXECUTE of SQL is planned');
plans_are("$query $query DO \$\$ BEGIN PERFORM b FROM t WHERE a = 1; END \$\$;", [ 0, 1, 0 ], 'so are statements of functions');

# Partitions: which are read depends on constants. The entry says what it rests on.
my ($one, $eleven) = map { "SELECT v FROM p WHERE id = $_;" } 1, 11;
plans_are("$one $one $one $eleven $eleven $eleven $one $eleven", [ 0, 0, 1, 0, 1, 1, 1, 1 ], 'partitions',
	"one\none\none\neleven\neleven\neleven\none\neleven");

# Strings of several statements, as one message each.
sub at_once
{
	my ($text) = @_;
	my $start = -s $node->logfile;
	my $output = $node->safe_psql('postgres', "SET debug_pretty_print = off; SET debug_print_plan = on;\n" . ($text =~ s/;(?=.)/\\;/gr));
	my $log = substr(slurp_file($node->logfile), $start);
	return [ $output, map { /ArrowCachePlaceholder/ ? 1 : 0 } $log =~ /$plan/g ];
}
is_deeply(at_once("$query SELECT a FROM t WHERE a = 9; $query $query"), [ "row 1\n9\nrow 1\nrow 1", 0, 0, 1, 1 ],
	'several statements in one string');

# Own writes: planned as ever.
plans_are("$query $query BEGIN; UPDATE t SET b = 'own' WHERE a = 1; $query ROLLBACK; $query", [ 0, 1, 0, 0, 1 ], 'own writes',
	"row 1\nrow 1\nown\nrow 1");

# The real plan that takes a placeholder's place is not printed by the server, but auto_explain sees it; so do the others.
for my $libraries ('pg_stat_statements, auto_explain, pg_arrow_cache', 'pg_arrow_cache, auto_explain, pg_stat_statements')
{
	my $first = $libraries =~ /^pg_arrow_cache/ ? 'cache first' : 'cache last';
	my $beside = new_server('beside_' . $first =~ s/ /_/r, conf => qq{
shared_preload_libraries = '$libraries'
compute_query_id = on
log_line_prefix = 'id=%Q '
auto_explain.log_min_duration = 0
auto_explain.log_analyze = on
auto_explain.log_verbose = on
auto_explain.log_timing = off
pg_stat_statements.track_planning = on
});
	$beside->safe_psql('postgres', q{
		CREATE EXTENSION pg_stat_statements;
		CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 100) g;
	});
	$beside->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');

	my $text = 'SELECT a, b FROM t WHERE a <= ';
	my $start = -s $beside->logfile;
	my $rows = $beside->safe_psql('postgres', join(' ', map { "$text$_;" } 40, 40, 40, 30, 30)
		  . ' BEGIN; DELETE FROM t WHERE a = 7;' . " ${text}40; ROLLBACK; ${text}40;");
	is(scalar(split(/\n/, $rows)), 40 * 3 + 30 * 2 + 39 + 40, "$first: the rows");

	my $counted = $beside->safe_psql('postgres', qq{
		SET pg_arrow_cache.enabled = off;
		SELECT count(*), sum(calls), sum(rows), min(queryid) FROM pg_stat_statements WHERE query LIKE '$text%'});
	my ($kinds, $calls, $all_rows, $id) = split /\|/, $counted;
	is("$kinds $calls $all_rows", '1 7 259', "$first: pg_stat_statements counts all of them as one kind");

	my $logged = substr(slurp_file($beside->logfile), $start);
	my @explained = $logged =~ /^id=(-?\d+) LOG:\s+duration:.*?plan:\n\tQuery Text: \Q$text\E\d+;?\n((?:\t.*\n)*)/mg;
	is(scalar @explained, 2 * 7, "$first: auto_explain logs all of them");
	my @ids = grep { $_ ne $id } @explained[ map { 2 * $_ } 0 .. 6 ];
	is_deeply(\@ids, [], "$first: under the same query id");
	my @nodes = map { /^\t(Custom Scan \(ArrowCache\)|Seq Scan)/ ? $1 : $_ } @explained[ map { 2 * $_ + 1 } 0 .. 6 ];
	my ($scan, $served) = ('Seq Scan', 'Custom Scan (ArrowCache)');
	is_deeply(\@nodes, [ $scan, ($served) x 2, $scan, ($served), $scan, $served ], "$first: with the plan that ran");
	# From 18 on, numbers of rows have two digits after the point.
	my @counts = map { /actual rows=(\d+)(?:\.00)? loops=1/ ? $1 : 'none' } @explained[ map { 2 * $_ + 1 } 0 .. 6 ];
	is_deeply(\@counts, [ 40, 40, 40, 30, 30, 39, 40 ], "$first: and its rows");
	unlike($logged, qr/ArrowCachePlaceholder/, "$first: never a placeholder");
	$beside->stop;
}

$node->stop;
done_testing();
