"""Values share slots by their hashes, and these depend on the number of their table. So an answer may be outdated by a change of other values: once
in some thousands of changes. A test that expects an answer to outlive a change says so by `outlives`, and runs again if it did not. Its tables have
other numbers then."""

# One run in some hundred of the tests that change most values meets a shared slot.
MOST_RUNS = 3


class Outdated(AssertionError):
    """An answer is gone, though nothing it rests on has changed. A wrong answer is never one of these."""


def outlives(is_there, *what):
    """Fails if an answer is gone that a change of other values has not outdated."""
    if not is_there:
        raise Outdated(*what)
