# A standby that meets records which it does not understand switches its cache off: it says so in its statistics and, once, in the log; it
# executes everything, exactly, and begins anew after a restart.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StandbyTest;
use Test::More;

my $library = "$PostgreSQL::Test::Utils::tmp_check/custom_manager.so";
chomp(my $includes = `$ENV{PG_CONFIG} --includedir-server`);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$includes", "$FindBin::RealBin/custom_manager.c",
	'-o', $library);

my $primary = new_primary('primary', conf => "shared_preload_libraries = '$library'\n");
$primary->safe_psql('postgres', qq{
	CREATE FUNCTION write_record() RETURNS pg_lsn LANGUAGE c AS '$library';
	CREATE TABLE t (v int); INSERT INTO t VALUES (1);
});
my $query = 'SELECT sum(v) FROM t';

# Both orders in which the two libraries may be preloaded.
for my $libraries ("$library,pg_arrow_cache", "pg_arrow_cache,$library")
{
	my $name = $libraries =~ /^pg/ ? 'cache first' : 'cache last';
	my $standby = new_standby($name =~ s/ /_/r, $primary, libraries => $libraries);
	my $writer = session($primary);
	my ($reader, $other) = map { session($standby) } 1 .. 2;
	caught_up($writer, $reader);
	my $rows = cached($reader, $query, $name);
	is(state($standby), 'replaying', "$name: a library with a resource manager is loaded");
	my ($holder, $fetcher) = map { session($standby) } 1 .. 2;
	write_sql($holder, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	is_deeply([ ask($holder, $query) ], [ $rows, 'HIT' ], "$name: a transaction has been served");
	write_sql($fetcher, 'BEGIN', "DECLARE c NO SCROLL CURSOR FOR $query");

	my $start = -s $standby->logfile;
	write_sql($writer, 'SELECT write_record()');
	caught_up($writer, $reader);
	like(state($standby), qr/^off: \w+/, "$name: a record of that manager");
	is_deeply([ ask($_, $query) ], [ $rows, 'BYPASS recovery' ], "$name: switched off") for $reader, $other, $holder;
	is($fetcher->query_safe('FETCH ALL FROM c'), $rows, "$name: a cursor that was open");
	write_sql($writer, 'SELECT write_record()', 'UPDATE t SET v = v + 1');
	caught_up($writer, $reader);
	is_deeply([ ask($_, $query) ], [ $rows + 1, 'BYPASS recovery' ], "$name: it follows the primary") for $reader, $other, $reader;
	is_deeply([ ask($holder, $query) ], [ $rows, 'BYPASS recovery' ], "$name: an old snapshot");
	cmp_ok($standby->safe_psql('postgres', q{SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'recovery'}),
		'>=', 5, "$name: the reason is counted");
	like($standby->safe_psql('postgres', q{SELECT finding, evidence FROM arrow_cache.advise()}),
		qr/^The cache of this standby has switched itself off\|standby_state is off: custom_resource_manager; \d+ queries bypassed with the reason recovery$/, "$name: advise() tells it");
	my $log = substr(slurp_file($standby->logfile), $start);
	my @told = grep { /resource manager/i } split /\n/, $log;
	is(scalar(@told), 1, "$name: one line of the log tells why") or diag($log);
	is($standby->safe_psql('postgres', "SELECT length(arrow_cache.query('$query')) > 0"), 't', "$name: Arrow streams work");
	write_sql($_, 'COMMIT') for $holder, $fetcher;

	# The record must not be replayed once more.
	write_sql($writer, 'CHECKPOINT');
	caught_up($writer, $reader);
	write_sql($reader, 'CHECKPOINT');
	$_->quit for $reader, $other, $holder, $fetcher;
	$standby->restart;
	$reader = session($standby);
	caught_up($writer, $reader);
	is(state($standby), 'replaying', "$name: a restart begins anew");
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM arrow_cache.advise()'), '0', "$name: and there is nothing to advise");
	is(cached($reader, $query, "$name: after a restart"), $rows + 1, "$name: the rows after a restart");
	write_sql($writer, 'UPDATE t SET v = v + 1');
	caught_up($writer, $reader);
	is_deeply([ ask($reader, $query) ], [ $rows + 2, 'STALE' ], "$name: changes are followed");
	cached($reader, $query, $name);

	# Switched off when it is promoted: it is a primary then, and caches.
	write_sql($writer, 'SELECT write_record()');
	caught_up($writer, $reader);
	is_deeply([ ask($reader, $query) ], [ $rows + 2, 'BYPASS recovery' ], "$name: switched off again");
	$standby->promote;
	$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'it is not promoted';
	is(state($standby), 'primary', "$name: promoted");
	is(cached($reader, $query, "$name: promoted"), $rows + 2, "$name: the rows when promoted");
	$standby->safe_psql('postgres', 'UPDATE t SET v = v + 1');
	is_deeply([ ask($reader, $query) ], [ $rows + 3, 'STALE' ], "$name: a change after that");
	$_->quit for $reader, $writer;
	$standby->stop;
}

# A standby can only replay what is written for it: the server refuses wal_level = minimal.
my $standby = new_standby('last', $primary);
is(state($standby), 'replaying', 'a last standby');
$primary->stop;
$primary->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\n");
$primary->start;
$primary->safe_psql('postgres', 'UPDATE t SET v = v + 1');
$primary->stop;
$primary->append_conf('postgresql.conf', "wal_level = replica\nmax_wal_senders = 10\n");
$primary->start;
$standby->wait_for_log(qr/WAL was generated with "?wal_level=minimal"?, cannot continue recovering/);
$standby->stop('immediate', fail_ok => 1);

done_testing();
