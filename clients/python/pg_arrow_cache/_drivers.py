"""What is asked of a connection, for each driver.

Every driver has the same three methods. `arrow` gives the Arrow IPC stream of a query in pieces, if the server has the
extension. `text` gives the lines of a query with one column of digits, in pieces as well. `names` gives the names of a
query's columns, without running it. Those of asynchronous drivers are asynchronous.

A generator that is closed before its end reads the rest of the answer and drops it. Cancelling the statement would be
quicker, but it would end the user's transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import threading
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

# Pieces that a thread or a task may be ahead of its reader.
AHEAD = 4


def alone(query: str) -> str:
    """A query as it may stand between parentheses, also if it ends with a semicolon or a comment."""
    return f"\n{query.strip().rstrip(';')}\n"


def no_rows(query: str) -> str:
    return f"SELECT * FROM ({query}) AS q LIMIT 0"


class Psycopg:
    """A connection of psycopg 3. COPY takes no parameters, so psycopg writes them into the query."""

    def __init__(self, connection: Any) -> None:
        import psycopg.sql

        self._connection, self._module, self._sql = connection, psycopg, psycopg.sql

    def arrow(self, query: str, parameters: Any, options: Mapping[str, Any]) -> Iterator[bytes]:
        written = "".join(f", {self._quoted(name)} {self._written(value)}" for name, value in options.items())
        return self._copied(f"COPY ({self._bound(query, parameters)}) TO STDOUT (FORMAT arrow{written})")

    def text(self, query: str, parameters: Any) -> Iterator[bytes]:
        return self._copied(f"COPY ({self._bound(query, parameters)}) TO STDOUT")

    def names(self, query: str, parameters: Any) -> list[str]:
        with self._connection.cursor() as cursor:
            cursor.execute(no_rows(self._bound(query, parameters)))
            return [column.name for column in cursor.description or ()]

    def _quoted(self, name: str) -> str:
        return str(self._sql.Identifier(name).as_string(self._connection))

    def _written(self, value: Any) -> str:
        """The value of an option."""
        if isinstance(value, (list, tuple)):
            return f"({', '.join(map(self._quoted, value))})"
        return str(self._sql.Literal(value).as_string(self._connection))

    def _bound(self, query: str, parameters: Any) -> str:
        if not parameters:
            return query
        return str(self._module.ClientCursor(self._connection).mogrify(query, parameters))

    def _copied(self, statement: str) -> Iterator[bytes]:
        with self._connection.cursor() as cursor, cursor.copy(statement) as pieces:
            try:
                yield from pieces
            except GeneratorExit:
                for _ in pieces:
                    pass
                raise


class AsyncPsycopg(Psycopg):
    """An asynchronous connection of psycopg 3."""

    async def names(self, query: str, parameters: Any) -> list[str]:  # type: ignore[override]
        async with self._connection.cursor() as cursor:
            await cursor.execute(no_rows(self._bound(query, parameters)))
            return [column.name for column in cursor.description or ()]

    def _bound(self, query: str, parameters: Any) -> str:
        if not parameters:
            return query
        return str(self._module.AsyncClientCursor(self._connection).mogrify(query, parameters))

    async def _copied(self, statement: str) -> AsyncIterator[bytes]:  # type: ignore[override]
        async with self._connection.cursor() as cursor, cursor.copy(statement) as pieces:
            try:
                async for piece in pieces:
                    yield piece
            except GeneratorExit:
                async for _ in pieces:
                    pass
                raise


class Psycopg2(Psycopg):
    """A connection of psycopg2. It writes what a COPY sends into a file, here in a thread that waits for the reader."""

    def __init__(self, connection: Any) -> None:
        import psycopg2.extensions
        import psycopg2.sql

        self._connection, self._module, self._sql = connection, psycopg2.extensions, psycopg2.sql

    def _bound(self, query: str, parameters: Any) -> str:
        if not parameters:
            return query
        with self._connection.cursor() as cursor:
            return str(cursor.mogrify(query, parameters), self._module.encodings[self._connection.encoding])

    def _copied(self, statement: str) -> Iterator[bytes]:
        # Pieces, and then the error or None.
        pieces: queue.Queue[Any] = queue.Queue(AHEAD)

        def run() -> None:
            end = None
            try:
                with self._connection.cursor() as cursor:
                    cursor.copy_expert(statement, SimpleNamespace(write=pieces.put))
            except BaseException as error:
                end = error
            pieces.put(end)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        piece: Any = b""
        try:
            while isinstance(piece := pieces.get(), bytes):
                yield piece
            if piece is not None:
                raise piece
        finally:
            while isinstance(piece, bytes):
                piece = pieces.get()
            thread.join()


class Adbc:
    """A connection of adbc_driver_postgresql.dbapi. It runs no COPY of ours, but reads any SELECT by COPY itself."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def arrow(self, query: str, parameters: Any, options: Mapping[str, Any]) -> Iterator[bytes]:
        if parameters:
            if options:
                raise ValueError("ADBC takes either parameters or options: arrow_cache.query() has no options")
            # A NULL of ADBC has no type, but a literal gets that of its parameter.
            given = [value for value in parameters if value is not None]
            numbers = iter(range(2, len(given) + 2))
            holes = "".join(", NULL" if value is None else f", ${next(numbers)}" for value in parameters)
            return self._column(f"SELECT arrow_cache.query($1{holes})", [query, *given])
        # ADBC gathers the answer to a statement with parameters, so the server quotes what this one needs.
        fetch = "SELECT pg_catalog.format('SELECT arrow_cache.fetch(%L, %L)', $1, $2)"
        with self._connection.cursor() as cursor:
            cursor.execute(fetch, [query, json.dumps(options)])
            (statement,) = cursor.fetchone()
        return self._column(statement, None)

    def text(self, query: str, parameters: Any) -> Iterator[bytes]:
        with contextlib.closing(self._column(query, parameters)) as lines:
            for line in lines:
                yield f"{line}\n".encode()

    def names(self, query: str, parameters: Any) -> list[str]:
        with self._connection.cursor() as cursor:
            cursor.execute(no_rows(query), parameters or None)
            return [column[0] for column in cursor.description or ()]

    def _column(self, query: str, parameters: Any) -> Generator[Any, None, None]:
        with self._connection.cursor() as cursor:
            cursor.execute(query, parameters or None)
            # Not as a reader, whose errors would have no SQLSTATE. Closing the cursor drops the rest.
            for (value,) in cursor:
                yield value


class Asyncpg:
    """A connection of asyncpg, whose COPY takes parameters but no options of the extension."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def arrow(self, query: str, parameters: Any, options: Mapping[str, Any]) -> AsyncIterator[bytes]:
        if not options:
            return self._copied(query, parameters, "arrow")
        if parameters:
            raise ValueError("asyncpg takes either parameters or options")
        return self._fetched(query, options)

    def text(self, query: str, parameters: Any) -> AsyncIterator[bytes]:
        return self._copied(query, parameters, "text")

    async def names(self, query: str, parameters: Any) -> list[str]:
        return [column.name for column in (await self._connection.prepare(query)).get_attributes()]

    async def _fetched(self, query: str, options: Mapping[str, Any]) -> AsyncIterator[bytes]:
        # A cursor needs a transaction. One of ours would be a savepoint in that of the user.
        is_inside = self._connection.is_in_transaction()
        async with contextlib.nullcontext() if is_inside else self._connection.transaction():
            # As text, so that no codec for jsonb is asked.
            statement = "SELECT arrow_cache.fetch($1, $2::pg_catalog.text::pg_catalog.jsonb)"
            async for row in self._connection.cursor(statement, query, json.dumps(options), prefetch=AHEAD):
                yield row[0]

    async def _copied(self, query: str, parameters: Any, form: str) -> AsyncIterator[bytes]:
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue(AHEAD)

        async def run() -> None:
            try:
                await self._connection.copy_from_query(query, *parameters or (), output=pieces.put, format=form)
            finally:
                await pieces.put(None)

        task = asyncio.create_task(run())
        piece: bytes | None = b""
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            while piece is not None:
                piece = await pieces.get()
            await task
