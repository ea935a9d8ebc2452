"""Parameters are part of the key: by value and type, whether they come as text or binary."""

import struct

import pytest

from support.samples import VALUES, fill, slug
from support.wire import data_rows


def oid(client, sql_type):
    return int(client.value(f"SELECT '{sql_type}'::regtype::oid"))


def test_text_and_binary_are_one_question(session, wire):
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g")
    client = wire()
    client.parse("SELECT count(*) FROM t WHERE a > $1", "s", [23]).sync()
    runs = [(b"7", 0), (struct.pack("!i", 7), 1), (b"7", 0), (b" 07", 0)]
    for number, (value, value_format) in enumerate(runs):
        assert data_rows(client.bind([value], name="s", value_format=value_format).execute().sync()) == [[b"3"]]
        assert client.status() == ("HIT" if number else "MISS")
    assert data_rows(client.bind([b"8"], name="s").execute().sync()) == [[b"2"]]
    assert client.status() == "MISS"


def test_types_tell_questions_apart(session, wire):
    """The same bytes with another type are another key."""
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 3) g")
    client = wire()
    answers = {}
    for name in ("int4", "int8", "numeric", "text", "bytea", "float8"):
        client.parse("SELECT a, $1 AS v FROM t ORDER BY a", types=[oid(client, name)])
        answers[name] = data_rows(client.bind([b"12"]).execute().sync())
        assert client.status() == "MISS", name
    assert answers["text"] != answers["bytea"]
    assert client.value("SELECT count(*) FROM arrow_cache.entries") == "6"


def test_null_empty_and_missing(session):
    session.execute("CREATE TABLE t AS SELECT ''::text AS a UNION ALL SELECT NULL")
    query = "SELECT count(*), %s::text FROM t WHERE a IS NOT DISTINCT FROM %s::text"
    answers = {("", ""): (1, ""), (None, None): (1, None), ("", None): (1, ""), (None, ""): (1, None)}
    for status in ("MISS", "HIT"):
        for parameters, row in answers.items():
            assert session.rows(query, parameters) == [row]
            assert session.status() == status


def test_values_do_not_run_together(session):
    """('ab', 'c') is not ('a', 'bc')."""
    session.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    for first, second in (("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", "")):
        assert session.rows("SELECT %s::text, %s::text FROM t", (first, second)) == [(first, second)]
        assert session.status() == "MISS"


@pytest.mark.parametrize("sql_type", VALUES, ids=slug)
def test_every_type_as_a_parameter(session, sql_type):
    """Each value gives its own answer, from the cache as well; the answer is the value itself."""
    fill(session, sql_type)
    session.execute("CREATE TABLE one (a int); INSERT INTO one VALUES (1)")
    texts = [*VALUES[sql_type], None]
    query = f"SELECT a, $1::{sql_type} AS v FROM one"

    def ask(text):
        value = None if text is None else text.encode()
        got = session.pgconn.exec_params(query.encode(), [value])
        assert not got.error_message, got.error_message
        return got.get_value(0, 1)

    session.execute("SET pg_arrow_cache.enabled = off")
    expected = [ask(text) for text in texts]
    session.execute("SET pg_arrow_cache.enabled = on")
    for _ in range(2):
        assert [ask(text) for text in texts] == expected
    assert session.status() == "HIT"


def test_large_parameters(session):
    session.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    long = "x" * 2_000_000
    for text in (long, long[:-1] + "y"):
        for status in ("MISS", "HIT"):
            assert session.rows("SELECT length(%s), md5(%s) FROM t", (text, text))[0][0] == len(text)
            assert session.status() == status


def test_a_session_setting_that_the_parameter_rests_on(connect):
    """The value of a parameter counts, not its spelling: the text '01/02/2024' is different dates under different
    settings."""
    american, european = connect("-c datestyle=ISO,MDY"), connect("-c datestyle=ISO,DMY")
    american.execute("CREATE TABLE t (d date); INSERT INTO t VALUES ('2024-01-02')")
    query = b"SELECT count(*) FROM t WHERE d = $1"

    def count(session):
        return session.pgconn.exec_params(query, [b"01/02/2024"], param_types=[1082]).get_value(0, 0)

    for _ in range(2):
        assert count(american) == b"1"
        assert count(european) == b"0"
    assert american.status() == european.status() == "HIT"
