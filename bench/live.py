#!/usr/bin/env python3
"""Sessions that wait for changes of answers (`arrow_cache.wait`) beside a writer: what they cost it, and how soon after a commit they are told.

    target/venv/bin/python bench/live.py [--sessions 100] [--tokens 10] [--rate 500] [--seconds 10] [--counted 20]

Each session waits for some tokens, each of the page of one tenant out of a thousand; a session whose tokens have changed takes new ones and waits again.
The writer changes pages of random tenants. First callgrind counts the instructions of its session for a transaction: while nobody waits, while others
wait for other pages, and for those that it changes. Then it commits at a fixed rate, and it is measured when the clients hear of each commit.
Writes Markdown to the standard output.
"""

import argparse
import multiprocessing
import random
import select
import time
from bisect import bisect_right
from collections import defaultdict

from callgrind import EXECUTIONS, by_function, instructions, per_execution, under_callgrind
from measure import machine, markdown
from program import ROOT, private, progress
from session import Session

TENANTS = 1000
PAGE = "SELECT v FROM pages WHERE tenant = {}"
TABLE = f"""
    CREATE TABLE pages (tenant int PRIMARY KEY, v int) WITH (fillfactor = 50);
    INSERT INTO pages SELECT n, 0 FROM generate_series(1, {TENANTS}) AS n;
    VACUUM ANALYZE pages;
"""
WRITE = "UPDATE pages SET v = v + 1 WHERE tenant = $1"
WARMING = 50
OF_WAITING = "awaited::", "waking::", "wake_process", "SetLatch"
PROCESSES = 2           # of clients
SOON = 0.005
CONF = {"shared_buffers": "128MB", "autovacuum": "off", "pg_arrow_cache.memory": "64MB", "pg_arrow_cache.min_execution_time": "0"}


def etag(session, tenant):
    """A token of a tenant's page, as soon as there is one."""
    while True:
        result = session.execute(f"SELECT arrow_cache.etag('{PAGE.format(tenant)}')")
        if result.get_value(0, 0) is not None:
            return result.get_value(0, 0).decode()


class Waiting:
    """A session that waits for tokens of some tenants."""

    def __init__(self, dsn, tenants):
        self.session = Session(dsn)
        self.tokens, self.taken = {}, {}
        self.take(tenants)
        self.wait()

    def take(self, tenants):
        for tenant in tenants:
            self.tokens[tenant] = etag(self.session, tenant)
            self.taken[tenant] = time.monotonic()

    def wait(self):
        tokens = "{" + ",".join(self.tokens.values()) + "}"
        self.session.connection.pgconn.send_query(f"CALL arrow_cache.wait('{tokens}'::text[], '10 min')".encode())

    def changed(self):
        """The tenants whose pages may have changed, when the session has said so."""
        connection = self.session.connection.pgconn
        connection.consume_input()
        found = connection.get_result().get_value(0, 0).decode().strip("{}").split(",")
        while connection.get_result():
            pass
        return [tenant for tenant, token in self.tokens.items() if token in found]


def wait_in_process(dsn, groups, said, stop):
    """Sessions for groups of tenants, in a process of their own. Tells for each change that one hears of: [(tenant, its token was taken, heard)]."""
    waiting = [Waiting(dsn, tenants) for tenants in groups]
    by_socket = {one.session.connection.pgconn.socket: one for one in waiting}
    heard = []
    said.send("ready")
    while not stop.is_set():
        ready, _, _ = select.select(list(by_socket), [], [], 0.1)
        now = time.monotonic()
        for socket in ready:
            one = by_socket[socket]
            tenants = one.changed()
            heard += [(tenant, one.taken[tenant], now) for tenant in tenants]
            one.take(tenants)
            one.wait()
    said.send(heard)
    for one in waiting:
        one.session.connection.pgconn.get_cancel().cancel()
        one.session.close()


class Crowd:
    """All sessions that wait."""

    def __init__(self, dsn, groups):
        self.stop, self.pipes, self.processes = multiprocessing.Event(), [], []
        for number in range(PROCESSES):
            here, there = multiprocessing.Pipe()
            process = multiprocessing.Process(target=wait_in_process, args=(dsn, groups[number::PROCESSES], there, self.stop))
            process.start()
            self.pipes.append(here)
            self.processes.append(process)
        assert [pipe.recv() for pipe in self.pipes] == ["ready"] * PROCESSES

    def end(self):
        self.stop.set()
        heard = [one for pipe in self.pipes for one in pipe.recv()]
        for process in self.processes:
            process.join()
        return heard


def write(session, tenant):
    session.execute_prepared(b"write", [str(tenant).encode()])


def instructions_of(server, out, sessions, call):
    """Instructions of the writer's session for a transaction that changes one of the lower half of all pages, in all and in what notes and wakes, beside
    `sessions` that have called something."""
    writer, others = Session(server.dsn()), [Session(server.dsn()) for _ in range(sessions)]
    writer.prepare(WRITE, b"write")
    drawn = random.Random(5)
    one = lambda: write(writer, drawn.randint(1, TENANTS // 2))  # noqa: E731
    for _ in range(WARMING):
        one()
    for number, other in enumerate(others):
        other.connection.pgconn.send_query(call(other, number + 1).encode())
    pid = writer.pid
    whole = instructions(per_execution(writer, out, [one]))
    parts = by_function(out / f"callgrind.{pid}.4")
    for other in others:
        other.connection.pgconn.get_cancel().cancel()
        other.close()
    return whole, sum(count for (name, _), count in parts.items() if any(word in name for word in OF_WAITING)) / EXECUTIONS


def nothing(_session, _number):
    """It would hold a snapshot if it slept, and nothing could be pruned."""
    return "SELECT 1"


def wait_for(first):
    """Waiting for a page of its own, behind the page `first`."""
    return lambda session, number: f"CALL arrow_cache.wait('{etag(session, first + number)}'::text, '10 min')"


def costs(sessions):
    """{way: (instructions, those of what notes and wakes)}"""
    half = TENANTS // 2
    ways = {"nobody waits, {} are idle": (sessions, nothing), "one waits for another page": (1, wait_for(half)), "{} wait for other pages": (sessions, wait_for(half)),
            f"{{}} wait for one page in {half} each": (sessions, wait_for(0))}
    conf = {**CONF, "max_connections": str(sessions + 20)}
    with under_callgrind(ROOT / "target" / "bench-live-instructions", conf, "CREATE EXTENSION pg_arrow_cache;" + TABLE) as (server, out):
        track(server)
        # The first to write finds the pages otherwise than all others.
        instructions_of(server, out, 0, nothing)
        return {way.format(sessions): instructions_of(server, out, *how) for way, how in ways.items()}


def track(server):
    """Has changes of the pages' values tracked."""
    session = Session(server.dsn())
    session.prepare(WRITE, b"write")
    for tenant in range(1, 41):
        session.execute(PAGE.format(tenant))
        write(session, tenant)
    assert session.scalar("SELECT count(*) FROM arrow_cache.tracked") == "1", "values are not tracked"
    session.close()


def latencies(server, writer, groups, rate, seconds):
    """Seconds from the end of each commit, as its client heard of it, to when a waiting client heard of it; and how many transactions there were."""
    crowd, commits, drawn = Crowd(server.dsn(), groups), defaultdict(list), random.Random(7)
    began = time.monotonic()
    for number in range(rate * seconds):
        time.sleep(max(0, began + number / rate - time.monotonic()))
        tenant, sent = drawn.randint(1, TENANTS), time.monotonic()
        write(writer, tenant)
        commits[tenant].append((sent, time.monotonic()))
    lasted = time.monotonic() - began
    time.sleep(0.5)
    found = []
    for tenant, taken, heard in crowd.end():
        later = bisect_right(commits[tenant], (taken,))
        # A commit that was under way when the token was taken tells nothing.
        if later < len(commits[tenant]):
            found.append(heard - commits[tenant][later][1])
    return found, rate * seconds / lasted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=10)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--counted", type=int, default=20, help="sessions under callgrind")
    options = parser.parse_args()
    drawn = random.Random(3)
    groups = [drawn.sample(range(1, TENANTS + 1), options.tokens) for _ in range(options.sessions)]
    progress("instructions")
    found = costs(options.counted)
    progress("latencies")
    conf = {**CONF, "max_connections": str(options.sessions + 20)}
    with private.Cluster(ROOT / "target" / "bench-live", preload="pg_arrow_cache", conf=conf) as server:
        server.psql("CREATE EXTENSION pg_arrow_cache;" + TABLE)
        track(server)
        writer = Session(server.dsn())
        writer.prepare(WRITE, b"write")
        told, rate = latencies(server, writer, groups, options.rate, options.seconds)
    told.sort()
    print(markdown("Beside waiting sessions", machine(), ["beside a writer that updates one row at a time", "instructions of a transaction", "to note and to wake", "as a share"],
                   [[way, f"{whole:,.0f}", f"{part:,.1f}", f"{part / whole:.2%}"] for way, (whole, part) in found.items()]))
    print(f"{options.sessions} sessions, each of which waits for {options.tokens} of {TENANTS} tokens:", end=" ")
    soon = sum(one <= SOON for one in told) / len(told)
    print(f"{rate:.0f} commits a second: {len(told)} times a client heard of one, {soon:.1%} within {SOON * 1e3:.0f} ms of the commit;"
          f" median {told[len(told) // 2] * 1e3:.2f} ms, 99th of a hundred {told[len(told) * 99 // 100] * 1e3:.2f} ms.")


if __name__ == "__main__":
    main()
