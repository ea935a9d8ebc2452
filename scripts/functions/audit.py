#!/usr/bin/env python3
"""Which built-in functions read settings, and which read state that no result rests on: asked of the server's own code.

    scripts/functions/audit.py                 writes src/query/volatility/immutable.rs
    scripts/functions/audit.py --check         compares it instead; status 1 if it would be another
    scripts/functions/audit.py --why NAME ...  what functions reach, and by which calls; without names, all that are not clean
    scripts/functions/audit.py --ends          what each entry of cuts.py stands for in each version

A function that is marked IMMUTABLE is clean if nothing that can be reached from its code depends on more than its arguments and
definitions whose change outdates results. That is shown by the relocations of the compiled server (objects.py), which cannot leave
out a call; where the walk ends, and why it may, stands in cuts.py. Whatever cannot be explained makes a function one that is not
clean. Reading a setting is allowed if src/query/environment.rs has it in the key; anything else is refused.

A list is made from all versions together: clean is what is clean in every version that has it. The sources, 70 MB, are fetched from
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

FILE = ROOT / "src/query/volatility/immutable.rs"
LISTS = ROOT / "src/query/volatility/stable.rs"
RECEIVERS = ROOT / "src/query/volatility/mod.rs"
TYPES = ROOT / "src/query/types.rs"
ENVIRONMENT = ROOT / "src/query/environment.rs"
IMMUTABLE = "i"
# Where environment.rs has a setting by another name than that of its variable.
IN_KEY_AS = {"TimeZone": "timezone_name", "timezone_abbreviations": "timezone_abbreviations", "DateStyle": "DateStyle"}
WIDTH = 130


class Version:
    """The functions of one version and what they reach."""

    def __init__(self, major):
        self.server = Server(ROOT / "target/functions", major)
        self.catalog = procs.Catalog(self.server.tree, types_of_catalogs())
        self.settings = settings.read(self.server.program)
        self.analysis = Analysis(self.server.program, {setting.variable: setting.name for setting in self.settings}, self.catalog)
        text = ENVIRONMENT.read_text()
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
    mistakes = [*superfluous(versions), *mistakes_in_lists(versions), *mistakes_in_receivers(versions)]
    text = generated(versions)
    if arguments.check:
        if not FILE.exists() or FILE.read_text() != text:
            mistakes.append(f"{FILE.relative_to(ROOT)} is not what this program writes")
    else:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(text)
    for mistake in mistakes:
        print(mistake)
    return 1 if mistakes else 0


# -- what is written

def generated(versions):
    clean, reading, refused, listed = {}, {}, {}, listed_functions()
    for version in versions:
        for function in version.catalog.functions:
            if function.volatility != IMMUTABLE:
                continue
            read, uncovered = version.judge(function)
            clean[function.oid] = clean.get(function.oid, True) and not read and not uncovered
            known = reading.setdefault(function.oid, (str(function), set(), set()))
            known[1].update(read)
            known[2].update(uncovered)
            if uncovered and callable_by_users(function) and function.oid not in listed:
                refused[function.oid] = f"{function}: {', '.join(sorted(uncovered)[:2])}"
    oids = [str(oid) for oid in sorted(oid for oid, is_clean in clean.items() if is_clean)]
    names = ", ".join(version.server.version for version in versions)
    lines = [f"//! Which built-in functions that are marked IMMUTABLE are so. Written by scripts/functions/audit.py from the sources of",
             f"//! PostgreSQL {names} (no other major version is in Debian's archive). Not to be edited: a function that is on",
             "//! no list is refused.",
             "",
             "/// Those that depend on their arguments alone, and on definitions whose change outdates results, in each version that has",
             "/// them. Ascending.",
             "#[rustfmt::skip]",
             "pub const CLEAN: &[u32] = &["]
    line = "   "
    for oid in oids:
        if len(line) + len(oid) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {oid},"
    lines += [line, "];", "",
              "/// Those that read settings in the key and nothing else. Ascending.",
              "#[rustfmt::skip]",
              "pub const READING: &[u32] = &["]
    lines += [f"    {oid}, // {function}: {', '.join(sorted(read)[:3])}" for oid, (function, read, uncovered) in sorted(reading.items())
              if read and not uncovered]
    lines += ["];", "",
              "/// Those that read what neither the key nor a definition covers. Ascending.",
              "#[rustfmt::skip]",
              "pub const UNCOVERED: &[u32] = &["]
    lines += [f"    {oid}, // {reason}" for oid, reason in sorted(refused.items())]
    return "\n".join([*lines, "];", ""])


def listed_functions():
    """Those that stable.rs accepts."""
    return {int(number) for number in re.findall(r"^    (\d+), // ", LISTS.read_text(), re.MULTILINE)}


def listed_receivers():
    """Those that volatility/mod.rs says read what a client might send."""
    numbers = re.search(r"const RECEIVING: &\[u32\] = &\[(.*?)\];", RECEIVERS.read_text(), re.DOTALL)[1]
    return {int(number) for number in re.findall(r"^\s*(\d+), //", numbers, re.MULTILINE)}


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


def mistakes_in_lists(versions):
    """What is wrong with the lists of stable.rs: functions that read more than the key holds."""
    for version in versions:
        for oid in sorted(listed_functions()):
            function = version.catalog.by_oid.get(oid)
            if function is None:
                continue
            _, uncovered = version.judge(function)
            unexplained = sorted(name for name in uncovered if name not in cuts.JUDGED_OTHERWISE)
            if unexplained:
                yield (f"{version.server.version}: stable.rs accepts {oid} {function}, which reads {', '.join(unexplained[:3])}: "
                       f"{uncovered[unexplained[0]]}")
        for name in sorted(set(cuts.IMPLIED.values())):
            reach = version.analysis.implied(name)
            # What compares is called where no tree shows it, and so must read no setting at all.
            allowed = version.harmless | (version.in_key if name == "output" else set())
            for found in [*(setting for setting in reach.settings if setting not in allowed), *reach.state]:
                if found not in cuts.JUDGED_OTHERWISE:
                    yield f"{version.server.version}: {name} read {found}: {reach.settings.get(found) or reach.state[found]}"


def mistakes_in_receivers(versions):
    """Accepted functions that read a value as if a client had sent it, and that volatility/mod.rs does not name; and the other way round."""
    listed, found = listed_receivers(), set()
    for version in versions:
        for function in version.catalog.functions:
            accepted = (function.volatility == IMMUTABLE or function.oid in listed_functions()) and not receives(function)
            ways = version.analysis.reach(function).receiving if accepted and function.kind != "a" else {}
            if ways:
                found.add(function.oid)
            if ways and function.oid not in listed:
                yield f"{version.server.version}: {function.oid} {function} is not among RECEIVING: {next(iter(ways.values()))}"
    yield from (f"RECEIVING names {oid}, which reads nothing in this way" for oid in sorted(listed - found))


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
