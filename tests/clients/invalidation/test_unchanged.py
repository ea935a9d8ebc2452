"""What changes no row outdates no answer, also in a transaction that has an id, and whether or not the table is tracked."""

import pytest
from invalidation.test_values import is_hit, until_tracked

SETUP = """
    CREATE TABLE t (id int PRIMARY KEY, label text UNIQUE, v int DEFAULT 0);
    INSERT INTO t VALUES (1, 'red'), (2, 'blue');
    CREATE TABLE parent (id int PRIMARY KEY);
    CREATE TABLE child (parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
    INSERT INTO parent VALUES (1), (2);
    INSERT INTO child VALUES (1);
    CREATE TABLE parted (k int, v int) PARTITION BY LIST (k);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
    CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
    INSERT INTO parted VALUES (1, 1), (2, 2);
    CREATE TABLE other (v int);
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TABLE guarded (v int);
    INSERT INTO guarded VALUES (1);
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON guarded FOR EACH ROW EXECUTE FUNCTION refuse();
    CREATE RULE nothing AS ON UPDATE TO other DO ALSO UPDATE t SET v = 1 WHERE false;
"""
ANSWERS = ["SELECT count(*), max(label) FROM t", "SELECT v FROM t WHERE id = 1", "SELECT count(*) FROM child", "SELECT sum(v) FROM parted",
           "SELECT sum(v) FROM parted WHERE k = 2", "SELECT count(*) FROM guarded"]

NOTHING = {
    "update of no row": "UPDATE t SET v = 1 WHERE id = -1",
    "update where false": "UPDATE t SET v = 1 WHERE false",
    "delete of no row": "DELETE FROM t WHERE id = -1",
    "insert of no row": "INSERT INTO t SELECT 3, 'green' WHERE false",
    "do nothing": "INSERT INTO t VALUES (1, 'red') ON CONFLICT DO NOTHING",
    "do update where false": "INSERT INTO t VALUES (1, 'red') ON CONFLICT (id) DO UPDATE SET v = 1 WHERE t.label <> excluded.label",
    "merge of nothing": "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN DO NOTHING",
    "cascade of a delete without children": "DELETE FROM parent WHERE id = 2",
    "cascade of an update without children": "UPDATE parent SET id = 3 WHERE id = 2",
    "update of no leaf's row": "UPDATE parted SET v = 1 WHERE v = -1",
    "delete of no leaf's row": "DELETE FROM parted WHERE k = 3",
    "update of another leaf": "UPDATE parted SET v = v WHERE k = 1 AND v = -1",
    "refusing triggers": "INSERT INTO guarded VALUES (2); UPDATE guarded SET v = 2; DELETE FROM guarded",
    "rule": "UPDATE other SET v = 1",
    "copy of nothing": "COPY t FROM '/dev/null'",
    "insert that was rolled back": "SAVEPOINT a; INSERT INTO t VALUES (3, 'green'); ROLLBACK TO a",
    "update that was rolled back": "SAVEPOINT a; UPDATE t SET v = 1; DELETE FROM parent; UPDATE parted SET v = 1; ROLLBACK TO a",
    "truncation that was rolled back": "SAVEPOINT a; TRUNCATE t, child; ROLLBACK TO a",
    "insert that failed": "DO $$ BEGIN INSERT INTO t VALUES (3, 'red'); EXCEPTION WHEN unique_violation THEN NULL; END $$",
    "locks": "SELECT FROM t FOR UPDATE; LOCK TABLE t",
    "analyze": "ANALYZE t",
}


@pytest.mark.parametrize("is_tracked", [False, True])
@pytest.mark.parametrize("way", NOTHING)
def test_nothing_is_outdated(session, other, way, is_tracked):
    session.execute(SETUP)
    if is_tracked:
        until_tracked(session, lambda number: session.rows(f"SELECT v, {number} FROM t WHERE id = 1"), ["id"])
    for query in ANSWERS:
        session.rows(query)
        assert is_hit(session, query), query
    # The transaction has an id, and something to publish.
    other.execute("BEGIN")
    other.execute("INSERT INTO other VALUES (1)")
    other.execute(NOTHING[way])
    other.execute("COMMIT")
    for query in ANSWERS:
        assert is_hit(session, query), query
    # The same session's changes of rows are seen.
    other.execute("UPDATE t SET v = 5 WHERE id = 1")
    assert session.rows(ANSWERS[1]) == [(5,)]
