#!/usr/bin/env python3
"""Checks the layering rules of CONTRIBUTING.md over the sources below ROOT (default: this checkout).

    scripts/lint-layers.py [ROOT]

Prints `file:line: rule [key]` for every breach and fails if there is one. Comments and strings do not count.
"""

import re
import sys
from pathlib import Path

from kernel import BELOW, part_of

# From the top to the bottom: a room imports only rooms of later rows. Rooms of one row do not import each other.
SRC_ROOMS = ["lib", "hooks", "copy", "functions", "export", "fragments", "capture", "lookup", "verify", "serve", "report",
             "invalidation", "restart", "shmem", "files", "session", "query arrow", "settings", "pg", "error"]
CORE_ROOMS = ["lib", "cache formats sql_text result_digest", "replay", "versions", "hash", "known_relations prefetch room reserve shown",
              "atomics reason"]

MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_COLUMNS_OF_A_COMMENT = 400, 60, 120

# Name of the rule; where in src/ the code may stand; the code; what the rule says.
ONLY = [
    ("hook", r"src/hooks/", r"\b\w+_hook\s*=[^=]", "only src/hooks/ assigns hooks"),
    ("lock", r"src/shmem\b", r"\b(LWLock\w*|ShmemInitStruct|RequestAddinShmemSpace|ArenaPtr)\b",
     "only src/shmem.rs names LWLocks and raw pointers into the segment"),
    ("version", r"src/pg/compat\b", r'feature\s*=\s*"pg[0-9]+"', "only src/pg/compat depends on the server version"),
    ("setting", r"src/settings\b", r"\bGucSetting\b", "only src/settings.rs holds settings"),
    ("sqlstate", r"src/error\b", r"\b(PgSqlErrorCode|ERRCODE_[A-Z_]+)\b", "only src/error.rs names SQLSTATEs"),
    ("guard", r"src/error\b", r"\bpg_guard\b|(?<!!\()\bpg_sys::(?!(?:MemoryContextSwitchTo|GETSTRUCT|GetMemoryChunkContext|heap_getattr|list_length"
     r"|ExecClearTuple|slot_getallattrs)\b)\w+\(", "functions of the server are called through direct! or kept!"),
    ("extern", r"src/pg/", r'\bextern\s+"[^"]*"\s*\{', "only src/pg/ declares functions of the server"),
    ("local", r"$", r"\bthread_local!", "state of a backend is a Local (src/pg/backend_local.rs), never thread_local!"),
    ("room", r"$", r"\.try_reserve(_exact)?\(", "buffers grow through Room (core/src/room.rs)"),
    ("super", r"$", r"\bsuper::super\b", "a path that climbs twice starts at crate:: instead"),
]

NOT_CODE = re.compile(r"""//[^\n]* | /\*.*?\*/ | (?<!\w)[bc]?r(\#*)".*?"\1 | (?<!\w)[bc]?"(?:\\.|[^"\\])*"
                          | (?<!\w)b?'(?:\\.[^']*|[^'\\])'""", re.S | re.X)
USE = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]*);", re.M)


def blanked(text):
    return re.sub(r"[^\n]", " ", text)


def closing(code, at):
    """Where the brace that opens at `at` is closed."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(code)


def unfold(code, at, path, found):
    """Reads `a::{b, c::{d as e}}` from `at` on and appends (words, name in this file, position) of each leaf to `found`.
    Returns the position behind it."""
    at = re.compile(r"\s*").match(code, at).end()
    if code.startswith("{", at):
        at += 1
        while at < len(code):
            at = re.compile(r"[\s,]*").match(code, at).end()
            if code.startswith("}", at):
                return at + 1
            at = unfold(code, at, path, found)
        return at
    word = re.compile(r"\$?(\w+)").match(code, at)
    if word is None:    # a star, or the generics of a function
        found.append((path, None, at))
        return at + 1
    if word[1] != "self" or not path:
        path += (word[1],)
    if code.startswith("::", word.end()):
        return unfold(code, word.end() + 2, path, found)
    alias = re.compile(r"\s+as\s+(\w+)").match(code, word.end())
    found.append((path, alias[1] if alias else path[-1], word.start()))
    return (alias or word).end()


class Source:
    def __init__(self, root, name):
        self.name, raw = name, (root / name).read_text()
        self.lines = raw.split("\n")
        self.text = NOT_CODE.sub(lambda m: blanked(m[0]) if m[0].startswith("/") else m[0], raw)    # strings stay
        self.code = NOT_CODE.sub(lambda m: blanked(m[0]), raw)
        tree, _, rest = name.partition("src/")
        words = [word for word in rest.removesuffix(".rs").split("/") if word not in ("mod", "lib")]
        self.crate = {"": "src", "core/": "core"}.get(tree)     # None for the tests and the like beside core/src
        self.module, self.room = (self.crate, *words), words[0] if words else "lib"
        # Modules inside the file: (name, start, end).
        self.inner = [(m[1], m.start(), closing(self.code, m.end() - 1)) for m in re.finditer(r"\bmod\s+(\w+)\s*\{", self.code)]
        self.uses, self.imports = {}, []    # name: path, and (path, position); paths start with the name of the crate

    def line(self, at):
        return self.code.count("\n", 0, at) + 1

    def absolute(self, words, at, modules):
        """The path from its crate on, or None for one that leads elsewhere."""
        here = self.module + tuple(name for name, start, end in self.inner if start < at < end)
        if words[0] == "crate":
            return (self.crate, *words[1:])
        if words[0] == "arrow_cache_core":
            return ("core", *words[1:])
        if words[0] in ("self", "super"):
            while words and words[0] in ("self", "super"):
                here, words = here[:-1] if words[0] == "super" else here, words[1:]
            return here + words
        return self.module + words if self.module + words[:1] in modules else None

    def read_imports(self, modules):
        rest = self.code
        for statement in USE.finditer(self.code):
            leaves = []
            unfold(self.code, statement.start(1), (), leaves)
            for words, name, at in leaves:
                path = self.absolute(words, at, modules)
                if path is not None:
                    self.imports.append((path, at))
                    self.uses.setdefault(name, path)
            rest = rest[:statement.start()] + blanked(statement[0]) + rest[statement.end():]
        for first in re.finditer(r"(?<![\w:$.])\$?\w+::", rest):
            leaves = []
            unfold(rest, first.start(), (), leaves)
            self.imports += [(path, at) for words, _, at in leaves if (path := self.absolute(words, at, modules))]


def holder(path, modules, steps=8):
    """The file that holds what a path names, wherever a `use` leads to."""
    length = max(n for n in range(1, len(path) + 1) if path[:n] in modules)
    source, rest = modules[path[:length]], path[length:]
    onward = source.uses.get(rest[0]) if rest else None
    if onward is None or onward == path or steps == 0:
        return source
    return holder(onward + rest[1:], modules, steps - 1)


def check_order(source, modules, breach):
    rows = SRC_ROOMS if source.crate == "src" else CORE_ROOMS
    level = {name: row for row, names in enumerate(rows) for name in names.split()}
    if source.room not in level:
        breach(source, 1, f"room {source.room}", f"{source.room} is no room that scripts/lint-layers.py knows")
        return
    for path, at in source.imports:
        if path[0] == "core" and {"store", "Store"} & set(path) and source.room in ("arrow", "query"):
            breach(source, source.line(at), f"storage {source.room}", f"{source.room} knows no storage")
        if path[0] != source.crate or source.room == "lib":
            continue
        room = path[1] if path[:2] in modules and len(path) > 1 else "lib"
        if room == "lib" and source.crate == "core":    # its lib.rs gives names of other rooms away
            room = holder(path, modules).room
        if room != source.room and level.get(room, len(rows)) <= level[source.room]:
            rule = "nothing imports lib.rs" if room == "lib" else f"{source.room} does not import {room}"
            breach(source, source.line(at), f"order {source.room} {room}", rule)


def check_kernel(source, modules, breach):
    if part_of(source.name) is None:
        return
    for path, at in source.imports:
        name = holder(path, modules).name if path[0] == source.crate else source.name
        if part_of(name) is None and not name.startswith(tuple(BELOW)) and name != "core/src/lib.rs":
            breach(source, source.line(at), f"kernel {source.name}", f"the kernel of trust does not import {name}")


def check_circles(sources, modules, breach):
    """One breach for each set of files of a room that reach each other."""
    edges = {source: {} for source in sources}
    for source in sources:
        for path, at in source.imports:
            target = holder(path, modules) if path[0] == source.crate else source
            if target is not source and target.room == source.room != "lib":
                edges[source].setdefault(target, at)
    reach = {}
    for source in sources:
        reach[source], ends = set(), [source]
        while ends:
            new = set(edges[ends.pop()]) - reach[source]
            reach[source] |= new
            ends += new
    for source in sources:
        circle = [other for other in sources if other in reach[source] and source in reach[other]]
        if circle and source is circle[0]:
            steps = [(one, one.line(at), target) for one in circle for target, at in edges[one].items() if target in circle]
            breach(source, steps[0][1], f"circle {source.crate} {source.room}", f"{len(circle)} files import each other: " +
                   ", ".join(f"{one.name}:{line} {target.name.rsplit('/', 1)[1]}" for one, line, target in steps))


def check_comments(source, breach):
    """Comments on lines of their own, but for rows of tables: they keep to a width, and state instead of asking."""
    for number, line in enumerate(source.lines, 1):
        if re.match(r"\s*//(?![/!] \|)", line):
            if len(line) > MOST_COLUMNS_OF_A_COMMENT:
                breach(source, number, f"width {source.name}", f"{len(line)} columns, at most {MOST_COLUMNS_OF_A_COMMENT} in a comment")
            if re.search(r"//[/!] .*\?$", line):
                breach(source, number, f"question {source.name}", "a comment states (“Returns true if …”), and does not ask")


def check_lengths(source, breach):
    lines = [number for number, line in enumerate(source.text.split("\n"), 1) if line.strip()]
    if len(lines) > MOST_LINES:
        breach(source, lines[MOST_LINES], f"lines {source.name}", f"{len(lines)} lines of code, at most {MOST_LINES}")
    for function in re.finditer(r"\bfn\s+(\$?\w+)", source.code if source.crate else ""):
        after = (m for m in re.compile(r"\[[^\]]*\]|[;{]").finditer(source.code, function.end()) if m[0] in ";{")
        opened = next(after, None)
        if opened is not None and opened[0] == "{":
            first, last = source.line(function.start()), source.line(closing(source.code, opened.start()))
            if last - first >= MOST_LINES_OF_A_FUNCTION:
                breach(source, first, f"long {source.room} {function[1]}",
                       f"fn {function[1]} has {last - first + 1} lines, at most {MOST_LINES_OF_A_FUNCTION}")


def check_code(source, breach):
    for name, where, what, rule in ONLY if source.crate == "src" else ():
        if not re.match(where, source.name):
            for found in re.finditer(what, source.text if '"' in what else source.code):
                breach(source, source.line(found.start()), f"{name} {source.room}", rule)
    if source.name.startswith("core/"):
        for found in re.finditer(r"\bpgrx\b", source.code):
            breach(source, source.line(found.start()), f"server {source.name}", "core knows no PostgreSQL")


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    if not (root / "src").is_dir() or not (root / "core" / "src").is_dir():
        sys.exit(f"lint-layers: {root} has no src/ and core/src/")
    names = [path.relative_to(root).as_posix() for part in ("src", "core") for path in sorted((root / part).rglob("*.rs"))]
    sources = [Source(root, name) for name in names if "/target/" not in name]
    housed = [source for source in sources if source.crate]
    modules = {source.module: source for source in housed}
    breaches = []

    def breach(source, line, key, rule):
        breaches.append((source if isinstance(source, str) else source.name, line, rule, key))

    for source in housed:
        source.read_imports(modules)
    for source in sources:
        check_code(source, breach)
        check_lengths(source, breach)
        check_comments(source, breach)
    for source in housed:
        check_order(source, modules, breach)
        check_kernel(source, modules, breach)
    check_circles(housed, modules, breach)
    for number, line in enumerate((root / "core" / "Cargo.toml").read_text().split("\n"), 1):
        if re.match(r"[^#]*\bpgrx", line):
            breach("core/Cargo.toml", number, "server core/Cargo.toml", "core knows no PostgreSQL")

    shown = sorted(set(breaches))
    for name, line, rule, key in shown:
        print(f"{name}:{line}: {rule} [{key}]")
    if shown:
        sys.exit(1)
    print(f"lint-layers: {len(sources)} files keep the layering rules")


if __name__ == "__main__":
    main()
