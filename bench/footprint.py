"""How much memory stored answers take, and a session beside one of a server without the cache."""

import re
from pathlib import Path

from measure import markdown
from session import values

ENTRIES = """
    SELECT row_count, column_count, bytes - rendition_bytes, rendition_bytes FROM arrow_cache.entries
    WHERE kind = 'answer' ORDER BY row_count, column_count
"""


def own_kilobytes(pid):
    """Memory that a process has written to and that is not shared memory of the server, as Linux counts it."""
    return int(re.search(r"^Anonymous: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)[1])


def report(cached, plain):
    """The section about what two sessions have read, one of them hits."""
    kilobytes = [f"{own_kilobytes(session.pid):,}" for session in (cached, plain)]
    stored = [[cell.decode() for cell in row] for row in values(cached.execute(ENTRIES))]
    return markdown(
        "Memory", "Bytes of each stored answer: its columns with text, key and dependencies, and the finished messages that are kept beside them, of the results "
        f"above. A session that has read all of them as hits has {kilobytes[0]} kB of its own, one of the server without the cache that has executed them {kilobytes[1]} kB.",
        ["rows", "columns", "bytes", "of finished messages"], [[f"{int(number):,}" for number in row] for row in stored])
