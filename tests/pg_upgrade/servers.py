"""Servers of two major versions, and pg_upgrade from one to the other."""

import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import cluster as private

BASE = private.ROOT / "target" / "test-pg-upgrade"
CONF = {"pg_arrow_cache.min_execution_time": "0", "pg_arrow_cache.memory": "'16MB'", "shared_buffers": "'32MB'"}


class Server(private.Cluster):
    """A cluster of one major version."""

    def __init__(self, name, major, preload="pg_arrow_cache"):
        self.major, self.pg_config = major, f"/usr/lib/postgresql/{major}/bin/pg_config"
        # From 18 on, a cluster has checksums unless they are declined. pg_upgrade wants both alike.
        initdb = ["--no-data-checksums"] if int(major) >= 18 else []
        super().__init__(BASE / name, preload=preload, conf=CONF, pg_config=self.pg_config, initdb=initdb)


class Upgrade:
    """Calls of pg_upgrade. `said` has what all of them have printed and logged, `logs` the files of the last one by name."""

    def __init__(self, old, new):
        self.old, self.new, self.status, self.said, self.logs = old, new, None, "", {}

    def run(self, *options):
        """Returns what it prints, with its logs."""
        logs = self.new.data / "pg_upgrade_output.d"
        shutil.rmtree(logs, ignore_errors=True)
        command = [self.new.bindir / "pg_upgrade", "-b", self.old.bindir, "-B", self.new.bindir, "-d", self.old.data, "-D", self.new.data,
                   "-U", private.SUPERUSER, "-p", private.free_port(), "-P", private.free_port(), "-s", self.new.socket_dir, *options]
        done = subprocess.run(private.as_server_user(command), cwd=self.new.base, env=self.new.environment(), text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.status = done.returncode
        # They are in a directory that the time gives its name to.
        self.logs = {str(path.relative_to(*logs.glob("*"))): path.read_text(errors="replace")
                     for path in sorted(logs.rglob("*")) if path.suffix in (".txt", ".log")}
        said = "\n".join([done.stdout, *self.logs.values()])
        self.said += said
        return said


@contextmanager
def without_extension(server, really=True):
    """The files of the extension are not installed for this server, for a while. scripts/install.sh puts them back after a crash."""
    library = Path(private.pg_config("--pkglibdir", server.pg_config), "pg_arrow_cache.so")
    folder = Path(private.pg_config("--sharedir", server.pg_config), "extension")
    files = [library, *folder.glob("pg_arrow_cache*")] if really else []
    for file in files:
        file.rename(f"{file}.aside")
    try:
        yield
    finally:
        for file in files:
            Path(f"{file}.aside").rename(file)
