# Restarts of a standby while transactions of its primary are at random points: after each start, answers with the cache are those without
# it. RANDOM_RESTARTS_SEED repeats a run, RANDOM_RESTARTS is the number of restarts.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use StandbyTest;
use Test::More;

my $seed = srand($ENV{RANDOM_RESTARTS_SEED} // int(rand(2**31)));
note "RANDOM_RESTARTS_SEED=$seed";
my $restarts = $ENV{RANDOM_RESTARTS} // 10;
my $TABLES = 6;

my $primary = new_primary('primary');
$primary->safe_psql('postgres', join '', map {
	"CREATE TABLE t$_ (id int PRIMARY KEY, v int); INSERT INTO t$_ SELECT g, g FROM generate_series(1, 8) g;"
	  . "CREATE FUNCTION f$_(int) RETURNS int LANGUAGE sql RETURN \$1;" } 1 .. $TABLES);
# Its rows are known by another number than its own.
$primary->safe_psql('postgres', 'VACUUM FULL t2');
my $standby = new_standby('standby', $primary);

my @questions = ((map { "SELECT count(*), sum(v) FROM t$_" } 1 .. $TABLES), (map { "SELECT v FROM t$_ WHERE id < 4 ORDER BY id" } 1 .. $TABLES),
	(map { "SELECT sum(f$_(v)) FROM t" . (1 + $_ % $TABLES) } 1 .. 3), 'SELECT sum(t1.v * t2.v) FROM t1 JOIN t2 USING (id)');

# Each session has a row of each table, and a function, so that none waits for another.
my @writers = map { { number => $_, session => session($primary), depth => 0 } } 1 .. 4;
my $prepared = 0;
my $control = session($primary);

sub table { return 't' . (1 + int rand $TABLES); }

# One step of a writer, as statements.
sub step
{
	my ($writer) = @_;
	my $n = $writer->{number};
	if ($writer->{depth} == 0)
	{
		return 'UPDATE ' . table() . " SET v = v + 1 WHERE id = $n" if rand() < 0.3;
		($writer->{depth}, $writer->{many}) = (1, 0);
		return 'BEGIN';
	}
	my $dice = rand();
	return 'UPDATE ' . table() . " SET v = v + 1 WHERE id = $n" if $dice < 0.4;
	return 'INSERT INTO ' . table() . " VALUES ($n + 8 * " . int(rand 1e8) . ', 1) ON CONFLICT DO NOTHING' if $dice < 0.5;
	if ($dice < 0.6) { $writer->{depth}++; return 'SAVEPOINT s'; }
	if ($dice < 0.7 && $writer->{depth} > 1) { $writer->{depth}--; return rand() < 0.5 ? 'ROLLBACK TO s; RELEASE s' : 'RELEASE s'; }
	return "CREATE OR REPLACE FUNCTION f$n(int) RETURNS int LANGUAGE sql RETURN \$1 + " . int rand 100 if $dice < 0.72;
	# A standby lets nobody in as long as a transaction has more than 64 of them.
	return q{DO $$ BEGIN FOR i IN 1 .. 40 LOOP BEGIN UPDATE } . table() . " SET v = v + 1 WHERE id = $n; EXCEPTION WHEN division_by_zero THEN END; END LOOP; END \$\$"
	  if $dice < 0.75 && !$writer->{many}++;
	$writer->{depth} = 0;
	# What it has locked stays so: it may be this writer's row.
	return ('PREPARE TRANSACTION ' . "'p$n'", (rand() < 0.8 ? 'COMMIT' : 'ROLLBACK') . " PREPARED 'p$n'") if $dice < 0.8;
	return $dice < 0.95 ? 'COMMIT' : 'ROLLBACK';
}

# Steps of writers that were prepared are done later, before that writer does anything else.
sub write_some
{
	for (1 .. $_[0])
	{
		my $writer = $writers[ rand @writers ];
		my $late = delete $writer->{late};
		my @steps = $late // step($writer);
		write_sql($writer->{session}, shift @steps);
		$writer->{late} = $steps[0] if @steps;
	}
	return;
}

# Asks with and without the cache, in one snapshot. Returns the statuses with the cache.
sub compare
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @asked = sort { rand() <=> 0.5 } @questions;
	my $output = $standby->safe_psql('postgres', join '', map {
		"BEGIN ISOLATION LEVEL REPEATABLE READ; $_; SELECT '=> ' || arrow_cache.last_status();\n"
		  . "SET LOCAL pg_arrow_cache.enabled = off; $_; SELECT '=>'; COMMIT;\n" } @asked);
	my (@wrong, @statuses);
	my @parts = split /^=>(.*)\n?/m, $output;
	for my $n (0 .. $#asked)
	{
		my ($given, $status, $right) = @parts[ 4 * $n .. 4 * $n + 2 ];
		push @statuses, $status;
		push @wrong, "$asked[$n] ($status): $given instead of $right" if $given ne $right;
	}
	is_deeply(\@wrong, [], "$name, seed $seed");
	return @statuses;
}

sub caught_up_with_all
{
	my $reader = session($standby);
	caught_up($control, $reader);
	$reader->quit;
	return;
}

my $hits = 0;
for my $n (1 .. $restarts)
{
	write_some(int rand 12);
	write_sql($control, 'CHECKPOINT') if rand() < 0.4;
	write_some(int rand 6);
	caught_up_with_all();
	$standby->safe_psql('postgres', 'CHECKPOINT') if rand() < 0.5;
	write_some(int rand 6);
	caught_up_with_all() if rand() < 0.7;
	compare("before restart $n") for 1 .. 2;
	my $way = (qw(fast fast fast fast smart immediate))[ rand 6 ];
	$standby->stop($way);
	write_some(int rand 8) if rand() < 0.5;
	write_sql($control, 'CHECKPOINT') if rand() < 0.2;
	$standby->start;
	my @first = rand() < 0.5 ? compare("at once after restart $n ($way)") : ();
	write_some(int rand 8) if rand() < 0.5;
	caught_up_with_all();
	push @first, compare("after restart $n ($way)");
	if (rand() < 0.6)
	{
		# All that holds the cache back ends.
		for my $writer (@writers)
		{
			write_sql($writer->{session}, delete $writer->{late} // ());
			write_sql($writer->{session}, rand() < 0.8 ? 'COMMIT' : 'ROLLBACK') if $writer->{depth} > 0;
			$writer->{depth} = 0;
		}
		caught_up_with_all();
		push @first, compare("after restart $n ($way), when all are over");
	}
	$hits += grep { /HIT/ } @first;
	compare("after restart $n ($way), again") for 1 .. 2;
}
ok($hits > 0, "$hits hits soon after restarts");
$_->quit for $control, map { $_->{session} } @writers;

done_testing();
