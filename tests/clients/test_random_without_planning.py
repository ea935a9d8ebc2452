"""Random statements in two sessions with the cache and in one without, while random changes happen between them: the three
answers agree, errors included. Constants are few, so that most statements come often and are not planned any more."""

import os
import random

import psycopg
import pytest

from placeholders import PLACEHOLDER, SHOW_PLANS

SEED = int(os.environ.get("RANDOM_SEED", 20261122))
STEPS = int(os.environ.get("RANDOM_STEPS", 3000))
ROLES = ("regress_cache_random_1", "regress_cache_random_2")

SETUP = """
CREATE TABLE t (a int, b text, d date);
INSERT INTO t SELECT g % 7, 'row ' || g, date '2024-01-01' + g FROM generate_series(1, 40) g;
CREATE TABLE u (a int, n numeric, f float8);
INSERT INTO u SELECT g % 5, g / 4.0, g / 3.0::float8 FROM generate_series(1, 30) g;
CREATE TABLE p (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (2);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (2) TO (4);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (4) TO (8);
INSERT INTO p SELECT g % 8, 'part ' || g FROM generate_series(1, 40) g;
CREATE TABLE parent (a int, b text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT g % 6, 'parent ' || g FROM generate_series(1, 10) g;
INSERT INTO child SELECT g % 6, 'child ' || g FROM generate_series(1, 10) g;
CREATE TABLE fenced AS SELECT a, b, (ARRAY['{0}', '{1}'])[a % 2 + 1] AS who FROM t;
ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON fenced USING (who = CURRENT_USER);
CREATE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 2;
CREATE VIEW invoker WITH (security_invoker) AS SELECT a, n FROM u;
CREATE VIEW barrier WITH (security_barrier) AS SELECT a, b FROM fenced;
GRANT SELECT ON t, p, parent, fenced, seen, barrier, invoker TO {0}, {1};
GRANT SELECT ON u TO {0};
GRANT INSERT ON t TO {0}, {1};
CREATE SCHEMA {2};
GRANT USAGE ON SCHEMA {2}, {3} TO {0}, {1};
"""

# {0} and {1} stand for a constant or a parameter. Rows that may come in any order are compared as a set.
QUERIES = [
    "SELECT b FROM t WHERE a = {0} ORDER BY b",
    "SELECT * FROM t WHERE a = {0} AND b <> {1}::text ORDER BY b",
    "SELECT a AS x, count(*) AS c FROM t WHERE a > {0} GROUP BY a ORDER BY a",
    "SELECT a AS y, count(*) AS c FROM t WHERE a > {0} GROUP BY a ORDER BY a",
    "SELECT d::text, b FROM t WHERE a = {0} AND d > '02/01/2024' ORDER BY b",
    "SELECT sum(n), max(f), avg(f) FROM u WHERE a <> {0}",
    "SELECT t.b, u.f FROM t JOIN u ON t.a = u.a AND u.a = {0} ORDER BY 1, 2 LIMIT 5",
    "SELECT b FROM p WHERE a = {0} ORDER BY b",
    "SELECT a, b FROM p WHERE a BETWEEN {0} AND {0} + 2",
    "SELECT count(*) FROM p",
    "SELECT count(*) FROM p1 WHERE a >= {0}",
    "SELECT * FROM parent WHERE a = {0} ORDER BY 1, 2",
    "SELECT * FROM seen WHERE a = {0} ORDER BY 1, 2, 3",
    "SELECT count(*), min(n) FROM invoker WHERE a >= {0}",
    "SELECT count(*) FROM barrier WHERE a >= {0}",
    "SELECT a, b FROM fenced WHERE a = {0} ORDER BY b",
    "SELECT a FROM t WHERE a = {0} UNION SELECT a FROM p WHERE a > {0} ORDER BY 1",
    "WITH w AS (SELECT a, b FROM t WHERE a < {0}) SELECT w.a, x.a FROM w, u x WHERE w.a = x.a ORDER BY 1, 2 LIMIT 7",
    "SELECT b, CURRENT_USER FROM t WHERE a = {0} AND EXISTS (SELECT FROM p WHERE p.a = t.a) ORDER BY b",
    "SELECT {1}::text, {0} + a, NULLIF(a, {0}) FROM t WHERE a IN ({0}, 3) ORDER BY b",
    "SELECT array_agg(b ORDER BY b) FROM t WHERE a IS NOT DISTINCT FROM {0}",
    "SELECT 12 / (a - {0}) FROM t WHERE a < 4 ORDER BY b",
    "SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) FROM t WHERE a >= {0} ORDER BY b",
    "SELECT b::varchar(5), a::text || {1} FROM t WHERE a = {0} ORDER BY b",
]
CONSTANTS = ["0", "1", "2", "3", "5", "NULL"]
TEXTS = ["row 7", "", "it's"]

# What the writer does while no transaction is open. Each may fail, as when something is there already.
CHANGES = [
    "UPDATE t SET b = b || '.' WHERE a = {0}", "INSERT INTO t VALUES ({0}, 'new', '2024-03-01')",
    "DELETE FROM t WHERE b LIKE 'new%'", "UPDATE u SET n = n + 1 WHERE a = {0}", "UPDATE p SET b = b || '!' WHERE a = {0}",
    "UPDATE p SET a = 7 - a", "INSERT INTO child VALUES ({0}, 'new')", "DELETE FROM parent WHERE b = 'new'",
    "UPDATE fenced SET a = a + 1 WHERE a = {0}; UPDATE fenced SET a = 0 WHERE a > 6",
    "BEGIN; TRUNCATE p1; INSERT INTO p1 VALUES (0, 'zero'), (1, 'one'); COMMIT",
    "BEGIN; UPDATE t SET b = 'undone'; ROLLBACK",
]
DEFINITIONS = [
    "ALTER TABLE t ADD COLUMN extra int DEFAULT 7", "ALTER TABLE t DROP COLUMN extra", "CREATE INDEX t_a ON t (a)", "DROP INDEX t_a",
    "ALTER TABLE u ALTER a TYPE bigint", "ALTER TABLE parent RENAME b TO c", "ALTER TABLE parent RENAME c TO b",
    "CREATE OR REPLACE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 4",
    "CREATE OR REPLACE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 2",
    "ALTER TABLE p DETACH PARTITION p3", "ALTER TABLE p DETACH PARTITION p3 CONCURRENTLY",
    "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (4) TO (8)", "ALTER TABLE child NO INHERIT parent",
    "ALTER TABLE child INHERIT parent",
    "CREATE TABLE {front}.t AS SELECT 1 AS a, 'front' AS b, '2024-05-05'::date AS d; GRANT SELECT ON {front}.t TO PUBLIC",
    "DROP TABLE {front}.t", "ALTER TABLE fenced DISABLE ROW LEVEL SECURITY", "ALTER TABLE fenced ENABLE ROW LEVEL SECURITY",
    "ALTER POLICY own ON fenced USING (who <> CURRENT_USER)", "ALTER POLICY own ON fenced USING (who = CURRENT_USER)",
    "GRANT SELECT ON u TO {role2}", "REVOKE SELECT ON u FROM {role2}", "REVOKE SELECT ON t FROM {role1}", "GRANT SELECT ON t TO {role1}",
    "ALTER VIEW invoker SET (security_invoker = false)", "ALTER VIEW invoker SET (security_invoker = true)",
    "ALTER VIEW barrier RESET (security_barrier)", "ALTER VIEW barrier SET (security_barrier)",
    "ALTER VIEW barrier OWNER TO {role1}", "ALTER VIEW barrier OWNER TO CURRENT_USER", "ANALYZE",
]
# What all sessions do alike.
SETTINGS = [
    "SET ROLE {role1}", "SET ROLE {role2}", "RESET ROLE", "SET search_path = {front}, {schema}", "SET search_path = {schema}",
    "SET datestyle = 'ISO, DMY'", "SET datestyle = 'German'", "SET datestyle = 'ISO, MDY'", "SET extra_float_digits = 0",
    "SET extra_float_digits = 1", "SET plan_cache_mode = force_custom_plan", "SET plan_cache_mode = force_generic_plan",
    "SET plan_cache_mode = auto", "SET enable_seqscan = off", "SET enable_seqscan = on", "SET row_security = off", "SET row_security = on",
    "CREATE TEMPORARY TABLE u AS SELECT 1 AS a, 2.5 AS n, 0.5::float8 AS f", "DISCARD TEMP",
]


class Watched:
    """A session, and how many of its statements were handed a placeholder."""

    def __init__(self, session):
        self.session, self.placeholders = session, 0
        session.add_notice_handler(self.note)

    def note(self, notice):
        self.placeholders += notice.message_primary == "plan:" and PLACEHOLDER in notice.message_detail

    def run(self, text):
        return shown(self.session.pgconn.exec_(text.encode()))

    def ask(self, way, number, simple, with_parameters, values):
        connection = self.session.pgconn
        if way == "simple":
            return shown(connection.exec_(simple.encode()))
        if way == "string":
            return shown(connection.exec_(f"{simple}; {simple}".encode()))
        if way == "named":
            name = b"s%d" % number
            result = connection.exec_prepared(name, values)
            if result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"26000":
                prepared = shown(connection.prepare(name, with_parameters.encode()))
                return shown(connection.exec_prepared(name, values)) if prepared[0] is None else prepared
            return shown(result)
        return shown(connection.exec_params(with_parameters.encode(), values, result_format=int(way == "binary")))


def shown(result):
    """All that a client gets to see of a result: the error, or columns with their names, types and origins, and rows."""
    columns = range(result.nfields)
    return (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE), result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY),
            result.command_status,
            [(result.fname(c), result.ftype(c), result.fmod(c), result.ftablecol(c)) for c in columns],
            [[result.get_value(row, c) for c in columns] for row in range(result.ntuples)])


def comparable(answer, query):
    return answer if "ORDER BY" in query else (*answer[:4], sorted(answer[4]))


def literal(text):
    return "'" + text.replace("'", "''") + "'"


class Run:
    def __init__(self, connect, seed):
        self.random = random.Random(seed)
        self.writer = connect()
        names = {"schema": connect.schema, "front": f"{connect.schema}_front", "role1": ROLES[0], "role2": ROLES[1]}
        self.names = names
        for role in ROLES:
            self.writer.execute(f"CREATE ROLE {role}")
        self.writer.execute(SETUP.format(*ROLES, names["front"], names["schema"]))
        # Without sequential scans everything seems so expensive that it would be compiled.
        self.cached = [Watched(connect("-c jit=off", prepare_threshold=None)) for _ in range(2)]
        self.plain = Watched(connect("-c jit=off -c pg_arrow_cache.enabled=off", prepare_threshold=None))
        self.all = [*self.cached, self.plain]
        # One that is in no transaction with them, and stores answers under the latest snapshot.
        self.fresh = Watched(connect("-c jit=off", prepare_threshold=None))
        for watched in self.all:
            watched.run(SHOW_PLANS)
        self.failures = self.answers = 0

    def everywhere(self, text):
        assert len({watched.run(text)[0] for watched in self.all}) == 1, text

    def change(self, text):
        try:
            self.writer.execute(text)
        except psycopg.Error:
            self.writer.execute("ROLLBACK")

    def choice(self):
        """How to ask what: the arguments of `Watched.ask`, and the text that the answers are compared by."""
        number = self.random.randrange(len(QUERIES))
        query = QUERIES[number]
        # Some constants come more often than others, so that there is something to be served.
        constant = CONSTANTS[min(self.random.randrange(len(CONSTANTS)), self.random.randrange(len(CONSTANTS)))]
        text = self.random.choice(TEXTS)
        way = self.random.choice(("simple", "simple", "simple", "string", "named", "text", "binary"))
        values = [None if constant == "NULL" else constant.encode(), text.encode()]
        simple = query.format(constant, literal(text))
        with_parameters = query.format("$1::int", "$2::text") if "{1}" in query else query.format("$1::int")
        values = values[:2 if "{1}" in query else 1 if "{0}" in query else 0]
        return query, (way, number, simple, with_parameters, values)

    def question(self, choice=None):
        query, asked = choice or self.choice()
        answers = [comparable(watched.ask(*asked), query)
                   for watched in self.random.sample(self.all, len(self.all))]
        assert answers[0] == answers[1] == answers[2], asked
        self.failures += answers[0][0] is not None
        self.answers += 1

    def snapshot(self):
        """The three sessions share an old snapshot, while others write and store newer answers."""
        exported = None
        for watched in reversed(self.all):
            watched.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
            if exported:
                assert watched.run(f"SET TRANSACTION SNAPSHOT '{exported}'")[0] is None
            else:
                exported = watched.run("SELECT pg_export_snapshot()")[4][0][0].decode()
        choices = [self.choice() for _ in range(4)]
        for _ in range(self.random.randrange(2, 5)):
            for choice in choices:
                self.question(choice)
                self.fresh.ask(*choice[1])
            change = self.random.choice([change for change in CHANGES if "TRUNCATE" not in change])
            self.change(change.format(self.random.choice(CONSTANTS)))
        self.everywhere("ROLLBACK")

    def own_writes(self):
        """Each has written the same, and sees it."""
        choices = [self.choice() for _ in range(4)]
        for choice in choices * 2:
            self.question(choice)
        self.everywhere("BEGIN")
        self.everywhere(f"SAVEPOINT s; INSERT INTO {self.names['schema']}.t VALUES (1, 'own', '2024-01-01')")
        for choice in choices:
            self.question(choice)
        if self.random.random() < 0.5:
            self.everywhere("ROLLBACK TO s")
        for choice in choices[self.random.randrange(len(choices)):]:
            self.question(choice)
        self.everywhere("ROLLBACK")

    def end(self):
        for watched in (*self.all, self.fresh):
            for text in ("ROLLBACK", "RESET ROLE", "DISCARD TEMP"):
                watched.run(text)

    def step(self):
        kind = self.random.random()
        if kind < 0.90:
            self.question()
        elif kind < 0.94:
            self.change(self.random.choice(CHANGES).format(self.random.choice(CONSTANTS)))
        elif kind < 0.96:
            self.change(self.random.choice(DEFINITIONS).format(**self.names))
        elif kind < 0.98:
            setting = self.random.choice(SETTINGS).format(**self.names)
            self.everywhere(setting)
            self.fresh.run(setting)
        elif kind < 0.99:
            self.snapshot()
        else:
            self.own_writes()


@pytest.fixture
def roles(connect):
    yield
    with connect() as last:
        last.execute("SET client_min_messages = warning; SET lock_timeout = '10s'")
        last.execute(f"DROP SCHEMA IF EXISTS {connect.schema}, {connect.schema}_front CASCADE")
        for role in ROLES:
            last.execute(f"DROP ROLE IF EXISTS {role}")
        last.execute(f"CREATE SCHEMA {connect.schema}")


def test_answers_agree(connect, roles):
    run = Run(connect, SEED)
    print(f"seed {SEED}")
    try:
        for number in range(STEPS):
            run.step()
    except AssertionError as difference:
        raise AssertionError(f"step {number} of seed {SEED}") from difference
    finally:
        run.end()
    # Enough of it was what the test is about.
    assert min(watched.placeholders for watched in run.cached) > STEPS / 20
    assert run.plain.placeholders == 0
    assert run.answers - run.failures > STEPS / 3
    print({"answers": run.answers, "errors": run.failures, "placeholders": [watched.placeholders for watched in run.all]})
