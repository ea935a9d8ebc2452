"""Portals and cursors that are read in parts, as drivers with a fetch size do: answers that depend on settings are served to them as of the first
row."""

import itertools

import pytest

from support.asking import wait_until
from support.sweeps import thinned
from support.wire import data_rows, types

SETUP = """
CREATE TABLE t (id int PRIMARY KEY, n int, ts timestamptz);
INSERT INTO t SELECT g, g % 7, timestamptz '2026-01-01 UTC' + g * interval '1 hour' FROM generate_series(1, 1000) g;
CREATE TYPE pair AS (x int, y text);
CREATE TABLE pairs (id int, p pair);
INSERT INTO pairs SELECT g, (g, 'y')::pair FROM generate_series(1, 10) g;
ANALYZE t;
"""
# A sort at the top computes all rows first; a scan in the order of an index, grouped, computes each when it is asked for.
SORTED = "SELECT id, ts::text FROM t ORDER BY n, id"
GROUPED = "SELECT id, max(ts)::text FROM t GROUP BY id ORDER BY id"
NAMES = itertools.count(1)


@pytest.fixture
def both(session, wire):
    """A session with the cache and one without."""
    session.execute(SETUP)
    clients = wire(), wire()
    clients[1].query("SET pg_arrow_cache.enabled = off")
    for client in clients:
        client.query("SET timezone = 'UTC'")
    for query in (SORTED, GROUPED):
        clients[0].query(query)
    return clients


def set_zone(client, zone):
    name = f"set_{next(NAMES)}"
    client.parse(f"SET LOCAL timezone = '{zone}'", name).bind(portal=name, name=name).execute(name).step("C")


def in_parts(client, query, sizes, portal, change_after=None):
    """The rows of each part; the zone changes after so many parts."""
    client.query("BEGIN")
    client.parse(query).bind(portal=portal).describe(portal).step("T")
    parts = []
    for number, size in enumerate(sizes):
        if number == change_after:
            set_zone(client, "Asia/Tokyo")
        parts.append(client.execute(portal, size).step("s", "C"))
    client.sync()
    client.query("COMMIT")
    return parts


@thinned("portal, query, sizes, change_after", ["", "C_1"], [SORTED, GROUPED], [[400, 400, 400], [1000, 1], [999, 1], [1001], [0]], [None, 0, 1, 2], one_in=2)
def test_answers_that_depend_on_settings(both, portal, query, sizes, change_after):
    on, off = both
    # A change after the first row does not show.
    expected = in_parts(off, query, sizes, portal, change_after if change_after == 0 else None)
    before = hits(on)
    assert in_parts(on, query, sizes, portal, change_after) == expected
    assert hits(on) - before == (change_after != 0)
    assert sum(len(data_rows(part)) for part in expected) == 1000


def hits(client):
    return int(client.value("SELECT hits FROM arrow_cache.stats"))


def test_one_row_by_fetchval(both):
    """One row with a limit of one: nothing is left that could be computed later."""
    on, off = both
    query = "SELECT max(ts)::text, count(*) FROM t"
    for status in ("MISS", "HIT", "HIT"):
        answers = [client.parse(query).bind().execute(max_rows=1).sync() for client in (off, on)]
        assert answers[0] == answers[1] and types(answers[0]) == "12DsZ"
        assert on.status() == status


def test_stored_in_parts(both):
    """Read to its end in parts, under the same settings, the answer of a portal is stored; under others it is not."""
    on, off = both
    for query in (SORTED, GROUPED):
        for change_after, status in ((1, "MISS"), (None, "MISS"), (None, "HIT")):
            if status == "MISS":
                on.query("SELECT arrow_cache.flush()")
            assert in_parts(on, query, [600, 600], "C_2", change_after) == in_parts(off, query, [600, 600], "C_2", change_after)
            stored = on.value("SELECT count(*) FROM arrow_cache.entries")
            assert stored == ("0" if change_after else "1"), query
        assert data_rows(on.query(query)) == data_rows(off.query(query))
        assert on.status() == "HIT"


def test_row_types_are_not_served_in_parts(both, session):
    """A value of a row type is put together when it is read, and its type may change between two reads."""
    query = "SELECT id, p FROM pairs ORDER BY id"
    on, off = both
    answers = []
    for client in (off, on):
        for _ in range(2):
            on.query(query)
        assert on.status() == "HIT"
        client.query("BEGIN")
        client.parse(query).bind(portal="p").step("2")
        parts = [client.execute("p", 4).step("s")]
        session.execute("ALTER TYPE pair ADD ATTRIBUTE z int")
        parts.append(client.execute("p").step("C", "E"))
        client.sync()
        client.query("ROLLBACK")
        session.execute("ALTER TYPE pair DROP ATTRIBUTE z")
        answers.append(parts)
    assert answers[0] == answers[1]
    assert len(data_rows(answers[0][0])) == 4


def test_many_open_cursors(both, session):
    """Each open cursor keeps its answer, whatever is flushed or stored meanwhile."""
    on, off = both
    queries = [f"SELECT id, n FROM t WHERE n <> {n} ORDER BY n, id" for n in range(7)]
    for query in queries:
        on.query(query)
    for client in both:
        client.query("BEGIN")
        for number, query in enumerate(queries):
            client.parse(query).bind(portal=f"m{number}").execute(f"m{number}", 10).sync()
    session.execute("SELECT arrow_cache.flush()")
    session.execute("DELETE FROM t WHERE id > 500")
    for number in range(7):
        answers = [client.execute(f"m{number}").sync() for client in (off, on)]
        assert answers[0] == answers[1] and len(data_rows(answers[0])) > 800
    for client in both:
        client.query("COMMIT")
    assert on.value("SELECT count(*) FROM arrow_cache.entries WHERE query ILIKE '%<>%'") == "0"


@pytest.mark.parametrize("end", ["COMMIT; CLOSE ALL", "COMMIT; DISCARD ALL", "ROLLBACK", "SELECT 1 / 0; ROLLBACK",
                                 "SELECT pg_terminate_backend(pg_backend_pid())"])
@pytest.mark.parametrize("stored", [True, False])
def test_whatever_ends_a_cursor_lets_its_answer_go(both, session, stored, end):
    on = both[0]

    def used():
        session.execute("SELECT arrow_cache.flush()")
        session.rows("SELECT count(*) FROM pairs")
        session.execute("SELECT arrow_cache.flush()")
        return session.rows("SELECT bytes_used, entries FROM arrow_cache.stats")

    before = used()
    if stored:
        for query in (SORTED, "SELECT id, n FROM t ORDER BY n, id"):
            on.query(query)
    on.query(f"DECLARE h SCROLL CURSOR WITH HOLD FOR {SORTED}")
    on.query(f"BEGIN; DECLARE c SCROLL CURSOR FOR {SORTED}; DECLARE d CURSOR WITH HOLD FOR SELECT id, n FROM t ORDER BY n, id")
    assert len(data_rows(on.query("FETCH 3 FROM c; FETCH 3 FROM d; FETCH 3 FROM h"))) == 9
    for statement in end.split("; "):
        if "terminate" in statement:
            with pytest.raises(ConnectionError):
                on.query(statement)
        else:
            on.query(statement)
    # A session that is terminated lets go when it has told its client.
    wait_until("its memory is free", lambda: used() == before)
