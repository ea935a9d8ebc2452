#!/usr/bin/env python3
"""What is slower with the library: statements, states of transactions and connections for which the cache has much to look at.

    bench/slow.py [--rounds N] [CASE ...]

Two sessions of one server execute the same by turns, one with the cache and one with `enabled = off`, under the default settings. What is compared
is the processor time of the session's process for one execution, so that a busy machine does not decide. All run on one processor: waking a client
on another one takes 40 microseconds of the session. What writers do for others they do with `enabled =
off` as well: they are compared with those of a server without the library. So are new connections, as the client waits. A ratio is the median of those of neighbours. A CASE is a part of the names of cases; all by default. Prints which
ratios are above 1.3.
"""

import argparse
import itertools
import sys
import time
from dataclasses import dataclass
from statistics import median

from measure import Ratio, Samples, figure, machine, markdown, pinned, processor_time, to_and_fro
from program import ROOT, check_build, private, progress
from session import Session

LIMIT = 1.3
ENOUGH, FEW = 300, 10   # executions of a form, from which on it is judged by what is known of it
ROUND = 20e3        # microseconds of executions in one round
LEAVES = 1000
PROCESSOR = 0
CONF = {"shared_buffers": "256MB", "autovacuum": "off", "max_locks_per_transaction": 4096, "max_parallel_workers_per_gather": 0}

TABLES = f"""
    CREATE TABLE accounts AS SELECT g AS id, g % 100 AS kind, g * 1.5 AS amount, 'account ' || g AS name FROM generate_series(1, 10000) g;
    CREATE UNIQUE INDEX ON accounts (id);
    CREATE TABLE written (n int);
    CREATE TABLE tracked (id int PRIMARY KEY, a int, b int, c text, d int, v int DEFAULT 0, seen int DEFAULT 0);
    CREATE TABLE paired (id int PRIMARY KEY, a int, b int, v int DEFAULT 0);
    INSERT INTO paired SELECT g, g % 500, g % 300 FROM generate_series(1, 10000) g;
    INSERT INTO tracked SELECT g, g % 500, g % 300, 'c' || g % 200, g % 100 FROM generate_series(1, 10000) g;
    CREATE TABLE leaves (k int, n int) PARTITION BY RANGE (k);
    CREATE TABLE days (id bigint, at timestamptz, customer int, amount numeric(10,2)) PARTITION BY RANGE (at);
    CREATE TABLE recent (id bigint, at timestamptz, customer int, amount numeric(10,2)) PARTITION BY RANGE (at);
    CREATE TABLE shown (k int, at timestamptz, v int) PARTITION BY RANGE (k);
    CREATE FUNCTION make(parent text, count int, bounds text) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            FOR i IN 0 .. count - 1 LOOP
                EXECUTE format('CREATE TABLE %s_%s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', parent, i, parent,
                               replace(bounds, '#', i::text), replace(bounds, '#', (i + 1)::text));
            END LOOP;
        END $$;
    SELECT make('leaves', {LEAVES}, '#');
    SELECT make('days', 250, 'date_trunc(''day'', now()) - (249 - #) * interval ''1 day''');
    SELECT make('recent', 250, 'date_trunc(''day'', now()) - (248 - #) * interval ''1 day''');
    SELECT make('shown', 250, '#');
    INSERT INTO days SELECT g, now() - (g % 249) * interval '1 day' - (g % 1000) * interval '1 second', g % 500, g / 7.0 FROM generate_series(1, 50000) g;
    CREATE INDEX ON days (at);
    INSERT INTO recent SELECT g, now() - (g % 248) * interval '1 day', g % 500, g / 7.0 FROM generate_series(1, 50000) g;
    INSERT INTO recent SELECT g, now() - g * interval '1 second', g % 500, g / 7.0 FROM generate_series(1, 6000) g;
    CREATE INDEX ON recent (at);
    INSERT INTO shown SELECT g % 250, now() - g * interval '1 second', g FROM generate_series(0, 12500) g;
    CREATE INDEX ON shown (v);
    CREATE TABLE large AS SELECT g AS id, repeat(md5(g::text), 20000) AS pad FROM generate_series(1, 20) g;
    ALTER TABLE large ALTER pad SET STORAGE EXTERNAL;
    INSERT INTO large SELECT id + 20, pad FROM large;
    CREATE UNIQUE INDEX ON large (id);
    DO $$ BEGIN
        EXECUTE (SELECT 'CREATE TABLE wide AS SELECT g AS id, ' || string_agg(format('g + %s AS c%s', c, c), ', ') || ' FROM generate_series(1, 1000) g' FROM generate_series(1, 500) c);
    END $$;
    CREATE UNIQUE INDEX ON wide (id);
    CREATE FUNCTION loops() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE s bigint := 0; BEGIN
        FOR i IN 1..200 LOOP s := s + (SELECT kind FROM accounts WHERE id = i); END LOOP; RETURN s; END $$;
    ANALYZE;
"""

POINT = "SELECT name FROM accounts WHERE id = {n}"
SMALL = "SELECT count(*), {n} FROM accounts WHERE id * 1.5 > 3 AND id < 2000"


@dataclass(frozen=True)
class Case:
    name: str
    asks: tuple             # texts, `{n}` is another number each time, `{k}` a small one; all of them are one execution
    before: tuple = ()      # executed once in each session
    repeated: bool = False  # the number stays
    few: bool = False       # executions take milliseconds
    writes: bool = False    # compared with a server without the library
    tracks: str = ""        # columns that some table has to be tracked by, or something else is measured


def prepared(query, types="int"):
    return f"PREPARE q({types}) AS {query}"


def many(statement, count):
    return tuple(statement.format(i=i) for i in range(count))


def savepoints(levels):
    """As pgjdbc with autosave = always: a savepoint before each statement."""
    written = "SAVEPOINT s; INSERT INTO written VALUES (1)"
    return ("BEGIN", *many(written, levels))


def partitions(levels):
    return ("BEGIN", *many(f"SAVEPOINT s; INSERT INTO leaves SELECT g, {{i}} FROM generate_series(0, {LEAVES - 1}) g", levels))


TRACK = ("SET pg_arrow_cache.min_execution_time = 0", *(statement for column in "abcd" for statement in
                                                          many(f"SELECT id, v FROM tracked WHERE {column} = '{{i}}' AND id <> {{i}}", 12)))
# Answers over the first column come first; then each is outdated by a change of its value of that column.
TOGETHER = (TRACK[0], *many("SELECT id, v FROM paired WHERE a = {i}", 12),
            *(statement for n in range(1, 25) for select in [f"SELECT id, v FROM paired WHERE a = {n} AND b = {n}"]
              for statement in (select, f"UPDATE paired SET v = v + 1 WHERE a = {n}", select)))
FOUR, PAIR = "{a,b,c,d}", '{a,"a and b"}'
LOCKS = ("BEGIN", "LOCK TABLE leaves IN ACCESS SHARE MODE", "LOCK TABLE days IN ACCESS SHARE MODE")
WINDOW = prepared("SELECT count(*), sum(amount) FROM days WHERE at >= now() - interval '1 day' AND customer > $1")
RECENT = prepared("SELECT count(*), sum(amount) FROM recent WHERE at >= now() - interval '1 day' AND customer <> $1")
SHOWN = prepared("SELECT v, now() - at FROM shown WHERE v BETWEEN $1 AND $1 + 20")
ORS = " OR ".join(f"id = {{n}} + {i}" for i in range(300))
LIST = ", ".join(f"{{n}}{i:03}" for i in range(1000))
JOINS = " JOIN ".join(["accounts a0"] + [f"accounts a{i} ON a{i}.id = a{i - 1}.kind" for i in range(1, 8)])

CASES = (
    Case("one row by its key", (POINT,)),
    Case("one row by its key, prepared", ("EXECUTE q({n})",), (prepared("SELECT name FROM accounts WHERE id = $1"),)),
    Case("a small aggregate", (SMALL,)),
    Case("an aggregate, prepared, other values", ("EXECUTE q({k})",), (prepared("SELECT count(*), sum(amount) FROM accounts WHERE kind <> $1"),)),
    Case("the same, one value", ("EXECUTE q({k})",), (prepared("SELECT count(*), sum(amount) FROM accounts WHERE kind <> $1"),), repeated=True),
    Case("window over 250 partitions, one value", ("EXECUTE q(3)",), (WINDOW,), repeated=True),
    Case("window over 250 partitions, other values", ("EXECUTE q({k})",), (WINDOW,)),
    Case("window over 250 partitions, some milliseconds, other values", ("EXECUTE q({n})",), (RECENT,)),
    Case("EXPLAIN of a window over 250 partitions, other values", ("EXPLAIN EXECUTE q({k})",), (WINDOW,)),
    Case("clock in the columns, 250 partitions, one value", ("EXECUTE q(77)",), (SHOWN,), repeated=True),
    Case("clock in the columns, 250 partitions, other values", ("EXECUTE q({n})",), (SHOWN,)),
    Case(f"an aggregate over {LEAVES} partitions, prepared, other values", ("EXECUTE q({n})",), (prepared("SELECT count(*), sum(k) FROM leaves WHERE n <> $1"),), few=True),
    *(Case(f"{what}, {levels} savepoints that have written", (ask,), savepoints(levels))
      for levels in (30, 1000, 8000) for what, ask in (("one row", POINT), ("a small aggregate", SMALL))),
    *(Case(f"one row, {levels} × {LEAVES} partitions written", (POINT,), partitions(levels)) for levels in (1, 60)),
    Case("a savepoint, one row and its release", ("SAVEPOINT t", POINT, "RELEASE t"), ("BEGIN", "INSERT INTO written VALUES (1)")),
    Case("a savepoint, a write, one row and its release, 1000 partitions written", ("SAVEPOINT t", "INSERT INTO written VALUES (1)", POINT, "RELEASE t"),
         partitions(1)),
    Case("100 savepoints with a SELECT each, in one message", ("; ".join(("BEGIN", *[f"SAVEPOINT s; {POINT}"] * 100, "COMMIT")),), few=True),
    Case("one row, 1,252 tables locked", (POINT,), LOCKS),
    Case("a small aggregate, 1,252 tables locked", (SMALL,), LOCKS),
    Case("300 constants", (f"SELECT count(*) FROM accounts WHERE {ORS}",)),
    Case("IN with 1,000 numbers", (f"SELECT count(*), sum(amount) FROM accounts WHERE id IN ({LIST})",)),
    Case("IN with 1,000 numbers, the same", (f"SELECT count(*), sum(amount) FROM accounts WHERE id IN ({LIST})",), repeated=True),
    Case("8 joins", (f"SELECT count(*), {{n}} FROM {JOINS} WHERE a0.id = {{n}}",)),
    Case(f"all of {LEAVES} partitions", ("SELECT count(*) FROM leaves WHERE n = {n}",), few=True),
    Case(f"all of {LEAVES} partitions, prepared, other values", ("EXECUTE q({n})",),
         (prepared("SELECT count(*), sum(n) FROM leaves WHERE n <> $1"),), few=True),
    Case(f"one of {LEAVES} partitions", ("SELECT count(*) FROM leaves WHERE k = {k} AND n = {n}",)),
    Case(f"one of {LEAVES} partitions, plan for all values", ("EXECUTE q({k}, {n})",),
         (prepared("SELECT count(*) FROM leaves WHERE k = $1 AND n = $2", "int, int"), "SET plan_cache_mode = force_generic_plan")),
    Case("a value of 640 kB", ("SELECT * FROM large WHERE id = {k} % 40 + 1",)),
    Case("12 values of 640 kB", ("SELECT *, {n} FROM large WHERE id <= 12",), few=True),
    Case("one row of 500 columns", ("SELECT * FROM wide WHERE id = {n} % 1000 + 1",)),
    Case("1,000 rows of 500 columns", ("SELECT *, {n} FROM wide",), few=True),
    Case("a cursor that is fetched in parts of 10", ("BEGIN", "DECLARE c CURSOR FOR SELECT *, {n} FROM accounts WHERE id < 1000", *["FETCH 10 FROM c"] * 100, "COMMIT"), few=True),
    Case("a cursor of which 10 rows are fetched", ("BEGIN", "DECLARE c CURSOR FOR SELECT *, {n} FROM accounts ORDER BY id", "FETCH 10 FROM c", "COMMIT")),
    Case("a function that runs 200 queries", ("SELECT loops()",), few=True),
    Case("a volatile function", ("SELECT random(), name FROM accounts WHERE id = {n} % 10000",)),
    Case("a catalog", ("SELECT relname FROM pg_class WHERE oid = {n}",)),
    Case("a row lock", ("SELECT name FROM accounts WHERE id = {n} FOR SHARE",)),
    Case("an insertion", ("INSERT INTO written VALUES ({n})",)),
    Case("an insertion into 1,000 partitions", (f"INSERT INTO leaves SELECT g, {{n}} FROM generate_series(0, {LEAVES - 1}) g",), few=True),
    Case("an UPDATE of one row, four columns tracked", ("UPDATE tracked SET v = v + 1 WHERE id = {n} % 10000",), TRACK, writes=True, tracks=FOUR),
    Case("a quiet UPDATE of one row, four columns tracked", ("UPDATE tracked SET seen = seen + 1 WHERE id = {n} % 10000",), TRACK, writes=True, tracks=FOUR),
    Case("an UPDATE of 1,000 rows, four columns tracked", ("UPDATE tracked SET v = v + 1 WHERE id <= 1000",), TRACK, few=True, writes=True, tracks=FOUR),
    Case("an insertion of 1,000 rows and their deletion, four columns tracked",
         ("INSERT INTO tracked SELECT -g, g, g * 3, 'i' || g, g * 7 FROM generate_series(1, 1000) g", "DELETE FROM tracked WHERE id < 0"), TRACK, few=True, writes=True, tracks=FOUR),
    Case("a deletion of 1,000 rows and ROLLBACK, four columns tracked", ("BEGIN", "DELETE FROM tracked WHERE id <= 1000", "ROLLBACK"), TRACK, few=True, writes=True, tracks=FOUR),
    Case("an UPDATE of one row, two columns together and one of these tracked", ("UPDATE paired SET v = v + 1 WHERE id = {n} % 10000",), TOGETHER,
         writes=True, tracks=PAIR),
    Case("an UPDATE of 1,000 rows, two columns together and one of these tracked", ("UPDATE paired SET v = v + 1 WHERE id <= 1000",), TOGETHER, few=True,
         writes=True, tracks=PAIR),
    Case("a temporary table", ("CREATE TEMP TABLE made (a int)", "DROP TABLE made"), few=True),
)
NUMBERS = itertools.count(1)


class Asking:
    """A session that executes a case, with the cache or without."""

    def __init__(self, server, case, on):
        self.session, self.case = Session(server.dsn()), case
        self.session.caching(on)
        for statement in case.before:
            self.session.execute(statement)
        self.execute(FEW if case.few else ENOUGH)

    def execute(self, count):
        """Microseconds of processor time that one of so many executions has taken."""
        before = processor_time(self.session.pid)
        for _ in range(count):
            number = 1 if self.case.repeated else next(NUMBERS)
            for ask in self.case.asks:
                self.session.execute(ask.replace("{n}", str(number)).replace("{k}", str(number % 250)))
        return (processor_time(self.session.pid) - before) * 1e6 / count

    def status(self):
        self.execute(1)
        return self.session.status().lower()


def compare(servers, case, rounds):
    asking = {on: Asking(servers[on or not case.writes], case, on) for on in (False, True)}
    if case.tracks and case.tracks not in servers[True].psql("SELECT columns FROM arrow_cache.tracked").splitlines():
        raise RuntimeError(f"{case.name}: no table is tracked by {case.tracks}")
    count = max(2, int(ROUND / asking[False].execute(FEW)))
    found = {on: Samples() for on in asking}
    for _, on in to_and_fro(list(asking), rounds):
        found[on].add(asking[on].execute(count))
    status = asking[True].status()
    for one in asking.values():
        one.session.close()
    return found, status


def connect(server):
    """A new connection with one query, in microseconds."""
    began = time.perf_counter()
    session = Session(server.dsn())
    session.execute("SELECT count(*) FROM accounts WHERE id = 7")
    session.close()
    return (time.perf_counter() - began) * 1e6


def compare_connections(servers, rounds):
    found = {on: Samples() for on in servers}
    for _, on in to_and_fro(list(servers), rounds):
        found[on].add(median(connect(servers[on]) for _ in range(30)))
    return found


def row(name, found, status):
    ratio = Ratio.of(found[True], found[False])
    verdict = "" if ratio.median <= LIMIT else "above"
    return ratio, [name, status, figure(found[False].median), figure(found[True].median), str(ratio), verdict]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="an even number")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    check_build()
    private.exit_on_sigterm()
    wanted = [case for case in CASES if not arguments.cases or any(part in case.name for part in arguments.cases)]
    target = ROOT / "target" / "bench"
    above, rows = [], []

    def add(name, found, status):
        ratio, cells = row(name, found, status)
        rows.append(cells)
        if ratio.median > LIMIT:
            above.append(name)

    print(f"`bench/slow.py {' '.join(sys.argv[1:])}` on {machine()}\n")
    with pinned(PROCESSOR), private.Cluster(target / "slow", conf=CONF) as server:
        server.psql("CREATE EXTENSION pg_arrow_cache;" + TABLES)
        with private.Cluster(target / "slow-plain", conf=CONF, preload="") as plain:
            servers = {False: plain, True: server}
            plain.psql(TABLES)
            if not arguments.cases or any(part in "a new connection" for part in arguments.cases):
                progress("slow: a new connection")
                add("a new connection with one query", compare_connections(servers, arguments.rounds), "")
            for case in wanted:
                progress(f"slow: {case.name}")
                add(case.name, *compare(servers, case, arguments.rounds))
    print(markdown("Slower with the library", f"Microseconds of processor time of one execution: medians of {arguments.rounds} rounds, without the cache and with it.",
                   ["statement", "last status", "off", "on", "ratio", f"> {LIMIT}"], rows, words=2))
    print(f"Above {LIMIT}: {', '.join(above) or 'none'}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
