"""Random queries in random plans, read in parts by cursors while the time zone changes in between: every row is the one that executing gives.

RANDOM_SEED repeats a run, RANDOM_ROUNDS makes it longer."""

import os
import random

import psycopg


SEED = int(os.environ.get("RANDOM_SEED", "14"))
ROUNDS = int(os.environ.get("RANDOM_ROUNDS", "400"))

TABLES = """
    CREATE TABLE t (id int PRIMARY KEY, n int, ts timestamptz, v text);
    INSERT INTO t SELECT g, g % 7, timestamptz '2026-01-01 UTC' + g * interval '7 hours', repeat('v', g % 5) || g FROM generate_series(1, 40) g;
    CREATE TABLE u (id int PRIMARY KEY, d date, n int, ts timestamptz);
    INSERT INTO u SELECT g, date '2026-01-01' + g, g % 5, timestamptz '2026-01-02 01:00 UTC' + g * interval '11 hours' FROM generate_series(1, 12) g;
    CREATE INDEX ON u (d);
    CREATE INDEX ON t (ts);
    CREATE INDEX ON t (n, id);
    ANALYZE t, u
"""

# These days and moments are others in another zone.
DAY = "(timestamptz '2026-01-04 UTC')::date"
MOMENT = "date_trunc('day', timestamptz '2026-01-04 UTC')"

ZONES = ["UTC", "Asia/Tokyo", "America/New_York", "Pacific/Auckland"]
NODES = ["hashagg", "sort", "hashjoin", "mergejoin", "nestloop", "seqscan", "material", "bitmapscan", "indexscan", "indexonlyscan", "memoize",
         "incremental_sort"]
SOURCES = [
    "t a", "t a", "t a JOIN u b ON a.id = b.id", "t a JOIN u b ON a.n = b.id", "t a LEFT JOIN u b ON a.n = b.id", "t a RIGHT JOIN u b ON a.n = b.n",
    "t a FULL JOIN u b ON a.id = b.id + 5", "t a JOIN u b ON b.id > a.id", "t a JOIN u b ON a.id = b.id AND a.ts::date > b.d", "t a LEFT JOIN u b ON b.id = a.n AND b.ts::time < '12:00'",
    "t a JOIN (SELECT n AS id, max(d) AS d, min(ts) AS ts, count(*) AS n FROM u GROUP BY n) b ON a.n = b.id",
    "t a JOIN (SELECT n AS id, max(d) AS d, min(ts) AS ts, count(*) AS n FROM u WHERE ts::date > {day} GROUP BY n ORDER BY n) b ON a.n > b.id",
    "(SELECT * FROM t WHERE ts::time < '18:00' ORDER BY v, id LIMIT 30) a", "(SELECT * FROM t WHERE ts::date > {day} UNION ALL SELECT id, n, ts, d::text FROM u) a",
]
CONDITIONS = [
    "a.ts::date > {day}", "a.ts > {moment}", "a.ts < {moment}", "a.ts::time < '12:00'", "a.n > 2", "a.n = 3", "a.id > 5", "a.id % 2 = extract(hour FROM a.ts)::int % 2",
    "a.id < 5 OR a.n < (SELECT count(*) FROM u WHERE d > {day})", "EXISTS (SELECT FROM u c WHERE c.id = a.n AND c.d > {day})",
    "NOT EXISTS (SELECT FROM u c WHERE c.id = a.n AND c.ts::time < '12:00')", "a.n IN (SELECT n FROM u WHERE d > {day})",
    "a.ts IN ({moment}, {moment} + '7 hours', '2026-01-02 18:00 UTC', '2026-01-03 01:00 UTC')",
]
SESSION_COLUMNS = ["a.ts::text", "to_char(a.ts, 'DD HH24')", "extract(hour FROM a.ts)", "{day}", "a.ts + '1 day'"]
AGGREGATES = ["count(*)", "min(a.ts)", "max(a.ts)::text", "sum(a.n)", "string_agg(a.v, ',' ORDER BY a.ts::text, a.id)", "count(DISTINCT a.ts::date)", "count(*) FILTER (WHERE a.ts::time < '12:00')"]
KEYS = ["a.id", "a.n", "a.v", "a.ts::date", "a.n, a.id"]
WINDOWS = ["count(*) OVER ()", "sum(a.n) OVER (ORDER BY a.id)", "row_number() OVER (PARTITION BY a.n ORDER BY a.ts::text, a.id)", "count(*) OVER (PARTITION BY a.ts::date)",
           "count(*) OVER (ORDER BY a.ts RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW)"]
KINDS = ["NO SCROLL CURSOR", "NO SCROLL CURSOR", "CURSOR", "SCROLL CURSOR", "NO SCROLL CURSOR WITH HOLD", "SCROLL CURSOR WITH HOLD"]
FORWARD = ["NEXT", "2", "5", "11", "40", "ALL"]
ANYWHERE = [*FORWARD, "PRIOR", "FIRST", "LAST", "ABSOLUTE 3", "RELATIVE -2", "BACKWARD ALL"]


def make_query(choose):
    source = choose.choice(SOURCES)
    conditions = choose.sample(CONDITIONS, choose.choice([0, 0, 1, 1, 2]))
    where = " WHERE " + " AND ".join(f"({condition})" for condition in conditions) if conditions else ""
    further = ["b.d", "b.ts::text"] if " b" in source else []
    shape = choose.choice(["plain", "plain", "grouped", "grouped", "distinct", "window"])
    tail = ""
    if shape == "grouped":
        keys = choose.choice(KEYS)
        columns = [keys, *choose.sample(AGGREGATES, choose.choice([1, 2]))]
        tail = choose.choice([f" GROUP BY {keys}", f" GROUP BY {keys}", f" GROUP BY ROLLUP ({keys})"])
        tail += choose.choice(["", "", " HAVING count(*) > 1", " HAVING max(a.ts)::time < '18:00'", " HAVING sum(a.n) > (SELECT count(*) FROM u WHERE d > {day})"])
        order = keys
    else:
        columns = ["a.id", *choose.sample(["a.n", "a.v", "a.ts", *SESSION_COLUMNS, *further], choose.choice([0, 1, 2]))]
        order = choose.choice(["a.id", "a.n, a.id", "a.ts::text, a.id"]) if shape != "distinct" else "a.id"
        if shape == "window":
            columns += choose.sample(WINDOWS, choose.choice([1, 2]))
    head = {"distinct": choose.choice(["DISTINCT ", "DISTINCT ON (a.id) "])}.get(shape, "")
    ordered = f" ORDER BY {order}" if choose.random() < 0.5 and not (head == "DISTINCT " and "::" in order) else ""
    limit = choose.choice(["", "", "", " LIMIT 7", " OFFSET 2 LIMIT 9", " OFFSET 1"])
    text = f"SELECT {head}{', '.join(columns)} FROM {source}{where}{tail}{ordered}{limit}"
    return text.replace("{day}", DAY).replace("{moment}", MOMENT)


def make_steps(choose, kind):
    """The fetches of a cursor, and the zones that are set between them."""
    fetches = ANYWHERE if kind.startswith("SCROLL") and choose.random() < 0.7 else FORWARD
    steps = [f"FETCH {choose.choice(FORWARD)} FROM c"]
    for _ in range(choose.choice([1, 2, 3, 5])):
        if choose.random() < 0.7:
            steps.append(f"SET LOCAL timezone = '{choose.choice(ZONES)}'")
        steps.append(f"FETCH {choose.choice(fetches)} FROM c")
    if "HOLD" in kind and choose.random() < 0.5:
        steps.insert(choose.randrange(1, len(steps) + 1), "COMMIT")
    return [*steps, "FETCH ALL FROM c"]


def read(session, query, kind, steps):
    """The rows of each step, up to the first error: a scan that runs backward under other settings may fail."""
    found = []
    session.execute("BEGIN")
    try:
        session.execute(f"DECLARE c {kind} FOR {query}")
        for step in steps:
            done = session.execute(step)
            found.append(done.fetchall() if done.description else None)
    except psycopg.Error as error:
        found.append(str(error))
    session.execute("ROLLBACK")
    session.execute("CLOSE ALL")
    return found


def test_random_settled_rows(connect):
    plain, cached = connect("-c pg_arrow_cache.enabled=off -c timezone=UTC -c jit=off"), connect("-c timezone=UTC -c jit=off")
    plain.execute(TABLES)
    before = counters(cached)
    for turn in range(ROUNDS):
        choose = random.Random(f"{SEED} {turn}")
        query, kind, without = make_query(choose), choose.choice(KINDS), choose.sample(NODES, choose.choice([0, 1, 2, 4, 6]))
        steps = make_steps(choose, kind)
        settings = "RESET ALL; " + "; ".join(f"SET enable_{node} = off" for node in without)
        # An answer is stored in the order of its own plan, so it is stored by the same kind of cursor.
        filling = kind.replace("SCROLL CURSOR", "NO SCROLL CURSOR").replace("NO NO", "NO").replace(" WITH HOLD", "")
        for session in (plain, cached):
            session.execute(settings)
            session.execute("SELECT arrow_cache.flush()")
            filled = read(session, query, filling, ["FETCH ALL FROM c"])
        assert not isinstance(filled[-1], str), (filled, query)
        expected, got = read(plain, query, kind, steps), read(cached, query, kind, steps)
        assert got == expected, f"RANDOM_SEED={SEED}, turn {turn}: {settings}; {kind} FOR {query}; {steps}"
    hits, refused = (after - then for after, then in zip(counters(cached), before))
    # Of the others, most are plain scans, whose current row could be updated.
    assert hits > ROUNDS / 5 and refused > ROUNDS / 10, (hits, refused)


def counters(session):
    return session.rows("""SELECT hits, (SELECT coalesce(sum(statements), 0)::int FROM arrow_cache.bypass_reasons WHERE reason = 'settings_in_cursor')
                             FROM arrow_cache.stats""")[0]
