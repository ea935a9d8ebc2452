"""The text of a statement stays while its meaning changes: each way of sending it gets the answer that it would get
without the cache.

Two sessions take the same steps, one of them with the cache switched off from the start. Statements that were
prepared before a change are used after it in both. Rows and errors must be the same in both sessions every time."""

import psycopg
import pytest

from support.sweeps import thinned

QUERY = "SELECT * FROM t WHERE id > %s ORDER BY id"

SETUP = """
    CREATE TABLE t (id int, v text);
    INSERT INTO t VALUES (1, 'one'), (2, 'two');
    CREATE TABLE spare (id int, v text);
    INSERT INTO spare VALUES (3, 'spare');
    CREATE TABLE other (id int, v text);
    INSERT INTO other VALUES (1, 'other');
"""

# Each change is a list of steps; "own" ones are taken by the readers themselves, and not once for both.
CHANGES = {
    "a column more": ["ALTER TABLE t ADD COLUMN n int DEFAULT 7"],
    "a column less": ["ALTER TABLE t DROP COLUMN v"],
    "a column renamed": ["ALTER TABLE t RENAME COLUMN v TO w"],
    "a column of another type": ["ALTER TABLE t ALTER COLUMN v TYPE varchar(3)"],
    "the parameter's column of another type": ["ALTER TABLE t ALTER COLUMN id TYPE bigint"],
    "rewritten": ["ALTER TABLE t ALTER COLUMN v TYPE text USING v || '!'"],
    "renamed away": ["ALTER TABLE t RENAME TO away"],
    "swapped": ["BEGIN; ALTER TABLE t RENAME TO away; ALTER TABLE spare RENAME TO t; COMMIT"],
    "dropped": ["DROP TABLE t"],
    "made again": ["DROP TABLE t", "CREATE TABLE t AS SELECT 4 AS id, 'again' AS v"],
    "a view instead": ["ALTER TABLE t RENAME TO away", "CREATE VIEW t AS SELECT id, v || ' seen' AS v FROM away"],
    "moved to another schema": ["ALTER TABLE t SET SCHEMA {front}"],
    "a table in front": ["CREATE TABLE {front}.t AS SELECT 5 AS id, 'front' AS v"],
    "a table in front, later gone": ["CREATE TABLE {front}.t AS SELECT 5 AS id, 'front' AS v", "DROP TABLE {front}.t"],
    "a table in front, of another shape": ["CREATE TABLE {front}.t AS SELECT 'front' AS v, 5 AS id"],
    "a temporary table in front": ["own CREATE TEMPORARY TABLE t AS SELECT 6 AS id, 'temporary' AS v", "own DROP TABLE pg_temp.t"],
    "another path": ["own SET search_path = {front}", "own RESET search_path"],
    "another path that has it": ["CREATE TABLE {front}.t AS SELECT 5 AS id, 'front' AS v", "own SET search_path = {front}"],
    "a path renamed": ["CREATE TABLE {front}.t AS SELECT 5 AS id, 'front' AS v", "ALTER SCHEMA {front} RENAME TO {front}_aside",
                       "ALTER SCHEMA {front}_aside RENAME TO {front}"],
    "inherited from": ["ALTER TABLE spare INHERIT t", "INSERT INTO spare VALUES (9, 'nine')", "ALTER TABLE spare NO INHERIT t"],
    "fenced": ["ALTER TABLE t ENABLE ROW LEVEL SECURITY", "ALTER TABLE t FORCE ROW LEVEL SECURITY"],
}


class Reader:
    """Sends the statement in one way."""

    def __init__(self, connect, way, generic, enabled):
        plans = "force_generic_plan" if generic else "auto"
        self.session = connect(f"-c pg_arrow_cache.enabled={enabled}")
        self.session.execute(f"SET search_path = {connect.schema}_front, {connect.schema}; SET plan_cache_mode = {plans}")
        self.session.prepare_threshold = 1000   # none but those that are told to be
        self.way = way

    def told(self):
        """Columns and rows, or the error instead."""
        try:
            if self.way == "simple":
                cursor = self.session.execute(QUERY.replace("%s", "0"))
            else:
                cursor = self.session.execute(QUERY, (0,), prepare=self.way == "prepared", binary=self.way == "binary")
            return [column.name for column in cursor.description], cursor.fetchall()
        except psycopg.Error as error:
            return error.sqlstate, str(error)


@thinned("change, way, generic", CHANGES, ["simple", "extended", "binary", "prepared"], [False, True], one_in=2)
def test_told_as_without_the_cache(connect, session, change, way, generic):
    front = f"{connect.schema}_front"
    session.execute(f"CREATE SCHEMA {front}")
    try:
        session.execute(SETUP)
        readers = [Reader(connect, way, generic, enabled) for enabled in ("on", "off")]
        for _ in range(2):
            assert readers[0].told() == readers[1].told() == (["id", "v"], [(1, "one"), (2, "two")])
        assert readers[0].session.status() == "HIT"
        kept = readers[0].session.rows("SELECT count(*) FROM pg_prepared_statements")
        assert kept == [(1 if way == "prepared" else 0,)]
        for step in CHANGES[change]:
            own, statement = step.startswith("own "), step.removeprefix("own ").format(front=front)
            for one in readers if own else [session]:
                one.session.execute(statement) if own else one.execute(statement)
            for _ in range(2):
                assert readers[0].told() == readers[1].told(), step
    finally:
        session.execute(f"SET client_min_messages = warning; DROP SCHEMA {front} CASCADE")
