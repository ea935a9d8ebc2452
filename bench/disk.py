#!/usr/bin/env python3
"""What results on disk cost (`disk_memory`): hits beside those from memory, the statements that move them, and whether readers get the right rows
while results move.

    target/venv/bin/python bench/disk.py [--megabytes 320] [--rounds 10] [--moves 10000] [--readers 100] [--library FILE]

1. Two answers of so many megabytes, of which memory has room for one. The one on disk and the one in memory are exported by turns, by
   COPY (FORMAT arrow) and as rows, and have to be hits with the right bytes. What the system does not keep of the file is asked for as well.
2. How long it takes to store an answer if another one has to go for it: to disk, or nowhere.
3. Sessions that read beside some that store, until so many results have moved. Each answer is compared with the one that was computed without
   the cache, and the memory of all sessions is looked at in the middle and in the end.

Writes Markdown to the standard output, and fails if an answer differs. Needs memory for three of the answers, and disk for two.
"""

import argparse
import hashlib
import multiprocessing
import os
import random
import statistics
import sys
import time
from pathlib import Path

import psycopg
from measure import Ratio, Samples, machine, markdown, processor_time, to_and_fro
from program import ROOT, private, progress
from session import Session, digest

ROW = 1024
SMALL_ROWS = 1200       # of about 1.2 MB
GOAL = 0.7
FOLDER = "base/pgsql_tmp/pgsql_tmp.arrow_cache"
PROCESSES = 4
MOST_GROWTH = 2048      # kilobytes of a session between the middle and the end


def table(rows):
    return f"""
        CREATE EXTENSION IF NOT EXISTS pg_arrow_cache;
        CREATE TABLE filled AS SELECT g AS id, repeat(md5(g::text), {ROW // 32}) AS pad FROM generate_series(1, {rows}) AS g;
        VACUUM (ANALYZE) filled;
    """


def answer(number):
    return f"SELECT id + {number} AS id, pad FROM filled ORDER BY id"


def stored(number):
    return f"/*+ arrow_cache */ {answer(number)}"


class Large:
    """The answers of the first two parts."""

    def __init__(self, server):
        self.server = server
        self.session = Session(server.dsn())
        self.copies = psycopg.connect(server.dsn(), autocommit=True)

    def on_disk(self):
        return int(self.session.scalar("SELECT count(*) FROM arrow_cache.entries WHERE disk_bytes > 0"))

    def exported(self, number):
        """(seconds, digest)"""
        sha, begun = hashlib.sha256(), 0
        # The digest would take longer than the export: it is made of every 64th piece.
        with self.copies.cursor() as cursor:
            begun = time.perf_counter()
            with cursor.copy(f"COPY ({answer(number)}) TO STDOUT (FORMAT arrow)") as pieces:
                for place, piece in enumerate(pieces):
                    if place % 64 == 0:
                        sha.update(piece)
            took = time.perf_counter() - begun
        status = self.copies.execute("SELECT arrow_cache.last_status()").fetchone()[0]
        return took, sha.hexdigest(), status

    def rows(self, number):
        begun = time.perf_counter()
        result = self.session.execute(answer(number))
        took = time.perf_counter() - begun
        return took, str(result.ntuples), self.session.scalar("SELECT arrow_cache.last_status()")

    def forget_pages(self):
        """Has the system drop what it keeps of the files."""
        for path in (Path(self.server.data) / FOLDER).iterdir():
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def hits(large, size, rounds):
    """Rows of the report about the first part. Answer 1 is on disk, answer 2 in memory."""
    large.session.execute(stored(1))
    large.session.execute(stored(2))
    if large.on_disk() != 1:
        raise RuntimeError("nothing has moved")
    places = {"memory": 2, "disk": 1}
    for name, ask, pid in (("COPY (FORMAT arrow)", large.exported, large.copies.info.backend_pid), ("rows", large.rows, large.session.pid)):
        right = {}
        for place, number in places.items():
            large.session.caching(False)
            large.copies.execute("SET pg_arrow_cache.enabled = off")
            right[place] = ask(number)[1]
            large.session.caching(True)
            large.copies.execute("SET pg_arrow_cache.enabled = on")
        rate = {place: Samples() for place in places}
        work = {place: Samples() for place in places}
        for number, place in to_and_fro(list(places), rounds + 2):
            before = processor_time(pid)
            took, found, status = ask(places[place])
            if status != "HIT" or found != right[place]:
                raise RuntimeError(f"{name} from {place}: {status}, or other bytes")
            if number > 1:
                rate[place].add(size / took)
                work[place].add(processor_time(pid) - before)
        ratio = Ratio.of(rate["disk"], rate["memory"])
        yield [name, f"{rate['memory'].median:,.0f} MB/s", f"{rate['disk'].median:,.0f} MB/s", str(ratio),
               f"{work['memory'].median * 1e3:,.0f} ms", f"{work['disk'].median * 1e3:,.0f} ms", "met" if ratio.median >= GOAL else "missed"]
    cold = Samples()
    for _ in range(3):
        large.forget_pages()
        cold.add(size / large.exported(1)[0])
    yield ["COPY, pages not kept", "", f"{cold.median:,.0f} MB/s", "", "", "", ""]


def storing(large, rounds):
    """Rows about the second part."""
    took = {way: Samples() for way in ("2GB", "0")}
    for number, way in to_and_fro(list(took), rounds):
        large.session.execute(f"ALTER SYSTEM SET pg_arrow_cache.disk_memory = '{way}'")
        large.session.execute("SELECT pg_reload_conf()")
        time.sleep(0.3)
        large.session.flush()
        large.session.execute(stored(1))
        begun = time.perf_counter()
        large.session.execute(stored(2))
        took[way].add(time.perf_counter() - begun)
        if large.on_disk() != (way != "0"):
            raise RuntimeError(f"disk_memory = {way}: {large.on_disk()} on disk")
    with_it, without = took["2GB"].median, took["0"].median
    return [["storing an answer that displaces another", f"{without:.2f} s", f"{with_it:.2f} s", f"{with_it - without:.2f} s"]]


def private_kilobytes(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def read_on(dsn, numbers, right, count, seed, stores, end, differences, answers, growth):
    """Sessions of one process. Each asks for some answer, compares it, and so on."""
    chance = random.Random(seed)
    sessions = [Session(dsn) for _ in range(count)]
    middle = {}
    turns = 0
    while not end.is_set():
        for session in sessions:
            number = chance.choice(numbers)
            found = digest(session.execute((stored if stores else answer)(number)))
            with answers.get_lock():
                answers.value += 1
            if found != right[number]:
                with differences.get_lock():
                    differences.value += 1
        turns += 1
        if turns == 4:
            middle = {session.pid: private_kilobytes(session.pid) for session in sessions}
    grown = [private_kilobytes(pid) - before for pid, before in middle.items()]
    growth.put(grown)


def beside_readers(server, moves, readers, longest):
    """Rows about the third part."""
    session = Session(server.dsn())
    numbers = list(range(100))
    session.caching(False)
    right = {number: digest(session.execute(answer(number))) for number in numbers}
    session.caching(True)
    session.execute("SELECT arrow_cache.reset_stats()")
    end, growth = multiprocessing.Event(), multiprocessing.Queue()
    differences, answers = multiprocessing.Value("q", 0), multiprocessing.Value("q", 0)
    shares = [(readers // PROCESSES, False)] * PROCESSES + [(2, True)]
    at_work = [multiprocessing.Process(target=read_on, args=(server.dsn(), numbers, right, count, seed, stores, end, differences, answers, growth))
               for seed, (count, stores) in enumerate(shares)]
    for process in at_work:
        process.start()
    begun, moved = time.monotonic(), 0
    while moved < moves and time.monotonic() - begun < longest and all(process.is_alive() for process in at_work):
        time.sleep(1)
        # What is used stays on disk. So all begins anew, and moves again.
        session.flush()
        moved = int(session.scalar("SELECT disk_moves FROM arrow_cache.stats"))
    end.set()
    grown = [kilobytes for _ in at_work for kilobytes in growth.get(timeout=300)]
    for process in at_work:
        process.join()
        if process.exitcode != 0:
            raise RuntimeError("a reader has failed")
    hit, failures, evictions = (int(session.scalar(f"SELECT {column} FROM arrow_cache.stats")) for column in ("disk_hits", "disk_failures", "evictions"))
    # All that is retired is free again when nobody reads it.
    session.scalar("SELECT count(*) FROM arrow_cache.entries")
    findings = session.scalar("SELECT count(*) FROM arrow_cache.check()")
    files = sum(path.stat().st_size for path in (Path(server.data) / FOLDER).iterdir())
    told = int(session.scalar("SELECT disk_bytes FROM arrow_cache.stats"))
    rows = [["moves", f"{moved:,}"], ["other evictions", f"{evictions:,}"], ["answers read", f"{answers.value:,}"], ["of these from disk", f"{hit:,}"],
            ["answers that differ", f"{differences.value}"], ["failures", f"{failures}"], ["findings of check()", findings],
            ["bytes of files, and what the view tells", f"{files:,}, {told:,}"],
            ["growth of a session between its 4th turn and the end", f"median {statistics.median(grown or [0]):.0f} kB, most {max(grown or [0])} kB"],
            ["seconds", f"{time.monotonic() - begun:.0f}"]]
    is_right = differences.value == 0 and findings == "0" and failures == 0 and max(grown or [0]) <= MOST_GROWTH
    return rows, is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=10, help="an even number")
    parser.add_argument("--moves", type=int, default=10_000)
    parser.add_argument("--readers", type=int, default=100)
    parser.add_argument("--longest", type=int, default=900, help="seconds of the third part at most")
    parser.add_argument("--parts", default="123")
    options = parser.parse_args()
    private.exit_on_sigterm()
    base = ROOT / "target" / "bench"
    print(f"# Results on disk\n\n{machine()}\n")
    conf = {"autovacuum": "off", "pg_arrow_cache.min_execution_time": 0, "pg_arrow_cache.max_entry_size": "1GB", "max_connections": options.readers + 20}
    if set(options.parts) & {"1", "2"}:
        room = int(options.megabytes * 1.5) + 50
        with private.Cluster(base / "disk", conf=conf | {"pg_arrow_cache.memory": f"{room}MB", "pg_arrow_cache.disk_memory": "2GB"}) as server:
            server.psql(table(options.megabytes * 2**20 // ROW))
            large = Large(server)
            if "1" in options.parts:
                progress("disk: hits")
                print(markdown("Hits", f"Answers of {options.megabytes} MB; medians of {options.rounds} rounds. The goal is {GOAL} of the rate from memory.",
                               ["", "memory", "disk", "disk / memory", "processor time, memory", "disk", ""], list(hits(large, options.megabytes, options.rounds))))
            if "2" in options.parts:
                progress("disk: storing")
                print(markdown("Storing", f"Answers of {options.megabytes} MB.", ["", "without `disk_memory`", "with it", "difference"], storing(large, 6)))
    if "3" in options.parts:
        progress("disk: readers")
        with private.Cluster(base / "disk-readers", conf=conf | {"pg_arrow_cache.memory": "32MB", "pg_arrow_cache.disk_memory": "64MB"}) as server:
            server.psql(table(SMALL_ROWS))
            rows, is_right = beside_readers(server, options.moves, options.readers, options.longest)
        print(markdown("Beside readers", f"{options.readers} sessions that read, and 2 that store; 100 answers of 1.2 MB, room for some 20 in memory and 50 on disk.",
                       ["", ""], rows))
        if not is_right:
            sys.exit("disk: an answer differs, something has failed, or a session grows")


if __name__ == "__main__":
    main()
