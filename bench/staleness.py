#!/usr/bin/env python3
"""Is an answer ever stale? Ways to change data or its meaning, tried on this extension and on pgpool-II's memory cache.

    bench/staleness.py              all cases; writes bench/results/DATE-staleness.md
    bench/staleness.py --only WORD  the cases whose name holds WORD; writes nothing

The query of a case is asked until it is served from the cache; then the change is made, and the query is asked again by
the connection that made it and, in a trial of its own, by another. An answer is stale if it is not, byte for byte, what
the server says without a cache. Exits with 1 if this extension was stale, or did not serve a query that can be cached.
"""

import argparse
import datetime
import sys
from contextlib import ExitStack

import psycopg

import staleness_meaning
import staleness_report as report
import staleness_rows
import staleness_systems
from measure import machine
from program import ROOT, private, progress
from staleness_case import SUPERUSER, By, StepFailed
from staleness_report import FRESH, READERS, STALE, Outcome, Result

GROUPS = {**staleness_rows.GROUPS, **staleness_meaning.GROUPS}
WARMING_READS = 6


class BrokenCase(Exception):
    """The case itself does not do what it says, whatever the cache does."""


class Trial:
    """One case, one system, one reader, in a database of its own."""

    def __init__(self, system, case, reader):
        self.system, self.case, self.reader = system, case, reader
        self.sessions = {}

    def run(self):
        self.database = self.system.create_database()
        try:
            return self._run()
        finally:
            for step in self.case.cleanup:
                # May fail: what it undoes was perhaps not reached.
                self.session("server").ask(step)
            for session in self.sessions.values():
                session.close()
            self.system.drop_database(self.database)

    def session(self, who):
        who = self.reader if who == "reader" else who
        if who not in self.sessions:
            user = SUPERUSER if who in ("server", "admin") else self.case.user
            connect = self.system.truth if who in ("server", "truth") else self.system.session
            self.sessions[who] = connect(self.database, user)
        return self.sessions[who]

    def take(self, steps, default):
        for step in steps:
            if isinstance(step, By):
                self.session(step.who).take(step.step)
            else:
                self.session(default).take(step)

    def _run(self):
        case = self.case
        self._prepare()
        before = self.session("truth").ask(case.query)
        self.take(case.opened, "truth")
        try:
            warm, served, remark = self._warm()
            if warm != before:
                return Outcome(served, remark, f"{self._verdict(warm, before)} before any change")
            self.take(case.opened, self.reader)
            self.take(case.change, "here")
            self.take(case.context, self.reader)
            answer, _, after = self.system.ask(self.session(self.reader), case.query)
        except (StepFailed, psycopg.Error) as error:
            progress(f"{case.name}, {self.system.name}: {error}")
            return Outcome(False, "failed", f"error {str(error).split(':')[0]}")
        self.take(case.context, "truth")
        truth = self.session("truth").ask(case.query)
        if before.sqlstate or (truth != before) != case.answer_changes:
            raise BrokenCase(f"{case.name}: {before} before the change, {truth} after it")
        return Outcome(served, remark, self._verdict(answer, truth), after)

    def _prepare(self):
        self.take((self.case.setup,), "server")
        for who in (*READERS, "truth"):
            self.take(self.case.state, who)
        self.take(self.case.prepare, "here")

    def _warm(self):
        """Both ask until they are served; the one that reads after the change asks last."""
        for who in sorted(READERS, key=lambda who: who == self.reader):
            for _ in range(WARMING_READS):
                last = self.system.ask(self.session(who), self.case.query)
                if last[1]:
                    break
        return last

    @staticmethod
    def _verdict(answer, truth):
        if answer == truth:
            return FRESH
        return f"error {answer.sqlstate}" if answer.sqlstate else STALE


def try_case(case, systems):
    results = []
    for system in systems:
        result = Result(case, {reader: Trial(system, case, reader).run() for reader in READERS})
        after = " / ".join(outcome.after for outcome in result.outcomes.values())
        verdicts = " / ".join(result.verdicts)
        progress(f"{case.name:60} {system.name:15} before: {result.before:22} after: {verdicts} ({after})")
        results.append(result)
    return results


def try_all(word, systems):
    """{group: [[a result for each system] for each case]}"""
    tried = {}
    for group, cases in GROUPS.items():
        wanted = [case for case in cases if word.lower() in case.name.lower()]
        if wanted:
            tried[group] = [try_case(case, systems) for case in wanted]
    return tried


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORD", default="")
    word = parser.parse_args().only
    private.exit_on_sigterm()
    about = [f"# Staleness, measured on {datetime.date.today()}", "",
             "Command: `bench/staleness.py` (`make bench-staleness`)  ", f"Machine: {machine()}  "]
    with ExitStack() as stack:
        systems = staleness_systems.start(stack, ROOT / "target" / "staleness")
        versions = ", ".join(f"{system.name} {system.version}" for system in systems)
        about += [f"Versions: {private.pg_config('--version')}, {versions}  ",
                  "pgpool-II runs with bench/pgpool.conf.", ""]
        tried = try_all(word, systems)
    if not tried:
        parser.error(f"no case has {word} in its name")
    text = "\n".join([*about, report.summary(tried, systems), *report.lists(tried, systems),
                      *report.sections(tried, systems)])
    print(text)
    if not word:
        path = ROOT / "bench" / "results" / f"{datetime.date.today()}-staleness.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(f"written to {path.relative_to(ROOT)}")
    missed = list(report.shortcomings(tried))
    for line in missed:
        print(f"staleness: {line}", file=sys.stderr)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
