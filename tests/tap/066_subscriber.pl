# A subscriber beside a publisher that does not have the library: what the publication leaves out (columns, rows, kinds of changes) and what
# the subscription changes in between (other partitions, tables that are added, a pause, a conflict) outdates what it must, and nothing else.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical', extra => [ '--no-locale', '--encoding=UTF8' ]);
$publisher->append_conf('postgresql.conf', "logical_decoding_work_mem = 64kB\nmax_prepared_transactions = 10\nautovacuum = off\n");
$publisher->start;
unlike($publisher->safe_psql('postgres', 'SHOW shared_preload_libraries'), qr/pg_arrow_cache/, 'the publisher does not preload the library');

# An apply worker that has failed is started again after this time.
my $subscriber = new_server('subscriber', init => { allows_streaming => 'logical' },
	conf => "max_prepared_transactions = 10\nwal_retrieve_retry_interval = 100ms\n");

$publisher->safe_psql('postgres', q{
	CREATE TABLE years (id int PRIMARY KEY, v int, pad text) PARTITION BY RANGE (id);
	CREATE TABLE years_1 PARTITION OF years FOR VALUES FROM (0) TO (1000);
	CREATE TABLE years_2 PARTITION OF years FOR VALUES FROM (1000) TO (100000);
	CREATE TABLE merged (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
	CREATE TABLE merged_1 PARTITION OF merged FOR VALUES FROM (0) TO (100);
	CREATE TABLE merged_2 PARTITION OF merged FOR VALUES FROM (100) TO (200);
});
# Other partitions than those of the publisher, and none at all.
$subscriber->safe_psql('postgres', q{
	CREATE TABLE years (id int PRIMARY KEY, v int, pad text) PARTITION BY RANGE (id);
	CREATE TABLE low PARTITION OF years FOR VALUES FROM (0) TO (50);
	CREATE TABLE middle PARTITION OF years FOR VALUES FROM (50) TO (5000);
	CREATE TABLE high PARTITION OF years FOR VALUES FROM (5000) TO (100000);
	CREATE TABLE merged (id int PRIMARY KEY, v int);
});
$_->safe_psql('postgres', q{
	CREATE TABLE wide (id int PRIMARY KEY, shown int, hidden int);
	CREATE TABLE filtered (id int PRIMARY KEY, region text, v int);
	ALTER TABLE filtered REPLICA IDENTITY FULL;
	CREATE TABLE inserts (id int PRIMARY KEY, v int);
	CREATE TABLE keyless (a int, b int);
	ALTER TABLE keyless REPLICA IDENTITY FULL;
	CREATE TABLE later (id int PRIMARY KEY, v int);
	CREATE TABLE later_without_rows (id int PRIMARY KEY, v int);
	CREATE TABLE still (v int);
}) for $publisher, $subscriber;
$publisher->safe_psql('postgres', q{
	INSERT INTO years SELECT g, 1, '' FROM generate_series(1, 100) g;
	INSERT INTO merged SELECT g, 1 FROM generate_series(1, 199) g;
	INSERT INTO wide VALUES (1, 1, 1);
	INSERT INTO filtered VALUES (1, 'north', 1), (2, 'south', 1);
	INSERT INTO inserts VALUES (1, 1);
	INSERT INTO keyless VALUES (1, 1), (1, 1);
	INSERT INTO later SELECT g, 1 FROM generate_series(1, 10) g;
	INSERT INTO later_without_rows VALUES (1, 1);
	CREATE PUBLICATION whole FOR TABLE years, merged, keyless, still WITH (publish_via_partition_root = true);
	CREATE PUBLICATION parts FOR TABLE wide (id, shown), filtered WHERE (region = 'north');
	CREATE PUBLICATION new_rows FOR TABLE inserts WITH (publish = 'insert');
	CREATE PUBLICATION added;
});
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION whole, parts, new_rows WITH (streaming = on, two_phase = on)");
# The server copies the rows of a table that is added later only without two_phase.
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION t CONNECTION '$connection' PUBLICATION added WITH (streaming = on)");
$subscriber->wait_for_subscription_sync($publisher, $_) for 's', 't';

# What is asked of each table of the subscriber, and what the answer is now.
my %question = (
	years => 'SELECT count(*), sum(v) FROM years',
	low => 'SELECT count(*), sum(v) FROM low',
	middle => 'SELECT count(*), sum(v) FROM middle',
	high => 'SELECT count(*), sum(v) FROM high',
	merged => 'SELECT count(*), sum(v) FROM merged',
	wide => 'SELECT id, shown, hidden FROM wide ORDER BY id',
	filtered => 'SELECT id, region, v FROM filtered ORDER BY id',
	inserts => 'SELECT id, v FROM inserts ORDER BY id',
	keyless => 'SELECT a, b FROM keyless ORDER BY a, b',
	later => 'SELECT count(*), sum(v) FROM later',
	later_without_rows => 'SELECT count(*), sum(v) FROM later_without_rows',
);
my %rows = (
	years => '100|100', low => '49|49', middle => '51|51', high => '0|', merged => '199|199', wide => '1|1|', filtered => '1|north|1',
	inserts => '1|1', keyless => "1|1\n1|1", later => '0|', later_without_rows => '0|',
);
answers_are($subscriber, $question{$_}, $rows{$_}, [ 'MISS', 'HIT' ], "after the first synchronisation: $_") for sort keys %question;

# Asserts that exactly these answers have changed, and that all others are hits.
sub now
{
	my ($name, %changed) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	@rows{ keys %changed } = values %changed;
	for my $table (sort keys %question)
	{
		answers_are($subscriber, $question{$table}, $rows{$table}, exists $changed{$table} ? [ 'STALE', 'HIT' ] : ['HIT'],
			"$name: $table");
	}
	return;
}

# Makes a change on the publisher, waits until it is applied, and asserts the same.
sub applied
{
	my ($change, $name, %changed) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$publisher->safe_psql('postgres', $change);
	$publisher->wait_for_catchup($_) for 's', 't';
	now($name, %changed);
	return;
}

# Through the root: the leaves of the subscriber count, not those of the publisher.
applied('UPDATE years SET v = 2 WHERE id = 60', 'UPDATE through the root', years => '100|101', middle => '51|52');
applied('UPDATE years SET id = 6000 WHERE id = 60', 'a row that moves, there and here', years => '100|101', middle => '50|50', high => '1|2');
applied('UPDATE years SET id = 60 WHERE id = 6000', 'and back', years => '100|101', middle => '51|52', high => '0|');
applied('UPDATE years SET id = 200 WHERE id = 10', 'a row that moves only here', years => '100|101', low => '48|48', middle => '52|53');
applied('UPDATE merged SET id = 150 + 49, v = 5 WHERE id = 199', 'partitions there, one table here', merged => '199|203');
applied('DELETE FROM merged WHERE id > 100', 'DELETE through the root', merged => '100|100');
applied('TRUNCATE merged', 'TRUNCATE through the root', merged => '0|');
applied('INSERT INTO merged_2 VALUES (150, 7)', 'INSERT into a leaf of the publisher', merged => '1|7');

# A column list, a row filter, and a publication of new rows alone.
applied('INSERT INTO wide VALUES (2, 2, 2)', 'a column list: INSERT', wide => "1|1|\n2|2|");
applied('UPDATE wide SET shown = 3 WHERE id = 2', 'a column list: UPDATE', wide => "1|1|\n2|3|");
applied("INSERT INTO filtered VALUES (3, 'south', 1)", 'a row filter: INSERT of a row that it keeps back');
applied("UPDATE filtered SET v = 2 WHERE region = 'south'", 'a row filter: UPDATE of rows that it keeps back');
applied("INSERT INTO filtered VALUES (4, 'north', 1)", 'a row filter: INSERT', filtered => "1|north|1\n4|north|1");
applied("UPDATE filtered SET region = 'south' WHERE id = 1", 'a row filter: an UPDATE that becomes a DELETE', filtered => '4|north|1');
applied("UPDATE filtered SET region = 'north' WHERE id = 2", 'a row filter: an UPDATE that becomes an INSERT',
	filtered => "2|north|2\n4|north|1");
applied("DELETE FROM filtered WHERE region = 'south'", 'a row filter: DELETE of rows that it keeps back');
applied('INSERT INTO inserts VALUES (2, 2)', 'new rows alone: INSERT', inserts => "1|1\n2|2");
applied('UPDATE inserts SET v = 3; DELETE FROM inserts WHERE id = 1; TRUNCATE inserts', 'new rows alone: what is not published');

# Without a key, rows are found by all of their values.
applied('UPDATE keyless SET b = 2 WHERE ctid = (SELECT min(ctid) FROM keyless)', 'no key: UPDATE', keyless => "1|1\n1|2");
applied('DELETE FROM keyless WHERE b = 2', 'no key: DELETE', keyless => '1|1');
applied('BEGIN; DELETE FROM keyless; UPDATE years SET v = 9; ROLLBACK', 'what is rolled back');
applied('BEGIN; INSERT INTO wide VALUES (3, 3, 3); TRUNCATE keyless, merged; COMMIT', 'several tables at once',
	wide => "1|1|\n2|3|\n3|3|", keyless => '', merged => '0|');

# Prepared transactions: the old rows until the end, and only what was changed afterwards. Answers over what is prepared are not
# stored meanwhile.
for my $case ([ 'ROLLBACK', '100|101', '48|48' ], [ 'COMMIT', '99|100', '47|47' ])
{
	my ($end, $years, $low) = @$case;
	$publisher->safe_psql('postgres', "BEGIN; DELETE FROM years WHERE id = 20; PREPARE TRANSACTION 'p'");
	ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_prepared_xacts'), "$end PREPARED: prepared here");
	is((answer($subscriber, $question{$_}))[0], $rows{$_}, "$end PREPARED: the old rows of $_") for 'years', 'low';
	answers_are($subscriber, $question{$_}, $rows{$_}, ['HIT'], "$end PREPARED: another leaf or table: $_") for 'middle', 'high', 'wide';
	$publisher->safe_psql('postgres', "$end PREPARED 'p'");
	ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_prepared_xacts'), "$end PREPARED: ended here");
	@rows{ 'years', 'low' } = ($years, $low);
	is_deeply([ map { (answer($subscriber, $question{$_}))[0] } ('years', 'low') x 2 ], [ ($years, $low) x 2 ],
		"$end PREPARED: the rows afterwards");
	now("$end PREPARED");
}

# More than logical_decoding_work_mem holds: the transaction is streamed while it is in progress.
my $session = $publisher->background_psql('postgres');
$session->query_safe('BEGIN');
$session->query_safe(q{INSERT INTO years SELECT g, 1, repeat('x', 100) FROM generate_series(6001, 8000) g});
$session->query_safe(q{UPDATE filtered SET v = v + 1});
$publisher->safe_psql('postgres', 'INSERT INTO still VALUES (1)');
$publisher->wait_for_catchup('s');
ok($publisher->poll_query_until('postgres', 'SELECT sum(stream_txns) > 0 FROM pg_stat_replication_slots'), 'a large transaction: streamed');
now('a large transaction in progress');
$session->query_safe('COMMIT');
$session->quit;
$publisher->wait_for_catchup('s');
now('a large transaction at its end', years => '2099|2100', high => '2000|2000', filtered => "2|north|3\n4|north|2");

# Tables that are published later: with the rows that are there, and without them.
$publisher->safe_psql('postgres', 'ALTER PUBLICATION added ADD TABLE later');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION t REFRESH PUBLICATION');
$subscriber->wait_for_subscription_sync($publisher, 't');
now('a table that is added', later => '10|10');
$publisher->safe_psql('postgres', 'ALTER PUBLICATION added ADD TABLE later_without_rows');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION t REFRESH PUBLICATION WITH (copy_data = false)');
$subscriber->wait_for_subscription_sync($publisher, 't');
now('a table that is added without its rows');
applied('INSERT INTO later VALUES (11, 1); INSERT INTO later_without_rows VALUES (2, 2)', 'INSERT into both', later => '11|11',
	later_without_rows => '1|2');

# A subscription that stands still: answers are exact for what this server has.
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s DISABLE');
$publisher->safe_psql('postgres', 'UPDATE wide SET shown = 10 WHERE id = 1');
now('a subscription that is disabled');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s ENABLE');
$publisher->wait_for_catchup('s');
now('enabled again', wide => "1|10|\n2|3|\n3|3|");

# A conflict: the worker fails and begins again, until a row of this server's own is out of the way. Nothing is outdated by its attempts.
$subscriber->safe_psql('postgres', "INSERT INTO later VALUES (12, 100)");
now('a row of its own', later => '12|111');
my $log = -s $subscriber->logfile;
$publisher->safe_psql('postgres', 'INSERT INTO later VALUES (12, 1)');
$subscriber->wait_for_log(qr/duplicate key value violates unique constraint "later_pkey"/, $log);
now('while the worker fails');
$subscriber->safe_psql('postgres', 'DELETE FROM later WHERE id = 12');
$publisher->wait_for_catchup('t');
is($subscriber->safe_psql('postgres', 'SET pg_arrow_cache.enabled = off; SELECT v FROM later WHERE id = 12'), '1', 'the conflict is over');
now('when the conflict is over', later => '12|12');

# Definitions are not replicated: the worker waits for the column, whose appearance outdates the answers over the table.
$log = -s $subscriber->logfile;
$publisher->safe_psql('postgres', q{ALTER TABLE later ADD COLUMN note text; INSERT INTO later VALUES (13, 1, 'new')});
$subscriber->wait_for_log(qr/is missing replicated column: "note"/, $log);
now('a column that is missing');
$subscriber->safe_psql('postgres', 'ALTER TABLE later ADD COLUMN note text');
$publisher->wait_for_catchup('t');
now('a column that was added here, too', later => '13|13');

# A materialized view of the subscriber's own is as old as its last REFRESH.
$subscriber->safe_psql('postgres', 'CREATE MATERIALIZED VIEW summary AS SELECT sum(v) FROM later');
my $summary = 'SELECT * FROM summary';
answers_are($subscriber, $summary, '13', [ 'MISS', 'HIT' ], 'a materialized view');
applied('UPDATE later SET v = 2 WHERE id = 1', 'a materialized view: its table', later => '13|14');
answers_are($subscriber, $summary, '13', ['HIT'], 'a materialized view: as it was');
$subscriber->safe_psql('postgres', 'REFRESH MATERIALIZED VIEW summary');
answers_are($subscriber, $summary, '14', [ 'STALE', 'HIT' ], 'a materialized view: after REFRESH');

$subscriber->safe_psql('postgres', "DROP SUBSCRIPTION $_") for 's', 't';
now('without subscriptions');

done_testing();
