"""The processes that change things: groups of rows, data of all kinds, definitions, prepared transactions."""

import itertools
import random
import time

import psycopg
from answers import UNLUCKY, failed, failure, leave_transaction, read, send
from changes import DATA_CHANGES, FAR, group_change, prepared_transaction, routine_change, uncounted_pair
from definitions import CHANGES, ON_PRIMARIES, Definitions
from questions import PAIRS
from standby import Ages

SETTINGS = "SET lock_timeout = '150ms'; SET statement_timeout = '5s'; SET client_min_messages = error"

# How long a commit takes just before it becomes visible (to be on disk) and just after (slow_commit.c), and how often
# that changes.
PAUSES_US = (0, 0, 0, 50, 200, 1000)
CHANGE_OF_PACE = 0.05

# Errors that changes cause each other: an object exists already, is gone, in use or referenced, or was
# changed meanwhile (XX000, "tuple concurrently updated"), or does not fit any more, or there was no row.
EXPECTED = UNLUCKY | {"23503", "23505", "23514", "24000", "2BP01", "42701", "42704", "42710", "42723", "42809", "42883",
                      "42P01", "42P07", "55000", "55006", "XX000", "3D000", "42P04"}
# How long a prepared transaction waits for its end, in seconds on the average.
WAITS_OF_PREPARED = (0.03, 0.03, 0.03, 0.03, 0.5)

# Those of the data writers that are more than a string of SQL.
OTHER_CHANGES = ("EXECUTE", "COPY", "COPY FREEZE", "two-phase")


class Writer:
    def __init__(self, run, name, number):
        self.run, self.name, self.number = run, name, number
        self.rng = random.Random(f"{run.seed}:{name}")
        self.tally = run.tally(name)
        self.begin = [SETTINGS]
        self.reconnect()

    def reconnect(self):
        self.connection = self.run.connect_plain(*self.begin)

    def at_the_beginning(self, statement):
        """Of this session and of each that takes its place."""
        self.begin.append(statement)
        self.connection.execute(statement)

    def repeat(self, step):
        """Until the end of the run. What a lost session was about to do is not known to be done."""
        while self.run.goes_on():
            try:
                step()
            except psycopg.OperationalError as error:
                if self.run.lost(self.connection):
                    self.tally.tolerated["a change during which the connection was lost"] += 1
                    self.reconnect()
                elif error.sqlstate in EXPECTED:   # such as a lock of a catalog that is being rewritten
                    self.tally.tolerated[f"looking around {error.sqlstate}"] += 1
                else:
                    raise
        return self.tally

    def do(self, kind, statements):
        """Runs a change as one string. Returns its results, or nothing if it failed in an expected way."""
        if self.rng.random() < CHANGE_OF_PACE:
            before, after = self.rng.choice(PAUSES_US), self.rng.choice(PAUSES_US)
            # What a writer was told is committed must outlive a restart of a primary.
            on_disk = before or self.run.primary
            send(self.connection, [f"SET synchronous_commit = {'on' if on_disk else 'off'}",
                                   f"SET commit_delay = {before}", f"SET slow_commit.microseconds = {after}"])
        results = send(self.connection, statements)
        if failed(results):
            state = failure(results[-1]).error
            message = results[-1].error_message.decode(errors="replace")
            leave_transaction(self.connection)
            if state not in EXPECTED:
                raise RuntimeError(f"{kind}: {state} {message}: {'; '.join(statements)}")
            self.tally.tolerated[f"{kind} {state}"] += 1
            return []
        self.tally.done[kind] += 1
        return results

    def shuffled(self, kinds):
        """All kinds, in a new order each time: even a short run meets each of them."""
        while True:
            order = list(kinds)
            self.rng.shuffle(order)
            yield from order

    def rest(self, mean):
        time.sleep(self.rng.expovariate(1 / mean))


def remember(run, number, pair, results):
    """The versions that a reader must see from now on, because the commit was reported. Changes that were undone are
    left out."""
    for result in results:
        answer = read(result)
        if answer.columns and answer.columns[0][0] == "grp" and len(answer.columns) == 2:
            for grp, version in answer.rows:
                if int(version) < FAR:
                    run.reach(number, pair, int(grp), int(version))


def change_groups(run, name, number, pairs, pause):
    """Bumps the versions of groups. `pause` is the mean time between two changes, in seconds; now and then it rests for
    longer, so that readers meet tables that do not change."""
    writer = Writer(run, name, number)

    def burst_of_changes():
        burst = writer.rng.randint(20, 200) if pause < 0.05 else 3
        for _ in range(burst):
            if not run.goes_on():
                break
            pair = writer.rng.choice(pairs)
            dice = writer.rng.random()
            if dice < 0.15 and pair in ("hot", "warm"):
                kind, statements = routine_change(writer.rng, pair)
            elif dice < 0.152:
                kind, statements = "uncounted", uncounted_pair(writer.rng, pair)
            else:
                kind, statements = group_change(writer.rng, pair)
            results = writer.do(f"group: {kind}", statements)
            if kind not in ("rolled back", "procedure"):
                remember(run, number, pair, results)
            writer.rest(pause)
        writer.rest(min(0.3, pause * 40))

    return writer.repeat(burst_of_changes)


def change_data(run, name, number, pause):
    writer = Writer(run, name, number)
    writer.at_the_beginning("PREPARE pay (int) AS UPDATE account SET balance = balance + $1 WHERE id = $1 % 12")
    kinds = writer.shuffled([*DATA_CHANGES, *OTHER_CHANGES])
    gids = (f"{name}-{n}" for n in itertools.count())

    def change():
        kind = next(kinds)
        try:
            if kind == "EXECUTE":
                writer.do(kind, [f"EXECUTE pay({writer.rng.randint(1, 12)})"])
            elif kind.startswith("COPY"):
                copy(writer, kind)
            elif kind == "two-phase":
                writer.do(kind, prepared_transaction(writer.rng, next(gids)))
            else:
                writer.do(kind, [DATA_CHANGES[kind](writer.rng)])
        except psycopg.Error as error:
            if error.sqlstate not in EXPECTED:
                raise
            leave_transaction(writer.connection)
            writer.tally.tolerated[f"{kind} {error.sqlstate}"] += 1
        writer.rest(pause)

    return writer.repeat(change)


def copy(writer, kind):
    rows = "".join(f"{writer.rng.randint(1, 20)}\t2024-09-09 09:09:09+00\tcopied\n" for _ in range(5))
    with writer.connection.transaction(), writer.connection.cursor() as cursor:
        if kind == "COPY FREEZE":
            cursor.execute("TRUNCATE event")
        else:
            cursor.execute("DELETE FROM event WHERE id > 10")
        with cursor.copy("COPY event FROM STDIN" + (" (FREEZE)" if kind == "COPY FREEZE" else "")) as stream:
            stream.write(rows)
    writer.tally.done[kind] += 1


def change_definitions(run, name, number, pause):
    writer = Writer(run, name, number)
    definitions = Definitions(writer.rng, Ages(run))
    kinds = writer.shuffled(changes_of_definitions(run))

    def change():
        definitions.ages.settle(writer.connection)
        kind = next(kinds)
        state = dict(definitions.toggles)
        sql = changes_of_definitions(run)[kind](definitions)
        if sql is None:
            return
        # A change may fail because it was made already: when the connection was lost, nobody learned of it.
        if not writer.do(kind, [sql]) and writer.rng.random() < 0.8:
            definitions.toggles = state
        writer.rest(pause)

    return writer.repeat(change)


def changes_of_definitions(run):
    return {**CHANGES, **(ON_PRIMARIES if run.primary else {})}


def end_prepared(run, name, number):
    """Commits or rolls back, after a while, what others have prepared."""
    writer = Writer(run, name, number)

    def end_all():
        finish_prepared(writer)
        writer.rest(0.05)

    return writer.repeat(end_all)


def finish_prepared(writer, wait=True):
    for (gid,) in writer.connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
        if wait:
            writer.rest(writer.rng.choice(WAITS_OF_PREPARED))
        ending = writer.rng.choice(("COMMIT", "COMMIT", "ROLLBACK"))
        writer.do(f"{ending} PREPARED", [f"{ending} PREPARED '{gid}'"])


def processes(pause, definitions_pause):
    """(name, function, arguments) of each writer."""
    return [
        ("hot writer 1", change_groups, (("hot",), pause)),
        ("hot writer 2", change_groups, (("hot", "hot", "hot", "warm"), pause)),
        ("group writer", change_groups, (tuple(p for p in PAIRS if p != "hot"), pause * 40)),
        ("data writer 1", change_data, (pause * 15,)),
        ("data writer 2", change_data, (pause * 25,)),
        ("definitions", change_definitions, (definitions_pause,)),
        ("prepared", end_prepared, ()),
    ]


def kinds(run):
    """The kinds of change that a run of sufficient length should have made."""
    groups = ("update", "rolled back", "function", "procedure", "DO", "MERGE", "writing WITH", "delete and insert",
              "undone in part", "subtransactions", "many subtransactions")
    endings = ("COMMIT PREPARED", "ROLLBACK PREPARED")
    return {*(f"group: {kind}" for kind in groups), *changes_of_definitions(run), *DATA_CHANGES, *OTHER_CHANGES, *endings}
