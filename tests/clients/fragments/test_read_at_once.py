"""Statements that are bound to a portal and depend on settings, or may raise an error: their answers are combined of parts if they are read under the
settings of the Bind. Whatever the client does, it sees what it would see without the cache."""

import psycopg
import pytest

from support.fragment_world import parts_of
from support.wire import data_rows, error_fields, types

FORCED = "-c pg_arrow_cache.debug_force_fragments=on -c jit=off -c timezone=UTC"
SETUP = """
CREATE TABLE f (n int, kind text, v int, price numeric(10, 2), at timestamptz, PRIMARY KEY (n, kind)) PARTITION BY RANGE (n);
CREATE TABLE f0 PARTITION OF f FOR VALUES FROM (0) TO (10);
CREATE TABLE f1 PARTITION OF f FOR VALUES FROM (10) TO (20);
CREATE TABLE f2 PARTITION OF f FOR VALUES FROM (20) TO (30);
INSERT INTO f SELECT g, 'k' || g % 3, g, g * 1.25, timestamptz '2024-01-30 20:00+00' + g * interval '5 hours' FROM generate_series(0, 29) g;
"""
INT4, TEXT = 23, 25
LEAVES = 3
# With $1, a whole number. Some depend on settings.
QUERIES = [
    "SELECT date_trunc('day', at) AS d, count(*) FROM f WHERE n >= $1 GROUP BY 1 ORDER BY 1",
    "SELECT at::date AS d, sum(v) FROM f WHERE n >= $1 GROUP BY 1 ORDER BY 1",
    "SELECT extract(hour FROM at) AS h, count(*) FROM f WHERE n >= $1 GROUP BY 1 ORDER BY 1",
    "SELECT kind, sum(price * v) FROM f WHERE n >= $1 GROUP BY kind ORDER BY kind",
    "SELECT kind, sum(v) / count(*) FROM f WHERE n >= $1 GROUP BY kind ORDER BY kind",
    "SELECT date_trunc('month', at) AS m, kind, sum(price * v)::text FROM f WHERE n >= $1 GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT max(at)::text FROM f WHERE n >= $1",
]
TRUNCATED, TOTALS = QUERIES[0], QUERIES[3]
# It fails in the group of k2, which comes last.
FAILING = "SELECT kind, 100 / (sum(v) - 155) FROM f WHERE n >= $1 GROUP BY kind ORDER BY kind"


@pytest.fixture
def writer(connect):
    writer = connect("-c jit=off -c timezone=UTC")
    writer.execute(SETUP)
    return writer


@pytest.fixture
def client(wire):
    return wire(TimeZone="UTC", jit="off", **{"pg_arrow_cache.debug_force_fragments": "on"})


@pytest.fixture
def plain(wire):
    return wire(TimeZone="UTC", jit="off", **{"pg_arrow_cache.enabled": "off"})


def counted(session):
    return session.rows("SELECT fragment_runs, fragments_served, fragments_computed FROM arrow_cache.stats")[0]


class Combined:
    """How many statements were combined of parts, and of how many stored ones, while this was open."""

    def __init__(self, session):
        self.session = session

    def __enter__(self):
        self.before = counted(self.session)
        return self

    def __exit__(self, *_):
        self.runs, self.served, self.computed = (now - then for now, then in zip(counted(self.session), self.before, strict=True))


def unnamed_portal(client, query, value):
    return client.parse(query, types=[INT4]).bind([value]).describe().execute().sync()


def binary_portal(client, query, value):
    return client.parse(query, types=[INT4]).bind([value], result_format=1).describe().execute().sync()


def named_portal(client, query, value):
    client.query("BEGIN")
    seen = client.parse(query, types=[INT4]).bind([value], portal="p").step("2", "E")
    seen += client.execute("p").describe("p").step("T", "E")
    seen += client.execute("p").close_portal("p").sync()
    client.query("COMMIT")
    return seen


def kept_statement(client, query, value):
    """The first execution has another value, so that the plan is old when the second one starts."""
    client.parse(query, name="s", types=[INT4]).bind([b"-1"], name="s").execute().sync()
    seen = client.bind([value], name="s").describe().execute().sync()
    client.query("DEALLOCATE s")
    return seen


def kept_for_all_values(client, query, value):
    client.query("SET plan_cache_mode = force_generic_plan")
    seen = kept_statement(client, query, value)
    client.query("RESET plan_cache_mode")
    return seen


def without_parameters(client, query, value):
    return client.parse(query.replace("$1", value.decode())).bind().execute().sync()


def prepared_in_sql(client, query, value):
    client.query(f"PREPARE s (int) AS {query}")
    seen = client.query(f"EXECUTE s ({value.decode()})")
    client.query("DEALLOCATE s")
    return seen


WAYS = [unnamed_portal, binary_portal, named_portal, kept_statement, kept_for_all_values, without_parameters, prepared_in_sql]


def answer(messages):
    """What the client sees of an answer."""
    errors = [error_fields(message) for message in messages if message.type == "E"]
    return types(messages), data_rows(messages), [(error["C"], error["M"]) for error in errors]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", QUERIES)
def test_read_at_once(writer, client, plain, way, query):
    expected = answer(way(plain, query, b"0"))
    with Combined(writer) as first:
        assert answer(way(client, query, b"0")) == expected
    assert first.runs >= 1
    assert first.computed >= LEAVES
    with Combined(writer) as again:
        assert answer(way(client, query, b"0")) == expected
    assert again.runs == 0, "the whole answer is stored"
    writer.execute("UPDATE f1 SET v = v + 1, price = price + 1, at = at + interval '1 day' WHERE n = 12")
    expected = answer(way(plain, query, b"0"))
    with Combined(writer) as changed:
        assert answer(way(client, query, b"0")) == expected
    assert changed.runs >= 1
    assert changed.served >= (LEAVES - 1) * changed.runs
    assert client.value("SELECT count(*) FROM arrow_cache.entries WHERE kind = 'answer' AND valid") != "0"


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("binary", [False, True])
def test_drivers(connect, writer, query, binary):
    reader = connect(FORCED, prepare_threshold=0)
    text = query.replace("$1", "%s::int")
    for change in ("SELECT", "UPDATE f2 SET v = v + 5 WHERE n = 21"):
        writer.execute(change)
        expected = writer.uncached(text, [4], binary=binary)
        with Combined(writer) as seen:
            assert reader.rows(text, [4], binary=binary) == expected
        assert seen.runs == 1
        assert reader.rows(text, [4], binary=binary) == expected
        assert reader.status() == "HIT"


@pytest.mark.parametrize("query", QUERIES)
def test_other_sessions_get_the_answer(writer, client, connect, query):
    """What is stored is the answer under these settings, and no other."""
    unnamed_portal(client, query, b"3")
    text = query.replace("$1", "3")
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        reader = connect(f"{FORCED} -c timezone={zone}", prepare_threshold=None)
        assert reader.rows(text) == reader.uncached(text)


@pytest.mark.parametrize("query", [TRUNCATED, TOTALS])
def test_row_limit(writer, client, plain, query):
    def read(session, limit):
        session.query("BEGIN")
        seen = session.parse(query, types=[INT4]).bind([b"3"], portal="p").execute("p", limit).step("C", "s", "E")
        seen += session.execute("p").sync()
        session.query("COMMIT")
        return answer(seen)

    for limit in (1, 2, 100):
        expected = read(plain, limit)
        with Combined(writer) as seen:
            assert read(client, limit) == expected
        assert seen.runs == 1
        writer.execute("UPDATE f1 SET v = v")


@pytest.mark.parametrize("first", ["FETCH 1 FROM p", "MOVE 1 FROM p", "FETCH 0 FROM p", "MOVE 0 FROM p", "FETCH ALL FROM p", "MOVE ALL FROM p", "FETCH RELATIVE 1 FROM p", "FETCH BACKWARD ALL FROM p"])
@pytest.mark.parametrize("query", [TRUNCATED, TOTALS, FAILING])
def test_fetched_from_a_portal(writer, client, plain, query, first):
    def read(session):
        session.query("BEGIN")
        session.parse(query, types=[INT4]).bind([b"3"], portal="p").step("2")
        seen = [answer(session.query(first)), answer(session.query("FETCH ALL FROM p")), answer(session.query("FETCH ALL FROM p"))]
        session.query("ROLLBACK")
        return seen

    expected = read(plain)
    with Combined(writer) as seen:
        assert read(client) == expected
    assert seen.runs <= 1


@pytest.mark.parametrize("kind", ["NO SCROLL CURSOR", "SCROLL CURSOR", "CURSOR", "NO SCROLL CURSOR WITH HOLD", "SCROLL CURSOR WITH HOLD"])
@pytest.mark.parametrize("query", [TRUNCATED, TOTALS, FAILING])
def test_cursors(writer, client, plain, query, kind):
    """What they are read by comes later."""
    def read(session):
        text = query.replace("$1", "3")
        seen = [answer(session.query("BEGIN")), answer(session.query(f"DECLARE c {kind} FOR {text}")), answer(session.query("FETCH ALL FROM c"))]
        seen += [answer(session.query("MOVE ABSOLUTE 0 FROM c")), answer(session.query("COMMIT")), answer(session.query("FETCH ALL FROM c")), answer(session.query("CLOSE c"))]
        seen += [answer(session.query("BEGIN")), answer(session.query(f"DECLARE c {kind} FOR {text}")), answer(session.query("COMMIT")), answer(session.query("FETCH ALL FROM c")), answer(session.query("CLOSE ALL"))]
        return seen

    expected = read(plain)
    with Combined(writer) as seen:
        assert read(client) == expected
    assert seen.runs > 0


SETTINGS = ["timezone = 'Asia/Tokyo'", "timezone = 'America/New_York'", "datestyle = 'German'", "extra_float_digits = 0"]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("query", QUERIES)
def test_settings_changed_in_between(writer, client, plain, query, setting):
    def read(session, *changes):
        session.query("BEGIN")
        seen = session.parse(query, types=[INT4]).bind([b"3"], portal="p").step("2", "E")
        changed = [answer(session.query(change)) for change in changes]
        if not any(errors for _, _, errors in changed):
            seen += session.execute("p").sync()
        session.query("ROLLBACK")
        return changed, answer(seen)

    name = setting.split()[0]
    back = f"SET {name} = '{plain.value(f'SHOW {name}')}'"
    for changes in ([f"SET {setting}"], [f"SET {setting}", back]):
        expected = read(plain, *changes)
        with Combined(writer) as seen:
            assert read(client, *changes) == expected
        if len(changes) == 1:
            assert seen.runs == 0
        elif not any(errors for _, _, errors in expected[0]):
            assert seen.runs == 1
        # Nothing was stored that is wrong.
        assert answer(unnamed_portal(client, query, b"3")) == answer(unnamed_portal(plain, query, b"3"))
        writer.execute("UPDATE f1 SET v = v")


@pytest.mark.parametrize("query", [TRUNCATED, TOTALS])
@pytest.mark.parametrize("change", ["enabled", "enable_fragments"])
def test_switched_off_in_between(writer, client, plain, query, change):
    expected = answer(unnamed_portal(plain, query, b"3"))
    client.query("BEGIN")
    seen = client.parse(query, types=[INT4]).bind([b"3"], portal="p").step("2", "E")
    client.query(f"SET LOCAL pg_arrow_cache.{change} = off")
    with Combined(writer) as combined:
        assert answer(client.execute("p").sync())[1] == expected[1]
    assert types(seen) == "12"
    assert combined.runs == 0
    client.query("ROLLBACK")


def test_several_portals(writer, client, plain):
    """Portals that are open at the same time, and read in another order than they were bound."""
    def read(session):
        session.query("BEGIN")
        for place, query in enumerate(QUERIES):
            session.parse(query, types=[INT4]).bind([b"3"], portal=f"p{place}")
        session.step("2")
        seen = []
        for place in (4, 0, 6, 2, 3, 5):
            seen += session.execute(f"p{place}").step("C", "E")
            if place == 2:
                session.close_portal("p1").step("3")
                session.close_portal("p0").step("3")
        seen += session.sync()
        session.query("ROLLBACK")
        return answer(seen)

    expected = read(plain)
    with Combined(writer) as seen:
        assert read(client) == expected
    assert seen.runs == len(QUERIES) - 1


@pytest.mark.parametrize("query", [TRUNCATED, TOTALS])
def test_own_writes_in_between(writer, client, plain, query):
    def read(session, write):
        session.query("BEGIN")
        session.parse(query, types=[INT4]).bind([b"3"], portal="p").step("2")
        written = answer(session.query(write))
        seen = written, answer(session.execute("p").sync()), answer(unnamed_portal(session, query, b"3"))
        session.query("ROLLBACK")
        return seen

    for write in ("UPDATE f SET v = v + 1", "TRUNCATE f1", "SAVEPOINT s; UPDATE f SET v = 1; ROLLBACK TO s", "ALTER TABLE f ADD more int"):
        expected = read(plain, write)
        with Combined(writer) as seen:
            assert read(client, write) == expected
        # The second statement computes all of it.
        assert seen.runs <= 1


@pytest.mark.parametrize("query", [TRUNCATED, TOTALS])
@pytest.mark.parametrize("change", ["SELECT", "REVOKE SELECT ON f FROM once_reader", "RESET ROLE", "RESET ROLE; SET ROLE once_reader"])
def test_roles_and_rights_in_between(writer, client, plain, connect, change, query):
    """Rights to tables are asked when the portal is opened; who reads it is asked again."""
    try:
        writer.execute(f"CREATE ROLE once_reader; GRANT USAGE ON SCHEMA {connect.schema} TO once_reader")

        def read(session):
            writer.execute("GRANT SELECT ON f TO once_reader")
            session.query("BEGIN; SET LOCAL ROLE once_reader")
            session.parse(query, types=[INT4]).bind([b"3"], portal="p").step("2")
            if change.startswith("REVOKE"):
                writer.execute(change)
            else:
                session.query(change)
            seen = answer(session.execute("p").sync())
            session.query("ROLLBACK")
            return seen

        expected = read(plain)
        assert expected[2] == []
        with Combined(writer) as seen:
            assert read(client) == expected
        assert seen.runs == (0 if change == "RESET ROLE" else 1)
    finally:
        writer.execute("DROP OWNED BY once_reader; DROP ROLE once_reader")


@pytest.mark.parametrize("way", WAYS)
def test_errors(writer, client, plain, way):
    """An error in a row that is read is the client's; and nothing is left behind."""
    clean = nothing_is_held(writer)
    expected = answer(way(plain, FAILING, b"0"))
    assert expected[2] == [("22012", "division by zero")]
    for _ in range(2):
        with Combined(writer) as seen:
            assert answer(way(client, FAILING, b"0")) == expected
        assert seen.runs >= 1
    assert answer(way(client, FAILING, b"12")) == answer(way(plain, FAILING, b"12"))
    assert nothing_is_held(writer) == clean


def nothing_is_held(session):
    """What a flush leaves: room that somebody has pinned."""
    session.execute("SELECT arrow_cache.flush()")
    return session.rows("SELECT bytes_used, fragment_bytes, entries FROM arrow_cache.stats")[0]


SLOW_SETUP = """
CREATE TABLE t (n int, k int) PARTITION BY RANGE (n);
CREATE TABLE many AS SELECT generate_series(1, 300) AS x;
CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (0) TO (10);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (10) TO (20);
CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (20) TO (30);
INSERT INTO t SELECT g, g % 3 FROM generate_series(0, 29, 3) g;
ANALYZE t; ANALYZE many;
"""
SLOW = "SELECT t.k, sum(a.x * b.x) FROM t, many a, many b WHERE a.x <> t.n AND b.x <> t.n GROUP BY t.k ORDER BY t.k"


@pytest.fixture
def slow_writer(connect):
    writer = connect("-c jit=off")
    writer.execute(SLOW_SETUP)
    return writer


def test_cancelled(slow_writer, connect):
    clean = nothing_is_held(slow_writer)
    reader = connect(FORCED, prepare_threshold=0)
    expected = reader.uncached(SLOW)
    cancelled = 0
    for timeout in (20, 50, 90, 150, 250, 400):
        slow_writer.execute("UPDATE t SET k = k; UPDATE many SET x = x WHERE x = 1")
        try:
            with reader.statement_timeout(timeout):
                assert reader.rows(SLOW) == expected
        except psycopg.errors.QueryCanceled:
            cancelled += 1
        with Combined(slow_writer) as seen:
            assert reader.rows(SLOW) == expected
        assert seen.runs <= 1
    assert cancelled > 1
    # In a transaction whose savepoint is gone back to.
    reader.execute("BEGIN")
    slow_writer.execute("UPDATE t1 SET k = k")
    for timeout in (20, 50, 90):
        reader.execute("SAVEPOINT s")
        reader.execute(f"SET LOCAL statement_timeout = {timeout}")
        try:
            assert reader.rows(SLOW) == expected
        except psycopg.errors.QueryCanceled:
            pass
        reader.execute("ROLLBACK TO s")
    assert reader.rows(SLOW) == expected
    reader.execute("COMMIT")
    assert nothing_is_held(slow_writer) == clean


def test_terminated(slow_writer, connect):
    clean = nothing_is_held(slow_writer)
    expected = slow_writer.uncached(SLOW)
    for pause in (0.02, 0.1, 0.2):
        reader = connect(FORCED, prepare_threshold=0)
        reader.pgconn.send_query_params(SLOW.encode(), None)
        slow_writer.execute("SELECT pg_sleep(%s)", [pause])
        slow_writer.execute("SELECT pg_terminate_backend(%s, 5000)", [reader.info.backend_pid])
        with connect(FORCED, prepare_threshold=0) as next_reader:
            assert next_reader.rows(SLOW) == expected
        slow_writer.execute("UPDATE t1 SET k = k")
    assert nothing_is_held(slow_writer) == clean


def test_memory_of_a_session_is_back(writer, client):
    """Neither answers nor errors leave memory, pins, snapshots or open tables behind."""
    size = "SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name NOT IN ('ErrorContext', 'MessageContext')"
    sizes = []
    for turn in range(60):
        writer.execute("UPDATE f1 SET v = v")
        unnamed_portal(client, TRUNCATED, b"3")
        unnamed_portal(client, FAILING, b"0")
        named_portal(client, TOTALS, b"3")
        if turn >= 20:
            sizes.append(int(client.value(size)))
    assert sizes[-1] - sizes[0] < 32768, sizes
    # Nobody holds the tables.
    writer.execute("SET lock_timeout = '2s'")
    writer.execute("DROP TABLE f")


def test_what_is_told(writer, connect):
    """EXPLAIN and why() tell of the statement what comes of it."""
    reader = connect(FORCED, prepare_threshold=0)
    for query in (TRUNCATED, TOTALS):
        text = query.replace("$1", "0")
        for parts in ((0, LEAVES), (LEAVES - 1, 1)):
            explained = [line for (line,) in reader.rows(f"EXPLAIN (COSTS OFF) {text}", prepare=False)]
            assert parts_of(explained) == parts
            with Combined(writer) as seen:
                reader.rows(query.replace("$1", "%s::int"), [0])
            assert (seen.runs, seen.served, seen.computed) == (1, *parts)
            writer.execute("UPDATE f1 SET v = v")
        assert "can be combined of stored parts" in reader.rows("SELECT detail FROM arrow_cache.why(%s)", [text])[0][0]
