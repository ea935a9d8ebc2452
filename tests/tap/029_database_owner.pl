# The owner of a database is a member of pg_database_owner for as long as he owns it. What he may do through that role ends with his ownership,
# whether a right is checked with each hit (tables), when the query is made (policies), or while it executes (functions).

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $node = new_server('database_owner');
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE regress_cache_first LOGIN;
CREATE ROLE regress_cache_second LOGIN;
CREATE DATABASE owned OWNER regress_cache_first;
SQL
$node->safe_psql('owned', <<'SQL');
CREATE EXTENSION pg_arrow_cache;
CREATE TABLE t (v text);
INSERT INTO t VALUES ('a');
CREATE TABLE granted AS TABLE t;
CREATE TABLE fenced AS TABLE t;
ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
CREATE POLICY owners ON fenced TO pg_database_owner USING (true);
GRANT SELECT ON t, fenced TO PUBLIC;
GRANT SELECT ON granted TO pg_database_owner;
REVOKE EXECUTE ON FUNCTION pg_catalog.upper(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_catalog.upper(text) TO pg_database_owner;
SQL

# What a role is told, or the error instead.
sub told
{
	my ($role, $query) = @_;
	my ($status, $stdout, $stderr) = $node->psql('owned', $query, extra_params => [ '-U', $role ], on_error_stop => 1);
	return $status == 0 ? $stdout : $stderr =~ /ERROR:  (.*)/ ? $1 : $stderr;
}

my ($function, $table, $policy) = ('SELECT upper(v) FROM t', 'SELECT v FROM granted', 'SELECT count(*) FROM fenced');
sub is_owner { my ($role) = @_; return is_deeply([ map { told($role, $_) } $function, $table, $policy ], [ 'A', 'a', '1' ], "$role owns the database") }

sub is_not
{
	my ($role) = @_;
	return is_deeply([ map { told($role, $_) } $function, $table, $policy ],
		[ 'permission denied for function upper', 'permission denied for table granted', '0' ], "$role does not");
}

for (1 .. 2) { is_owner('regress_cache_first'); is_not('regress_cache_second') }
is(told('regress_cache_first', "$function; SELECT arrow_cache.last_status()"), "A\nHIT", 'the owner is served from the cache');
$node->safe_psql('postgres', 'ALTER DATABASE owned OWNER TO regress_cache_second');
for (1 .. 2) { is_not('regress_cache_first'); is_owner('regress_cache_second') }
$node->safe_psql('owned', 'REASSIGN OWNED BY regress_cache_second TO regress_cache_first');
for (1 .. 2) { is_owner('regress_cache_first'); is_not('regress_cache_second') }

done_testing();
