# Without save_on_shutdown the cache is only in memory: after a restart it is empty, serves nothing stale, and fills again.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $node = new_server('restart', conf => "pg_arrow_cache.save_on_shutdown = off\n");
$node->safe_psql('postgres', q{
	CREATE TABLE t (a int);
	INSERT INTO t SELECT generate_series(1, 100);
	CREATE TABLE u (a int);
	INSERT INTO u SELECT generate_series(1, 10);
});
my $at_rest = bytes_at_rest($node);

my ($t, $u) = ('SELECT sum(a) FROM t', 'SELECT sum(a) FROM u');

for my $mode (qw(fast immediate))
{
	answers_are($node, $t, '5050', [ 'MISS', 'HIT' ], "before a restart ($mode): t is cached");
	answers_are($node, $u, '55', [ 'MISS', 'HIT' ], "before a restart ($mode): u is cached");
	is(stat($node, 'entries'), '2', "before a restart ($mode): two entries");

	$node->stop($mode);
	$node->start;

	is(stat($node, 'entries, bytes_used, hits, stores'),
		"$at_rest|0|0", "after a restart ($mode): no entries, starting bytes, fresh counters");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM arrow_cache.entries'),
		'0', "after a restart ($mode): the view of entries is empty");
	answers_are($node, $t, '5050', [ 'MISS', 'HIT', 'HIT' ], "after a restart ($mode): the cache works again");

	# The first write after recovery meets slots that nobody has touched since.
	$node->safe_psql('postgres', 'INSERT INTO t VALUES (1000)');
	answers_are($node, $t, '6050', [ 'STALE', 'HIT' ], "after a restart ($mode): a write invalidates");
	$node->safe_psql('postgres', 'DELETE FROM t WHERE a = 1000');
	answers_are($node, $u, '55', [ 'MISS', 'HIT' ], "after a restart ($mode): the other table is cached, too");
	$node->restart;
}

# A restart with another size of the cache lays it out anew.
$node->append_conf('postgresql.conf', "pg_arrow_cache.memory = 16MB\npg_arrow_cache.max_entries = 5");
$node->restart;
is(stat($node, 'max_entries, bytes_total'), '5|' . 16 * 1024 * 1024, 'the new size holds');
answers_are($node, $t, '5050', [ 'MISS', 'HIT' ], 'the resized cache works');

done_testing();
