# Replay makes a commit visible and tells sessions of its definitions before their versions move for the last time. Whoever has heard
# by then gets no answer from before, and none is stored.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use StandbyTest;
use Test::More;
use Time::HiRes ();

chomp(my $include = `$ENV{PG_CONFIG} --includedir-server`);
my $library = "$PostgreSQL::Test::Utils::tmp_check/late_redo.so";
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', "-I$include", "$FindBin::RealBin/late_redo.c", '-o', $library);

my $primary = new_primary('primary');
$primary->safe_psql('postgres', q{
	CREATE TABLE sales (v int) PARTITION BY RANGE (v);
	CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (1) TO (11);
	CREATE TABLE sales_2 (v int);
	INSERT INTO sales_1 SELECT generate_series(1, 10);
	INSERT INTO sales_2 SELECT generate_series(11, 20);
	CREATE TYPE color AS ENUM ('red', 'green');
	CREATE TABLE cars (v color);
	INSERT INTO cars VALUES ('red');
	CREATE TABLE t (v int); INSERT INTO t VALUES (7);
	CREATE VIEW w AS SELECT 1 AS a, v FROM t;
});
my $standby = new_standby('standby', $primary, libraries => "$library,pg_arrow_cache");
my ($writer, $reader, $plain) = (session($primary), session($standby), session($standby, 'SET pg_arrow_cache.enabled = off'));
my $hold = $standby->data_dir . '/late_redo.hold';

for my $case (
	# The parser makes the same tree of these, whatever has changed.
	[ 'a partition', 'SELECT sum(v) FROM sales', '55', 'ALTER TABLE sales ATTACH PARTITION sales_2 FOR VALUES FROM (11) TO (21)', '210' ],
	[ 'a label', q{SELECT count(*) FROM cars WHERE v::text = 'red'}, '1', q{ALTER TYPE color RENAME VALUE 'red' TO 'pink'}, '0' ],
	[ 'a view', 'SELECT a, v FROM w', '1|7', 'CREATE OR REPLACE VIEW w AS SELECT 2 AS a, v FROM t', '2|7' ])
{
	my ($name, $query, $before, $change, $after) = @$case;
	is(cached($reader, $query, $name), $before, "$name: before it changes");
	append_to_file($hold, '');
	write_sql($writer, $change);
	my $rounds = 20 * $PostgreSQL::Test::Utils::timeout_default;
	until (ask_plainly($plain, $query) eq $after)
	{
		die "$name: the change does not show" if $rounds-- == 0;
		Time::HiRes::usleep(50_000);
	}
	for my $round (1 .. 3)
	{
		my ($rows, $status) = ask($reader, $query);
		is($rows, $after, "$name: the rows when it has changed, $round");
		unlike($status, qr/^HIT/, "$name: no stored answer, $round");
	}
	unlink $hold or die "$hold: $!";
	caught_up($writer, $reader);
	is(cached($reader, $query, "$name: afterwards"), $after, "$name: the rows afterwards");
}

is(state($standby), 'replaying', 'nothing has switched the cache off');
$_->quit for $writer, $reader, $plain;
done_testing();
