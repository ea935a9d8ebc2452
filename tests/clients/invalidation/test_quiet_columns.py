"""An UPDATE of columns that an answer does not read leaves it alone, once UPDATEs have set them often: `last_seen` beside names. One of others outdates it,
and so does whatever may change more than the columns that it names."""

import random

import pytest

from support.asking import Asking, until_locked_out
from support.shared_slots import outlives

TENANTS = range(1, 13)
SETUP = """
    CREATE TABLE t (id int PRIMARY KEY, tenant int, name text, seen int DEFAULT 0, visits int DEFAULT 0);
    INSERT INTO t SELECT g, g % 12 + 1, 'name ' || g FROM generate_series(1, 120) g;
    CREATE INDEX ON t (tenant);
    CREATE TABLE other (id int PRIMARY KEY, v int);
    INSERT INTO other SELECT g, g FROM generate_series(1, 12) g;
    ANALYZE t;
"""
NAMES = "SELECT id, name FROM t WHERE tenant = 5 ORDER BY id"
ALL = "SELECT * FROM t WHERE tenant = 5 ORDER BY id"
SEEN = "SELECT max(seen) FROM t WHERE tenant = 5"
NUMBER = "SELECT count(*) FROM t WHERE tenant = 5"
ROW = "SELECT t FROM t WHERE tenant = 5 ORDER BY id"
PLACE = "SELECT id, xmin::text, ctid FROM t WHERE tenant = 5 ORDER BY id"
BESIDE = "SELECT id, name FROM t WHERE tenant = 6 ORDER BY id"
QUESTIONS = [NAMES, ALL, SEEN, NUMBER, ROW, BESIDE]


def tracked(session, table="t"):
    return session.rows("SELECT columns, quiet_columns FROM arrow_cache.tracked WHERE relation = %s::regclass", [table])


def until_tracked(session, ask, columns, quiet, table="t"):
    """Updates of the row of one tenant make columns quiet that are to be."""
    for number in range(40):
        ask(number)
        if quiet:
            session.execute(f"UPDATE {table} SET {', '.join(f'{column} = {column}' for column in quiet)} WHERE id = 1")
        if number >= 7 and tracked(session, table) == [(columns, quiet)]:
            session.execute("SELECT arrow_cache.flush()")
            return
    pytest.fail(f"not tracked: {columns}, {quiet}, but {tracked(session, table)}")


def track(session):
    """By the tenant. `seen` and `visits` are quiet."""
    until_tracked(session, lambda number: session.rows(f"SELECT *, {number} FROM t WHERE tenant = 5"), ["tenant"], ["seen", "visits"])


def store(session, questions):
    for question in questions:
        session.rows(question)
        session.rows(question)
        assert session.status() == "HIT", question


def left(session, questions):
    """The questions whose answers are still there. Each answer is the one that executing it gives."""
    found = []
    for question in questions:
        rows = session.rows(question)
        if session.status() == "HIT":
            found.append(question)
        assert rows == session.uncached(question), question
    return found


def check_left(session, questions, expected):
    """These answers are left, and no others."""
    found = set(left(session, questions))
    assert found <= set(expected), found
    outlives(found >= set(expected), found)


QUIET = [NAMES, NUMBER, BESIDE]
LOUD = [BESIDE]
NOTHING = []


def trigger(body, when="BEFORE UPDATE"):
    return (f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN {body} RETURN NEW; END $f$;"
            f" CREATE TRIGGER f {when} ON t FOR EACH ROW EXECUTE FUNCTION f()")


# Name: (preparation, change in one transaction, the answers that are left).
CHANGES = {
    "a quiet column": ("", "UPDATE t SET seen = 1 WHERE id = 4", QUIET),
    "two quiet columns": ("", "UPDATE t SET seen = 1, visits = visits + 1 WHERE tenant = 5", QUIET),
    "a quiet column of all rows": ("", "UPDATE t SET seen = 1", [NAMES, NUMBER, BESIDE]),
    "a column that is read": ("", "UPDATE t SET name = 'x' WHERE id = 4", LOUD),
    "a quiet column and one that is read": ("", "UPDATE t SET seen = 1, name = 'x' WHERE id = 4", LOUD),
    "a column that is read, as it was": ("", "UPDATE t SET name = name WHERE id = 4", LOUD),
    "the tracked column": ("", "UPDATE t SET tenant = 6 WHERE id = 4", NOTHING),
    "quiet columns in one statement, and others in the next":
        ("", "UPDATE t SET seen = 1 WHERE id = 4; UPDATE t SET name = 'x' WHERE id = 16", LOUD),
    "other rows": ("", "UPDATE t SET name = 'x' WHERE tenant = 7; UPDATE t SET seen = 1 WHERE id = 4", QUIET),
    "insert": ("", "INSERT INTO t VALUES (1000, 5, 'x')", LOUD),
    "delete": ("", "DELETE FROM t WHERE id = 4", LOUD),
    "from another table": ("", "UPDATE t SET seen = o.v FROM other AS o WHERE o.id = 4 AND t.id = o.id", QUIET),
    "WITH": ("", "WITH w AS (UPDATE t SET seen = 1 WHERE id = 4 RETURNING name) SELECT * FROM w", QUIET),
    "a list of columns": ("", "UPDATE t SET (seen, visits) = (SELECT v, v FROM other WHERE id = 4) WHERE tenant = 5", QUIET),
    "a default": ("", "UPDATE t SET seen = DEFAULT WHERE id = 4", QUIET),
    "merge": ("", "MERGE INTO t USING other AS o ON t.id = o.id AND o.id = 4 WHEN MATCHED THEN UPDATE SET seen = 1", LOUD),
    "on conflict": ("", "INSERT INTO t VALUES (4, 5, 'x') ON CONFLICT (id) DO UPDATE SET seen = 1", LOUD),
    "a cursor": ("", "DECLARE c CURSOR FOR SELECT * FROM t WHERE id = 4 FOR UPDATE; FETCH 1 FROM c; UPDATE t SET seen = 1 WHERE CURRENT OF c", QUIET),
    "a view": ("CREATE VIEW v AS SELECT seen AS name, name AS seen, id FROM t", "UPDATE v SET name = 1 WHERE id = 4", QUIET),
    "a view, of a column that is read": ("CREATE VIEW v AS SELECT seen AS name, name AS seen, id FROM t", "UPDATE v SET seen = 'x' WHERE id = 4", LOUD),
    "a rule": ("CREATE RULE r AS ON UPDATE TO other DO ALSO UPDATE t SET seen = NEW.v WHERE t.id = NEW.id", "UPDATE other SET v = 9 WHERE id = 4", QUIET),
    "a prepared statement": ("", "PREPARE p AS UPDATE t SET seen = $1 WHERE id = 4; EXECUTE p(5); DEALLOCATE p", QUIET),
    "a function in SQL": ("CREATE FUNCTION h() RETURNS void LANGUAGE sql AS 'UPDATE t SET seen = 7 WHERE id = 4'", "SELECT h()", QUIET),
    "a trigger before that changes another column": (trigger("NEW.name := 'x';"), "UPDATE t SET seen = 1 WHERE id = 4", LOUD),
    "a trigger before that moves the row": (trigger("NEW.tenant := 6;"), "UPDATE t SET seen = 1 WHERE id = 4", NOTHING),
    "a trigger before that does nothing": (trigger(""), "UPDATE t SET seen = 1 WHERE id = 4", LOUD),
    "a trigger before another change": (trigger("NEW.name := 'x';", "BEFORE UPDATE OF name"), "UPDATE t SET seen = 1 WHERE id = 4", LOUD),
    "a trigger after": (trigger("", "AFTER UPDATE"), "UPDATE t SET seen = 1 WHERE id = 4", QUIET),
    "a trigger after that changes another column":
        (trigger("UPDATE t SET name = 'x' WHERE id = 16;", "AFTER UPDATE OF seen"), "UPDATE t SET seen = 1 WHERE id = 4", LOUD),
    "a trigger of the statement":
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN UPDATE t SET name = 'y' WHERE id = 16; RETURN NULL; END $f$;"
         " CREATE TRIGGER f BEFORE UPDATE OF seen ON t EXECUTE FUNCTION f()", "UPDATE t SET seen = 1 WHERE id = 4", LOUD),
    "a generated column": ("ALTER TABLE t ADD twice int GENERATED ALWAYS AS (seen * 2) STORED", "UPDATE t SET seen = 1 WHERE id = 4", LOUD),
    "a cascade to a quiet column":
        ("UPDATE t SET seen = 4; ALTER TABLE t ADD FOREIGN KEY (seen) REFERENCES other ON UPDATE CASCADE ON DELETE SET NULL",
         "UPDATE other SET id = 77 WHERE id = 4; DELETE FROM other WHERE id = 77", QUIET),
    "a cascade to the tracked column":
        ("ALTER TABLE t ADD FOREIGN KEY (tenant) REFERENCES other ON DELETE SET NULL", "DELETE FROM other WHERE id = 5", LOUD),
    "a savepoint kept": ("", "SAVEPOINT s; UPDATE t SET seen = 1 WHERE id = 4; RELEASE s; UPDATE t SET visits = 1 WHERE id = 16", QUIET),
    "a savepoint rolled back": ("", "UPDATE t SET seen = 1 WHERE id = 4; SAVEPOINT s; UPDATE t SET name = 'x' WHERE tenant = 6; ROLLBACK TO s",
                                [NAMES, NUMBER]),
    "a column more": ("ALTER TABLE t ADD w int", "UPDATE t SET w = 1 WHERE id = 4", LOUD),
    "a column less": ("ALTER TABLE t DROP visits", "UPDATE t SET seen = 1 WHERE id = 4", QUIET),
    "another type": ("ALTER TABLE t ALTER seen TYPE bigint", "UPDATE t SET seen = 1 WHERE id = 4", QUIET),
    "a definition in the same transaction": ("", "UPDATE t SET seen = 1 WHERE id = 4; COMMENT ON TABLE t IS 'x'; ALTER TABLE t ADD w int", NOTHING),
    "copy beside it": ("", "UPDATE t SET seen = 1 WHERE id = 4; COPY t (id, tenant) FROM PROGRAM 'echo 1000,9' (FORMAT csv)", QUIET),
    "an inherited table": ("CREATE TABLE child () INHERITS (t)", "UPDATE t SET seen = 1 WHERE id = 4", QUIET),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(session, other, name):
    preparation, change, expected = CHANGES[name]
    session.execute(SETUP)
    track(session)
    if preparation:
        other.execute(preparation)
    store(session, QUESTIONS)
    with other.transaction():
        other.execute(change)
    check_left(session, QUESTIONS, expected)
    # What is stored now is outdated by the next change.
    store(session, QUESTIONS)
    other.execute("INSERT INTO other SELECT 5, 5 WHERE NOT EXISTS (SELECT FROM other WHERE id = 5)")
    other.execute("UPDATE t SET name = name || '!', tenant = 5 WHERE id = 16")
    assert not set(left(session, QUESTIONS)) - {BESIDE}


@pytest.mark.parametrize("change, quiet", [("SET seen = 1", True), ("SET name = 'x'", False)])
def test_what_is_read_under_another_name(session, other, change, quiet):
    """Views, functions, joins and conditions read what they name."""
    session.execute(SETUP)
    session.execute("""
        CREATE VIEW names AS SELECT id, tenant, name FROM t;
        CREATE VIEW seen WITH (security_barrier) AS SELECT id, tenant, seen AS name FROM t;
        CREATE VIEW seen_if AS SELECT id, tenant, name FROM t WHERE seen < 1;
        CREATE FUNCTION names_of(int) RETURNS TABLE (id int, name text) LANGUAGE sql STABLE AS 'SELECT id, name FROM t WHERE tenant = $1 ORDER BY id';
        CREATE FUNCTION seen_of(int) RETURNS TABLE (id int, name int) LANGUAGE sql STABLE AS 'SELECT id, seen FROM t WHERE tenant = $1 ORDER BY id';
    """)
    track(session)
    unread = [
        "SELECT name FROM names WHERE tenant = 5 ORDER BY id",
        "SELECT n.name FROM names AS n JOIN other AS o ON o.id = n.id WHERE n.tenant = 5 ORDER BY n.id",
        "SELECT a.name FROM t AS a JOIN t AS b USING (id) WHERE a.tenant = 5 AND b.tenant = 5 ORDER BY 1",
    ]
    read = [
        "SELECT name FROM seen WHERE tenant = 5 ORDER BY id",
        "SELECT name FROM seen_if WHERE tenant = 5 ORDER BY id",
        "SELECT id FROM t WHERE tenant = 5 AND seen = 0 ORDER BY id",
        "SELECT id FROM t WHERE tenant = 5 ORDER BY seen, id",
        "SELECT seen, count(*) FROM t WHERE tenant = 5 GROUP BY seen ORDER BY 1",
        "SELECT a.name FROM t AS a JOIN t AS b USING (seen, id) WHERE a.tenant = 5 AND b.tenant = 5 ORDER BY 1",
        "SELECT a.name FROM t AS a NATURAL JOIN t AS b WHERE a.tenant = 5 AND b.tenant = 5 ORDER BY 1",
        "SELECT a.name, b.seen FROM t AS a JOIN t AS b USING (id) WHERE a.tenant = 5 AND b.tenant = 5 ORDER BY 1",
        "SELECT count(j) FROM (t JOIN other USING (id)) AS j WHERE tenant = 5",
        "SELECT to_jsonb(t) FROM t WHERE tenant = 5 ORDER BY id",
        "SELECT o.v FROM other AS o WHERE EXISTS (SELECT FROM t WHERE tenant = 5 AND seen = 0 AND t.id = o.id) ORDER BY 1",
        "SELECT * FROM seen_of(5)",
    ]
    questions = unread + read + ["SELECT * FROM names_of(5)"]
    store(session, questions)
    other.execute(f"UPDATE t {change} WHERE id = 4")
    found = left(session, questions)
    if quiet:
        assert not set(read) & set(found)
        outlives(set(unread) <= set(found))
    else:
        assert not set(unread) & set(found)


def test_places_and_whole_rows(session, other):
    session.execute(SETUP)
    track(session)
    for question in (PLACE, ROW, "SELECT count(t) FROM t WHERE tenant = 5"):
        session.rows(question)
    other.execute("UPDATE t SET seen = 1 WHERE id = 4")
    assert left(session, [PLACE, ROW]) == []


LIST, COUNT, OF_ALL = "SELECT id, name FROM t ORDER BY id", "SELECT count(*) FROM t", "SELECT * FROM t ORDER BY id"
EVERYTHING = [LIST, COUNT, OF_ALL, "SELECT sum(visits) FROM t", "SELECT id FROM t WHERE id > 7 ORDER BY id"]


def track_rows(session):
    until_tracked(session, lambda number: session.rows(f"SELECT id, name, {number} FROM t ORDER BY id"), ["*"], ["tenant", "seen", "visits"])


def test_answers_without_conditions(session, other):
    session.execute(SETUP)
    track_rows(session)
    store(session, EVERYTHING)
    other.execute("UPDATE t SET seen = 1 WHERE id = 4")
    check_left(session, EVERYTHING, [LIST, COUNT, *EVERYTHING[3:]])
    for change in ("UPDATE t SET name = 'x' WHERE id = 4", "INSERT INTO t VALUES (1000, 5, 'x')", "DELETE FROM t WHERE id = 1000",
                   "UPDATE t SET id = 2000 WHERE id = 5", "TRUNCATE t"):
        store(session, EVERYTHING)
        other.execute(change)
        assert left(session, EVERYTHING) == [], change


def test_many_rows_at_once(session, other):
    """If only each row is tracked, nothing of the rows is looked at, however many change."""
    session.execute(SETUP)
    session.execute("INSERT INTO t SELECT 1000 + g, g, 'x' FROM generate_series(1, 3000) g; ANALYZE t")
    track_rows(session)
    store(session, [LIST, COUNT, OF_ALL])
    before = session.rows("SELECT precise_publications, coarse_overflow FROM arrow_cache.stats")
    other.execute("UPDATE t SET seen = seen + 1, tenant = 3")
    check_left(session, [LIST, COUNT, OF_ALL], [LIST, COUNT])
    assert session.rows("SELECT precise_publications - 1, coarse_overflow FROM arrow_cache.stats") == before


def test_each_row_beside_a_column(session, other):
    session.execute(SETUP)
    track_rows(session)
    until_tracked(session, lambda number: session.rows(f"SELECT name, {number} FROM t WHERE tenant = 5"), ["tenant", "*"], ["tenant", "seen", "visits"])
    store(session, [LIST, COUNT, *QUESTIONS])
    other.execute("UPDATE t SET visits = 1 WHERE id = 4")
    check_left(session, [LIST, COUNT, *QUESTIONS], [LIST, COUNT, SEEN, *QUIET])
    store(session, [LIST, COUNT, *QUESTIONS])
    other.execute("UPDATE t SET name = 'x' WHERE id = 4")
    check_left(session, [LIST, COUNT, *QUESTIONS], [BESIDE])


def test_what_reads_everything_wishes_for_nothing(session):
    session.execute(SETUP)
    for number in range(20):
        session.rows(f"SELECT *, {number} FROM t ORDER BY id")
        session.rows(f"SELECT id, {number} FROM t TABLESAMPLE bernoulli (100) REPEATABLE (1) ORDER BY id")
    assert tracked(session) == []


def test_given_back(session, other):
    """A table whose changes are never quiet is not tracked for long without conditions."""
    session.execute(SETUP)
    track_rows(session)
    other.execute("UPDATE t SET seen = 1 WHERE id = 1")
    other.execute("""DO $$ BEGIN FOR n IN 1..999 LOOP INSERT INTO t VALUES (1000 + n, 4, n); COMMIT; END LOOP; END $$""")
    assert tracked(session)
    store(session, [COUNT])
    other.execute("INSERT INTO t VALUES (1000, 4, 'x')")
    assert tracked(session) == []
    assert left(session, [COUNT]) == []
    for number in range(20):
        session.rows(f"SELECT id, name, {number} FROM t ORDER BY id")
    assert tracked(session) == [], "not again so soon"
    store(session, [COUNT])
    other.execute("UPDATE t SET seen = 5 WHERE id = 4")
    assert left(session, [COUNT]) == []


READER = """
    DO $$ BEGIN
        CREATE ROLE reader;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO reader', current_schema());
    END $$;
    GRANT SELECT ON t TO reader;
    CREATE POLICY p ON t USING (seen = 0);
    ALTER TABLE t ENABLE ROW LEVEL SECURITY;
"""


def test_row_security(session, other):
    """A policy reads what no statement names."""
    session.execute(SETUP)
    session.execute(READER)
    session.execute("SET ROLE reader")
    try:
        for number in range(20):
            session.rows(f"SELECT id, name, {number} FROM t WHERE tenant = 5 ORDER BY id")
        session.execute("RESET ROLE")
        until_tracked(session, lambda _: None, ["tenant"], ["seen"])
        session.execute("SET ROLE reader")
        store(session, [NAMES, NUMBER])
        other.execute("UPDATE t SET seen = 1 WHERE id = 4")
        assert left(session, [NAMES, NUMBER]) == []
    finally:
        session.execute("RESET ROLE; DROP TABLE t; DROP OWNED BY reader; DROP ROLE reader")


def test_row_security_comes_later(session, other):
    """The columns are quiet already when the policy comes."""
    session.execute(SETUP)
    track(session)
    session.execute(READER)
    try:
        session.execute("SET ROLE reader")
        store(session, [NAMES, NUMBER, BESIDE])
        other.execute("UPDATE t SET seen = 1 WHERE id = 4")
        check_left(session, [NAMES, NUMBER, BESIDE], [BESIDE])
    finally:
        session.execute("RESET ROLE; DROP TABLE t; DROP OWNED BY reader; DROP ROLE reader")


# What the first changes, what the second changes when that has ended, and the answers that outlive both.
RACES = {
    "both quiet": ("UPDATE t SET seen = 1 WHERE id = 4", "UPDATE t SET visits = visits + 1 WHERE id = 4", QUIET),
    "the first is loud": ("UPDATE t SET name = 'x' WHERE id = 4", "UPDATE t SET seen = 1 WHERE id = 4", LOUD),
    "the second is loud": ("UPDATE t SET seen = 1 WHERE id = 4", "UPDATE t SET name = 'x' WHERE id = 4", LOUD),
    "the first moves the row": ("UPDATE t SET tenant = 6 WHERE id = 4", "UPDATE t SET seen = 1 WHERE id = 4", NOTHING),
}


@pytest.mark.parametrize("name", RACES)
def test_a_row_that_another_changes_at_the_same_time(session, other, connect, name):
    first_change, second_change, expected = RACES[name]
    session.execute(SETUP)
    track(session)
    store(session, QUESTIONS)
    second = connect()
    other.execute("BEGIN")
    other.execute(first_change)
    asking = Asking(second, second_change + " RETURNING id")
    until_locked_out(session)
    other.execute("COMMIT")
    asking.thread.join()
    check_left(session, QUESTIONS, expected)
    # The quiet change is of the row where it is now.
    if name == "the first moves the row":
        quiet = "SELECT id, seen FROM t WHERE tenant = 6 ORDER BY id"
        assert (4, 1) in session.rows(quiet)


def test_a_function_of_a_constraint_changes_another_row(session, other, connect):
    """Its statement is not noted by itself. The change counts as the one of the outer node, whose own row has gone meanwhile: it is as
    many as are counted."""
    session.execute(SETUP)
    session.execute("""
        CREATE FUNCTION moves(int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
            IF current_setting('quiet.moves', true) = 'on' THEN
                PERFORM set_config('quiet.moves', 'off', false), set_config('pg_arrow_cache.precise_invalidation', 'off', false),
                        set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false);
                UPDATE t SET tenant = 6, name = 'moved' WHERE id = 16;
            END IF;
            RETURN true;
        END $$;
        ALTER TABLE t ADD CHECK (moves(seen)) NOT VALID""")
    track(session)
    store(session, QUESTIONS)
    second = connect()
    second.execute("SET quiet.moves = on")
    other.execute("BEGIN")
    other.execute("DELETE FROM t WHERE id = 100")
    asking = Asking(second, "UPDATE t SET seen = 1 WHERE id = 100 RETURNING id")
    until_locked_out(session)
    other.execute("COMMIT")
    asking.thread.join()
    assert session.uncached("SELECT tenant FROM t WHERE id = 16") == [(6,)]
    assert left(session, QUESTIONS) == NOTHING


def test_each_quiet_column_concerns_those_who_read_it(session, other):
    session.execute(SETUP)
    track(session)
    visits = "SELECT sum(visits) FROM t WHERE tenant = 5"
    for column, expected in [("seen", [NAMES, NUMBER, visits]), ("visits", [NAMES, NUMBER, SEEN])]:
        store(session, [NAMES, NUMBER, SEEN, visits, ALL])
        other.execute(f"UPDATE t SET {column} = 8 WHERE id = 4")
        check_left(session, [NAMES, NUMBER, SEEN, visits, ALL], expected)


def test_a_tracked_column_is_quiet_for_the_others(session, other):
    """An UPDATE of the tenant moves rows between tenants, and concerns answers by id only if they read it."""
    session.execute(SETUP)
    track(session)
    until_tracked(session, lambda number: session.rows(f"SELECT name, {number} FROM t WHERE id = {number % 3}"), ["id", "tenant"], ["tenant", "seen", "visits"])
    by_id = ["SELECT name FROM t WHERE id = 4", "SELECT name, tenant FROM t WHERE id = 4"]
    store(session, [*by_id, *QUESTIONS])
    other.execute("UPDATE t SET tenant = 6 WHERE id = 4")
    check_left(session, [*by_id, *QUESTIONS], by_id[:1])
    store(session, [*by_id, *QUESTIONS])
    other.execute("UPDATE t SET tenant = 6, seen = 9 WHERE id = 4")
    check_left(session, [*by_id, *QUESTIONS], [by_id[0], NAMES, ALL, SEEN, NUMBER])


def test_what_is_stored_when_less_is_quiet(session, other):
    """Whatever was stored before is gone, as writers tell less from now on."""
    session.execute(SETUP)
    until_tracked(session, lambda number: session.rows(f"SELECT *, {number} FROM t WHERE tenant = 5"), ["tenant"], ["seen"])
    visits = "SELECT sum(visits) FROM t WHERE tenant = 5"
    store(session, [visits, NAMES])
    for number in range(20):
        other.execute(f"UPDATE t SET visits = {number} WHERE id = 1")
    assert tracked(session) == [(["tenant"], ["seen", "visits"])]
    assert left(session, [visits, NAMES]) == []
    store(session, [visits, NAMES])
    other.execute("UPDATE t SET visits = 1 WHERE id = 4")
    check_left(session, [visits, NAMES], [NAMES])


def test_a_writer_runs_while_more_becomes_quiet(session, other):
    """It has noted what it changed as others do not any more."""
    session.execute(SETUP)
    until_tracked(session, lambda number: session.rows(f"SELECT *, {number} FROM t WHERE tenant = 5"), ["tenant"], ["seen"])
    other.execute("BEGIN; UPDATE t SET visits = 1 WHERE id = 4")
    until_tracked(session, lambda _: None, ["tenant"], ["seen", "visits"])
    visits = "SELECT max(visits) FROM t WHERE tenant = 5"
    store(session, [visits, NAMES])
    other.execute("COMMIT")
    assert left(session, [visits, NAMES]) == []
    assert session.rows(visits) == [(1,)]


def test_many_columns_at_once_are_not_quiet(session, other):
    session.execute(SETUP)
    session.execute("ALTER TABLE t ADD a int, ADD b int, ADD c int")
    until_tracked(session, lambda number: session.rows(f"SELECT *, {number} FROM t WHERE tenant = 5"), ["tenant"], ["seen", "visits", "a", "b"])
    until_tracked(session, lambda _: None, ["tenant"], ["seen", "visits", "a", "b"])
    session.execute("DO $$ BEGIN FOR n IN 1..20 LOOP UPDATE t SET c = n WHERE id = 1; COMMIT; END LOOP; END $$")
    assert tracked(session) == [(["tenant"], ["seen", "visits", "a", "b", "c"])]
    store(session, [NAMES])
    other.execute("UPDATE t SET seen = 1, visits = 1, a = 1, b = 1 WHERE id = 4")
    check_left(session, [NAMES], [NAMES])
    other.execute("UPDATE t SET seen = 1, visits = 1, a = 1, b = 1, c = 1 WHERE id = 4")
    assert left(session, [NAMES]) == []


def test_taken_in_while_a_writer_runs(session, other):
    """A writer that has begun when a column was not tracked is waited for."""
    session.execute(SETUP)
    track(session)
    other.execute("BEGIN; UPDATE t SET visits = 1 WHERE id = 4")
    until_tracked(session, lambda number: session.rows(f"SELECT name, visits, {number} FROM t WHERE id = 4"), ["id", "tenant"], ["seen", "visits"])
    by_visits = "SELECT visits FROM t WHERE id = 4"
    for question in (by_visits, NAMES):
        session.rows(question)
    other.execute("COMMIT")
    assert session.rows(by_visits) == [(1,)]
    check_left(session, [NAMES], [NAMES])


COLUMNS = ["tenant", "name", "seen", "visits"]


@pytest.mark.parametrize("seed", range(3))
def test_at_random(session, other, seed):
    """Whatever is updated: what is served is what executing gives under the same snapshot, and some answers are left."""
    chance = random.Random(seed)
    session.execute(SETUP)
    track(session)
    if seed:
        until_tracked(session, lambda number: session.rows(f"SELECT count(*), {number} FROM t"), ["tenant", "*"], ["seen", "visits"])
    if seed == 2:
        until_tracked(session, lambda number: session.rows(f"SELECT name, visits, {number} FROM t WHERE id = {number % 3}"),
                      ["id", "tenant", "*"], ["seen", "visits"])
    hits = 0
    for _ in range(300):
        other.execute("BEGIN")
        for _ in range(chance.randint(1, 2)):
            chosen = chance.sample(COLUMNS, chance.choice([1, 1, 2]))
            if chance.random() < 0.5:
                chosen = [column for column in chosen if column in ("seen", "visits")] or ["seen"]
            values = {"tenant": str(chance.randint(1, 6)), "name": f"'name {chance.randint(1, 9)}'",
                      "seen": "seen + 1", "visits": str(chance.randint(0, 3))}
            where = chance.choice([f"id = {chance.randint(1, 12)}", f"tenant = {chance.randint(1, 6)}", f"visits = {chance.randint(0, 3)}"])
            other.execute(f"UPDATE t SET {', '.join(f'{column} = {values[column]}' for column in chosen)} WHERE {where}")
        other.execute(chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
        for _ in range(4):
            read = ", ".join(sorted(chance.sample(["id", *COLUMNS], chance.randint(1, 3))))
            where = chance.choice([f"WHERE tenant = {chance.randint(1, 6)}", f"WHERE id = {chance.randint(1, 12)}", "",
                                   f"WHERE visits = {chance.randint(0, 3)} AND tenant = {chance.randint(1, 6)}"])
            session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            text = f"SELECT {read} FROM t {where} ORDER BY id"
            rows = session.rows(text)
            hits += session.status() == "HIT"
            assert rows == session.uncached(text), text
            session.execute("COMMIT")
    assert hits > 10
