"""Tests of many combinations and of random things: few in `make test`, more in `make test-long`, which runs nothing else.

TEST_LONG says what runs: nothing, what `make test` does; `alone`, what `make test-long` does; `too`, each test once, sweeps as long."""

import itertools
import os

import pytest

LONG = "TEST_LONG" in os.environ
ALONE = os.environ.get("TEST_LONG") == "alone"
# Marks a test that does more in `make test-long`.
sweep = pytest.mark.sweep


def rounds(usual, long):
    """RANDOM_ROUNDS=number sets another number."""
    return int(os.environ.get("RANDOM_ROUNDS") or (long if LONG else usual))


def thinned(names, *axes, one_in):
    """All combinations of the values of some parameters, of which `make test` has one in so many: each value of each of them, with many of the others."""
    def combination(numbered):
        numbers, values = zip(*numbered)
        return pytest.param(*values, marks=() if sum(numbers) % one_in == 0 else pytest.mark.long)
    return pytest.mark.parametrize(names, [combination(numbered) for numbered in itertools.product(*map(enumerate, axes))])
