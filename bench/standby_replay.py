"""What the library costs the replay of WAL: the same files of WAL, replayed by standbys with it and without it.

The WAL is recorded once, in several pieces for each workload. In each round both standbys are made anew of the base backup, and
replay one piece after the other by turns. All pieces come after the standby has become consistent, since the library
does nothing before that. What is compared is the processor time of the startup process, which other work on the machine disturbs
less than the time that passes.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import transactions
from measure import Goal, Part, Ratio, Samples, alternating, markdown, processor_time
from overhead import PROCESSOR
from standby_servers import Primary, Standby

GOAL = 0.99
CLIENTS = 4
COUNT_OF_SUB_TRANSACTIONS = 200
# No checkpoint of the primary, and so none of the standby, disturbs a piece; everything stays in memory.
SERVER_CONF = {
    "shared_buffers": "1GB", "full_page_writes": "on", "max_wal_size": "64GB", "checkpoint_timeout": "1d", "autovacuum": "off",
    "maintenance_work_mem": "512MB", "max_prepared_transactions": "20",
}
# A record that nothing else writes, before and after each piece, and the function that replays it: there callgrind can cut its counts.
MARK, MARK_REDO = "SELECT pg_logical_emit_message(false, 'bench', '')", "logicalmsg_redo"
SIDES = {"A": "", "B": "pg_arrow_cache"}

TABLES = """
    CREATE EXTENSION pg_arrow_cache;
    CREATE FUNCTION change_in_sub_transactions(first int, count int) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        FOR number IN 1 .. count LOOP
            BEGIN
                UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = first + number;
            EXCEPTION WHEN division_by_zero THEN
                NULL;
            END;
        END LOOP;
    END $$;
    CREATE TABLE plain (id bigint, name text, amount numeric);
    CREATE TABLE keyed (id bigint PRIMARY KEY, name text, amount numeric);
    CREATE TABLE rewritten WITH (fillfactor = 50) AS
        SELECT g AS id, 0 AS changes, 'name ' || g AS name FROM generate_series(1, {rows}) AS g;
    COPY (SELECT g, 'name ' || g, g * 1.25 FROM generate_series(1, {rows}) AS g) TO '{file}';
    VACUUM (FREEZE, ANALYZE);
"""


@dataclass(frozen=True)
class Workload:
    name: str
    write: Callable     # (server, size): makes one piece of WAL


@dataclass
class Piece:
    """Some files of WAL."""

    workload: Workload
    files: list
    end: str


@dataclass
class Found:
    """What was measured of a workload: of each side, one value for each round."""

    spent: dict = field(default_factory=lambda: {side: Samples() for side in SIDES})
    taken: dict = field(default_factory=lambda: {side: Samples() for side in SIDES})


def pgbench(name, share, **variables):
    """A script of bench/pgbench, run so often by several clients."""
    def write(server, size):
        transactions.run(server, "-c", CLIENTS, "-t", max(1, int(size.transactions * share) // CLIENTS),
                         *transactions.script(name), "-D", f"scale={size.accounts_scale}",
                         *(word for key, value in variables.items() for word in ("-D", f"{key}={value}")))
    return write


def tpc_b(server, size):
    transactions.run(server, "-c", CLIENTS, "-t", size.transactions // CLIENTS)


def sql(text):
    return lambda server, size: server.psql(text.format(rows=size.rows, file=server.base / "rows"))


WORKLOADS = (
    Workload("TPC-B", tpc_b),
    Workload("COPY into a table with a primary key", sql("TRUNCATE keyed; COPY keyed FROM '{file}'")),
    Workload("INSERT … SELECT into a table without index",
             sql("TRUNCATE plain; INSERT INTO plain SELECT g, 'name', g FROM generate_series(1, 2 * {rows}) AS g")),
    Workload("UPDATE of all rows, VACUUM", sql("UPDATE rewritten SET changes = changes + 1; VACUUM rewritten")),
    Workload("CREATE INDEX", sql("DROP INDEX IF EXISTS made; CREATE INDEX made ON pgbench_accounts (abalance, aid)")),
    Workload("two-phase commits", pgbench("two_phase", 1)),
    Workload(f"transactions with {COUNT_OF_SUB_TRANSACTIONS} sub-transactions",
             pgbench("sub_transactions", 2 / COUNT_OF_SUB_TRANSACTIONS, count=COUNT_OF_SUB_TRANSACTIONS)),
    Workload("CREATE and DROP, temporary tables", pgbench("tables", 1 / 30)),
)


class Recording:
    """A base backup, and the WAL of all workloads after it."""

    def __init__(self, directory, size, progress):
        self.size, self.progress, self.pieces = size, progress, []
        self.primary = Primary(directory, preload="", conf=SERVER_CONF)

    def __enter__(self):
        server = self.primary.__enter__()
        try:
            self.progress("replay: making the primary and its base backup")
            transactions.load_accounts(server, self.size.accounts_scale)
            server.psql(TABLES.format(rows=self.size.rows, file=server.base / "rows"))
            self.backup = server.back_up()
            for workload in WORKLOADS:
                self.progress(f"replay: recording {workload.name}")
                # What happens only once, such as whole pages after the base backup, is a piece that nobody measures.
                self.pieces.append(Piece(None, *self.record(workload)))
                self.pieces += [Piece(workload, *self.record(workload)) for _ in range(self.size.pieces)]
            server.pause()
        except BaseException:
            self.primary.stop()
            raise
        return self

    def __exit__(self, *_):
        self.primary.stop()

    def record(self, workload):
        """Files of WAL and their last position."""
        before = self.primary.archived()[-1]
        self.primary.psql(MARK)
        workload.write(self.primary, self.size)
        self.primary.psql(MARK)
        end, _ = self.primary.finish_file()
        return [self.primary.archive / name for name in self.primary.archived() if name > before], end

    def standby(self, directory, preload, **options):
        # A standby without a primary writes a line of the log whenever it looks for WAL.
        conf = {**SERVER_CONF, "log_min_messages": "fatal", **options.pop("conf", {})}
        return Standby(directory, self.backup, preload=preload, conf=conf, **options)


def replay(standby, pid, piece):
    """Replays a piece: (seconds of processor time, seconds)."""
    before, began = processor_time(pid), time.perf_counter()
    standby.feed(piece.files)
    standby.wait_for(piece.end)
    return processor_time(pid) - before, time.perf_counter() - began


def one_round(recording, standbys, number, found):
    pids = {side: standby.startup_pid for side, standby in standbys.items()}
    sums = {workload: {side: [0, 0] for side in SIDES} for workload in WORKLOADS}
    orders = alternating(len(recording.pieces) + 1)[number % 2:]
    for piece, order in zip(recording.pieces, orders):
        for side in order:
            measured = replay(standbys[side], pids[side], piece)
            if piece.workload:
                sums[piece.workload][side] = [sum(pair) for pair in zip(sums[piece.workload][side], measured)]
    for workload, sides in sums.items():
        for side, (spent, taken) in sides.items():
            found[workload].spent[side].add(spent)
            found[workload].taken[side].add(taken)


def check(standby):
    """It must have published."""
    standby.check_publishing()
    if int(standby.ask("SELECT invalidations FROM arrow_cache.stats")) == 0:
        raise RuntimeError("the library on the standby has published nothing")


def measure_replay(recording, directory, size, progress):
    found = {workload: Found() for workload in WORKLOADS}
    for number in range(size.rounds):
        progress(f"replay: round {number + 1} of {size.rounds}")
        with ExitStack() as stack:
            standbys = {side: stack.enter_context(recording.standby(f"{directory}-{side}", preload, cpu=PROCESSOR))
                        for side, preload in SIDES.items()}
            one_round(recording, standbys, number, found)
            check(standbys["B"])
    return report(found, recording)


def report(found, recording):
    goals, rows = [], []
    for workload, samples in found.items():
        files = [file for piece in recording.pieces if piece.workload is workload for file in piece.files]
        ratio = Ratio.of(samples.spent["A"], samples.spent["B"])
        goals.append(Goal.at_least(f"replay of {workload.name}: of the rate without the library", ratio, GOAL, "×"))
        times = (f"{samples.spent[side].median * 1000:,.0f}" for side in SIDES)
        rows.append([workload.name, str(len(files)), *times, str(ratio), str(Ratio.of(samples.taken["A"], samples.taken["B"]))])
    return Part(goals, [markdown(
        "Replay of recorded WAL",
        "Processor time of the startup process for the same files of WAL (16 MB each, the last of a piece in part), without and with the "
        f"library, both standbys by turns on processor {PROCESSOR}. *Rate* is the time without the library divided by that with it.",
        ["workload", "files", "ms without", "ms with", "rate", "by the clock"], rows)])
