"""READ COMMITTED readers of the pairs, which check what must hold from one answer to the next."""

import random
import time

import psycopg
from answers import STATUS, failed, failure, leave_transaction, read, send, statuses
from questions import GROUP_QUESTIONS, GROUPS, PAIRS, UNCACHEABLE
from standby import Replayed
from tally import NOT_BACK, ONE_VERSION, PAIRS_EQUAL

BATCH = 12
WEIGHTS = {"hot": 5, "warm": 3, "linked": 2, "late": 2, "cool": 2}


class Watcher:
    def __init__(self, run, name):
        self.run, self.rng, self.tally = run, random.Random(f"{run.seed}:{name}"), run.tally(name)
        self.replayed = Replayed(run)
        self.reconnect()

    def reconnect(self):
        """A standby that was restarted may show an earlier state once more, so nothing counts as seen."""
        self.connection, self.seen = self.run.connect("SET lock_timeout = '500ms'"), {}

    def reached(self, pair):
        """The versions that statements which are sent from now on must see."""
        if self.run.primary:
            return self.replayed.reached(self.connection).get(pair) or [0] * len(GROUPS)
        return self.run.reached(pair)

    def batch(self):
        pair = self.rng.choices(PAIRS, [WEIGHTS[p] for p in PAIRS])[0]
        asked, statements = [], []
        for _ in range(BATCH):
            question, cached = self.rng.choice(GROUP_QUESTIONS[pair]), self.rng.random() < 0.8
            asked.append((question, cached))
            statements += [question.sql.format("true" if cached else UNCACHEABLE), STATUS]
        if self.rng.random() < 0.5:
            statements = ["BEGIN ISOLATION LEVEL READ COMMITTED", *statements, "COMMIT"]
        reached = self.reached(pair)
        results = send(self.connection, statements)
        if failed(results):
            self.tally.inconclusive[f"batch ended by {failure(results[-1]).error}"] += 1
            leave_transaction(self.connection)
            return
        if statements[0].startswith("BEGIN"):
            results = results[1:-1]
        for (question, cached), answer, status in zip(asked, results[::2], results[1::2]):
            status = statuses(status)
            if cached:
                self.tally.status(*status)
            check(self.tally, question, read(answer).rows, status, self.seen, reached)


def watch(run, name, number):
    watcher = Watcher(run, name)
    while run.goes_on() and not watcher.tally.has_enough():
        try:
            watcher.batch()
        except psycopg.errors.SerializationFailure:
            # Replay has cancelled the question for its position: outside of a transaction, and nothing was compared.
            watcher.tally.inconclusive["a position was not told"] += 1
        except psycopg.OperationalError:
            if not run.lost(watcher.connection):
                raise
            watcher.tally.inconclusive["the connection was lost"] += 1
            watcher.reconnect()
        if watcher.rng.random() < 0.1:
            time.sleep(watcher.rng.uniform(0, 0.02))
    return watcher.tally


def check(tally, question, rows, status, seen, reached):
    """Checks one answer and remembers the versions in it."""
    facts = {"query": question.sql, "status": status}
    tally.counts["answers watched"] += 1
    versions = {}
    for grp, *found in rows:
        versions.setdefault(int(grp), set()).update(map(int, found))
    torn = {grp: found for grp, found in versions.items() if len(found) > 1}
    if torn:
        tally.find(PAIRS_EQUAL if question.paired else ONE_VERSION, **facts, versions=torn)
    elif len(rows) != question.rows:
        tally.find(ONE_VERSION, **facts, rows=f"{len(rows)} instead of {question.rows}")
    tally.counts["answers over two tables" if question.paired else "answers over one table"] += 1
    for grp, found in versions.items():
        least = max(seen.get((question.pair, grp), 0), reached[grp])
        if min(found) < least:
            tally.find(NOT_BACK, **facts, group=grp, version=min(found), expected_at_least=least)
        seen[question.pair, grp] = max(least, *found)


def processes():
    """(name, function, arguments) of each watcher."""
    return [("watcher 1", watch, ()), ("watcher 2", watch, ())]
