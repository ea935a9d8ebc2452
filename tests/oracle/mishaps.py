"""What befalls the servers of a pair: replay stops for a while, is slow, waits for readers or not; servers are restarted."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from standby import catch_up

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "scripts"))
import cluster  # noqa: E402  (it lives beside the other scripts)

REDO_PAUSES_US = (0, 0, 100, 500, 3000)
CONFLICT_DELAYS = ("200ms", "500ms", "2s")


class Mishaps:
    def __init__(self, run, name, number):
        self.run, self.rng = run, random.Random(f"{run.seed}:{name}")
        self.tally = run.tally(name)
        self.preloaded = False

    def standby(self):
        return psycopg.connect(self.run.dsn, autocommit=True)

    def set(self, setting, value):
        with self.standby() as connection:
            connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def feedback(self):
        self.set("hot_standby_feedback", self.rng.choice(("on", "off", "off")))

    def conflict_delay(self):
        self.set("max_standby_streaming_delay", self.rng.choice(CONFLICT_DELAYS))

    def slow_replay(self):
        self.set("slow_redo.microseconds", self.rng.choice(REDO_PAUSES_US))

    def replay_pause(self):
        with self.standby() as connection:
            # Nothing that is replayed meanwhile can end this session.
            connection.execute("SELECT pg_wal_replay_pause()")
            time.sleep(self.rng.uniform(0.02, 0.4))
            connection.execute("SELECT pg_wal_replay_resume()")

    def primary_restart(self):
        """A crash, since it is not told to anybody. By turns, the library is preloaded and it is not."""
        self.preloaded = not self.preloaded
        library = "pg_arrow_cache" if self.preloaded else ""
        self.pg_ctl(self.run.primary_data, self.rng.choice(("immediate", "immediate", "fast")), "-o",
                    f"-c shared_preload_libraries='{library}'")

    def standby_restart(self):
        """No reader comes back before everything is replayed again that was written by then. Otherwise one could see, within
        moments, changes of definitions that were long apart."""
        self.run.calm.clear()
        try:
            self.pg_ctl(self.run.standby_data, self.rng.choice(("immediate", "fast")))
            with self.standby() as standby, psycopg.connect(self.run.primary, autocommit=True) as primary:
                catch_up(standby, primary)
        finally:
            self.run.calm.set()

    def pg_ctl(self, data, mode, *options):
        command = [cluster.bindir() / "pg_ctl", "-D", data, "-w", "-t", "180", "-m", mode, "-l", Path(data).parent / "server.log", *options]
        done = subprocess.run(cluster.as_server_user([*command, "restart"]), cwd=Path(data).parent, env=dict(os.environ), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))} failed: {done.stdout}")


OFTEN = {"conflict delay": Mishaps.conflict_delay, "feedback": Mishaps.feedback, "replay paused": Mishaps.replay_pause,
         "replay slow": Mishaps.slow_replay}
SELDOM = {"primary restarted": Mishaps.primary_restart, "standby restarted": Mishaps.standby_restart}
# Seconds between two of them.
OFTEN_S, SELDOM_S = 1.5, 20


def happen(run, name, number):
    mishaps = Mishaps(run, name, number)
    next_restart, restarts = time.monotonic() + SELDOM_S / 2, list(SELDOM)
    while run.goes_on():
        if time.monotonic() < next_restart:
            kind, act = mishaps.rng.choice(list(OFTEN.items()))
        else:
            kind, act = restarts[0], SELDOM[restarts[0]]
            restarts.reverse()
            next_restart = time.monotonic() + SELDOM_S * mishaps.rng.uniform(0.5, 1.5)
        try:
            act(mishaps)
            mishaps.tally.done[kind] += 1
        except psycopg.OperationalError:   # replay may end a session of the standby at any time
            mishaps.tally.tolerated[f"{kind}: the connection was lost"] += 1
        run.wait(mishaps.rng.uniform(0, 2 * OFTEN_S))
    return mishaps.tally


def processes():
    """(name, function, arguments) of the only one."""
    return [("mishaps", happen, ())]


def kinds():
    return {*OFTEN, *SELDOM}
