# The script of CREATE EXTENSION and the library fit each other, and a script refuses a library that is too old for it.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = initialize('versions');
$node->start;

# Runs statements in a session of its own. Returns what the server said of the one that failed, or nothing.
sub failure
{
	my ($statements) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', $statements, on_error_stop => 1, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	return $status == 0 ? '' : $stderr;
}

# The version stands in the control file, the library and the script.
my $version = $node->safe_psql('postgres', q{SELECT default_version FROM pg_available_extensions WHERE name = 'pg_arrow_cache'});
is($node->safe_psql('postgres', 'SHOW pg_arrow_cache.version'), $version, 'the library has the version of the control file');
like(failure("SET pg_arrow_cache.version = '9.9.9'"), qr/ERROR:  55P02: parameter "pg_arrow_cache.version" cannot be changed/, 'nobody can set the version');
chomp(my $shared = `$ENV{PG_CONFIG} --sharedir`);
chomp(my $libraries = `$ENV{PG_CONFIG} --pkglibdir`);
my $script = slurp_file("$shared/extension/pg_arrow_cache--$version.sql");
my ($check) = $script =~ /^(DO LANGUAGE plpgsql \$check\$\nDECLARE\n    needed CONSTANT.*?^\$check\$;\n)/ms;
like($check, qr/needed CONSTANT pg_catalog\.text := '\Q$version\E'/, 'the script asks for a library of its version');
ok(index($script, 'CREATE ') > index($script, $check), 'before it makes anything');
my %named = map { $_ => 1 } $script =~ /'MODULE_PATHNAME', '(\w+)'/g;
my %offered = map { $_ => 1 } slurp_file("$libraries/pg_arrow_cache.so") =~ /\0pg_finfo_(\w+)(?=\0)/g;
is_deeply([ sort keys %offered ], [ sort keys %named ], 'the library offers the symbols that the script names');
is(failure('CREATE EXTENSION pg_arrow_cache; ALTER EXTENSION pg_arrow_cache UPDATE; SELECT * FROM arrow_cache.stats'), '', 'the script runs');

# Scripts of other versions.
for my $needed ('9.9.9', '0.10.0', '0.2.1', '0.2.0.1')
{
	like(failure($check =~ s/'\Q$version\E'/'$needed'/r),
		qr/ERROR:  55000: version \Q$needed\E of pg_arrow_cache needs.*DETAIL:  The server has loaded version \Q$version\E\.\nHINT:  Restart the server/s, "a script for $needed is refused");
}
is(failure($check =~ s/'\Q$version\E'/'$_'/r), '', "a script for $_ is content with $version") for '0.1.10', '0.2';

# Without preloading, nothing is checked when the extension is made: the functions say what is missing.
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\npg_arrow_cache.memory = 64\npg_arrow_cache.version = '0.0.1'\n");
$node->restart;
is(failure('DROP EXTENSION pg_arrow_cache; CREATE EXTENSION pg_arrow_cache'), '', 'without the library in shared_preload_libraries the script runs');
like(failure('SELECT arrow_cache.flush()'), qr/ERROR:  55000: pg_arrow_cache must be loaded via "shared_preload_libraries"/, 'and the functions say what is missing');

done_testing();
