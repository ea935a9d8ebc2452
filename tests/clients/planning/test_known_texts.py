"""Texts that a session has seen before: what is remembered of one is not taken for another, nor for the same text that is read otherwise."""

import pytest


@pytest.fixture
def numbers(session):
    session.execute("CREATE TABLE numbers AS SELECT g AS a, 'n' || g AS b FROM generate_series(1, 300) g")
    return session


def test_many_texts_by_turns(numbers):
    """More texts than are remembered, some of them longer than those, some of which differ in their last byte only."""
    pads = ("", " " * 700, "/*" + "x" * 3000 + "*/ ")
    for turn in range(3):
        for n in range(1, 150):
            for pad in pads if n % 10 == 0 else pads[:1]:
                query = f"SELECT b FROM numbers WHERE {pad}a = {n}"
                assert numbers.execute(query).fetchall() == [(f"n{n}",)]
                assert turn == 0 or numbers.status() == "HIT"


def test_the_same_text_read_in_two_ways(numbers):
    query = r"SELECT count(*), '\\' || '\'' -- ' FROM numbers WHERE a < 10".replace("'\\'' -- '", "'\\'' /* ' || '*/'")
    seen = {}
    for turn in range(3):
        for setting in ("on", "off"):
            numbers.execute(f"SET standard_conforming_strings = {setting}; SET escape_string_warning = off")
            for enabled in ("off", "on", "on"):
                numbers.execute(f"SET pg_arrow_cache.enabled = {enabled}")
                got = numbers.pgconn.exec_(query.encode())
                shown = got.error_message or got.get_value(0, 1)
                assert seen.setdefault(setting, shown) == shown
    assert seen["on"] != seen["off"]


def test_settings_and_names_do_not_stay_with_a_text(numbers, connect):
    """The text is the same, the question is not."""
    numbers.execute("CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.numbers AS SELECT 7 AS a, 'other' AS b")
    query = "SELECT max(b) FROM numbers"
    try:
        for _ in range(3):
            assert numbers.execute(query).fetchone() == ("n99",)
            numbers.execute("SET search_path = elsewhere")
            assert numbers.execute(query).fetchone() == ("other",)
            numbers.execute(f"SET search_path = {connect.schema}")
        assert numbers.execute(query).fetchone() == ("n99",) and numbers.status() == "HIT"
    finally:
        numbers.execute("DROP SCHEMA elsewhere CASCADE")


def test_hints_are_read_each_time(numbers):
    query = "SELECT count(*) FROM numbers"
    for _ in range(2):
        numbers.execute(query)
    assert numbers.status() == "HIT"
    numbers.execute(f"/*+ no_arrow_cache */ {query}")
    assert numbers.status() == "BYPASS"
    numbers.execute(query)
    assert numbers.status() == "HIT"
