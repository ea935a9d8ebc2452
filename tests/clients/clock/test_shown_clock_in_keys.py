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
    "SELECT id FROM w ORDER BY max_of(now() - at), id",
    "SELECT count(*) FROM w GROUP BY now() - at",
])
def test_other_keys_are_refused(at, world, query):
    world.execute("CREATE FUNCTION max_of(interval) RETURNS interval LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';"
                  "DELETE FROM w WHERE id > 60")
    reader = at()
    says, statuses = told(reader, query)
    assert (says[0], statuses) == (False, ["BYPASS", "BYPASS"])
