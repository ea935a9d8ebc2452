"""What a new connection costs: connect, send six small SELECTs, disconnect. With the library, with it switched off, and without it.

Servers and client share one processor, as in overhead.py. The statements are quicker than min_execution_time, as most are of applications that
connect for each page.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from callgrind import closed, events_of, instructions, under_callgrind
from measure import Cost, Goal, Part, Samples, machine, markdown, pinned
from overhead import PROCESSOR, SERVER_CONF, children_faults, preload, sessions_seconds
from program import check_build, private, progress
from session import Session
from transactions import load_accounts

WITHOUT, OFF, ON = SIDES = ("without", "off", "on")
LIBRARY = {WITHOUT: "", OFF: "pg_arrow_cache", ON: "pg_arrow_cache"}
# By how much a connection may take longer.
MOST = {OFF: 0.01, ON: 0.02}
WAYS = ("simple", "prepared")
CONNECTIONS, FEW = 250, 60
WARMING = 24              # more than the runs after which statements are known to be quick
COUNTED = 3               # of these, the median counts
PAUSE = 0.002             # as in callgrind.py
BEGINNING = "pq_init"     # what a session calls first of what only sessions call
OTHER_TABLES = 163

SCHEMA = f"""
    CREATE TABLE hosts (hostid bigint PRIMARY KEY, name text NOT NULL, status int NOT NULL DEFAULT 0);
    CREATE TABLE users (userid bigint PRIMARY KEY, username varchar(100) NOT NULL UNIQUE);
    CREATE TABLE items (itemid bigint PRIMARY KEY, hostid bigint NOT NULL REFERENCES hosts, name text);
    CREATE INDEX ON items (hostid);
    CREATE TABLE triggers (triggerid bigint PRIMARY KEY, description varchar(255) NOT NULL);
    CREATE TABLE functions (functionid bigint PRIMARY KEY, itemid bigint NOT NULL REFERENCES items, triggerid bigint NOT NULL REFERENCES triggers);
    CREATE INDEX ON functions (itemid);
    CREATE TABLE profiles (profileid bigint PRIMARY KEY, userid bigint NOT NULL REFERENCES users, idx varchar(96), value_str text);
    CREATE INDEX ON profiles (userid, idx);
    CREATE TABLE config (configid bigint PRIMARY KEY);
    INSERT INTO hosts SELECT g, 'host ' || g FROM generate_series(1, 200) g;
    INSERT INTO users SELECT g, 'user ' || g FROM generate_series(1, 50) g;
    INSERT INTO items SELECT g, g % 200 + 1, 'item ' || g FROM generate_series(1, 5000) g;
    INSERT INTO triggers SELECT g, 'trigger ' || g FROM generate_series(1, 2000) g;
    INSERT INTO functions SELECT g, g, g % 2000 + 1 FROM generate_series(1, 5000) g;
    INSERT INTO profiles SELECT g, g % 50 + 1, 'page ' || g % 100, 'value' FROM generate_series(1, 2000) g;
    INSERT INTO config VALUES (1);
    DO $$ BEGIN
        FOR number IN 1 .. {OTHER_TABLES} LOOP
            EXECUTE format('CREATE TABLE other_%s (id bigint PRIMARY KEY, hostid bigint REFERENCES hosts, value text)', number);
        END LOOP;
    END $$;
    VACUUM ANALYZE;
"""
STATEMENTS = {
    "pgbench's tables": (
        "SELECT abalance FROM pgbench_accounts WHERE aid = 4711",
        "SELECT tbalance FROM pgbench_tellers WHERE tid = 3",
        "SELECT bbalance FROM pgbench_branches WHERE bid = 1",
        "SELECT count(*) FROM pgbench_tellers WHERE bid = 1",
        "SELECT aid, bid, filler FROM pgbench_accounts WHERE aid BETWEEN 100 AND 110",
        "SELECT t.tid, b.bbalance FROM pgbench_tellers t JOIN pgbench_branches b USING (bid) WHERE t.tid = 5"),
    "170 tables": (
        "SELECT hostid, name FROM hosts WHERE hostid = 84",
        "SELECT userid, username FROM users WHERE username = 'user 7'",
        "SELECT count(*) FROM items WHERE hostid = 84",
        "SELECT value_str FROM profiles WHERE userid = 1 AND idx = 'page 50'",
        "SELECT t.triggerid, t.description FROM triggers t, functions f, items i WHERE t.triggerid = f.triggerid AND f.itemid = i.itemid "
        "AND i.hostid = 84 ORDER BY 1 LIMIT 5",
        "SELECT configid FROM config"),
}


@dataclass
class Case:
    statements: str
    way: str
    milliseconds: dict = field(default_factory=lambda: {side: Samples() for side in SIDES})
    # Of the sessions' processes alone.
    processor: dict = field(default_factory=lambda: dict.fromkeys(SIDES, 0.0))
    # Page faults of these processes.
    faults: dict = field(default_factory=lambda: dict.fromkeys(SIDES, 0))
    count: int = 0

    @property
    def name(self):
        return f"{self.statements}, {self.way}"

    def cost(self, side):
        return Cost.of(self.milliseconds[side], self.milliseconds[WITHOUT])


def cases():
    return [Case(statements, way) for statements in STATEMENTS for way in WAYS]


def execute(session, case, pause=0.0):
    for sql in STATEMENTS[case.statements]:
        time.sleep(pause)
        if case.way == "simple":
            session.execute(sql)
        else:
            session.prepare(sql, b"")
            time.sleep(pause)
            session.execute_prepared(b"")


def one_connection(server, case):
    """Milliseconds that one took."""
    began = time.perf_counter()
    session = Session(server.dsn())
    execute(session, case)
    session.close()
    return (time.perf_counter() - began) * 1000


def become(server, side):
    """Restarts a server as one of the sides. The settings of the library are known only where it is loaded."""
    preload(server, "pg_arrow_cache")
    server.psql("ALTER SYSTEM SET pg_arrow_cache.enabled = off" if side == OFF else "ALTER SYSTEM RESET pg_arrow_cache.enabled")
    preload(server, LIBRARY[side])


def measure_third(sides, all_cases, connections):
    for case in all_cases:
        for server in sides.values():
            for _ in range(WARMING):
                one_connection(server, case)
        before = {side: (sessions_seconds(server), children_faults(server.pid)) for side, server in sides.items()}
        for number in range(connections):
            turn = number % len(SIDES)
            for side in SIDES[turn:] + SIDES[:turn]:
                case.milliseconds[side].add(one_connection(sides[side], case))
        for side, server in sides.items():
            seconds, faults = before[side]
            case.processor[side] += sessions_seconds(server) - seconds
            case.faults[side] += children_faults(server.pid) - faults
        case.count += connections


def measure_times(directory, size):
    all_cases = cases()
    with ExitStack() as stack:
        stack.enter_context(pinned(PROCESSOR))
        servers = []
        for number in range(len(SIDES)):
            progress(f"connections: starting server {number + 1} of {len(SIDES)}")
            server = stack.enter_context(private.Cluster(f"{directory}-{number}", preload="", cpu=PROCESSOR, conf=SERVER_CONF))
            load_accounts(server, 1)
            server.psql(SCHEMA)
            servers.append(server)
        # Servers with the same settings differ by some percent, so each of them is each of the sides for a third of the rounds.
        for turn in range(len(SIDES)):
            sides = dict(zip(SIDES, servers[turn:] + servers[:turn]))
            progress(f"connections: third {turn + 1} of 3")
            for side, server in sides.items():
                become(server, side)
            measure_third(sides, all_cases, -(-(FEW if size.quick else CONNECTIONS) // len(SIDES)))
    return all_cases


def count_instructions(directory, side, all_cases):
    """{name of the case: instructions of a session's process from its first to its last}, when its statements are known to be quick."""
    conf = {"shared_buffers": "64MB", "autovacuum": "off"}
    if side != WITHOUT:
        # Under callgrind all takes long.
        conf |= {"pg_arrow_cache.enabled": side, "pg_arrow_cache.min_execution_time": "1min"}
    counts = {}
    with under_callgrind(directory, conf, SCHEMA, LIBRARY[side], f"--zero-before={BEGINNING}") as (server, out):
        for case in all_cases:
            progress(f"connections: instructions, {side}, {case.name}")
            for _ in range(WARMING):
                session = Session(server.dsn())
                execute(session, case)
                session.close()
            found = Samples()
            for _ in range(COUNTED):
                session = Session(server.dsn())
                execute(session, case, PAUSE)
                found.add(instructions(events_of(closed(session, out))))
            counts[case.name] = found.median
    return counts


def measure_connections(directory, size, progress):
    all_cases = measure_times(directory, size)
    counts = {side: count_instructions(f"{directory}-{side}", side, all_cases) for side in SIDES}
    return report(all_cases, counts)


def report(all_cases, counts):
    goals, times, instruction_rows = [], [], []
    for case in all_cases:
        for side, most in MOST.items():
            share = counts[side][case.name] / counts[WITHOUT][case.name] - 1
            goals.append(Goal(f"a connection, {case.name}, {side}: time", str(case.cost(side)), f"≤ {most:+.0%}", case.cost(side).median <= most))
            goals.append(Goal(f"a connection, {case.name}, {side}: instructions", f"{share:+.2%}", f"≤ {most:+.0%}", share <= most))
        processor = {side: case.processor[side] / case.count * 1000 for side in SIDES}
        times.append([case.name, *(f"{case.milliseconds[side].median:.2f}" for side in SIDES), *(str(case.cost(side)) for side in MOST),
                      *(f"{processor[side]:.2f}" for side in SIDES), *(f"{case.faults[side] / case.count:.0f}" for side in SIDES)])
        instruction_rows.append([case.name, *(f"{counts[side][case.name] / 1e6:.3f}" for side in SIDES),
                                 *(f"{counts[side][case.name] / counts[WITHOUT][case.name] - 1:+.2%}" for side in MOST)])
    return Part(goals, [
        markdown("New connections", f"Connect, six small SELECTs, disconnect, on processor {PROCESSOR}: milliseconds, medians of {all_cases[0].count} by turns; "
                 "by how much one took longer than its neighbour without the library; milliseconds of processor time of the session's process, and its "
                 "page faults. "
                 "*Off* is with `enabled = off`; *prepared* is Parse, Bind, Execute without values.",
                 ["case", *SIDES, *MOST, *(f"{side}, processor" for side in SIDES), *(f"{side}, faults" for side in SIDES)], times),
        markdown("Instructions of new connections", "Millions of instructions of the session's process outside the kernel, from its first to its last, counted "
                 f"by callgrind after {WARMING} connections.", ["case", *SIDES, *MOST], instruction_rows)])


if __name__ == "__main__":
    from types import SimpleNamespace

    check_build()
    private.exit_on_sigterm()
    print(f"Command: bench/connections.py\nMachine: {machine()}\n")
    found = measure_connections(private.ROOT / "target" / "bench" / "connections", SimpleNamespace(quick=False), progress)
    print(markdown("Goals", "", ["figure", "measured", "goal", "reached"], [goal.cells() for goal in found.goals]))
    print("\n".join(found.sections))
