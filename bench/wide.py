"""Results read by a Python program, from one row to 50,000 rows of 20 columns, through every peer, text and binary."""

import gc
import json
from dataclasses import dataclass, field
from functools import partial

import bare_server
import footprint
from measure import Goal, Part, Ratio, Samples, markdown, milliseconds, pinned, processor_time, to_and_fro
from program import private
from session import Session, digest, values
from systems import PROCESSOR, WIDE_ROWS, hits_of_pool, wide_name

PLAIN, VIEW, POOL, HIT = "plain PostgreSQL", "materialized view", "pgpool-II", "hit"
PLAIN_BINARY, HIT_BINARY, HIT_ROWS = "plain, binary", "hit, binary", "hit, rows as Python values"
HIT_PREPARED = "hit, prepared"
REDIS, REDIS_LOADED = "Redis", "Redis, json.loads"
FLOOR, FLOOR_BINARY = "bare socket", "bare socket, binary"
SLOW_ROUNDS = 3
WARMING_READS = 6
OF_PLAIN_GOAL, OF_PLAIN_BINARY_GOAL, OF_POOL_GOAL = 0.30, 0.25, 0.9
OF_FLOOR_GOAL, OF_PLAIN_BACKEND_GOAL = 1.12, 0.12


@dataclass
class Shape:
    """A result: the query, what reads it from a materialized view, and how often it is read for one measurement."""

    name: str
    query: str
    view: str = None
    reads: int = 1
    rows: int = None        # of a wide table, which has goals
    slow: bool = False      # the plain query is measured a few times only


SHAPES = [
    Shape("one row", "SELECT abalance FROM pgbench_accounts WHERE aid = 1", reads=200),
    Shape("aggregate", "SELECT bid, count(*), sum(abalance) FROM pgbench_accounts GROUP BY bid ORDER BY bid",
          "SELECT * FROM branches_view", reads=100, slow=True),
    *(Shape(f"{rows:,} rows × 20", f"SELECT * FROM {wide_name(rows)}",
            "SELECT * FROM wide_view" if rows == WIDE_ROWS[-1] else None, max(1, 10_000 // rows), rows)
      for rows in WIDE_ROWS),
]


@dataclass
class Way:
    name: str
    read: object
    reads: int
    rounds: int = None
    pid: int = None         # of the server's process, if its processor time is measured
    times: Samples = field(default_factory=Samples)
    spent: Samples = field(default_factory=Samples)

    def measure(self):
        gc.collect()

        def all_reads():
            for _ in range(self.reads):
                self.read()
        before = self.pid and processor_time(self.pid)
        self.times.add(milliseconds(all_reads) / self.reads)
        if self.pid:
            self.spent.add((processor_time(self.pid) - before) * 1000 / self.reads)


class Readers:
    """Connections to all systems."""

    def __init__(self, systems):
        self.cached, self.until_the_end = systems.cached, systems.stack
        self.hit, self.plain = Session(systems.cached.dsn()), Session(systems.plain.dsn())
        self.pool = Session(systems.wide_pool.dsn("postgres", private.SUPERUSER))
        self.pool_hits = hits_of_pool(systems.wide_pool)
        self.redis = systems.redis.client()

    def prepare(self, shape):
        """Puts the answer into every cache, sees that it is served from there, and that all answers are the same."""
        answer = self.plain.execute(shape.query)
        rows = [[None if value is None else value.decode() for value in row] for row in values(answer)]
        self.redis.set(shape.name, json.dumps(rows))
        self.hit.execute(shape.query)
        ours = self.hit.execute(shape.query)
        self.hit.expect("HIT")
        binary = self.hit.execute_binary(shape.query)
        self.hit.expect("HIT")
        theirs = self.answer_of_pool(shape)
        if not digest(answer) == digest(ours) == digest(theirs):
            raise RuntimeError(f"{shape.name}: the answers differ")
        if digest(binary) != digest(self.plain.execute_binary(shape.query)):
            raise RuntimeError(f"{shape.name}: the binary answers differ")
        name = shape.name.encode()
        self.hit.prepare(shape.query, name)
        prepared = self.hit.execute_prepared(name)
        self.hit.expect("HIT")
        if digest(prepared) != digest(ours):
            raise RuntimeError(f"{shape.name}: the answer of the prepared statement differs")

    def answer_of_pool(self, shape):
        """pgpool-II takes some questions to answer from its cache."""
        for _ in range(WARMING_READS):
            before = self.pool_hits()
            answer = self.pool.execute(shape.query)
            if self.pool_hits() > before:
                return answer
        raise RuntimeError(f"{shape.name}: pgpool-II does not cache it")

    def floor(self, shape):
        """A session of a server that does nothing but send the answer."""
        answers = bare_server.record(self.cached.dsn(), shape.query)
        return Session(self.until_the_end.enter_context(bare_server.serving(*answers)))

    def ways(self, shape):
        def way(name, read, **options):
            return Way(name, read, **{"reads": shape.reads, **options})

        slow = {"reads": 1, "rounds": SLOW_ROUNDS} if shape.slow else {}
        yield way(PLAIN, partial(self.plain.execute, shape.query), pid=self.plain.pid, **slow)
        if shape.view:
            yield way(VIEW, partial(self.plain.execute, shape.view))
        yield way(POOL, partial(self.pool.execute, shape.query))
        yield way(HIT, partial(self.hit.execute, shape.query), pid=self.hit.pid)
        yield way(HIT_PREPARED, partial(self.hit.execute_prepared, shape.name.encode()))
        if not shape.slow:
            yield way(PLAIN_BINARY, partial(self.plain.execute_binary, shape.query), pid=self.plain.pid)
        yield way(HIT_BINARY, partial(self.hit.execute_binary, shape.query), pid=self.hit.pid)
        floor = self.floor(shape)
        yield way(FLOOR, partial(floor.execute, shape.query))
        yield way(FLOOR_BINARY, partial(floor.execute_binary, shape.query))
        yield way(REDIS, partial(self.redis.get, shape.name))
        yield way(REDIS_LOADED, lambda: json.loads(self.redis.get(shape.name)))
        yield way(HIT_ROWS, lambda: self.hit.connection.execute(shape.query).fetchall())


def goals_of(shape, ways):
    def ratio(one, other):
        return Ratio.of(ways[one].times, ways[other].times)

    yield Goal.at_most(f"{shape.name}, text, hit: of plain's time", ratio(HIT, PLAIN), OF_PLAIN_GOAL, "×")
    yield Goal.at_most(f"{shape.name}, text, hit: of pgpool-II's time", ratio(HIT, POOL), OF_POOL_GOAL, "×")
    yield Goal.at_most(f"{shape.name}, binary, hit: of plain's time", ratio(HIT_BINARY, PLAIN_BINARY),
                       OF_PLAIN_BINARY_GOAL, "×")
    yield Goal.at_most(f"{shape.name}, text, prepared hit: of a bare socket's time", ratio(HIT_PREPARED, FLOOR), OF_FLOOR_GOAL, "×")
    for form, hit, plain, floor in ("text", HIT, PLAIN, FLOOR), ("binary", HIT_BINARY, PLAIN_BINARY, FLOOR_BINARY):
        yield Goal.at_most(f"{shape.name}, {form}, hit: of a bare socket's time", ratio(hit, floor), OF_FLOOR_GOAL, "×")
        yield Goal.at_most(f"{shape.name}, {form}, hit: processor time of the server's process, of plain's",
                           Ratio.of(ways[hit].spent, ways[plain].spent), OF_PLAIN_BACKEND_GOAL, "×")


def measure_wide(systems, size, progress):
    goals, times = [], {}
    with pinned(PROCESSOR):
        readers = Readers(systems)
        for shape in SHAPES:
            progress(f"wide: {shape.name}")
            readers.prepare(shape)
            ways = {way.name: way for way in readers.ways(shape)}
            for number, way in to_and_fro(list(ways.values()), size.rounds):
                if way.rounds is None or number < way.rounds:
                    way.measure()
            readers.hit.execute(shape.query)
            readers.hit.expect("HIT")
            if shape.rows:
                goals += goals_of(shape, ways)
            times[shape.name] = ways
        memory = footprint.report(readers.hit, readers.plain)
    names = [PLAIN, VIEW, POOL, HIT, HIT_PREPARED, FLOOR, PLAIN_BINARY, HIT_BINARY, FLOOR_BINARY, REDIS, REDIS_LOADED, HIT_ROWS]

    def cell(shape, name):
        way = times[shape].get(name)
        return f"{way.times.median:,.3f} ±{way.times.spread / 2:.0%}" if way else "–"

    section = markdown(
        "Results as a Python program reads them",
        "Milliseconds until the whole result is in the client's memory, ± half of the spread; client and servers on "
        "one processor. Through psycopg's libpq, as text where nothing else is said; from Redis, the same rows as "
        "JSON, through redis-py with hiredis; from the bare socket, the bytes of the hit, which a process has ready. *json.loads* and *rows as Python values* (psycopg's fetchall) make "
        "Python objects of them, too.",
        ["way", *times], [[name, *(cell(shape, name) for shape in times)] for name in names])
    figures = {"wide": {name: [times[shape.name][name].times.median for shape in SHAPES if shape.rows]
                        for name in (PLAIN, POOL, HIT, PLAIN_BINARY, HIT_BINARY, REDIS, REDIS_LOADED)}}
    return Part(goals, [section, memory], figures)
