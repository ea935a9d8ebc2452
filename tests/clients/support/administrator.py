"""A session that outlives tests. The start of a server process takes longer than most of what a test needs done around it."""

import psycopg

from support.session import Session


class Administrator:
    """Executes statements of a superuser. If a test has made the server end the session, the statement gets a new one."""

    def __init__(self, dsn):
        self.dsn, self.session = dsn, None

    def execute(self, statement):
        if self.session is not None:
            try:
                return self.session.execute(statement)
            except psycopg.OperationalError:
                if not self.session.closed:
                    raise
        self.session = Session.connect(self.dsn, options="-c client_min_messages=warning", autocommit=True, prepare_threshold=None)
        return self.session.execute(statement)

    def close(self):
        if self.session is not None:
            self.session.close()
