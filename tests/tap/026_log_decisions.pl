# log_decisions: one line in the log of the server for each statement of a client, with its status, the reason and the query id.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('log_decisions', conf => "log_min_error_statement = panic\nlog_line_prefix = ''\n");
$node->safe_psql('postgres', 'CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 10)');

# The lines that a script leaves in the log.
sub logged
{
	my ($script) = @_;
	my $start = -s $node->logfile;
	$node->safe_psql('postgres', $script);
	my $log = substr(slurp_file($node->logfile), $start);
	return [ $log =~ /^LOG:\s+arrow_cache: (.*)$/mg ];
}

my $on = 'SET pg_arrow_cache.log_decisions = ';
my $first = 'OTHER (utility_statement)';

is_deeply(logged('SELECT sum(a) FROM t; SELECT 1; SELECT now() FROM t'), [], 'off: nothing');
is_deeply(logged("SET client_min_messages = debug5; $on 'all'; RESET pg_arrow_cache.log_decisions"), [ $first ],
	'the statement that switches it off is the last');

# What follows runs with the library's decision on each statement but the SET itself, which begins while it is off.
my $statements = q{
	SELECT max(a) FROM t;
	SELECT max(a) FROM t;
	SELECT count(*) FROM t WHERE a < random();
	SELECT 1;
	UPDATE t SET a = a + 1;
	SELECT max(a) FROM t;
	SELECT max(a) FROM t;
	SET pg_arrow_cache.populate = off;
	SELECT min(a) FROM t;
	RESET pg_arrow_cache.populate;
	/*+ no_arrow_cache */ SELECT max(a) FROM t;
};
my @all = (
	'MISS', 'HIT', 'BYPASS (volatile_function)', 'OTHER (no_relation)', 'OTHER (not_select)', 'STALE', 'HIT',
	'OTHER (utility_statement)', 'MISS (populate_off)', 'OTHER (utility_statement)', 'BYPASS (no_cache_hint)');
is_deeply(logged("$on 'all'; $statements"), \@all, 'all: each statement');
$node->safe_psql('postgres', 'SELECT arrow_cache.flush()');
is_deeply(logged("$on 'miss'; $statements"), [ grep { !/^(HIT|OTHER)/ } @all ], 'miss: the queries of clients but for hits');
is_deeply(logged("$on 'miss'; BEGIN; SAVEPOINT s; SELECT 1; EXPLAIN SELECT max(a) FROM t; COMMIT"), [], 'miss: no commands');

# The words are those by which `stats` counts.
$node->safe_psql('postgres', 'SELECT arrow_cache.flush(); SELECT arrow_cache.reset_stats()');
my %lines;
$lines{$_}++ for map { /^(\w+)/ } @{ logged("$on 'all'; $statements") };
# The query of the view is bypassed itself.
my $counted = $node->safe_psql('postgres', 'SELECT hits, misses, stale, bypasses - 1 FROM arrow_cache.stats');
is(join('|', @lines{qw(HIT MISS STALE BYPASS)}), $counted, 'as many lines as stats counts');


# A miss is logged when it is known whether its answer is stored.
is_deeply(logged(qq{$on 'all';
	SET pg_arrow_cache.min_execution_time = '1h';
	SELECT avg(a) FROM t;
	SELECT avg(a) FROM t;
	RESET pg_arrow_cache.min_execution_time;
	BEGIN;
	DECLARE c NO SCROLL CURSOR FOR SELECT a, 'part' FROM t ORDER BY 1;
	FETCH 1 FROM c;
	CLOSE c;
	DECLARE c NO SCROLL CURSOR FOR SELECT a, 'whole' FROM t ORDER BY 1;
	FETCH ALL FROM c;
	COMMIT}),
	[ $first, 'MISS (too_quick)', 'MISS (too_quick)', $first, $first, 'MISS (incomplete_read)', 'MISS', $first ],
	'misses that are too quick, given up, and stored');

# Statements inside others are not logged; those of arrow_cache.query are, since they are looked up.
is_deeply(logged(qq{$on 'all';
	DO 'BEGIN PERFORM sum(a) FROM t; END';
	EXPLAIN SELECT sum(a) FROM t;
	COPY (SELECT sum(a) FROM t) TO STDOUT;
	PREPARE p AS SELECT a * 3 FROM t;
	EXECUTE p;
	EXECUTE p}),
	[ $first, 'OTHER (explain)', 'MISS', 'MISS', 'HIT' ], 'statements inside others are not, but the query of a COPY');
is_deeply(logged(qq{$on 'all'; SELECT length(arrow_cache.query('SELECT a * 5 FROM t')) > 0}),
	[ 'OTHER (no_relation)', 'MISS' ], 'a query of arrow_cache.query has a line besides its caller');
is_deeply(logged(qq{$on 'all'; SET pg_arrow_cache.enabled = off; SELECT sum(a) FROM t}), [ $first, 'BYPASS (disabled)' ],
	'a session without the cache');

# A parallel query is logged once, by its leader. The setting that asks for one has another name from 16 on.
my $parallel = $node->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
is_deeply(logged(qq{$on 'all'; SET $parallel = on; SELECT sum(a + 1) FROM t}), [ $first, 'MISS' ],
	'a parallel query');

# The query id, when there is one.
my $ids = logged("$on 'all'; SET compute_query_id = on; SELECT a * 7 FROM t; SELECT a * 7 FROM t; SELECT a * 7 FROM t WHERE a < random()");
my @ids = map { /, query id (-?\d+)\z/ ? $1 : 'none' } @$ids;
is(scalar(@ids), 4, 'four statements');
is($ids[0], 'none', 'a statement that was parsed before has no query id');
isnt($ids[1], 'none', 'a miss has its query id');
is($ids[2], $ids[1], 'a hit has the same one');
isnt($ids[3], $ids[1], 'another statement has another');

# The server adds the statement to other lines, not to these.
my $start = -s $node->logfile;
$node->safe_psql('postgres', "SET log_min_error_statement = error; $on 'all'; SELECT max(a) FROM t WHERE a > -7; SELECT max(a) FROM t WHERE a > -7");
my $log = substr(slurp_file($node->logfile), $start);
like($log, qr/arrow_cache: HIT/, 'a line');
unlike($log, qr/STATEMENT|a > -7/, 'without the statement');

# It is for superusers, takes three words, and says nothing to clients.
$node->safe_psql('postgres', 'CREATE ROLE plain');
my (undef, undef, $refused) = $node->psql('postgres', "SET ROLE plain; $on 'all'");
like($refused, qr/permission denied to set parameter "pg_arrow_cache.log_decisions"/, 'not for everybody');
my (undef, undef, $wrong) = $node->psql('postgres', "$on 'hits'");
like($wrong, qr/Available values: off, miss, all\./, 'a wrong word is refused');
my (undef, undef, $heard) = $node->psql('postgres', "SET client_min_messages = debug1; $on 'all'; SELECT max(a) FROM t");
unlike($heard, qr/arrow_cache/, 'clients hear nothing of it');

done_testing();
