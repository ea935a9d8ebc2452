#!/usr/bin/env python3
"""Runs suites against a server under valgrind's memcheck, and shows the errors that the library has a part in.

    tests/valgrind.py [SUITE TEST ...]      by default the suite regress

The server is Debian's, not one that was built for valgrind: memcheck knows the allocations of the library and of libc, but takes each block of the
server's memory contexts as a whole. Errors are the server's own, and only counted, if no function of the library stands in their stack, or only
behind what the server would do without it (`standard_planner`, …). A test may fail here that expects something to be quick; only errors of memory
fail the run. The last line printed is `N errors of the library, N of the server`.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import cluster as private  # noqa: E402  (it lives beside the other scripts)

LIBRARY = "pg_arrow_cache"
WRAPPER = """#!/bin/sh
exec valgrind --quiet --trace-children=yes --error-limit=no --num-callers=50 --leak-check=no --log-file={logs}/%p {postgres} "$@"
"""
# What a hook calls so that the server does its own work.
SERVERS_OWN = "standard_"
SHOWN = 5


def errors(log):
    """The errors in a log of memcheck: each begins with an unindented line behind the process id."""
    lines = [re.sub(r"^==\d+== ?", "", line) for line in log.read_text(errors="replace").splitlines()]
    blocks = "\n".join(lines).split("\n\n")
    return [block for block in blocks if re.search(r"^   at 0x", block, re.M)]


def is_ours(error):
    return LIBRARY in error.split(SERVERS_OWN)[0]


def main():
    suites = sys.argv[1:] or ["regress"]
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-valgrind-", dir="/tmp") as directory:
        directory = Path(directory)
        logs, program = directory / "logs", directory / "postgres"
        logs.mkdir()
        program.write_text(WRAPPER.format(logs=logs, postgres=private.bindir() / "postgres"))
        program.chmod(0o755)
        directory.chmod(0o755)
        logs.chmod(0o777)
        subprocess.run([ROOT / "tests" / "run", *suites], env={**os.environ, private.SERVER_PROGRAM: str(program)})
        processes = list(logs.iterdir())
        found = [error for log in processes for error in errors(log)]
    ours = [error for error in found if is_ours(error)]
    for error, count in collections.Counter(ours).most_common(SHOWN):
        print(f"{count} times:\n{error}\n")
    if not processes:
        sys.exit("valgrind has written nothing")
    print(f"{len(processes)} processes; {len(ours)} errors of the library, {len(found) - len(ours)} of the server")
    sys.exit(1 if ours else 0)


if __name__ == "__main__":
    main()
