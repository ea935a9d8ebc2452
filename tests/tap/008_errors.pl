# Errors reach the client as they would without the library: message, SQLSTATE, DETAIL, HINT, CONTEXT, position, names
# of schema, table and constraint, and even the place in PostgreSQL's source. Servers with the library, alone and among
# others, run the same statements as one without any, and must say the same.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use Test::More;

my $schema = q{
	CREATE SCHEMA s;
	CREATE DOMAIN s.positive AS int CONSTRAINT above_zero CHECK (VALUE > 0);
	CREATE TABLE s.parent (id int CONSTRAINT parent_key PRIMARY KEY, v int NOT NULL CONSTRAINT small CHECK (v < 100));
	CREATE TABLE s.child (id int CONSTRAINT to_parent REFERENCES s.parent, p s.positive);
	INSERT INTO s.parent SELECT g, g FROM generate_series(0, 9) g;
	INSERT INTO s.child VALUES (1, 1);
	CREATE FUNCTION s.divide(n int) RETURNS int LANGUAGE plpgsql AS $$
	BEGIN
		RETURN 1 / n;
	END $$;
	CREATE FUNCTION s.complain() RETURNS int LANGUAGE plpgsql AS $$
	BEGIN
		RAISE NOTICE 'before %', (SELECT count(*) FROM s.parent);
		RAISE EXCEPTION 'no way' USING ERRCODE = 'P4242', DETAIL = 'a detail', HINT = 'a hint',
			SCHEMA = 's', TABLE = 'parent', COLUMN = 'v', CONSTRAINT = 'small', DATATYPE = 'int4';
	END $$;
	CREATE FUNCTION s.outer(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM count(*) FROM s.parent;
		RETURN QUERY SELECT s.divide(n - id) FROM s.parent ORDER BY id;
	END $$;
};

my %failing = (
	'unique constraint' => 'INSERT INTO s.parent VALUES (1, 1)',
	'check constraint' => 'UPDATE s.parent SET v = 1000 WHERE id = 3',
	'not-null constraint' => 'INSERT INTO s.parent (id) VALUES (100)',
	'foreign key, child' => 'INSERT INTO s.child VALUES (77, 1)',
	'foreign key, parent' => 'DELETE FROM s.parent WHERE id = 1',
	'domain constraint' => 'INSERT INTO s.child VALUES (1, -1)',
	'constraint in COPY' => "COPY s.parent FROM stdin;\n50\t50\n51\t5000\n\\.\n",
	'syntax error' => "SELECT a\n  FROM s.parent WHERE ORDER BY 1",
	'unknown column' => 'SELECT id, w FROM s.parent',
	'unknown table' => 'SELECT 1 FROM s.parents',
	'unknown function' => 'SELECT s.nothing(id) FROM s.parent',
	'division by zero in the row that is being captured' => 'SELECT id, 10 / (5 - id) FROM s.parent ORDER BY id',
	'division by zero of constants' => 'SELECT 1 / 0 FROM s.parent',
	'cast in a row that is being captured' => q{SELECT ('x' || id)::int FROM s.parent},
	'two rows from a subquery' => 'SELECT (SELECT v FROM s.parent) FROM s.child',
	'function' => 'SELECT s.divide(0)',
	'function over a table' => 'SELECT s.divide(id) FROM s.parent',
	'nested functions' => 'SELECT * FROM s.outer(3)',
	'raised exception with all fields' => 'SELECT s.complain()',
	'raised in DO' => 'DO $$ BEGIN PERFORM s.divide(id) FROM s.parent; END $$',
	'EXECUTE of a prepared statement' => 'PREPARE p (int) AS SELECT 10 / ($1 - id) FROM s.parent; EXECUTE p (4)',
	'FETCH from a cursor' =>
		'BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT 10 / (5 - id) FROM s.parent; FETCH 3 FROM c; FETCH ALL FROM c',
	'aborted transaction' => "BEGIN;\n\\set ON_ERROR_STOP off\nSELECT 1 / 0;\nSELECT count(*) FROM s.parent;\nROLLBACK;",
	'permission' => 'CREATE ROLE nobody; SET ROLE nobody; SELECT * FROM s.parent',
	'explained' => 'EXPLAIN ANALYZE SELECT 10 / (5 - id) FROM s.parent',
);

my $plain = initialize('plain', conf => "shared_preload_libraries = ''\n");
$plain->start;
my %cached = (
	'alone' => new_server('alone'),
	'before others' => new_server('before',
		conf => "shared_preload_libraries = 'pg_arrow_cache, auto_explain, pg_stat_statements'\n"),
	'after others' => new_server('after',
		conf => "shared_preload_libraries = 'pg_stat_statements, auto_explain, pg_arrow_cache'\n"));
$_->safe_psql('postgres', $schema) for $plain, values %cached;

# All that psql can show of a statement's outcome.
sub outcome
{
	my ($node, $statement) = @_;
	my ($stdout, $stderr);
	$node->psql('postgres', $statement, stdout => \$stdout, stderr => \$stderr,
		extra_params => [ '-v', 'VERBOSITY=verbose', '-v', 'SHOW_CONTEXT=always' ]);
	$stderr =~ s/^psql:<stdin>:\d+: //mg;
	return { stdout => $stdout, stderr => $stderr };
}

for my $name (sort keys %failing)
{
	my $expected = outcome($plain, $failing{$name});
	like($expected->{stderr}, qr/ERROR:  [0-9A-Z]{5}: /, "$name: fails");
	is_deeply(outcome($cached{$_}, $failing{$name}), $expected,
		"$name: the library, $_, changes nothing about it")
		for sort keys %cached;
}
is(stat($cached{$_}, 'entries, stores'), '0|0', "nothing that failed was stored ($_)") for sort keys %cached;

# The same when what fails comes after a hit in the same string and transaction.
my $after_hit = "SELECT sum(v) FROM s.parent;\nSELECT sum(v) FROM s.parent;\n"
	. 'BEGIN; SELECT sum(v) FROM s.parent; SELECT s.divide(0);';
my $expected = outcome($plain, $after_hit);
is($expected->{stdout}, "45\n45\n45", 'hits before an error');
for my $where (sort keys %cached)
{
	is_deeply(outcome($cached{$where}, $after_hit), $expected,
		"hits before an error: the library, $where, changes nothing");
	is(stat($cached{$where}, 'hits'), '2', "hits before an error: they were hits ($where)");
}

done_testing();
