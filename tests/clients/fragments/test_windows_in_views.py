"""Bounds that stand in views, in sub-queries of FROM and in ON: parts inside of a window do not ask them, and the leaves that are locked are those of
the server's own plan."""

import os
import random

import psycopg
import pytest

from support.agreement import agree_on_result
from support.fragment_world import parts_of
from support.leaves import LEAVES, SETUP, agrees, is_combined, locked, plain, runs
from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED", 31))
STEPS = rounds(30, 80)
FORCED = "-c pg_arrow_cache.debug_force_fragments=on"
OPTIONS = f"{FORCED} -c lock_timeout=300ms"
VIEWS = """
CREATE VIEW all_of AS SELECT v, k AS key FROM t;
CREATE VIEW recent AS SELECT v, k FROM t WHERE k >= 10;
CREATE VIEW both_ends AS SELECT k AS key, v FROM t WHERE k >= 2 AND v >= 0 AND k < 28;
CREATE VIEW inner_of AS SELECT b.v, b.key AS k FROM both_ends b JOIN d ON d.k = b.v AND b.key < 25 WHERE b.key >= 5;
CREATE VIEW fenced WITH (security_barrier) AS SELECT * FROM t WHERE v >= 0;
CREATE VIEW fenced_recent WITH (security_barrier) AS SELECT * FROM t WHERE k >= 10;
CREATE VIEW swapped AS SELECT v AS k, k AS v FROM t WHERE k >= 5;
CREATE VIEW odd AS SELECT * FROM t WHERE k % 2 = 1;
CREATE VIEW listed AS SELECT k, v FROM l WHERE k >= 2;
CREATE VIEW nested AS SELECT v, k FROM n WHERE k < 20;
CREATE VIEW either AS SELECT * FROM t WHERE k < 5 OR k >= 25;
CREATE VIEW grouped AS SELECT k, sum(v) AS v FROM t WHERE k >= 10 GROUP BY k;
CREATE VIEW first_rows AS SELECT * FROM t WHERE k >= 10 ORDER BY k LIMIT 5;
CREATE VIEW different AS SELECT DISTINCT k, v FROM t WHERE k >= 10;
CREATE TABLE numbers (k numeric, v int) PARTITION BY RANGE (k);
CREATE TABLE numbers0 PARTITION OF numbers FOR VALUES FROM (0) TO (10);
CREATE TABLE numbers1 PARTITION OF numbers FOR VALUES FROM (10) TO (20);
INSERT INTO numbers SELECT g / 2.0, g FROM generate_series(0, 39) g;
CREATE VIEW fenced_numbers WITH (security_barrier) AS SELECT * FROM numbers WHERE v >= 0;
CREATE VIEW open_numbers AS SELECT * FROM numbers WHERE v >= 0;
"""
COMBINED = [
    ("all_of", "WHERE key >= 12"), ("recent", ""), ("recent", "WHERE k < 15"), ("recent", "WHERE k >= 20 AND k < 25"), ("both_ends", "WHERE key BETWEEN 11 AND 13"), ("inner_of", ""),
    ("inner_of", "WHERE k < 10"), ("fenced", "WHERE k >= 15"), ("fenced_recent", "WHERE k < 18"), ("swapped", "WHERE k >= 2 AND v < 15"), ("listed", "WHERE k = 11"), ("listed", ""), ("nested", "WHERE k >= 15"),
    ("open_numbers", "WHERE k >= 12.5"), ("fenced_numbers", ""), ("grouped", ""),
    ("(SELECT * FROM t WHERE k > 11) s", ""), ("(SELECT v, k FROM (SELECT k, v FROM t WHERE k < 25) s WHERE k >= 12) s", "WHERE k < 22"), ("t", "JOIN d ON d.k = t.v AND t.k >= 12"),
    ("d", "JOIN t ON d.k = t.v AND t.k >= 12 AND d.w > 0"), ("t", "JOIN (SELECT * FROM d WHERE w > 0) d ON d.k = t.v WHERE t.k >= 12"), ("recent", "LEFT JOIN d ON d.w = recent.v WHERE recent.k < 22"),
    ("d", "RIGHT JOIN recent ON d.w = recent.v AND d.k > 3"), ("(t JOIN d ON t.v = d.k AND t.k >= 12)", "LEFT JOIN d e ON e.k = t.v"), ("t", "JOIN d ON true AND 12 <= t.k"),
    ("d", "JOIN (d e JOIN recent ON e.k = recent.v AND recent.k < 18) ON d.k = e.w"),
]
# What the planner concludes, or takes apart by other rules than by one column compared with a constant.
COMBINED += [
    ("odd", "WHERE v > 0 AND v < 3"), ("either", ""), ("either", "WHERE k < 10"), ("recent", "WHERE k IN (11, 12)"),
    ("recent", "WHERE k = 11 OR k = 12"), ("(SELECT * FROM t WHERE k IN (1, 11)) s", ""),
    ("t", "LEFT JOIN d ON d.k = t.v AND t.k >= 12"),
    ("(SELECT * FROM h WHERE k = 3) s", ""),
    ("(SELECT * FROM two WHERE k >= 3) s", ""), ("t", "JOIN d ON d.k = t.k AND t.k = 11"),
]
LEFT_ALONE = [
    ("first_rows", ""), ("different", ""), ("d", "LEFT JOIN recent ON d.k = recent.v"),
    ("(SELECT * FROM t OFFSET 0) s", "WHERE k < 10"), ("t", "JOIN LATERAL (SELECT * FROM d WHERE t.k >= 11) d ON d.k = t.v"),
    ("d", "FULL JOIN recent ON d.k = recent.v"),
]


@pytest.fixture
def writer(session):
    session.execute(SETUP + VIEWS)
    return session


@pytest.fixture
def reader(connect, writer):
    return connect(OPTIONS, prepare_threshold=None)


def question(source, rest, columns="count(*), sum({0}), min({0}), max({0})"):
    name = source.split()[-1] if source.endswith(" s") else source.split()[0].lstrip("(")
    columns = columns.format(f"{name}.v") if name != "d" else "count(*), sum(d.w)"
    return f"SELECT {columns} FROM {source} {rest}"


def counters(session):
    return session.rows("SELECT fragments_served, fragments_computed FROM arrow_cache.stats")[0]


def agree_in_each_way(session, query):
    """The answer, combined or not, is the server's."""
    return agree_on_result(session, query, off=("enable_fragments", "enabled"))


def parts(session, query):
    """How many parts of a query were stored, and computed, when it is asked; the answer is the server's, under the same snapshot."""
    before = counters(session)
    agree_in_each_way(session, query)
    return tuple(after - b for after, b in zip(counters(session), before, strict=True))


@pytest.mark.parametrize(("source", "rest"), COMBINED)
def test_is_combined_of_the_leaves_of_the_plan(reader, source, rest):
    query = question(source, rest)
    detail = reader.rows("SELECT detail FROM arrow_cache.why(%s::text)", [query])[0][0]
    assert detail.endswith("; can be combined of stored parts")
    assert locked(reader, query) == plain(reader, query)
    assert is_combined(reader, f"{query} ORDER BY 1")
    agree_in_each_way(reader, f"{query} ORDER BY 2")


@pytest.mark.parametrize(("source", "rest"), LEFT_ALONE)
def test_is_left_alone(reader, source, rest):
    query = question(source, rest)
    assert not is_combined(reader, query)
    detail = reader.rows("SELECT detail FROM arrow_cache.why(%s::text)", [query])[0][0]
    assert not detail.endswith("; can be combined of stored parts")
    assert locked(reader, query) == plain(reader, query)


LONG = "CREATE TABLE long (v int, k int) PARTITION BY RANGE (k);" + "".join(
    f"CREATE TABLE long{leaf} PARTITION OF long FOR VALUES FROM ({leaf * 10}) TO ({leaf * 10 + 10});" for leaf in range(12)
) + "INSERT INTO long SELECT g % 7, g FROM generate_series(0, 119) g; CREATE VIEW late AS SELECT k AS key, v FROM long WHERE k >= 5;" \
    "CREATE VIEW later AS SELECT v, key AS k FROM late WHERE key >= 7 AND v >= 0;" \
    "CREATE VIEW barred WITH (security_barrier) AS SELECT * FROM long WHERE k < 115"
# The window from {0} to {1}, which lies inside of the bounds of the views.
MOVING = [
    "FROM (SELECT * FROM long WHERE k >= {0} AND k < {1}) s", "FROM (SELECT * FROM long WHERE k >= {0}) s WHERE k < {1}", "FROM later WHERE k >= {0} AND k < {1}",
    "FROM (SELECT k AS a, v FROM (SELECT * FROM later WHERE k < {1}) s) s WHERE a >= {0}", "FROM barred WHERE k >= {0} AND k < {1}", "FROM long JOIN d ON d.k = long.v AND long.k >= {0} AND long.k < {1}",
    "FROM late JOIN (SELECT * FROM d WHERE k < 6) d ON d.k = late.v AND key < {1} WHERE key >= {0}", "FROM d JOIN (later LEFT JOIN d e ON e.k = later.v) ON d.k = later.v AND later.k >= {0} WHERE later.k < {1}",
]


@pytest.mark.parametrize("window", MOVING)
def test_a_window_that_moves_computes_its_ends(writer, reader, window):
    writer.execute(LONG)
    query = f"SELECT count(*), sum(v) {window}"
    assert parts(reader, query.format(15, 85)) == (0, 8)
    # From leaf 2 to leaf 9: the former end 8 is inside now.
    assert parts(reader, query.format(22, 92)) == (5, 3)
    # The whole of leaves 3 to 9 is asked for, and no leaf lies on an end.
    assert parts(reader, query.format(30, 100)) == (6, 1)
    writer.execute("UPDATE long SET v = v + 1 WHERE k = 45")
    assert parts(reader, query.format(31, 99)) == (4, 3)


def test_the_same_condition_in_another_place_is_another_question(reader):
    """The first column is v outside, and k inside: the conditions look alike."""
    outside = "SELECT count(*), sum(c) FROM (SELECT v AS a, k AS c FROM t) s WHERE a >= 2"
    inside = "SELECT count(*), sum(c) FROM (SELECT v AS a, k AS c FROM t WHERE k >= 2) s"
    for _ in range(2):
        for query in (outside, inside):
            agree_in_each_way(reader, query)
    assert reader.rows(outside) != reader.rows(inside)


def test_a_barrier_hides_no_partition(reader):
    """The operator may tell what it compares, so the planner asks it outside of the view, and reads all leaves."""
    query = question("fenced_numbers", "WHERE k >= 12.5")
    agrees(locked(reader, query), plain(reader, query), query)
    agree_in_each_way(reader, f"{query} ORDER BY 1")


def test_parameters_are_bounds_wherever_they_stand(connect, writer, reader):
    writer.execute(LONG)
    query = "SELECT count(*), sum(d.w) FROM (SELECT * FROM long WHERE k >= %s) s JOIN d ON d.k = s.v AND s.k < %s"
    uncached = connect("-c pg_arrow_cache.enabled=off")
    for number, session in enumerate((reader, connect(f"{OPTIONS} -c plan_cache_mode=force_generic_plan", prepare_threshold=0))):
        before = runs(writer)
        for low, high in ((15, 85), (22, 92), (30, 100), (50, 20), (None, 4)):
            asked = query.replace(" FROM", f", {number} FROM", 1)
            assert session.rows(asked, [low, high]) == uncached.rows(asked, [low, high])
        assert runs(writer) - before >= 3
    with psycopg.ClientCursor(reader) as cursor:
        assert parts(reader, cursor.mogrify(query, [41, 79])) == (2, 2)


def test_row_security_below_a_view(connect, writer):
    role = "windows_reader"
    writer.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {connect.schema} TO {role}; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY but_one ON t USING (v <> 1);"
                   f"CREATE VIEW own WITH (security_invoker) AS SELECT v, k FROM t WHERE k >= 12; ALTER TABLE numbers ENABLE ROW LEVEL SECURITY;"
                   f"CREATE POLICY but_one ON numbers USING (v <> 1); CREATE VIEW own_numbers WITH (security_invoker) AS SELECT * FROM numbers; GRANT SELECT ON t, numbers, own, own_numbers TO {role}")
    try:
        reader = connect(OPTIONS, prepare_threshold=None)
        unlimited = agree_in_each_way(reader, "SELECT count(*), sum(v) FROM own WHERE k < 29")
        reader.execute(f"SET ROLE {role}")
        query = "SELECT count(*), sum(v) FROM own WHERE k < 28"
        assert agree_in_each_way(reader, query) != unlimited
        assert locked(reader, f"{query} AND v > -1") == plain(reader, f"{query} AND v > -1")
        assert is_combined(reader, f"{query} AND v > -2")
        # Its condition may tell what it compares, and yet the planner prunes by it: there is no barrier.
        query = "SELECT count(*), sum(v) FROM own_numbers WHERE k >= 12.5"
        assert locked(reader, query) == plain(reader, query)
        assert is_combined(reader, f"{query} ORDER BY 1")
        query = "SELECT count(*), sum(v) FROM own WHERE k < 27"
        writer.execute("ALTER POLICY but_one ON t USING (k <> 25)")
        assert is_combined(reader, query)
        agree_in_each_way(reader, query)
    finally:
        writer.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_windows_of_the_clock(connect, session):
    session.execute("CREATE TABLE m (v int, at timestamptz) PARTITION BY RANGE (at)")
    for month in range(12):
        bound = "date_trunc('month', now()) - {} * interval '1 month'"
        low, high = session.rows(f"SELECT {bound.format(11 - month)}, {bound.format(10 - month)}")[0]
        session.execute(f"CREATE TABLE m{month} PARTITION OF m FOR VALUES FROM ('{low}') TO ('{high}')")
    session.execute("INSERT INTO m SELECT g, now() - g * interval '7 hours' FROM generate_series(0, 1000) g;"
                    "CREATE VIEW moving AS SELECT at AS moment, v FROM m WHERE at > now() - interval '200 days';"
                    "CREATE VIEW months AS SELECT v, at AS moment FROM m WHERE at >= date_trunc('month', now()) - interval '5 months'")
    reader = connect(FORCED, prepare_threshold=None)
    for source in ("moving", "moving WHERE moment < now() - interval '3 days'", "(SELECT * FROM m WHERE at > now() - interval '150 days') s", "months", "months WHERE moment <= now()",
                   "months JOIN (VALUES (1)) n(n) ON true"):
        query = f"SELECT count(*), sum(v) FROM {source}"
        agree_in_each_way(reader, query)
        shown = parts_of(line for line, in reader.rows(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {query.replace(' FROM', ', 1 FROM', 1)}"))
        if "VALUES" in source:
            assert shown is None
        else:
            assert shown[0] >= 3 and shown[1] <= 2, source


class Sources:
    """Random views and sub-queries over a table, up to two deep, with bounds and other conditions anywhere in them."""

    NUMBERS = [-5, 0, 1, 2, 5, 9, 10, 11, 12, 15, 19, 20, 22, 25, 30, 99]

    def __init__(self, chance, session):
        self.chance, self.session, self.views = chance, session, 0

    def conditions(self, name, most):
        """Random conditions about an item of FROM that has columns k and v."""
        chance, found = self.chance, []
        for _ in range(chance.randint(0, most)):
            column, number = f"{name}.{chance.choice('kkkv')}", chance.choice(self.NUMBERS)
            found.append(chance.choice([f"{column} {chance.choice(['<', '<=', '=', '>=', '>'])} {number}"] * 12 + [
                f"{column} IN ({number}, {number + 1})", f"({column} = {number} OR {name}.v = 1)", f"{column} <> {number}", f"{number}::bigint < {column}", f"{column} IS NOT NULL", f"{name}.v % 2 = 0"]))
        return found

    def selection(self, table, depth):
        """A query with columns k and v in any order, over the table or such queries."""
        chance, item = self.chance, "x"
        source = f"{table} x" if depth == 0 else f"{self.item(table, depth - 1)} x"
        on = " AND ".join(["d.w = x.v", *self.conditions("x", 1)])
        item = chance.choice([source] * 5 + [f"{source} JOIN d ON {on}", f"d JOIN {source} ON {on}", f"{source} LEFT JOIN d ON d.w = x.v", f"{source} JOIN (SELECT w FROM d WHERE k < 20) d ON {on}",
                                             f"{source} LEFT JOIN d ON {on}", f"d RIGHT JOIN {source} ON d.k = x.v AND d.w > 0"])
        where = self.conditions("x", 2)
        columns = chance.choice(["x.k, x.v", "x.v, x.k", "x.v, 1 AS one, x.k", "x.*" if " " not in item.replace(source, "") else "x.k, x.v"])
        return f"SELECT {columns} FROM {item}" + (f" WHERE {' AND '.join(where)}" if where else "")

    def item(self, table, depth):
        """A query as an item of FROM: a view or a sub-query."""
        query = self.selection(table, depth)
        if self.chance.random() < 0.5:
            return f"({query})"
        self.views += 1
        barrier = self.chance.choice(["", "", "WITH (security_barrier)"])
        self.session.execute(f"CREATE VIEW view_{self.views} {barrier} AS {query}")
        return f"view_{self.views}"


@sweep
@pytest.mark.parametrize("pruning", ["on", "off"])
def test_random_views(writer, reader, pruning):
    chance = random.Random(SEED)
    print(f"seed {SEED}")
    sources = Sources(chance, writer)
    reader.execute(f"SET enable_partition_pruning = {pruning}")
    combined, served = 0, counters(reader)[0]
    # Several questions about each source, so that parts are stored before rows change.
    for step in range(STEPS):
        table = chance.choice(["t", "t", "td", "l", "n", "h", "two", "e"])
        selection = sources.item(table, chance.choice([0, 1, 1]))
        for again in range(3):
            rest = " AND ".join(["true", *sources.conditions("s", 2)])
            columns = chance.choice([f"count(*), sum(v), min(k), max(k), {step}, {again}", f"v, count(*), max(k), {step}, {again}"])
            query = f"SELECT {columns} FROM {selection} s WHERE {rest}" + (" GROUP BY v" if columns[0] == "v" else "")
            before = runs(reader)
            seen = locked(reader, query)
            is_run = runs(reader) > before
            combined += is_run
            agrees(seen, plain(reader, query), query)
            detail = reader.rows("SELECT detail FROM arrow_cache.why(%s::text)", [query])[0][0]
            assert is_run <= ("cannot be combined" not in detail), query
            # Parts of the same questions.
            agree_in_each_way(reader, query.replace(f"{step}, {again}", f"{step}, {again}, 0"))
            if again == 1:
                number = chance.choice(sources.NUMBERS[1:-2])
                writer.execute(chance.choice([f"UPDATE {table} SET v = (v + 1) % 4 WHERE k = {number}", f"DELETE FROM {table} WHERE k = {number}", f"INSERT INTO {table} VALUES ({number}, 1)",
                                              f"UPDATE {LEAVES[table][0]} SET v = v", f"UPDATE d SET w = (w + 1) % 3 WHERE k = {number}"]))
    assert combined > STEPS / 2
    assert counters(reader)[0] - served > STEPS / 2
