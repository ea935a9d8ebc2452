"""Statements that differ in the constants of their conditions share parts in a grain: their columns are keys of the parts."""

import random

import pytest

from support.agreement import agree_on_result
from support.fragment_world import parts_of

ANY_TIME = "-c pg_arrow_cache.fragment_min_time=0 -c pg_arrow_cache.min_execution_time=1h"
COLUMNS = "id int, day date, region text, status int, kind char(3), v int, price numeric(10, 2), txt text"
ROWS = """SELECT g, date '2024-01-01' + g % 20, (ARRAY['EU', 'US', 'DE', NULL])[1 + g % 4], g % 5, 'k' || g % 2, g * 7 % 1000, g / 4.0, g::text
    FROM generate_series(1, 20000) g"""
PLAIN = f"CREATE TABLE t ({COLUMNS}); INSERT INTO t {ROWS}; ANALYZE t"
LEAVES = f"""CREATE TABLE t ({COLUMNS}) PARTITION BY RANGE (id);
    CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (0) TO (7000); CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (7000) TO (14000);
    CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (14000) TO (30000); INSERT INTO t {ROWS}; ANALYZE t"""
COUNT = "SELECT count(*), sum(v), min(id) FROM t WHERE region = '{}'"


@pytest.fixture
def writer(connect):
    return connect()


@pytest.fixture
def plain(writer):
    writer.execute(PLAIN)


@pytest.fixture
def leaves(writer):
    writer.execute(LEAVES)


@pytest.fixture
def reader(connect):
    return connect(ANY_TIME, prepare_threshold=None)


def explained(session, query):
    """The grain, and how many parts are stored and computed."""
    lines = [line for line, in session.rows(f"EXPLAIN (COSTS OFF) {query}")]
    [grain] = [line.partition("Grain: ")[2] for line in lines if "Grain: " in line] or [None]
    return grain, parts_of(lines)


def learn(reader, query, constants):
    """Asks with three constants. The answers are right, and the last one is computed in the grain."""
    for constant in constants[:3]:
        agree_on_result(reader, query.format(constant))


def test_from_the_third_constant_on(reader, writer, leaves):
    # Each statement is run once: the first tells how long they take, the second that there are others.
    assert explained(reader, COUNT.format("XX"))[0] is None
    for constant in ("EU", "US"):
        reader.rows(COUNT.format(constant))
    reader.rows(COUNT.format("DE"))
    assert explained(reader, COUNT.format("none")) == ("region", (3, 0))
    before = reader.rows("SELECT fragments_computed FROM arrow_cache.stats")
    for constant in ("EU", "US", "DE", "none", ""):
        agree_on_result(reader, COUNT.format(constant))
    assert reader.rows("SELECT fragments_computed FROM arrow_cache.stats") == before
    writer.execute("UPDATE t SET region = 'none' WHERE id = 5")
    assert explained(reader, COUNT.format("EU")) == ("region", (2, 1))
    for constant in ("EU", "none"):
        agree_on_result(reader, COUNT.format(constant))


def test_not_for_one_constant(reader, writer, leaves):
    """A statement that comes again after changes has parts of its own."""
    for _ in range(6):
        agree_on_result(reader, COUNT.format("EU"))
        writer.execute("UPDATE t SET v = v + 1 WHERE id = 1")
    assert explained(reader, COUNT.format("EU")) == (None, (2, 1))


def test_what_stands_above_shares_the_parts(reader, leaves):
    """HAVING, ORDER BY, LIMIT, fewer columns, and other ways of asking for values of the same columns."""
    by_status = "SELECT status, count(*), sum(v) FROM t WHERE region {} GROUP BY status"
    learn(reader, by_status, ["= 'EU'", "= 'US'", "= 'DE'"])
    before = reader.rows("SELECT fragments_computed FROM arrow_cache.stats")
    for query in (
        by_status.format("IN ('EU', 'US')"),
        by_status.format("= ANY ('{US,DE}')"),
        by_status.format("IS NULL"),
        by_status.format("IS NOT NULL"),
        by_status.format("< 'F'"),
        by_status.format("BETWEEN 'DE' AND 'EU'"),
        by_status.format("= 'EU' OR region = 'DE'"),
        by_status.format("= 'EU' AND status = 3"),
        by_status.format("= 'EU' AND status IN (1, 2)"),
        by_status.format("= 'EU' AND region = 'US'"),
        by_status.format("= 'EU'") + " HAVING count(*) > 3 ORDER BY 2 DESC, 1 LIMIT 2",
        by_status.format("= 'US'") + " ORDER BY status OFFSET 1",
        "SELECT count(*), sum(v) FROM t WHERE region = 'EU' GROUP BY status ORDER BY 1, 2",
        "SELECT region, count(*), sum(v) FROM t WHERE status = 2 GROUP BY region",
        "SELECT count(*), sum(v) FROM t WHERE region = 'EU' AND status = 3",
    ):
        # The first run of a form tells how long it takes.
        reader.rows(query)
        agree_on_result(reader, query)
        assert explained(reader, query) == ("region, status", (3, 0)), query
    assert reader.rows("SELECT fragments_computed FROM arrow_cache.stats") == before


def test_no_row_passes(reader, leaves):
    """An aggregate without groups has a row all the same."""
    learn(reader, COUNT, ["EU", "US", "DE"])
    assert reader.rows(COUNT.format("none")) == [(0, None, None)]
    assert reader.rows(COUNT.format("none") + " HAVING count(*) > 0") == []
    assert reader.rows(COUNT.format("EU' AND region = 'US")) == [(0, None, None)]


def test_a_drill(reader, leaves):
    """A key that is computed of a column is computed of the keys of the parts. Those of another level share them."""
    drill = "SELECT {} AS d, count(*), avg(price) FROM t WHERE day BETWEEN '2024-01-03' AND '2024-01-{}' GROUP BY 1"
    for key in ("day", "extract(week FROM day)", "date_trunc('month', day)", "day - 7"):
        for end in (10, 12, 14, 16):
            agree_on_result(reader, drill.format(key, end))
        assert explained(reader, drill.format(key, 15)) == ("day", (3, 0))
    # Three leaves, in the grain and for the question before it was learned.
    assert reader.rows("SELECT count(*) FROM arrow_cache.entries WHERE kind = 'fragment' AND query LIKE 'part of%'") == [(6,)]


CASES = {
    "a column of a dimension": ("SELECT r.name, count(*) FROM t JOIN r ON r.region = t.region WHERE r.name = '{}' GROUP BY 1", ["Europe", "States", "x"], "name"),
    "a view": ("SELECT status, sum(v) FROM seen WHERE area = '{}' GROUP BY status", ["EU", "US", "DE"], "area, status"),
    "an outer join": ("SELECT count(*), count(r.name) FROM t LEFT JOIN r ON r.region = t.region AND r.name <> 'x' WHERE r.name IS NULL AND status = {}", [1, 2, 3], "status, name"),
    "ON": ("SELECT count(*) FROM t JOIN r ON r.region = t.region AND t.status = {}", [1, 2, 3], "status"),
    "aggregates of numbers": ("SELECT status, avg(price), sum(price), avg(v), max(v) FILTER (WHERE v < 500) FROM t WHERE region = '{}' GROUP BY 1", ["EU", "US", "DE"], "region, status"),
    "a condition that stays": ("SELECT count(*) FROM t WHERE region = '{}' AND price < 1000", ["EU", "US", "DE"], "region"),
    "a sub-query": ("SELECT max(n) FROM (SELECT status, count(*) AS n FROM t WHERE region = '{}' GROUP BY status) AS s", ["EU", "US", "DE"], "region, status"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_has_a_grain(reader, writer, leaves, case):
    writer.execute("CREATE TABLE r (region text, name text); INSERT INTO r VALUES ('EU', 'Europe'), ('US', 'States'), ('DE', 'x'); ANALYZE r")
    writer.execute("CREATE VIEW seen AS SELECT region AS area, status, v FROM t WHERE v > 5")
    query, constants, grain = CASES[case]
    for constant in constants + constants:
        agree_on_result(reader, query.format(constant))
    assert explained(reader, query.format(constants[0])) == (grain, (3, 0))
    writer.execute("UPDATE r SET name = 'Europe' WHERE name = 'x'; UPDATE t SET region = 'EU', status = 1 WHERE id < 500")
    for constant in constants:
        agree_on_result(reader, query.format(constant))


@pytest.mark.parametrize("query, constants", [
    ("SELECT sum(100 / (v - 999)) FROM t WHERE status = {}", [1, 2, 3]),
    ("SELECT sum(v * v) FROM t WHERE status = {}", [1, 2, 3]),
    ("SELECT sum(txt::int) FROM t WHERE status = {}", [1, 2, 3]),
    ("SELECT count(*) FROM t WHERE status = {} AND txt::int > 5", [1, 2, 3]),
    ("SELECT sum(v::float8) FROM t WHERE status = {}", [1, 2, 3]),
    ("SELECT count(*) FROM t WHERE status + 1 = {}", [1, 2, 3]),
    ("SELECT count(*) FROM t WHERE kind = '{}'", ["k0", "k1", "k2"]),
    ("SELECT count(*) FROM t WHERE price = {}", [1, 2, 3]),
    ("SELECT count(*) FROM t WHERE region LIKE '{}%'", ["E", "U", "D"]),
    ("SELECT count(*) FROM t WHERE status = {} AND now() > '2020-01-01' AND day < now()", [1, 2, 3]),
    # Too many groups.
    ("SELECT count(*) FROM t WHERE id = {}", [1, 2, 3]),
    ("SELECT count(*) FROM t WHERE id > {}", [1, 2, 3]),
])
def test_what_has_none(reader, leaves, query, constants):
    """What may fail for rows that the conditions leave out, values that may be equal and look different, and too many groups."""
    for constant in constants + constants:
        agree_on_result(reader, query.format(constant))
    assert explained(reader, query.format(constants[0]))[0] is None


def test_ranges_stay_if_they_have_too_many_values(reader, leaves):
    query = "SELECT count(*) FROM t WHERE region = '{}' AND v < 500"
    for constant in ("EU", "US", "DE", "none"):
        agree_on_result(reader, query.format(constant))
    assert explained(reader, query.format("EU")) == ("region", (3, 0))
    # Another range is another question.
    assert explained(reader, query.format("EU").replace("500", "600")) == (None, (0, 3))


def test_conditions_on_the_key_of_partitions_leave_them_out(reader, leaves):
    query = "SELECT count(*) FROM t WHERE id >= {} AND region = '{}'"
    for at, constant in ((8000, "EU"), (8000, "US"), (8000, "DE")):
        agree_on_result(reader, query.format(at, constant))
    assert explained(reader, query.format(8000, "none")) == ("region", (2, 0))
    assert explained(reader, query.format(15000, "none"))[1] == (0, 1)


def test_sub_partitions(reader, writer):
    """Conditions on their keys leave leaves out, which a grain would read: there is none."""
    writer.execute(f"""CREATE TABLE t ({COLUMNS}) PARTITION BY LIST (status); CREATE TABLE t0 PARTITION OF t FOR VALUES IN (0, 1, 2) PARTITION BY RANGE (day);
        CREATE TABLE t1 PARTITION OF t DEFAULT; CREATE TABLE t00 PARTITION OF t0 FOR VALUES FROM ('2024-01-01') TO ('2024-01-10');
        CREATE TABLE t01 PARTITION OF t0 DEFAULT; INSERT INTO t {ROWS}; ANALYZE t""")
    query = "SELECT region, sum(v) FROM t WHERE status = 1 AND day < '2024-01-0{}' GROUP BY 1"
    for day in (3, 5, 7, 4, 6):
        agree_on_result(reader, query.format(day))
        assert explained(reader, query.format(day + 1))[0] is None


def test_small_tables_have_none(reader, plain):
    for region in ("EU", "US", "DE", "none"):
        agree_on_result(reader, COUNT.format(region))
        assert explained(reader, COUNT.format("another")) == (None, None)


def test_conditions_of_all_kinds(reader, leaves):
    """The planner knows some nodes only as parts of others."""
    for constant in range(4):
        agree_on_result(reader, f"SELECT sum(v) FROM t WHERE CASE WHEN status = {constant} THEN region = 'EU' ELSE status = 3 END")
        agree_on_result(reader, f"SELECT max(n) FROM (SELECT status, count(*) AS n FROM t WHERE CASE status WHEN {constant} THEN region = 'EU' ELSE v > 5 END GROUP BY 1) s")


def test_off(reader, leaves):
    learn(reader, COUNT, ["EU", "US", "DE"])
    assert explained(reader, COUNT.format("none"))[0] == "region"
    before = reader.rows("SELECT fragment_runs FROM arrow_cache.stats")
    agree_on_result(reader, f"/*+ arrow_cache(fragments=off) */ {COUNT.format('none')}")
    reader.execute("SET pg_arrow_cache.enable_fragments = off")
    assert explained(reader, COUNT.format("none")) == (None, None)
    agree_on_result(reader, COUNT.format("none"))
    assert reader.rows("SELECT fragment_runs FROM arrow_cache.stats") == before


def test_kept_plans(reader, writer, leaves):
    """Plans for the values of an execution learn the grain; the one that is kept for all values has it."""
    reader.execute("PREPARE p (text) AS SELECT count(*), sum(v), min(id) FROM t WHERE region = $1")
    constants = ("EU", "US", "DE", "none", "a", "b", "c", "d")
    for constant in constants:
        assert reader.rows(f"EXECUTE p ('{constant}')") == reader.uncached(COUNT.format(constant))
    reader.execute("SET plan_cache_mode = force_generic_plan")
    assert explained(reader, "EXECUTE p ('another')") == ("region", (3, 0))
    writer.execute("UPDATE t SET region = 'a' WHERE id < 10")
    for constant in constants:
        assert reader.rows(f"EXECUTE p ('{constant}')") == reader.uncached(COUNT.format(constant))


def test_values_of_a_bind(reader, leaves):
    query = "SELECT status, sum(v) FROM t WHERE region = %s AND day < %s GROUP BY 1 ORDER BY 1"
    choices = [("EU", "2024-01-08"), ("US", "2024-01-18"), ("DE", "2024-01-02"), ("none", "2024-01-12"), ("EU", "2024-01-19"), ("US", None), (None, "2024-01-03")]
    for choice in choices:
        assert reader.rows(query, choice) == reader.uncached(query, choice)
    before = reader.rows("SELECT fragment_runs, fragments_computed FROM arrow_cache.stats")[0]
    for region, day in (("DE", "2024-01-17"), ("other", "2024-01-03")):
        assert reader.rows(query, (region, day)) == reader.uncached(query, (region, day))
    after = reader.rows("SELECT fragment_runs, fragments_computed FROM arrow_cache.stats")[0]
    assert (after[0] - before[0], after[1] - before[1]) == (2, 0)


def test_a_condition_that_a_parameter_switches_on(reader, leaves):
    query = "SELECT status, count(*) FROM t WHERE (%s::text IS NULL OR region = %s) AND (%s::int IS NULL OR status = %s) GROUP BY 1 ORDER BY 1"
    for region, status in (("EU", 1), ("US", None), (None, 2), ("DE", 3), (None, None), ("none", 4)):
        values = (region, region, status, status)
        assert reader.rows(query, values) == reader.uncached(query, values)


def test_the_first_part_shows_too_many_groups(reader, writer):
    """Without statistics the planner takes columns for coarse."""
    writer.execute(f"""CREATE TABLE t ({COLUMNS}) PARTITION BY RANGE (v);
        CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (0) TO (10) WITH (autovacuum_enabled = off);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (10) TO (1000) WITH (autovacuum_enabled = off); INSERT INTO t {ROWS}""")
    query = "SELECT count(*) FROM t WHERE id = {}"
    for constant in (1, 2):
        agree_on_result(reader, query.format(constant))
    assert explained(reader, query.format(3)) == ("id", (0, 2))
    agree_on_result(reader, query.format(3))
    assert explained(reader, query.format(4))[0] is None
    agree_on_result(reader, query.format(4))
    # Nor do those that follow try it.
    reader.execute("SET pg_arrow_cache.min_execution_time = 0")
    for constant in range(10, 40):
        if constant % 10 == 0:
            writer.execute("UPDATE t SET v = v WHERE id = 1")
        assert explained(reader, query.format(constant))[0] is None
        agree_on_result(reader, query.format(constant))


def test_why_tells(reader, leaves):
    why = f"SELECT detail FROM arrow_cache.why($$ {COUNT.format('none')} $$)"
    assert "hold all values" not in reader.rows(why)[0][0]
    learn(reader, COUNT, ["EU", "US", "DE"])
    assert reader.rows(why)[0][0].endswith("; combined of stored parts that hold all values of region")


def test_who_may_not_read_a_column(reader, writer, leaves):
    """Nobody is asked for what the client's query does not read, and each role has parts of its own."""
    [(schema,)] = writer.rows("SELECT current_schema()")
    writer.execute(f"CREATE ROLE grain_reader; GRANT USAGE ON SCHEMA {schema} TO grain_reader; GRANT SELECT (region, v, id) ON t TO grain_reader")
    try:
        reader.execute("SET ROLE grain_reader")
        for constant in ("EU", "US", "DE", "none"):
            agree_on_result(reader, COUNT.format(constant))
        assert explained(reader, COUNT.format("XX"))[0] == "region"
        writer.execute("REVOKE SELECT (region) ON t FROM grain_reader")
        with pytest.raises(Exception, match="permission denied"):
            reader.rows(COUNT.format("EU"))
        reader.execute("RESET ROLE")
    finally:
        writer.execute("DROP OWNED BY grain_reader; DROP ROLE grain_reader")


def test_policies_are_part_of_the_question(reader, writer, leaves):
    [(schema,)] = writer.rows("SELECT current_schema()")
    writer.execute(f"CREATE ROLE grain_reader; GRANT USAGE ON SCHEMA {schema} TO grain_reader; GRANT SELECT ON t TO grain_reader; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t TO grain_reader USING (status < 3)")
    try:
        reader.execute("SET ROLE grain_reader")
        for constant in ("EU", "US", "DE", "none"):
            agree_on_result(reader, COUNT.format(constant))
        assert explained(reader, COUNT.format("XX"))[0] == "region"
        reader.execute("RESET ROLE")
        for constant in ("EU", "US", "DE", "none"):
            agree_on_result(reader, COUNT.format(constant))
    finally:
        writer.execute("DROP OWNED BY grain_reader; DROP ROLE grain_reader")


@pytest.mark.parametrize("world", ["plain", "leaves"])
def test_a_crowd_of_constants(request, connect, writer, world):
    """Random constants and changes, over leaves and over zones: all answers are those of the server."""
    request.getfixturevalue(world)
    reader = connect(f"{ANY_TIME} -c pg_arrow_cache.debug_force_fragments=on -c pg_arrow_cache.debug_force_grains=on", prepare_threshold=None)
    choose = random.Random(5)
    before = reader.rows("SELECT fragments_served FROM arrow_cache.stats")[0][0]
    for _ in range(60):
        region, status, day = choose.choice(["EU", "US", "DE", "none"]), choose.randrange(6), choose.randrange(1, 25)
        query = choose.choice([
            f"SELECT status, count(*), sum(v), avg(price) FROM t WHERE region = '{region}' GROUP BY 1",
            f"SELECT count(*), max(day) FROM t WHERE region IS DISTINCT FROM '{region}' AND status <> {status}",
            f"SELECT date_trunc('week', day), sum(price) FROM t WHERE day < '2024-01-{day:02}' AND status IN ({status}, 1) GROUP BY 1 HAVING count(*) > 2",
            f"SELECT region, min(id) FROM t WHERE (region = '{region}' OR day = '2024-01-{day:02}') AND id < {day * 900} GROUP BY region",
        ])
        agree_on_result(reader, query)
        if choose.random() < 0.3:
            writer.execute(f"UPDATE t SET status = {status}, region = '{region}' WHERE id % 500 = {day}")
    assert reader.rows("SELECT fragments_served FROM arrow_cache.stats")[0][0] > before + 50
    grain, (stored, computed) = explained(reader, COUNT.format("another"))
    assert grain == "region" and stored + computed > 2
