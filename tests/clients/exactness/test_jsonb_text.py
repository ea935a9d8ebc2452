"""An entry holds jsonb as the server does: the client and the server get what they had before, however deep or long a
document is."""

import json
import random

import pyarrow as pa
import pytest
from support.exports import read_query
from support.fidelity import result

LEVELS = 100

CHARACTERS = [*"abcdefgh ij", *map(chr, range(1, 32)), *'"\\/', "\x7f", "ä", "€", "😀", "\u2028"]
NUMBERS = ["0", "-0", "0.000", "1.00", "-1.50", "9999", "10000", "99999999", "100000000", "0.0001", "0.00000001", "1e5", "1.5e-7",
           "12345678.87654321", "123456789.123456789", "1e1000", "-1e1000", "1e-1000", "-12345678901234567890.0"]


class Documents:
    """Random documents as text that is not canonical: keys in any order, duplicate keys, and blanks."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def string(self):
        length = self.random.choice([0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 40])
        return "".join(self.random.choice(CHARACTERS if self.random.random() < 0.3 else "abc") for _ in range(length))

    def scalar(self):
        match self.random.randrange(6):
            case 0:
                return self.random.choice(["true", "false", "null"])
            case 1 | 2:
                return self.random.choice(NUMBERS)
            case 3:
                return str(self.random.randint(-10 ** self.random.randint(1, 30), 10 ** self.random.randint(1, 30)))
            case _:
                return json.dumps(self.string(), ensure_ascii=self.random.random() < 0.5)

    def document(self, depth=4):
        kind = self.random.randrange(3) if depth else 0
        if kind == 0:
            return self.scalar()
        members = [self.document(depth - 1) for _ in range(self.random.choice([0, 1, 2, 3, 5, 8] + [33] * (depth < 3)))]
        if kind == 1:
            return "[" + ",".join(members) + "]"
        return "{" + " , ".join(json.dumps(self.string()) + ":" + member for member in members) + "}"


def nested(levels, inside="1"):
    return "[" * levels + inside + "]" * levels


NASTY = [
    *NUMBERS, "true", "false", "null", '""', "[]", "{}", "[[]]", "[{}]", '{"": {}}', '{"": []}', "[[], {}, \"\", null]",
    *[json.dumps("y" * length + character) for length in range(18) for character in CHARACTERS[11:]],
    json.dumps("".join(CHARACTERS)), json.dumps("long " * 100_000), json.dumps({"k" * 5000: "v" * 5000}),
    *[json.dumps(list(range(count))) for count in (31, 32, 33, 63, 64, 65, 255, 256, 257, 5000)],
    *[json.dumps({f"key {n}": n if n % 2 else str(n) for n in range(count)}) for count in (15, 16, 17, 31, 32, 33, 300)],
    json.dumps([["a" * (n % 5), n, None, {"b" * (n % 3): n}] for n in range(300)]),
    nested(50), nested(50, '{"a": ["b", 1.10]}'), nested(LEVELS), nested(LEVELS, '"x"'),
    '{"a": ' * (LEVELS - 1) + "[1, 2]" + "}" * (LEVELS - 1),
]


@pytest.fixture
def table(session):
    """A table `t` with a few thousand documents, and its query."""
    seed = random.randrange(2**32)
    print("seed", seed)  # shown when the test fails
    documents = Documents(seed)
    texts = [*NASTY, None, *(documents.document() for _ in range(1500))]
    session.execute("CREATE TABLE t (id int, v jsonb)")
    with session.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
        for row in enumerate(texts):
            copy.write_row(row)
    session.count = len(texts)
    return session


QUERY = "SELECT id, v FROM t ORDER BY id"


def test_the_same_bytes_on_the_wire(table):
    table.execute("SET pg_arrow_cache.enabled = off")
    expected = [result(table, QUERY, result_format) for result_format in (0, 1)]
    assert all(len(values) == table.count for _, values, _ in expected)
    table.execute("SET pg_arrow_cache.enabled = on")
    for filled_by in (0, 1):
        table.execute("SELECT arrow_cache.flush()")
        assert result(table, QUERY, filled_by) == expected[filled_by]
        assert (table.status(), table.reason()) == ("MISS", None)
        for served_to in (0, 1):
            assert result(table, QUERY, served_to) == expected[served_to]
            assert table.status() == "HIT"


def test_the_same_image_for_the_server(table):
    """Functions of the server read what a hit gives: it has the same bytes as the value in the table."""
    table.execute("CREATE TABLE got (id int, v jsonb, image bytea)")
    table.execute("CREATE CAST (jsonb AS bytea) WITHOUT FUNCTION")
    try:
        result(table, QUERY, 0)
        with table.transaction():
            table.execute(f"DECLARE c NO SCROLL CURSOR FOR {QUERY}")
            table.execute("""
                DO $$
                DECLARE
                    c refcursor := 'c';
                    r record;
                BEGIN
                    LOOP
                        FETCH c INTO r;
                        EXIT WHEN NOT FOUND;
                        INSERT INTO got VALUES (r.id, r.v, r.v::bytea);
                    END LOOP;
                END $$""")
        assert table.rows("SELECT hits FROM arrow_cache.entries WHERE 't'::regclass = ANY (relations)") == [(1,)]
        assert table.rows("SELECT count(*), count(image) FROM got") == [(table.count, table.count - 1)]
        assert table.rows("SELECT id FROM t JOIN got USING (id) WHERE image <> t.v::bytea") == []
    finally:
        table.execute("DROP CAST (jsonb AS bytea)")
    compared = table.rows("""
        SELECT count(*) FILTER (WHERE t.v = got.v), count(*) FILTER (WHERE t.v @> got.v AND got.v @> t.v),
            count(*) FILTER (WHERE t.v -> 0 IS NOT DISTINCT FROM got.v -> 0 AND t.v -> 'a' IS NOT DISTINCT FROM got.v -> 'a'
                             AND t.v -> -1 IS NOT DISTINCT FROM got.v -> -1 AND t.v -> '' IS NOT DISTINCT FROM got.v -> ''),
            count(*) FILTER (WHERE jsonb_hash(t.v) = jsonb_hash(got.v)), count(*)
        FROM t JOIN got USING (id) WHERE t.v IS NOT NULL""")
    assert compared == [(table.count - 1,) * 5]


def test_exports_have_the_text(table):
    texts = [text for text, in table.uncached("SELECT v::text FROM t ORDER BY id")]
    for status in ("MISS", "HIT"):
        arrow, _ = read_query(table, QUERY)
        assert table.status() == status
        assert arrow.column("v").to_pylist() == texts
    assert table.rows("SELECT arrow_type, zero_copy FROM arrow_cache.schema(%s) WHERE name = 'v'", [QUERY]) == [("Utf8", False)]


def test_inside_other_values(session):
    """A domain is stored like jsonb itself; in arrays and rows an export prints what is there."""
    deep = nested(LEVELS + 1)
    session.execute("CREATE DOMAIN document AS jsonb; CREATE TYPE pair AS (n int, j jsonb, d document)")
    session.execute("CREATE TABLE t (id int, d document, a jsonb[], p pair)")
    session.execute("""
        INSERT INTO t SELECT g, v, ARRAY[v, NULL, to_jsonb(g), %s::jsonb], (g, v, v)::pair
        FROM generate_series(1, 50) g, LATERAL (SELECT jsonb_build_object('g', g, 'list', ARRAY[1.50, g], E't\\n', 'x')) AS s (v)""", [deep])
    query = "SELECT id, d, a, p FROM t ORDER BY id"
    texts = session.uncached("SELECT id, d::text, a::text[] AS a, json_build_array((p).n, (p).j::text, (p).d::text) FROM t ORDER BY id")
    for status in ("MISS", "HIT"):
        arrow, _ = read_query(session, query)
        assert session.status() == status
        rows = [(row["id"], row["d"], row["a"], list(row["p"].values())) for row in arrow.to_pylist()]
        assert rows == texts
        assert rows[0][2][3] == deep
    assert arrow.schema.field("a").type == pa.list_(pa.field("item", pa.string(), metadata=arrow.schema.field("a").type.field(0).metadata))
    zero_copy = dict(session.rows("SELECT name, zero_copy FROM arrow_cache.schema(%s)", [query]))
    assert zero_copy == {"id": True, "d": False, "a": False, "p": False}
    assert result(session, query, 0) == result(session, query, 0)
    assert session.status() == "HIT"


@pytest.mark.parametrize("document", [f"'{nested(50 * LEVELS)}'", "'[' || repeat('1e131071,', 20) || '1]'"])
def test_what_is_deep_or_has_a_long_text_is_stored(session, document):
    """Each of the numbers takes a few bytes, and a hundred thousand digits."""
    session.execute(f"CREATE TABLE t AS SELECT ({document})::jsonb AS v")
    session.execute("SET pg_arrow_cache.max_entry_size = '1MB'")
    session.execute("SET pg_arrow_cache.enabled = off")
    expected = [result(session, "SELECT v FROM t", result_format) for result_format in (0, 1)]
    session.execute("SET pg_arrow_cache.enabled = on")
    for status in ("MISS", "HIT", "HIT"):
        assert result(session, "SELECT v FROM t", 1) == expected[1]
        assert session.status() == status
    assert result(session, "SELECT v FROM t", 0) == expected[0]
    assert session.status() == "HIT"
