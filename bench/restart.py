#!/usr/bin/env python3
"""How long a stop and a start take with a full cache, and how soon the first hit comes after it: of a primary, and of a hot standby.

    target/venv/bin/python bench/restart.py [--gigabytes 2] [--rounds 6] [--library FILE]

The same server is stopped and started by turns with `save_on_shutdown` and without it. The first statement of the first connection asks for an
answer that was stored before, and must be a hit with the same rows. Writes Markdown to the standard output. Needs memory and disk for twice
the answers.
"""

import argparse
import subprocess
import time
from dataclasses import dataclass, field

import psycopg
from measure import Samples, machine, markdown, processor_time, to_and_fro
from program import ROOT, private, progress
from session import Session, digest

ROWS = 1000
ANSWER = "SELECT id + {} AS id, pad FROM filled ORDER BY id"
TABLE = f"""
    CREATE EXTENSION IF NOT EXISTS pg_arrow_cache;
    CREATE TABLE filled AS SELECT g AS id, repeat(md5(g::text), 32) AS pad FROM generate_series(1, {ROWS}) AS g;
    VACUUM (ANALYZE) filled;
"""
PAUSE = 0.002
LONGEST = 300
WAYS = ("saved", "not saved")
GOAL_PER_GB, GOAL_FIRST_HIT = 1.0, 0.1


@dataclass
class Found:
    """Seconds."""

    stop: Samples = field(default_factory=Samples)
    start: Samples = field(default_factory=Samples)
    # Processor time of the postmaster until then.
    work: Samples = field(default_factory=Samples)
    first: Samples = field(default_factory=Samples)


def until(is_so):
    """Seconds until it is."""
    begun = time.monotonic()
    while not is_so():
        if time.monotonic() - begun > LONGEST:
            raise RuntimeError("it takes too long")
        time.sleep(PAUSE)
    return time.monotonic() - begun


class Restarted:
    def __init__(self, server):
        self.server, self.session = server, None

    def pg_ctl(self, action):
        command = [self.server.bindir / "pg_ctl", "-D", self.server.data, "-W", "-m", "fast", "-l", self.server.log, action]
        subprocess.run(private.as_server_user(command), cwd="/", env=self.server.environment(), check=True, stdout=subprocess.DEVNULL)

    def connects(self):
        try:
            self.session = Session(self.server.dsn())
        except psycopg.OperationalError:
            return False
        return True

    def stop(self):
        pid_file = self.server.data / "postmaster.pid"
        self.pg_ctl("stop")
        return until(lambda: not pid_file.exists())

    def start(self):
        self.pg_ctl("start")
        return until(self.connects)

    def fill(self, answers):
        """Stores what is missing. Returns the digest of the first answer."""
        found = None
        for number in range(answers):
            result = self.session.execute(ANSWER.format(number))
            found = found or digest(result)
        return found

    def bytes_used(self):
        return int(self.session.scalar("SELECT sum(bytes) FROM arrow_cache.entries"))


def measured(restarted, answers, rounds):
    """({way: Found}, gigabytes of answers)"""
    found = {way: Found() for way in WAYS}
    settings = (restarted.server.data / "postgresql.auto.conf").read_text()
    restarted.connects()
    restarted.fill(answers)
    for _, way in to_and_fro(WAYS, rounds):
        right = restarted.fill(answers)
        size = restarted.bytes_used() / 2**30
        if way == "not saved":
            restarted.session.execute("ALTER SYSTEM SET pg_arrow_cache.save_on_shutdown = off")
            restarted.session.execute("SELECT pg_reload_conf()")
            time.sleep(0.5)
        restarted.session.close()
        found[way].stop.add(restarted.stop())
        # Only a server that was started with the setting saves anything.
        (restarted.server.data / "postgresql.auto.conf").write_text(settings)
        found[way].start.add(restarted.start())
        found[way].work.add(processor_time(restarted.server.pid))
        begun = time.monotonic()
        result = restarted.session.execute(ANSWER.format(0))
        found[way].first.add(time.monotonic() - begun)
        status = restarted.session.status()
        if (status == "HIT") != (way == "saved"):
            raise RuntimeError(f"{way}: {status}\n{restarted.server.log.read_text()[-2000:]}")
        if digest(result) != right:
            raise RuntimeError("the answer is another one")
    return found, size


def rows_of(name, found, size):
    saved, plain = (found[way] for way in WAYS)
    for what, with_it, without in (("stop", saved.stop, plain.stop), ("start", saved.start, plain.start),
                                   ("start, processor time", saved.work, plain.work)):
        delay = (with_it.median - without.median) / size
        yield [f"{name}, {what}", f"{with_it.median:.2f} s", f"{without.median:.2f} s", f"{delay:.2f} s for each GB", f"{GOAL_PER_GB:.0f} s",
               "met" if delay <= GOAL_PER_GB else "missed"]
    first = saved.first.median
    yield [f"{name}, first statement", f"{first * 1e3:.0f} ms", f"{plain.first.median * 1e3:.0f} ms", f"{first * 1e3:.0f} ms",
           f"{GOAL_FIRST_HIT * 1e3:.0f} ms", "met" if first <= GOAL_FIRST_HIT else "missed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=6, help="an even number")
    parser.add_argument("--library", default="pg_arrow_cache", help="what is preloaded; the installed library by default")
    options = parser.parse_args()
    answers = int(options.gigabytes * 2**30 / (ROWS * 1024))
    conf = {"autovacuum": "off", "wal_level": "replica", "pg_arrow_cache.memory": f"{int(options.gigabytes * 1200 + 100)}MB",
            "pg_arrow_cache.max_entries": 2 * answers, "pg_arrow_cache.min_execution_time": 0}
    rows = []
    base = ROOT / "target" / "bench"
    with private.Cluster(base / "restart", preload=options.library, conf=conf) as primary:
        primary.psql(TABLE)
        progress("restart: primary")
        found, size = measured(Restarted(primary), answers, options.rounds)
        rows += rows_of("primary", found, size)
        # Nothing is kept of it, so that its memory is free.
        primary.psql("SELECT arrow_cache.flush()")
        with private.Standby(base / "restart-standby", primary, preload=options.library, conf=conf) as standby:
            progress("restart: standby")
            found, size = measured(Restarted(standby), answers, options.rounds)
            rows += rows_of("standby", found, size)
    print(markdown(
        "Restarts", f"{machine()}\n\n{size:.2f} GB in {answers} answers; medians of {options.rounds} rounds. *Saved* is with save_on_shutdown, *not saved* "
        "without it. A stop is over when the server's process file is gone, a start when the first connection is made.",
        ["", "saved", "not saved", "of saving", "goal", ""], rows))


if __name__ == "__main__":
    main()
