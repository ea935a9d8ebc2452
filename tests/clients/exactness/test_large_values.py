"""Rows so large that a batch holds only one: what is stored of them, and that rows which are not stored still arrive
whole."""

import pytest

from support.exports import by_copy, read

MB = 1_000_000


@pytest.fixture
def roomy(session):
    """Neither max_entry_size nor other entries limit what is stored."""
    session.execute("SET pg_arrow_cache.max_entry_size = '2GB'")
    session.execute("SELECT arrow_cache.flush()")
    session.execute("CREATE TABLE t AS SELECT 1 AS a")
    yield session
    session.execute("SELECT arrow_cache.flush()")


def answer(session, query):
    """The values of the only row."""
    got = session.pgconn.exec_params(query.encode(), None, result_format=1)
    assert not got.error_message, got.error_message
    assert got.ntuples == 1
    return [got.get_value(0, column) for column in range(got.nfields)]


def test_a_large_value_is_stored(roomy):
    query = f"SELECT a, repeat('x', {25 * MB}) AS r, a + 1 FROM t"
    for status in ("MISS", "HIT"):
        number, text, other = answer(roomy, query)
        assert (number, other) == (b"\0\0\0\1", b"\0\0\0\2")
        assert text == b"x" * (25 * MB)
        assert (roomy.status(), roomy.reason()) == (status, None)


@pytest.mark.parametrize("columns", [
    f"repeat('x', {300 * MB})",
    ", ".join(f"repeat('x', {60 * MB})" for _ in range(5)),
], ids=["one value", "several values"])
def test_a_larger_row_is_passed_on(roomy, columns):
    """A row that is too large to be stored is assembled in the memory of the backend and delivered, whatever
    max_entry_size is."""
    query = f"SELECT a, {columns} FROM t"
    for _ in range(2):
        number, *texts = answer(roomy, query)
        assert number == b"\0\0\0\1"
        assert sum(len(text) for text in texts) == 300 * MB
        assert all(text.count(b"x") == len(text) for text in texts)
        assert (roomy.status(), roomy.reason()) == ("MISS", "too_large")
    assert roomy.rows("SELECT count(*) FROM arrow_cache.entries") == [(0,)]


def test_a_larger_value_from_a_table(roomy):
    """The size of a value is known before the value is fetched."""
    roomy.execute("ALTER TABLE t ADD r text")
    roomy.execute(f"UPDATE t SET r = repeat('x', {300 * MB})")
    query = "SELECT r FROM t"
    assert answer(roomy, query) == [b"x" * (300 * MB)]
    assert (roomy.status(), roomy.reason()) == ("MISS", "too_large")
    assert roomy.rows("SELECT length(r) FROM t") == [(300 * MB,)]


def test_a_larger_row_is_exported_but_not_stored(roomy):
    """An export delivers any value that PostgreSQL can hold; the limit for storing it is the same as for rows."""
    query = f"SELECT a, repeat('x', {300 * MB}) AS r FROM t"
    for _ in range(2):
        got = read(by_copy(roomy, query))
        assert got.column("a").to_pylist() == [1]
        assert len(got.column("r")[0].as_py()) == 300 * MB
        assert (roomy.status(), roomy.reason()) == ("MISS", "too_large")
    assert roomy.rows("SELECT count(*) FROM arrow_cache.entries") == [(0,)]
