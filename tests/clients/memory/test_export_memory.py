"""An export takes the memory of one batch and one chunk in its backend, whatever the size of the result."""

import os
import re
from pathlib import Path

import pytest
from psycopg.types.json import Jsonb

from support.exports import copy_statement
from support.faked_clock import ROOT, WORKER, private
from support.session import Session

SCHEMA = "export_memory"
SMALL = f"SELECT a, pad FROM {SCHEMA}.big WHERE a <= 2000 ORDER BY a"
LARGE = f"SELECT a, pad FROM {SCHEMA}.big ORDER BY a"
BEYOND = f"SELECT x.a, x.pad FROM {SCHEMA}.big x, generate_series(1, 3) g"  # more than max_entry_size


# Then what is freed is given back to the system at once. Otherwise the C library may keep the two blocks of 4 MB that LZ4 takes for each message, or give
# them back just before the export begins.
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


@pytest.fixture(scope="module")
def server():
    """With a table of about 45 MB: under max_entry_size, and many times the batches that it is made of. Nobody changes it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in GIVEN_BACK.items():
            patch.setitem(os.environ, name, value)
        with private.Cluster(ROOT / "target" / f"test-export-memory-{WORKER}", conf_file=ROOT / "tests" / "clients" / "clients.conf") as cluster:
            cluster.psql(f"""
                CREATE EXTENSION pg_arrow_cache; CREATE SCHEMA {SCHEMA};
                CREATE TABLE {SCHEMA}.big AS SELECT g AS a, repeat(md5(g::text), 32) AS pad FROM generate_series(1, 44000) g;
                ALTER TABLE {SCHEMA}.big ADD PRIMARY KEY (a); ANALYZE {SCHEMA}.big""")
            yield cluster


@pytest.fixture
def big(server):
    options = "-c enable_sort=off -c enable_seqscan=off -c jit=off"  # a compiler is no part of an export
    with Session.connect(server.dsn(), options=options, autocommit=True) as session:
        session.execute("SELECT arrow_cache.flush()")
        yield session


def private_bytes(pid):
    """Memory that the process shares with nobody."""
    return int(re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]) * 1024


def pieces(session, way, query, options):
    if way == "copy":
        with session.cursor().copy(copy_statement(query, options)) as copy:
            yield from copy
    elif way == "fetch":
        for row in session.cursor(binary=True).stream("SELECT arrow_cache.fetch(%s, %s)", [query, Jsonb(options)]):
            yield row[0]
    else:
        for row in session.cursor(binary=True).stream("SELECT (arrow_cache.messages(%s, %s)).ipc", [query, Jsonb(options)]):
            yield row[0]


def growth(session, way, query, options):
    """Bytes of the stream, and by how much the backend had grown at most while it was sent."""
    pid = session.info.backend_pid
    before = peak = private_bytes(pid)
    size = last = 0
    for piece in pieces(session, way, query, options):
        size += len(piece)
        if size - last > 200_000:
            peak, last = max(peak, private_bytes(pid)), size
    return size, peak - before


@pytest.mark.parametrize("options", [{}, {"compression": "lz4"}, {"columns": ["pad"], "chunk_bytes": 65536}], ids=str)
@pytest.mark.parametrize("way", ["copy", "fetch", "messages"])
@pytest.mark.parametrize("state", ["miss", "hit", "too_large", "disabled"])
def test_bounded(big, way, state, options):
    query = BEYOND if state == "too_large" else LARGE
    if state == "disabled":
        big.execute("SET pg_arrow_cache.enabled = off")
    if state == "hit":
        for _ in pieces(big, way, query, {}):
            pass
    for _ in pieces(big, way, SMALL, options):  # whatever a session keeps from its first export
        pass
    size, grown = growth(big, way, query, options)
    assert (big.status(), big.reason()) == {
        "miss": ("MISS", None), "hit": ("HIT", None), "too_large": ("MISS", "too_large"), "disabled": ("BYPASS", "disabled")}[state]
    raw = 44_000 * 1024 * (3 if state == "too_large" else 1)
    assert size > (raw if "compression" not in options else 1_000_000)
    assert grown < raw / 8, f"{grown} bytes for a result of {raw}"
