"""The objects of a PostgreSQL server, compiled so that they can be read by objects.py.

Without optimization: each call stands where the source has it. Without jump tables, which all functions of a file would share.
What raises or reports is left out by the compiler: see cuts.INVISIBLE.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import cuts
from objects import Program

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/postgres"))
import source  # noqa: E402  (the tests fetch sources as well)

# The release of Debian that has a major version.
RELEASES = {15: "bookworm", 17: "trixie", 18: "forky"}
COMPILER_FLAGS = "-O0 -ffunction-sections -fdata-sections -fno-jump-tables -fno-common -w"
# What Debian's packages have of what shows in results; messages are not translated, but are asked for.
OPTIONS = ["--with-icu", "--with-libxml", "--enable-nls", "--without-readline", "--without-zlib"]
PATCHED = "patched-for-audit"
BUILT = "built"
REPORTS = """
/* Reporting is no part of what is looked at. */
extern int audit_report(int elevel);
#undef ereport_domain
#define ereport_domain(elevel, domain, ...) audit_report(elevel)
#undef errsave_domain
#define errsave_domain(context, domain, ...) audit_report(0)
"""
# Libraries that built-in functions call through the catalogs: conversions of encodings, and the stemmer.
LOADED = ("src/backend/utils/mb/conversion_procs", "src/backend/snowball")
# Libraries in the backend's tree that they do not call.
OTHERS = ("libpqwalreceiver", "pgoutput")


class Server:
    """One version: its name, its source and its program."""

    def __init__(self, directory, major):
        self.version, self.tree = source.fetch_tree(directory / str(major), major, RELEASES[major])
        self.version = self.version.split("-")[0]
        build = self.tree.parent.parent / "build"
        if not (build / BUILT).exists():
            print(f"compiling PostgreSQL {self.version}, which takes some minutes", flush=True)
            patch(self.tree)
            compile_objects(self.tree, build)
            (build / BUILT).touch()
        self.program = Program()
        for path in objects(build):
            self.program.add(path, str(path.relative_to(build)))
        self.program.link()


def patch(tree):
    if (tree / PATCHED).exists():
        return
    append(tree / "src/include/utils/elog.h", REPORTS)
    for files, header, declaration, pattern, replacement, _ in cuts.NARROWED:
        append(tree / header, declaration)
        count = 0
        for path in tree.glob(files):
            text, times = re.subn(pattern, replacement, path.read_text(errors="surrogateescape"))
            if times:
                path.write_text(text, errors="surrogateescape")
            count += times
        if count == 0:
            raise RuntimeError(f"nothing in {files} is like {pattern}")
    (tree / PATCHED).touch()


def append(header, text):
    """Adds to a header, inside of its guard."""
    before, end, after = header.read_text().rpartition("#endif")
    header.write_text(f"{before}{text}\n{end}{after}")


def compile_objects(tree, build):
    build.mkdir(exist_ok=True)
    run([tree / "configure", "--quiet", *OPTIONS, f"CFLAGS={COMPILER_FLAGS}"], build, MSGFMT="/bin/true")
    jobs = f"-j{os.cpu_count()}"
    run(["make", "-s", jobs, "-C", "src/backend", "generated-headers"], build)
    # Objects only: the last step, which would link them, misses what was patched in.
    for directory in ("src/backend", *LOADED):
        subprocess.run(["make", "-s", "-k", jobs, "-C", directory], cwd=build, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    listed = (build / "src/backend").glob("**/objfiles.txt")
    missing = [name for path in listed for name in path.read_text().split() if name.endswith(".o") and not (build / name).exists()]
    missing += [directory for directory in LOADED if not list((build / directory).glob("**/*.o"))]
    if missing:
        raise RuntimeError(f"these did not compile: {', '.join(missing)}")


def run(command, directory, **environment):
    done = subprocess.run([str(part) for part in command], cwd=directory, env={**os.environ, **environment}, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout[-2000:]}\nHas scripts/setup.sh audit been run?")


def objects(build):
    found = [*build.glob("src/backend/**/*.o"), *build.glob("src/timezone/*.o"),
             *build.glob("src/common/*_srv.o"), *build.glob("src/port/*_srv.o")]
    return sorted(path for path in found if not any(part in OTHERS for part in path.parts))
