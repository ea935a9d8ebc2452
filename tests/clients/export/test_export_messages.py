"""arrow_cache.messages: single IPC messages, any of which can be read with the schema message alone."""

import itertools
import random

import pyarrow as pa
import pytest

from support.exports import END_OF_STREAM, by_copy, messages, read, rows_of

QUERY = "SELECT a, b, c FROM t ORDER BY a"


@pytest.fixture
def table(session):
    session.execute("""
        CREATE TABLE t AS SELECT g AS a, CASE WHEN g % 3 > 0 THEN 'row ' || g END AS b, ARRAY[g, g * 2] AS c
        FROM generate_series(1, 1000) g""")
    return session


def expected(first, last):
    return [(n, f"row {n}" if n % 3 else None, [n, n * 2]) for n in range(first, last + 1)]


def test_rows(table):
    """The schema comes first, then the batches; they are numbered from one without gaps, the rows are counted, and every
    message is complete."""
    for status in ("MISS", "HIT"):
        got = messages(table, QUERY, {"batch_rows": 300})
        assert table.status() == status
        first = got[0][0]
        assert [seq for seq, *_ in got] == list(range(first, first + len(got)))
        assert [header for _, header, _, _ in got] == [True] + [False] * (len(got) - 1)
        assert got[0][2] == 0 and sum(rows for _, _, rows, _ in got) == 1000
        assert all(0 < rows <= 300 for _, header, rows, _ in got if not header)
        assert pa.ipc.read_message(got[0][3]).type == "schema"
        for _, header, rows, ipc in got[1:]:
            source = pa.BufferReader(ipc)
            assert pa.ipc.read_message(source).type == "record batch"
            assert source.tell() == len(ipc), "a row is one message"
            assert END_OF_STREAM != ipc
        assert rows_of(read(b"".join(ipc for *_, ipc in got) + END_OF_STREAM)) == expected(1, 1000)


def test_any_subset_with_the_schema(table):
    """Each batch alone, and any of them in any order, make a stream."""
    for options in ({"batch_rows": 100}, {"batch_rows": 100, "compression": "lz4"}):
        schema, *rest = messages(table, QUERY, options)
        assert len(rest) >= 10
        starts = list(itertools.accumulate((rows for _, _, rows, _ in rest), initial=0))
        order = list(range(len(rest)))
        random.Random(len(rest)).shuffle(order)
        for subset in ([number] for number in order):
            stream = schema[3] + rest[subset[0]][3] + END_OF_STREAM
            assert rows_of(read(stream)) == expected(starts[subset[0]] + 1, starts[subset[0] + 1])
        chosen = order[:4]
        stream = schema[3] + b"".join(rest[number][3] for number in chosen) + END_OF_STREAM
        assert rows_of(read(stream)) == [
            row for number in chosen for row in expected(starts[number] + 1, starts[number + 1])]


def test_read_one_by_one(table):
    """A client can fetch the schema once and then only the batches that it needs."""
    source = "arrow_cache.messages(%s, '{\"batch_rows\": 250}')"
    header, = table.rows(f"SELECT ipc FROM {source} WHERE header", [QUERY], binary=True)
    schema = pa.ipc.read_schema(pa.py_buffer(header[0]))
    got = []
    for seq, rows in table.rows(f"SELECT seq, n_rows FROM {source} WHERE NOT header ORDER BY seq", [QUERY]):
        (ipc,), = table.rows(f"SELECT ipc FROM {source} WHERE seq = %s", [QUERY, seq], binary=True)
        batch = pa.ipc.read_record_batch(pa.py_buffer(ipc), schema)
        assert batch.num_rows == rows
        got += rows_of(batch)
    assert table.status() == "HIT"
    assert got == expected(1, 1000)


def test_no_rows(table):
    """The schema is there whatever the data."""
    for status in ("MISS", "HIT"):
        got = messages(table, "SELECT a, b FROM t WHERE a < 0")
        assert table.status() == status
        assert [(header, rows) for _, header, rows, _ in got] == [(True, 0)]
        assert pa.ipc.read_schema(pa.py_buffer(got[0][3])).names == ["a", "b"]


def test_the_bytes_of_a_copy(table):
    """The same messages, the end of the stream apart."""
    for _ in range(2):
        assert b"".join(ipc for *_, ipc in messages(table, QUERY)) + END_OF_STREAM == by_copy(table, QUERY)


def test_bodies_are_aligned(table):
    """A body begins at a multiple of 64 bytes of its message, so that it can be mapped as it is."""
    for _, header, _, ipc in messages(table, QUERY, {"batch_rows": 100}):
        metadata = int.from_bytes(ipc[4:8], "little")
        assert ipc[:4] == b"\xff" * 4
        assert header or (8 + metadata) % 64 == 0
        assert len(ipc) % 8 == 0
