"""What an aggregate over a large plain table costs after few of its rows have changed, beside the plain execution, a materialized view that is refreshed,
and the same rows in partitions. Each answer is compared with the uncached one.

Ratios are medians of the same question after the same kind of change, in one run. The first run is the one in which all parts are computed."""

import argparse
import random
import statistics
import sys
import time

import psycopg

from program import ROOT, check_build, private, progress

TABLES = """
    CREATE EXTENSION pg_arrow_cache;
    CREATE TABLE sales (id bigint, day date, k int, shop int, product int, amount numeric, state int);
    INSERT INTO sales SELECT g, date '2024-01-01' + (g * 365 / {rows})::int, (g * 7919 % 200)::int, (g % 1000)::int, (g * 31 % 977)::int, g % 10007, (g % 5)::int
        FROM generate_series(1, {rows}::bigint) g;
    CREATE INDEX ON sales (id);
    CREATE TABLE shops AS SELECT g AS shop, g % 30 AS region FROM generate_series(0, 999) g;
    CREATE TABLE products AS SELECT g AS product, g % 17 AS category FROM generate_series(0, 976) g;
    CREATE TABLE parted (LIKE sales) PARTITION BY RANGE (day);
    DO $$ BEGIN FOR month IN 0..12 LOOP
        EXECUTE format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES FROM (%L) TO (%L)', month,
                       date '2024-01-01' + month * interval '1 month', date '2024-01-01' + (month + 1) * interval '1 month');
    END LOOP; END $$;
    INSERT INTO parted SELECT * FROM sales;
    CREATE INDEX ON parted (id);
"""
QUESTIONS = {
    "one row": "SELECT count(*), sum(amount) FROM {0} WHERE state < 4",
    "200 groups": "SELECT k, count(*), sum(amount), max(id) FROM {0} GROUP BY k ORDER BY k",
    "star join": "SELECT region, category, count(*), sum(amount) FROM {0} JOIN shops USING (shop) JOIN products USING (product) GROUP BY 1, 2 ORDER BY 1, 2",
}
# How many times quicker than the plain execution an answer should be (docs/figures.md).
GOALS = {("one row", "an insert"): 500, ("200 groups", "an insert"): 100, ("star join", "an insert"): 50, ("one row", "100 updates"): 15, ("200 groups", "100 updates"): 15}


def timed(session, text):
    began = time.perf_counter()
    rows = session.execute(text).fetchall()
    return time.perf_counter() - began, rows


def insert(session, table, number):
    session.execute(f"INSERT INTO {table} VALUES (%s, '2024-12-30', 1, 1, 1, 5, 1)", [number])


def updates(session, table, rows):
    ids = random.sample(range(1, rows + 1), 100)
    session.execute(f"UPDATE {table} SET amount = amount + 1 WHERE id = ANY(%s)", [ids])


def measure(session, plain, table, rows, repeats):
    """Rows of the report: the question, what has happened, the median and the plain one."""
    for name, question in QUESTIONS.items():
        text = question.format(table)
        off = [timed(plain, text)[0] for _ in range(3)]
        firsts = []
        for n in range(4):
            insert(session, table, rows + n + 1)
            firsts.append(timed(session, text)[0])
        yield name, "runs that compute all", max(firsts[1:]), statistics.median(off)
        for kind, change in (("nothing", None), ("an insert", insert), ("100 updates", updates)):
            times, others = [], []
            for n in range(repeats):
                if change:
                    change(session, table, rows + n + 10 if change is insert else rows)
                elapsed, answer = timed(session, text)
                times.append(elapsed)
                elapsed, expected = timed(plain, text)
                others.append(elapsed)
                if answer != expected:
                    sys.exit(f"another answer: {name} after {kind} of {table}")
            yield name, kind, statistics.median(times), statistics.median(others)


def nightly(session, plain, table, repeats):
    """The oldest day goes, VACUUM gives its room back, and inserts fill it. Another form: each learns by itself whether parts pay."""
    text = QUESTIONS["200 groups"].format(table).replace("max(id)", "min(id)")
    for _ in range(3):
        session.execute(f"UPDATE {table} SET amount = amount WHERE id = (SELECT max(id) FROM {table})")
        timed(session, text)
    session.execute(f"DELETE FROM {table} WHERE day = (SELECT min(day) FROM {table})")
    session.execute(f"VACUUM {table}")
    times, others = [], []
    for n in range(repeats):
        session.execute(f"INSERT INTO {table} SELECT -g, '2024-12-31', 1, 1, 1, 5, 1 FROM generate_series(1, 20) g")
        elapsed, answer = timed(session, text)
        times.append(elapsed)
        elapsed, expected = timed(plain, text)
        others.append(elapsed)
        if answer != expected:
            sys.exit("another answer after holes were filled")
    yield "200 groups", "inserts that fill holes", statistics.median(times[1:]), statistics.median(others)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    check_build()
    print("#", " ".join(["bench/zones.py", *sys.argv[1:]]))
    conf = {"shared_buffers": "'2GB'", "max_wal_size": "'16GB'", "pg_arrow_cache.memory": "'256MB'", "autovacuum": "off"}
    with private.Cluster(ROOT / "target" / "bench-zones", conf=conf) as server, \
            psycopg.connect(server.dsn(), autocommit=True) as session, psycopg.connect(server.dsn(), autocommit=True) as plain:
        plain.execute("SET pg_arrow_cache.enabled = off")
        progress(f"{options.rows} rows")
        session.execute(TABLES.format(rows=options.rows))
        for table in ("sales", "parted", "shops", "products"):
            plain.execute(f"VACUUM ANALYZE {table}")
        session.execute("CREATE MATERIALIZED VIEW summary AS " + QUESTIONS["200 groups"].format("sales"))
        print("# table:", plain.execute("SELECT pg_size_pretty(pg_relation_size('sales'))").fetchone()[0])
        print(f"{'table':8}{'question':14}{'after':26}{'ms':>10}{'plain ms':>10}{'times':>8}{'goal':>6}")
        for table in ("sales", "parted"):
            found = [*measure(session, plain, table, options.rows, options.repeats)]
            if table == "sales":
                found += nightly(session, plain, table, options.repeats)
            for name, kind, own, other in found:
                goal = GOALS.get((name, kind), "") if table == "sales" else ""
                print(f"{table:8}{name:14}{kind:26}{own * 1e3:10.2f}{other * 1e3:10.1f}{other / own:8.1f}{goal:>6}")
        began = time.perf_counter()
        session.execute("REFRESH MATERIALIZED VIEW summary")
        print(f"{'summary':8}{'200 groups':14}{'REFRESH MATERIALIZED VIEW':26}{(time.perf_counter() - began) * 1e3:10.1f}")
        parts = session.execute("SELECT count(*), sum(bytes) FROM arrow_cache.entries WHERE kind = 'fragment'").fetchone()
        print(f"# parts: {parts[0]}, {float(parts[1]) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
