"""How the package for Python takes a stream apart, wherever the pieces end."""

import importlib

import pyarrow as pa
import pytest

from support.exports import by_copy

QUERY = "SELECT i, repeat('x', i % 50) AS t, ARRAY[i, NULL] AS l FROM generate_series(1, 300) AS i"


@pytest.fixture
def stream(session):
    return by_copy(session, QUERY, {"batch_rows": 100})


def taken_apart(package, stream, size):
    messages = importlib.import_module(f"{package.__name__}._messages").Messages()
    items = [item for start in range(0, len(stream), size) for item in messages.feed(stream[start:start + size])]
    return items + list(messages.end())


@pytest.mark.parametrize("size", [1, 7, 8, 9, 4096, 1 << 30])
def test_pieces_of_any_size(package, stream, size):
    schema, *batches = taken_apart(package, stream, size)
    with pa.ipc.open_stream(stream) as reader:
        assert schema.equals(reader.schema, check_metadata=True)
        assert batches == list(reader)


@pytest.mark.parametrize("kept", [0, 4, -1, -8, -9])
def test_streams_without_an_end(package, stream, kept):
    with pytest.raises(EOFError, match="has no end"):
        taken_apart(package, stream[:kept], 100)
