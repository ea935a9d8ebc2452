"""An export takes the memory of one batch and one chunk in its backend, whatever the size of the result. Arrow's LZ4 needs two blocks of 4 MB besides."""

import re
from pathlib import Path

import pytest
from psycopg.types.json import Jsonb

from support.exports import copy_statement

SCHEMA = "export_memory"
SMALL = f"SELECT a, pad FROM {SCHEMA}.big WHERE a <= 2000 ORDER BY a"
LARGE = f"SELECT a, pad FROM {SCHEMA}.big ORDER BY a"
# The allocator may have given them back or not before the export begins, and between two messages (`bytes_of_values` in src/export/ipc_stream.rs).
LZ4_BLOCKS = 2 * 4 * 1024 * 1024
BEYOND = f"SELECT x.a, x.pad FROM {SCHEMA}.big x, generate_series(1, 3) g"  # more than max_entry_size


@pytest.fixture(scope="module")
def table(administrator):
    """About 45 MB: under max_entry_size, and many times the batches that it is made of. Nobody changes it."""
    administrator.execute(f"CREATE SCHEMA {SCHEMA}")
    administrator.execute(f"CREATE TABLE {SCHEMA}.big AS SELECT g AS a, repeat(md5(g::text), 32) AS pad FROM generate_series(1, 44000) g")
    administrator.execute(f"ALTER TABLE {SCHEMA}.big ADD PRIMARY KEY (a); ANALYZE {SCHEMA}.big")
    yield
    administrator.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


@pytest.fixture
def big(table, session):
    session.execute("SET enable_sort = off; SET enable_seqscan = off; SET jit = off")  # a compiler is no part of an export
    return session


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
    bound = raw / 8 + (LZ4_BLOCKS if options.get("compression") == "lz4" else 0)
    assert grown < bound, f"{grown} bytes for a result of {raw}"
