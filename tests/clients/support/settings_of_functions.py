"""Built-in functions that are marked IMMUTABLE and read settings: a call of `{v}`, the type and value of that, and two
settings under which the answers differ."""

import psycopg

DIGITS = "extra_float_digits = 1", "extra_float_digits = -12"
GEOMETRY = {
    "point": "(0.3333333333333333,2)", "lseg": "[(0.3333333333333333,2),(1,1)]", "path": "[(0.3333333333333333,2),(1,1)]",
    "box": "(3,2),(0.3333333333333333,1)", "polygon": "((0.3333333333333333,2),(1,1))", "circle": "<(0.3333333333333333,2),1>",
    "line": "{0.3333333333333333,2,1}",
}
OUTPUT = {"polygon": "poly_out"}
CASES = {f"{kind}_out": (f"textin({OUTPUT.get(kind, kind + '_out')}({{v}}))", kind, value, *DIGITS) for kind, value in GEOMETRY.items()}
CASES |= {
    "float8out": ("textin(float8out({v}))", "float8", "0.3333333333333333", *DIGITS),
    "float4out": ("textin(float4out({v}))", "float4", "0.33333334", "extra_float_digits = 1", "extra_float_digits = -4"),
    "xpath": ("xpath('0.1 + 0.2', {v})", "xml", "<a/>", *DIGITS),
    "xpath of a value": ("xpath('number(/a) + 0.2', {v})", "xml", "<a>0.1</a>", *DIGITS),
    "byteaout": ("textin(byteaout({v}))", "bytea", "\\x41", "bytea_output = hex", "bytea_output = escape"),
    "quote_ident": ("quote_ident({v})", "text", "abc", "quote_all_identifiers = off", "quote_all_identifiers = on"),
    "age": ("age({v}, '2024-03-30 12:00+00'::timestamptz)", "timestamptz", "2024-03-31 12:00+00", "TimeZone = 'UTC'", "TimeZone = 'Europe/Berlin'"),
    "timezone": ("timezone('SAST', {v})", "timestamp", "2024-06-01 12:00", "timezone_abbreviations = 'Default'", "timezone_abbreviations = 'Australia'"),
}
PATH = '$.datetime("DD TMMonth YYYY")'
for name in ("jsonb_path_query_first", "jsonb_path_query_array", "jsonb_path_exists", "jsonb_path_match"):
    path = f"exists({PATH})" if name == "jsonb_path_match" else PATH
    CASES[name] = (f"{name}({{v}}, '{path}', silent => true)", "jsonb", None, "lc_time = 'C'", "lc_time = {locale}")


def case(session, name):
    """Creates a table with the column. Returns the call over the column and over a constant, and the settings of the
    case. Fails if no locale has other names of months."""
    call, kind, value, one, two = CASES[name]
    if value is None:
        locale, month = foreign_month(session)
        value, two = f'"01 {month} 2024"', two.format(locale=f"'{locale}'")
    session.execute(f"CREATE TABLE t (v {kind})")
    session.execute("INSERT INTO t VALUES ('" + value.replace("'", "''") + "')")
    constant = "'" + value.replace("'", "''") + f"'::{kind}"
    return call.format(v="v"), call.format(v=constant), one, two


def foreign_locales(session):
    """Locales of other languages that the server can be told to use; none on a bare machine."""
    imported = "SELECT DISTINCT collcollate FROM pg_collation WHERE collprovider = 'c' AND collcollate !~ '^(C|POSIX|en)'"
    found = []
    for locale in [*(name for name, in session.rows(imported)), "de_DE.UTF-8", "fr_FR.UTF-8", "cs_CZ.UTF-8", "es_ES.UTF-8", "ja_JP.UTF-8"]:
        try:
            with session.transaction(force_rollback=True):
                session.execute(f"SET LOCAL lc_time = '{locale}'")
            found.append(locale)
        except psycopg.Error:   # not installed
            continue
    return found


def foreign_month(session):
    for locale in foreign_locales(session):
        with session.transaction(force_rollback=True):
            session.execute(f"SET LOCAL lc_time = '{locale}'")
            [(month,)] = session.rows("SELECT to_char(date '2024-05-01', 'TMMonth')")
        if month != "May":
            return locale, month
    raise AssertionError("no locale is installed in which May has another name: scripts/setup.sh makes de_DE.UTF-8")
