"""Runs pgbench beside a private server."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent / "pgbench"


@dataclass
class Run:
    """What one run of pgbench did."""

    count: int
    tps: float


def script(name, **variables):
    """The arguments that run a script of bench/pgbench."""
    return ["-f", SCRIPTS / f"{name}.sql", *(f"-D{name}={value}" for name, value in variables.items())]


def load_accounts(server, scale):
    """pgbench's own tables."""
    command = server.client("pgbench", "-i", "-q", "-s", scale, "postgres")
    subprocess.run(command, check=True, env=server.environment(), capture_output=True)


def run(server, *arguments, seconds=None, port=None, processors=None, settling=0):
    """One run, without vacuum before it. `port` is that of a proxy in the server's socket directory; `processors` pins
    pgbench where the server does not say to which one. The rate is that after `settling` further seconds."""
    where = [] if port is None else ["-p", port]
    pin = [] if processors is None else ["taskset", "-c", processors]
    length = [] if seconds is None else ["-T", seconds + settling]
    progress = ["-P", 1] if settling else []
    command = [*pin, *server.client("pgbench", "-n", *where, *length, *progress, *arguments, "postgres")]
    done = subprocess.run(command, env=server.environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    count = re.search(r"^number of transactions actually processed: (\d+)", done.stdout, re.MULTILINE)[1]
    if settling:
        by_second = [float(tps) for tps in re.findall(r"^progress: [\d.]+ s, ([\d.]+) tps", done.stderr, re.MULTILINE)]
        return Run(int(count), (int(count) - sum(by_second[:settling])) / seconds)
    tps = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)[1]
    return Run(int(count), float(tps))
