"""Whether a statement answered by the cache agrees with its execution, for tests of functions that read."""

# Over the tables `t` and `member`, with a function mine() that reads the latter.
QUERY = "SELECT a FROM t WHERE tenant = mine() ORDER BY a"


def agree(session, query=QUERY, *, prepare=None):
    """The status and the reason of the second of two executions, after both gave what they give without the cache."""
    for _ in range(2):
        rows = session.rows(query, prepare=prepare)
        found = session.status(), session.reason()
        assert rows == session.uncached(query)
    return found
