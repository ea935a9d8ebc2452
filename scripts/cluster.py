#!/usr/bin/env python3
"""Private PostgreSQL clusters for the demo, the bench and the tests. Standard library only.

A cluster lives below target/ and is reached through a Unix socket that only its owner can open. It never touches the
system's own clusters. As a command:

    scripts/cluster.py start [--dir DIR] [--conf FILE]    start one to play with, print how to connect and to stop
    scripts/cluster.py stop DIR                           stop it and remove the directory
"""

import argparse
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PG_CONFIG = os.environ.get("PG_CONFIG", "/usr/lib/postgresql/15/bin/pg_config")
SERVER_PROGRAM = "SERVER_PROGRAM"
SUPERUSER = "postgres"

# sun_path holds 108 bytes; the server appends "/.s.PGSQL.12345" to the directory.
LONGEST_SOCKET_DIR = 80
SOCKET_PREFIX = "pgac-"

BASE_CONF = {
    "listen_addresses": "''",
    "fsync": "off",
    "full_page_writes": "off",
    "log_line_prefix": "'%m [%p] %q%a '",
}


def pg_config(option, program=PG_CONFIG):
    return subprocess.run([program, option], check=True, capture_output=True, text=True).stdout.strip()


def bindir(program=PG_CONFIG):
    return Path(pg_config("--bindir", program))


def major_version():
    return int("".join(itertools.takewhile(str.isdigit, pg_config("--version").removeprefix("PostgreSQL "))))


def server_user():
    """The account servers run under: our own, or postgres when we are root, because the server refuses root."""
    return pwd.getpwnam("postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name)


def as_server_user(command):
    """Wraps a command so that it runs as the server's account."""
    command = [str(part) for part in command]
    return ["runuser", "-u", server_user().pw_name, "--", *command] if os.geteuid() == 0 else command


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def server_dir(wanted):
    """Creates an empty directory that the server's account can use: `wanted`, or one under /tmp where a parent of
    `wanted` is closed to that account (a checkout in root's home, for one)."""
    user = server_user()
    wanted = Path(wanted)
    if wanted.exists():
        Cluster.discard(wanted)
    wanted.mkdir(parents=True)
    os.chmod(wanted, 0o700)
    if os.geteuid() != 0:
        return wanted
    os.chown(wanted, user.pw_uid, user.pw_gid)
    if subprocess.run(as_server_user(["test", "-w", wanted]), cwd="/").returncode == 0:
        return wanted
    wanted.rmdir()
    elsewhere = Path(tempfile.mkdtemp(prefix=f"pg_arrow_cache-{wanted.name}-", dir="/tmp"))
    os.chown(elsewhere, user.pw_uid, user.pw_gid)
    return elsewhere


class Cluster:
    """One private server. Use it as a context manager: it is stopped and removed on the way out."""

    def __init__(self, directory, *, preload="pg_arrow_cache", conf=None, conf_file=None, cpu=None,
                 postgres=None, pg_config=PG_CONFIG, initdb=()):
        """`cpu` pins the server to one processor; `conf` overrides settings; `conf_file` is appended as it is;
        `postgres` is a program to start in the server's place, with its arguments, by default that of the variable
        SERVER_PROGRAM; `pg_config` is that of another server than PG_CONFIG; `initdb` are further options of that program."""
        self.wanted = Path(directory)
        self.preload = preload
        self.conf = dict(conf or {})
        self.conf_file = conf_file
        postgres = postgres or os.environ.get(SERVER_PROGRAM)
        self.postgres = [] if postgres is None else ["-p", postgres]
        self.pin = [] if cpu is None else ["taskset", "-c", str(cpu)]
        self.bindir, self.initdb = bindir(pg_config), list(initdb)
        self.port = free_port()
        self.base = self.socket_dir = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    @property
    def data(self):
        return self.base / "data"

    @property
    def log(self):
        return self.base / "server.log"

    def create(self):
        """Makes the data directory, and starts nothing."""
        self.base = server_dir(self.wanted)
        self.socket_dir = self.base
        if len(str(self.base)) > LONGEST_SOCKET_DIR:
            self.socket_dir = Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX, dir="/tmp"))
            os.chown(self.socket_dir, server_user().pw_uid, server_user().pw_gid)
        try:
            self._fill()
            self._configure()
        except BaseException:
            self.stop()
            raise
        return self

    def start(self):
        self.create()
        try:
            self.resume()
        except BaseException:
            self.stop()
            raise
        return self

    def pause(self):
        """Stops the server and keeps the directory."""
        self._pg_ctl("stop", "-m", "fast")

    def resume(self):
        """Starts the server in the directory that is there."""
        self._pg_ctl("start", *self.postgres, "-l", self.log)

    def restart(self):
        self._pg_ctl("restart", "-m", "fast", *self.postgres, "-l", self.log)

    @property
    def pid(self):
        """The postmaster's."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def stop(self):
        if self.base is not None:
            Cluster.discard(self.base)
        if self.socket_dir is not None:
            shutil.rmtree(self.socket_dir, ignore_errors=True)

    @staticmethod
    def discard(base):
        """Stops the server in `base`, if one runs, and removes the directory."""
        data = Path(base) / "data"
        pid_file = data / "postmaster.pid"
        if pid_file.exists():
            sockets = Path((pid_file.read_text().splitlines() + [""] * 5)[4])
            if sockets.name.startswith(SOCKET_PREFIX):
                shutil.rmtree(sockets, ignore_errors=True)
            stop = [bindir() / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"]
            subprocess.run(as_server_user(stop), cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(base, ignore_errors=True)

    def _fill(self):
        """Makes what is in the data directory."""
        # A fixed locale and encoding, so that sort orders and messages are the same everywhere.
        self._run([self.bindir / "initdb", "-D", self.data, "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8",
                   "--no-locale", "--no-sync", *self.initdb])

    def _configure(self):
        settings = {**BASE_CONF, "port": self.port, "unix_socket_directories": f"'{self.socket_dir}'",
                    "shared_preload_libraries": f"'{self.preload}'", **self.conf}
        text = "".join(f"{name} = {value}\n" for name, value in settings.items())
        if self.conf_file is not None:
            text += Path(self.conf_file).read_text()
        with open(self.data / "postgresql.conf", "a") as conf:
            conf.write(text)

    def _pg_ctl(self, action, *options):
        self._run([*self.pin, self.bindir / "pg_ctl", "-D", self.data, "-w", "-t", "60", *options, action])

    def _run(self, command):
        done = subprocess.run(as_server_user(command), cwd=self.base, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            log = self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""
            raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{log}")

    def environment(self):
        """The caller's environment without its PG* variables, which would point clients at another server, and without
        RUST_BACKTRACE, which would put a stack trace into every error of ours."""
        kept = {name: value for name, value in os.environ.items()
                if name == "PG_CONFIG" or not name.startswith(("PG", "RUST_"))}
        return {**kept, "HOME": str(self.base), "LC_ALL": "C"}

    def dsn(self, dbname="postgres"):
        return f"host={self.socket_dir} port={self.port} user={SUPERUSER} dbname={dbname}"

    def psql_command(self, dbname="postgres"):
        return f"{self.bindir}/psql '{self.dsn(dbname)}'"

    def client(self, program, *arguments):
        """The command line of one of PostgreSQL's own clients, pointed at this server and pinned like it."""
        return [*self.pin, str(self.bindir / program), "-h", str(self.socket_dir), "-p", str(self.port), "-U", SUPERUSER,
                *map(str, arguments)]

    def psql(self, sql, dbname="postgres"):
        """Runs `sql` and returns what it prints, unaligned and without headers."""
        command = self.client("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", dbname, "-f", "-")
        done = subprocess.run(command, input=sql, env=self.environment(), text=True, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"psql failed:\n{done.stderr}")
        return done.stdout.strip()


class Standby(Cluster):
    """A streaming standby of `primary`, which runs. It has a replication slot there, so that it may be stopped for a while."""

    def __init__(self, directory, primary, slot="standby", **options):
        super().__init__(directory, **options)
        self.primary, self.slot = primary, slot

    def _fill(self):
        """Settings of the primary are copied; those that are appended later count."""
        self._run([self.bindir / "pg_basebackup", "-D", self.data, "-d", self.primary.dsn(), "--write-recovery-conf",
                   "--create-slot", "--slot", self.slot, "--checkpoint=fast", "--no-sync"])


class Copy(Cluster):
    """A server that begins with the data of `original`, which is paused while they are copied."""

    def __init__(self, directory, original, **options):
        super().__init__(directory, **options)
        self.original = original

    def _fill(self):
        """Settings of the original are copied; those that are appended later count."""
        self._run(["cp", "-a", "--reflink=auto", self.original.data, self.data])


def exit_on_sigterm():
    """Makes SIGTERM unwind the stack like Ctrl-C does, so that clusters are stopped on the way out."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    start = actions.add_parser("start")
    start.add_argument("--dir", default=ROOT / "target" / "play")
    start.add_argument("--conf")
    stop = actions.add_parser("stop")
    stop.add_argument("dir")
    arguments = parser.parse_args()
    if arguments.action == "stop":
        if not Path(arguments.dir, "data", "PG_VERSION").exists():
            parser.error(f"{arguments.dir} holds no cluster")
        Cluster.discard(arguments.dir)
        return
    cluster = Cluster(arguments.dir, conf_file=arguments.conf).start()
    print(f"connect  {cluster.psql_command()}")
    print(f"stop     scripts/cluster.py stop {cluster.base}")


if __name__ == "__main__":
    main()
