#!/usr/bin/env python3
"""Functions in C of an installed extension that reach code which reads more than their arguments. `extension.py LIBRARY NAME SERVICE` follows the calls in
the library (lib/postgis-3.so) by objdump, and asks a server that has the extension NAME which function has which code. What it prints must be excluded in
src/query/trusted_extensions.rs (the list `KNOWN`). Calls by pointers in data are not followed; all others are, also more than can happen."""

import bisect
import collections
import re
import subprocess
import sys

import psycopg

# What tables, catalogs, files, the clock or the state of other libraries are read by.
READS = re.compile(r"SPI_|proj_|SearchSys|LookupFuncName|get_func_namespace|get_namespace_name|table_open|index_open|hash_search|GetConfigOption|"
                   r"(time|rand|random|getenv|fopen|open|GetCurrentTimestamp|GetUserId)$")
QUERY = """
    SELECT p.oid::regprocedure::text, p.prosrc FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang JOIN pg_depend d ON d.objid = p.oid AND
    d.classid = 'pg_proc'::regclass AND d.deptype = 'e' JOIN pg_extension e ON e.oid = d.refobjid WHERE l.lanname = 'c' AND p.provolatile = 'i'
    AND e.extname = %s ORDER BY 1
"""


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def calls_of(library):
    """For each piece of code, by its address, what it may call: addresses, and names of other libraries. And the addresses of names."""
    exported = {name: int(address, 16) for address, kind, name in map(str.split, output("nm", "-D", "--defined-only", library).splitlines())
                if kind in "Tt"}
    listing = re.findall(r"^\s*([0-9a-f]+):\s+(.*)$", output("objdump", "-d", "--no-show-raw-insn", library), re.MULTILINE)
    code = [(int(address, 16), text) for address, text in listing]
    places = {address for address, _ in code}
    jumps = [(address, re.match(r"(call|j)\w*\s+([0-9a-f]+) <([^>]+)>", text)) for address, text in code]
    taken = [(address, re.search(r"(lea)?.*# ([0-9a-f]+) <([^>]+)>", text)) for address, text in code]
    starts = set(exported.values()) | {int(jump[2], 16) for _, jump in jumps if jump and jump[1] == "call"}
    starts |= {int(use[2], 16) for _, use in taken if use and int(use[2], 16) in places}
    ordered = sorted(starts)
    calls = collections.defaultdict(set)
    for address, found in jumps + taken:
        if found:
            place = bisect.bisect_right(ordered, address) - 1
            target, name = int(found[2], 16), found[3]
            if name.endswith("@plt") or (target not in places and "@" in name):
                calls[ordered[place]].add(name.split("@")[0])
            elif target in places:
                calls[ordered[place]].add(ordered[bisect.bisect_right(ordered, target) - 1])
    return exported, calls


def reached_from(start, calls):
    seen, waiting, names = {start}, [start], set()
    while waiting:
        for called in calls[waiting.pop()]:
            if isinstance(called, str):
                names.add(called)
            elif called not in seen:
                seen.add(called)
                waiting.append(called)
    return names


def main(library, extension, service):
    exported, calls = calls_of(library)
    with psycopg.connect(service) as session:
        for function, symbol in session.execute(QUERY, [extension]).fetchall():
            reads = sorted(filter(READS.match, reached_from(exported[symbol], calls))) if symbol in exported else ["not in this library"]
            if reads:
                print(function, *reads)


if __name__ == "__main__":
    main(*sys.argv[1:])
