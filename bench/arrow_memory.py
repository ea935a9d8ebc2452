"""Memory of a server process while it exports a large result."""

import re
import threading
import time
from pathlib import Path

from arrow_clients import Client, arrow
from measure import markdown

PAUSE = 0.001
CHUNK_BYTES = (64 << 10, 256 << 10, 1 << 20, 4 << 20)
QUERY = "SELECT * FROM ten_million"


def status(pid):
    """The memory lines of /proc/PID/status, in bytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    return {name: int(kilobytes) * 1024 for name, kilobytes in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}


class Peak:
    """The most private memory that a process held inside a `with` block, above what it held before."""

    def __init__(self, pid):
        self.pid = pid
        self.done = threading.Event()

    def __enter__(self):
        self.before = self.most = status(self.pid)["RssAnon"]
        self.watcher = threading.Thread(target=self._watch)
        self.watcher.start()
        return self

    def _watch(self):
        while not self.done.is_set():
            self.most = max(self.most, status(self.pid)["RssAnon"])
            time.sleep(PAUSE)

    def __exit__(self, *_):
        self.done.set()
        self.watcher.join()
        # Between two looks there may have been more. The kernel keeps the peak of all memory, shared memory included,
        # of which this process only ever touches more: what is left without it is at least as much as was private.
        after = status(self.pid)
        self.most = max(self.most, after["VmHWM"] - after["RssShmem"] - after["RssFile"])

    @property
    def growth(self):
        return self.most - self.before


def export(server, caching, expected, chunk_bytes):
    """A session of its own, so that memory kept from an earlier export hides nothing: (growth, bytes sent)."""
    client = Client(server.dsn(), caching)
    client.drained(arrow("SELECT * FROM mixed LIMIT 10"))
    with Peak(client.pid) as peak:
        size = client.drained(arrow(QUERY, chunk_bytes=chunk_bytes))
    client.expect(expected)
    client.connection.close()
    return peak.growth, size


def measure_memory(server, progress):
    admin = Client(server.dsn())
    rows = []
    for chunk_bytes in CHUNK_BYTES:
        progress(f"memory with chunk_bytes = {chunk_bytes}")
        admin.execute("SELECT arrow_cache.flush()")
        for expected, caching in {"MISS": True, "HIT": True, "BYPASS": False}.items():
            growth, size = export(server, caching, expected, chunk_bytes)
            name = f"{chunk_bytes // 1024:,} kB, {expected if caching else 'cache off'}"
            rows.append([name, f"{growth / 1024:,.0f}", f"{growth / chunk_bytes:.1f}", f"{growth / size:.2%}"])
    return [], markdown(
        f"Memory of the server's process while {size / 1e6:,.0f} MB are exported through COPY",
        "The most private memory (`RssAnon`, looked at each millisecond, and `VmHWM` without shared memory) above that "
        "of the same session before the statement.",
        ["chunk_bytes", "kB", "× chunk_bytes", "of the result"], rows)
