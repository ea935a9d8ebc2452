"""The floor of what a client of PostgreSQL can wait for: a process that sends finished answers to its one client, with nothing around them.

    bare_server.py DIRECTORY TEXT BINARY     answers a query of the simple protocol with what the file TEXT holds, and one of the extended protocol with BINARY

The files hold messages of a server, which `record` asks it for.
"""

import socket
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

PORT = 1
FORMAT_BINARY = 1


def message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


def startup(**parameters):
    body = struct.pack("!i", 3 << 16) + b"".join(f"{name}\0{value}\0".encode() for name, value in parameters.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def exactly(connection, count):
    """That many bytes; fewer at the end."""
    content = bytearray()
    while len(content) < count and (piece := connection.recv(count - len(content))):
        content += piece
    return bytes(content)


def until_ready(connection):
    """All messages up to the one that says that the server is ready."""
    content = bytearray()
    while True:
        head = exactly(connection, 5)
        content += head + exactly(connection, struct.unpack("!i", head[1:])[0] - 4)
        if head[:1] == b"Z":
            return bytes(content)


def record(dsn, query):
    """What a server answers to a query, as text and as binary."""
    where = conninfo_to_dict(dsn)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"{where['host']}/.s.PGSQL.{where['port']}")
        connection.sendall(startup(user=where["user"], database=where["dbname"]))
        until_ready(connection)
        text = query.encode() + b"\0"
        connection.sendall(message(b"Q", text))
        as_text = until_ready(connection)
        bind = b"\0\0" + struct.pack("!hhhh", 0, 0, 1, FORMAT_BINARY)
        connection.sendall(message(b"P", b"\0" + text + struct.pack("!h", 0)) + message(b"B", bind) + message(b"D", b"P\0")
                           + message(b"E", b"\0" + struct.pack("!i", 0)) + message(b"S"))
        return as_text, until_ready(connection)


@contextmanager
def serving(as_text, as_binary):
    """The dsn of a process that sends these answers."""
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-bare-") as directory:
        files = [Path(directory, name) for name in ("text", "binary")]
        for file, content in zip(files, (as_text, as_binary), strict=True):
            file.write_bytes(content)
        process = subprocess.Popen([sys.executable, __file__, directory, *files], stdout=subprocess.PIPE)
        try:
            process.stdout.readline()
            yield f"host={directory} port={PORT} user=nobody dbname=none"
        finally:
            process.kill()
            process.wait()


def serve(directory, answers):
    """`answers` are {kind of the message that asks: what is sent}."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / f".s.PGSQL.{PORT}"))
        listener.listen()
        print("listening", flush=True)
        client, _ = listener.accept()
    exactly(client, struct.unpack("!i", exactly(client, 4))[0] - 4)
    settings = {"server_version": "15.0", "client_encoding": "UTF8", "standard_conforming_strings": "on", "integer_datetimes": "on"}
    client.sendall(message(b"R", struct.pack("!i", 0))
                   + b"".join(message(b"S", f"{name}\0{value}\0".encode()) for name, value in settings.items())
                   + message(b"K", struct.pack("!ii", 1, 1)) + message(b"Z", b"I"))
    while head := exactly(client, 5):
        exactly(client, struct.unpack("!i", head[1:])[0] - 4)
        if head[:1] in answers:
            client.sendall(answers[head[:1]])


if __name__ == "__main__":
    as_text, as_binary = (Path(file).read_bytes() for file in sys.argv[2:])
    serve(Path(sys.argv[1]), {b"Q": as_text, b"S": as_binary})
