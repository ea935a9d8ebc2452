"""Servers under callgrind, and what it has counted in their sessions: figures without noise.

A session tells callgrind itself when to begin a new file, by calling a function of the server that nothing else calls. So one session is enough to know
what an execution takes, without what came before: its start, and the first executions.
"""

import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from program import private
from transactions import load_accounts

MARK = "pg_stat_clear_snapshot"
PIECES, EXECUTIONS = 5, 40   # files of a session, each of so many executions
PAUSE = 0.002                # before each statement, so that the server waits for all of them: looking in vain at the socket takes instructions, too
EXIT_SECONDS = 60
WRAPPER = """#!/bin/sh
exec valgrind --tool=callgrind --trace-children=yes --callgrind-out-file={out} {option} {postgres} "$@"
"""


def wrapper(directory, option=f"--dump-before={MARK}"):
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
        server.postgres = ["-p", wrapper(Path(out), f"--dump-before={MARK} {option}")]
        server.restart()
        yield server, Path(out)


def closed(session, out):
    """Ends a session; returns the last file that callgrind wrote about it, which is the only one if there was no mark."""
    pid = session.pid
    session.close()
    until = time.monotonic() + EXIT_SECONDS
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return out / f"callgrind.{pid}"


def per_execution(session, out, statements, executions=EXECUTIONS, pieces=PIECES):
    """Counter of the events of one execution of all statements, each a function that has the session execute it, so many times for a file. The session's
    caches are warm; it is ended."""
    def execute(statement):
        time.sleep(PAUSE)
        statement()

    def mark():
        execute(lambda: session.execute(f"SELECT {MARK}()"))

    pid = session.pid
    mark()
    mark()
    for _ in range(pieces):
        for _ in range(executions):
            for statement in statements:
                execute(statement)
        mark()
    closed(session, out)
    # The first file is of all before the first mark, and the second of a mark alone.
    of_mark, *counted = (events_of(out / f"callgrind.{pid}.{number}") for number in range(2, pieces + 3))
    # Now and then a session does something of its own, or for the whole server.
    middle = sorted(counted, key=instructions)[pieces // 2]
    middle.subtract(of_mark)
    return Counter({event: count / executions for event, count in middle.items()})


def events_of(file):
    """{event: how often}, as callgrind has counted in a process. Events that have not happened may be missing at the end."""
    text = file.read_text()
    names = re.search(r"^events: (.+)", text, re.MULTILINE)[1].split()
    numbers = re.search(r"^(?:totals|summary): (.+)", text, re.MULTILINE)[1].split()
    return Counter(dict(zip(names, map(int, numbers), strict=False)))


def instructions(events):
    return events["Ir"]


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
