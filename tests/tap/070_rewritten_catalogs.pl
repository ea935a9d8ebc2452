# Catalogs that are rewritten (VACUUM FULL) get another file, and records of the heap do not tell that it is theirs. A standby must not take
# the lack of such records for the lack of a change.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Cluster;
use StandbyTest;
use Test::More;

my $primary = new_primary('primary');
$primary->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT g AS v FROM generate_series(1, 100) g;
	CREATE TABLE u AS SELECT 1 AS v;
	CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
	CREATE TABLE parts (k int, v int) PARTITION BY RANGE (k);
	CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
	CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
	ALTER TABLE part_2 ADD CHECK (k IS NOT NULL AND k >= 10 AND k < 20);
	INSERT INTO parts VALUES (1, 1), (11, 100);
	CREATE TYPE mood AS ENUM ('sad');
	CREATE TABLE feelings AS SELECT 'sad'::mood AS v;
});
my $standby = new_standby('standby', $primary);
my ($writer, $other) = map { session($primary) } 1 .. 2;
my $reader = session($standby);
my $plain = session($standby, 'SET pg_arrow_cache.enabled = off');
# The first reader waits for those who run, so nobody does.
caught_up($other, $reader);
cached($reader, 'SELECT v FROM u', 'the first reader');

# The answer is cached; then `change` is replayed, and cached and uncached answers agree.
sub follows
{
	my ($name, $query, $old, $new, $change) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	caught_up($other, $reader);
	is(cached($reader, $query, "$name: before"), $old, "$name: the old answer");
	$change->();
	caught_up($other, $reader, $plain);
	is(ask_plainly($plain, $query), $new, "$name: the uncached answer");
	is((ask($reader, $query))[0], $new, "$name: the cached answer") for 1 .. 2;
	my $later = session($standby);
	is((ask($later, $query))[0], $new, "$name: in another session");
	$later->quit;
	return;
}

# A transaction changes rows of both files of pg_class. It is known only of the first file that it is a catalog's.
write_sql($writer, 'BEGIN', 'ANALYZE u');
write_sql($other, 'VACUUM FULL pg_class');
follows('pg_class', 'SELECT count(*) FROM t', 100, 0, sub { write_sql($writer, 'TRUNCATE t', 'COMMIT') });
write_sql($writer, 'INSERT INTO t SELECT generate_series(1, 10)');

write_sql($writer, 'BEGIN', q{CREATE FUNCTION another() RETURNS int LANGUAGE sql AS 'SELECT 1'});
write_sql($other, 'VACUUM FULL pg_proc');
follows('pg_proc', 'SELECT sum(twice(v)) FROM t', 110, 165, sub {
	write_sql($writer, q{CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 3'}, 'COMMIT') });
# From now on the messages of a commit alone tell that a function has changed.
follows('pg_proc, later', 'SELECT sum(twice(v)) FROM t', 165, 220, sub {
	write_sql($writer, q{CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 4'}) });

write_sql($other, 'VACUUM FULL pg_enum');
follows('pg_enum', 'SELECT v::text FROM feelings', 'sad', 'glum', sub { write_sql($writer, q{ALTER TYPE mood RENAME VALUE 'sad' TO 'glum'}) });

# The first half of a concurrent detachment writes to pg_inherits alone, which has no system cache.
write_sql($other, 'VACUUM FULL pg_inherits');
write_sql($writer, 'BEGIN', 'SELECT count(*) FROM parts');
follows('pg_inherits', 'SELECT sum(v) FROM parts', 101, 1, sub {
	my ($status, undef, $error) = $primary->psql('postgres', q{SET lock_timeout = '200ms'; ALTER TABLE parts DETACH PARTITION part_2 CONCURRENTLY});
	like($error, qr/lock timeout/, 'the detachment waits for a reader, and gives up') });
write_sql($writer, 'COMMIT');

is($reader->query_safe('SELECT standby_state FROM arrow_cache.stats'), 'replaying', 'nothing has switched the cache off');
$_->quit for $writer, $other, $reader, $plain;

done_testing();
