"""What the library costs statements it cannot help: a server with it against one without it.

Servers and pgbench share one processor, so that the difference is work done and not the scheduler's luck. Throughput is
reported, but the goal is judged by the processor time that a transaction takes, client and server together: on an idle
machine that is the same thing, on a shared one it is what can be measured to a percent.
"""

import os
import resource
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import transactions
from measure import Goal, Part, Ratio, Samples, alternating, markdown
from program import private
from transactions import script

SCALE = 10
PROCESSOR = 0
LOADED = 10_000
WARMING = 200
REAPING_SECONDS = 10
SERVER_CONF = {"shared_buffers": "512MB", "autovacuum": "off", "max_wal_size": "4GB", "checkpoint_timeout": "30min"}

OTHERS = f"""
    CREATE TABLE others AS SELECT id FROM generate_series(1, {LOADED}) AS id;
    CREATE INDEX ON others (id);
    ANALYZE others;
"""
TIDY = "VACUUM pgbench_branches, pgbench_tellers; TRUNCATE pgbench_history;"


@dataclass
class Case:
    name: str
    arguments: list
    goal: float
    loaded: list = None   # the script that fills the cache before each run
    tidy: bool = False
    tps: dict = field(default_factory=lambda: {side: Samples() for side in "AB"})
    time: dict = field(default_factory=lambda: {side: Samples() for side in "AB"})


def cases():
    """`-S` selects one account by key: cacheable, but far quicker than min_execution_time, so never stored."""
    quick = {"pgbench -S": ["-S"], "SELECT now()": script("now"), "SELECT 1": script("select_1")}
    for mode in ("simple", "prepared"):
        for name, arguments in quick.items():
            yield Case(f"{name}, {mode}", ["-M", mode, *arguments], 0.99)
    over_others, over_its_own = script("next_other", number=0), script("next_key", number=0, first=0, share=0)
    yield Case(f"TPC-B, {LOADED:,} entries over other tables", [], 0.98, over_others, tidy=True)
    yield Case(f"TPC-B, {LOADED:,} entries over its own", [], 0.98, over_its_own, tidy=True)


def children_seconds(pid):
    """Processor time of the children that `pid` has reaped: for the postmaster, of the sessions that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def children_faults(pid):
    """Page faults of these children."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[8])


def sessions_reaped(pid):
    """Whether the postmaster has no child left that serves or served a client: one that has ended has no title."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            title = Path(f"/proc/{child}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):   # it has ended meanwhile, before or after the file was opened
            return False
        if not title.startswith(b"postgres: ") or b"[local]" in title:
            return False
    return True


def sessions_seconds(server):
    """Processor time of the server's sessions so far, all of which have ended."""
    until = time.monotonic() + REAPING_SECONDS
    while not sessions_reaped(server.pid):
        if time.monotonic() > until:
            raise RuntimeError("a session of the server does not end")
        time.sleep(0.01)
    return children_seconds(server.pid)


def spent(server):
    """Processor time of pgbench and of the server's sessions so far, all of which have ended."""
    sessions, client = sessions_seconds(server), resource.getrusage(resource.RUSAGE_CHILDREN)
    return client.ru_utime + client.ru_stime + sessions


def measured_run(server, arguments, seconds):
    """One run: (transactions per second, microseconds of processor time per transaction)."""
    before = spent(server)
    done = transactions.run(server, *arguments, seconds=seconds)
    return done.tps, (spent(server) - before) * 1e6 / done.count


def preload(server, library):
    # An empty list cannot be set, it would be stored as a list of one empty name; but it is what the server began with.
    server.psql(f"ALTER SYSTEM SET shared_preload_libraries = '{library}'" if library
                else "ALTER SYSTEM RESET shared_preload_libraries")
    server.restart()


def load_entries(server, arguments):
    """Exactly the entries wanted."""
    server.psql("SELECT arrow_cache.flush()")
    transactions.run(server, "-t", LOADED, *arguments)
    entries = int(server.psql("SELECT entries FROM arrow_cache.stats"))
    if entries < LOADED:
        raise RuntimeError(f"{entries} entries instead of {LOADED}")


def one_run(server, case, seconds, with_it):
    if case.tidy:
        server.psql(TIDY)
    if case.loaded and with_it:
        load_entries(server, case.loaded)
    return measured_run(server, case.arguments, seconds)


def measure_half(half, sides, all_cases, size, progress):
    rounds = max(2, size.rounds // 2)
    for server in sides.values():   # the buffers are cold after the restart
        transactions.run(server, "-S", seconds=1)
    for case in all_cases:
        progress(f"overhead: {case.name}, half {half} of 2, {rounds} rounds of 2 × {size.seconds} s")
        for server in sides.values():
            transactions.run(server, "-t", WARMING, *case.arguments)
        for order in alternating(rounds):
            for side in order:
                rate, microseconds = one_run(sides[side], case, size.seconds, side == "B")
                case.tps[side].add(rate)
                case.time[side].add(microseconds)


def measure_overhead(directory, size, progress):
    all_cases = list(cases())
    with ExitStack() as stack:
        servers = []
        for number in (1, 2):
            progress(f"overhead: starting server {number} of 2")
            server = stack.enter_context(
                private.Cluster(f"{directory}-{number}", preload="", cpu=PROCESSOR, conf=SERVER_CONF))
            transactions.load_accounts(server, SCALE)
            server.psql(OTHERS)
            servers.append(server)
        # Two servers with the same settings differ by some percent, by where their memory happens to lie. So each of
        # them is the one with the library for half of the rounds.
        for half, (without, with_it) in enumerate([servers, servers[::-1]], start=1):
            preload(without, "")
            preload(with_it, "pg_arrow_cache")
            with_it.psql("CREATE EXTENSION IF NOT EXISTS pg_arrow_cache")
            measure_half(half, {"A": without, "B": with_it}, all_cases, size, progress)
    goals, rows = [], []
    for case in all_cases:
        by_time, by_clock = Ratio.of(case.time["A"], case.time["B"]), Ratio.of(case.tps["B"], case.tps["A"])
        times = (text for side in "AB" for text in (f"{case.time[side].median:,.1f}", f"{case.time[side].spread:.0%}"))
        goals.append(Goal.at_least(f"{case.name}: of the rate without the library", by_time, case.goal, "×"))
        rates = (f"{case.tps[side].median:,.0f}" for side in "AB")
        rows.append([case.name, *rates, str(by_clock), *times, str(by_time)])
    return Part(goals, [markdown(
        "Statements that are no hits",
        "Transactions per second, and microseconds of processor time per transaction of server and client on processor "
        f"{PROCESSOR}, without and with the library. *Rate* is the ratio of transactions per second; *rate by time*, "
        "by which the goals are judged, that of processor time, which other work on the machine disturbs less.",
        ["statement", "per s without", "with", "rate", "µs without", "spread", "with", "spread", "rate by time"],
        rows)])
