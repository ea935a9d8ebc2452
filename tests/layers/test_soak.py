"""The soak sees a process whose memory grows, and no other: samples that no server has made."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "soak"))
import flat  # noqa: E402  (it lives beside the soak)

END_S, STEP_S = 1000, 10


def samples(size, contexts=None, pid=1, until=END_S):
    """Those of one process with the name `one`; `size` and `contexts` tell its kilobytes at a second."""
    return [{"seconds": at, "contexts": {str(pid): contexts(at - STEP_S)} if contexts else {},
             "processes": [(2, "the server", 5000), *([(pid, "one", size(at))] if at <= until else ())]}
            for at in range(0, END_S + STEP_S, STEP_S)]


class Flat(unittest.TestCase):
    def grown(self, found):
        return flat.table(flat.lasting(found), END_S)[1]

    def test_what_stays(self):
        self.assertEqual(self.grown(samples(lambda at: 8000)), [])

    def test_caches_fill_in_the_first_quarter(self):
        self.assertEqual(self.grown(samples(lambda at: 4000 + 20 * min(at, 240))), [])

    def test_single_statements_take_much(self):
        self.assertEqual(self.grown(samples(lambda at: 50000 if at % 70 == 0 else 8000)), [])

    def test_a_leak(self):
        # Half of the run lies between the middles of both quarters, and a sample more.
        self.assertEqual(self.grown(samples(lambda at: 4000 + 3 * at)), ["one +1,515 kB"])

    def test_a_small_leak(self):
        self.assertEqual(self.grown(samples(lambda at: 4000 + at)), [])

    def test_a_large_process_may_grow_by_its_share(self):
        self.assertEqual(self.grown(samples(lambda at: 40000 + 3 * at)), [])
        self.assertEqual(self.grown(samples(lambda at: 40000 + 5 * at)), ["one +2,525 kB"])

    def test_a_control_that_grows_as_well(self):
        found = samples(lambda at: 4000 + 3 * at)
        for one in found:
            one["processes"].append((3, "control one", 9000 + 2 * one["seconds"]))
        self.assertEqual(self.grown(found), [])
        for one in found:
            one["processes"][-1] = (3, "control one", 9000 - one["seconds"])
        self.assertEqual(self.grown(found), ["one +1,515 kB"])

    def test_what_ends_does_not_last(self):
        self.assertEqual([one.label for one in flat.lasting(samples(lambda at: 4000 + 9 * at, until=800))], ["the server"])

    def test_memory_outside_of_contexts(self):
        one = flat.lasting(samples(lambda at: 9000 + 2 * at, contexts=lambda at: 5000 + at))[1]
        self.assertEqual(one.growth(END_S, "contexts"), (5370, 5870))
        self.assertEqual(one.outside().growth(END_S), (4370, 4870))

    def test_sessions_of_one_name_have_numbers(self):
        found = samples(lambda at: 8000)
        for one in found:
            one["processes"].append((3, "one", 7000))
        self.assertEqual([one.label for one in flat.lasting(found)], ["the server", "one, session 1", "one, session 2"])


if __name__ == "__main__":
    unittest.main()
