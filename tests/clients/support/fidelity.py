"""Compares a hit with the execution in whose place it stands, in all that a client can see."""

TEXT, BINARY = 0, 1
FORMATS = (TEXT, BINARY)
SHOWN = 5


def answer(session, query, result_format=TEXT):
    """What each column says about itself, the bytes of each value, and the tag; or the fields of the error."""
    got = session.pgconn.exec_params(query.encode(), None, result_format=result_format)
    if got.error_message:
        return got.error_field(ord("C")), got.error_field(ord("M")), got.error_field(ord("D"))
    columns = [
        (got.fname(c), got.ftype(c), got.fmod(c), got.fsize(c), got.fformat(c), got.ftable(c), got.ftablecol(c))
        for c in range(got.nfields)
    ]
    return columns, [[got.get_value(r, c) for c in range(got.nfields)] for r in range(got.ntuples)], got.command_status


def result(session, query, result_format=TEXT):
    """The answer of a query that does not fail."""
    got = answer(session, query, result_format)
    assert not failed(got), got
    return got


def outcome(session):
    """The status and the reason of the last statement; works also where psycopg cannot decode text."""
    got = session.pgconn.exec_(b"SELECT arrow_cache.last_status(), arrow_cache.last_reason()")
    status, reason = got.get_value(0, 0), got.get_value(0, 1)
    return status.decode(), reason and reason.decode()


def failed(an_answer):
    return not isinstance(an_answer[0], list)


def executed(session, query, result_format=TEXT):
    """The answer in which the cache has no part."""
    session.execute("SET pg_arrow_cache.enabled = off")
    try:
        return answer(session, query, result_format)
    finally:
        session.execute("SET pg_arrow_cache.enabled = on")


def differences(expected, got, types=()):
    """The first few values that differ, as sentences; `types` names the type of each column."""
    if failed(expected) or failed(got):
        return [] if expected == got else [f"expected {clip(expected)}, got {clip(got)}"]
    found = []
    for what, left, right in (("columns", expected[0], got[0]), ("tags", expected[2], got[2]),
                              ("numbers of rows", len(expected[1]), len(got[1]))):
        if left != right:
            found.append(f"{what}: expected {clip(left)}, got {clip(right)}")
    names = [column[0].decode() for column in expected[0]]
    types = [*types, *["?"] * (len(names) - len(types))]
    for number, (left, right) in enumerate(zip(expected[1], got[1])):
        for name, of, a, b in zip(names, types, left, right):
            if a != b:
                found.append(f"row {number}, {name} ({of}): expected {clip(a)}, got {clip(b)}")
    return found[:SHOWN]


def clip(value):
    shown = repr(value)
    return shown if len(shown) <= 200 else f"{shown[:150]}... ({len(shown)} characters)"


def check_same(expected, got, types=()):
    found = differences(expected, got, types)
    assert not found, "\n".join(found)


def check_outcome(session, status):
    """The last statement had this status, and if it was executed, no reason kept its answer from being stored."""
    got = outcome(session)
    assert got == (status, None), got


def check_store_and_hits(writer, reader, query, types=(), formats=FORMATS):
    """One session stores the answer, once in each format, and another one is served from it in each format; both get
    what the reader gets by execution. Returns the answers by format."""
    expected = {result_format: executed(reader, query, result_format) for result_format in formats}
    assert not any(failed(each) for each in expected.values()), expected
    for stored_in in formats:
        writer.execute("SELECT arrow_cache.flush()")
        check_same(expected[stored_in], answer(writer, query, stored_in), types)
        check_outcome(writer, "MISS")
        for read_in in formats:
            check_hit(reader, query, expected[read_in], read_in, types)
    return expected


def check_hit(session, query, expected, result_format=TEXT, types=()):
    got = answer(session, query, result_format)
    check_outcome(session, "HIT")
    check_same(expected, got, types)
