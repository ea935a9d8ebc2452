"""The ways to export: each takes a session, a query and options, and gives the bytes of one Arrow IPC stream."""

import io

import pyarrow as pa
from psycopg import sql
from psycopg.types.json import Jsonb

END_OF_STREAM = bytes.fromhex("ffffffff00000000")
# What the type "pair" of samples.py is in Arrow.
PAIR = pa.struct({"n": pa.int32(), "t": pa.string()})


def by_query(session, query, options=None):
    """arrow_cache.query, which has no options."""
    assert not options
    return session.execute("SELECT arrow_cache.query(%s)", [query], binary=True).fetchone()[0]


def chunks(session, query, options=None):
    """The rows of arrow_cache.fetch."""
    return [row[0] for row in
            session.execute("SELECT arrow_cache.fetch(%s, %s)", [query, Jsonb(options or {})], binary=True)]


def messages(session, query, options=None):
    """The rows of arrow_cache.messages: number, whether it is the schema, rows, bytes."""
    return session.execute("SELECT seq, header, n_rows, ipc FROM arrow_cache.messages(%s, %s) ORDER BY seq",
                           [query, Jsonb(options or {})], binary=True).fetchall()


def copy_chunks(session, query, options=None):
    """The pieces of a COPY, as the server sends them. `query` may be a relation: ("table", "t")."""
    with session.cursor().copy(copy_statement(query, options)) as copy:
        return [bytes(piece) for piece in copy]


def by_fetch(session, query, options=None):
    return b"".join(chunks(session, query, options))


def by_messages(session, query, options=None):
    return b"".join(ipc for _, _, _, ipc in messages(session, query, options)) + END_OF_STREAM


def by_copy(session, query, options=None):
    return b"".join(copy_chunks(session, query, options))


# The ways that take options, and all ways; query() takes none.
WITH_OPTIONS = {"fetch": by_fetch, "messages": by_messages, "copy": by_copy}
WAYS = {"query": by_query, **WITH_OPTIONS}


def copy_statement(query, options=None):
    source = query[1] if isinstance(query, tuple) else f"({query})"
    written = [sql.SQL("FORMAT arrow"), *(copy_option(name, value) for name, value in (options or {}).items())]
    return sql.SQL("COPY {} TO STDOUT ({})").format(sql.SQL(source), sql.SQL(", ").join(written))


def copy_option(name, value):
    """An option as COPY spells it: numbers bare, lists in parentheses, the rest quoted."""
    if isinstance(value, list):
        written = sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Identifier, value)))
    else:
        written = sql.Literal(value)
    return sql.SQL("{} {}").format(sql.SQL(name), written)


def read(stream):
    """A stream as a pyarrow table; nothing may follow its end."""
    assert stream.endswith(END_OF_STREAM)
    source = pa.BufferReader(stream)
    with pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
        assert source.tell() == len(stream)
    table.validate()
    return table


def read_query(session, query, *parameters):
    """What arrow_cache.query gives: a pyarrow table, and the bytes of the stream."""
    holes = "".join(", %s::text" if isinstance(value, str | None) else ", %s" for value in parameters)
    stream, = session.execute(f"SELECT arrow_cache.query(%s{holes})", [query, *parameters], binary=True).fetchone()
    with pa.ipc.open_stream(stream) as reader:
        table = reader.read_all()
    # A time of 24:00:00 is beyond what pyarrow takes for a time; everything else about the stream must be sound.
    table.validate(full=pa.time64("us") not in table.schema.types)
    return table, stream


def batches(stream):
    with pa.ipc.open_stream(stream) as reader:
        return list(reader)


def rows_of(table):
    """Rows as tuples, also where names repeat."""
    if not table.column_names:
        return [()] * table.num_rows
    return list(zip(*(column.to_pylist() for column in table.columns)))


class Pieces(io.RawIOBase):
    """Pieces that arrive one by one, as a file. pyarrow takes a short read for the end, so it needs a BufferedReader around it."""

    def __init__(self, pieces):
        self.pieces = iter(pieces)
        self.left = memoryview(b"")

    def readable(self):
        return True

    def readinto(self, into):
        while not self.left:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.left = memoryview(piece)
        size = min(len(into), len(self.left))
        into[:size] = self.left[:size]
        self.left = self.left[size:]
        return size


def entries(session):
    return session.rows("SELECT count(*)::int FROM arrow_cache.entries")[0][0]
