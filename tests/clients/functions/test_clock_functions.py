"""The tables of the clock (src/query/clock/functions.rs, kinds.rs) say what pg_proc and pg_operator say, and name nothing that a query may not call."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = (ROOT / "src/query/clock/functions.rs").read_text()
KINDS = (ROOT / "src/query/clock/kinds.rs").read_text()
TYPES = {"Date": "date", "Time": "time", "TimeTz": "timetz", "Timestamp": "timestamp", "TimestampTz": "timestamptz", "Interval": "interval",
         "Int2": "int2", "Int4": "int4", "Int8": "int8", "Float8": "float8", "Numeric": "numeric", "Bool": "bool", "Text": "text",
         "Name": "name", "Unknown": "unknown"}
# Values of these are texts as well.
TEXTS = "varchar", "bpchar"


def functions():
    return re.findall(r"^    of\((\d+), (\d), (\w+), (\w+)\), // (.*)$", SOURCE, re.MULTILINE)


def operators():
    return re.findall(r"^    \((\d+), (\d+)\), //", SOURCE, re.MULTILINE)


def test_functions_are_those_of_the_server(session):
    assert len(functions()) > 140
    for oid, arguments, result, coarse, name in functions():
        [row] = session.rows("""
            SELECT p.oid::regprocedure::text, pronargs, prorettype, proisstrict, proretset, prokind, provolatile, l.lanname,
                   (SELECT array_agg(t::regtype::text) FROM unnest(proargtypes) t)
            FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE p.oid = %s""", [oid])
        shown, count, returned, strict, returns_set, kind, volatility, language, types = row
        assert (shown, count) == (name, int(arguments))
        kinds = [TYPES[result], *(TEXTS if result == "Text" else ())]
        assert session.rows("SELECT %s::oid = ANY (%s::regtype[])", [returned, kinds]) == [(True,)], name
        assert (strict, returns_set, kind, language) == (True, False, "f", "internal"), name
        assert volatility in "is", name
        known = session.rows("SELECT bool_and(t::regtype = ANY (%s::regtype[])) FROM unnest(%s::text[]) t",
                             [[*TYPES.values(), *TEXTS], types])
        assert known == [(True,)], name
        # The argument that decides whether it is coarse.
        place = {"Unit": ("text", 0), "Stride": ("interval", 0), "Pattern": ("text", 1)}.get(coarse)
        assert place is None or types[place[1]] == place[0], name


def test_operators_are_those_of_the_server(session):
    listed = {oid for oid, *_ in functions()}
    assert len(operators()) > 50
    for operator, function in operators():
        assert function in listed
        assert session.rows("SELECT oprcode::oid FROM pg_operator WHERE oid = %s", [operator]) == [(int(function),)], operator


def test_types_are_passed_as_the_server_says(session):
    kinds = re.findall(r"^    of\((\w+), pg_sys::(\w+)OID, (-?\d+), (\w+), (\d+), (\d+), (?:None|Some\((\d+)\))\),", KINDS, re.MULTILINE)
    assert [kind for kind, *_ in kinds] == [*TYPES, "Text", "Text"]
    assert [name.lower() for _, name, *_ in kinds] == [*TYPES.values(), *TEXTS]
    for _, name, length, by_value, reads, writes, compares in kinds:
        [row] = session.rows("""
            SELECT typlen, typbyval, typinput::oid, typoutput::oid,
                   (SELECT amproc::oid FROM pg_amproc a JOIN pg_opclass c ON opcfamily = amprocfamily AND opcdefault AND opcmethod = 403 AND opcintype = t.oid
                    WHERE amprocnum = 1 AND amproclefttype = t.oid AND amprocrighttype = t.oid)
            FROM pg_type t WHERE oid = %s::regtype""", [name.lower()])
        assert row[:4] == (int(length), by_value == "true", int(reads), int(writes)), name
        assert compares == "" or row[4] == int(compares), name


def test_functions_that_make_texts_take_any_values(session):
    [listed] = re.findall(r"GATHERING: .* = \[(.*)\];", SOURCE)
    for oid in map(int, listed.split(", ")):
        [row] = session.rows("SELECT prorettype::regtype::text, proretset, prokind, lanname FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE p.oid = %s", [oid])
        assert row == ("text", False, "f", "internal")
        [types] = session.rows("SELECT proargtypes::regtype[]::text[] FROM pg_proc WHERE oid = %s", [oid])
        assert set(types[0]) <= {"text", '"any"'}, oid


def test_each_function_is_one_that_a_query_may_call(session):
    """Beside the lists in src/query/volatility: the server's own check of a query that calls nothing else."""
    session.execute("CREATE TABLE t (id int)")
    for oid, _, _, _, name in functions():
        [types] = session.rows("SELECT array(SELECT t::regtype::text FROM unnest(proargtypes) t), proname FROM pg_proc WHERE oid = %s", [oid])
        arguments = ", ".join(f"NULL::{one}" for one in types[0])
        query = f'SELECT pg_catalog."{types[1]}"({arguments}), id FROM t'
        [(cacheable, reason)] = session.rows("SELECT cacheable, reason FROM arrow_cache.why(%s)", [query])
        assert cacheable, (name, reason)
