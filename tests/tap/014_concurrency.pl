# Several clients read aggregates through the cache and compare each with an uncached one under the same snapshot,
# while others write in all the ways a transaction can go. No answer may differ, and the cache must have been used.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Small enough for evictions to happen all the time.
my $node = new_server('concurrency', conf => qq{
pg_arrow_cache.memory = 4MB
pg_arrow_cache.max_entries = 40
max_prepared_transactions = 20
});
$node->safe_psql('postgres', q{
	CREATE TABLE account (id int PRIMARY KEY, grp int, v bigint);
	CREATE TABLE other (id int PRIMARY KEY, grp int, v bigint);
	CREATE TABLE differences (what text, cached bigint, uncached bigint);
	INSERT INTO account SELECT g, g % 10, 100 FROM generate_series(1, 500) g;
	INSERT INTO other SELECT g, g % 10, 100 FROM generate_series(1, 500) g;
	CREATE INDEX ON account (grp);
});

# Compares a query, which must give two numbers named x and n, with itself.
sub compare
{
	my ($what, $query) = @_;
	my $again = $query =~ s/\bAS (x|n)\b/AS u$1/gr;
	return qq{
$query \\gset
SET LOCAL pg_arrow_cache.enabled = off;
$again \\gset
SET LOCAL pg_arrow_cache.enabled = on;
\\if :x <> :ux or :n <> :un
ROLLBACK;
INSERT INTO differences VALUES ('$what', :x, :ux);
BEGIN ISOLATION LEVEL REPEATABLE READ;
\\endif
};
}

my $choose = "\\set g random(0, 9)\n\\set id random(1, 500)\n\\set to random(1, 500)\n";
my $group = compare('group', 'SELECT coalesce(sum(v), 0) AS x, count(*) AS n FROM account WHERE grp = :g');
my $join = compare('join', 'SELECT coalesce(sum(a.v - o.v), 0) AS x, count(*) AS n FROM account a JOIN other o USING (id)');
my $total = compare('total', 'SELECT sum(v) AS x, count(*) AS n FROM account');

my %scripts = (
	# The snapshot is taken by the first query, so later ones may find entries that are newer than it.
	'reader@12' => "${choose}BEGIN ISOLATION LEVEL REPEATABLE READ;\n$group\\sleep 1 ms\n$join\nCOMMIT;\n",
	'late_reader@8' => "${choose}BEGIN ISOLATION LEVEL REPEATABLE READ;\n"
		. "SELECT 1;\n\\sleep 2 ms\n$total\n$group\nCOMMIT;\n",
	# Money moves between accounts: the total of every snapshot is 50000, also from the cache.
	'invariant@8' => qq{
SELECT sum(v) AS x FROM account \\gset
\\if :x <> 50000
INSERT INTO differences VALUES ('invariant', :x, 50000);
\\endif
},
	'transfer@2' => "${choose}BEGIN;\nUPDATE account SET v = v - 1 WHERE id = :id;\n\\sleep 1 ms\n"
		. "UPDATE account SET v = v + 1 WHERE id = :to;\nCOMMIT;\n\\sleep 5 ms\n",
	'own_writes@1' => "${choose}BEGIN ISOLATION LEVEL REPEATABLE READ;\nUPDATE other SET v = v + 1 WHERE id = :id;\n"
		. "$join\nCOMMIT;\n\\sleep 5 ms\n",
	'rollback@1' => "${choose}BEGIN;\nDELETE FROM account WHERE id = :id;\n\\sleep 1 ms\nROLLBACK;\n\\sleep 5 ms\n",
	'savepoint@1' => "${choose}BEGIN;\nSAVEPOINT s;\nUPDATE other SET v = -1 WHERE id = :id;\nROLLBACK TO s;\n"
		. "UPDATE other SET v = v + 1 WHERE id = :to;\nCOMMIT;\n\\sleep 5 ms\n",
	'two_phase@1' => "${choose}BEGIN;\nUPDATE other SET v = v - 1 WHERE id = :id;\n"
		. "PREPARE TRANSACTION 'p:client_id';\n\\sleep 1 ms\nCOMMIT PREPARED 'p:client_id';\n\\sleep 5 ms\n",
);
my $directory = $node->basedir;
my @files;
for my $name (sort keys %scripts)
{
	my ($file, $weight) = split /@/, $name;
	append_to_file("$directory/$file.sql", $scripts{$name});
	push @files, [ $file, '-f', "$directory/$file.sql\@$weight" ];
}
for my $mode (qw(simple extended prepared))
{
	my $hits = stat($node, 'hits');
	# The name of a prepared transaction is made by replacing text, which pgbench does in the simple protocol only.
	my @scripts = map { my ($file, @options) = @$_;
		$file eq 'two_phase' && $mode ne 'simple' ? () : @options } @files;
	$node->command_checks_all(
		[ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', 4, '-M', $mode, '--max-tries=0', '--random-seed=7', @scripts ],
		0, [qr/number of transactions actually processed: [1-9]/], [qr/\A(?!.*aborted)/s],
		"$mode: all clients run to the end");
	is($node->safe_psql('postgres', 'SELECT what, cached, uncached FROM differences LIMIT 5'),
		'', "$mode: not one difference");
	cmp_ok(stat($node, 'hits'), '>', $hits, "$mode: the cache was used");
}
cmp_ok(stat($node, 'stale'), '>', 0, 'writers invalidated what was cached');
cmp_ok(stat($node, 'stores'), '>', 100, 'and it was stored again');
is(stat($node, 'entries <= max_entries AND bytes_used <= bytes_total'), 't', 'within its limits');
is($node->safe_psql('postgres', 'SELECT sum(v) FROM account'), '50000', 'the total at the end');

$node->safe_psql('postgres', 'SELECT arrow_cache.flush()');
my $after = stat($node, 'entries, bytes_used');
$node->restart;
is($after, stat($node, 'entries, bytes_used'), 'after a flush nothing is left: the bytes of a server just started');

done_testing();
