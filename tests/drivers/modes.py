"""Which drivers are read with, in which modes, and what each of them needs."""

import shutil
import sys
from pathlib import Path

from dashboard import DJANGO_PANELS, PANELS

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"
PREPARED = ROOT / "target" / "drivers"    # what prepare.sh has made

# A driver gives a statement a name after some executions, and the server makes a plan for all values after five more.
UNTIL_GENERIC = 12


class Mode:
    def __init__(self, name, runs=2, one_row=False, cursor=False, pooled=False):
        """`runs` through the dashboard, all of which but the first must hit; `one_row`: the reader asks for one row, so it reads
        only the panels that have no more; `cursor`: it reads by way of cursors or named portals; `pooled`: through PgBouncer."""
        self.name, self.runs, self.one_row, self.cursor, self.pooled = name, runs, one_row, cursor, pooled


class Driver:
    def __init__(self, name, command, needs, placeholder, modes, panels=PANELS):
        """`needs`: patterns of files without which the program cannot run; `panels`: what it reads."""
        self.name, self.command, self.needs = name, [str(word) for word in command], [Path(need) for need in needs]
        self.placeholder, self.modes, self.panels = placeholder, modes, panels

    def missing(self):
        """What stands in the way of running, or None."""
        if shutil.which(self.command[0]) is None:
            return f"{self.command[0]} is missing"
        lacking = [str(need) for need in self.needs if not any(need.parent.glob(need.name))]
        return f"{' '.join(lacking)} is missing: see what scripts/setup.sh drivers says" if lacking else None


def python(name, placeholder, modes, package, program, panels=PANELS):
    venv = PREPARED / "venv"
    return Driver(name, [venv / "bin" / "python", "-B", PROGRAMS / program],
                  [venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages" / f"{package}*"],
                  placeholder, modes, panels)


def dollar(number):
    return f"${number}"


def percent(_):
    return "%s"


def question_mark(_):
    return "?"


def colon(number):
    return f":p{number}"


DRIVERS = [
    python("psycopg", percent, [
        Mode("plain"), Mode("client-side binding"), Mode("binary"), Mode("prepared", runs=UNTIL_GENERIC), Mode("server cursor", cursor=True),
        Mode("server cursor, scrollable", cursor=True), Mode("WITH HOLD", cursor=True), Mode("pipeline"),
        Mode("plain", pooled=True), Mode("server cursor", cursor=True, pooled=True), Mode("pipeline", pooled=True),
    ], "psycopg", "read_psycopg.py"),
    python("asyncpg", dollar, [
        Mode("fetch", runs=UNTIL_GENERIC), Mode("fetchrow", one_row=True), Mode("fetchval", one_row=True), Mode("cursor", cursor=True),
        Mode("fetch, no statement cache", pooled=True), Mode("fetchrow, no statement cache", one_row=True, pooled=True),
    ], "asyncpg", "read_asyncpg.py"),
    # What has parameters cannot be a COPY, so ADBC sends it as it is.
    python("ADBC", dollar, [Mode("COPY"), Mode("COPY off")], "adbc_driver_postgresql", "read_adbc.py"),
    python("SQLAlchemy", colon, [Mode("plain"), Mode("stream_results", cursor=True)], "sqlalchemy", "read_sqlalchemy.py"),
    python("Django", percent, [Mode("list"), Mode("iterator()", cursor=True), Mode("iterator() in atomic()", cursor=True)], "django", "read_django.py",
           panels=DJANGO_PANELS),
    python("psqlODBC", question_mark, [Mode("UseDeclareFetch off"), Mode("UseDeclareFetch on", cursor=True)], "pyodbc", "read_odbc.py"),
    Driver("pgjdbc", ["java", "-XX:+UseSerialGC", "-cp", f"{PREPARED / 'pgjdbc.jar'}:{PREPARED / 'java'}", "ReadJdbc"],
           [PREPARED / "pgjdbc.jar", PREPARED / "java" / "ReadJdbc.class"], question_mark, [
               Mode("plain"), Mode("simple"), Mode("fetch size 500", cursor=True), Mode("prepareThreshold 1", runs=UNTIL_GENERIC),
               Mode("prepareThreshold 5", runs=UNTIL_GENERIC), Mode("setMaxRows 2000"),
               Mode("unnamed", pooled=True), Mode("fetch size 500, unnamed", cursor=True, pooled=True),
           ]),
    Driver("pgx", [PREPARED / "read_pgx"], [], dollar, [
        Mode("cached statements", runs=UNTIL_GENERIC), Mode("cached descriptions"), Mode("describe and execute"), Mode("execute"),
        Mode("simple protocol"), Mode("batch"), Mode("execute", pooled=True), Mode("simple protocol", pooled=True),
    ]),
    Driver("node-postgres", ["node", PROGRAMS / "node" / "read_node.js", PREPARED / "node"],
           [PREPARED / "node" / "node_modules" / "pg", PREPARED / "node" / "node_modules" / "pg-cursor"], dollar, [
               Mode("plain"), Mode("named statement", runs=UNTIL_GENERIC), Mode("pg-cursor", cursor=True),
               Mode("plain", pooled=True), Mode("pg-cursor", cursor=True, pooled=True),
           ]),
]
