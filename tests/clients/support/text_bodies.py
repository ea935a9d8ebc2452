"""PostgreSQL 18 keeps what the body of a function in SQL meant before where it runs the function itself, so the cache refuses such calls there."""

import pytest

KEEPS_MEANINGS = 180000


@pytest.fixture(autouse=True)
def analysed_anew(session):
    """For modules with functions that PostgreSQL runs itself."""
    if session.info.server_version >= KEEPS_MEANINGS:
        pytest.skip("functions in SQL that PostgreSQL 18 runs itself are refused there")
