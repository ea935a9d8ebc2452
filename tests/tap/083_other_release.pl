# The log tells at the start if the server is of another minor release than the one that the library was built for, or is
# not built as the library expects, and says nothing of the kind otherwise.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$PostgreSQL::Test::Utils::tmp_check/other_release.so";
chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include",
	"$FindBin::RealBin/other_release.c", '-o', $library);

my $node = new_server('release');
my $number = $node->safe_psql('postgres', 'SHOW server_version_num');
my $release = int($number / 10000) . '.' . $number % 10000;
unlike(slurp_file($node->logfile), qr/was built for|not built as/, 'of a server as it is expected the log says nothing');

$node->append_conf('postgresql.conf', "shared_preload_libraries = '$library,pg_arrow_cache'\n");
my $log = -s $node->logfile;
$node->restart;
my $next = int($number / 10000) . '.' . ($number % 10000 + 1);
my $logged = slurp_file($node->logfile, $log);
like($logged, qr/LOG:  pg_arrow_cache was built for PostgreSQL \Q$release\E, and this server is \Q$next\E\n.*HINT:  A minor release may change/,
	'of another minor release the log tells both');
is(() = $logged =~ /was built for/g, 1, 'once');
unlike($logged, qr/not built as/, 'and nothing else');
$node->safe_psql('postgres', 'CREATE TABLE t (a int)');
answers_are($node, 'SELECT count(*) FROM t', '0', [ 'MISS', 'HIT' ], 'the cache works all the same');

done_testing();
