"""A private pgpool-II in front of a private cluster, its memory cache on. `scripts/setup.sh bench` installs it."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from program import private

HERE = Path(__file__).resolve().parent
PACKAGE = "pgpool2"
PROGRAM = "/usr/sbin/pgpool"
START_SECONDS = 30


def version():
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", PACKAGE], check=True, capture_output=True,
                          text=True).stdout


class Pgpool:
    """One pgpool-II. Use it as a context manager: it is stopped and its files are removed on the way out."""

    def __init__(self, directory, server, conf=None, cpu=None):
        """`conf` adds to bench/pgpool.conf; `cpu` pins all its processes to one processor."""
        if not Path(PROGRAM).exists():
            raise RuntimeError(f"{PROGRAM} is missing; run `scripts/setup.sh bench`")
        self.server = server
        self.conf = dict(conf or {})
        self.pin = [] if cpu is None else ["taskset", "-c", str(cpu)]
        self.wanted = Path(directory)
        self.base = self.process = None
        self.port, self.pcp_port = private.free_port(), private.free_port()

    def __enter__(self):
        self.base = private.server_dir(self.wanted)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def dsn(self, dbname, user):
        # The server's socket directory is short enough for a socket's address and belongs to the right account.
        return f"host={self.server.socket_dir} port={self.port} user={user} dbname={dbname}"

    def _start(self):
        places = {
            "backend_hostname0": self.server.socket_dir, "backend_port0": self.server.port,
            "backend_data_directory0": self.server.data,
            "port": self.port, "socket_dir": self.server.socket_dir,
            "pcp_port": self.pcp_port, "pcp_socket_dir": self.server.socket_dir, "wd_ipc_socket_dir": self.base,
            "pid_file_name": self._pid_file, "logdir": self.base, "memqcache_oiddir": self.base / "oids", **self.conf,
        }
        conf = self.base / "pgpool.conf"
        conf.write_text((HERE / "pgpool.conf").read_text()
                        + "".join(f"{name} = '{value}'\n" for name, value in places.items()))
        passwords = self.base / "pcp.conf"
        passwords.touch()
        oids = self.base / "oids"
        oids.mkdir()
        if os.geteuid() == 0:
            for path in (conf, passwords, oids):
                os.chown(path, private.server_user().pw_uid, private.server_user().pw_gid)
        with open(self.base / "pgpool.log", "wb") as log:
            self.process = subprocess.Popen(
                private.as_server_user([*self.pin, PROGRAM, "-n", "-f", conf, "-F", passwords]), cwd=self.base,
                env=self.server.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait_until_ready()

    @property
    def _pid_file(self):
        return self.base / "pgpool.pid"

    def _wait_until_ready(self):
        probe = [private.bindir() / "pg_isready", "-q", "-h", self.server.socket_dir, "-p", str(self.port),
                 "-U", private.SUPERUSER]
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            if subprocess.run(probe, env=self.server.environment()).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError("pgpool did not start:\n" + (self.base / "pgpool.log").read_text(errors="replace")[-3000:])

    def stop(self):
        if self.process is not None:
            if self.process.poll() is None and self._pid_file.exists():
                # SIGINT is pgpool's fast shutdown: children are told to go and its shared memory is released.
                os.kill(int(self._pid_file.read_text().split("\0")[0]), signal.SIGINT)
            try:
                self.process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.base is not None:
            shutil.rmtree(self.base, ignore_errors=True)
