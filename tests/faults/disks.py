"""Faults of disks: small file systems in memory, which take root to mount. Where that is not possible, the faults say so and do nothing."""

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

from faults import fault
from world import Wrong
import cluster as private

MB = 1 << 20


@contextlib.contextmanager
def small_disk(size):
    """A folder of the server on a disk of this size, or `None`."""
    folder = Path(tempfile.mkdtemp(prefix="pgac-disk-", dir="/tmp"))
    user = private.server_user()
    options = f"size={size},mode=700,uid={user.pw_uid},gid={user.pw_gid}"
    try:
        mounted = os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True).returncode == 0
        if not mounted:
            print("# nothing can be mounted here: the fault was not tried", flush=True)
        try:
            yield folder if mounted else None
        finally:
            if mounted:
                subprocess.run(["umount", "-l", folder], check=True)
    finally:
        folder.rmdir()


def fill(folder):
    """Writes into a folder until nothing fits."""
    with open(folder / "filler", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(65536))


@fault("disk full for a tablespace", load=True)
def full_tablespace(world):
    with small_disk(4 * MB) as folder:
        if folder is None:
            return
        with world.connect() as session:
            session.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
            session.execute("CREATE TABLE cramped TABLESPACE small AS SELECT g AS a FROM generate_series(1, 1000) g")
            try:
                question = "SELECT count(*), sum(a) FROM cramped"
                world.compare(session, question)
                for _ in range(3):
                    try:
                        session.execute("INSERT INTO cramped SELECT g FROM generate_series(1, 500000) g")
                        raise Wrong("the disk is not full")
                    except psycopg.errors.DiskFull:
                        pass
                    world.compare(session, question)
                session.execute("DELETE FROM cramped WHERE a < 10")
                world.compare(session, question)
            finally:
                session.execute("DROP TABLE cramped")
                session.execute("DROP TABLESPACE small")


@fault("disk full for the server's log")
def full_log(world):
    with small_disk(1 * MB) as folder:
        if folder is None:
            return
        world.close_all()
        world.cluster.pause()
        world.cluster._pg_ctl("start", "-l", folder / "server.log")
        try:
            fill(folder)
            with world.connect() as session:
                session.execute("SET log_min_messages = debug1; SET log_statement = 'all'; SET pg_arrow_cache.log_decisions = 'all'")
                for n in range(20):
                    world.compare(session, f"SELECT count(*), sum(a) FROM big WHERE a > {n}")
            if os.statvfs(folder).f_bavail != 0:
                raise Wrong("the disk is not full")
        finally:
            world.close_all()
            world.cluster.restart()


@fault("/dev/shm full")
def full_shm(world):
    """Parallel queries find no room for what they share; nothing else needs any."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        print("# nothing can be mounted here: the fault was not tried", flush=True)
        return
    world.close_all()
    world.cluster.pause()
    start = ["pg_ctl", "-D", world.cluster.data, "-w", "-l", world.cluster.log, "start"]
    start[0] = world.cluster.bindir / start[0]
    mount = f"mount -t tmpfs -o size=4m,mode=1777 tmpfs /dev/shm && exec {shlex.join(private.as_server_user(start))}"
    question = "SELECT count(*), max(pad) FROM big WHERE a % 7 = 3"
    try:
        subprocess.run(["unshare", "-m", "sh", "-c", mount], check=True, cwd=world.cluster.base, env=world.cluster.environment(),
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        # It ends when nothing fits.
        subprocess.run(["nsenter", "-t", str(world.cluster.pid), "-m", "sh", "-c", "cat /dev/zero > /dev/shm/filler"], stderr=subprocess.DEVNULL)
        with world.connect() as session:
            session.execute("SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
                            "SET min_parallel_table_scan_size = 0")
            for _ in range(3):
                try:
                    session.execute(question)
                    raise Wrong("there is room in /dev/shm")
                except psycopg.errors.DiskFull:
                    pass
            session.execute("RESET ALL")
            world.compare(session, question)
            for view in ("stats", "bypass_reasons", "entries", "relations", "statements"):
                session.execute(f"SELECT * FROM arrow_cache.{view}").fetchall()
            world.check()
    finally:
        world.close_all()
        world.cluster.restart()


@fault("disk full for results on disk")
def full_files(world):
    """Results that have to leave memory and find no room are dropped; others stay on disk."""
    world.close_all()
    files = world.cluster.data / "base" / "pgsql_tmp" / "pgsql_tmp.arrow_cache"
    with small_disk(6 * MB) as folder:
        if folder is None:
            return
        if not files.parent.exists():
            files.parent.mkdir(mode=0o700)
            os.chown(files.parent, private.server_user().pw_uid, private.server_user().pw_gid)
        files.symlink_to(folder)
        try:
            with world.connect() as session:
                session.execute("ALTER SYSTEM SET pg_arrow_cache.disk_memory = '1GB'")
                session.execute("SELECT pg_reload_conf()")
                before = session.execute("SELECT disk_failures, disk_moves FROM arrow_cache.stats").fetchone()
                for n in range(60):
                    world.compare(session, f"SELECT a + {n % 40} AS a, pad FROM big WHERE a <= 15000 ORDER BY a")
                failures, moves, used = session.execute("SELECT disk_failures, disk_moves, disk_bytes FROM arrow_cache.stats").fetchone()
                if failures == before[0] or moves == before[1] or used > 6 * MB:
                    raise Wrong(f"the disk is not full: {failures} failures, {moves} moves, {used} bytes")
                world.check()
                session.execute("ALTER SYSTEM RESET pg_arrow_cache.disk_memory")
                session.execute("SELECT pg_reload_conf()")
                session.execute("SELECT arrow_cache.flush()")
        finally:
            world.close_all()
            files.unlink()


@fault("disk full for what outlives a restart")
def full_saved(world):
    """The server stops and starts as ever, nothing is left on the disk, and the cache is empty."""
    question = "SELECT a, pad FROM big ORDER BY a"
    kept = world.cluster.data / "pg_stat.kept"
    stats = world.cluster.data / "pg_stat"
    world.close_all()
    world.cluster.pause()
    with small_disk(MB // 2) as folder:
        if folder is None:
            world.cluster.resume()
            return
        stats.rename(kept)
        stats.symlink_to(folder)
        try:
            world.cluster.resume()
            with world.connect() as session:
                world.compare(session, question)
                if session.execute("SELECT sum(bytes) FROM arrow_cache.entries").fetchone()[0] < MB:
                    raise Wrong("the disk is not full")
            world.close_all()
            world.cluster.pause()
            if list(folder.glob("pg_arrow_cache*")):
                raise Wrong("a part of the cache was left on a full disk")
        finally:
            stats.unlink()
            kept.rename(stats)
    world.cluster.resume()
    with world.connect() as session:
        if session.execute("SELECT entries FROM arrow_cache.stats").fetchone()[0] != 0:
            raise Wrong("the cache was saved nevertheless")
        world.compare(session, question)


@fault("disk full for pg_wal: the server panics")
def full_wal(world):
    data = world.cluster.data
    wal, kept = data / "pg_wal", data / "pg_wal.kept"
    with world.connect() as session:
        session.execute("CREATE TABLE long (a int, pad text)")
        world.compare(session, "SELECT count(*) FROM long")
        session.execute("CHECKPOINT")
    world.close_all()
    world.cluster.pause()
    size = sum(file.stat().st_size for file in wal.rglob("*") if file.is_file())
    with small_disk(size + 24 * MB) as folder:
        if folder is None:
            world.cluster.resume()
        else:
            subprocess.run(["cp", "-a", f"{wal}/.", folder], check=True)
            wal.rename(kept)
            wal.symlink_to(folder)
            try:
                world.cluster.resume()
                write_until_panic(world)
            finally:
                world.close_all()
                wal.unlink()
                subprocess.run(["cp", "-a", folder, wal], check=True)
                shutil.rmtree(kept)
            world.cluster.resume()
    with world.connect() as session:
        if session.execute("SELECT count(*) FROM long").fetchone()[0] % 1000 != 0:
            raise Wrong("a part of a statement has outlived a panic")
        world.compare(session, "SELECT count(*) FROM long")
        session.execute("DROP TABLE long")


def write_until_panic(world):
    """Writes until there is no room for WAL. The server cannot begin anew without room, so it ends."""
    pid = world.cluster.pid
    with contextlib.suppress(psycopg.OperationalError), world.connect() as session:
        for n in range(1_000_000):
            session.execute("INSERT INTO long SELECT g, repeat('x', 1000) FROM generate_series(1, 1000) g")
            session.execute(f"SELECT count(*) FROM long WHERE a > {n % 5}").fetchall()
    until = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > until:
            raise Wrong("the server goes on without room for WAL")
        time.sleep(0.05)
    with contextlib.suppress(FileNotFoundError):
        (world.cluster.data / "postmaster.pid").unlink()
