"""Which answers are computed from parts, and that they are those of the server."""

import pytest

from support import random_sessions
from support.agreement import agree_on_result
from support.fragment_world import COMBINED, OTHER_CONDITIONS, PLAIN, RAISING, SETUP, parts_of

OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on"
NAMES = {"role1": random_sessions.ROLES[0], "role2": random_sessions.ROLES[1]}


@pytest.fixture
def writer(connect):
    """The tables of the questions, and a session that changes them."""
    writer = connect()
    for role in random_sessions.ROLES:
        writer.execute(f"CREATE ROLE {role}")
    writer.execute(SETUP.format(schema=connect.schema, front=f"{connect.schema}_front", **NAMES))
    yield writer
    random_sessions.remove(connect)


@pytest.fixture
def reader(connect, writer):
    return connect(OPTIONS, prepare_threshold=None)


def explained(session, query):
    return parts_of(line for line, in session.rows(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {query}"))


# One leaf of each table.
CHANGE = ("UPDATE f2 SET qty = qty + 1; UPDATE h1 SET v = v + 1; UPDATE l2 SET v = v + 1; UPDATE child SET b = b || '!'; UPDATE fenced_1 SET v = v + 1;"
          "UPDATE dated_6 SET v = v + 1")


@pytest.mark.parametrize("query", COMBINED, ids=range(len(COMBINED)))
def test_is_computed_from_parts(writer, reader, query):
    query = query.format(27)
    first = explained(reader, query)
    assert first is not None and first[0] == 0
    agree_on_result(reader, query)
    writer.execute(CHANGE)
    agree_on_result(reader, query)
    writer.execute(CHANGE)
    stored, computed = explained(reader, query)
    assert stored + computed == first[1]
    assert computed == 1


@pytest.mark.parametrize("query", OTHER_CONDITIONS, ids=range(len(OTHER_CONDITIONS)))
def test_other_conditions(writer, reader, query):
    query = query.format(3)
    assert explained(reader, query)[0] == 0
    agree_on_result(reader, query)
    writer.execute(CHANGE)
    agree_on_result(reader, query)


@pytest.mark.parametrize("query", PLAIN, ids=range(len(PLAIN)))
def test_is_not(writer, reader, query):
    query = query.format(3)
    assert explained(reader, query) is None
    agree_on_result(reader, query)


def test_states_of_aggregates(writer, reader):
    """The parts have what one process of the server hands to another. Sums of floats may differ in their last digits."""
    query = ("SELECT shop, sum(ratio), avg(ratio), stddev(ratio), corr(ratio, n), avg(at - timestamptz '2024-01-01'), regr_slope(qty, n), var_pop(big), count(*) + 1"
             " FROM f WHERE n >= 27 GROUP BY shop HAVING avg(ratio) > 0 ORDER BY shop NULLS FIRST")
    for stored in (0, 1, 2):
        found = explained(reader, query)
        assert found is not None and (found[0] > 0) == (stored > 0)
        combined = reader.rows(query)
        expected = reader.uncached(query)
        assert len(combined) == len(expected) > 2
        for one, other in zip(combined, expected, strict=True):
            assert [type(value) for value in one] == [type(value) for value in other]
            for value, right in zip(one, other, strict=True):
                assert value == (pytest.approx(right) if isinstance(right, float) else right)
        writer.execute(CHANGE)


@pytest.mark.parametrize("query", RAISING, ids=range(len(RAISING)))
def test_raises_the_same_error(writer, reader, query):
    query = query.format(29)
    before = runs(reader)
    answer = agree_on_result(reader, query)
    assert answer[0] is not None
    assert runs(reader) == before + 1
    # Parts that were read to their end are stored, and the next run has the same error.
    assert agree_on_result(reader, query) == answer
    writer.execute(CHANGE)
    assert agree_on_result(reader, query)[:2] == answer[:2]


def runs(session):
    return session.rows("SELECT fragment_runs FROM arrow_cache.stats")[0][0]


# (what is written, whether answers are combined of stored parts afterwards)
OWN = ["INSERT INTO f (n, qty) VALUES (22, 9)", "UPDATE f SET n = 31 WHERE n = 21", "DELETE FROM f0", "TRUNCATE f3", "UPDATE shops SET weight = 0",
       "ALTER TABLE f DETACH PARTITION f3", "ALTER TABLE f2 DISABLE TRIGGER ALL", "ALTER TABLE f ALTER qty TYPE bigint", "CREATE TABLE f9 PARTITION OF f FOR VALUES FROM (90) TO (99)",
       "INSERT INTO shops VALUES (1, 'another', 1)", "SAVEPOINT a; DELETE FROM f2; ROLLBACK TO a", "SAVEPOINT a; DELETE FROM f2; RELEASE a", "CREATE TEMPORARY TABLE shops (shop int, region text, weight numeric)",
       "LOCK TABLE f IN EXCLUSIVE MODE"]
QUERY = "SELECT s.region, count(*), sum(f.qty), avg(f.amount) FROM f LEFT JOIN shops s USING (shop) GROUP BY s.region"


@pytest.mark.parametrize("write", OWN)
def test_own_writes(writer, reader, write):
    before = sorted(reader.rows(QUERY), key=str)
    for end in ("ROLLBACK", "COMMIT"):
        reader.execute("BEGIN")
        reader.execute(write)
        seen = sorted(reader.rows(QUERY), key=str)
        assert seen == sorted(reader.uncached(QUERY), key=str)
        # Others do not see it, unless they would have to wait for it.
        if not write.startswith(("TRUNCATE", "ALTER", "CREATE TABLE")):
            assert sorted(writer.rows(QUERY), key=str) == before
        reader.execute(end)
        agree_on_result(reader, QUERY)
    assert sorted(writer.rows(QUERY), key=str) == sorted(writer.uncached(QUERY), key=str)


# Texts of numerics, whose scale and kind show.
NUMBERS = ["0", "0.00", "1.5", "1.500", "-1.5", "NaN", "Infinity", "-Infinity", None, "123456789012345678901234567890.123", "1e-20", "7"]


def test_scale_and_kind_of_numbers(session, connect):
    """One number in each leaf: all pairs of them, and some larger sets."""
    reader = connect(OPTIONS, prepare_threshold=None)
    session.execute("CREATE TABLE num (leaf int, x numeric, i int8) PARTITION BY LIST (leaf)")
    for leaf in range(3):
        session.execute(f"CREATE TABLE num{leaf} PARTITION OF num FOR VALUES IN ({leaf})")
    query = "SELECT sum(x), avg(x), count(x), sum(i), avg(i), sum(x) FILTER (WHERE x > 1), avg(x / 3) FROM num"
    before = runs(reader)
    for one in NUMBERS:
        session.execute("TRUNCATE num0")
        session.execute("INSERT INTO num VALUES (0, %s, 9223372036854775807)", [one])
        for two in NUMBERS:
            session.execute("TRUNCATE num1")
            session.execute("INSERT INTO num VALUES (1, %s, -3), (1, %s, NULL)", [two, one])
            agree_on_result(reader, query)
            agree_on_result(reader, query.replace("FROM num", "FROM num GROUP BY i > 0"))
    assert runs(reader) - before == 2 * len(NUMBERS) ** 2


def test_no_rows_and_no_leaves(session, connect):
    reader = connect(OPTIONS, prepare_threshold=None)
    session.execute("CREATE TABLE e (n int, v int) PARTITION BY RANGE (n)")
    grand, grouped = "SELECT count(*), count(v), sum(v), avg(v), max(v), bool_and(v > 1), count(*) + 1 FROM e WHERE n > 5", "SELECT n, count(*) FROM e WHERE n > 5 GROUP BY n"
    for change in ("SELECT", "CREATE TABLE e0 PARTITION OF e FOR VALUES FROM (0) TO (5)", "INSERT INTO e VALUES (1, 1)", "CREATE TABLE e1 PARTITION OF e FOR VALUES FROM (5) TO (9)",
                   "CREATE TABLE e2 PARTITION OF e DEFAULT", "INSERT INTO e VALUES (NULL, NULL)", "INSERT INTO e VALUES (7, NULL)", "DELETE FROM e", "DROP TABLE e1"):
        session.execute(change)
        for query in (grand, grouped, grand + " HAVING count(*) > 0", grand.replace("n > 5", "n > 5 AND n < 3"), grand.replace("n > 5", "n = NULL"), grand.replace("n > 5", "false")):
            agree_on_result(reader, query)
            agree_on_result(reader, query)


ROLE_1, ROLE_2 = random_sessions.ROLES


def test_roles(writer, connect):
    """Fragments of one role are not another's, and permission is denied as without them."""
    admin = connect(OPTIONS, prepare_threshold=None)
    own, columns, view = "SELECT count(*), sum(n) FROM fenced", "SELECT shop, sum(v) FROM h GROUP BY shop", "SELECT count(*), sum(c) FROM totals"
    answers = {}
    for role in ("NONE", ROLE_1, ROLE_2, ROLE_1, "NONE", ROLE_2):
        admin.execute(f"SET ROLE {role}")
        for query in (own, columns, view, columns.replace("v", "id"), "SELECT count(*) FROM h"):
            answers.setdefault((role, query), agree_on_result(admin, query))
            assert agree_on_result(admin, query) == answers[role, query]
    assert len({str(answers[role, own]) for role in ("NONE", ROLE_1, ROLE_2)}) == 3
    assert answers[ROLE_2, columns][0] == b"42501" and answers[ROLE_1, columns][0] is None
    for statement in (f"REVOKE SELECT ON h FROM {ROLE_1}", f"GRANT SELECT ON h TO {ROLE_2}", "ALTER POLICY own ON fenced USING (n % 3 = 0)", f"REVOKE SELECT ON fenced FROM {ROLE_1}",
                      f"GRANT SELECT (shop) ON fenced TO {ROLE_1}", "ALTER TABLE fenced DISABLE ROW LEVEL SECURITY", f"ALTER ROLE {ROLE_2} BYPASSRLS"):
        writer.execute(statement)
        for role in (ROLE_1, ROLE_2, "NONE"):
            admin.execute(f"SET ROLE {role}")
            for query in (own, columns, view, "SELECT shop, count(*) FROM fenced GROUP BY shop", "SELECT count(*) FROM fenced_1"):
                agree_on_result(admin, query)
