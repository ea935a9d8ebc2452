"""Readers and writers of tenants' pages, in processes of their own, and the judge of what caches give."""

import collections
import multiprocessing
import threading
import time
from dataclasses import dataclass, field

import psycopg

from session import Session, digest
from tenants_tables import BEYOND, LAYERS, PAGE, READER, SET_TENANT, Changes, Visitors

WRITERS = 4
JUDGED = 2      # one tenant in so many is judged, at each visit
BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
ENDED = ("SELECT concat_ws(' ', arrow_cache.last_status(), arrow_cache.last_reason()), "
         "set_config('pg_arrow_cache.enabled', 'off', true)")
OPTIONS = {
    "plain": "-c pg_arrow_cache.enabled=off",
    "whole": "-c pg_arrow_cache.precise_invalidation=off",
    "values": "",
    "table tags": "-c pg_arrow_cache.enabled=off",
    "tenant tags": "-c pg_arrow_cache.enabled=off",
}


@dataclass(frozen=True)
class Load:
    """What the processes of one phase are told."""

    shop: object
    dsn: str
    side: str
    seconds: float
    warm_up: float
    readers: int
    visits_per_s: float
    writes_per_s: float
    batches: float
    redis: str


def changed_since(known, layers):
    """What has changed of the rows of a tenant, as far as `LAYERS` tell."""
    if not known:
        return ""
    return next((name for name, before, now in zip(LAYERS, known, layers) if before == now), BEYOND)


@dataclass
class Seen:
    """What one phase has found. Asked again counts what was asked before; unchanged, what has the same answer as then."""

    pages: list = field(default_factory=list)
    asked: collections.Counter = field(default_factory=collections.Counter)
    unchanged: collections.Counter = field(default_factory=collections.Counter)
    hits: collections.Counter = field(default_factory=collections.Counter)
    # {(statement, what became of it, what an outdated answer rested on, what has changed since)}: of those that are
    # unchanged and were no hits
    missed: collections.Counter = field(default_factory=collections.Counter)
    wrong: collections.Counter = field(default_factory=collections.Counter)
    visits: int = 0
    writes: int = 0

    def add(self, other):
        self.pages += other.pages
        for name in ("asked", "unchanged", "hits", "missed", "wrong"):
            getattr(self, name).update(getattr(other, name))
        self.visits += other.visits
        self.writes += other.writes
        return self


class Reader:
    """One session of the application, which asks pages."""

    def __init__(self, load, number):
        self.load, self.number = load, number
        self.session = Session(f"{load.dsn.replace('user=postgres', f'user={READER}')} options='{OPTIONS[load.side]}'")
        self.visitors = Visitors(load.shop, number + 1)
        self.known = {}
        self.seen = Seen()
        self.tags = None
        if load.side.endswith("tags"):
            # Only where it is installed and used.
            from tenants_redis import Tagged
            self.tags = Tagged(load.redis, load.side, self.execute)

    def execute(self, statement, values):
        return self.session.execute_bound(statement.text, [str(value).encode() for value in values])

    def ask(self, statement, values, tenant):
        return self.tags.ask(statement, values, tenant) if self.tags else digest(self.execute(statement, values))

    def visit(self, counts):
        rank, tenant, order = self.visitors.next()
        self.session.execute_bound(SET_TENANT, [str(tenant).encode()])
        asked = [(statement, statement.values(tenant, order)) for statement in PAGE]
        if rank % JUDGED == 0:
            for statement, values in asked:
                self.judge(statement, values, tenant, counts)
        else:
            self.time(asked, tenant, counts)
        self.seen.visits += counts

    def time(self, asked, tenant, counts):
        """A page of which all was asked before counts."""
        questions = [(statement.name, tenant, values) for statement, values in asked]
        is_again = all(question in self.known for question in questions)
        self.known.update(dict.fromkeys(questions))
        began = time.perf_counter()
        for statement, values in asked:
            if self.tags:
                self.tags.ask(statement, values, tenant)
            else:
                self.execute(statement, values)
        if is_again and counts:
            self.seen.pages.append((time.perf_counter() - began) * 1000)

    def judge(self, statement, values, tenant, counts):
        """Asks, and executes the same with the cache off."""
        given, status, right, layers = (self.of_tags if self.tags else self.of_cache)(statement, values, tenant)
        rests_on = self.rests_on(statement, values) if self.load.side == "values" else ""
        is_hit, truth = status == "HIT", right[-1]
        question = (statement.name, tenant, values)
        before, self.known[question] = self.known.get(question), (truth, status, layers, rests_on)
        if is_hit and given not in right:
            self.seen.wrong[statement.name] += counts
            if self.tags is None:
                raise RuntimeError(f"a hit that is not the answer: {statement.text} {values}")
        if before is not None and counts:
            self.seen.asked[statement.name] += 1
            if before[0] == truth:
                self.seen.unchanged[statement.name] += 1
                self.seen.hits[statement.name] += is_hit
                if not is_hit:
                    _, earlier, known, rested_on = before
                    # A reason says why the answer of before was not stored.
                    why = f"not stored: {earlier}" if " " in earlier else changed_since(known, layers)
                    self.seen.missed[statement.name, status, rested_on if status.startswith("STALE") else "", why] += 1

    def of_cache(self, statement, values, tenant):
        """(the answer, what became of the statement, the answers that are right, what tells of the tenant's rows), of one snapshot"""
        session = self.session
        session.execute(BEGIN)
        given = digest(self.execute(statement, values))
        status = session.scalar(ENDED)
        right = given if self.load.side == "plain" else digest(self.execute(statement, values))
        told = session.execute_bound(statement.layers, [str((*values, tenant)[0]).encode()])
        layers = tuple(told.get_value(0, place) for place in range(len(LAYERS)))
        session.execute("COMMIT")
        return given, status, [right], layers

    def rests_on(self, statement, values):
        """What its answer rests on, in short: each table, and by which columns if not as a whole."""
        text = statement.text
        for number, value in enumerate(values, 1):
            text = text.replace(f"${number}", str(value))
        detail = self.session.execute_bound("SELECT detail FROM arrow_cache.why($1)", [text.encode()]).get_value(0, 0).decode()
        return detail.removeprefix("rests on ").replace("public.", "").replace("(rows by ", "(")

    def of_tags(self, statement, values, tenant):
        """The same. Redis knows no snapshot: what was right just before, or just after, is right."""
        before = digest(self.execute(statement, values))
        given = self.tags.ask(statement, values, tenant)
        return given, self.tags.status, [before, digest(self.execute(statement, values))], None

    def run(self):
        started = time.monotonic()
        pause = self.load.readers / self.load.visits_per_s
        due = started + self.number * pause / self.load.readers
        while (now := time.monotonic()) < started + self.load.seconds:
            if now < due:
                time.sleep(due - now)
            self.visit(now - started > self.load.warm_up)
            due = max(due + pause, now)
        self.session.close()
        return self.seen


def write(load, number, counted):
    """One of the writers: changes at its share of the rate."""
    changes = Changes(load.shop, 1000 + number, load.batches)
    tell = None
    if load.side.endswith("tags"):
        from tenants_redis import Teller
        tell = Teller(load.redis, load.side)
    started = due = time.monotonic()
    with psycopg.connect(load.dsn, options=OPTIONS[load.side], prepare_threshold=1) as session:
        while (now := time.monotonic()) < started + load.seconds:
            if now < due:
                time.sleep(due - now)
            change = changes.next()
            for text, values in change.statements:
                session.execute(text, values)
            session.commit()
            if tell:
                tell.of(change)
            counted[number] += now - started > load.warm_up
            due += WRITERS / load.writes_per_s


def all_writers(load, results):
    counted = [0] * WRITERS
    threads = [threading.Thread(target=write, args=(load, number, counted)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(Seen(writes=sum(counted)))


def one_reader(load, number, results):
    try:
        results.put(Reader(load, number).run())
    except BaseException as error:
        results.put(error)
        raise


def run(load):
    """Readers and writers side by side; what they have seen together."""
    results = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=one_reader, args=(load, number, results)) for number in range(load.readers)]
    if load.writes_per_s:
        processes.append(multiprocessing.Process(target=all_writers, args=(load, results)))
    for process in processes:
        process.start()
    seen = Seen()
    failure = None
    for _ in processes:
        found = results.get()
        if isinstance(found, BaseException):
            failure = found
        else:
            seen.add(found)
    for process in processes:
        process.join()
    if failure:
        raise failure
    return seen


