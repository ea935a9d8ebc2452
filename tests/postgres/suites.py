"""PostgreSQL's two suites: what belongs to them, and how they are run on a private server."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import cluster as private

RUN_TIMEOUT_S = 3600
COUNTERS = ["stores", "hits", "misses", "stale", "bypasses", "evictions", "fragment_runs", "fragments_served",
            "verify_samples"]


class Suite:
    """One of PostgreSQL's suites: its directory below src/test and how its driver is called."""

    def __init__(self, name, driver, schedule, options, least_fills, least_hits, least_parts):
        self.name, self.driver, self.schedule, self.options = name, driver, schedule, options
        self.least_fills, self.least_hits, self.least_parts = least_fills, least_hits, least_parts

    def tests(self, directory):
        """The names of the tests that a run has to have."""
        lines = re.findall(r"^test: *(.*)", (directory / self.schedule).read_text(), re.MULTILINE)
        return " ".join(lines).split() + [option for option in self.options if not option.startswith("-")]


SUITES = {suite.name: suite for suite in (
    # One test after the other: beside the DDL of others fewer results may be stored.
    Suite("regress", "pg_regress", "parallel_schedule", ["--max-connections=1"], least_fills=2000, least_hits=100, least_parts=20),
    # The tests that are named are not in the schedule because they need max_prepared_transactions.
    Suite("isolation", "pg_isolation_regress", "isolation_schedule",
          ["prepared-transactions", "prepared-transactions-cic"], least_fills=1000, least_hits=5, least_parts=0),
)}


class Run:
    """The results of a run: outputs by test, the expected ones of its version, counters, signs of crashes."""

    def __init__(self, results, expected, counters, crashes):
        self.results, self.expected, self.counters, self.crashes = results, expected, counters, crashes


class Stage:
    """A directory that the servers' account can use, with copies of the tests and of what they need. All runs use the
    same one, one after the other, because its path may show up in outputs."""

    def __init__(self, target, source):
        self.target, self.source = target, source
        self.output = target / "test-output" / "postgres"

    def __enter__(self):
        self.base = private.server_dir(self.target / "test-postgres")
        try:
            for name in SUITES:
                shutil.copytree(self.source.tree / "src" / "test" / name, self.base / name)
            shutil.copytree(self.source.bindir, self.base / "bin")
            self._build_libraries(self.base / "lib")
            own(self.base)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.base, ignore_errors=True)

    def _build_libraries(self, libraries):
        """regress.so comes with no package; the two modules of contrib that tests use do."""
        makefile = pgxs("src/makefiles/pgxs.mk")
        make = ["make", "-f", makefile, f"PGXS={makefile}", f"PG_CONFIG={private.PG_CONFIG}", "MODULES=regress",
                "with_llvm=no"]
        built = subprocess.run(make, cwd=self.base / "regress", text=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if built.returncode != 0:
            raise RuntimeError(f"regress.so could not be built:\n{built.stdout}")
        libraries.mkdir()
        shutil.copy(self.base / "regress" / "regress.so", libraries)
        for module in ("refint.so", "autoinc.so"):
            installed = Path(private.pg_config("--pkglibdir")) / module
            if installed.exists():
                shutil.copy(installed, libraries)

    def run(self, suite, kept, conf, preload):
        """Runs a suite on a server of its own and keeps its outputs and logs in `kept`."""
        kept.mkdir(parents=True)
        output = private.server_dir(self.base / "output")
        with private.Cluster(self.target / "test-postgres-server", conf=conf, preload=preload) as server:
            if preload:
                server.psql("CREATE EXTENSION pg_arrow_cache")   # for its views; the counters are of the whole server
            with open(kept / "driver.log", "w") as log:
                run_to_the_end(private.as_server_user(self._command(suite, server, output)), cwd=output,
                               env=server.environment(), stdout=log)
            counters = read_counters(server) if preload else {}
            shutil.copy(server.log, kept / "server.log")
        shutil.copytree(output / "results", kept / "results")
        if (output / "regression.diffs").exists():
            shutil.copy(output / "regression.diffs", kept)
        results = {path.stem: path.read_bytes() for path in (output / "results").glob("*.out")}
        return Run(results, self._expected(suite, results), counters, crashes_in(kept / "server.log"))

    def _command(self, suite, server, output):
        tests = self.base / suite.name
        return [pgxs(f"src/test/{suite.name}/{suite.driver}"), f"--bindir={self.base / 'bin'}",
                f"--dlpath={self.base / 'lib'}", f"--inputdir={tests}", f"--outputdir={output}",
                f"--host={server.socket_dir}", f"--port={server.port}", f"--user={private.SUPERUSER}",
                f"--schedule={tests / suite.schedule}", "--max-concurrent-tests=20", *suite.options]

    def _expected(self, suite, results):
        """The outputs that the source's authors accept: NAME.out, NAME_1.out and so on."""
        directory = self.base / suite.name / "expected"
        return {name: [path.read_bytes() for path in [directory / f"{name}.out", *directory.glob(f"{name}_?.out")]
                       if path.exists()] for name in results}


def run_to_the_end(command, **options):
    """Runs a driver. If this script is stopped meanwhile, all processes that the driver has started are stopped too, so
    that they do not write into directories that are being removed."""
    driver = subprocess.Popen(command, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                              **options)
    try:
        driver.wait(RUN_TIMEOUT_S)   # its status reports differences from expected/, which do not matter here
    except BaseException:
        os.killpg(driver.pid, signal.SIGKILL)
        raise


def read_counters(server):
    """Counters of the library: those of `stats` by name, and the reasons why statements were not served or stored."""
    values = server.psql(f"SELECT {', '.join(COUNTERS)} FROM arrow_cache.stats").split("|")
    counters = dict(zip(COUNTERS, map(int, values)))
    lines = server.psql("SELECT reason, statements FROM arrow_cache.bypass_reasons WHERE statements > 0 "
                        "ORDER BY statements DESC, reason").splitlines()
    return {**counters, "reasons": [line.split("|") for line in lines]}


def crashes_in(log):
    """Lines of a server log that report a crash. Tests provoke errors of every other kind."""
    text = log.read_text(errors="replace")
    return re.findall(r"^.*(?:PANIC:|was terminated by signal|TRAP:).*$", text, re.MULTILINE)


def pgxs(name):
    """A part of PostgreSQL's own build and test machinery, as its development package installs it."""
    return Path(private.pg_config("--pkglibdir")) / "pgxs" / name


def own(directory):
    """Gives a directory and all in it to the servers' account."""
    if os.geteuid() != 0:
        return
    user = private.server_user()
    for path in [directory, *Path(directory).rglob("*")]:
        os.chown(path, user.pw_uid, user.pw_gid)
