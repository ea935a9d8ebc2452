"""Several sessions: closed months while the newest is written to, and a dashboard that many look at."""

import threading
import time
from contextlib import contextmanager
from pathlib import Path

from measure import Goal, Part, Ratio, Samples, markdown, processor_time
from overhead import children_seconds
from session import Session

CLOSED_RATES = (1, 10, 100)   # rows per second
READS = 50                    # per second, of the closed months
READERS, PANEL_RATE = 4, 10
SHARE = 1 / 8
ENDING_SECONDS = 10


def close(sessions):
    """Ends sessions, and waits until the postmaster has counted the time of their processes."""
    pids = [session.pid for session in sessions]
    for session in sessions:
        session.close()
    until = time.monotonic() + ENDING_SECONDS
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > until:
            raise RuntimeError("a session of the server does not end")
        time.sleep(0.01)


class Beat:
    """Waits for the next of so many moments in a second; one that is late goes on at once, and does not catch up."""

    def __init__(self, per_second):
        self.step, self.next = 1 / per_second, time.monotonic()

    def wait(self):
        self.next = max(self.next + self.step, time.monotonic())
        time.sleep(max(0, self.next - time.monotonic()))


@contextmanager
def written(server, facts, rate):
    """The newest leaf gets `rate` rows a second, through the root, one by one. Gives the list of the moments."""
    stop, written_at, session = threading.Event(), [], Session(server.dsn())

    def write():
        beat = Beat(rate)
        while not stop.is_set():
            session.execute(facts.insert())
            written_at.append(time.monotonic())
            beat.wait()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield written_at
    finally:
        stop.set()
        writer.join()
        close([session])


def closed_months(server, facts, size, progress):
    """How often questions about closed months are answered from the cache while the newest is written to."""
    session = Session(server.dsn())
    session.caching(True)
    queries = [facts.closed(), facts.closed("product, sum(amount)", "product"),
               facts.closed("date_trunc('month', sold_at) AS month, count(*)", "month")]
    goals, rows = [], []
    for query in queries:
        session.execute(query)
    for rate in CLOSED_RATES:
        progress(f"dashboard: closed months, {rate} rows/s")
        hits = reads = 0
        with written(server, facts, rate) as written_at:
            beat, until = Beat(READS), time.monotonic() + size.seconds
            while time.monotonic() < until:
                session.execute(queries[reads % len(queries)])
                hits += session.status() == "HIT"
                reads += 1
                beat.wait()
        share = hits / reads
        name = f"closed months while {rate} rows/s are written to the newest: hits"
        goals.append(Goal(name, f"{share:.1%}", "≥ 99 %", share >= 0.99))
        rows.append([str(rate), f"{len(written_at):,}", f"{reads:,}", f"{share:.1%}"])
    section = markdown(
        "Closed months", f"{facts.title}. Three questions about all months but the newest are asked by turns, {READS} a second, for "
        f"{size.seconds} seconds, while rows are inserted into the newest month through the root.",
        ["rows per second", "rows written", "questions", "hits"], rows, words=0)
    return Part(goals, [section])


class Reader(threading.Thread):
    """Refreshes all panels once a second."""

    def __init__(self, server, facts, caching):
        super().__init__()
        self.session, self.facts = Session(server.dsn()), facts
        self.session.caching(caching)
        self.times = []
        self.error = None

    def refresh(self):
        for query in self.facts.panels():
            started = time.perf_counter()
            self.session.execute(query)
            self.times.append((time.perf_counter() - started) * 1000)

    def until(self, moment):
        self.moment = moment
        self.start()

    def run(self):
        beat = Beat(1)
        try:
            while time.monotonic() < self.moment:
                self.refresh()
                beat.wait()
        except Exception as error:   # told by `look`, in the thread that asked for this
            self.error = error


def look(server, facts, caching, seconds):
    """All readers for some seconds: milliseconds and processor time for each answer, and how many answers."""
    readers = [Reader(server, facts, caching) for _ in range(READERS)]
    with written(server, facts, PANEL_RATE):
        before = sum(processor_time(reader.session.pid) for reader in readers) + children_seconds(server.pid)
        until = time.monotonic() + seconds
        for reader in readers:
            reader.until(until)
        for reader in readers:
            reader.join()
        # Parallel workers are children of the postmaster, which counts them when they have ended.
        spent = sum(processor_time(reader.session.pid) for reader in readers) + children_seconds(server.pid) - before
    times = []
    for reader in readers:
        if reader.error:
            raise reader.error
        times += reader.times
    close([reader.session for reader in readers])
    return sum(times) / len(times), spent * 1000 / len(times), len(times)


def panels(server, facts, size, progress):
    """Ten panels, looked at by several readers while rows are written."""
    found = {side: [Samples() for _ in range(3)] for side in (False, True)}
    progress("dashboard: ten panels, first looks")
    look(server, facts, True, 2 * size.seconds)
    for number in range(size.looks):
        for caching in (False, True) if number % 2 == 0 else (True, False):
            progress(f"dashboard: ten panels, {'cache' if caching else 'plain'}")
            for samples, value in zip(found[caching], look(server, facts, caching, size.seconds)):
                samples.add(value)
    latency, spent = (Ratio.of(found[True][place], found[False][place]) for place in (0, 1))
    goals = [Goal(f"ten panels, {READERS} readers, {PANEL_RATE} rows/s: {name}, of plain's", str(ratio), "≤ 1/8", ratio.median <= SHARE)
             for name, ratio in (("mean latency", latency), ("processor time for an answer", spent))]
    rows = [["cache" if caching else "plain", *(f"{samples.median:,.1f}" for samples in found[caching][:2]),
             f"{found[caching][2].median / size.seconds:,.1f}"] for caching in (False, True)]
    section = markdown(
        "Ten panels", f"{facts.title}. {READERS} readers ask for all ten panels once a second, or as often as they can, "
        f"for {size.seconds} seconds; three panels have new literals each time, and one row is written every "
        f"{1000 // PANEL_RATE} ms. Processor time is that of the sessions and their workers, for one answer.",
        ["side", "mean latency ms", "processor time ms", "answers per second"], rows)
    return Part(goals, [section])
