"""Sends statements by the simple protocol, many in one string, and reads the answers as bytes."""

import re
from typing import NamedTuple

import psycopg
from psycopg import pq

OFF = "SET LOCAL pg_arrow_cache.enabled = off"
ON = "SET LOCAL pg_arrow_cache.enabled = on"
STATUS = "SELECT arrow_cache.last_status(), arrow_cache.last_reason()"

# What may happen to anybody who meets a change of definitions: the loser of a deadlock, a lock that was not had in
# time, a cancelled statement, a snapshot too old to write under.
UNLUCKY = {"40P01", "55P03", "57014", "40001"}

# What a question may meet besides: no privilege, a division by zero that is wanted, something that is gone or is called
# otherwise, a result type that changed under a prepared statement.
ERRORS_OF_READERS = UNLUCKY | {"42501", "22012", "42P01", "42703", "42704", "42883", "0A000", "3F000"}
# Messages of the server when an object without a lock was dropped meanwhile.
DROPPED_MEANWHILE = re.compile("cache lookup failed|could not open relation with OID")


class Answer(NamedTuple):
    """An error by its SQLSTATE, or columns and rows."""

    error: str | None
    columns: tuple
    rows: list

    def same(self, other):
        """The order of rows is not part of the answer."""
        if self == other:
            return True
        return (self.error, self.columns) == (other.error, other.columns) and ordered(self.rows) == ordered(other.rows)


def ordered(rows):
    return sorted(rows, key=repr)


def read(result):
    if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED):
        return failure(result)
    columns = tuple((result.fname(c), result.ftype(c)) for c in range(result.nfields))
    value, width = result.get_value, range(result.nfields)
    return Answer(None, columns, [tuple([value(r, c) for c in width]) for r in range(result.ntuples)])


def failure(result):
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    return Answer(state.decode() if state else "none", (), [])


def send(connection, statements):
    """One result per statement, up to the first that fails."""
    pgconn = connection.pgconn
    pgconn.send_query("; ".join(statements).encode())
    results = []
    while (result := pgconn.get_result()) is not None:
        results.append(result)
    if pgconn.status == pq.ConnStatus.BAD:
        raise psycopg.OperationalError(pgconn.error_message.decode(errors="replace"))
    return results


def failed(results):
    return bool(results) and results[-1].status == pq.ExecStatus.FATAL_ERROR


def expect_error(result):
    """Raises if no reader should get this error. Returns its SQLSTATE."""
    state, message = failure(result).error, result.error_message.decode(errors="replace")
    if state not in ERRORS_OF_READERS and not DROPPED_MEANWHILE.search(message):
        raise RuntimeError(f"a reader met {state}: {message}")
    return state


def statuses(result):
    """What `STATUS` brought."""
    status, reason = result.get_value(0, 0), result.get_value(0, 1)
    return status.decode() if status else "none", reason and reason.decode()


def leave_transaction(connection):
    if connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        send(connection, ["ROLLBACK"])
