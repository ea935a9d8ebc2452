"""Plans that are kept from while the cache was off: they are made anew once it is on, and only they are."""

import pytest

from support.wire import data_rows

QUERIES = [
    ("SELECT count(*) FROM t", ()),
    ("SELECT count(*) FROM t WHERE a > $1", (b"3",)),
    ("SELECT sum(a) FROM t WHERE a > $1 GROUP BY a % 2", (b"3",)),
    # The plan rests on a function, of which the server notes something on it, too.
    ("SELECT count(*) FROM t WHERE twice(a) > $1", (b"3",)),
]


@pytest.fixture
def client(session, wire):
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    session.execute("CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2'")
    client = wire()
    client.query("SET plan_cache_mode = force_generic_plan")
    return client


def switch(client, state):
    client.query(f"SET pg_arrow_cache.enabled = {state}")


def outcome(client):
    return client.status(), client.value("SELECT coalesce(arrow_cache.last_reason(), '')") or None


@pytest.mark.parametrize("query, values", QUERIES)
def test_a_named_statement(client, query, values):
    switch(client, "off")
    client.parse(query, "s", types=(23,) * len(values)).sync()

    def execute():
        rows = data_rows(client.bind(values, name="s").execute().sync())
        return rows, *outcome(client)

    rows, *_ = execute()
    assert outcome(client) == ("BYPASS", "disabled")
    switch(client, "on")
    assert execute() == (rows, "BYPASS", "not_analyzed")
    assert execute() == (rows, "MISS", None)
    assert execute() == (rows, "HIT", None)
    for _ in range(3):
        switch(client, "off")
        assert execute() == (rows, "BYPASS", "disabled")
        switch(client, "on")
        assert execute() == (rows, "HIT", None)


def test_a_statement_prepared_by_sql(client):
    switch(client, "off")
    client.query("PREPARE p AS SELECT count(*) FROM t")
    client.query("EXECUTE p")
    switch(client, "on")
    for expected in (("BYPASS", "not_analyzed"), ("MISS", None), ("HIT", None)):
        assert data_rows(client.query("EXECUTE p")) == [[b"10"]]
        assert outcome(client) == expected


def test_a_portal_that_is_bound_before_and_read_after(client):
    """The portal goes on with the plan that it has, also if that is asked to be made anew."""
    switch(client, "off")
    client.parse("SELECT a FROM t ORDER BY a", "s").bind(name="s").step("1", "2")
    client.parse("SET pg_arrow_cache.enabled = on", "on").bind(portal="on", name="on").execute("on").step("C")
    client.parse("SELECT a FROM t LIMIT 100", "other").bind(portal="other", name="s").execute("other", 3).step("s")
    assert len(data_rows(client.execute("").step("C"))) == 10
    assert len(data_rows(client.execute("other").sync())) == 7
    client.bind(name="s").execute().sync()
    assert client.status() == "MISS"


def test_what_others_than_clients_keep(client):
    """A function's plan is neither marked nor made anew: nothing inside of it is looked up."""
    client.query("CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM t); END $$")
    switch(client, "off")
    client.query("SELECT f()")
    switch(client, "on")
    assert data_rows(client.query("SELECT f()")) == [[b"10"]]
