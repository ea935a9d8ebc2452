# Answers outlive a restart: after a smart or a fast shutdown they are hits again, with the same bytes, as far as
# nothing has changed them.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('saved', conf => "max_prepared_transactions = 5\n");
my $file = $node->data_dir . '/pg_stat/pg_arrow_cache.saved';
$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, a int, b text, n numeric, at timestamptz);
	INSERT INTO t SELECT g, g % 80, 'row ' || g, g / 7.0, '2026-01-01'::timestamptz + g * interval '1 hour' FROM generate_series(1, 8000) g;
	CREATE TABLE u (a int);
	INSERT INTO u SELECT generate_series(1, 10);
	CREATE TYPE mood AS ENUM ('sad', 'glad');
	CREATE TABLE m (mood mood);
	INSERT INTO m VALUES ('glad'), ('sad');
	CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 * 2;
	CREATE VIEW v AS SELECT a, count(*) AS count FROM t GROUP BY a;
	CREATE ROLE reader;
	GRANT SELECT ON t TO reader;
});
my @queries = (
	(map { "SELECT * FROM t WHERE a = $_ ORDER BY id" } 0 .. 73),
	'SELECT sum(a), avg(n) FROM t', 'SELECT * FROM v ORDER BY a', 'SELECT twice(a) FROM u ORDER BY a', 'SELECT * FROM m ORDER BY mood',
	q{SELECT a, array_agg(b ORDER BY id) FROM t WHERE at > '2026-02-01' GROUP BY a ORDER BY a}, 'SELECT sum(a) FROM u');

# Rows and status of all queries, in one session.
sub all_answers
{
	my ($before) = @_;
	my $output = $node->safe_psql('postgres', join "\n", $before // '', map {
		"$_;\nSELECT '=> ' || arrow_cache.last_status() || coalesce(' ' || arrow_cache.last_reason(), '');" } @queries);
	my @parts = split /^=> (.*)\n?/m, $output;
	return map { [ @parts[ 2 * $_, 2 * $_ + 1 ] ] } 0 .. $#queries;
}

sub statuses { my %count; $count{ $_->[1] }++ for @_; return \%count; }
sub rows { return [ map { $_->[0] } @_ ]; }

all_answers();
my @before = all_answers();
is_deeply(statuses(@before), { HIT => 80 }, 'all answers are stored');

for my $mode (qw(fast smart))
{
	my $log = -s $node->logfile;
	$node->stop($mode);
	ok(-f $file, "$mode: there is a file");
	is(sprintf('%04o', (CORE::stat $file)[2] & 07777), '0600', "$mode: only the server may read it");
	$node->start;
	ok(!-e $file, "$mode: the file is gone");
	my @after = all_answers();
	is_deeply(statuses(@after), { HIT => 80 }, "$mode: all answers are hits");
	is_deeply(rows(@after), rows(@before), "$mode: they are the same");
	like(slurp_file($node->logfile, $log), qr/the cache begins with \d+ results of before the restart/, "$mode: the log tells it");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM arrow_cache.check()'), '0', "$mode: everything in the cache agrees");
}
is_deeply(
	[ answer($node, $queries[0], before => 'SET ROLE reader;') ]->[1], 'MISS', 'another role has answers of its own');

# A start that fails when the file was read: nobody has used what was in it.
my $hba = $node->data_dir . '/pg_hba.conf';
$node->stop;
rename $hba, "$hba.kept" or die "$hba: $!";
ok(!$node->start(fail_ok => 1), 'a server without pg_hba.conf does not start');
ok(-f $file, 'it leaves the file');
rename "$hba.kept", $hba or die "$hba: $!";
$node->start;
is_deeply(statuses(all_answers()), { HIT => 80 }, 'all answers are hits when it starts then');

# What was changed before the stop, or is changed after the start, is computed anew.
my ($t, $u) = ('SELECT sum(a) FROM t', 'SELECT sum(a) FROM u');
answers_are($node, $t, '316000', [ 'MISS', 'HIT' ], 'stored');
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1 WHERE id = 1');
$node->restart;
answers_are($node, $t, '316001', [ 'MISS', 'HIT' ], 'a write right before the stop outdates the answer');
answers_are($node, $u, '55', ['HIT'], 'and no other');
$node->restart;
$node->safe_psql('postgres', 'UPDATE t SET a = a - 1 WHERE id = 1');
answers_are($node, $t, '316000', [ 'STALE', 'HIT' ], 'so does a write after the start');

# A transaction that was under way at the stop is rolled back. What it had published is outdated, nothing else.
my $writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; DELETE FROM t');
$node->stop('fast');
eval { $writer->quit };
$node->start;
answers_are($node, $t, '316000', ['HIT'], 'a transaction that had not published');

# Definitions.
my $twice = 'SELECT sum(twice(a)) FROM u';
answers_are($node, $twice, '110', [ 'MISS', 'HIT' ], 'a function of a user');
$node->restart;
answers_are($node, $twice, '110', ['HIT'], 'a function of a user, after the restart');
$node->safe_psql('postgres', 'CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 * 2 + 1');
answers_are($node, $twice, '120', [ 'MISS', 'HIT' ], 'a definition that is changed after the start');
$node->safe_psql('postgres', 'CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 * 2');
$node->restart;
answers_are($node, $twice, '110', [ 'MISS', 'HIT' ], 'a definition that is changed right before the stop');
# A function whose names are resolved when it runs has the version of the catalogs in its key.
$node->safe_psql('postgres', q{CREATE FUNCTION old_style(int) RETURNS int STRICT IMMUTABLE LANGUAGE sql AS 'SELECT coalesce($1, 0) + 1'});
my $named = 'SELECT sum(old_style(a)) FROM u';
answers_are($node, $named, '65', [ 'MISS', 'HIT' ], 'a body with names');
$node->restart;
answers_are($node, $named, '65', ['HIT'], 'a body with names, after the restart');
for my $n (1 .. 20) { $node->safe_psql('postgres', "CREATE TABLE x$n (a int); DROP TABLE x$n"); }
answers_are($node, $named, '65', ['MISS'], 'a body with names, after changes of definitions');
$node->safe_psql('postgres', 'ALTER TABLE u ADD COLUMN z int DEFAULT 5');
$node->restart;
answers_are($node, 'SELECT * FROM u WHERE a = 1', '1|5', [ 'MISS', 'HIT' ], 'a new column');
answers_are($node, 'SELECT * FROM m ORDER BY mood', "sad\nglad", [ 'MISS', 'HIT' ], 'an enum');
$node->restart;
$node->safe_psql('postgres', q{ALTER TYPE mood RENAME VALUE 'sad' TO 'bad'});
answers_are($node, 'SELECT * FROM m ORDER BY mood', "bad\nglad", [ 'STALE', 'HIT' ], 'a label of an enum');

# Prepared transactions that outlive the stop.
answers_are($node, $t, '316000', [ 'MISS', 'HIT' ], 'before preparing');
answers_are($node, $u, '55', [ 'MISS', 'HIT' ], 'before preparing: the other one');
$node->safe_psql('postgres', q{BEGIN; UPDATE t SET a = a + 5 WHERE id = 1; PREPARE TRANSACTION 'p'});
$node->restart;
answers_are($node, $t, '316000', ['BYPASS ddl_in_progress'], 'what a prepared transaction changes');
answers_are($node, $u, '55', ['BYPASS writer_in_progress'], 'nothing is known of what is from before the start');
$node->restart;
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
answers_are($node, $t, '316005', [ 'MISS', 'HIT' ], 'after its commit');
answers_are($node, $u, '55', [ 'STALE', 'HIT' ], 'nobody knows what it has changed');
$node->safe_psql('postgres', q{BEGIN; CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 * 3; PREPARE TRANSACTION 'd'});
$node->restart;
my $rows = [ answer($node, $twice) ]->[0];
is($rows, '110', 'before the commit of a prepared definition');
$node->safe_psql('postgres', q{COMMIT PREPARED 'd'});
is([ answer($node, $twice) ]->[0], '165', 'after the commit of a prepared definition');
is([ answer($node, $twice) ]->[0], '165', 'and again');
answers_are($node, $twice, '165', ['HIT'], 'it is stored in the end');

# Change tokens are those of one start.
my $etag = sub { $node->safe_psql('postgres', "SELECT arrow_cache.etag('SELECT sum(a) FROM t')") };
my $token = $etag->();
like($token, qr/\A\w{64}(\.\w+)+\z/, 'a change token');
is($etag->(), $token, 'the same change token');
answer($node, $t) for 1 .. 2;
$node->restart;
answers_are($node, $t, '316005', ['HIT'], 'what the token stands for outlives the restart');
isnt($etag->(), $token, 'the token does not');

# Values: what is tracked before the stop is so after the start.
$node->safe_psql('postgres', 'CREATE TABLE tenants AS SELECT g AS id, g % 50 AS tenant, 1 AS amount FROM generate_series(1, 5000) g');
my $of = sub { "SELECT sum(amount) FROM tenants WHERE tenant = $_[0]" };
for my $n (0 .. 15) { answer($node, $of->($n)) for 1 .. 2; }
answers_are($node, $of->(3), '100', ['HIT'], 'answers over values');
answer($node, $of->(30)) for 1 .. 3;
$node->restart;
answers_are($node, $of->(30), '100', ['HIT'], 'answers over values, after the restart');
$node->safe_psql('postgres', 'UPDATE tenants SET amount = 2 WHERE id = 31');
answers_are($node, $of->(30), '100', ['HIT'], 'a change of another value');
$node->safe_psql('postgres', 'UPDATE tenants SET amount = 2 WHERE id = 30');
answers_are($node, $of->(30), '101', [ 'STALE', 'HIT' ], 'a change of its value');

# What can change while the server is down, and nobody can tell it.
my $outside = PostgreSQL::Test::Utils::tempdir . '/outside';
append_to_file($outside, "1\n");
$node->safe_psql('postgres', qq{CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
	CREATE FOREIGN TABLE outside (a int) SERVER files OPTIONS (filename '$outside')});
$node->safe_psql('postgres', q{SELECT arrow_cache.set_policy('outside', 'trusted')});
answers_are($node, 'SELECT sum(a) FROM outside', '1', [ 'MISS', 'HIT' ], 'a trusted foreign table');
answers_are($node, $u, '55', [ 'MISS', 'HIT' ], 'beside another one');
$node->stop('fast');
append_to_file($outside, "2\n");
$node->start;
answers_are($node, 'SELECT sum(a) FROM outside', '3', [ 'MISS', 'HIT' ], 'a trusted foreign table, after the restart');
answers_are($node, $u, '55', ['HIT'], 'beside another one, after the restart');

# Switched off, there is neither a file nor anything that is read.
$node->stop;
$node->append_conf('postgresql.conf', 'pg_arrow_cache.save_on_shutdown = off');
$node->start;
ok(!-e $file, 'switched off: the file is removed');
answers_are($node, $u, '55', [ 'MISS', 'HIT' ], 'switched off: nothing is read');
$node->stop;
ok(!-e $file, 'switched off: there is no file');
$node->append_conf('postgresql.conf', 'pg_arrow_cache.save_on_shutdown = on');
$node->start;
answers_are($node, $u, '55', [ 'MISS', 'HIT' ], 'switched on again');
$node->restart;
answers_are($node, $u, '55', ['HIT'], 'switched on again, after a restart');

done_testing();
