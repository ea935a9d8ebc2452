"""The clock in the columns of an answer: the clock-free part is stored, and the clock is applied to it at each execution. Each answer stands
beside that of the server in the same transaction, in which the time stands still: values, types, names and errors."""

import os
import random

import psycopg
import pytest

from support.agreement import agree_at_once
from support.sweeps import rounds, sweep

SEED = int(os.environ.get("RANDOM_SEED") or random.SystemRandom().randrange(2**32))

SERVED = [
    "SELECT now() AS time, count(*) FROM w",
    "SELECT id, now() - at AS age FROM w ORDER BY id",
    "SELECT extract(epoch FROM now() - max(at)) FROM w",
    "SELECT id, CASE WHEN expires < now() THEN 'expired' WHEN expires IS NULL THEN name ELSE 'ok' END AS state FROM w ORDER BY id",
    "SELECT now() AS time, * FROM (SELECT name, count(*) AS n FROM w GROUP BY name) s ORDER BY name",
    "SELECT now() AS time, name AS tag, sum(v) FROM w GROUP BY 2 ORDER BY 1, 2",
    "SELECT now() AS time, name, sum(v) FROM w GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT DISTINCT now(), name FROM w ORDER BY 1, 2",
    "SELECT date_trunc('day', at), now() - date_trunc('day', at), count(*) FROM w GROUP BY date_trunc('day', at) ORDER BY 1",
    "SELECT name, now() - max(at) FROM w GROUP BY name HAVING count(*) > 1 ORDER BY name",
    "SELECT id, now() - lag(at) OVER (ORDER BY id) FROM w ORDER BY id",
    "WITH s AS (SELECT max(at) AS last FROM w) SELECT (now() - last)::text FROM s",
    "SELECT now() - (SELECT max(at) FROM w), id FROM w WHERE id < 4 ORDER BY id",
    "SELECT to_char(now(), 'YYYY-MM-DD HH24:MI:SS.US TZ') || name, LOCALTIMESTAMP, CURRENT_TIME(3), id FROM w ORDER BY id DESC",
    "SELECT COALESCE(expires, now()), GREATEST(at, now()), ARRAY[at, now()], id FROM w ORDER BY id",
    "SELECT now() AS t, id FROM w ORDER BY id LIMIT 3 OFFSET 1",
    "SELECT id, now() > at AND flag FROM w ORDER BY v DESC, id LIMIT 5",
    "SELECT at::date - CURRENT_DATE, now() - at FROM w WHERE at > CURRENT_DATE - 2000 ORDER BY id",
    "SELECT count(*) FILTER (WHERE flag), age(now(), min(at)), age(max(at)) FROM w",
    "SELECT (extract(epoch FROM now()) * 1e9)::int8 AS epoch_ns, name, count(*) FROM w GROUP BY name ORDER BY name",
    "SELECT to_char(now(), 'HH24:MI:SS'), id FROM w ORDER BY id",
    "SELECT p.at, now() - p.at FROM p ORDER BY p.at",
    "SELECT now() - at FROM w ORDER BY id LIMIT 2",
    "SELECT DISTINCT ON (name) name, now() - at FROM w ORDER BY name, id",
]
REFUSED = [
    "SELECT clock_timestamp(), id FROM w",
    "SELECT now() - at FROM w ORDER BY now() - at",
    "SELECT max(now() - at) FROM w",
    "SELECT now(), id FROM w WHERE name || now()::text > ''",
    "SELECT now() FROM w UNION ALL SELECT at FROM w",
    "SELECT now(), generate_series(1, 2) FROM w",
    "SELECT now(), random() FROM w",
    "SELECT now(), id FROM w FOR UPDATE",
    "SELECT now() FROM w",
]


@pytest.fixture
def world(server, writer):
    writer.execute("DISCARD ALL")
    writer.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO public")
    server.set("2026-03-10 10:00:00")
    writer.execute("CREATE TABLE w (id int, name text, v int, at timestamptz, expires timestamptz, flag bool)")
    writer.execute("INSERT INTO w SELECT g, NULLIF('n' || g % 4, 'n3'), g * 7 % 11, timestamptz '2026-01-01' + g * interval '7 hours 1 second',"
                   " CASE WHEN g % 3 > 0 THEN timestamptz '2026-03-01' + g * interval '1 day' END, g % 2 = 0 FROM generate_series(1, 20) g")
    writer.execute("CREATE TABLE p (at timestamptz) PARTITION BY RANGE (at)")
    writer.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2025-01-01') TO ('2026-02-01');"
                   "CREATE TABLE p2 PARTITION OF p DEFAULT; INSERT INTO p SELECT at FROM w")
    return writer


def answer(session, query):
    """Names, types and rows of an answer, or its error; and its status."""
    try:
        with session.transaction():
            result = session.pgconn.exec_(query.encode())
            if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
                raise psycopg.errors.lookup(result.error_field(psycopg.pq.DiagnosticField.SQLSTATE).decode())(result.error_message.decode())
            columns = range(result.nfields)
            found = ([(result.fname(i), result.ftable(i), result.ftablecol(i), result.ftype(i), result.fmod(i)) for i in columns],
                     [[result.get_value(row, i) for i in columns] for row in range(result.ntuples)])
            return found, session.status()
    except psycopg.Error as error:
        return str(error), "ERROR"


def shown_alike(session, query, may_leave_out=False):
    """Compares the answer with the server's, at the same time and under the same snapshot. Returns the status of the former. `may_leave_out`: another plan
    need not compute the columns of rows that are not shown, and so need not raise their errors."""
    return agree_at_once(session, lambda session: answer(session, query), excused=lambda plain: may_leave_out and isinstance(plain, str))


@pytest.mark.parametrize("query", SERVED)
def test_the_clock_is_applied_to_a_stored_answer(server, at, world, query):
    reader = at()
    server.set("2026-03-10 11:00:00.25")
    assert shown_alike(reader, query) == "MISS"
    server.set("2026-03-10 11:00:03.5")
    assert shown_alike(reader, query) == "HIT"
    assert reader.rows("SELECT cacheable, detail ~ 'the clock is applied to the stored answer' FROM arrow_cache.why(%s)",
                       [query]) == [(True, True)]
    world.execute("UPDATE w SET v = v + 1, at = at - interval '1 hour'")
    world.execute("UPDATE p SET at = at - interval '1 hour'")
    assert shown_alike(reader, query) == "STALE"
    server.set("2026-03-10 23:59:59.9")
    shown_alike(reader, query)
    server.set("2026-03-11 00:00:00.1")
    shown_alike(reader, query)
    assert shown_alike(reader, query) == "HIT"


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_refused_is_executed_as_ever(server, at, world, query):
    reader = at()
    reader.execute("BEGIN")
    for _ in range(2):
        reader.execute(query)
        assert reader.status() == "BYPASS"
    reader.execute("COMMIT")


@pytest.mark.parametrize("columns, statuses", [(10, ["MISS", "HIT"]), (1700, ["BYPASS", "BYPASS"])])
def test_not_with_more_columns_than_rows_may_have(at, world, columns, statuses):
    """Each aggregate below the clock is a column of the part."""
    reader = at()
    # The server lets calls have 100 arguments at most.
    tens = [f"GREATEST({', '.join(f'max(v + {ten * 10 + one})' for one in range(10))})" for ten in range(columns // 10)]
    query = f"SELECT name, CASE WHEN now() < min(at + interval '0') THEN 0 ELSE GREATEST({', '.join(tens)}) END FROM w GROUP BY name ORDER BY name"
    assert [shown_alike(reader, query) for _ in range(2)] == statuses


def test_names_and_origins_of_columns(at, world):
    reader = at()
    query = b"SELECT now() AS t, id AS number, at, now() - at FROM w ORDER BY id"
    for _ in range(2):
        result = reader.pgconn.exec_(query)
        described = [(result.fname(i), result.ftable(i), result.ftablecol(i), result.ftype(i), result.fmod(i)) for i in range(4)]
        table = reader.rows("SELECT 'w'::regclass::oid::int")[0][0]
        assert described == [(b"t", 0, 0, 1184, -1), (b"number", table, 1, 23, -1), (b"at", table, 4, 1184, -1), (b"?column?", 0, 0, 1186, -1)]


def test_errors_come_as_without_the_cache(server, at, world):
    reader = at()
    queries = ["SELECT now() - at FROM w ORDER BY id", "SELECT now(), 10 / v FROM w ORDER BY id",
               "SELECT CASE WHEN now() > at THEN 10 / v ELSE 0 END FROM w", "SELECT now() - NULL::interval, CASE WHEN now() < at THEN 10 / v END FROM w",
               "SELECT now(), sum(v) / 0 FROM w", "SELECT extract(epoch FROM now())::int2, id FROM w"]
    for query in queries:
        shown_alike(reader, query)
        shown_alike(reader, query)
    world.execute("UPDATE w SET at = 'infinity' WHERE id = 7; UPDATE w SET v = 0 WHERE id = 9")
    for query in queries:
        shown_alike(reader, query)
        shown_alike(reader, query)
        world.execute("UPDATE w SET at = '-infinity' WHERE id = 8")
        shown_alike(reader, query)


COMPUTED_BELOW = [
    "SELECT CASE WHEN now()::text = '' THEN s.q END, id FROM (SELECT id, 10 / v AS q FROM w) s ORDER BY id",
    "SELECT CASE WHEN now()::text = '' THEN s.q + 1 END, id FROM (SELECT r.id, r.q FROM (SELECT id, 10 / v AS q FROM w) r) s ORDER BY id",
    "SELECT now()::text <> '' OR bad > 0, id FROM shown ORDER BY id",
    "SELECT COALESCE(now()::text, shown.bad::text), w.id FROM w LEFT JOIN shown ON shown.id = w.id ORDER BY w.id",
    "SELECT CASE WHEN now()::text = '' THEN j.q END, j.id FROM (w JOIN (SELECT id AS other, 10 / v AS q FROM w) s ON other = id) j ORDER BY j.id",
    "SELECT CASE WHEN now()::text = '' THEN s.q END, w.id FROM w, LATERAL (SELECT 10 / w.v AS q) s ORDER BY w.id",
    "SELECT CASE WHEN now()::text = '' THEN s::text END, id FROM (SELECT id, 10 / v AS q FROM w) s ORDER BY id",
    "SELECT CASE WHEN 1 = 2 THEN now() + s.q * interval '1 day' END, name FROM (SELECT name, 10 / (count(*) - 5) AS q FROM w GROUP BY name) s ORDER BY name",
    "WITH s AS (SELECT id, 10 / v AS q FROM w) SELECT CASE WHEN now()::text = '' THEN s.q END, id FROM s ORDER BY id",
]


@pytest.mark.parametrize("query", COMPUTED_BELOW)
def test_a_column_that_may_fail_is_not_computed_where_the_clock_leaves_it_out(at, world, query):
    world.execute("CREATE VIEW shown AS SELECT id, name::int AS bad FROM w; UPDATE w SET v = 0 WHERE id = 5")
    reader = at()
    for _ in range(2):
        assert shown_alike(reader, query) == "BYPASS"


SERVED_FROM_BELOW = [
    "SELECT now(), s.q FROM (SELECT id, 10 / (v + 1) AS q FROM w) s ORDER BY id",
    "SELECT now() - s.at, s.q FROM (SELECT id, at, 10 / (v + 1) AS q FROM w) s ORDER BY id",
    "SELECT now() - s.late, s.name, s.total FROM (SELECT name, max(at) AS late, sum(v) AS total FROM w GROUP BY name) s ORDER BY name",
    "WITH s AS (SELECT name, sum(v) AS total FROM w GROUP BY name) SELECT total + extract(day FROM now()), name, now() FROM s ORDER BY name",
]


@pytest.mark.parametrize("query", SERVED_FROM_BELOW)
def test_columns_that_are_computed_for_each_row_are_served(at, world, query):
    reader = at()
    shown_alike(reader, query)
    assert shown_alike(reader, query) == "HIT"


def test_a_time_in_a_key_of_groups_is_computed_for_the_rows_that_are_shown(at, world):
    reader = at()
    query = "SELECT 1 / (extract(year FROM now())::int / 10000) AS x, name, count(*) FROM w GROUP BY 1, 2 {} ORDER BY 2"
    for _ in range(2):
        assert shown_alike(reader, query.format("")) == "ERROR"
        # Executing computes it for each row of a group, shown or not.
        assert reader.rows(query.format("HAVING count(*) > 100")) == []


def test_own_writes_are_seen(at, world):
    reader = at()
    query = "SELECT now() AS time, count(*), sum(v) FROM w"
    reader.execute(query), reader.execute(query)
    assert reader.status() == "HIT"
    reader.execute("BEGIN")
    reader.execute("DELETE FROM w WHERE id > 5")
    assert reader.rows(query)[0][1] == 5
    assert reader.status() == "BYPASS"
    reader.execute("ROLLBACK")
    assert reader.rows(query)[0][1] == 20
    assert reader.status() == "HIT"


def test_roles_and_row_security(at, world):
    world.execute("DROP ROLE IF EXISTS watcher; CREATE ROLE watcher LOGIN; GRANT SELECT (id, at) ON w TO watcher;"
                  "ALTER TABLE w ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON w TO watcher USING (id < 4)")
    owner, watcher = at(), at(user="watcher")
    query = "SELECT id, now() - at AS age FROM w ORDER BY id"
    for _ in range(2):
        assert len(owner.rows(query)) == 20
        assert len(watcher.rows(query)) == 3
    assert owner.status() == watcher.status() == "HIT"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        watcher.execute("SELECT now(), name FROM w")
    world.execute("REVOKE SELECT ON w FROM watcher; REVOKE SELECT (id, at) ON w FROM watcher")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        watcher.execute(query)


def test_settings_are_those_of_the_execution(server, at, world):
    reader = at()
    query = "SELECT now()::text, to_char(now(), 'HH24 TZ'), to_char(at, 'DD HH24'), id FROM w ORDER BY id"
    for zone in ("UTC", "Asia/Tokyo", "UTC", "America/New_York"):
        reader.execute(f"SET TimeZone = '{zone}'")
        for style in ("ISO", "German"):
            reader.execute(f"SET DateStyle = '{style}'")
            shown_alike(reader, query)
            assert shown_alike(reader, query) == "HIT"


def test_cursors_prepared_and_bound_statements(server, at, world):
    reader = at()
    query = "SELECT id, now() - at FROM w WHERE id > {} ORDER BY id"
    for _ in range(3):
        with reader.transaction():
            direct = reader.rows(query.format(3))
            assert reader.rows(query.format("%s"), [3]) == direct
            assert reader.rows(query.format("%s"), [3], prepare=True) == direct
            reader.execute(f"DECLARE c SCROLL CURSOR FOR {query.format(3)}")
            assert reader.rows("FETCH 4 FROM c") == direct[:4]
            assert reader.rows("FETCH ALL FROM c") == direct[4:]
            reader.execute("CLOSE c")
        reader.execute(f"CREATE TEMP TABLE IF NOT EXISTS kept AS {query.format(3)}")


def test_counts_and_explain(server, at, world):
    reader = at()
    query = "SELECT now() AS time, name, count(*) FROM w GROUP BY name ORDER BY name"
    explain = f"EXPLAIN (COSTS OFF) {query}"
    plain = reader.rows(explain)
    assert plain[0] == ("Result",) and "ArrowCache" not in str(plain)
    reader.execute(query)
    before = reader.rows("SELECT hits FROM arrow_cache.stats")[0][0]
    for _ in range(3):
        reader.execute(query)
    assert reader.rows("SELECT hits FROM arrow_cache.stats")[0][0] == before + 3
    assert reader.rows("SELECT hits FROM arrow_cache.entries WHERE query ILIKE '%as time, name, count%'") == [(3,)]
    assert reader.rows(explain) == [("Result",), ("  ->  Custom Scan (ArrowCache)",)]
    verbose = reader.rows(f"EXPLAIN (COSTS OFF, VERBOSE) {query}")
    assert verbose[:2] == [("Result",), ("  Output: now(), name, count",)], verbose


@sweep
def test_random_columns(server, at, world):
    """Random columns around the clock, alone and in groups, under a limit or not, while rows change."""
    print(f"RANDOM_SEED={SEED}")
    rng = random.Random(SEED)
    reader = at()
    times = ["at", "expires", "now()", "localtimestamp", "CURRENT_TIMESTAMP", "statement_timestamp()", "now() - interval '3 days'"]

    def time(depth=2):
        if depth == 0 or rng.random() < .3:
            return rng.choice(times)
        one, other = time(depth - 1), time(depth - 1)
        return rng.choice([f"COALESCE({one}, {other})", f"GREATEST({one}, {other})", f"CASE WHEN {one} > {other} THEN {one} ELSE {other} END",
                           f"date_trunc('hour', {one})", f"NULLIF({one}, {other})", f"({one})::date"])

    def column():
        return rng.choice([f"({time()})::timestamptz - ({time()})::timestamptz", f"{time()} < {time()}", f"to_char({time()}, 'US DD')",
                           f"CASE WHEN {time()} >= {time()} THEN 100 / v WHEN flag THEN v END", f"age({time()}, {time()})", f"({time()})::text || name",
                           "id", "v + 1", "name", f"extract(epoch FROM {time()})"])

    statuses = []
    for number in range(rounds(60, 150)):
        columns = ", ".join(column() for _ in range(rng.randint(1, 4)))
        query = rng.choice([
            f"SELECT {columns}, id FROM w ORDER BY id{rng.choice(['', ' DESC', ' LIMIT 4', ' OFFSET 2'])}",
            f"SELECT {columns}, a.id FROM (SELECT * FROM w WHERE v > {rng.randint(0, 5)}) a ORDER BY a.id",
            f"SELECT max(now() - at) IS NULL, now() - min(at), count(*), sum(v) - extract(day FROM now()) FROM w WHERE v > {rng.randint(0, 9)}",
            f"SELECT name, now() - max(at), now() FROM w GROUP BY name ORDER BY name",
            f"SELECT DISTINCT now(), flag, v % 3 FROM w ORDER BY 1, 2, 3",
        ])
        for second in range(2):
            server.set(f"2026-03-{10 + number % 9} {number % 24:02}:{number % 60:02}:{second:02}.5")
            statuses.append(shown_alike(reader, query, may_leave_out="LIMIT" in query or "OFFSET" in query))
        if rng.random() < .2:
            world.execute(f"UPDATE w SET v = {rng.randint(0, 9)}, expires = NULLIF(expires, at) WHERE id = {rng.randint(1, 20)}")
        if rng.random() < .1:
            reader.execute(f"SET TimeZone = '{rng.choice(['UTC', 'Europe/Berlin', 'Asia/Kolkata'])}'")
    assert statuses.count("HIT") > len(statuses) / 5, statuses


def test_in_a_transaction_that_has_changed_definitions(writer, world):
    """The plan of the clock-free part is refused."""
    writer.execute("BEGIN; CREATE TABLE made (id int)")
    rows = writer.execute("SELECT now() AS time, id FROM w ORDER BY id LIMIT 2").fetchall()
    writer.execute("ROLLBACK")
    assert [number for _, number in rows] == [1, 2]
