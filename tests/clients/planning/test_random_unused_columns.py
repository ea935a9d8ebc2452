"""Random sub-queries, WITH queries and joins, with columns that ask for the time or read texts: what is cached without the time in its key is what the
server's own plan does not ask for the time.

RANDOM_SEED repeats a run, RANDOM_ROUNDS makes it longer."""

import os
import random

from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED", "11"))
ROUNDS = rounds(150, 400)

TABLES = """
CREATE TABLE event (id int, kind int, at timestamptz);
INSERT INTO event SELECT g, g % 3, timestamptz '2026-01-01 UTC' + g * interval '1 day' FROM generate_series(1, 9) g;
CREATE TABLE label (kind int, name text);
INSERT INTO label VALUES (0, 'zero'), (1, 'one');
CREATE VIEW aged AS SELECT id, kind, now() - at AS a0, extract(epoch FROM now() - at) AS a1 FROM event;
CREATE VIEW fenced WITH (security_barrier) AS SELECT id, kind, now() AS a0, kind + 1 AS a1 FROM event WHERE kind > 0;
"""


class Query:
    """Makes a SELECT with the columns id, kind, a0 and a1."""

    def __init__(self, choose):
        self.choose = choose
        self.serial = 0

    def made_of(self, name):
        """An expression over the columns of a part of FROM: of the time, or not."""
        column = self.choose(["a0", "a1"])
        return self.choose([
            "now()", "1", f"{name}.id * 2", f"{name}.{column}", f"({name}.{column}, 1)", f"{name}.{column} IS NULL", f"(SELECT {name}.{column})",
            f"(SELECT count(*) FROM label WHERE {name}.{column} IS NULL)", f"ROW({name}.*)::text", f"COALESCE({name}.{column}::text, 'none')",
            f"extract(epoch FROM now()) + {name}.id",
        ])

    def columns(self, name):
        return f"{name}.id, {name}.kind, {self.made_of(name)} AS a0, {self.made_of(name)} AS a1"

    def source(self, depth):
        if depth == 0:
            return self.choose(["aged", "fenced", "(SELECT id, kind, now() AS a0, at AS a1 FROM event)", "(SELECT id, kind, 1 AS a0, now() - at AS a1 FROM event)"])
        return f"({self.select(depth - 1)})"

    def tail(self, name):
        column = self.choose(["id", "kind", "a0", "a1"])
        return self.choose(["", "", "", " OFFSET 0", f" WHERE {name}.id > 2", f" WHERE {name}.{column} IS NOT NULL", f" ORDER BY {name}.{column}, {name}.id LIMIT 4",
                            f" WHERE EXISTS (SELECT FROM label WHERE label.kind = {name}.kind AND {name}.{column} IS NOT NULL)"])

    def select(self, depth):
        self.serial += 1
        name, other = f"v{self.serial}", f"u{self.serial}"
        source = self.source(depth)
        kind = self.choose(["plain", "plain", "with", "twice", "join", "lateral", "union", "distinct", "group", "alias"])
        if kind == "with":
            return f"WITH {name} AS {self.choose(['', 'NOT MATERIALIZED', 'MATERIALIZED'])} (SELECT * FROM {source} s) SELECT {self.columns(name)} FROM {name}{self.tail(name)}"
        if kind == "twice":
            return f"WITH {name} AS {self.choose(['', 'NOT MATERIALIZED'])} (SELECT * FROM {source} s) SELECT {self.columns(name)} FROM {name} JOIN {name} {other} USING (id)"
        if kind == "join":
            using = self.choose(["kind", "kind", "id, kind"])
            right = "label" if using == "kind" else self.source(0)
            return f"SELECT {self.columns(name)} FROM {source} {name} {self.choose(['', 'LEFT '])}JOIN {right} {other} USING ({using}){self.tail(name)}"
        if kind == "lateral":
            return f"SELECT {self.columns(other)} FROM {source} {name}, LATERAL (SELECT {self.columns(name)}, label.name FROM label WHERE label.kind = {name}.kind) {other}"
        if kind == "union":
            return f"SELECT id, kind, a0::text, a1::text FROM {source} {name} UNION ALL SELECT id, kind, '2', a1::text FROM {self.source(0)} {other}"
        if kind == "distinct":
            return f"SELECT DISTINCT ON ({name}.kind) {self.columns(name)} FROM {source} {name} ORDER BY {name}.kind, {name}.id"
        if kind == "group":
            return f"SELECT max(id) AS id, kind, count(a0) AS a0, min({self.choose(['a1::text', 'id'])}) AS a1 FROM {source} {name} GROUP BY kind"
        if kind == "alias":
            return f"SELECT {self.columns(name)} FROM ({source} {other} JOIN label USING (kind)) {name} ({self.choose(['kind, id, a0, a1', 'kind, id, a1, a0'])})"
        return f"SELECT {self.columns(name)} FROM {source} {name}{self.tail(name)}"


@sweep
def test_random_unused_columns(session):
    session.execute(TABLES + "SET seq_page_cost = 1000000; SET jit = off")
    chosen = random.Random(SEED)
    made, cached, dropped = Query(chosen.choice), 0, 0
    for turn in range(ROUNDS):
        inner = made.select(chosen.choice([0, 1, 1, 2, 3]))
        shown = chosen.choice(["count(*)", "id, kind", "id, kind", "max(kind)", "id, a0", "count(a1)", "count(top)"])
        query = f"SELECT {shown} FROM ({inner}) top"
        cacheable, reason = session.rows("SELECT cacheable, reason FROM arrow_cache.why(%s)", (query,))[0]
        assert reason in (None, "moving_clock", "record_type"), (turn, reason, query)
        session.execute("SET pg_arrow_cache.enabled = off")
        plan = "\n".join(line for line, in session.rows(f"EXPLAIN (VERBOSE, COSTS OFF) {query}"))
        session.execute("SET pg_arrow_cache.enabled = on")
        dropped += "now()" not in plan
        if not cacheable:
            continue
        cached += 1
        assert "now()" not in plan, f"{turn}: {query}\n{plan}"
        for _ in range(2):
            got = session.rows(query)
        assert session.status() == "HIT", query
        assert sorted(map(str, got)) == sorted(map(str, session.uncached(query))), query
    assert cached > dropped / 2 > ROUNDS / 10, (cached, dropped)
