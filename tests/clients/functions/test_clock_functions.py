"""What the table of functions (src/query/function_table/rows.rs) and the table of types (src/query/clock/types.rs) say of clock expressions is what pg_proc and pg_type
say, and names nothing that a query may not call."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROWS = (ROOT / "src/query/function_table/rows.rs").read_text()
TYPES = re.findall(r"^    \(pg_sys::(\w+)OID, (-?\d+), (\w+)\),", (ROOT / "src/query/clock/types.rs").read_text(), re.MULTILINE)
NAMES = [name.lower() for name, *_ in TYPES]


def functions(wanted):
    """The functions with a property."""
    rows = re.findall(r"^    \((\d+), ([A-Z_ |]+)\),", ROWS, re.MULTILINE)
    return [int(oid) for oid, properties in rows if wanted in properties.split(" | ")]


def test_functions_take_and_give_types_that_are_known(session):
    assert len(functions("CLOCK")) > 25 and len(functions("COARSE")) > 30
    for oid in {*functions("CLOCK"), *functions("COARSE")}:
        [row] = session.rows("""
            SELECT prorettype::regtype = ANY (%(known)s::regtype[]), proisstrict, proretset, prokind, l.lanname, provolatile IN ('i', 's'),
                   (SELECT bool_and(t::regtype = ANY (%(known)s::regtype[])) FROM unnest(proargtypes) t)
            FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE p.oid = %(oid)s""", {"known": NAMES, "oid": oid})
        assert row == (True, True, False, "f", "internal", True, True), oid


def test_types_are_passed_as_the_server_says(session):
    assert len(TYPES) > 15
    for (_, length, by_value), name in zip(TYPES, NAMES):
        [row] = session.rows("SELECT typlen, typbyval, typinput::oid < 10000, typoutput::oid < 10000 FROM pg_type WHERE oid = %s::regtype", [name])
        assert row == (int(length), by_value == "true", True, True), name


def test_functions_that_make_texts_take_any_values(session):
    for oid in functions("GATHERING"):
        [row] = session.rows("SELECT prorettype::regtype::text, proretset, prokind, lanname FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE p.oid = %s", [oid])
        assert row == ("text", False, "f", "internal")
        [types] = session.rows("SELECT proargtypes::regtype[]::text[] FROM pg_proc WHERE oid = %s", [oid])
        assert set(types[0]) <= {"text", '"any"'}, oid


def test_each_function_is_one_that_a_query_may_call(session):
    """Beside the lists in src/query/volatility: the server's own check of a query that calls nothing else."""
    session.execute("CREATE TABLE t (id int)")
    for oid in functions("CLOCK"):
        [types] = session.rows("SELECT array(SELECT t::regtype::text FROM unnest(proargtypes) t), proname FROM pg_proc WHERE oid = %s", [oid])
        arguments = ", ".join(f"NULL::{one}" for one in types[0])
        query = f'SELECT pg_catalog."{types[1]}"({arguments}), id FROM t'
        [(cacheable, reason)] = session.rows("SELECT cacheable, reason FROM arrow_cache.why(%s)", [query])
        assert cacheable, (query, reason)
