"""What is different where writers change a primary and readers ask its standby: what was committed is seen there after it was
replayed. What follows from time on one server follows here from positions in the WAL."""

import time
from collections import deque

import psycopg

from questions import PAIRS

# Positions as numbers.
REPLAYED = "SELECT pg_last_wal_replay_lsn() - '0/0'"
FLUSHED = "SELECT pg_current_wal_flush_lsn() - '0/0'"
INSERTED = "SELECT pg_current_wal_insert_lsn() - '0/0'"
# How many earlier states of the primary a reader remembers. It needs the newest one that was replayed.
REMEMBERED = 1000
CATCH_UP_S = 60


def position(connection, query):
    return int(connection.execute(query).fetchone()[0])


def catch_up(standby, primary):
    """Waits until the standby has replayed all that the primary has written so far."""
    goal, end = position(primary, INSERTED), time.monotonic() + CATCH_UP_S
    while position(standby, REPLAYED) < goal:
        if time.monotonic() > end:
            raise RuntimeError(f"the standby does not catch up: {position(standby, REPLAYED)} instead of {goal}")
        time.sleep(0.01)


class Replayed:
    """Which versions the standby must show by now: those of which a writer had been told that they were committed, if the
    standby has replayed the WAL up to a position that the primary reached later."""

    def __init__(self, run):
        self.run, self.primary = run, None
        self.states = deque(maxlen=REMEMBERED)

    def reached(self, standby):
        """{pair: versions}. Nothing is known of a standby that has not come that far, such as one that was restarted."""
        self.look()
        replayed = position(standby, REPLAYED)
        return next((versions for there, versions in reversed(self.states) if there <= replayed), None) or {}

    def look(self):
        """The versions are read first. Their commits were on disk when they were reported, so the position is behind them, and
        a crash does not undo it."""
        versions = {pair: self.run.reached(pair) for pair in PAIRS}
        try:
            if self.primary is None:
                self.primary = psycopg.connect(self.run.primary, autocommit=True)
            self.states.append((position(self.primary, FLUSHED), versions))
        except psycopg.OperationalError:
            self.primary = None


class Ages:
    """For how long readers can have seen each of the changes that have a name."""

    def __init__(self, run):
        self.run, self.since, self.written = run, {}, {}

    def change(self, name):
        self.since[name] = time.monotonic()
        if self.run.primary:
            # Its age counts from when it is seen to be replayed; `settle` finds out.
            self.since[name], self.written[name] = float("inf"), None

    def age(self, name):
        return time.monotonic() - self.since.get(name, 0)

    def settle(self, primary):
        """To be called between two changes."""
        if not self.written:
            return
        try:
            with self.run.connect() as standby:
                replayed = position(standby, REPLAYED)
        except psycopg.OperationalError:   # replay may end a session at any time
            return
        for name, there in list(self.written.items()):
            if there is None:
                self.written[name] = position(primary, INSERTED)
            elif there <= replayed:
                self.since[name] = time.monotonic()
                del self.written[name]
