"""What each built-in function can reach: settings, definitions, and other state."""

import fnmatch
import re

import cuts
from objects import FUNCTION, OUTSIDE, VARIABLE

# What opens a catalog, or asks for one: who calls these must be explained in cuts.DEFINITIONS.
CATALOG_ACCESS = re.compile(
    r"SearchSysCache\w*|SearchCatCache\w*|GetSysCacheOid|GetSysCacheHashValue|(try_)?(table|relation|index)_open(rv\w*)?"
    r"|systable_beginscan\w*|RelationIdGetRelation|fmgr_info_cxt_security")
# What reads a value as if a client had sent it: a text among it is then taken to be in the client's encoding.
RECEIVING = re.compile(r"(Oid)?ReceiveFunctionCall")
GETTEXT = ("gettext", "dgettext", "ngettext", "dngettext")


class Names:
    """A list of cuts.py as a question: does it name this node?"""

    def __init__(self, entries, kind=None):
        self.kind = kind
        self.patterns = [pattern for entry in entries for pattern in entry[0].split()]
        self.found = {}
        self.plain = re.compile("|".join(fnmatch.translate(pattern) for pattern in self.patterns if ":" not in pattern) or r"\Z.")
        self.placed = [pattern for pattern in self.patterns if ":" in pattern]

    def __contains__(self, node):
        answer = self.found.get(node)
        if answer is None:
            answer = self.found[node] = self.kind in (None, node.kind) and (bool(self.plain.match(node.name)) or any(
                fnmatch.fnmatchcase(f"{node.file.rsplit('/', 1)[-1]}:{node.name}", pattern) for pattern in self.placed))
        return answer

    def stand_for(self, nodes):
        """What each pattern names."""
        names = {}
        for node in nodes:
            if self.kind in (None, node.kind):
                names.setdefault(node.name, node.name)
                names[f"{node.file.rsplit('/', 1)[-1]}:{node.name}"] = node.name
        return {pattern: sorted({names[name] for name in fnmatch.filter(names, pattern)}) for pattern in self.patterns}


class Reach:
    """What one function reaches: a name → the way to it."""

    def __init__(self):
        self.settings, self.state, self.definitions, self.receiving = {}, {}, {}, {}

    def absorb(self, other, by):
        for mine, others in ((self.settings, other.settings), (self.state, other.state), (self.definitions, other.definitions),
                             (self.receiving, other.receiving)):
            for name, way in others.items():
                mine.setdefault(name, f"{by} → {way}")


class Analysis:
    def __init__(self, program, settings, catalog):
        self.program, self.catalog = program, catalog
        self.settings = settings                      # variable node → name of the setting
        self.invisible, self.definitions = Names(cuts.INVISIBLE), Names(cuts.DEFINITIONS)
        self.steady, self.pure = Names(cuts.STEADY, VARIABLE), Names(cuts.PURE, OUTSIDE)
        self.gates = {node for node in program.nodes if node.kind == FUNCTION
                      and any(CATALOG_ACCESS.fullmatch(target.name) for target in node.edges)}
        self.steps = {}
        for caller, callee, makers, _ in cuts.STEPS:
            self.steps.setdefault(caller, []).append((callee, makers))
        self.known, self.implied_reach = {}, {}

    def lists(self):
        return self.invisible, self.definitions, self.steady, self.pure

    # -- internal functions

    def walk(self, root):
        """All nodes that can be reached, each with the one that it was reached from."""
        names = None
        while True:
            came_from = self.spread(root, names)
            reached = {node.name for node in came_from}
            if names == reached or not self.steps:
                return came_from
            names = reached if names is None else names | reached

    def spread(self, root, made):
        """Follows all references. Steps that need a maker are taken if it is among the names `made`."""
        came_from, waiting = {root: None}, [root]
        while waiting:
            node = waiting.pop()
            if self.ends(node) and not (node is root and node not in self.definitions):
                continue
            closed = [callee for callee, makers in self.steps.get(node.name, ())
                      if not (made and any(fnmatch.filter(made, maker) for maker in makers.split()))]
            for target in node.edges:
                if target not in came_from and not any(fnmatch.fnmatchcase(target.name, callee) for callee in closed):
                    came_from[target] = node
                    waiting.append(target)
        return came_from

    def ends(self, node):
        return (node.kind == OUTSIDE or node in self.gates or node in self.invisible or node in self.definitions
                or node in self.steady)

    def reach_of_code(self, name):
        """What the C function `name` reaches."""
        known = self.known.get(name)
        if known is not None:
            return known
        self.known[name] = reach = Reach()
        root = self.program.globals.get(name)
        if root is None or root.kind != FUNCTION:
            reach.state[f"no function {name} in the server"] = name
            return reach
        came_from = self.walk(root)
        for node in came_from:
            if RECEIVING.fullmatch(node.name):
                reach.receiving[node.name] = self.way(came_from, node)
            if node in self.invisible:
                continue
            way = self.way(came_from, node)
            if node in self.definitions:
                reach.definitions[node.name] = way
                if node.name in cuts.IMPLIED:
                    reach.absorb(self.implied(cuts.IMPLIED[node.name]), way)
            elif node in self.gates:
                reach.state[f"catalogs, in {node.name}"] = way
            elif node.kind == VARIABLE:
                setting = self.settings.get(node) or self.behind(node.name)
                if setting:
                    reach.settings.setdefault(setting, way)
                elif node not in self.steady:
                    reach.state[node.name] = way
            elif node.kind == OUTSIDE:
                if node.name in GETTEXT:
                    reach.settings.setdefault("lc_messages", way)
                elif node not in self.pure and not node.name.startswith("audit_pure_"):
                    reach.state[node.name] = way
        return reach

    @staticmethod
    def way(came_from, node):
        names = []
        while node is not None:
            names.append(node.name)
            node = came_from[node]
        return " → ".join(reversed(names))

    @staticmethod
    def behind(name):
        return next((setting for pattern, setting in cuts.BEHIND.items() if fnmatch.fnmatchcase(name, pattern)), None)

    def implied(self, kind):
        """What is called through definitions."""
        reach = self.implied_reach.get(kind)
        if reach is None:
            self.implied_reach[kind] = reach = Reach()
            for name in self.catalog.functions_behind(kind):
                reach.absorb(self.reach_of_code(name), f"({kind})")
        return reach

    # -- functions of every language

    def reach(self, function, within=()):
        reach = Reach()
        if function.oid in within:
            return reach
        if function.kind == "a":
            for part in self.catalog.parts(function):
                for other in part:
                    reach.absorb(self.reach(other, (*within, function.oid)), function.name)
        elif function.kind == "w" or function.language == "internal":
            reach = self.reach_of_code(function.body)
        elif function.language == "sql":
            called = self.catalog.called(function)
            if not called:
                reach.state["a query in SQL"] = function.name
            if self.catalog.converts(function):
                reach.absorb(self.implied("output"), function.name)
            for other in called:
                reach.absorb(self.reach(other, (*within, function.oid)), function.name)
        else:
            reach.state[f"language {function.language}"] = function.name
        return reach
