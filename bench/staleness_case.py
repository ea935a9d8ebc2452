"""What a staleness case is made of: sessions, the steps they take, and the answers they get."""

import select
import time
from dataclasses import dataclass

import psycopg
from psycopg.pq import ExecStatus

ANSWER_SECONDS = 40
SUPERUSER = "postgres"
ITEMS = """
    CREATE TABLE items (id int PRIMARY KEY, grp int NOT NULL, price numeric NOT NULL);
    INSERT INTO items SELECT n, n % 4, n * 1.25 FROM generate_series(1, 40) AS n;
"""
ITEMS_TOTAL = "SELECT grp, count(*), sum(price) FROM items GROUP BY grp ORDER BY grp"


@dataclass(frozen=True)
class Copy:
    """COPY … FROM STDIN with its data."""

    sql: str
    data: str


@dataclass(frozen=True)
class Parse:
    """A named statement of the extended protocol, prepared and not run."""

    name: str
    sql: str


@dataclass(frozen=True)
class Run:
    """Binds and runs what Parse prepared."""

    name: str
    parameters: tuple = ()


@dataclass(frozen=True)
class By:
    """A step of another session than the default one.

    `writer` and `admin` (a superuser) go through the system under test like `here` and `there`; `server` does not.
    `reader` is the one of `here` and `there` that asks at the end.
    """

    who: str
    step: object


@dataclass(frozen=True)
class Case:
    """One way to change data, its meaning, or who may see it.

    The query is asked by `here` and `there` until it is served from the cache. Then the change is made, by `here` where
    nothing else is said, and one of the two asks again: once `here` and, in a database of its own, once `there`.
    The truth is what a session straight at the server answers, which took the same `state`, `opened` and `context`
    steps.
    """

    name: str
    query: object = ITEMS_TOTAL  # SQL, or Run for a statement that `state` has parsed
    change: tuple = ()
    setup: str = ITEMS
    state: tuple = ()            # by `here`, `there` and the truth, before the query is asked for the first time
    prepare: tuple = ()          # by `here` alone, at that time
    opened: tuple = ()           # by the reader, before the change
    context: tuple = ()          # by the reader, after the change
    user: str = SUPERUSER        # of `here`, `there` and the truth
    answer_changes: bool = True  # whether a right answer after the change differs from the one before
    uncacheable: str = ""        # why this extension rightly declines the query, where it does
    cleanup: tuple = ()          # straight at the server, at the end
    note: str = ""


def by(who, *steps):
    return tuple(By(who, step) for step in steps)


@dataclass(frozen=True)
class Answer:
    """What a client gets: columns and rows to the byte, or the SQLSTATE of an error."""

    columns: tuple = ()
    rows: tuple = ()
    sqlstate: str = ""

    def __str__(self):
        return f"error {self.sqlstate}" if self.sqlstate else " ".join(map(str, self.rows))


class StepFailed(Exception):
    """A step raised an error, or was not answered."""


class Session:
    """A connection that takes steps. No answer within ANSWER_SECONDS is an error: a proxy must not hang the run."""

    def __init__(self, dsn):
        self.connection = psycopg.connect(dsn, autocommit=True, connect_timeout=ANSWER_SECONDS)
        self.pg = self.connection.pgconn

    def close(self):
        self.connection.close()

    def ask(self, query):
        self._send(query)
        return self._answer()

    def take(self, step):
        """A step that has to succeed."""
        self._send(step)
        answer = self._answer(step.data if isinstance(step, Copy) else "")
        if answer.sqlstate:
            raise StepFailed(f"{answer.sqlstate}: {self.message}")
        return answer

    def _send(self, step):
        if isinstance(step, Parse):
            self.pg.send_prepare(step.name.encode(), step.sql.encode())
        elif isinstance(step, Run):
            self.pg.send_query_prepared(step.name.encode(), [str(value).encode() for value in step.parameters])
        else:
            self.pg.send_query((step.sql if isinstance(step, Copy) else step).encode())

    def _answer(self, copy_data=""):
        answer = Answer()
        until = time.monotonic() + ANSWER_SECONDS
        self.message = ""
        while (result := self._next_result(until)) is not None:
            if result.status == ExecStatus.FATAL_ERROR:
                self.message = result.error_message.decode(errors="replace").strip()
                # A proxy may send an error without a code.
                answer = Answer(sqlstate=(result.error_field(ord("C")) or b"?????").decode())
            elif result.status == ExecStatus.COPY_IN:
                self.pg.put_copy_data(copy_data.encode())
                self.pg.put_copy_end()
            elif result.status == ExecStatus.TUPLES_OK and not answer.sqlstate:
                columns = range(result.nfields)
                answer = Answer(tuple((result.fname(column), result.ftype(column)) for column in columns),
                                tuple(tuple(result.get_value(row, column) for column in columns)
                                      for row in range(result.ntuples)))
        return answer

    def _next_result(self, until):
        self.pg.flush()
        while self.pg.is_busy():
            if not select.select([self.pg.socket], [], [], max(0, until - time.monotonic()))[0]:
                raise StepFailed(f"no answer within {ANSWER_SECONDS} s")
            self.pg.consume_input()
        return self.pg.get_result()
