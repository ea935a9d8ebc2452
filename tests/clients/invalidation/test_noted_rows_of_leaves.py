"""Which answers over one tenant's rows of a partitioned table outlive a change of other tenants' rows in the same leaf, and which outlive a change of
which nothing is known but its leaf. An answer over a tenant whose rows have changed never does."""

import pytest

from support.shared_slots import outlives
from support.asking import Asking, until_locked_out

# That of p2 has its columns in another order, and lacks one. Region 3 has two leaves, and region 4 the default one.
SCHEMA = """
    CREATE TABLE p (id int, region int, tenant int, v int, note text) PARTITION BY LIST (region);
    CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
    CREATE TABLE p2 (gone text, note text, v int, tenant int, region int, id int);
    ALTER TABLE p2 DROP gone;
    ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2);
    CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3) PARTITION BY RANGE (id);
    CREATE TABLE p3a PARTITION OF p3 FOR VALUES FROM (MINVALUE) TO (200);
    CREATE TABLE p3b PARTITION OF p3 FOR VALUES FROM (200) TO (MAXVALUE);
    CREATE TABLE p4 PARTITION OF p DEFAULT;
    INSERT INTO p SELECT g, g % 4 + 1, g / 4 % 6 + 1, g, 'note' FROM generate_series(0, 239) g;
    CREATE UNIQUE INDEX ON p (id, region);
    CREATE INDEX ON p (tenant);
    CREATE TABLE parent (id int PRIMARY KEY);
    INSERT INTO parent SELECT generate_series(1, 6);
    CREATE TABLE source AS SELECT 4 AS id, 1 AS region, 500 AS v UNION ALL SELECT 1004, 1, 505;
    ANALYZE p;
"""
LEAVES = ["p1", "p2", "p3a", "p3b", "p4"]
REGIONS = range(1, 5)
TENANTS = range(1, 7)
QUESTIONS = {(region, tenant): f"SELECT count(*), sum(v), min(note) FROM p WHERE region = {region} AND tenant = {tenant}"
             for region in REGIONS for tenant in TENANTS}
QUESTIONS |= {(0, tenant): f"SELECT count(*), sum(v), min(note) FROM p WHERE tenant = {tenant}" for tenant in TENANTS}
QUESTIONS |= {(-1, tenant): f"SELECT count(*), sum(v), min(note) FROM p1 WHERE tenant = {tenant}" for tenant in TENANTS}


def regions_of(asked):
    """The regions that a question reads."""
    return {-1: {1}, 0: set(REGIONS)}.get(asked, {asked})


class World:
    def __init__(self, connect):
        self.reader, self.writer = connect("-c pg_arrow_cache.enable_fragments=off"), connect()
        for _ in range(5):
            self.writer.execute(SCHEMA)
            self.refill_all()
            # What was stored before the leaves were tracked rests on all of them.
            self.writer.execute("UPDATE p SET note = 'other'")
            self.refill_all()
            if self.tracked() == [(leaf, ["tenant"]) for leaf in LEAVES]:
                return
            # Another table may have the place of a leaf in the registry.
            self.writer.execute("DROP TABLE p, parent, source")
        pytest.fail(f"the leaves are not tracked, but {self.tracked()}")

    def tracked(self):
        return self.writer.rows("SELECT relation::regclass::text, columns FROM arrow_cache.tracked ORDER BY 1")

    def refill_all(self):
        for _ in range(2):
            for question in QUESTIONS.values():
                self.reader.rows(question)
        for asked, question in QUESTIONS.items():
            self.reader.rows(question)
            assert self.reader.status() == "HIT", asked

    def check(self, changed, whole):
        """`changed` has regions and tenants whose rows have changed, and `whole` regions with a leaf that has changed as a whole."""
        for (asked, tenant), question in QUESTIONS.items():
            rows, status = self.reader.rows(question), self.reader.status()
            assert rows == self.reader.uncached(question), (asked, tenant)
            regions = regions_of(asked)
            is_changed = regions & set(whole) or any((region, tenant) in changed for region in regions)
            assert not (is_changed and status == "HIT"), (asked, tenant)
            outlives(is_changed or status == "HIT", asked, tenant, status)
        self.refill_all()


@pytest.fixture
def world(connect):
    return World(connect)


def trigger(body, when="BEFORE INSERT", table="p1"):
    result = "NEW" if when.startswith("BEFORE") else "NULL"
    return (f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN {body}; RETURN {result}; END $f$;"
            f" CREATE TRIGGER f {when} ON {table} FOR EACH ROW EXECUTE FUNCTION f()")


# Rows of region 1 have ids 0, 4, 8, …, of which 16 has tenant 5, and 20 tenant 6; 17 and 21 are those of region 2.
# Name: (preparation, change in one transaction, changed rows by region and tenant, regions with a leaf that has changed as a whole).
CHANGES = {
    # Routed rows.
    "insert": ("", "INSERT INTO p VALUES (1000, 1, 5, 1)", [(1, 5)], []),
    "insert into a leaf of another form": ("", "INSERT INTO p VALUES (1000, 2, 5, 1)", [(2, 5)], []),
    "insert into a leaf of a leaf": ("", "INSERT INTO p VALUES (1, 3, 5, 1), (1001, 3, 6, 1)", [(3, 5), (3, 6)], []),
    "insert into the default leaf": ("", "INSERT INTO p VALUES (1000, 77, 5, 1)", [(4, 5)], []),
    "several rows": ("", "INSERT INTO p VALUES (1000, 1, 5, 1), (1001, 2, 6, 1), (1002, 1, 3, 1)", [(1, 5), (2, 6), (1, 3)], []),
    "from a scan": ("", "INSERT INTO p SELECT id + 1000, region, 5, 1 FROM p WHERE tenant = 6 AND region IN (1, 2)", [(1, 5), (2, 5)], []),
    "with columns in another order": ("", "INSERT INTO p (v, tenant, region, id) SELECT 1, 5, 2, 1000", [(2, 5)], []),
    "returning": ("", "INSERT INTO p VALUES (1000, 1, 5, 1) RETURNING tableoid, (SELECT count(*) FROM p)", [(1, 5)], []),
    "WITH": ("", "WITH w AS (INSERT INTO p VALUES (1000, 2, 5, 1) RETURNING id) SELECT count(*) FROM w", [(2, 5)], []),
    "into a table of leaves": ("", "INSERT INTO p3 VALUES (1000, 3, 5, 1)", [(3, 5)], []),
    "on conflict do nothing": ("", "INSERT INTO p VALUES (16, 1, 3, 1), (1000, 1, 6, 1) ON CONFLICT DO NOTHING", [(1, 6)], []),
    "on conflict do update": ("", "INSERT INTO p VALUES (17, 2, 3, 1), (1000, 2, 6, 1) ON CONFLICT (id, region) DO UPDATE SET v = 0",
                              [(2, 5), (2, 6)], []),
    "1,001 rows": ("", "INSERT INTO p SELECT 1000 + g, 1, 5, 1 FROM generate_series(1, 1001) g", [(1, 5)], [1]),
    "1,000 rows": ("", "INSERT INTO p SELECT 1000 + g, 2, 5, 1 FROM generate_series(1, 1000) g", [(2, 5)], []),
    "copy": ("", "COPY p FROM PROGRAM 'echo 1000,1,5,1,x' (FORMAT csv)", [(1, 5)], [1]),
    "insert beside copy": ("", "INSERT INTO p VALUES (1000, 2, 5, 1); COPY p FROM PROGRAM 'echo 1000,1,5,1,x' (FORMAT csv)", [(1, 5), (2, 5)], [1]),
    "a prepared statement": ("", "PREPARE q AS INSERT INTO p VALUES (1000, $1, $2, 1); EXECUTE q(1, 5); EXECUTE q(2, 6); DEALLOCATE q",
                             [(1, 5), (2, 6)], []),
    "rolled back": ("", "INSERT INTO p VALUES (1000, 1, 5, 1); SAVEPOINT s; INSERT INTO p VALUES (1001, 1, 6, 1); ROLLBACK TO s", [(1, 5), (1, 6)], []),
    "an error that is caught":
        ("", "DO $$ BEGIN BEGIN INSERT INTO p VALUES (1000, 1, 6, 1), (16, 1, 3, 1); EXCEPTION WHEN unique_violation THEN NULL; END;"
             " INSERT INTO p VALUES (1000, 1, 5, 1); END $$", [(1, 5), (1, 6), (1, 3)], []),
    "an error of routing that is caught":
        ("ALTER TABLE p DETACH PARTITION p4",
         "DO $$ BEGIN BEGIN INSERT INTO p VALUES (1000, 1, 6, 1), (1001, 77, 3, 1); EXCEPTION WHEN check_violation THEN NULL; END;"
         " INSERT INTO p VALUES (1000, 1, 5, 1); END $$", [(1, 5), (1, 6)], []),

    # Leaves that are named.
    "insert into a leaf that is named": ("", "INSERT INTO p2 (id, region, tenant) VALUES (1000, 2, 5)", [(2, 5)], []),
    "update of a leaf that is named": ("", "UPDATE p1 SET v = 0 WHERE tenant = 5", [(1, 5)], []),
    "delete from a leaf that is named": ("", "DELETE FROM p2 WHERE tenant = 5", [(2, 5)], []),

    # Rows that are found.
    "update": ("", "UPDATE p SET v = 0 WHERE tenant = 5", [(region, 5) for region in REGIONS], []),
    "update in one leaf": ("", "UPDATE p SET v = 0 WHERE tenant = 5 AND region = 2", [(2, 5)], []),
    "update by key": ("", "UPDATE p SET v = 0 WHERE id IN (16, 21)", [(1, 5), (2, 6)], []),
    "update of the tenant": ("", "UPDATE p SET tenant = 6 WHERE id IN (16, 17)", [(1, 5), (1, 6), (2, 5), (2, 6)], []),
    "update with a join": ("", "UPDATE p SET v = s.v FROM source s WHERE p.id = s.id", [(1, 2)], []),
    "update that finds nothing": ("", "UPDATE p SET v = 0 WHERE id = -1; DELETE FROM p WHERE id = -1", [], []),
    "a cursor": ("", "DECLARE c CURSOR FOR SELECT id FROM p WHERE v = 17 FOR UPDATE; FETCH 1 FROM c; UPDATE p SET v = 0 WHERE CURRENT OF c", [(2, 5)], []),
    "delete": ("", "DELETE FROM p WHERE id IN (16, 21)", [(1, 5), (2, 6)], []),
    "delete and insert": ("", "DELETE FROM p WHERE id = 16; INSERT INTO p VALUES (16, 1, 3, 1)", [(1, 5), (1, 3)], []),
    "merge": ("", "MERGE INTO p USING source s ON p.id = s.id AND p.region = s.region WHEN MATCHED THEN UPDATE SET v = s.v", [(1, 2)], []),
    "merge that inserts": ("", "MERGE INTO p USING source s ON p.id = s.id AND p.region = s.region WHEN NOT MATCHED THEN INSERT"
                               " VALUES (s.id, s.region, 3, s.v)", [(1, 3)], [1]),
    "a cascade": ("ALTER TABLE p ADD FOREIGN KEY (tenant) REFERENCES parent ON DELETE CASCADE", "DELETE FROM parent WHERE id = 5",
                  [(region, 5) for region in REGIONS], []),

    # Rows that move.
    "a row moves": ("", "UPDATE p SET region = 2 WHERE id = 16", [(1, 5), (2, 5)], []),
    "a row moves from a leaf of another form": ("", "UPDATE p SET region = 3, tenant = 6 WHERE id = 17", [(2, 5), (3, 6)], []),
    "a row moves to a leaf that is opened for it": ("", "UPDATE p SET region = 2 WHERE id = 16 AND region = 1", [(1, 5), (2, 5)], []),
    "a row moves from a leaf of another form to one that is opened for it": ("", "UPDATE p SET region = 1 WHERE id = 17 AND region = 2", [(1, 5), (2, 5)], []),
    "rows move": ("", "UPDATE p SET region = region % 4 + 1, tenant = 3 WHERE tenant = 5 AND id < 60",
                  [(region, tenant) for region in REGIONS for tenant in (3, 5)], []),
    "a merge moves a row": ("", "MERGE INTO p USING source s ON p.id = s.id AND p.region = s.region WHEN MATCHED THEN UPDATE SET region = 2",
                            [(1, 2), (2, 2)], [2]),

    # Triggers.
    "a trigger before of a leaf": (trigger("NEW.tenant = 6"), "INSERT INTO p VALUES (1000, 1, 5, 1)", [(1, 6)], []),
    "a trigger before of all leaves":
        (trigger("NEW.tenant = 6", "BEFORE INSERT OR UPDATE", "p"), "INSERT INTO p VALUES (1000, 2, 5, 1); UPDATE p SET v = 0 WHERE id = 8",
         [(2, 6), (1, 3), (1, 6)], []),
    "a trigger before of a leaf that a row moves to": (trigger("NEW.tenant = 6", table="p2"), "UPDATE p SET region = 2 WHERE id = 16", [(1, 5), (2, 6)], []),
    "a trigger before of a leaf that a row moves from":
        (trigger("NEW.tenant = 6", "BEFORE UPDATE"), "UPDATE p SET region = 2 WHERE id = 16", [(1, 5), (2, 6)], []),
    "a trigger that has rows routed":
        (trigger("IF NEW.id = 1000 THEN INSERT INTO p VALUES (1001, 1, 3, 1); INSERT INTO p VALUES (1002, 2, 4, 1); END IF"),
         "INSERT INTO p VALUES (1000, 1, 5, 1)", [(1, 5), (1, 3), (2, 4)], []),
    "a trigger that has rows moved":
        (trigger("IF NEW.id = 1000 THEN UPDATE p SET region = 2 WHERE id = 16 AND region = 1; END IF", "AFTER INSERT"),
         "INSERT INTO p VALUES (1000, 1, 6, 1)", [(1, 6), (1, 5), (2, 5)], []),
    "a trigger that has rows moved before, found by a scan":
        (trigger("UPDATE p SET region = 2 WHERE id = 16"), "INSERT INTO p VALUES (1000, 1, 6, 1)", [(1, 6), (1, 5), (2, 5)], [1]),
    "a trigger that scans its leaf": (trigger("PERFORM count(*) FROM p1 WHERE v > 0"), "INSERT INTO p VALUES (1000, 1, 5, 1)", [(1, 5)], [1]),
    "a trigger that keeps a row from moving":
        (trigger("RETURN NULL", "BEFORE DELETE"), "UPDATE p SET region = 2 WHERE id = 16; UPDATE p SET v = 0 WHERE id = 17", [(2, 5)], []),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change(world, name):
    preparation, change, changed, whole = CHANGES[name]
    if preparation:
        world.writer.execute(preparation)
        world.refill_all()
    with world.writer.transaction():
        world.writer.execute(change)
    world.check(changed, whole)
    # The session that has written goes on precisely.
    world.writer.execute("DELETE FROM p WHERE id = (SELECT min(id) FROM p2 WHERE tenant = 4) AND region = 2")
    world.check([(2, 4)], [])


# Name: (what the first changes, what the second wants to change at that time, changed rows of the first, those of the second).
RACES = {
    "the second moves the row": ("UPDATE p SET v = 1 WHERE id = 16", "UPDATE p SET region = 2 WHERE id = 16 AND region = 1", [(1, 5)], [(1, 5), (2, 5)]),
    "the second moves the row of another tenant":
        ("UPDATE p SET tenant = 6 WHERE id = 16", "UPDATE p SET region = 2 WHERE id = 16", [(1, 5), (1, 6)], [(1, 6), (2, 6)]),
    "the second moves it from another form":
        ("UPDATE p SET tenant = 6 WHERE id = 17", "UPDATE p SET region = 1 WHERE id = 17", [(2, 5), (2, 6)], [(2, 6), (1, 6)]),
    "the row fits no more":
        ("UPDATE p SET tenant = 6 WHERE id = 16", "UPDATE p SET region = 2 WHERE id = 16 AND tenant = 5 OR id = 20", [(1, 5), (1, 6)], [(1, 6), (2, 6)]),
    "the row is gone": ("DELETE FROM p WHERE id = 16", "UPDATE p SET region = 2 WHERE id IN (16, 20)", [(1, 5)], [(1, 6), (2, 6)]),
    "the second inserts the same": ("INSERT INTO p VALUES (1000, 2, 5, 1)", "INSERT INTO p VALUES (1000, 2, 6, 1), (1004, 1, 6, 1) ON CONFLICT DO NOTHING",
                                    [(2, 5)], [(1, 6)]),
}


@pytest.mark.parametrize("name", RACES)
def test_a_row_that_another_changes_at_the_same_time(world, connect, name):
    first_change, second_change, of_first, of_second = RACES[name]
    first, second = connect(), connect()
    first.execute("BEGIN")
    first.execute(first_change)
    second.execute("BEGIN")
    asking = Asking(second, second_change + " RETURNING id")
    until_locked_out(world.writer)
    world.check([], [])
    first.execute("COMMIT")
    asking.thread.join()
    world.check(of_first, [])
    second.execute("COMMIT")
    world.check(of_second, [])


def test_stored_parts_rest_on_values(connect):
    """Only the parts are computed again whose rows have changed."""
    reader, writer = connect("-c pg_arrow_cache.debug_force_fragments=on"), connect()
    names = ["q1", "q2", "q3"]
    for _ in range(5):
        writer.execute("CREATE TABLE q (day int, tenant int, v int) PARTITION BY RANGE (day)")
        for number, name in enumerate(names):
            writer.execute(f"CREATE TABLE {name} PARTITION OF q FOR VALUES FROM ({number * 10}) TO ({number * 10 + 10})")
        writer.execute("INSERT INTO q SELECT g % 30, g % 7, g FROM generate_series(1, 2100) g; ANALYZE q")
        for change in ("UPDATE q SET v = v + 1", "UPDATE q SET v = v + 1", "SELECT 1"):
            for tenant in range(7):
                reader.rows(f"SELECT count(*), sum(v) FROM q WHERE tenant = {tenant}")
            writer.execute(change)
        tracked = writer.rows("SELECT relation::regclass::text FROM arrow_cache.tracked WHERE columns = '{tenant}' ORDER BY 1")
        if tracked == [(name,) for name in names]:
            break
        writer.execute("DROP TABLE q")
    else:
        pytest.fail(f"the leaves are not tracked, but {tracked}")

    def computed(tenant):
        """How many parts were computed for an answer."""
        count = "SELECT fragments_computed FROM arrow_cache.stats"
        before = writer.rows(count)[0][0]
        query = f"SELECT count(*), sum(v) FROM q WHERE tenant = {tenant}"
        assert reader.rows(query) == reader.uncached(query)
        return writer.rows(count)[0][0] - before

    assert [computed(tenant) for tenant in (5, 6)] == [0, 0]
    writer.execute("UPDATE q SET v = v + 1 WHERE tenant = 6 AND day = 3")
    assert [computed(tenant) for tenant in (5, 6)] == [0, 1]
    writer.execute("INSERT INTO q VALUES (11, 6, 1), (21, 6, 1)")
    assert [computed(tenant) for tenant in (5, 6)] == [0, 2]
    writer.execute("COPY q FROM PROGRAM 'echo 21,6,1' (FORMAT csv)")
    assert [computed(tenant) for tenant in (5, 6)] == [1, 1]


QUIET = """
    CREATE TABLE r (id int, region int, tenant int, name text, seen int DEFAULT 0) PARTITION BY LIST (region);
    CREATE TABLE r1 PARTITION OF r FOR VALUES IN (1);
    CREATE TABLE r2 (seen int DEFAULT 0, gone int, tenant int, name text, region int, id int);
    ALTER TABLE r2 DROP gone;
    ALTER TABLE r ATTACH PARTITION r2 FOR VALUES IN (2);
    CREATE TABLE r3 PARTITION OF r FOR VALUES IN (3) PARTITION BY HASH (id);
    CREATE TABLE r3a (name text, seen int DEFAULT 0, id int, region int, tenant int);
    ALTER TABLE r3 ATTACH PARTITION r3a FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    INSERT INTO r SELECT g, g % 3 + 1, g / 3 % 4 + 1, 'name ' || g FROM generate_series(0, 119) g;
    CREATE TABLE i (id int, tenant int, name text, seen int DEFAULT 0);
    CREATE TABLE i1 (size int, seen int DEFAULT 0, name text, tenant int, id int);
    ALTER TABLE i1 INHERIT i;
    INSERT INTO i SELECT g, g % 4 + 1, 'name ' || g FROM generate_series(0, 19) g;
    INSERT INTO i1 SELECT g, g, 'name ' || g, g % 4 + 1, g FROM generate_series(0, 19) g;
    ANALYZE r, i, i1;
"""


def quiet(connect, table, leaves, policy=""):
    """Sessions that read and write a table, and have its leaves tracked by the tenant, with quiet columns."""
    reader, writer = connect("-c pg_arrow_cache.enable_fragments=off"), connect()
    for _ in range(5):
        writer.execute(QUIET + policy)
        for _ in range(20):
            reader.rows(f"SELECT id, name, seen FROM {table} WHERE tenant = 3 ORDER BY id")
            writer.execute(f"UPDATE {table} SET seen = seen WHERE tenant = 3")
        tracked = dict(writer.rows("SELECT relation::regclass::text, quiet_columns FROM arrow_cache.tracked WHERE columns = '{tenant}'"))
        if sorted(tracked) == leaves:
            return reader, writer, tracked
        writer.execute("DROP TABLE r, i, i1")
    pytest.fail(f"not tracked: {tracked}")


@pytest.mark.parametrize("table, leaves", [("r", ["r1", "r2", "r3a"]), ("i", ["i", "i1"])])
def test_quiet_columns(connect, table, leaves):
    """Leaves and children with columns in another order: an UPDATE of columns that are not read leaves answers alone."""
    reader, writer, tracked = quiet(connect, table, leaves)
    assert all("seen" in columns and not {"name", "tenant", "id"} & set(columns) for columns in tracked.values()), tracked
    names, seen, whole = (f"SELECT {columns} FROM {table} WHERE tenant = 3" for columns in ("id, name", "sum(seen)", "*"))

    def left(change):
        """Those answers that are left after a change."""
        for question in (names, seen, whole):
            reader.rows(question)
            reader.rows(question)
            assert reader.status() == "HIT", question
        writer.execute(change)
        found = []
        for question in (names, seen, whole):
            rows, status = reader.rows(question), reader.status()
            assert sorted(rows) == sorted(reader.uncached(question)), question
            found += [question] * (status == "HIT")
        return found

    assert left(f"UPDATE {table} SET seen = seen + 1") == [names]
    assert left(f"UPDATE {table} SET seen = seen + 1 WHERE tenant = 4") == [names, seen, whole]
    assert left(f"UPDATE {table} SET name = 'y' WHERE tenant = 4") == [names, seen, whole]
    assert left(f"UPDATE {table} SET name = 'y', seen = 9 WHERE tenant = 3") == []
    for leaf in leaves:
        assert left(f"UPDATE {table} SET seen = seen + 1 WHERE tenant = 3 AND tableoid = '{leaf}'::regclass") == [names]
        assert left(f"UPDATE {table} SET name = name || 'a' WHERE tenant = 3 AND tableoid = '{leaf}'::regclass") == []
        assert left(f"UPDATE ONLY {leaf} SET seen = seen + 1 WHERE tenant = 3") == [names]
        assert left(f"UPDATE ONLY {leaf} SET name = name || 'z' WHERE tenant = 3") == []


def test_a_policy_of_the_table_reads_columns_of_its_leaves(connect, administrator):
    role = f"{connect.schema}_reader"
    administrator.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {connect.schema} TO {role}")
    try:
        policy = f"ALTER TABLE r ENABLE ROW LEVEL SECURITY; CREATE POLICY s ON r USING (seen < 5); GRANT SELECT ON r TO {role};"
        reader, writer, _ = quiet(connect, "r", ["r1", "r2", "r3a"], policy)
        reader.execute(f"SET ROLE {role}")
        question = "SELECT id, name FROM r WHERE tenant = 3 ORDER BY id"
        before = reader.rows(question)
        reader.rows(question)
        assert reader.status() == "HIT"
        writer.execute("UPDATE r SET seen = 7 WHERE tenant = 3 AND region = 2")
        after = reader.rows(question)
        assert reader.status() == "STALE"
        assert len(after) < len(before)
    finally:
        reader.execute("RESET ROLE")
        administrator.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
