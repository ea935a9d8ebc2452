#!/usr/bin/env python3
"""The oracle: writers change everything at random while readers compare cached answers with uncached ones.

    tests/oracle/run.py [--seconds N] [--seed N] ...      with the server in PG_ARROW_CACHE_DSN, as tests/run sets it
    ORACLE_SECONDS=N tests/run oracle                     with a server of its own
    ORACLE_SECONDS=N tests/run oracle-standby             writers on a primary, readers on its standby

Prints one line `ok` or `not ok` for each promise, as TAP does, and what was done to test it.
"""

import argparse
import multiprocessing
import os
import queue
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import psycopg

import crowd
import mishaps
import quiet
import readers
import watchers
import writers
from definitions import NOT_ALWAYS
from questions import GROUPS, PAIRS
from standby import catch_up
from tally import NOT_BACK, ONE_VERSION, PAIRS_EQUAL, SAME_SNAPSHOT, Tally, table

DSN = "PG_ARROW_CACHE_DSN"
SECONDS = "ORACLE_SECONDS"
# With a smaller share of hits among the comparisons, agreement would prove little.
LEAST_HITS, LEAST_HITS_OF_STANDBY = 0.10, 0.33
# From this length on, each kind of change has had its turn.
LONG_ENOUGH_S = 40
TIME_TO_END_S = 60


class Run:
    """State that all processes share: when to stop, and which versions are known to be committed."""

    def __init__(self, options, context, changers):
        """Readers use the server of the tests, writers that one, too, or its primary."""
        self.dsn, self.seed = os.environ[DSN], options.seed
        self.primary, self.primary_data, self.standby_data = options.primary, options.primary_data, options.standby_data
        self.deadline = time.monotonic() + options.seconds
        self.stop = context.Event()
        # Cleared while a standby is restarted.
        self.calm = context.Event()
        self.calm.set()
        self.results = context.Queue()
        # What this process counts; it is handed in also after a failure.
        self.mine = None
        # One row per writer: nobody else writes it, so it needs no lock.
        self.versions = [context.Array("q", len(PAIRS) * len(GROUPS), lock=False) for _ in range(changers)]

    def goes_on(self):
        return time.monotonic() < self.deadline and not self.stop.is_set()

    def wait(self, seconds):
        self.stop.wait(max(0, min(seconds, self.deadline - time.monotonic())))

    def connect(self, *statements):
        """A reader's connection, which begins with these statements."""
        return self.connect_to(self.dsn, statements)

    def connect_plain(self, *statements):
        """A writer's, without statements that the driver prepares, and deallocates, on its own account."""
        return self.connect_to(self.primary or self.dsn, statements, prepare_threshold=None)

    def connect_to(self, dsn, statements, **options):
        """The servers of a pair are restarted at times, or end a session as soon as it began. Then this tries again."""
        while True:
            self.calm.wait(TIME_TO_END_S)
            try:
                connection = psycopg.connect(dsn, autocommit=True, **options)
                for statement in statements:
                    connection.execute(statement)
                return connection
            except psycopg.OperationalError:
                if not self.primary or time.monotonic() > self.deadline + TIME_TO_END_S:
                    raise
            time.sleep(0.05)

    def lost(self, connection):
        """Was this connection lost because somebody restarted a server, or ended the session for the sake of replay?"""
        return bool(self.primary) and connection.closed

    def tally(self, name):
        self.mine = Tally(name)
        return self.mine

    def reach(self, writer, pair, grp, version):
        place = PAIRS.index(pair) * len(GROUPS) + grp
        self.versions[writer][place] = max(self.versions[writer][place], version)

    def reached(self, pair):
        first = PAIRS.index(pair) * len(GROUPS)
        return [max(versions[first + grp] for versions in self.versions) for grp in GROUPS]


def work(run, function, name, number, arguments):
    """The body of a process: hands in its tally, also after a failure."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        tally = function(run, name, number, *arguments)
        if tally.broken and tally.has_enough():
            run.stop.set()
    except Exception:
        run.stop.set()
        tally = run.mine or Tally(name)
        tally.crashed.append(f"{name}: {traceback.format_exc()}")
    run.results.put(tally)


def everything(run, context, changers, askers):
    """Runs all processes to their end and adds up what they hand in."""
    processes = [context.Process(target=work, args=(run, function, name, number, arguments), daemon=True)
                 for number, (name, function, arguments) in enumerate([*changers, *askers])]
    for process in processes:
        process.start()
    total, missing = Tally("all"), len(processes)
    try:
        while missing and time.monotonic() < run.deadline + TIME_TO_END_S:
            try:
                total.add(run.results.get(timeout=1))
                missing -= 1
            except queue.Empty:
                pass
    finally:
        run.stop.set()
    if missing:
        total.crashed.append(f"{missing} processes handed in nothing")
    for process in processes:
        process.join(timeout=5)
        if process.is_alive():
            process.terminate()
    return total


def report(total, seconds):
    comparisons, hits = sum(total.compared.values()), sum(total.hits.values())
    print(f"# {comparisons:,} comparisons in {seconds:.0f} s, {comparisons / seconds:,.0f} per second, "
          f"{hits:,} of them with a hit; {total.counts['answers watched']:,} answers watched besides")
    compared = {f"{mode}, {total.hits[mode]:,} hits": count for mode, count in total.compared.items()}
    for title, counts in (("Comparisons", compared), ("What became of cached questions", total.statuses),
                          ("Reasons", total.reasons), ("Changes made", total.done),
                          ("Changes that failed, tolerated", total.tolerated), ("Inconclusive", total.inconclusive)):
        print(f"# {title}:", *table(counts), sep="\n")
    print(f"# {sum(total.inconclusive.values()):,} inconclusive, {sum(total.broken.values()):,} differences")
    for text in total.crashed:
        print("# " + text.replace("\n", "\n# "))
    return comparisons, hits


class Verdict:
    """Prints the promises as TAP."""

    def __init__(self):
        self.number = self.failures = 0

    def __call__(self, holds, promise, detail=""):
        self.number += 1
        self.failures += not holds
        result, detail = "ok" if holds else "not ok", f" ({detail})" if detail else ""
        print(f"{result} {self.number} - {promise}{detail}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get(SECONDS, LONG_ENOUGH_S)))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--pause", type=float, default=0.004, help="mean seconds between changes of a hot table")
    parser.add_argument("--definitions-pause", type=float, default=0.1, help="mean seconds between DDL statements")
    parser.add_argument("--primary", help="the server of the writers, if that of the tests is its standby")
    parser.add_argument("--primary-data", help="its data directory")
    parser.add_argument("--standby-data", help="that of the standby")
    options = parser.parse_args()
    print(f"# seed {options.seed}, {options.seconds:g} s; again: tests/oracle/run.py --seed {options.seed}", flush=True)

    load_schema(options.primary or os.environ[DSN], standby=os.environ[DSN] if options.primary else None)
    context = multiprocessing.get_context("fork")
    changers = [*writers.processes(options.pause, options.definitions_pause), *(mishaps.processes() if options.primary else ())]
    run = Run(options, context, len(changers))
    started = time.monotonic()
    total = everything(run, context, changers, [*readers.processes(), *watchers.processes(), *(() if run.primary else crowd.processes())])
    seconds = time.monotonic() - started
    comparisons, hits = report(total, seconds)
    sys.exit(judge(run, total, seconds, comparisons, hits))


def load_schema(dsn, standby=None):
    """Readers need it from their first statement, so a standby has replayed it before they begin."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in ("SET client_min_messages = error", "SET allow_in_place_tablespaces = on",
                          "CREATE TABLESPACE spare LOCATION ''", (Path(__file__).parent / "schema.sql").read_text()):
            connection.execute(statement)
        if standby:
            with psycopg.connect(standby, autocommit=True) as reader:
                catch_up(reader, connection)


def judge(run, total, seconds, comparisons, hits):
    """Prints the promises. Returns the exit status."""
    verdict = Verdict()
    verdict(not total.crashed, "every process ran to its end and met no error but the expected ones")
    verdict(comparisons > 0 and not total.broken[SAME_SNAPSHOT], SAME_SNAPSHOT, f"{comparisons:,} comparisons")
    one, two = total.counts["answers over one table"], total.counts["answers over two tables"]
    verdict(one > 0 and not total.broken[ONE_VERSION], ONE_VERSION, f"{one:,} answers")
    verdict(two > 0 and not total.broken[PAIRS_EQUAL], PAIRS_EQUAL, f"{two:,} answers")
    verdict(one + two > 0 and not total.broken[NOT_BACK], NOT_BACK, f"{one + two:,} answers")
    least = LEAST_HITS_OF_STANDBY if run.primary else LEAST_HITS
    verdict(hits > 0 and hits >= least * comparisons,
            f"at least {least:.0%} of the comparisons were with a hit", f"{hits:,} of {comparisons:,}")
    kinds = writers.kinds(run) | (mishaps.kinds() if run.primary else set())
    undone = kinds - NOT_ALWAYS - set(total.done) if seconds >= LONG_ENOUGH_S else ()
    verdict(not undone, "every kind of change was made", ", ".join(sorted(undone)))
    if not run.primary:
        verdict(*crowd.waited(run))
    verdict(*quiet.check(run))
    if run.primary:
        verdict(*quiet.publishing(run))
    verdict(*quiet.combined(run))
    verdict(*quiet.in_grains(run))
    if not run.primary:
        verdict(*quiet.precise(run))
    verdict(*quiet.flushed(run))
    if run.primary:
        verdict(*quiet.promoted(run))
        verdict(*quiet.no_crash(run))
    print(f"1..{verdict.number}")
    return 1 if verdict.failures else 0


if __name__ == "__main__":
    main()
