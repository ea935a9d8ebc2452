# The server reloads its settings while an apply worker is in the middle of a transaction. What the worker has changed
# before, while track_counts was off, is on no list of the server; it still outdates what was stored.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = new_server('publisher', init => { allows_streaming => 'logical' });
# A worker says at this level that it reports to its publisher, which it is told to do by the same reload.
my $subscriber = new_server('subscriber', init => { allows_streaming => 'logical' }, conf => q{
track_counts = off
log_min_messages = debug2
log_line_prefix = '[%p] '
});
$_->safe_psql('postgres', q{
	CREATE TABLE first (v int);
	CREATE TABLE bulk (id int, pad text);
	CREATE TABLE last (v int);
}) for $publisher, $subscriber;
$publisher->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE first, bulk, last');
# An expression this simple starts no executor, whose hooks would look at the setting.
$subscriber->safe_psql('postgres', q{
	CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS
		'DECLARE nothing text; BEGIN nothing := pg_advisory_xact_lock_shared(1); RETURN NEW; END';
	CREATE TRIGGER wait_for_test BEFORE INSERT ON bulk FOR EACH ROW WHEN (NEW.id = 0) EXECUTE FUNCTION wait_for_test();
	ALTER TABLE bulk ENABLE ALWAYS TRIGGER wait_for_test;
});
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p");
$subscriber->wait_for_subscription_sync($publisher, 's');
$subscriber->append_conf('postgresql.conf', 'wal_receiver_status_interval = 0');
$subscriber->restart;
my %query = map { $_ => "SELECT count(*) FROM $_" } qw(first last);
for my $table (sort keys %query)
{
	answers_are($subscriber, $query{$table}, '0', [ 'MISS', 'HIT' ], "$table is cached before");
}

# One transaction, larger than what fits between the servers: first the worker waits for us, and the sender for the worker.
my $lock = $subscriber->background_psql('postgres');
$lock->query_safe('SELECT pg_advisory_lock(1)');
$publisher->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO first VALUES (1);
	INSERT INTO bulk SELECT g, repeat('x', 1000) FROM generate_series(0, 10000) g;
	INSERT INTO last VALUES (1);
	COMMIT});
ok($publisher->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'walsender' AND wait_event = 'WalSenderWriteData'"),
	'the sender waits for the worker');

# Then the sender is stopped, and the worker comes to the end of what it was sent.
my $sender = $publisher->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsender'");
my $worker = $subscriber->safe_psql('postgres', 'SELECT pid FROM pg_stat_subscription');
is(kill('STOP', $sender), 1, 'the sender is stopped');
$lock->query_safe('SELECT pg_advisory_unlock(1)');
$lock->quit;
ok($subscriber->poll_query_until('postgres',
	"SELECT wait_event = 'LogicalApplyMain' AND backend_xid IS NOT NULL FROM pg_stat_activity WHERE pid = $worker"),
	'the worker waits for the rest of the transaction');

my $before = -s $subscriber->logfile;
$subscriber->append_conf('postgresql.conf', "track_counts = on\nwal_receiver_status_interval = 1\n");
$subscriber->reload;
my $reports = 0;
for (1 .. 300)
{
	$reports = substr(slurp_file($subscriber->logfile), $before) =~ /^\[$worker\].*sending feedback/m and last;
	select(undef, undef, undef, 0.1);
}
ok($reports, 'it sees the reload');
is(kill('CONT', $sender), 1, 'the sender goes on');
$publisher->wait_for_catchup('s');
for my $table (sort keys %query)
{
	answers_are($subscriber, $query{$table}, '1', [ 'STALE', 'HIT' ], "the change of $table is seen");
}

done_testing();
