"""Sessions that ask in threads of their own, and looks at what they wait for."""

import threading
import time

import psycopg


class Asking:
    """A session that asks in a thread of its own."""

    def __init__(self, session, query, **options):
        self.session, self.rows, self.error, self.took = session, None, None, None
        self.thread = threading.Thread(target=self._ask, args=(query, options))
        self.thread.start()

    def _ask(self, query, options):
        began = time.monotonic()
        try:
            self.rows = self.session.execute(query, **options).fetchall()
        except psycopg.Error as error:
            self.error = error.sqlstate
        self.took = time.monotonic() - began

    def result(self):
        self.thread.join()
        return self.rows if self.error is None else self.error


def pid(session):
    return session.info.backend_pid


def until(owner, session, condition):
    """Waits until pg_stat_activity says so of a session."""
    deadline = time.monotonic() + 60
    while not owner.execute(f"SELECT {condition} FROM pg_stat_activity WHERE pid = %s", [pid(session)]).fetchone()[0]:
        assert time.monotonic() < deadline, condition
        time.sleep(0.005)


def waits_for_answer(owner, session):
    until(owner, session, "wait_event IN ('Extension', 'ArrowCacheFill') IS TRUE")
