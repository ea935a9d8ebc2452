"""Cuts a file of SQL into its statements."""

import re

PARTS = re.compile(r"""
      (?P<comment>--[^\n]*)
    | (?P<open>/\*)
    | (?P<escaped>\b[eE]'(?:[^'\\]|\\.|'')*')
    | (?P<text>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")*")
    | (?P<dollar>\$(?P<tag>[A-Za-z_]\w*|)\$.*?\$(?P=tag)\$)
    | (?P<parameter>\$\d+)
    | (?P<end>;)
    """, re.S | re.X)


def after_comment(sql, at):
    """The position behind a comment that has opened before `at`. Comments nest."""
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(sql, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(sql)


def parts(sql):
    """(kind, start, end) of what is not plain code."""
    at = 0
    while found := PARTS.search(sql, at):
        kind = next(name for name, value in found.groupdict().items() if value is not None and name != "tag")
        at = after_comment(sql, found.end()) if kind == "open" else found.end()
        yield kind, found.start(), at


def split(sql):
    """The statements of `sql`, without those that hold nothing but comments. Lines of psql's own commands are left out."""
    sql = re.sub(r"^\\.*$", "", sql, flags=re.M)
    found, start = [], 0
    for kind, begin, end in parts(sql):
        if kind == "end":
            found.append(sql[start:begin])
            start = end
    found.append(sql[start:])
    return [statement.strip() for statement in found if bare(statement)]


def bare(statement):
    """Without its comments."""
    text, at = "", 0
    for kind, begin, end in parts(statement):
        if kind in ("comment", "open"):
            text += statement[at:begin] + " "
            at = end
    return (text + statement[at:]).strip()


def is_select(statement):
    return re.match(r"[\s(]*(select|with|values|table)\b", bare(statement), re.I) is not None


def with_values(statement, values):
    """The statement with `values[n - 1]` in the place of $n."""
    text, at = "", 0
    for kind, begin, end in parts(statement):
        if kind == "parameter":
            text += statement[at:begin] + values[int(statement[begin + 1:end]) - 1]
            at = end
    return text + statement[at:]


def parameters(statement):
    """How many values it wants."""
    return max([int(statement[begin + 1:end]) for kind, begin, end in parts(statement) if kind == "parameter"], default=0)
