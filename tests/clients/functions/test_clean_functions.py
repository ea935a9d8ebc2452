"""The functions that are CLEAN in src/query/function_table read no setting: each of them is called over columns under many
different settings, and its results stay the same, byte for byte."""

import re

import pytest

from support.functions import ROWS, TABLE, Function, Sampled, numbers, rows
from support.settings_of_functions import foreign_locales

# Fewer calls than these would show little. A server has some 1,700 functions on the list that SQL can call.
LEAST_CALLED = 1600
LIMIT = 300

# Each variant changes one thing; the last one changes all together.
VARIANTS = {
    "dates": ["DateStyle = 'German, DMY'", "IntervalStyle = 'sql_standard'"],
    "dates of SQL": ["DateStyle = 'SQL, YMD'", "IntervalStyle = 'iso_8601'"],
    "time zone": ["TimeZone = 'America/St_Johns'"],
    "abbreviations": ["timezone_abbreviations = 'Australia'"],
    "digits": ["extra_float_digits = -15"],
    "bytes": ["bytea_output = 'escape'", "xmlbinary = 'hex'", "xmloption = 'document'"],
    "locales": ["lc_monetary = {locale}", "lc_numeric = {locale}", "lc_time = {locale}", "lc_messages = {locale}"],
    "names": ["search_path = {schema}, information_schema, pg_temp", "quote_all_identifiers = on", "default_text_search_config = 'pg_catalog.german'"],
    "syntax": ["array_nulls = off", "backslash_quote = off", "standard_conforming_strings = off", "transform_null_equals = on",
               "escape_string_warning = off"],
    "work": ["work_mem = '64kB'", "hash_mem_multiplier = 1", "gin_fuzzy_search_limit = 1",
             "enable_sort = off", "enable_hashagg = off", "temp_buffers = 100"],
    "role": ["ROLE regress_clean_functions", "row_security = off"],
}
# Those that any session may set, to another value than they have: by their kind, from pg_settings.
OTHERS = """
    SELECT name, CASE vartype WHEN 'bool' THEN CASE setting WHEN 'on' THEN 'off' ELSE 'on' END
                 ELSE (SELECT v FROM unnest(enumvals) v WHERE v <> setting ORDER BY v DESC LIMIT 1) END
    FROM pg_settings WHERE context IN ('user', 'superuser') AND vartype IN ('bool', 'enum')
    AND name !~ '^(pg_arrow_cache\\.|log_|debug_|trace_|track_|transaction_|default_transaction_|ignore_|zero_|exit_|session_rep|is_superuser|wal_)'
    AND name NOT IN ('synchronous_commit', 'client_min_messages', 'password_encryption', 'allow_system_table_mods', 'restrict_nonsystem_relation_kind')
"""


@pytest.fixture
def caller(connect):
    session = connect("-c pg_arrow_cache.enabled=off")
    session.prepare_threshold = None
    session.execute("SET client_min_messages = error; DROP ROLE IF EXISTS regress_clean_functions; CREATE ROLE regress_clean_functions")
    yield session
    session.execute("RESET ROLE; DROP OWNED BY regress_clean_functions; DROP ROLE regress_clean_functions")


def settings_of(session):
    locale = f"'{next(iter(foreign_locales(session)), 'C.UTF-8')}'"
    [(schema,)] = session.rows("SELECT current_schema()")
    variants = {name: [setting.format(locale=locale, schema=schema) for setting in settings] for name, settings in VARIANTS.items()}
    others = [f"{name} = '{value}'" for name, value in session.rows(OTHERS) if value is not None]
    variants["switches"] = others
    # What only a superuser may set comes before the role.
    variants["everything"] = [setting for name in sorted(variants, key="role".__eq__) for setting in variants[name]]
    return variants


# Results in the binary form of their types, so that no output function speaks. A call that fails says with which error.
DIGESTS = f"""
CREATE FUNCTION digest(call text, source text, send text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE found text;
    BEGIN
        EXECUTE format('SELECT count(*) || md5(string_agg(coalesce(%s(x), %L), %L)) FROM (SELECT %s AS x FROM %s LIMIT {LIMIT}) s',
                       send, '-'::bytea, ','::bytea, call, source) INTO found;
        RETURN found;
    EXCEPTION WHEN query_canceled OR others THEN RETURN SQLSTATE;
    END $$;
CREATE FUNCTION digests(calls text[], sources text[], sends text[]) RETURNS text[] LANGUAGE sql AS $$
    SELECT array_agg(digest(calls[n], sources[n], sends[n]) ORDER BY n) FROM generate_subscripts(calls, 1) n
$$;
CREATE FUNCTION accepted(call text, source text, send text) RETURNS int[] LANGUAGE sql AS $$
    SELECT array_agg(n) FROM generate_series(0, {ROWS - 1}) n WHERE length(digest(call, source || ' WHERE id = ' || n, send)) > 5
$$;
"""


# Functions that compare texts return what the C library's memcmp does, of which the sign alone is defined: on some processors the rest depends on where
# the values lie.
COMPARING = ("cmp", "compare")


class Call:
    """A function over the rows that it accepts."""

    def __init__(self, function, expression, source):
        self.function, self.expression, self.source = function, expression, source

    def __str__(self):
        return str(self.function)


def calls(session, table, functions):
    """A call of each function that can be called."""
    found = []
    for function in functions:
        expression, source = table.call(function)
        if expression is None:
            continue
        if any(word in function.name for word in COMPARING) and "int4send" in function.send:
            expression = f"sign({expression})::int"
        if function.kind == "f":
            [(rows,)] = session.rows("SELECT accepted(%s, %s, %s)", [expression, source, function.send])
            if not rows:
                continue
            source += f" WHERE id IN ({', '.join(map(str, rows))})"
        found.append(Call(function, expression, source))
    return found


def digests(session, asked):
    [(found,)] = session.rows("SELECT digests(%s, %s, %s)", [[call.expression for call in asked], [call.source for call in asked],
                                                             [call.function.send for call in asked]])
    return found


def changed(session, oids):
    """Calls the functions under each variant of the settings. Returns which functions could be called, and which gave
    other results under which variant."""
    functions = [Function(*row) for row in session.rows(Function.QUERY, [oids])]
    table = Sampled(session, functions)
    session.execute(DIGESTS)
    asked = calls(session, table, functions)
    [(schema,)] = session.rows("SELECT current_schema()")
    session.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO regress_clean_functions; "
                    f"GRANT USAGE ON SCHEMA {schema} TO regress_clean_functions")
    expected = digests(session, asked)
    # An aggregate may refuse what one of the rows holds.
    asked, expected = zip(*((call, digest) for call, digest in zip(asked, expected) if len(digest) > 5))
    wrong = {}
    for variant, settings in settings_of(session).items():
        with session.transaction(force_rollback=True):
            for setting in settings:
                session.execute(f"SET LOCAL {setting}")
            found = digests(session, asked)
        for call, one, other in zip(asked, expected, found):
            if one != other:
                wrong.setdefault(str(call.function), []).append(variant)
    return asked, wrong


def test_no_setting_changes_their_results(caller, capsys):
    oids = numbers("CLEAN")
    asked, wrong = changed(caller, oids)
    with capsys.disabled():
        print(f" {len(asked)} of {len(oids)} functions called ", end="")
    assert not wrong
    assert len(asked) >= LEAST_CALLED


def test_settings_are_seen_to_change_others(caller):
    """Functions that are not on the list and depend on a setting are found by the same test."""
    clean = {*numbers("CLEAN")}
    oids = [oid for oid, in caller.rows("SELECT oid FROM pg_proc WHERE provolatile = 'i' AND oid < 10000") if oid not in clean]
    _, wrong = changed(caller, oids)
    names = {name.split()[1].split("(")[0] for name in wrong}
    assert names >= {"point_out", "lseg_out", "path_out", "box_out", "poly_out", "circle_out", "line_out", "float4out", "float8out",
                     "byteaout", "quote_ident", "age", "timezone", "xpath"}


# The signature as the server's source writes it.
SERVERS = """SELECT oid, proname || '(' || array_to_string(ARRAY(SELECT typname FROM unnest(proargtypes) WITH ORDINALITY a(kind, place)
                                                       JOIN pg_type t ON t.oid = kind ORDER BY place), ',') || ')',
                    provolatile, prokind, prorettype IN ('trigger'::regtype, 'event_trigger'::regtype)
             FROM pg_proc WHERE oid = ANY(%s)"""
ACCEPTING = {"SETTINGS", "SEARCHING", "OUTPUT", "JSON"}
ASKS = re.compile("now|current|clock|timeofday|session|user|random|nextval|setval|txid|snapshot")


def test_rows_are_of_the_functions_they_name(session):
    """A wrong number in the table would admit a function that nobody has judged, such as one that reads the clock."""
    table = rows()
    assert len({number for number, _, _ in table}) == len(table)
    known = {row[0]: row[1:] for row in session.rows(SERVERS, [[number for number, _, _ in table]])}
    assert len(known) > 2000
    wrong = []
    for number, has, named in table:
        if number not in known:
            continue    # of another version
        signature, volatility, kind, is_trigger = known[number]
        # A READING one may be marked IMMUTABLE in other versions only. What a version marks otherwise is accepted by another property.
        accepted = has & ACCEPTING
        fits = (named in (None, signature)
                and not ({"CLEAN", "JSON_THOUGH_IMMUTABLE"} & has and volatility != "i")
                and not (accepted and volatility != "s" and "READING" not in has)
                and not (accepted and (is_trigger or kind not in "fa" or ASKS.search(signature))))
        wrong += [] if fits else [(number, has, named, signature, volatility)]
    assert wrong == []


# Lists of numbers beside the code that knows them, and what the signatures of the functions look like.
TIME = "(date|timestamp|timestamptz)"
LISTS = {
    ("decomposition/constants.rs", "ARITHMETIC"):
        rf"int[248]\(int[248]\)|{TIME}\({TIME}\)|date_(pl|mi)i\(date,int4\)|{TIME}_(pl|mi)_interval\({TIME},interval\)",
    ("failures.rs", "NEVER_FAIL"):
        r"(int|float)[248]\((int|float)[248]\)|numeric\(int[248]\)|(avg|sum)\(int[248]\)|(max|min)\((int[248]|float[48]|oid|date|money|numeric"
        r"|interval|time(stamp)?(tz)?)\)|count\((any)?\)|(row_number|rank|dense_rank|percent_rank|cume_dist)\(\)",
}


@pytest.mark.parametrize("place", LISTS, ids=lambda place: place[1])
def test_lists_are_of_the_functions_that_they_mean(session, place):
    file, name = place
    listed = re.search(rf"{name}: \[u32; \d+\] =\s*\[(.*?)\];", (TABLE.parent / file).read_text(), re.DOTALL)[1]
    wanted = [int(number) for number in re.findall(r"\d+", listed)]
    signatures = [row[1] for row in session.rows(SERVERS, [wanted])]
    assert len(signatures) == len(wanted) and [one for one in signatures if not re.fullmatch(LISTS[place], one)] == []
