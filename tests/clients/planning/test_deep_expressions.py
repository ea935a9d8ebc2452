"""Expressions that are nested as deeply as the server's stack allows: what the cache looks at must not end where the server goes on, nor end the server."""

import pytest

from support.wire import data_rows, has_error

STEP = 8


def nested(before, after, innermost):
    return lambda depth: f"SELECT {before * depth}{innermost}{after * depth} FROM one"


SHAPES = {
    "COALESCE": nested("COALESCE(NULL, ", ")", "a"),
    "COALESCE of columns": nested("COALESCE(b, ", ")", "a"),
    "CASE": nested("CASE WHEN a > 0 THEN 1 ELSE ", " END", "1"),
    "NULLIF": nested("NULLIF(", ", 7)", "a"),
    "operators": nested("(a + ", ")", "1"),
    "ANY": nested("(a = ANY (ARRAY[", "]::int[]))::int", "a"),
    "the clock in CASE": nested("CASE WHEN at > now() THEN 1 ELSE ", " END", "a"),
    "the clock in COALESCE": nested("COALESCE(", ", extract(year FROM now())::int)", "a"),
}


def ask(client, sql):
    answer = client.query(sql)
    if has_error(answer, b"54001"):
        return "54001"
    assert len(data_rows(answer)) == 1, answer
    return "row"


def deepest(client, shape):
    """How deep the server can go, to some levels."""
    low, high = 1, 1500
    while high - low > STEP:
        middle = (low + high) // 2
        if ask(client, shape(middle)) == "row":
            low = middle
        else:
            high = middle
    return low


@pytest.mark.parametrize("stack", ["100kB", "400kB"])
@pytest.mark.parametrize("name", SHAPES)
def test_as_deep_as_without_the_cache(session, wire, name, stack):
    """But for the frames of the hooks, which are below the server's own."""
    session.execute("CREATE TABLE one AS SELECT 1 AS a, NULL::int AS b, now() AS at")
    shape = SHAPES[name]
    on, off = wire(), wire()
    for client in (on, off):
        client.query(f"SET max_stack_depth = '{stack}'; SET pg_arrow_cache.min_execution_time = 0")
    off.query("SET pg_arrow_cache.enabled = off")
    limit = deepest(off, shape)
    for depth in (limit // 8, limit // 4, limit // 2, limit * 3 // 4, limit * 9 // 10):
        for _ in range(2):
            assert ask(on, shape(depth)) == "row", (depth, limit)
    for depth in range(limit * 9 // 10, limit + 4 * STEP, max(1, limit // 64)):
        ask(on, shape(depth))
    assert ask(on, shape(1)) == "row"
