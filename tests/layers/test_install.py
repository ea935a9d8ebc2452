"""scripts/install.sh, with a cargo and a server that are not real: what is installed is what was built, and what the sources have now."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Puts the library where the real one would: in the directory that its option names, else in that of the environment, below
# that of the profile.
CARGO = """#!/bin/bash
place=${CARGO_TARGET_DIR:-target}
while [ $# -gt 0 ]; do
    case $1 in --target-dir) place=$2 ;; --profile) profile=$2 ;; esac
    shift
done
[ -z "${CARGO_BUILD_TARGET-}" ] || place=$place/$CARGO_BUILD_TARGET
mkdir -p "$place/$profile"
cp contents "$place/$profile/libpg_arrow_cache.so"
"""
RUSTC = "#!/bin/bash\necho /nowhere\n"
PG_CONFIG = """#!/bin/bash
here=$(dirname "${BASH_SOURCE[0]}")/..
case $1 in --version) echo 'PostgreSQL 17.6' ;; --pkglibdir) echo "$here/lib" ;; --sharedir) echo "$here/share" ;; esac
"""


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Install(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="it's an install-"))
        self.addCleanup(shutil.rmtree, self.work)
        self.sources, self.server = self.work / "sources", self.work / "server"
        self.sources.mkdir()
        for name in ("scripts", "sql"):
            shutil.copytree(ROOT / name, self.sources / name)
        for name in ("src", "core"):
            (self.sources / name).mkdir()
            (self.sources / name / "lib.rs").touch()
        for name in ("Cargo.toml", "Cargo.lock", "pg_arrow_cache.control"):
            shutil.copy(ROOT / name, self.sources)
        program(self.work / "bin" / "cargo", CARGO)
        program(self.work / "bin" / "rustc", RUSTC)
        program(self.server / "bin" / "pg_config", PG_CONFIG)
        self.extensions, self.library = self.server / "share" / "extension", self.server / "lib" / "pg_arrow_cache.so"
        for directory in (self.extensions, self.library.parent):
            directory.mkdir(parents=True)
        self.install("first")

    def install(self, contents, **environment):
        """Installs a library with these contents. Returns what was said."""
        (self.sources / "contents").write_text(contents)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO", "RUST", "DESTDIR", "BUILD_PROFILE"))}
        done = subprocess.run([self.sources / "scripts" / "install.sh"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**kept, "PATH": f"{self.work}/bin:{os.environ['PATH']}", "CARGO_HOME": f"{self.work}/cargo",
                                   "PG_CONFIG": str(self.server / "bin" / "pg_config"), **environment})
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def change_sources(self):
        newer = self.library.stat().st_mtime + 10
        os.utime(self.sources / "src" / "lib.rs", (newer, newer))

    def test_nothing_has_changed(self):
        self.assertIn("is up to date", self.install("not built"))
        self.assertEqual(self.library.read_text(), "first")

    def test_sources_have_changed(self):
        self.change_sources()
        self.install("second")
        self.assertEqual(self.library.read_text(), "second")

    def test_cargo_builds_elsewhere(self):
        for number, variables in enumerate([{"CARGO_TARGET_DIR": f"{self.work}/elsewhere"}, {"CARGO_BUILD_TARGET": "x86_64-unknown-linux-gnu"}]):
            with self.subTest(variables):
                self.change_sources()
                self.install(f"built elsewhere {number}", **variables)
                self.assertEqual(self.library.read_text(), f"built elsewhere {number}")

    def test_a_release_does_for_what_asks_for_a_quick_build(self):
        self.install("quick", BUILD_PROFILE="quick")
        self.assertEqual(self.library.read_text(), "first")

    def test_a_quick_build_does_not_for_what_asks_for_a_release(self):
        (self.sources / "src" / "lib.rs").touch()
        self.install("quick", BUILD_PROFILE="quick")
        self.assertEqual(self.library.read_text(), "quick")
        self.assertIn("is up to date", self.install("not built", BUILD_PROFILE="quick"))
        self.install("second")
        self.assertEqual(self.library.read_text(), "second")

    def test_scripts_are_not_those_of_the_sources(self):
        names = ["pg_arrow_cache.control", *(path.name for path in self.extensions.glob("*.sql"))]
        self.assertEqual(len(names), 2)
        for name in names:
            for change in (Path.unlink, lambda path: path.write_text("another one's")):
                file = self.extensions / name
                kept = file.read_bytes()
                with self.subTest(name):
                    change(file)
                    self.install("first")
                    self.assertEqual(file.read_bytes(), kept)


if __name__ == "__main__":
    unittest.main()
