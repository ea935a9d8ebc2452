"""Exports from databases that are not UTF-8: names, options and values keep their meaning and are delivered as UTF-8."""

import psycopg
import pytest

from support.exports import WAYS, WITH_OPTIONS, by_copy, read
from support.session import DSN

DATABASES = {"LATIN1": "caf\u00e9", "EUC_JP": "\u8868"}


@pytest.fixture(scope="module", params=DATABASES)
def encoded(request):
    """A session in such a database, and a word that its encoding has."""
    name = f"encoded_{request.param.lower()}"
    with psycopg.connect(DSN, autocommit=True) as first:
        first.execute(f"CREATE DATABASE {name} ENCODING '{request.param}' LOCALE 'C' TEMPLATE template0")
    word = DATABASES[request.param]
    session = psycopg.connect(DSN, dbname=name, client_encoding="UTF8", autocommit=True)
    session.execute("CREATE EXTENSION pg_arrow_cache")
    session.execute(f'CREATE TABLE "{word}" ("{word}" text, n int)')
    session.execute(f"INSERT INTO \"{word}\" VALUES ('{word}', 1), (NULL, 2)")
    yield session, word
    session.close()
    with psycopg.connect(DSN, autocommit=True) as last:
        last.execute(f"DROP DATABASE {name}")


@pytest.mark.parametrize("way", WAYS)
def test_names_and_values(encoded, way):
    session, word = encoded
    for _ in range(2):
        got = read(WAYS[way](session, f'SELECT * FROM "{word}" ORDER BY n'))
        assert got.to_pylist() == [{word: word, "n": 1}, {word: None, "n": 2}]


@pytest.mark.parametrize("way", WITH_OPTIONS)
def test_columns_by_name(encoded, way):
    session, word = encoded
    got = read(WITH_OPTIONS[way](session, f'SELECT * FROM "{word}" ORDER BY n', {"columns": [word]}))
    assert got.to_pylist() == [{word: word}, {word: None}]


def test_a_table(encoded):
    session, word = encoded
    assert read(by_copy(session, ("table", f'"{word}"'))).to_pylist() == [{word: word, "n": 1}, {word: None, "n": 2}]
    assert read(by_copy(session, ("table", f'"{word}" ("{word}")'))).column_names == [word]


def test_the_schema_and_errors(encoded):
    session, word = encoded
    rows = session.execute("SELECT name FROM arrow_cache.schema(%s)", [f'SELECT * FROM "{word}"']).fetchall()
    assert rows == [(word,), ("n",)]
    with pytest.raises(psycopg.Error) as raised:
        by_copy(session, f'SELECT * FROM "{word}"', {"columns": ["m"]})
    assert raised.value.sqlstate == "22023" and "n." in raised.value.diag.message_hint


def test_a_policy_that_is_none(encoded):
    session, word = encoded
    for statement in (f"SELECT arrow_cache.set_policy('\"{word}\"', '{word}')", f"SECURITY LABEL FOR pg_arrow_cache ON TABLE \"{word}\" IS '{word}'"):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="^unknown cache policy "):
            session.execute(statement)
