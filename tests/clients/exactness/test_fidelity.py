"""A hit gives the same bytes as execution: every type with its extreme values, under the settings that shape output, as
text and as binary. One session stores, another reads."""

import pytest

from support import corners
from support.session import DSN, Session
from support.fidelity import BINARY, FORMATS, TEXT, answer, check_hit, check_store_and_hits, differences, executed, failed, outcome

SCHEMA = "fidelity"
WIDE = f"SELECT * FROM {SCHEMA}.wide ORDER BY id"

# Values other than the default; the first case is the default.
SETTINGS = {
    "datestyle": ["ISO, DMY", "ISO, YMD", "SQL, MDY", "SQL, DMY", "Postgres, MDY", "Postgres, DMY", "German, DMY"],
    "intervalstyle": ["postgres_verbose", "sql_standard", "iso_8601"],
    "timezone": ["Asia/Kathmandu", "America/St_Johns", "Africa/Monrovia", "Europe/Berlin", "<odd>5:30"],
    "extra_float_digits": ["-15", "-4", "0", "3"],
    "bytea_output": ["escape"],
    "search_path": ["pg_catalog", f"{SCHEMA}, pg_catalog", '""', "no_such_schema"],
    "quote_all_identifiers": ["on"],
    "xmloption": ["document"],
    "xmlbinary": ["hex"],
    "default_text_search_config": ["pg_catalog.english"],
    "array_nulls": ["off"],
}

# These settings change how values are read or computed, not how they are printed.
ONLY_INPUT = {"array_nulls", "xmloption", "xmlbinary", "default_text_search_config"}

TOGETHER = [
    {"datestyle": "German", "timezone": "Asia/Kathmandu", "intervalstyle": "iso_8601", "extra_float_digits": "-3",
     "bytea_output": "escape", "quote_all_identifiers": "on", "search_path": '""'},
    {"datestyle": "SQL, DMY", "timezone": "America/New_York", "intervalstyle": "sql_standard", "extra_float_digits": "2",
     "bytea_output": "escape", "client_encoding": "SQL_ASCII"},
    {"datestyle": "Postgres", "timezone": "<odd>-14:59", "intervalstyle": "postgres_verbose", "quote_all_identifiers": "on"},
]

CASES = [{}, *({name: value} for name, values in SETTINGS.items() for value in values), *TOGETHER]

# Encodings in which some of the text does not exist, so that sending it fails or gives other bytes.
ENCODINGS = ["LATIN1", "WIN1252", "EUC_JP", "SQL_ASCII"]


def show(case):
    return " ".join(f"{name}={value}" for name, value in case.items()) or "as it is"


def apply(session, case):
    session.execute("RESET ALL")
    for name, value in case.items():
        session.execute(f"SELECT set_config('{name}', %s, false)", [value])


class Tables:
    """The wide table, with what the tests ask of it."""

    def __init__(self, connect):
        self.writer, self.reader = connect(), connect()
        self.types = corners.make_wide_table(self.writer, "wide")
        sent = {
            column: [not failed(executed(self.reader, f"SELECT {column} FROM {SCHEMA}.wide", wanted)) for wanted in FORMATS]
            for column in self.types
        }
        assert all(as_text for as_text, _ in sent.values())
        self.without_binary = [column for column, (_, as_binary) in sent.items() if not as_binary]
        self.columns = [column for column in self.types if column not in self.without_binary]

    def query(self, columns):
        return f"SELECT {', '.join(columns)} FROM {SCHEMA}.wide ORDER BY id", [self.types[column] for column in columns]


@pytest.fixture(scope="module")
def tables():
    opened = []

    def connect():
        opened.append(Session.connect(DSN, autocommit=True, options=f"-c search_path={SCHEMA} -c client_min_messages=warning"))
        return opened[-1]

    connect().execute(f"CREATE SCHEMA {SCHEMA}")
    yield Tables(connect)
    connect().execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    for session in opened:
        session.close()


@pytest.fixture(autouse=True)
def settings_of_its_own(tables):
    apply(tables.writer, {})
    apply(tables.reader, {})
    tables.writer.execute("SELECT arrow_cache.flush()")


def test_the_table_has_every_type(tables):
    """The table of the other tests is complete: all types that a table can have, each with values."""
    missing = tables.reader.rows(f"""
        SELECT typname FROM pg_type t WHERE typtype <> 'p' AND typrelid = 0 AND typnamespace = 'pg_catalog'::regnamespace
            AND typelem = 0 AND NOT EXISTS (SELECT FROM pg_attribute
                WHERE attrelid = '{SCHEMA}.wide'::regclass AND atttypid = t.oid AND NOT attisdropped)
        ORDER BY 1""")
    # Types that the server uses internally; their input functions refuse every text.
    assert [name for name, in missing] == ["gtsvector", "pg_brin_bloom_summary", "pg_brin_minmax_multi_summary",
                                           "pg_dependencies", "pg_mcv_list", "pg_ndistinct"]
    for column, of in tables.types.items():
        assert tables.reader.rows(f"SELECT count({column}) > 0, bool_or({column} IS NULL) FROM {SCHEMA}.wide") == [
            (True, column != "id")], of


@pytest.mark.parametrize("case", CASES, ids=show)
def test_settings(tables, case):
    apply(tables.writer, case)
    apply(tables.reader, case)
    query, types = tables.query(tables.columns)
    check_store_and_hits(tables.writer, tables.reader, query, types)
    query, types = tables.query(tables.without_binary)
    check_store_and_hits(tables.writer, tables.reader, query, types, [TEXT])
    refused = executed(tables.reader, query, BINARY)
    assert failed(refused) and answer(tables.reader, query, BINARY) == refused


def test_settings_that_make_the_text(tables):
    """Each setting that shapes output changes the text of at least one value of this table, so that the comparisons
    above prove something."""
    def text(case):
        apply(tables.reader, case)
        return executed(tables.reader, WIDE)[1]

    as_it_is = text({})
    for name in SETTINGS.keys() - ONLY_INPUT:
        assert any(text({name: value}) != as_it_is for value in SETTINGS[name]), name


def test_answers_under_many_settings_side_by_side(tables):
    """Each session gets the answer under its own settings, whatever others have stored before it."""
    query, types = tables.query(tables.columns)
    expected = {}
    for number, case in enumerate(CASES):
        apply(tables.reader, case)
        expected[number] = [executed(tables.reader, query, wanted) for wanted in FORMATS]
        apply(tables.writer, case)
        assert not differences(expected[number][number % 2], answer(tables.writer, query, number % 2), types), show(case)
    for number, case in reversed(list(enumerate(CASES))):
        apply(tables.reader, case)
        for wanted in FORMATS:
            check_hit(tables.reader, query, expected[number][wanted], wanted, types)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_client_with_another_encoding(tables, encoding):
    """Each encoding has entries of its own. A character that an encoding does not have is the same error on a hit."""
    apply(tables.writer, {"timezone": "UTC"})
    apply(tables.reader, {"timezone": "UTC", "client_encoding": encoding})
    fail = 0
    for column in tables.types:
        query, types = tables.query([column])
        answer(tables.writer, query)
        # What cannot be sent as text is stored when it is asked for in binary, and asked for as text after that.
        for time, wanted in enumerate([*FORMATS, *FORMATS]):
            expected = executed(tables.reader, query, wanted)
            assert not differences(expected, answer(tables.reader, query, wanted), types)
            assert time or outcome(tables.reader)[0] == "MISS"
            fail += failed(expected) and column not in tables.without_binary
        assert failed(expected) or outcome(tables.reader)[0] == "HIT"
    assert fail or encoding == "SQL_ASCII"


def test_names_that_values_stand_for(tables):
    """Values of reg* types are stored as numbers; their names are looked up when they are read."""
    columns = [column for column, of in tables.types.items() if of == "regclass"]
    query, types = tables.query(columns)
    answer(tables.writer, query)
    before = executed(tables.reader, query)
    tables.writer.execute(f"ALTER TABLE {SCHEMA}.other RENAME TO renamed")
    try:
        expected = executed(tables.reader, query)
        assert differences(before, expected)
        check_hit(tables.reader, query, expected, TEXT, types)
    finally:
        tables.writer.execute(f"ALTER TABLE {SCHEMA}.renamed RENAME TO other")


def test_money_in_every_locale_there_is(tables):
    """Money is stored as a number; the locale of the reader formats it."""
    locales = [name for name, in tables.reader.rows("""
        SELECT DISTINCT ON (left(collcollate, 5)) collcollate FROM pg_collation
        WHERE collprovider = 'c' AND collencoding IN (-1, 6) AND collcollate <> '' ORDER BY left(collcollate, 5), 1""")]
    assert "C" in locales
    query, types = tables.query([column for column, of in tables.types.items() if of in ("money", "money[]")])
    for locale in locales[:8]:
        case = {"lc_monetary": locale}
        apply(tables.writer, case)
        apply(tables.reader, case)
        check_store_and_hits(tables.writer, tables.reader, query, types)


def test_simple_protocol(tables):
    """The same value as text and as binary; the simple protocol asks for text."""
    for session in (tables.writer, tables.reader):
        expected = executed(session, WIDE)
        got = session.pgconn.exec_(WIDE.encode())
        assert outcome(session) == ("MISS" if session is tables.writer else "HIT", None)
        assert [[got.get_value(r, c) for c in range(got.nfields)] for r in range(got.ntuples)] == expected[1]
