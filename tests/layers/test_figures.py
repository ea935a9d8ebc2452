"""The table of docs/figures.md is the one that bench/figures.py makes of the reports."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import figures


class Figures(unittest.TestCase):
    def test_the_committed_page_is_what_the_script_makes(self):
        text = figures.PAGE.read_text()
        self.assertEqual(figures.page(text), text)

    def test_a_label_that_is_not_found_fails(self):
        report = figures.newest(figures.WHOLE)
        with self.assertRaises(LookupError):
            report.row("a label of no row", "measured")
        with self.assertRaises(LookupError):
            report.row("hit", "a head of no column")

    def test_rows_are_found_below_the_heads_of_their_table(self):
        lines = ["| way | ms | ms |", "|---|--:|--:|", "| hit | 1 | 2 |", "", "| way | s |", "|---|--:|", "| hit | 3 |"]
        self.assertEqual(list(figures.rows_of(lines)),
                         [("hit", {"way": "hit", "ms": "1", "ms (2)": "2"}), ("hit", {"way": "hit", "s": "3"})])
