#!/usr/bin/env python3
"""Plants a fault in each file of the kernel of trust, one after the other, and asks the suites whether they see it. And one in each of some
rooms outside of it, which must change no answer.

    make test-mutants                              all plants; as root, since the library is installed where only this run sees it
    tests/mutants/run.py FILE ...                  the plants in these files, such as src/lookup/rules.rs, or with these numbers
    tests/mutants/run.py --unplanted               files of the kernel in which nothing is planted; builds and runs nothing

plants.toml lists the plants: in a file, an expression or a statement that is right, one that is wrong, and the tests that must see it; the
files in which there is nothing to plant; and the plants outside of the kernel. With each of those the oracle, which must have come by there,
runs for a minute and sees nothing. All plants are compiled into one library, which reads PLANTED when a process starts; so a plant
costs its tests alone. A plant that no test sees within a minute survives, and fails the run. A statement that declares a variable cannot be
planted, nor an arm of a match, a pattern, or what is computed while compiling. What the tests print is in target/mutants/output/NUMBER.txt."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import cluster as private  # noqa: E402
import kernel  # noqa: E402

WORK = ROOT / "target" / "mutants"
TREE = WORK / "tree"
INSIDE = "PG_ARROW_CACHE_MUTANTS"
LIMIT_S = 60
WITHOUT_PLANT_S = 1800
# What sees a difference of any answer, for how long, and when it is given up.
ORACLE, ORACLE_SECONDS, ORACLE_LIMIT_S = "oracle", "60", 300
# What `timeout` ends with when the time is over, and when it has killed.
TOO_LATE = (124, 137)
# What is printed when a test fails, while others run on.
FAILED = re.compile(r"^\s*(not ok\b|#\s+Failed test|FAILED\b)|\bFAILED$", re.MULTILINE)
QUICK = {"BUILD_PROFILE": "quick", "CARGO_INCREMENTAL": "1"}
# Names the file that a process makes when it comes by its plant.
MARK = "PLANT_MARK"
READ_NUMBER = '''
/// Returns true if this process has the plant with this number, and leaves the mark that it came by.
pub fn planted(number: u32) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<u32>> =
        std::sync::LazyLock::new(|| std::env::var("PLANTED").ok()?.parse().ok());
    static MARKED: std::sync::LazyLock<()> =
        std::sync::LazyLock::new(|| drop(std::env::var("PLANT_MARK").map(|mark| std::fs::write(mark, ""))));
    *CHOSEN == Some(number) && *MARKED == ()
}
'''


class Plant:
    """One of the kernel must be seen by its tests, one outside must not."""

    def __init__(self, number, entry, outside):
        self.number, self.file, self.outside = number, entry["file"], outside
        self.right, self.wrong = entry["right"].strip(), entry["wrong"].strip()
        self.tests = ORACLE if outside else entry.get("tests", "regress")


def compiled(planted):
    """What stands in the place of what these plants, of one place, replace. An expression may be an operand."""
    where = "crate" if planted[0].file.startswith("core/") else "arrow_cache_core"
    right = planted[0].right
    chosen = "".join(f"if {where}::planted({plant.number}) {{ {plant.wrong} }} else " for plant in planted) + f"{{ {right} }}"
    return chosen if right.endswith((";", ",")) else f"({chosen})"


def listed(kind):
    return tomllib.loads((HERE / "plants.toml").read_text())[kind]


def plants():
    entries = [(entry, kind == "outside") for kind in ("plant", "outside") for entry in listed(kind)]
    return [Plant(number, *entry) for number, entry in enumerate(entries, start=1)]


def write(path, content, mode):
    """Only what changes is written, so that cargo builds no more than it has to."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    path.chmod(mode)


def plant_tree(planted):
    """A copy of the sources that has all plants."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True)
    names = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    for old in [path for path in TREE.rglob("*") if path.is_file() and path.relative_to(TREE).parts[0] != "target"]:
        if str(old.relative_to(TREE)) not in names:
            old.unlink()
    for name in names:
        content = (ROOT / name).read_bytes()
        here = [plant for plant in planted if plant.file == name]
        for right in dict.fromkeys(plant.right for plant in here):
            if content.count(right.encode()) != 1:
                sys.exit(f"mutants: `{right}` stands {content.count(right.encode())} times in {name}")
            content = content.replace(right.encode(), compiled([plant for plant in here if plant.right == right]).encode())
        if name == "core/src/lib.rs":
            content += READ_NUMBER.encode()
        write(TREE / name, content, (ROOT / name).stat().st_mode)
    (TREE / "target").mkdir(exist_ok=True)
    if not (TREE / "target" / "venv").is_symlink():
        (TREE / "target" / "venv").symlink_to(ROOT / "target" / "venv")


def enter_own_mounts():
    """Runs this program again where the server's directories are copies, so that the planted library is seen by this run alone."""
    if os.geteuid() != 0:
        sys.exit("mutants: installs a faulty library where only this run sees it, which needs root")
    os.execvpe("unshare", ["unshare", "--mount", sys.executable, "-B", __file__, *sys.argv[1:]], {**os.environ, INSIDE: "yes"})


def mount_copies():
    for number, directory in enumerate((private.pg_config("--pkglibdir"), Path(private.pg_config("--sharedir")) / "extension")):
        copy = WORK / f"installed-{number}"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(directory, copy, symlinks=True)
        subprocess.run(["mount", "--bind", copy, directory], check=True)


def run_tests(tests, number, limit=LIMIT_S):
    """(exit status, seconds, what was printed)"""
    began = time.monotonic()
    environment = {**os.environ, **QUICK, "PLANTED": str(number), "ORACLE_SECONDS": ORACLE_SECONDS}
    command = ["timeout", "--kill-after=5", str(limit), "tests/run", *tests.split()]
    done = subprocess.run(command, cwd=TREE, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    (WORK / "output").mkdir(exist_ok=True)
    (WORK / "output" / f"{number}.txt").write_text(done.stdout)
    return done.returncode, time.monotonic() - began, done.stdout


def judged(plant):
    """(whether it is as it must be, what became of it, seconds)"""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)   # the servers have an account of their own
        mark = Path(directory) / "mark"
        os.environ[MARK] = str(mark)
        status, seconds, output = run_tests(plant.tests, plant.number, ORACLE_LIMIT_S if plant.outside else LIMIT_S)
        comes_by = "" if mark.exists() else ", nothing comes by it"
    seen = status != 0 and (status not in TOO_LATE or FAILED.search(output) is not None)
    fine = status == 0 and not comes_by if plant.outside else seen
    return fine, f"{'seen' if seen else 'not seen'} by {plant.tests}{comes_by}", seconds


def together(all_tests):
    """The same tests, as one run of each suite: a suite that is named alone stands for all of its tests."""
    suites = {}
    for suite, *names in map(str.split, all_tests):
        suites.setdefault(suite, []).append(names)
    return [" ".join([suite, *dict.fromkeys(sum(lists, []))]) if all(lists) else suite for suite, lists in suites.items()]


def unplanted(planted):
    known = {plant.file for plant in planted} | {entry["file"] for entry in listed("nothing")}
    return [name for names in kernel.files(ROOT).values() for name in names if name not in known]


def main():
    everything = plants()
    if sys.argv[1:] == ["--unplanted"]:
        print(*unplanted(everything), sep="\n")
        return
    chosen = [plant for plant in everything if not sys.argv[1:] or {plant.file, str(plant.number)} & set(sys.argv[1:])]
    if not chosen:
        sys.exit("mutants: nothing is planted there")
    if INSIDE not in os.environ:
        enter_own_mounts()
    mount_copies()
    plant_tree(everything)
    subprocess.run(["scripts/install.sh"], cwd=TREE, env={**os.environ, **QUICK}, check=True)
    for tests in together(plant.tests for plant in chosen):
        status, _, output = run_tests(tests, 0, WITHOUT_PLANT_S)
        if status != 0:
            sys.exit(f"{output[-3000:]}\nmutants: {tests} fails without a plant")
    failed = 0
    for plant in chosen:
        fine, what, seconds = judged(plant)
        failed += not fine
        print(f"{'ok' if fine else 'not ok'} {plant.number} - {plant.file}: {what} ({seconds:.0f} s)", flush=True)
    print(f"1..{len(chosen)}\n# {failed} are not as they must be")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
