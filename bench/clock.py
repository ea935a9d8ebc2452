"""Hits with the clock in their key beside the same hits with a literal, by time: server and pgbench on one processor."""

from dataclasses import dataclass, field

import transactions
from instructions import SINCE, TABLE
from measure import Goal, Part, Ratio, Samples, alternating, markdown
from overhead import PROCESSOR, WARMING, measured_run
from program import private

GOAL = 0.97
CLOCKS = {"CURRENT_DATE - 365": "date", "date_trunc('month', now() - interval '12 months')": "timestamptz"}
SERVER_CONF = {"shared_buffers": "64MB", "autovacuum": "off", "pg_arrow_cache.min_execution_time": "0"}


@dataclass
class Case:
    clock: str
    mode: str
    scripts: dict         # of the literal, A, and of the clock, B
    tps: dict = field(default_factory=lambda: {side: Samples() for side in "AB"})
    time: dict = field(default_factory=lambda: {side: Samples() for side in "AB"})


def written(directory, name, since):
    """A script for pgbench that asks since when."""
    path = directory / f"{name}.sql"
    path.write_text(f"{SINCE}{since};\n")
    return path


def cases(server, directory):
    directory.mkdir(parents=True, exist_ok=True)
    for number, (clock, type_name) in enumerate(CLOCKS.items()):
        literal = f"{type_name} '{server.psql(f'SELECT {clock}').strip()}'"
        scripts = {"A": written(directory, f"literal-{number}", literal), "B": written(directory, f"clock-{number}", clock)}
        for mode in ("simple", "prepared"):
            yield Case(clock, mode, scripts)


def hits(server):
    return int(server.psql("SELECT hits FROM arrow_cache.stats"))


def one_run(server, case, side, length):
    """Transactions per second and microseconds of processor time for each, all of them hits but for the first of a session."""
    before = hits(server)
    found = measured_run(server, ["-M", case.mode, "-f", case.scripts[side]], length)
    if hits(server) - before < found[0] * length * 0.9:
        raise RuntimeError(f"{case.clock}, {case.mode}: not answered from the cache")
    return found


def measure_clock(directory, size, progress):
    with private.Cluster(directory, cpu=PROCESSOR, conf=SERVER_CONF) as server:
        server.psql("CREATE EXTENSION pg_arrow_cache")
        server.psql(TABLE)
        all_cases = list(cases(server, directory.with_name(f"{directory.name}-scripts")))
        for case in all_cases:
            progress(f"clock: {case.clock}, {case.mode}, {size.rounds} rounds of 2 × {size.seconds} s")
            for side in "AB":
                transactions.run(server, "-t", WARMING, "-M", case.mode, "-f", case.scripts[side])
            for order in alternating(size.rounds):
                for side in order:
                    rate, microseconds = one_run(server, case, side, size.seconds)
                    case.tps[side].add(rate)
                    case.time[side].add(microseconds)
    return report(all_cases)


def report(all_cases):
    goals, rows = [], []
    for case in all_cases:
        by_time, by_rate = Ratio.of(case.time["A"], case.time["B"]), Ratio.of(case.tps["B"], case.tps["A"])
        goals.append(Goal.at_least(f"a hit with {case.clock}, {case.mode}: of the rate with a literal", by_time, GOAL, "×"))
        times = (text for side in "AB" for text in (f"{case.time[side].median:,.1f}", f"{case.time[side].spread:.0%}"))
        rates = (f"{case.tps[side].median:,.0f}" for side in "AB")
        rows.append([f"`{case.clock}`", case.mode, *rates, str(by_rate), *times, str(by_time)])
    return Part(goals, [markdown(
        "Hits with the clock in their key",
        "Transactions per second, and microseconds of processor time per transaction of server and client on processor "
        f"{PROCESSOR}: with a literal of the same type and value, and with the clock.",
        ["since", "protocol", "per s, literal", "clock", "rate", "µs, literal", "spread", "clock", "spread", "rate by time"], rows)])
