"""The source of the running PostgreSQL, from Debian's archive, without touching the system's own apt state.

A mirror's index may name a version whose files are not there. So every version of the index is tried, the newest first.
An older minor version serves as well: its tests are only compared with themselves. It gets the psql of its own version,
though: psql 15.20 skips what follows a COPY FROM STDIN that failed, and of a script written for 15.18 that is much.
"""

import functools
import re
import shutil
import subprocess
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Where Debian keeps the packages of a release.
REPOSITORIES = [
    ("http://deb.debian.org/debian", "{}"),
    ("http://deb.debian.org/debian", "{}-updates"),
    ("http://deb.debian.org/debian-security", "{}-security"),
]
COMPLETE = "complete"


class Source:
    """A version of PostgreSQL as Debian keeps it: the tree of its source and the programs of its client package."""

    def __init__(self, directory):
        self.version = directory.name
        [self.tree] = [path for path in (directory / "source").iterdir() if path.is_dir()]
        [psql] = (directory / "client").glob("usr/lib/postgresql/*/bin/psql")
        self.bindir = psql.parent


def fetch(directory, major):
    """Returns the newest source of PostgreSQL `major` that can be had. It is kept in `directory`, one subdirectory per
    version, so that only the first call downloads."""
    def parts(apt, version, target):
        apt.fetch_source(f"postgresql-{major}={version}", target / "source")
        apt.fetch_package(f"postgresql-client-{major}={version}", target / "client")

    return Source(fetch_newest(Path(directory), major, codename(), parts))


def fetch_tree(directory, major, release):
    """Returns the version and the tree of the newest source of PostgreSQL `major` that can be had from a release of Debian,
    without any program. Kept as by `fetch`."""
    found = fetch_newest(Path(directory), major, release, lambda apt, version, target:
                         apt.fetch_source(f"postgresql-{major}={version}", target / "source"))
    [tree] = [path for path in (found / "source").iterdir() if path.is_dir()]
    return found.name, tree


def fetch_newest(directory, major, release, parts):
    """The subdirectory of the newest version of which all `parts` can be had."""
    kept = [path.parent for path in directory.glob(f"{major}.*/{COMPLETE}")]
    if kept:
        return max(kept, key=lambda path: version_key(path.name))
    apt = PrivateApt(directory / "apt", release)
    failures = []
    for version in apt.versions(f"postgresql-{major}"):
        target = directory / version
        shutil.rmtree(target, ignore_errors=True)
        try:
            parts(apt, version, target)
        except FetchError as error:
            shutil.rmtree(target)
            failures.append(f"{version}: {error}")
            print(f"not to be had: PostgreSQL {failures[-1]}", flush=True)
            continue
        (target / COMPLETE).touch()
        return target
    raise RuntimeError(f"no source of PostgreSQL {major} could be fetched: {'; '.join(failures) or 'none is listed'}")


class FetchError(Exception):
    """A version whose files cannot be had."""


class PrivateApt:
    """apt with sources, indexes and caches of its own, for one release of Debian."""

    def __init__(self, directory, release):
        for name in ("lists/partial", "cache/archives/partial"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        sources = directory / "sources.list"
        sources.write_text("".join(
            f"{kind} [signed-by={KEYRING}] {url} {suite.format(release)} main\n"
            for url, suite in REPOSITORIES for kind in ("deb", "deb-src")))
        settings = {
            "Dir::Etc::SourceList": sources, "Dir::Etc::SourceParts": "-",
            "Dir::State::Lists": directory / "lists", "Dir::Cache": directory / "cache",
            # The account that apt otherwise downloads under cannot write here.
            "APT::Sandbox::User": "root",
        }
        self.options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
        self.run("apt-get", "update")

    def run(self, program, *arguments, cwd=None):
        done = subprocess.run([program, *self.options, *arguments], cwd=cwd, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            errors = re.findall(r"^E: (.*)", done.stdout, re.MULTILINE)
            raise FetchError(errors[0] if errors else f"{program} {' '.join(arguments)} failed: {done.stdout}")
        return done.stdout

    def versions(self, package):
        """All versions of its source in the index, the newest first."""
        found = set(re.findall(r"^Version: (\S+)", self.run("apt-cache", "showsrc", package), re.MULTILINE))
        return sorted(found, key=version_key, reverse=True)

    def fetch_source(self, package, target):
        target.mkdir(parents=True)
        self.run("apt-get", "source", "--only-source", package, cwd=target)

    def fetch_package(self, package, target):
        """Unpacks a binary package without installing it."""
        target.mkdir(parents=True)
        self.run("apt-get", "download", package, cwd=target)
        [archive] = target.glob("*.deb")
        subprocess.run(["dpkg-deb", "--extract", archive, target], check=True)


@functools.cmp_to_key
def version_key(one, other):
    """Orders versions as Debian does."""
    if one == other:
        return 0
    return 1 if subprocess.run(["dpkg", "--compare-versions", one, "gt", other]).returncode == 0 else -1


def codename():
    """The release of Debian that this machine runs."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', Path("/etc/os-release").read_text(), re.MULTILINE))
    if release.get("ID") != "debian":
        raise RuntimeError("the source is fetched from Debian's archive, and this is another system")
    return release["VERSION_CODENAME"]
