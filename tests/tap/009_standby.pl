# A hot standby that preloads the library caches like a primary, whether or not its primary does: it stores, serves, exports and explains,
# counts what it did, and follows each change of the primary. Promoted, it goes on as a primary.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use StandbyTest;
use Test::More;

my $primary = new_server('primary', init => { allows_streaming => 1 });
is(stat($primary, 'standby_state'), 'primary', 'a primary says so');
$primary->safe_psql('postgres', q{
	CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 10);
	CREATE TABLE u (a int); INSERT INTO u VALUES (1);
	CREATE TABLE secret (a int); SELECT arrow_cache.set_policy('secret', 'never');
	CREATE DATABASE bare;
});
my $standby = new_standby('standby', $primary);

my $query = 'SELECT sum(a) FROM t';
my $repeatable = 'BEGIN ISOLATION LEVEL REPEATABLE READ';

sub catch_up
{
	$primary->wait_for_catchup($standby);
	return;
}

catch_up();
is(state($standby), 'replaying', 'a standby says that it follows');
answers_are($primary, $query, '55', [ 'MISS', 'HIT' ], 'the primary caches');
answers_are($standby, $query, '55', [ 'MISS', 'HIT', 'HIT' ], 'the standby caches on its own');
answers_are($standby, $query, '55', [ 'HIT', 'HIT' ], 'in REPEATABLE READ, too', before => "$repeatable;");
answers_are($standby, 'SELECT sum(a) FROM secret', '', [ 'BYPASS policy_never', 'BYPASS policy_never' ], 'policies come from the primary');
answers_are($standby, "/*+ no_arrow_cache */ $query", '55', [ 'BYPASS no_cache_hint', 'BYPASS no_cache_hint' ], 'hints');
is(stat($standby, 'entries, hits, misses, stores'), '1|4|1|1', 'what it did is counted');
is($standby->safe_psql('postgres', 'SELECT row_count, relations FROM arrow_cache.entries'), '1|{t}', 'its entries are shown');
is($standby->safe_psql('postgres', q{SELECT count(*) FROM arrow_cache.bypass_reasons WHERE reason = 'recovery' AND statements > 0}), '0',
	'nothing is executed because it is a standby');

# What looks at answers or exports them.
like($standby->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query"), qr/\ACustom Scan \(ArrowCache\)/,
	'EXPLAIN shows the hit');
is($standby->safe_psql('postgres', "SELECT count(*) > 0 FROM arrow_cache.why('$query')"), 't', 'why() answers');
my $hits = stat($standby, 'hits');
is($standby->safe_psql('postgres', "SELECT length(arrow_cache.query('$query')) > 0"), 't', 'Arrow streams');
is($standby->safe_psql('postgres', "SELECT count(*) > 0 FROM arrow_cache.messages('$query')"), 't', 'and messages');
cmp_ok(stat($standby, 'hits'), '>', $hits, 'are made of what is stored');
my $etag = $standby->safe_psql('postgres', "SELECT arrow_cache.etag('$query')");
isnt($etag, '', 'a change token');
is($standby->safe_psql('postgres', "SELECT arrow_cache.etag('$query')"), $etag, 'stays as it is');

# A reader with an older snapshot beside one with a newer.
my $session = $standby->background_psql('postgres');
$session->query_safe($repeatable);
is($session->query_safe($query), '55', 'a snapshot on the standby');
answers_are($standby, 'SELECT a FROM u', '1', [ 'MISS', 'HIT' ], 'another table');
$primary->safe_psql('postgres', 'UPDATE t SET a = a + 1');
catch_up();
isnt($standby->safe_psql('postgres', "SELECT arrow_cache.etag('$query')"), $etag, 'the change token changes');
answers_are($standby, $query, '65', [ 'STALE', 'HIT' ], 'the standby sees the change at once');
is($session->query_safe($query), '55', 'the older snapshot does not');
is($session->query_safe('SELECT arrow_cache.last_status()'), 'BYPASS', 'and is not served');
answers_are($standby, $query, '65', ['HIT'], 'the newer answer is still there');
answers_are($standby, 'SELECT a FROM u', '1', ['HIT'], 'so is the other table');
$session->query_safe('COMMIT');
is($session->query_safe($query), '65', 'its next snapshot sees the change');
is($session->query_safe('SELECT arrow_cache.last_status()'), 'HIT', 'and is served');

# A definition of the primary, and a policy.
$primary->safe_psql('postgres', 'ALTER TABLE t RENAME a TO b; ALTER TABLE t ADD a int DEFAULT 7');
catch_up();
answers_are($standby, $query, '70', [ 'MISS', 'HIT' ], 'a column of the same name is another');
$primary->safe_psql('postgres', q{SELECT arrow_cache.set_policy('u', 'never')});
catch_up();
answers_are($standby, 'SELECT a FROM u', '1', [ ('BYPASS policy_never') x 2 ], 'a policy that is set on the primary');

# The standby's own: flush and invalidate. What would write is refused by the server.
my $stored = stat($standby, 'entries');
cmp_ok($stored, '>=', 1, 'answers are stored');
is($standby->safe_psql('postgres', 'SELECT arrow_cache.flush()'), $stored, 'flush drops what the standby has');
answers_are($standby, $query, '70', [ 'MISS', 'HIT' ], 'and it fills again');
is($standby->safe_psql('postgres', q{SELECT arrow_cache.invalidate('t')}), '1', 'invalidate drops what rests on a table');
my (undef, undef, $error) = $standby->psql('postgres', q{SELECT arrow_cache.set_policy('t', 'never')});
like($error, qr/ERROR:  .*(?:recovery|read-only)/, 'a policy cannot be set there');
answers_are($primary, $query, '70', [ 'MISS', 'HIT' ], 'the primary keeps its own');

# A database without the SQL objects is cached all the same.
$primary->safe_psql('bare', 'CREATE TABLE t (a int); INSERT INTO t VALUES (7)');
catch_up();
my ($entries, $count) = split /\|/, stat($standby, 'entries, hits');
is($standby->safe_psql('bare', "$query;\n$query"), "7\n7", 'a database without the extension');
is(stat($standby, 'entries, hits'), join('|', $entries + 1, $count + 1), 'is served from the cache, too');
$primary->safe_psql('bare', 'UPDATE t SET a = 8');
catch_up();
is($standby->safe_psql('bare', $query), '8', 'and never stale');

# Promoted: a session from before and new ones are served, and writes invalidate.
answers_are($standby, $query, '70', [ 'MISS', 'HIT' ], 'stored before the promotion');
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'it is not promoted';
is(state($standby), 'primary', 'the standby has become a primary');
is($session->query_safe($query), '70', 'a session from before the promotion');
like($session->query_safe('SELECT arrow_cache.last_status()'), qr/^(?:STALE|MISS)$/, 'is not served what was stored in recovery');
answers_are($standby, $query, '70', ['HIT'], 'it has filled the cache');
$standby->safe_psql('postgres', 'INSERT INTO t VALUES (100, 30)');
answers_are($standby, $query, '100', [ 'STALE', 'HIT' ], 'a write on the promoted server invalidates');
is($session->query_safe($query), '100', 'the session from before sees it');
$session->quit;
answers_are($primary, $query, '70', ['HIT'], 'the former primary has its own rows');

done_testing();
