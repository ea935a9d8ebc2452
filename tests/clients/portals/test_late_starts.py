"""Portals whose answer depends on settings, where something happens between Bind and Execute. The plan that takes the place of a hit which does
not hold any more is started at the first row; it must give what one gives that was started at Bind."""

import itertools

import psycopg
import pytest
from support.session import DSN
from support.sweeps import LONG, sweep
from support.wire import data_rows

NAMES = itertools.count(1)
ROLES = "late_reader", "late_stranger", "late_owner"
SETUP = """
    CREATE TABLE t (d date, n int);
    INSERT INTO t SELECT date '2020-01-02' + g, g FROM generate_series(1, 5) g;
    CREATE INDEX ON t (n);
    CREATE VIEW over AS SELECT d, n FROM t;
    CREATE TABLE groups (n int, name text);
    INSERT INTO groups SELECT g, 'g' || g % 2 FROM generate_series(1, 5) g;
    GRANT USAGE ON SCHEMA {schema} TO late_reader, late_stranger, late_owner;
    GRANT SELECT ON t TO late_owner;
    ALTER VIEW over OWNER TO late_owner;
    GRANT SELECT ON t, over, groups TO late_reader"""

QUERIES = [
    "SELECT upper(d::text) AS day FROM t ORDER BY d",
    "SELECT upper(d::text) AS day FROM over WHERE n > 2 ORDER BY n, d",
    "SELECT name, upper(max(d)::text), count(*) FROM t JOIN groups USING (n) GROUP BY name ORDER BY name",
    "SELECT n, (SELECT upper(max(u.d)::text) FROM t u WHERE u.n <= t.n) FROM t WHERE n IN (SELECT n FROM groups) ORDER BY n",
    "SELECT n FROM t WHERE d < CURRENT_DATE - 3 ORDER BY d::text",
]

# What the session itself does between Bind and Execute, and what another one does.
OWN = {
    "nothing": "",
    "setting": "SET LOCAL datestyle = German",
    "role": "SET LOCAL ROLE late_stranger",
    "role and setting": "SET LOCAL ROLE late_stranger; SET LOCAL datestyle = German",
    "memory": "SET LOCAL work_mem = '64kB'; SET LOCAL datestyle = German",
    "savepoint rolled back": "SAVEPOINT a; SET LOCAL datestyle = German; ROLLBACK TO a",
    "savepoint released": "SAVEPOINT a; SET LOCAL datestyle = German; RELEASE a",
    "savepoint after an error": "SAVEPOINT a; SET LOCAL datestyle = German; SELECT 1/0; ROLLBACK TO a; SET LOCAL datestyle = Postgres",
    "revoke of the table": "RESET ROLE; REVOKE ALL ON {schema}.t, {schema}.over FROM late_reader; SET LOCAL ROLE late_reader",
    "revoke of a function": "RESET ROLE; REVOKE EXECUTE ON FUNCTION upper(text) FROM PUBLIC; SET LOCAL ROLE late_reader; SET LOCAL datestyle = German",
    "drop": "RESET ROLE; DROP TABLE {schema}.t CASCADE",
    "truncate": "RESET ROLE; SET LOCAL datestyle = German; SAVEPOINT a; TRUNCATE {schema}.t; ROLLBACK TO a",
    "alter": "RESET ROLE; SET LOCAL datestyle = German; SAVEPOINT a; ALTER TABLE {schema}.t ALTER n TYPE bigint; ROLLBACK TO a",
    "reindex": "RESET ROLE; SET LOCAL datestyle = German; SAVEPOINT a; REINDEX TABLE {schema}.t; ROLLBACK TO a",
    "rows": "RESET ROLE; SET LOCAL datestyle = German; INSERT INTO {schema}.t VALUES ('2021-01-01', 6); DELETE FROM {schema}.groups",
}
OTHERS = {
    "nothing": ("", ""),
    "rows": ("INSERT INTO t VALUES ('2021-01-01', 6)", "DELETE FROM t WHERE n = 6"),
    "revoke of the table": ("REVOKE ALL ON t, over FROM late_reader", "GRANT SELECT ON t, over TO late_reader"),
    "revoke of the view's owner": ("REVOKE ALL ON t FROM late_owner", "GRANT SELECT ON t TO late_owner"),
    "revoke of a function": ("REVOKE EXECUTE ON FUNCTION upper(text), date_lt(date, date), max(date) FROM PUBLIC",
                            "GRANT EXECUTE ON FUNCTION upper(text), date_lt(date, date), max(date) TO PUBLIC"),
}


def run(client, action):
    """Each statement of an action through a portal of its own name; returns the answers."""
    answers = []
    for statement in filter(None, action.split("; ")):
        name = f"between_{next(NAMES)}"
        answers += client.parse(statement, name).bind(portal=name, name=name).execute(name).sync()
    return answers


def by_portal(client, query, between, limit):
    client.parse(query, "q").bind(portal="p", name="q").sync()
    answers = between()
    answers += client.describe("p").execute("p", max_rows=limit).sync()
    return answers + client.execute("p").sync()


def by_cursor(client, query, between, limit):
    client.query(f"DECLARE c NO SCROLL CURSOR FOR {query}")
    answers = between()
    answers += client.query(f"FETCH {limit or 'ALL'} FROM c")
    return answers + client.query("FETCH ALL FROM c")


def by_scrolling(client, query, between, limit):
    client.query(f"DECLARE c SCROLL CURSOR FOR {query}")
    answers = between()
    for fetch in (f"{limit or 'ALL'}", "BACKWARD ALL", "FIRST", "ALL"):
        answers += client.query(f"FETCH {fetch} FROM c")
    return answers


def by_holding(client, query, between, limit):
    client.query(f"DECLARE c CURSOR WITH HOLD FOR {query}")
    answers = between()
    answers += client.query("COMMIT") + client.query("FETCH ALL FROM c")
    client.query("CLOSE c")
    return answers


WAYS = [by_portal, by_cursor, by_scrolling, by_holding]


@pytest.fixture(scope="module", autouse=True)
def roles():
    with psycopg.connect(DSN, autocommit=True) as admin:
        for role in ROLES:
            admin.execute(f"DROP ROLE IF EXISTS {role}")
            admin.execute(f"CREATE ROLE {role}")
        yield
        for role in ROLES:
            admin.execute(f"DROP ROLE {role}")


@pytest.fixture
def admin(connect):
    admin = connect()
    admin.execute(SETUP.format(schema=connect.schema))
    return admin


LOST = "revoke of a function"


def is_refused(answers):
    """Is a function refused that the role might have executed at Bind? Then the plan was started after the right was withdrawn."""
    return any(answer.type == "E" and b"permission denied for function" in answer.body for answer in answers)


def counted(session):
    """How many hits did not hold."""
    found = session.rows("SELECT statements FROM arrow_cache.bypass_reasons WHERE reason = 'settings_in_cursor'")
    return found[0][0] if found else 0


@sweep
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("other", OTHERS)
def test_something_between(admin, connect, wire, way, other):
    before, found = counted(admin), []
    happens, is_undone = OTHERS[other]
    for number, ((name, own), query, limit) in enumerate(itertools.product(OWN.items(), QUERIES, (0, 2))):
        # Three divides neither the number of queries nor that of limits: each third has all pairs of both.
        if number % 3 > (1 if LONG else 0):
            continue
        if way is by_holding and "RESET ROLE" in own:
            # This way commits what is done between.
            continue
        answers = []
        for enabled in ("off", "on"):
            client = wire()
            client.query(f"SET pg_arrow_cache.enabled = {enabled}; SET ROLE late_reader")
            for _ in range(2):
                client.query(query)
            client.query("BEGIN")

            def between():
                if happens:
                    admin.execute(happens)
                return run(client, own.format(schema=connect.schema))

            answers.append(way(client, query, between, limit))
            client.query("ROLLBACK")
            client.close()
            if is_undone:
                admin.execute(is_undone)
        if answers[0] != answers[1] and not (LOST in (name, other) and is_refused(answers[1])):
            where = next((i for i, (a, b) in enumerate(zip(*answers)) if a != b), None)
            found.append((name, query, limit, where, [answer[where:][:2] for answer in answers]))
    assert not found, "\n".join(map(str, found))
    assert counted(admin) > before, "no hit was given up"


def executions(client):
    """How many queries are under way, the one that asks among them."""
    return int(data_rows(client.query("SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'ExecutorState'"))[0][0])


@pytest.mark.parametrize("query", QUERIES)
def test_one_plan_is_started(admin, wire, query):
    """The plan that might take the place of a hit is not started with it."""
    client = wire()
    for _ in range(2):
        client.query(query)
    client.query("BEGIN")
    client.parse(query, "q").bind(portal="p", name="q").sync()
    assert executions(client) == 2
    client.query("SET LOCAL datestyle = German")
    client.execute("p", max_rows=2).sync()
    assert executions(client) == 3, "the plan runs below the scan"
    client.close_portal("p").sync()
    assert executions(client) == 1
    client.query("COMMIT")


def test_left_before_the_first_row(admin, wire):
    client = wire()
    before = counted(admin)
    for query in QUERIES:
        for _ in range(2):
            client.query(query)
        client.query("BEGIN")
        client.parse(query, "q").bind(portal="p", name="q").sync()
        client.query("SET LOCAL datestyle = German")
        client.close_portal("p").sync()
        assert executions(client) == 1
        client.query("COMMIT")
        client.query("DEALLOCATE ALL")
    assert counted(admin) == before


def test_role_is_the_sessions_again(admin, connect, wire):
    """A plan is started as somebody else at most while it is started, also when its start fails."""
    client = wire()
    client.query("SET ROLE late_reader")
    for _ in range(2):
        client.query(QUERIES[0])
    client.query("BEGIN")
    client.parse(QUERIES[0], "q").bind(portal="p", name="q").sync()
    admin.execute("REVOKE ALL ON t FROM late_reader")
    client.query("SET LOCAL datestyle = German")
    assert len(data_rows(client.execute("p").sync())) == 5
    assert data_rows(client.query("SELECT current_user, session_user = current_user")) == [[b"late_reader", b"f"]]
    assert client.query(f"SELECT 1 FROM {connect.schema}.t")[0].type == "E", "the right is gone"
    client.query("ROLLBACK")
    assert data_rows(client.query("SELECT current_user")) == [[b"late_reader"]]


SORTED, GREATEST = "SELECT n FROM groups ORDER BY name COLLATE co", "SELECT max(name COLLATE co) FROM groups"


@pytest.mark.parametrize("way", [by_portal, by_cursor])
@pytest.mark.parametrize("query, by_other", [(SORTED, False), (SORTED, True), (GREATEST, False)])
def test_collation_that_is_dropped(admin, connect, wire, way, query, by_other):
    """No lock protects a collation before the server has used it, at the first row. (Whether it hears of a drop by another session by then depends
    on what it has looked up before.)"""
    answers = []
    for enabled in ("off", "on"):
        admin.execute("DROP COLLATION IF EXISTS co; CREATE COLLATION co (provider = icu, locale = 'en-US')")
        for _ in range(2):
            admin.rows(query)
        client = wire()
        client.query(f"SET pg_arrow_cache.enabled = {enabled}")
        client.query("BEGIN")
        between = (lambda: admin.execute("DROP COLLATION co") and []) if by_other else (lambda: client.query("DROP COLLATION co"))
        found = way(client, query, lambda: between() or [], 1)
        answers.append([(answer.type, answer.body.split(b"\0")[2] if answer.type == "E" else answer.body) for answer in found])
        client.query("ROLLBACK")
        client.close()
    assert answers[0] == answers[1] and "E" in [kind for kind, _ in answers[0]]
