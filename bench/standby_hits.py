"""Hits on a standby beside hits on its primary, and two standbys at work at the same time."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import transactions
from measure import Goal, Part, Ratio, Samples, markdown, pinned, processor_time, to_and_fro
from overhead import PROCESSOR, sessions_seconds
from session import Session
from standby_servers import Primary, Standby

GOAL_OF_A_HIT, GOAL_OF_TWO, GOAL_OF_TWO_BY_TIME = 0.97, 1.9, 0.95
ONE_ROW = "SELECT abalance FROM pgbench_accounts WHERE aid = 1"
AGGREGATE = "SELECT bid, count(*), sum(abalance) FROM pgbench_accounts GROUP BY bid ORDER BY bid"
UNIT = "SELECT 1"
STATEMENTS = {UNIT: UNIT, "hit, one row": ONE_ROW, "hit, an aggregate": AGGREGATE}
WAYS = ("simple", "prepared")
SERVERS = ("primary", "standby")
WARMING = 300
TURN, TURNS_OF_A_ROUND = 200, 20   # short turns, so that what else the machine does falls on all alike
SERVER_CONF = {"shared_buffers": "256MB", "autovacuum": "off", "pg_arrow_cache.min_execution_time": "0"}


@contextmanager
def pair(directory, scale, *, standbys=1, processors=(PROCESSOR,), postgres=None):
    """A primary and standbys that stream from it, all with the library: (primary, standbys). `postgres` is a program to start standbys
    with."""
    with ExitStack() as stack:
        primary = stack.enter_context(Primary(f"{directory}-primary", cpu=processors[0], conf=SERVER_CONF))
        transactions.load_accounts(primary, scale)
        primary.psql("CREATE EXTENSION pg_arrow_cache")
        backup = primary.back_up()
        made = [stack.enter_context(Standby(f"{directory}-{number}", backup, primary=primary, conf=SERVER_CONF, postgres=postgres,
                                            cpu=processors[number % len(processors)])) for number in range(standbys)]
        for standby in made:
            standby.catch_up()
        yield primary, made


@dataclass
class Case:
    """One statement in one protocol, on one server."""

    server: str
    statement: str
    way: str
    session: Session
    time: Samples = field(default_factory=Samples)   # seconds of processor time of the server's process for one execution

    @property
    def key(self):
        return self.server, self.statement, self.way

    def run(self, count):
        sql, name = STATEMENTS[self.statement], self.statement.encode()
        execute = (lambda: self.session.execute(sql)) if self.way == "simple" else (lambda: self.session.execute_prepared(name))
        before = processor_time(self.session.pid)
        for _ in range(count):
            execute()
        return (processor_time(self.session.pid) - before) / count

    def warm(self):
        if self.way == "prepared":
            self.session.prepare(STATEMENTS[self.statement], self.statement.encode())
        self.run(WARMING)
        self.check()

    def check(self):
        self.run(1)
        if self.statement != UNIT:
            self.session.expect("HIT")


def measure_hits(directory, size, progress):
    with pinned(PROCESSOR), pair(directory, 1) as (primary, (standby,)):
        sessions = {name: Session(server.dsn()) for name, server in zip(SERVERS, (primary, standby))}
        cases = [Case(server, statement, way, sessions[server]) for way in WAYS for statement in STATEMENTS for server in SERVERS]
        for case in cases:
            case.warm()
        for number in range(size.rounds):
            progress(f"hits: round {number + 1} of {size.rounds}")
            turns = {case.key: Samples() for case in cases}
            for _, case in to_and_fro(cases, TURNS_OF_A_ROUND):
                turns[case.key].add(case.run(TURN))
            for case in cases:
                case.time.add(turns[case.key].median)
        for case in cases:
            case.check()
        standby.check_publishing()
        for session in sessions.values():
            session.close()
    return report_hits({case.key: case.time for case in cases})


def report_hits(times):
    goals, rows = [], []
    for way in WAYS:
        for statement in STATEMENTS:
            if statement == UNIT:
                rows.append([f"{UNIT}, {way}", *(f"{times[server, UNIT, way].median * 1e6:,.1f}" for server in SERVERS), "", "",
                             str(Ratio.of(times["primary", UNIT, way], times["standby", UNIT, way]))])
                continue
            shares = [Ratio.of(times[server, UNIT, way], times[server, statement, way]) for server in SERVERS]
            ratio = Ratio([theirs / ours for ours, theirs in zip(*(share.rounds for share in shares))])
            goals.append(Goal.at_least(f"{statement}, {way}: the standby's ratio to {UNIT}, of the primary's", ratio, GOAL_OF_A_HIT, "×"))
            rows.append([f"{statement}, {way}", *(f"{times[server, statement, way].median * 1e6:,.1f}" for server in SERVERS),
                         *(f"{share.median:.3f}" for share in shares), str(ratio)])
    return Part(goals, [markdown(
        "Hits on a standby",
        f"Microseconds of processor time of the server's process for one execution, medians of turns of {TURN}, server and client on "
        f"processor {PROCESSOR}; the rate as a share of that of {UNIT} on the same server; and the standby's share divided by the "
        f"primary's (for {UNIT} the rates themselves).",
        ["statement", "µs, primary", "µs, standby", "share, primary", "share, standby", "ratio"], rows)])


@dataclass
class Load:
    """A script of bench/pgbench, run on one standby, the other, and both."""

    name: str
    script: str
    rates: dict = field(default_factory=lambda: {who: Samples() for who in ("first", "second", "both")})
    times: dict = field(default_factory=lambda: {who: Samples() for who in ("first", "second", "both")})

    def measure(self, who, standbys, seconds):
        """Each standby, with its client, has a processor of its own."""
        before = servers_time(standbys)
        arguments = ["-M", "prepared", *transactions.script(self.script)]
        with ThreadPoolExecutor(len(standbys)) as pool:
            runs = list(pool.map(lambda server: transactions.run(server, *arguments, seconds=seconds), standbys))
        self.rates[who].add(sum(run.tps for run in runs))
        self.times[who].add((servers_time(standbys) - before) * 1e6 / sum(run.count for run in runs))


def servers_time(standbys):
    return sum(sessions_seconds(standby) for standby in standbys)


def measure_two(directory, size, progress):
    processors = sorted(os.sched_getaffinity(0))[:2]
    loads = [Load(UNIT, "select_1"), Load("hit, one row", "account"), Load("hit, an aggregate", "branches")]
    with pair(directory, 1, standbys=2, processors=processors) as (_, standbys):
        ways = {"first": standbys[:1], "second": standbys[1:], "both": standbys}
        for load in loads:
            for standby in standbys:
                transactions.run(standby, "-t", WARMING, *transactions.script(load.script))
        for number in range(size.rounds):
            progress(f"two standbys: round {number + 1} of {size.rounds}")
            for load in loads:
                for who in ways if number % 2 == 0 else reversed(ways):
                    hits = [hits_of(standby) for standby in ways[who]]
                    load.measure(who, ways[who], size.seconds)
                    if load.name != UNIT and any(hits_of(standby) <= before for standby, before in zip(ways[who], hits)):
                        raise RuntimeError(f"{load.name}: no hits")
        for standby in standbys:
            standby.check_publishing()
    return report_two(loads, processors)


def hits_of(standby):
    hits = int(standby.ask("SELECT hits FROM arrow_cache.stats"))
    standby.hang_up()   # the time of sessions is counted when they have ended
    return hits


def report_two(loads, processors):
    goals, rows = [], []
    for load in loads:
        alone = {what: Samples([(one + other) / 2 for one, other in zip(samples["first"].values, samples["second"].values)])
                 for what, samples in (("rate", load.rates), ("time", load.times))}
        rate, time = Ratio.of(load.rates["both"], alone["rate"]), Ratio.of(alone["time"], load.times["both"])
        if load.name != UNIT:
            goals.append(Goal.at_least(f"two standbys, {load.name}: of the rate of one", rate, GOAL_OF_TWO, "×"))
            goals.append(Goal.at_least("the same: processor time of a hit with one at work, of that with two", time, GOAL_OF_TWO_BY_TIME))
        rows.append([load.name, f"{alone['rate'].median:,.0f}", f"{load.rates['both'].median:,.0f}", str(rate),
                     f"{alone['time'].median:.1f}", f"{load.times['both'].median:.1f}", str(time)])
    return Part(goals, [markdown(
        "Two standbys",
        "Statements per second in the prepared protocol, and microseconds of processor time of the server for each, of one standby and "
        f"of two at the same time. Each has a client, with which it shares a processor ({' and '.join(map(str, processors))}). *Of one "
        "by time* is the time for a statement with one standby at work divided by that with two.",
        ["statement", "per s, one", "per s, two", "of one", "µs, one", "µs, two", "of one by time"], rows)])
