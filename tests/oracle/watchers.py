"""READ COMMITTED readers of the pairs, which check what must hold from one answer to the next."""

import random
import time

from answers import STATUS, failed, failure, leave_transaction, read, send, statuses
from questions import GROUP_QUESTIONS, PAIRS, UNCACHEABLE
from tally import NOT_BACK, ONE_VERSION, PAIRS_EQUAL

BATCH = 12
WEIGHTS = {"hot": 5, "warm": 3, "linked": 2, "late": 2, "cool": 2}


def watch(run, name, number):
    rng = random.Random(f"{run.seed}:{name}")
    tally = run.tally(name)
    connection = run.connect()
    connection.execute("SET lock_timeout = '500ms'")
    seen = {}
    while run.goes_on() and not tally.has_enough():
        pair = rng.choices(PAIRS, [WEIGHTS[p] for p in PAIRS])[0]
        asked, statements = [], []
        for _ in range(BATCH):
            question, cached = rng.choice(GROUP_QUESTIONS[pair]), rng.random() < 0.8
            asked.append((question, cached))
            statements += [question.sql.format("true" if cached else UNCACHEABLE), STATUS]
        if rng.random() < 0.5:
            statements = ["BEGIN ISOLATION LEVEL READ COMMITTED", *statements, "COMMIT"]
        # Read before the statements are sent: they must see what was committed by then.
        reached = run.reached(pair)
        results = send(connection, statements)
        if failed(results):
            tally.inconclusive[f"batch ended by {failure(results[-1]).error}"] += 1
            leave_transaction(connection)
            continue
        if statements[0].startswith("BEGIN"):
            results = results[1:-1]
        for (question, cached), answer, status in zip(asked, results[::2], results[1::2]):
            status = statuses(status)
            if cached:
                tally.status(*status)
            check(tally, question, read(answer).rows, status, seen, reached)
        if rng.random() < 0.1:
            time.sleep(rng.uniform(0, 0.02))
    return tally


def check(tally, question, rows, status, seen, reached):
    """Checks one answer and remembers the versions in it."""
    facts = {"query": question.sql, "status": status}
    tally.counts["answers watched"] += 1
    versions = {}
    for grp, *found in rows:
        versions.setdefault(int(grp), set()).update(map(int, found))
    torn = {grp: found for grp, found in versions.items() if len(found) > 1}
    if torn:
        tally.find(PAIRS_EQUAL if question.paired else ONE_VERSION, **facts, versions=torn)
    elif len(rows) != question.rows:
        tally.find(ONE_VERSION, **facts, rows=f"{len(rows)} instead of {question.rows}")
    tally.counts["answers over two tables" if question.paired else "answers over one table"] += 1
    for grp, found in versions.items():
        least = max(seen.get((question.pair, grp), 0), reached[grp])
        if min(found) < least:
            tally.find(NOT_BACK, **facts, group=grp, version=min(found), expected_at_least=least)
        seen[question.pair, grp] = max(least, *found)


def processes():
    """(name, function, arguments) of each watcher."""
    return [("watcher 1", watch, ()), ("watcher 2", watch, ())]
