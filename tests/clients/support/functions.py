"""Built-in functions as a server lists them, and calls of them over the columns of a table of samples."""

import random
import re
from pathlib import Path

from support.corners import CORNERS
from support.samples import VALUES

TABLE = Path(__file__).resolve().parents[3] / "src/query/function_table"
ROWS = 40
# Columns of one type: a call with more arguments of the type uses a column twice.
COPIES = 4
SAMPLES = {
    "int2": ["2", "-1", "7", "100"], "int4": ["1", "2", "-1", "7", "100"], "int8": ["1", "2", "-1", "7", "100"],
    "float4": ["0.5", "-1", "90"], "float8": ["0.5", "-1", "90", "1e15", "1234.5678901234567"], "numeric": ["0.5", "1", "-1", "2"],
    "text": ["abc", "ABC ab", "%b_", "[a-c]+", "(", "2024-05-06", "day", "hour", "UTC", "Europe/Berlin", "EST", "SAST", "english", "utf8", "hex",
             "escape", "base64", "g", "12.50", "{a,b}", "FM999.00", "NFC", "\\u00e9", "<a><b>1</b></a>", "//b", "0.1 + 0.2", "a"],
    "name": ["abc", "Abc def", "utf8", "latin1"],
    "bytea": ["\\x616263", "\\x41"],
    "date": ["2024-05-06", "1999-01-08"], "time": ["12:34:56.5"], "timestamp": ["2024-05-06 07:08:09.123456"],
    "timestamptz": ["2024-05-06 07:08:09.123456+00"], "interval": ["1 day", "01:00:00", "1 mon 2 days 03:04:05.6"],
    "json": ['{"a": {"b": [1, 2.50, "x"]}}', '[{"a": 1}, {"a": 2}]'], "jsonb": ['{"a": {"b": [1, 2.50, "x"]}}', '[{"a": 1}, {"a": 2}]'],
    "jsonpath": ["$.a", "$[*].a ? (@ > 1)", '$.b.datetime("DD TMMonth YYYY")'],
    "int4[]": ["{1}", "{7,2,1}"], "text[]": ["{a,b}", "{a}"], "float8[]": ["{0.1,2.5}", "{3,1,0.5,0.25,1}"], "float4[]": ["{0.1,0.2,0.4,1}"],
    "int8[]": ["{1,2}"], "bool[]": ["{t,f}"], "oid[]": ["{1,2}"], "bytea[]": ['{"\\\\x01"}'], "regclass[]": ["{pg_class}"],
    "jsonb[]": ['{"{}"}'], "jsonpath[]": ["{$.a}"], "xml[]": ["{<a/>}"], "interval[]": ["{1 day}"], "date[]": ["{2024-05-06}"],
    "varchar": ["abc"], "bpchar": ["abc"], "bit": ["1", "0"], "varbit": ["1010"],
    "tsrange": ["[2024-01-01,2024-02-01)"], "int8range": ["[1,5)"], "nummultirange": ["{[1,2)}"], "datemultirange": ["{[2024-01-01,2024-02-01)}"],
    "txid_snapshot": ["10:20:10,14,15"], "regconfig": ["english", "simple"], "regdictionary": ["simple", "english_stem"],
    "regprocedure": ["abs(integer)"], "regnamespace": ["pg_catalog"], "regtype": ["integer"], "regoper": ["||/"], "gtsvector": [],
    "polygon": ["((0,0),(4,0),(4,4),(0.3333333333333333,4))"], "circle": ["<(0,0),5>", "<(0.3333333333333333,2),1>"],
    "path": ["[(0,0),(1,1),(3,2)]", "[(0.3333333333333333,2),(1,1)]"], "lseg": ["[(0,1),(1,0)]", "[(0.3333333333333333,2),(1,1)]"],
    "box": ["(2,2),(0.3333333333333333,0.3)"], "line": ["{1,-1,0.3333333333333333}"], "point": ["(0.1,0.3333333333333333)"], "pg_ndistinct": [],
}
# The types that are used for polymorphic ones; "any" is a text.
POLYMORPHIC = {
    "anyelement": "int4", "anyarray": "int4[]", "anynonarray": "int4", "anyenum": "mood", "anyrange": "int4range",
    "anymultirange": "int4multirange", "anycompatible": "int4", "anycompatiblearray": "int4[]", "anycompatiblenonarray": "int4",
    "anycompatiblerange": "int4range", "anycompatiblemultirange": "int4multirange", '"any"': "text",
}
# The casts of values that are passed as polymorphic types.
SEND = {
    "anyelement": "int4send", "anynonarray": "int4send", "anycompatible": "int4send", "anycompatiblenonarray": "int4send",
    "anyarray": "array_send", "anycompatiblearray": "array_send", "anyenum": "enum_send", "anyrange": "range_send",
    "anymultirange": "multirange_send", "anycompatiblerange": "range_send", "anycompatiblemultirange": "multirange_send",
}


def rows():
    """The rows of the table of functions: number, properties, signature, which is None for those that are clean and nothing else."""
    found = re.findall(r"^    \((\d+), ([A-Z_ |]+)\), // ([^:\n]*)", (TABLE / "rows.rs").read_text(), re.MULTILINE)
    block = re.search(r"= &\[(.*?)^\];", (TABLE / "generated_clean.rs").read_text(), re.DOTALL | re.MULTILINE)[1]
    return ([(int(number), set(names.split(" | ")), signature) for number, names, signature in found]
            + [(int(number), {"CLEAN"}, None) for number in re.findall(r"\d+", block)])


def numbers(*properties):
    """The functions that have one of these properties."""
    return sorted(number for number, has, _ in rows() if has.intersection(properties))


class Sampled:
    """A table for each set of types that a function takes, with `COPIES` columns of each type."""

    def __init__(self, session, functions):
        self.session, self.tables = session, {}
        session.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
        chance = random.Random(7)
        self.columns = {}
        rows = [[str(row)] for row in range(ROWS)]
        definitions = []
        for kind in sorted({self.source(kind) for function in functions for kind in function.arguments}):
            texts = self.accepted(session, kind)
            if not texts:
                continue
            names = self.columns[kind] = [f"c{len(definitions) + copy}" for copy in range(COPIES)]
            definitions += [f"{name} {kind}" for name in names]
            for _ in names:
                column = [texts[number % len(texts)] for number in range(max(ROWS, len(texts)))]
                chance.shuffle(column)
                for row, text in zip(rows, column):
                    row.append(text)
        session.execute(f"CREATE TABLE sampled (id int, {', '.join(definitions)})")
        for row in rows:
            session.execute(f"INSERT INTO sampled VALUES ({', '.join(map(quote, row))})")

    @staticmethod
    def source(kind):
        """The type of the column that an argument comes from."""
        kind = POLYMORPHIC.get(kind, kind)
        return {"cstring": "text", "record": "text"}.get(kind, kind)

    def table(self, kinds):
        """A narrow table is quicker to plan for."""
        name = self.tables.get(kinds)
        if name is None:
            name = self.tables[kinds] = f"sampled_{len(self.tables)}"
            columns = [column for kind in sorted(kinds) for column in self.columns[kind]]
            self.session.execute(f"CREATE TABLE {name} AS SELECT {', '.join(['id', *columns])} FROM sampled ORDER BY id")
        return name

    @staticmethod
    def accepted(session, kind):
        """The samples of a type that it takes."""
        texts = [*SAMPLES.get(kind, ()), *VALUES.get(kind, ()), *CORNERS.get(kind, ())]
        found = []
        for text in dict.fromkeys(text for text in texts if len(text) < 1000 and text != "NULL"):
            try:
                session.execute(f"SELECT {quote(text)}::{kind}")
                found.append(text)
            except Exception:  # a text that another version takes
                continue
        return found

    def call(self, function):
        """An expression that calls a function over the columns of a table, and the table; `None` twice if there are no values of its
        arguments."""
        used, arguments = {}, []
        kinds = frozenset(map(self.source, function.arguments))
        if not kinds <= self.columns.keys():
            return None, None
        for kind in function.arguments:
            kind = POLYMORPHIC.get(kind, kind)
            source = self.source(kind)
            place = used[source] = used.get(source, -1) + 1
            column = self.columns[source][place % COPIES]
            arguments.append({"cstring": f"textout({column})", "record": f"ROW({column}, id)"}.get(kind, column))
        if function.variadic and function.arguments[-1].endswith("[]"):
            arguments[-1] = f"VARIADIC {arguments[-1]}"
        table = self.table(kinds)
        return function.expression(arguments, table), table


class Function:
    """A row of pg_proc."""

    QUERY = """SELECT p.oid, p.proname, ARRAY(SELECT format_type(t, -1) FROM unnest(p.proargtypes) t), p.prokind, p.provariadic <> 0,
                      a.aggkind, a.aggnumdirectargs, t.typname, t.typsend::text
               FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid
               WHERE (t.typsend <> 0 OR t.typname LIKE 'any%%') AND p.oid = ANY(%s) AND p.prorettype <> ALL('{internal,trigger,event_trigger}'::regtype[]) ORDER BY p.oid"""
    SHORT = {"integer": "int4", "bigint": "int8", "smallint": "int2", "boolean": "bool", "real": "float4", "double precision": "float8",
             "character": "bpchar", "character varying": "varchar", "bit varying": "varbit", "time without time zone": "time",
             "time with time zone": "timetz", "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz"}

    def __init__(self, oid, name, arguments, kind, variadic, aggregate, direct, result, send):
        self.oid, self.name, self.kind, self.variadic = oid, name, kind, variadic
        self.send = SEND.get(result, send)
        self.aggregate, self.direct = aggregate, direct
        self.arguments = [self.short(argument) for argument in arguments]

    def __str__(self):
        return f"{self.oid} {self.name}({', '.join(self.arguments)})"

    @classmethod
    def short(cls, kind):
        return cls.short(kind[:-2]) + "[]" if kind.endswith("[]") else cls.SHORT.get(kind, kind)

    def expression(self, arguments, table):
        name = f'pg_catalog."{self.name}"'
        if self.kind == "w":
            return f"{name}({', '.join(arguments)}) OVER (ORDER BY id)"
        if self.kind != "a":
            return f"{name}({', '.join(arguments)})"
        if self.aggregate == "n":
            return f"{name}({', '.join(arguments) or '*'})"
        # Direct arguments must not come from the rows.
        direct = [f"(SELECT {argument} FROM {table} WHERE id = 1)" for argument in arguments[:self.direct]]
        return f"{name}({', '.join(direct)}) WITHIN GROUP (ORDER BY {', '.join(arguments[self.direct:])})"


def quote(text):
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
