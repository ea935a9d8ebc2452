"""The 22 queries of TPC-H: without the cache, storing and as hits. Their data comes from tpchgen-cli, and their answers
must be the same each time."""

import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from measure import Goal, Part, Ratio, alternating, markdown, pinned
from program import private
from session import Session, digest
from storing import GOAL as STORING_GOAL
from storing import LEAST_MS, Times, cost_of
from systems import CACHE_CONF, PROCESSOR

HERE = Path(__file__).resolve().parent / "tpch"
TABLES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")
HITS_IN_A_ROUND = 5


@dataclass
class Query:
    number: int
    sql: str
    status: str = ""
    rows: int = 0
    plain: Times = field(default_factory=Times)
    storing: Times = field(default_factory=Times)
    hit: Times = field(default_factory=Times)

    @property
    def cached(self):
        return self.status == "HIT"


def load(server, scale, progress):
    session = Session(server.dsn())
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-tpch-") as directory:
        progress(f"tpch: generating the data, scale {scale:g}")
        generator = Path(sys.executable).with_name("tpchgen-cli")
        command = [generator, "csv", "-s", str(scale), f"--output-dir={directory}"]
        subprocess.run(command, check=True, capture_output=True)
        progress("tpch: loading it")
        server.psql((HERE / "schema.sql").read_text())
        for table in TABLES:
            with open(Path(directory, f"{table}.csv"), "rb") as file, \
                    session.connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)") as copy:
                while piece := file.read(1 << 20):
                    copy.write(piece)
    session.close()
    server.psql((HERE / "indexes.sql").read_text())
    server.psql("CREATE EXTENSION pg_arrow_cache")


def queries(scale):
    return [Query(int(path.stem), path.read_text().replace(":scale", f"{scale:g}"))
            for path in sorted(HERE.glob("[0-9]*.sql"))]


def measure_query(session, query, rounds):
    def same(result, what):
        if digest(result) != expected:
            raise RuntimeError(f"TPC-H query {query.number}: the answer of the {what} execution differs")

    session.caching(False)
    first = session.execute(query.sql)   # warms the buffers
    expected, query.rows = digest(first), first.ntuples
    session.caching(True)
    for order in alternating(rounds):
        for side in order:
            if side == "A":
                session.caching(False)
                same(query.plain.measure(session, query.sql), "plain")
                session.caching(True)
                continue
            session.flush()
            same(query.storing.measure(session, query.sql), "storing")
            for _ in range(HITS_IN_A_ROUND):
                result = query.hit.measure(session, query.sql)
                query.status = session.status()
                same(result, "second")
                if not query.cached:
                    break


def report(found, scale):
    rows, costs = [], []
    for query in found:
        cost = cost_of(query.storing, query.plain)
        plain, hit = query.plain.clock, query.hit.clock
        if plain.median >= LEAST_MS and query.cached:
            costs.append((cost.median, query.number))
        faster = f"{plain.median / hit.median:,.0f}×" if query.cached else query.status
        rows.append([f"{query.number}", f"{query.rows:,}", *query.plain.cells(), *query.storing.cells(), str(cost),
                     f"{hit.median:,.3f}", faster])
    goals = []
    if costs:
        overall = Ratio([cost for cost, _ in costs])
        worst, number = max(costs)
        goals.append(Goal("storing execution, TPC-H: over plain, median of the queries",
                          f"{overall.median:+.1%} (worst {worst:+.1%}, query {number})", f"≤ {STORING_GOAL:+.0%}",
                          overall.median <= STORING_GOAL))
    cached = sum(query.cached for query in found)
    goals.append(Goal("TPC-H: queries cached, their answers the same", f"{cached} of {len(found)}", f"{len(found)}",
                      cached == len(found)))
    header = ["query", "rows", "cold ms", "spread", "storing ms", "spread", "cost", "hit ms", "faster"]
    section = markdown(
        f"TPC-H, scale {scale:g}",
        "Without the cache (*cold*, from warm buffers), storing, and as a hit; text, client and server on one "
        "processor. Of every execution all values, names and types were compared with those of the first. *Cost* is "
        f"that of storing, in processor time; its goal is for queries of {LEAST_MS:g} ms or more.",
        header, rows)
    figures = {"tpch": {query.number: [times.clock.median for times in (query.plain, query.storing, query.hit)]
                        for query in found}}
    return Part(goals, [section], figures)


def measure_tpch(directory, size, progress):
    with private.Cluster(directory, cpu=PROCESSOR, conf=CACHE_CONF) as server:
        load(server, size.tpch_scale, progress)
        found = queries(size.tpch_scale)
        with pinned(PROCESSOR):
            session = Session(server.dsn())
            for query in found:
                progress(f"tpch: query {query.number}")
                measure_query(session, query, max(4, size.fewer_rounds))
    return report(found, size.tpch_scale)
