# Records of commits of every shape: with an origin, with exclusive locks, with files that are gone and the messages that come with them,
# with few or many sub-transactions, of prepared transactions, with a request for feedback. After each a standby executes exactly the
# questions over the tables that the transaction, or a sub-transaction, has changed.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use StandbyTest;
use Test::More;

my $primary = new_primary('primary');
$primary->safe_psql('postgres', q{
	CREATE TABLE top (v int); INSERT INTO top VALUES (0);
	CREATE TABLE child (v int); INSERT INTO child VALUES (0);
	CREATE TABLE last_child (v int); INSERT INTO last_child VALUES (0);
	CREATE TABLE undone (v int); INSERT INTO undone VALUES (0);
	CREATE TABLE locked (v int);
	SELECT pg_replication_origin_create('elsewhere');
});
my $standby = new_standby('standby', $primary);
my ($writer, $reader) = (session($primary), session($standby));
my %query = map { $_ => "SELECT sum(v) FROM $_" } qw(top child last_child undone);
my %sum = map { $_ => 0 } keys %query;

# Statements of a transaction with so many sub-transactions that commit, and one between them that does not.
sub in_sub_transactions
{
	my ($count) = @_;
	return () if $count == 0;
	my $undone = 'SAVEPOINT s; UPDATE undone SET v = v + 1; ROLLBACK TO s';
	my $middle = $count - 2;
	return ('SAVEPOINT s; UPDATE child SET v = v + 1; RELEASE s', $undone,
		qq{DO \$\$ BEGIN FOR i IN 1 .. $middle LOOP BEGIN UPDATE child SET v = v; EXCEPTION WHEN division_by_zero THEN END; END LOOP; END \$\$},
		'SAVEPOINT s; UPDATE last_child SET v = v + 1; RELEASE s');
}

my $number = 0;
for my $count (0, 3, 70)
{
	for my $parts (0 .. 31)
	{
		my ($origin, $locks, $drops, $prepared, $feedback) = map { $parts >> $_ & 1 } 0 .. 4;
		my @words = ($count ? "$count sub-transactions" : (), $origin ? 'origin' : (), $locks ? 'lock' : (), $drops ? 'files' : (),
			$prepared ? 'prepared' : (), $feedback ? 'feedback' : ());
		my $name = join(', ', @words) || 'nothing besides';
		$number++;
		my @statements = ("SET synchronous_commit = " . ($feedback ? 'remote_apply' : 'on'),
			$origin ? q{SELECT pg_replication_origin_session_setup('elsewhere')} : (),
			'BEGIN',
			$origin ? "SELECT pg_replication_origin_xact_setup('0/$number', now())" : (),
			$locks ? 'LOCK TABLE locked IN ACCESS EXCLUSIVE MODE' : (),
			'UPDATE top SET v = v + 1', in_sub_transactions($count),
			$drops ? 'CREATE TABLE gone (v int); DROP TABLE gone' : (),
			$prepared ? ("PREPARE TRANSACTION 'p$number'", "COMMIT PREPARED 'p$number'") : 'COMMIT',
			$origin ? 'SELECT pg_replication_origin_session_reset()' : ());
		write_sql($writer, join('; ', @statements));
		$sum{top}++;
		if ($count) { $sum{$_}++ for qw(child last_child) }
		caught_up($writer, $reader);
		my @expected = map { [ $_, $sum{$_}, $_ eq 'top' || $count && $_ ne 'undone' ? 'executed' : 'HIT' ] } sort keys %query;
		my @got;
		for my $table (sort keys %query)
		{
			my ($rows, $status) = ask($reader, $query{$table});
			push @got, [ $table, $rows, $status =~ /^(?:MISS|STALE)$/ ? 'executed' : $status ];
		}
		# In the beginning nothing is stored.
		is_deeply(\@got, \@expected, $name) if $number > 1;
	}
}
is(state($standby), 'replaying', 'the standby still tells of every change');

$_->quit for $writer, $reader;
$_->stop for $standby, $primary;
done_testing();
