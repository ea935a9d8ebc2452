# COPY ... (FORMAT arrow) beside libraries that watch statements: pg_stat_statements, auto_explain, and one that audits, loaded
# before the cache and after it. Each sees the statement once, with its text, and counts the same as for a COPY in CSV. One thing
# differs: a table is read by a query, as COPY itself reads a table with row security, and not by COPY's own scan.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
my %witness = map { $_ => "$PostgreSQL::Test::Utils::tmp_check/witness_$_.so" } qw(early late);
for my $name (sort keys %witness)
{
	system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include",
		qq{-DWITNESS="$name"}, "$FindBin::RealBin/utility_witness.c", '-o', $witness{$name});
}

# A statement with its format left open, and its rows. The same statement is a miss at first and then a hit.
my @STATEMENTS = (
	[ 'a query', 'COPY (SELECT a, b FROM t ORDER BY a) TO STDOUT (FORMAT %s)', 100 ],
	[ 'a table', 'COPY t TO STDOUT (FORMAT %s)', 100 ],
	[ 'a column list', 'COPY t (b) TO STDOUT (FORMAT %s)', 100 ],
	[ 'no rows', 'COPY (SELECT a FROM t WHERE a < 0) TO STDOUT (FORMAT %s)', 0 ],
);

for my $libraries (
	"pg_stat_statements,auto_explain,$witness{early},pg_arrow_cache,$witness{late}",
	"$witness{early},pg_arrow_cache,$witness{late},auto_explain,pg_stat_statements")
{
	my $order = $libraries =~ /^pg_stat/ ? 'statistics first' : 'statistics last';
	my $node = new_watched_server($order =~ s/ /_/r, $libraries, conf => "log_min_messages = log\n");

	# What the log tells of some statements, and what they print.
	my $watch = sub {
		my ($sql, %params) = @_;
		my $from = -s $node->logfile;
		$node->psql('postgres', $sql, stdout => \my $out, stderr => \my $err, %params);
		my $log = slurp_file($node->logfile, $from);
		my %said = (out => $out, err => $err, log => $log);
		for my $name (sort keys %witness)
		{
			$said{$name} = [ $log =~ /witness $name (?:sees|counts) (.*?);?\n/g ];
			$said{"$name checks"} = [ $log =~ /witness $name checks (.*)\n/g ];
		}
		$said{plans} = [ $log =~ /plan:\n\tQuery Text: (.*?);?\n/g ];
		$said{'plan rows'} = [ $log =~ /plan:\n\tQuery Text: .*\n\t\S.*\(actual rows=(\d+)/g ];
		return \%said;
	};
	# Calls and rows of each statement that pg_stat_statements knows, by its text, formats and the queries that read tables put aside.
	my $counted = sub {
		my ($format) = @_;
		return $node->safe_psql('postgres', qq{
			SET pg_arrow_cache.enabled = off;
			SELECT toplevel, replace(query, '$format', '%s'), calls, rows FROM pg_stat_statements
			WHERE query LIKE 'COPY%' AND (toplevel OR query LIKE 'COPY (%') ORDER BY 2, 1});
	};

	for my $track (qw(top all))
	{
		$node->append_conf('postgresql.conf', "pg_stat_statements.track = $track");
		$node->reload;
		$node->poll_query_until('postgres', "SELECT current_setting('pg_stat_statements.track') = '$track'");
		my %seen;
		for my $format (qw(csv arrow))
		{
			$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset(), arrow_cache.flush()');
			for my $run (1 .. 3)
			{
				for my $case (@STATEMENTS)
				{
					my ($what, $template, $rows) = @$case;
					my $statement = sprintf $template, $format;
					my $name = "$order, track = $track: $what, $format, run $run";
					my $said = $watch->($statement);
					is($said->{err}, '', "$name: no complaint");
					is_deeply($said->{$_}, [ "top: $statement", "COPY $rows" ], "$name: the $_ witness sees it once")
						for sort keys %witness;
					is_deeply($said->{plans}, [ ($statement) x ($format eq 'arrow' || $template =~ /SELECT/) ],
						"$name: auto_explain logs its query once");
					is_deeply($said->{'plan rows'}, [ ($rows) x @{ $said->{plans} } ], "$name: with its rows");
					push @{ $seen{$format} }, [ $said->{'early checks'}, $said->{'late checks'} ];
					next if $format eq 'csv';
					like($said->{out}, qr/\A\xff\xff\xff\xff.*\xff\xff\xff\xff\0\0\0\0\n?\z/s, "$name: a stream comes out");
				}
			}
			$seen{"$format counted"} = $counted->($format);
		}
		is_deeply($seen{arrow}, $seen{csv}, "$order, track = $track: checks of permissions are those of a CSV");
		is($seen{'arrow counted'}, $seen{'csv counted'}, "$order, track = $track: calls and rows are those of a CSV");
		like($seen{'arrow counted'}, qr/^t\|\QCOPY t TO STDOUT (FORMAT %s)\E\|3\|300$/m, "$order, track = $track: all three runs");
	}
	isnt(stat($node, 'hits'), '0', "$order: some runs were hits");

	# Statements that fail pass every hook, too.
	for my $case (
		[ 'an unknown option', 'COPY t TO STDOUT (FORMAT arrow, COLOUR red)', qr/"colour"/ ],
		[ 'a wrong value', 'COPY t TO STDOUT (FORMAT arrow, LIMIT x)', qr/"limit"/ ],
		[ 'a failing query', 'COPY (SELECT 1 / (a - 50) FROM t) TO STDOUT (FORMAT arrow)', qr/division by zero/ ],
		[ 'from a client', 'COPY t FROM STDIN (FORMAT arrow)', qr/arrow/ ])
	{
		my ($what, $statement, $error) = @$case;
		my $said = $watch->($statement);
		like($said->{err}, $error, "$order: $what is an error");
		is($said->{late}[0], "top: $statement", "$order: $what: the late witness sees it");
		cmp_ok(scalar(grep { /^top/ } @{ $said->{late} }), '==', 1, "$order: $what: once");
		cmp_ok(scalar(@{ $said->{early} }), '<=', 1, "$order: $what: the early witness at most once");
	}

	# One of several in a string: each witness sees its part of the text.
	my @parts = ('COPY t (a) TO STDOUT (FORMAT arrow)', ' COPY (SELECT 1) TO STDOUT', ' COPY t (b) TO STDOUT (FORMAT arrow, LIMIT 5)');
	my $said = $watch->(join ';', @parts);
	for my $name (sort keys %witness)
	{
		is_deeply([ map { s/^top: *//r } grep { /^top/ } @{ $said->{$name} } ], [ map { s/^ *//r } @parts ],
			"$order: several statements, the $name witness sees each");
		is_deeply([ grep { !/^top/ } @{ $said->{$name} } ], [ 'COPY 100', 'COPY 1', 'COPY 5' ],
			"$order: several statements, the $name witness counts each");
	}
	$node->stop;
}

done_testing();
