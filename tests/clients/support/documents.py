"""The blocks of code in the documents: what they are, and which of them are not run.

Each block is fenced and names its language; `psql` may be followed by options of that program.

    sql      statements, run by psql in a database `shop`
    psql     what a session shows: prompts `shop=# ` (`shop-# ` goes on), and below each command what it printed
    sh       commands, run by bash against that database; of `make TARGET` only the target is looked up
    conf     lines of postgresql.conf, which the server must accept
    python   a program of its own
    yaml, ini, r, mermaid, text   not run
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RUN = {"sql", "psql", "sh", "conf", "python"}
OTHER = {"yaml", "ini", "r", "mermaid", "text"}
# Begins a line of a block that belongs to a language that is run.
COMMAND = re.compile(r"\s*((SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|GRANT|REVOKE|SET|SHOW|EXPLAIN|SECURITY) [\w(*'\"/]|\w+=[#>] |(make|psql|pg_\w+|apt-get) )")

# Blocks of the languages above that are not run, by document and first line, and why.
NOT_RUN = {
    ("docs/packaging.md", "apt-get install ./postgresql-17-pg-arrow-cache_0.2.0-1_amd64.deb"):
        "installs a package of another major version; tests/packages/life.sh does this in chroots",
    ("clients/python/README.md", "pip install './clients/python[psycopg]'    # or psycopg2, asyncpg, adbc; and polars, duckdb, pandas"):
        "needs PyPI; python/test_wheel.py installs the wheel without it",
    ("docs/packaging.md", "tar xf pg_arrow_cache-0.2.0.tar.gz"):
        "builds from the tarball; tests/packages/offline.sh does this in chroots",
    ("docs/replicas.md", "target/venv/bin/python demo/replica.py --readers 12 --rows-per-second 50 --seconds 20"):
        "takes minutes; demo/test_demo_replica.py runs the program with fewer rows",
}


@dataclass(frozen=True)
class Block:
    document: str
    line: int
    heading: str
    language: str
    options: tuple
    lines: tuple

    @property
    def place(self):
        return f"{self.document}:{self.line}"

    @property
    def is_listed(self):
        return (self.document, self.lines[0]) in NOT_RUN

    @property
    def is_run(self):
        return self.language in RUN and not self.is_listed


def documents():
    """README.md, those below docs/ and clients/, and that of monitoring/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "monitoring").glob("*.md")),
            *sorted((ROOT / "clients").rglob("*.md"))]


def blocks(path):
    """All blocks of a document, in order; indented ones, too, which have no language."""
    lines = path.read_text().splitlines()
    name, heading, number = str(path.relative_to(ROOT)), "", 0
    while number < len(lines):
        line, start = lines[number], number
        fence = re.match(r"( *)(`{3,})(.*)$", line)
        number += 1
        if fence:
            while lines[number].strip() != fence[2]:
                number += 1
            indent, words = len(fence[1]), fence[3].split() or [""]
            inside = tuple(text[indent:] for text in lines[start + 1:number])
            number += 1
            yield Block(name, start + 1, heading, words[0], tuple(words[1:]), inside)
        elif line.startswith("    ") and not lines[start - 1].strip():
            yield Block(name, start + 1, heading, "", (), (line.strip(),))
        elif line.startswith("#"):
            heading = line.lstrip("# ")


def all_blocks():
    return [block for path in documents() for block in blocks(path)]


def sections():
    """{(document, heading): its blocks that are run}, in the order of the documents."""
    found = {}
    for block in all_blocks():
        if block.is_run:
            found.setdefault((block.document, block.heading), []).append(block)
    return found


def commands(block):
    """What a session shows: [(command, the lines that it printed)]."""
    shown = []
    for line in block.lines:
        prompt = re.match(r"\w+([=-])[#>] ?(.*)$", line)
        if prompt is None:
            shown[-1][1].append(line)
        elif prompt[1] == "=":
            shown.append([prompt[2], []])
        else:
            shown[-1][0] += "\n" + prompt[2]
    return shown


class Figures:
    """Compares what is shown with what was printed. Times and costs may be any. Other figures with a decimal point, or of five digits
    and more, may be others than those that are shown; equal ones stand for equal ones. Everything else has to be the same."""

    MASKED = [(r"\bTime: [\d.]+ ms( \([\d:.]+\))?", "Time: … ms"), (r"\bcost=[\d.]+", "cost=…"),
              (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?([+-]\d\d(:\d\d)?)?", "…"), (r" +", " "), (r"-{2,}", "--")]
    FIGURE = re.compile(r"(?<![\d.])(\d+\.\d+|\d{5,})(?![\d.])")

    def __init__(self):
        self.shown, self.printed = {}, {}

    def agree(self, shown, printed):
        shown, printed = [[self.masked(line) for line in lines if line.strip()] for lines in (shown, printed)]
        return len(shown) == len(printed) and all(map(self.same, shown, printed))

    def masked(self, line):
        for pattern, mask in self.MASKED:
            line = re.sub(pattern, mask, line)
        return line.strip()

    def same(self, shown, printed):
        if self.FIGURE.split(shown)[::2] != self.FIGURE.split(printed)[::2]:
            return False
        pairs = list(zip(self.FIGURE.findall(shown), self.FIGURE.findall(printed)))
        return all(self.shown.setdefault(one, other) == other and self.printed.setdefault(other, one) == one for one, other in pairs)
