"""Differences between two outputs of a test: found, shown, and looked up among the explained ones.

explained/SUITE-TEST.diff holds the reason in lines that begin with `#`, then the lines that are removed and added,
in order. Where they stand does not matter, so that an explanation outlives changes elsewhere in the test. It holds for
each run with the library: answers are given in all of them.
"""

import difflib
import re
from pathlib import Path

EXPLAINED = Path(__file__).resolve().parent / "explained"
LONGEST_SHOWN = 40
# A table as psql prints it, with the one column that EXPLAIN gives it.
PLAN = re.compile(rb"^ *QUERY PLAN *\n-+\n(?: .*\n)*\(\d+ rows?\)\n", re.MULTILINE)
OUR_NODES = (b"Custom Scan (ArrowCache)", b"Custom Scan (ArrowCacheFragments)")


def with_plans_of(plain, ours):
    """Our output, in which each plan that shows our node is replaced by the plan in its place in the plain output:
    EXPLAIN shows that a query would be a hit, which is no difference."""
    plans = PLAN.findall(plain)
    if len(PLAN.findall(ours)) != len(plans):
        return ours
    replacements = iter(plans)

    def replace(match):
        replacement = next(replacements)
        return replacement if any(node in match[0] for node in OUR_NODES) else match[0]

    return PLAN.sub(replace, ours)


def diff(one, other, one_name, other_name):
    texts = [output.decode(errors="replace").splitlines() for output in (one, other)]
    return list(difflib.unified_diff(*texts, one_name, other_name, lineterm=""))


def shortened(lines, path):
    shown = [f"    {line}" for line in lines[:LONGEST_SHOWN]]
    if len(lines) > LONGEST_SHOWN:
        shown.append(f"    … {len(lines) - LONGEST_SHOWN} more lines in {path}")
    return "\n".join(shown)


def explanation(name, lines):
    """The explanation of a difference that is not ours, or None."""
    path = EXPLAINED / f"{name}.diff"
    if not path.exists():
        return None
    explained = path.read_text().splitlines()
    reason = [line for line in explained if line.startswith("#")]
    if changes(lines[2:]) != changes(explained):   # the first two lines name the files
        return None
    return " ".join(line.lstrip("# ") for line in reason)


def changes(lines):
    return [line for line in lines if line.startswith(("+", "-"))]
