"""Instructions of replay with and without the library, and of hits on a standby and its primary, counted by callgrind: figures without noise."""

import re
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import callgrind
import instructions
from measure import Goal, Part, markdown
from standby_hits import GOAL_OF_A_HIT, SERVERS, UNIT, WAYS, pair
from standby_replay import GOAL, MARK_REDO, SIDES, WORKLOADS, check

LIBRARY = "pg_arrow_cache.so"
SHOWN = 12
CASES = {(name, way): instructions.Case(f"{name}, {way}", sql, way)
         for way in WAYS for name, sql in ((UNIT, UNIT), ("hit, one row", instructions.LOOK_UP))}


@contextmanager
def counting(mark=callgrind.MARK):
    """A directory for what callgrind writes, and a program that starts a server under it. It begins a new file when the function `mark` is called."""
    with tempfile.TemporaryDirectory(prefix="pg_arrow_cache-callgrind-") as out:
        yield Path(out), callgrind.wrapper(Path(out), f"--dump-before={mark}")


@dataclass
class Count:
    """Instructions of one piece: all of them, and those in each of the library's own functions."""

    total: int
    own: Counter

    @staticmethod
    def read(file):
        # Functions that had not returned when callgrind wrote the file have the counts of what they called: so their sum is not the total.
        total = re.search(r"^totals: (\d+)", file.read_text(), re.M)[1]
        return Count(int(total), Counter({name: count for (name, library), count in callgrind.by_function(file).items() if library == LIBRARY}))


def count_replay(recording, directory, side):
    """For each workload, the instructions of the startup process for one piece."""
    with counting(MARK_REDO) as (out, postgres):
        with recording.standby(f"{directory}-{side}", SIDES[side], conf={"shared_buffers": "256MB"}, postgres=postgres) as standby:
            pid = standby.startup_pid
            standby.feed([file for piece in recording.pieces for file in piece.files])
            standby.wait_for(recording.pieces[-1].end)
            if side == "B":
                check(standby)
            # There is a mark before and after each piece: what is counted up to the marks has the numbers 1, 2, …
            return {piece.workload: Count.read(out / f"callgrind.{pid}.{2 * number + 2}")
                    for number, piece in enumerate(recording.pieces) if piece.workload}


def measure_replay_instructions(recording, directory, _size, progress):
    found = {}
    for side in SIDES:
        progress(f"instructions: replay {'with' if SIDES[side] else 'without'} the library")
        found[side] = count_replay(recording, directory, side)
    return report_replay(found)


def goal(name, share, least):
    return Goal(name, f"{share:.4f}", f"≥ {least}", share >= least)


def report_replay(found):
    goals, rows, worst = [], [], {}
    for workload in WORKLOADS:
        without, with_it = (found[side][workload].total for side in SIDES)
        share, own = without / with_it, found["B"][workload].own
        worst[share] = workload, own
        goals.append(goal(f"replay of {workload.name}: instructions without the library, of those with it", share, GOAL))
        rows.append([workload.name, f"{without / 1e6:,.1f}", f"{with_it / 1e6:,.1f}", f"{sum(own.values()) / 1e6:,.2f}", f"{share:.4f}"])
    sections = [markdown(
        "Instructions of replay", "Millions of instructions of the startup process for one smaller piece of WAL of each workload, outside "
        "the kernel. *In the library* are those in its own functions; the ratio is that of all without it to all with it.",
        ["workload", "without", "with", "in the library", "ratio"], rows)]
    share, (workload, own) = min(worst.items())
    sections.append(markdown(
        f"The library's own functions in the replay of: {workload.name}",
        "The workload with the smallest ratio. Instructions in the function itself, and in what the compiler has put into it.",
        ["function", "instructions", "share"],
        instructions.shares([(f"`{name}`", count) for name, count in own.most_common(SHOWN)], sum(own.values()))))
    return Part(goals, sections)


def measure_hit_instructions(directory, progress):
    with ExitStack() as stack:
        made = {name: stack.enter_context(counting()) for name in SERVERS}
        progress("instructions: starting a primary and a standby under callgrind")
        primary, (standby,) = stack.enter_context(pair(directory, 1, postgres=made["standby"][1]))
        primary.postgres = ["-p", made["primary"][1]]
        primary.restart()
        counts = {}
        for name, server in zip(SERVERS, (primary, standby)):
            for key, case in CASES.items():
                progress(f"instructions: {case.name}, on the {name}")
                counts[name, key] = instructions.count(server, made[name][0], case)
        standby.check_publishing()
    return report_hits(counts)


def report_hits(counts):
    goals, rows = [], []
    for (statement, way), case in CASES.items():
        shares = [counts[name, (UNIT, way)] / counts[name, (statement, way)] for name in SERVERS]
        ratio = shares[1] / shares[0]
        rows.append([case.name, *(f"{counts[name, (statement, way)]:,.0f}" for name in SERVERS), *(f"{share:.3f}" for share in shares),
                     f"{ratio:.4f}"])
        if statement != UNIT:
            goals.append(goal(f"{case.name}: instructions, the standby's ratio to {UNIT}, of the primary's", ratio, GOAL_OF_A_HIT))
    return Part(goals, [markdown(
        "Instructions of hits", f"Of the session's process for one execution, outside the kernel; those of {UNIT} as a share of them; and the "
        "standby's share divided by the primary's.", ["statement", "primary", "standby", "share, primary", "share, standby", "ratio"], rows)])
