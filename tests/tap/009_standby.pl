# A hot standby replays changes that no executor makes, so it neither serves nor stores: it executes every query.
# After promotion it caches like any other server.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $primary = new_server('primary', init => { allows_streaming => 1 });
$primary->safe_psql('postgres', 'CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 10)');
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my $query = 'SELECT sum(a) FROM t';
my $repeatable = 'BEGIN ISOLATION LEVEL REPEATABLE READ';

$primary->wait_for_catchup($standby);
answers_are($primary, $query, '55', [ 'MISS', 'HIT' ], 'the primary caches');
answers_are($standby, $query, '55', [ ('BYPASS recovery') x 2 ], 'the standby does not');
is(stat($standby, 'entries, hits, misses, stores'), '0|0|0|0', 'nothing is stored there');
cmp_ok($standby->safe_psql('postgres', q{SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'recovery'}),
	'>=', 2, 'the reason is counted');

# A reader with an older snapshot beside one with a newer.
my $session = $standby->background_psql('postgres');
$session->query_safe($repeatable);
is($session->query_safe($query), '55', 'a snapshot on the standby');
$primary->safe_psql('postgres', 'UPDATE t SET a = a + 1');
$primary->wait_for_catchup($standby);
is((answer($standby, $query))[0], '65', 'the standby sees the change at once');
is($session->query_safe($query), '55', 'the older snapshot does not');
$session->query_safe('COMMIT');

is($standby->safe_psql('postgres', q{SELECT arrow_cache.query('SELECT a FROM t') IS NOT NULL}), 't',
	'Arrow streams work on the standby');
is(stat($standby, 'entries'), '0', 'and are not stored');
is($standby->safe_psql('postgres', 'SELECT arrow_cache.flush()'), '0', 'flush has nothing to do');

# Promoted: a session from before and new ones are served, and writes invalidate.
$standby->promote;
is($session->query_safe($query), '65', 'a session from before the promotion');
answers_are($standby, $query, '65', ['HIT'], 'which has filled the cache');
$standby->safe_psql('postgres', 'INSERT INTO t VALUES (100)');
answers_are($standby, $query, '165', [ 'STALE', 'HIT' ], 'a write on the promoted server invalidates');
is($session->query_safe($query), '165', 'the session from before sees it');
$session->quit;
answers_are($primary, $query, '65', [ 'STALE', 'HIT' ], 'the former primary has its own rows');

done_testing();
