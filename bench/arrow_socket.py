"""The same bytes through a Unix socket with nothing around them: a writer process and the reader's half.

    arrow_socket.py FILE SOCKET     writes FILE's content to its one client for each byte that the client sends
"""

import socket
import sys
from pathlib import Path

PIECE = 256 * 1024
LENGTH_BYTES = 8


def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    return client


def receive(client):
    """Asks for the content and yields it in the pieces in which it comes."""
    client.sendall(b"?")
    left = int.from_bytes(client.recv(LENGTH_BYTES, socket.MSG_WAITALL), "big")
    while left:
        piece = client.recv(min(PIECE, left))
        if not piece:
            raise RuntimeError("the writer is gone")
        left -= len(piece)
        yield piece


def serve(content, path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    print("listening", flush=True)
    client, _ = listener.accept()
    content = memoryview(content)
    while client.recv(1):
        client.sendall(len(content).to_bytes(LENGTH_BYTES, "big"))
        for start in range(0, len(content), PIECE):
            client.sendall(content[start:start + PIECE])


if __name__ == "__main__":
    serve(Path(sys.argv[1]).read_bytes(), sys.argv[2])
