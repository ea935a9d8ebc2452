"""The built-in functions of a server, as its source lists them (src/include/catalog/*.dat)."""

import re

ENTRY = re.compile(r"\{((?:[^{}']|'(?:[^'\\]|\\.)*')*)\}")
FIELD = re.compile(r"(\w+)\s*=>\s*'((?:[^'\\]|\\.)*)'")
DEFAULTS = {"prolang": "internal", "prokind": "f", "provolatile": "i", "proargtypes": ""}
SEE_SCRIPT = "see system_functions.sql"
SQL_NAMES = {"integer": "int4", "bigint": "int8", "smallint": "int2", "boolean": "bool", "double precision": "float8"}
PSEUDO, COMPOSITE = "p", "c"
BTREE, HASH = "btree", "hash"


class Function:
    """A row of pg_proc."""

    def __init__(self, row):
        row = {**DEFAULTS, **row}
        self.oid, self.name, self.body = int(row["oid"]), row["proname"], row["prosrc"]
        self.language, self.kind, self.volatility = row["prolang"], row["prokind"], row["provolatile"]
        self.arguments, self.result = row["proargtypes"].split(), row["prorettype"]

    def __str__(self):
        return f"{self.name}({','.join(self.arguments)})"


class Catalog:
    """What the server is born with."""

    def __init__(self, source, unshown):
        """`unshown` are OIDs of types whose output functions no cached query calls unseen."""
        self.unshown = unshown
        self.directory = source / "src/include/catalog"
        self.functions = [Function(row) for row in self.rows("pg_proc")]
        self.by_oid = {function.oid: function for function in self.functions}
        self.by_name = {}
        for function in self.functions:
            self.by_name.setdefault(function.name, []).append(function)
        self.operators = self.rows("pg_operator")
        self.aggregates = {row["aggfnoid"]: row for row in self.rows("pg_aggregate")}
        self.bodies = self.script(source / "src/backend/catalog/system_functions.sql")

    def rows(self, name):
        text = re.sub(r"^\s*#.*$", "", (self.directory / f"{name}.dat").read_text(), flags=re.MULTILINE)
        return [{key: re.sub(r"\\(.)", r"\1", value) for key, value in FIELD.findall(entry)} for entry in ENTRY.findall(text)]

    @staticmethod
    def script(path):
        """Bodies of the functions that are defined in SQL, by name and types of arguments."""
        bodies = {}
        for statement in re.split(r"(?i)CREATE OR REPLACE FUNCTION", path.read_text())[1:]:
            name, arguments = re.match(r"\s*(?:pg_catalog\.)?\"?(\w+)\"?\s*\(([^)]*)\)", statement).groups()
            types = [SQL_NAMES.get(kind, kind) for kind in (" ".join(part.split()) for part in arguments.split(",")) if kind]
            body = re.split(r"(?i)\bRETURN\b|\bBEGIN ATOMIC\b", statement, maxsplit=1)
            bodies[name, tuple(types)] = body[-1]
        return bodies

    def parts(self, aggregate):
        """The functions that make up an aggregate: for each part, all that bear its name. Its first state is a number, or an array of
        numbers, which every session reads the same way."""
        row = self.aggregates.get(str(aggregate)) or self.aggregates[aggregate.name]
        names = [re.sub(r"\(.*", "", row[key]) for key in row if key.endswith("fn") and row[key] != "-"]
        return [self.by_name[name] for name in names]

    def called(self, function):
        """The functions that one in SQL calls. Where the text leaves several of a name open, all of them; none if the text is more
        than an expression, or not understood."""
        body = self.text(function)
        if re.search(r"(?i)\bselect\b.*\bfrom\b", body, re.DOTALL):
            return []
        body = re.sub(r"operator\(pg_catalog\.([^)]+)\)", r"\1", body)
        body = re.sub(r"\(([^()]*)\)\s+overlaps\s+\((.*)\)", r"overlaps(\1, \2)", body)
        found = []
        for name, arguments in calls(body):
            types = [self.type_of(argument, function) for argument in arguments]
            fitting = [other for other in self.by_name.get(name, ()) if len(other.arguments) == len(types) and all(
                kind in (None, wanted) for kind, wanted in zip(types, other.arguments))]
            if not fitting:
                return []
            found += fitting
        for left, sign, right in re.findall(r"(\$\d+(?:::[\w.]+)?)\s*([-+*/<>=~!@#%^&|]+)\s*(\$\d+(?:::[\w.]+)?)", body):
            types = self.type_of(left, function), self.type_of(right, function)
            codes = [row["oprcode"] for row in self.operators if row["oprname"] == sign and (row["oprleft"], row["oprright"]) == types]
            if not codes:
                return []
            found += [other for code in codes for other in self.by_name[re.sub(r"\(.*", "", code)]]
        return found

    def text(self, function):
        """Of a function in SQL."""
        return self.bodies[function.name, tuple(function.arguments)] if function.body == SEE_SCRIPT else function.body

    def converts(self, function):
        """May a function in SQL call an output function, by converting to text?"""
        return "::" in self.text(function)

    @staticmethod
    def type_of(text, function):
        """The type of an argument, `None` if the text does not say."""
        converted = re.fullmatch(r"\$\d+::(?:pg_catalog\.)?(\w+)", text)
        if converted:
            return SQL_NAMES.get(converted[1], converted[1])
        parameter = re.fullmatch(r"\$(\d+)", text)
        if parameter:
            return function.arguments[int(parameter[1]) - 1]
        cast = re.fullmatch(r"cast\(.* as ([\w ]+)\)", text)
        return SQL_NAMES.get(cast[1], cast[1]) if cast else None

    def functions_behind(self, kind):
        """C functions that are called through definitions: `operators` are what compares and hashes values of a type, `output` what
        shows them; `conversions` are those of encodings, `text search` the parser and the dictionaries."""
        if kind == "conversions":
            return sorted({self.by_name[row["conproc"]][0].body for row in self.rows("pg_conversion")})
        if kind == "text search":
            parsers = [row[key] for row in self.rows("pg_ts_parser") for key in ("prsstart", "prstoken", "prsend", "prsheadline", "prslextype")]
            return sorted({*parsers, *(row["tmpllexize"] for row in self.rows("pg_ts_template")), "dsnowball_lexize"})
        if kind == "output":
            names = [row["typoutput"] for row in self.rows("pg_type")
                     if row.get("typtype") not in (PSEUDO, COMPOSITE) and int(row["oid"]) not in self.unshown]
            return sorted({self.by_name[name][0].body for name in [*names, "array_out", "record_out", "enum_out"]})
        families = {f"{row['opfmethod']}/{row['opfname']}" for row in self.rows("pg_opfamily") if row["opfmethod"] in (BTREE, HASH)}
        names = [row["amproc"] for row in self.rows("pg_amproc")
                 if row["amprocfamily"] in families and row["amprocnum"] in ("1", "2") and row["amproclefttype"] == row["amprocrighttype"]]
        operators = {f"{row['oprname']}({row.get('oprleft', '0')},{row.get('oprright', '0')})": row["oprcode"] for row in self.operators}
        names += [operators[row["amopopr"]] for row in self.rows("pg_amop")
                  if row["amopfamily"] in families and row["amoplefttype"] == row["amoprighttype"]]
        for row in self.rows("pg_range"):
            names += [row[key] for key in ("rngcanonical", "rngsubdiff") if row[key] != "-"]
        found = [other for name in names for other in self.by_name[re.sub(r"\(.*", "", name)]]
        return sorted({other.body for other in found if other.language == "internal"})


def calls(body):
    """Calls in a text: (name, arguments as texts)."""
    found = []
    for match in re.finditer(r"(\w+)\(", body):
        if match[1].lower() in ("cast", "select"):
            continue
        depth, arguments, start = 1, [], match.end()
        for place in range(match.end(), len(body)):
            depth += {"(": 1, ")": -1}.get(body[place], 0)
            if depth == 0 or (depth == 1 and body[place] == ","):
                arguments.append(body[start:place].strip())
                start = place + 1
            if depth == 0:
                break
        found.append((match[1], [argument for argument in arguments if argument]))
    return found
