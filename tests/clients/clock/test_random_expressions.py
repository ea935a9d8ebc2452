"""Random expressions of all functions and operators on dates, times, numbers and texts that the server has, also with parameters, in views and
under other styles: what the cache answers at random moments is what executing gives at the same moment, an error included.

A failing test prints the seed; RANDOM_SEED=seed makes the same expressions again, and RANDOM_ROUNDS=number sets how many."""

import collections
import datetime
import os
import random
import re

import psycopg
import psycopg.types.string

from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED") or random.SystemRandom().randrange(2**32))
EXPRESSIONS = rounds(120, 180)
MOMENTS = 12

STYLES = ("DateStyle = 'ISO, MDY'", "DateStyle = 'ISO, MDY'", "DateStyle = 'German, DMY'", "DateStyle = 'SQL, YMD'", "IntervalStyle = 'postgres'",
          "IntervalStyle = 'iso_8601'", "IntervalStyle = 'sql_standard'", "extra_float_digits = -10")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati")
UNITS = ("minute", "hour", "day", "week", "month", "quarter", "year", "decade", "MINUTES", "dow", "doy", "isoyear", "second", "epoch",
         "microseconds", "timezone", "millennium", "no unit")
PATTERNS = ("YYYY-MM-DD", "HH24:MI", "Day, DD TMMonth", "IYYY-IW", "HH24:MI:SS", "US", "J", '"at" HH', "TZ OF")
STRIDES = ("15 minutes", "1 day", "59 seconds", "90 seconds", "1 month", "1 week 3 hours", "-2 hours", "1 year 2 months", "0")

# What may become a date or a time.
WORDS = ("now", "today", "tomorrow 10:00", "yesterday", "2026-03-29 02:30", " 08:00", "-01", "23:59:59.5")

CONSTANTS = {
    "date": ("'2026-03-29'", "'2024-02-29'", "'infinity'", "'2026-10-25'"),
    "time without time zone": ("'02:30'", "'00:00'", "'23:59:59.5'"),
    "time with time zone": ("'02:30+02'", "'00:00-05'"),
    "timestamp without time zone": ("'2026-03-29 02:30'", "'2026-10-25 02:30'", "'-infinity'", "'2020-01-01'"),
    "timestamp with time zone": ("'2026-03-29 00:59:59+00'", "'2026-10-25 02:30+02'", "'2020-01-01'"),
    "interval": tuple(f"'{stride}'" for stride in STRIDES),
    "integer": ("0", "1", "-3", "7", "2026"),
    "bigint": ("2", "1000000"),
    "smallint": ("1", "3"),
    "double precision": ("0.5", "2", "-1.25"),
    "numeric": ("1.5", "0", "86400"),
    "text": tuple(f"'{word}'" for word in UNITS + PATTERNS + ZONES + WORDS),
    "boolean": ("true", "false"),
}
LEAVES = {
    "date": ("CURRENT_DATE",),
    "time without time zone": ("LOCALTIME", "LOCALTIME(0)"),
    "time with time zone": ("CURRENT_TIME", "CURRENT_TIME(2)"),
    "timestamp without time zone": ("LOCALTIMESTAMP", "LOCALTIMESTAMP(0)"),
    "timestamp with time zone": ("now()", "CURRENT_TIMESTAMP", "transaction_timestamp()", "statement_timestamp()", "CURRENT_TIMESTAMP(1)"),
}
COLUMNS = {"date": "day", "timestamp with time zone": "at", "timestamp without time zone": "plain", "integer": "id"}
# Names that take too long or too much memory with large numbers.
COSTLY = ("lpad", "rpad", "repeat", "factorial", "power", "pow", "dpow", "exp", "dexp", "numeric_power", "numeric_exp", "log", "ln",
          "sqrt", "gcd", "lcm", "width_bucket")

FUNCTIONS = """
    SELECT p.proname, array(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) t), format_type(p.prorettype, NULL)
    FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND NOT proretset AND provariadic = 0
      AND provolatile <> 'v' AND pronargs BETWEEN 1 AND 7 AND proname !~ '^(pg_|has_|inet_|txid_|current_setting|set_|obj_|col_|shobj_)'
      AND prorettype = ANY (%(types)s::regtype[]) AND proargtypes::oid[] <@ %(types)s::regtype[]::oid[] ORDER BY 1, 2"""
OPERATORS = """
    SELECT oprname, CASE WHEN oprleft <> 0 THEN format_type(oprleft, NULL) END, format_type(oprright, NULL), format_type(oprresult, NULL)
    FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprname <> '^'
      AND oprresult = ANY (%(types)s::regtype[]) AND oprright = ANY (%(types)s::regtype[])
      AND (oprleft = 0 OR oprleft = ANY (%(types)s::regtype[])) ORDER BY 1, 2, 3"""
CASTS = "date", "timestamp with time zone", "timestamp without time zone", "time without time zone", "integer", "numeric"


def call_of(name):
    """What calls a function with arguments. What compares texts returns what the C library's memcmp does, of which the sign alone is defined: on some
    processors the rest depends on where the texts lie."""
    call = f'pg_catalog."{name}"({{}})'
    return f"pg_catalog.sign({call})::integer" if "cmp" in name or "compare" in name else call


class Expressions:
    def __init__(self, rng, session):
        self.rng = rng
        self.makers = collections.defaultdict(list)
        self.params = []    # (type, value) of those in the last question
        types = {"types": list(CONSTANTS)}
        for name, arguments, result in session.rows(FUNCTIONS, types):
            if name not in COSTLY:
                self.makers[result].append((lambda parts, call=call_of(name): call.format(", ".join(parts)), arguments))
        for name, left, right, result in session.rows(OPERATORS, types):
            arguments = [one for one in (left, right) if one]
            self.makers[result].append((lambda parts, name=name: f"({' '.join([*parts[:-1], name, parts[-1]])})", arguments))
        # What dashboards write comes up more often than once in a hundred.
        for times in range(20):
            for kind in ("timestamp with time zone", "timestamp without time zone"):
                self.makers[kind] += [(self.truncated, [kind]), (self.binned, [kind])]
                self.makers["date"].append((lambda parts: f"{parts[0]}::date", [kind]))
                self.makers["text"].append((self.shown, [kind]))
                self.makers["numeric"].append((self.extracted, [kind]))
        for kind in CONSTANTS:
            self.makers[kind] += [(self.chosen, [kind] * number) for number in (2, 3)]
            # Texts that become values and the other way round, and the first or last of several.
            for times in range(5):
                self.makers["text"].append((lambda parts: f"({parts[0]})::text", [kind]))
                self.makers["text"].append((lambda parts: f"({parts[0]} || {parts[1]})", [kind, "text"]))
                self.makers["text"].append((lambda parts: f"({parts[0]} || {parts[1]})", ["text", kind]))
                for number in (2, 3):
                    self.makers[kind].append((self.extreme, [kind] * number))
                if kind != "text":
                    self.makers[kind].append((lambda parts, kind=kind: f"({parts[0]})::{kind}", ["text"]))
        for kind in ("date", "timestamp with time zone", "timestamp without time zone"):
            for times in range(10):
                self.makers[kind].append((lambda parts, kind=kind: f"({parts[0]} || ' 08:00')::{kind}", ["date"]))
        for times in range(10):
            self.makers["numeric"].append((lambda parts: f"floor(extract(epoch FROM {parts[0]}) / {self.rng.choice((1, 60, 3600, 86400))})",
                                           ["timestamp with time zone"]))
        self.makers["interval"].append((lambda parts: f"make_interval(days => {parts[0]})", ["integer"]))
        self.makers["interval"].append((lambda parts: f"({parts[0]} || ' days')::interval", ["text"]))
        for kind in CONSTANTS:
            # The same values in other words.
            self.makers[kind] += [(lambda parts: f"(SELECT {parts[0]})", [kind])] * 3
            for number in (1, 2, 3):
                self.makers["text"].append((self.gathered, [kind] * number))
        for times in range(20):
            self.makers["text"].append((self.relabelled, ["text"]))
            self.makers["boolean"].append((self.compared, ["timestamp with time zone", "timestamp with time zone"]))
            self.makers["interval"].append((lambda parts: f"concat({parts[0]}, ' days')::interval", ["integer"]))

    def chosen(self, parts):
        """The first that is not NULL; the first of them often is."""
        return f"COALESCE({', '.join(self.rng.choice((part, part, f'NULLIF({part}, {part})', 'NULL')) for part in parts[:-1])}, {parts[-1]})"

    def extreme(self, parts):
        """Some of them are NULL."""
        parts = [self.rng.choice((part, part, part, "NULL")) for part in parts[:-1]] + parts[-1:]
        return f"{self.rng.choice(('GREATEST', 'LEAST'))}({', '.join(parts)})"

    def gathered(self, parts):
        call = self.rng.choice(("concat({})", "concat_ws('-', {})", "format('%s %L %I', {}, 1, 2)", "format({})"))
        return call.format(", ".join(self.rng.choice((part, part, "NULL", "' days'")) for part in parts))

    def relabelled(self, parts):
        other = self.rng.choice(("::varchar", "::bpchar", "::name", "::varchar::name::bpchar", ' COLLATE "C"'))
        return f"({parts[0]}){other}::text"

    def compared(self, parts):
        return f"({parts[0]} {self.rng.choice(('<', '<=', '>', '>='))} {parts[1]})"

    def truncated(self, parts):
        return f"date_trunc('{self.rng.choice(UNITS)}', {parts[0]})"

    def binned(self, parts):
        return f"date_bin('{self.rng.choice(STRIDES)}', {parts[0]}, '2020-01-01')"

    def shown(self, parts):
        return f"to_char({parts[0]}, '{self.rng.choice(PATTERNS)}')"

    def extracted(self, parts):
        return f"extract({self.rng.choice(UNITS[:15])} FROM {parts[0]})"

    def make(self, kind, depth):
        """An expression of this type. Column references are rare: they make most expressions none of the clock."""
        if depth == 0 or self.rng.random() < 0.1:
            if kind in COLUMNS and self.rng.random() < 0.05:
                return COLUMNS[kind]
            if kind in LEAVES and self.rng.random() < 0.8:
                return self.rng.choice(LEAVES[kind])
            value = self.rng.choice(CONSTANTS[kind])
            if self.rng.random() < 0.3:
                self.params.append((kind, self.rng.choice((value, value, value, "NULL"))))
                return f"${len(self.params)}"
            return f"{value}::{kind}"
        maker, arguments = self.rng.choice(self.makers[kind])
        return maker([self.make(one, depth - 1) for one in arguments])

    def question(self):
        self.params = []
        kind = self.rng.choice(tuple(COLUMNS))
        if self.rng.random() < 0.5:
            comparison = self.rng.choice(("=", "<", ">="))
            return f"SELECT count(*), min(id), max(id) FROM event WHERE {COLUMNS[kind]} {comparison} {self.make(kind, 4)}"
        return f"SELECT {self.make(self.rng.choice(tuple(CONSTANTS)), 4)}, id FROM event WHERE id < 3 ORDER BY id"


    def with_values(self, question):
        """The question with the values in the place of its parameters."""
        return re.sub(r"\$(\d+)", lambda found: "({1}::{0})".format(*self.params[int(found[1]) - 1]), question)


def moments(rng):
    """Moments, many of which differ by little."""
    base = datetime.datetime(2026, 1, 1) + datetime.timedelta(days=rng.randrange(365))
    steps = (0, 1, 30, 59, 60, 61, 600, 3599, 3600, 43200, 86399, 86400, 86401, 7 * 86400, 31 * 86400)
    return [str(base + datetime.timedelta(seconds=rng.choice(steps))) for _ in range(MOMENTS)]


def answer(session, text):
    try:
        return session.rows(text)
    except psycopg.Error as error:
        return error.sqlstate or str(error)


@sweep
def test_random_expressions(server, at):
    print(f"RANDOM_SEED={SEED}")
    rng = random.Random(SEED)
    server.psql("""SET TimeZone = UTC; CREATE TABLE event (id int, at timestamptz, day date, plain timestamp);
        INSERT INTO event SELECT g, t, t, t 
        FROM generate_series(1, 365) g, LATERAL (SELECT timestamptz '2026-01-01' + g * interval '1 day') d (t)""")
    first = at("-c TimeZone=UTC")
    expressions = Expressions(rng, first)
    seen = collections.Counter()
    cached, plain = (at(f"-c plan_cache_mode=force_generic_plan {options}") for options in ("", "-c pg_arrow_cache.enabled=off"))
    for session in (cached, plain):
        # The client deallocates all at times, if it prepares statements by itself.
        session.prepare_threshold = None
        # It understands times of few styles, and need not.
        for kind in ("date", "time", "timetz", "timestamp", "timestamptz", "interval"):
            session.adapters.register_loader(kind, psycopg.types.string.TextLoader)
    for number in range(EXPRESSIONS):
        zone, style, question = rng.choice(ZONES), rng.choice(STYLES), expressions.question()
        literal = expressions.with_values(question)
        types, values = (", ".join(one) for one in zip(*expressions.params)) if expressions.params else ("", "")
        for session in (cached, plain):
            session.execute(f"SET TimeZone = '{zone}'; SET {style}")
        try:
            for session in (cached, plain):
                session.execute(f"PREPARE q {types and f'({types})'} AS {question}")
            if number % 4 == 0:
                first.execute(f"DROP VIEW IF EXISTS seen; CREATE VIEW seen (a, b, c) AS SELECT s.*, NULL FROM ({literal}) s")
        except psycopg.Error as error:
            seen[error.sqlstate] += 1
            for session in (cached, plain):
                session.execute("DEALLOCATE ALL")
            continue
        execute = f"EXECUTE q {values and f'({values})'}"
        for moment in moments(rng):
            server.set(moment)
            for text in (execute, literal, execute, *(["TABLE seen"] if number % 4 == 0 else [])):
                expected = answer(plain, text)
                for _ in range(2):
                    found = answer(cached, text)
                    seen[cached.status()] += 1
                    assert found == expected, (SEED, zone, style, moment, text, question, cached.reason())
        for session in (cached, plain):
            session.execute("DEALLOCATE q; RESET ALL")
    print(seen)
    assert seen["HIT"] > EXPRESSIONS and seen["MISS"] > EXPRESSIONS // 4 and seen["BYPASS"] > EXPRESSIONS // 4, seen
