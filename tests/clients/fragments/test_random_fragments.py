"""Random questions about partitioned tables in two sessions that compute answers from parts and in one without the cache, while random
changes happen between them: the three answers agree, errors included. All ways of asking are taken: see support/random_sessions.py."""

import os

import pytest

from support import fragment_world as world_of
from support import random_sessions
from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED", 20261123))
STEPS = rounds(800, 1200)
TEXTS = ["row 7"]
OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on"
QUERIES = world_of.COMBINED + world_of.OTHER_CONDITIONS + world_of.RAISING + world_of.PLAIN
WORLDS = {
    "rows": random_sessions.World(world_of.SETUP, QUERIES, world_of.CONSTANTS, TEXTS, world_of.CHANGES, world_of.CHANGES, world_of.ROLES, world_of.OWN_WRITES, OPTIONS),
    # Each change of a definition outdates all fragments, so that fewer are served.
    "definitions": random_sessions.World(world_of.SETUP, QUERIES, world_of.CONSTANTS, TEXTS, world_of.CHANGES, world_of.DEFINITIONS, world_of.SETTINGS, world_of.OWN_WRITES, OPTIONS),
}


@pytest.fixture
def world(connect):
    yield
    random_sessions.remove(connect)


@sweep
@pytest.mark.parametrize("changes", WORLDS)
def test_answers_agree(connect, session, world, changes):
    before = counters(session)
    run = random_sessions.Run(connect, WORLDS[changes], SEED)
    print(f"seed {SEED}")
    print(run.steps(STEPS))
    runs, served, computed = (after - b for after, b in zip(counters(session), before, strict=True))
    print(f"{runs} runs of parts: {served} served, {computed} computed")
    # Enough of it was what the test is about.
    assert runs > STEPS / 10
    assert served > STEPS / 10
    assert computed > STEPS / 10
    assert run.answers - run.failures > STEPS / 3
    assert run.failures > STEPS / 100


def counters(session):
    return session.rows("SELECT fragment_runs, fragments_served, fragments_computed FROM arrow_cache.stats")[0]
