"""Many sessions that ask the same outdated question at once: how often it is computed, and how long they wait."""

import statistics
import threading
import time
from contextlib import contextmanager

import psycopg

from measure import Goal, Part, Ratio, figure, markdown, processor_time
from program import private

QUESTION = "SELECT shop, count(*), sum(amount), max(at) FROM sale GROUP BY shop ORDER BY shop"
ROWS = 1_200_000
TABLE = f"""CREATE TABLE sale AS SELECT g % 50 AS shop, g * 1.5::float8 AS amount, timestamptz '2024-01-01' + g * interval '1 minute' AS at
    FROM generate_series(1, {ROWS}) g; CREATE INDEX ON sale (at); VACUUM ANALYZE sale"""
OUTDATE = "UPDATE sale SET amount = amount WHERE at = '2024-01-01 00:01:00+00'"
SERVER_CONF = {"shared_buffers": "512MB", "autovacuum": "off", "max_parallel_workers_per_gather": "0", "max_connections": "150", "jit": "off",
               "timezone": "UTC"}
CROWDS, ARRIVALS = (16, 100), {"at once": 0.0, "spread over 1 s": 1.0}
ROUNDS = 5
WRITES_PER_S, WRITER_CROWD, WRITING_SECONDS = 10, 16, 3
EXECUTIONS, CPU, LATENCY = 1.2, 1.5, 1.5


class Crowd:
    """Sessions that ask in threads of their own."""

    def __init__(self, server, count, max_wait):
        options = f"-c pg_arrow_cache.max_wait={max_wait}"
        self.sessions = [psycopg.connect(server.dsn(), autocommit=True, options=options) for _ in range(count)]
        for session in self.sessions:
            session.execute("SELECT 1")

    def close(self):
        for session in self.sessions:
            session.close()

    def processor_time(self):
        return sum(processor_time(session.info.backend_pid) for session in self.sessions)

    def ask(self, arrival):
        """All ask once, at times spread over `arrival` seconds. Returns how long each took."""
        barrier = threading.Barrier(len(self.sessions))
        took = [0.0] * len(self.sessions)

        def one(number, session):
            barrier.wait()
            time.sleep(arrival * number / len(self.sessions))
            began = time.perf_counter()
            session.execute(QUESTION).fetchall()
            took[number] = time.perf_counter() - began

        run_all(one, self.sessions)
        return took

    def ask_for(self, seconds):
        """All ask again and again."""
        end = time.monotonic() + seconds

        def one(_, session):
            while time.monotonic() < end:
                session.execute(QUESTION).fetchall()

        run_all(one, self.sessions)


def run_all(action, sessions):
    threads = [threading.Thread(target=action, args=pair) for pair in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def computed(owner):
    return owner.execute("SELECT misses + stale FROM arrow_cache.stats").fetchone()[0]


def alone(owner):
    """What computing the answer takes one session at this moment: (seconds, seconds of processor time), the median of several."""
    owner.execute("SET pg_arrow_cache.enabled = off")
    samples = []
    for _ in range(3):
        before, began = processor_time(owner.info.backend_pid), time.perf_counter()
        owner.execute(QUESTION).fetchall()
        samples.append((time.perf_counter() - began, processor_time(owner.info.backend_pid) - before))
    owner.execute("SET pg_arrow_cache.enabled = on")
    return tuple(statistics.median(column) for column in zip(*samples))


def one_round(owner, crowd, arrival):
    """(executions, processor time in executions, 99th percentile of the latency in executions, seconds of an execution alone)"""
    owner.execute(OUTDATE)
    cost = alone(owner)
    before, spent = computed(owner), crowd.processor_time()
    took = sorted(crowd.ask(arrival))
    last = took[min(len(took) - 1, round(0.99 * len(took)))]
    return computed(owner) - before, (crowd.processor_time() - spent) / cost[1], last / cost[0], cost[0]


@contextmanager
def writing(server):
    """Somebody who changes the table ten times a second."""
    stop = threading.Event()

    def write():
        with psycopg.connect(server.dsn(), autocommit=True) as session:
            while not stop.wait(1 / WRITES_PER_S):
                session.execute(OUTDATE)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure_crowds(server, owner, rounds, progress):
    goals, rows, costs = [], [], []
    for count in CROWDS:
        crowd = Crowd(server, count, "1s")
        crowd.ask(0)
        for name, arrival in ARRIVALS.items():
            progress(f"crowd: {count} sessions, {name}")
            found = [one_round(owner, crowd, arrival) for _ in range(rounds)]
            executions, spent, latency, cost = (Ratio(list(column)) for column in zip(*found))
            costs += cost.rounds
            title = f"{count} sessions, {name}"
            goals += [Goal.at_most(f"{title}: executions after a change", Ratio([statistics.mean(executions.rounds)]), EXECUTIONS),
                      Goal.at_most(f"{title}: processor time, in executions", spent, CPU),
                      Goal.at_most(f"{title}: 99th percentile of the latency, in executions", latency, LATENCY)]
            rows.append([title, " ".join(f"{number:g}" for number in executions.rounds), str(spent), str(latency)])
        crowd.close()
    note = (f"One change, then all ask the same, {rounds} rounds. Each round is compared with executions of one session just before it, "
            f"which take {statistics.median(costs) * 1000:.0f} ms.")
    return goals, markdown("Crowds", note, ["sessions", "executions in each round", "processor time", "99th percentile"], rows)


def measure_writers(server, owner, rounds, seconds, progress):
    """Executions with and without waiting, while the table is written to."""
    counts = {wait: [] for wait in ("0", "1s")}
    for number in range(rounds):
        progress(f"crowd: {WRITER_CROWD} sessions beside a writer, round {number + 1} of {rounds}")
        for wait in list(counts)[:: 1 if number % 2 else -1]:
            crowd = Crowd(server, WRITER_CROWD, wait)
            with writing(server):
                before = computed(owner)
                crowd.ask_for(seconds)
                counts[wait].append((computed(owner) - before) / seconds)
            crowd.close()
    ratio = Ratio([with_it / without for with_it, without in zip(counts["1s"], counts["0"])])
    rows = [[f"max_wait = {wait}", figure(statistics.median(found))] for wait, found in counts.items()]
    note = f"{WRITER_CROWD} sessions ask all the time, and {WRITES_PER_S} changes a second are made: executions per second."
    return Goal.at_most("executions beside a writer, of those without waiting", ratio, 1.0), markdown("Beside a writer", note, ["setting", "executions"], rows)


def measure_crowd(directory, size, progress):
    rounds = 2 if size.quick else ROUNDS
    with private.Cluster(directory, conf=SERVER_CONF) as server:
        server.psql(f"CREATE EXTENSION pg_arrow_cache; {TABLE}")
        with psycopg.connect(server.dsn(), autocommit=True) as owner:
            goals, section = measure_crowds(server, owner, rounds, progress)
            goal, beside = measure_writers(server, owner, rounds, WRITING_SECONDS, progress)
    return Part([*goals, goal], [section, beside])
