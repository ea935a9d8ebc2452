"""The clock in the keys of an answer: GROUP BY, ORDER BY and DISTINCT. `why` says of each statement what executing it comes to."""

import pytest

from support.agreement import agree_at_once

# A column is compared with the clock, and the comparison is a key: it is right as long as no row moves over the edge.
COMPARED = [
    "SELECT CASE WHEN at > now() - interval '30 day' THEN 'new' ELSE 'old' END, count(*) FROM w GROUP BY 1 ORDER BY 2",
    "SELECT at > now() - interval '30 day' AS recent, id FROM w ORDER BY 1, 2",
    "SELECT DISTINCT at > now() - interval '30 day' FROM w ORDER BY 1",
    "SELECT name, count(*) FILTER (WHERE at > now() - interval '30 day') c FROM w GROUP BY 1 ORDER BY 2 DESC, 1",
    "SELECT DISTINCT ON (at > now() - interval '30 day') at > now() - interval '30 day', id FROM w ORDER BY 1, 2",
    # Beside it, what a stored answer has no key of.
    "SELECT at > now() - interval '30 day' AS recent, now() - at AS age, id FROM w WHERE id <= 60 ORDER BY 1, 3",
]


@pytest.fixture
def world(server, writer):
    writer.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO public")
    server.set("2026-03-10 10:00:00")
    writer.execute("CREATE TABLE w (id int, name text, at timestamptz)")
    writer.execute("INSERT INTO w SELECT g, 'n' || g % 4, timestamptz '2026-01-10 10:00:10' + g * interval '1 day' FROM generate_series(1, 60) g")
    writer.execute("INSERT INTO w VALUES (100, 'n5', NULL), (101, 'n5', 'infinity'), (102, NULL, '-infinity')")
    return writer


def told(reader, query):
    """What `why` says, and what two executions come to."""
    def ask(session):
        return session.rows(query, prepare=False), session.status()
    reader_says = reader.rows("SELECT cacheable, reason FROM arrow_cache.why(%s)", [query])[0]
    return reader_says, [agree_at_once(reader, ask) for _ in range(2)]


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("query", COMPARED)
def test_a_comparison_with_the_clock_may_be_a_key(server, at, world, query, has_index):
    if has_index:
        world.execute("CREATE INDEX ON w (at); ANALYZE w")
    reader = at()
    seen = [told(reader, query)]
    # Ten seconds later a row has moved over the edge.
    for second in ("05", "11", "12"):
        server.set(f"2026-03-10 10:00:{second}")
        seen.append(told(reader, query))
    says = (True, None)
    # `why` is asked before a statement is executed twice.
    assert seen == [(says, ["MISS", "HIT"]), (says, ["HIT", "HIT"]), (says, ["MISS", "HIT"]), (says, ["HIT", "HIT"])]


# The time is a key that has one value in a statement, and is not shown: a stored answer is not computed with it.
NOT_SHOWN = [
    "SELECT name, max(at) FROM w WHERE id <= 60 GROUP BY name, (statement_timestamp() - interval '5 days 12 hours')"
    " HAVING max(at) < (statement_timestamp() - interval '5 days 12 hours') ORDER BY 1",
    "SELECT id FROM w WHERE id <= 60 ORDER BY now(), id DESC LIMIT 5",
    "SELECT DISTINCT ON (now(), name) name, id FROM w WHERE id <= 60 ORDER BY now(), name, id",
    "SELECT id, count(*) OVER (PARTITION BY now(), name ORDER BY now() - interval '1 day', id) FROM w ORDER BY id",
]


@pytest.mark.parametrize("query", NOT_SHOWN)
def test_a_key_that_is_not_shown_may_be_the_time(server, at, world, query):
    reader = at()
    says = (True, None)
    assert told(reader, query) == (says, ["MISS", "HIT"])
    server.set("2026-03-10 10:00:05.25")
    assert told(reader, query) == (says, ["HIT", "HIT"])
    world.execute("UPDATE w SET at = at - interval '10 days', name = 'n' || id % 3")
    # `why` has let go of what is outdated.
    assert told(reader, query) == (says, ["MISS", "HIT"])


def test_an_extreme_crosses_the_time_that_is_a_key(server, at, world):
    reader = at()
    # The last ones of n0, n1, n2, n3 are at ten hours and ten seconds of the days 60, 57, 58, 59 from January 10.
    counts = []
    for time in ("2026-03-13 10:00:05", "2026-03-13 10:00:15", "2026-03-14 10:00:15"):
        server.set(time)
        assert told(reader, NOT_SHOWN[0].replace("5 days 12 hours", "3 days")) == ((True, None), ["MISS", "HIT"])
        counts.append(len(reader.rows(NOT_SHOWN[0].replace("5 days 12 hours", "3 days"))))
    assert counts == [2, 3, 4], counts


@pytest.mark.parametrize("query", [
    "SELECT id, count(*) OVER (ORDER BY now() RANGE BETWEEN interval '1 day' PRECEDING AND CURRENT ROW) FROM w ORDER BY id",
    "SELECT id FROM w ORDER BY same(now() - at), id",
    "SELECT count(*) FROM w GROUP BY now() - at",
])
def test_other_keys_are_refused(at, world, query):
    world.execute("CREATE FUNCTION same(interval) RETURNS interval LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';"
                  "DELETE FROM w WHERE id > 60")
    reader = at()
    says, statuses = told(reader, query)
    assert (says[0], statuses) == (False, ["BYPASS", "BYPASS"])


# How long ago, or until: the column alone gives the order.
DIFFERENCES = [
    "SELECT id, now() - at AS age FROM d ORDER BY age, id LIMIT 7",
    "SELECT id, now() - at AS age FROM d ORDER BY age DESC, id LIMIT 7",
    "SELECT id, now() - at AS age FROM d ORDER BY age NULLS FIRST, id DESC",
    "SELECT id, now() - at AS age FROM d ORDER BY age DESC NULLS LAST, id DESC",
    "SELECT id, at - CURRENT_TIMESTAMP AS remaining FROM d ORDER BY remaining, id LIMIT 7",
    "SELECT id, at - now() AS remaining FROM d ORDER BY remaining DESC NULLS LAST, id",
    "SELECT id FROM d ORDER BY now() - at, id OFFSET 3",
    "SELECT id, LOCALTIMESTAMP - local AS age FROM d ORDER BY 2 DESC, id",
    "SELECT id, now() - local AS age FROM d ORDER BY 2, id",
    "SELECT id, statement_timestamp() - day AS age, now() - at FROM d ORDER BY age, 3, id",
    "SELECT id, now() - (at + interval '1 month') AS age FROM d ORDER BY age, id",
    "SELECT id % 5, now() - max(at) AS age, count(*) FROM d GROUP BY 1 ORDER BY age, 1",
    "SELECT id / 100, now() - at AS age FROM d ORDER BY age FETCH FIRST 4 ROWS WITH TIES",
    "SELECT DISTINCT ON (id % 5) id % 5, now() - at AS age FROM d ORDER BY 1, 2 NULLS FIRST, id",
    "SELECT id, now() - lag(at) OVER (ORDER BY id) AS age FROM d ORDER BY age, id",
]


@pytest.fixture
def differences(world):
    """Values of microseconds, of early and late years, on both sides of the clock; some of them twice, some NULL."""
    world.execute("CREATE TABLE d AS SELECT g AS id, at, at AT TIME ZONE 'UTC' AS local, (at AT TIME ZONE 'UTC')::date AS day FROM ("
                  "SELECT g, CASE WHEN g % 6 > 0 THEN (ARRAY[timestamptz '2026-03-10 10:00:00', '4000-01-01 BC', '200000-01-01'])[1 + g % 3]"
                  " + g / 2 % 7 * interval '1 microsecond' + g / 2 % 5 * interval '23:59:59.5' END AS at FROM generate_series(1, 60) g) s")
    return world


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("query", DIFFERENCES)
def test_a_difference_from_the_clock_is_a_key_of_order_by(server, at, differences, query, has_index):
    if has_index:
        differences.execute("CREATE INDEX ON d (at); CREATE INDEX ON d (local); ANALYZE d")
    reader = at()
    # Where a day has 23 hours.
    reader.execute("SET TimeZone = 'America/New_York'")
    says = (True, None)
    assert told(reader, query) == (says, ["MISS", "HIT"])
    server.set("2026-03-10 10:00:01.000003")
    assert told(reader, query) == (says, ["HIT", "HIT"])
    differences.execute("UPDATE d SET at = at + interval '1 second', local = local - interval '1 day' WHERE id % 4 = 0")
    assert told(reader, query) == (says, ["MISS", "HIT"])


@pytest.mark.parametrize("query", [
    "SELECT DISTINCT now() - at FROM d ORDER BY 1",
    "SELECT now() - at, count(*) FROM d GROUP BY 1 ORDER BY 1",
    "SELECT now() - at, rank() OVER (ORDER BY now() - at) FROM d ORDER BY 1",
    "SELECT now() - interval '1 day' - at FROM d ORDER BY 1",
    "SELECT now() - NULL::interval - at, id FROM d ORDER BY 1, 2",
    "SELECT age(now(), at) FROM d ORDER BY 1",
    "SELECT extract(epoch FROM now() - at) FROM d ORDER BY 1",
])
def test_what_is_more_than_a_difference_in_order_by_is_refused(at, differences, query):
    says, statuses = told(at(), query)
    assert (says[0], statuses) == (False, ["BYPASS", "BYPASS"])
