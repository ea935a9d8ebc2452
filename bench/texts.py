#!/usr/bin/env python3
"""What functions and statements that get a query as a text take beside a prepared SELECT 1 and the prepared query itself, and for what: instructions of the
session for an execution, counted by callgrind, for an aggregate over five rows.

    target/venv/bin/python bench/texts.py

Writes Markdown to the standard output. What a function of the server takes includes what it calls.
"""

import re
import subprocess

from callgrind import EXECUTIONS, instructions, per_execution, under_callgrind
from measure import machine, markdown
from program import ROOT
from session import Session

QUERY = "SELECT sum(v) FROM t WHERE id < 5"
TABLE = """
    CREATE EXTENSION pg_arrow_cache;
    CREATE TABLE t (id int PRIMARY KEY, v int);
    INSERT INTO t SELECT n, n FROM generate_series(1, 100) AS n;
    VACUUM ANALYZE t;
"""
CONF = {"shared_buffers": "64MB", "autovacuum": "off", "pg_arrow_cache.min_execution_time": "0"}
ASKED = {"SELECT 1, prepared": "SELECT 1", "the query, prepared": QUERY, "etag($1)": "SELECT arrow_cache.etag($1)",
         "query($1)": "SELECT arrow_cache.query($1)", "COPY (query), binary": f"COPY ({QUERY}) TO STDOUT (FORMAT binary)"}
STEPS = {"parsed": ("pg_parse_query",), "analysed": ("parse_analyze_varparams", "pg_analyze_and_rewrite_fixedparams"), "planned": ("pg_plan_query",)}
WARMING = 60


def copy(session, text):
    connection = session.connection.pgconn
    connection.exec_(text.encode())
    while connection.get_copy_data(0)[0] > 0:
        pass
    while connection.get_result():
        pass


def asking(session, text):
    """A function that has the session execute it."""
    if text.startswith("COPY"):
        return lambda: copy(session, text)
    session.prepare(text, b"asked")
    values = [QUERY.encode()] if "$1" in text else []
    return lambda: session.execute_prepared(b"asked", values)


def inclusive(file, names):
    """Instructions of these functions, and of what they call, for an execution."""
    command = ["callgrind_annotate", "--inclusive=yes", "--auto=no", "--threshold=100", file]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = [re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+\S*?:(\w+) \[", line) for line in lines]
    return sum(int(one[1].replace(",", "")) for one in found if one and one[2] in names) / EXECUTIONS


def main():
    rows = []
    with under_callgrind(ROOT / "target" / "bench-texts", CONF, TABLE) as (server, out):
        for name, text in ASKED.items():
            session = Session(server.dsn())
            one, pid = asking(session, text), session.pid
            for _ in range(WARMING):
                one()
            whole = instructions(per_execution(session, out, [one]))
            parts = [inclusive(out / f"callgrind.{pid}.4", functions) for functions in STEPS.values()]
            rows.append([name, f"{whole:,.0f}", *(f"{part:,.0f} ({part / whole:.0%})" for part in parts)])
    print(markdown("Queries given as texts", machine(), ["asked", "instructions", *STEPS], rows))


if __name__ == "__main__":
    main()
