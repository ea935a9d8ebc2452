"""What the server does when a plan starts, at Bind, and what comes of changes before the first row: permissions are
checked and relations of portals with names opened at Bind, settings are those of the first row."""

import pytest

from support.wire import data_rows, errors_by_message

SETUP = """
CREATE TABLE p (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
INSERT INTO p SELECT g, 'p' || g FROM generate_series(0, 19) g;
CREATE TABLE pd (d timestamp) PARTITION BY RANGE (d);
CREATE TABLE pd1 PARTITION OF pd FOR VALUES FROM ('2020-01-01') TO ('2020-01-02');
CREATE TABLE pd2 PARTITION OF pd FOR VALUES FROM ('2020-01-02') TO ('2020-01-03');
INSERT INTO pd VALUES ('2020-01-01 12:00'), ('2020-01-02 01:00');
CREATE TABLE stamped (id int, at timestamptz);
INSERT INTO stamped VALUES (1, '2020-01-01'), (2, '2020-06-01');
CREATE TABLE other (n int);
INSERT INTO other VALUES (1);
CREATE TYPE mood AS ENUM ('calm', 'cross');
CREATE TABLE moods (id int, mood mood);
"""
BY_SETTING = "SELECT k FROM p WHERE k >= 7 AND k < current_setting('app.k')::int"


@pytest.fixture
def both(session, wire):
    """A session with the cache and one without."""
    session.execute(SETUP)
    on, off = wire(), wire()
    off.query("SET pg_arrow_cache.enabled = off")
    return on, off


def compare(both, prepare, steps, undo=None):
    """Each session does the same, the one with the cache with a stored answer."""
    answers = []
    for client in reversed(both):
        for _ in range(3):
            prepare(client)
        answers.append([errors_by_message(answer) for answer in steps(client)])
        if undo:
            undo(client)
    assert answers[0] == answers[1]
    return answers[0]


@pytest.mark.parametrize("first, then", [(9, 15), (15, 9)])
@pytest.mark.parametrize("limit", [0, 1])
def test_pruned_by_a_setting(both, first, then, limit):
    """The rows are those of the setting under which the first one is computed."""
    client, _ = both
    for _ in range(3):
        client.query(f"SET app.k = '{first}'")
        assert len(data_rows(client.parse(BY_SETTING).bind().execute().sync())) == first - 7
    client.query("BEGIN")
    client.parse(f"SET app.k = '{then}'", name="s").parse(BY_SETTING).bind()
    answer = client.bind(portal="s", name="s").execute("s").execute(max_rows=limit).sync()
    rows = [int(row[0]) for row in data_rows(answer)]
    assert rows == list(range(7, then))[:limit or None]
    client.query("ROLLBACK")


def test_pruned_by_the_time_zone(both):
    query = "SELECT d FROM pd WHERE d < '2020-01-01 23:00+00'::timestamptz"
    client, _ = both
    for _ in range(3):
        client.query("SET TimeZone = 'UTC'")
        assert len(data_rows(client.parse(query).bind().execute().sync())) == 1
    client.query("BEGIN")
    client.parse("SET TimeZone = 'Asia/Tokyo'", name="s").parse(query).bind()
    answer = client.bind(portal="s", name="s").execute("s").execute().sync()
    assert len(data_rows(answer)) == 2
    client.query("ROLLBACK")


@pytest.mark.parametrize("statement", ["TRUNCATE p1", "DROP TABLE p1", "TRUNCATE p2", "TRUNCATE p", "ALTER TABLE p1 ADD CHECK (k < 10)"])
@pytest.mark.parametrize("query, value", [("SELECT k, v FROM p WHERE k = $1", b"5"), ("SELECT count(*) FROM p WHERE k = $1", b"5")])
def test_partitions_in_use(both, statement, query, value):
    def prepare(client):
        client.query("SET plan_cache_mode = force_generic_plan")
        client.query("DEALLOCATE ALL")
        client.parse(query, name="q").sync()
        for _ in range(2):
            client.bind([value], name="q").execute().sync()

    def steps(client):
        yield client.query("BEGIN")
        client.parse(statement, name="d").bind([value], portal="named", name="q").bind(portal="d", name="d").execute("d")
        yield client.execute("named").step("C", "E")
        client.sync()
        yield client.query("ROLLBACK")

    answers = compare(both, prepare, steps)
    refused = statement != "TRUNCATE p2"
    assert any(type == "E" for type, _ in answers[1]) == refused


@pytest.mark.parametrize("query", ["SELECT at::text FROM stamped WHERE id = 2", "SELECT id FROM stamped"])
def test_rights_are_those_of_the_start(both, session, query):
    role = "regress_cache_between"
    session.execute(f"CREATE ROLE {role}; GRANT SELECT ON stamped, other TO {role}")
    session.execute(f"GRANT USAGE ON SCHEMA {session.rows('SELECT current_schema()')[0][0]} TO {role}")
    try:
        def prepare(client):
            client.query(f"SET ROLE {role}")
            client.parse(query).bind().execute().sync()

        def steps(client):
            session.execute(f"GRANT SELECT ON stamped TO {role}")
            prepare(client)
            prepare(client)
            yield client.query("BEGIN")
            yield client.parse("SELECT n FROM other", name="o").parse(query).bind().step("2")
            session.execute(f"REVOKE SELECT ON stamped FROM {role}")
            answer = client.bind(portal="o", name="o").execute("o").execute().sync()
            assert len(data_rows(answer)) > 1
            yield answer
            yield client.query("ROLLBACK")

        compare(both, prepare, steps, lambda client: client.query("DEALLOCATE ALL"))
    finally:
        for client in both:
            client.query("ROLLBACK; RESET ROLE")
        session.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.parametrize("rows", [0, 1])
def test_a_type_is_dropped_in_between(both, session, rows):
    query = "SELECT id, mood FROM moods WHERE id > 0"
    if rows:
        session.execute("INSERT INTO moods VALUES (1, 'calm')")

    def prepare(client):
        client.parse(query).bind().execute().sync()

    def steps(client):
        yield client.query("BEGIN")
        client.parse("DROP TYPE mood CASCADE", name="d").parse(query).bind(portal="named").bind(portal="d", name="d").execute("d")
        yield client.execute("named").sync()
        yield client.query("ROLLBACK")

    compare(both, prepare, steps, lambda client: client.query("DEALLOCATE ALL"))
