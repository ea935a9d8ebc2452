"""Is a hit as quick among a million entries, and do more clients and a second processor get their share?"""

import os
from contextlib import ExitStack

import transactions
from measure import Goal, Part, Ratio, Samples, markdown, to_and_fro
from program import private
from session import Session
from transactions import script
from turns import Turns

SCALE = 10   # as many accounts as there are entries at most
ONE, BOTH = (0,), (0, 1)
LOADERS = 2
TURN = 0.7   # of the seconds of a run: nothing of a turn is lost to its beginning, and it need not be a whole second
SESSIONS = 450   # those that wait for their turn, too
FLAT, SPEED_UP = 0.9, 1.8

UNIT, ONE_KEY, ANY_KEY = "SELECT 1", "one key", "any key"


def use(server, processors):
    """Puts the postmaster, and with it all sessions to come, on these processors."""
    os.sched_setaffinity(server.pid, processors)


class Hits:
    """Runs that must be hits."""

    def __init__(self, server, seconds):
        self.server, self.seconds = server, seconds
        self.session = Session(server.dsn())

    def count(self, column):
        return int(self.session.scalar(f"SELECT {column} FROM arrow_cache.stats"))

    def fill(self, have, want):
        share = (want - have) // LOADERS
        transactions.run(self.server, "-c", LOADERS, "-j", LOADERS, "-t", share,
                         *script("next_key", number=0, first=have, share=share))
        if self.count("entries") != want:
            raise RuntimeError(f"{self.count('entries')} entries instead of {want}")

    def by_turns(self, sides, rounds):
        """{side: Samples of its transactions per second}. `sides` are {side: (arguments of pgbench, processors, whether they are hits)}."""
        with ExitStack() as stack:
            clients, served = {}, dict.fromkeys(sides, 0)
            for side, (arguments, processors, _) in sides.items():
                use(self.server, processors)
                clients[side] = Turns(self.server, processors, *arguments)
                stack.callback(clients[side].end)
            for _, side in to_and_fro(list(sides), rounds):
                before = self.count("hits")
                clients[side].run(self.seconds)
                served[side] += self.count("hits") - before
            found = {side: Samples(client.rates()) for side, client in clients.items()}
        for side, (arguments, _, hits) in sides.items():
            # What was under way at the end of a turn may have been counted on one side only.
            wanted = sum(found[side].values) * self.seconds
            if hits and served[side] < 0.99 * wanted:
                raise RuntimeError(f"{served[side]} hits in {wanted:.0f} transactions of pgbench {arguments}")
        return found


def by_entries(hits, size, progress):
    """{number of entries: {what is asked: Samples}}, each on one processor."""
    found, have = {}, 0
    for entries in size.entries:
        progress(f"scale: {entries:,} entries")
        use(hits.server, BOTH)
        hits.fill(have, entries)
        have = entries
        found[entries] = hits.by_turns({UNIT: (script("any_unit", entries=entries), ONE, False), ONE_KEY: (script("account"), ONE, True),
                                        ANY_KEY: (script("any_key", entries=entries), ONE, True)}, size.rounds)
    return found


def by_clients(hits, size, progress):
    """{number of clients: {processors, or UNIT for SELECT 1 on both: Samples}}"""
    sides = {ONE: ("account", ONE), BOTH: ("account", BOTH), UNIT: ("select_1", BOTH)}
    progress(f"scale: {len(size.clients)} numbers of clients, on one processor and on two")
    found = hits.by_turns({(clients, side): (["-c", clients, "-j", min(2, clients), *script(name)], processors, side != UNIT)
                           for clients in size.clients for side, (name, processors) in sides.items()}, size.fewer_rounds)
    return {clients: {side: found[clients, side] for side in sides} for clients in size.clients}


def entries_part(found):
    least = min(found)
    goals, rows = [], []
    shares = {name: {entries: Ratio.of(samples[name], samples[UNIT]) for entries, samples in found.items()}
              for name in (ONE_KEY, ANY_KEY)}
    for name, by_number in shares.items():
        flatness = {entries: ratio.median / by_number[least].median for entries, ratio in by_number.items()}
        worst = min(flatness, key=flatness.get)
        title = f"hits of {name}, {least} to {max(found):,} entries: lowest share of SELECT 1, of that with {least}"
        goals.append(Goal(title, f"{flatness[worst]:.3f} (with {worst:,})", f"≥ {FLAT}×", flatness[worst] >= FLAT))
    for entries, samples in found.items():
        rows.append([f"{entries:,}", f"{samples[UNIT].median:,.0f}",
                     *(text for name in (ONE_KEY, ANY_KEY)
                       for text in (f"{samples[name].median:,.0f}", str(shares[name][entries])))])
    section = markdown(
        "Hits by the number of entries",
        "Transactions per second of one client, on one processor with the server, simple protocol, one-row results. "
        "The goal is judged by the share of SELECT 1 in the same round. *any key* is drawn anew for each statement "
        "from all entries. Sessions last over all rounds.",
        ["entries", "SELECT 1", ONE_KEY, "of SELECT 1", ANY_KEY, "of SELECT 1"], rows)
    figure = {name: [ratio.median for ratio in by_number.values()] for name, by_number in shares.items()}
    return Part(goals, [section], {"entries": {"entries": list(found), **figure}})


def clients_part(found):
    several = {clients: rates for clients, rates in found.items() if clients > 1}
    medians = {clients: rates[BOTH].median for clients, rates in several.items()}
    slowest, fastest = min(medians, key=medians.get), max(medians, key=medians.get)
    flatness = medians[slowest] / medians[fastest]
    speed_ups = {clients: Ratio.of(rates[BOTH], rates[ONE]) for clients, rates in found.items()}
    overall = Ratio([value for clients in several for value in speed_ups[clients].rounds])
    goals = [
        Goal(f"hits of {min(several)} to {max(found)} clients on two processors: lowest rate, of the highest",
             f"{flatness:.3f} ({slowest} of {fastest} clients)", f"≥ {FLAT}×", flatness >= FLAT),
        Goal.at_least(f"hits of {min(several)} to {max(found)} clients: two processors, of one",
                      overall, SPEED_UP, "×"),
    ]
    rows = [[str(clients), *(text for side in (ONE, BOTH)
                             for text in (f"{rates[side].median:,.0f}", f"{rates[side].spread:.0%}")),
             str(speed_ups[clients]), f"{rates[UNIT].median:,.0f}", str(Ratio.of(rates[BOTH], rates[UNIT]))]
            for clients, rates in found.items()]
    section = markdown(
        "Hits by the number of clients",
        "Transactions per second of all clients together, which share their processors with the server and all ask for "
        "the same entry, simple protocol. A single client cannot use two processors, so the goals begin with more. "
        "SELECT 1 shows what sessions cost the machine whatever they ask. Sessions last over all rounds, and wait idle for "
        "the turns of their pgbench.",
        ["clients", "one processor", "spread", "two processors", "spread", "two of one", "SELECT 1 on two",
         "of SELECT 1"], rows)
    figure = {name: [rates[side].median for rates in found.values()]
              for name, side in {"1 processor": ONE, "2 processors": BOTH}.items()}
    return Part(goals, [section], {"clients": {"clients": list(found), **figure}})


def measure_scale(directory, size, progress):
    most = max(size.entries)
    conf = {"shared_buffers": "256MB", "autovacuum": "off", "max_connections": SESSIONS,
            "pg_arrow_cache.min_execution_time": "0", "pg_arrow_cache.max_entries": most,
            # Some 500 bytes for an entry with its text, and 300 of index; the rest is never touched.
            "pg_arrow_cache.memory": f"{max(256, most // 500)}MB"}
    with private.Cluster(directory, conf=conf) as server:
        progress("scale: starting the server")
        transactions.load_accounts(server, SCALE)
        server.psql("CREATE EXTENSION pg_arrow_cache")
        hits = Hits(server, TURN * size.seconds)
        entries = entries_part(by_entries(hits, size, progress))
        clients = clients_part(by_clients(hits, size, progress))
    return Part(entries.goals + clients.goals, entries.sections + clients.sections,
                {**entries.figures, **clients.figures})
