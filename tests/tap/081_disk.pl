# Large answers that have to leave memory move to files (disk_memory), and are hits from there: with the same bytes, as long as they are
# valid, and whatever becomes of the files.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $QUERIES = 8;
my $node = new_server('disk', conf => qq{
pg_arrow_cache.memory = 12MB
pg_arrow_cache.disk_memory = 100MB
wal_level = replica
max_wal_senders = 2
}, init => { allows_streaming => 1 });
my $folder = $node->data_dir . '/base/pgsql_tmp/pgsql_tmp.arrow_cache';
create_big($node);
# About 2 MB, in five batches.
sub query { return "/*+ arrow_cache */ SELECT a + $_[0] AS a, pad FROM big ORDER BY a" }
sub files { my @files = sort glob "$folder/*"; return @files }
sub right { return $node->safe_psql('postgres', "SET pg_arrow_cache.enabled = off; $_[0]") }

# Stores all answers anew, and returns the numbers of those that are in files then.
sub fill
{
	$node->safe_psql('postgres', 'SELECT arrow_cache.flush(), arrow_cache.reset_stats()');
	answer($node, query($_)) for 1 .. $QUERIES;
	return split /\n/, $node->safe_psql('postgres', q{
		SELECT substring(query FROM 'a [+] (\d+)') FROM arrow_cache.entries WHERE disk_bytes > 0 ORDER BY 1});
}

# The file of a query.
sub file_of
{
	my ($number) = @_;
	my $id = $node->safe_psql('postgres',
		"SELECT lpad(to_hex(entry_id), 16, '0') FROM arrow_cache.entries WHERE query LIKE '%a + $number AS%' AND disk_bytes > 0");
	return "$folder/$id";
}

sub exported
{
	my ($number, $name) = @_;
	my $path = $node->basedir . "/$name";
	(my $query = query($number)) =~ s{^/\*\+ arrow_cache \*/ }{};
	run_log([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "COPY ($query) TO STDOUT (FORMAT arrow)", '-o', $path ])
	  or die 'COPY failed';
	return slurp_file($path);
}

# Hits.
my @moved = fill();
cmp_ok(scalar @moved, '>=', 2, 'answers have moved to files');
is(stat($node, 'entries, disk_moves, evictions, disk_failures'), "$QUERIES|" . @moved . '|0|0', 'none was lost');
is(scalar files(), scalar @moved, 'each has a file');
my $bytes = 0;
$bytes += -s $_ for files();
my $told = stat($node, 'disk_bytes');
cmp_ok(abs($told - $bytes), '<', 64 * @moved, 'the view tells their bytes');
is($node->safe_psql('postgres', 'SELECT sum(disk_bytes) FROM arrow_cache.entries'), $told, 'so do the entries');
is(sprintf('%04o', (CORE::stat((files())[0]))[2] & 07777), '0600', 'only the server may read them');
for my $number (1 .. $QUERIES)
{
	my ($rows, $status) = answer($node, query($number));
	is($status, 'HIT', "query $number is a hit");
	ok($rows eq right(query($number)), "query $number has the right rows");
}
is(stat($node, 'disk_hits'), scalar @moved, 'hits from files are counted');
is(stat($node, 'disk_moves'), scalar @moved, 'a hit moves nothing');
is($node->safe_psql('postgres', query($moved[0]) . ' LIMIT 3'), right(query($moved[0]) . ' LIMIT 3'), 'another query');
ok(exported($moved[0], 'from_file') eq do
	{
		$node->safe_psql('postgres', 'SELECT arrow_cache.flush()');
		answer($node, query($moved[0]));
		exported($moved[0], 'from_memory');
	}, 'an export has the same bytes from a file and from memory');
is_deeply([ files() ], [], 'no file is left of what was dropped');

# A cursor reads on, whatever becomes of its entry.
@moved = fill();
my $number = $moved[0];
my $rows = right(query($number));
my $cursor = $node->background_psql('postgres');
$cursor->query_safe('BEGIN; DECLARE c NO SCROLL CURSOR FOR ' . query($number));
my $read = $cursor->query_safe('FETCH 1000 FROM c');
is($cursor->query_safe('SELECT arrow_cache.last_status()'), 'HIT', 'a cursor reads from a file');
$node->safe_psql('postgres', 'UPDATE big SET pad = upper(pad) WHERE a < 10; SELECT arrow_cache.flush()');
is(scalar files(), 1, 'its file is there as long as it is read');
$read .= "\n" . $cursor->query_safe('FETCH ALL FROM c');
ok($read eq $rows, 'a cursor over an entry that is dropped meanwhile');
$cursor->query_safe('COMMIT');
$cursor->quit;
answers_are($node, 'SELECT count(*) FROM big', '20000', ['MISS'], 'another statement');
is_deeply([ files() ], [], 'the file goes when it is read to its end');
ok((answer($node, query($number)))[0] eq right(query($number)), 'a write outdates what is in files');

# A disk that takes nothing costs the answers that would have moved.
@moved = fill();
chmod 0500, $folder or die "$folder: $!";
$node->safe_psql('postgres', 'SELECT arrow_cache.flush(), arrow_cache.reset_stats()');
for my $number (1 .. $QUERIES)
{
	ok((answer($node, query($number)))[0] eq right(query($number)), "right rows of query $number without a disk");
}
is(stat($node, 'disk_moves, disk_bytes, disk_failures = evictions, evictions > 0'), '0|0|t|t', 'what cannot be written is evicted');
is_deeply([ grep { -s } files() ], [], 'files that cannot be removed are emptied');
chmod 0700, $folder or die "$folder: $!";

# Files that are not what was written.
sub damage
{
	my ($path, $at) = @_;
	open my $file, '+<:raw', $path or die "$path: $!";
	seek $file, $at, 0;
	read $file, my $byte, 1;
	seek $file, $at, 0;
	print $file chr(ord($byte) ^ 1);
	close $file or die "$path: $!";
	return;
}
for my $case (
	[ 'a damaged table', sub { damage($_[0], 50) } ],
	[ 'a damaged first batch', sub { damage($_[0], 5000) } ],
	[ 'a file that is cut', sub { truncate $_[0], 100 or die $! } ],
	[ 'a file that is gone', sub { unlink $_[0] or die $! } ],
	[ 'a file of another answer', sub { my ($other) = grep { $_ ne $_[0] } files(); rename $other, $_[0] or die $! } ])
{
	my ($name, $harm) = @$case;
	@moved = fill();
	$harm->(file_of($moved[0]));
	my $query = query($moved[0]);
	my ($rows, $status) = answer($node, $query);
	ok($rows eq right($query), "$name: right rows");
	like($status, qr/unreadable_file|MISS/, "$name: no hit");
	is(stat($node, 'disk_failures'), 1, "$name: counted");
	answer($node, $query);
	is((answer($node, $query))[1], 'HIT', "$name: stored again");
}
@moved = fill();
my $harmed = file_of($moved[0]);
damage($harmed, (-s $harmed) - 5000);
my $query = query($moved[0]);
my ($status, undef, $error) = $node->psql('postgres', $query, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
isnt($status, 0, 'a damaged last batch is an error');
like($error, qr/XX001: file "base\/pgsql_tmp\/pgsql_tmp.arrow_cache\/[0-9a-f]{16}" with a cached result is damaged/, 'it tells which file');
ok((answer($node, $query))[0] eq right($query), 'the statement can be repeated');

# Limits.
$node->safe_psql('postgres', q{ALTER SYSTEM SET pg_arrow_cache.disk_memory = '5MB'});
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('pg_arrow_cache.disk_memory') = '5MB'});
@moved = fill();
is(scalar @moved, 2, 'files are bounded');
cmp_ok(stat($node, 'disk_bytes'), '<=', 5 << 20, 'all together');
is(stat($node, 'disk_bytes_total'), 5 << 20, 'the view tells the limit');
for my $off ('1MB', '0')
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET pg_arrow_cache.disk_memory = '$off'");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('pg_arrow_cache.disk_memory') = '$off'");
	is_deeply([ fill() ], [], "disk_memory = $off: no file");
	is(stat($node, 'disk_failures, disk_bytes'), '0|0', "disk_memory = $off: nothing is tried");
}
$node->safe_psql('postgres', 'ALTER SYSTEM RESET pg_arrow_cache.disk_memory');
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('pg_arrow_cache.disk_memory') = '100MB'});

# No file outlives the memory that tells of it.
@moved = fill();
$node->backup('backup');
is_deeply([ glob $node->backup_dir . '/backup/base/pgsql_tmp/*' ], [], 'base backups leave the files out');
my $kept = stat($node, 'entries') - @moved;
$node->restart;
is_deeply([ files() ], [], 'no file is left after a restart');
is($node->safe_psql('postgres', 'SELECT count(*), sum(disk_bytes) FROM arrow_cache.entries'), "$kept|0", 'what was in memory outlives it');
@moved = fill();
cmp_ok(scalar files(), '>', 0, 'files before a crash');
$node->stop('immediate');
$node->start;
is_deeply([ files() ], [], 'no file is left after an immediate stop');
$node->append_conf('postgresql.conf', "restart_after_crash = on\nremove_temp_files_after_crash = off\n");
$node->reload;
@moved = fill();
my $session = $node->background_psql('postgres');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
my $log = -s $node->logfile;
kill 'KILL', $pid;
$node->wait_for_log(qr/database system is ready to accept connections/, $log);
eval { $session->quit };
is_deeply([ files() ], [], 'no file is left after a crash of a backend');
is(stat($node, 'entries, disk_bytes'), '0|0', 'the cache is empty');
@moved = fill();
cmp_ok(scalar @moved, '>=', 2, 'it goes on');
ok((answer($node, query($_)))[0] eq right(query($_)), "right rows of query $_ afterwards") for @moved;

done_testing();
