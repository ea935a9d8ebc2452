# Every way for a prepared transaction to end: committed or rolled back, by the session that prepared it, by another one, or
# after a restart; one alone or more than a slot remembers one by one; with subtransactions in it, with TRUNCATE, with a
# cascade. Readers see the old rows up to the end and the right ones after it, and nothing else leaves the cache.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $node = new_server('two_phase', conf => "max_prepared_transactions = 20\n");
$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, v int);
	CREATE TABLE child (id int REFERENCES t ON DELETE CASCADE, v int);
	CREATE TABLE u (v int);
	INSERT INTO u VALUES (1);
});
my %query = map { $_ => "SELECT count(*), sum(v) FROM $_" } qw(t child u);

sub refill
{
	$node->safe_psql('postgres', q{
		TRUNCATE t, child;
		INSERT INTO t SELECT g, g FROM generate_series(1, 10) g;
		INSERT INTO child SELECT id, v FROM t;
	});
	answer($node, $query{$_}) for keys %query;
	return;
}

sub uncached
{
	my ($table) = @_;
	return $node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; $query{$table}");
}

# Repeated answers are not stale, and none is stored wrongly in between.
sub read_is
{
	my ($table, $rows, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is_deeply([ map { (answer($node, $query{$table}))[0] } 1 .. 3 ], [ ($rows) x 3 ], $name);
	return;
}

# The change, what it leaves of t and of child (10 rows with a sum of 55 each), and whether readers may look at t meanwhile.
my @CHANGES = (
	[ 'INSERT', 'INSERT INTO t VALUES (11, 11)', '11|66', '10|55', 1 ],
	[ 'a released subtransaction', 'SAVEPOINT a; UPDATE t SET v = v + 1; RELEASE a', '10|65', '10|55', 1 ],
	[ 'a subtransaction rolled back', 'UPDATE child SET v = v + 1; SAVEPOINT a; UPDATE t SET v = 0; ROLLBACK TO a',
		'10|55', '10|65', 1 ],
	[ 'a cascade', 'DELETE FROM t WHERE id = 10', '9|45', '9|45', 1 ],
	[ 'an uncounted change', 'SET LOCAL track_counts = off; UPDATE t SET v = v + 1', '10|65', '10|55', 1 ],
	[ 'TRUNCATE', 'TRUNCATE t, child', '0|', '0|', 0 ],
);
for my $change (@CHANGES)
{
	my ($what, $sql, $t, $child, $readable) = @$change;
	for my $end ('COMMIT', 'ROLLBACK')
	{
		for my $by ('the same session', 'another session', 'fast', 'immediate')
		{
			my $name = "$what, $end by $by" =~ s/by (fast|immediate)/after a restart ($1)/r;
			refill();
			my $session = $node->background_psql('postgres');
			$session->query_safe($_) for 'BEGIN', split(/; /, $sql), q{PREPARE TRANSACTION 'p'};
			if ($by !~ /session/)
			{
				$session->quit;
				$node->stop($by);
				$node->start;
			}
			if ($readable)
			{
				read_is($_, '10|55', "$name: prepared, $_") for qw(t child);
			}
			if ($by eq 'the same session')
			{
				$session->query_safe("$end PREPARED 'p'");
			}
			else
			{
				$node->safe_psql('postgres', "$end PREPARED 'p'");
			}
			($t, $child) = ('10|55', '10|55') if $end eq 'ROLLBACK';
			is($session->query_safe($query{t}), $t, "$name: the session that prepared it") if $by =~ /session/;
			$session->quit if $by =~ /session/;
			read_is('t', $t, "$name: t");
			read_is('child', $child, "$name: child");
			is(uncached($_), (answer($node, $query{$_}))[0], "$name: $_ without the cache") for qw(t child);
			answers_are($node, $query{$_}, $_ eq 't' ? $t : $child, ['HIT'], "$name: $_ is cached") for qw(t child);
			read_is('u', '1|1', "$name: another table");
		}
	}
}

# More of them than a slot remembers, ended in another order than they began: with ids next to each other, with ids far from
# each other, and over a restart.
for my $case ([ 'many', 0, '' ], [ 'many, far apart', 3000, '' ], [ 'many, fast restart', 0, 'fast' ],
	[ 'many, far apart, immediate restart', 3000, 'immediate' ])
{
	my ($name, $distance, $restart) = @$case;
	refill();
	for my $n (11 .. 18)
	{
		$node->safe_psql('postgres', "BEGIN; INSERT INTO t VALUES ($n, 0); PREPARE TRANSACTION 'p$n'");
		$node->safe_psql('postgres',
			"DO 'BEGIN FOR i IN 1 .. $distance LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END'");
	}
	if ($restart)
	{
		$node->stop($restart);
		$node->start;
	}
	read_is('t', '10|55', "$name: all prepared");
	my $snapshot = $node->background_psql('postgres');
	$snapshot->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($snapshot->query_safe($query{t}), '10|55', "$name: an older snapshot");
	my $rows = 10;
	for my $n (15, 11, 18, 12, 13, 17, 16, 14)
	{
		my $end = $n % 3 ? 'COMMIT' : 'ROLLBACK';
		$node->safe_psql('postgres', "$end PREPARED 'p$n'");
		$rows++ if $n % 3;
		read_is('t', "$rows|55", "$name: $n has ended ($end)");
		is($snapshot->query_safe($query{t}), '10|55', "$name: the older snapshot after that");
	}
	$snapshot->query_safe('COMMIT');
	is($snapshot->query_safe($query{t}), "$rows|55", "$name: its next snapshot");
	$snapshot->quit;
	answers_are($node, $query{t}, "$rows|55", ['HIT'], "$name: cached when all have ended");
}

done_testing();
