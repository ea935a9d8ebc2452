"""Random statements over generated columns whose expressions change: in groups and grouping sets, outer joins, self-joins, partitions with
expressions of their own, row security, views, whole rows, lists of constants. From 18 on the columns are virtual and no row is written when an
expression changes; before, they are stored, and what a version does not know yet is an error in each session alike."""

import os
import random

import pytest

from support import random_sessions
from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED", 20261123))
STEPS = rounds(1000, 1500)
FORMS = 70

# Each table has a, b, v and w, of which v and w are generated. Role 2 may not read w of `t`, and neither column of `secret`.
SETUP = """
CREATE TABLE t (a int PRIMARY KEY, b int, v int GENERATED ALWAYS AS (a * 2 + b) {kind}, w text GENERATED ALWAYS AS ('w' || b::text) {kind});
INSERT INTO t SELECT g, g % 4 FROM generate_series(0, 11) g;
INSERT INTO t VALUES (12, NULL);
CREATE TABLE x (a int NOT NULL, b int, v int GENERATED ALWAYS AS (coalesce(b, 7)) {kind} NOT NULL, w text GENERATED ALWAYS AS (repeat('x', a)) {kind});
CREATE UNIQUE INDEX x_a ON x (a);
INSERT INTO x SELECT g, NULLIF(g % 3, 2) FROM generate_series(1, 8) g;
CREATE TABLE secret (a int, b int, v int GENERATED ALWAYS AS (b + 100) {kind}, w text GENERATED ALWAYS AS (repeat('s', 1)) {kind});
INSERT INTO secret SELECT g, g % 3 FROM generate_series(1, 6) g;
CREATE TABLE p (a int, b int, v int GENERATED ALWAYS AS (b * 10) {kind}, w text GENERATED ALWAYS AS (CASE WHEN a > 3 THEN 'high' ELSE 'low' END) {kind})
    PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (3);
CREATE TABLE p2 PARTITION OF p (v GENERATED ALWAYS AS (b * 100) {kind}) FOR VALUES FROM (3) TO (20);
INSERT INTO p SELECT g % 8, g % 3 FROM generate_series(1, 20) g;
CREATE TABLE parent (a int, b int, v int GENERATED ALWAYS AS (a - b) {kind}, w text GENERATED ALWAYS AS ('p') {kind});
CREATE TABLE child (v int GENERATED ALWAYS AS (a + b) {kind}, CHECK (v > 0)) INHERITS (parent);
INSERT INTO parent SELECT g % 3, g FROM generate_series(1, 5) g;
INSERT INTO child SELECT 3 + g % 3, g % 4 FROM generate_series(1, 5) g;
CREATE TABLE fenced (a int, b int, v int GENERATED ALWAYS AS (a % 3) {kind}, w text GENERATED ALWAYS AS (repeat('f', 1)) {kind});
INSERT INTO fenced SELECT g, g % 2 FROM generate_series(1, 10) g;
ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON fenced USING (v > 0 OR EXISTS (SELECT FROM x WHERE x.v = fenced.b));
CREATE VIEW shown AS SELECT a, b, v, w FROM secret WHERE v > 100;
CREATE VIEW grouped AS SELECT v AS a, grouping(v, b) AS b, count(*)::int AS v, min(w) AS w FROM t GROUP BY ROLLUP (v, b);
GRANT SELECT ON x, p, parent, fenced, shown, grouped TO {role1}, {role2};
GRANT SELECT ON t, secret TO {role1};
GRANT SELECT (a, b, v) ON t TO {role2};
GRANT INSERT, UPDATE, DELETE ON t, x, p, parent, child, p1 TO {role1}, {role2};
CREATE SCHEMA {front};
GRANT USAGE ON SCHEMA {front}, {schema} TO {role1}, {role2};
"""
RELATIONS = ["t", "t", "x", "x", "p", "p", "parent", "shown", "grouped", "fenced", "secret", "p2", "child"]
CONSTANTS = ["1", "2", "NULL", "0", "4"]
CHANGES = [
    "UPDATE x SET b = (b + 1) % 4 WHERE a = {0}", "INSERT INTO t (a, b) VALUES (20 + {0}, 3)", "DELETE FROM t WHERE a > 15", "UPDATE p SET b = (b + 1) % 3 WHERE a = {0}",
    "UPDATE p SET a = 7 - a", "INSERT INTO child VALUES (5, {0})", "DELETE FROM child WHERE a = 5", "UPDATE secret SET b = (b + 1) % 3 WHERE v = 100 + {0} RETURNING new.v, old.v",
    "UPDATE fenced SET b = 1 - b WHERE a = {0}", "BEGIN; TRUNCATE p1; INSERT INTO p1 VALUES (0, 1), (1, 2); COMMIT", "BEGIN; UPDATE t SET b = b + 1; ROLLBACK",
    "MERGE INTO t USING x ON t.a = x.a AND x.a = {0} WHEN MATCHED THEN UPDATE SET b = x.v RETURNING merge_action(), old.v, new.v",
    "WITH c AS (UPDATE t SET b = {0} WHERE a = {0} RETURNING old.w AS w) INSERT INTO parent (a, b) SELECT 1, length(w) FROM c", "DELETE FROM parent WHERE a = 1 AND b < 3",
]
DEFINITIONS = [
    "ALTER TABLE t ALTER v SET EXPRESSION AS (a * 2 - b)", "ALTER TABLE t ALTER v SET EXPRESSION AS (a % 3)", "ALTER TABLE t ALTER w SET EXPRESSION AS (coalesce(b, 0)::text)",
    "ALTER TABLE t ALTER w SET EXPRESSION AS ('w' || b::text)", "ALTER TABLE x ALTER v SET EXPRESSION AS (coalesce(b, 3))", "ALTER TABLE x ALTER v SET EXPRESSION AS (a)",
    "ALTER TABLE ONLY p ALTER v SET EXPRESSION AS (b * 10 + 1)", "ALTER TABLE p ALTER v SET EXPRESSION AS (b * 20)", "ALTER TABLE p2 ALTER v SET EXPRESSION AS (a + 1000)",
    "ALTER TABLE secret ALTER v SET EXPRESSION AS (b + 101)", "ALTER TABLE secret ALTER v SET EXPRESSION AS (b + 100)", "ALTER TABLE ONLY parent ALTER v SET EXPRESSION AS (b - a)",
    "ALTER TABLE child ALTER v SET EXPRESSION AS (a + b + 1)", "ALTER TABLE fenced ALTER v SET EXPRESSION AS (1 - a % 3)", "ALTER TABLE fenced ALTER v SET EXPRESSION AS (a % 3)",
    "BEGIN; ALTER TABLE t ALTER v SET EXPRESSION AS (0); ROLLBACK", "GRANT SELECT (w) ON t TO {role2}", "REVOKE SELECT (w) ON t FROM {role2}", "REVOKE SELECT ON x FROM {role2}",
    "GRANT SELECT ON x TO {role2}", "DROP INDEX x_a", "CREATE UNIQUE INDEX x_a ON x (a)", "ALTER TABLE x ALTER v DROP NOT NULL", "ALTER TABLE x ALTER v SET NOT NULL",
    "ALTER TABLE t ADD CONSTRAINT loose CHECK (v < 3) NOT ENFORCED", "ALTER TABLE t DROP CONSTRAINT loose", "ALTER TABLE t ADD CONSTRAINT filled NOT NULL b NOT VALID",
    "ALTER TABLE t ALTER b DROP NOT NULL", "ALTER TABLE p DETACH PARTITION p2", "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (3) TO (20)", "ANALYZE",
    "ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE t ADD PRIMARY KEY (a)",
]
SETTINGS = [
    "SET ROLE {role1}", "SET ROLE {role2}", "RESET ROLE", "SET plan_cache_mode = force_custom_plan", "SET plan_cache_mode = force_generic_plan",
    "SET plan_cache_mode = auto", "SET enable_seqscan = off", "SET enable_seqscan = on", "SET enable_hashagg = off", "SET enable_hashagg = on",
    "SET enable_self_join_elimination = off", "SET enable_self_join_elimination = on", "SET enable_distinct_reordering = off", "SET constraint_exclusion = on",
    "SET constraint_exclusion = partition", "SET enable_partitionwise_aggregate = on", "SET enable_partitionwise_aggregate = off", "SET extra_float_digits = 0",
]
OWN_WRITES = [
    "INSERT INTO {schema}.p VALUES (1, 1), (5, 2)", "INSERT INTO {schema}.child VALUES (4, 1)", "INSERT INTO {schema}.parent VALUES (1, 1), (2, 2)",
    "WITH w AS (INSERT INTO {schema}.parent VALUES (1, 1) RETURNING v) SELECT sum(v) FROM w", "INSERT INTO {schema}.p1 VALUES (1, 2)",
]


class Forms:
    """Makes statements in which generated columns stand in all places."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.aliases = 0

    def alias(self):
        self.aliases += 1
        return f"r{self.aliases}"

    def value(self, r):
        return self.random.choice([f"{r}.a", f"{r}.b", f"{r}.v", f"{r}.v", f"{r}.v % 3", f"length({r}.w)", f"coalesce({r}.v, {r}.b, -1)", f"({r}.a + {r}.v)"])

    def condition(self, r):
        one, other = self.random.sample(range(6), 2)
        return self.random.choice([
            f"{self.value(r)} > {{0}}", f"{self.value(r)} = {{0}}", f"{r}.v IN ({one}, {{0}}, {other})", f"{r}.v IN (VALUES ({one}), ({{0}}), ({other}))",
            f"{r}.a = {one} OR {r}.a = {{0}} OR {r}.a = {other}", f"{r}.v IS NULL", f"{r}.v IS NOT NULL", f"{r}.w LIKE '%' || {{0}}", "{0} IS NULL",
            f"({r}.v, {r}.a) > ({{0}}, {one})", f"{r}.v = ANY (ARRAY[{one}, {other}, {{0}}])", f"EXISTS (SELECT FROM x WHERE x.v = {r}.v)",
            f"{r}.v NOT IN (SELECT t.v FROM t WHERE t.v IS NOT NULL AND t.a > {one})", f"{r}.b = {{0}} AND {r}.v > {other}",
        ])

    def source(self, r):
        relation, other, s = self.random.choice(RELATIONS), self.random.choice(RELATIONS), self.alias()
        return self.random.choice([
            f"{relation} {r}", f"{relation} {r}", f"{relation} {r}",
            f"(SELECT {s}.a, {s}.b, {s}.v, {s}.w FROM {relation} {s} WHERE {self.condition(s)}) {r}",
            f"(SELECT {s}.a, o.b, o.v, o.w FROM {relation} {s} LEFT JOIN {other} o ON o.v = {s}.v) {r}",
            f"(SELECT {s}.a, {s}.b, o.v, o.w FROM {relation} {s} JOIN {relation} o ON o.a = {s}.a) {r}",
            f"(SELECT {s}.a, {s}.b, {s}.v, {s}.w FROM {relation} {s} UNION ALL SELECT a, b, v, w FROM {other}) {r}",
            f"(SELECT v AS a, max(b) AS b, count(*)::int AS v, min(w) AS w FROM {relation} GROUP BY GROUPING SETS ((v), (v, b), ())) {r}",
            f"(SELECT DISTINCT v AS a, b, v, w FROM {relation}) {r}",
        ])

    def statement(self):
        r = self.alias()
        source, condition, value = self.source(r), self.condition(r), self.value(r)

        def plain(output):
            return f"SELECT {output} FROM {source} WHERE {condition}"

        group = self.random.choice([f"{r}.v, {r}.a", f"{r}.a, {r}.b, {r}.v", value, f"ROLLUP ({r}.v, {r}.b)", f"CUBE ({r}.b, {r}.v)", f"GROUPING SETS (({r}.v), ({r}.b), ())"])
        chosen = f"{r}.v" if ".v" in group and value != group else value
        having = self.random.choice(["", "", " HAVING count(*) > 1", f" HAVING {chosen} = {{0}}", f" HAVING {chosen} IS NULL", f" HAVING grouping({chosen}) = 0"])
        forms = [
            plain(f"{r}.a, {r}.v"), plain(f"{r}.v, {r}.w, {r}.b"), plain(f"count(*), sum({r}.v), max({r}.w)"), plain(f"DISTINCT {value}, {r}.v"), plain(f"{r}.*"), plain(f"{r}::text"),
            plain(f"{r}.a, (SELECT max(o.v) FROM t o WHERE o.v < {r}.v)"), plain(f"{chosen} AS g, count(*), sum({r}.a)") + f" GROUP BY {group}{having}",
            plain(f"{chosen} AS g, count(*)") + f" GROUP BY {group}{having}", plain(f"{chosen}, grouping({chosen}), min({r}.v)") + f" GROUP BY {group}{having}",
            plain(f"count(*), bool_or({r} IS NULL), max({r}.v + {{0}})"), plain(f"{r}.v, row_number() OVER (PARTITION BY {r}.v ORDER BY {r}.a, {r}.b)"),
        ]
        return self.random.choice(forms)


@pytest.fixture
def world(connect):
    yield
    random_sessions.remove(connect)


@sweep
def test_answers_agree(connect, session, world):
    kind = "VIRTUAL" if session.info.server_version >= 180000 else "STORED"
    forms = Forms(SEED)
    queries = [forms.statement() for _ in range(FORMS)]
    setup = SETUP.replace("{kind}", kind)
    if kind == "STORED":
        # There a partition and a child have the expression of what is above them.
        setup = setup.replace(" (v GENERATED ALWAYS AS (b * 100) STORED)", "").replace("(v int GENERATED ALWAYS AS (a + b) STORED, CHECK (v > 0))", "(CHECK (a > 0))")
    run = random_sessions.Run(connect, random_sessions.World(
        setup, queries, CONSTANTS, [""], CHANGES, DEFINITIONS, SETTINGS, OWN_WRITES), SEED)
    print(f"seed {SEED}")
    print(run.steps(STEPS))
    assert min(watched.placeholders for watched in run.cached) > STEPS / 20
    assert run.answers - run.failures > STEPS / 3
