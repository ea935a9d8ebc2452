"""A primary that does not preload the library, and hot standbys of it that do: private servers, which are removed on the way out."""

import os
import random
import sys
import time
from pathlib import Path

import psycopg.pq

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import cluster as private  # noqa: E402  (it lives beside the other scripts)

DATABASE = "postgres"
# Small enough for three servers on a laptop; the demo's tables fit into it.
SERVER_CONF = {
    "shared_buffers": "192MB",
    "work_mem": "32MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
    "timezone": "'UTC'",
}
CATCH_UP_TIMEOUT_S = 60
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def primary(directory):
    return private.Cluster(directory, preload="", conf=SERVER_CONF)


class Standby(private.Standby):
    """A copy of the primary that follows it. What distinguishes it is two lines: what it preloads, and how much memory that may take."""

    def __init__(self, directory, of):
        super().__init__(directory, of, slot=Path(directory).name.replace("-", "_"),
                         conf={**SERVER_CONF, "pg_arrow_cache.memory": "128MB"})

    def catch_up(self):
        """Waits until everything is replayed that the primary has committed up to now."""
        # The place of the next record may lie behind the head of a new page, which nobody sends before that record is there.
        target = self.primary.psql("SELECT pg_current_wal_flush_lsn()")
        deadline = time.monotonic() + CATCH_UP_TIMEOUT_S
        while self.psql(f"SELECT pg_last_wal_replay_lsn() >= '{target}'") != "t":
            if time.monotonic() > deadline:
                raise RuntimeError(f"a standby has not replayed {target} within {CATCH_UP_TIMEOUT_S} s: see {self.log}")
            time.sleep(0.05)

    def cpu_seconds(self):
        """Processor time of all processes of this server up to now, those that have ended among them."""
        postmaster = self.pid
        return sum(process_seconds(path, postmaster) for path in Path("/proc").glob("[0-9]*/stat"))

    def state(self):
        return self.psql("SELECT standby_state FROM arrow_cache.stats")


def process_seconds(stat, postmaster):
    """What one process has used, if it is the postmaster or a child of it. That of ended children is the postmaster's."""
    try:
        pid, _, rest = stat.read_text().partition(" ")
    except OSError:
        return 0    # it has ended meanwhile
    # The name, in parentheses, may have spaces. After it come the state, the parent, and from the twelfth on the times.
    fields = rest.rpartition(")")[2].split()
    times = fields[11:15] if int(pid) == postmaster else fields[11:13] if int(fields[1]) == postmaster else []
    return sum(map(int, times)) / TICKS_PER_SECOND


def balances_by_itself():
    """Does the client library know load_balance_hosts (16 and later)?"""
    return psycopg.pq.version() >= 160000


def connection_string(standbys, behind):
    """What an application is given: all servers, one of the standbys by turns, and the primary only if there is none."""
    balance = " load_balance_hosts=random" if balances_by_itself() else ""
    hosts = [*(standbys if balance else random.sample(standbys, len(standbys))), behind]
    return (f"host={','.join(str(host.socket_dir) for host in hosts)} port={','.join(str(host.port) for host in hosts)} "
            f"user={private.SUPERUSER} dbname={DATABASE} target_session_attrs=prefer-standby{balance}")
