"""`make demo-replica` runs, compares equal answers on both standbys, and leaves nothing behind."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def rows(output, first):
    """The cells of the table whose header begins with this word."""
    lines = iter(output.splitlines())
    next(line for line in lines if line.split("│")[0].strip() == first)
    next(lines)
    table = []
    for line in lines:
        if "│" not in line:
            return table
        table.append([cell.strip() for cell in line.split("│")])


def test_demo_of_replicas():
    directory = ROOT / "target" / "test-demo-replica"
    done = subprocess.run([sys.executable, "-B", ROOT / "demo" / "replica.py", "--seconds", "1", "--sales", "20000", "--directory", directory],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    print(done.stdout)
    assert done.returncode == 0

    measured = rows(done.stdout, "standbys")
    assert [row[:2] for row in measured] == [["1", "off"], ["2", "off"], ["1", "on"], ["2", "on"]]
    # Without the cache nothing is a hit, with it the branch balances are, which no sale outdates.
    assert [int(row[4]) > 0 for row in measured] == [False, False, True, True]

    compared = rows(done.stdout, "standby")
    assert [row[:2] for row in compared] == [["1", "replaying"], ["2", "replaying"]]
    assert all(int(row[2]) > 0 and int(row[3]) > 0 and row[4] == "0" for row in compared)

    assert int(re.search(r"(\d+) rows have arrived meanwhile", done.stdout)[1]) > 0
    assert not directory.exists()
