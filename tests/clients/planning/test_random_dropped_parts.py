"""Random statements with parts that the planner leaves out for some constants: sub-queries behind `1=1 OR …`, in CASE
and COALESCE, `$1 IS NULL OR …`, branches of UNION ALL with false conditions, outer joins that are removed, LIMIT 0,
partitions. What such a statement reads, locks and may do depends on its own constants, never on those of another
statement of its form."""

import os
import random

import pytest

from support import random_sessions
from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED", 20261122))
STEPS = rounds(1000, 1500)
FORMS = 60

# Role 2 may read neither `secret` nor what is in `hidden`; all have the columns a and b.
SETUP = """
CREATE TABLE t (a int PRIMARY KEY, b int);
INSERT INTO t SELECT g, g % 4 FROM generate_series(0, 11) g;
CREATE TABLE x (a int, b int);
INSERT INTO x SELECT g % 5, g % 3 FROM generate_series(1, 15) g;
CREATE TABLE secret (a int UNIQUE, b int);
INSERT INTO secret SELECT g, g % 3 FROM generate_series(1, 6) g;
CREATE TABLE p (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (2);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (2) TO (4) PARTITION BY LIST (b);
CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN (0, 1);
CREATE TABLE p2b PARTITION OF p2 DEFAULT;
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (4) TO (20);
INSERT INTO p SELECT g % 8, g % 3 FROM generate_series(1, 30) g;
CREATE TABLE parent (a int, b int);
CREATE TABLE child (CHECK (a > 2)) INHERITS (parent);
INSERT INTO parent SELECT g % 3, g FROM generate_series(1, 5) g;
INSERT INTO child SELECT 3 + g % 3, g % 4 FROM generate_series(1, 5) g;
CREATE TABLE fenced (a int, b int);
INSERT INTO fenced SELECT g % 5, g % 2 FROM generate_series(1, 10) g;
ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON fenced USING (b = 0 OR EXISTS (SELECT FROM x WHERE x.a = fenced.a AND x.b = 2));
CREATE TABLE hidden (a int, b int);
INSERT INTO hidden SELECT g, g % 3 FROM generate_series(1, 5) g;
CREATE VIEW shown AS SELECT a, b FROM hidden WHERE b < 2 OR a IN (SELECT b FROM x);
CREATE VIEW invoker WITH (security_invoker) AS SELECT a, b FROM secret WHERE b = 1;
CREATE VIEW joined AS SELECT t.a, coalesce(secret.b, t.b) AS b FROM t LEFT JOIN secret ON secret.a = t.a;
GRANT SELECT ON t, x, p, parent, fenced, shown, invoker, joined TO {role1}, {role2};
GRANT SELECT ON secret TO {role1};
GRANT INSERT, UPDATE, DELETE ON t, x, p, parent, child, p1 TO {role1}, {role2};
CREATE SCHEMA {front};
GRANT USAGE ON SCHEMA {front}, {schema} TO {role1}, {role2};
"""
RELATIONS = ["t", "x", "p", "p", "parent", "shown", "joined", "fenced", "t", "x", "secret", "invoker", "p2", "child"]
CONSTANTS = ["1", "2", "NULL", "0", "4"]
CHANGES = [
    "UPDATE x SET b = (b + 1) % 4 WHERE a = {0}", "INSERT INTO x VALUES ({0}, 3)", "DELETE FROM x WHERE b = 3", "UPDATE p SET b = (b + 1) % 3 WHERE a = {0}",
    "UPDATE p SET a = 7 - a", "INSERT INTO child VALUES (5, {0})", "DELETE FROM child WHERE a = 5", "UPDATE secret SET b = (b + 1) % 3 WHERE a = {0}",
    "UPDATE hidden SET b = (b + 1) % 3 WHERE a = {0}", "UPDATE fenced SET b = 1 - b WHERE a = {0}",
    "BEGIN; TRUNCATE p1; INSERT INTO p1 VALUES (0, 1), (1, 2); COMMIT", "BEGIN; UPDATE t SET b = b + 1; ROLLBACK",
]
DEFINITIONS = [
    "GRANT SELECT ON secret TO {role2}", "REVOKE SELECT ON secret FROM {role2}", "REVOKE SELECT ON x FROM {role2}", "GRANT SELECT ON x TO {role2}",
    "CREATE INDEX x_a ON x (a)", "DROP INDEX x_a", "ALTER TABLE p DETACH PARTITION p3", "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (4) TO (20)",
    "ALTER TABLE secret DROP CONSTRAINT secret_a_key", "ALTER TABLE secret ADD UNIQUE (a)", "ANALYZE",
    "ALTER VIEW shown OWNER TO {role2}", "ALTER VIEW shown OWNER TO CURRENT_USER",
]
SETTINGS = [
    "SET ROLE {role1}", "SET ROLE {role2}", "RESET ROLE", "SET plan_cache_mode = force_custom_plan", "SET plan_cache_mode = force_generic_plan",
    "SET plan_cache_mode = auto", "SET enable_seqscan = off", "SET enable_seqscan = on", "SET enable_partition_pruning = off",
    "SET enable_partition_pruning = on", "SET constraint_exclusion = on", "SET constraint_exclusion = partition", "SET row_security = on",
]
# Of rows that no other session has: they are all in the middle of a transaction at once.
OWN_WRITES = [
    "INSERT INTO {schema}.x VALUES (3, 1), (2, 2)", "INSERT INTO {schema}.p VALUES (1, 1), (5, 2)", "INSERT INTO {schema}.p1 VALUES (1, 2)",
    "INSERT INTO {schema}.child VALUES (4, 1)", "WITH w AS (INSERT INTO {schema}.x VALUES (1, 1) RETURNING *) SELECT count(*) FROM w",
    "INSERT INTO {schema}.p VALUES (3, 1); UPDATE {schema}.p SET b = 2 WHERE a = 3 AND xmin = pg_current_xact_id()::xid",
    "INSERT INTO {schema}.parent VALUES (1, 1), (2, 2)",
]


class Forms:
    """Makes statements out of the parts that the planner may leave out."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.aliases = 0

    def alias(self):
        self.aliases += 1
        return f"r{self.aliases}"

    def flag(self):
        """A condition that is true or false by its constant alone."""
        return self.random.choice(["{0} = 1", "{0} IS NULL", "{0} > 1", "{0} IS NOT NULL", "{0} IN (0, 2)", "NOT ({0} = 2)", "1 = {0} - 1"])

    def subselect(self, depth, outer, columns="{r}.b"):
        r, relation = self.alias(), self.random.choice(RELATIONS)
        condition = self.condition(depth - 1, r) if depth > 0 else f"{r}.a <> 1"
        tie = self.random.choice(["", "", f" AND {r}.a = {outer}.a", f" AND {r}.b = {outer}.b"])
        return f"SELECT {columns.replace('{r}', r)} FROM {relation} {r} WHERE ({condition}){tie}"

    def condition(self, depth, r):
        choose = self.random.randrange(12) if depth > 0 else self.random.randrange(3)
        if choose == 0:
            return self.flag()
        if choose == 1:
            return f"{r}.b = {{0}}"
        if choose == 2:
            return f"{r}.a > 1"
        if choose in (3, 4):
            return f"{self.flag()} OR {self.condition(depth - 1, r)}"
        if choose == 5:
            return f"({self.condition(depth - 1, r)}) AND ({self.condition(depth - 1, r)})"
        if choose in (6, 7):
            return f"{r}.a IN ({self.subselect(depth, r)})"
        if choose == 8:
            return f"{self.random.choice(['', 'NOT '])}EXISTS ({self.subselect(depth, r, '')}{self.random.choice(['', ' LIMIT {0}', ' LIMIT 0'])})"
        if choose == 9:
            return f"CASE WHEN {self.flag()} THEN {self.condition(depth - 1, r)} ELSE {self.condition(depth - 1, r)} END"
        if choose == 10:
            return f"COALESCE({{0}}::int, ({self.subselect(depth, r, 'max({r}.a)')})) >= {r}.b"
        return f"{r}.a >= ({self.subselect(depth, r, 'count(*)')}) OR {self.flag()}"

    def source(self, depth):
        choose = self.random.randrange(9) if depth > 0 else 0
        relation = self.random.choice(RELATIONS)
        if choose <= 2:
            return relation
        if choose == 3:
            return f"(SELECT a, b FROM {relation} WHERE {self.flag()})"
        if choose == 4:
            s, other = self.alias(), self.random.choice(RELATIONS)
            return f"(SELECT {s}.a, {s}.b FROM {relation} {s} LEFT JOIN {other} USING (a) WHERE {self.condition(depth - 1, s)})"
        if choose == 5:
            s = self.alias()
            return f"(SELECT {s}.a, {s}.b FROM t {s} LEFT JOIN secret ON secret.a = {s}.a)"
        if choose == 6:
            s, branch = self.alias(), self.alias()
            return (f"(SELECT {s}.a, {s}.b FROM {relation} {s} WHERE {self.condition(depth - 1, s)} "
                    f"UNION ALL SELECT {branch}.a, {branch}.b FROM {self.random.choice(RELATIONS)} {branch} WHERE {self.flag()} "
                    f"AND ({self.condition(depth - 1, branch)}))")
        if choose == 7:
            s, w = self.alias(), self.alias()
            kind = self.random.choice(["", "MATERIALIZED ", "NOT MATERIALIZED "])
            return (f"(WITH {w} AS {kind}(SELECT {s}.a, {s}.b FROM {relation} {s} WHERE {self.condition(depth - 1, s)}) "
                    f"SELECT a, b FROM {self.random.choice(RELATIONS)} q{w} WHERE {self.flag()} OR q{w}.a IN (SELECT {w}.b FROM {w}))")
        s = self.alias()
        return f"(SELECT {s}.a, {s}.b FROM {relation} {s} JOIN {relation} self ON self.a = {s}.a WHERE {self.condition(depth - 1, s)})"

    def statement(self):
        r = self.alias()
        output = self.random.choice([f"{r}.a, {r}.b", f"count(*), sum({r}.a), min({r}.b)", f"DISTINCT {r}.a",
                                     f"{r}.a, CASE WHEN {self.flag()} THEN 0 ELSE ({self.subselect(1, r, 'count(*)')}) END AS c",
                                     f"CASE WHEN {{0}} = 1 THEN {r}.a::text::varchar(3) ELSE {r}.b::text::varchar(5) END AS v"])
        query = f"SELECT {output} FROM {self.source(2)} {r} WHERE {self.condition(2, r)}"
        if self.random.random() < 0.1:
            query += " ORDER BY 1, 2 LIMIT {0} + 1" if "," in output and "CASE" not in output else " LIMIT 0"
        return query


@pytest.fixture
def world(connect):
    yield
    random_sessions.remove(connect)


@sweep
def test_answers_agree(connect, world):
    forms = Forms(SEED)
    queries = [forms.statement() for _ in range(FORMS)]
    run = random_sessions.Run(connect, random_sessions.World(
        SETUP, queries, CONSTANTS, [""], CHANGES, DEFINITIONS, SETTINGS, OWN_WRITES), SEED)
    print(f"seed {SEED}")
    print(run.steps(STEPS))
    # Enough of it was what the test is about.
    assert min(watched.placeholders for watched in run.cached) > STEPS / 20
    assert run.answers - run.failures > STEPS / 3
