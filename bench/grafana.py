#!/usr/bin/env python3
"""Statements of Grafana dashboards, with macros and variables expanded as Grafana's data source for PostgreSQL does it.

    bench/grafana.py [--set NAME=VALUE]… DASHBOARD.json… > NAME.queries.sql

prints the statement of every target. coverage.py expands macros of a NAME.queries.sql in the same way. The time range is fixed, as that of
a dashboard with an absolute range, or of one that is not refreshed.
"""

import argparse
import json
import re
import sys
from datetime import datetime, timezone

FROM, TO = datetime(2024, 1, 1, tzinfo=timezone.utc), datetime(2024, 7, 1, tzinfo=timezone.utc)
INTERVAL = "1h"
SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "M": 2592000, "y": 31536000}

MACRO = re.compile(r"\$__(\w+)\(")
VARIABLE = re.compile(r"\$\{(\w+)(?::([^}]*))?\}|\[\[(\w+)\]\]|\$(?!__(?:timeFilter|timeFrom|timeTo)\b)([A-Za-z_]\w*)")


def epoch(moment):
    return int(moment.timestamp())


def text(moment):
    return "'" + moment.strftime("%Y-%m-%dT%H:%M:%SZ") + "'"


def seconds(interval):
    """Of an interval such as '5m', with or without quotes."""
    number, unit = re.fullmatch(r"\s*'?(\d+(?:\.\d+)?)(ms|[smhdwMy])'?\s*", interval).groups()
    value = float(number) * SECONDS[unit]
    return int(value) if value == int(value) else value


def time_group(column, interval, *_):
    return f"floor(extract(epoch from {column})/{seconds(interval)})*{seconds(interval)}"


def epoch_group(column, interval, *_):
    return f"floor(({column})/{seconds(interval)})*{seconds(interval)}"


MACROS = {
    "time": lambda column: f'{column} AS "time"',
    "timeEpoch": lambda column: f'extract(epoch from {column}) as "time"',
    # Grafana does not look at what may follow the column.
    "timeFilter": lambda column, *_: f"{column} BETWEEN {text(FROM)} AND {text(TO)}",
    "timeFrom": lambda *_: text(FROM),
    "timeTo": lambda *_: text(TO),
    "timeGroup": time_group,
    "timeGroupAlias": lambda *words: time_group(*words) + ' AS "time"',
    "unixEpochFilter": lambda column: f"{column} >= {epoch(FROM)} AND {column} <= {epoch(TO)}",
    "unixEpochFrom": lambda *_: str(epoch(FROM)),
    "unixEpochTo": lambda *_: str(epoch(TO)),
    "unixEpochNanoFilter": lambda column: f"{column} >= {epoch(FROM)}000000000 AND {column} <= {epoch(TO)}000000000",
    "unixEpochNanoFrom": lambda *_: f"{epoch(FROM)}000000000",
    "unixEpochNanoTo": lambda *_: f"{epoch(TO)}000000000",
    "unixEpochGroup": epoch_group,
    "unixEpochGroupAlias": lambda *words: epoch_group(*words) + ' AS "time"',
}


def arguments_from(sql, at):
    """The arguments of a macro whose parenthesis has opened before `at`, and the position behind the one that closes it."""
    depth, quoted, words, start = 1, False, [], at
    for place in range(at, len(sql)):
        letter = sql[place]
        if letter == "'":
            quoted = not quoted
        elif quoted:
            continue
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        if depth == 0 or (letter == "," and depth == 1):
            words.append(sql[start:place].strip())
            start = place + 1
        if depth == 0:
            return [word for word in words if word], place + 1
    raise ValueError(f"a macro does not end: {sql[at - 20:at + 40]}")


def expand_macros(sql):
    while True:
        found = next((found for found in MACRO.finditer(sql) if found[1] in MACROS), None)
        if found is None:
            return sql
        words, end = arguments_from(sql, found.end())
        sql = sql[:found.start()] + MACROS[found[1]](*words) + sql[end:]


def formatted(moment, form):
    if form == "date:seconds":
        return str(epoch(moment))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z") if form in ("date", "date:iso") else f"{epoch(moment)}000"


def quoted(values, form):
    words = values if isinstance(values, list) else [values]
    if form in ("sqlstring", "singlequote") or (form is None and isinstance(values, list)):
        return ",".join("'" + str(word).replace("'", "''") + "'" for word in words)
    return ",".join(map(str, words))


def expand(sql, variables):
    """`variables`: name → value, or a list of values for one that takes several. A name that is not among them stays."""
    there = {"__interval": INTERVAL, "__interval_ms": seconds(INTERVAL) * 1000, "__timezone": "UTC", **variables}

    def variable(found):
        name, form = found[1] or found[3] or found[4], found[2]
        if name in ("__from", "__to"):
            return formatted(FROM if name == "__from" else TO, form)
        return quoted(there[name], form) if name in there else found[0]
    # The variables come first, since a macro's argument may be one.
    return expand_macros(VARIABLE.sub(variable, sql))


def variables_of(dashboard):
    """Name → value that the dashboard was saved with; the first option where that is "all" or nothing."""
    values = {}
    for entry in dashboard.get("templating", {}).get("list", []):
        value = (entry.get("current") or {}).get("value")
        if value in (None, "", "$__all", ["$__all"]):
            options = [option.get("value") for option in entry.get("options") or [] if option.get("value") != "$__all"]
            value = options[0] if options else None
        if value is not None:
            values[entry["name"]] = value
    return values


def statements(node):
    """The `rawSql` of every target below `node`, in its order."""
    if isinstance(node, dict):
        if isinstance(node.get("rawSql"), str) and node["rawSql"].strip():
            yield node["rawSql"]
        for value in node.values():
            yield from statements(value)
    elif isinstance(node, list):
        for value in node:
            yield from statements(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable, in the place of the saved value")
    parser.add_argument("dashboards", nargs="+")
    arguments = parser.parse_args()
    given = dict(word.split("=", 1) for word in arguments.set)
    for name in arguments.dashboards:
        with open(name) as file:
            dashboard = json.load(file)
        for sql in statements(dashboard):
            print(expand(sql, {**variables_of(dashboard), **given}).strip().rstrip(";") + "\n;\n")


if __name__ == "__main__":
    sys.exit(main())
