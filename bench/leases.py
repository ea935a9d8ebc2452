"""What leases of roles, sessions with temporary functions and a migration cost the hits of others: the same readers beside each of them and without.

Readers ask 240 questions again and again: aggregates, joins, row security by the role's name, a function of users. The ratio is that of hits among
what they have asked, beside the changes and without them. The server has 2,000 other roles that hold a lease, of which one a second is renewed."""

import argparse
import itertools
import multiprocessing
import random
import sys
import time

import psycopg

from program import ROOT, check_build, private, progress

READERS, QUESTIONS, GOAL = 2, 240, 0.99
LEASED = 2000
TABLES = """
    CREATE EXTENSION pg_arrow_cache;
    CREATE ROLE app LOGIN; CREATE ROLE readers; GRANT readers TO app;
    CREATE TABLE customers AS SELECT g AS id, 'customer ' || g AS name, g % 20 AS region FROM generate_series(1, 2000) g;
    ALTER TABLE customers ADD PRIMARY KEY (id);
    CREATE TABLE orders AS SELECT g AS id, 1 + g % 2000 AS customer, (g * 7919) % 1000 AS amount FROM generate_series(1, 60000) g;
    CREATE TABLE fenced AS SELECT *, CASE WHEN id % 2 = 0 THEN 'app' ELSE 'nobody' END AS who FROM orders;
    ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON fenced TO readers USING (who = CURRENT_USER);
    CREATE FUNCTION net(int) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 / 1.19';
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO readers;
"""
LEASES = """
    DO $$ BEGIN FOR number IN 0 .. {last} LOOP
        EXECUTE format('CREATE ROLE %I WITH LOGIN VALID UNTIL ''2040-01-01'' IN ROLE readers', 'v-leased-' || number);
    END LOOP; END $$
"""
KINDS = (
    "SELECT region, sum(amount) FROM orders JOIN customers ON customers.id = customer WHERE amount > {0} GROUP BY region ORDER BY region",
    "SELECT count(*), sum(amount) FROM fenced WHERE amount > {0}",
    "SELECT sum(net(amount)) FROM orders WHERE amount > {0}",
    "SELECT customer, count(*) FROM orders WHERE amount < {0} GROUP BY customer ORDER BY 2 DESC, 1 LIMIT 10",
)


def lease(session, number):
    """As Vault makes them and takes them back."""
    name = f'"v-token-{number}"'
    for statement in (
        f"CREATE ROLE {name} WITH LOGIN PASSWORD 'secret' VALID UNTIL '2040-01-01'", f"GRANT readers TO {name}",
        f"GRANT CONNECT ON DATABASE postgres TO {name}", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}", f"ALTER ROLE {name} VALID UNTIL '2041-01-01'",
        f"REVOKE ALL PRIVILEGES ON ALL TABLES IN SCHEMA public FROM {name}", f"REVOKE ALL ON DATABASE postgres FROM {name}", f"DROP ROLE IF EXISTS {name}",
    ):
        session.execute(statement)


def renewal(session, number):
    session.execute(f"""ALTER ROLE "v-leased-{number % LEASED}" VALID UNTIL '2041-01-01'""")


def temporary(session, number):
    with psycopg.connect(session.info.dsn, autocommit=True) as other:
        other.execute("CREATE FUNCTION pg_temp.twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2'; CREATE TEMP TABLE work AS SELECT pg_temp.twice(1)")


def migration(session, number):
    if number == 1:
        session.execute("CREATE TABLE invoices (id serial PRIMARY KEY, customer int REFERENCES customers, note text CHECK (note <> ''))")
        session.execute("CREATE INDEX ON invoices (customer); CREATE FUNCTION invoice_total(int) RETURNS int LANGUAGE sql AS 'SELECT $1'")


def every_second(dsn, changes, ends):
    with psycopg.connect(dsn, autocommit=True) as session:
        for number in itertools.count():
            for change in changes:
                change(session, number)
            if time.monotonic() + 1 > ends:
                return
            time.sleep(1)


def read(dsn, seed, ends, counts):
    """Asks until the end, and counts what became of it."""
    drawn = random.Random(seed)
    with psycopg.connect(dsn, autocommit=True) as session:
        session.prepare_threshold = None
        while time.monotonic() < ends:
            number = drawn.randrange(QUESTIONS)
            session.execute(KINDS[number % len(KINDS)].format(number)).fetchall()
            status = session.execute("SELECT arrow_cache.last_status()").fetchone()[0]
            with counts.get_lock():
                counts[0] += 1
                counts[1] += status == "HIT"


def measured(server, changes, seconds):
    """The share of hits, and how many questions were asked, of readers beside these changes."""
    server.psql("DROP TABLE IF EXISTS invoices; DROP FUNCTION IF EXISTS invoice_total")
    reader = server.dsn().replace("user=postgres", "user=app")
    with psycopg.connect(reader, autocommit=True) as session:
        for number in [*range(QUESTIONS)] * 2:
            session.execute(KINDS[number % len(KINDS)].format(number))
    counts = multiprocessing.Array("q", 2)
    ends = time.monotonic() + seconds
    processes = [multiprocessing.Process(target=read, args=(reader, seed, ends, counts)) for seed in range(READERS)]
    processes += [multiprocessing.Process(target=every_second, args=(server.dsn(), changes, ends))] if changes else []
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    asked, hits = counts
    return hits / asked, asked


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="that each part takes")
    parser.add_argument("--any-build", action="store_true", help="measure what is installed, be it no release")
    arguments = parser.parse_args()
    seconds = arguments.seconds
    if not arguments.any_build:
        check_build()
    cases = {"nothing": [], "a lease a second, and one that is renewed": [lease, renewal], "a session with temporary functions a second": [temporary], "a migration": [migration],
             "all of them": [lease, renewal, temporary, migration]}
    with private.Cluster(ROOT / "target" / "bench-leases", conf={"pg_arrow_cache.min_execution_time": "'0.1ms'"}) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as session:
            session.execute(TABLES)
            session.execute(LEASES.format(last=LEASED - 1))
        print("| beside | questions | hits | ratio |\n|---|---|---|---|")
        alone = None
        for name, changes in cases.items():
            share, asked = measured(server, changes, seconds)
            alone = alone or share
            progress(f"{name}: {share:.4f}")
            print(f"| {name} | {asked} | {share:.4f} | {share / alone:.4f} |", flush=True)
            if share / alone < GOAL:
                sys.exit(f"leases: {name}: fewer hits than {GOAL} of those without")


if __name__ == "__main__":
    main()
