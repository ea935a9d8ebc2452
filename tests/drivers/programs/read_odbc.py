"""Reads through psqlODBC and pyodbc, with and without UseDeclareFetch."""

import os
import subprocess
from pathlib import Path

import pyodbc
import talk

PART = 500


def driver():
    """Where Debian's package keeps the library, so that nobody has to register it with unixODBC."""
    files = subprocess.run(["dpkg", "-L", "odbc-postgresql"], check=True, capture_output=True, text=True).stdout.split()
    return next(name for name in files if name.endswith("/psqlodbcw.so"))


class Reader:
    def __init__(self, mode, host, port, database, user, password):
        declare = 1 if mode == "UseDeclareFetch on" else 0
        self.connection = pyodbc.connect(
            f"Driver={driver()};Server={host};Port={port};Database={database};UID={user};PWD={password};"
            f"UseDeclareFetch={declare};Fetch={PART};Debug=0;CommLog=0", autocommit=False)

    def read(self, sql, parameters):
        rows = self.connection.execute(sql, *parameters).fetchall()
        self.connection.commit()
        return rows

    def close(self):
        self.connection.close()
        # psqlODBC 13 leaves one line in a log of each process, also where logging is off.
        for log in Path("/tmp").glob(f"psqlodbc_*{os.getpid()}.log"):
            log.unlink()


talk.serve(Reader)
