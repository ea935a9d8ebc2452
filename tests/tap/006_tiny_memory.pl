# A cache that is much smaller than its results: it stays within its limits, keeps the entries that are used, and the allocator
# loses no memory however often everything is replaced.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $MAX_ENTRIES = 8;
my $node = new_server('tiny', conf => qq{
pg_arrow_cache.memory = 4MB
pg_arrow_cache.max_entries = $MAX_ENTRIES
});
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT g AS a, md5(g::text) AS h FROM generate_series(1, 30000) g;
});
my $at_rest = bytes_at_rest($node);

# Runs queries in one session and returns the status of each.
sub statuses
{
	my (@queries) = @_;
	my $script = "\\o /dev/null\n";
	$script .= "$_;\n\\o\nSELECT arrow_cache.last_status();\n\\o /dev/null\n" for @queries;
	return [ split /\n/, $node->safe_psql('postgres', $script) ];
}

sub small { return "SELECT a, h FROM t WHERE a = $_[0]" }
sub large { return "SELECT a, h FROM t WHERE a > $_[0] ORDER BY a LIMIT 15000" }

# Five times the capacity, by number of entries.
my @small = map { small($_) } 1 .. 5 * $MAX_ENTRIES;
is_deeply(statuses(@small), [ ('MISS') x @small ], 'each of many queries is stored');
is(stat($node, 'entries, stores, evictions'),
	join('|', $MAX_ENTRIES, scalar @small, @small - $MAX_ENTRIES),
	'max_entries are held; for every further one another has gone, and is counted');

# One entry is asked for again and again while others come and go. It takes longer than they do, on a busy machine too.
my $favourite = small(1000) . ' AND (SELECT count(*) FROM t x, generate_series(1, 20)) > 0';
my @stream = (($favourite) x 3, map { (small(2000 + $_), $favourite) } 1 .. 3 * $MAX_ENTRIES);
is_deeply(statuses(@stream), [ 'MISS', 'HIT', 'HIT', ('MISS', 'HIT') x (3 * $MAX_ENTRIES) ],
	'what is used between others stays in the cache');
my ($stores, $evictions) = split /\|/, stat($node, 'stores, evictions');
is($evictions, $stores - $MAX_ENTRIES, 'the others do not');
is(stat($node, 'entries'), $MAX_ENTRIES, 'still max_entries');

# By bytes. How many of these fit before one is evicted?
sub fit
{
	$node->safe_psql('postgres', 'SELECT arrow_cache.flush(), arrow_cache.reset_stats()');
	my $number = 0;
	while (stat($node, 'evictions') == 0)
	{
		statuses(large($number));
		$number++;
		last if $number > $MAX_ENTRIES;
	}
	return $number - 1;
}
my $fit = fit();
cmp_ok($fit, '>=', 2, 'some large results fit');
cmp_ok($fit, '<', $MAX_ENTRIES, 'memory is full before the number of entries is reached');

my ($above, $wrong) = (0, 0);
for my $round (1 .. 4)
{
	for my $number (1 .. 12)
	{
		my $query = $number % 3 ? large(100 * $round + $number) : small(100 * $round + $number);
		my ($rows) = answer($node, $query);
		$wrong++ if $rows ne $node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; $query");
		$above++ if stat($node, "entries > $MAX_ENTRIES OR bytes_used > bytes_total") eq 't';
	}
}
is($wrong, 0, 'right rows while everything is replaced again and again');
is($above, 0, 'never above max_entries or memory');
is(stat($node, 'bytes_total'), 4 * 1024 * 1024, 'memory is the smallest that is allowed');
cmp_ok(stat($node, 'evictions'), '>', 20, 'evictions were counted');
answers_are($node, large(1), (answer($node, large(1)))[0], ['HIT'], 'what was stored last is served');

# A result that can never fit is delivered without being stored, and nothing is evicted for it.
$node->safe_psql('postgres', 'SELECT arrow_cache.flush()');
statuses(map { small($_) } 1 .. 3);
my ($rows, $status) = answer($node,
	'SELECT x.a, x.h, y.h AS h2 FROM t x JOIN t y USING (a) CROSS JOIN (VALUES (1), (2), (3), (4)) v');
is(scalar(split /\n/, $rows), 120_000, 'a result larger than the cache arrives whole');
is($status, 'MISS no_room', 'and is not stored');
is(bytes_at_rest($node), $at_rest, 'nothing of it is left');
is_deeply(statuses((small(1)) x 2), [ 'MISS', 'HIT' ], 'the cache works after it');

is(bytes_at_rest($node), $at_rest, 'after everything: no entries, starting bytes');
is(fit(), $fit, 'and as many large results fit as at first: nothing is lost inside the allocator');

# Memory that cannot hold the table of entries is refused at the start, with advice that helps.
my $refused = initialize('refused', conf => qq{
pg_arrow_cache.memory = 4MB
pg_arrow_cache.max_entries = 100000
});
ok(!$refused->start(fail_ok => 1), 'a server with too little memory for max_entries does not start');
my $log = slurp_file($refused->logfile);
like($log, qr/FATAL:  "pg_arrow_cache\.memory" is too small for "pg_arrow_cache\.max_entries"/, 'it says why');
my ($advice) =
	$log =~ /HINT:  Set "pg_arrow_cache\.memory" to at least (\d+)MB or lower "pg_arrow_cache\.max_entries"\./;
ok($advice, 'it says what would do');
$refused->append_conf('postgresql.conf', 'pg_arrow_cache.memory = ' . ($advice // 0) . 'MB');
ok($refused->start(fail_ok => 1), 'and that does');
done_testing();
