# A server that was started with RUST_BACKTRACE tells clients no more than any other: errors do not show the stack of the library's functions
# and the paths of the machine that built it, neither those of ours nor those of the server that come through us.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $plain = initialize('plain');
my $telling = initialize('telling');
my $short = initialize('short');
my $late = initialize('late', conf => "shared_preload_libraries = ''\n");
$plain->start;
{
	local $ENV{RUST_BACKTRACE} = 'full';
	$_->start for $telling, $late;
}
{
	local $ENV{RUST_BACKTRACE} = '1';
	$short->start;
}
for my $node ($plain, $telling, $short, $late)
{
	$node->safe_psql('postgres', q{
		CREATE EXTENSION pg_arrow_cache;
		CREATE TABLE t (id int);
		INSERT INTO t VALUES (1), (2);
		CREATE ROLE nobody;
		CREATE FUNCTION raise() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'raised' USING DETAIL = 'a detail'; END $$;
	});
}

# What the server says of each of these statements, one after the other in one session.
sub told
{
	my ($node, @statements) = @_;
	my $stderr;
	$node->psql('postgres', join('', map { "$_;\n\\warn ==>\nROLLBACK; RESET ROLE;\n\\warn ==>\n" } @statements), stderr => \$stderr, on_error_stop => 0,
		extra_params => [ '-v', 'VERBOSITY=verbose', '-v', 'SHOW_CONTEXT=always' ]);
	$stderr =~ s/^psql:<stdin>:\d+: //mg;
	my @said = split /^==>\n?/m, $stderr;
	return map { $said[ 2 * $_ ] } 0 .. $#statements;
}

# Errors of the server inside a query, in functions of ours outside of one, in COPY, in hooks; and our own.
my @failing = (
	(map { my $way = $_; map { "SELECT * FROM arrow_cache.$way('$_')" } 'SELEC', 'SELECT x FROM t', 'SELECT 1/0' } qw(query fetch messages schema why)),
	(map { my $way = $_; map { "SELECT * FROM arrow_cache.$way('$_')" } 'SELECT 1/(id-2) FROM t', 'SELECT raise()', 'DELETE FROM t', 'SELECT $1' } qw(query fetch messages)),
	q{SELECT arrow_cache.set_policy(4294967295, 'never')}, q{SELECT arrow_cache.set_policy('t', 'x')},
	q{SET ROLE nobody; SELECT arrow_cache.set_policy('t', 'never')}, q{SET ROLE nobody; SELECT arrow_cache.flush()},
	q{SELECT arrow_cache.query('SELECT $3', '1'::oid, 2)}, q{SELECT arrow_cache.fetch('SELECT 1', '{"limit": -1}')},
	q{SECURITY LABEL FOR pg_arrow_cache ON SCHEMA public IS 'never'},
	q{COPY (SELECT 1/(id-2) FROM t) TO STDOUT (FORMAT arrow)}, q{COPY t TO STDOUT (FORMAT arrow, nothing)}, q{COPY t (x) TO STDOUT (FORMAT arrow)},
	q{BEGIN; CREATE TRIGGER a AFTER INSERT ON t EXECUTE FUNCTION arrow_cache.invalidate_on_change('a.b.c.d'); INSERT INTO t VALUES (3)},
	q{SELECT 1/(id-2) FROM t}, q{SELECT arrow_cache.query(repeat('(', 100000))},
);
my @of_plain = told($plain, @failing);
my @of_telling = told($telling, @failing);
my @of_short = told($short, @failing);
my @of_late = told($late, @failing);
for my $number (0 .. $#failing)
{
	my $statement = substr($failing[$number], 0, 100);
	like($of_plain[$number], qr/^ERROR:  \w{5}: /m, "$statement: fails");
	unlike(($_->[$number] // die) =~ s/^LOCATION:.*//mgr, qr/backtrace|pgrx|\.rs\b|\bat \//, "$statement: shows no stack") for \@of_plain, \@of_telling, \@of_short, \@of_late;
	is($_->[$number], $of_plain[$number], "$statement: says the same as without the variable") for \@of_telling, \@of_short;
}
unlike(PostgreSQL::Test::Utils::slurp_file($_->logfile), qr/rust_begin_unwind|stack backtrace/, 'nor does the log') for $telling, $short, $late;

# What the server starts has the environment that the server was given.
is($telling->safe_psql('postgres', q{COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; env > env.txt'; SELECT pg_read_file('env.txt') ~ 'RUST_BACKTRACE=full', pg_read_file('env.txt') ~ 'RUST_LIB'}), 't|f',
	'the environment is left alone');

done_testing();
