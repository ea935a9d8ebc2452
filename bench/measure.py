"""Medians, spreads and the machine they were taken on."""

import os
import platform
import statistics
import time
from dataclasses import dataclass, field


@dataclass
class Samples:
    """Measurements of one thing."""

    values: list = field(default_factory=list)

    def add(self, value):
        self.values.append(value)

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        """Interquartile range as a share of the median: what to distrust a difference by."""
        if len(self.values) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return (high - low) / self.median


@dataclass
class Cost:
    """By how much one side was slower than the other: round by round, because neighbours in time share whatever else
    the machine was doing, and as the median over the rounds."""

    rounds: list

    @property
    def median(self):
        return statistics.median(self.rounds)

    def __str__(self):
        low, _, high = statistics.quantiles(self.rounds, n=4, method="inclusive")
        return f"{self.median:+.1%} ({low:+.1%} … {high:+.1%})"


@dataclass
class Row:
    """One line of a report: two things compared, and the goal for their ratio."""

    name: str
    base: Samples
    other: Samples
    result: str
    goal: str
    reached: bool

    def cells(self, digits):
        return [self.name, *(text for samples in (self.base, self.other)
                             for text in (f"{samples.median:,.{digits}f}", f"{samples.spread:.0%}")),
                self.result, self.goal, "yes" if self.reached else "no"]


def milliseconds(action):
    """Runs `action` and returns how long it took."""
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def alternating(rounds):
    """The order of A and B in each round: AB, BA, AB, … so that drift of the machine falls on both alike."""
    return [("A", "B") if number % 2 == 0 else ("B", "A") for number in range(rounds)]


def machine():
    """What the figures depend on, apart from the code."""
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (f"{model}, {len(os.sched_getaffinity(0))} processors, {memory:.0f} GiB, "
            f"Linux {platform.release()}, load {load:.1f} at the start")


def markdown(title, note, header, rows):
    """One section of the report."""
    lines = [f"## {title}", "", note, "", "| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
