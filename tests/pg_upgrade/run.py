#!/usr/bin/env python3
"""pg_upgrade keeps what the extension has in a cluster, and fails as docs/upgrading.md says where the library is missing.

    tests/pg_upgrade/run.py                 from 15 to 17, and from 17 to 18
    tests/pg_upgrade/run.py 15-17           one of them

Needs root. Each pair has a chroot (scripts/chroot.sh) of the Debian release with the newer server. prepare.sh adds the older server
from the release before it, and builds and installs the extension for both. upgrade.py is the test. The last line reads
"N passed, N failed". The status is 0 if nothing failed, 69 if a chroot could not be made or its packages not be had, and nothing else
failed, else 1. Outputs stay in target/test-output/pg_upgrade.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OUTPUT = ROOT / "target" / "test-output" / "pg_upgrade"
# The pair; the release with the newer server, and the one with the older.
PAIRS = {"15-17": ("trixie", "bookworm"), "17-18": ("forky", "trixie")}
UNAVAILABLE = 69


def run(pair, command):
    """Runs a command in the chroot of the pair, shows and keeps its output. Returns (output, status)."""
    lines = []
    with open(OUTPUT / f"{pair}.txt", "a") as log:
        process = subprocess.Popen(["scripts/chroot.sh", PAIRS[pair][0], *command], cwd=ROOT, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in process.stdout:
            lines.append(line)
            log.write(line)
            print(line, end="", flush=True)
    return "".join(lines), process.wait()


def tested(pair):
    """Returns (passed, failed, is there no chroot?)."""
    old, new = pair.split("-")
    started = time.monotonic()
    print(f"\n==== pg_upgrade from {old} to {new}", flush=True)
    _, status = run(pair, ["tests/pg_upgrade/prepare.sh", PAIRS[pair][1], old, new])
    if status != 0:
        return 0, 0 if status == UNAVAILABLE else 1, status == UNAVAILABLE
    prepared = time.monotonic()
    output, status = run(pair, ["tests/pg_upgrade/upgrade.py", old, new])
    print(f"pg_upgrade: {pair}: {prepared - started:.0f} s to prepare and build, {time.monotonic() - prepared:.0f} s to test", flush=True)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    passed, failed = (int(counts[1]), int(counts[2])) if counts else (0, 1)
    return passed, failed if status == 0 else max(failed, 1), False


def main():
    unknown = [word for word in sys.argv[1:] if word not in PAIRS]
    if unknown:
        sys.exit(f"{sys.argv[0]}: no such pair: {' '.join(unknown)}; there are {' '.join(PAIRS)}")
    if os.geteuid() != 0:
        sys.exit(f"{sys.argv[0]} needs root to make chroots: run it as root, or with sudo")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    passed, failed, unavailable = 0, 0, []
    for pair in [pair for pair in PAIRS if pair in sys.argv[1:]] or PAIRS:
        (OUTPUT / f"{pair}.txt").unlink(missing_ok=True)
        results = tested(pair)
        passed, failed = passed + results[0], failed + results[1]
        unavailable += [pair] if results[2] else []
    if unavailable:
        print(f"\nNOT RUN, for want of a chroot: {' '.join(unavailable)}")
    print(f"\n{passed} passed, {failed} failed")
    sys.exit(1 if failed else UNAVAILABLE if unavailable else 0)


if __name__ == "__main__":
    main()
