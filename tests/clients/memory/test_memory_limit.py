"""A backend that gets no more memory answers correctly or with the error out_of_memory, at whatever point memory runs
out; the server goes on.

Each way to read data runs in fresh backends, each with somewhat more memory than the one before, until it succeeds."""

import os
import re
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

from support.memory_ways import CASES, OUT_OF_MEMORY, WAYS, memory_server, private
from support.sweeps import LONG, sweep

# Runs as the account of the server. Limits a process to the memory it has plus a number of bytes; a negative number lifts the limit.
LIMITER = """
import re, resource, sys
for line in sys.stdin:
    pid, more = map(int, line.split())
    try:
        size = int(re.search(r"^VmSize:\\s+(\\d+) kB", open(f"/proc/{pid}/status").read(), re.MULTILINE)[1]) * 1024
        limit = resource.RLIM_INFINITY if more < 0 else size + more
        resource.prlimit(pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    except (OSError, TypeError):
        pass  # it is gone
    print(pid, flush=True)
"""
FIRST, LAST = 16 * 1024, 1 << 30
STEP = float(os.environ.get("MEMORY_LIMIT_STEP", 2 if LONG else 2.6))  # a smaller one finds more and takes longer


class Server:
    """A private server, and a process that limits the memory of its backends."""

    def __init__(self, cluster, limiter):
        self.cluster, self.limiter = cluster, limiter

    def connect(self):
        deadline = time.monotonic() + 30
        while True:
            try:
                return psycopg.connect(self.cluster.dsn(), autocommit=True)
            except psycopg.OperationalError:  # it recovers from what an earlier test has done to it
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def limit(self, pid, more):
        self.limiter.stdin.write(f"{pid} {more}\n")
        self.limiter.stdin.flush()
        assert self.limiter.stdout.readline()

    def log(self):
        return self.cluster.log.read_text(errors="replace")


@pytest.fixture(scope="module")
def server():
    limiter = private.as_server_user(["python3", "-c", LIMITER])
    with memory_server("test-memory-limit") as cluster, \
            subprocess.Popen(limiter, cwd="/", text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as limiter:
        yield Server(cluster, limiter)
        limiter.stdin.close()


def attempt(server, run, more):
    """The answer of a fresh backend that can get `more` bytes; the error code if it fails."""
    with server.connect() as session:
        pid = session.info.backend_pid
        # The library of the language of set_policy(): without memory for it the server finds no file.
        session.execute("LOAD 'plpgsql'")
        if more is not None:
            server.limit(pid, more)
        try:
            answer = run(session)
        except psycopg.Error as error:
            answer = error.sqlstate or str(error)
        if more is not None:
            server.limit(pid, -1)
        # The session works as before.
        assert session.execute("SELECT count(*) FROM mixed").fetchone() == (3000,), answer
        return answer


@sweep
@pytest.mark.parametrize("way, state", CASES)
def test_only_out_of_memory(server, way, state):
    run, logged = WAYS[way], len(server.log())
    with server.connect() as other:
        other.execute("SELECT arrow_cache.flush()")
        expected = attempt(server, run, None)
        outcomes = []
        more = FIRST
        while more < LAST and outcomes[-2:] != [True, True]:
            if state == "miss":
                other.execute("SELECT arrow_cache.flush()")
            answer = attempt(server, run, more)
            assert answer in (OUT_OF_MEMORY, expected), f"{way}, {more} bytes more: {str(answer)[:300]}"
            outcomes.append(answer == expected)
            more = max(int(more * STEP) // 4096 * 4096, more + 4096)
    assert outcomes[-1], "it needs no end of memory"
    assert not re.search("terminated by signal|PANIC", server.log()[logged:])


def rss_anon(pid):
    return int(re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1])


@pytest.mark.parametrize("failing", ["arrow_cache.query('SELEC')", "arrow_cache.query('SELECT 1 / (a - 1) FROM one')",
                                     "arrow_cache.fetch('SELECT 1', '{\"nothing\": 1}')"])
def test_many_errors_take_no_memory(server, failing):
    often = f"""DO $$ BEGIN FOR i IN 1..20000 LOOP
        BEGIN PERFORM {failing}; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$"""
    with server.connect() as session:
        session.execute(often)
        before = rss_anon(session.info.backend_pid)
        session.execute(often)
        # A box of eight bytes takes 32 of them.
        assert rss_anon(session.info.backend_pid) - before < 300, "each error keeps some memory"


def vm_size(pid):
    return int(re.search(r"^VmSize:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1])


@pytest.mark.parametrize("transaction", ["", "BEGIN"])
def test_an_error_leaves_nothing_behind(server, transaction):
    contexts = "SELECT max(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'pg_arrow_cache errors'"
    inner = "SELECT a FROM one WHERE a = repeat(''x'', {})::int"
    failing = f"SELECT count(*) FROM arrow_cache.fetch('{inner}')"
    with server.connect() as session:
        usual, = session.execute(contexts).fetchone()

        def fail(size):
            session.execute(transaction)
            with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                session.execute(failing.format(size))
            session.execute("ROLLBACK" if transaction else "")
            return vm_size(session.info.backend_pid)

        before = fail(10)
        after = fail(20_000_000)
        assert session.execute(contexts).fetchone() == (usual,)
        assert after - before < 100 * 1024, "more than one text's size of address space stays reserved"
