"""The server that faults happen to, and what must be true after each of them."""

import contextlib
import os
import signal
import socket
import threading
import time

import psycopg

ROWS = 60_000
# Results of some megabytes: more than fits between a server and a client that does not read.
LARGE = "SELECT a, pad FROM big ORDER BY a"
# Fills some batches at once, then computes for longer than any fault takes.
SLOW_FILL = ("SELECT a, pad FROM big UNION ALL "
             "SELECT count(*)::int, 'end' FROM big x, big y, big z WHERE x.a + y.a + z.a < 0")
# What is compared after each fault: with the cache off, as a first run, and as a hit.
QUESTIONS = ("SELECT count(*), sum(a), min(pad) FROM big", LARGE, "SELECT owner, sum(amount) FROM accounts GROUP BY owner ORDER BY owner",
             "SELECT day, count(*), sum(v) FROM parts GROUP BY day ORDER BY day", "SELECT tags, span, doc FROM shapes ORDER BY id")
SCHEMA = f"""
    CREATE EXTENSION IF NOT EXISTS pg_arrow_cache;
    CREATE TABLE big AS SELECT g AS a, repeat(chr(97 + g % 26), 100) AS pad FROM generate_series(1, {ROWS}) g;
    CREATE TABLE accounts AS SELECT g AS id, g % 7 AS owner, 0 AS amount FROM generate_series(1, 100) g;
    CREATE TABLE parts (day int, v int) PARTITION BY LIST (day);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
    INSERT INTO parts SELECT 1 + g % 2, g FROM generate_series(1, 1000) g;
    CREATE TABLE shapes AS SELECT g AS id, ARRAY['t' || g, NULL] AS tags, int4range(g, g + 5) AS span,
        jsonb_build_object('n', g) AS doc FROM generate_series(1, 200) g;
    ANALYZE;
"""
PATIENCE_S = 60


class Wrong(Exception):
    """Something that must be true is not."""


class World:
    def __init__(self, cluster):
        self.cluster = cluster
        self.checks = self.answers = 0
        # What the load has seen that must not be.
        self.broken = []
        self.opened = []
        # Threads that use a session of `opened`: an event that ends each of them, and the thread.
        self.threads = []

    def connect(self, dbname="postgres", **options):
        """A session of a fault; the server may be restarting. All are closed before the server is looked at."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                session = psycopg.connect(self.cluster.dsn(dbname), autocommit=True, prepare_threshold=None, connect_timeout=20, **options)
                self.opened.append(session)
                return session
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    raise Wrong(f"the server does not answer: {error}") from None
                time.sleep(0.02)

    def one(self, statement, *values, dbname="postgres"):
        with self.connect(dbname) as session:
            row = session.execute(statement, values or None).fetchone()
            return row[0] if row else None

    def wait_until(self, statement, *values):
        """Waits until a query says yes."""
        with self.connect() as session:
            until = time.monotonic() + PATIENCE_S
            while not session.execute(statement, values or None).fetchone()[0]:
                if time.monotonic() > until:
                    raise Wrong(f"never true: {statement} {values}")
                time.sleep(0.01)

    def close_all(self):
        for over, thread in self.threads:
            over.set()
            thread.join(PATIENCE_S)
        self.threads.clear()
        for session in self.opened:
            with contextlib.suppress(Exception):
                if session.pgconn.status == psycopg.pq.ConnStatus.OK and session.info.transaction_status == 1:
                    session.cancel()
            with contextlib.suppress(Exception):
                session.close()
        self.opened.clear()

    def check(self):
        """`check()` beside whatever goes on: it never finds anything."""
        with self.connect() as session:
            found = session.execute("SELECT part, finding, detail FROM arrow_cache.check()").fetchall()
        self.checks += 1
        if found:
            raise Wrong(f"check() finds {found}")

    def verify(self):
        """The server answers, nothing is left of sessions that have gone, the cache agrees with itself, and its answers are right."""
        self.close_all()
        with self.connect() as session:
            until = time.monotonic() + PATIENCE_S
            others = ("SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL AND pid <> pg_backend_pid() "
                      "AND backend_type = 'client backend'")
            while session.execute(others).fetchone()[0]:
                if time.monotonic() > until:
                    raise Wrong("a session does not end")
                time.sleep(0.01)
            self.check_quietly(session)
            for question in QUESTIONS:
                self.compare(session, question)
            self.check_quietly(session)
        if self.broken:
            raise Wrong(self.broken.pop())

    def check_quietly(self, session):
        """Nobody else is there, so everything is compared."""
        notices = []
        session.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        found = session.execute("SELECT part, finding, detail FROM arrow_cache.check()").fetchall()
        self.checks += 1
        if found or notices:
            raise Wrong(f"check() finds {found} {notices}")

    def compare(self, session, question, must_hit=True):
        """A question gives the same with the cache as without."""
        session.execute("SET pg_arrow_cache.enabled = off")
        expected = session.execute(question).fetchall()
        session.execute("RESET pg_arrow_cache.enabled")
        for run in range(6):
            # What others have computed on a busy machine may be worth more than this answer.
            if run == 3 and must_hit:
                session.execute("SELECT arrow_cache.flush()")
            got = session.execute(question).fetchall()
            status = session.execute("SELECT arrow_cache.last_status()").fetchone()[0]
            self.answers += 1
            if got != expected:
                raise Wrong(f"{question}: {status} gives other rows than executing it")
            if run > 0 and (status == "HIT" or not must_hit):
                return
        raise Wrong(f"{question}: {status} {session.execute('SELECT arrow_cache.last_reason()').fetchone()} instead of HIT")

    @contextlib.contextmanager
    def load(self, threads=3):
        """Sessions that write, read and check all the time. Lost connections are no error; a wrong sum is."""
        over = threading.Event()

        def work(number):
            while not over.is_set():
                try:
                    with psycopg.connect(self.cluster.dsn(), autocommit=True, connect_timeout=20) as session:
                        turn = 0
                        while not over.is_set():
                            turn += 1
                            self.work_once(session, number, turn)
                except psycopg.Error:
                    time.sleep(0.02)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        try:
            yield
        finally:
            over.set()
            for worker in workers:
                worker.join()

    def work_once(self, session, number, turn):
        if number == 0 and turn % 3 == 0:
            with session.transaction():
                session.execute("UPDATE accounts SET amount = amount - 1 WHERE id = 1")
                session.execute("UPDATE accounts SET amount = amount + 1 WHERE id = 2")
        total = session.execute("SELECT sum(amount), count(*) FROM accounts").fetchone()
        if total != (0, 100):
            self.broken.append(f"a transfer was seen in part: {total}")
        session.execute(f"SELECT a, pad FROM big WHERE a % 50 = {turn % 50} AND a > {number}").fetchall()
        if turn % 20 == 0:
            found = session.execute("SELECT part, finding, detail FROM arrow_cache.check()").fetchall()
            self.checks += 1
            if found:
                self.broken.append(f"check() finds, under load, {found}")


class Raw:
    """A session whose answer nobody reads: the server stops in the middle of sending it."""

    def __init__(self, world, dbname="postgres", **options):
        self.session = world.connect(dbname, **options)
        self.pid = self.session.info.backend_pid
        self.world = world

    def send(self, statement):
        self.session.pgconn.send_query(statement.encode())
        return self

    def wait_for(self, event):
        self.world.wait_until("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = %s)", self.pid, event)
        return self

    def wait_active(self):
        self.world.wait_until("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND state = 'active')", self.pid)
        return self

    def vanish(self):
        """The client is gone without a word."""
        with socket.socket(fileno=os.dup(self.session.pgconn.socket)) as connection:
            connection.shutdown(socket.SHUT_RDWR)

    def outcome(self):
        """Reads all; returns the SQLSTATE of the error, or nothing."""
        state = None
        while True:
            result = self.session.pgconn.get_result()
            if result is None:
                return state
            if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
                state = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"lost").decode()
                if state == "lost":
                    return state
            if result.status == psycopg.pq.ExecStatus.COPY_OUT:
                while self.session.pgconn.get_copy_data(0)[0] > 0:
                    pass


def kill(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
