"""An answer with a LIMIT outlives UPDATEs of rows that it does not have, if these set only quiet columns by which it chooses no rows."""

import random

import pytest

from support.shared_slots import outlives
from test_columns_beside import is_hit
from test_quiet_columns import tracked, until_tracked

SETUP = """
    CREATE TABLE t (id int PRIMARY KEY, tenant int, placed int, amount int, note text);
    INSERT INTO t SELECT g, g % 12 + 1, g * 7 % 1000, g * 31 % 400, 'note ' || g FROM generate_series(1, 2400) g;
    CREATE INDEX ON t (tenant);
    ANALYZE t;
"""
NEWEST = "SELECT id, amount FROM t WHERE tenant = 5 ORDER BY placed DESC, id LIMIT 3"
OTHER_TENANT, FIRST, LAST, BEYOND = 5, 856, 712, 4     # ids: of another tenant, the first and the last row of NEWEST, and none of it


def track(session):
    session.execute(SETUP)
    ask = [lambda number: session.rows(f"SELECT *, {number} FROM t WHERE tenant = 5"), lambda number: session.rows(f"SELECT *, {number} FROM t WHERE id = {number}")]
    until_tracked(session, ask[0], ["tenant"], ["amount", "note"])
    until_tracked(session, ask[1], ["id", "tenant"], ["amount", "note"])


def check(session, other, question, change, kept):
    session.rows(question)
    session.rows(question)
    assert session.status() == "HIT", question
    other.execute(change)
    hit = is_hit(session, question)
    assert kept or not hit, (question, change)
    outlives(hit or not kept, question, change)


def test_the_ids(session):
    session.execute(SETUP)
    assert [row[0] for row in session.rows(NEWEST)][::2] == [FIRST, LAST]
    assert session.rows(f"SELECT tenant = 5, id FROM t WHERE id IN ({OTHER_TENANT}, {BEYOND}) ORDER BY id") == [(True, BEYOND), (False, OTHER_TENANT)]


CHANGES = {
    "a row beyond": (f"UPDATE t SET amount = -1 WHERE id = {BEYOND}", True),
    "the first row": (f"UPDATE t SET amount = -1 WHERE id = {FIRST}", False),
    "the last row": (f"UPDATE t SET amount = -1 WHERE id = {LAST}", False),
    "all rows": ("UPDATE t SET amount = -1 WHERE tenant = 5", False),
    "all other rows": (f"UPDATE t SET amount = -1 WHERE tenant = 5 AND placed < 900", True),
    "another tenant": (f"UPDATE t SET amount = -1 WHERE id = {OTHER_TENANT}", True),
    "a column that it does not read": (f"UPDATE t SET note = 'x' WHERE id = {FIRST}", True),
    "two columns": (f"UPDATE t SET note = 'x', amount = -1 WHERE id = {FIRST}", False),
    "a row that comes to the front": (f"UPDATE t SET placed = 5000 WHERE id = {BEYOND}", False),
    "a row that comes to the front, and its amount": (f"UPDATE t SET placed = 5000, amount = 1 WHERE id = {BEYOND}", False),
    "a row that comes from elsewhere": (f"UPDATE t SET tenant = 5, placed = 5000 WHERE id = {OTHER_TENANT}", False),
    "a row that goes": (f"UPDATE t SET tenant = 6 WHERE id = {FIRST}", False),
    "another key": (f"UPDATE t SET id = 10000 WHERE id = {FIRST}", False),
    "insert": ("INSERT INTO t VALUES (10000, 5, 5000, 1, 'x')", False),
    "delete": (f"DELETE FROM t WHERE id = {LAST}", False),
    "the keys of two rows exchanged": (f"UPDATE t SET id = 10000 WHERE id = {FIRST}; UPDATE t SET id = {FIRST} WHERE id = {BEYOND}", False),
    "truncate": ("TRUNCATE t", False),
    "rolled back": (f"BEGIN; SAVEPOINT s; UPDATE t SET amount = 1 WHERE id = {BEYOND}; ROLLBACK TO s; COMMIT", True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(session, other, name):
    change, kept = CHANGES[name]
    track(session)
    session.rows(NEWEST)
    session.rows(NEWEST)
    assert session.status() == "HIT"
    for step in change.split("; "):
        other.execute(step)
    hit = is_hit(session, NEWEST)
    assert kept or not hit
    outlives(hit or not kept)


# Whether they outlive an UPDATE of the amount of a row that they do not have.
QUESTIONS = {
    "offset": ("SELECT id, amount FROM t WHERE tenant = 5 ORDER BY placed DESC, id LIMIT 3 OFFSET 2", True),
    "an expression": ("SELECT id, amount * 2, upper(note) FROM t WHERE tenant = 5 ORDER BY placed DESC, id LIMIT 3", True),
    "all columns": ("SELECT * FROM t WHERE tenant = 5 ORDER BY placed DESC, id LIMIT 3", True),
    "the row itself": ("SELECT t, id FROM t WHERE tenant = 5 ORDER BY placed DESC, id LIMIT 3", False),
    "the key only in the order": ("SELECT amount FROM t WHERE tenant = 5 ORDER BY placed DESC, id LIMIT 3", True),
    "with ties": ("SELECT id, amount FROM t WHERE tenant = 5 ORDER BY placed DESC FETCH FIRST 3 ROWS WITH TIES", True),
    "no rows": ("SELECT id, amount FROM t WHERE tenant = 5 AND placed > 100000 ORDER BY placed, id LIMIT 3", True),
    "without the key": ("SELECT amount FROM t WHERE tenant = 5 ORDER BY placed DESC LIMIT 3", False),
    "in the order": ("SELECT id, amount FROM t WHERE tenant = 5 ORDER BY amount DESC, id LIMIT 3", False),
    "in an expression of the order": ("SELECT id FROM t WHERE tenant = 5 ORDER BY abs(amount - 200), id LIMIT 3", False),
    "in a condition": ("SELECT id, amount FROM t WHERE tenant = 5 AND amount >= 0 ORDER BY placed DESC, id LIMIT 3", False),
    "the row in the order": ("SELECT id, amount FROM t WHERE tenant = 5 ORDER BY t, id LIMIT 3", False),
    "too many": ("SELECT id, amount FROM t WHERE tenant = 5 ORDER BY placed DESC, id LIMIT 65", False),
    "no limit": ("SELECT id, amount FROM t WHERE tenant = 5 ORDER BY placed DESC, id", False),
    "below an aggregate": ("SELECT sum(amount) FROM (SELECT id, amount FROM t WHERE tenant = 5 ORDER BY amount, id LIMIT 3) AS s", False),
    "above an aggregate": ("SELECT placed, sum(amount) FROM t WHERE tenant = 5 GROUP BY placed ORDER BY placed DESC LIMIT 3", False),
    "of a join": ("SELECT a.id, a.amount FROM t AS a JOIN t AS b USING (amount) WHERE a.tenant = 5 AND b.tenant = 5 ORDER BY a.placed, a.id, b.id LIMIT 3", False),
    "beside a sub-query": ("SELECT id, (SELECT sum(amount) FROM t WHERE tenant = 5) FROM t WHERE tenant = 5 ORDER BY placed DESC, id LIMIT 3", False),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(session, other, name):
    question, kept = QUESTIONS[name]
    track(session)
    # Neither among the first rows by any order, nor among the last.
    check(session, other, question, f"UPDATE t SET amount = amount + 1 WHERE id = {BEYOND}", kept)
    check(session, other, question, "UPDATE t SET amount = amount + 1 WHERE tenant = 5", name == "no rows")


@pytest.mark.parametrize("index, question, kept", [
    ("tenant, placed", NEWEST.replace("placed DESC, id", "placed"), True),
    ("tenant, placed", NEWEST, True),
    ("tenant, amount", "SELECT id, placed, amount FROM t WHERE tenant = 5 ORDER BY amount LIMIT 3", False),
    ("tenant, abs(amount)", "SELECT id, placed FROM t WHERE tenant = 5 ORDER BY abs(amount) LIMIT 3", False),
    # The plan has the condition nowhere else.
    ("tenant, placed) WHERE (amount < 395", "SELECT id FROM t WHERE tenant = 5 AND amount < 395 ORDER BY placed LIMIT 3", False),
    ("tenant) WHERE (amount < 395", "SELECT id FROM t WHERE tenant = 5 AND amount < 395 ORDER BY placed LIMIT 3", False),
    ("tenant, placed) INCLUDE (note", NEWEST.replace("placed DESC, id", "placed DESC"), True),
])
def test_the_order_of_an_index(session, other, index, question, kept):
    track(session)
    session.execute(f"CREATE INDEX by_order ON t ({index}); ANALYZE t; SET enable_bitmapscan = off; SET enable_seqscan = off")
    session.execute("DROP INDEX t_tenant_idx; SET enable_sort = off")
    assert "by_order" in str(session.rows("EXPLAIN " + question))
    check(session, other, question, f"UPDATE t SET amount = amount + 1 WHERE id = {BEYOND + 600}", kept)
    # The row comes to the front.
    check(session, other, question, f"UPDATE t SET amount = 0 WHERE id = {BEYOND + 600}", kept)
    check(session, other, question, "UPDATE t SET amount = -1 WHERE tenant = 5", False)


def test_a_policy(session, other):
    """It chooses rows, too."""
    track(session)
    session.execute("""
        DO $$ BEGIN
            CREATE ROLE chooser;
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO chooser', current_schema());
        END $$;
        GRANT SELECT ON t TO chooser; CREATE POLICY p ON t USING (amount >= 0); ALTER TABLE t ENABLE ROW LEVEL SECURITY""")
    try:
        session.execute("SET ROLE chooser")
        check(session, other, "SELECT id, note FROM t WHERE tenant = 5 ORDER BY placed, id LIMIT 3", "UPDATE t SET amount = -1 WHERE tenant = 5 AND placed < 900", False)
    finally:
        session.execute("RESET ROLE; DROP TABLE t; DROP OWNED BY chooser; DROP ROLE chooser")


def test_the_key_is_tracked_by_need(session, other):
    session.execute(SETUP)
    until_tracked(session, lambda number: session.rows(f"SELECT *, {number} FROM t WHERE tenant = 5"), ["tenant"], ["amount"])
    for _ in range(20):
        session.rows(NEWEST)
        other.execute(f"UPDATE t SET amount = amount + 1 WHERE id = {BEYOND}")
    assert tracked(session) == [(["id", "tenant"], ["amount"])]
    check(session, other, NEWEST, f"UPDATE t SET amount = amount + 1 WHERE id = {BEYOND}", True)


ORDERS = ["placed DESC, id", "placed, id", "amount, id", "id", "amount % 10, placed, id", "note, id"]


@pytest.mark.parametrize("seed", range(3))
def test_at_random(session, other, seed):
    """Whatever is changed: what is served is what executing gives, and some answers are left."""
    chance = random.Random(seed)
    track(session)
    hits = 0
    for number in range(250):
        other.execute("BEGIN")
        for _ in range(chance.randint(1, 3)):
            sets = chance.sample(["amount = amount + 1", f"note = 'note {chance.randint(1, 9)}'", f"placed = {chance.randint(1, 1000)}",
                                  f"tenant = {chance.randint(1, 4)}"], chance.choice([1, 1, 2]))
            if chance.random() < 0.6:
                sets = [one for one in sets if one[0] in "an"] or ["amount = amount + 1"]
            where = chance.choice([f"id = {chance.randint(1, 2400)}", f"tenant = {chance.randint(1, 4)} AND placed < {chance.randint(1, 200)}"])
            other.execute(chance.choice([f"UPDATE t SET {', '.join(sets)} WHERE {where}"] * 9 + [f"DELETE FROM t WHERE id = {chance.randint(1, 2400)}"]))
        other.execute(chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
        for _ in range(5):
            condition = chance.choice(["", "", " AND amount > 5", " AND placed > 300"])
            columns = chance.choice(["id, amount", "*", "note, id", "amount"])
            question = f"SELECT {columns} FROM t WHERE tenant = {chance.randint(1, 4)}{condition} ORDER BY {chance.choice(ORDERS)} LIMIT {chance.choice([1, 3, 10])}"
            hits += is_hit(session, question)
    assert hits > 50
