"""From the pieces that a driver gives to batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Protocol

import pyarrow as pa


class Decoder(Protocol):
    """Takes pieces of an answer, and gives first its schema and then its batches."""

    def feed(self, piece: bytes) -> Iterator[pa.Schema | pa.RecordBatch]: ...

    def end(self) -> Iterator[pa.Schema | pa.RecordBatch]: ...


def decoded(pieces: Iterator[bytes], decoder: Decoder) -> Iterator[Any]:
    for piece in pieces:
        yield from decoder.feed(piece)
    yield from decoder.end()


async def adecoded(pieces: AsyncIterator[bytes], decoder: Decoder) -> AsyncIterator[Any]:
    async for piece in pieces:
        for item in decoder.feed(piece):
            yield item
    for item in decoder.end():
        yield item


class Batches:
    """The batches of an answer. Whoever asks for one after the end of the block gets an error and not the end."""

    def __init__(self, pieces: Iterator[bytes], decoder: Decoder) -> None:
        self._items = decoded(pieces, decoder)
        self._is_open = True
        self.schema: pa.Schema = next(self._items)

    def close(self) -> None:
        self._is_open = False

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        check(self._is_open)
        return next(self._items)


class AsyncBatches:
    """The same, for `async for`."""

    def __init__(self, schema: pa.Schema, items: AsyncIterator[Any]) -> None:
        self._items = items
        self._is_open = True
        self.schema = schema

    async def aclose(self) -> None:
        self._is_open = False

    def __aiter__(self) -> AsyncBatches:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        check(self._is_open)
        return await anext(self._items)


def check(is_open: bool) -> None:
    if not is_open:
        raise ValueError("the block that has opened this result has ended")
