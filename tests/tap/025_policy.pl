# Policies belong to their relations: pg_dump takes them along. And a transaction that reads a trusted foreign table under
# an old remote snapshot keeps what it sees to itself.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('policy');
my $shown = 'SELECT relation, policy FROM arrow_cache.policies ORDER BY relation::text';

# A dump keeps policies, of every kind of relation and with any name.
$node->safe_psql('postgres', q{
	CREATE EXTENSION file_fdw;
	CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
	CREATE FOREIGN TABLE a_file (a int) SERVER files OPTIONS (filename '/dev/null');
	CREATE TABLE "B table" (a int);
	CREATE TABLE c_parted (a int) PARTITION BY LIST (a);
	CREATE VIEW d_view AS SELECT a FROM "B table";
	CREATE MATERIALIZED VIEW e_stored AS SELECT a FROM "B table";
	CREATE TABLE f_default (a int);
	SELECT arrow_cache.set_policy('a_file', 'trusted');
	SELECT arrow_cache.set_policy(relation, 'never') FROM unnest('{"\"B table\"",c_parted,d_view,e_stored}'::regclass[]) AS relation;
	SELECT arrow_cache.set_policy('f_default', 'never');
	SELECT arrow_cache.set_policy('f_default', 'default');
});
my $policies = qq{"B table"|never\na_file|trusted\nc_parted|never\nd_view|never\ne_stored|never};
is($node->safe_psql('postgres', $shown), $policies, 'policies as they were set');

my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
$node->command_ok([ 'pg_dump', '--file', $dump, 'postgres' ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored TEMPLATE template0');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', 'restored', '-f', $dump ], 'the dump is restored');
is($node->safe_psql('restored', $shown), $policies, 'with its policies');
answers_are($node, 'SELECT count(*) FROM d_view', '0', ['BYPASS policy_never'], 'which count there', database => 'restored');
answers_are($node, 'SELECT count(*) FROM f_default', '0', [ 'MISS', 'HIT' ], 'and a default is one', database => 'restored');

# A policy set by one session counts for the others at once, prepared plans included.
my ($output) = answer($node, 'EXECUTE kept', before => q{
	PREPARE kept AS SELECT count(*) FROM f_default;
	EXECUTE kept;
	EXECUTE kept;
	\! psql -X -q -d postgres -c "SELECT arrow_cache.set_policy('f_default', 'never')" >/dev/null});
is($output, "0\n0\n0", 'a prepared statement, and a policy that another session sets');
answers_are($node, 'SELECT count(*) FROM f_default', '0', ['BYPASS policy_never'], 'a new session');
is((answer($node, 'EXECUTE kept', before => q{
	PREPARE kept AS SELECT count(*) FROM f_default;
	EXECUTE kept;
	\! psql -X -q -d postgres -c "SELECT arrow_cache.set_policy('f_default', 'default'), arrow_cache.set_policy('f_default', 'never')" >/dev/null}))[1],
	'BYPASS policy_never', 'a prepared statement is judged again');

# A statement that names no provider fails as it does without the library; naming ours works in each new session.
my (undef, undef, $error) = $node->psql('postgres', q{SECURITY LABEL ON TABLE f_default IS 'never'});
like($error, qr/no security label providers have been loaded/, 'the provider shows itself only to those who name it');
$node->safe_psql('postgres', q{SECURITY LABEL FOR pg_arrow_cache ON TABLE f_default IS NULL});
is($node->safe_psql('postgres', q{SELECT arrow_cache.policy('f_default')}), 'default', 'a label set to NULL is the default');

# postgres_fdw reads under a snapshot that is as old as the transaction. Another session changes the table meanwhile.
my ($host, $port) = ($node->host, $node->port);
$node->safe_psql('postgres', qq{
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (dbname 'postgres', host '$host', port '$port');
	CREATE USER MAPPING FOR CURRENT_USER SERVER loopback;
	CREATE TABLE there (a int);
	CREATE FOREIGN TABLE here (a int) SERVER loopback OPTIONS (table_name 'there');
	SELECT arrow_cache.set_policy('here', 'trusted');
	INSERT INTO here VALUES (1);
});
my $count = 'SELECT count(*) FROM here';
answers_are($node, $count, '1', [ 'MISS', 'HIT' ], 'a trusted foreign table');
my ($rows, $what) = answer($node, $count, before => qq{
	BEGIN;
	SELECT sum(a) FROM here;
	\\! psql -X -q -d postgres -c "INSERT INTO here VALUES (2)"
	});
is($rows, "1\n1", 'a transaction with an older remote snapshot sees what it saw');
is($what, 'BYPASS writer_in_progress', 'and stores nothing');
# Their first does not find the old entry: the transaction above has seen that it is out of date, and dropped it.
answers_are($node, $count, '2', [ 'MISS', 'HIT' ], 'the others see the change');
answers_are($node, 'SELECT sum(a) FROM here', '3', [ 'STALE', 'HIT' ], 'also where the old transaction had stored before it');

# A change that is rolled back here may have been committed there.
my $sum = 'SELECT max(a) FROM here';
answers_are($node, $sum, '2', [ 'MISS', 'HIT' ], 'before a failing transaction');
$node->safe_psql('postgres', "BEGIN; DELETE FROM here; ROLLBACK");
answers_are($node, $sum, '2', [ 'STALE', 'HIT' ], 'a rolled-back change drops what rests on the table');

done_testing();
