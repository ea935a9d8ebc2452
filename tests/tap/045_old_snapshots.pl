# While the server may remove rows that an old snapshot sees (old_snapshot_threshold), executing may raise an error where a stored answer would not. From 17 on there is no such
# setting.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $query = 'SELECT count(*), max(n) FROM t';
my $table = 'CREATE TABLE t AS SELECT g AS n FROM generate_series(1, 100) g';

my $usual = new_server('usual');
$usual->safe_psql('postgres', $table);
answers_are($usual, $query, '100|100', [ 'MISS', 'HIT' ], 'without the setting');
my $has_setting = $usual->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'old_snapshot_threshold'});
$usual->stop;

if ($has_setting)
{
	my $node = new_server('old_snapshots', conf => "old_snapshot_threshold = 1min\n");
	$node->safe_psql('postgres', $table);
	answers_are($node, $query, '100|100', [ 'BYPASS snapshot', 'BYPASS snapshot' ], 'with it');
	$node->stop;
}

done_testing();
