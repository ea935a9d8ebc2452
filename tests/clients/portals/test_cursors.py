"""Server-side cursors of a driver: read in pieces, to the end or not, forwards or both ways."""

import pytest

QUERY = "SELECT a, pad FROM t ORDER BY a"


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t AS SELECT g AS a, repeat('x', 200) AS pad FROM generate_series(1, 10000) g")
    session.expected = session.uncached(QUERY)
    return session


def read(session, **options):
    with session.transaction(), session.cursor("c", scrollable=False, **options) as cursor:
        cursor.itersize = 777
        return list(cursor.execute(QUERY))


@pytest.mark.parametrize("binary", [False, True])
def test_read_to_its_end_it_fills_and_is_served(table, binary):
    for status in ("MISS", "HIT"):
        with table.transaction():
            cursor = table.cursor("c", scrollable=False)
            cursor.itersize = 777
            cursor.execute(QUERY, binary=binary)
            rows = list(cursor)
            cursor.close()
            assert rows == table.expected
        hits = table.rows("SELECT hits, batches FROM arrow_cache.entries")
        assert hits == [(0 if status == "MISS" else 1, hits[0][1])] and hits[0][1] > 1
    assert table.rows(QUERY) == table.expected
    assert table.status() == "HIT"


def test_closed_half_way_it_fills_nothing(table):
    with table.transaction(), table.cursor("c", scrollable=False) as cursor:
        cursor.execute(QUERY)
        assert cursor.fetchmany(9999) == table.expected[:9999]
    assert table.rows("SELECT count(*) FROM arrow_cache.entries") == [(0,)]
    assert table.rows(QUERY) == table.expected
    assert table.status() == "MISS"


def test_a_hit_is_read_half_way(table):
    table.rows(QUERY)
    with table.transaction(), table.cursor("c", scrollable=False) as cursor:
        cursor.execute(QUERY)
        assert cursor.fetchmany(10) == table.expected[:10]
    assert table.rows(QUERY) == table.expected
    assert table.status() == "HIT"


def test_scrolling_both_ways(table):
    """Served from the cache, a cursor moves as it does over the table."""

    def walk():
        with table.transaction(), table.cursor("c", scrollable=True) as cursor:
            cursor.execute(QUERY)
            seen = [cursor.fetchone()]
            for value, mode in ((5, "relative"), (-3, "relative"), (9999, "absolute"), (0, "absolute"), (5000, "absolute")):
                cursor.scroll(value, mode=mode)
                seen.append(cursor.fetchone())
            table.execute("MOVE LAST FROM c")
            for fetch in ("FETCH BACKWARD 3 FROM c", "FETCH FIRST FROM c", "FETCH LAST FROM c", "FETCH NEXT FROM c",
                          "FETCH BACKWARD ALL FROM c", "FETCH PRIOR FROM c", "FETCH ALL FROM c"):
                seen.append(table.rows(fetch))
            return seen

    table.execute("SET pg_arrow_cache.enabled = off")
    expected = walk()
    table.execute("SET pg_arrow_cache.enabled = on")
    table.rows(QUERY)
    assert walk() == expected
    assert table.rows("SELECT hits FROM arrow_cache.entries") == [(1,)]


def test_an_open_cursor_keeps_its_rows(table, other):
    """A cursor keeps the rows that it reads, whatever is written, flushed or evicted."""
    table.rows(QUERY)
    with table.transaction(), table.cursor("c", scrollable=False) as cursor:
        cursor.execute(QUERY)
        assert cursor.fetchmany(100) == table.expected[:100]
        other.execute("DELETE FROM t")
        other.execute("SELECT arrow_cache.flush()")
        assert other.rows(QUERY) == []
        assert cursor.fetchall() == table.expected[100:]
    assert table.rows(QUERY) == []


@pytest.mark.parametrize("scrollable", [None, False, True])
def test_with_hold(table, scrollable):
    """The copy that the server makes has all rows: it is stored, and then served."""
    for turn in range(3):
        with table.cursor("c", withhold=True, scrollable=scrollable) as cursor:
            cursor.execute(QUERY)
            assert table.status() == ("HIT" if turn else "MISS")
            assert cursor.fetchall() == table.expected
    assert table.rows("SELECT hits FROM arrow_cache.entries") == [(2,)]
    assert table.rows(QUERY) == table.expected
    assert table.status() == "HIT"


def test_as_drivers_declare_them(table):
    """A cursor without a word on scrolling can scroll if its plan can. Read forward, it is stored all the same."""
    for turn in range(3):
        with table.transaction(), table.cursor("c") as cursor:
            cursor.itersize = 777
            assert list(cursor.execute(QUERY)) == table.expected
        assert table.rows("SELECT hits FROM arrow_cache.entries") == [(turn,)]


def test_single_row_mode(table):
    """The driver takes rows as they come, before the result is complete."""
    for status in ("MISS", "HIT"):
        assert list(table.cursor().stream(QUERY)) == table.expected
        assert table.status() == status
