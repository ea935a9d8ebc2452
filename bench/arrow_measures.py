"""What bench/arrow.py measures: each function returns goals and sections of the report."""

import re
from functools import partial

from arrow_clients import Adbc, BareSocket, Client, Way, arrow, expecting, interleave
from measure import Cost, Goal, Samples, markdown

OF_ADBC_GOAL = 0.12
OF_SOCKET_GOAL = 2.0
ROWS_PER_SECOND_GOAL = 12e6
LIMIT_ROWS = 100_000
LIMIT_GOAL_MS = 10.0
ONE_COLUMN_GOAL = 0.15
SINGLE_COLUMNS = ("large", "label", "properties")   # of fixed width, of varying width, converted on the way out
STORING_GOAL = 0.10

TIMING_HEADER = ["ms", "spread", "server ms", "client ms"]
TIMING_NOTE = "Beside the time by the clock: the processor time of the server's process and of the client."


def ratio_goal(name, way, base, most):
    ratio = way.timing.clock.median / base.timing.clock.median
    return Goal(name, f"{ratio:.3f}", f"≤ {most:g}", ratio <= most)


def beside(ways, *bases):
    """The cells of each way, with its time as a share of that of each base."""
    return [[*way.cells(), *(f"{way.timing.clock.median / base.timing.clock.median:.3f}" for base in bases)]
            for way in ways]


def store(client, query):
    """Puts the result into the cache; the next reading is a hit."""
    client.drained(arrow(query))
    client.expect("MISS", "HIT")
    client.drained(arrow(query))
    client.expect("HIT")


def column_types(client, table):
    """{column: type} in the order of the table."""
    return dict(client.rows("SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                            f"WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum", binary=False))


def shape_of(table):
    return f"{table.num_rows:,} rows × {table.num_columns} columns"


def compare_values(ours, theirs):
    """Raises unless both tables hold the same values. ADBC marks some columns with extension types."""
    for number, name in enumerate(ours.column_names):
        mine, other = ours.column(number).combine_chunks(), theirs.column(number).combine_chunks()
        other = getattr(other, "storage", other)
        if not mine.equals(other):
            raise RuntimeError(f"column {name} is not what ADBC reads: {mine.type} against {other.type}")


def measure_peers(server, name, query, rounds, progress, *, same_values=True, goals=False):
    """A result as Arrow through every path, against its peers."""
    hit, plain, adbc = Client(server.dsn()), Client(server.dsn(), caching=False), Adbc(server)
    store(hit, query)
    content = hit.bytes(arrow(query))
    with BareSocket(content, server.base) as bare:
        served = expecting(hit, "HIT")
        ours = Way("hit, COPY, joined", hit.pid, partial(hit.joined, arrow(query)), served)
        streamed = Way("hit, COPY, streamed", hit.pid, partial(hit.streamed, arrow(query)), served)
        peer = Way("adbc-driver-postgresql", adbc.pid, partial(adbc.table, query))
        socket = Way("bare Unix socket", bare.pid, bare.table)
        ways = [
            ours, streamed,
            Way("hit, fetch()", hit.pid, partial(hit.fetched, query), served),
            Way("hit, query()", hit.pid, partial(hit.whole, query), served),
            Way("cache off, COPY (FORMAT arrow), joined", plain.pid, partial(plain.joined, arrow(query))),
            socket, peer,
            Way("psycopg, text rows", plain.pid, partial(plain.rows, query, binary=False)),
            Way("psycopg, binary rows", plain.pid, partial(plain.rows, query, binary=True)),
            Way("psycopg, COPY as text, not parsed", plain.pid, partial(plain.drained, f"COPY ({query}) TO STDOUT")),
        ]
        reference = ours.read()
        if same_values:
            compare_values(reference, peer.read())
        if not all(reference.equals(way.read()) for way in ways[1:6]):
            raise RuntimeError("the same result was read in two ways and differs")
        progress(f"{name}: {len(ways)} ways to read it")
        interleave(ways, rounds)
    reached = []
    if goals:
        reached = [ratio_goal(f"{name}: hit through COPY, of ADBC's time", ours, peer, OF_ADBC_GOAL),
                   ratio_goal(f"{name}: hit through COPY, of the bare socket's time", ours, socket, OF_SOCKET_GOAL)]
    # The stored columns go out as they are, the others are converted at each reading.
    converted = [f"{row[0]} {row[1]}" for row in
                 hit.rows("SELECT name, pg_type FROM arrow_cache.schema(%s) WHERE NOT zero_copy", False, [query])]
    note = f"Converted on the way out: {', '.join(converted)}." if converted else "Every column goes out as it is stored."
    return reached, markdown(
        f"{name}: {shape_of(reference)}, {len(content) / 1e6:,.1f} MB", f"`{query}`. {note} {TIMING_NOTE}",
        ["way", *TIMING_HEADER, "of ADBC", "of the socket"], beside(ways, peer, socket))


def logged_durations(server, offset, pid):
    """Milliseconds that the server logged for each COPY of a session since its log had `offset` bytes."""
    with open(server.log, "rb") as log:
        log.seek(offset)
        text = log.read().decode(errors="replace")
    return [float(duration) for duration in
            re.findall(rf"\[{pid}\] .*duration: ([\d.]+) ms  statement: COPY", text)]


def measure_large(server, rounds, progress):
    """Ten million rows, and the beginning of them."""
    query = "SELECT * FROM ten_million"
    hit, plain, adbc = Client(server.dsn()), Client(server.dsn(), caching=False), Adbc(server)
    progress("storing ten million rows")
    store(hit, query)
    table = hit.streamed(arrow(query))
    shape, count, size = shape_of(table), table.num_rows, table.nbytes
    del table
    served = expecting(hit, "HIT")
    ours = Way("hit, COPY, joined", hit.pid, partial(hit.joined, arrow(query)), served)
    streamed = Way("hit, COPY, streamed", hit.pid, partial(hit.streamed, arrow(query)), served)
    drained = Way("hit, COPY, drained without decoding", hit.pid, partial(hit.drained, arrow(query)), served)
    uncached = Way("cache off, COPY (FORMAT arrow), drained", plain.pid, partial(plain.drained, arrow(query)))
    peer = Way("adbc-driver-postgresql", adbc.pid, partial(adbc.table, query))
    with BareSocket(hit.bytes(arrow(query)), server.base) as bare:
        socket = Way("bare Unix socket", bare.pid, bare.table)
        ways = [ours, streamed, drained, uncached, socket, peer]
        progress(f"ten million rows: {len(ways)} ways to read them")
        interleave(ways, rounds)
    rows = []
    for way in ways:
        rate = count / way.timing.clock.median * 1e3
        rows.append([*way.cells(), f"{rate / 1e6:,.1f}"])
    goals = []
    for way in (ours, streamed):
        rate = count / way.timing.clock.median * 1e3
        goals.append(Goal(f"{shape}: rows/s, {way.name}", f"{rate / 1e6:.1f} M",
                          f"≥ {ROWS_PER_SECOND_GOAL / 1e6:g} M", rate >= ROWS_PER_SECOND_GOAL))
    section = markdown(shape, f"{size / 1e6:,.0f} MB. {TIMING_NOTE}", ["way", *TIMING_HEADER, "M rows/s"], rows)
    limit_goals, limit_section = measure_limit(server, hit, plain, query, rounds * 4, progress)
    return goals + limit_goals, section + "\n" + limit_section


def measure_limit(server, hit, plain, query, rounds, progress):
    progress(f"the first {LIMIT_ROWS:,} rows")
    statement = arrow(query, limit=LIMIT_ROWS)
    if hit.joined(statement).num_rows != LIMIT_ROWS:
        raise RuntimeError("limit gave another number of rows")
    ways = [Way("hit, COPY, joined", hit.pid, partial(hit.joined, statement), expecting(hit, "HIT")),
            Way("cache off, COPY (FORMAT arrow), joined", plain.pid, partial(plain.joined, statement))]
    for client in (hit, plain):
        client.execute("SET log_min_duration_statement = 0")
    offset = server.log.stat().st_size
    interleave(ways, rounds)
    for client in (hit, plain):
        client.execute("RESET log_min_duration_statement")
    rows, durations = [], []
    for way in ways:
        logged = Samples(logged_durations(server, offset, way.pid))
        if len(logged.values) != rounds:
            raise RuntimeError(f"the server logged {len(logged.values)} of {rounds} statements")
        durations.append(logged.median)
        rows.append([*way.cells(), f"{logged.median:,.2f}"])
    goal = Goal(f"first {LIMIT_ROWS:,} of them with limit: ms in the server, logged", f"{durations[0]:.2f}",
                f"≤ {LIMIT_GOAL_MS:g}", durations[0] <= LIMIT_GOAL_MS)
    return [goal], markdown(
        f"The first {LIMIT_ROWS:,} of them, with `limit`",
        "*logged* is the duration that the server writes to its log: from the arrival of the statement to its end, "
        f"with the time that it waits for the client to take the bytes. {TIMING_NOTE}",
        ["way", *TIMING_HEADER, "logged ms"], rows)


def measure_columns(server, rounds, progress):
    """One column of twenty against all of them."""
    goals, sections = [], []
    for table, times in {"mixed": rounds, "million": max(3, rounds // 2)}.items():
        query = f"SELECT * FROM {table}"
        hit = Client(server.dsn())
        progress(f"single columns of {table}")
        store(hit, query)
        served = expecting(hit, "HIT")
        whole = Way("all", hit.pid, partial(hit.joined, arrow(query)), served)
        ways = [Way(column, hit.pid, partial(hit.joined, arrow(query, columns=f"({column})")), served)
                for column in SINGLE_COLUMNS]
        shape = shape_of(whole.read())
        for way in ways:
            names = way.read().column_names
            if names != [way.name]:
                raise RuntimeError(f"columns ({way.name}) gave {names}")
        interleave([whole, *ways], times)
        types = column_types(hit, table)
        for way in ways:
            goals.append(ratio_goal(f"{table}: 1 of {len(types)} columns ({way.name} {types[way.name]}), of the whole",
                                    way, whole, ONE_COLUMN_GOAL))
        sections.append(markdown(f"One column of `{table}`: {shape}",
                                 f"Hits through COPY with `columns`, joined. {TIMING_NOTE}",
                                 ["columns", *TIMING_HEADER, "of all"], beside([whole, *ways], whole)))
    return goals, "\n".join(sections)


def measure_storing(server, rounds, progress):
    """The execution that stores a million wide rows, against the same one with the cache off; each is drained alike."""
    query = "SELECT * FROM million"
    client = Client(server.dsn())
    reads = {
        "SELECT, rows as text": partial(client.execute, query),
        "COPY (FORMAT arrow)": partial(client.drained, arrow(query)),
    }
    goals, rows = [], []
    for name, read in reads.items():
        progress(f"storing a million rows: {name}")
        plain, storing = Way("plain", client.pid, read), Way("storing", client.pid, read, expecting(client, "MISS"))
        read()   # both sides find warm buffers
        for number in range(rounds):
            for way in (plain, storing) if number % 2 == 0 else (storing, plain):
                client.execute("SELECT arrow_cache.flush()")
                client.caching(way is storing)
                way.measure()
            client.caching(True)
        cost, server_cost = (Cost([new / old - 1 for old, new in zip(before.values, after.values)]) for before, after in
                             ((plain.timing.clock, storing.timing.clock), (plain.timing.server, storing.timing.server)))
        goals.append(Goal(f"the storing execution of a million rows, over the plain one, {name}", f"{cost.median:+.1%}",
                          f"≤ {STORING_GOAL:.0%}", cost.median <= STORING_GOAL))
        rows.append([f"{name}: plain", *plain.cells()[1:], "", ""])
        rows.append([f"{name}: storing", *storing.cells()[1:], str(cost), str(server_cost)])
    return goals, markdown(
        "The storing execution of a million rows × 20 columns",
        "The same statement, read by the same client, with the cache off and storing. The cost is the median of the "
        f"rounds, with their middle half. {TIMING_NOTE}",
        ["statement", *TIMING_HEADER, "cost", "cost in server ms"], rows)
