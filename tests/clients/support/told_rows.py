"""How rows go to the client, as the library tells at the level debug2."""

WAYS = ("rows went straight to the client", "rows went to the client as they lay", "rows went to the client as they were encoded",
        "rows went into the stream as they lay")


def told_rows(session, way):
    """A list that grows with the number of rows of each run that go in this way from now on."""
    assert way in WAYS
    counts = []
    session.add_notice_handler(lambda notice: notice.message_primary.endswith(way)
                               and counts.append(int(notice.message_primary.split()[0])))
    session.execute("SET client_min_messages = debug2")
    return counts
