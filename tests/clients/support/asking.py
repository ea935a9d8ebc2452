"""Sessions that ask in threads of their own, and looks at what they wait for."""

import threading
import time

import psycopg

PATIENCE_S = 60


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


def count_uses(owner):
    """Sessions add uses to an entry some time later, but at once for who looks at the entries."""
    owner.execute("SELECT count(*) FROM arrow_cache.entries")


def wait_until(what, happens):
    """Looks again and again until it gives something, and returns that."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := happens()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.005)
    return found


def until(owner, session, condition):
    """Waits until pg_stat_activity says so of a session, or of the one whose process has this number."""
    process = session if isinstance(session, int) else pid(session)
    wait_until(condition, lambda: owner.execute(f"SELECT ({condition}) IS TRUE FROM pg_stat_activity WHERE pid = %s", [process]).fetchone()[0])


def until_gone(owner, process):
    wait_until("the process ends", lambda: owner.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [process]).fetchone() is None)


def until_client_is_slow(owner, process):
    """Waits until a client that does not read keeps its session waiting."""
    until(owner, process, "wait_event = 'ClientWrite'")


def until_locked_out(owner, number=1):
    """Waits until so many sessions wait for locks."""
    wait_until("they wait for locks", lambda: owner.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0] >= number)


def waits_for_answer(owner, session):
    until(owner, session, "wait_event IN ('Extension', 'ArrowCacheFill')")
