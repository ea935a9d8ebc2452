"""How long tests of random things are: short in `make test`, long in `make test-long`, which runs nothing else. RANDOM_ROUNDS=number sets the rounds."""

import os

import pytest

LONG = "TEST_LONG" in os.environ
# Marks a test that `make test-long` runs, too.
sweep = pytest.mark.sweep


def rounds(usual, long):
    return int(os.environ.get("RANDOM_ROUNDS") or (long if LONG else usual))
