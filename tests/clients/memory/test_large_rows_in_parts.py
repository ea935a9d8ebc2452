"""A portal that a driver reads in parts, of an answer whose rows are larger than the block in which rows go to the client: the memory of one part is
given back before the next."""

import pytest

from support.session import DSN
from support.wire import Wire

PARTS = 12
# Arrays are made by their output function, and so is a text for a client of another encoding.
CASES = {
    "array": ("SELECT id, array(SELECT generate_series(1, 30000)) AS wide FROM generate_series(1, 20) id", {}),
    "text": ("SELECT id, repeat(md5(id::text), 3000) AS wide FROM generate_series(1, 20) id", {"client_encoding": "LATIN1"}),
}
CONTEXTS = "SELECT count(*), coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts WHERE name = 'pg_arrow_cache values'"


def values(messages):
    [row] = [message.body for message in messages if message.type == "D"]
    return row


def simple(client, query):
    return client.add(b"Q", query.encode() + b"\0").until_ready()


@pytest.mark.parametrize("name", CASES)
def test_parts_that_end_with_a_large_row(session, connect, name):
    made, parameters = CASES[name]
    session.execute(f"CREATE TABLE large AS {made}")
    query = f"SELECT id, wide FROM {connect.schema}.large ORDER BY id"
    read = {}
    for enabled in "off", "on":
        client = Wire(DSN, options=f"-c pg_arrow_cache.enabled={enabled}", **parameters)
        simple(client, query)
        simple(client, "BEGIN")
        client.parse(query).bind(portal="parts").step("2")
        read[enabled] = [values(client.execute("parts", 1).step("s")) for _ in range(PARTS)]
        status = values(simple(client, "SELECT arrow_cache.last_status()"))
        contexts = values(simple(client, CONTEXTS))
        client.close()
    assert b"HIT" in status
    assert read["on"] == read["off"]
    # Two counts as text: no context is left, and no byte.
    assert contexts == b"\x00\x02" + b"\x00\x00\x00\x010" * 2, contexts
