"""Two sessions that do the same, one with the cache and one without, each in a schema of its own with the same tables: they write, redefine, undo,
change roles and settings, and ask the same few questions all the time, by each way that a statement has. A third one stores answers of the
committed state for the one with the cache. Every message must be the same."""

import os
import random

import psycopg
import pytest

from support.random_cursors import comparable
from support.session import DSN
from support.wire import Wire

SEED = int(os.environ.get("RANDOM_SEED", 20261129))
EPISODES = int(os.environ.get("RANDOM_EPISODES", 50))
ROLES = ("regress_cache_twin_1", "regress_cache_twin_2")
IN_USE = "55006"

SETUP = """
CREATE TABLE t (a int, b text, d date DEFAULT '2024-02-02');
INSERT INTO t SELECT g % 5, 'row ' || g, date '2024-01-01' + g FROM generate_series(1, 30) g;
CREATE TABLE t2 (a int, b text, d date);
INSERT INTO t2 SELECT g % 5, 'two ' || g, date '2024-01-01' + g FROM generate_series(1, 30) g;
CREATE TABLE u (a int, n numeric, secret text);
INSERT INTO u SELECT g % 5, g / 4.0, 's' || g FROM generate_series(1, 20) g;
CREATE TABLE p (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (2);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (2) TO (4);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (4) TO (8);
INSERT INTO p SELECT g % 8, 'part ' || g FROM generate_series(1, 32) g;
CREATE TABLE parent (a int, b text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT g % 5, 'parent ' || g FROM generate_series(1, 6) g;
INSERT INTO child SELECT g % 5, 'child ' || g FROM generate_series(1, 6) g;
CREATE TABLE fenced AS SELECT a, b, (ARRAY['{role1}', '{role2}'])[a % 2 + 1] AS who FROM t;
ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON fenced USING (who = CURRENT_USER);
CREATE POLICY few ON fenced AS RESTRICTIVE USING (a < (SELECT max(u.a) + 1 FROM {schema}.u));
CREATE TYPE mood AS ENUM ('calm', 'cross');
CREATE TYPE pair AS (x int, y text);
CREATE TABLE felt AS SELECT g AS a, (ARRAY['calm', 'cross'])[1 + g % 2]::mood AS m, (g, 'y')::pair AS two, now() - g * interval '1 day' AS at FROM generate_series(1, 9) g;
GRANT SELECT ON felt TO {role1}, {role2};
CREATE FUNCTION plus(a int, b int DEFAULT 1) RETURNS int LANGUAGE sql IMMUTABLE RETURN a + b;
CREATE FUNCTION kept(a int) RETURNS int LANGUAGE sql STABLE RETURN a * 2;
REVOKE EXECUTE ON FUNCTION kept FROM PUBLIC;
GRANT EXECUTE ON FUNCTION kept TO {role1};
CREATE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 2;
CREATE VIEW above AS SELECT a, count(*) AS c FROM seen GROUP BY a;
CREATE VIEW invoker WITH (security_invoker) AS SELECT a, n FROM u;
CREATE VIEW barrier WITH (security_barrier) AS SELECT a, b FROM fenced;
CREATE MATERIALIZED VIEW mat AS SELECT a, sum(n) AS s FROM u GROUP BY a;
GRANT SELECT ON t, t2, p, p1, parent, fenced, seen, above, barrier, invoker, mat TO {role1}, {role2};
GRANT SELECT (a, n) ON u TO {role1};
GRANT INSERT, UPDATE, DELETE ON t, p, parent TO {role1}, {role2};
GRANT USAGE, CREATE ON SCHEMA {schema} TO {role1}, {role2};
"""

# {0} stands for a number. All rows come in one order.
QUERIES = [
    "SELECT b FROM t WHERE a = {0} ORDER BY b", "SELECT * FROM t WHERE a = {0} ORDER BY b", "SELECT t FROM t WHERE a = {0} ORDER BY b",
    "SELECT a AS x, count(*) FROM t WHERE a > {0} GROUP BY a ORDER BY a", "SELECT d::text, b FROM t WHERE a = {0} ORDER BY b",
    "SELECT sum(n) FROM u WHERE a <> {0}", "SELECT max(secret) FROM u WHERE a >= {0}", "SELECT t.b, u.n FROM t JOIN u ON t.a = u.a AND u.a = {0} ORDER BY 1, 2",
    "SELECT b FROM p WHERE a = {0} ORDER BY b", "SELECT a, b FROM p WHERE a >= {0} ORDER BY 1, 2", "SELECT count(*) FROM p", "SELECT count(*) FROM p1",
    "SELECT * FROM parent WHERE a = {0} ORDER BY 1, 2", "SELECT count(*) FROM ONLY parent WHERE a >= {0}", "SELECT * FROM seen WHERE a = {0} ORDER BY 1, 2, 3",
    "SELECT * FROM above WHERE a >= {0} ORDER BY 1", "SELECT count(*), min(n) FROM invoker WHERE a >= {0}", "SELECT count(*) FROM barrier WHERE a >= {0}",
    "SELECT a, b FROM fenced WHERE a = {0} ORDER BY b", "SELECT a, s FROM mat WHERE a >= {0} ORDER BY a",
    "SELECT a, plus(a, {0}), plus(a) FROM t WHERE a = {0} ORDER BY b", "SELECT kept(a) FROM t WHERE a >= {0} ORDER BY b",
    "SELECT a FROM t WHERE a = {0} UNION SELECT a FROM p WHERE a > {0} ORDER BY 1", "SELECT CASE WHEN {0} = 1 THEN (SELECT max(n) FROM u) ELSE 0 END FROM t ORDER BY b",
    "WITH w AS (SELECT a, b FROM t WHERE a < {0}) SELECT w.a, x.a FROM w, parent x WHERE w.a = x.a ORDER BY 1, 2",
    "SELECT b, CURRENT_USER FROM t WHERE a = {0} AND EXISTS (SELECT FROM p WHERE p.a = t.a) ORDER BY b",
    "SELECT a, m, m::text FROM felt WHERE a > {0} ORDER BY a", "SELECT a, two, (two).y FROM felt WHERE a > {0} ORDER BY a", "SELECT m, count(*) FROM felt WHERE a > {0} GROUP BY m ORDER BY m",
    "SELECT a, row_to_json(felt) ->> 'm' FROM felt WHERE a > {0} ORDER BY a", "SELECT b FROM t WHERE d < now() - make_interval(days => {0}) ORDER BY b",
    "SELECT a FROM felt WHERE at > now() - interval '100 hours' AND a > {0} ORDER BY a", "SELECT count(*) FROM t WHERE d > CURRENT_DATE - 200 * {0}",
    "SELECT a, CURRENT_DATE - DATE '2024-01-01' FROM t WHERE a = {0} ORDER BY b", "SELECT b, current_setting('app.tenant', true) FROM t WHERE a = {0} ORDER BY b",
    "SELECT a, sum(length(b)) FROM p GROUP BY a ORDER BY a", "SELECT date_trunc('month', d)::date::text, count(*) FROM t WHERE a >= {0} GROUP BY 1 ORDER BY 1",
    "SELECT row_to_json(p) FROM p WHERE a = {0} ORDER BY b", "SELECT (SELECT count(*) FROM t2), b FROM t WHERE a = {0} ORDER BY b",
]
WRITES = [
    "INSERT INTO t VALUES ({0}, 'new {0}', '2024-03-01')", "UPDATE t SET b = b || '.' WHERE a = {0}", "DELETE FROM t WHERE a = {0}",
    "UPDATE u SET n = n + 1 WHERE a = {0}", "UPDATE p SET b = b || '!' WHERE a = {0}", "UPDATE p SET a = 7 - a WHERE a = {0}", "INSERT INTO child VALUES ({0}, 'new')",
    "DELETE FROM parent WHERE a = {0}", "UPDATE felt SET m = 'cross' WHERE a = {0}", "UPDATE felt SET at = at - interval '2 days' WHERE a = {0}", "UPDATE fenced SET a = a + 1 WHERE a = {0}", "UPDATE seen SET a = 3 WHERE false", "INSERT INTO p1 VALUES (1, 'direct')",
    "MERGE INTO t USING t2 ON t.b = t2.b WHEN NOT MATCHED AND t2.a = {0} THEN INSERT VALUES (t2.a, t2.b, t2.d)",
    "WITH w AS (DELETE FROM t2 WHERE a = {0} RETURNING a) SELECT count(*) FROM w",
]
DEFINITIONS = [
    "TRUNCATE p1", "TRUNCATE t2", "TRUNCATE child", "ALTER TABLE t ADD COLUMN extra int DEFAULT 7", "ALTER TABLE t DROP COLUMN extra", "CREATE INDEX t_a ON t (a)", "DROP INDEX t_a",
    "ALTER TABLE t RENAME TO t3; ALTER TABLE t2 RENAME TO t; ALTER TABLE t3 RENAME TO t2", "ALTER TABLE u ALTER a TYPE bigint", "ALTER TABLE parent RENAME b TO c",
    "ALTER TABLE p DETACH PARTITION p3", "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (4) TO (8)", "ALTER TABLE child NO INHERIT parent", "ALTER TABLE child INHERIT parent",
    "DROP TABLE p2", "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (2) TO (4)",
    "CREATE OR REPLACE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 4",
    "CREATE OR REPLACE VIEW seen AS SELECT t.a, t.b, u.n FROM t JOIN u USING (a) WHERE u.n > 2",
    "CREATE OR REPLACE FUNCTION plus(a int, b int DEFAULT 2) RETURNS int LANGUAGE sql IMMUTABLE RETURN a + b",
    "CREATE OR REPLACE FUNCTION plus(a int, b int DEFAULT 1) RETURNS int LANGUAGE sql IMMUTABLE RETURN b - a",
    "ALTER TABLE fenced DISABLE ROW LEVEL SECURITY", "ALTER TABLE fenced ENABLE ROW LEVEL SECURITY", "ALTER TABLE fenced FORCE ROW LEVEL SECURITY",
    "ALTER POLICY own ON fenced USING (who <> CURRENT_USER)", "ALTER POLICY own ON fenced USING (who = CURRENT_USER)",
    "GRANT SELECT ON u TO {role2}", "REVOKE ALL ON u FROM {role2}", "REVOKE SELECT (n) ON u FROM {role1}", "GRANT SELECT (n) ON u TO {role1}", "REVOKE SELECT ON t FROM {role1}",
    "GRANT SELECT ON t TO {role1}", "REVOKE EXECUTE ON FUNCTION kept FROM {role1}", "GRANT EXECUTE ON FUNCTION kept TO {role1}, {role2}", "REVOKE EXECUTE ON FUNCTION kept FROM {role2}",
    "ALTER VIEW invoker SET (security_invoker = false)", "ALTER VIEW invoker SET (security_invoker = true)", "ALTER VIEW barrier OWNER TO {role1}", "ALTER VIEW barrier OWNER TO CURRENT_USER",
    "ALTER VIEW seen OWNER TO {role1}", "ALTER VIEW seen OWNER TO CURRENT_USER", "ALTER VIEW above OWNER TO {role2}", "ALTER VIEW above OWNER TO CURRENT_USER", "ANALYZE t",
    "ALTER TYPE mood ADD VALUE IF NOT EXISTS 'glad' BEFORE 'cross'", "ALTER TYPE mood RENAME VALUE 'calm' TO 'cool'", "ALTER TYPE mood RENAME VALUE 'cool' TO 'calm'",
    "ALTER TYPE pair RENAME ATTRIBUTE y TO z", "ALTER TYPE pair RENAME ATTRIBUTE z TO y", "ALTER TYPE pair ADD ATTRIBUTE more int", "ALTER TYPE pair DROP ATTRIBUTE IF EXISTS more",
    "REFRESH MATERIALIZED VIEW mat", "CREATE TEMPORARY TABLE u AS SELECT 1 AS a, 2.5 AS n, 'temp' AS secret", "DISCARD TEMP", "DROP TABLE pg_temp.u",
    "CREATE TEMPORARY VIEW t AS SELECT 1 AS a, 'temp' AS b, date '2024-05-05' AS d", "DROP VIEW pg_temp.t",
]
# What concerns a role concerns both schemas alike.
OF_ROLES = ["ALTER ROLE {role1} BYPASSRLS", "ALTER ROLE {role1} NOBYPASSRLS", "GRANT {role1} TO {role2}", "REVOKE {role1} FROM {role2}", "ALTER ROLE {role2} NOINHERIT", "ALTER ROLE {role2} INHERIT",
            "GRANT pg_read_all_data TO {role2}", "REVOKE pg_read_all_data FROM {role2}"]
SETTINGS = [
    "SET ROLE {role1}", "SET ROLE {role2}", "RESET ROLE", "SET datestyle = 'ISO, DMY'", "SET datestyle = 'German'", "SET datestyle = 'ISO, MDY'",
    "SET app.tenant = 'one'", "SET app.tenant = 'two'", "SET TimeZone = 'Asia/Tokyo'", "SET TimeZone = 'UTC'", "SET plan_cache_mode = force_custom_plan", "SET plan_cache_mode = force_generic_plan", "SET plan_cache_mode = auto", "SET enable_seqscan = off", "SET enable_seqscan = on",
    "SET row_security = off", "SET row_security = on", "SET LOCAL search_path = {schema}, pg_catalog", "SET client_encoding = 'LATIN1'", "SET client_encoding = 'UTF8'",
]


class Parted(Exception):
    """From here on the two have different tables, as they may."""


class Twins:
    def __init__(self, plain, cached, helper, writer, schemas, seed):
        self.clients, self.helper, self.writer, self.schemas = [plain, cached], helper, writer, schemas
        self.random = random.Random(seed)
        self.steps, self.asked, self.refused = [], 0, 0
        self.names = {"role1": ROLES[0], "role2": ROLES[1]}
        self.status, self.savepoints, self.serial = "I", 0, 0

    def text(self, template, schema):
        return template.replace("{schema}", schema).replace("{role1}", ROLES[0]).replace("{role2}", ROLES[1])

    def both(self, step, act):
        self.steps.append(step)
        answers = [comparable(act(client, schema)) for client, schema in zip(self.clients, self.schemas, strict=True)]
        self.status = answers[0][-1][1].decode() if answers[0][-1][0] == "Z" else self.status
        # Which of several objects is in the way of a change is chance, so of errors the code alone is compared with its place.
        answers = [[message[:3] if message[0] == "E" else message for message in answer] for answer in answers]
        if self.unnamed and any(("E", "ERROR", IN_USE) == message[:3] for message in answers[0]):
            # The portal without a name holds nothing open (docs/limits.md).
            raise Parted
        if answers[0] != answers[1]:
            first = next((i for i, (one, two) in enumerate(zip(*answers)) if one != two), min(map(len, answers)))
            raise AssertionError("\n".join([*self.steps[-60:], f"at {first}", repr(answers[0][first:][:3]), repr(answers[1][first:][:3])]))
        self.refused += any(kind == "E" for kind, *_ in answers[0])
        return answers[0]

    unnamed = False

    def sql(self, template):
        return self.both(template, lambda client, schema: client.query(self.text(template, schema)))

    def between(self):
        """Something that may happen while a portal is open, by messages of its own that leave the portal without a name alone."""
        kind = self.random.random()
        if kind < 0.5:
            return []
        if kind < 0.7:
            return [self.random.choice(WRITES).format(self.constant())]
        if kind < 0.8:
            return [self.random.choice(SETTINGS)]
        if kind < 0.9:
            return ["SAVEPOINT b"] + ([self.random.choice(DEFINITIONS).split(";")[0], "ROLLBACK TO b"] if self.random.random() < 0.7 else [])
        return [self.random.choice(DEFINITIONS).split(";")[0]]

    def constant(self):
        return str(self.random.choice((0, 1, 1, 3)))

    def ask(self):
        self.asked += 1
        query, constant = self.random.choice(self.questions)
        simple = query.format(constant)
        bound, values = query.format("$1::int"), [constant.encode()] if "{0}" in query else []
        way = self.random.choice(("simple", "simple", "simple", "together", "together", "prepared", "string", "split", "split", "parts", "unnamed parts", "cursor", "hold",
                                  "explain", "copy", "execute"))
        number = self.serial = self.serial + 1
        if way == "simple":
            return self.sql(simple)
        if way == "copy":
            return self.sql(f"COPY ({simple}) TO STDOUT")
        if way == "execute":
            name = f"e{QUERIES.index(query)}"
            make = f"PREPARE {name} (int) AS {query.format('$1')}; " if name not in self.prepared else ""
            self.prepared.add(name)
            return self.sql(f"{make}EXECUTE {name} ({constant})")
        if way == "hold":
            return self.sql(f"DECLARE h{number} {self.random.choice(('', 'NO SCROLL'))} CURSOR WITH HOLD FOR {simple}; FETCH 2 FROM h{number}; FETCH ALL FROM h{number}; CLOSE h{number}")
        if way == "string":
            middle = self.random.choice([simple, self.random.choice(WRITES).format(constant), self.random.choice(SETTINGS), "SELECT 1"])
            return self.sql(f"{simple}; {middle}; {simple}")
        if way == "together":
            return self.both(f"bound {simple}", lambda client, _: client.parse(bound).bind(values).describe().execute().sync())
        if way == "prepared":
            name = f"s{QUERIES.index(query)}"
            make = name not in self.prepared
            self.prepared.add(name)

            def act(client, _):
                return (client.parse(bound, name) if make else client).bind(values, name=name).describe().execute().sync()
            return self.both(f"prepared {make} {simple}", act)
        if way == "explain":
            return self.both(f"explained {simple}", lambda client, _: client.query(f"EXPLAIN ANALYZE {simple}")[-1:])
        if way == "cursor" and self.status == "T":
            kind = self.random.choice(("CURSOR", "NO SCROLL CURSOR", "SCROLL CURSOR"))
            answer = self.sql(f"DECLARE c{number} {kind} FOR {simple}; FETCH 2 FROM c{number}")
            for text in self.between():
                self.sql(text)
            return self.sql(f"FETCH ALL FROM c{number}; CLOSE c{number}") if self.status == "T" else answer
        portal = f"p{number}" if way == "parts" else ""
        between = self.between()

        def act(client, schema):
            client.parse(bound).bind(values, portal).describe(portal)
            if way.endswith("parts"):
                client.execute(portal, 2)
            for text in between:
                name = f"b{number}_{between.index(text)}"
                client.parse(self.text(text, schema), name).bind((), name, name).execute(name).close_portal(name)
            return client.execute(portal).sync()
        self.unnamed = True
        try:
            return self.both(f"{way} {simple} {between}", act)
        finally:
            self.unnamed = False

    def elsewhere(self, templates, once=False):
        """Somebody changes both schemas alike, or neither."""
        template = self.random.choice(templates).format(self.constant(), **self.names, schema="{schema}")
        if "TEMP" in template or "pg_temp" in template:
            return
        self.steps.append(f"elsewhere {template}")
        try:
            self.writer.execute("BEGIN")
            for schema in self.schemas[:1 if once else 2]:
                self.writer.execute(f"SET search_path = {schema}; {self.text(template, schema)}")
            self.writer.execute("COMMIT")
        except psycopg.Error as error:
            self.steps[-1] += f" failed: {error.diag.message_primary}"
            self.writer.execute("ROLLBACK")

    def help(self):
        """Somebody with the cache stores answers of what is committed."""
        for query, constant in self.questions:
            for text in (self.random.choice(["RESET ROLE", "SET ROLE {role1}", "SET ROLE {role2}"]), query.format(constant)):
                self.helper.query(self.text(text, self.schemas[1]))

    def step(self):
        kind = self.random.random()
        if self.status == "E" and kind < 0.8:
            return self.sql("ROLLBACK TO s" if self.savepoints and kind < 0.5 else "ROLLBACK")
        if kind < 0.68:
            return self.ask()
        if kind < 0.73:
            return self.sql(self.random.choice(WRITES).format(self.constant()))
        if kind < 0.755:
            return self.sql(self.random.choice(DEFINITIONS))
        if kind < 0.80:
            return self.sql(self.random.choice(SETTINGS))
        if kind < 0.84:
            return self.elsewhere(WRITES)
        if kind < 0.855:
            return self.elsewhere(DEFINITIONS)
        if kind < 0.86:
            return self.elsewhere(OF_ROLES, once=True)
        if kind < 0.91:
            return self.help()
        if kind < 0.925:
            return self.sql("SELECT 1 / (count(*) - count(*)) FROM t")
        if self.status == "I":
            self.savepoints = 0
            return self.sql(self.random.choice(["BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN READ ONLY"]))
        if kind < 0.95:
            self.savepoints += 1
            return self.sql("SAVEPOINT s")
        if self.savepoints and kind < 0.975:
            return self.sql(self.random.choice(["ROLLBACK TO s", "ROLLBACK TO s", "RELEASE s"]))
        return self.sql(self.random.choice(["COMMIT", "ROLLBACK"]))

    def episode(self, length):
        self.steps.clear()
        self.prepared = set()
        self.questions = [(self.random.choice(QUERIES), self.constant()) for _ in range(self.random.choice((1, 2, 4)))]
        for _ in range(length):
            self.step()
        self.sql("ROLLBACK")
        self.sql("DISCARD ALL")
        self.sql("SET search_path = {schema}")
        self.helper.query("ROLLBACK")
        self.helper.query("RESET ROLE")


def make(writer, schemas):
    with psycopg.connect(DSN, autocommit=True) as one:
        one.execute("SET client_min_messages = warning")
        for schema in schemas:
            one.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET search_path = {schema}")
            one.execute(SETUP.format(schema=schema, role1=ROLES[0], role2=ROLES[1]))


@pytest.fixture
def schemas(connect):
    names = [f"{connect.schema}_plain", f"{connect.schema}_cached"]
    with connect() as one:
        one.execute("".join(f"CREATE ROLE {role};" for role in ROLES))
    yield names
    with connect() as one:
        one.execute("SET lock_timeout = '10s'; SET client_min_messages = warning")
        one.execute(f"DROP SCHEMA IF EXISTS {', '.join(names)} CASCADE")
        one.execute(f"DROP OWNED BY {', '.join(ROLES)}; DROP ROLE {', '.join(ROLES)}")


def test_every_message_is_the_same(connect, schemas):
    print(f"seed {SEED}")
    writer = connect("-c lock_timeout=20ms", prepare_threshold=None)
    options = {"jit": "off", "lock_timeout": "2000ms"}
    count = "SELECT hits, misses, bypasses FROM arrow_cache.stats"
    before, clients = writer.rows(count)[0], []
    asked = refused = 0
    try:
        for number in range(EPISODES):
            if number % 10 == 0 or not clients:
                for client in clients:
                    client.close()
                make(writer, schemas)
                clients = [Wire(DSN, **options, search_path=schema, **more)
                           for schema, more in zip([*schemas, schemas[1]], ({"pg_arrow_cache.enabled": "off"}, {}, {}), strict=True)]
            twins = Twins(*clients, writer, schemas, f"{SEED} {number}")
            try:
                twins.episode(60)
            except Parted:
                while clients:
                    clients.pop().close()
            asked, refused = asked + twins.asked, refused + twins.refused
    finally:
        for client in clients:
            client.close()
    answers = dict(zip(("hits", "misses", "bypasses"), (two - one for one, two in zip(before, writer.rows(count)[0], strict=True)), strict=True))
    print(f"{asked} questions, {refused} statements that failed, {answers}")
    assert answers["hits"] > asked / 3
