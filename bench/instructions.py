"""Instructions that a session executes for a statement, counted by callgrind: a figure without noise."""

import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measure import Part, markdown
from program import private
from session import Session
from transactions import load_accounts

STORING = 3
FEW, MANY = 100, 300      # the difference between two sessions is what the additional statements took
SHOWN = 10
EXIT_SECONDS = 60
LOOK_UP = "SELECT abalance FROM pgbench_accounts WHERE aid = 1"
TABLE = "CREATE TABLE days AS SELECT date '2020-01-01' + g AS d, g AS n FROM generate_series(1, 3000) g"
AGGREGATE = "SELECT n % 50 AS a, count(*), sum(n), avg(n), max(d) FROM days GROUP BY 1 ORDER BY 1"
SINCE = "SELECT sum(n) FROM days WHERE d >= "
WRAPPER = """#!/bin/sh
exec valgrind --tool=callgrind --trace-children=yes --callgrind-out-file={out} {option} {postgres} "$@"
"""


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    way: str                # one of WAYS
    caching: bool = True
    values: tuple = ()

    @property
    def unit(self):
        """The way of SELECT 1 that this is compared with."""
        return "prepared" if self.way in PLANS else self.way


# Values are bound to an unnamed statement, or to a prepared one whose plan is of the kind that the way names.
PLANS = {"custom plan": "force_custom_plan", "generic plan": "force_generic_plan"}
WAYS = ("simple", "prepared", "bound", *PLANS)
SHAPES = (
    ("cannot fail", "SELECT sum(n) FROM days WHERE n > $1"),
    ("columns may fail", "SELECT sum(1000 / n) FROM days WHERE n > $1"),
    ("condition may fail", "SELECT sum(n) FROM days WHERE n > $1 AND 1000 / n >= 0"),
    ("may drop a sub-query", "SELECT sum(n) FROM days WHERE $1 > 0 OR n IN (SELECT n FROM days WHERE n < 10)"),
)

CASES = [
    Case(f"{name}, {way}", sql, way, caching)
    for way in ("simple", "prepared")
    for name, sql, caching in (("SELECT 1", "SELECT 1", True), ("one row, cache off", LOOK_UP, False), ("one row, hit", LOOK_UP, True),
                               ("50 rows, hit", AGGREGATE, True),
                               ("a date, hit", f"{SINCE}date '2025-11-01'", True),
                               ("a time, hit", f"{SINCE}timestamptz '2025-11-01 00:00+00'", True),
                               ("CURRENT_DATE, hit", f"{SINCE}CURRENT_DATE - 365", True),
                               ("months before now(), hit", f"{SINCE}date_trunc('month', now() - interval '12 months')", True))
] + [Case("SELECT 1, bound", "SELECT 1", "bound")] + [
    Case(f"{name}, hit, {way}", sql, way, values=(b"2900",)) for way in ("bound", *PLANS) for name, sql in SHAPES
]
UNIT = "SELECT 1"


def run_session(server, out, case, count):
    """Runs the statement so often in a session of its own; returns the file that callgrind wrote about it."""
    session = Session(server.dsn())
    session.caching(case.caching)
    if case.way in PLANS:
        session.execute(f"SET plan_cache_mode = {PLANS[case.way]}")
    if case.unit == "prepared":
        session.prepare(case.sql)
    for _ in range(count):
        run_once(session, case)
    if case.sql != UNIT:
        session.expect("HIT" if case.caching else "BYPASS")
    return closed(session, out)


def closed(session, out):
    """Ends a session; returns the file that callgrind wrote about it."""
    pid = session.pid
    session.close()
    until = time.monotonic() + EXIT_SECONDS
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return out / f"callgrind.{pid}"


def run_once(session, case):
    if case.unit == "prepared":
        session.execute_prepared(values=case.values)
    elif case.unit == "bound":
        session.execute_bound(case.sql, case.values)
    else:
        session.execute(case.sql)


def by_function(file):
    """{(function, library): instructions in itself}, from callgrind's own report."""
    command = ["callgrind_annotate", "--auto=no", "--threshold=100", file]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = []
    for line in done.stdout.splitlines():
        found = re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+(\S.*)$", line)
        if found and "PROGRAM TOTALS" not in line:
            lines.append((*function_of(found[2]), int(found[1].replace(",", ""))))
    # Code that was inlined from another source file has a line of its own, and no library.
    libraries = {function: library for function, library, _ in lines if library}
    counts = Counter()
    for function, library, count in lines:
        counts[function, library or libraries.get(function, "not named")] += count
    return counts


def function_of(text):
    """(function, library) in `file:function'2 [directory/library]`: callgrind counts a function within itself apart."""
    text, _, library = text.partition(" [")
    name = re.match(r"(?:\S*?[^:]:(?!:))?(.+?)(?:'\d+)?$", text)[1]
    return name, library.rstrip("]").rpartition("/")[2]


def all_instructions(file):
    """{None: all instructions}, which the file tells at once, while the report of all functions takes a second."""
    return Counter({None: int(re.search(r"^totals: (\d+)", file.read_text(), re.MULTILINE)[1])})


def per_statement(server, out, case, read=by_function):
    """What `read` finds in callgrind's files, for one statement."""
    # The first session stores the answer: a miss among the statements that are taken off would count as less for each of the others.
    run_session(server, out, case, STORING)
    few, many = (read(run_session(server, out, case, count)) for count in (FEW, MANY))
    many.subtract(few)
    return Counter({what: count / (MANY - FEW) for what, count in many.items()})


def wrapper(directory, option=""):
    """A program that starts the server under callgrind, with one more option, which follows it into its sessions."""
    path = directory / "postgres"
    path.write_text(WRAPPER.format(out=directory / "callgrind.%p", option=option, postgres=private.bindir() / "postgres"))
    os.chmod(path, 0o755)
    if os.geteuid() == 0:
        os.chown(directory, private.server_user().pw_uid, private.server_user().pw_gid)
    return path


@contextmanager
def under_callgrind(directory, conf, sql, preload="pg_arrow_cache", option=""):
    """(a server under callgrind, the directory that it writes to). What it holds is made before, without callgrind, in a fiftieth of the time."""
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-callgrind-") as out, \
            private.Cluster(directory, preload=preload, conf=conf) as server:
        load_accounts(server, 1)
        server.psql(sql)
        server.postgres = ["-p", wrapper(Path(out), option)]
        server.restart()
        yield server, Path(out)


def on_each_processor(action, things):
    """What `action` returns for each thing. As many are done at once as there are processors: instructions do not depend on time."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(action, things))


def shares(counts, total):
    return [[name, f"{count:,.0f}", f"{count / total:.1%}"] for name, count in counts]


def profile(case, counts):
    """The sections about one statement."""
    total = sum(counts.values())
    biggest = [(f"`{function}` ({library})", count) for (function, library), count in counts.most_common(SHOWN)]
    yield markdown(
        f"The biggest functions of: {case.name}", "Instructions in the function itself, for one statement.",
        ["function", "instructions", "share"],
        shares(biggest, total))
    libraries = Counter()
    for (_, library), count in counts.items():
        libraries[library] += count
    yield markdown(
        f"The same by library: {case.name}", "All instructions of a statement.", ["library", "instructions", "share"],
        shares([(name, count) for name, count in libraries.most_common() if count > total / 1000], total))


def profiled(case):
    return case.sql == LOOK_UP and case.caching


def report(counts):
    totals = {case: sum(functions.values()) for case, functions in counts.items()}
    units = {case.unit: total for case, total in totals.items() if case.sql == UNIT}
    sections = [markdown(
        "Instructions for a statement",
        f"Executed by the session's process outside the kernel, counted by callgrind: a session of {MANY} statements "
        f"less one of {FEW}. Rows as text.", ["statement", "instructions", "of SELECT 1"],
        [[case.name, f"{total:,.0f}", f"{total / units[case.unit]:.3f}"] for case, total in totals.items()])]
    for case in filter(profiled, CASES):
        sections += profile(case, counts[case])
    return Part([], sections)


def measure_cases(directory, cases, progress):
    """{case: its counts}, on a server of their own, where no other session is."""
    conf = {"shared_buffers": "64MB", "autovacuum": "off", "pg_arrow_cache.min_execution_time": "0"}
    counts = {}
    with under_callgrind(directory, conf, f"CREATE EXTENSION pg_arrow_cache; {TABLE}") as (server, out):
        for case in cases:
            progress(f"instructions: {case.name}")
            counts[case] = per_statement(server, out, case, by_function if profiled(case) else all_instructions)
    return counts


def measure_instructions(directory, _size, progress):
    progress("instructions: starting two servers under callgrind")
    halves = on_each_processor(lambda number: measure_cases(f"{directory}-{number}", CASES[number::2], progress), (0, 1))
    counts = {case: found for half in halves for case, found in half.items()}
    return report({case: counts[case] for case in CASES})
