"""The server's settings, as its tables hold them (ConfigureNames* in guc.c or guc_tables.c)."""

import re
import struct

from objects import VARIABLE

INTERNAL, POSTMASTER = 0, 1   # GucContext: cannot change while the server runs


class Setting:
    def __init__(self, name, context, variable):
        self.name, self.fixed, self.variable = name, context in (INTERNAL, POSTMASTER), variable


def read(program):
    """All settings with a variable."""
    found = []
    for table in program.nodes:
        if re.fullmatch(r"ConfigureNames\w*", table.name):
            found += list(entries(table))
    if len(found) < 300:
        raise RuntimeError(f"only {len(found)} settings found: the tables have another form")
    return found


def entries(table):
    """An entry starts with the pointer to its name, its context, its group and a pointer to a description; the first pointer to a
    variable is that of its own."""
    stride = width(table)
    rows = {}
    for place, target in table.places:
        rows.setdefault(place // stride, {})[place % stride] = target
    for row, fields in rows.items():
        if 0 not in fields:
            continue
        context, = struct.unpack_from("<i", table.data, row * stride + 8)
        variables = [target for _, target in sorted(fields.items()) if getattr(target, "kind", None) == VARIABLE]
        if variables:
            yield Setting(fields[0], context, variables[0])


def width(table):
    """Bytes of an entry: the least distance at which every entry has a name."""
    names = {place for place, target in table.places if isinstance(target, str) and re.fullmatch(r"[A-Za-z_0-9.]+", target)}
    for size in range(64, 512, 8):
        count = len(table.data) // size
        if len(table.data) % size == 0 and all(row * size in names for row in range(count - 1)):
            return size
    raise RuntimeError(f"{table.name} has another form than expected")
