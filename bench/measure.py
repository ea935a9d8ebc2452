"""Medians, spreads, ratios and goals, and the machine they were taken on."""

import os
import platform
import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


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
class Ratio:
    """One thing as a share of another, round by round, because neighbours in time share whatever else the machine was
    doing, and as the median over the rounds."""

    rounds: list

    @staticmethod
    def of(one, other):
        """Of two `Samples` with a value for each round, or of those rounds that both have."""
        return Ratio([mine / theirs for mine, theirs in zip(one.values, other.values)])

    @property
    def median(self):
        return statistics.median(self.rounds)

    @property
    def middle_half(self):
        if len(self.rounds) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.rounds, n=4, method="inclusive")
        return low, high

    def __str__(self):
        low, high = self.middle_half
        return f"{figure(self.median)} ({figure(low)} … {figure(high)})"


class Cost(Ratio):
    """By how much one side was slower than the other: a ratio less one, shown in per cent."""

    @staticmethod
    def of(one, other):
        return Cost([mine / theirs - 1 for mine, theirs in zip(one.values, other.values)])

    def __str__(self):
        low, high = self.middle_half
        return f"{self.median:+.1%} ({low:+.1%} … {high:+.1%})"


def figure(number):
    """A ratio with as many digits as tell something."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3f}" if abs(number) < 10 else f"{number:.1f}"


@dataclass
class Goal:
    """A figure, what it should be, and whether it is."""

    name: str
    figure: str
    goal: str
    reached: bool

    @staticmethod
    def at_least(name, ratio, least, unit=""):
        return Goal(name, str(ratio), f"≥ {least:,g}{unit}", ratio.median >= least)

    @staticmethod
    def at_most(name, ratio, most, unit=""):
        return Goal(name, str(ratio), f"≤ {most:,g}{unit}", ratio.median <= most)

    def cells(self):
        return [self.name, self.figure, self.goal, "yes" if self.reached else "no"]


@dataclass
class Part:
    """What one part of the bench found: goals, sections of the report, what plots.py draws; or that it failed."""

    goals: list = field(default_factory=list)
    sections: list = field(default_factory=list)
    figures: dict = field(default_factory=dict)
    failed: str = ""


def milliseconds(action):
    """Runs `action` and returns how long it took."""
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def processor_time(pid):
    """Seconds of processor time that a process with one thread has used, to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def alternating(rounds):
    """The order of A and B in each round: AB, BA, AB, … so that drift of the machine falls on both alike."""
    return [("A", "B") if number % 2 == 0 else ("B", "A") for number in range(rounds)]


def to_and_fro(things, rounds):
    """All things once in each round, every other round from behind: (number of the round, thing)."""
    for number in range(rounds):
        for thing in things if number % 2 == 0 else reversed(things):
            yield number, thing


@contextmanager
def pinned(processor):
    """This process, and what it starts, on one processor for a while."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


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


def markdown(title, note, header, rows, words=1):
    """One section of the report; the first columns, `words` of them, are no figures."""
    marks = ["---"] * words + ["--:"] * (len(header) - words)
    lines = [f"## {title}", "", note, "", "| " + " | ".join(header) + " |", "|" + "|".join(marks) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
