"""PostgreSQL 18 keeps what the text of a function in SQL meant before, so the cache refuses such functions there (test_text_bodies.py)."""

import pytest

KEEPS_MEANINGS = 180000


@pytest.fixture(autouse=True)
def analysed_anew(session):
    """For modules whose functions have texts for bodies."""
    if session.info.server_version >= KEEPS_MEANINGS:
        pytest.skip("functions in SQL with texts for bodies are refused on PostgreSQL 18: test_text_bodies.py")
