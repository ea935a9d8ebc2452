"""Results of PostgreSQL as Arrow, by the extension pg_arrow_cache where the server has it.

    table = pg_arrow_cache.read_arrow(connection, "SELECT * FROM sales WHERE store_id = %s", [7])
"""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from . import _drivers, _plain
from ._messages import Messages
from ._streams import AsyncBatches, Batches, Decoder, adecoded

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

__version__ = "0.2.0"
__all__ = ["AsyncBatches", "PlainSelectWarning", "aopen_arrow", "aread_arrow", "open_arrow", "read_arrow",
           "read_duckdb", "read_pandas", "read_polars"]

SYNCHRONOUS = {
    "psycopg.Connection": _drivers.Psycopg,
    "psycopg2.connection": _drivers.Psycopg2,
    "adbc_driver_manager.Connection": _drivers.Adbc,
}
ASYNCHRONOUS = {
    "psycopg.AsyncConnection": _drivers.AsyncPsycopg,
    "asyncpg.Connection": _drivers.Asyncpg,
    "asyncpg.PoolConnectionProxy": _drivers.Asyncpg,
}

# 1 if the extension can be used: it is created in this database, and the server has its library preloaded.
HAS_EXTENSION = """
SELECT (EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_arrow_cache')
    AND EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'pg_arrow_cache.memory')
)::pg_catalog.int4::pg_catalog.text
"""
has_extension: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


class PlainSelectWarning(UserWarning):
    """There is no extension, so a plain SELECT reads the rows, which is slower. Given once for each connection."""


def read_arrow(connection: Any, query: str, parameters: Any = None, **options: Any) -> pa.Table:
    """The result of a query as a table.

    `connection` is one of psycopg, psycopg2 or adbc_driver_postgresql.dbapi. The parameters stand in the query as
    the driver has them: `%s` for psycopg and psycopg2, `$1` for ADBC. The options are those of
    `COPY … (FORMAT arrow, …)`.
    """
    with open_arrow(connection, query, parameters, **options) as reader:
        return reader.read_all()


def read_polars(connection: Any, query: str, parameters: Any = None, **options: Any) -> polars.DataFrame:
    """The result of a query as a frame of polars."""
    import polars

    return polars.DataFrame(read_arrow(connection, query, parameters, **options))


def read_duckdb(connection: Any, query: str, parameters: Any = None, **options: Any) -> duckdb.DuckDBPyRelation:
    """The result of a query as a relation of DuckDB's default connection."""
    import duckdb

    return duckdb.from_arrow(read_arrow(connection, query, parameters, **options))


def read_pandas(connection: Any, query: str, parameters: Any = None, **options: Any) -> pandas.DataFrame:
    """The result of a query as a frame of pandas."""
    return read_arrow(connection, query, parameters, **options).to_pandas()


@contextlib.contextmanager
def open_arrow(
    connection: Any, query: str, parameters: Any = None, **options: Any
) -> Iterator[pa.RecordBatchReader]:
    """The result of a query as a stream of batches, each of which arrives when it is asked for.

    The connection is busy while the block runs. What is not read by its end is received and dropped.
    """
    driver = driver_of(connection, SYNCHRONOUS, ASYNCHRONOUS, "aread_arrow() and aopen_arrow()")
    query, options = _drivers.alone(query), without_none(options)
    is_there = remembered(connection)
    if is_there is None:
        is_there = remember(connection, b"".join(driver.text(HAS_EXTENSION, None)))
    decoder: Decoder
    if is_there:
        pieces, decoder = driver.arrow(query, parameters, options), Messages()
    else:
        names = driver.names(query, parameters)
        described = b"".join(driver.text(_plain.describing(query, len(names)), parameters))
        decoder = _plain.PlainRows(query, names, described, options)
        pieces = driver.text(decoder.query, parameters)
    with contextlib.closing(pieces), contextlib.closing(Batches(pieces, decoder)) as batches:
        yield pa.RecordBatchReader.from_batches(batches.schema, batches)


async def aread_arrow(connection: Any, query: str, parameters: Any = None, **options: Any) -> pa.Table:
    """The same as `read_arrow` for connections of asyncpg (`$1`), and for the asynchronous ones of psycopg (`%s`)."""
    async with aopen_arrow(connection, query, parameters, **options) as batches:
        return pa.Table.from_batches([batch async for batch in batches], batches.schema)


@contextlib.asynccontextmanager
async def aopen_arrow(
    connection: Any, query: str, parameters: Any = None, **options: Any
) -> AsyncIterator[AsyncBatches]:
    """The same as `open_arrow` for these connections: gives something for `async for`, which knows its `schema`."""
    driver = driver_of(connection, ASYNCHRONOUS, SYNCHRONOUS, "read_arrow() and open_arrow()")
    query, options = _drivers.alone(query), without_none(options)
    is_there = remembered(connection)
    if is_there is None:
        is_there = remember(connection, await joined(driver.text(HAS_EXTENSION, None)))
    decoder: Decoder
    if is_there:
        pieces, decoder = driver.arrow(query, parameters, options), Messages()
    else:
        names = await driver.names(query, parameters)
        described = await joined(driver.text(_plain.describing(query, len(names)), parameters))
        decoder = _plain.PlainRows(query, names, described, options)
        pieces = driver.text(decoder.query, parameters)
    async with contextlib.aclosing(pieces):
        items = adecoded(pieces, decoder)
        async with contextlib.aclosing(AsyncBatches(await anext(items), items)) as batches:
            yield batches


async def joined(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


def driver_of(connection: Any, drivers: Mapping[str, Any], others: Mapping[str, Any], for_others: str) -> Any:
    """What serves a connection, or one of a class that is derived from it. Imports no driver."""
    names = [f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(connection).__mro__]
    for name in names:
        if name in drivers:
            return drivers[name](connection)
    if not set(others).isdisjoint(names):
        raise TypeError(f"{for_others} are for a {names[0]}")
    raise TypeError(f"{names[0]} is none of the connections {', '.join(drivers)}")


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def remembered(connection: Any) -> bool | None:
    """Whether this connection's server has the extension. `None` if that is not known."""
    with contextlib.suppress(TypeError):  # a proxy of asyncpg's pool cannot be remembered
        return has_extension.get(connection)
    return None


def remember(connection: Any, answer: bytes) -> bool:
    is_there = answer.strip() == b"1"
    if not is_there:
        warnings.warn("this database does not have pg_arrow_cache: a plain SELECT reads the rows", PlainSelectWarning,
                      stacklevel=2)
    with contextlib.suppress(TypeError):
        has_extension[connection] = is_there
    return is_there
