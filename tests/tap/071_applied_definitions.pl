# An apply worker of logical replication commits prepared transactions without a statement. Once a transaction that changes a definition was
# prepared, nothing is stored that rests on a definition as long as a worker lives. A worker that applies rows outdates no definition.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $library = "$PostgreSQL::Test::Utils::tmp_check/slow_definer.so";
chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include",
	"$FindBin::RealBin/slow_definer.c", '-o', $library);

my $publisher = new_server('publisher', init => { allows_streaming => 'logical' }, conf => "max_prepared_transactions = 5\n");
my $subscriber = new_server('subscriber', init => { allows_streaming => 'logical' }, conf => qq{
shared_preload_libraries = '$library,pg_arrow_cache'
max_prepared_transactions = 5
wal_retrieve_retry_interval = 100ms
});
$_->safe_psql('postgres', 'CREATE TABLE orders (what text PRIMARY KEY); CREATE TABLE plain (v int PRIMARY KEY)') for $publisher, $subscriber;
$publisher->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE orders, plain');

# A row of the publisher says what the subscriber defines anew. The worker runs as the owner of the subscription, whose settings it has.
my $folder = PostgreSQL::Test::Utils::tempdir();
chmod 0777, $folder;
$subscriber->safe_psql('postgres', qq{
	CREATE TABLE other (v int);
	INSERT INTO other VALUES (7);
	CREATE FUNCTION scaled(v int) RETURNS int IMMUTABLE LANGUAGE sql RETURN v * 2;
	CREATE FUNCTION define() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN EXECUTE NEW.what; RETURN NEW; END';
	CREATE TRIGGER define BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION define();
	ALTER TABLE orders ENABLE ALWAYS TRIGGER define;
	CREATE ROLE worker SUPERUSER LOGIN;
	ALTER ROLE worker SET slow_definer.folder = '$folder';
});
# From now on a worker stops at these moments of the end of its transactions, and at no other.
sub stop_at
{
	my %stops = map { $_ => 1 } @_;
	for my $stage (qw(visible told))
	{
		unlink "$folder/$stage.reached";
		if ($stops{$stage}) { unlink "$folder/$stage.go" }
		else { touch("$folder/$stage.go") }
	}
	return;
}

sub wait_for_stop
{
	my ($stage) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	until (-e "$folder/$stage.reached")
	{
		die "the worker has not come to $stage" if time > $deadline;
		usleep(10_000);
	}
	return;
}

stop_at();
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres',
	"SET ROLE worker; CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p WITH (two_phase = on)");
$subscriber->wait_for_subscription_sync($publisher, 's');
ok($subscriber->poll_query_until('postgres', q{SELECT subtwophasestate = 'e' FROM pg_subscription}), 'transactions are prepared from now on');
my $query = 'SELECT scaled(v) FROM other';
my $prepared_here = 'SELECT count(*) = %d FROM pg_prepared_xacts';

# Prepares a transaction on the publisher that gives the function another factor on the subscriber, and waits until it is prepared there.
sub prepare
{
	my ($factor) = @_;
	$publisher->safe_psql('postgres', qq{BEGIN; INSERT INTO orders VALUES (
		'CREATE OR REPLACE FUNCTION public.scaled(v int) RETURNS int IMMUTABLE LANGUAGE sql RETURN v * $factor'); PREPARE TRANSACTION 'p$factor'});
	ok($subscriber->poll_query_until('postgres', sprintf $prepared_here, 1), "factor $factor is prepared on the subscriber");
	return;
}

answers_are($subscriber, $query, 14, [ 'MISS', 'HIT' ], 'cached before');
answers_are($subscriber, 'SELECT count(*) FROM plain', 0, [ 'MISS', 'HIT' ], 'another table');
$publisher->safe_psql('postgres', 'INSERT INTO plain VALUES (5)');
$publisher->wait_for_catchup('s');
answers_are($subscriber, $query, 14, ['HIT'], 'rows that are applied outdate no definition');
answers_are($subscriber, 'SELECT count(*) FROM plain', 1, [ 'STALE', 'HIT' ], 'but their table');
prepare(3);
is((answer($subscriber, $query))[0], 14, 'prepared: the old answer');
for my $stage (qw(visible told))
{
	my $factor = $stage eq 'visible' ? 3 : 4;
	prepare($factor) if $factor == 4;
	stop_at($stage);
	$publisher->safe_psql('postgres', "COMMIT PREPARED 'p$factor'");
	wait_for_stop($stage);
	ok($subscriber->poll_query_until('postgres', sprintf $prepared_here, 0), "$stage: the worker has committed it");
	answers_are($subscriber, $query, 7 * $factor, [ ('BYPASS ddl_in_progress') x 2 ], "$stage: nothing is stored");
	touch("$folder/$stage.go");
	$publisher->wait_for_catchup('s');
	stop_at();
	# The worker confirms the transaction before it has released its locks.
	$publisher->safe_psql('postgres', "INSERT INTO plain VALUES ($factor)");
	$publisher->wait_for_catchup('s');
	answers_are($subscriber, $query, 7 * $factor, [ ('BYPASS ddl_in_progress') x 2 ], "$stage: nor is it as long as the worker lives");
}

# advise() tells what to do about that.
my $advice = q{SELECT count(*) FROM arrow_cache.advise() WHERE finding = 'A subscriber bypasses queries because of definitions'};
is($subscriber->safe_psql('postgres', $advice), 0, 'few queries are no finding');
$subscriber->safe_psql('postgres', "$query;" x 100);
is($subscriber->safe_psql('postgres', $advice), 1, 'many are one');

# A worker that has ended is counted off, also by an error: here somebody has committed before it.
prepare(5);
my $gid = $subscriber->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
$subscriber->safe_psql('postgres', "COMMIT PREPARED '$gid'");
my $offset = -s $subscriber->logfile;
$publisher->safe_psql('postgres', "COMMIT PREPARED 'p5'");
$subscriber->wait_for_log(qr/prepared transaction with identifier "\Q$gid\E" does not exist/, $offset);
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s DISABLE');
$subscriber->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_subscription WHERE pid IS NOT NULL');
answers_are($subscriber, $query, 35, [ 'MISS', 'HIT' ], 'a worker that has ended forbids nothing');
is($subscriber->safe_psql('postgres', $advice), 0, 'which is no finding any more');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM arrow_cache.check()'), 0, 'check() finds nothing');

$_->stop for $subscriber, $publisher;
done_testing();
