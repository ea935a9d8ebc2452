# Every way to change rows on a primary, which does not preload the library, outdates on the standby what rests on these rows, and
# nothing else: statements, what they set off, partitions, files that take the place of others, and upkeep, which changes nothing.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use ArrowCacheTest;
use StandbyTest;
use Test::More;

my $primary = new_primary('primary', conf => "wal_log_hints = on\n");
$primary->safe_psql('postgres', 'CREATE TABLE untouched (v int); INSERT INTO untouched VALUES (1)');
my $standby = new_standby('standby', $primary);
my %on = (writer => session($primary), first => session($standby), second => session($standby),
	plain => session($standby, 'SET pg_arrow_cache.enabled = off'));
is(state($standby), 'replaying', 'the standby follows the changes');

my $INSERT = 'INSERT INTO {t} VALUES (11, 11)';

my $LINES = q{FROM PROGRAM 'printf "11,11\\n12,12\\n"' CSV};

my @STATEMENTS = (
	{ name => 'INSERT', change => [$INSERT] },
	{ name => 'INSERT of many', change => ['INSERT INTO {t} SELECT g, g FROM generate_series(11, 3000) g'] },
	{ name => 'UPDATE', change => ['UPDATE {t} SET v = v + 1 WHERE id = 7'] },
	{ name => 'UPDATE of a key', change => ['UPDATE {t} SET id = 70 WHERE id = 7'], query => 'SELECT sum(id) FROM {t}' },
	{ name => 'DELETE', change => ['DELETE FROM {t} WHERE id = 7'] },
	{
		name => 'MERGE',
		change => [ q{MERGE INTO {t} USING (VALUES (7, 99), (11, 1)) AS news (id, v) ON {t}.id = news.id
			WHEN MATCHED THEN UPDATE SET v = news.v WHEN NOT MATCHED THEN INSERT VALUES (news.id, news.v)} ]
	},
	{ name => 'ON CONFLICT', change => ['INSERT INTO {t} VALUES (7, 3) ON CONFLICT (id) DO UPDATE SET v = excluded.v'] },
	{ name => 'ON CONFLICT DO NOTHING', change => ['INSERT INTO {t} VALUES (7, 3) ON CONFLICT DO NOTHING'], after => 'kept' },
	{ name => 'writable WITH', change => ['WITH gone AS (DELETE FROM {t} WHERE id > 5 RETURNING id) SELECT count(*) FROM gone'] },
	{ name => 'COPY', change => ["COPY {t} $LINES"] },
	{ name => 'COPY FREEZE', change => ["BEGIN; TRUNCATE {t}; COPY {t} $LINES FREEZE; COMMIT"] },
	{
		name => 'COPY FREEZE into a new table of the name',
		change => ["BEGIN; DROP TABLE {t}; CREATE TABLE {t} (id int, v int); COPY {t} $LINES FREEZE; COMMIT"]
	},
	{ name => 'TRUNCATE', change => ['TRUNCATE {t}'], steps => [ { name => 'then INSERT', change => [$INSERT] } ] },
	{ name => 'TRUNCATE and INSERT', change => ["BEGIN; TRUNCATE {t}; $INSERT; COMMIT"] },
	{ name => 'TRUNCATE rolled back', change => ['BEGIN; TRUNCATE {t}; ROLLBACK'], after => 'kept' },
	{ name => 'DO', change => ["DO 'BEGIN $INSERT; END'"] },
	{
		name => 'a DO block with exceptions',
		change => [ q{DO $$ BEGIN
			FOR i IN 1 .. 10 LOOP
				BEGIN UPDATE {t} SET v = v + 1 WHERE id = i; PERFORM 1 / (i % 2); EXCEPTION WHEN division_by_zero THEN END;
			END LOOP; END $$} ]
	},
	{
		name => 'a function that writes',
		setup => ["CREATE FUNCTION add_{n}() RETURNS int LANGUAGE sql AS '$INSERT RETURNING id'"],
		change => ['SELECT add_{n}()']
	},
	{
		name => 'a procedure that commits',
		setup => [ q{CREATE PROCEDURE add_{n}() LANGUAGE plpgsql AS
			'BEGIN FOR i IN 11 .. 13 LOOP INSERT INTO {t} VALUES (i, i); COMMIT; END LOOP; ROLLBACK; END'} ],
		change => ['CALL add_{n}()']
	},
	{
		name => 'WHERE CURRENT OF',
		change => [ q{BEGIN; DECLARE c CURSOR FOR SELECT * FROM {t} FOR UPDATE; FETCH 3 FROM c;
			UPDATE {t} SET v = 0 WHERE CURRENT OF c; COMMIT} ]
	},
	{ name => 'EXPLAIN ANALYZE', change => ["EXPLAIN (ANALYZE, COSTS OFF) $INSERT"] },
	{ name => 'row locks', change => ['SELECT * FROM {t} FOR UPDATE'], after => 'kept' },
	{ name => 'LOCK TABLE', change => ['BEGIN; LOCK TABLE {t}; COMMIT'], after => 'kept' },
	{ name => 'a commit that is not waited for', change => ["SET synchronous_commit = off; $INSERT; RESET synchronous_commit"] },
	{ name => 'changes that are not counted', change => ["SET track_counts = off; $INSERT; RESET track_counts"] },
	{
		name => 'a large value, kept apart',
		setup => [ 'ALTER TABLE {t} ADD x text; ALTER TABLE {t} ALTER x SET STORAGE external',
			q{UPDATE {t} SET x = repeat('a', 10000)} ],
		query => 'SELECT sum(v), min(md5(x)), max(md5(x)) FROM {t}',
		change => [q{UPDATE {t} SET x = repeat('b', 10000) WHERE id = 3}]
	},
	{ name => 'the row that was there', change => ['UPDATE {t} SET v = v WHERE id = 1'], same => 1 },
	{ name => 'ROLLBACK', change => ["BEGIN; $INSERT; ROLLBACK"], after => 'kept' },
);

my $LOG = 'SELECT count(*), sum(id) FROM log_{n}';
my @LOGGED = (
	'CREATE TABLE log_{n} (id int); INSERT INTO log_{n} VALUES (0)',
	q{CREATE FUNCTION note_{n}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log_{n} VALUES (new.id); RETURN new; END'}
);
my $FIRED = 'ON {t} FOR EACH ROW EXECUTE FUNCTION note_{n}()';
my $REFERS = 'CREATE TABLE child_{n} (id int, t int REFERENCES {t}';
my $CHILDREN = 'INSERT INTO child_{n} SELECT id * 2, id FROM {t}';
my $CHILD = 'SELECT count(*), count(t), sum(t) FROM child_{n}';

my @CONSEQUENCES = (
	{
		name => 'ON DELETE CASCADE', query => $CHILD, setup => [ "$REFERS ON DELETE CASCADE)", $CHILDREN ],
		change => ['DELETE FROM {t} WHERE id = 2']
	},
	{
		name => 'ON UPDATE CASCADE', query => $CHILD, setup => [ "$REFERS ON UPDATE CASCADE)", $CHILDREN ],
		change => ['UPDATE {t} SET id = 50 WHERE id = 2']
	},
	{
		name => 'ON DELETE SET NULL', query => $CHILD, setup => [ "$REFERS ON DELETE SET NULL)", $CHILDREN ],
		change => ['DELETE FROM {t} WHERE id = 2']
	},
	{
		name => 'a foreign key that only checks', setup => [ "$REFERS)", $CHILDREN ], after => 'kept',
		change => ['INSERT INTO child_{n} VALUES (1, 1)']
	},
	{ name => 'TRUNCATE CASCADE', query => $CHILD, setup => [ "$REFERS)", $CHILDREN ], change => ['TRUNCATE {t} CASCADE'] },
	{ name => 'a trigger', query => $LOG, setup => [ @LOGGED, "CREATE TRIGGER note AFTER INSERT $FIRED" ], change => [$INSERT] },
	{
		name => 'a deferred trigger', query => $LOG, change => ["BEGIN; $INSERT; COMMIT"],
		setup => [ @LOGGED, "CREATE CONSTRAINT TRIGGER note AFTER INSERT ON {t} DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION note_{n}()" ]
	},
	{
		name => 'a trigger of a view', query => $LOG, change => ['INSERT INTO shown_{n} VALUES (11, 11)'],
		setup => [ @LOGGED, 'CREATE VIEW shown_{n} AS SELECT * FROM {t}',
			'CREATE TRIGGER note INSTEAD OF INSERT ON shown_{n} FOR EACH ROW EXECUTE FUNCTION note_{n}()' ]
	},
	{
		name => 'a rule', query => $LOG, change => [$INSERT],
		setup => [ @LOGGED, 'CREATE RULE note AS ON INSERT TO {t} DO ALSO INSERT INTO log_{n} VALUES (new.id)' ]
	},
	{
		name => 'an updatable view', setup => ['CREATE VIEW low_{n} AS SELECT * FROM {t} WHERE id < 5'],
		change => ['UPDATE low_{n} SET v = 100 WHERE id = 2']
	},
);

my @PARTS = (
	'CREATE TABLE p_{n} (id int, v int) PARTITION BY RANGE (id)',
	'CREATE TABLE p1_{n} PARTITION OF p_{n} FOR VALUES FROM (0) TO (6)',
	'CREATE TABLE p2_{n} PARTITION OF p_{n} FOR VALUES FROM (6) TO (20)',
	'INSERT INTO p_{n} SELECT * FROM {t}'
);
my ($ROOT, $LEAF) = map { "SELECT count(*), sum(v) FROM ${_}_{n}" } 'p', 'p1';
my @FAMILY = ('CREATE TABLE heir_{n} (extra int) INHERITS ({t})', 'INSERT INTO heir_{n} VALUES (20, 20, 20)');

my @TREES = (
	{ name => 'a leaf, read through the root', setup => \@PARTS, query => $ROOT, change => ['INSERT INTO p1_{n} VALUES (3, 100)'] },
	{ name => 'the root, read from a leaf', setup => \@PARTS, query => $LEAF, change => ['INSERT INTO p_{n} VALUES (3, 100)'] },
	{ name => 'another leaf', setup => \@PARTS, query => $LEAF, change => ['INSERT INTO p_{n} VALUES (7, 100)'], after => 'kept' },
	{ name => 'a row that moves into a leaf', setup => \@PARTS, query => $LEAF, change => ['UPDATE p_{n} SET id = 1 WHERE id = 9'] },
	{ name => 'a leaf that the query leaves out', setup => \@PARTS, query => "$ROOT WHERE id = 2", after => 'kept',
		change => ['UPDATE p_{n} SET v = 0 WHERE id = 9'] },
	{ name => 'COPY into the root', setup => \@PARTS, query => $LEAF, change => ["COPY p_{n} FROM PROGRAM 'echo 3,100' CSV"] },
	{ name => 'TRUNCATE of a leaf', setup => \@PARTS, query => $ROOT, change => ['TRUNCATE p2_{n}'] },
	{ name => 'TRUNCATE of the root', setup => \@PARTS, query => $LEAF, change => ['TRUNCATE p_{n}'] },
	{ name => 'a table that inherits', setup => \@FAMILY, change => ['INSERT INTO heir_{n} VALUES (21, 21, 21)'] },
	{ name => 'the parent of a table that inherits', setup => \@FAMILY, query => 'SELECT sum(v) FROM heir_{n}', change => [$INSERT],
		after => 'kept' },
);

# New files: the rows are as before, and changes of them are still seen.
my $THEN = { name => 'then INSERT', change => [$INSERT] };
my @THEN = ({ name => 'then UPDATE', change => ['UPDATE {t} SET v = v + 1'] }, $THEN);
my $VIEW = 'CREATE MATERIALIZED VIEW m_{n} AS SELECT id % 2 AS half, sum(v) AS s FROM {t} GROUP BY 1';
my $OF_VIEW = 'SELECT count(*), sum(s) FROM m_{n}';
my @FILES = (
	{ name => 'VACUUM FULL', change => ['VACUUM FULL {t}'], same => 1, steps => \@THEN },
	{ name => 'CLUSTER', change => ['CLUSTER {t} USING {t}_pkey'], same => 1, steps => \@THEN },
	{ name => 'a rewrite', change => ['ALTER TABLE {t} ALTER v TYPE bigint'], same => 1, steps => \@THEN },
	{ name => 'a rewrite with other rows', change => ['ALTER TABLE {t} ALTER v TYPE int USING v * 2'], steps => \@THEN },
	{ name => 'a rewrite rolled back', change => ['BEGIN; ALTER TABLE {t} ALTER v TYPE int USING v * 2; ROLLBACK'], after => 'kept',
		steps => \@THEN },
	{ name => 'SET TABLESPACE', change => ['ALTER TABLE {t} SET TABLESPACE elsewhere'], same => 1, steps => \@THEN },
	{ name => 'SET UNLOGGED', change => ['ALTER TABLE {t} SET UNLOGGED'] },
	{ name => 'SET UNLOGGED and back', same => 1, change => [ 'ALTER TABLE {t} SET UNLOGGED', 'ALTER TABLE {t} SET LOGGED' ],
		steps => \@THEN },
	{ name => 'SET UNLOGGED, UPDATE and back', steps => \@THEN, change => [ 'ALTER TABLE {t} SET UNLOGGED', 'DELETE FROM {t} WHERE id = 1',
			'ALTER TABLE {t} SET LOGGED' ] },
	{ name => 'CREATE TABLE AS of the same name', change => [ 'BEGIN; CREATE TABLE new_{n} AS SELECT id, v * 2 AS v FROM {t};
			DROP TABLE {t}; ALTER TABLE new_{n} RENAME TO {t}; COMMIT' ], steps => \@THEN },
	{ name => 'REFRESH', query => $OF_VIEW, setup => [ $VIEW, $INSERT ], change => ['REFRESH MATERIALIZED VIEW m_{n}'],
		steps => [ { name => 'again', change => [ 'DELETE FROM {t} WHERE id = 1', 'REFRESH MATERIALIZED VIEW m_{n}' ] } ] },
	{ name => 'REFRESH CONCURRENTLY', query => $OF_VIEW, setup => [ $VIEW, 'CREATE UNIQUE INDEX ON m_{n} (half)', $INSERT ],
		change => ['REFRESH MATERIALIZED VIEW CONCURRENTLY m_{n}'] },
	{ name => 'REFRESH WITH NO DATA', query => $OF_VIEW, setup => [$VIEW], change => ['REFRESH MATERIALIZED VIEW m_{n} WITH NO DATA'] },
	{ name => 'a table below a view that is not refreshed', query => $OF_VIEW, setup => [$VIEW], change => [$INSERT], after => 'kept' },
);

# Dead rows, to have something to clean up; none of them is needed by the standby.
my $DEAD = 'INSERT INTO {t} SELECT g, g FROM generate_series(11, 3000) g; DELETE FROM {t} WHERE id > 10';
my @UPKEEP = (
	{ name => 'VACUUM', setup => [$DEAD], change => ['VACUUM {t}'], after => 'kept', steps => [$THEN] },
	{ name => 'VACUUM that changes nothing', change => ['VACUUM {t}'], after => 'kept' },
	{ name => 'VACUUM (FREEZE)', setup => [$DEAD], change => ['VACUUM (FREEZE) {t}'], after => 'kept', steps => [$THEN] },
	{ name => 'VACUUM (ANALYZE) of all', change => ['VACUUM (ANALYZE)'], after => 'kept', steps => [$THEN] },
	{ name => 'ANALYZE', change => ['ANALYZE {t}'], after => 'kept' },
	{ name => 'hint bits', setup => [ $DEAD, 'CHECKPOINT' ], change => ['SELECT count(*) FROM {t}'], after => 'kept' },
	{ name => 'pruning', setup => [ ('UPDATE {t} SET v = v') x 40 ], change => [ ('SELECT sum(v) FROM {t} WHERE id = 1') x 3 ],
		after => 'kept' },
	{ name => 'CHECKPOINT', change => ['CHECKPOINT'], after => 'kept' },
	{ name => 'a new segment of WAL', change => ['SELECT pg_switch_wal()'], after => 'kept' },
	{ name => 'COMMENT', change => [q{COMMENT ON TABLE {t} IS 'a table'}], after => 'kept' },
	{ name => 'REINDEX', change => ['REINDEX TABLE {t}'], after => 'either', same => 1 },
	{ name => 'REINDEX CONCURRENTLY', change => ['REINDEX TABLE CONCURRENTLY {t}'], after => 'either', same => 1 },
	{ name => 'CREATE INDEX', change => ['CREATE INDEX ON {t} (v)'], same => 1, steps => [$THEN] },
	{ name => 'CREATE INDEX CONCURRENTLY', change => ['CREATE INDEX CONCURRENTLY ON {t} (v)'], same => 1, steps => [$THEN] },
	{ name => 'a sequence', setup => ['CREATE SEQUENCE s_{n}'], change => [ (q{SELECT nextval('s_{n}')}) x 40 ], after => 'kept' },
	{ name => 'a large object', change => [q{SELECT lo_from_bytea(0, 'large')}], after => 'kept' },
	{ name => 'a temporary table', change => ['CREATE TEMP TABLE mine_{n} AS SELECT 1 AS a; DROP TABLE mine_{n}'], after => 'kept' },
	{ name => 'an unlogged table', change => [ 'CREATE UNLOGGED TABLE u_{n} AS SELECT 1 AS a', 'INSERT INTO u_{n} VALUES (2)' ],
		after => 'kept' },
	{ name => 'NOTIFY and advisory locks', change => [ 'NOTIFY something', 'SELECT pg_advisory_lock(1), pg_advisory_unlock(1)' ],
		after => 'kept' },
	{ name => 'messages in the WAL', change => [q{SELECT pg_logical_emit_message(false, 'a', 'b')}], after => 'kept' },
);

write_sql($on{writer}, q{CREATE TABLESPACE elsewhere LOCATION ''});
try_cases(\%on, @STATEMENTS, @CONSEQUENCES, @TREES, @FILES, @UPKEEP);

# What cannot be read on a standby is not answered there.
write_sql($on{writer}, 'CREATE UNLOGGED TABLE u AS SELECT 1 AS a');
caught_up($on{writer}, $on{first});
like(ask_plainly($on{first}, 'SELECT a FROM u'), qr/cannot access temporary or unlogged relations during recovery/,
	'an unlogged table cannot be read');

is(state($standby), 'replaying', 'nothing has switched the cache off');
$_->quit for values %on;
done_testing();
