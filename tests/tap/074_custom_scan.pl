# A scan of another library, without a plan below it, may read what no relation stands for: such a query is not cached.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$PostgreSQL::Test::Utils::tmp_check/custom_scan.so";
chomp(my $includes = `$ENV{PG_CONFIG} --includedir-server`);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$includes", "$FindBin::RealBin/custom_scan.c",
	'-o', $library);

my $node = new_server('custom_scan', conf => "shared_preload_libraries = '$library,pg_arrow_cache'\n");
$node->safe_psql('postgres', 'CREATE TABLE elsewhere (v int); CREATE TABLE t AS SELECT 7 AS v');
for my $case ([ 'alone', 'SELECT v FROM elsewhere', '%s' ], [ 'joined', 'SELECT t.v, e.v FROM t, elsewhere e', '7|%s' ],
	[ 'in a sub-query', 'SELECT v FROM t WHERE v > (SELECT min(v) FROM elsewhere)', '7' ])
{
	my ($name, $query, $rows) = @$case;
	for my $value (1, 2)
	{
		answers_are($node, $query, $rows =~ s|%s|$value|r, [ ('BYPASS too_complex') x 2 ], "$name, value $value", before => "SET custom_scan.value = $value;");
	}
	is($node->safe_psql('postgres', "SELECT cacheable, reason FROM arrow_cache.why('$query')"), 'f|too_complex', "$name: why() tells");
}
answers_are($node, 'SELECT v FROM t', '7', [ 'MISS', 'HIT' ], 'other tables are cached');

$node->stop;
done_testing();
