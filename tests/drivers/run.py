#!/usr/bin/env python3
"""Reads a dashboard with relative dates through real drivers, and pages of tools that make their SQL themselves: is every statement a
hit the second time, with the values that executing it gives? Run by `make test-drivers`.

    tests/drivers/run.py [--literal-dates] [--log] [--write] [DRIVER…]

A mode passes if each statement was one hit in every run but the first, but for those that tools.py calls refused, and all its rows were
equal to those of a role for which the cache is off. `--literal-dates` writes literals in the place of what reads the clock; `--log`
keeps what each driver has sent in `target/drivers/NAME, MODE.log`; `--write` puts the results of all tools into docs/tools/README.md.
The status is 0 if nothing failed, 69 if nothing failed and something could not be run, else 1.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from urllib.parse import quote_plus, unquote_plus

import examples
import modes
import tools
from server import CACHED, DATABASE, UNCACHED, Pooler, Server, private

UNAVAILABLE = 69
TABLE, BEGIN, END = private.ROOT / "docs" / "tools" / "README.md", "<!-- made by tests/drivers/run.py -->", "<!-- end -->"
ANSWER_TIMEOUT_S = 300
STARTED = time.monotonic()


def progress(text):
    print(f"[{time.monotonic() - STARTED:4.0f} s] {text}", file=sys.stderr, flush=True)


class ReadFailed(Exception):
    pass


class Program:
    """A reading program with one connection. programs/talk.py describes what is said."""

    def __init__(self, driver, mode, address, user, password, literal):
        environment = {**os.environ, "LITERAL_DATES": "1" if literal else "0", "TZ": "UTC"}
        self.process = subprocess.Popen(driver.command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.ask("open", mode.name, address.host, address.port, DATABASE, user, password)

    def ask(self, *words):
        """The rows of the answer, whose fields stay as they were written."""
        # A program that hangs is ended, which ends its answer.
        watch = threading.Timer(ANSWER_TIMEOUT_S, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(" ".join(quote_plus(str(word)) for word in words) + "\n")
            self.process.stdin.flush()
            rows = []
            for line in self.process.stdout:
                kind, _, rest = line.rstrip("\n").partition(" ")
                if kind == "done":
                    return rows
                if kind == "failed":
                    raise ReadFailed(unquote_plus(rest))
                rows.append(rest)
            raise ReadFailed(f"{self.process.args[0]} gave no answer to {words[0]}")
        except BrokenPipeError:
            raise ReadFailed(f"{self.process.args[0]} has ended") from None
        finally:
            watch.cancel()

    def close(self):
        try:
            self.ask("close")
        except ReadFailed:
            pass    # what it has read is compared already
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Outcome:
    def __init__(self, panels, runs, equal, notes):
        """`runs`: how many panels of each run were hits."""
        self.statements = sum(panel.refused is None for panel in panels)
        self.refused = [panel.refused for panel in panels if panel.refused]
        self.runs, self.equal, self.notes = runs, equal, notes

    @property
    def passed(self):
        return self.equal and not self.notes and all(hits == self.statements for hits in self.runs[1:])


class Test:
    def __init__(self, server, pooler, literal, log):
        self.server, self.pooler, self.literal, self.log = server, pooler, literal, log

    def clock(self, expression):
        """What stands in the place of an expression that reads the clock: itself, or what it is now."""
        return self.server.value(f"SELECT format('%L::%s', {expression}, pg_typeof({expression}))") if self.literal else f"({expression})"

    def statements(self, driver, mode):
        """Panel → what the program is asked to read."""
        return {panel: [panel.text(driver.placeholder, self.clock) or panel.name, *panel.parameters]
                for panel in driver.panels if panel.read_by(mode)}

    def program(self, driver, mode, user):
        address = self.pooler.address if mode.pooled else self.server.address
        return Program(driver, mode, address, user, self.server.password, self.literal)

    def run(self, driver, mode):
        """Once more if midnight has passed meanwhile: the answers are then others."""
        while True:
            day = self.server.value("SELECT current_date")
            outcome = self.run_once(driver, mode)
            if day == self.server.value("SELECT current_date"):
                return outcome

    def run_once(self, driver, mode):
        self.server.value("SELECT arrow_cache.flush()")
        statements = self.statements(driver, mode)
        expected, notes = self.expected(driver, mode, statements), {}
        program = self.program(driver, mode, CACHED)
        runs, equal = [], True
        try:
            for number in range(1, mode.runs + 1):
                hits = 0
                for panel, words in statements.items():
                    before = self.server.counters()
                    rows = program.ask("read", *words)
                    done = self.server.counters().since(before)
                    answered = panel.answered(done)
                    hits += answered and panel.refused is None
                    if number > 1 and not answered:
                        why = " ".join(sorted(done.reasons)) or "no reason"
                        notes.setdefault(f"run {number}: {done.hits} hits, {done.misses} misses, {why}", []).append(panel.name)
                    if rows != expected[panel]:
                        equal = False
                        notes.setdefault(f"run {number}: other rows than without the cache", []).append(panel.name)
                runs.append(hits)
        finally:
            program.close()
        return Outcome(statements, runs, equal, [f"{what}: {', '.join(names)}" for what, names in notes.items()])

    def expected(self, driver, mode, statements):
        """Panel → rows, as a role gets them for which the cache is off."""
        program = self.program(driver, mode, UNCACHED)
        try:
            before = self.server.counters()
            rows = {panel: program.ask("read", *words) for panel, words in statements.items()}
            if self.server.counters().since(before).hits:
                raise ReadFailed("a role for which the cache is off had a hit")
        finally:
            program.close()
        # The data reach to the present day, so that a reader without rows has read nothing.
        empty = [panel.name for panel in rows if not rows[panel]]
        if empty:
            raise ReadFailed(f"no rows: {', '.join(empty)}")
        return rows


def table(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    for number, line in enumerate(lines):
        print("  " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        if number == 0:
            print("  " + "-|-".join("-" * width for width in widths))


def attempt(test, driver, mode):
    """(line of the table, notes, passed); passed is None for what cannot be run."""
    name = [driver.name + (", PgBouncer" if mode.pooled else ""), mode.name]
    missing = driver.missing()
    if missing is None and mode.pooled and test.pooler is None:
        missing = "PgBouncer is missing: see what scripts/setup.sh drivers says"
    if missing is not None:
        return [*name, "", "", "NOT RUN"], [missing], None
    progress(f"{name[0]}: {name[1]}")
    try:
        with test.server.logged(f"{driver.name}, {mode.name}" if test.log else None):
            outcome = test.run(driver, mode)
    except ReadFailed as error:
        return [*name, "", "", "FAILED"], [str(error)], False
    hits = f"{outcome.runs[1]} of {outcome.statements}"
    later = sum(outcome.runs[2:])
    if later > 0:
        hits += f", later {later} of {outcome.statements * (mode.runs - 2)}"
    if outcome.refused:
        hits += f"; refused: {', '.join(sorted(outcome.refused))}"
    return [*name, str(outcome.statements), hits, "yes" if outcome.equal else "NO"], outcome.notes, outcome.passed


def read_all(test, chosen):
    """[(line, notes, passed)] of all modes of the chosen drivers."""
    return [attempt(test, driver, mode) for driver in chosen for mode in driver.modes]


def report(results):
    print()
    table([["driver", "mode", "panels", "hits at the second run", "values equal"], *(line for line, _, _ in results)])
    for line, notes, _ in results:
        if notes:
            print(f"\n  {line[0]}, {line[1]}:")
            print("\n".join(f"    {note}" for note in notes))
    not_run = [f"{line[0]} {line[1]}" for line, _, passed in results if passed is None]
    if not_run:
        print(f"\nNOT RUN: {'; '.join(not_run)}")
    passed, failed = [sum(1 for result in results if result[2] is wanted) for wanted in (True, False)]
    print(f"\n{passed} passed, {failed} failed")
    sys.exit(1 if failed else UNAVAILABLE if not_run else 0)


def write(results):
    """The table of docs/tools/README.md, which is that of all tools."""
    lines = {}
    for line, notes, passed in results:
        lines.setdefault(line[0], []).append((line, passed))
    rows = ["| tool | version | mode | pages | hits |", "|---|---|---|---|---|"]
    for tool in tools.TOOLS:
        for line, passed in lines.get(tool.name, []):
            if not passed:
                sys.exit(f"{tool.name} has not passed, so {TABLE.name} stays as it is")
            rows.append(f"| [{tool.name}]({tool.page}.md) | {tool.version} | {line[1]} | {line[2]} | {line[3]} |")
    before, begin, _, end, after = re.split(f"({re.escape(BEGIN)})(.*?)({re.escape(END)})", TABLE.read_text(), flags=re.DOTALL)
    TABLE.write_text("\n".join([before + begin, *rows, end + after]))


def main():
    drivers = [*modes.DRIVERS, *tools.TOOLS, *examples.EXAMPLES]
    names = [driver.name for driver in drivers]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--literal-dates", "--log", "--write"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=", ".join(names))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.drivers if name not in names]
    if unknown:
        parser.error(f"no such driver: {' '.join(unknown)}; there are {' '.join(names)}")
    chosen = [driver for driver in drivers if not arguments.drivers or driver.name in arguments.drivers]
    private.exit_on_sigterm()
    with Server(progress) as server:
        with Pooler(server) if Pooler.there() else contextlib.nullcontext() as pooler:
            results = read_all(Test(server, pooler, arguments.literal_dates, arguments.log), chosen)
    if arguments.write:
        write(results)
    report(results)


if __name__ == "__main__":
    main()
