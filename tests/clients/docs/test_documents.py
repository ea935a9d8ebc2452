"""What README.md and the documents show is run, and what it prints is compared with what they show. Which blocks, and how:
support/documents.py. Each section has a database of its own with the tables of a shop."""

import re
import subprocess
import sys

import pytest

from support import documents
from support.documents import ROOT, Figures
from support.shop import Shop

SECTIONS = documents.sections()
# Stands for what a program of the documents takes as given; `…` is the program.
AROUND = {
    ("docs/sql.md", "def get_sales(request):"): """
import json, psycopg
from types import SimpleNamespace
def Response(body=None, status=200, headers={}): return SimpleNamespace(body=body, status=status, headers=headers)
connection = psycopg.connect("dbname=shop")
connection.autocommit = True
…
first = get_sales(SimpleNamespace(headers={}, year=2025))
asked_again = SimpleNamespace(headers={"If-None-Match": first.headers["ETag"]}, year=2025)
again = get_sales(asked_again)
assert json.loads(first.body) and again.status == 304, (first, again)
connection.execute("UPDATE sales SET amount = amount + 1 WHERE year = 2025")
changed = get_sales(asked_again)
assert changed.body != first.body and changed.headers != first.headers, changed
""",
    ("docs/live.md", "from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer"): """
…
import threading, time, urllib.error, urllib.request
threading.Thread(target=server.serve_forever, daemon=True).start()
def ask(**headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://localhost:{server.server_port}/2025", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.headers["ETag"], response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["ETag"], b""
status, etag, body = ask()
assert status == 200 and etag and json.loads(body), (status, etag, body)
assert ask(If_None_Match=etag) == (304, etag, b"")
assert ask(If_None_Match=etag, Prefer="wait=0.1") == (304, etag, b"")
assert ask(If_None_Match='"none"', Prefer="wait=30") == (200, etag, body)
def change():
    with psycopg.connect("dbname=shop") as connection:
        time.sleep(0.3)
        connection.execute("UPDATE sales SET amount = amount + 1 WHERE year = 2025")
changing = threading.Thread(target=change)
changing.start()
began = time.monotonic()
status, other, changed = ask(If_None_Match=etag, Prefer="wait=30")
assert status == 200 and other != etag and changed != body and time.monotonic() - began < 20, (status, other)
changing.join()
""",
    ("docs/live.md", "import json, queue, threading"): """
…
import urllib.request
threading.Thread(target=server.serve_forever, daemon=True).start()
streams = [urllib.request.urlopen(f"http://localhost:{server.server_port}/{year}", timeout=60) for year in (2024, 2025, 2025)]
def events(stream):
    line, end = stream.readline(), stream.readline()
    assert line.startswith(b"data: ") and end == b"\\n", line
    return json.loads(line.removeprefix(b"data: "))
first = [events(stream) for stream in streams]
assert first[1] == first[2] != first[0]
with psycopg.connect("dbname=shop") as writer:
    writer.execute("UPDATE sales SET amount = amount + 1 WHERE year = 2025")
second = [events(stream) for stream in streams[1:]]
assert second[0] == second[1] != first[1]
""",
    ("docs/live.md", "import json"): """
class Cache:
    # What the program uses of redis-py. A pipeline of it is a transaction; here there is one thread.
    def __init__(self): self.values, self.hash = {}, {}
    def get(self, key): return self.values.get(key)
    def set(self, key, value): self.values[key] = value; return self
    def delete(self, key): self.values.pop(key, None); return self
    def hset(self, _, key, value): self.hash[key] = value; return self
    def hdel(self, _, key): self.hash.pop(key, None); return self
    def hgetall(self, _): return dict(self.hash)
    def pipeline(self): return self
    def execute(self): pass
…
cache, connection = Cache(), psycopg.connect("dbname=shop", autocommit=True)
query = "SELECT sum(amount) FROM sales WHERE year = 2025"
questions = {"sales": query, "stores": "SELECT count(*) FROM stores"}
before = {key: get(cache, connection, key, query) for key, query in questions.items()}
invalidate(cache, connection)
assert cache.values == before and cache.hash.keys() == before.keys()
connection.execute("UPDATE sales SET amount = amount + 1 WHERE year = 2025")
invalidate(cache, connection)
assert cache.values == {"stores": before["stores"]}, cache.values
assert get(cache, connection, "sales", query) != before["sales"] and cache.hash.keys() == before.keys()
""",
}


@pytest.fixture(scope="module")
def shop():
    with Shop(ROOT / "target" / "test-docs") as shop:
        yield shop


def run_sql(shop, block):
    shop.psql("\n".join(block.lines))


def run_psql(shop, block):
    """Each command of the session, and what it prints."""
    end = "-- end of command"
    commands = documents.commands(block)
    script = "".join(f"{command}\n\\echo\n\\echo {end}\n" for command, _ in commands)
    printed = shop.psql(script, *block.options).split(end + "\n")
    figures = Figures()
    for (command, shown), lines in zip(commands, printed, strict=False):
        assert figures.agree(shown, lines.splitlines()), f"{block.place}: {command} printed\n{lines}\nshown is\n" + "\n".join(shown)


def run_sh(shop, block):
    """Of what builds, the target must be there: continuous integration runs it. The comment `then restart` is done."""
    kept = []
    for line in block.lines:
        target = re.match(r"make ([\w-]+)", line)
        if target:
            assert re.search(rf"^({target[1]}:|\.PHONY:.*\b{target[1]}\b)", makefile(), re.MULTILINE), f"{block.place}: make {target[1]}"
        else:
            kept.append(line)
        if re.search(r"#.*then restart", line):
            shop.bash("\n".join(kept))
            shop.restart()
            kept = []
    shop.bash("\n".join(kept))


def makefile():
    return re.sub(r"\\\n", "", (ROOT / "Makefile").read_text())


def run_conf(shop, block):
    for line in block.lines:
        name, _, value = line.partition("#")[0].partition("=")
        shop.psql(f"ALTER SYSTEM SET {name.strip()} = {quoted(value.strip())}; ALTER SYSTEM RESET {name.strip()}")


def quoted(value):
    return value if value.startswith("'") else f"'{value}'"


def run_python(shop, block):
    program = "\n".join(block.lines)
    program = AROUND.get((block.document, block.lines[0]), "…").replace("…", program, 1)
    shop.run([sys.executable, "-"], program)


RUNNERS = {"sql": run_sql, "psql": run_psql, "sh": run_sh, "conf": run_conf, "python": run_python}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: " ".join(section).replace(" ", "-"))
def test_blocks_do_what_is_shown(shop, section):
    shop.prepare(*section)
    for block in SECTIONS[section]:
        print(block.place)
        RUNNERS[block.language](shop, block)


def test_every_block_names_its_language():
    assert RUNNERS.keys() == documents.RUN
    unknown = [block.place for block in documents.all_blocks() if block.language not in documents.RUN | documents.OTHER]
    assert unknown == [], "neither run nor of a language that is not run"


def test_no_command_is_called_something_else():
    """A block that is not run has no line that could be run."""
    found = [block.place for block in documents.all_blocks() if block.language in documents.OTHER
             for line in block.lines if documents.COMMAND.match(line)]
    assert found == []


def test_what_is_listed_is_there():
    listed = {(block.document, block.lines[0]) for block in documents.all_blocks() if block.is_listed}
    assert listed == documents.NOT_RUN.keys()
    assert all(documents.NOT_RUN.values())


def test_differences_are_seen():
    figures = Figures()
    assert figures.agree(["1353920464.53", "Time: 1 ms"], ["99.5", "Time: 2.5 ms", ""])
    assert figures.agree(["1353920464.53"], ["99.5"])
    assert not figures.agree(["1353920464.53"], ["99.6"])
    assert not figures.agree(["2.5"], ["99.5"])
    assert not figures.agree(["HIT"], ["MISS"])
    assert not figures.agree(["HIT"], ["HIT", "HIT"])
    assert not figures.agree(["rows=1"], ["rows=2"])


def test_a_block_that_fails_is_seen(shop):
    shop.prepare("", "")
    wrong = {
        "sql": ["SELECT nothing FROM sales"], "conf": ["pg_arrow_cache.memory = some"], "sh": ["psql shop -c 'SELECT nothing'"],
        "python": ["import psycopg", "psycopg.connect('dbname=nowhere')"], "psql": ["shop=# SELECT 1;", " ?column? ", "----", " 2", "(1 row)"],
    }
    for language, lines in {**wrong, "sh ": ["make nothing"]}.items():
        block = documents.Block("README.md", 1, "", language.strip(), (), tuple(lines))
        with pytest.raises((AssertionError, subprocess.CalledProcessError)):
            RUNNERS[block.language](shop, block)


def test_operations_tell_about_each_reason():
    """The table of docs/operations.md has the reasons of core, in their order, each with its anchor, and counts the same ones apart."""
    core = (ROOT / "core" / "src" / "reason.rs").read_text()
    rows = re.findall(r"^\| <a id=\"(\w+)\"></a>`\1` \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    assert [name for name, _, _ in rows] == re.findall(r'^    \w+, "(\w+)", "', core, re.MULTILINE)
    apart = re.findall(r"Reason::(\w+)", core.partition("Share::Other,")[0].partition("fn share")[2])
    names = ["".join("_" + letter.lower() if letter.isupper() else letter for letter in variant).lstrip("_") for variant in apart]
    assert sorted(name for name, _, todo in rows if "other_statements" in todo) == sorted(names)


def rows_of(document, heading):
    """The cells of each row of the first table below a heading."""
    section = (ROOT / "docs" / document).read_text().partition(f"\n{heading}\n")[2]
    table = re.search(r"^\|---.*\n((?:\|.*\n)+)", section, re.MULTILINE)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def amount(text):
    """A default in its smallest unit, so that 3600s is 1h; other defaults as they are."""
    units = {"": 1, "ms": 1, "s": 1000, "h": 3600000, "kB": 1, "MB": 1024}
    number = re.fullmatch(r"([\d.]+)(\w*)", text)
    return float(number[1]) * units[number[2]] if number else text


def test_settings_have_these_defaults(shop):
    shop.prepare("", "")
    shown = {row[0].strip("`"): amount(row[1]) for row in rows_of("settings.md", "All names begin with `pg_arrow_cache.`")}
    names = shop.psql("SELECT name FROM pg_settings WHERE name LIKE 'pg_arrow_cache.%'", "-At").split()
    assert {name.partition(".")[2] for name in names} - {"version"} <= shown.keys()
    set_by = {name: amount(shop.psql(f"SHOW pg_arrow_cache.{name}", "-At").strip()) for name in shown}
    assert set_by == shown


def test_views_and_functions_are_those_that_are_listed(shop):
    shop.prepare("", "")
    here = "WHERE {}namespace = 'arrow_cache'::regnamespace"
    views = shop.psql(f"SELECT relname FROM pg_class {here.format('rel')}", "-At").split()
    assert sorted(views) == sorted(row[0].strip("`") for row in rows_of("sql.md", "## Views"))
    functions = shop.psql(f"SELECT DISTINCT proname FROM pg_proc {here.format('pro')} AND proname NOT LIKE '%\\_data'", "-At").split()
    assert sorted(functions) == sorted(re.findall(r"`(\w+)\(", " ".join(row[0] for row in rows_of("sql.md", "## Functions"))))
