"""Tells which plans the server executed: with debug_print_plan it sends each plan to the client, placeholders included."""

PLACEHOLDER = "ArrowCachePlaceholder"
SHOW_PLANS = "SET client_min_messages = log; SET debug_print_plan = on; SET debug_pretty_print = off"
HIDE_PLANS = "RESET client_min_messages; RESET debug_print_plan; RESET debug_pretty_print"


class Plans:
    """The plans of the statements inside the `with`: True for a placeholder, False for one that was really made."""

    def __init__(self, session):
        self.session = session
        self.seen = []

    def __enter__(self):
        self.session.add_notice_handler(self.note)
        self.session.execute(SHOW_PLANS)
        self.seen.clear()
        return self

    def __exit__(self, *failure):
        self.session.remove_notice_handler(self.note)
        if not self.session.broken:
            self.session.execute(HIDE_PLANS)

    def note(self, notice):
        if notice.message_primary == "plan:":
            self.seen.append(PLACEHOLDER in notice.message_detail)

    def take(self):
        """What has been seen since the last time."""
        seen, self.seen = self.seen, []
        return seen


def plans_of(session, run):
    """What `run` returns, and whether each plan made meanwhile was a placeholder."""
    with Plans(session) as plans:
        result = run()
        return result, plans.take()


def warm(session, query, values=None, times=2):
    """Executes a statement until statements of its form are served without planning. `values` go by Parse, Bind and
    Execute."""
    for _ in range(times):
        if values is None:
            session.execute(query)
        else:
            exec_params(session, query, values)


def exec_params(session, query, values, types=None, binary=False):
    """One Parse, Bind, Execute of the unnamed statement; the values of the result as bytes."""
    values = [None if value is None else str(value).encode() for value in values]
    result = session.pgconn.exec_params(query.encode(), values, types, result_format=int(binary))
    assert not result.error_message, result.error_message
    return [tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]
