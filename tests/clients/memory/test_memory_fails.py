"""Each allocation of this library is made to fail with all after it, and some of them alone: the answer is right, or the error is
out_of_memory, and what was stored is right.

The server itself has enough memory, so that a statement that the cache only observes does not fail at all."""

import os
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from support.memory_ways import CASES, OUT_OF_MEMORY, TRANSPARENT, WAYS, memory_server, private
from support.sweeps import LONG, sweep

# Of the allocations that have been tried, so many more are left out before the next attempt: one in so many.
LEFT_OUT = 5 if LONG else 3
COLD = 5  # number of attempts in a fresh session; later attempts find what the session keeps from the first ones
SOURCE = Path(__file__).with_name("failing_malloc.c")


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-failing-", dir="/tmp") as directory:
        library, program = Path(directory, "failing_malloc.so"), Path(directory, "postgres")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-Wall", "-Werror",
                        f"-I{private.pg_config('--includedir-server')}", SOURCE, "-o", library], check=True)
        program.write_text(f"#!/bin/sh\nLD_PRELOAD={library} exec {private.bindir() / 'postgres'} \"$@\"\n")
        program.chmod(0o755)
        Path(directory).chmod(0o755)
        with memory_server("test-memory-fails", postgres=program) as cluster:
            cluster.psql(f"CREATE FUNCTION memory_fails_after(bigint, boolean) RETURNS bigint STRICT LANGUAGE c AS '{library}'")
            yield cluster


def attempt(session, run, allocations, once=False):
    """The answer if that number of allocations succeeds, and how many were tried."""
    session.execute("SELECT memory_fails_after(%s, %s)", [allocations, once])
    try:
        answer = run(session)
    except psycopg.Error as error:
        answer = error.sqlstate or str(error)
    return answer, session.execute("SELECT memory_fails_after(-1, false)").fetchone()[0]


# Ways of which each allocation fails alone, too: what comes after it goes on.
ONCE = [way for way in WAYS if "large" not in way and "long" not in way and way.startswith(("rows", "verified", "copy, {", "copy of nested", "fetch", "query of"))]


@sweep
@pytest.mark.parametrize("way, state, once", [(*case, False) for case in CASES] + [(way, "miss", True) for way in ONCE])
def test_each_may_be_the_first(server, way, state, once):
    run = WAYS[way]
    with psycopg.connect(server.dsn(), autocommit=True) as other, psycopg.connect(server.dsn(), autocommit=True) as session:
        other.execute("SELECT arrow_cache.flush()")
        expected, _ = attempt(session, run, 1 << 40)
        # A hit has to build large values and rows, as the server has to; a miss runs as if nobody watched.
        never_fails = way in TRANSPARENT and (state == "miss" or way.startswith("rows"))
        right = (expected,) if never_fails else (expected, OUT_OF_MEMORY)
        allocations, done = 0, False
        while not done:
            if state == "miss":
                other.execute("SELECT arrow_cache.flush()")
            if allocations < COLD:
                session.close()
                session = psycopg.connect(server.dsn(), autocommit=True)
            answer, tried = attempt(session, run, allocations, once)
            assert answer in right, f"{way}, after {allocations} allocations: {str(answer)[:300]}"
            if once:
                assert attempt(other, run, 1 << 40)[0] == expected, f"{way}, stored after {allocations} allocations"
            done = answer == expected and tried <= allocations
            allocations += 1 + allocations // LEFT_OUT
    assert allocations > 1
    with psycopg.connect(server.dsn(), autocommit=True) as session:
        assert session.execute("SELECT * FROM arrow_cache.check()").fetchall() == []
