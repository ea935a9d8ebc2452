"""Settings that change between the Bind and the Execute of a portal whose answer depends on them."""

import itertools

import pytest

from support.wire import data_rows

QUERY = "SELECT d::text AS day FROM t ORDER BY d"
NAMES = itertools.count(1)
ISO, GERMAN = [[b"2020-01-02"], [b"2020-03-04"]], [[b"02.01.2020"], [b"04.03.2020"]]


@pytest.fixture
def client(session, wire):
    session.execute("CREATE TABLE t (d date); INSERT INTO t VALUES ('2020-01-02'), ('2020-03-04')")
    for _ in range(2):
        session.rows(QUERY)
    assert session.status() == "HIT"
    return wire()


def set_between(client, setting):
    """Through a named portal: the unnamed one stays as it is."""
    name = f"set_{next(NAMES)}"
    client.parse(f"SET {setting}", name).bind(portal=name, name=name).execute(name).step("C")


def set_style(client, style):
    set_between(client, f"datestyle = {style}")


def hits(session):
    return session.rows("SELECT hits FROM arrow_cache.stats")[0][0]


def test_nothing_changes(client, session):
    before = hits(session)
    client.parse(QUERY).bind().step("2")
    assert hits(session) == before, "a hit counts when its rows are read"
    assert data_rows(client.execute().sync()) == ISO
    assert client.status() == "HIT"
    assert hits(session) == before + 1


def bypassed(session):
    found = session.rows("SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'settings_in_cursor'")
    return found[0][0] if found else 0


def test_set_between(client, session):
    before = bypassed(session)
    client.parse(QUERY).bind().step("2")
    set_style(client, "German")
    assert data_rows(client.execute().sync()) == GERMAN
    assert bypassed(session) == before + 1


def test_what_is_computed_after_a_change_is_not_stored(client, session):
    """A miss, whose key has the settings of its start."""
    session.rows("SELECT arrow_cache.flush()")
    client.parse(QUERY).bind().step("2")
    set_style(client, "German")
    assert data_rows(client.execute().sync()) == GERMAN
    for status in ("MISS", "HIT"):
        assert session.rows(QUERY) == [(day.decode(),) for day, in ISO]
        assert session.status() == status


def test_set_and_set_back(client):
    client.parse(QUERY).bind().step("2")
    set_style(client, "German")
    set_style(client, "ISO")
    assert data_rows(client.execute().sync()) == ISO


def test_errors_of_the_real_plan_are_its_own(client, session):
    """The real plan fails under the new settings as it would without the cache."""
    query = "SELECT 1 / (length(d::timestamp::text) - 24) AS x FROM t"
    for _ in range(2):
        session.rows(query)
    client.parse(query).bind().step("2")
    set_style(client, "Postgres, DMY")
    messages = client.execute().step("C", "E")
    assert messages[-1].type == "E"
    client.sync()
    client.query("SET pg_arrow_cache.enabled = off; SET datestyle = ISO")
    client.parse(query).bind().step("2")
    set_style(client, "Postgres, DMY")
    assert client.execute().step("C", "E") == messages
    client.sync()


def test_suspended_portal(client):
    """Rows that are read after the change show the change, even if others were read before."""
    answers = []
    for enabled in ("off", "on"):
        client.query(f"SET pg_arrow_cache.enabled = {enabled}; SET datestyle = ISO")
        client.query("BEGIN")
        client.parse(QUERY).bind().step("2")
        rows = data_rows(client.execute(max_rows=1).step("s"))
        set_style(client, "German")
        answers.append(rows + data_rows(client.execute().step("C")))
        client.sync()
        client.query("ROLLBACK")
    assert answers[0] == answers[1]


def test_limit_beyond_the_last_row(client):
    client.parse(QUERY).bind().step("2")
    assert data_rows(client.execute(max_rows=100).sync()) == ISO
    assert client.status() == "HIT"


def test_set_role_between(client, session):
    session.execute("""CREATE ROLE regress_between; GRANT SELECT ON t TO regress_between""")
    query = "SELECT current_user::text AS who FROM t"
    session.rows(query)
    try:
        client.query("BEGIN")
        client.parse(query).bind().step("2")
        set_between(client, "LOCAL ROLE regress_between")
        assert data_rows(client.execute().step("C")) == [[b"regress_between"]] * 2
        client.sync()
    finally:
        client.query("ROLLBACK")
        session.execute("REVOKE SELECT ON t FROM regress_between; DROP ROLE regress_between")


def test_set_role_between_to_one_who_may_not(client, session):
    """Permissions are checked at Bind, also for the plan that runs in place of the hit."""
    session.execute("CREATE ROLE regress_may_not")
    try:
        answers = []
        for enabled in ("off", "on"):
            client.query(f"SET pg_arrow_cache.enabled = {enabled}; BEGIN")
            client.parse(QUERY).bind().step("2")
            set_between(client, "LOCAL ROLE regress_may_not")
            answers.append(data_rows(client.execute().step("C", "E")))
            client.sync()
            client.query("ROLLBACK")
        assert answers == [ISO, ISO]
    finally:
        session.execute("DROP ROLE regress_may_not")
