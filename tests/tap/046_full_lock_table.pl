# When the server's table of locks is full, a statement raises an error only if it would do so without the library: the cache neither needs room for
# its own locks nor fails without them.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('full', conf => q{
max_connections = 10
max_locks_per_transaction = 10
plan_cache_mode = force_generic_plan
});

$node->safe_psql('postgres', q{
	CREATE TABLE filler (n int) PARTITION BY LIST (n);
	DO $$ BEGIN FOR n IN 1..20 LOOP EXECUTE format('CREATE TABLE filler_%s PARTITION OF filler FOR VALUES IN (%s)', n, n); END LOOP; END $$;
	CREATE TABLE log (k int, at timestamptz, n int) PARTITION BY LIST (k);
	DO $$ BEGIN FOR k IN 1..8 LOOP EXECUTE format('CREATE TABLE log_%s PARTITION OF log FOR VALUES IN (%s)', k, k); END LOOP; END $$;
	CREATE INDEX ON log (at);
	INSERT INTO log SELECT g % 8 + 1, now() - g * interval '1 minute', g FROM generate_series(1, 800) g;
	CREATE TABLE few (a int);
	CREATE TABLE other (b int);
	INSERT INTO other VALUES (7);
	CREATE FUNCTION reads(a int) RETURNS bigint STABLE LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM other WHERE b = a; END;
	CREATE TYPE mood AS ENUM ('sad', 'glad');
	CREATE TABLE people (name text, mood mood);
	INSERT INTO people SELECT 'person ' || g, CASE WHEN g % 3 = 0 THEN 'sad' ELSE 'glad' END::mood FROM generate_series(1, 20) g;
	ANALYZE log, few, other, people;
});

# What is locked before the table is full, and what is asked then.
my @cases = (
	[
		'bounds are sought in partitions that the plan leaves out',
		'PREPARE p (int) AS SELECT count(*), sum(n) FROM log WHERE k = $1 AND at > now() - interval \'1 hour\'',
		'LOCK TABLE log IN ACCESS SHARE MODE', 'EXECUTE p(7)',
	],
	[
		'a plan need not be made',
		'SELECT 1', 'SELECT count(*) FROM log WHERE n > 100', 'SELECT count(*) FROM log WHERE n > 100',
	],
	[
		'a function is not called',
		'PREPARE p AS SELECT a, reads(a) FROM few', 'LOCK TABLE few IN ACCESS SHARE MODE', 'EXECUTE p',
	],
	[
		'labels of enums are looked for',
		'SELECT 1', 'LOCK TABLE people IN ACCESS SHARE MODE', 'SELECT name, mood FROM people ORDER BY name',
	],
);

# The session fills the table itself, with locks that are its own to its end. All that the server may lock for a short while for one of its own relations
# needs room, too: the places of the session that need none are taken before.
my $fill = q{DO $$ BEGIN FOR n IN 1..1000000 LOOP PERFORM pg_advisory_lock(n); END LOOP; EXCEPTION WHEN out_of_memory THEN NULL; END $$};

for my $case (@cases)
{
	my ($name, $prepare, $lock, $ask) = @$case;
	my %said;
	for my $enabled ('off', 'on')
	{
		# What the server itself needs is locked before, without the cache.
		my @before = ('SET pg_arrow_cache.enabled = off', 'BEGIN', 'LOCK TABLE filler IN ACCESS SHARE MODE', $lock, $ask);
		my @full = ($fill, "SET pg_arrow_cache.enabled = $enabled", ($ask) x 6, 'SELECT pg_advisory_lock(0)');
		my $script = join('', map { "$_;\n" } "SET pg_arrow_cache.enabled = $enabled", $prepare, $ask, @before, @full);
		# The last session has filled the table until its process ends, which may be after its client's. What it gives back would make room in this one.
		$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory'}) or die 'the table stays full';
		my ($status, $out, $err) = $node->psql('postgres', $script, on_error_stop => 0, extra_params => [ '-v', 'VERBOSITY=terse' ]);
		like($err, qr/\A[^\n]*ERROR:  out of shared memory\n?\z/, "$name: the table is full, and nobody minds, enabled = $enabled");
		$said{$enabled} = $out;
	}
	is($said{on}, $said{off}, "$name: the same answers");
}

$node->stop;
done_testing();
