# All databases share one cache, and tables of the same name, even of the same OID, are never mixed up.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $node = new_server('databases');
$node->safe_psql('postgres', 'CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 10)');

# Copies of a database have the same OIDs for everything in it: only the database tells them apart.
$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE postgres") for qw(one two);
$node->safe_psql('one', 'UPDATE t SET a = a * 10');
is($node->safe_psql('one', q{SELECT 't'::regclass::oid}), $node->safe_psql('two', q{SELECT 't'::regclass::oid}),
	'the tables have the same OID');

my $query = 'SELECT sum(a) FROM t';
answers_are($node, $query, '550', [ 'MISS', 'HIT' ], 'database one', database => 'one');
answers_are($node, $query, '55', [ 'MISS', 'HIT' ], 'database two', database => 'two');
answers_are($node, $query, '55', [ 'MISS', 'HIT' ], 'database postgres');
is(stat($node, 'entries'), '3', 'one entry each');

# The views show a database its own.
for my $database (qw(one two))
{
	is($node->safe_psql($database, 'SELECT datname, row_count, relations FROM arrow_cache.entries'),
		"$database|1|{t}", "entries of database $database");
	is($node->safe_psql($database, 'SELECT relation, entries FROM arrow_cache.relations'),
		't|1', "relations of database $database");
}

# A write in one leaves the others alone.
$node->safe_psql('one', 'INSERT INTO t VALUES (1)');
answers_are($node, $query, '551', [ 'STALE', 'HIT' ], 'a write in one invalidates there', database => 'one');
answers_are($node, $query, '55', ['HIT'], 'and not in two', database => 'two');
$node->safe_psql('one', 'CREATE TABLE other (a int)');
answers_are($node, $query, '55', ['HIT'], 'a change of definitions in one leaves two alone', database => 'two');

# So do flush and invalidate.
is($node->safe_psql('two', q{SELECT arrow_cache.invalidate('t')}), '1', 'invalidate drops what rests on t here');
answers_are($node, $query, '55', ['HIT'], 'but not in postgres');
answers_are($node, $query, '55', [ 'MISS', 'HIT' ], 'two fills again', database => 'two');
is($node->safe_psql('two', 'SELECT arrow_cache.flush()'), '1', 'flush drops what this database has');
answers_are($node, $query, '55', ['HIT'], 'postgres keeps its own');

# A database that takes the place of another, under the same name.
answers_are($node, $query, '55', [ 'MISS', 'HIT' ], 'two, before it is dropped', database => 'two');
$node->safe_psql('postgres', 'DROP DATABASE two; CREATE DATABASE two TEMPLATE one');
answers_are($node, $query, '551', [ 'MISS', 'HIT' ], 'two, made anew from one', database => 'two');
$node->safe_psql('postgres', 'DROP DATABASE one; ALTER DATABASE two RENAME TO one');
answers_are($node, $query, '551', [ 'STALE', 'HIT' ], 'a renamed database is asked anew', database => 'one');

# A database without the extension is cached all the same; only the views are missing there.
$node->safe_psql('postgres', 'CREATE DATABASE bare TEMPLATE template0');
$node->safe_psql('bare', 'CREATE TABLE t (a int); INSERT INTO t VALUES (7)');
my ($entries, $hits) = split /\|/, stat($node, 'entries, hits');
is($node->safe_psql('bare', "$query;\n$query"), "7\n7", 'a database without the extension');
is(stat($node, 'entries, hits'), join('|', $entries + 1, $hits + 1), 'is served from the cache, too');
$node->safe_psql('bare', 'UPDATE t SET a = 8');
is($node->safe_psql('bare', $query), '8', 'and never stale');

done_testing();
