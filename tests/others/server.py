"""The private server, started once for each list of preloaded libraries, and sessions that run statements on it."""

import hashlib
import itertools
import sys
import time
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "demo")]
import cluster as private  # noqa: E402  (it lives beside the other scripts)
import dataset             # noqa: E402
import statements          # noqa: E402

SALES = 20_000
CONF = {
    **dataset.SERVER_CONF, "shared_buffers": "128MB",
    "max_parallel_workers_per_gather": "0", "max_worker_processes": "12",
    "pg_arrow_cache.min_execution_time": "0", "pg_arrow_cache.debug_force_fragments": "on",
}
OWN = "pg_arrow_cache"
PATIENCE_S = 100


class Failed(Exception):
    """What a library saw or did is not what it should be."""


def expect(is_true, what):
    if not is_true:
        raise Failed(what)


def until(what, action):
    """Repeats until it gives something."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := action()):
        expect(time.monotonic() < deadline, f"never: {what}")
        time.sleep(0.2)
    return found


def shown(beginning):
    """The lines of docs/neighbours.md that begin so."""
    lines = (ROOT / "docs" / "neighbours.md").read_text().splitlines()
    return [line for line in lines if line.startswith(beginning)]


class Server:
    """Use it as a context manager."""

    def __init__(self, progress):
        self.cluster = private.Cluster(ROOT / "target" / "test-others", conf=CONF)
        self.progress, self.marks = progress, itertools.count(1)

    def __enter__(self):
        self.cluster.start()
        try:
            dataset.load_small(self.cluster, SALES, self.progress)
            self.cluster.psql(statements.TABLES)
        except BaseException:
            self.cluster.stop()
            raise
        return self

    def __exit__(self, *_):
        self.cluster.stop()

    def preload(self, libraries, settings=None):
        """Starts the server anew with these libraries."""
        conf = {"shared_preload_libraries": f"'{','.join(libraries)}'", **(settings or {})}
        lines = [f"{name} = {value}\n" for name, value in conf.items()]
        (self.cluster.data / "postgresql.auto.conf").write_text("".join(lines))
        self.cluster.restart()

    def drop_extensions(self):
        """Drops those of the last library: event triggers and functions of an extension need the library."""
        self.cluster.psql("""
            SELECT format('DROP EXTENSION IF EXISTS %I CASCADE', extname) FROM pg_extension
            WHERE extname NOT IN ('plpgsql', 'pg_arrow_cache')
            \\gexec""")

    def connect(self, **options):
        return psycopg.connect(self.cluster.dsn(), autocommit=True, **options)

    def value(self, sql):
        """What a session of its own is given, without the cache. It begins anew each time, so it is in nobody's way."""
        with self.connect(options="-c pg_arrow_cache.enabled=off") as session:
            return session.execute(sql).fetchone()[0]

    def mark(self):
        return f"/* run {next(self.marks)} */"

    def log_from(self, position):
        with open(self.cluster.log, errors="replace") as log:
            log.seek(position)
            return log.read()

    @property
    def log_size(self):
        return self.cluster.log.stat().st_size


class Session:
    """A session whose statements are watched: what the server sends beside the rows is kept in `notices`."""

    def __init__(self, server, settings=None):
        self.server, self.notices = server, []
        self.connection = server.connect()
        self.connection.add_notice_handler(lambda notice: self.notices.append(notice.message_primary))
        for name, value in (settings or {}).items():
            self.execute(f"SET {name} = {value}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def execute(self, sql):
        return self.connection.execute(sql)

    def value(self, sql):
        return self.connection.execute(sql).fetchone()[0]

    def run(self, statement, mode, mark):
        """Runs it, and returns a digest of what the client was given."""
        digest = hashlib.sha256()
        for text in statement.texts:
            bound = mode != "simple" and "{low}" in text
            sql = text.replace("{mark}", mark).replace("{low}", "%s" if bound else "0")
            with self.connection.cursor(binary=mode != "simple") as cursor:
                if text.startswith("COPY"):
                    with cursor.copy(sql) as copy:
                        digest.update(b"".join(copy))
                    continue
                cursor.execute(sql, [0] if bound else None, prepare=mode == "prepared")
                if cursor.description:
                    digest.update(repr(cursor.fetchall()).encode())
        return digest.hexdigest()
