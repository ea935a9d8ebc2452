#!/usr/bin/env python3
"""Runs the cache beside other libraries that Debian has, each preloaded before it and after it, with the demo's
statements and others. Run by `make test-others`.

    tests/others/run.py [LIBRARY…]

Those that watch statements must see the same with the cache off and on (watchers.py); those that do something must do
it, and answers stay right (workers.py). Prints a line for each comparison, as TAP does; what is not there is listed
as NOT RUN. The status is 0 if nothing failed, 69 if nothing failed and something could not be run, else 1.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field

import watchers
import workers
from server import OWN, Server, private

UNAVAILABLE = 69
STARTED = time.monotonic()


def progress(text):
    print(f"[{time.monotonic() - STARTED:4.0f} s] {text}", file=sys.stderr, flush=True)


@dataclass
class Library:
    name: str
    # Yields (name, what is wrong or nothing).
    test: object
    # What is preloaded, in this order; its own library, if nothing is named.
    preloaded: list = None
    settings: dict = field(default_factory=dict)
    # It does not let those that are preloaded before it have shared memory, whichever they are.
    is_first: bool = False
    # It is a program that reads the server's log.
    is_program: bool = False

    @property
    def libraries(self):
        return [self.name] if self.preloaded is None else self.preloaded

    def orders(self):
        """What shared_preload_libraries is, with the cache first and last."""
        orders = [[OWN, *self.libraries], [*self.libraries, OWN]] if self.libraries else [[OWN]]
        return orders[-1:] if self.is_first else orders

    @property
    def version(self):
        """As its control file has it, or what the program says, or nothing."""
        if self.is_program:
            return self.is_there and re.search(r"[\d.]+", subprocess.check_output([self.name, "--version"], text=True))[0]
        control = private.Path(private.pg_config("--sharedir")) / "extension" / f"{self.name}.control"
        if not control.exists():
            return None
        return re.search(r"^default_version\s*=\s*'(.*)'", control.read_text(), re.MULTILINE)[1]

    @property
    def is_there(self):
        if self.is_program:
            return shutil.which(self.name) is not None
        folder = private.Path(private.pg_config("--pkglibdir"))
        is_extension = self.version is not None or self.name == "auto_explain"
        return is_extension and all((folder / f"{name}.so").exists() for name in self.libraries)


STATISTICS = {"pg_stat_statements.track": "all"}
LIBRARIES = [
    Library("pgaudit", watchers.pgaudit),
    Library("pgauditlogtofile", watchers.pgauditlogtofile, ["pgaudit", "pgauditlogtofile"],
            {"pgaudit.log_directory": "'log'"}),
    Library("pg_stat_statements", watchers.pg_stat_statements),
    Library("auto_explain", watchers.auto_explain),
    Library("pg_stat_kcache", watchers.pg_stat_kcache, ["pg_stat_statements", "pg_stat_kcache"], STATISTICS),
    Library("pg_qualstats", watchers.pg_qualstats, ["pg_stat_statements", "pg_qualstats"], STATISTICS),
    Library("pg_wait_sampling", workers.pg_wait_sampling, ["pg_stat_statements", "pg_wait_sampling"], STATISTICS),
    Library("hypopg", workers.hypopg),
    Library("set_user", workers.set_user),
    Library("pg_cron", workers.pg_cron, ["pg_cron"],
            {"cron.database_name": "'postgres'", "cron.use_background_workers": "on"}),
    Library("pg_partman", workers.pg_partman, ["pg_partman_bgw"]),
    Library("plprofiler", workers.plprofiler, is_first=True),
    Library("plpgsql_check", workers.plpgsql_check, ["plpgsql", "plpgsql_check"]),
    Library("pg_track_settings", workers.pg_track_settings, []),
    Library("pg_repack", workers.pg_repack, []),
    Library("pgbadger", workers.pgbadger, [],
            {"log_min_duration_statement": "0", "log_line_prefix": f"'{workers.LINE_PREFIX}'", "lc_messages": "'C'"}, is_program=True),
    # Not in Debian 12.
    Library("credcheck", None),
    Library("pg_hint_plan", None),
]


def results(server, library):
    """Yields (name, what is wrong or nothing) for both orders. A server that went down is one failure."""
    for order in library.orders():
        place = "" if not library.libraries else ", cache first" if order[0] == OWN else ", cache last"
        progress(f"{library.name}{place}")
        server.preload(order, library.settings)
        started = server.cluster.pid
        position = server.log_size
        try:
            for name, problem in library.test(server):
                yield f"{library.name}{place}: {name}", problem
        except Exception as error:  # noqa: BLE001  (the other libraries are still tested)
            yield f"{library.name}{place}", f"{type(error).__name__}: {error}"
        log = server.log_from(position)
        crashed = re.findall(r".*(?:terminated by signal|PANIC: ).*", log)
        restarted = [] if server.cluster.pid == started else ["another postmaster"]
        yield f"{library.name}{place}: no process crashed", "\n# ".join(crashed + restarted) or None
        server.drop_extensions()


def main():
    names = [library.name for library in LIBRARIES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=", ".join(names))
    chosen = parser.parse_args().libraries
    if unknown := [name for name in chosen if name not in names]:
        parser.error(f"no such library: {' '.join(unknown)}; there are {' '.join(names)}")
    wanted = [library for library in LIBRARIES if not chosen or library.name in chosen]
    run = [library for library in wanted if library.test and library.is_there]
    not_run = [library.name for library in wanted if library not in run]
    private.exit_on_sigterm()
    number = failed = 0
    with Server(progress) as server:
        for library in run:
            for name, problem in results(server, library):
                number += 1
                failed += problem is not None
                outcome, note = ("not ok", f"\n# {problem}") if problem else ("ok", "")
                print(f"{outcome} {number} - {name}{note}", flush=True)
    print(f"# run: {', '.join(f'{library.name} {library.version or private.major_version()}' for library in run)}")
    if not_run:
        print(f"NOT RUN: {', '.join(not_run)}")
    print(f"{number - failed} passed, {failed} failed")
    # What Debian does not have is no reason to fail.
    lacking = [library.name for library in wanted if library.test and not library.is_there]
    sys.exit(1 if failed else UNAVAILABLE if lacking else 0)


if __name__ == "__main__":
    main()
