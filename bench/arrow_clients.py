"""Ways for a Python program to read a result, most of them into pyarrow, and what each costs."""

import gc
import io
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import adbc_driver_postgresql.dbapi
import psycopg
import pyarrow as pa

import arrow_socket
from measure import Samples, processor_time
from session import Session

STREAM_BUFFER = 1 << 20


def arrow(query, **options):
    """The COPY statement that delivers `query` as Arrow."""
    words = "".join(f", {name} {value}" for name, value in options.items())
    return f"COPY ({query}) TO STDOUT (FORMAT arrow{words})"


def decode(chunks):
    """The table in an IPC stream that came in pieces."""
    return pa.ipc.open_stream(pa.py_buffer(b"".join(chunks))).read_all()


class Pieces(io.RawIOBase):
    """The pieces of a COPY as a file. A read may be short, which pyarrow does not expect: wrap it in a BufferedReader."""

    def __init__(self, pieces):
        self.pieces = iter(pieces)
        self.left = memoryview(b"")

    def readable(self):
        return True

    def readinto(self, target):
        while not self.left:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.left = memoryview(piece)
        count = min(len(target), len(self.left))
        target[:count] = self.left[:count]
        self.left = self.left[count:]
        return count


class Client(Session):
    """A psycopg session on the server that is measured."""

    def __init__(self, dsn, caching=True):
        super().__init__(dsn)
        if not caching:
            self.caching(False)

    def joined(self, statement):
        with self.connection.cursor().copy(statement) as pieces:
            return decode(pieces)

    def streamed(self, statement):
        with self.connection.cursor().copy(statement) as pieces:
            table = pa.ipc.open_stream(io.BufferedReader(Pieces(pieces), STREAM_BUFFER)).read_all()
            # pyarrow stops at the mark that ends the stream; psycopg wants the end of the COPY itself to be read.
            if any(pieces):
                raise RuntimeError("there is something behind the end of the stream")
            return table

    def drained(self, statement):
        """Reads all and keeps nothing; returns the number of bytes."""
        with self.connection.cursor().copy(statement) as pieces:
            return sum(map(len, pieces))

    def bytes(self, statement):
        with self.connection.cursor().copy(statement) as pieces:
            return b"".join(pieces)

    def fetched(self, query):
        rows = self.connection.execute("SELECT arrow_cache.fetch(%s)", [query], binary=True)
        return decode(row[0] for row in rows)

    def whole(self, query):
        return decode(self.connection.execute("SELECT arrow_cache.query(%s)", [query], binary=True).fetchone())

    def rows(self, query, binary, parameters=None):
        return self.connection.execute(query, parameters, binary=binary).fetchall()


class Adbc:
    """adbc-driver-postgresql, reading what the server computes: the cache is off for it, unless said."""

    def __init__(self, server, caching=False):
        uri = f"postgresql:///postgres?host={server.socket_dir}&port={server.port}&user=postgres"
        enabled = "on" if caching else "off"
        self.connection = adbc_driver_postgresql.dbapi.connect(uri + f"&options=-c%20pg_arrow_cache.enabled%3D{enabled}",
                                                               autocommit=True)
        self.pid = self.table("SELECT pg_backend_pid()").column(0)[0].as_py()

    def table(self, query):
        with self.connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetch_arrow_table()


class BareSocket:
    """Another process that writes the same bytes into a Unix socket: what no server could be quicker than."""

    def __init__(self, content, directory):
        directory = Path(directory)
        file, path = directory / "content", directory / "bare.sock"
        file.write_bytes(content)
        path.unlink(missing_ok=True)
        program = [sys.executable, arrow_socket.__file__, str(file), str(path)]
        self.writer = subprocess.Popen(program, stdout=subprocess.PIPE)
        self.writer.stdout.readline()   # it listens
        self.pid = self.writer.pid
        self.socket = arrow_socket.connect(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.writer.wait()

    def table(self):
        return decode(arrow_socket.receive(self.socket))


@dataclass
class Timing:
    """What a way to read costs: milliseconds by the clock, and of processor time on either side."""

    clock: Samples = field(default_factory=Samples)
    server: Samples = field(default_factory=Samples)
    client: Samples = field(default_factory=Samples)


@dataclass
class Way:
    """One way to read something: `read` is timed, `check` raises if it was not what was meant to be measured."""

    name: str
    pid: int
    read: object
    check: object = None
    timing: Timing = field(default_factory=Timing)

    def measure(self):
        gc.collect()
        server, client, clock = processor_time(self.pid), time.process_time(), time.perf_counter()
        result = self.read()
        clock = time.perf_counter() - clock
        self.timing.clock.add(clock * 1e3)
        self.timing.client.add((time.process_time() - client) * 1e3)
        self.timing.server.add((processor_time(self.pid) - server) * 1e3)
        if self.check is not None:
            self.check()
        return result

    def cells(self):
        timing = self.timing
        return [self.name, f"{timing.clock.median:,.1f}", f"{timing.clock.spread:.0%}",
                f"{timing.server.median:,.1f}", f"{timing.client.median:,.1f}"]


def interleave(ways, rounds):
    """Each way once in every round, to and fro, so that drift of the machine falls on all alike."""
    for number in range(rounds):
        for way in ways if number % 2 == 0 else reversed(ways):
            way.measure()


def expecting(client, status):
    """A check that the statement just measured was, say, a hit."""
    return lambda: client.expect(status)
