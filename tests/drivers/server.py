"""The private server that the drivers read, with the demo's tables, and the pooler before it."""

import contextlib
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "demo")]
import cluster as private  # noqa: E402  (it lives beside the other scripts)
import dataset             # noqa: E402

DATABASE = "postgres"
# The role that the cache answers, and one for which it is switched off: its answers are those to compare with.
CACHED, UNCACHED = "dashboard", "uncached"
SALES = 200_000
# Every result is stored, however quick it was to compute, so that outcomes are repeatable.
CONF = {**dataset.SERVER_CONF, "shared_buffers": "128MB", "pg_arrow_cache.min_execution_time": "0",
        "listen_addresses": "'127.0.0.1'"}
POOLER = "/usr/sbin/pgbouncer"


class Address:
    def __init__(self, port):
        self.host, self.port = "127.0.0.1", port


class Server:
    """Use it as a context manager. `address` is reached by TCP, because not every driver speaks Unix sockets; roles need the
    password that this run has made up."""

    def __init__(self, progress):
        self.progress, self.password = progress, secrets.token_hex(16)
        self.cluster = private.Cluster(ROOT / "target" / "test-drivers", conf=CONF)

    def __enter__(self):
        self.progress("starting a private server")
        self.cluster.create()
        try:
            hba = self.cluster.data / "pg_hba.conf"
            hba.write_text(f"local all all trust\nhost all {CACHED},{UNCACHED} 127.0.0.1/32 scram-sha-256\n")
            self.cluster.resume()
            dataset.load_star_schema(self.cluster, SALES, self.progress)
            self.cluster.psql("CREATE EXTENSION pg_arrow_cache")
            for role in (CACHED, UNCACHED):
                # FOR UPDATE asks for the right to UPDATE.
                self.cluster.psql(f"CREATE ROLE {role} LOGIN PASSWORD '{self.password}'; GRANT pg_read_all_data TO {role};"
                                  f"GRANT UPDATE ON stores TO {role}")
            self.cluster.psql(f"ALTER ROLE {UNCACHED} SET pg_arrow_cache.enabled = off")
            self.control = psycopg.connect(self.cluster.dsn(), autocommit=True)
            # What the test itself asks must not count.
            self.control.execute("SET pg_arrow_cache.enabled = off")
        except BaseException:
            self.cluster.stop()
            raise
        return self

    def __exit__(self, *_):
        self.control.close()
        self.cluster.stop()

    @property
    def address(self):
        return Address(self.cluster.port)

    def value(self, sql):
        return self.control.execute(sql).fetchone()[0]

    @contextlib.contextmanager
    def logged(self, name):
        """Keeps the statements of what is read meanwhile in a file of this name, unless there is none."""
        if name is None:
            yield
            return
        for role in (CACHED, UNCACHED):
            self.control.execute(f"ALTER ROLE {role} SET log_statement = 'all'")
        start = self.cluster.log.stat().st_size
        yield
        with open(self.cluster.log) as log, open(ROOT / "target" / "drivers" / f"{name}.log", "w") as kept:
            log.seek(start)
            kept.writelines(log)

    def counters(self):
        return Counters(*self.control.execute("SELECT hits, misses + stale FROM arrow_cache.stats").fetchone(),
                        dict(self.control.execute("SELECT reason, statements FROM arrow_cache.bypass_reasons").fetchall()))


class Counters:
    def __init__(self, hits, misses, reasons):
        self.hits, self.misses, self.reasons = hits, misses, reasons

    def since(self, before):
        reasons = {reason: count - before.reasons.get(reason, 0) for reason, count in self.reasons.items()}
        return Counters(self.hits - before.hits, self.misses - before.misses,
                        {reason for reason, count in reasons.items() if count > 0 and reason != "disabled"})


class Pooler:
    """PgBouncer in transaction mode, whose clients' transactions go to several server processes by turns."""

    def __init__(self, server):
        self.server, self.process = server, None
        self.address = Address(private.free_port())

    @staticmethod
    def there():
        return os.access(POOLER, os.X_OK)

    def __enter__(self):
        cluster = self.server.cluster
        work = private.server_dir(cluster.base / "pgbouncer")
        users = "".join(f'"{role}" "{self.server.password}"\n' for role in (CACHED, UNCACHED))
        (work / "users.txt").write_text(users)
        (work / "pgbouncer.ini").write_text(f"""
[databases]
{DATABASE} = host={cluster.socket_dir} port={cluster.port}
[pgbouncer]
listen_addr = {self.address.host}
listen_port = {self.address.port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {work}/users.txt
pool_mode = transaction
min_pool_size = 3
server_round_robin = 1
ignore_startup_parameters = extra_float_digits
""")
        os.chmod(work / "users.txt", 0o644)    # the directory itself is closed to others
        log = open(cluster.base / "pgbouncer.log", "w")
        self.process = subprocess.Popen(private.as_server_user([POOLER, work / "pgbouncer.ini"]), cwd="/", stdin=subprocess.DEVNULL,
                                        stdout=log, stderr=subprocess.STDOUT)
        log.close()
        self._wait()
        return self

    def _wait(self):
        deadline = time.monotonic() + 20
        while True:
            try:
                with psycopg.connect(host=self.address.host, port=self.address.port, dbname=DATABASE, user=UNCACHED,
                                     password=self.server.password):
                    return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
