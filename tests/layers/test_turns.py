"""What a turn of pgbench has done, by its reports."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from turns import rates_of


class Rates(unittest.TestCase):
    def test_what_was_done_before_a_pause_is_told_after_it(self):
        # In the turn from 10 to 11 are 50 and 30 transactions, of which the latter are told at 20; in that from 20 to 21 are 40 and 20.
        reports = [(1.0, 100.0), (10.5, 50 / 9.5), (20.0, 30 / 9.5), (20.5, 2 * 40), (30.0, 20 / 9.5)]
        self.assert_close(rates_of(reports, [(10.0, 11.0), (20.0, 21.0)]), [80, 60])

    def test_a_report_of_two_turns_is_shared_by_time(self):
        reports = [(10.0, 7.0), (13.0, 40.0)]   # 120 transactions in 2 s and in 1 s, with nothing between them
        self.assert_close(rates_of(reports, [(10.0, 12.0), (12.0, 13.0)]), [40, 40])

    def test_a_pause_does_not_count(self):
        reports = [(10.0, 7.0), (40.0, 2.0)]    # 60 transactions in two turns of half a second
        self.assert_close(rates_of(reports, [(10.0, 10.5), (30.0, 30.5)]), [60, 60])

    def assert_close(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertAlmostEqual(one, other, places=6)

