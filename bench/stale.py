"""Readers that accept outdated answers beside a writer: how often the answer is computed, and whether anybody waits."""

import statistics
import threading
import time

import psycopg

from crowd import QUESTION, SERVER_CONF, TABLE, computed, run_all, writing
from measure import Goal, Part, Ratio, figure, markdown
from program import private

READERS, BOUND_S = 20, 2
# {max_stale in ms: seconds of a round}: with a bound there are few executions to count, and without one they follow each other.
BOUNDS = {0: 6, BOUND_S * 1000: 8 * BOUND_S}
EXECUTIONS_PER_S = 0.6


def hint(milliseconds):
    return f"/*+ arrow_cache(max_stale={milliseconds}) */ {QUESTION}"


def read_for(server, seconds, bound_ms):
    """Has the readers ask for a time. Returns how long each answer took, and how long it was until the last had come, in seconds."""
    sessions = [psycopg.connect(server.dsn(), autocommit=True) for _ in range(READERS)]
    took, lock, started = [], threading.Lock(), time.monotonic()
    end = started + seconds

    def one(_, session):
        own = []
        while time.monotonic() < end:
            began = time.perf_counter()
            session.execute(hint(bound_ms)).fetchall()
            own.append(time.perf_counter() - began)
            time.sleep(0.05)
        with lock:
            took.extend(own)

    run_all(one, sessions)
    lasted = time.monotonic() - started
    for session in sessions:
        session.close()
    return took, lasted


def waits(owner):
    return owner.execute("SELECT waits FROM arrow_cache.stats").fetchone()[0]


def run_time(owner):
    """How long the last stored run took, in seconds."""
    row = owner.execute("SELECT execution_time_ms / 1000 FROM arrow_cache.entries ORDER BY created_at DESC LIMIT 1").fetchone()
    return row[0] if row else 0.0


def least_rate(run_s, bound_ms):
    """The fewest executions per second if nobody is to wait: an answer is as old as its run is long when it is stored, so the next one
    has to begin that long before the bound ends."""
    left = bound_ms / 1000 - run_s
    return 1 / left if left > 0 else float("inf")


def one_round(server, owner, seconds, bound_ms):
    """(executions per second, waits, median and longest latency in ms, answers per second, time of a run in ms, the least rate) beside a writer"""
    owner.execute(hint(bound_ms)).fetchall()
    before, waited = computed(owner), waits(owner)
    with writing(server):
        took, lasted = read_for(server, seconds, bound_ms)
        run_s = run_time(owner)
    return ((computed(owner) - before) / lasted, waits(owner) - waited, statistics.median(took) * 1000, max(took) * 1000, len(took) / lasted,
            run_s * 1000, least_rate(run_s, bound_ms))


def measure_stale(directory, size, progress):
    rounds, rows, found = (1 if size.quick else 3), [], {}
    with private.Cluster(directory, conf=SERVER_CONF) as server:
        server.psql(f"CREATE EXTENSION pg_arrow_cache; {TABLE}")
        with psycopg.connect(server.dsn(), autocommit=True) as owner:
            for bound_ms, seconds in BOUNDS.items():
                progress(f"stale: {READERS} readers beside a writer, max_stale = {bound_ms} ms")
                found[bound_ms] = [one_round(server, owner, seconds, bound_ms) for _ in range(rounds)]
                medians = [statistics.median(column) for column in zip(*found[bound_ms])]
                medians[1] /= seconds
                rows.append([f"{bound_ms} ms", *(figure(value) for value in medians)])
    with_bound = found[BOUND_S * 1000]
    goals = [Goal.at_most("executions per second", Ratio([one[0] for one in with_bound]), EXECUTIONS_PER_S),
             Goal.at_most("readers that waited", Ratio([float(one[1]) for one in with_bound]), 0.0)]
    note = f"{READERS} readers ask every 50 ms, and ten changes a second are made; {rounds} rounds of {' and of '.join(map(str, BOUNDS.values()))} s."
    columns = ["max_stale", "executions per second", "waits per second", "median latency, ms", "longest, ms", "answers per second", "time of a run, ms", "least executions without waits"]
    return Part(goals, [markdown("Outdated answers that are asked for", note, columns, rows)])
