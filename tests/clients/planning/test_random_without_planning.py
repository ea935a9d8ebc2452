"""Random statements in two sessions with the cache and in one without, while random changes happen between them: the
three answers agree, errors included. There are few constants, so that most statements repeat and are no longer
planned."""

import os
import random

import pytest

from support import random_sessions, random_world
from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED", 20261122))
STEPS = rounds(1000, 1500)

FRONT = """
CREATE SCHEMA {front};
GRANT USAGE ON SCHEMA {front} TO {role1}, {role2};
"""
CONSTANTS = ["0", "1", "2", "3", "5", "NULL"]
TEXTS = ["row 7", "", "it's"]
CHANGES = [
    *random_world.WRITES, "BEGIN; TRUNCATE p1; INSERT INTO p1 VALUES (0, 'zero'), (1, 'one'); COMMIT", "BEGIN; UPDATE t SET b = 'undone'; ROLLBACK",
]
DEFINITIONS = [
    *random_world.DEFINITIONS, "ALTER TABLE p DETACH PARTITION p3 CONCURRENTLY", "DROP TABLE {front}.t",
    "CREATE TABLE {front}.t AS SELECT 1 AS a, 'front' AS b, '2024-05-05'::date AS d; GRANT SELECT ON {front}.t TO PUBLIC",
]
# What all sessions do alike.
SETTINGS = [
    *random_world.SETTINGS, "SET search_path = {front}, {schema}", "SET search_path = {schema}",
    "CREATE TEMPORARY TABLE u AS SELECT 1 AS a, 2.5 AS n, 0.5::float8 AS f, 'temp' AS secret", "DISCARD TEMP",
]
OWN_WRITES = ["INSERT INTO {schema}.t VALUES (1, 'own', '2024-01-01')"]
# Few questions of the world, so that most of what is asked has been asked before.
QUERIES = random.Random(SEED).sample(random_world.QUERIES, 24)
WORLD = random_sessions.World(random_world.SETUP + FRONT, QUERIES, CONSTANTS, TEXTS, CHANGES, DEFINITIONS, SETTINGS, OWN_WRITES)


@pytest.fixture
def world(connect):
    yield
    random_sessions.remove(connect)


@sweep
def test_answers_agree(connect, world):
    run = random_sessions.Run(connect, WORLD, SEED)
    print(f"seed {SEED}")
    print(run.steps(STEPS))
    # Enough of it was what the test is about.
    assert min(watched.placeholders for watched in run.cached) > STEPS / 20
    assert run.answers - run.failures > STEPS / 3
