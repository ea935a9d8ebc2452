# A file of saved answers tells nothing if anything may have changed since it was written: then the cache begins empty,
# with one line in the log that says why, and the server starts.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $libraries = PostgreSQL::Test::Utils::tempdir;
my $node = new_server('not_loaded', conf => "dynamic_library_path = '\$libdir:$libraries'\nwal_level = replica\nmax_wal_senders = 4\n");
my ($data, $saved) = ($node->data_dir, 'pg_stat/pg_arrow_cache.saved');
my $file = "$data/$saved";
my $sum = 0;
$node->safe_psql('postgres', 'CREATE TABLE t (a int); CREATE TABLE u AS SELECT generate_series(1, 10) AS a');
my ($t, $u) = ('SELECT coalesce(sum(a), 0) FROM t', 'SELECT sum(a) FROM u');

# Stores both answers, and shuts the server down.
sub stored_and_stopped
{
	answer($node, $_) for $t, $u, $t, $u;
	answers_are($node, $t, $sum, ['HIT'], 'stored');
	$node->stop('fast');
	ok(-f $file, 'saved');
	return;
}

my $SWEPT = qr/the cache begins with 2 results of before the restart \(\d+ kB\)$/m;

# Starts the server, whose answers are now of this status, and whose log says this.
sub starts
{
	my ($name, $status, $says) = @_;
	my $log = -s $node->logfile;
	$node->start;
	answers_are($node, $t, $sum, [$status], $name);
	answers_are($node, $u, '55', [$status], "$name: the other one");
	my $said = join "\n", slurp_file($node->logfile, $log) =~ /LOG:  (the cache begins.*)/g;
	defined $says ? like($said, $says, "$name: the log") : is($said, '', "$name: nothing in the log");
	ok(!-e $file, "$name: the file is gone");
	return;
}

sub write_more { $node->safe_psql('postgres', 'INSERT INTO t VALUES (1)'); $sum++; return; }

stored_and_stopped();
starts('nothing has changed', 'HIT', $SWEPT);

stored_and_stopped();
unlink $file;
starts('no file', 'MISS', undef);

# Damage: the state at the beginning, an answer, the end; an empty file; one that is cut. What is left over may stay.
stored_and_stopped();
my $whole = slurp_file($file);
append_to_file($file, 'more');
starts('bytes behind the end', 'HIT', $SWEPT);
stored_and_stopped();
$whole = slurp_file($file);
my $damaged = sub {
	my ($at) = @_;
	open my $handle, '+<:raw', $file or die $!;
	seek $handle, $at, 0;
	print $handle chr(255 - ord substr $whole, $at, 1);
	close $handle;
};
$damaged->(70);
starts('damaged at the beginning', 'MISS', qr/begins empty: The file is damaged/);
for my $lost ([ 'an answer', sub { index($whole, $t) + 3 }, qr/begins with 1 results .*; 1 are damaged/ ],
	[ 'the end', sub { length($whole) - 20 }, qr/begins with 2 results .*; the rest of the file is damaged/ ])
{
	my ($name, $where, $says) = @$lost;
	stored_and_stopped();
	$whole = slurp_file($file);
	$damaged->($where->());
	my $log = -s $node->logfile;
	$node->start;
	answers_are($node, $u, '55', ['HIT'], "damaged: $name");
	is([ answer($node, $t) ]->[0], $sum, "damaged: $name: the answer");
	like(slurp_file($node->logfile, $log), $says, "damaged: $name: the log");
}
stored_and_stopped();
truncate $file, 0;
starts('an empty file', 'MISS', qr/begins empty: The file is damaged/);
stored_and_stopped();
truncate $file, (-s $file) / 3;
starts('a file that is cut', 'MISS', qr/begins (empty: The file is damaged|with 0 results .* the rest)/);

# The end of the server was none, or another one.
stored_and_stopped();
copy($file, "$libraries/../before") or die $!;
starts('before an immediate stop', 'HIT', $SWEPT);
$node->stop('immediate');
ok(!-e $file, 'an immediate stop saves nothing');
starts('after an immediate stop', 'MISS', undef);
write_more();
$node->stop('immediate');
copy("$libraries/../before", $file) or die $!;
starts('an old file after an immediate stop', 'MISS', qr/begins empty: The server was not shut down, or/);
my $postmaster = $node->{_pid};
$node->kill9;
# It leaves the list of processes a little later, and so do its children.
usleep(10_000) while kill(0, $postmaster) || grep { (readlink("$_/cwd") // '') eq $data } glob '/proc/[0-9]*';
copy("$libraries/../before", $file) or die $!;
starts('an old file after the postmaster was killed', 'MISS', qr/begins empty: The server was not shut down, or/);
stored_and_stopped();
copy("$libraries/../before", $file) or die $!;
starts('an old file after a regular stop', 'MISS', qr/begins empty: The database cluster has been changed/);
append_to_file("$file.tmp", 'what somebody has left who was killed when he saved');
$node->stop('fast');
starts('a file that is not finished is in the way of the stop', 'MISS', undef);
ok(!-e "$file.tmp", 'and is removed by the next start');
stored_and_stopped();
chmod 0500, "$data/pg_stat";
$node->start;
ok(-e $file, 'a folder that nobody may write to');
chmod 0700, "$data/pg_stat";
is([ answer($node, $t) ]->[0], $sum, 'a file that cannot be removed is not read');
$node->stop('fast');
$node->start;
answer($node, $_) for $t, $u;
chmod 0500, "$data/pg_stat";
my $log = -s $node->logfile;
$node->stop('fast');
chmod 0700, "$data/pg_stat";
like(slurp_file($node->logfile, $log), qr/the cache was not saved: Permission denied/, 'a file that cannot be written');
like(slurp_file($node->logfile, $log), qr/database system is shut down/, 'and the stop goes on');
unlink $file;
starts('after that', 'MISS', undef);

# Somebody else has had the cluster in between.
my $without = sub {
	my ($name, $libraries) = @_;
	stored_and_stopped();
	my $kept = slurp_file($file);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'");
	$node->start;
	write_more();
	$node->stop('fast');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_arrow_cache'");
	ok(-f $file, "$name: the file is still there");
	starts($name, 'MISS', qr/begins empty: The database cluster has been changed/);
};
$without->('a start without the library', '');
stored_and_stopped();
command_ok([ 'sh', '-c', "echo 'INSERT INTO t VALUES (1)' | postgres --single -D '$data' postgres" ], 'single-user mode');
$sum++;
ok(-f $file, 'single-user mode leaves the file alone');
starts('single-user mode', 'MISS', qr/begins empty: The database cluster has been changed/);
stored_and_stopped();
command_ok([ 'pg_resetwal', '-f', '-D', $data ], 'pg_resetwal');
starts('pg_resetwal', 'MISS', qr/begins empty: The database cluster has been changed/);
stored_and_stopped();
command_ok([ 'pg_checksums', '--enable', '-D', $data ], 'pg_checksums');
starts('pg_checksums', 'MISS', qr/begins empty: The database cluster has been changed/);

# Another cluster: one that was copied has the same name for the server.
stored_and_stopped();
my $copy = PostgreSQL::Test::Cluster->new('copy');
$node->backup_fs_cold('cold');
$copy->init_from_backup($node, 'cold');
starts('while it was copied', 'HIT', $SWEPT);
$copy->start;
answers_are($copy, $t, $sum, ['HIT'], 'a copy at rest has what was saved with it');
$copy->safe_psql('postgres', 'INSERT INTO t VALUES (100)');
answer($copy, $_) for $t, $u;
$copy->stop('fast');
my $of_other = "$libraries/../other";
copy($copy->data_dir . "/$saved", $of_other) or die $!;
stored_and_stopped();
copy($of_other, $file) or die $!;
starts('the file of another cluster', 'MISS', qr/begins empty: The database cluster has been changed/);

# Backups: that of a running server has no file. With one that somebody puts there, it recovers all the same.
stored_and_stopped();
my $kept = "$libraries/../kept";
copy($file, $kept) or die $!;
starts('before a backup', 'HIT', $SWEPT);
$node->backup('running');
ok(!-e $node->backup_dir . "/running/$saved", 'a backup of a running server has no file');
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($node, 'running');
copy($kept, $restored->data_dir . "/$saved") or die $!;
$restored->start;
answers_are($restored, $t, $sum, ['MISS'], 'a restored backup');
like(slurp_file($restored->logfile), qr/begins empty: The server was not shut down, or/, 'a restored backup: the log');
$restored->stop;

# A cluster that was shut down as a primary becomes a standby.
$copy->start;
answer($copy, $_) for $t, $u;
$copy->stop('fast');
append_to_file($copy->data_dir . '/standby.signal', '');
$copy->start;
is([ answer($copy, $t) ]->[1], 'MISS', 'a standby begins empty');
like(slurp_file($copy->logfile), qr/begins empty: .* does not start as what it was/, 'a standby: the log');
is([ answer($copy, $t) ]->[1], 'HIT', 'a standby caches');
$copy->stop('fast');
ok(-e $copy->data_dir . "/$saved", 'a standby is saved');
append_to_file($copy->data_dir . '/recovery.signal', '');
$log = -s $copy->logfile;
$copy->start;
is([ answer($copy, $t) ]->[1], 'MISS', 'a standby that may recover in another way begins empty');
like(slurp_file($copy->logfile, $log), qr/begins empty: .* does not start as what it was/, 'a standby that may recover in another way: the log');
$copy->stop('fast');

# Programs and libraries.
stored_and_stopped();
append_to_file("$libraries/library.so", 'another library');
starts('a new library', 'MISS', qr/begins empty: The server, a library or a file that they read has been replaced/);
stored_and_stopped();
utime 1, 1, "$libraries/library.so";
starts('another time of a library', 'MISS', qr/begins empty: The server, a library/);
write_file("$libraries/library.so", 'replaced while the server is running');
stored_and_stopped();
starts('a library that was replaced while the server was running', 'MISS', qr/begins empty: The server, a library/);
stored_and_stopped();
starts('nothing has changed, again', 'HIT', $SWEPT);
stored_and_stopped();
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements, pg_arrow_cache'");
starts('one more library', 'MISS', qr/begins empty: The server, a library/);
stored_and_stopped();
starts('the same libraries', 'HIT', $SWEPT);

# A folder that a link leads to. A file that is written in its place leaves the folder as it was.
symlink $libraries, "$libraries/../linked" or die $!;
$node->stop('fast');
$node->append_conf('postgresql.conf', "dynamic_library_path = '\$libdir:$libraries/../linked'");
$node->start;
stored_and_stopped();
write_file("$libraries/library.so", 'replaced behind a link');
starts('a library behind a link', 'MISS', qr/begins empty: The server, a library/);
mkdir "$libraries/deeper" or die $!;
stored_and_stopped();
write_file("$libraries/deeper/library.so", 'found by no name alone');
starts('what is deeper than libraries are searched for', 'HIT', $SWEPT);

# Something else in the place of the file.
stored_and_stopped();
unlink $file;
command_ok([ 'mkfifo', $file ], 'a pipe in its place');
$log = -s $node->logfile;
$node->start;
answers_are($node, $t, $sum, ['MISS'], 'a pipe');
like(slurp_file($node->logfile, $log), qr/begins empty: .* is no file/, 'a pipe: the log');
$node->stop('immediate');
unlink $file;
$node->start;

# Settings.
stored_and_stopped();
$node->append_conf('postgresql.conf', 'pg_arrow_cache.memory = 200MB');
starts('more memory', 'MISS', qr/begins empty: The setting pg_arrow_cache.memory has changed/);
stored_and_stopped();
$node->append_conf('postgresql.conf', "pg_arrow_cache.max_entries = 5000\nmax_connections = 50\nwork_mem = '8MB'");
starts('more entries, fewer connections', 'HIT', $SWEPT);
stored_and_stopped();
$node->append_conf('postgresql.conf', "extra_float_digits = 0\nDateStyle = 'German'");
starts('settings that answers depend on', 'MISS', $SWEPT);

sub write_file
{
	my ($path, $content) = @_;
	open my $handle, '>', $path or die "$path: $!";
	print $handle $content;
	close $handle;
	return;
}

done_testing();
