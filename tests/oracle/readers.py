"""The processes that compare cached answers with uncached ones under one snapshot.

Each comparison is a sandwich in one REPEATABLE READ transaction: uncached, cached, uncached. It finds a difference
only if both uncached answers agree and the cached one differs: a definition may change during a transaction, and then
the uncached answers differ from each other. Where no definition changes, the cached answer comes first, while the
snapshot is as recent as possible: this finds a writer that publishes too late."""

import logging
import random
import time

import psycopg
from answers import (ERRORS_OF_READERS, OFF, ON, STATUS, UNLUCKY, expect_error, failed, leave_transaction, read, send,
                     statuses)
from definitions import HOLD_S
from questions import ALL, ANY, COMBINED, DATA, DROPPED, FILTERED, HOT, STEADY, USUAL, Profile
from tally import SAME_SNAPSHOT

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ"
SETTINGS = "SET lock_timeout = '300ms'; SET statement_timeout = '10s'; SET client_min_messages = error"
BATCH = 14
# The share of turns at which a reader takes new sessions.
RECONNECTS = 0.003
OWN_WRITES = ("UPDATE account SET balance = balance + 5000 WHERE id = 3", "INSERT INTO one.stock VALUES (77, 'own')",
              "UPDATE warm_a SET version = version + 1000000 WHERE grp = 1", "DELETE FROM secret_tenant WHERE id = 2",
              "SAVEPOINT s; DELETE FROM one.stock; ROLLBACK TO s", "CREATE TABLE shadow.model (a int)",
              "INSERT INTO account_log VALUES (77, 1, 1)", "INSERT INTO two.stock VALUES (78, 'own')", "DELETE FROM animal WHERE id = 2",
              "INSERT INTO orders VALUES (77, NULL, 99)", "INSERT INTO measure VALUES (11, 'x', 1), (5, 'y', 2)")

# An error in a pipeline is expected and counted; the driver would warn of each.
logging.getLogger("psycopg").setLevel(logging.ERROR)


class Reader:
    def __init__(self, run, name, number, pipelines=True):
        self.run, self.name, self.number, self.pipelines = run, name, number, pipelines
        self.rng = random.Random(f"{run.seed}:{name}")
        self.tally = run.tally(name)
        self.failing = set()
        self.connection = self.extended_connection = None
        self.reconnect()

    def reconnect(self):
        """Two connections: DISCARD ALL would take away the statements that psycopg has prepared."""
        for old in filter(None, (self.connection, self.extended_connection)):
            old.close()
        mode = self.rng.choice(("auto", "force_generic_plan", "force_custom_plan"))
        # Until RESET ALL: a grain is used at once, or as soon as it was learned.
        grains = f"SET pg_arrow_cache.debug_force_grains = {self.rng.choice(('on', 'off'))}"
        self.connection = self.run.connect(SETTINGS, grains)
        self.extended_connection = self.run.connect(SETTINGS, f"SET plan_cache_mode = {mode}", grains)

    # -- sandwiches

    def judge(self, mode, asked, before, cached, after, seconds, status):
        """Counts one sandwich."""
        question, value, profile = asked
        if not before.same(after):
            self.tally.inconclusive["the uncached answers differ"] += 1
            return
        if before.error in UNLUCKY or cached.error in UNLUCKY:
            self.tally.inconclusive["bad luck with locks"] += 1
            return
        self.tally.compared[mode] += 1
        if status and status[0] == "HIT":
            self.tally.hits[mode] += 1
        if before.same(cached):
            return
        if "prepared" in mode and status and status[0] != "HIT":
            # It was executed by a kept plan. What it may have stored is checked by other readers.
            self.tally.inconclusive["a kept plan of PostgreSQL's own"] += 1
            return
        if seconds >= HOLD_S and not question.steady:
            self.tally.inconclusive["took too long"] += 1
            return
        self.tally.find(SAME_SNAPSHOT, query=question.text(value), asked_as=profile, protocol=mode, status=status,
                        seconds=f"{seconds:.3f}", uncached=before.error or only_in(before, cached),
                        cached=cached.error or only_in(cached, before))

    def choose(self, questions):
        question = self.rng.choice(questions)
        return question, self.rng.choice(question.values) if question.values else None

    def batch(self, questions):
        """Questions that did not fail lately; one that failed is tried again by itself."""
        profile = self.rng.choice(USUAL if self.rng.random() < 0.95 else ANY)
        chosen = []
        for question, value in (self.choose(questions) for _ in range(BATCH)):
            if (question, profile.role, profile.path) not in self.failing:
                chosen.append((question, value, profile))
            elif self.rng.random() < 0.1:
                self.alone((question, value, profile))
        return profile, chosen

    def in_one_string(self):
        """Many sandwiches in one transaction: three times the same list of questions."""
        profile, asked = self.batch(self.rng.choices((ALL, DATA, DROPPED, COMBINED, FILTERED), (0.3, 0.3, 0.1, 0.15, 0.15))[0])
        texts = [question.text(value) for question, value, _ in asked]
        dice = self.rng.random()
        session_wide, cursors, pause, own = dice < 0.1, 0.1 <= dice < 0.2, 0.2 <= dice < 0.23, 0.23 <= dice < 0.29
        serializable, prepared = 0.29 <= dice < 0.31, 0.31 <= dice < 0.41
        if self.run.primary:   # a standby has neither
            own = serializable = False
        if session_wide:
            send(self.connection, profile.statements("SET"))
        begin = "BEGIN ISOLATION LEVEL SERIALIZABLE" if serializable else BEGIN
        steps = [(None, begin)]
        if own:
            steps += [(None, s) for s in self.rng.choice(OWN_WRITES).split("; ")]
        if not session_wide:
            steps += [(None, s) for s in profile.statements("SET LOCAL")]
        uncached = [(n, text) for n, text in enumerate(texts)]
        steps += [(None, OFF), *uncached, (None, ON)]
        if pause:
            steps.append((None, f"SELECT pg_sleep({self.rng.uniform(0.001, 0.03):.4f})"))
        for n, text in uncached:
            if cursors:
                steps += [(None, f"DECLARE c NO SCROLL CURSOR FOR {text}"), (n, "FETCH ALL FROM c"), ("status", STATUS),
                          (None, "CLOSE c")]
            elif prepared:
                steps += [(None, f"PREPARE p AS {text}"), (n, "EXECUTE p"), ("status", STATUS), (None, "DEALLOCATE p")]
            else:
                steps += [(n, text), ("status", STATUS)]
        steps += [(None, OFF), *uncached, (None, "ROLLBACK" if own else "COMMIT")]
        mode = ("cursors" if cursors else "PREPARE and EXECUTE" if prepared else "own writes" if own
                else "serializable" if serializable else "one string")
        self.compare_steps(mode, steps, [asked])
        if session_wide:
            send(self.connection, ["RESET ROLE"])
            send(self.connection, [self.rng.choice(("RESET ALL", "DISCARD ALL"))])
            send(self.connection, SETTINGS.split("; "))

    def young_snapshots(self):
        """Many short transactions in one string, each with a snapshot of its own and the cached answer first."""
        questions = HOT if self.rng.random() < 0.8 else STEADY
        asked = [(*self.choose(questions), Profile()) for _ in range(BATCH)]
        steps = []
        for question, value, _ in asked:
            text = question.text(value)
            steps += [(None, BEGIN), (0, text), ("status", STATUS), (None, OFF), (0, text), (0, text), (None, "COMMIT")]
        self.compare_steps("young snapshots", steps, [[one] for one in asked], cached_first=True)

    def compare_steps(self, mode, steps, transactions, cached_first=False):
        """`steps` are labelled with the place of their question within the transaction, three times each."""
        started = time.monotonic()
        results = send(self.connection, [statement for _, statement in steps])
        seconds = time.monotonic() - started
        if failed(results) or len(results) < len(steps):
            leave_transaction(self.connection)
            # A prepared statement outlives the transaction.
            send(self.connection, ["DEALLOCATE ALL"])
            self.note_failure(steps[len(results) - 1], results[-1], transactions)
            return
        answers, seen = [], []
        for (label, _), result in zip(steps, results):
            if label == "status":
                seen.append(statuses(result))
            elif label is not None:
                answers.append(read(result))
        for status in seen:
            self.tally.status(*status)
        place = 0
        for asked in transactions:
            size = len(asked)
            first, second, third = (answers[place + part * size:place + (part + 1) * size] for part in range(3))
            if cached_first:
                first, second = second, first
            for n, one in enumerate(asked):
                self.judge(mode, one, first[n], second[n], third[n], seconds, seen[place // 3 + n])
            place += 3 * size

    def note_failure(self, step, result, transactions):
        """The transaction failed. Its question is from now on asked alone, now and then, where errors are answers."""
        label, state = step[0], expect_error(result)
        self.tally.inconclusive[f"batch ended by {state}"] += 1
        if isinstance(label, int) and state not in UNLUCKY and len(transactions) == 1:
            self.mark(transactions[0][label])
            self.alone(transactions[0][label])

    def mark(self, asked, fails=True):
        question, _, profile = asked
        (self.failing.add if fails else self.failing.discard)((question, profile.role, profile.path))

    def alone(self, asked):
        """One sandwich, statement by statement, each in a subtransaction."""
        question, value, profile = asked
        started = time.monotonic()
        begun = send(self.connection, [BEGIN, *profile.statements("SET LOCAL")])
        if failed(begun):
            self.tally.inconclusive[f"no beginning: {expect_error(begun[-1])}"] += 1
            leave_transaction(self.connection)
            return
        before = self.in_savepoint(OFF, question.text(value))
        cached = self.in_savepoint(ON, question.text(value))
        status = None
        if cached.error is None:
            results = send(self.connection, [STATUS])
            status = statuses(results[0])
            self.tally.status(*status)
        after = self.in_savepoint(OFF, question.text(value))
        leave_transaction(self.connection)
        self.mark(asked, fails=after.error is not None)
        self.judge("alone", asked, before, cached, after, time.monotonic() - started, status)

    def in_savepoint(self, setting, text):
        result = send(self.connection, [setting, "SAVEPOINT s", text])[-1]
        if failed([result]):
            expect_error(result)
            send(self.connection, ["ROLLBACK TO s"])
        return read(result)

    def extended(self):
        """Through the extended protocol: pipelined, prepared or not, text or binary, with parameters."""
        profile, asked = self.batch(ALL)
        prepare, binary, pipelined = (self.rng.random() < 0.5 for _ in range(3))
        pipelined = pipelined and self.pipelines
        connection, cursors, seen = self.extended_connection, [], []

        def ask(part):
            for question, value, _ in asked:
                cursor = connection.cursor(binary=binary)
                # Only the cached one is prepared: PostgreSQL itself may keep a plan that is out of date (it loses an
                # invalidation that arrives while a generic plan is made), and then the uncached ones would be wrong.
                cursor.execute(question.with_parameters() + (" -- uncached" if part != "cached" else ""),
                               [value] * question.sql.count("%s") or None,
                               prepare=prepare and part == "cached" and not question.as_planned)
                cursors.append(cursor)
                if part == "cached":
                    seen.append(connection.execute(STATUS))

        def whole():
            connection.execute(BEGIN)
            for statement in profile.statements("SET LOCAL"):
                connection.execute(statement)
            for part, setting in (("before", OFF), ("cached", ON), ("after", OFF)):
                connection.execute(setting)
                ask(part)
            connection.execute("COMMIT")

        started = time.monotonic()
        try:
            if pipelined:
                with connection.pipeline():
                    whole()
            else:
                whole()
        except psycopg.Error as error:
            if error.sqlstate is not None and error.sqlstate not in ERRORS_OF_READERS | {"XX000"}:
                raise
            self.tally.inconclusive[f"batch ended by {error.sqlstate or 'the error of another'}"] += 1
            if pipelined:  # the driver may believe that statements after the error were prepared, or may not leave the pipeline
                self.reconnect()
            else:
                leave_transaction(connection)
            return
        seconds = time.monotonic() - started
        answers = [read(cursor.pgresult) for cursor in cursors]
        size = len(asked)
        ways = (("prepared", prepare), ("binary", binary), ("pipelined", pipelined))
        mode = ", ".join(["extended", *(way for way, taken in ways if taken)])
        for n, one in enumerate(asked):
            status = statuses(seen[n].pgresult)
            self.tally.status(*status)
            self.judge(mode, one, answers[n], answers[size + n], answers[2 * size + n], seconds, status)


def only_in(answer, other):
    """The rows that only this answer has, or its columns where those differ."""
    if answer.columns != other.columns:
        return list(answer.columns)
    rest = list(other.rows)
    only = []
    for row in answer.rows:
        rest.remove(row) if row in rest else only.append(row)
    return only


def compare(run, name, number, young, reconnects=RECONNECTS):
    """`young`: the share of batches with young snapshots. With no `reconnects` its sessions last as long as the run; then it uses no pipelines, as an
    error in one takes a new session."""
    reader = Reader(run, name, number, pipelines=reconnects > 0)
    while run.goes_on() and not reader.tally.has_enough():
        dice = reader.rng.random()
        try:
            if dice < young:
                reader.young_snapshots()
            elif dice < young + (1 - young) * 0.85:
                reader.in_one_string()
            elif dice < 1 - reconnects:
                reader.extended()
            else:
                reader.reconnect()
        except psycopg.OperationalError:
            if not any(run.lost(connection) for connection in (reader.connection, reader.extended_connection)):
                raise
            reader.tally.inconclusive["the connection was lost"] += 1
            reader.reconnect()
    return reader.tally


def processes():
    """(name, function, arguments) of each."""
    return [(f"reader {n}", compare, (young,)) for n, young in enumerate((0.9, 0.4, 0.2, 0.2), 1)]
