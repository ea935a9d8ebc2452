"""Statements on a standby that replay cancels, because they still see rows that the primary has vacuumed away."""

import threading
import time
from dataclasses import astuple, dataclass

from dashboard_load import Beat, close
from measure import Goal, Part, markdown
from session import Session
from standby_servers import Primary, Standby

ROWS = 300_000
READERS, LOOKS = 3, 2      # each reader asks for all panels so often in a second
WRITES = 4                 # per second
CONFLICT, ENDED = "canceling statement due to conflict with recovery", "terminating connection due to conflict with recovery"
LOST = "server closed the connection"
CONF = {"shared_buffers": "256MB", "autovacuum": "off", "pg_arrow_cache.min_execution_time": "0", "max_parallel_workers_per_gather": "0"}
AT_ONCE = {"max_standby_streaming_delay": "0", "hot_standby_feedback": "off"}

TABLES = f"""
    CREATE EXTENSION pg_arrow_cache;
    CREATE TABLE sales AS SELECT g AS id, g % 7 AS shop, g % 100 AS product, (g % 997)::numeric AS amount FROM generate_series(1, {ROWS}) AS g;
    CREATE TABLE visits WITH (fillfactor = 50) AS SELECT g AS id, 0 AS pages FROM generate_series(1, 1000) AS g;
    ALTER TABLE sales ADD PRIMARY KEY (id);
    VACUUM (FREEZE, ANALYZE);
"""
PANELS = [f"SELECT {column}, count(*), sum(amount) FROM sales WHERE product <> {number} GROUP BY 1 ORDER BY 1"
          for column in ("shop", "product") for number in (1, 2)]
BUSY = "UPDATE visits SET pages = pages + 1; VACUUM visits"
ITSELF = f"UPDATE sales SET amount = amount + 1 WHERE id = {ROWS // 2}; VACUUM sales"
# What the primary writes: always the one, and so often (once in so many writes) the other.
CASES = {
    "a table that no panel reads": (BUSY, None, 0),
    "the same, and the panels' table every two seconds": (BUSY, ITSELF, 2 * WRITES),
}


class Reader(threading.Thread):
    """Asks for all panels, again and again."""

    def __init__(self, standby, caching):
        super().__init__()
        self.standby, self.caching = standby, caching
        self.answers = self.cancelled = self.ended = 0
        self.error = None
        self.connect()

    def connect(self):
        self.session = Session(self.standby.dsn())
        self.session.caching(self.caching)

    def until(self, moment):
        self.moment = moment
        self.start()

    def run(self):
        beat = Beat(LOOKS)
        try:
            while time.monotonic() < self.moment:
                for query in PANELS:
                    self.ask(query)
                beat.wait()
        except Exception as error:   # told in the thread that asked for this
            self.error = error

    def ask(self, query):
        try:
            self.session.execute(query)
            self.answers += 1
        except RuntimeError as error:
            if ENDED in str(error) or LOST in str(error):
                self.ended += 1
                self.connect()
            elif CONFLICT in str(error):
                self.cancelled += 1
            else:
                raise


class Writer(threading.Thread):
    """Updates and vacuums on the primary until it is stopped."""

    def __init__(self, primary, usual, seldom, every):
        super().__init__()
        self.session, self.usual, self.seldom, self.every = Session(primary.dsn()), usual, seldom, every
        self.writes, self.stopping, self.error = 0, threading.Event(), None

    def run(self):
        beat = Beat(WRITES)
        try:
            while not self.stopping.is_set():
                self.writes += 1
                for statement in (self.seldom if self.seldom and self.writes % self.every == 0 else self.usual).split(";"):
                    self.session.execute(statement)
                beat.wait()
        except Exception as error:   # told in the thread that asked for this
            self.error = error

    def stop(self):
        self.stopping.set()
        self.join()


@dataclass
class Look:
    """What readers got, and what the standby counts."""

    answers: int
    cancelled: int
    ended: int
    hits: int
    conflicts: int
    writes: int

    def __add__(self, other):
        return Look(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other))))

    @property
    def lost(self):
        """Statements without an answer."""
        return self.cancelled + self.ended

    def cells(self):
        asked = self.answers + self.lost
        return [f"{self.writes:,}", f"{asked:,}", f"{self.hits:,}", f"{self.cancelled:,}", f"{self.ended:,}", f"{self.lost / asked:.2%}",
                f"{self.conflicts:,}"]


def counted(standby):
    """Hits, conflicts with snapshots, and connections that the server says to have ended because of conflicts."""
    # Sessions tell of conflicts when they end, or when they have been idle for a while.
    return (int(standby.psql("SELECT hits FROM arrow_cache.stats")),
            int(standby.psql("SELECT sum(confl_snapshot) FROM pg_stat_database_conflicts")),
            standby.log.read_text().count(f"FATAL:  {ENDED}"))


def look(primary, standby, case, caching, seconds):
    before = counted(standby)
    readers, writer = [Reader(standby, caching) for _ in range(READERS)], Writer(primary, *CASES[case])
    if caching:
        for query in PANELS:
            readers[0].session.execute(query)
    writer.start()
    until = time.monotonic() + seconds
    for reader in readers:
        reader.until(until)
    for reader in readers:
        reader.join()
    writer.stop()
    close([reader.session for reader in readers] + [writer.session])
    for thread in (*readers, writer):
        if thread.error:
            raise thread.error
    hits, conflicts, told = (now - then for now, then in zip(counted(standby), before))
    ended = sum(reader.ended for reader in readers)
    if ended > told:
        raise RuntimeError(f"{ended} connections were lost, of which the server has ended {told}")
    return Look(sum(reader.answers for reader in readers), sum(reader.cancelled for reader in readers), ended, hits, conflicts, writer.writes)


def measure_conflicts(directory, size, progress):
    found = {}
    with Primary(f"{directory}-primary", preload="", conf=CONF) as primary:
        primary.psql(TABLES)
        with Standby(f"{directory}-0", primary.back_up(), primary=primary, conf={**CONF, **AT_ONCE}) as standby:
            standby.catch_up()
            for number in range(size.rounds):
                progress(f"conflicts: round {number + 1} of {size.rounds}")
                for case in CASES:
                    for caching in (False, True) if number % 2 == 0 else (True, False):
                        here = look(primary, standby, case, caching, size.seconds)
                        found[case, caching] = found[case, caching] + here if (case, caching) in found else here
            standby.check_publishing()
    return report(found, size)


def report(found, size):
    goals = []
    for case in CASES:
        executed, cached = found[case, False], found[case, True]
        if not executed.lost:
            # The statements were too quick for the writers: there is nothing to compare.
            continue
        goals.append(Goal(f"statements cancelled while the primary writes {case}: with the cache, executed",
                          f"{cached.lost} and {executed.lost}", "fewer with it", cached.lost < executed.lost))
    if not goals:
        raise RuntimeError("nothing was cancelled, so the comparison shows nothing")
    rows = [[case, "cache" if caching else "executed", *look.cells()] for (case, caching), look in sorted(found.items())]
    return Part(goals, [markdown(
        "Recovery conflicts",
        f"{READERS} readers of a standby with max_standby_streaming_delay = 0 ask for {len(PANELS)} aggregates over {ROWS:,} rows {LOOKS} "
        f"times a second, for {size.rounds} × {size.seconds} seconds, while the primary updates and vacuums {WRITES} times a second. "
        "A statement is cancelled, or its connection ended if it was just done; *conflicts* is the server's own count (confl_snapshot of "
        "pg_stat_database_conflicts).",
        ["written", "panels", "writes", "asked", "hits", "cancelled", "connections ended", "of asked", "conflicts"], rows, words=2)])
