"""The statements that are compared with the cache off and on: texts with `{mark}`, by which each run is found, and
`{low}`, a bound value."""

from dataclasses import dataclass

TABLES = """
CREATE TABLE readings (at timestamptz, v int);
INSERT INTO readings SELECT now() - g * interval '1 hour' + interval '30 min', g FROM generate_series(1, 3000) g;
CREATE TABLE indexed AS SELECT * FROM readings;
CREATE INDEX ON indexed (at);
CREATE TABLE pay (d date, v int) PARTITION BY RANGE (d);
CREATE TABLE pay1 PARTITION OF pay FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE pay2 PARTITION OF pay FOR VALUES FROM ('2024-02-01') TO ('2124-03-01');
INSERT INTO pay SELECT date '2024-01-01' + g % 59, g FROM generate_series(1, 1000) g;
CREATE VIEW of_pay AS SELECT d, v FROM pay;
CREATE TABLE kinds (k int, name text);
INSERT INTO kinds VALUES (0, 'even'), (1, 'odd');
ANALYZE readings, indexed, pay, kinds;
"""


@dataclass
class Statement:
    name: str
    # What is sent, one text for each message.
    texts: list
    # After this an answer does not hold, though executing gives it again.
    change: str
    # Are its values the same at each run? Those that show the time are not.
    is_constant: bool = True
    # By which protocols it is sent.
    modes: tuple = ("simple", "bind", "prepared")


def _one(name, text, table, **options):
    return Statement(name, [text], f"UPDATE {table} SET v = v WHERE v = 3", **options)


QUERIES = [
    _one("a table", "SELECT {mark} count(*) FROM readings WHERE v > {low}", "readings"),
    _one("several rows", "SELECT {mark} v, at FROM readings WHERE v < {low} + 20 ORDER BY v", "readings"),
    _one("a window without an index",
         "SELECT {mark} count(*) FROM readings WHERE at > now() - interval '100 hours' AND v > {low}",
         "readings"),
    _one("a window by an index",
         "SELECT {mark} count(*) FROM indexed WHERE at > now() - interval '100 hours' AND v > {low}",
         "indexed"),
    _one("a window over partitions",
         "SELECT {mark} sum(v) FROM pay WHERE d > now() - interval '100 years' AND v > {low}",
         "pay"),
    _one("rows of a window over partitions",
         "SELECT {mark} d, v FROM pay WHERE d > now() - interval '100 years' AND v < {low} + 20 ORDER BY v",
         "pay"),
    _one("the clock in columns",
         "SELECT {mark} now() AS t, sum(v) FROM readings WHERE v > {low}",
         "readings", is_constant=False),
    _one("the clock in columns of rows",
         "SELECT {mark} now() - at, v FROM readings WHERE v < {low} + 20 ORDER BY v",
         "readings", is_constant=False),
    _one("parts", "SELECT {mark} sum(v), count(*) FROM pay WHERE v > {low}", "pay"),
    _one("parts of a view", "SELECT {mark} d, sum(v) FROM of_pay WHERE v > {low} GROUP BY d ORDER BY d", "pay"),
    _one("parts that depend on settings",
         "SELECT {mark} date_trunc('month', d::timestamptz), count(*) FROM pay WHERE v > {low} GROUP BY 1 ORDER BY 1",
         "pay"),
    _one("parts with a dimension",
         "SELECT {mark} name, sum(v) FROM pay JOIN kinds ON k = mod(v, 2) WHERE v > {low} GROUP BY name ORDER BY name",
         "pay"),
    _one("parts and the clock",
         "SELECT {mark} now() AS t, sum(v), count(*) FROM pay WHERE v > {low}",
         "pay", is_constant=False),
]

# Sent by the simple protocol only.
_SCRIPTS = {
    "EXECUTE": [
        "PREPARE p (int) AS SELECT {mark} sum(v) FROM readings WHERE v > $1",
        "EXECUTE p (0)", "EXECUTE p (7)", "DEALLOCATE p"],
    "EXECUTE of a window without an index": [
        "PREPARE p AS SELECT {mark} count(*) FROM readings WHERE at > now() - interval '100 hours'",
        "EXECUTE p", "EXECUTE p", "DEALLOCATE p"],
    "a cursor": [
        "BEGIN", "DECLARE c CURSOR FOR SELECT {mark} v FROM readings ORDER BY v",
        "FETCH 5 FROM c", "FETCH ALL FROM c", "COMMIT"],
    "a cursor beyond its transaction": [
        "BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT {mark} v FROM readings ORDER BY v",
        "COMMIT", "FETCH 5 FROM c", "CLOSE c"],
    "EXPLAIN ANALYZE": ["EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT {mark} count(*) FROM readings"],
    "DO": ["DO $$ DECLARE n int; BEGIN SELECT {mark} sum(v) INTO n FROM readings; END $$"],
    "CREATE TABLE AS": ["CREATE TEMP TABLE copied AS SELECT {mark} v FROM readings WHERE v < 5", "DROP TABLE copied"],
    "two in one message": ["SELECT {mark} sum(v) FROM readings; SELECT {mark} max(v) FROM readings"],
    "query": ["SELECT length(arrow_cache.query('SELECT {mark} v FROM readings WHERE v < 20 ORDER BY v'))"],
    "fetch": ["SELECT count(*) FROM arrow_cache.fetch('SELECT {mark} v FROM readings WHERE v < 20 ORDER BY v')"],
    "messages": ["SELECT count(*) FROM arrow_cache.messages('SELECT {mark} v FROM readings WHERE v < 20 ORDER BY v')"],
    "COPY as Arrow": ["COPY (SELECT {mark} v FROM readings WHERE v < 20 ORDER BY v) TO STDOUT (FORMAT arrow)"],
    "COPY as Arrow of parts": ["COPY (SELECT {mark} sum(v), count(*) FROM pay) TO STDOUT (FORMAT arrow)"],
}
_CHANGE = "UPDATE readings SET v = v WHERE v = 3; UPDATE pay SET v = v WHERE v = 3"
# What EXPLAIN prints of a hit is another plan.
SCRIPTS = [Statement(name, texts, _CHANGE, name != "EXPLAIN ANALYZE", ("simple",)) for name, texts in _SCRIPTS.items()]


def of_demo(queries):
    """The demo's dashboard."""
    change = "UPDATE sales SET quantity = quantity WHERE sale_id = 42; UPDATE pgbench_branches SET filler = filler"
    return [Statement(name, [text.replace("SELECT", "SELECT {mark}", 1)], change) for name, text in queries.items()]
