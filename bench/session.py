"""One session below psycopg's row machinery: what is timed is the server, the wire and libpq."""

import hashlib

import psycopg
from psycopg.pq import ExecStatus

TEXT, BINARY = 0, 1


class Session:
    def __init__(self, dsn):
        self.connection = psycopg.connect(dsn, autocommit=True)

    @property
    def pid(self):
        """Of the server's process."""
        return self.connection.info.backend_pid

    def close(self):
        self.connection.close()

    def execute(self, sql):
        """In the simple protocol: text."""
        return self._checked(self.connection.pgconn.exec_(sql.encode()))

    def execute_binary(self, sql):
        return self._checked(self.connection.pgconn.exec_params(sql.encode(), None, result_format=BINARY))

    def prepare(self, sql, name=b"one"):
        return self._checked(self.connection.pgconn.prepare(name, sql.encode()))

    def execute_prepared(self, name=b"one", values=()):
        return self._checked(self.connection.pgconn.exec_prepared(name, list(values) or None))

    def execute_bound(self, sql, values):
        """By an unnamed statement with values: text."""
        return self._checked(self.connection.pgconn.exec_params(sql.encode(), list(values) or None))

    @staticmethod
    def _checked(result):
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise RuntimeError(result.error_message.decode())
        return result

    def scalar(self, sql):
        return self.execute(sql).get_value(0, 0).decode()

    def caching(self, on):
        self.execute(f"SET pg_arrow_cache.enabled = {'on' if on else 'off'}")

    def flush(self):
        self.execute("SELECT arrow_cache.flush()")

    def status(self):
        """What became of the last statement, with the reason where there is one: `BYPASS, no_relation`."""
        status = self.scalar("SELECT arrow_cache.last_status()")
        reason = self.scalar("SELECT coalesce(arrow_cache.last_reason(), '')")
        return f"{status}, {reason}" if reason else status

    def expect(self, *statuses):
        """A measurement of the wrong thing is worse than none."""
        status = self.scalar("SELECT arrow_cache.last_status()")
        if status not in statuses:
            raise RuntimeError(f"expected {' or '.join(statuses)}, got {status}")


def values(result):
    """All values of a result, row by row."""
    return [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]


def digest(result):
    """Names, types, values and NULLs with their lengths, so that two different results never have the same input."""
    sha = hashlib.sha256()
    for column in range(result.nfields):
        sha.update(b"%b %d %d\n" % (result.fname(column), result.ftype(column), result.fmod(column)))
    for value in (value for row in values(result) for value in row):
        sha.update(b"-1:" if value is None else b"%d:%b" % (len(value), value))
    return sha.hexdigest()
