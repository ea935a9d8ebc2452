"""A server whose clock the test sets, by Debian's libfaketime. The clock stands still until it is set again, backwards too; only what
measures spans of time (CLOCK_MONOTONIC) is as it was. So no timeout of PostgreSQL may be set."""

import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

import cluster as private  # noqa: E402

# The process of pytest-xdist. Each has servers of its own.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
LIBRARY = Path(f"/usr/lib/{platform.machine()}-linux-gnu/faketime/libfaketime.so.1")


class FakedServer(private.Cluster):
    """A cluster with a clock of its own. Times are texts such as '2026-03-29 00:59:59', in UTC."""

    def __init__(self, name="clock"):
        super().__init__(ROOT / "target" / f"test-{name}-{WORKER}", conf_file=ROOT / "tests" / "clients" / "clients.conf")
        self.faked = {}

    def create(self):
        super().create()
        self.set("2026-01-01 00:00:00")
        return self

    def resume(self):
        # Whatever the server starts inherits it.
        self.faked = {"LD_PRELOAD": str(LIBRARY), "FAKETIME_TIMESTAMP_FILE": str(self.base / "clock"),
                      "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1", "TZ": "UTC"}
        try:
            super().resume()
        finally:
            self.faked = {}

    def environment(self):
        return {**super().environment(), **self.faked}

    def set(self, time):
        """Sets the clock, in one step: a backend may read the file at any moment."""
        new = self.base / "clock.new"
        new.write_text(time + "\n")
        os.chmod(new, 0o644)
        new.rename(self.base / "clock")
