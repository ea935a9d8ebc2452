"""Scripts of CREATE EXTENSION run in databases of any encoding, into which PostgreSQL converts them."""

import unittest
from pathlib import Path

SQL = Path(__file__).resolve().parents[2] / "sql"


class Scripts(unittest.TestCase):
    def test_are_in_ascii(self):
        scripts = sorted(SQL.rglob("*.sql"))
        self.assertGreater(len(scripts), 3)
        for script in scripts:
            for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), start=1):
                self.assertTrue(line.isascii(), f"{script.relative_to(SQL)}:{number}: {line}")


if __name__ == "__main__":
    unittest.main()
