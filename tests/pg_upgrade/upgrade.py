#!/usr/bin/env python3
"""The test of run.py, for one pair of servers that are installed beside each other with the extension: upgrade.py 15 17.

Clusters live below target/test-pg-upgrade. The last line reads "N passed, N failed".
"""

import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import cluster as private  # noqa: E402  (it lives beside the other scripts)
import databases  # noqa: E402
import facts  # noqa: E402
from servers import Server, Upgrade, without_extension  # noqa: E402

COMPATIBLE = "*Clusters are compatible*"
NO_PROVIDER = 'ERROR:  security label provider "pg_arrow_cache" is not loaded'
NOT_PRELOADED = 'could not load library "pg_arrow_cache": ERROR:  pg_arrow_cache must be loaded via "shared_preload_libraries"'
# Where pg_upgrade writes them, in the new data directory.
LIBRARIES, DUMPS, SERVER = "loadable_libraries.txt", r"log/pg_upgrade_dump_\d+\.log", "log/pg_upgrade_server.log"
NO_FILE = 'could not access file "pg_arrow_cache": No such file or directory'
CRASH = re.compile(r"terminated by signal|PANIC|panicked")


class Checks:
    """Counts what holds and what does not."""

    def __init__(self):
        self.passed, self.failed = 0, 0

    def ok(self, holds, name, *details):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        print(f"{'ok' if holds else 'NOT OK'}: {name}", flush=True)
        if not holds:
            for detail in details:
                print("    " + str(detail).replace("\n", "\n    "), flush=True)

    def same(self, found, expected, name):
        self.ok(found == expected, name, f"found:    {found}", f"expected: {expected}")

    def says(self, text, expected, name):
        self.ok(expected in text, name, f"expected: {expected}", f"in: {text[-6000:]}")


class Test:
    """One pair: the old cluster, and what it has before each upgrade."""

    def __init__(self, checks, old, major):
        self.checks, self.old, self.major = checks, old, major
        self.facts = self.answers = None

    def remember(self):
        """What must be the same afterwards."""
        self.facts = facts.of(self.old, databases.ALL)
        self.answers = databases.uncached(self.old)
        for (database, name), found in self.facts.items():
            expected = database != databases.BARE or name == "policies"
            self.checks.same(found != "", expected, f"old cluster: {database} {name}: {'something' if expected else 'nothing'} to compare")

    @contextmanager
    def new(self, preload="pg_arrow_cache", old=None):
        """A new cluster, and pg_upgrade from the old one to it."""
        new = Server("new", self.major, preload=preload)
        new.create()
        try:
            yield Upgrade(old or self.old, new)
        finally:
            new.stop()

    def upgrade_works(self, *options):
        """pg_upgrade with the library preloaded."""
        name = " ".join(["pg_upgrade", *options])
        with self.new() as upgrade:
            self.checks.says(upgrade.run("--check", *options), COMPATIBLE, f"{name} --check finds nothing")
            said = upgrade.run(*options)
            self.checks.same(upgrade.status, 0, name)
            self.checks.says(said, "Upgrade Complete", f"{name} completes")
            if upgrade.status == 0:
                upgrade.new.resume()
                self.is_kept(upgrade.new, name)
                databases.work(self.checks, upgrade.new, self.old, self.answers, name)
                self.extension_goes_on(upgrade.new, name)
                upgrade.new.pause()
            self.no_crash(upgrade, name)

    def is_kept(self, new, name):
        entries = new.psql("SELECT entries, hits, misses, stores FROM arrow_cache.stats", databases.PRESENT)
        self.checks.same(entries, "0|0|0|0", f"{name}: nothing is in the cache before the first query")
        kept = facts.of(new, databases.ALL)
        for key, before in self.facts.items():
            self.checks.same(kept[key], before, f"{name}: {key[0]} {key[1]}: as before")
        self.checks.same(new.psql("SHOW pg_arrow_cache.max_entry_size"), "64MB", f"{name}: ALTER SYSTEM is not carried over")

    def extension_goes_on(self, new, name):
        """The extension can be dropped, and made anew."""
        present = databases.PRESENT
        kept = facts.of(new, [present])[present, "functions"]
        new.psql("SET client_min_messages = error; DROP EXTENSION pg_arrow_cache CASCADE; CREATE EXTENSION pg_arrow_cache", present)
        self.checks.same(facts.of(new, [present])[present, "functions"], kept, f"{name}: the extension can be dropped and made anew")

    def fails(self, what, upgrade, expected, place, *options):
        said = upgrade.run(*options)
        self.checks.ok(upgrade.status != 0, f"{what}: pg_upgrade {' '.join(options)} fails", said)
        said_there = "\n".join(text for name, text in upgrade.logs.items() if re.fullmatch(place, name))
        self.checks.says(said_there, expected, f"{what}: pg_upgrade {' '.join(options)} writes in {place}: {expected}")
        return said

    def starts_again(self, old, what, question, answer):
        """The old cluster is what it was."""
        old.resume()
        self.checks.same(old.psql(question, databases.BARE), answer, f"{what}: the old cluster starts, and answers")
        old.pause()

    def no_crash(self, upgrade, what):
        for server in (upgrade.old, upgrade.new):
            logs = upgrade.said + (server.log.read_text(errors="replace") if server.log.exists() else "")
            self.checks.ok(not CRASH.search(logs), f"{what}: no process of {server.major} has crashed", logs[-3000:])

    def library_is_missing(self):
        """A cluster with the extension, and a new server that lacks the library in one way or another: --check finds it."""
        question = databases.QUESTIONS[0]
        answer = self.answers[databases.BARE, question]
        for what, preload, installed, expected, place in (
            ("not preloaded", "", True, NOT_PRELOADED, LIBRARIES),
            ("neither installed nor preloaded", "", False, f'could not load library "pg_arrow_cache": ERROR:  {NO_FILE}', LIBRARIES),
            ("preloaded and not installed", "pg_arrow_cache", False, f"FATAL:  {NO_FILE}", SERVER),
        ):
            with self.new(preload) as upgrade, without_extension(upgrade.new, really=not installed):
                said = self.fails(what, upgrade, expected, place, "--check")
                self.checks.ok(COMPATIBLE not in said, f"{what}: --check does not say that all is well", said)
                self.fails(what, upgrade, expected, place, "--link")
                self.no_crash(upgrade, what)
            self.starts_again(self.old, what, question, answer)

    def labels_alone(self, old):
        """A cluster in which policies are all that is left of the extension: --check does not look at them."""
        question, answer = "SELECT a FROM kept", "5"
        for what, installed, link in (("labels alone, not preloaded", True, ["--link"]), ("labels alone, not installed", False, [])):
            with self.new("", old) as upgrade, without_extension(upgrade.new, really=not installed):
                self.checks.says(upgrade.run("--check", *link), COMPATIBLE, f"{what}: --check finds nothing")
                self.checks.same(upgrade.status, 0, f"{what}: the status of --check")
                self.fails(what, upgrade, NO_PROVIDER, DUMPS, *link)
                self.no_crash(upgrade, what)
            self.starts_again(old, what, question, answer)
        what = "labels alone, preloaded and not installed"
        with self.new("pg_arrow_cache", old) as upgrade, without_extension(upgrade.new):
            self.fails(what, upgrade, f"FATAL:  {NO_FILE}", SERVER, "--check")
        # With the parameter on the command line, as with the one in postgresql.conf.
        what = "labels alone, preloaded by -O"
        with self.new("", old) as upgrade:
            upgrade.run("-O", "-c shared_preload_libraries=pg_arrow_cache", "--link")
            self.checks.same(upgrade.status, 0, f"{what}: pg_upgrade works")
            upgrade.new.resume()
            self.checks.same(upgrade.new.psql("SELECT objoid::regclass, label FROM pg_seclabel", databases.BARE), "kept|never", f"{what}: the label is there")
            upgrade.new.pause()


def main():
    old_major, new_major = sys.argv[1:]
    private.exit_on_sigterm()
    os.chdir("/")
    checks = Checks()
    with Server("labels", old_major) as old:
        databases.make_bare(old)
        old.pause()
        Test(checks, old, new_major).labels_alone(old)
    with Server("old", old_major) as old:
        test = Test(checks, old, new_major)
        databases.make(old)
        databases.hits(checks, old)
        test.remember()
        old.pause()
        test.library_is_missing()
        test.upgrade_works()
        question = databases.QUESTIONS[0]
        test.starts_again(old, "after copying", question, test.answers[databases.BARE, question])
        test.upgrade_works("--link")
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
