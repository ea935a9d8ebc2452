# With track_counts = off the server does not list what a transaction has changed. Whatever a transaction writes, nothing stale is
# served: not to others, not to the writer, and not when the setting changes in the middle of the transaction.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $node = new_server('track_counts');
$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, v int);
	CREATE TABLE child (id int REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE, v int);
	CREATE TABLE copied (v int);
	CREATE TABLE source (id int, v int);
	CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS v FROM source;
	CREATE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN INSERT INTO copied VALUES (NEW.v); RETURN NULL; END';
	CREATE TRIGGER follow AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION follow();
	CREATE FUNCTION quietly(n int) RETURNS void LANGUAGE sql SET track_counts = off AS
		'UPDATE t SET v = v + n';
	CREATE TABLE parts (id int, v int) PARTITION BY RANGE (id);
	CREATE TABLE leaf PARTITION OF parts FOR VALUES FROM (0) TO (1000);
	CREATE TABLE quiet (id int, v int) PARTITION BY RANGE (id);
	CREATE TABLE quiet_leaf PARTITION OF quiet FOR VALUES FROM (0) TO (1000);
	CREATE FUNCTION switch() RETURNS trigger LANGUAGE plpgsql AS
		'DECLARE now text; BEGIN now := set_config(''track_counts'', TG_ARGV[0], true); RETURN NULL; END';
	CREATE TRIGGER a_off BEFORE INSERT OR UPDATE OR DELETE ON parts EXECUTE FUNCTION switch('off');
	CREATE TRIGGER z_on AFTER INSERT OR UPDATE OR DELETE ON parts EXECUTE FUNCTION switch('on');
});

my %query = map { $_ => "SELECT count(*), sum(v) FROM $_" } qw(t child copied source m leaf quiet_leaf);

# Fills the cache for a table, lets `write` happen, and compares the next answers with uncached ones. A session with an
# older snapshot looks on, unless the write has to have the table for itself.
sub never_stale
{
	my ($table, $write, $name, %params) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $uncached = "SET pg_arrow_cache.enabled = off; $query{$table}";
	my $before = $node->safe_psql('postgres', $uncached);
	answer($node, $query{$table}) for 1 .. 2;
	is((answer($node, $query{$table}))[1], 'HIT', "$name: cached before");
	my $old;
	if (!$params{exclusive})
	{
		$old = $node->background_psql('postgres');
		$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
		is($old->query_safe($query{$table}), $before, "$name: seen by an older snapshot");
	}

	my $seen = $node->safe_psql('postgres', "$write\n;$query{$table}");
	my $after = $node->safe_psql('postgres', $uncached);
	isnt($after, $before, "$name: changes $table");
	like($seen, qr/^\Q$after\E\z/m, "$name: the writer sees it");
	is_deeply([ map { (answer($node, $query{$table}))[0] } 1 .. 3 ], [ ($after) x 3 ], "$name: and so do others");
	return if !$old;
	is($old->query_safe($query{$table}), $before, "$name: the older snapshot does not");
	$old->quit;
	return;
}

my $off = 'SET track_counts = off;';
never_stale('t', "$off INSERT INTO t SELECT g, g FROM generate_series(1, 10) g", 'INSERT');
never_stale('copied', "$off INSERT INTO t VALUES (11, 11)", 'a trigger');
never_stale('t', "$off UPDATE t SET v = v + 1", 'UPDATE');
never_stale('t', "$off DELETE FROM t WHERE id = 10", 'DELETE');
never_stale('t', "$off WITH w AS (UPDATE t SET v = v + 1 RETURNING v) SELECT FROM w", 'a data-modifying WITH');
never_stale('t', "$off
	MERGE INTO t USING (VALUES (50)) AS n (id) ON t.id = n.id WHEN NOT MATCHED THEN INSERT VALUES (n.id, 1)",
	'MERGE');
never_stale('source', "$off COPY source FROM stdin;\n1\t5\n2\t6\n\\.\n", 'COPY');
never_stale('child', "$off INSERT INTO child SELECT id, v FROM t", 'INSERT ... SELECT');
never_stale('child', "$off DELETE FROM t WHERE id = 1", 'a cascading DELETE');
never_stale('m', "$off REFRESH MATERIALIZED VIEW m", 'REFRESH MATERIALIZED VIEW', exclusive => 1);
never_stale('child', "$off TRUNCATE t CASCADE", 'TRUNCATE CASCADE', exclusive => 1);
never_stale('t', 'INSERT INTO t SELECT g, g FROM generate_series(1, 10) g; SELECT quietly(5)',
	'a function that switches it off');
never_stale('t', "$off DO 'BEGIN EXECUTE ''UPDATE t SET v = v + 1''; END'", 'DO');
never_stale('t', "$off PREPARE w AS UPDATE t SET v = v + 1; EXECUTE w", 'EXECUTE');

# Switched in the middle of a transaction.
my ($set_off, $set_on) = map { "SET LOCAL track_counts = $_;" } qw(off on);
never_stale('t', "BEGIN; $set_off UPDATE t SET v = v + 1; $set_on COMMIT", 'on again before the commit');
never_stale('t', "BEGIN; UPDATE t SET v = v + 1; $set_off COMMIT", 'off after the write');
never_stale('source', "BEGIN; $set_off COPY source FROM stdin;\n3\t7\n\\.\n$set_on COMMIT",
	'COPY, on again before the commit');
never_stale('t', "BEGIN; SAVEPOINT s; $set_off UPDATE t SET v = v + 1; RELEASE s; COMMIT", 'in a subtransaction');

# Switched within a statement, by expressions that are so simple that they start no executor.
never_stale('leaf', 'INSERT INTO parts VALUES (1, 1), (2, 2)', 'triggers that switch it off and on: INSERT');
never_stale('leaf', 'UPDATE parts SET v = v + 1', 'triggers that switch it off and on: UPDATE');
never_stale('leaf', "COPY parts FROM stdin;\n3\t7\n\\.\n", 'triggers that switch it off and on: COPY');
never_stale('leaf', 'DELETE FROM parts WHERE id = 1', 'triggers that switch it off and on: DELETE');

# For the whole server.
$node->append_conf('postgresql.conf', 'track_counts = off');
$node->restart;
never_stale('t', 'UPDATE t SET v = v + 1', 'off for the server: UPDATE');
never_stale('source', "COPY source FROM stdin;\n4\t8\n\\.\n", 'off for the server: COPY');

# Switched by a reload: between two statements, and while a subtransaction has failed, where the server speaks of no
# transaction in progress.
for my $case ([ 'between two statements', [] ], [ 'in a failed subtransaction', [ 'SAVEPOINT s', 'SELECT 1/0' ] ])
{
	my ($name, $steps) = @$case;
	$node->append_conf('postgresql.conf', 'track_counts = off');
	$node->reload;
	ok($node->poll_query_until('postgres', q{SELECT current_setting('track_counts') = 'off'}), "a reload $name: switched off");
	my ($rows) = answer($node, $query{quiet_leaf});
	answers_are($node, $query{quiet_leaf}, $rows, ['HIT'], "a reload $name: cached before");
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query('BEGIN');
	$session->query('INSERT INTO quiet VALUES (9, 9)');
	$session->query($_) for @$steps;
	$node->append_conf('postgresql.conf', 'track_counts = on');
	$node->reload;
	ok($node->poll_query_until('postgres', q{SELECT current_setting('track_counts') = 'on'}), "a reload $name: seen");
	$session->query('ROLLBACK TO s') if @$steps;
	is($session->query('SHOW track_counts'), 'on', "a reload $name: seen by the session");
	$session->query('COMMIT');
	$session->quit;
	$rows = $node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; $query{quiet_leaf}");
	answers_are($node, $query{quiet_leaf}, $rows, [ 'STALE', 'HIT' ], "a reload $name: nothing stale");
}

done_testing();
