"""What refers to what in a compiled program: its object files read as a graph.

Each function and each variable has a section of its own (-ffunction-sections -fdata-sections), and whatever refers to another
section does so by a relocation. So the relocations of a section are all that its function can call, read, write or take the
address of, and those of a table of pointers all that can be found through it. Reads 64-bit little-endian ELF, of any machine
whose relocations carry addends.
"""

import struct

SHT_SYMTAB, SHT_RELA, SHT_NOBITS = 2, 4, 8
SHF_WRITE, SHF_ALLOC = 1, 2
SHF_STRINGS = 0x20
TEXTS = ".rodata"   # what has no name: texts, and numbers that do not fit into an instruction
STT_OBJECT, STT_FUNC, STT_SECTION = 1, 2, 3
STB_LOCAL = 0
SHN_UNDEF, SHN_LORESERVE = 0, 0xFF00

FUNCTION, CONSTANT, VARIABLE, OUTSIDE = "function", "constant", "variable", "outside"


class Node:
    """A function, a constant, a variable, or what no object defines (`OUTSIDE`: the libraries)."""

    __slots__ = ("name", "kind", "file", "data", "edges", "places")

    def __init__(self, name, kind, file, data=b""):
        self.name, self.kind, self.file, self.data = name, kind, file, data
        self.edges = set()
        self.places = []   # of constants and variables: (offset, what is pointed to: a node, or a text)

    def __repr__(self):
        return self.name


class Program:
    """All objects together."""

    def __init__(self):
        self.globals = {}       # name → node
        self.nodes = []
        self.references = []    # (node, offset, name): resolved when all objects are known

    def add(self, path, name):
        Object(self, path, name)

    def link(self):
        """To be called once, when all objects have been added."""
        for node, offset, name in self.references:
            target = self.globals.get(name)
            if target is None:
                target = self.globals[name] = Node(name, OUTSIDE, "")
                self.nodes.append(target)
            refer(node, offset, target)
        self.references = []

    def named(self, name):
        """All nodes of this name: static ones of several files may share it."""
        return [node for node in self.nodes if node.name == name]


def refer(node, offset, target):
    node.edges.add(target)
    if node.kind != FUNCTION:
        node.places.append((offset, target))


class Object:
    """One file."""

    def __init__(self, program, path, name):
        self.program, self.name = program, name
        self.data = data = path.read_bytes()
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no 64-bit little-endian ELF file")
        start, = struct.unpack_from("<Q", data, 0x28)
        size, count, strings = struct.unpack_from("<HHH", data, 0x3A)
        if count == 0:   # more sections than fit; the first one says how many
            count = struct.unpack_from("<Q", data, start + 0x20)[0]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + size * i) for i in range(count)]
        if strings == 0xFFFF:
            strings = self.sections[0][6]
        self.names = [self.text(strings, section[0]) for section in self.sections]
        self.read_symbols()
        self.read_relocations()

    def text(self, section, offset):
        start = self.sections[section][4] + offset
        return self.data[start:self.data.index(b"\0", start)].decode("utf-8", "replace")

    def read_symbols(self):
        [table] = [section for section in self.sections if section[1] == SHT_SYMTAB]
        self.symbols, self.nodes = [], {}
        owners = {}
        for offset in range(table[4], table[4] + table[5], 24):
            name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", self.data, offset)
            name = self.text(table[6], name)
            self.symbols.append((name, info >> 4, info & 15, index, value))
            if SHN_UNDEF < index < SHN_LORESERVE and info & 15 in (STT_OBJECT, STT_FUNC):
                owners.setdefault(index, []).append((value, name))
        for index, section in enumerate(self.sections):
            if not section[2] & SHF_ALLOC or section[1] == SHT_RELA or self.names[index].startswith((".eh_frame", ".note")):
                continue
            named = sorted(owners.get(index, []))
            self.nodes[index] = node = Node(
                named[0][1] if named else f"{self.name}{self.names[index]}", self.kind(index), self.name,
                b"" if section[1] == SHT_NOBITS else self.data[section[4]:section[4] + section[5]])
            self.program.nodes.append(node)
        for name, binding, _, index, _ in self.symbols:
            if binding != STB_LOCAL and index in self.nodes:
                self.program.globals[name] = self.nodes[index]

    def kind(self, index):
        name, flags = self.names[index], self.sections[index][2]
        if name.startswith(".text"):
            return FUNCTION
        return VARIABLE if flags & SHF_WRITE and not name.startswith(".data.rel.ro") else CONSTANT

    def read_relocations(self):
        for section in self.sections:
            if section[1] != SHT_RELA or section[7] not in self.nodes:
                continue
            node = self.nodes[section[7]]
            for offset in range(section[4], section[4] + section[5], 24):
                place, info, addend = struct.unpack_from("<QQq", self.data, offset)
                name, _, kind, index, value = self.symbols[info >> 32]
                if index in self.nodes:
                    if self.names[index] == TEXTS or self.sections[index][2] & SHF_STRINGS:
                        if node.kind != FUNCTION:
                            node.places.append((place, self.text(index, value + addend)))
                    elif self.nodes[index] is not node:
                        refer(node, place, self.nodes[index])
                elif index == SHN_UNDEF and kind != STT_SECTION:
                    self.program.references.append((node, place, name))
