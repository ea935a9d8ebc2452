"""All kinds of nodes that the server has have been judged: each stands in src/query/node_table.rs, or here with the reason why not."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import cluster  # noqa: E402  (it lives beside the other scripts)

HEADERS = Path(cluster.pg_config("--includedir-server")) / "nodes"
TABLE = (ROOT / "src/query/node_table.rs").read_text()
# Kinds of later versions, which are refused.
LATER = (ROOT / "src/pg/compat/tree.rs").read_text()
# Scans and the like have code of their own there.
OPENED = (ROOT / "src/query/opened_relations.rs").read_text()

NOT_IN_QUERIES = {
    "Alias": "names the columns of an entry, which has what counts of it",
    "RangeVar": "the parser replaces it", "IntoClause": "the parser replaces it",
    "CaseWhen": "the walkers of the server do not show it, but what is in it",
    "SubPlan": "the planner makes it", "AlternativeSubPlan": "the planner makes it", "WindowFuncRunCondition": "the planner makes it",
    "CoerceToDomainValue": "stands in the checks of domains, and in what is made of them for `shown_clock`",
    "JsonFormat": "below what is refused", "JsonReturning": "below what is refused", "JsonTablePath": "below what is refused",
    "JsonTablePathScan": "below what is refused", "JsonTableSiblingJoin": "below what is refused",
}
ABSTRACT = {"Plan", "Scan", "Join"}


def structs(header):
    """The structures of a header, each with what it begins with."""
    text = re.sub(r"/\*.*?\*/", "", (HEADERS / header).read_text(), flags=re.DOTALL)
    return re.findall(r"^typedef struct (\w+)\s*\{\s*(?:pg_node_attr\([^;]*?\)\s*)?(\w+)", text, re.MULTILINE)


def tags():
    """The tags of the server, which 16 and later have in a header of their own."""
    text = "".join((HEADERS / name).read_text() for name in ("nodes.h", "nodetags.h") if (HEADERS / name).exists())
    return set(re.findall(r"\bT_(\w+)\s*(?:,|=)", text))


def rows(function):
    return set(re.findall(r"\bT_(\w+)", TABLE[TABLE.index(f"pub fn {function}("):].split("\n}\n")[0]))


class NodeTable(unittest.TestCase):
    def test_all_kinds_in_queries_are_judged(self):
        expressions = {name for name, _ in structs("primnodes.h")} & tags()
        self.assertGreater(len(expressions), 40)
        later = set(re.findall(r"\bT_(\w+)", LATER))
        self.assertEqual(expressions - rows("in_query") - later - NOT_IN_QUERIES.keys(), set())

    def test_all_kinds_in_plans_are_judged(self):
        found, above = set(), ABSTRACT
        while above:
            above = {name for name, first in structs("plannodes.h") if first in above} - found - ABSTRACT
            found |= above
        self.assertGreater(len(found), 35)
        arms = re.findall(r"^ +([A-Z][\w |]+\w) ?\(\w+\) =>", OPENED, re.MULTILINE)
        opened = {name.removeprefix("T_") for arm in arms for name in arm.split(" | ")}
        self.assertEqual((found & tags()) - rows("in_plan") - opened, set())

    def test_no_row_is_of_no_kind(self):
        self.assertEqual((rows("in_query") | rows("in_plan")) - tags(), set())


if __name__ == "__main__":
    unittest.main()
