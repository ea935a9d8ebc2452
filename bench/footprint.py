"""How much memory stored answers take, and a session beside one of a server without the cache."""

import re
from pathlib import Path

from measure import markdown
from session import values

ENTRIES = """
    SELECT row_count, column_count, bytes - rendition_bytes, rendition_bytes FROM arrow_cache.entries
    WHERE kind = 'answer' ORDER BY row_count, column_count
"""


# Of /proc/PID/smaps: a line that begins a mapping, and those that count what lies in it.
MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ ")
COUNTED = re.compile(r"^(Anonymous|Private_Dirty): +(\d+) kB")


def own_kilobytes(pid):
    """Memory that a process alone has written to, as Linux counts it: neither the server's shared memory, nor what the process still shares
    with the postmaster that it comes from, nor pages of files."""
    mappings = []
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if MAPPING.match(line):
            mappings.append({})
        elif counted := COUNTED.match(line):
            mappings[-1][counted[1]] = int(counted[2])
    return sum(min(mapping["Anonymous"], mapping["Private_Dirty"]) for mapping in mappings)


def report(cached, plain):
    """The section about what two sessions have read, one of them hits."""
    kilobytes = [f"{own_kilobytes(session.pid):,}" for session in (cached, plain)]
    stored = [[cell.decode() for cell in row] for row in values(cached.execute(ENTRIES))]
    return markdown(
        "Memory", "Bytes of each stored answer: its columns with text, key and dependencies, and the finished messages that are kept beside them, of the results "
        f"above. A session that has read all of them as hits has {kilobytes[0]} kB of its own, one of the server without the cache that has executed them {kilobytes[1]} kB.",
        ["rows", "columns", "bytes", "of finished messages"], [[f"{int(number):,}" for number in row] for row in stored])
