"""Sessions that ask the same at once, so that one computes and the others wait for it (`max_wait`). What must hold from one answer to the next is checked
as by the watchers; now and then one of them is cancelled, whatever it does at that moment."""

import random
import threading
import time

from answers import STATUS, failed, failure, leave_transaction, read, send, statuses
from questions import GROUP_QUESTIONS, GROUPS, PAIRS
from watchers import check

SESSIONS = 5
SETTINGS = ("SET lock_timeout = '500ms'", "SET pg_arrow_cache.max_wait = '2s'")
# Computed once for each execution: what runs for less than some milliseconds is not waited for.
SLOW = "(SELECT count(*) FROM generate_series(1, 150000)) > 0"
CANCELLED = 0.15


class Crowd:
    def __init__(self, run, name):
        self.run, self.rng, self.tally = run, random.Random(f"{run.seed}:{name}"), run.tally(name)
        self.connections = [run.connect(*SETTINGS) for _ in range(SESSIONS)]
        self.seen = [{} for _ in range(SESSIONS)]

    def ask(self, text):
        """What each session got, and the versions that had been reached before it asked."""
        barrier, found = threading.Barrier(SESSIONS), [None] * SESSIONS

        def one(number):
            barrier.wait()
            reached = [self.run.reached(pair) for pair in PAIRS]
            # Not in one string: that would be one transaction, in which nobody waits.
            results = send(self.connections[number], [text])
            found[number] = (reached, results if failed(results) else results + send(self.connections[number], [STATUS]))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(SESSIONS)]
        for thread in threads:
            thread.start()
        if self.rng.random() < CANCELLED:
            time.sleep(self.rng.uniform(0, 0.04))
            self.rng.choice(self.connections).cancel()
        for thread in threads:
            thread.join()
        return found

    def together(self):
        pair = self.rng.choice(PAIRS)
        question = self.rng.choice(GROUP_QUESTIONS[pair])
        for number, (reached, results) in enumerate(self.ask(question.sql.format(SLOW))):
            if failed(results):
                self.tally.inconclusive[f"one of a crowd ended by {failure(results[-1]).error}"] += 1
                leave_transaction(self.connections[number])
                continue
            answer, status = results
            status = statuses(status)
            self.tally.status(*status)
            self.tally.counts["answers of a crowd"] += 1
            check(self.tally, question, read(answer).rows, status, self.seen[number], reached[PAIRS.index(pair)])


def crowd(run, name, number):
    asking = Crowd(run, name)
    while run.goes_on() and not asking.tally.has_enough():
        asking.together()
    for connection in asking.connections:
        connection.close()
    return asking.tally


def processes():
    """(name, function, arguments) of each."""
    return [("crowd", crowd, ())]


def waited(run):
    """(holds, promise, detail). Called when all of them have ended."""
    with run.connect() as connection:
        deadline = time.monotonic() + 10
        while True:
            held, waits, answered = connection.execute("SELECT claims_held, waits, waits_answered FROM arrow_cache.stats").fetchone()
            if held == 0 or time.monotonic() > deadline:
                break
            time.sleep(0.1)
    return held == 0 and answered > 0, "of those who asked at once some waited, and no claim is left", f"{waits:,} waits, {answered:,} answered, {held} claims left"
