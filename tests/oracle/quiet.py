"""The checks after all writers have ended: every question once more, a flush, and what the servers say of themselves."""

import re
from pathlib import Path

from answers import STATUS, leave_transaction, read, send, statuses
from changes import bump, kept_from_subtransaction
from questions import ALL, FILTERED, PAIRS, STEADY, USUAL
from standby import catch_up
from tally import QUIET, Tally
from writers import Writer, finish_prepared

# A value that no question has.
UNASKED = 4711
# Autovacuum is still there, and may make a hit a miss.
TRIES = 3


def check(run):
    """(holds, promise, detail) of the comparison of every question, asked by everybody: uncached, stored and served."""
    writer = Writer(run, "end", 0)
    finish_prepared(writer, wait=False)
    tally = Tally("the quiet server")
    connection = run.connect()
    if run.primary:
        catch_up_for_good(connection, writer.connection)
    for profile in USUAL:
        ask_all(connection, tally, profile, ALL)
    return conclusion(tally, QUIET)


def ask_all(connection, tally, profile, questions):
    send(connection, profile.statements("SET"))
    for question in questions:
        for value in question.values or (None,):
            compare(connection, tally, question.text(value), profile)
    send(connection, ["RESET ROLE"])
    send(connection, ["RESET ALL"])


def conclusion(tally, promise):
    """Whatever was cacheable has just been stored: the second time it must have been served."""
    hits, again = tally.counts["hits"], tally.counts["stored or served"]
    holds = not tally.broken[QUIET] and 0 < hits == again
    return holds, promise, f"{tally.counts['questions']:,} questions, {hits:,} of {again:,} stored answers served again"


def catch_up_for_good(standby, primary):
    """Nothing is replayed from now on that could be in conflict with a reader."""
    primary.execute("ALTER SYSTEM SET autovacuum = off")
    primary.execute("SELECT pg_reload_conf()")
    primary.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'")
    catch_up(standby, primary)


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


def in_grains(run):
    """Called before the flush, too: the questions that grains answer, each with a constant that nobody has asked for."""
    answered = stored = 0
    forced = (f"SET pg_arrow_cache.debug_force_{what} = on" for what in ("fragments", "grains"))
    with run.connect(*forced) as connection:
        send(connection, USUAL[0].statements("SET"))
        for question in FILTERED:
            alone(connection, [question.text(question.values[0])])
            shown = "\n".join(line for line, in connection.execute(f"EXPLAIN {question.text(UNASKED)}"))
            answered += "Grain: " in shown
            stored += "Grain: " in shown and re.search(r"Stored Parts: [1-9]", shown) is not None
    return stored > 0, "parts in a grain answer other constants", f"{answered} of {len(FILTERED)} questions, {stored} from stored parts"


def precise(run):
    """Called before the flush, too."""
    with run.connect() as connection:
        precise, coarse = connection.execute("""SELECT precise_publications, coarse_not_noted + coarse_overflow + coarse_generation
            + coarse_definitions FROM arrow_cache.stats""").fetchone()
        tables = connection.execute("SELECT count(*) FROM arrow_cache.tracked").fetchone()[0]
    return precise > 0 and tables > 0, "changes of some tables were published by their values", f"{precise:,} precise, {coarse:,} coarse"


def publishing(run):
    with run.connect() as connection:
        state = connection.execute("SELECT to_jsonb(s) ->> 'standby_state' FROM arrow_cache.stats s").fetchone()[0]
    return state == "replaying", "the standby still publishes what it replays", str(state)


def no_crash(run):
    """A server that is told to stop at once tells its processes so. None of them may end in another way."""
    logs = "".join((Path(data).parent / "server.log").read_text(errors="replace") for data in (run.primary_data, run.standby_data))
    ends = re.findall(r"^.*(?:was terminated by signal|PANIC:|startup process .* exited).*$", logs, re.MULTILINE)
    return not ends, "no process of a server ended unasked", "; ".join(ends[:3])


def promoted(run):
    """The end of recovery, asked by a session from before and by a new one: with a prepared transaction whose changes no process of the
    new primary knows, after its end, and after changes there. To be called last."""
    tally = Tally("the promoted standby")
    primary = Writer(run, "last", 0)
    for pair in PAIRS:
        primary.do("two-phase", ["BEGIN", *kept_from_subtransaction(pair, 1), f"PREPARE TRANSACTION 'last {pair}'"])
    before = run.connect()
    catch_up(before, primary.connection)
    ask_all(before, tally, USUAL[0], STEADY)      # stored in recovery, where the prepared transactions do not prevent it
    before.execute("SELECT pg_promote()")
    sessions = [before, run.connect()]
    changes = [[], *([f"COMMIT PREPARED 'last {pair}'"] for pair in PAIRS), *(bump(pair, 2) for pair in PAIRS)]
    for change in changes:
        for statement in change:
            before.execute(statement)
        for connection in sessions:
            ask_all(connection, tally, USUAL[0], STEADY)
    return conclusion(tally, "a promoted standby answers alike with and without the cache, and stores again")
