"""Whether an answer that the cache may have given agrees with that of the server."""

from support import random_sessions

# Over the tables `t` and `member`, with a function mine() that reads the latter.
QUERY = "SELECT a FROM t WHERE tenant = mine() ORDER BY a"


def agree(session, query=QUERY, *, prepare=None, kept=False):
    """The status and the reason of the second of two executions, after both gave what they give without the cache. A prepared statement is
    executed once before: PostgreSQL does not notice each change that its plan has taken something from. The cache bypasses such a plan,
    and has it made anew. `kept`: the plan is kept, and gives what it gives."""
    if prepare:
        session.rows(query, prepare=True)
    for _ in range(2):
        rows = session.rows(query, prepare=prepare)
        found = session.outcome()
        assert rows == session.uncached(query, prepare=kept), query
    return found


def agree_at_once(session, ask, *, off=("enabled",), excused=lambda plain: False):
    """Asks under one snapshot and at one time: first as the session is, then with one setting after the other off as well. `ask` gives what must be
    the same, and what is told of it; the latter is returned, as it was at first. `excused` says of an answer without the cache that it may differ."""
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        ours, told = ask(session)
        for setting in off:
            session.execute(f"SET LOCAL pg_arrow_cache.{setting} = off")
            plain, _ = ask(session)
            assert ours == plain or excused(plain), setting
    finally:
        session.execute("ROLLBACK")
    return told


def agree_on_result(session, query, *, off=("enabled",)):
    """The same for all that a client sees of a result, or of its error; this is returned. Rows are compared as a set, unless the query orders them."""
    def ask(session):
        session.execute("SAVEPOINT s")
        answer = random_sessions.comparable(random_sessions.shown(session.pgconn.exec_(query.encode())), query)
        session.execute("ROLLBACK TO s" if answer[0] else "RELEASE s")
        return answer, answer
    return agree_at_once(session, ask, off=off)
