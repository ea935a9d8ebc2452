#!/usr/bin/env python3
"""Runs the test suites on every supported major version of PostgreSQL, each in a chroot of the Debian release that has it.

    tests/matrix/run.py                           all versions, all suites, and the suites of PostgreSQL itself
    tests/matrix/run.py 17 18                     these versions
    tests/matrix/run.py 17 regress isolation      these suites on these versions; `postgres` is for PostgreSQL's own
    tests/matrix/run.py --prepare 17 regress      makes the chroots for these and builds in them, and runs no suite

Needs root, debootstrap's packages from Debian's mirror, and per version some 10 GB below target/chroots and half an hour on two
cores. No release of Debian has 16: it is compiled and checked by clippy, with the bindings that pgrx keeps for its documentation,
and not run. The table at the end, version × suite, is printed and kept in target/test-output/matrix/table.md, the output of each
version beside it. The status is 0 if nothing failed, 69 if a chroot could not be made, or its packages not be had, and nothing else failed, else 1.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OUTPUT = ROOT / "target" / "test-output" / "matrix"
RELEASES = {"15": "bookworm", "17": "trixie", "18": "forky"}
COMPILED = "16"
VERSIONS = ["15", COMPILED, "17", "18"]
SUITES = ["core", "layers", "regress", "isolation", "tap", "clients", "oracle", "oracle-standby"]
# These need less than the others: scripts/setup.sh sql.
SQL_SUITES = {"regress", "isolation"}
POSTGRES = "postgres"
UNAVAILABLE = 69
NOT_RUN = "not run"


class Row:
    """What happened on one version: the server's full version, and for each suite how many tests passed and failed."""

    def __init__(self, version):
        self.version, self.server = version, ""
        self.counts, self.note, self.failed, self.unavailable = {}, "", False, False

    def cell(self, suite):
        passed, failed = self.counts.get(suite, (None, None))
        if passed is None:
            return NOT_RUN
        return f"{passed}" if failed == 0 else f"{passed}, **{failed} failed**"


def run(version, label, command):
    """Runs a command, shows and keeps its output. Returns (output, status)."""
    lines = []
    print(f"\n==== {version}: {label}", flush=True)
    with open(OUTPUT / f"{version}.txt", "a") as log:
        process = subprocess.Popen(command, cwd=ROOT, text=True, errors="replace", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in process.stdout:
            lines.append(line)
            log.write(line)
            print(line, end="", flush=True)
    return "".join(lines), process.wait()


def compiled(version):
    row = Row(version)
    _, status = run(version, "clippy", ["scripts/lint-16.sh"])
    row.failed = status != 0
    row.note = "compiling failed" if row.failed else "compiled, not run"
    return row


def prepared(version, suites, row):
    """Makes the chroot of a version and builds in it. Returns false if it could not, and notes why."""
    purpose = "sql" if SQL_SUITES.issuperset(suites) else "all"
    output, status = inside(version, "set-up", "sh", "-c", f"scripts/setup.sh {purpose} && $PG_CONFIG --version")
    row.server = (re.findall(r"^PostgreSQL (\S+)", output, re.MULTILINE) or [""])[-1]
    if status == UNAVAILABLE:   # a release that is not finished may lack packages for a day
        row.unavailable, row.note = True, "no chroot"
    elif status != 0:
        row.failed, row.note = True, "set-up failed"
    elif inside(version, "build", "make", "install")[1] != 0:
        row.failed, row.note = True, "building failed"
    return not row.note


def inside(version, label, *command):
    return run(version, label, ["scripts/chroot.sh", RELEASES[version], *command])


def tested(version, suites, only_prepare):
    row = Row(version)
    if not prepared(version, suites, row):
        return row
    if only_prepare:
        row.note = "prepared"
        return row
    ours = [suite for suite in suites if suite != POSTGRES]
    if ours:
        output, status = inside(version, "suites", "tests/run", *ours)
        table = re.findall(r"^([\w-]+) +(\d+) passed +(\d+) failed", output, re.MULTILINE)
        row.counts.update({suite: (int(passed), int(failed)) for suite, passed, failed in table})
        row.failed = status != 0 or set(ours) != set(row.counts)
    if POSTGRES in suites:
        output, status = inside(version, "PostgreSQL's own suites", "tests/postgres/run.py")
        # Each test is compared twice, with `fills` and with `hits`.
        compared = sum(int(count) for count in re.findall(r": (\d+) tests compared", output))
        failures = re.search(r"^(\d+) failures$", output, re.MULTILINE)
        failed = int(failures[1]) if failures else 1
        row.counts[POSTGRES] = (max(compared - failed, 0), failed)
        row.failed = row.failed or status != 0
    return row


def table(rows, suites):
    names = [suite for suite in [*SUITES, POSTGRES] if suite in suites]
    lines = ["| version | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    for row in rows:
        cells = [row.cell(name) for name in names] if row.counts else [row.note] * len(names)
        lines.append(f"| {row.server or row.version} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    only_prepare = sys.argv[1:2] == ["--prepare"]
    words = sys.argv[1 + only_prepare:]
    unknown = [word for word in words if word not in [*VERSIONS, *SUITES, POSTGRES]]
    if unknown:
        sys.exit(f"{sys.argv[0]}: no such version or suite: {' '.join(unknown)}; "
                 f"versions are {' '.join(VERSIONS)}, suites {' '.join([*SUITES, POSTGRES])}")
    versions = [version for version in VERSIONS if version in words] or VERSIONS
    suites = [suite for suite in [*SUITES, POSTGRES] if suite in words] or [*SUITES, POSTGRES]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    rows = []
    for version in versions:
        (OUTPUT / f"{version}.txt").unlink(missing_ok=True)
        started = time.monotonic()
        rows.append(compiled(version) if version == COMPILED else tested(version, suites, only_prepare))
        print(f"\nmatrix: {version} took {time.monotonic() - started:.0f} s", flush=True)
    printed = table(rows, suites)
    (OUTPUT / "table.md").write_text(printed + "\n")
    print(f"\n{printed}")
    failed = [row.version for row in rows if row.failed]
    unavailable = [row.version for row in rows if row.unavailable]
    if unavailable:
        print(f"\nNOT RUN, for want of a chroot: {' '.join(unavailable)}")
    print(f"\nfailed on {' '.join(failed)}" if failed else "\nnothing failed")
    sys.exit(1 if failed else UNAVAILABLE if unavailable else 0)


if __name__ == "__main__":
    main()
