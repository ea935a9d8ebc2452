"""The checks after all writers have ended: every question once more, and a flush."""

from answers import STATUS, leave_transaction, read, send, statuses
from questions import ALL, USUAL
from tally import QUIET, Tally
from writers import Writer, finish_prepared

# Autovacuum is still there, and may make a hit a miss.
TRIES = 3


def check(run):
    """(holds, promise, detail) of the comparison of every question, asked by everybody: uncached, stored and served."""
    finish_prepared(Writer(run, "end", 0), wait=False)
    tally = Tally("the quiet server")
    connection = run.connect()
    for profile in USUAL:
        send(connection, profile.statements("SET"))
        for question in ALL:
            for value in question.values or (None,):
                compare(connection, tally, question.text(value), profile)
        send(connection, ["RESET ROLE"])
        send(connection, ["RESET ALL"])
    # Whatever was cacheable has just been stored: the second time it must be served.
    hits, again = tally.counts["hits"], tally.counts["stored or served"]
    holds = not tally.broken[QUIET] and 0 < hits == again
    return holds, QUIET, f"{tally.counts['questions']:,} questions, {hits:,} of {again:,} stored answers served again"


def compare(connection, tally, text, profile):
    uncached = alone(connection, ["SET pg_arrow_cache.enabled = off", text])
    send(connection, ["SET pg_arrow_cache.enabled = on"])
    first = alone(connection, [text])
    stored = statuses(send(connection, [STATUS])[0])
    for _ in range(TRIES):
        second = alone(connection, [text])
        served = statuses(send(connection, [STATUS])[0])
        if served[0] == "HIT" or not uncached.same(second):
            break
    tally.counts["questions"] += 1
    if first.error is None and (stored[0] == "HIT" or stored[0] != "BYPASS" and stored[1] is None):
        tally.counts["stored or served"] += 1
        tally.counts["hits"] += served[0] == "HIT"
    if not (uncached.same(first) and uncached.same(second)):
        tally.find(QUIET, query=text, asked_as=profile, status=f"{stored}, {served}",
                   uncached=uncached.error or uncached.rows, first=first.error or first.rows,
                   second=second.error or second.rows)


def alone(connection, statements):
    answer = read(send(connection, statements)[-1])
    leave_transaction(connection)
    return answer


def flushed(run):
    with run.connect() as connection:
        connection.execute("SELECT arrow_cache.flush()")
        left = connection.execute("SELECT count(*) FROM arrow_cache.entries").fetchone()[0]
    return left == 0, "a flush leaves no entry", f"{left} left" if left else ""


def combined(run):
    """Called before the flush: a restart of the server would have zeroed the counters."""
    with run.connect() as connection:
        runs, served = connection.execute("SELECT fragment_runs, fragments_served FROM arrow_cache.stats").fetchone()
        parts = connection.execute("SELECT count(*) FROM arrow_cache.entries WHERE kind = 'fragment'").fetchone()[0]
    return served > 0 and parts > 0, "answers were combined of stored parts", f"{runs:,} answers, {served:,} stored parts in them"
