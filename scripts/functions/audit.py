#!/usr/bin/env python3
"""Which built-in functions read settings, and which read state that no result rests on: asked of the server's own code.

    scripts/functions/audit.py                 writes the files in src/query/function_table
    scripts/functions/audit.py --check         compares them instead; status 1 if they would be others
    scripts/functions/audit.py --why NAME ...  what functions reach, and by which calls; without names, all that are not clean
    scripts/functions/audit.py --ends          what each entry of cuts.py stands for in each version

A function that is marked IMMUTABLE is clean if nothing that can be reached from its code depends on more than its arguments and
definitions whose change outdates results. That is shown by the relocations of the compiled server (objects.py), which cannot leave
out a call; where the walk ends, and why it may, stands in cuts.py. Whatever cannot be explained makes a function one that is not
clean. Reading a setting is allowed if it is in the key (src/query/present_settings.rs, environment.rs); anything else is refused.

A row is made from all versions together: clean is what is clean in every version that has it. Properties that were given by hand
stay in its row. The sources, 70 MB, are fetched from
Debian's archive and compiled once, in target/functions; `scripts/setup.sh audit` installs what that needs.
"""

import argparse
import fnmatch
import re
import sys

import cuts
import procs
import settings
from analysis import Analysis
from build import RELEASES, ROOT, Server

ROWS = ROOT / "src/query/function_table/rows.rs"
CLEAN_ALONE = ROOT / "src/query/function_table/generated_clean.rs"
ROW = re.compile(r"^    \((\d+), ([A-Z_ |]+)\),", re.MULTILINE)
# The properties that are found here.
CLEAN, READING = "CLEAN", "READING"
# Those by which functions are accepted that are not marked IMMUTABLE.
ACCEPTING = {"SETTINGS", "SEARCHING", "OUTPUT", "OUTPUT_THOUGH_IMMUTABLE"}
TYPES = ROOT / "src/query/types.rs"
IN_KEY = [ROOT / "src/query/environment.rs", ROOT / "src/query/present_settings.rs"]
IMMUTABLE = "i"
# Where these files have a setting by another name than that of its variable.
IN_KEY_AS = {"TimeZone": "timezone_name", "timezone_abbreviations": "timezone_abbreviations", "DateStyle": "DateStyle"}
WIDTH = 120


class Version:
    """The functions of one version and what they reach."""

    def __init__(self, major):
        self.server = Server(ROOT / "target/functions", major)
        self.catalog = procs.Catalog(self.server.tree, types_of_catalogs())
        self.settings = settings.read(self.server.program)
        self.analysis = Analysis(self.server.program, {setting.variable: setting.name for setting in self.settings}, self.catalog)
        text = "".join(file.read_text() for file in IN_KEY)
        self.in_key = {setting.name for setting in self.settings
                       if re.search(rf"\b{IN_KEY_AS.get(setting.name, setting.variable.name)}\b", text)}
        self.harmless = {setting.name for setting in self.settings if setting.fixed} | set(cuts.HARMLESS)

    def judge(self, function):
        """What a function reads: settings in the key, and what is neither in the key nor covered by definitions."""
        reach = self.analysis.reach(function)
        read = {name: way for name, way in reach.settings.items() if name not in self.harmless}
        uncovered = {f"setting {name}": way for name, way in read.items() if name not in self.in_key} | reach.state
        return {name: way for name, way in read.items() if name in self.in_key}, uncovered


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--why", nargs="*", metavar="NAME")
    parser.add_argument("--ends", action="store_true")
    arguments = parser.parse_args()
    versions = [Version(major) for major in RELEASES]
    if arguments.why is not None:
        return explain(versions, arguments.why)
    if arguments.ends:
        return show_ends(versions)
    mistakes = [*superfluous(versions), *mistakes_in_rows(versions)]
    for file, text in generated(versions).items():
        if not arguments.check:
            file.write_text(text)
        elif file.read_text() != text:
            mistakes.append(f"{file.relative_to(ROOT)} is not what this program writes")
    for mistake in mistakes:
        print(mistake)
    return 1 if mistakes else 0


# -- what is written

def generated(versions):
    """The text of each file."""
    by_hand = properties_by_hand()
    names, clean, read = {}, {}, {}
    for version in versions:
        for function in version.catalog.functions:
            oid = function.oid
            names.setdefault(oid, str(function))
            if function.volatility == IMMUTABLE:
                settings_read, uncovered = version.judge(function)
                clean[oid] = clean.get(oid, True) and not settings_read and not uncovered
                read.setdefault(oid, set()).update(settings_read, ["", *uncovered] if uncovered else [])
            accepted = function.volatility == IMMUTABLE or ACCEPTING.intersection(by_hand.get(oid, ()))
            if accepted and function.kind != "a" and not receives(function) and version.analysis.reach(function).receiving:
                # What another process has gathered is read as if a client had sent it.
                clean[oid] = False
                read.setdefault(oid, set()).add("client_encoding")
    # What is not covered has an empty name among what it reads.
    found = {CLEAN: {oid for oid in clean if clean[oid]}, READING: {oid for oid in read if read[oid] and "" not in read[oid]}}
    rows = {oid: [name for name in found if oid in found[name]] + by_hand.get(oid, []) for oid in sorted({*by_hand}.union(*found.values()))}
    return {ROWS: text_of_rows({oid: row for oid, row in rows.items() if row != [CLEAN]}, names, read),
            CLEAN_ALONE: text_of_clean([oid for oid, row in rows.items() if row == [CLEAN]], versions)}


def text_of_rows(rows, names, read):
    lines = ["//! The properties of functions. Those that are given by hand are edited here; all else is written by",
             "//! scripts/functions/audit.py.",
             "",
             "use super::properties::*;",
             "",
             "#[rustfmt::skip]",
             "pub(super) const FUNCTIONS: &[(u32, u32)] = &["]
    for oid, row in rows.items():
        settings_read = f": {', '.join(sorted(read[oid])[:3])}" if READING in row else ""
        lines.append(f"    ({oid}, {' | '.join(row)}), // {names.get(oid, 'no function')}{settings_read}")
    return "\n".join([*lines, "];", ""])


def text_of_clean(oids, versions):
    names = ", ".join(version.server.version for version in versions)
    lines = ["//! The functions that are `CLEAN` and have no other property. Written by scripts/functions/audit.py from the sources of",
             f"//! PostgreSQL {names} (no other major version is in Debian's archive). Not to be edited.",
             "",
             "#[rustfmt::skip]",
             "pub(super) const NOTHING_ELSE: &[u32] = &["]
    line = "   "
    for oid in oids:
        if len(line) + len(str(oid)) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {oid},"
    return "\n".join([*lines, line, "];", ""])


def properties_by_hand():
    """What rows.rs says of each function that is not found here."""
    text = ROWS.read_text()
    rows = {int(oid): names.split(" | ") for oid, names in ROW.findall(text)}
    if len(rows) != text.count("\n    ("):
        sys.exit(f"{ROWS.relative_to(ROOT)} has a row that is not understood, or two of a function")
    by_hand = {oid: [name for name in row if name not in (CLEAN, READING)] for oid, row in rows.items()}
    return {oid: row for oid, row in by_hand.items() if row}


def receives(function):
    """Is it a type's receive function, which is there for what clients send?"""
    return function.arguments[:1] == ["internal"] and function.result != "internal"


def types_of_catalogs():
    """Those whose values nothing may show unseen, because their output reads catalogs."""
    numbers = re.search(r"const CATALOG_DEPENDENT: &\[u32\] = &\[(.*?)\]", TYPES.read_text(), re.DOTALL)[1]
    return {int(number) for number in re.findall(r"\d+", numbers)}


def callable_by_users(function):
    return "internal" not in (*function.arguments, function.result) and function.language in ("internal", "sql")


# -- what may be wrong

def superfluous(versions):
    """Entries of cuts.py that stand for nothing in any version."""
    for lists in zip(*(version.analysis.lists() for version in versions)):
        unused = set.intersection(*({pattern for pattern, found in names.stand_for(version.server.program.nodes).items() if not found}
                                    for names, version in zip(lists, versions)))
        yield from (f"cuts.py names {pattern}, which no version has" for pattern in sorted(unused))
    for caller, callee, _, _ in cuts.STEPS:
        if not any(fnmatch.filter([target.name for node in version.server.program.named(caller) for target in node.edges], callee)
                   for version in versions):
            yield f"cuts.py has a step from {caller} to {callee}, which no version takes"


def mistakes_in_rows(versions):
    """What is wrong in rows.rs: numbers of no function, and functions that read more than the key holds."""
    by_hand = properties_by_hand()
    known = {oid for version in versions for oid in version.catalog.by_oid}
    yield from (f"rows.rs has {oid}, which no version has" for oid in sorted({*by_hand} - known))
    for version in versions:
        for oid in (oid for oid, row in by_hand.items() if ACCEPTING.intersection(row)):
            function = version.catalog.by_oid.get(oid)
            if function is None:
                continue
            _, uncovered = version.judge(function)
            unexplained = sorted(name for name in uncovered if name not in cuts.JUDGED_OTHERWISE)
            if unexplained:
                yield (f"{version.server.version}: rows.rs accepts {oid} {function}, which reads {', '.join(unexplained[:3])}: "
                       f"{uncovered[unexplained[0]]}")
        for name in sorted(set(cuts.IMPLIED.values())):
            reach = version.analysis.implied(name)
            # What compares is called where no tree shows it, and so must read no setting at all.
            allowed = version.harmless | (version.in_key if name == "output" else set())
            for found in [*(setting for setting in reach.settings if setting not in allowed), *reach.state]:
                if found not in cuts.JUDGED_OTHERWISE:
                    yield f"{version.server.version}: {name} read {found}: {reach.settings.get(found) or reach.state[found]}"


# -- what is shown

def explain(versions, names):
    for version in versions:
        print(f"PostgreSQL {version.server.version}")
        for function in version.catalog.functions:
            wanted = function.name in names if names else function.volatility == IMMUTABLE and callable_by_users(function)
            if not wanted:
                continue
            read, uncovered = version.judge(function)
            if read or uncovered or names:
                print(f"  {function.oid} {function}")
            for what, found in (("setting", read), ("UNCOVERED", uncovered)):
                for name, way in sorted(found.items()):
                    print(f"    {what} {name}: {way}")
            if names:
                for name, way in sorted(version.analysis.reach(function).definitions.items()):
                    print(f"    definitions {name}: {way}")
    return 0


def show_ends(versions):
    for version in versions:
        print(f"PostgreSQL {version.server.version}")
        for names in version.analysis.lists():
            for pattern, found in names.stand_for(version.server.program.nodes).items():
                print(f"  {pattern}: {' '.join(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
