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


def run(server, *arguments, seconds=None, port=None):
    """One run, without vacuum before it. `port` is that of a proxy in the server's socket directory."""
    where = [] if port is None else ["-p", port]
    length = [] if seconds is None else ["-T", seconds]
    command = server.client("pgbench", "-n", *where, *length, *arguments, "postgres")
    done = subprocess.run(command, env=server.environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    count = re.search(r"^number of transactions actually processed: (\d+)", done.stdout, re.MULTILINE)[1]
    tps = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)[1]
    return Run(int(count), float(tps))
