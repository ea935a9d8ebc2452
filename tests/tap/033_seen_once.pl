# Whatever becomes of a statement (hit, miss, stale hit, combined of parts, with the clock in its columns, export, compared hit): libraries that
# are preloaded before the cache and after it see what they see with the cache off, each event once: start, check of permissions, run, finish and
# end, with the client's text, the relations whose permissions it needs, and its rows. They are not told of times that the cache computes for itself,
# and see no planner's state without a query. The first one starts a copy of what the cache starts.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
my $tmp = $PostgreSQL::Test::Utils::tmp_check;
my %witness = map { $_ => "$tmp/hooks_$_.so" } qw(early late);
for my $name (sort keys %witness)
{
	system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include",
		qq{-DWITNESS="$name"}, $name eq 'early' ? '-DCOPIES' : (), "$FindBin::RealBin/hook_witness.c", '-o', $witness{$name});
}
my $node = new_server('seen_once', conf => qq{
shared_preload_libraries = '$witness{early},pg_arrow_cache,$witness{late}'
log_min_messages = log
max_parallel_workers_per_gather = 0
pg_arrow_cache.debug_force_fragments = on
});
$node->safe_psql('postgres', q{
	CREATE TABLE readings (at timestamptz, v int);
	INSERT INTO readings SELECT now() - g * interval '1 min', g FROM generate_series(1, 3000) g;
	CREATE TABLE indexed AS SELECT * FROM readings;
	CREATE INDEX ON indexed (at);
	CREATE TABLE pay (d date, v int) PARTITION BY RANGE (d);
	CREATE TABLE pay1 PARTITION OF pay FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
	CREATE TABLE pay2 PARTITION OF pay FOR VALUES FROM ('2024-02-01') TO ('2124-03-01');
	INSERT INTO pay SELECT date '2024-01-01' + g % 59, g FROM generate_series(1, 1000) g;
	CREATE VIEW of_pay AS SELECT d, v FROM pay;
	CREATE TABLE kinds (k int, name text);
	INSERT INTO kinds VALUES (0, 'even'), (1, 'odd');
	ANALYZE});

# What each witness sees of the statements with this mark in their text, and what became of them.
my $run = 0;
# How often the last statements executed each function.
my %executed;
sub seen
{
	my ($settings, $mode, $text, %params) = @_;
	my $mark = '/* run ' . ++$run . ' */';
	my $script = "$tmp/seen_once.sql";
	my @statements = ref $text ? @$text : ($text);
	my @lines = map { "$_;" } @$settings, (map { s/MARK/$mark/r } @statements);
	# Bound values, which pgbench sends as texts.
	unlink $script;
	append_to_file($script, "\\set low 0\n" . join("\n", @lines) . "\n");
	my $from = -s $node->logfile;
	if ($mode eq 'psql')
	{
		$node->safe_psql('postgres', join("\n", map { s/:low/0/r } @lines));
	}
	else
	{
		$node->run_log([ qw(pgbench -n -t 1 -M), $mode, '-f', $script, 'postgres' ]);
	}
	my $log = slurp_file($node->logfile, $from);
	my %seen;
	%executed = ();
	for my $name (sort keys %witness)
	{
		$seen{$name} = [ map { s/\Q$mark\E//r } $log =~ /witness $name: (.*\Q$mark\E.*)\n/g ];
	}
	$seen{nothing} = [ $log =~ /(?:NOTHING THAT IS BEING|terminated by signal).*/g ];
	$executed{$_}++ for $log =~ /witness late executes: (.*)\n/g;
	return \%seen;
}

# A name, the statement, and what happens before the second run, after which the first answer does not hold.
my @CASES = (
	[ 'a table', 'SELECT MARK count(*) FROM readings WHERE v > :low', 'UPDATE readings SET v = v WHERE v = 3' ],
	[ 'several rows', 'SELECT MARK v, at FROM readings WHERE v < :low + 20 ORDER BY v', 'UPDATE readings SET v = v WHERE v = 3' ],
	[ 'a window without an index', q{SELECT MARK count(*) FROM readings WHERE at > now() - interval '1 hour' AND v > :low}, 'UPDATE readings SET v = v WHERE v = 3' ],
	[ 'a window by an index', q{SELECT MARK count(*) FROM indexed WHERE at > now() - interval '1 hour' AND v > :low}, 'UPDATE indexed SET v = v WHERE v = 3' ],
	[ 'a window over partitions', q{SELECT MARK sum(v) FROM pay WHERE d > now() - interval '100 years' AND v > :low}, 'UPDATE pay SET v = v WHERE v = 3' ],
	[ 'the clock in columns', 'SELECT MARK now() AS t, sum(v) FROM readings WHERE v > :low', 'UPDATE readings SET v = v WHERE v = 3' ],
	[ 'the clock in columns of rows', 'SELECT MARK now() - at, v FROM readings WHERE v < :low + 20 ORDER BY v', 'UPDATE readings SET v = v WHERE v = 3' ],
	[ 'parts', 'SELECT MARK sum(v), count(*) FROM pay WHERE v > :low', 'UPDATE pay SET v = v WHERE v = 3' ],
	[ 'parts of a view', 'SELECT MARK d, sum(v) FROM of_pay WHERE v > :low GROUP BY d ORDER BY d', 'UPDATE pay SET v = v WHERE v = 3' ],
	[ 'parts that depend on settings', q{SELECT MARK date_trunc('month', d::timestamptz), count(*) FROM pay WHERE v > :low GROUP BY 1 ORDER BY 1}, 'UPDATE pay SET v = v WHERE v = 3' ],
	[ 'parts that may fail', 'SELECT MARK v % 2, sum(v) / count(*) FROM pay WHERE v > :low GROUP BY 1 ORDER BY 1', 'UPDATE pay SET v = v WHERE v = 3' ],
	[ 'parts with a dimension', 'SELECT MARK name, sum(v) FROM pay JOIN kinds ON k = v % 2 WHERE v > :low GROUP BY name ORDER BY name', 'UPDATE pay SET v = v WHERE v = 3' ],
	[ 'parts and the clock', 'SELECT MARK now() AS t, sum(v), count(*) FROM pay WHERE v > :low', 'UPDATE pay SET v = v WHERE v = 3' ],
);
# Statements that are not sent to pgbench: one text for each message.
my @OTHERS = (
	[ 'EXECUTE', [ 'PREPARE p (int) AS SELECT MARK sum(v) FROM readings WHERE v > $1', 'EXECUTE p (0)', 'EXECUTE p (7)' ] ],
	[ 'a cursor', [ 'BEGIN', 'DECLARE c CURSOR FOR SELECT MARK v FROM readings ORDER BY v', 'FETCH 5 FROM c', 'FETCH ALL FROM c', 'COMMIT' ] ],
	[ 'a cursor whose settings change', [ 'BEGIN', 'DECLARE c CURSOR FOR SELECT MARK at FROM readings ORDER BY v', q{SET TimeZone = 'Asia/Tokyo'},
			'FETCH 5 FROM c', 'COMMIT' ] ],
	[ 'a cursor with the clock', [ 'BEGIN', 'DECLARE c CURSOR FOR SELECT MARK v, now() - at FROM readings ORDER BY v', 'FETCH ALL FROM c', 'COMMIT' ] ],
	[ 'EXPLAIN', 'EXPLAIN SELECT MARK count(*) FROM readings' ],
	[ 'EXPLAIN ANALYZE', 'EXPLAIN ANALYZE SELECT MARK count(*) FROM readings' ],
	[ 'CREATE TABLE AS', 'CREATE TEMP TABLE copied AS SELECT MARK v FROM readings WHERE v < 5' ],
	[ 'COPY', 'COPY (SELECT MARK v FROM readings WHERE v < 20 ORDER BY v) TO STDOUT (FORMAT csv)' ],
	[ 'COPY of parts', 'COPY (SELECT MARK sum(v), count(*) FROM pay) TO STDOUT' ],
	[ 'COPY with the clock', 'COPY (SELECT MARK v, now() - at FROM readings WHERE v < 20) TO STDOUT' ],
	[ 'COPY as Arrow', 'COPY (SELECT MARK v FROM readings WHERE v < 20) TO STDOUT (FORMAT arrow)' ],
	[ 'COPY as Arrow with the clock', 'COPY (SELECT MARK v, now() - at FROM readings WHERE v < 20) TO STDOUT (FORMAT arrow)' ],
	[ 'query', q{SELECT length(arrow_cache.query('SELECT MARK v FROM readings WHERE v < 20'))} ],
	[ 'fetch', q{SELECT count(*) FROM arrow_cache.fetch('SELECT MARK v FROM readings WHERE v < 20')} ],
	[ 'messages', q{SELECT count(*) FROM arrow_cache.messages('SELECT MARK v FROM readings WHERE v < 20')} ],
);
my @OFF = ('SET pg_arrow_cache.enabled = off');

for my $case (@CASES)
{
	my ($name, $text, $change) = @$case;
	for my $mode (qw(simple extended prepared))
	{
		my $expected = seen(\@OFF, $mode, $text);
		my %allowed = %executed;
		is(scalar @{ $expected->{early} }, 5, "$name, $mode: five events");
		$node->safe_psql('postgres', 'SELECT arrow_cache.flush()');
		for my $step ('a miss', 'a hit', 'outdated', 'compared', 'a stale hit')
		{
			$node->safe_psql('postgres', $change) if $step eq 'outdated' || $step eq 'a stale hit';
			my @settings = $step eq 'compared' ? 'SET pg_arrow_cache.verify_sample_rate = 1' : $step eq 'a stale hit' ? 'SET pg_arrow_cache.max_stale = 60000' : ();
			is_deeply(seen(\@settings, $mode, $text), $expected, "$name, $mode: $step");
			is_deeply([ grep { $executed{$_} > ($allowed{$_} // 0) } grep { /now|interval/ } sort keys %executed ], [], "$name, $mode: functions of $step");
		}
	}
}
for my $case (@OTHERS)
{
	my ($name, $text) = @$case;
	my $expected = seen(\@OFF, 'psql', $text);
	cmp_ok(scalar @{ $expected->{early} }, '>=', 3, "$name: some events");
	$node->safe_psql('postgres', 'SELECT arrow_cache.flush()');
	is_deeply(seen([], 'psql', $text), $expected, "$name: $_") for 'a miss', 'a hit', 'a second hit';
}

# These ways were taken.
for my $counter (qw(hits stale_hits fragment_runs verify_checks))
{
	cmp_ok(stat($node, $counter), '>=', 10, "there were $counter");
}
is(stat($node, 'verify_mismatches'), '0', 'and all compared hits agreed');

$node->stop;
done_testing();
