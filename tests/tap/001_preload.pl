# Without shared_preload_libraries there is no shared memory: the SQL functions say what to do, and a library that is loaded
# in another way changes nothing.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('not_preloaded');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_arrow_cache;
	CREATE TABLE t (a int);
	INSERT INTO t SELECT generate_series(1, 10);
	CREATE TABLE watched (a int);
	CREATE TRIGGER watch AFTER INSERT ON watched
		FOR EACH STATEMENT EXECUTE FUNCTION arrow_cache.invalidate_on_change();
});

# One way to call each function; the test below makes sure that none is forgotten.
my %call = (
	advise => 'SELECT * FROM arrow_cache.advise()',
	bypass_reasons_data => 'SELECT * FROM arrow_cache.bypass_reasons',
	entries_data => 'SELECT * FROM arrow_cache.entries',
	check => 'SELECT * FROM arrow_cache.check()',
	etag => q{SELECT arrow_cache.etag('SELECT a FROM t')},
	fetch => q{SELECT arrow_cache.fetch('SELECT a FROM t')},
	flush => 'SELECT arrow_cache.flush()',
	invalidate => q{SELECT arrow_cache.invalidate('t')},
	invalidate_on_change => 'INSERT INTO watched VALUES (1)',
	last_reason => 'SELECT arrow_cache.last_reason()',
	last_status => 'SELECT arrow_cache.last_status()',
	messages => q{SELECT * FROM arrow_cache.messages('SELECT a FROM t')},
	policy => q{SELECT arrow_cache.policy('t')},
	query => q{SELECT arrow_cache.query('SELECT a FROM t')},
	relations_data => 'SELECT * FROM arrow_cache.relations',
	reset_stats => 'SELECT arrow_cache.reset_stats()',
	schema => q{SELECT * FROM arrow_cache.schema('SELECT a FROM t')},
	set_policy => q{SELECT arrow_cache.set_policy('t', 'never')},
	statement_counts_data => 'SELECT * FROM arrow_cache.statement_counts_data()',
	stats_data => 'SELECT * FROM arrow_cache.stats',
	tracked_data => 'SELECT * FROM arrow_cache.tracked',
	version => q{SELECT arrow_cache.version('t')},
	wait => q{CALL arrow_cache.wait('none'::text, '0')},
	why => q{SELECT * FROM arrow_cache.why('SELECT a FROM t')},
);
# That of zones is arithmetic, and needs no memory.
is($node->safe_psql('postgres', q{SELECT arrow_cache.zone('(70,1)', 5)}), '2', 'a zone is computed without shared memory');
my $functions = $node->safe_psql('postgres',
	q{SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'arrow_cache'::regnamespace AND proname <> 'zone' ORDER BY 1});
is_deeply([ split /\n/, $functions ], [ sort keys %call ], 'every function of the extension is called below');

my $expected = qr/ERROR:\s+55000: pg_arrow_cache must be loaded via "shared_preload_libraries"
HINT:  Add pg_arrow_cache to "shared_preload_libraries" in postgresql.conf and restart the server\./;

sub refuses
{
	my ($call, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($status, undef, $errors) = $node->psql('postgres', $call, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	is($status, 3, "$name fails");
	like($errors, $expected, "$name names the setting");
	return;
}

refuses($call{$_}, $_) for sort keys %call;
refuses(q{SELECT arrow_cache.query('SELECT a FROM t WHERE a = $1', 1)}, 'query with parameters');
is($node->safe_psql('postgres', 'SELECT count(*) FROM watched'), '0', 'a refused trigger undoes its statement');

# Loading it late, by hand or for each session, leaves statements as they are.
my $work = q{
	SELECT sum(a) FROM t;
	SELECT sum(a) FROM t;
	INSERT INTO t VALUES (100);
	SELECT sum(a) FROM t;
	DELETE FROM t WHERE a = 100;
	EXPLAIN (COSTS OFF) SELECT a FROM t;
};
my $results = "55\n55\n155\nSeq Scan on t";
is($node->safe_psql('postgres', $work), $results, 'without the library');
is($node->safe_psql('postgres', "LOAD 'pg_arrow_cache';\n$work"), $results, 'after LOAD');
refuses("LOAD 'pg_arrow_cache'; SELECT arrow_cache.flush()", 'a call after LOAD');

$node->append_conf('postgresql.conf', "session_preload_libraries = 'pg_arrow_cache'");
$node->restart;
is($node->safe_psql('postgres', $work), $results, 'with session_preload_libraries');
refuses('SELECT arrow_cache.flush()', 'a call with session_preload_libraries');

# Loaded as it should be, the same database caches.
$node->append_conf('postgresql.conf', qq{
session_preload_libraries = ''
shared_preload_libraries = 'pg_arrow_cache'
pg_arrow_cache.min_execution_time = 0
});
$node->restart;
answers_are($node, 'SELECT sum(a) FROM t', '55', [ 'MISS', 'HIT' ], 'preloaded, it caches');
is($node->safe_psql('postgres', $work), $results, 'preloaded, the same statements give the same results');

done_testing();
