"""Execute with a row limit: a portal that is read in parts is neither stored nor served as complete before it is
complete."""

import pytest

from support.wire import data_rows, tags, types

QUERY = "SELECT a FROM t ORDER BY a"
ALL = [[b"%d" % n] for n in range(1, 11)]


@pytest.fixture
def client(session, wire):
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    return wire()


def cached(client):
    return client.value("SELECT count(*) FROM arrow_cache.entries")


def open_portal(client, query=QUERY):
    client.query("BEGIN")
    client.parse(query).bind(portal="p").describe("p").step("T")


@pytest.mark.parametrize("state", ["miss", "hit"])
def test_suspended_then_read_to_its_end(client, state):
    if state == "hit":
        client.query(QUERY)
    open_portal(client)
    first = client.execute("p", 1).step("s", "C")
    assert types(first) == "Ds" and data_rows(first) == ALL[:1]
    second = client.execute("p", 4).step("s", "C")
    assert types(second) == "DDDDs" and data_rows(second) == ALL[1:5]
    rest = client.execute("p").step("s", "C")
    assert types(rest) == "DDDDDC" and data_rows(rest) == ALL[5:]
    assert tags(rest) == ["SELECT 5"]
    client.sync()
    assert client.status() == state.upper()
    client.query("COMMIT")
    assert data_rows(client.query(QUERY)) == ALL
    assert client.status() == "HIT"


@pytest.mark.parametrize("end", ["close", "sync", "commit", "rollback"])
def test_left_half_read(client, end):
    """A portal that is abandoned stores nothing, however it is abandoned."""
    if end == "sync":
        # Without a transaction block the portal ends with the Sync.
        assert types(client.parse(QUERY).bind().execute(max_rows=3).sync()) == "12DDDsZ"
    else:
        open_portal(client)
        assert data_rows(client.execute("p", 3).step("s")) == ALL[:3]
        if end == "close":
            client.close_portal("p").sync()
        else:
            client.sync()
            client.query(end.upper())
    assert client.value("SELECT coalesce(arrow_cache.last_status(), '')") in ("MISS", "BYPASS")
    assert cached(client) == "0"
    if end == "close":
        client.query("COMMIT")
    assert data_rows(client.query(QUERY)) == ALL
    assert client.status() == "MISS"
    assert data_rows(client.query(QUERY)) == ALL
    assert client.status() == "HIT"


def test_a_hit_left_half_read_serves_others_whole(client):
    client.query(QUERY)
    open_portal(client)
    assert data_rows(client.execute("p", 3).step("s")) == ALL[:3]
    client.close_portal("p").sync()
    client.query("COMMIT")
    assert data_rows(client.query(QUERY)) == ALL
    assert client.status() == "HIT"


@pytest.mark.parametrize("state", ["miss", "hit"])
def test_finished_portal_gives_no_more_rows(client, state):
    if state == "hit":
        client.query(QUERY)
    open_portal(client)
    assert data_rows(client.execute("p").step("C")) == ALL
    for max_rows in (0, 1):
        again = client.execute("p", max_rows).step("C")
        assert types(again) == "C" and tags(again) == ["SELECT 0"]
    client.sync()
    client.query("COMMIT")
    assert data_rows(client.query(QUERY)) == ALL
    assert client.status() == "HIT"


@pytest.mark.parametrize("state", ["miss", "hit"])
def test_limit_of_exactly_all_rows(client, state):
    """The server knows that it is at the end only after it was asked for one row more."""
    if state == "hit":
        client.query(QUERY)
    open_portal(client)
    first = client.execute("p", 10).step("s", "C")
    assert types(first) == "D" * 10 + "s"
    if state == "miss":
        client.sync()
        assert cached(client) == "0"
    last = client.execute("p", 1).step("s", "C")
    assert types(last) == "C" and tags(last) == ["SELECT 0"]
    client.sync()
    client.query("COMMIT")
    assert data_rows(client.query(QUERY)) == ALL
    assert client.status() == "HIT"


def test_limit_beyond_the_result_completes_it(client):
    open_portal(client)
    first = client.execute("p", 11).step("s", "C")
    assert types(first) == "D" * 10 + "C" and tags(first) == ["SELECT 10"]
    client.sync()
    client.query("COMMIT")
    assert data_rows(client.query(QUERY)) == ALL
    assert client.status() == "HIT"


@pytest.mark.parametrize("state", ["miss", "hit"])
def test_two_portals_over_one_question_in_turn(client, state):
    if state == "hit":
        client.query(QUERY)
    client.query("BEGIN")
    client.parse(QUERY, "s").bind(portal="x", name="s").bind(portal="y", name="s").step("2")
    read = {"x": [], "y": []}
    for turn in range(4):
        for portal, step in (("x", 3), ("y", 2 + turn)):
            read[portal] += data_rows(client.execute(portal, step).step("s", "C"))
    assert read == {"x": ALL, "y": ALL}
    client.sync()
    client.query("COMMIT")
    assert data_rows(client.query(QUERY)) == ALL
    assert client.status() == "HIT"


def test_other_statements_between_two_reads(client, session):
    """A portal has the snapshot of its Bind: both parts ignore what happens between its two Executes."""
    open_portal(client)
    assert data_rows(client.execute("p", 5).step("s")) == ALL[:5]
    session.execute("UPDATE t SET a = a + 100 WHERE a > 5")
    assert data_rows(client.execute("p").step("C")) == ALL[5:]
    client.sync()
    client.query("COMMIT")
    assert [row[0] for row in session.rows(QUERY)] == [1, 2, 3, 4, 5, 106, 107, 108, 109, 110]
    assert session.status() == "MISS"


def test_write_with_a_row_limit_invalidates(client, session):
    """A statement with RETURNING runs to its end at once, whatever the limit of rows sent."""
    assert session.rows("SELECT sum(a) FROM t") == [(55,)]
    first = client.parse("UPDATE t SET a = a + 1 RETURNING a").bind().execute(max_rows=1).sync()
    assert types(first) == "12DsZ"
    for status in ("STALE", "HIT"):
        assert session.rows("SELECT sum(a) FROM t") == [(65,)]
        assert session.status() == status


def test_empty_result_with_a_limit(client):
    empty = "SELECT a FROM t WHERE a < 0"
    for status in ("MISS", "HIT"):
        answer = client.parse(empty).bind().execute(max_rows=1).sync()
        assert types(answer) == "12CZ" and tags(answer) == ["SELECT 0"]
        assert client.status() == status
