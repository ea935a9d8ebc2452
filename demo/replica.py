#!/usr/bin/env python3
"""The demo of hot standbys: a dashboard read through libpq's load balancing while rows arrive on the primary, which does not have the
library. With one and two standbys, with and without the cache; each figure printed is measured here.

    demo/replica.py [--seconds N] [--sales N] [--readers N] [--rows-per-second N] [--directory DIRECTORY]
"""

import argparse
import contextlib
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

import dataset
from replica_load import Checker, Clock, Readers, Writer, look_once
from replicas import Standby, balances_by_itself, connection_string, primary, private
from run import progress, table

ROOT = Path(__file__).resolve().parent.parent
STANDBYS = 2
COUNTERS = "hits, misses + stale, bypasses"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6, help="length of each measurement")
    parser.add_argument("--sales", type=int, default=30_000, help="rows of the largest table")
    parser.add_argument("--readers", type=int, default=6, help="users of the dashboard, who read all the time")
    parser.add_argument("--rows-per-second", type=int, default=5, help="rows that the primary gets, in one commit a second")
    parser.add_argument("--directory", type=Path, default=ROOT / "target" / "demo-replica", help="where the servers' files lie meanwhile")
    return parser.parse_args()


def prepare(servers, directory, sales):
    """Starts the primary, loads it, and starts its standbys."""
    progress("starting the primary, which does not preload the library")
    first = servers.enter_context(primary(directory / "primary"))
    dataset.load_small(first, sales, progress)
    standbys = []
    for number in range(1, STANDBYS + 1):
        progress(f"starting standby {number}, which preloads it")
        standbys.append(servers.enter_context(Standby(directory / f"standby-{number}", first)))
    for standby in standbys:
        standby.catch_up()
    return first, standbys


def counters(standbys):
    """Hits, misses and bypasses of all of them."""
    counts = [map(int, standby.psql(f"SELECT {COUNTERS} FROM arrow_cache.stats").split("|")) for standby in standbys]
    return [sum(column) for column in zip(*counts)]


def cpu_seconds(standbys):
    return sum(standby.cpu_seconds() for standby in standbys)


def measure(address, cached, clock, options):
    """One line of the table: the dashboard is read for some seconds by readers who connect anew for each look at it."""
    standbys, _ = address
    for standby in standbys:
        look_once(standby, cached)
    before, used = counters(standbys), cpu_seconds(standbys)
    with Readers(address, cached, clock, options.readers) as readers:
        time.sleep(options.seconds)
    hits, misses, bypasses = (now - then for now, then in zip(counters(standbys), before))
    readers.raise_failures()
    return Line(len(standbys), cached, readers, hits, hits + misses + bypasses, cpu_seconds(standbys) - used)


class Line:
    """What was measured of one arrangement."""

    def __init__(self, standbys, cached, readers, hits, queries, cpu_seconds):
        self.standbys, self.cached, self.hits, self.queries = standbys, cached, hits, queries
        self.rate = readers.answers / readers.seconds
        self.cpu_ms = cpu_seconds * 1000 / readers.answers
        self.answer_ms = statistics.median(readers.durations) * 1000
        self.ages_ms = sorted(age * 1000 for age in readers.ages)
        self.sessions = [readers.sessions[port] for port in sorted(readers.sessions)]

    def cells(self, plain):
        """`plain` is the same arrangement without the cache."""
        return [self.standbys, "on" if self.cached else "off", f"{self.rate:,.0f}", f"{self.rate / plain.rate:.1f}×",
                f"{100 * self.hits / self.queries:.0f}", f"{self.cpu_ms:.1f}", f"{self.answer_ms:.1f}", f"{statistics.median(self.ages_ms):.0f}",
                f"{self.ages_ms[len(self.ages_ms) * 95 // 100]:.0f}", " + ".join(map(str, self.sessions))]


def show(lines, options):
    print()
    plain = {line.standbys: line for line in lines if not line.cached}
    table(["standbys", "cache", "answers/s", "of off", "hits %", "CPU ms", "median ms", "age ms", "age p95 ms", "connections"],
          [line.cells(plain[line.standbys]) for line in lines])
    print(f"""
  answers/s    queries of the dashboard that were answered, {options.readers} readers who never pause
  hits         of the standbys' own counters
  CPU          of all processes of the standbys, replay among them, for one answer
  median       until the rows of an answer have arrived
  age          of the newest sale that the daily sales show, by the primary's clock when the rows have arrived;
               {options.rows_per_second} sales come each second, in one commit, which outdates all panels but the branch balances
  connections  made to each standby, one for each look at the dashboard
  The three servers and the readers share the {os.cpu_count()} processors of this machine.
""")


def check(address, options):
    """Compares answers with and without the cache under one snapshot on each standby, while readers read and rows arrive."""
    standbys, behind = address
    progress("comparing with executed answers, under one snapshot, while rows arrive")
    with Readers(address, True, Clock(behind), options.readers) as readers:
        checkers = [Checker(standby) for standby in standbys]
        time.sleep(options.seconds)
        for checker in checkers:
            checker.stop()
    readers.raise_failures()
    print()
    table(["standby", "state", "compared", "of them hits", "different"],
          [[number, standby.state(), checker.compared, checker.hits, checker.different]
           for number, (standby, checker) in enumerate(zip(standbys, checkers), 1)])
    print()
    return all(checker.different == 0 and checker.hits > 0 and standby.state() == "replaying"
               for standby, checker in zip(standbys, checkers))


def main():
    options = arguments()
    private.exit_on_sigterm()
    with contextlib.ExitStack() as servers:
        servers.callback(shutil.rmtree, options.directory, ignore_errors=True)
        first, standbys = prepare(servers, options.directory, options.sales)
        clock = Clock(first)
        addresses = [(standbys[:count], first) for count in range(1, STANDBYS + 1)]
        print(f"\n  {connection_string(*addresses[-1])}\n")
        if not balances_by_itself():
            print("  libpq is older than 16 and knows no load_balance_hosts: hosts are shuffled instead\n")
        with Writer(first, options.rows_per_second, options.sales) as writer:
            lines = []
            for cached in (False, True):
                for address in addresses:
                    progress(f"{len(address[0])} of the standbys, the cache {'on' if cached else 'off'}")
                    lines.append(measure(address, cached, clock, options))
            show(lines, options)
            exact = check(addresses[-1], options)
        writer.raise_failures()
        progress(f"{writer.rows} rows have arrived meanwhile; done")
    if not exact or not all(line.hits for line in lines if line.cached) or any(line.hits for line in lines if not line.cached):
        sys.exit("demo: the standbys did not behave as promised, see the tables")


if __name__ == "__main__":
    main()
