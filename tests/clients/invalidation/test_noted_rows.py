"""Which answers over one tenant's rows outlive a change of other tenants' rows, whatever way the change takes. An answer over a tenant whose
rows have changed never does."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from support.asking import Asking, until_locked_out
from support.memory_ways import private
from support.shared_slots import outlives

TENANTS = range(1, 13)
# How a change is published: for the tenants it concerns; for so many that some of the others share slots with these; for the whole table.
PRECISE, MANY, COARSE = "precise", "many", "coarse"

SCHEMA = """
    CREATE TABLE t (id int PRIMARY KEY, tenant int, v int, note text);
    INSERT INTO t SELECT g, g % 12 + 1, g, 'note' FROM generate_series(1, 120) g;
    CREATE INDEX ON t (tenant);
    CREATE TABLE log (what text);
    CREATE TABLE parent (id int PRIMARY KEY);
    INSERT INTO parent SELECT generate_series(1, 12);
    CREATE TABLE source AS SELECT 5 AS id, 500 AS v UNION ALL SELECT 1005, 505;
    ANALYZE t;
"""


# Of row_writer.c.
FUNCTIONS = """
    CREATE FUNCTION insert_into_heap(regclass, int, int) RETURNS void LANGUAGE c AS '{library}';
    CREATE FUNCTION insert_into_table(regclass, int, int) RETURNS void LANGUAGE c AS '{library}';
    CREATE FUNCTION insert_many(regclass, int, int) RETURNS void LANGUAGE c AS '{library}';
    CREATE FUNCTION delete_from_table(regclass, int) RETURNS void LANGUAGE c AS '{library}';
    CREATE FUNCTION count_heap(regclass, text) RETURNS bigint LANGUAGE c AS '{library}';
"""


def trigger(body, when="BEFORE INSERT"):
    """A trigger that does something for row 1000."""
    result = "NEW" if when.startswith("BEFORE") else "NULL"
    return (f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN {body}; RETURN {result}; END $f$;"
            f" CREATE TRIGGER f {when} ON t FOR EACH ROW WHEN (NEW.id = 1000) EXECUTE FUNCTION f()")


def question(tenant):
    return f"SELECT count(*), sum(v), min(note) FROM t WHERE tenant = {tenant}"


class World:
    def __init__(self, connect):
        self.reader, self.writer = connect(), connect()
        self.writer.execute(SCHEMA)
        self.refill_all()
        # What was stored before the table was tracked rests on all of it.
        self.writer.execute("UPDATE t SET note = 'other'")
        self.refill_all()
        assert self.writer.rows("SELECT columns FROM arrow_cache.tracked WHERE relation = 't'::regclass") == [(["tenant"],)]

    def refill_all(self):
        """A definition has changed: answers are stored anew."""
        for tenant in TENANTS:
            self.reader.rows(question(tenant))
        self.refill()

    def refill(self):
        for tenant in TENANTS:
            self.reader.rows(question(tenant))
            self.reader.rows(question(tenant))
            assert self.reader.status() == "HIT", tenant

    def check(self, changed, how):
        """Looks at each tenant's answer after a change, and has all stored again."""
        hits = set()
        for tenant in TENANTS:
            rows, status = self.reader.rows(question(tenant)), self.reader.status()
            assert rows == self.reader.uncached(question(tenant)), tenant
            if status == "HIT":
                hits.add(tenant)
        expected = set() if how == COARSE else set(TENANTS) - set(changed)
        assert hits <= expected, hits
        outlives(len(hits) >= len(expected) / (2 if how == MANY else 1), hits)
        self.refill_all()


@pytest.fixture(scope="module")
def library():
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-rows-", dir="/tmp") as directory:
        path = Path(directory, "row_writer.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-Wall", "-Werror",
                        f"-I{private.pg_config('--includedir-server')}", Path(__file__).with_name("row_writer.c"), "-o", path], check=True)
        Path(directory).chmod(0o755)
        yield path


@pytest.fixture
def world(connect, library):
    world = World(connect)
    world.writer.execute(FUNCTIONS.format(library=library))
    world.refill_all()
    return world


# A table of other tenants, each in the place that the row of the same number has in t.
TWIN = "TRUNCATE t; INSERT INTO t SELECT g, g % 12 + 1, g, 'note' FROM generate_series(1, 120) g;" \
       "CREATE TABLE twin AS SELECT id, tenant + 1 AS tenant, v, note FROM t ORDER BY id"
NOTED = "UPDATE t SET v = v + 1 WHERE tenant = 5"
LOST = "INSERT INTO t VALUES (1001, 5, 1)"
COPIED = "COPY t FROM PROGRAM 'echo 1000,9,1,x' (FORMAT csv)"

# Name: (preparation, change in one transaction, tenants, how).
CHANGES = {
    "insert": ("", "INSERT INTO t VALUES (1000, 5, 1)", [5], PRECISE),
    "insert of a new tenant": ("", "INSERT INTO t VALUES (1000, 99, 1)", [], PRECISE),
    "insert of no tenant": ("", "INSERT INTO t VALUES (1000, NULL, 1)", [], PRECISE),
    "several rows": ("", "INSERT INTO t VALUES (1000, 5, 1), (1001, 6, 1)", [5, 6], PRECISE),
    "update of another column": ("", "UPDATE t SET v = 0 WHERE tenant = 5", [5], PRECISE),
    "update by key": ("", "UPDATE t SET v = 0 WHERE id = 16", [5], PRECISE),
    "update of the tenant": ("", "UPDATE t SET tenant = 6 WHERE tenant = 5", [5, 6], PRECISE),
    "delete": ("", "DELETE FROM t WHERE tenant = 5", [5], PRECISE),
    "delete by a key": ("", "DELETE FROM t WHERE id = 16", [5], PRECISE),
    "delete by a place": ("", "DELETE FROM t WHERE ctid = (SELECT ctid FROM t WHERE id = 16)", [5], PRECISE),
    "delete with a join of the table": ("", "DELETE FROM t USING t o WHERE t.id = o.id + 1 AND o.tenant = 5", [6], PRECISE),
    "delete, and the same row of a subquery": ("", "DELETE FROM t WHERE tenant = 5 AND v = (SELECT o.v FROM t o WHERE o.id = t.id)", [5], PRECISE),
    **{f"delete beside rows in the same places, {kind}":
           (f"{TWIN}; SET enable_hashjoin = {hashes}; SET enable_mergejoin = off; SET enable_nestloop = {loops}",
            f"DELETE FROM t USING twin WHERE t.id = twin.id AND {one}.tenant = 5", [5 if one == "t" else 4], PRECISE)
       for kind, hashes, loops, one in (("hashed", "on", "off", "t"), ("hashed the other way", "on", "off", "twin"),
                                        ("in a loop", "off", "on", "t"), ("in a loop the other way", "off", "on", "twin"))},
    "a trigger that deletes another row":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM t WHERE id = OLD.id + 1; RETURN OLD; END';"
         "CREATE TRIGGER f BEFORE DELETE ON t FOR EACH ROW WHEN (OLD.tenant = 5) EXECUTE FUNCTION f(); SET enable_seqscan = off; SET enable_bitmapscan = off",
         "DELETE FROM t WHERE id = 16", [5, 6], PRECISE),
    "delete from a scan that moves on": ("", "DELETE FROM t WHERE tenant IN (5, 7) OR id = 1", [2, 5, 7], PRECISE),
    "update that finds nothing": ("", "UPDATE t SET v = 0 WHERE tenant = 99; DELETE FROM log", TENANTS[:0], PRECISE),
    "returning": ("", "INSERT INTO t VALUES (1000, 5, 1) RETURNING (SELECT count(*) FROM t)", [5], PRECISE),
    "from a scan of the table": ("", "INSERT INTO t SELECT id + 1000, 5, 1 FROM t WHERE tenant = 6", [5], PRECISE),
    "update with a join of the table": ("", "UPDATE t SET v = o.v + 1 FROM t o WHERE t.id = o.id AND o.tenant = 5", [5], PRECISE),
    "WITH": ("", "WITH w AS (UPDATE t SET v = 0 WHERE tenant = 5 RETURNING id) SELECT count(*) FROM w", [5], PRECISE),
    "WITH, not read": ("", "WITH w AS (UPDATE t SET v = 0 WHERE tenant = 5 RETURNING id) SELECT 1", [5], PRECISE),
    "two of WITH": ("", "WITH a AS (DELETE FROM t WHERE tenant = 5), b AS (INSERT INTO t VALUES (1000, 6, 1)) INSERT INTO t VALUES (1001, 7, 1)",
                    [5, 6, 7], PRECISE),
    "merge": ("", "MERGE INTO t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
                  " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 8, s.v)", [6, 8], PRECISE),
    "merge that deletes": ("", "MERGE INTO t USING source s ON t.id = s.id WHEN MATCHED THEN DELETE", [6], PRECISE),
    "merge that does nothing": ("", "MERGE INTO t USING source s ON t.id = s.id WHEN MATCHED THEN DO NOTHING"
                                    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 8, s.v)", [8], PRECISE),
    "on conflict do nothing": ("", "INSERT INTO t VALUES (5, 9, 1), (1000, 9, 1) ON CONFLICT DO NOTHING", [9], PRECISE),
    "on conflict do update": ("", "INSERT INTO t VALUES (5, 9, 1), (1000, 9, 1) ON CONFLICT (id) DO UPDATE SET v = 0", [6, 9], PRECISE),
    "1,001 rows": ("", "INSERT INTO t SELECT 1000 + g, 5, 1 FROM generate_series(1, 1001) g", TENANTS, COARSE),
    "1,000 rows": ("", "INSERT INTO t SELECT 1000 + g, 5, 1 FROM generate_series(1, 1000) g", [5], PRECISE),
    "1,000 values": ("", "INSERT INTO t SELECT 1000 + g, 1000 + g, 1 FROM generate_series(1, 1000) g", [], MANY),
    "changes of 1,001 rows at two levels":
        ("", "INSERT INTO t SELECT 1000 + g, 1000 + g, 1 FROM generate_series(1, 600) g; SAVEPOINT s;"
             " DELETE FROM t WHERE id BETWEEN 1001 AND 1401; RELEASE s", TENANTS, COARSE),
    "copy": ("", "COPY t FROM PROGRAM 'echo 1000,5,1,x' (FORMAT csv)", [5], PRECISE),
    "insert beside copy": ("", "INSERT INTO t VALUES (1001, 5, 1); COPY t FROM PROGRAM 'echo 1000,6,1,x' (FORMAT csv)", [5, 6], PRECISE),
    "copy of some rows": ("", "COPY t FROM PROGRAM 'seq -f %.0f,5,1,x 1001 1900' (FORMAT csv)", [5], PRECISE),
    "copy of many rows": ("", "COPY t FROM PROGRAM 'seq -f %.0f,5,1,x 1001 2900' (FORMAT csv)", TENANTS, COARSE),
    "copy of rows that are left out": ("", "COPY t FROM PROGRAM 'seq -f %.0f,5,1,x 1001 1100' (FORMAT csv) WHERE id = 1050", [5], PRECISE),
    "copy row by row": (trigger("NEW.tenant := 7"), "COPY t FROM PROGRAM 'seq -f %.0f,5,1,x 1000 1003' (FORMAT csv)", [5, 7], PRECISE),
    "copy beside a scan": (trigger("PERFORM count(*) FROM t"), "COPY t FROM PROGRAM 'seq -f %.0f,5,1,x 1000 1003' (FORMAT csv)", TENANTS, COARSE),
    "copy beside a change": (trigger("UPDATE t SET v = 0 WHERE id = 17", "AFTER INSERT"), "COPY t FROM PROGRAM 'echo 1000,5,1,x' (FORMAT csv)", [5, 6], PRECISE),
    "copy that fails, and another": ("", "DO $$ BEGIN BEGIN COPY t FROM PROGRAM 'echo 1,9,1,x' (FORMAT csv); EXCEPTION WHEN unique_violation THEN NULL; END; "
                                     "COPY t FROM PROGRAM 'echo 1000,5,1,x' (FORMAT csv); INSERT INTO t VALUES (1001, 6, 1); END $$", [5, 6, 9], PRECISE),
    "truncate": ("", "TRUNCATE t", TENANTS, COARSE),
    "truncate, and insert": ("", "TRUNCATE t; INSERT INTO t VALUES (1000, 5, 1)", TENANTS, COARSE),
    "insert, and truncate in a savepoint that is rolled back":
        ("", "INSERT INTO t VALUES (1000, 5, 1); SAVEPOINT s; TRUNCATE t; ROLLBACK TO s", TENANTS, COARSE),
    # A statement finds other types than the next one. What it finds is not kept.
    **{f"the column is {other} for a while":
           ("", f"SAVEPOINT s; ALTER TABLE t ALTER tenant TYPE {other} USING {using}; UPDATE t SET v = 0 WHERE id = -1; ROLLBACK TO s;"
                " UPDATE t SET tenant = 5 WHERE id = 6", [5, 7], PRECISE)
       for other, using in (("text", "tenant::text"), ("uuid", "gen_random_uuid()"), ("smallint", "tenant::smallint"), ("bool", "tenant::bool"))},
    # The server forgets what it has counted since a TRUNCATE that is rolled back. What it counts then may be as much as was noted.
    "counts lost, and copy":
        ("", f"{NOTED}; SAVEPOINT s; TRUNCATE t; {LOST}; ROLLBACK TO s; {COPIED}", TENANTS, COARSE),
    "counts lost below a savepoint, and copy":
        ("", f"{NOTED}; SAVEPOINT s; SAVEPOINT i; TRUNCATE t; {LOST}; RELEASE i; ROLLBACK TO s; {COPIED}", TENANTS, COARSE),
    "counts lost above a savepoint, and copy":
        ("", f"{NOTED}; SAVEPOINT s; TRUNCATE t; SAVEPOINT i; {LOST}; RELEASE i; ROLLBACK TO s; {COPIED}", TENANTS, COARSE),
    "counts lost by an exception, and copy":
        ("", f"{NOTED}; DO $$ BEGIN BEGIN TRUNCATE t; {LOST}; RAISE 'x'; EXCEPTION WHEN OTHERS THEN NULL; END; END $$; {COPIED}", TENANTS, COARSE),
    "counts lost by a table that is truncated and dropped, and copy":
        ("", f"SAVEPOINT s; {LOST}; TRUNCATE t; DROP TABLE t; ROLLBACK TO s; {COPIED}", TENANTS, COARSE),
    "counts lost of a table that is rewritten and truncated, and copy":
        ("ALTER TABLE t DROP CONSTRAINT t_pkey; DROP INDEX t_tenant_idx",
         f"SAVEPOINT s; ALTER TABLE t ALTER note TYPE varchar(20); {NOTED}; TRUNCATE t; {LOST}; ROLLBACK TO s; {COPIED}", TENANTS, COARSE),
    "an index after an insert": ("", "INSERT INTO t VALUES (1000, 5, 1); CREATE INDEX ON t (v)", TENANTS, COARSE),
    "analyze after an insert": ("", "INSERT INTO t VALUES (1000, 5, 1); ANALYZE t; INSERT INTO t VALUES (1001, 6, 1)", TENANTS, COARSE),
    "lock between inserts": ("", "INSERT INTO t VALUES (1000, 5, 1); LOCK t; INSERT INTO t VALUES (1001, 6, 1)", [5, 6], PRECISE),

    # Savepoints.
    "released": ("", "SAVEPOINT s; INSERT INTO t VALUES (1000, 5, 1); RELEASE s; INSERT INTO t VALUES (1001, 6, 1)", [5, 6], PRECISE),
    "rolled back": ("", "INSERT INTO t VALUES (1000, 5, 1); SAVEPOINT s; INSERT INTO t VALUES (1001, 6, 1); ROLLBACK TO s", [5, 6], PRECISE),
    "rolled back first": ("", "SAVEPOINT s; INSERT INTO t VALUES (1001, 6, 1); ROLLBACK TO s; INSERT INTO t VALUES (1000, 5, 1)", [5, 6], PRECISE),
    "all rolled back": ("", "SAVEPOINT s; INSERT INTO t VALUES (1001, 6, 1); ROLLBACK TO s", [], PRECISE),
    "released in one that is rolled back":
        ("", "INSERT INTO t VALUES (1000, 5, 1); SAVEPOINT a; SAVEPOINT b; DELETE FROM t WHERE tenant = 6; RELEASE b; UPDATE t SET v = 1 WHERE tenant = 7;"
             " ROLLBACK TO a; UPDATE t SET v = 1 WHERE tenant = 8", [5, 6, 7, 8], PRECISE),
    "a copy that is rolled back":
        ("", "INSERT INTO t VALUES (1001, 5, 1); SAVEPOINT s; COPY t FROM PROGRAM 'echo 1000,5,1,x' (FORMAT csv); ROLLBACK TO s", [5], PRECISE),
    "a copy that is rolled back before all else":
        ("", "SAVEPOINT s; COPY t FROM PROGRAM 'echo 1000,5,1,x' (FORMAT csv); ROLLBACK TO s; INSERT INTO t VALUES (1001, 5, 1)", [5], PRECISE),
    "an error that is caught":
        ("", "DO $$ BEGIN BEGIN INSERT INTO t VALUES (1000, 6, 1), (5, 7, 1); EXCEPTION WHEN unique_violation THEN NULL; END;"
             " INSERT INTO t VALUES (1000, 5, 1); END $$", [5, 6, 7], PRECISE),
    "counting is off at last": ("", "INSERT INTO t VALUES (1001, 5, 1); SET LOCAL track_counts = off; INSERT INTO t VALUES (1000, 6, 1)", TENANTS, COARSE),

    # Triggers.
    "a trigger that changes the row":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.tenant = 7; RETURN NEW; END';"
         "CREATE TRIGGER f BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 5, 1); UPDATE t SET v = 1 WHERE tenant = 6", [6, 7], PRECISE),
    "a trigger that leaves rows out":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.tenant = 6 THEN RETURN NULL; END IF; RETURN NEW; END';"
         "CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1), (1001, 5, 1), (1002, 6, 1)", [5], PRECISE),
    "a trigger before that changes other rows of the table, found by an index":
        ("SET enable_seqscan = off; SET enable_bitmapscan = off;"
         "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE t SET v = v + 1 WHERE id = 16; RETURN NEW; END';"
         "CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1)", [5, 6, 7], PRECISE),
    "a trigger before that changes other rows of the table, found by a scan":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE t SET v = v + 1 WHERE id = 16; RETURN NEW; END';"
         "CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1)", TENANTS, COARSE),
    "a trigger after that changes other rows of the table":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE t SET v = v + 1 WHERE id = 16; RETURN NULL; END';"
         "CREATE TRIGGER f AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1)", [5, 6, 7], PRECISE),
    "a deferred trigger":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE t SET v = v + 1 WHERE id = 16; RETURN NULL; END';"
         "CREATE CONSTRAINT TRIGGER f AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1)", [5, 6], PRECISE),
    "a trigger that copies":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 1000 THEN COPY t FROM PROGRAM 'echo 2000,5,1,x' (FORMAT csv);"
         " END IF; RETURN NEW; END $$; CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1)", TENANTS, COARSE),
    "a trigger that reads the whole table":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM count(*) FROM t; RETURN NEW; END';"
         "CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_indexscan = off; INSERT INTO t VALUES (1000, 6, 1)", TENANTS, COARSE),
    "a trigger that analyzes":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ANALYZE t; RETURN NEW; END';"
         "CREATE TRIGGER f BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1); UPDATE t SET v = 1 WHERE id = 16", TENANTS, COARSE),
    "a trigger that changes settings of the table":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN COMMENT ON TABLE t IS ''x''; LOCK t; RETURN NEW; END';"
         "CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1)", [6, 7], PRECISE),
    "a trigger that fails, and the error is caught":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.id = 1001 THEN RAISE division_by_zero; END IF; RETURN NEW; END';"
         "CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f(); CREATE EXTENSION IF NOT EXISTS pgrowlocks",
         "INSERT INTO t VALUES (1002, 8, 1); SAVEPOINT s; DO $$ BEGIN INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1);"
         " EXCEPTION WHEN division_by_zero THEN PERFORM count(*) FROM pgrowlocks('t'); END $$; INSERT INTO t VALUES (1003, 9, 1)", [6, 8, 9], PRECISE),
    "functions that read the heap on their own, after the change":
        ("CREATE EXTENSION IF NOT EXISTS pgrowlocks; CREATE EXTENSION IF NOT EXISTS pgstattuple",
         "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1) RETURNING (pgstattuple('t')).tuple_count, (SELECT count(*) FROM pgrowlocks('t'))",
         [6, 7], PRECISE),
    "functions that read the heap on their own, before the change":
        ("CREATE EXTENSION IF NOT EXISTS pgrowlocks; CREATE EXTENSION IF NOT EXISTS pgstattuple;"
         "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pgstattuple('t'); PERFORM count(*) FROM pgrowlocks('t');"
         " RETURN NEW; END $$; CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1)", TENANTS, COARSE),
    "a check that reads the heap on its own":
        ("CREATE EXTENSION IF NOT EXISTS pgstattuple;"
         "CREATE FUNCTION g(int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM pgstattuple('t'); RETURN true; END $$;"
         "ALTER TABLE t ADD CHECK (g(v)) NOT VALID",
         "INSERT INTO t VALUES (1000, 6, 1)", TENANTS, COARSE),
    "two tables that are written to at once":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.tenant); RETURN NEW; END $$;"
         "CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1)", [6, 7], PRECISE),
    "a cascade":
        ("ALTER TABLE t ADD FOREIGN KEY (tenant) REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE",
         "DELETE FROM parent WHERE id = 5; UPDATE parent SET id = 5 WHERE id = 6", [5, 6], PRECISE),
    "a generated column":
        ("ALTER TABLE t ADD w int GENERATED ALWAYS AS (v * 2) STORED", "INSERT INTO t VALUES (1000, 6, 1); UPDATE t SET v = 5 WHERE id = 16",
         [5, 6], PRECISE),
    "a child table": ("CREATE TABLE child () INHERITS (t)", "UPDATE t SET v = 1 WHERE tenant = 5", [5], PRECISE),
    "the table alone, which has a child": ("CREATE TABLE child () INHERITS (t)", "UPDATE ONLY t SET v = 1 WHERE tenant = 5", [5], PRECISE),
    "a function in SQL": ("CREATE FUNCTION h() RETURNS void LANGUAGE sql AS 'UPDATE t SET v = 0 WHERE tenant = 5; DELETE FROM t WHERE tenant = 6'",
                          "SELECT h()", [5, 6], PRECISE),
    "a cursor over what is written": ("", "DECLARE c CURSOR FOR SELECT id FROM t WHERE tenant = 5; FETCH 2 FROM c; UPDATE t SET v = 0 WHERE CURRENT OF c;"
                                          " FETCH 1 FROM c; DELETE FROM t WHERE CURRENT OF c", [5], PRECISE),
    "a prepared statement": ("", "PREPARE p AS UPDATE t SET v = 0 WHERE tenant = $1; EXECUTE p(5); EXECUTE p(6); DEALLOCATE p", [5, 6], PRECISE),
    "an explained statement": ("", "EXPLAIN ANALYZE UPDATE t SET v = 0 WHERE tenant = 5", [5], PRECISE),
    "an explained statement that does not run": ("", "EXPLAIN UPDATE t SET v = 0 WHERE tenant = 5", [], PRECISE),
    "a view": ("CREATE VIEW w AS SELECT * FROM t WHERE tenant < 8 WITH CHECK OPTION", "UPDATE w SET v = 0 WHERE tenant = 5", [5], PRECISE),
    "a rule": ("CREATE RULE r AS ON INSERT TO log DO ALSO UPDATE t SET v = 0 WHERE tenant = 5", "INSERT INTO log VALUES ('x')", [5], PRECISE),
}

# By functions of a library, of which the executor knows nothing.
NEXT = "INSERT INTO t SELECT max(id) + 1000, 5, 1 FROM t"
CAUGHT = "DO 'BEGIN INSERT INTO t VALUES (1500, 7, 1), (5, 7, 1); EXCEPTION WHEN unique_violation THEN NULL; END'"
CHANGES |= {
    "straight into the heap": ("", "SELECT insert_into_heap('t', 1000, 5)", TENANTS, COARSE),
    "also straight into the heap": ("", "INSERT INTO t VALUES (1001, 6, 1); SELECT insert_into_heap('t', 1000, 5)", TENANTS, COARSE),
    "straight into the heap, before": ("", "SELECT insert_into_heap('t', 1000, 5); INSERT INTO t VALUES (1001, 6, 1)", TENANTS, COARSE),
    "straight into the heap, and rolled back":
        ("", "SAVEPOINT s; SELECT insert_into_heap('t', 1000, 5); ROLLBACK TO s; INSERT INTO t VALUES (1001, 6, 1)", [6], PRECISE),
    "as many inserts as deletes": ("", "INSERT INTO t VALUES (1001, 6, 1); SELECT delete_from_table('t', 5)", TENANTS, COARSE),
    "by the access method": ("", "INSERT INTO t VALUES (1001, 6, 1); SELECT insert_into_table('t', 1000, 5)", TENANTS, COARSE),
    "a trigger straight into the heap": (trigger("PERFORM insert_into_heap('t', 2000, 5)"), "INSERT INTO t VALUES (1000, 6, 1)", TENANTS, COARSE),
    "a trigger by the access method": (trigger("PERFORM insert_into_table('t', 2000, 5)"), "INSERT INTO t VALUES (1000, 6, 1)", TENANTS, COARSE),
    "a trigger with several rows at once": (trigger("PERFORM insert_many('t', 2000, 5)"), "INSERT INTO t VALUES (1000, 6, 1)", TENANTS, COARSE),
    "a trigger that scans and deletes": (trigger("PERFORM delete_from_table('t', 5)"), "INSERT INTO t VALUES (1000, 6, 1)", TENANTS, COARSE),
    "a trigger that scans": (trigger("PERFORM count_heap('t', '')"), "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1)", TENANTS, COARSE),
    "a trigger after that scans": (trigger("PERFORM count_heap('t', '')", "AFTER INSERT"), "INSERT INTO t VALUES (1000, 6, 1)", [6], PRECISE),
    "a scan for each row": ("", "INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1) RETURNING count_heap('t', '')", [6, 7], PRECISE),
    "a scan before each row": ("", "INSERT INTO t SELECT 1000 + g, 6, count_heap('t', '') FROM generate_series(1, 3) g", [6], PRECISE),
    "inserts in the midst of a scan": ("", f"SELECT count_heap('t', '{NEXT}')", [5], PRECISE),
    "inserts in the midst of a scan of a trigger":
        (trigger(f"PERFORM count_heap('t', '{NEXT}')"), "INSERT INTO t VALUES (1000, 6, 1)", TENANTS, COARSE),
    "inserts in the midst of a scan of a trigger after":
        (trigger(f"PERFORM count_heap('t', '{NEXT}')", "AFTER INSERT"), "INSERT INTO t VALUES (1000, 6, 1)", [5, 6], PRECISE),
    "errors in the midst of a scan": ("", f"SELECT count_heap('t', $${CAUGHT}$$); INSERT INTO t VALUES (1000, 6, 1)", [6, 7], PRECISE),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change(world, name):
    preparation, change, tenants, how = CHANGES[name]
    if preparation:
        world.writer.execute(preparation)
        world.refill_all()
    with world.writer.transaction():
        world.writer.execute(change)
    world.check(list(tenants), how)
    # The session that has written goes on precisely.
    if preparation == "":
        found = world.writer.rows("UPDATE t SET v = v + 1 WHERE id = (SELECT min(id) FROM t WHERE tenant = 3) RETURNING id")
        world.check([3] if found else [], PRECISE)


def test_an_error_leaves_nothing_behind(world):
    world.writer.execute("CREATE EXTENSION IF NOT EXISTS pgrowlocks")
    world.writer.execute("""
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.id = 1001 THEN RAISE division_by_zero; END IF; RETURN NEW; END';
        CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()""")
    world.refill_all()
    for _ in range(3):
        with pytest.raises(Exception, match="division_by_zero"):
            world.writer.execute("INSERT INTO t VALUES (1000, 6, 1), (1001, 7, 1)")
        world.writer.execute("SELECT count(*) FROM pgrowlocks('t')")
        world.check([], PRECISE)
    world.writer.execute("CREATE INDEX ON t (v)")


# Name: (what the first changes, what the second wants to change at that time, tenants of the first, tenants of the second).
RACES = {
    "both update": ("UPDATE t SET v = 1 WHERE id = 16", "UPDATE t SET v = v + 1 WHERE id = 16 RETURNING id", [5], [5]),
    "the first moves the row": ("UPDATE t SET tenant = 6 WHERE id = 16", "UPDATE t SET v = v + 1 WHERE id = 16 RETURNING id", [5, 6], [6]),
    "both move the row": ("UPDATE t SET tenant = 6 WHERE id = 16", "UPDATE t SET tenant = 7 WHERE id = 16 RETURNING id", [5, 6], [6, 7]),
    "the row fits no more": ("UPDATE t SET tenant = 6 WHERE id = 16", "UPDATE t SET v = v + 1 WHERE id = 16 AND tenant = 5 OR id = 2 RETURNING id",
                             [5, 6], [3]),
    "the row is gone": ("DELETE FROM t WHERE id = 16", "UPDATE t SET v = v + 1 WHERE id IN (2, 16) RETURNING id", [5], [3]),
    "the second deletes": ("UPDATE t SET tenant = 6 WHERE id = 16", "DELETE FROM t WHERE id = 16 RETURNING id", [5, 6], [6]),
    "the second inserts the same": ("INSERT INTO t VALUES (1000, 7, 1)",
                                    "INSERT INTO t VALUES (1000, 8, 1) ON CONFLICT (id) DO UPDATE SET v = 2 RETURNING id", [7], [7]),
    "the second merges": ("UPDATE t SET tenant = 6 WHERE id = 16",
                          "WITH w AS (SELECT 1) MERGE INTO t USING (VALUES (16), (2)) s(i) ON t.id = s.i WHEN MATCHED THEN UPDATE SET v = 0", [5, 6], [3, 6]),
    "the second merges what is gone": ("DELETE FROM t WHERE id = 16",
                                       "MERGE INTO t USING (VALUES (16)) s(i) ON t.id = s.i WHEN MATCHED THEN UPDATE SET v = 0"
                                       " WHEN NOT MATCHED THEN INSERT VALUES (s.i, 9, 0)", [5], [9]),
}


@pytest.mark.parametrize("trigger_too", [False, True])
@pytest.mark.parametrize("name", RACES)
def test_a_row_that_another_changes_at_the_same_time(world, connect, name, trigger_too):
    first_change, second_change, of_first, of_second = RACES[name]
    first, second = connect(), connect()
    if trigger_too:
        world.writer.execute("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN coalesce(NEW, OLD); END';"
                             "CREATE TRIGGER f BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION f()")
        world.refill_all()
    first.execute("BEGIN")
    first.execute(first_change)
    second.execute("BEGIN")
    asking = Asking(second, second_change) if "RETURNING" in second_change else Asking(second, second_change + "; SELECT 1")
    until_locked_out(world.writer)
    world.check([], PRECISE)
    first.execute("COMMIT")
    asking.thread.join()
    world.check(of_first, PRECISE)
    second.execute("COMMIT")
    world.check(of_second, PRECISE)


def test_a_row_that_is_taken_back_since_another_came_first(world, connect):
    """The second has inserted its row when it finds the first one's in the index."""
    world.writer.execute("""
        CREATE FUNCTION waits(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
        BEGIN
            IF current_setting('rows.calls', true) <> '' THEN
                PERFORM set_config('rows.calls', (current_setting('rows.calls')::int + 1)::text, false);
                IF current_setting('rows.calls') = '2' THEN
                    PERFORM pg_advisory_lock(77);
                    PERFORM pg_advisory_unlock(77);
                END IF;
            END IF;
            RETURN $1;
        END $$;
        CREATE UNIQUE INDEX ON t (waits(note)) WHERE note = 'key'""")
    world.refill_all()
    second, other = connect(), connect()
    other.execute("SELECT pg_advisory_lock(77)")
    second.execute("SET rows.calls = 0")
    second.execute("BEGIN")
    asking = Asking(second, "INSERT INTO t VALUES (1000, 7, 1, 'key') ON CONFLICT (waits(note)) WHERE note = 'key' DO UPDATE SET v = 5 RETURNING tenant")
    until_locked_out(world.writer)
    world.writer.execute("INSERT INTO t VALUES (1001, 8, 1, 'key')")
    world.check([8], PRECISE)
    other.execute("SELECT pg_advisory_unlock(77)")
    assert asking.result() == [(8,)]
    second.execute("COMMIT")
    # What was inserted for a while counts as well.
    world.check([7, 8], PRECISE)


def test_a_prepared_transaction(world):
    if world.writer.execute("SHOW max_prepared_transactions").fetchone()[0] == "0":
        pytest.skip("the server prepares no transactions")
    world.writer.execute("BEGIN")
    world.writer.execute("UPDATE t SET v = 0 WHERE tenant = 5")
    world.writer.execute("PREPARE TRANSACTION 'rows'")
    world.writer.execute("COMMIT PREPARED 'rows'")
    world.check([5], PRECISE)


def test_values_that_are_stored_in_another_form(connect):
    """A value that is compressed, or kept beside the table, is not read for its hash."""
    reader, writer = connect(), connect()
    writer.execute("CREATE TABLE named (id int, tenant text, v int); INSERT INTO named SELECT g, 'tenant ' || g, 1 FROM generate_series(1, 12) g;"
                   "INSERT INTO named VALUES (13, repeat('x', 9000), 1), (14, (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 300) g), 1)")

    def statuses():
        found = []
        for tenant in TENANTS:
            query = f"SELECT sum(v) FROM named WHERE tenant = 'tenant {tenant}'"
            assert reader.rows(query) == reader.uncached(query)
            reader.rows(query)
            found.append(reader.status())
        return found

    def check(change, outdated):
        """Looks at each tenant's answer after a change."""
        statuses()
        writer.execute(change)
        for tenant in TENANTS:
            reader.rows(f"SELECT sum(v) FROM named WHERE tenant = 'tenant {tenant}'")
            if tenant in outdated:
                assert reader.status() == "STALE", tenant
            else:
                outlives(reader.status() == "HIT", tenant)

    for value in (2, 3):
        statuses()
        writer.execute(f"UPDATE named SET v = {value}")
    check("UPDATE named SET v = v + 1 WHERE id = 5", [5])
    check("INSERT INTO named VALUES (15, repeat('y', 900), 1)", [])
    check("INSERT INTO named VALUES (16, repeat('y', 9000), 1)", TENANTS)
    check("UPDATE named SET v = v + 1 WHERE id = 13", TENANTS)
    check("DELETE FROM named WHERE id = 14", TENANTS)
    check("UPDATE named SET tenant = 'tenant 5' WHERE id = 16", TENANTS)
    check("UPDATE named SET tenant = 'tenant 6' WHERE id = 5", [5, 6])


@pytest.mark.parametrize("change", ["DROP v; ALTER TABLE t ADD v int", "v TYPE numeric"])
def test_a_column_that_was_tracked(world, connect, change):
    """It is dropped, or has no hash any more. The others are tracked as before."""
    for value in range(10):
        world.reader.rows(f"SELECT count(*) FROM t WHERE v = {value}")
    (columns,), = world.writer.execute("SELECT columns FROM arrow_cache.tracked WHERE relation = 't'::regclass").fetchall()
    assert sorted(columns) == ["tenant", "v"]
    world.writer.execute(f"ALTER TABLE t {change if change.startswith('DROP') else 'ALTER ' + change}")
    # Statements that the other session has prepared would have results of another type.
    world.reader = connect()
    world.refill_all()
    world.writer.execute("UPDATE t SET note = 'x' WHERE tenant = 5")
    world.check([5], PRECISE)
