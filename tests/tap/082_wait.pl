# Waiting for a change of an answer (arrow_cache.wait): on a primary and its standby, beside prepared transactions, over a promotion, and with tokens
# of an earlier start of the server.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StandbyTest;
use Test::More;

my $primary = new_server('primary', init => { allows_streaming => 1 }, conf => "max_prepared_transactions = 10\n");
$primary->safe_psql('postgres', q{CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 10); CREATE TABLE u (a int)});
my $standby = new_standby('standby', $primary);
my $query = 'SELECT sum(a) FROM t';
my @opened;

sub token
{
	my ($node) = @_;
	return $node->safe_psql('postgres', "SELECT arrow_cache.etag('$query')");
}

sub changed
{
	my ($node, $token, $timeout) = @_;
	return $node->safe_psql('postgres', "CALL arrow_cache.wait('$token', '$timeout')");
}

# A session that sleeps until the answer of a token may have changed.
sub sleeper
{
	my ($node, $token) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_until(qr/begins/, "\\echo begins\nCALL arrow_cache.wait('$token', '3 minutes');\n\\warn over\n");
	$node->poll_query_until('postgres',
		"SELECT wait_event IN ('Extension', 'ArrowCacheChange') AND backend_xmin IS NULL FROM pg_stat_activity WHERE pid = $pid")
		or die 'it does not sleep';
	push @opened, $session;
	return $session;
}

sub outcome
{
	my ($session) = @_;
	PostgreSQL::Test::Utils::pump_until($session->{run}, $session->{timeout}, \$session->{stderr}, qr/over/);
	my ($said) = $session->{stdout} =~ /^([tf])$/m;
	($session->{stdout}, $session->{stderr}) = ('', '');
	return $said;
}

# Whoever commits a prepared transaction does not know what it has changed, so waiters hear of it when it is prepared.
my $waiting = sleeper($primary, token($primary));
$primary->safe_psql('postgres', q{BEGIN; UPDATE t SET a = a + 1; PREPARE TRANSACTION 'p'});
is(outcome($waiting), 't', 'a transaction that is prepared');
is(token($primary), '', 'no token as long as it is');
$primary->safe_psql('postgres', q{COMMIT PREPARED 'p'});
isnt(my $token = token($primary), '', 'a token when it is committed');
is($primary->safe_psql('postgres', $query), '65', 'and the new answer');

# On a standby, replay wakes.
$primary->wait_for_catchup($standby);
isnt(my $old = token($standby), '', 'a token of a standby');
is(changed($standby, $token, '1 minute'), 't', 'that of the primary is none of the standby');
$waiting = sleeper($standby, $old);
$primary->safe_psql('postgres', 'INSERT INTO u VALUES (1)');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL%' AND state = 'active'}), '1', 'another table');
$primary->safe_psql('postgres', 'UPDATE t SET a = a + 1');
is(outcome($waiting), 't', 'a commit that is replayed');
isnt(my $new = token($standby), $old, 'another token');
is($standby->safe_psql('postgres', $query), '75', 'and the new answer, at once');
$waiting = sleeper($standby, $new);
$primary->safe_psql('postgres', 'ALTER TABLE t ADD b int');
is(outcome($waiting), 't', 'a definition that is replayed');
$primary->wait_for_catchup($standby);

# A wait on a standby holds back neither replay nor VACUUM of the primary.
$waiting = sleeper($standby, token($standby));
$primary->safe_psql('postgres', 'DELETE FROM u; VACUUM (FREEZE) u; DROP TABLE u');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL%' AND state = 'active'}), '1', 'it goes on');
$standby->promote;
is(outcome($waiting), 't', 'a promotion');
$standby->poll_query_until('postgres', "SELECT arrow_cache.etag('$query') IS NOT NULL");
$waiting = sleeper($standby, token($standby));
$standby->safe_psql('postgres', 'UPDATE t SET a = 0');
is(outcome($waiting), 't', 'a commit of the new primary');

# Tokens of an earlier start.
$token = token($primary);
is(changed($primary, $token, '0'), 'f', 'a token of now');
eval { $_->quit } for @opened;
$primary->restart;
is(changed($primary, $token, '1 minute'), 't', 'none of an earlier start');

# Who is killed in its sleep takes shared memory with it; nobody waits any more.
$primary->append_conf('postgresql.conf', 'restart_after_crash = on');
$primary->reload;
$token = token($primary);
my $session = sleeper($primary, $token);
my $pid = $primary->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE query LIKE 'CALL%'});
my $log = -s $primary->logfile;
kill 'KILL', $pid;
$primary->wait_for_log(qr/database system is ready to accept connections/, $log);
is(changed($primary, $token, '1 minute'), 't', 'nor of before a crash');
$primary->poll_query_until('postgres', "SELECT arrow_cache.etag('$query') IS NOT NULL");
$waiting = sleeper($primary, token($primary));
$primary->safe_psql('postgres', 'UPDATE t SET a = 0');
is(outcome($waiting), 't', 'whoever waits then is woken');

done_testing();
