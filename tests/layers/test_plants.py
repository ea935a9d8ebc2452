"""A fault is planted in each file of the kernel of trust, and each plant has one place. Whether the suites see them, tests/mutants/run.py tells."""

import importlib.util
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import kernel  # noqa: E402


def load():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tests" / "mutants" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Plants(unittest.TestCase):
    def setUp(self):
        self.mutants = load()
        self.plants = self.mutants.plants()

    def test_each_file_of_the_kernel_has_one(self):
        self.assertEqual(self.mutants.unplanted(self.plants), [])

    def test_each_has_one_place(self):
        for plant in self.plants:
            with self.subTest(file=plant.file, right=plant.right):
                self.assertEqual((ROOT / plant.file).read_text().count(plant.right), 1)

    def test_a_file_with_a_plant_is_not_one_with_nothing_to_plant(self):
        planted = {plant.file for plant in self.plants}
        for entry in self.mutants.listed("nothing"):
            self.assertTrue((ROOT / entry["file"]).is_file() and entry["file"] not in planted, entry["file"])

    def test_each_is_a_whole_expression_or_statement(self):
        for plant in self.plants:
            with self.subTest(file=plant.file, right=plant.right):
                for text in (plant.right, plant.wrong):
                    self.assertEqual([text.count(one) for one in "([{"], [text.count(one) for one in ")]}"])
                self.assertEqual(plant.wrong == "" or plant.wrong.endswith(";"), plant.right.endswith(";"))
                self.assertNotRegex(plant.right, r"^[^{;]*=>", "an arm of a match")
                before, _, _ = (ROOT / plant.file).read_text().partition(plant.right)
                self.assertFalse(before.endswith((".", "::")), "the name of a method, or of a function without its path")

    def test_there_are_plants_in_ten_rooms_outside_of_the_kernel(self):
        outside = [plant.file for plant in self.plants if plant.outside]
        self.assertEqual([file for file in outside if kernel.part_of(file)], [])
        self.assertGreaterEqual(len({Path(file).parent for file in outside}), 10)


if __name__ == "__main__":
    unittest.main()
