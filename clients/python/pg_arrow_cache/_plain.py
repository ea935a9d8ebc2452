"""Results of a server without the extension, in the types that the extension gives.

Each row arrives as the text of its binary form: what `record_send` makes of it, in hexadecimal digits. That form is the
same through all drivers, and depends on no setting of the session.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

# Rows and bytes after which a batch is complete.
BATCH_ROWS = 10_000
BATCH_BYTES = 512 * 1024

# The options that change neither types nor values, so they may be ignored.
IGNORED = {"batch_rows", "chunk_bytes", "compression"}

# From the epoch of PostgreSQL, 2000-01-01, to that of Unix.
EPOCH_DAYS = 10_957
EPOCH_MICROSECONDS = EPOCH_DAYS * 86_400_000_000

Decode = Callable[[bytes], Any]


def number(form: str) -> Decode:
    return lambda data: struct.unpack(form, data)[0]


def moment(form: str, largest: int, epoch: int) -> Decode:
    """A date or a timestamp. Infinity is the largest number, and minus infinity its negative."""

    def decode(data: bytes) -> int:
        value: int = struct.unpack(form, data)[0]
        return max(value, -largest) if value in (largest, -largest - 1) else value + epoch

    return decode


timestamp = moment(">q", 2**63 - 1, EPOCH_MICROSECONDS)
unsigned = (pa.uint32(), number(">I"))
text = (pa.string(), lambda data: data.decode())

# The types of which the binary form is read, by their names in pg_catalog.
SCALARS: dict[str, tuple[pa.DataType, Decode]] = {
    "bool": (pa.bool_(), lambda data: data != b"\0"),
    "int2": (pa.int16(), number(">h")),
    "int4": (pa.int32(), number(">i")),
    "int8": (pa.int64(), number(">q")),
    "float4": (pa.float32(), number(">f")),
    "float8": (pa.float64(), number(">d")),
    "xid8": (pa.uint64(), number(">Q")),
    "pg_lsn": (pa.uint64(), number(">Q")),
    "money": (pa.int64(), number(">q")),
    "date": (pa.date32(), moment(">i", 2**31 - 1, EPOCH_DAYS)),
    "time": (pa.time64("us"), number(">q")),
    "timestamp": (pa.timestamp("us"), timestamp),
    "timestamptz": (pa.timestamp("us", "UTC"), timestamp),
    "bytea": (pa.binary(), bytes),
    "uuid": (pa.binary(16), bytes),
    "jsonb": (pa.string(), lambda data: data[1:].decode()),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "json"), text),
    **dict.fromkeys(("oid", "xid", "cid"), unsigned),
    **dict.fromkeys(("regproc", "regprocedure", "regoper", "regoperator", "regclass", "regtype", "regrole",
                     "regnamespace", "regconfig", "regdictionary", "regcollation"), unsigned),
}

# What the columns of a query consist of, as one JSON text: no row of it is computed.
TYPES = """
WITH RECURSIVE places AS (
    SELECT v.place, v.type
    FROM (VALUES (1)) AS one LEFT JOIN ({query}) AS q{aliases} ON false,
         LATERAL pg_catalog.unnest(ARRAY[{types}]::pg_catalog.oid[]) WITH ORDINALITY AS v(type, place)
), types(type) AS (
    SELECT type FROM places
    UNION
    SELECT part.type FROM types JOIN pg_catalog.pg_type AS t ON t.oid = types.type, LATERAL (
        SELECT t.typbasetype WHERE t.typtype = 'd'
        UNION ALL SELECT t.typelem WHERE t.typsubscript = 'pg_catalog.array_subscript_handler'::pg_catalog.regproc
        UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute AS a
                  WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    ) AS part(type)
)
SELECT pg_catalog.encode(pg_catalog.convert_to(pg_catalog.json_build_object(
    'encoding', pg_catalog.pg_client_encoding(),
    'columns', (SELECT pg_catalog.json_agg(type ORDER BY place) FROM places),
    'types', (SELECT pg_catalog.json_object_agg(t.oid, pg_catalog.json_build_object(
        'name', t.typname, 'kind', t.typtype, 'built_in', t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace,
        'base', t.typbasetype,
        'element', CASE WHEN t.typsubscript = 'pg_catalog.array_subscript_handler'::pg_catalog.regproc
                        THEN t.typelem END,
        'attributes', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
                           a.attname, pg_catalog.quote_ident(a.attname), a.atttypid) ORDER BY a.attnum)
                       FROM pg_catalog.pg_attribute AS a
                       WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)))
        FROM types JOIN pg_catalog.pg_type AS t ON t.oid = types.type)
)::pg_catalog.text, 'UTF8'), 'hex')
"""


@dataclass
class Type:
    """How the values of a type are read."""

    name: str
    arrow: pa.DataType
    decode: Decode
    # What makes the readable form of a value, given as an expression in SQL. `None` if the value itself is readable.
    made_by: Callable[[str], str] | None = None
    # Whether a cast to text makes it, too, as it does for all elements of an array at once.
    is_cast: bool = False

    def field(self, name: str) -> pa.Field:
        return pa.field(name, self.arrow, metadata={"POSTGRESQL:type": self.name})

    def readable(self, expression: str) -> str:
        return self.made_by(expression) if self.made_by else expression


def type_of(oid: int, types: Mapping[str, Any]) -> Type:
    """How the extension would deliver a type."""
    here = types[str(oid)]
    name = here["name"]
    if here["built_in"] and name in SCALARS:
        return Type(name, *SCALARS[name])
    if here["kind"] == "d":
        return replace(type_of(here["base"], types), name=name)
    if here["kind"] == "e":
        return Type(name, *text)
    if here["element"]:
        return array_of(name, type_of(here["element"], types))
    if here["kind"] == "c":
        attributes = here["attributes"] or []
        return row_of(name, [(name, quoted, type_of(oid, types)) for name, quoted, oid in attributes])
    # The text that the type's output function gives. An extension may have made a cast that gives another one.
    decode = without_mask if name == "inet" else text[1]
    return Type(name, pa.string(), decode, lambda value: given(value, f"pg_catalog.concat({value})"), here["built_in"])


def given(value: str, expression: str) -> str:
    """The expression, or NULL for NULL. A row of NULLs is no NULL here."""
    return f"CASE WHEN pg_catalog.num_nulls({value}) = 0 THEN {expression} END"


def array_of(name: str, element: Type) -> Type:
    if element.made_by and not element.is_cast:
        raise NotImplementedError(f"without pg_arrow_cache on the server, values of the type {name} cannot be read")
    made_by = "{}::pg_catalog.text[]".format if element.made_by else None
    first = 0 if name in ("oidvector", "int2vector") else 1

    def decode(data: bytes) -> list[Any]:
        (dimensions,) = struct.unpack_from(">i", data)
        if dimensions == 0:
            return []
        if dimensions != 1 or struct.unpack_from(">i", data, 16) != (first,):
            raise ValueError(f"an array of the type {name} has several dimensions, or another lower bound than {first}")
        return list(parts(data, 20, 0, [element.decode] * struct.unpack_from(">i", data, 12)[0]))

    return Type(name, pa.list_(element.field("item")), decode, made_by)


def without_mask(data: bytes) -> str:
    """The text of an inet. Its cast to text adds a mask where its output function leaves it out."""
    address = data.decode()
    return address.removesuffix("/128" if ":" in address else "/32")


def row_of(name: str, attributes: Sequence[tuple[str, str, Type]]) -> Type:
    names = [attribute for attribute, _, _ in attributes]
    decoders = [kind.decode for _, _, kind in attributes]

    def made_by(value: str) -> str:
        members = ", ".join(kind.readable(f"({value}).{quoted}") for _, quoted, kind in attributes)
        return given(value, f"ROW({members})")

    def decode(data: bytes) -> dict[str, Any]:
        return dict(zip(names, parts(data, 4, 4, decoders)))

    is_readable = not any(kind.made_by for _, _, kind in attributes)
    fields = [kind.field(name) for name, _, kind in attributes]
    return Type(name, pa.struct(fields), decode, None if is_readable else made_by)


def parts(data: bytes, offset: int, skipped: int, decoders: Sequence[Decode]) -> Iterator[Any]:
    """The elements of an array or the attributes of a row, before each of which some bytes are skipped."""
    for decode in decoders:
        offset += skipped
        (size,) = struct.unpack_from(">i", data, offset)
        offset += 4
        if size < 0:
            yield None
        else:
            yield decode(data[offset : offset + size])
            offset += size


def describing(query: str, count: int) -> str:
    """The query for what `count` columns of a query consist of."""
    types = ", ".join(f"pg_catalog.pg_typeof({name})::pg_catalog.oid" for name in aliases(count))
    return TYPES.replace("{aliases}", alias_list(count)).replace("{types}", types).replace("{query}", query)


def aliases(count: int) -> list[str]:
    return [f"c{number}" for number in range(1, count + 1)]


def alias_list(count: int) -> str:
    return f"({', '.join(aliases(count))})" if count else ""


class PlainRows:
    """What is asked of a server without the extension, and the batches that its answer becomes."""

    def __init__(self, query: str, names: Sequence[str], described: bytes, options: Mapping[str, Any]) -> None:
        if set(options) - IGNORED:
            raise NotImplementedError(f"{', '.join(set(options) - IGNORED)}: pg_arrow_cache is needed on the server")
        description = json.loads(bytes.fromhex(described.decode()))
        if description["encoding"] not in ("UTF8", "SQL_ASCII"):
            raise NotImplementedError(f"client_encoding is {description['encoding']}; UTF8 is needed")
        types = [type_of(oid, description["types"]) for oid in description["columns"] or ()]
        row = ", ".join(kind.readable(alias) for kind, alias in zip(types, aliases(len(types))))
        self.query = (f"SELECT pg_catalog.encode(pg_catalog.record_send(ROW({row})), 'hex') "
                      f"FROM ({query}) AS q{alias_list(len(types))}")
        self._schema = pa.schema([kind.field(name) for kind, name in zip(types, names)])
        self._decoders = [kind.decode for kind in types]
        self._started = False
        self._rest = b""
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def feed(self, piece: bytes) -> Iterator[pa.Schema | pa.RecordBatch]:
        yield from self._schema_once()
        *lines, self._rest = (self._rest + bytes(piece)).split(b"\n")
        for line in lines:
            row = bytes.fromhex(line.decode())
            self._rows.append(tuple(parts(row, 4, 4, self._decoders)))
            self._bytes += len(row)
            if len(self._rows) >= BATCH_ROWS or self._bytes >= BATCH_BYTES:
                yield self._batch()

    def end(self) -> Iterator[pa.Schema | pa.RecordBatch]:
        yield from self._schema_once()
        if self._rows:
            yield self._batch()

    def _schema_once(self) -> Iterator[pa.Schema]:
        if not self._started:
            self._started = True
            yield self._schema

    def _batch(self) -> pa.RecordBatch:
        rows, self._rows, self._bytes = self._rows, [], 0
        if not self._decoders:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
        columns = [pa.array(values, field.type) for values, field in zip(zip(*rows), self._schema)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)
