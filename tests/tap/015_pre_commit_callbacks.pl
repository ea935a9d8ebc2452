# Another library writes in its own PRE_COMMIT callback, through SPI or straight into a heap. The server calls such callbacks
# in the reverse order of their registration, so where the library is listed decides whether its turn comes before the
# cache's or after it. Its changes are missed in neither case.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use StandbyTest qw(session);
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$PostgreSQL::Test::Utils::tmp_check/late_writer.so";
chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include",
	"$FindBin::RealBin/late_writer.c", '-o', $library);

my %LOADED = (
	listed_after => "shared_preload_libraries = 'pg_arrow_cache,$library'",
	listed_before => "shared_preload_libraries = '$library,pg_arrow_cache'",
	loaded_by_sessions => "session_preload_libraries = '$library'",
);

# What a transaction does itself, what the library adds to it, and which tables that changes.
my @OWN = (
	[ 'reads', 'SELECT count(*) FROM elsewhere' ],
	[ 'a write of another table', 'INSERT INTO elsewhere VALUES (1)' ],
	[ 'track_counts = off', 'SET LOCAL track_counts = off' ],
	[ 'a write of the same tables',
		'INSERT INTO t VALUES (5); INSERT INTO low VALUES (5); DELETE FROM child WHERE id = 1' ],
);
my @LATE = (
	[ 'SPI: INSERT', statement => 'INSERT INTO t VALUES (1)', [qw(t)] ],
	[ 'SPI: UPDATE through a trigger', statement => 'UPDATE watched SET v = v + 1', [qw(watched t)] ],
	[ 'SPI: INSERT routed to a partition', statement => 'INSERT INTO parts VALUES (1)', [qw(parts low)] ],
	[ 'SPI: DELETE that cascades', statement => 'DELETE FROM parent WHERE id = (SELECT max(id) FROM parent)',
		[qw(parent child)] ],
	[ 'SPI: a WITH clause that writes', statement => 'WITH w AS (INSERT INTO t VALUES (1) RETURNING 1) SELECT FROM w',
		[qw(t)] ],
	[ 'SPI: TRUNCATE', statement => 'TRUNCATE filled', [qw(filled)] ],
	[ 'SPI: CREATE OR REPLACE VIEW', statement => 'CREATE OR REPLACE VIEW shown AS SELECT 1 AS v FROM elsewhere',
		[qw(shown)] ],
	[ 'heap', heap => 't', [qw(t)] ],
	[ 'heap of a partition', heap => 'high', [qw(parts high)] ],
);

# Tables as each case finds them, with an answer for each in the cache.
my $SCHEMA = q{
	CREATE SCHEMA work;
	SET search_path = work;
	CREATE TABLE elsewhere (v int);
	INSERT INTO elsewhere VALUES (1);
	CREATE TABLE untouched AS SELECT 1 AS v;
	CREATE TABLE t (v int);
	CREATE TABLE watched AS SELECT 1 AS v;
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN INSERT INTO t VALUES (1); RETURN NULL; END';
	CREATE TRIGGER note AFTER UPDATE ON watched FOR EACH ROW EXECUTE FUNCTION note();
	CREATE TABLE parts (v int) PARTITION BY RANGE (v);
	CREATE TABLE low PARTITION OF parts FOR VALUES FROM (1) TO (10);
	CREATE TABLE high PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (1);
	CREATE TABLE parent AS SELECT g AS id FROM generate_series(1, 3) g;
	ALTER TABLE parent ADD PRIMARY KEY (id);
	CREATE TABLE child AS SELECT id FROM parent;
	ALTER TABLE child ADD FOREIGN KEY (id) REFERENCES parent ON DELETE CASCADE;
	CREATE TABLE filled AS SELECT 1 AS v;
	CREATE VIEW shown AS SELECT 0 AS v FROM elsewhere;
};
my $PATH = 'SET search_path = work;';

for my $when (sort keys %LOADED)
{
	my $node = new_server($when, conf => "$LOADED{$when}\nmax_prepared_transactions = 5\n");
	my ($reader, $writer) = map { session($node, $PATH) } 1 .. 2;
	# Reads a table three times and once without the cache. Gives the three answers, their statuses, and the last one.
	my $look = sub {
		my ($table) = @_;
		my $query = "SELECT x.* FROM $table x ORDER BY 1;";
		my $cached = "$query SELECT '=> ' || arrow_cache.last_status();";
		my @read = split /\n?=> (\w+)\n?/, $reader->query_safe(
			$cached x 3 . " SET pg_arrow_cache.enabled = off; $query RESET pg_arrow_cache.enabled;");
		return ([ @read[0, 2, 4] ], [ @read[1, 3, 5] ], $read[6] // '');
	};
	for my $run (map { my $own = $_; map { [ @$own, $_ ] } 'COMMIT', q{PREPARE TRANSACTION 'p'} } @OWN)
	{
		my ($first, $sql, $end) = @$run;
		$writer->query_safe("DROP SCHEMA IF EXISTS work CASCADE; $SCHEMA");
		for my $late (@LATE)
		{
			my ($what, $setting, $value, $changed) = @$late;
			my $name = "$when, after $first: $what ($end)";
			my %before = map { $_ => ($look->($_))[2] } @$changed;
			$writer->query_safe("BEGIN; $sql; SET LOCAL late_writer.$setting = '$value'; $end;");
			if ($end =~ /^PREPARE/)
			{
				# TRUNCATE and CREATE keep readers waiting until the end.
				if ($what !~ /TRUNCATE|CREATE/)
				{
					is_deeply(($look->($_))[0], [ ($before{$_}) x 3 ], "$name: $_ while prepared") for @$changed;
				}
				$writer->query_safe(q{COMMIT PREPARED 'p';});
			}
			for my $table (@$changed)
			{
				my ($rows, $statuses, $uncached) = $look->($table);
				isnt($uncached, $before{$table}, "$name: $table has changed");
				is_deeply($rows, [ ($uncached) x 3 ], "$name: $table is read as it is");
				is($statuses->[2], 'HIT', "$name: $table is cached again");
			}
		}
		$look->('untouched');
		is_deeply(($look->('untouched'))[1], [ ('HIT') x 3 ], "$when, after $first: another table ($end)");
	}
	$_->quit for $reader, $writer;
	$node->stop;
}

done_testing();
