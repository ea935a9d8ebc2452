"""Sessions of a server whose clock the test sets, for windows that slide with it."""

import datetime

# What a session is set to so that gaps are found by indexes alone.
BY_INDEX = "-c seq_page_cost=1000000"
START = datetime.datetime(2026, 3, 10, 12, 0, 0)


def after(seconds):
    return str(START + datetime.timedelta(seconds=seconds))


def sessions(at, options=""):
    """One with the cache, and one without."""
    return at(f"-c TimeZone=UTC {options}"), at(f"-c TimeZone=UTC -c pg_arrow_cache.enabled=off {options}")
