#!/usr/bin/env python3
"""Compares the library of this checkout with that of another commit.

    bench/compare.py [--rounds N] [--instructions] COMMIT [CASE ...]

Builds both in release mode, the other one in a worktree below target/bench/compare, where it stays. Each has a server, pinned to the last
processor, which preloads its file by its path; nothing is installed. In each round, a session of each server executes a statement for some
tenth of a second, by turns; what is compared is the processor time of the session's process for one execution. So a change's effect is seen
beside the noise: the middle half of the ratios of neighbours. Afterwards the memory of the two sessions is read. `--instructions` counts the
instructions by callgrind as well. A CASE is a part of the names of cases; all by default.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import bypassed
from bypassed import ANY_ROW, EXECUTIONS, ROUND, TPC_B, WAYS, literal
from callgrind import instructions, wrapper
from footprint import own_kilobytes
from instructions import LOOK_UP, UNIT
from measure import Ratio, Samples, figure, markdown, processor_time, to_and_fro
from program import ROOT, private, progress
from transactions import load_accounts

HERE, THERE = "this checkout", "the commit"
BUILD = Path("scripts", "build.sh")
AT_ONCE = 0.1           # seconds of executions for one figure
ENOUGH = bypassed.WARMING
TABLES = """
    CREATE TABLE days AS SELECT g AS n, 'name ' || g % 50 AS name, g * 1.5 AS price FROM generate_series(1, 5000) g;
    ANALYZE days;
"""
HINT = "/*+ arrow_cache */ "   # stored, however quick
NOTHING_UNASKED = {"pg_arrow_cache.min_execution_time": "1min"}     # under callgrind nothing is quick by the clock


@dataclass(frozen=True)
class Case:
    name: str
    statements: tuple       # of `literal`
    stored: bool = False    # it is a hit from the second execution on
    executions: int = EXECUTIONS    # that one file of callgrind counts


CASES = (
    Case("SELECT 1", (literal(UNIT),)),
    Case("one row, too quick to be stored", ANY_ROW, executions=ROUND),
    Case("one row, hit", (literal(HINT + LOOK_UP),), stored=True),
    Case("50 rows, hit", (literal(HINT + "SELECT n % 50 AS a, count(*), sum(price), max(name) FROM days GROUP BY 1 ORDER BY 1"),), stored=True),
    Case("5,000 rows, hit", (literal(HINT + "SELECT * FROM days ORDER BY n"),), stored=True),
    Case("BEGIN; COMMIT", (literal("BEGIN"), literal("COMMIT"))),
    Case("transaction of TPC-B", TPC_B),
)


class Asking(bypassed.Asking):
    """A session that executes the statements of a case, of which some have to be hits."""

    def check(self):
        """A measurement of the wrong thing is worse than none."""
        if self.case.stored:
            plan = self.session.scalar(f"EXPLAIN {self.case.statements[0][0]}")
            if "ArrowCache" not in plan:
                raise RuntimeError(f"{self.case.name} is no hit: {plan}")

    def microseconds(self, count):
        """Processor time of the session's process for one of so many executions."""
        before = processor_time(self.session.pid)
        self.execute(count)
        return (processor_time(self.session.pid) - before) * 1e6 / count


def built(commit):
    """The files of both libraries."""
    place = ROOT / "target" / "bench" / "compare" / commit
    if not place.exists():
        subprocess.run(["git", "-C", ROOT, "worktree", "prune"], check=True)
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", place, commit], check=True)
    if not (place / BUILD).exists():    # cargo-pgrx built the older commits
        shutil.copy(ROOT / BUILD, place / BUILD)
    for root in (ROOT, place):
        progress(f"compare: building {root}")
        subprocess.run([root / BUILD], env={**os.environ, "BUILD_PROFILE": "release"}, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {side: root / "target" / "release" / "libpg_arrow_cache.so" for side, root in ((HERE, ROOT), (THERE, place))}


def readable(library, directory, side):
    """A copy of a library that the server's user can read."""
    copy = Path(directory) / f"{side.split()[-1]}.so"
    copy.write_bytes(library.read_bytes())
    copy.chmod(0o755)
    return copy


def started(stack, library, side, postgres=None):
    """A server with the tables of the cases."""
    server = stack.enter_context(private.Cluster(
        ROOT / "target" / "bench" / f"compare-{side.split()[-1]}", preload=str(library), cpu=os.cpu_count() - 1,
        conf={"shared_buffers": "128MB", "autovacuum": "off", **NOTHING_UNASKED}, postgres=postgres))
    load_accounts(server, 1)
    server.psql(TABLES)
    return server


def timed(servers, case, way, rounds):
    """{side: microseconds of each round}, and {side: kilobytes of the session afterwards}"""
    asking = {side: Asking(server, case, way) for side, server in servers.items()}
    for one in asking.values():
        one.execute(ENOUGH)
        one.check()
    count = max(10, int(AT_ONCE * 1e6 / asking[HERE].microseconds(ENOUGH)))
    found = {side: Samples() for side in servers}
    for _, side in to_and_fro(list(servers), rounds):
        found[side].add(asking[side].microseconds(count))
    kilobytes = {side: own_kilobytes(one.session.pid) for side, one in asking.items()}
    for one in asking.values():
        one.session.close()
    return found, kilobytes


def count_all(libraries, wanted):
    found = {}
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-callgrind-") as out, ExitStack() as stack:
        for side, library in libraries.items():
            progress(f"compare: instructions of {side}")
            server = started(stack, library, side, wrapper(Path(out)))
            for case, way in wanted:
                found[side, case, way] = instructions(bypassed.count(server, Path(out), case, way))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="an even number")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("commit")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    wanted = [(case, way) for case in CASES for way in WAYS
              if not arguments.cases or any(part in f"{case.name}, {way}" for part in arguments.cases)]
    private.exit_on_sigterm()
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "--verify", f"{arguments.commit}^{{commit}}"], check=True,
                            capture_output=True, text=True).stdout.strip()
    rows = {}
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-compare-") as directory:
        os.chmod(directory, 0o755)
        libraries = {side: readable(library, directory, side) for side, library in built(commit).items()}
        with ExitStack() as stack:
            servers = {side: started(stack, library, side) for side, library in libraries.items()}
            for case, way in wanted:
                progress(f"compare: {case.name}, {way}")
                found, kilobytes = timed(servers, case, way, arguments.rounds)
                rows[case, way] = [f"{case.name}, {way}", figure(found[THERE].median), figure(found[HERE].median),
                                   str(Ratio.of(found[HERE], found[THERE])), f"{kilobytes[THERE]:,}", f"{kilobytes[HERE]:,}"]
        counts = count_all(libraries, wanted) if arguments.instructions else {}
    for case, way in wanted:
        if counts:
            here, there = counts[HERE, case, way], counts[THERE, case, way]
            rows[case, way] += [f"{there:,.0f}", f"{here:,.0f}", f"{here / there:.4f}"]
    columns = ["statement", f"µs, {commit}", "µs, this checkout", "ratio", f"kB, {commit}", "kB, this checkout"]
    columns += [f"instructions, {commit}", "this checkout", "ratio"] if counts else []
    print(markdown(f"Compared with {commit}", "Processor time of the session's process for one execution, memory that it has of its own afterwards, and "
                   "instructions outside the kernel for one execution.",
                   columns, list(rows.values())))


if __name__ == "__main__":
    main()
