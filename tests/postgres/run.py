#!/usr/bin/env python3
"""PostgreSQL's own test suites give the same output with the library as without it.

    tests/postgres/run.py [regress] [isolation]      both by default

Each suite runs on fresh private servers that differ in the library only:

    plain    without it
    fills    every result that may be stored is stored, however quick it was, and read back (verify_sample_rate = 1): what is
             captured, encoded and decoded is what the plan returned, or a WARNING is part of the output
    hits     every result is stored as well, and queries that are asked again are answered as in production, so that
             EXPLAIN may show our node; then the plan is not compared
    parts    as hits, and every aggregate over a partitioned table that can be combined of stored parts is
             (debug_force_fragments); for a suite that has some

The outputs of each test are then compared byte by byte. The files in expected/ do not matter, so that the tests may be
of another minor version than the server. What this shows: whatever those tests do with tables, views, types, roles,
cursors, errors and transactions, a client cannot tell where its answers come from.

A difference that stands in explained/ with its reason, line for line, is reported and is no error. For any other, the
suite is run plain once more: a test whose two plain outputs differ is unstable by itself, which is no error either.
What is left ends with status 1, and so does a test without output, a crash of a server, or so few fills, samples or
hits that equal outputs would say nothing.

Takes some five minutes on two cores, and downloads 30 MB the first time. The extension must be installed for PG_CONFIG.
Outputs, diffs and server logs stay in target/test-output/postgres.
"""

import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import cluster as private  # noqa: E402  (it lives beside the other scripts)
import compare  # noqa: E402
import source  # noqa: E402
from suites import SUITES, Stage  # noqa: E402

PLAIN, AGAIN, FILLS, HITS, PARTS = "plain", "plain-again", "fills", "hits", "parts"
# What the suites' own makefiles give their servers: some tests need prepared transactions.
PLAIN_CONF = {"max_prepared_transactions": "2", "shared_buffers": "'256MB'"}
# Enough memory for all results at once.
HITS_CONF = {**PLAIN_CONF, "pg_arrow_cache.min_execution_time": "0", "pg_arrow_cache.memory": "'1GB'",
             "pg_arrow_cache.max_entries": "100000"}
PARTS_CONF = {**HITS_CONF, "pg_arrow_cache.debug_force_fragments": "on"}
FILLS_CONF = {**HITS_CONF, "pg_arrow_cache.verify_sample_rate": "1"}


class Check:
    """One suite with its runs, and the comparison of their outputs."""

    def __init__(self, stage, suite):
        self.stage, self.suite = stage, suite
        self.wanted = suite.tests(stage.base / suite.name)
        self.runs, self.failures = {}, []
        self.output = stage.output / suite.name
        shutil.rmtree(self.output, ignore_errors=True)

    def run(self, label, conf, preload=""):
        started = time.monotonic()
        run = self.runs[label] = self.stage.run(self.suite, self.output / label, conf, preload)
        expected = sum(run.results.get(name) in run.expected[name] for name in run.expected)
        self.say(f"{label}: {len(run.results)} outputs, {expected} of them as in expected/, "
                 f"in {time.monotonic() - started:.0f} s")
        self.failures += [f"{label}: no output of {name}" for name in self.wanted if name not in run.results]
        self.failures += [f"{label}: {line}" for line in run.crashes]
        return run

    def say(self, text):
        print(f"{self.suite.name}: {text}", flush=True)

    def all(self):
        """Runs everything and returns the number of failures."""
        print(f"\n==== {self.suite.name}: {len(self.wanted)} tests", flush=True)
        self.run(PLAIN, PLAIN_CONF)
        for label, conf in ((FILLS, FILLS_CONF), (HITS, HITS_CONF), (PARTS, PARTS_CONF)):
            if label == PARTS and self.suite.least_parts == 0:
                continue
            run = self.run(label, conf, "pg_arrow_cache")
            self.compare(label)
            self.judge_counters(label, run.counters)
        for failure in self.failures:
            self.say(f"FAILED: {failure}")
        return len(self.failures)

    def compare(self, label):
        plain = self.runs[PLAIN].results
        ours = {name: compare.with_plans_of(plain.get(name, b""), output)
                for name, output in self.runs[label].results.items()}
        both = [name for name in self.wanted if name in plain and name in ours]
        differing = [name for name in both if plain[name] != ours[name]]
        kinds = {"unstable": 0, "explained": 0, "differing": 0}
        for name in differing:
            lines = compare.diff(plain[name], ours[name], f"{PLAIN}/{name}.out", f"{label}/{name}.out")
            (self.output / f"{label}-{name}.diff").write_text("\n".join(lines) + "\n")
            kind, note = self.kind_of(name, lines)
            kinds[kind] += 1
            self.say(f"{label}: {name} is {kind}{note}")
            print(compare.shortened(lines, self.output / f"{label}-{name}.diff"), flush=True)
            if kind == "differing":
                self.failures.append(f"{label}: {name} differs")
        self.say(f"{label}: {len(both)} tests compared, {len(both) - len(differing)} equal, "
                 + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))

    def kind_of(self, name, lines):
        reason = compare.explanation(f"{self.suite.name}-{name}", lines)
        if reason is not None:
            return "explained", f": {reason}"
        if AGAIN not in self.runs:
            self.run(AGAIN, PLAIN_CONF)
        if self.runs[AGAIN].results.get(name) != self.runs[PLAIN].results[name]:
            return "unstable", ": its output differs without the library, too"
        return "differing", ""

    def judge_counters(self, label, counters):
        self.say(f"{label}: " + ", ".join(f"{count} {name}" for name, count in counters.items() if name != "reasons"))
        self.say(f"{label}: not served or not stored: "
                 + ", ".join(f"{reason} {statements}" for reason, statements in counters["reasons"]))
        wanted = {FILLS: {"stores": self.suite.least_fills, "verify_samples": self.suite.least_hits},
                  HITS: {"hits": self.suite.least_hits}, PARTS: {"fragment_runs": self.suite.least_parts}}[label]
        self.failures += [f"{label}: {counters[name]} {name}, fewer than {least}"
                          for name, least in wanted.items() if counters[name] < least]


def main():
    names = sys.argv[1:] or list(SUITES)
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"{sys.argv[0]}: no such suite: {' '.join(unknown)}; there are {' '.join(SUITES)}")
    private.exit_on_sigterm()
    server_version = private.pg_config("--version").split()[1]
    found = source.fetch(ROOT / "target" / "postgres-source", server_version.split(".")[0])
    print(f"tests of PostgreSQL {found.version} on a server of version {server_version}", flush=True)
    with Stage(ROOT / "target", found) as stage:
        failures = sum(Check(stage, SUITES[name]).all() for name in names)
    print(f"\n{failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
