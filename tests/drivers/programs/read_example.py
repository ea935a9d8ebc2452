"""Runs an example of clients/ for each statement: what it prints are the rows.

    read_example.py COMMAND…       {url} in it stands for the address that JDBC takes; others read PGHOST and the like
"""

import os
import subprocess
import sys
from urllib.parse import quote_plus

import talk


class Reader:
    def __init__(self, mode, host, port, database, user, password):
        self.environment = {**os.environ, "PGHOST": host, "PGPORT": port, "PGDATABASE": database, "PGUSER": user, "PGPASSWORD": password}
        url = f"jdbc:postgresql://{host}:{port}/{database}?user={user}&password={quote_plus(password)}"
        self.command = [word.replace("{url}", url) for word in sys.argv[1:]]

    def read(self, sql, _):
        done = subprocess.run([*self.command, sql], env=self.environment, text=True, capture_output=True, timeout=50)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return [[line] for line in done.stdout.splitlines()]

    def close(self):
        pass


talk.serve(Reader)
