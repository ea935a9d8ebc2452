"""Small results asked again and again by pgbench: one row, and an aggregate over all accounts."""

from dataclasses import dataclass, field

import transactions
from measure import Goal, Part, Ratio, Samples, markdown, to_and_fro
from systems import hits_of_pool

MODES = ("simple", "prepared")
PLAIN_AGGREGATE_ROUNDS = 3   # it takes a second, and its share is a very small number in any case


@dataclass
class Way:
    """One way to an answer. `hits` counts those of its cache, `port` is a proxy's."""

    name: str
    server: object
    script: str
    port: int = None
    hits: object = None
    rounds: int = None
    tps: dict = field(default_factory=lambda: {mode: Samples() for mode in MODES})

    def run(self, mode, seconds):
        before = self.hits() if self.hits else 0
        arguments = ["-M", mode, *transactions.script(self.script)]
        done = transactions.run(self.server, *arguments, seconds=seconds, port=self.port)
        # A measurement of the wrong thing is worse than none. What pgpool's child has not reported yet may be missing.
        if self.hits and self.hits() - before < 0.99 * done.count:
            raise RuntimeError(f"{self.name}: {self.hits() - before} hits in {done.count} transactions")
        return done.tps


def ways_to(systems):
    ours, theirs = systems.hits_of_cache(), hits_of_pool(systems.pool)
    cached, plain, port = systems.cached, systems.plain, systems.pool.port
    return {
        "unit": Way("SELECT 1", cached, "select_1"),
        "row, plain": Way("one row, plain PostgreSQL", plain, "account"),
        "row, pool": Way("one row, pgpool-II", plain, "account", port=port, hits=theirs),
        "row, hit": Way("one row, hit", cached, "account", hits=ours),
        "aggregate, plain": Way("aggregate, plain PostgreSQL", plain, "branches", rounds=PLAIN_AGGREGATE_ROUNDS),
        "aggregate, view": Way("aggregate, materialized view", plain, "branches_view"),
        "aggregate, pool": Way("aggregate, pgpool-II", plain, "branches", port=port, hits=theirs),
        "aggregate, hit": Way("aggregate, hit", cached, "branches", hits=ours),
    }


def goals_of(ways):
    def ratio(mode, one, other):
        return Ratio.of(ways[one].tps[mode], ways[other].tps[mode])

    yield Goal.at_least("one-row hit, simple: of SELECT 1", ratio("simple", "row, hit", "unit"), 0.93, "×")
    yield Goal.at_least("one-row hit, simple: of plain's look-up", ratio("simple", "row, hit", "row, plain"), 1.4, "×")
    yield Goal.at_least("one-row hit, prepared: of SELECT 1", ratio("prepared", "row, hit", "unit"), 0.97, "×")
    yield Goal.at_least("one-row hit, prepared: of pgpool-II", ratio("prepared", "row, hit", "row, pool"), 3.5, "×")
    hit = "aggregate, hit"
    yield Goal.at_least("aggregate, hit: of SELECT 1", ratio("simple", hit, "unit"), 0.80, "×")
    yield Goal.at_least("aggregate, hit: of pgpool-II", ratio("simple", hit, "aggregate, pool"), 1.05, "×")
    yield Goal.at_least("aggregate, hit: of plain", ratio("simple", hit, "aggregate, plain"), 30_000, "×")


def significant(number):
    """Rates and shares of rates, from many thousands to millionths."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3f}" if number >= 0.01 else f"{number:.6f}"


def measure_rates(systems, size, progress):
    ways = ways_to(systems)
    for mode in MODES:
        progress(f"rates, {mode}: {len(ways)} ways, {size.rounds} rounds of {size.seconds} s each")
        for way in ways.values():
            if way.hits:   # the answer into the cache; pgpool-II needs two questions for that
                transactions.run(way.server, "-M", mode, "-t", 3, *transactions.script(way.script), port=way.port)
        for number, way in to_and_fro(list(ways.values()), size.rounds):
            if way.rounds is None or number < way.rounds:
                way.tps[mode].add(way.run(mode, size.seconds))
    unit = ways["unit"]
    shares = {mode: {key: Ratio.of(way.tps[mode], unit.tps[mode]) for key, way in ways.items()} for mode in MODES}
    rows = [[way.name, *(text for mode in MODES for text in (
                significant(way.tps[mode].median), f"{way.tps[mode].spread:.0%}",
                significant(shares[mode][key].median)))]
            for key, way in ways.items()]
    section = markdown(
        "Small results",
        "Transactions per second of one pgbench client, on one processor together with all servers. *One row* is a "
        f"look-up by primary key; *aggregate* groups {systems.scale * 100_000:,} accounts into {systems.scale} rows. "
        "SELECT 1 runs in the server with the cache; its rate in the same round is the unit.",
        ["way", *(text for mode in MODES for text in (f"{mode}, per s", "spread", "of SELECT 1"))], rows)
    figures = {"rates": {key: [shares[mode][key].median for mode in MODES] for key in ways}}
    return Part(list(goals_of(ways)), [section], figures)
