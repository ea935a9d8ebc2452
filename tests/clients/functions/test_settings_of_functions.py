"""Functions that are marked IMMUTABLE and read settings, over columns: rows that are read after a change of the settings
show the change, in cursors and in bound portals."""

import pytest

from support.settings_of_functions import CASES, case
from support.wire import data_rows


@pytest.fixture(params=CASES)
def asked(request, session):
    """A query, two settings, and its answers under each."""
    call, _, one, two = case(session, request.param)
    # A cursor over a plain scan is not served.
    query = f"WITH t AS MATERIALIZED (SELECT v FROM t) SELECT {call} AS x FROM t"
    answers = {}
    for setting in (one, two):
        session.execute(f"SET {setting}")
        answers[setting] = session.uncached(query)
    assert answers[one] != answers[two], "the settings must matter"
    session.execute(f"SET {one}")
    for expected in ("MISS", "HIT"):
        assert session.rows(query) == answers[one]
        assert session.status() == expected
    return query, one, two, answers


def test_each_setting_has_its_answer(session, asked):
    query, one, two, answers = asked
    for setting in (two, one, two):
        session.execute(f"SET {setting}")
        assert session.rows(query) == answers[setting]


def test_cursor(session, asked):
    query, one, two, _ = asked
    read = {}
    for enabled in ("off", "on"):
        session.execute(f"SET pg_arrow_cache.enabled = {enabled}; SET {one}")
        with session.transaction():
            session.execute(f"DECLARE c NO SCROLL CURSOR FOR {query}")
            session.execute(f"SET LOCAL {two}")
            read[enabled] = session.rows("FETCH ALL FROM c")
    assert read["on"] == read["off"]


def test_bound_portal(wire, asked):
    query, one, two, _ = asked
    client = wire()
    read = {}
    for enabled in ("off", "on"):
        client.query(f"SET pg_arrow_cache.enabled = {enabled}; SET {one}")
        client.parse(query).bind().step("2")
        client.parse(f"SET {two}", f"set_{enabled}").bind(portal="s", name=f"set_{enabled}").execute("s").step("C")
        client.close_portal("s").step("3")
        read[enabled] = data_rows(client.execute().sync())
    assert read["on"] == read["off"]


@pytest.mark.parametrize("call", ["json_send(v::json)", "jsonb_send(v::jsonb)", "tsvectorsend(v::tsvector)", "jsonpath_send(v::jsonpath)"])
def test_what_speaks_the_encoding_of_the_client(session, call):
    """It is not part of the key: such functions are refused."""
    session.execute("CREATE TABLE t (v text)")
    session.execute("INSERT INTO t VALUES (%s)", ['"ä"'])
    query = f"SELECT {call} AS x FROM t"
    answers, statuses = set(), set()
    for encoding in ("UTF8", "LATIN1", "UTF8"):
        session.execute(f"SET client_encoding = {encoding}")
        expected = session.uncached(query)
        for _ in range(2):
            assert session.rows(query) == expected
            statuses.add(session.status())
        answers.add(expected[0])
    assert len(answers) == 2, "the setting must matter"
    assert statuses == {"BYPASS"}
