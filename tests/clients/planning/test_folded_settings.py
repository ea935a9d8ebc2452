"""The planner computes immutable functions of constants once, under the settings of that moment. The answer of such a
prepared plan belongs to that plan alone: a query that is planned under other settings gets its own answer."""

import pytest

from support.settings_of_functions import CASES, case


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("name", CASES)
def test_asked_afresh(session, other, name, mode):
    _, call, one, two = case(session, name)
    query = f"SELECT {call} FROM t"
    afresh = {}
    for setting in (one, two):
        other.execute(f"SET {setting}")
        afresh[setting] = other.uncached(query)
    assert afresh[one] != afresh[two], "the settings must matter"
    session.execute(f"SET plan_cache_mode = {mode}; SET {one}")
    session.execute(f"PREPARE q AS {query}")
    for _ in range(2):
        assert session.rows("EXECUTE q") == afresh[one]
    for setting in (two, one, two):
        session.execute(f"SET {setting}")
        kept = session.uncached("EXECUTE q")
        for _ in range(2):
            assert session.rows("EXECUTE q") == kept, "what PostgreSQL answers with this plan"
        for _ in range(2):
            assert session.rows(query) == afresh[setting]
        other.execute(f"SET {setting}")
        assert other.rows(query) == afresh[setting]
