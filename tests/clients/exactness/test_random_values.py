"""Random values of every kind, nested in each other: a hit gives the same bytes as execution, as text and as binary.

A failing test prints the seed; RANDOM_VALUES_SEED=seed makes the same values again."""

import os
import random
import struct

import pytest

from support.corners import MORE_TYPES
from support.fidelity import check_store_and_hits
from support.samples import SETUP

ROWS = 300
SEED = int(os.environ.get("RANDOM_VALUES_SEED") or random.SystemRandom().randrange(2**32))

SETTINGS = {
    "datestyle": ["ISO, MDY", "SQL, DMY", "Postgres, MDY", "German"],
    "intervalstyle": ["postgres", "postgres_verbose", "sql_standard", "iso_8601"],
    "timezone": ["UTC", "Asia/Kathmandu", "America/St_Johns", "Africa/Monrovia"],
    "extra_float_digits": ["-5", "0", "1", "3"],
    "bytea_output": ["hex", "escape"],
    "quote_all_identifiers": ["on", "off"],
}

DAY = 86_400_000_000
# Microseconds from 2000 to the first and the last moment, and days to the first and the last day (datatype/timestamp.h).
FIRST_MOMENT, LAST_MOMENT = -211_813_488_000_000_000, 9_223_371_331_200_000_000 - 1
FIRST_DAY, LAST_DAY = -2_451_545, 2_145_031_948


def near(rng, low, high):
    """A number between: at an end, near zero, or anywhere."""
    pick = rng.random()
    if pick < 0.1:
        return rng.choice([low, high])
    if pick < 0.3:
        return max(low, min(high, rng.randint(-3, 3)))
    return rng.randint(low, high)


def integer(code, bits):
    return lambda rng: struct.pack(f"!{code}", near(rng, -1 << bits - 1, (1 << bits - 1) - 1))


def moment(rng):
    if rng.random() < 0.1:
        return struct.pack("!q", rng.choice([-1 << 63, (1 << 63) - 1]))
    return struct.pack("!q", near(rng, FIRST_MOMENT, LAST_MOMENT))


def day(rng):
    return struct.pack("!i", rng.choice([-1 << 31, (1 << 31) - 1]) if rng.random() < 0.1 else near(rng, FIRST_DAY, LAST_DAY))


def interval(rng):
    return integer("q", 64)(rng) + integer("i", 32)(rng) + integer("i", 32)(rng)


# The bytes that a type's receive function takes: every pattern of bits that it lets in.
BITS = {
    "bool": lambda rng: rng.choice([b"\0", b"\1"]),
    "int2": integer("h", 16),
    "int4": integer("i", 32),
    "int8": integer("q", 64),
    "float4": lambda rng: rng.choice([rng.randbytes(4), b"\x7f\xc0" + rng.randbytes(2), struct.pack("!f", rng.gauss(0, 1e6))]),
    "float8": lambda rng: rng.choice([rng.randbytes(8), b"\x7f\xf8" + rng.randbytes(6), struct.pack("!d", rng.gauss(0, 1e6))]),
    "date": day,
    "time": lambda rng: struct.pack("!q", near(rng, 0, DAY)),
    "timetz": lambda rng: struct.pack("!qi", near(rng, 0, DAY), near(rng, -57599, 57599)),
    "timestamp": moment,
    "timestamptz": moment,
    "interval": interval,
    "uuid": lambda rng: rng.randbytes(16),
    "money": integer("q", 64),
    '"char"': lambda rng: rng.randbytes(1),
    "oid": lambda rng: rng.randbytes(4),
    "xid": lambda rng: rng.randbytes(4),
    "cid": lambda rng: rng.randbytes(4),
    "xid8": lambda rng: rng.randbytes(8),
    "pg_lsn": lambda rng: rng.randbytes(8),
    "regclass": lambda rng: rng.randbytes(4),
    "macaddr": lambda rng: rng.randbytes(6),
    "macaddr8": lambda rng: rng.randbytes(8),
    "tid": lambda rng: rng.randbytes(6),
    "point": lambda rng: rng.randbytes(16),
    "bytea": lambda rng: rng.randbytes(rng.choice([0, 1, 7, 126, 127, 3000])),
}


def vector(sql_type_oid, values):
    """An array of one dimension as array_recv takes it."""
    body = struct.pack("!iiIii", 1, 1, sql_type_oid, len(values), 1)
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return body


# Texts that the input functions take.

LETTERS = "aA0 .,;:'\"\\{}()[]<>\t\n|&!*äß€\u200b中😀\u00a0"


def text(rng):
    return "".join(rng.choice(LETTERS) for _ in range(rng.choice([0, 1, 2, 5, 20, 126, 127, 128, 700])))


def digits(rng, longest):
    return "".join(rng.choice("0009123456789") for _ in range(rng.randint(1, longest)))


def numeric(rng):
    if rng.random() < 0.05:
        return rng.choice(["NaN", "Infinity", "-Infinity"])
    longest = rng.choice([1, 4, 5, 9, 40, 300])
    shown = rng.choice(["", "-"]) + digits(rng, longest)
    if rng.random() < 0.6:
        shown += "." + digits(rng, rng.choice([1, 4, 20, longest]))
    return shown + (f"e{rng.randint(-300, 300)}" if rng.random() < 0.2 else "")


def json_value(rng, depth=0):
    kind = rng.randrange(7 if depth < 4 else 5)
    if kind < 2:
        letters = "".join(rng.choice("ab\u00e4\\n/ 😀") for _ in range(rng.randint(0, 8)))
        return '"' + letters.replace("\\", "\\\\") + '"'
    if kind == 2:
        return rng.choice(["true", "false", "null"])
    if kind < 5:
        return rng.choice(["", "-"]) + str(rng.randrange(1000)) + rng.choice(["", ".0", ".50", "e20", "E-7"])
    blank = rng.choice(["", " ", "\n\t"])
    many = range(rng.randint(0, 4))
    if kind == 5:
        return "[" + ",".join(blank + json_value(rng, depth + 1) for _ in many) + "]"
    return "{" + ",".join(f'{blank}"{rng.choice("abc")}":{json_value(rng, depth + 1)}' for _ in many) + "}"


def bits(rng):
    return "".join(rng.choice("01") for _ in range(rng.choice([0, 1, 7, 8, 9, 100])))


def address(rng):
    if rng.random() < 0.5:
        return ".".join(str(rng.randrange(256)) for _ in range(4)) + rng.choice(["", f"/{rng.randint(0, 32)}"])
    return ":".join(f"{rng.randrange(65536):x}" for _ in range(8)) + rng.choice(["", f"/{rng.randint(0, 128)}"])


def words(rng, between, more):
    """Words in quotes, some with more behind them."""
    def word():
        letters = "".join(rng.choice("abä'\\ ") for _ in range(rng.randint(1, 9)))
        return "'" + letters.replace("\\", "\\\\").replace("'", "''") + "'" + rng.choice(["", more])

    return between.join(word() for _ in range(rng.randint(1, 6)))


def whole(rng):
    return str(near(rng, -(1 << 31), (1 << 31) - 1))


SCALARS = {
    "int4": whole,
    "float8": lambda rng: rng.choice(["NaN", "-Infinity", "-0", repr(rng.gauss(0, 1e9)), repr(rng.random())]),
    "numeric": numeric,
    "numeric(30,10)": lambda rng: f"{rng.gauss(0, 1e15):.12f}",
    "numeric(5,-3)": lambda rng: str(rng.randint(-99_000_000, 99_000_000)),
    "text": text,
    "varchar(300)": lambda rng: text(rng)[:300],
    "char(12)": lambda rng: text(rng)[:12],
    "name": lambda rng: text(rng)[:15],
    "json": json_value,
    "jsonb": json_value,
    "varbit": bits,
    "inet": address,
    "tsvector": lambda rng: words(rng, " ", ":1A,7"),
    "tsquery": lambda rng: words(rng, rng.choice([" & ", " | ", " & !", " <-> ", " <7> "]), ":*B"),
    "timestamptz": lambda rng: f"{rng.randint(1, 9999):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} "
                               f"{rng.randrange(24):02}:30:15.{rng.randrange(10**6):06}+00",
    "mood": lambda rng: rng.choice(["sad", "ok", "happy"]),
    "positive": lambda rng: str(rng.randint(1, (1 << 31) - 1)),
    "label": text,
}


def quoted(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def array_of(make):
    """Arrays of up to three dimensions, with bounds of their own and NULLs."""
    def build(rng, sizes):
        def element():
            if len(sizes) > 1:
                return build(rng, sizes[1:])
            return "NULL" if rng.random() < 0.2 else quoted(make(rng))

        return "{" + ",".join(element() for _ in range(sizes[0])) + "}"

    def value(rng):
        if rng.random() < 0.1:
            return "{}"
        sizes = [rng.randint(1, 4) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        bounds = ""
        if rng.random() < 0.3:
            lowest = [rng.randint(-3, 3) for _ in sizes]
            bounds = "".join(f"[{low}:{low + size - 1}]" for low, size in zip(lowest, sizes)) + "="
        return bounds + build(rng, sizes)

    return value


def row_of(*makers):
    return lambda rng: "(" + ",".join("" if rng.random() < 0.2 else quoted(make(rng)) for make in makers) + ")"


def range_of(order, make):
    """Ranges whose bounds `order` can sort."""
    def value(rng):
        if rng.random() < 0.1:
            return "empty"
        low, high = sorted((make(rng), make(rng)), key=order)
        low, high = ("" if rng.random() < 0.2 else quoted(bound) for bound in (low, high))
        return rng.choice("[(") + low + "," + high + rng.choice("])")

    return value


def several(make):
    return lambda rng: "{" + ",".join(make(rng) for _ in range(rng.randint(0, 4))) + "}"


def small(rng):
    return str(rng.randint(-1000, 1000))


PAIR = row_of(whole, text)
INT_RANGE = range_of(int, small)
NUM_RANGE = range_of(float, lambda rng: f"{rng.uniform(-9, 9):.{rng.randint(0, 5)}f}")
TEXT_RANGE = range_of(lambda bound: bound.encode(), text)
TIME_RANGE = range_of(str, SCALARS["timestamptz"])
HOLDER = row_of(array_of(whole), PAIR, array_of(PAIR), SCALARS["mood"], INT_RANGE, several(INT_RANGE), SCALARS["positive"], text)

NESTED = {
    "int4[]": array_of(whole),
    "text[]": array_of(text),
    "numeric[]": array_of(numeric),
    "float8[]": array_of(SCALARS["float8"]),
    "timestamptz[]": array_of(SCALARS["timestamptz"]),
    "jsonb[]": array_of(json_value),
    "mood[]": array_of(SCALARS["mood"]),
    "inet[]": array_of(address),
    "varbit[]": array_of(bits),
    "pair": PAIR,
    "pair[]": array_of(PAIR),
    "nested": row_of(PAIR, array_of(PAIR)),
    "nested[]": array_of(row_of(PAIR, array_of(PAIR))),
    "int4range": INT_RANGE,
    "numrange": NUM_RANGE,
    "textrange": TEXT_RANGE,
    "tstzrange": TIME_RANGE,
    "int4multirange": several(INT_RANGE),
    "nummultirange": several(NUM_RANGE),
    "tstzmultirange": several(TIME_RANGE),
    "int4range[]": array_of(INT_RANGE),
    "textrange[]": array_of(TEXT_RANGE),
    "int4multirange[]": array_of(several(INT_RANGE)),
    "domain_pair[]": array_of(PAIR),
    "ints[]": array_of(array_of(whole)),
    "holder": HOLDER,
    "holder[]": array_of(HOLDER),
}


@pytest.fixture
def rng(request):
    """Each test has a random generator of its own, so that it can be run alone."""
    print(f"RANDOM_VALUES_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


def some(rng, make):
    """Rows of values. NULLs stand in runs and alone."""
    gaps = rng.choice([0.0, 0.1, 0.9])
    return [None if rng.random() < gaps or row in range(100, 140) else make(rng) for row in range(ROWS)]


def choose_settings(rng, *sessions):
    chosen = {name: rng.choice(values) for name, values in SETTINGS.items()}
    print(chosen)
    for session in sessions:
        for name, value in chosen.items():
            session.execute(f"SELECT set_config('{name}', %s, false)", [value])


def make_table(session, types):
    columns = [f"c{number} {of}" for number, of in enumerate(types)]
    session.execute(f"CREATE TABLE t ({', '.join(columns)}, id int)")


def type_oids(session, sql_type):
    """Of a type, and of its arrays."""
    return session.rows("SELECT %s::regtype::oid::int8, (%s || '[]')::regtype::oid::int8", [sql_type, sql_type])[0]


def send(session, query, values, types):
    """Executes with arrays in binary form as parameters."""
    got = session.pgconn.exec_params(query.encode(), values, types, [1] * len(values))
    assert not got.error_message, got.error_message


def check(session, other, rng, columns):
    """All columns together, then a few of them in another order and without some rows."""
    assert session.rows("SELECT count(*) FROM t") == [(ROWS,)]
    for _ in range(2):
        choose_settings(rng, session, other)
        check_store_and_hits(session, other, "SELECT * FROM t ORDER BY id", [*columns, "int"])
    few = rng.sample(range(len(columns)), min(9, len(columns)))
    names = ", ".join(f"c{number}" for number in few)
    types = [list(columns)[number] for number in few]
    check_store_and_hits(session, other, f"SELECT {names} FROM t WHERE id % 7 < 3 ORDER BY id", types)


def test_bits(session, other, rng):
    """Every pattern of bits that the server takes from a client."""
    make_table(session, BITS)
    values, arrays = [], []
    for of, make in BITS.items():
        element, array = type_oids(session, of)
        values.append(vector(element, some(rng, make)))
        arrays.append(array)
    lists = ", ".join(f"${number + 1}" for number in range(len(values)))
    send(session, f"INSERT INTO t SELECT * FROM unnest({lists}) WITH ORDINALITY", values, arrays)
    check(session, other, rng, BITS)


def test_arrays_of_bits(session, other, rng):
    """The same values in long arrays, with and without NULLs."""
    for of, make in BITS.items():
        element, array = type_oids(session, of)
        session.execute(f"CREATE TABLE t (id int, v {of}[])")
        for number in range(4):
            send(session, f"INSERT INTO t VALUES ({number}, $1)", [vector(element, some(rng, make))], [array])
        check_store_and_hits(session, other, "SELECT v, id FROM t ORDER BY id", [f"{of}[]", "int"])
        session.execute("DROP TABLE t")


@pytest.mark.parametrize("makers", [SCALARS, NESTED], ids=["scalars", "nested"])
def test_texts(session, other, rng, makers):
    """The values that the server makes of random texts; it accepts all of them."""
    session.execute(SETUP + MORE_TYPES)
    make_table(session, makers)
    columns = [some(rng, make) for make in makers.values()]
    with session.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
        for number, row in enumerate(zip(*columns)):
            copy.write_row((*row, number))
    check(session, other, rng, makers)
