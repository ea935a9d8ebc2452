#!/usr/bin/env python3
"""Writes the table of docs/figures.md from the reports of bench/results.

    bench/figures.py

Each row names a report, by the end of its name, and a row of its tables, by its label. The newest report of that name is
read. It fails if a label is not found, or is found in two tables.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "figures.md"
BEGIN, END = "<!-- made by bench/figures.py -->", "<!-- end -->"
WHOLE, ARROW, DASHBOARD, STANDBY, STALENESS = "", "-arrow", "-dashboard", "-standby", "-staleness"


@dataclass(frozen=True)
class Goal:
    """A row of a report's table of goals."""

    what: str
    beside: str
    report: str
    label: str

    def cells(self, report):
        measured, goal, reached = report.row(self.label, "measured", "goal", "reached")
        return [measured, goal, reached]


@dataclass(frozen=True)
class Pair:
    """Two figures that stand in a report, of this cache and of its peer; the goal, if there is one, is exact."""

    what: str
    beside: str
    report: str
    ours: tuple     # label of a row, head of a column
    peers: tuple
    unit: str = ""
    goal: str = ""

    def cells(self, report):
        ours, peers = (report.row(label, column)[0].partition(" ±")[0] for label, column in (self.ours, self.peers))
        return [f"{ours} and {peers}{self.unit}", self.goal, ("yes" if ours == self.goal else "no") if self.goal else ""]


FIGURES = (
    Goal("rate of hits: one row by key, prepared", "`SELECT 1`", WHOLE, "one-row hit, prepared: of SELECT 1"),
    Goal("rate of hits: 50 rows, grouped from 5 M", "pgpool-II", WHOLE, "aggregate, hit: of pgpool-II"),
    Pair("the same, hits per second", "materialized view, not refreshed", WHOLE,
         ("aggregate, hit", "simple, per s"), ("aggregate, materialized view", "simple, per s")),
    Goal("time of a hit: 10,000 rows × 20 columns as text", "plain PostgreSQL", WHOLE, "10,000 rows × 20, text, hit: of plain's time"),
    Goal("the same", "pgpool-II", WHOLE, "10,000 rows × 20, text, hit: of pgpool-II's time"),
    Pair("the same", "Redis, JSON that is not parsed", WHOLE,
         ("hit", "10,000 rows × 20"), ("Redis", "10,000 rows × 20"), " ms"),
    Goal("time of a hit: 50,000 rows × 20 columns as Arrow", "ADBC", ARROW, "Mixed: hit through COPY, of ADBC's time"),
    Goal("time of an aggregate over 120 partitions after a write", "plain PostgreSQL, two workers", DASHBOARD,
         "history in one row, 120 leaves, 12 M rows: of plain's time"),
    Goal("time of an execution that is stored: TPC-H, median", "plain PostgreSQL", WHOLE,
         "storing execution, TPC-H: over plain, median of the queries"),
    Goal("instructions of a statement that is not stored: one row by key", "no library", WHOLE,
         "one row, too quick to be stored, simple: instructions over those without the library"),
    Goal("rate of replay on a standby: TPC-B", "no library", STANDBY, "replay of TPC-B: of the rate without the library"),
    Pair("answers that are stale after 81 ways to change data", "pgpool-II", STALENESS,
         ("**all**", "stale after"), ("**all**", "stale after (2)"), goal="0"),
)


class Report:
    """The tables of a report: the cells of each row, by their heads."""

    def __init__(self, path):
        self.path = path
        self.rows = list(rows_of(path.read_text().splitlines()))

    def row(self, label, *columns):
        """The cells of the one row with this label that has these columns."""
        found = [cells for name, cells in self.rows if name == label and all(column in cells for column in columns)]
        if len(found) != 1:
            raise LookupError(f"{self.path.name} has {len(found)} rows {label!r} with {', '.join(columns)}")
        return [found[0][column] for column in columns]


def rows_of(lines):
    """(label, {head of column: cell}) of each row of all tables. The second column with the same head is `HEAD (2)`."""
    heads = None
    for line, below in zip(lines, [*lines[1:], ""]):
        if not line.startswith("|"):
            heads = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if heads is None and below.startswith("|---"):
            heads = [head if head not in cells[:place] else f"{head} (2)" for place, head in enumerate(cells)]
        elif heads is not None and not line.startswith("|---"):
            yield cells[0], dict(zip(heads, cells))


def newest(name):
    """The newest report whose name is a date and this."""
    found = sorted(path for path in RESULTS.glob("*.md") if re.fullmatch(rf"\d{{4}}-\d\d-\d\d{name}", path.stem))
    if not found:
        raise LookupError(f"no report DATE{name}.md")
    return Report(found[-1])


def table():
    reports = {}
    lines = ["| what | beside | measured | goal | reached | run |", "|---|---|--:|--:|---|---|"]
    for figure in FIGURES:
        report = reports.get(figure.report) or reports.setdefault(figure.report, newest(figure.report))
        run = f"[{report.path.stem}](../bench/results/{report.path.name})"
        lines.append("| " + " | ".join([figure.what, figure.beside, *figure.cells(report), run]) + " |")
    return lines


def page(text):
    """The text of the page with the table between its two marks."""
    before, begin, rest = text.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise LookupError(f"{PAGE.name} has no {BEGIN} … {END}")
    return before + begin + "\n".join(table()) + "\n" + end + after


if __name__ == "__main__":
    try:
        PAGE.write_text(page(PAGE.read_text()))
    except LookupError as problem:
        sys.exit(f"figures.py: {problem}")
