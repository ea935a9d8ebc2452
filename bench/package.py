#!/usr/bin/env python3
"""Measures the package of clients/python beside what a program does without it; writes bench/results/DATE-package.md.

    bench/package.py

BENCH_ROUNDS sets the number of rounds. Goals not reached are reported, not failed.
"""

import asyncio
import datetime
import os
import sys
from functools import partial
from importlib.metadata import version

import asyncpg
import pandas
import psycopg2

from arrow import SERVER_CONF
from arrow_clients import Adbc, Client, Way, interleave
from arrow_measures import TIMING_HEADER, TIMING_NOTE, beside, ratio_goal, shape_of, store
from measure import Goal, machine, markdown, pinned
from mixed import mixed_table
from program import ROOT, check_build, private, progress

sys.path.insert(0, str(ROOT / "clients" / "python"))

import pg_arrow_cache  # noqa: E402  (it is not installed)

PACKAGES = ("pyarrow", "pandas", "psycopg", "psycopg2-binary", "asyncpg", "adbc-driver-postgresql")
QUERY = "SELECT * FROM mixed"
OF_ADBC_GOAL = 0.2
OF_PANDAS_GOAL = 0.1
OF_COPY_GOAL = 0.2


def expecting_hit(status):
    def check():
        found = status()
        if found != "HIT":
            raise RuntimeError(f"expected HIT, got {found}")

    return check


def status_of(connection):
    """Of the last statement, through a driver with the usual interface."""

    def status():
        with connection.cursor() as cursor:
            cursor.execute("SELECT arrow_cache.last_status()")
            return cursor.fetchone()[0]

    return status


def copy_goal(hits, executed):
    """What the server does for COPY in binary, which is how ADBC asks."""
    ratio = hits.timing.server.median / executed.timing.server.median
    return Goal("COPY in binary, hits: the server's processor time, of that of an execution", f"{ratio:.3f}", f"≤ {OF_COPY_GOAL:g}", ratio <= OF_COPY_GOAL)


def measure(server, rounds):
    client, plain = Client(server.dsn()), Client(server.dsn(), caching=False)
    adbc, through_adbc = Adbc(server), Adbc(server, caching=True)
    second = psycopg2.connect(server.dsn())
    second.autocommit = True
    loop = asyncio.new_event_loop()
    third = loop.run_until_complete(asyncpg.connect(host=str(server.socket_dir), port=server.port, user="postgres", database="postgres"))
    without = Client(server.dsn(), caching=False)
    pg_arrow_cache.has_extension[without.connection] = False
    store(client, QUERY)

    def read(connection):
        return pg_arrow_cache.read_arrow(connection, QUERY)

    def asynchronously():
        return loop.run_until_complete(pg_arrow_cache.aread_arrow(third, QUERY))

    def rows_in_pandas():
        cursor = plain.connection.execute(QUERY)
        return pandas.DataFrame(cursor.fetchall(), columns=[column.name for column in cursor.description])

    def hit(name, connection, pid, action, status=None):
        return Way(name, pid, action, expecting_hit(status or status_of(connection)))

    async_status = partial(third.fetchval, "SELECT arrow_cache.last_status()")
    ours = hit("read_arrow, psycopg", client.connection, client.pid, partial(read, client.connection))
    frame = hit("read_pandas, psycopg", client.connection, client.pid, partial(pg_arrow_cache.read_pandas, client.connection, QUERY))
    tables = [ours, hit("read_arrow, psycopg2", second, second.get_backend_pid(), partial(read, second)),
              hit("read_arrow, ADBC", through_adbc.connection, through_adbc.pid, partial(read, through_adbc.connection)),
              hit("aread_arrow, asyncpg", third, third.get_server_pid(), asynchronously, lambda: loop.run_until_complete(async_status()))]
    fallback = Way("read_arrow, psycopg, without the extension", without.pid, partial(read, without.connection))
    peer = Way("ADBC, fetch_arrow_table", adbc.pid, partial(adbc.table, QUERY))
    copied = hit("ADBC, fetch_arrow_table, hits", through_adbc.connection, through_adbc.pid, partial(through_adbc.table, QUERY))
    rows = Way("psycopg, rows in pandas", plain.pid, rows_in_pandas)
    reference = ours.read()
    if not all(reference.equals(way.read()) for way in (*tables, fallback)):
        raise RuntimeError("the same result was read in two ways and differs")
    ways = [*tables, frame, fallback, peer, copied, rows]
    progress(f"the package for Python: {len(ways)} ways to read {shape_of(reference)}")
    interleave(ways, rounds)
    goals = [ratio_goal("Package: read_arrow through psycopg, of ADBC's time", ours, peer, OF_ADBC_GOAL),
             copy_goal(copied, peer),
             ratio_goal("Package: read_pandas through psycopg, of the time of rows in pandas", frame, rows, OF_PANDAS_GOAL)]
    return goals, markdown(f"The package for Python: {shape_of(reference)}",
                           f"`{QUERY}`, hits of the package; the cache is off for the others. {TIMING_NOTE}",
                           ["way", *TIMING_HEADER, "of ADBC", "of rows in pandas"], beside(ways, peer, rows))


def main():
    rounds = int(os.environ.get("BENCH_ROUNDS", 20))
    check_build()
    private.exit_on_sigterm()
    about = machine()
    conf = {**SERVER_CONF, "shared_buffers": "256MB"}
    with pinned(0), private.Cluster(ROOT / "target" / "bench-package", conf=conf) as server:
        server.psql(mixed_table("mixed", 50_000) + "VACUUM (FREEZE, ANALYZE) mixed; CREATE EXTENSION pg_arrow_cache;")
        goals, section = measure(server, rounds)
    packages = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    report = "\n".join([
        f"# The package for Python, measured on {datetime.date.today()}", "",
        f"Command: `BENCH_ROUNDS={rounds} bench/package.py`  ", f"Machine: {about}; server and client on one processor  ",
        f"Server: {private.pg_config('--version')}; clients: {packages}  ",
        "Medians; spread: interquartile range over the median. Sides alternate.", "",
        markdown("Goals", "Of times by the clock.", ["figure", "measured", "goal", "reached"], [goal.cells() for goal in goals]),
        section])
    print(report)
    (ROOT / "bench" / "results" / f"{datetime.date.today()}-package.md").write_text(report)


if __name__ == "__main__":
    main()
