#!/usr/bin/env python3
"""Reads monitoring/ as its users do: a private server under some load, Debian's postgres_exporter with queries.yaml as a role with pg_monitor alone,
and Prometheus that scrapes it. Each expression of the dashboard must give a number, and counters those of `arrow_cache.stats`. Run by
`make test-monitoring`; prints a line for each expression, as TAP does.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import cluster as private  # noqa: E402  (it lives beside the other scripts)

MONITORING = ROOT / "monitoring"
# Grafana puts these in.
VARIABLES = {"$__rate_interval": "10s", "$instance": ".*"}
PATIENCE_S = 60
SCRAPES = 5
# What stands still while nobody asks: the exporter's own queries are bypasses.
COMPARED = ("hits", "misses", "stale", "stores", "invalidations")
SETTINGS = {"pg_arrow_cache.min_execution_time": "0", "listen_addresses": "'localhost'"}


class Failed(Exception):
    pass


@contextlib.contextmanager
def running(name, command, log, **options):
    """A program that runs meanwhile."""
    with open(log, "w") as output:
        try:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, **options)
        except FileNotFoundError:
            print(f"{name} is not there: scripts/setup.sh monitoring installs it", file=sys.stderr)
            sys.exit(69)
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def until(what, action):
    """Repeats until it gives something."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if found := action():
                return found
        except (urllib.error.URLError, ConnectionError):
            pass
        if time.monotonic() > deadline:
            raise Failed(f"never: {what}")
        time.sleep(0.2)


def use(session):
    """Hits, misses, stale results, bypasses, changes and waits."""
    session.execute("SELECT sum(n) FROM seen")
    session.execute("SELECT n + random() FROM seen")
    session.execute("UPDATE seen SET n = n + 1")
    session.execute("SELECT sum(n) FROM seen")
    session.execute("SELECT sum(n) FROM seen")


class Prometheus:
    def __init__(self, port):
        self.base = f"http://localhost:{port}"

    def ask(self, expression):
        """The values of an expression, by labels."""
        url = f"{self.base}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        return [(sample["metric"], float(sample["value"][1])) for sample in json.loads(fetch(url))["data"]["result"]]

    def ask_range(self, expression, start, end):
        """The values of an expression second by second: (labels, [(time, value)])."""
        asked = {"query": expression, "start": start, "end": end, "step": 1}
        found = json.loads(fetch(f"{self.base}/api/v1/query_range?{urllib.parse.urlencode(asked)}"))["data"]["result"]
        return [(series["metric"], [(float(at), float(value)) for at, value in series["values"]]) for series in found]


def panels():
    return json.loads((MONITORING / "grafana.json").read_text())["panels"]


def filled_in(expression):
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


def expressions():
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], filled_in(target["expr"])


def look(session, prometheus):
    """Yields (name, what is wrong with it or nothing)."""
    until("scrapes", lambda: prometheus.ask(f"count_over_time(pg_arrow_cache_hits[1m]) >= {SCRAPES}"))
    for title, expression in expressions():
        found = prometheus.ask(expression)
        numbers = [value for _, value in found if value == value]
        yield f"{title}: {expression}", None if numbers else f"no number: {found}"
    # Nothing is used meanwhile, so the next scrape tells what `stats` tells.
    for column in COMPARED:
        expected = session.execute(f"SELECT {column} FROM arrow_cache.stats").fetchone()[0]
        wanted = f"sum(pg_arrow_cache_{column})"
        try:
            until(f"{wanted} = {expected}", lambda: [value for _, value in prometheus.ask(wanted)] == [float(expected)])
            yield f"{column} as in stats", None
        except Failed:
            yield f"{column} as in stats", f"{prometheus.ask(wanted)} instead of {expected}"


@contextlib.contextmanager
def monitored(directory, settings=SETTINGS):
    """A server, a session on it, and a Prometheus that scrapes it every second."""
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-monitoring-") as folder, private.Cluster(directory, conf=settings) as server:
        folder = Path(folder)
        server.psql("CREATE EXTENSION pg_arrow_cache; CREATE ROLE exporter LOGIN IN ROLE pg_monitor; CREATE TABLE seen (n int); INSERT INTO seen VALUES (1)")
        exporter_port, port = private.free_port(), private.free_port()
        address = f"user=exporter host={server.socket_dir} port={server.port} dbname=postgres sslmode=disable"
        exporter = ["prometheus-postgres-exporter", f"--web.listen-address=localhost:{exporter_port}", f"--extend.query-path={MONITORING / 'queries.yaml'}"]
        config = folder / "prometheus.yml"
        config.write_text(f"scrape_configs:\n- job_name: postgres\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  static_configs:\n  - targets: ['localhost:{exporter_port}']\n")
        scraper = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=localhost:{port}"]
        with running("postgres_exporter", exporter, folder / "exporter.log", env={**os.environ, "DATA_SOURCE_NAME": address}), \
                running("Prometheus", scraper, folder / "prometheus.log", cwd=folder), \
                psycopg.connect(server.dsn(), autocommit=True) as session:
            prometheus = Prometheus(port)
            until("the exporter answers", lambda: "pg_arrow_cache_hits" in fetch(f"http://localhost:{exporter_port}/metrics"))
            until("Prometheus has a sample", lambda: prometheus.ask("pg_arrow_cache_hits"))
            yield server, session, prometheus


def main():
    failed = 0
    with monitored(ROOT / "target" / "test-monitoring") as (_, session, prometheus):
        for _ in range(2 * SCRAPES):
            use(session)
            time.sleep(0.5)
        for number, (name, problem) in enumerate(look(session, prometheus), 1):
            failed += problem is not None
            print(f"{'not ok' if problem else 'ok'} {number} - {name}" + (f"\n# {problem}" if problem else ""), flush=True)
    print(f"{number - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
