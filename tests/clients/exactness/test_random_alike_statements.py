"""Statements that are made of each other by small changes, asked by turns: by themselves, through views, with parameters of several types,
and under several roles, search paths, settings and encodings. Each has the answer of its own execution, whichever was stored before."""

import os
import random
import re

import psycopg
import pytest

from exactness.test_alike_statements import ALIKE, SETUP

from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED", 20261129))
ROUNDS = rounds(5, 12)
STATEMENTS, QUESTIONS, MOST_ROWS = 30, 150, 2000
ROLE = "regress_cache_alike"

# One of the front's tables has the name of one behind it, and other rows.
MORE_SETUP = """
    CREATE SCHEMA {front}; CREATE TABLE {front}.u AS SELECT g AS id, g % 3 AS k, g + 1 AS n FROM generate_series(1, 9) g;
    CREATE ROLE {role}; GRANT USAGE ON SCHEMA {front}, {schema} TO {role}; GRANT SELECT ON t, u, w, {front}.u TO {role}"""
WORLDS = ["SET search_path = {schema}", "SET search_path = {front}, {schema}", "SET ROLE {role}", "SET DateStyle = 'German'", "SET client_encoding = 'LATIN1'",
          "SET extra_float_digits = -3", "SET IntervalStyle = 'iso_8601'", "SET bytea_output = 'escape'", "SET TimeZone = 'Asia/Tokyo'", "SET transform_null_equals = on"]

TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|::|<>|<=|>=|=>|\|\||\s+|.")
# A word may become another one of its line.
EXCHANGES = [line.split("|") for line in """k|n|id|m|v|l|c
t|u|w|p|parent|child|s
<|<=|>|>=|=|<>
+|-|*|/
0|1|2|3|NULL
ASC|DESC
FIRST|LAST
AND|OR
UNION|INTERSECT|EXCEPT
LEFT|RIGHT|FULL|INNER
min|max|sum|count|avg|array_agg
ROWS|RANGE|GROUPS
PRECEDING|FOLLOWING
ANY|ALL
rank|dense_rank|row_number|cume_dist
TIES|GROUP
ROLLUP|CUBE
lower|upper|length|reverse
int|int8|numeric|float8|text|varchar
TRUE|FALSE|UNKNOWN
IN|NOT IN
EXISTS|NOT EXISTS
greatest|least
coalesce|nullif
plus|minus
DISTINCT|ALL
DEPTH|BREADTH
ONLY|
"C"|"POSIX"|"en-x-icu"
a|b|x|y""".splitlines()]
OF_WORD = {}
for exchange in EXCHANGES:
    for word in exchange:
        OF_WORD.setdefault(word, []).append(exchange)
AROUND = [
    "SELECT * FROM ({}) z", "WITH z AS MATERIALIZED ({}) SELECT * FROM z", "WITH z AS ({}) SELECT z.*, z FROM z", "SELECT count(*) FROM ({}) z",
    "SELECT row_to_json(z) FROM ({}) z", "SELECT row_to_json(z) FROM ({}) z(q)", "SELECT row_to_json(z) FROM ({}) z(r)", "SELECT z FROM ({}) z", "({}) LIMIT 3", "({}) OFFSET 1",
    "SELECT EXISTS ({})", "SELECT ARRAY(SELECT z::text FROM ({}) z)", "SELECT z::text, count(*) FROM ({}) z GROUP BY 1 ORDER BY 1", "({0}) UNION ALL ({0})",
    "SELECT DISTINCT z::text FROM ({}) z", "SELECT z.* FROM ({}) z, LATERAL (SELECT z::text) y", "SELECT u.id, z.* FROM u LEFT JOIN LATERAL ({}) z ON true",
]
TYPES = {"int4": 23, "int8": 20, "numeric": 1700, "text": 25, "float8": 701, "unknown": 0}


def changed(rnd, text, others):
    """A text with a few small changes. It need not be a statement any more."""
    for _ in range(rnd.choice((1, 1, 1, 2, 3))):
        tokens, kind = TOKEN.findall(text), rnd.random()
        places = [place for place, token in enumerate(tokens) if token in OF_WORD]
        if kind < 0.7 and places:
            place = rnd.choice(places)
            tokens[place] = rnd.choice(rnd.choice(OF_WORD[tokens[place]]))
        elif kind < 0.8 and len(tokens) > 5:
            place = rnd.randrange(2, len(tokens))
            del tokens[place:place + rnd.choice((1, 2, 3))]
        elif kind < 0.9:
            other = TOKEN.findall(rnd.choice(others))
            place, start = rnd.randrange(len(tokens)), rnd.randrange(len(other))
            tokens[place:place + rnd.randrange(1, 4)] = other[start:start + rnd.randrange(1, 4)]
        else:
            return rnd.choice(AROUND).format(re.sub(r"[{}]", "", text))
        text = "".join(tokens)
    return text


class Asked:
    """A statement, with the value of its parameter if it has one."""

    def __init__(self, text, parameter=None):
        self.text, self.parameter = text, parameter

    @classmethod
    def bound(cls, rnd, text):
        """With a parameter of some type in the place of a number, if there is one."""
        numbers = list(re.finditer(r"(?<![\w'\"])\d+(?![\w'\"])", text))
        if not numbers:
            return cls(text)
        number = rnd.choice(numbers)
        return cls(f"{text[:number.start()]}$1{text[number.end():]}", (number[0].encode(), rnd.choice(list(TYPES.values()))))

    def ask(self, session, result_format):
        """All that a client sees but places in the text: the columns, the rows and the tag, or the code of the error."""
        values, types = ([self.parameter[0]], [self.parameter[1]]) if self.parameter else ([], [])
        got = session.pgconn.exec_params(self.text.encode(), values, types, None, result_format)
        if got.status not in (psycopg.pq.ExecStatus.TUPLES_OK, psycopg.pq.ExecStatus.COMMAND_OK):
            return got.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
        columns = range(got.nfields)
        shape = [(got.fname(c), got.ftype(c), got.fmod(c), got.fformat(c), got.ftable(c), got.ftablecol(c)) for c in columns]
        return shape, [[got.get_value(row, c) for c in columns] for row in range(got.ntuples)], got.command_status


@pytest.fixture
def names(connect):
    names = {"schema": connect.schema, "front": f"{connect.schema}_front", "role": ROLE}
    with connect() as one:
        one.execute(SETUP)
        one.execute(MORE_SETUP.format(**names))
    yield names
    with connect() as one:
        one.execute(f"SET client_min_messages = warning; DROP SCHEMA {names['front']} CASCADE; DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


@sweep
def test_small_changes(connect, names):
    print(f"seed {SEED}")
    rnd = random.Random(SEED)
    cached, plain = connect("-c statement_timeout=2s"), connect("-c statement_timeout=2s -c pg_arrow_cache.enabled=off")
    before = plain.rows("SELECT hits FROM arrow_cache.stats")[0][0]
    different, answered = [], 0
    for number in range(ROUNDS):
        asked = statements(rnd, plain, names)
        views = []
        for place, statement in enumerate(asked[:5]):
            view = f"{names['schema']}.view_{number}_{place}"
            if statement.parameter is None and created(plain, f"CREATE VIEW {view} AS {statement.text}"):
                views.append(Asked(f"SELECT * FROM {view}"))
        asked += views
        for question in range(QUESTIONS):
            if question % 30 == 0:
                world = rnd.choice(WORLDS).format(**names)
                for session in (cached, plain):
                    session.execute(f"RESET ALL; RESET ROLE; SET search_path = {names['schema']}; {world}")
                plain.execute("SET pg_arrow_cache.enabled = off")
            statement, result_format = rnd.choice(asked), rnd.randrange(2)
            wanted, got = statement.ask(plain, result_format), statement.ask(cached, result_format)
            answered += isinstance(wanted, tuple)
            if wanted != got and b"57014" not in (wanted, got):
                different.append((world, statement.text, statement.parameter, wanted, got))
    assert different == []
    hits = plain.rows("SELECT hits FROM arrow_cache.stats")[0][0] - before
    print(f"{answered} answers, {hits} hits")
    assert hits > answered / 3


def statements(rnd, plain, names):
    """Some statements of one kind, and what becomes of them. All of them can be executed."""
    others = ALIKE[rnd.choice(list(ALIKE))]
    plain.execute(f"RESET ROLE; SET search_path = {names['schema']}")
    sources, found = list(others), []
    while len(found) < STATEMENTS:
        text = changed(rnd, rnd.choice(sources), others)
        statement = Asked.bound(rnd, text) if rnd.random() < 0.3 else Asked(text)
        got = statement.ask(plain, 0) if len(text) < 1500 else None
        if isinstance(got, tuple) and len(got[1]) <= MOST_ROWS:
            found.append(statement)
            sources.append(text)
    return found


def created(session, text):
    try:
        session.execute(text)
    except psycopg.Error:
        return False
    return True
