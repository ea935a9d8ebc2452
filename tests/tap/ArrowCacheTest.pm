# What the scripts of this suite share: servers that preload the library, and ways to read the status of a statement.

package ArrowCacheTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(new_server new_watched_server initialize answer answers_are stat bytes_at_rest
	create_big wait_for_fill wait_for_file touch $SLOW_FILL);

# Each server of this suite that preloads the library is checked before it is stopped, and at the end: what arrow_cache.check() finds fails
# the script.
my $found = '';
my $stop = \&PostgreSQL::Test::Cluster::stop;
{
	no warnings 'redefine';
	*PostgreSQL::Test::Cluster::stop = sub {
		check_cache($_[0]);
		goto &$stop;
	};
	my $new = \&PostgreSQL::Test::Cluster::new;
	my @nodes;
	*PostgreSQL::Test::Cluster::new = sub {
		my $node = $new->(@_);
		push @nodes, $node;
		return $node;
	};

	# A fresh data directory is a copy of the one that tests/run has made: initdb takes longer than most of what is asked of a server.
	my $run = \&PostgreSQL::Test::Utils::system_or_bail;
	*PostgreSQL::Test::Utils::system_or_bail = sub {
		my ($program, undef, $directory, @options) = @_;
		if ($program eq 'initdb' && defined $ENV{FRESH_DATA} && "@options" eq $ENV{FRESH_DATA_OPTIONS})
		{
			@_ = ('cp', '-a', '--reflink=auto', $ENV{FRESH_DATA}, $directory);
		}
		goto &$run;
	};

	# Runs before the servers are stopped, since it was compiled after that module.
	sub check_all { check_cache($_) for @nodes; return; }
}

END
{
	my $status = $?;
	check_all();
	if ($found ne '')
	{
		print "not ok 1000000 - the caches of all servers agree with themselves\n$found";
		$status ||= 1;
	}
	$? = $status;
}

# Servers that do not answer, have no extension in database postgres, or do not preload the library are left alone.
sub check_cache
{
	my ($node) = @_;
	return unless defined $node->{_pid} && kill 0, $node->{_pid};
	my $ask = sub {
		my ($rows) = '';
		my $status = eval {
			$node->psql('postgres', $_[0], stdout => \$rows, timeout => 20, timed_out => \my $late,
				extra_params => [ '-v', 'VERBOSITY=terse' ], stderr => \my $said)
		};
		return defined $status && $status == 0 ? $rows : '';
	};
	local $ENV{PGCONNECT_TIMEOUT} = 10;
	return if $ask->(q{SELECT to_regprocedure('arrow_cache.check()') IS NOT NULL AND current_setting('shared_preload_libraries') ~ 'pg_arrow_cache'}) ne 't';
	my $rows = $ask->('SELECT part, finding, detail FROM arrow_cache.check()');
	$found .= '# ' . $node->name . ": $_\n" for split /\n/, $rows;
	return;
}

# A query whose first branch fills several batches at once and whose second one then computes for a very long time: while it does,
# part of the result stands in shared memory and the entry is not complete.
our $SLOW_FILL = q{SELECT a, pad FROM big UNION ALL
	SELECT count(*)::int, 'end' FROM big x, big y, big z WHERE x.a + y.a + z.a < 0};

# The table of the query above: 20000 rows of about 110 bytes.
sub create_big
{
	my ($node) = @_;
	$node->safe_psql('postgres',
		q{CREATE TABLE big AS SELECT g AS a, repeat(chr(97 + g % 26), 100) AS pad FROM generate_series(1, 20000) g});
	return;
}

# Every result is stored, however quick it was to compute, so that outcomes are repeatable. Statements are not
# logged, so that the log is short enough to be searched.
my $CONF = q{
shared_preload_libraries = 'pg_arrow_cache'
pg_arrow_cache.min_execution_time = 0
pg_arrow_cache.memory = 64MB
pg_arrow_cache.max_entries = 1000
log_statement = none
autovacuum = off
};

# Waits for a file that a library of a test makes where it holds a session up.
sub wait_for_file
{
	my ($path) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	until (-e $path)
	{
		die "$path was never made" if time > $deadline;
		usleep(10_000);
	}
	return;
}

# Makes a file that such a library waits for.
sub touch
{
	my ($path) = @_;
	open my $file, '>', $path or die "$path: $!";
	close $file;
	return;
}

# A new server, not started. Parameters: `conf` is appended to the settings above, `init` goes to Cluster::init.
sub initialize
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(extra => [ '--no-locale', '--encoding=UTF8' ], %{ $params{init} // {} });
	$node->append_conf('postgresql.conf', $CONF . ($params{conf} // ''));
	return $node;
}

# A new server, started, with the extension in database postgres.
sub new_server
{
	my ($name, %params) = @_;
	my $node = initialize($name, %params);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_arrow_cache');
	return $node;
}

# The same with a table t of 100 rows, beside pg_stat_statements and auto_explain, which logs every execution.
# `libraries` are preloaded in this order.
sub new_watched_server
{
	my ($name, $libraries, %params) = @_;
	my $conf = qq{
shared_preload_libraries = '$libraries'
compute_query_id = on
auto_explain.log_min_duration = 0
auto_explain.log_analyze = on
auto_explain.log_timing = off
};
	my $node = new_server($name, conf => $conf . ($params{conf} // ''));
	$node->safe_psql('postgres', q{
		CREATE EXTENSION pg_stat_statements;
		CREATE TABLE t (a int, b text);
		INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 100) g;
	});
	return $node;
}

# Runs one query in a session of its own, after the statements in `before`. Returns its rows and its status.
sub answer
{
	my ($node, $query, %params) = @_;
	my $database = $params{database} // 'postgres';
	my $before = $params{before} // '';
	my $output = $node->safe_psql($database,
		"$before\n$query;\nSELECT '=> ' || arrow_cache.last_status() || coalesce(' ' || arrow_cache.last_reason(), '')");
	my ($rows, $status) = $output =~ /\A(.*?)\n?=> (.*)\z/s or die "no status in: $output";
	return ($rows, $status);
}

# Asserts that a query gives these rows each time, with these statuses one after the other.
sub answers_are
{
	my ($node, $query, $rows, $statuses, $name, %params) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @got = map { [ answer($node, $query, %params) ] } @$statuses;
	is_deeply(\@got, [ map { [ $rows, $_ ] } @$statuses ], $name);
	return;
}

# One column of arrow_cache.stats.
sub stat
{
	my ($node, $column) = @_;
	return $node->safe_psql('postgres', "SELECT $column FROM arrow_cache.stats");
}

# Drops all entries and returns what remains: entries and bytes used.
sub bytes_at_rest
{
	my ($node) = @_;
	$node->safe_psql('postgres', 'SELECT arrow_cache.flush()');
	return $node->safe_psql('postgres', 'SELECT entries, bytes_used FROM arrow_cache.stats');
}

# Waits until part of a result that is still being computed stands in shared memory. No entry shows it.
sub wait_for_fill
{
	my ($node, $at_rest) = @_;
	my (undef, $bytes) = split /\|/, $at_rest;
	return $node->poll_query_until('postgres',
		"SELECT entries = 0 AND bytes_used > $bytes + 500000 FROM arrow_cache.stats");
}

1;
