"""A definition outdates the answers over the relations that it changes, and leaves those over others alone which the server reads again for it: the
other side of a foreign key, a table that gets a trigger."""

import pytest
from invalidation.test_values import is_hit

SETUP = """
    CREATE TABLE t (id int PRIMARY KEY, v int);
    INSERT INTO t SELECT g, g FROM generate_series(1, 10) g;
    CREATE TABLE child (t int, v int);
    INSERT INTO child VALUES (1, 1);
    CREATE TABLE held (t int CONSTRAINT key REFERENCES t, v int);
    CREATE TABLE p (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
    CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
    CREATE TABLE p2 PARTITION OF p DEFAULT;
    INSERT INTO p SELECT g, g FROM generate_series(1, 20) g;
    CREATE TABLE heir () INHERITS (t);
    CREATE TABLE stranger (id int PRIMARY KEY, v int);
    CREATE VIEW view AS SELECT sum(v) AS v FROM t;
    CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TRIGGER old BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();
"""
OF_T, OF_P, OF_VIEW = "SELECT count(*), sum(v) FROM t", "SELECT count(*), sum(v) FROM p", "SELECT v FROM view"
ANSWERS = [OF_T, OF_P, OF_VIEW]
KEY = "CREATE TABLE made (id int PRIMARY KEY DEFAULT 1, t int REFERENCES t, p int REFERENCES p)"

# What leaves the answers alone.
BESIDE = {
    "a new table with foreign keys": KEY,
    "a foreign key": "ALTER TABLE child ADD FOREIGN KEY (t) REFERENCES t",
    "a foreign key that is validated later": "ALTER TABLE child ADD CONSTRAINT k FOREIGN KEY (t) REFERENCES t NOT VALID; ALTER TABLE child VALIDATE CONSTRAINT k",
    "a foreign key of another name": "ALTER TABLE held RENAME CONSTRAINT key TO other",
    "a foreign key is dropped": "ALTER TABLE held DROP CONSTRAINT key",
    "a table with a foreign key is dropped": "DROP TABLE held",
    "a foreign key, and rights": f"{KEY}; GRANT SELECT ON t TO public; REVOKE SELECT ON t FROM public",
    "a foreign key of a savepoint that is rolled back": f"SAVEPOINT s; {KEY}; ALTER TABLE t ADD w int; ROLLBACK TO s; CREATE TABLE other (t int REFERENCES t)",
    "a trigger": "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    "a trigger is dropped": "DROP TRIGGER old ON t",
    "a trigger is disabled": "ALTER TABLE t DISABLE TRIGGER old",
    "a publication": "CREATE PUBLICATION published FOR TABLE t; DROP PUBLICATION published",
}

# What outdates some, beside a foreign key: those over `t`, …
CHANGES_T = {
    "a column": "ALTER TABLE t ADD w int",
    "a column is renamed": "ALTER TABLE t RENAME v TO w; ALTER TABLE t RENAME id TO v",
    "an index": "CREATE INDEX ON t (v)",
    "a constraint": "ALTER TABLE t ADD CHECK (v > 0)",
    "a default": "ALTER TABLE t ALTER v SET DEFAULT 5",
    "row security": "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    "a policy": "CREATE POLICY q ON t USING (v = 1)",
    "a rule": "CREATE RULE r AS ON INSERT TO t DO ALSO SELECT 1",
    "a child": "ALTER TABLE stranger INHERIT t",
    "a child less": "ALTER TABLE heir NO INHERIT t",
    "a column of another type": "DROP VIEW view; ALTER TABLE t ALTER v TYPE bigint; CREATE VIEW view AS SELECT 1 AS v",
    "truncation": "TRUNCATE t CASCADE",
    "the table is rewritten": "DROP VIEW view; ALTER TABLE t ALTER v TYPE int USING v + 1; CREATE VIEW view AS SELECT 1 AS v",
    "the table is replaced": "DROP TABLE made; ALTER TABLE t RENAME TO gone; CREATE TABLE t (v int)",
}
# … those over `p`, …
CHANGES_P = {
    "a partition": "CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (100) TO (200)",
    "a partition is attached": "ALTER TABLE p ATTACH PARTITION stranger FOR VALUES FROM (100) TO (200)",
    "a partition less": "DELETE FROM made; ALTER TABLE p DETACH PARTITION p1",
    "a partition is dropped": "DROP TABLE made, p1",
}
# … and over the view.
CHANGES_VIEW = {"a view is replaced": "CREATE OR REPLACE VIEW view AS SELECT min(v)::bigint AS v FROM t"}


@pytest.fixture
def writer(session, other):
    other.execute(SETUP)
    for query in ANSWERS:
        session.rows(query)
        assert is_hit(session, query), query
    return other


@pytest.mark.parametrize("way", BESIDE)
def test_answers_are_left_alone(session, writer, way):
    with writer.transaction():
        writer.execute(BESIDE[way])
    for query in ANSWERS:
        assert is_hit(session, query), query
    # What is changed after that is seen.
    writer.execute("DELETE FROM t WHERE id = 5; DELETE FROM p WHERE id = 15")
    for query in ANSWERS:
        assert session.rows(query) == session.uncached(query)
        assert session.rows(query) != [], query


@pytest.mark.parametrize("way, changed", [(way, query) for ways, query in ((CHANGES_T, OF_T), (CHANGES_P, OF_P), (CHANGES_VIEW, OF_VIEW)) for way in ways])
def test_answers_are_outdated(session, writer, way, changed):
    with writer.transaction():
        writer.execute(f"{KEY}; {({**CHANGES_T, **CHANGES_P, **CHANGES_VIEW})[way]}")
    assert not is_hit(session, changed)
    for query in ANSWERS:
        assert session.rows(query) == session.uncached(query), query
