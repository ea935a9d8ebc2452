"""Samples of servers: the memory of each of their processes, how full the cache is, and whether `check()` finds something."""

import json
import os
import re
import time

NOTHING_FOUND = "check() finds nothing"
MINUTE_S = 60
PROCESSES = """SELECT pid, CASE WHEN backend_type = 'client backend' THEN application_name ELSE backend_type END
    FROM pg_stat_activity WHERE backend_type NOT IN ('autovacuum worker', 'parallel worker') ORDER BY backend_start, pid"""
CONTROL = "control "
STATS = "SELECT bytes_used, bytes_total, entries, evictions FROM arrow_cache.stats"
# What pg_log_backend_memory_contexts() ends with, behind the process id of log_line_prefix.
GRAND_TOTAL = re.compile(r"\[(\d+)\].*Grand total: (\d+) bytes")


def anonymous(pid):
    """Kilobytes of a process that no file and no shared memory stands behind, or `None` when it has gone. Pages that it still has in common with
    the postmaster are in it as a whole: a share of them, as in Pss_Anon, would change whenever another session comes or goes."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            found = dict(re.findall(r"^(Anonymous|Swap): +(\d+) kB$", file.read(), re.MULTILINE))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(found["Anonymous"]) + int(found["Swap"]) if found else None


class Watched:
    """A server whose processes are sampled. Those of a control have names that say so."""

    def __init__(self, server, session, prefix=""):
        self.server, self.session, self.prefix = server, session, prefix
        self.found, self.read_up_to = [], 0

    def processes(self):
        self.found = [(self.server.pid, "postmaster"), *self.session.execute(PROCESSES).fetchall()]
        sizes = [(pid, self.prefix + name.removeprefix(self.prefix), anonymous(pid)) for pid, name in self.found]
        return [one for one in sizes if one[2] is not None]

    def ask(self):
        """How much their memory contexts take. Processes that are no sessions do not answer. What a session has beyond that was taken by malloc, as
        the library does it, or at its start."""
        for pid, _ in self.found:
            self.session.execute("SELECT pg_log_backend_memory_contexts(%s)", [pid])

    def answers(self):
        """{pid: kilobytes} of the sessions that have answered since."""
        with open(self.server.log, errors="replace") as log:
            log.seek(self.read_up_to)
            text = log.read()
            self.read_up_to = log.tell()
        return {int(pid): int(size) // 1024 for pid, size in GRAND_TOTAL.findall(text)}


def sample(run, name, number, server, control, path, interval):
    """Writes a line of JSON for each moment, until the end of the run. The sessions that it asks with are sampled, too."""
    os.environ["PGAPPNAME"] = name
    tally = run.tally(name)
    session = run.connect("SET client_min_messages = error")
    servers = [Watched(server, session), Watched(control, run.connect_to(control.dsn(), ["SET client_min_messages = error"]), CONTROL)]
    began = last_minute = time.monotonic()
    with open(path, "w") as file:
        while run.goes_on():
            now = time.monotonic()
            used, total, entries, evictions = session.execute(STATS).fetchone()
            file.write(json.dumps({"seconds": round(now - began, 1), "processes": [one for each in servers for one in each.processes()],
                                   "contexts": {pid: kb for each in servers for pid, kb in each.answers().items()},
                                   "bytes_used": used, "bytes_total": total, "entries": entries, "evictions": evictions}) + "\n")
            file.flush()
            if now - last_minute >= min(MINUTE_S, interval * 6):
                last_minute = now
                for each in servers:
                    each.ask()
                found = session.execute("SELECT part, finding, detail FROM arrow_cache.check()").fetchall()
                tally.counts["checks by the minute"] += 1
                if found:
                    tally.find(NOTHING_FOUND, found=found)
            tally.counts["samples"] += 1
            run.wait(interval - (time.monotonic() - now))
    return tally


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]
