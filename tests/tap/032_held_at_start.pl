# A query that gets a placeholder is held up between planning and its snapshot, or between its snapshot and its start. Meanwhile definitions change that tell the
# planner something, so that the placeholder gives way and the query is planned at its start. Its rows must be those of before or of
# after, and none of a plan that is newer than its snapshot.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$PostgreSQL::Test::Utils::tmp_check/slow_starter.so";
chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include",
	"$FindBin::RealBin/slow_starter.c", '-o', $library);

my $node = new_server('held_at_start', conf => qq{
shared_preload_libraries = 'pg_arrow_cache,$library'
log_line_prefix = ''
});

# What the tables hold, what changes in one transaction, the query, and its rows before and after.
my @CASES = (
	[ 'a join that a unique index makes needless', q{
		CREATE TABLE l AS SELECT 1 AS v;
		CREATE TABLE d AS SELECT 1 AS id FROM generate_series(1, 3);
		CREATE TABLE e AS SELECT 1 AS id },
		q{DELETE FROM d WHERE ctid > '(0,1)'; CREATE UNIQUE INDEX ON d (id); INSERT INTO e VALUES (1)},
		'SELECT count(*) FROM l LEFT JOIN d ON d.id = l.v LEFT JOIN e ON e.id = l.v', 3, 2 ],
	[ 'rows that a constraint rules out', q{
		CREATE TABLE l AS SELECT 1 AS v FROM generate_series(1, 5);
		ALTER TABLE l ADD CHECK (v < 1) NOT VALID;
		CREATE TABLE e AS SELECT 1 AS v },
		q{DELETE FROM l; INSERT INTO e VALUES (1); ALTER TABLE l VALIDATE CONSTRAINT l_v_check},
		'SELECT (SELECT count(*) FROM l WHERE v = 1), (SELECT count(*) FROM e)', '5|1', '0|2' ],
	[ 'a partition', q{
		CREATE TABLE l (v int) PARTITION BY LIST (v);
		CREATE TABLE l_1 PARTITION OF l FOR VALUES IN (1);
		CREATE TABLE l_2 AS SELECT 2 AS v FROM generate_series(1, 4);
		CREATE TABLE e AS SELECT 1 AS v FROM generate_series(1, 9);
		INSERT INTO l VALUES (1), (1) },
		q{INSERT INTO l_2 VALUES (2); DELETE FROM e WHERE ctid > '(0,3)';
		  ALTER TABLE l ATTACH PARTITION l_2 FOR VALUES IN (2)},
		'SELECT (SELECT count(*) FROM l), (SELECT count(*) FROM e)', '2|9', '7|3' ],
);

for my $moment (qw(planned starting))
{
	for my $case (@CASES)
	{
		my ($what, $tables, $change, $query, $old, $new) = @$case;
		$node->safe_psql('postgres', "DROP TABLE IF EXISTS l, d, e, l_2; $tables; ANALYZE");
		my $folder = PostgreSQL::Test::Utils::tempdir();
		chmod 0777, $folder;
		my $session = $node->background_psql('postgres');
		$session->query_safe('SET constraint_exclusion = on; SET debug_print_plan = on; SET debug_pretty_print = off');
		is($session->query_safe($query), $old, "$moment, $what: before") for 1 .. 2;
		my $start = -s $node->logfile;
		$session->query_until(qr/begins/,
			"\\echo begins\nSET slow_starter.word = 'count'; SET slow_starter.folder = '$folder'; $query;\n");
		if ($moment eq 'starting')
		{
			wait_for_file("$folder/planned.reached");
			touch("$folder/planned.go");
		}
		wait_for_file("$folder/$moment.reached");
		$node->safe_psql('postgres', "BEGIN; $change; COMMIT");
		touch("$folder/$_.go") for qw(planned starting);
		my $rows = $session->query_safe("\\echo ends");
		$rows =~ s/\s*ends\s*\z//;
		like(substr(slurp_file($node->logfile), $start), qr/ArrowCachePlaceholder/, "$moment, $what: a placeholder was held up");
		like($rows, qr/\A\s*(\Q$old\E|\Q$new\E)\z/, "$moment, $what: the rows of one moment");
		is($session->query_safe($query), $new, "$moment, $what: after");
		$session->quit;
	}
}

$node->stop;
done_testing();
