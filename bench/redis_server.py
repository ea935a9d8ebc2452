"""A private Redis that keeps everything in memory and listens on a Unix socket only."""

import shutil
import subprocess
import time
from pathlib import Path

import redis

from program import private

PROGRAM = "/usr/bin/redis-server"
START_SECONDS = 10


class RedisServer:
    """Use it as a context manager: it is stopped and its files are removed on the way out."""

    def __init__(self, directory, cpu=None):
        if not Path(PROGRAM).exists():
            raise RuntimeError(f"{PROGRAM} is missing; run `scripts/setup.sh bench`")
        self.wanted = Path(directory)
        self.pin = [] if cpu is None else ["taskset", "-c", str(cpu)]
        self.base = self.process = None

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

    def client(self):
        return redis.Redis(unix_socket_path=str(self.socket))

    @property
    def socket(self):
        return self.base / "redis.sock"

    def _start(self):
        settings = {"port": 0, "unixsocket": self.socket, "save": "", "appendonly": "no", "dir": self.base,
                    "logfile": self.base / "redis.log"}
        arguments = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        self.process = subprocess.Popen(private.as_server_user([*self.pin, PROGRAM, *arguments]), cwd=self.base,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                self.client().ping()
                return
            except redis.ConnectionError:
                time.sleep(0.05)
        raise RuntimeError("Redis did not start")

    def stop(self):
        if self.process is not None:
            if self.process.poll() is None:
                try:
                    self.client().shutdown(nosave=True)
                except redis.ConnectionError:
                    self.process.terminate()
            try:
                self.process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.base is not None:
            shutil.rmtree(self.base, ignore_errors=True)
