"""What a transaction has changed itself is executed, and what it has not is answered from the cache, however its changes lie in savepoints. The partitions that
a change goes to, and the catalogs, are known from the server's own list alone: each lookup reads what is new there.

RANDOM_SEED=seed repeats one run."""

import os
import random

import pytest

from support.sweeps import rounds, sweep

SEEDS = [int(os.environ["RANDOM_SEED"])] if "RANDOM_SEED" in os.environ else range(rounds(5, 12))
LEAVES = range(6)
SCHEMA = """
    CREATE TABLE p (k int, n int) PARTITION BY LIST (k);
    DO $$ BEGIN FOR k IN 0..5 LOOP EXECUTE format('CREATE TABLE p_%s PARTITION OF p FOR VALUES IN (%s)', k, k); END LOOP; END $$;
    INSERT INTO p SELECT g % 6, g FROM generate_series(1, 60) g;
"""


class Transaction:
    """A transaction, and what each of its levels has changed."""

    def __init__(self, session):
        self.session = session
        self.rows = [[10] * len(LEAVES)]   # of each leaf, at each level
        self.changed = [set()]             # leaves, and 'definitions'
        session.execute("BEGIN")

    def insert(self, leaf):
        self.session.execute(f"INSERT INTO p VALUES ({leaf}, 1)")
        self.rows[-1][leaf] += 1
        self.changed[-1].add(leaf)

    def define(self, number):
        self.session.execute(f"CREATE TABLE made_{number} (a int)")
        self.changed[-1].add("definitions")

    def save(self):
        self.session.execute("SAVEPOINT s")
        self.rows.append(list(self.rows[-1]))
        self.changed.append(set())

    def release(self):
        self.session.execute("RELEASE s")
        rows, changed = self.rows.pop(), self.changed.pop()
        self.rows[-1] = rows
        self.changed[-1] |= changed

    def roll_back(self):
        """The savepoint stays."""
        self.session.execute("ROLLBACK TO s")
        self.rows[-1] = list(self.rows[-2])
        self.changed[-1] = set()

    def ask(self, leaf):
        assert self.session.rows(f"SELECT count(*) FROM p_{leaf}") == [(self.rows[-1][leaf],)]
        changed = set().union(*self.changed)
        expected = ("BYPASS", "own_ddl") if "definitions" in changed else ("BYPASS", "own_writes") if leaf in changed else ("HIT", None)
        assert self.session.outcome() == expected, (leaf, self.changed)


@sweep
@pytest.mark.parametrize("seed", SEEDS)
def test_savepoints_at_random(connect, seed):
    chance = random.Random(seed)
    session = connect(prepare_threshold=None)
    session.execute(SCHEMA)
    for _ in range(4):
        for leaf in LEAVES:
            session.execute(f"SELECT count(*) FROM p_{leaf}")
        transaction = Transaction(session)
        for step in range(60):
            depth = len(transaction.changed)
            what = chance.choices(["insert", "define", "save", "release", "roll_back", "ask"], [6, 1, 5, 3, 3, 9])[0]
            if what == "insert":
                transaction.insert(chance.choice(LEAVES))
            elif what == "define" and chance.random() < 0.3:
                transaction.define(step)
            elif what == "save" and depth < 8:
                transaction.save()
            elif what == "release" and depth > 1:
                transaction.release()
            elif what == "roll_back" and depth > 1:
                transaction.roll_back()
            elif what == "ask":
                transaction.ask(chance.choice(LEAVES))
        for leaf in LEAVES:
            transaction.ask(leaf)
        session.execute("ROLLBACK")


def test_the_same_change_again_after_another_was_undone(connect):
    """The server uses the memory of its list again: what is new can lie where something lay that was seen."""
    session = connect(prepare_threshold=None)
    session.execute(SCHEMA)
    for leaf in LEAVES:
        session.execute(f"SELECT count(*) FROM p_{leaf}")
    transaction = Transaction(session)
    transaction.save()
    for first, second in [(0, 1), (2, 3), (0, 3), (4, 5)]:
        transaction.insert(first)
        transaction.insert(second)
        for leaf in LEAVES:
            transaction.ask(leaf)
        transaction.roll_back()
        transaction.insert(second)
        for leaf in LEAVES:
            transaction.ask(leaf)
        transaction.insert(first)
        transaction.ask(first)
        transaction.roll_back()
    for leaf in LEAVES:
        transaction.ask(leaf)
    session.execute("ROLLBACK")


def test_what_one_transaction_has_changed_is_nothing_to_the_next(connect):
    session = connect(prepare_threshold=None)
    session.execute(SCHEMA)
    for end in ("ROLLBACK", "COMMIT"):
        for leaf in LEAVES:
            session.execute(f"SELECT count(*) FROM p_{leaf}")
        with_own = Transaction(session)
        with_own.insert(1)
        session.execute("SELECT count(*) FROM p_1")
        assert session.outcome() == ("BYPASS", "own_writes")
        session.execute(end)
        session.execute("BEGIN; INSERT INTO p VALUES (2, 1)")
        session.execute("SELECT count(*) FROM p_1")
        assert session.status() == ("HIT" if end == "ROLLBACK" else "STALE")
        session.execute("ROLLBACK")


def test_a_transaction_that_has_changed_too_much_gets_no_answers(connect):
    session = connect("-c pg_arrow_cache.min_execution_time=0")
    session.execute("CREATE TABLE read AS SELECT 1 AS v; CREATE TABLE much (k int) PARTITION BY LIST (k)")
    session.execute("DO $$ BEGIN FOR n IN 1..300 LOOP EXECUTE format('CREATE TABLE m%s PARTITION OF much FOR VALUES IN (%s)', n, n); END LOOP; END $$")
    question = "SELECT v FROM read"
    for _ in range(3):
        session.rows(question)
    assert session.outcome() == ("HIT", None)
    for changed, outcome in ((100, ("HIT", None)), (300, ("BYPASS", "own_writes"))):
        with session.transaction():
            session.execute(f"INSERT INTO much SELECT generate_series(1, {changed})")
            assert session.rows(question) == [(1,)]
            assert session.outcome() == outcome
    assert session.rows(question) == [(1,)]
    assert session.outcome() == ("HIT", None)
