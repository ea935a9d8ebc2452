"""Who reads and writes in the demo of hot standbys: threads, whose work is done by libpq and the servers."""

import collections
import functools
import threading
import time
from datetime import datetime

import psycopg

import dataset
from replicas import connection_string
from run import Dashboard, digest

# The two wide reports of the dashboard are files that one downloads. They would measure how quickly rows are sent.
PANELS = {name: sql for name, sql in dataset.queries().items() if not name.endswith("_report")}
# Its last row is that of the latest day, and shows when the last sale was.
FRESH, FRESH_COLUMN = "1_daily_sales", b"last_sale"
CACHE_OFF = "-c pg_arrow_cache.enabled=off"


class Clock:
    """The primary's clock, without asking it each time: all servers of the demo are on one machine."""

    def __init__(self, primary):
        before = time.time()
        asked = float(primary.psql("SELECT extract(epoch FROM clock_timestamp())"))
        self.ahead = asked - (before + time.time()) / 2

    def now(self):
        return time.time() + self.ahead


class Worker:
    """A thread that repeats one step until it is stopped. What a step raises ends it and is kept."""

    def __init__(self, step):
        self._step, self._stopped, self.failure = step, threading.Event(), None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while not self._stopped.is_set():
                self._step(self._stopped)
        except Exception as error:
            self.failure = error

    def tell_to_stop(self):
        self._stopped.set()

    def stop(self):
        self._stopped.set()
        self.thread.join()

    def raise_failures(self):
        if self.failure is not None:
            raise self.failure


class Writer(Worker):
    """Adds sales of this moment once a second, in one commit."""

    PAUSE_S = 1.0

    def __init__(self, primary, rows_per_second, sales):
        self.rows, self._first, self._batch = 0, sales + 1, rows_per_second
        self._connection = psycopg.connect(primary.dsn(), autocommit=True)
        super().__init__(self._add)

    def _add(self, stopped):
        started = time.monotonic()
        first = self._first + self.rows
        self._connection.execute("""
            INSERT INTO sales
            SELECT i, CURRENT_DATE, 1 + i % 50000, 1 + i % 2500, 1 + i % 200, clock_timestamp(), 1, 9.99, 0, 'web'
              FROM generate_series({}, {}) AS i""".format(first, first + self._batch - 1))
        self.rows += self._batch
        stopped.wait(self.PAUSE_S - (time.monotonic() - started))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self._connection.close()


def look_once(server, cached):
    """Reads each panel, so that neither cold buffers nor an empty cache are measured."""
    dashboard = Dashboard(f"{server.dsn()} options='{'' if cached else CACHE_OFF}'")
    for name in PANELS:
        dashboard.timed(name)
    dashboard.connection.close()


class Readers:
    """Users of the dashboard, who read it again and again, each time over a new connection. The figures are those of the time between
    entering and leaving."""

    def __init__(self, address, cached, clock, count):
        self._address, self._options, self._clock, self._count = address, "" if cached else CACHE_OFF, clock, count
        self.answers, self.durations, self.ages, self.sessions = 0, [], [], collections.Counter()
        self._lock = threading.Lock()

    def __enter__(self):
        self._started = time.monotonic()
        self._workers = [Worker(functools.partial(self._look, first)) for first in range(self._count)]
        return self

    def __exit__(self, *_):
        for worker in self._workers:
            worker.tell_to_stop()
        for worker in self._workers:
            worker.stop()
        self.seconds = time.monotonic() - self._started

    def _look(self, first, stopped):
        """Once over all panels. Each reader begins with another one, as people do."""
        dashboard = Dashboard(f"{connection_string(*self._address)} options='{self._options}'")
        try:
            with self._lock:
                self.sessions[dashboard.connection.info.port] += 1
            names = collections.deque(PANELS)
            names.rotate(-first)
            for name in names:
                elapsed_ms, result = dashboard.timed(name)
                age = self._clock.now() - newest(result) if name == FRESH else None
                with self._lock:
                    self.answers += 1
                    self.durations.append(elapsed_ms / 1000)
                    if age is not None:
                        self.ages.append(age)
                if stopped.is_set():
                    return
        finally:
            dashboard.connection.close()

    def raise_failures(self):
        for worker in self._workers:
            worker.raise_failures()


def newest(daily_sales):
    """When the last sale was, in seconds since 1970."""
    column = next(number for number in range(daily_sales.nfields) if daily_sales.fname(number) == FRESH_COLUMN)
    value = daily_sales.get_value(daily_sales.ntuples - 1, column)
    return datetime.fromisoformat(value.decode()).timestamp()


class Checker(Worker):
    """Compares answers with executed ones on one server, both under one snapshot."""

    def __init__(self, server):
        self.compared = self.hits = self.different = 0
        self._dashboard = Dashboard(server.dsn())
        super().__init__(self._compare)

    def _compare(self, _stopped):
        for name in PANELS:
            self._dashboard.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            answered = digest(self._dashboard.timed(name)[1])
            self.hits += self._dashboard.status() == "HIT"
            self._dashboard.execute("SET LOCAL pg_arrow_cache.enabled = off")
            executed = digest(self._dashboard.timed(name)[1])
            self._dashboard.execute("COMMIT")
            self.compared += 1
            self.different += answered != executed

    def stop(self):
        super().stop()
        self._dashboard.connection.close()
        self.raise_failures()
