"""What each process counts and finds, and the sum of all processes."""

import sys
from collections import Counter
from dataclasses import dataclass, field, fields

SHOWN_ROWS = 6
# A process that has found this many differences stops the whole run.
ENOUGH = 3

SAME_SNAPSHOT = "a cached answer equals the uncached one under the same snapshot"
ONE_VERSION = "all rows of a group have one version within an answer"
NOT_BACK = "no answer is older than what its reader had seen or a writer had been told was committed"
PAIRS_EQUAL = "tables that are changed together are equal within an answer"
QUIET = "in a quiet server every question is answered alike with and without the cache"


@dataclass
class Tally:
    """Picklable, so that it can be sent to the main process at the end."""

    name: str
    counts: Counter = field(default_factory=Counter)
    compared: Counter = field(default_factory=Counter)
    hits: Counter = field(default_factory=Counter)
    statuses: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    done: Counter = field(default_factory=Counter)
    tolerated: Counter = field(default_factory=Counter)
    inconclusive: Counter = field(default_factory=Counter)
    broken: Counter = field(default_factory=Counter)
    crashed: list = field(default_factory=list)

    def status(self, status, reason):
        self.statuses[status] += 1
        if reason is not None:
            self.reasons[f"{status} {reason}"] += 1

    def find(self, rule, **facts):
        """Counts a broken promise and shows it at once: the run may be stopped by hand."""
        self.broken[rule] += 1
        if self.broken[rule] <= ENOUGH:
            lines = [f"# BROKEN: {rule}", *(f"#   {name}: {shown(value)}" for name, value in facts.items())]
            sys.stdout.write("\n".join([*lines, f"#   found by: {self.name}", ""]))
            sys.stdout.flush()

    def has_enough(self):
        return any(count >= ENOUGH for count in self.broken.values())

    def add(self, other):
        for part in fields(self):
            mine, its = getattr(self, part.name), getattr(other, part.name)
            if isinstance(mine, Counter):
                mine.update(its)
        self.crashed += other.crashed


def shown(value):
    if isinstance(value, list):
        more = f" … {len(value)} in all" if len(value) > SHOWN_ROWS else ""
        return f"{value[:SHOWN_ROWS]}{more}"
    return value


def table(counts):
    """Counters as lines of a report, the largest first."""
    lines = [f"#   {count:9,}  {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]
    return lines or ["#   none"]
