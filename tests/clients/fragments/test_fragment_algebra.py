"""Answers that are combined of parts, compared with those of plain PostgreSQL: values, types, and errors. What the cache stores and serves
is tested elsewhere; here each question is asked of the parts, stored or not."""

import psycopg
import pytest

TABLES = """
CREATE TABLE sales (id int, at timestamp NOT NULL, tz timestamptz, shop int, product text, x int, n numeric, b bool)
    PARTITION BY RANGE (at);
CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE TABLE sales_3 (n numeric, b bool, x int, gone int, product text, shop int, tz timestamptz, at timestamp NOT NULL, id int);
ALTER TABLE sales_3 DROP COLUMN gone;
ALTER TABLE sales ATTACH PARTITION sales_3 FOR VALUES FROM ('2024-03-01') TO ('2024-04-01');
INSERT INTO sales SELECT g, timestamp '2024-01-01' + g * interval '6 hours', timestamptz '2024-01-01 UTC' + g * interval '6 hours',
    g % 4, 'p' || g % 7, g, g / 8.0, g % 3 = 0 FROM generate_series(0, 359) g;
CREATE TABLE shops (id int PRIMARY KEY, name text, size int);
INSERT INTO shops SELECT g, 'shop ' || g, g FROM generate_series(0, 3) g;
"""


@pytest.fixture
def sales(session):
    session.execute(TABLES)
    session.execute("ANALYZE sales, shops")
    session.execute("SET timezone = 'UTC'")
    return session


def outcome(session, query):
    """The columns and rows of a query, or its error."""
    try:
        with session.transaction():
            cursor = session.execute(query, prepare=False)
            columns = [(column.name, column.type_code, cursor.pgresult.fmod(place), cursor.pgresult.ftable(place),
                        cursor.pgresult.ftablecol(place)) for place, column in enumerate(cursor.description)]
            return columns, sorted(map(repr, cursor.fetchall()))
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary


def is_combined(session, query):
    plan = "\n".join(row[0] for row in session.rows(f"EXPLAIN (COSTS OFF) {query}", prepare=False))
    return "ArrowCacheFragments" in plan


def check(session, query):
    """The outcome of a query, which is the same with parts and without, with none of them stored and with all. Also returns whether it is
    combined of parts."""
    with session.transaction(force_rollback=True):
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        session.execute("SET LOCAL pg_arrow_cache.enabled = off")
        plain = outcome(session, query)
        session.execute("SET LOCAL pg_arrow_cache.enabled = on")
        session.execute("SET LOCAL pg_arrow_cache.debug_force_fragments = on")
        try:
            with session.transaction(force_rollback=True):
                combined = is_combined(session, query)
        except psycopg.Error as error:
            assert (error.sqlstate, error.diag.message_primary) == plain
            combined = None
        for _ in range(2):
            assert outcome(session, query) == plain, query
    return plain, combined


def combined(session, query):
    plain, is_so = check(session, query)
    assert is_so is not False, session.execute("SELECT arrow_cache.why(%s)", [query]).fetchone()
    return plain


def undivided(session, query):
    plain, is_so = check(session, query)
    assert is_so is not True
    return plain


DIVISION = ("22012", "division by zero")


def is_answer(outcome):
    return isinstance(outcome[0], list)


# What plain PostgreSQL does not read must not be read by parts either.
def test_condition_of_pruned_leaf(session):
    session.execute("CREATE TABLE h (k int, x int) PARTITION BY HASH (k)")
    for remainder in range(4):
        session.execute(f"CREATE TABLE h_{remainder} PARTITION OF h FOR VALUES WITH (MODULUS 4, REMAINDER {remainder})")
    session.execute("INSERT INTO h SELECT g, CASE WHEN g = 5 THEN 0 ELSE g END FROM generate_series(1, 40) g")
    answers = [combined(session, f"SELECT count(*) FROM h WHERE 10 / x >= 0 AND k = {key}") for key in range(1, 12)]
    assert DIVISION in answers and any(map(is_answer, answers))
    combined(session, "SELECT count(*) FROM h WHERE k = 3")
    combined(session, "SELECT count(*) FROM h WHERE x > 3")


@pytest.mark.parametrize("condition", [
    "at IN ('2024-01-05', '2024-01-06') AND 10 / (x - 200) < 5",
    "(at = '2024-01-05' OR at = '2024-01-06') AND 10 / (x - 200) < 5",
])
def test_condition_on_the_key_of_partitions(sales, condition):
    assert is_answer(combined(sales, f"SELECT shop, count(*) FROM sales WHERE {condition} GROUP BY shop"))


# A condition may fail, for the rows that the server asks it of.
@pytest.mark.parametrize("condition, fails", [
    ("at = '2024-01-05' AND product::char(1)::text || x > 'a'", False),
    ("x < 200 AND 10 / (x - 200) < 5", False),
    ("10 / (x - 200) < 5", True),
    ("at < '2024-02-10' AND 10 / (x - 200) < 5", False),
    ("at < '2024-02-25' AND 10 / (x - 200) < 5", True),
])
def test_condition_that_may_fail(sales, condition, fails):
    assert is_answer(combined(sales, f"SELECT shop, count(*) FROM sales WHERE {condition} GROUP BY shop")) != fails


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_condition_of_join(sales, join):
    query = f"SELECT name, count(*) FROM sales {join} shops ON shops.id = shop AND 10 / (x - 200) < 5 WHERE at < %s GROUP BY name"
    assert is_answer(combined(sales, query.replace("%s", "'2024-02-10'")))
    assert combined(sales, query.replace("%s", "'2024-02-25'")) == DIVISION


def test_check_constraint(sales):
    sales.execute("ALTER TABLE sales_2 ADD CHECK (id BETWEEN 124 AND 239)")
    assert is_answer(combined(sales, "SELECT count(*) FROM sales WHERE id = 7 AND 10 / (x - 200) < 5"))


@pytest.mark.parametrize("hashes", ("on", "off"))
def test_steps_of_aggregates_are_shown(sales, hashes):
    """As in a parallel plan of the server, aggregates are marked like the nodes that compute them."""
    sales.execute(f"SET pg_arrow_cache.debug_force_fragments = on; SET enable_hashagg = {hashes}")
    query = "SELECT shop, count(*), avg(n) FILTER (WHERE b) + 1 FROM sales GROUP BY shop HAVING max(x) > 3 ORDER BY 2"
    lines = [row[0].strip() for row in sales.rows(f"EXPLAIN (VERBOSE, COSTS OFF) {query}", prepare=False)]
    column, second, third = (f"arrow_cache_fragments.value{number}" for number in ("", "_2", "_3"))
    assert f"Output: {column}, count(*), (avg({second}) + '1'::numeric)" in lines, lines
    assert f"Filter: (max({third}) > 3)" in lines, lines
    given = f"Output: {column}, (PARTIAL count(*)), (PARTIAL avg({second})), (PARTIAL max({third}))"
    assert given in lines[lines.index("->  Custom Scan (ArrowCacheFragments)"):], lines


def test_condition_of_having_without_aggregate(sales):
    query = "SELECT shop, count(*) FROM sales WHERE at < '{}' GROUP BY shop, x HAVING 10 / (x - 200) < 5"
    assert is_answer(combined(sales, query.format("2024-02-10")))
    assert combined(sales, query.format("2024-02-25")) == DIVISION


# Keys and arguments see the rows that they see without parts.
@pytest.mark.parametrize("query, fails", [
    ("SELECT shop, sum(10 / (x - 200)) FROM sales GROUP BY shop", True),
    ("SELECT shop, sum(10 / (x - 200)) FROM sales WHERE at < '2024-02-01' GROUP BY shop", False),
    ("SELECT 10 / (x - 200), count(*) FROM sales GROUP BY 1", True),
    ("SELECT 10 / (x - 200), count(*) FROM sales WHERE at < '2024-02-01' GROUP BY 1", False),
    ("SELECT sum(10 / (x - 200)) FILTER (WHERE x < 200) FROM sales", False),
    ("SELECT sum(10 / (x - 200)) FILTER (WHERE 1 / (x - 300) >= 0) FROM sales", True),
    ("SELECT shop, 10 / (count(*) - 90) FROM sales GROUP BY shop", True),
    ("SELECT shop, 10 / (max(x) - 200) FROM sales GROUP BY shop HAVING max(x) > 200", False),
    ("SELECT shop FROM sales GROUP BY shop HAVING 10 / (count(*) - 90) > 0", True),
    ("SELECT shop, sum(x::int2) FROM sales GROUP BY shop", False),
    ("SELECT sum(2147483647 + x) FROM sales WHERE x > 0", True),
])
def test_columns_that_may_fail(sales, query, fails):
    assert is_answer(combined(sales, query)) != fails


def test_planning_fails_without_a_leaf(sales):
    """What fails when the server plans it, fails if no leaf is read."""
    assert check(sales, "SELECT sum(1 / 0) FROM sales")[0] == DIVISION
    assert check(sales, "SELECT sum(1 / 0) FROM sales WHERE at > '2100-01-01'")[0] == DIVISION


# In which order several conditions are asked, and so whether one of them fails, the planner decides.
@pytest.mark.parametrize("having", ["max(x) <> 356 AND 10 / (max(x) - 356) > 0", "count(*) > 3 AND max(x) > 100 AND sum(n) > 1 AND x % 4 >= 0"])
def test_conditions_of_having(sales, having):
    combined(sales, f"SELECT x % 4, count(*) FROM sales GROUP BY x % 4 HAVING {having}")


def test_limit(sales):
    """A plan may compute all groups before it gives the first one, or no more than are read."""
    for query in ("SELECT at, sum(10 / (x - 500)) FROM sales GROUP BY at ORDER BY at LIMIT 3",
                  "SELECT at, 10 / (max(x) - 500) FROM sales GROUP BY at ORDER BY at LIMIT 3",
                  "SELECT at, 10 / (max(x) - 500) FROM sales GROUP BY at ORDER BY max(x) LIMIT 3",
                  "SELECT product, sum(n) FROM sales GROUP BY product ORDER BY sum(n) DESC LIMIT 3",
                  "SELECT product, sum(n), count(*) FROM sales GROUP BY product ORDER BY 2 DESC, 1 LIMIT 3",
                  "SELECT at, sum(x) FROM sales GROUP BY at ORDER BY at LIMIT 3"):
        assert is_answer(combined(sales, query))
    assert combined(sales, "SELECT sum(10 / (x - 200)) FROM sales LIMIT 1") == DIVISION


# A sub-query that aggregates computes no row that what is around it excludes, or never asks for.
@pytest.mark.parametrize("query", [
    "SELECT * FROM (SELECT shop, sum(10 / (x - 200)) FROM sales GROUP BY shop) s WHERE shop = 1",
    "SELECT shop FROM (SELECT shop, sum(10 / (x - 200)) FROM sales GROUP BY shop) s",
    "SELECT CASE WHEN size < 9 THEN 0 ELSE (SELECT sum(10 / (x - 200)) FROM sales) END FROM shops",
    "SELECT s.* FROM (SELECT shop, count(*) FROM sales WHERE 10 / (x - 200) < 5 GROUP BY shop) s WHERE shop = 1",
])
def test_sub_query_that_may_fail(sales, query):
    assert is_answer(undivided(sales, query))


def test_around_a_sub_query_anything_may_fail(sales):
    combined(sales, "SELECT shop, 10 / (total + 1) FROM (SELECT shop, sum(x) AS total FROM sales GROUP BY shop) s WHERE 10 / (shop + 1) > 0")


# Row security. The role may see rows of the table by a policy, and has no right to a leaf.
READER = "regress_fragment_reader"


@pytest.fixture
def reader(sales):
    """The session as a role that may read the table; `sales.execute("RESET ROLE")` makes it the owner again."""
    schema = sales.rows("SELECT current_schema")[0][0]
    sales.execute(f"""
        DROP ROLE IF EXISTS {READER}; CREATE ROLE {READER};
        GRANT USAGE ON SCHEMA {schema} TO {READER};
        GRANT SELECT (at, shop, x, product) ON sales TO {READER};
        GRANT SELECT ON shops TO {READER};
        GRANT SET ON PARAMETER pg_arrow_cache.debug_force_fragments TO {READER}""")
    sales.execute(f"SET ROLE {READER}")
    yield sales
    sales.execute(f"RESET ROLE; DROP OWNED BY {READER}; DROP ROLE {READER}")


def as_owner(session, statements):
    session.execute(f"RESET ROLE; {statements}; SET ROLE {READER}")


GROUPED = "SELECT shop, count(*), sum(x) FROM sales WHERE at >= '2024-01-15' GROUP BY shop"
DENIED = "42501"


def rows_of(answer):
    return len(answer[1])


def test_rights_to_columns(reader):
    combined(reader, GROUPED)
    for query in ["SELECT shop, sum(n) FROM sales GROUP BY shop", "SELECT count(*) FROM sales WHERE tz > '2024-01-01'",
                  "SELECT shop, count(*) FROM sales GROUP BY shop, b", "SELECT count(*) FROM sales_1", "SELECT shop, count(*) FROM sales GROUP BY shop HAVING max(id) > 0",
                  "SELECT s.c FROM (SELECT count(*) AS c FROM sales WHERE b) s"]:
        assert check(reader, query)[0][0] == DENIED
    as_owner(reader, f"REVOKE SELECT (x) ON sales FROM {READER}")
    assert check(reader, GROUPED)[0][0] == DENIED
    # The answer of before would be given again as a whole.
    as_owner(reader, f"GRANT SELECT (x) ON sales TO {READER}; REVOKE SELECT ON shops FROM {READER}; SELECT arrow_cache.flush()")
    combined(reader, GROUPED)
    assert check(reader, "SELECT name, count(*) FROM sales JOIN shops ON shops.id = shop GROUP BY name")[0][0] == DENIED
    assert check(reader, "SELECT shop, count(*) FROM sales LEFT JOIN shops ON shops.id = shop GROUP BY shop")[0][0] == DENIED


def test_policies(reader):
    assert rows_of(combined(reader, GROUPED)) == 4
    as_owner(reader, "ALTER TABLE sales ENABLE ROW LEVEL SECURITY")
    # Without a policy no row passes, which the planner knows.
    assert rows_of(check(reader, GROUPED)[0]) == 0
    as_owner(reader, f"CREATE POLICY one ON sales TO {READER} USING (shop = 1)")
    assert rows_of(combined(reader, GROUPED)) == 1
    as_owner(reader, "CREATE POLICY two ON sales USING (shop = 2)")
    assert rows_of(combined(reader, GROUPED)) == 2
    as_owner(reader, f"CREATE POLICY name ON sales USING (CURRENT_USER = '{READER}')")
    assert rows_of(combined(reader, GROUPED)) == 4
    as_owner(reader, "CREATE POLICY small ON sales AS RESTRICTIVE USING (x > 100)")
    assert rows_of(combined(reader, GROUPED)) == 4
    # The owner's answer is another one, though the question is the same.
    reader.execute("RESET ROLE")
    everything = combined(reader, GROUPED)
    reader.execute(f"SET ROLE {READER}")
    assert check(reader, GROUPED)[0] != everything
    as_owner(reader, "ALTER TABLE sales FORCE ROW LEVEL SECURITY")
    combined(reader, GROUPED)
    # Of a joined table, on the side that may be missing as well.
    as_owner(reader, "ALTER TABLE shops ENABLE ROW LEVEL SECURITY")
    assert rows_of(check(reader, "SELECT name, count(*) FROM sales JOIN shops ON shops.id = shop GROUP BY name")[0]) == 0
    assert rows_of(check(reader, "SELECT name, count(*) FROM sales LEFT JOIN shops ON shops.id = shop GROUP BY name")[0]) == 1
    as_owner(reader, "CREATE POLICY small ON shops USING (size < 2)")
    assert rows_of(combined(reader, "SELECT name, count(*) FROM sales LEFT JOIN shops ON shops.id = shop GROUP BY name")) == 3
    # With a sub-query.
    as_owner(reader, "CREATE POLICY asking ON sales AS RESTRICTIVE USING (shop IN (SELECT id FROM shops))")
    assert rows_of(undivided(reader, GROUPED)) == 2


def test_policies_of_leaves(reader):
    """The rows of a leaf are not its own policies' when they are read through the table."""
    before = combined(reader, GROUPED)
    as_owner(reader, "ALTER TABLE sales_1 ENABLE ROW LEVEL SECURITY; ALTER TABLE sales_2 ENABLE ROW LEVEL SECURITY;"
                     "CREATE POLICY none ON sales_2 USING (false)")
    assert combined(reader, GROUPED) == before
    reader.execute("SET row_security = off")
    assert combined(reader, GROUPED) == before
    as_owner(reader, "ALTER TABLE sales ENABLE ROW LEVEL SECURITY")
    assert check(reader, GROUPED)[0][0] == DENIED
    reader.execute("RESET row_security")


def test_policy_between_runs(reader):
    """A plan that was made for one role is not executed for another."""
    as_owner(reader, f"ALTER TABLE sales ENABLE ROW LEVEL SECURITY; CREATE POLICY one ON sales TO {READER} USING (shop = 1)")
    reader.execute("SET pg_arrow_cache.debug_force_fragments = on")
    reader.execute(f"PREPARE grouped AS {GROUPED}")
    assert len(reader.rows("EXECUTE grouped")) == 1
    reader.execute("RESET ROLE")
    assert len(reader.rows("EXECUTE grouped")) == 4
    reader.execute(f"SET ROLE {READER}")
    assert len(reader.rows("EXECUTE grouped")) == 1
    reader.execute("DEALLOCATE grouped")


def test_policy_that_may_fail(reader):
    as_owner(reader, "ALTER TABLE sales ENABLE ROW LEVEL SECURITY; CREATE POLICY failing ON sales USING (10 / (x - 200) < 5)")
    assert is_answer(combined(reader, "SELECT count(*) FROM sales WHERE at < '2024-02-10'"))
    assert combined(reader, "SELECT count(*) FROM sales WHERE at >= '2024-02-05'") == DIVISION


# Bounds that are computed, or have another type than the column. How many leaves are read, EXPLAIN tells. None: the server may leave out leaves by a
# comparison that is not one in the column's type.
def parts_of(session, query):
    with session.transaction(force_rollback=True):
        session.execute("SET LOCAL pg_arrow_cache.debug_force_fragments = on")
        plan = "\n".join(row[0] for row in session.rows(f"EXPLAIN (COSTS OFF) {query}", prepare=False))
    assert "ArrowCacheFragments" in plan, (query, plan)
    counts = [int(line.split()[-1]) for line in plan.splitlines() if " Parts: " in line]
    return sum(counts), counts[0]


BOUNDS = [
    ("at", "at >= '2024-02-01'::date", 2),
    ("at", "at >= date '2024-01-31' + interval '1 day'", 2),
    ("at", "at >= date '2024-01-31' + 1 AND at < timestamp '2024-03-01 00:00' + interval '0'", 1),
    ("at", "at BETWEEN date '2024-02-01' AND date '2024-02-01' + interval '1 month' - interval '1 microsecond'", 1),
    ("at", "'2024-02-01'::date > at", 1),
    ("at", "at = '2024-02-10'::date", 1),
    ("at", "at < timestamptz '2024-02-01 UTC'", 3),
    ("at", "at <= date 'infinity'", 3),
    ("tz", "tz >= '2024-02-01'::date", 2),
    ("tz", "tz < timestamptz '2024-02-08 00:00' - interval '7 days'", 1),
    ("tz", "tz < timestamp '2024-02-01 00:00'", 1),
    ("tz", "tz >= (timestamp '2024-01-31 00:00' + interval '1 day')::timestamptz", 2),
    ("tz", "tz >= timestamp '2024-01-31 23:59:59.999999'", 3),
    ("day", "day >= date '2024-01-31' + interval '1 day'", 2),
    ("day", "day > date '2024-01-31' + interval '1 hour'", 3),
    ("day", "day < timestamptz '2024-02-01 UTC'", 3),
    ("day", "day < date '2024-03-02' - 30", 1),
    ("big", "big < 100", 1),
    ("big", "big < 100::smallint AND big >= 0::bigint", 1),
    ("small", "small < 100::bigint", 1),
    ("small", "small < 10000000000", 3),
    ("small", "small >= 100 AND 200 > small", 1),
]


@pytest.fixture
def series(session):
    for column, kind, limits in [("at", "timestamp", ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"]),
                                 ("tz", "timestamptz", ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"]),
                                 ("day", "date", ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"]),
                                 ("big", "bigint", [0, 100, 200, 300]), ("small", "smallint", [0, 100, 200, 300])]:
        session.execute("SET timezone = 'UTC'")
        session.execute(f"CREATE TABLE by_{column} ({column} {kind}, v int) PARTITION BY RANGE ({column})")
        for number, (start, end) in enumerate(zip(limits, limits[1:])):
            session.execute(f"CREATE TABLE by_{column}_{number} PARTITION OF by_{column} FOR VALUES FROM ('{start}') TO ('{end}')")
        values = "g" if column in ("big", "small") else "timestamp '2024-01-01' + g * interval '6 hours'"
        session.execute(f"INSERT INTO by_{column} SELECT {values}, g FROM generate_series(0, 299) g")
    return session


@pytest.mark.parametrize("column, condition, leaves", BOUNDS)
def test_computed_bounds(series, column, condition, leaves):
    query = f"SELECT count(*), sum(v), min({column}), max({column}) FROM by_{column} WHERE {condition}"
    assert parts_of(series, query)[0] == leaves
    combined(series, query)


def test_computed_bounds_share_parts(series):
    """A bound that all rows of a leaf fulfil is not part of its question, however it is written."""
    query = "SELECT sum(v) FROM by_tz WHERE {}"
    series.execute("SET pg_arrow_cache.debug_force_fragments = on")
    # The part at the end of a window is stored when it is asked for again.
    for _ in range(3):
        series.execute("UPDATE by_tz_2 SET v = v")
        series.execute(query.format("tz >= '2024-01-10 UTC'"))
    assert parts_of(series, query.format("tz >= date '2024-01-02' + interval '8 days'")) == (3, 3)
    assert parts_of(series, query.format("tz >= timestamptz '2024-01-12 00:00 UTC' - interval '1 day'")) == (3, 2)
    series.execute("RESET pg_arrow_cache.debug_force_fragments")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Pacific/Apia", "Africa/Casablanca"])
@pytest.mark.parametrize("column", ["at", "tz", "day"])
def test_zones(series, zone, column):
    series.execute(f"SET timezone = '{zone}'")
    for other in ["date '2024-02-01'", "timestamp '2024-02-01'", "timestamptz '2024-02-01'", "timestamp '2024-03-31 02:30'",
                  "timestamptz '2024-02-02' - interval '1 day'", "date '2024-02-02' - interval '24 hours'"]:
        for operator in ["<", "<=", "=", ">=", ">"]:
            (combined if column == "tz" else check)(series, f"SELECT count(*), sum(v) FROM by_{column} WHERE {column} {operator} {other}")
            check(series, f"SELECT count(*), sum(v) FROM by_{column} WHERE {other} {operator} {column}")
    series.execute("SET timezone = 'UTC'")


@pytest.mark.parametrize("condition, error", [
    ("at > date '5874897-12-31' + 1", "22008"),
    ("at > timestamp '294276-12-31' + interval '1 year'", "22008"),
    ("at > date 'infinity' - interval '1 day'", None),
    ("at > date '2024-01-01' - interval '178000000 years'", "22008"),
    ("at > date '2024-01-01' - interval '10000 years'", "22008"),
    ("at > date '2024-01-01' + 2147483647", "22008"),
])
def test_bounds_that_fail(series, condition, error):
    answer = undivided(series, f"SELECT count(*) FROM by_at WHERE {condition}")
    assert (answer[0] if error else None) == error


# Views, and other sub-queries of FROM that select, join and filter.
VIEWS = """
CREATE VIEW all_sales AS SELECT id, at, shop AS place, x, n, product FROM sales;
CREATE VIEW late AS SELECT * FROM all_sales WHERE at >= '2024-02-10';
CREATE VIEW joined AS SELECT s.at, s.x, name, size FROM sales s LEFT JOIN shops ON shops.id = s.shop;
CREATE VIEW computed AS SELECT at, x, shop, lower(product) AS product, 10 / (x - 200) AS quotient FROM sales;
CREATE VIEW barred WITH (security_barrier) AS SELECT at, x, shop FROM sales WHERE x > 20;
CREATE VIEW small_shops AS SELECT id, name FROM shops WHERE size < 3;
CREATE VIEW per_shop AS SELECT shop, count(*) AS sales FROM sales GROUP BY shop;
CREATE VIEW limited AS SELECT * FROM sales ORDER BY at LIMIT 10;
"""


@pytest.fixture
def views(sales):
    sales.execute(VIEWS)
    return sales


@pytest.mark.parametrize("query, leaves", [
    ("SELECT place, count(*), sum(x) FROM all_sales GROUP BY place", 3),
    ("SELECT place, count(*), sum(n) FROM all_sales WHERE at >= '2024-02-01' GROUP BY place", 2),
    ("SELECT name, sum(x) FROM joined WHERE at < '2024-03-01' GROUP BY name", 2),
    ("SELECT product, sum(quotient) FROM computed WHERE x < 200 AND at < '2024-02-20' GROUP BY product", 2),
    ("SELECT shop, sum(x) FROM barred WHERE at >= '2024-02-01' GROUP BY shop", 2),
    ("SELECT name, sum(x) FROM sales JOIN small_shops ON small_shops.id = shop WHERE at >= '2024-02-01' GROUP BY name", 2),
    ("SELECT name, sum(x) FROM all_sales JOIN small_shops ON small_shops.id = place GROUP BY name", 3),
    ("SELECT name, sum(x) FROM all_sales LEFT JOIN small_shops ON small_shops.id = place GROUP BY name", 3),
    ("SELECT s.shop, count(*) FROM (SELECT shop, at FROM sales WHERE b) s WHERE s.at > '2024-02-05' GROUP BY 1", 2),
    ("SELECT max(sales) FROM per_shop", 3),
    ("SELECT * FROM per_shop", 3),
    ("SELECT w.place, w.c FROM (SELECT place, count(*) AS c FROM all_sales GROUP BY place) w", 3),
    ("SELECT place, count(*) FROM late WHERE at < '2024-03-31' GROUP BY place", 2),
    ("SELECT name, sum(x) FROM late LEFT JOIN small_shops ON small_shops.id = place GROUP BY name", 2),
    ("SELECT w.place, w.c FROM (SELECT place, count(*) AS c FROM late GROUP BY place) w", 2),
])
def test_views(views, query, leaves):
    assert parts_of(views, query)[0] == leaves
    combined(views, query)
    # With columns in other places.
    views.execute("INSERT INTO sales_3 (at, shop, x, product) VALUES ('2024-03-05', 77, 77, 'q')")
    check(views, query)


@pytest.mark.parametrize("query", [
    "SELECT count(*) FROM limited",
    "SELECT count(*) FROM small_shops LEFT JOIN late ON place = small_shops.id",
    "SELECT count(*) FROM late JOIN all_sales USING (id)",
    "SELECT count(late) FROM late",
    "SELECT count(*) FROM all_sales, LATERAL (SELECT * FROM shops WHERE id = place) l",
])
def test_views_that_are_not_combined(views, query):
    assert is_answer(undivided(views, query))


def test_rights_to_views(views):
    """A view is read with the rights of its owner, and by those who may read it."""
    schema = views.rows("SELECT current_schema")[0][0]
    owner, queries = "regress_fragment_owner", {
        "SELECT place, count(*), sum(x) FROM mine GROUP BY place": "SELECT (place, x) ON mine",
        "SELECT place, count(*) FROM nested GROUP BY place": "SELECT (place) ON nested",
        "SELECT name, count(*) FROM mine JOIN my_shops ON my_shops.id = place GROUP BY name": "SELECT ON mine, my_shops",
    }
    views.execute(f"""
        DROP ROLE IF EXISTS {READER}; CREATE ROLE {READER}; DROP ROLE IF EXISTS {owner}; CREATE ROLE {owner};
        GRANT USAGE ON SCHEMA {schema} TO {READER}; GRANT CREATE, USAGE ON SCHEMA {schema} TO {owner};
        GRANT SELECT ON sales, shops TO {owner};
        GRANT SET ON PARAMETER pg_arrow_cache.debug_force_fragments TO {READER};
        SET ROLE {owner};
        CREATE VIEW mine AS SELECT at, shop AS place, x FROM sales; CREATE VIEW nested AS SELECT * FROM mine;
        CREATE VIEW my_shops AS SELECT id, name FROM shops;
        SET ROLE {READER}""")
    try:
        for query, right in queries.items():
            assert check(views, query)[0][0] == DENIED
            as_owner(views, f"GRANT {right} TO {READER}")
            assert is_answer(combined(views, query))
            as_owner(views, f"REVOKE SELECT ON sales FROM {owner}")
            assert check(views, query)[0][0] == DENIED, "the view's owner has no right any more"
            as_owner(views, f"GRANT SELECT (at, x) ON sales TO {owner}")
            assert check(views, query)[0][0] == DENIED
            as_owner(views, f"GRANT SELECT ON sales TO {owner}; REVOKE SELECT ON nested FROM {READER}")
            assert is_answer(check(views, query)[0]) == ("nested" not in query)
            as_owner(views, f"REVOKE {right} FROM {READER}")
            assert check(views, query)[0][0] == DENIED
        assert check(views, "SELECT shop, count(*) FROM sales GROUP BY shop")[0][0] == DENIED
        # Policies are those of the view's owner.
        query, right = list(queries.items())[0]
        as_owner(views, f"GRANT {right} TO {READER}; ALTER TABLE sales ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON sales TO {owner} USING (shop = 1)")
        assert rows_of(combined(views, query)) == 1
        as_owner(views, f"CREATE POLICY reader ON sales TO {READER} USING (shop = 2)")
        assert rows_of(check(views, query)[0]) == 1
        as_owner(views, f"CREATE POLICY name ON sales TO {owner} USING (shop = 3 AND CURRENT_USER = '{READER}')")
        assert rows_of(check(views, query)[0]) == 2
    finally:
        views.execute(f"RESET ROLE; DROP OWNED BY {READER}, {owner}; DROP ROLE {READER}, {owner}")


def test_changed_view(views):
    """The answer rests on the view."""
    query = "SELECT place, count(*) FROM late GROUP BY place"
    before = check(views, query)[0]
    views.execute("CREATE OR REPLACE VIEW late AS SELECT * FROM all_sales WHERE at >= '2024-03-10'")
    assert check(views, query)[0] != before


@pytest.mark.parametrize("query, fetched, fails", [
    ("SELECT at, sum(10 / (x - 200)) FROM sales GROUP BY at ORDER BY at", 3, True),
    ("SELECT at, 10 / (max(x) - 500) FROM sales GROUP BY at ORDER BY at", 3, False),
    ("SELECT at, sum(n) FROM sales GROUP BY at ORDER BY at", 3, False),
    ("SELECT sum(10 / (x - 200)) FROM sales", 1, True),
])
def test_cursors_that_are_not_read_to_the_end(sales, query, fetched, fails):
    """What is not read may fail, as in a plan that computes all groups before the first is given."""
    sales.execute("CREATE INDEX ON sales (at)")
    sales.execute("SET enable_hashagg = off; SET enable_seqscan = off")
    outcomes = []
    for enabled in ["off", "on", "on"]:
        sales.execute(f"SET pg_arrow_cache.enabled = {enabled}; SET pg_arrow_cache.debug_force_fragments = on")
        try:
            with sales.transaction():
                sales.execute(f"DECLARE c NO SCROLL CURSOR FOR {query}")
                outcomes.append(sales.rows(f"FETCH {fetched} FROM c", prepare=False))
        except psycopg.Error as error:
            outcomes.append(error.sqlstate)
    assert outcomes[1] == outcomes[2] == ("22012" if fails else outcomes[0])
    sales.execute("RESET pg_arrow_cache.debug_force_fragments; RESET pg_arrow_cache.enabled")
