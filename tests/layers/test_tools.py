"""docs/tools tells about each tool that tests/drivers runs, in the version that it runs."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "drivers"))
import tools

PAGES = ROOT / "docs" / "tools"


class Tools(unittest.TestCase):
    def test_the_table_is_that_of_the_tools(self):
        rows = re.findall(r"^\| \[(.+?)\]\((.+?)\.md\) \| (\S+) \| (.+?) \| (\d+) \| (\d+) of ", (PAGES / "README.md").read_text(), re.MULTILINE)
        wanted = [(tool.name, tool.page, tool.version, mode.name, str(sum(panel.refused is None for panel in tool.panels)))
                  for tool in tools.TOOLS for mode in tool.modes]
        self.assertEqual([row[:5] for row in rows], wanted)
        self.assertEqual([row[4] for row in rows], [row[5] for row in rows], "all pages that are meant to be hits are")

    def test_each_page_is_short_and_named(self):
        pages = {path.stem for path in PAGES.glob("*.md")} - {"README"}
        self.assertEqual(pages, {tool.page for tool in tools.TOOLS})
        for page in pages:
            self.assertLessEqual(len((PAGES / f"{page}.md").read_text().splitlines()), 30, page)

    def test_each_refusal_is_told(self):
        told = (PAGES / "README.md").read_text()
        for name, reason in tools.REFUSED.items():
            self.assertIn(name, told.replace("`now()`", "now()"))
            self.assertIn(reason, told)
