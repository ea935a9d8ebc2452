"""What is not supported, or cannot be had, is said so: scripts/build.sh refuses other servers, and tests/matrix/run.py tells a chroot
that cannot be made from one in which something fails."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNAVAILABLE = 69


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Servers(unittest.TestCase):
    def build_for(self, version):
        """Runs scripts/build.sh with a pg_config that names this version and a cargo that only tells its arguments."""
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            program(place / "pg_config", f"#!/bin/sh\necho '{version}'\n")
            program(place / "home" / "bin" / "cargo", '#!/bin/sh\necho "cargo $*"\n')
            program(place / "home" / "bin" / "rustc", "#!/bin/sh\necho /rust\n")
            environment = {**os.environ, "PG_CONFIG": str(place / "pg_config"), "CARGO_HOME": str(place / "home")}
            return subprocess.run([ROOT / "scripts" / "build.sh"], env=environment, text=True, capture_output=True)

    def test_other_majors_are_refused(self):
        for version in "PostgreSQL 14.9", "PostgreSQL 19devel", "PostgreSQL 1.5", "PostgreSQL 150.1":
            done = self.build_for(version)
            self.assertEqual((done.returncode, done.stdout), (1, ""), version)
            self.assertIn(f"is of {version}, which pg_arrow_cache does not support; it supports PostgreSQL 15 16 17 18", done.stderr)

    def test_listed_majors_are_built(self):
        for major in 15, 16, 17, 18:
            done = self.build_for(f"PostgreSQL {major}.1 (Debian {major}.1-1)")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"--features pg{major}\n", done.stdout)


class Matrix(unittest.TestCase):
    # Answers that tests/matrix/run.py gets in a chroot, by the word that tells what it asks for.
    WELL = {"setup.sh": "echo 'PostgreSQL 17.1'", "make": "true", "tests/run": "echo 'regress   3 passed   0 failed'"}

    def run_with(self, **answers):
        """Runs the suite `regress` on 17, in a chroot that gives these answers. Returns (status, output)."""
        answers = {**self.WELL, **{word.replace("_", "/"): answer for word, answer in answers.items()}}
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            shutil.copytree(ROOT / "tests" / "matrix", place / "tests" / "matrix")
            cases = "\n".join(f'*{word}*) {answer} ;;' for word, answer in answers.items())
            program(place / "scripts" / "chroot.sh", f'#!/bin/sh\ncase "$*" in\n{cases}\nesac\n')
            done = subprocess.run([place / "tests" / "matrix" / "run.py", "17", "regress"], text=True, capture_output=True)
            return done.returncode, done.stdout

    def test_all_is_well(self):
        status, output = self.run_with()
        self.assertEqual(status, 0, output)
        self.assertIn("| 17.1 | 3 |", output)

    def test_no_chroot_is_not_a_failure_and_is_told(self):
        status, output = self.run_with(**{"setup.sh": f"exit {UNAVAILABLE}"})
        self.assertEqual(status, UNAVAILABLE, output)
        self.assertIn("NOT RUN, for want of a chroot: 17", output)

    def test_a_failure_in_a_chroot_is_one(self):
        for word, answer in (("setup.sh", "exit 1"), ("make", "exit 2"), ("make", f"exit {UNAVAILABLE}"), ("tests_run", "exit 1"),
                             ("tests_run", "echo 'regress   2 passed   1 failed'; exit 1"), ("tests_run", "true")):
            status, output = self.run_with(**{word: answer})
            self.assertEqual(status, 1, (word, answer, output))
            self.assertNotIn("NOT RUN", output)


if __name__ == "__main__":
    unittest.main()
