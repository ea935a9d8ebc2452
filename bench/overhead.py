"""What the extension costs statements it cannot help: throughput with it loaded against a server without it.

Servers and pgbench share one processor, so that the difference is work done and not the scheduler's luck. Throughput is
reported, but the cost is taken from the processor time that a transaction takes, client and server together: on an idle
machine that is the same thing, on a shared one it is what can be measured to a percent.
"""

import os
import re
import resource
import subprocess
from contextlib import ExitStack
from pathlib import Path

from measure import Cost, Row, Samples, alternating, markdown

HERE = Path(__file__).resolve().parent
SCALE = 10
GOAL = 0.02
PROCESSOR = 0

# `-S` selects one account by key: cacheable in itself, but far quicker than min_execution_time, so never stored.
CASES = {
    "SELECT now(), simple": ["-f", HERE / "pgbench" / "now.sql"],
    "SELECT now(), prepared": ["-M", "prepared", "-f", HERE / "pgbench" / "now.sql"],
    "pgbench -S, simple": ["-S"],
    "pgbench -S, prepared": ["-S", "-M", "prepared"],
}


def children_seconds(pid):
    """Processor time of the children that `pid` has reaped: for the postmaster, of the sessions that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def run_pgbench(server, arguments, seconds):
    """One run: (transactions per second, microseconds of processor time per transaction)."""
    postmaster = int((server.data / "postmaster.pid").read_text().split()[0])

    def spent():
        client = resource.getrusage(resource.RUSAGE_CHILDREN)
        return client.ru_utime + client.ru_stime + children_seconds(postmaster)

    command = server.client("pgbench", "-n", "-T", seconds, *arguments, "postgres")
    before = spent()
    done = subprocess.run(command, check=True, env=server.environment(), capture_output=True, text=True)
    server.psql("SELECT 1")   # by now the postmaster has reaped pgbench's session
    count = int(re.search(r"^number of transactions actually processed: (\d+)", done.stdout, re.MULTILINE)[1])
    tps = float(re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)[1])
    return tps, (spent() - before) * 1e6 / count


def preload(server, library):
    # An empty list cannot be set, it would be stored as a list of one empty name; but it is what the server began with.
    server.psql(f"ALTER SYSTEM SET shared_preload_libraries = '{library}'" if library
                else "ALTER SYSTEM RESET shared_preload_libraries")
    server.restart()


def measure_overhead(cluster_class, directory, rounds, seconds, progress):
    tps, cpu = ({name: {"A": Samples(), "B": Samples()} for name in CASES} for _ in range(2))
    with ExitStack() as stack:
        servers = []
        for number in (1, 2):
            progress(f"overhead: starting server {number} of 2")
            server = stack.enter_context(cluster_class(
                f"{directory}-{number}", preload="", cpu=PROCESSOR,
                conf={"shared_buffers": "256MB", "autovacuum": "off"}))
            load = server.client("pgbench", "-i", "-q", "-s", SCALE, "postgres")
            subprocess.run(load, check=True, env=server.environment(), capture_output=True)
            servers.append(server)
        # Two servers with the same settings differ by some percent, by where their memory happens to lie. So each of
        # them is the one with the extension for half of the rounds.
        for half, (without, with_it) in enumerate([servers, servers[::-1]], start=1):
            preload(without, "")
            preload(with_it, "pg_arrow_cache")
            sides = {"A": without, "B": with_it}
            for name, arguments in CASES.items():
                progress(f"overhead: {name}, half {half} of 2, {rounds // 2} rounds of 2 × {seconds} s")
                for server in servers:
                    run_pgbench(server, arguments, 1)
                for order in alternating(rounds // 2):
                    for side in order:
                        rate, time = run_pgbench(sides[side], arguments, seconds)
                        tps[name][side].add(rate)
                        cpu[name][side].add(time)
    rows, cells = [], []
    for name in CASES:
        cost = Cost([with_it / without - 1 for without, with_it in zip(cpu[name]["A"].values, cpu[name]["B"].values)])
        row = Row(name, cpu[name]["A"], cpu[name]["B"], str(cost), f"≤ {GOAL:.0%}", cost.median <= GOAL)
        rows.append(row)
        cells.append([name, *(f"{tps[name][side].median:,.0f}" for side in "AB"), *row.cells(2)[1:]])
    return rows, markdown(
        "Statements the cache cannot help",
        f"Transactions per second, and processor time per transaction of server and client on processor {PROCESSOR}, "
        "without and with the extension. The cost is the median of the rounds, with their middle half.",
        ["statement", "tps without", "tps with", "µs without", "spread", "µs with", "spread", "cost", "goal", "reached"],
        cells)
