# An error while a decision is logged (log_decisions) fails the statement, and nothing else: the entry of a hit, and one that was stored just
# now, are let go, so that a flush gives their memory back.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$PostgreSQL::Test::Utils::tmp_check/log_raiser.so";
chomp(my $includes = `$ENV{PG_CONFIG} --includedir-server`);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$includes", "$FindBin::RealBin/log_raiser.c", '-o', $library);

my $node = new_server('log_raises', conf => "shared_preload_libraries = '$library,pg_arrow_cache'\npg_arrow_cache.log_decisions = all\n");
create_big($node);
my $query = 'SELECT a, pad FROM big WHERE a < 9000 ORDER BY a';
my %ways = (
	select => $query,
	verified => "SET pg_arrow_cache.verify_sample_rate = 1; $query",
	query => "SELECT length(arrow_cache.query('$query'))",
	fetch => "SELECT count(*) FROM arrow_cache.fetch('$query')",
	copy => "COPY ($query) TO STDOUT (FORMAT arrow)",
	cursor => "BEGIN; DECLARE c NO SCROLL CURSOR FOR $query; FETCH ALL FROM c; COMMIT",
);

# What remains once all entries are gone: reclaiming the retired ones takes a store operation.
sub at_rest
{
	$node->safe_psql('postgres', "SELECT arrow_cache.flush(); SELECT count(*) FROM big WHERE a < $_") for 1 .. 3;
	return bytes_at_rest($node);
}

my $at_rest = at_rest();
for my $way (sort keys %ways)
{
	for my $decision (qw(MISS HIT))
	{
		$node->safe_psql('postgres', $query) if $decision eq 'HIT';
		my $stderr;
		$node->psql('postgres', "SET log_raiser.at = '$decision'; $ways{$way}", stderr => \$stderr);
		like($stderr, qr/the log cannot be written/, "$way: the log of a $decision raises");
		is(at_rest(), $at_rest, "$way: nothing is left of a $decision whose log raised");
	}
}
answers_are($node, 'SELECT count(*) FROM big', 20000, [ 'MISS', 'HIT' ], 'the cache goes on');

done_testing();
