"""The tables of the clock (src/query/clock/functions.rs, types.rs) say what pg_proc and pg_type say, and name nothing that a query may not call."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = (ROOT / "src/query/clock/functions.rs").read_text()
TYPES = re.findall(r"^    \(pg_sys::(\w+)OID, (-?\d+), (\w+)\),", (ROOT / "src/query/clock/types.rs").read_text(), re.MULTILINE)
NAMES = [name.lower() for name, *_ in TYPES]


def functions():
    return re.findall(r"^    of\((\d+), (\d), (\w+)\), // (.*)$", SOURCE, re.MULTILINE)


def test_functions_are_those_of_the_server(session):
    assert len(functions()) > 140
    for oid, arguments, coarse, name in functions():
        [row] = session.rows("""
            SELECT p.oid::regprocedure::text, pronargs, prorettype::regtype = ANY (%s::regtype[]), proisstrict, proretset, prokind, provolatile, l.lanname,
                   (SELECT array_agg(t::regtype::text) FROM unnest(proargtypes) t)
            FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE p.oid = %s""", [NAMES, oid])
        shown, count, returns_known, strict, returns_set, kind, volatility, language, types = row
        assert (shown, count, returns_known) == (name, int(arguments), True)
        assert (strict, returns_set, kind, language) == (True, False, "f", "internal"), name
        assert volatility in "is", name
        known = session.rows("SELECT bool_and(t::regtype = ANY (%s::regtype[])) FROM unnest(%s::text[]) t", [NAMES, types])
        assert known == [(True,)], name
        # The argument that decides whether it is coarse.
        place = {"Unit": ("text", 0), "Stride": ("interval", 0), "Pattern": ("text", 1)}.get(coarse)
        assert place is None or types[place[1]] == place[0], name


def test_types_are_passed_as_the_server_says(session):
    assert len(TYPES) > 15
    for (_, length, by_value), name in zip(TYPES, NAMES):
        [row] = session.rows("SELECT typlen, typbyval, typinput::oid < 10000, typoutput::oid < 10000 FROM pg_type WHERE oid = %s::regtype", [name])
        assert row == (int(length), by_value == "true", True, True), name


def test_times_are_compared_by_their_own_functions(session):
    [listed] = re.findall(r"COMPARISONS: .* = \[(.*)\];", (ROOT / "src/query/clock/comparisons.rs").read_text())
    for name, function in re.findall(r"\((\w+)OID, (\d+)\)", listed):
        assert session.rows("""
            SELECT amproc::oid FROM pg_amproc JOIN pg_opclass ON opcfamily = amprocfamily AND opcdefault AND opcmethod = 403
            WHERE opcintype = %s::regtype AND amprocnum = 1 AND amproclefttype = opcintype AND amprocrighttype = opcintype""",
            [name.lower()]) == [(int(function),)], name


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
    for oid, _, _, name in functions():
        [types] = session.rows("SELECT array(SELECT t::regtype::text FROM unnest(proargtypes) t), proname FROM pg_proc WHERE oid = %s", [oid])
        arguments = ", ".join(f"NULL::{one}" for one in types[0])
        query = f'SELECT pg_catalog."{types[1]}"({arguments}), id FROM t'
        [(cacheable, reason)] = session.rows("SELECT cacheable, reason FROM arrow_cache.why(%s)", [query])
        assert cacheable, (name, reason)
