# Libraries that follow track_counts themselves, preloaded before this one and after it: each hears of every change, and so does
# this one.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
my %witness = map { $_ => "$PostgreSQL::Test::Utils::tmp_check/setting_witness_$_.so" } qw(early late);
for my $name (sort keys %witness)
{
	system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include",
		qq{-DWITNESS="$name"}, "$FindBin::RealBin/setting_witness.c", '-o', $witness{$name});
}

my $node = new_server('settings', conf => "shared_preload_libraries = '$witness{early},pg_arrow_cache,$witness{late}'\n");
# The leaf is changed through its root, which only the server's own list tells.
$node->safe_psql('postgres', q{
	CREATE TABLE root (v int) PARTITION BY RANGE (v);
	CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (100);
});
my $query = 'SELECT count(*) FROM leaf';
answers_are($node, $query, '0', [ 'MISS', 'HIT' ], 'cached');

my $log = -s $node->logfile;
$node->safe_psql('postgres', q{
	BEGIN;
	SET LOCAL track_counts = off;
	INSERT INTO root VALUES (1);
	SET LOCAL track_counts = on;
	COMMIT;
});
my $logged = slurp_file($node->logfile, $log);
for my $name (sort keys %witness)
{
	# The end of the transaction may or may not set the value again; this depends on the server.
	my @heard = ($logged =~ /witness $name sees (\w+)/g)[ 0, 1 ];
	is_deeply(\@heard, [ 'off', 'on' ], "the $name witness hears of each change");
}
answers_are($node, $query, '1', [ 'STALE', 'HIT' ], 'and the change is seen');

done_testing();
