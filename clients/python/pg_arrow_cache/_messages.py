"""An Arrow IPC stream that arrives in pieces."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

# A message begins with a mark and the length of its metadata. A length of 0 ends the stream.
PREFIX = 8


class Messages:
    """Gives the schema of a stream, and then each of its batches as soon as all of it is there."""

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None
        self._pieces: list[bytes | memoryview] = []
        # Bytes that are needed before something can be done.
        self._missing = PREFIX
        self._ended = False

    def feed(self, piece: bytes) -> Iterator[pa.Schema | pa.RecordBatch]:
        self._pieces.append(piece)
        self._missing -= len(piece)
        while self._missing <= 0:
            data = memoryview(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))
            size = known_size(data)
            if size > len(data):
                self._pieces, self._missing = [data], size - len(data)
                continue
            message, rest = data[:size], data[size:]
            self._pieces, self._missing = [rest], PREFIX - len(rest)
            if size > PREFIX:
                yield self._decoded(pa.py_buffer(message))
            else:
                self._ended = True

    def end(self) -> Iterator[pa.Schema | pa.RecordBatch]:
        if not self._ended:
            raise EOFError("the server's Arrow stream has no end")
        return iter(())

    def _decoded(self, message: pa.Buffer) -> pa.Schema | pa.RecordBatch:
        if self._schema is not None:
            return pa.ipc.read_record_batch(message, self._schema)
        self._schema = pa.ipc.read_schema(message)
        return self._schema


def known_size(data: memoryview) -> int:
    """The size of the message at the beginning of `data`, or of its metadata if these are not complete."""
    (length,) = struct.unpack_from("<I", data, 4)
    size: int = PREFIX + length
    if length == 0 or len(data) < size:
        return size
    # The metadata are a flatbuffer. Its table `Message` has the length of the body as its fourth field.
    metadata = data[PREFIX:size]
    (table,) = struct.unpack_from("<I", metadata)
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    (vtable_bytes,) = struct.unpack_from("<H", metadata, vtable)
    (field,) = struct.unpack_from("<H", metadata, vtable + 10) if vtable_bytes >= 12 else (0,)
    body: int = struct.unpack_from("<q", metadata, table + field)[0] if field else 0
    return size + body
