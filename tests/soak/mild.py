"""Faults of tests/faults that do not restart the server, one after the other, beside the oracle. They have a database of their own."""

import os
import random
import time
import traceback

import psycopg

import situations
import world as worlds
from faults import FAULTS
from world import QUESTIONS, World, Wrong

RULE = "after each fault the server answers, check() finds nothing, and cached answers are those of executing"
# Words in their names.
MILD = ("pg_terminate_backend", "pg_cancel_backend", "client gone", "SIGSTOP", "statement_timeout", "idle_in_transaction", "cache full",
        "SIGHUP storm", "DROP DATABASE", "CREATE DATABASE", "definitions that are changed", "1,600 columns", "parameters",
        "10 MB", "as deep as")
# Seconds between two faults on the average: the oracle is to have the server for itself at times.
REST_S = 2
# A situation that others have spoiled is given up soon, so that the run ends in time.
PATIENCE_S = worlds.PATIENCE_S = 25
OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"


def mild():
    return [fault for fault in FAULTS if any(word in fault.name for word in MILD)]


class Shared(World):
    """A world whose server others use, too. They may evict any answer, so that nothing must be a hit."""

    def compare(self, session, question, must_hit=True):
        super().compare(session, question, must_hit=False)

    def verify(self):
        self.close_all()
        with self.connect() as session:
            until = time.monotonic() + PATIENCE_S
            while session.execute(OTHERS).fetchone()[0]:
                if time.monotonic() > until:
                    raise Wrong("a session does not end")
                time.sleep(0.01)
            for question in QUESTIONS:
                self.compare(session, question)
        self.check()
        if self.broken:
            raise Wrong(self.broken.pop())


def not_reached(error):
    """Others have flushed or evicted what the situation was made of. Then nothing was tried."""
    files = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)}
    return isinstance(error, Wrong) and situations.__file__ in files


def happen(run, name, number, server):
    """Until the end of the run, all mild faults in random order, then all of them again."""
    os.environ["PGAPPNAME"] = name
    tally, rng, world = run.tally(name), random.Random(f"{run.seed}:{name}"), Shared(server)
    random.seed(run.seed)
    waiting = []
    while run.goes_on():
        waiting = waiting or rng.sample(mild(), len(mild()))
        fault = waiting.pop()
        try:
            if fault.load:
                with world.load():
                    fault.do(world)
            else:
                fault.do(world)
            tally.counts[f"fault: {fault.name}"] += 1
            world.verify()
        except (Wrong, psycopg.Error) as error:
            if not_reached(error):
                tally.inconclusive[f"fault not tried: {error}"] += 1
            else:
                tally.find(RULE, fault=fault.name, problem=traceback.format_exc())
        finally:
            world.close_all()
        run.wait(rng.expovariate(1 / REST_S))
    tally.counts["answers after faults"], tally.counts["checks by faults"] = world.answers, world.checks
    return tally
