"""Plans that the server keeps, copies and plans anew by itself are combined of parts, too. What they show is what a session without the cache sees,
whatever happens between two executions, between planning and start, or between start and the first row."""

import datetime

import pytest

from support.asking import Asking, until
from support.fragment_world import parts_of
from support.sweeps import thinned
from support.wire import data_rows

FORCED = "-c pg_arrow_cache.debug_force_fragments=on -c jit=off -c timezone=UTC"
LEAVES = 4
SETUP = """
CREATE TABLE f (n int, kind text, v int, at timestamptz) PARTITION BY RANGE (n);
CREATE TABLE f0 PARTITION OF f FOR VALUES FROM (0) TO (10);
CREATE TABLE f1 PARTITION OF f FOR VALUES FROM (10) TO (20);
CREATE TABLE f2 PARTITION OF f FOR VALUES FROM (20) TO (30);
CREATE TABLE f3 PARTITION OF f FOR VALUES FROM (30) TO (40);
CREATE INDEX of_f2 ON f2 (v);
INSERT INTO f SELECT g, 'k' || g % 3, g, timestamptz '2024-01-30 20:00+00' + g * interval '5 hours' FROM generate_series(0, 39) g;
CREATE TABLE d (kind text, name text);
INSERT INTO d SELECT 'k' || g, 'name ' || g FROM generate_series(0, 2) g;
CREATE TABLE days (at timestamptz, v int) PARTITION BY RANGE (at);
DO $$ BEGIN FOR i IN 0..7 LOOP
    EXECUTE format('CREATE TABLE days_%s PARTITION OF days FOR VALUES FROM (%L) TO (%L)', i, date_trunc('day', now(), 'UTC') - (6 - i) * interval '1 day',
                   date_trunc('day', now(), 'UTC') - (5 - i) * interval '1 day');
END LOOP; END $$;
INSERT INTO days SELECT date_trunc('day', now(), 'UTC') - (6 - g % 8) * interval '1 day' + g % 20 * interval '1 hour', g FROM generate_series(0, 159) g;
ANALYZE f, d, days;
"""
TOTALS = "SELECT kind, count(*), sum(v) FROM f WHERE n >= %s GROUP BY kind ORDER BY kind"
JOINED = "SELECT name, count(*), sum(v) FROM f JOIN d USING (kind) WHERE n >= %s AND n < 33 GROUP BY name ORDER BY name"
TRUNCATED = "SELECT date_trunc('day', at), count(*) FROM f WHERE n >= %s GROUP BY 1 ORDER BY 1"
WINDOW = "SELECT count(*), sum(v) FROM days WHERE at >= now() - interval '3 days' AND v > %s"
WITHOUT = "SELECT kind, count(*), sum(v) FROM f GROUP BY kind ORDER BY kind"
QUERIES = [TOTALS, JOINED, TRUNCATED, WINDOW]
MODES = ["auto", "force_generic_plan", "force_custom_plan"]


@pytest.fixture
def writer(connect):
    writer = connect("-c jit=off -c timezone=UTC")
    writer.execute(SETUP)
    return writer


@pytest.fixture
def plain(connect):
    return connect("-c pg_arrow_cache.enabled=off -c jit=off -c timezone=UTC")


def counted(session):
    return session.rows("SELECT fragment_runs, fragments_served, fragments_computed FROM arrow_cache.stats")[0]


class Parts:
    """How many statements were combined of parts, and of how many stored and computed ones, while this was open."""

    def __init__(self, session):
        self.session = session

    def __enter__(self):
        self.before = counted(self.session)
        return self

    def __exit__(self, *_):
        self.runs, self.served, self.computed = (now - then for now, then in zip(counted(self.session), self.before, strict=True))


class Prepared:
    """A statement that is prepared in the protocol, or in SQL, with one parameter of type int."""

    def __init__(self, session, query, way, mode="auto"):
        self.session, self.way = session, way
        session.execute(f"SET plan_cache_mode = {mode}")
        text = query.replace("%s", "$1::int")
        if way == "sql":
            session.execute(f"PREPARE asked (int) AS {text}")
        elif way == "protocol":
            session.pgconn.prepare(b"asked", text.encode())
        else:
            self.text = text

    def rows(self, value):
        if self.way == "sql":
            return self.session.rows(f"EXECUTE asked ({value})", prepare=False)
        value = str(value).encode()
        result = self.session.pgconn.exec_prepared(b"asked", [value]) if self.way == "protocol" else self.session.pgconn.exec_params(self.text.encode(), [value])
        assert not result.error_message, result.error_message
        return [tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]

    def plans(self):
        return self.session.rows("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'asked'", prepare=False)[0]


def expected(plain, query, value):
    return plain.rows(query, [value])


def as_text(rows):
    def text(value):
        return value.strftime("%Y-%m-%d %H:%M:%S+00").encode() if isinstance(value, datetime.datetime) else None if value is None else str(value).encode()

    return [tuple(text(value) for value in row) for row in rows]


def same(ours, rows):
    return ours == rows or ours == as_text(rows)


@thinned("query, way, mode", QUERIES, ["sql", "protocol", "unnamed"], MODES, one_in=3)
def test_every_kind_of_plan_is_combined(writer, plain, connect, query, way, mode):
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, query, way, mode)
    for turn in range(8):
        value = turn % 3
        writer.execute("UPDATE f SET v = v + 1 WHERE n = 12; UPDATE days SET v = v + 1 WHERE ctid = '(0,1)' AND at > now() - interval '1 day'")
        with Parts(writer) as parts:
            assert same(asked.rows(value), expected(plain, query, value))
        assert parts.runs == 1, turn
        if turn > 2:
            assert parts.served > 0, turn
            assert parts.computed <= 2, turn
        assert same(asked.rows(value), expected(plain, query, value))
    if mode == "force_generic_plan" and way != "unnamed":
        assert asked.plans()[1] == 0


@pytest.mark.parametrize("way", ["sql", "protocol"])
@pytest.mark.parametrize("query", QUERIES)
def test_kinds_of_plans_share_their_parts(writer, plain, connect, query, way):
    """The part of a leaf is the same question, whoever asks it in whatever way."""
    generic, custom = (Prepared(connect(FORCED, prepare_threshold=None), query, way, mode) for mode in MODES[1:])
    simple = connect(FORCED, prepare_threshold=None)
    generic.rows(1)
    for ask in (lambda: custom.rows(1), lambda: simple.rows(query.replace("%s", "1")), lambda: generic.rows(1)):
        writer.execute("UPDATE f0 SET v = v + 1 WHERE n = 5; UPDATE days_6 SET v = v + 1 WHERE ctid = '(0,1)'")
        with Parts(writer) as parts:
            assert same(ask(), expected(plain, query, 1))
        # A part at the end of a window is stored when it is asked for the second time.
        assert parts.computed <= 2
        assert parts.served >= 1


def test_without_parameters(writer, plain, connect):
    """Drivers send such statements, too, in messages of the extended protocol: the server keeps their plans."""
    reader = connect(FORCED, prepare_threshold=0)
    for _ in range(3):
        writer.execute("UPDATE f1 SET v = v + 1 WHERE n = 12")
        with Parts(writer) as parts:
            assert reader.rows(WITHOUT) == plain.rows(WITHOUT)
        assert parts.runs == 1
    assert (parts.served, parts.computed) == (LEAVES - 1, 1)


@pytest.mark.parametrize("mode", MODES)
def test_leaves_outside_of_the_bounds_are_not_read(writer, plain, connect, mode):
    """Neither by a part, nor by the answer as a whole, which still holds when such a leaf has changed."""
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, TOTALS, "sql", mode)
    asked.rows(25)
    with Parts(writer) as parts:
        writer.execute("UPDATE f2 SET v = v + 1 WHERE n = 25")
        assert same(asked.rows(25), expected(plain, TOTALS, 25))
    assert (parts.runs, parts.served + parts.computed) == (1, 2)
    writer.execute("UPDATE f0 SET v = v + 1 WHERE n = 5")
    assert same(asked.rows(25), expected(plain, TOTALS, 25))
    assert reader.status() == "HIT"


DEFINITIONS = [
    "ALTER TABLE f DETACH PARTITION f3", "ALTER TABLE f DETACH PARTITION f3 CONCURRENTLY", "CREATE TABLE f4 PARTITION OF f FOR VALUES FROM (40) TO (50)", "DROP TABLE f2", "DROP INDEX of_f2",
    "CREATE INDEX ON f1 (v)", "REINDEX INDEX of_f2", "ALTER TABLE f1 ADD CHECK (v < 100000) NOT VALID; ALTER TABLE f1 VALIDATE CONSTRAINT f1_v_check", "ALTER TABLE f ADD more int", "TRUNCATE f1",
    "CREATE UNIQUE INDEX ON d (kind)", "ALTER TABLE f RENAME COLUMN v TO w; ALTER TABLE f ADD v int DEFAULT 7", "CREATE FUNCTION made() RETURNS int LANGUAGE sql AS 'SELECT 1'", "ANALYZE f", "ALTER TABLE f1 SET (fillfactor = 50)",
    "ALTER TABLE f DETACH PARTITION f1; INSERT INTO f1 VALUES (5, 'k0', 7); ALTER TABLE f0 RENAME TO g0; DELETE FROM f1 WHERE n = 5; ALTER TABLE f ATTACH PARTITION f1 FOR VALUES FROM (10) TO (20)",
]


@thinned("mode, query, definition", MODES[1:], [TOTALS, JOINED], DEFINITIONS, one_in=2)
def test_definitions_between_executions(writer, plain, connect, mode, query, definition):
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, query, "sql", mode)
    for value in (0, 12):
        assert same(asked.rows(value), expected(plain, query, value))
    for statement in definition.split("; "):
        writer.execute(statement)
    for value in (0, 12, 0):
        writer.execute("UPDATE f SET kind = kind WHERE n = 1")
        with Parts(writer) as parts:
            assert same(asked.rows(value), expected(plain, query, value))
    assert parts.runs == 1


def test_other_definitions_leave_the_parts_of_a_kept_plan(writer, plain, connect):
    """The server holds the plan valid."""
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, TOTALS, "protocol", "force_generic_plan")
    asked.rows(0)
    for turn in range(3):
        writer.execute(f"CREATE TABLE other{turn} (a int PRIMARY KEY); CREATE VIEW view{turn} AS TABLE other{turn}; UPDATE f1 SET v = v + 1 WHERE n = 12")
        with Parts(writer) as parts:
            assert same(asked.rows(0), expected(plain, TOTALS, 0))
        assert parts.runs == 1
    writer.execute("UPDATE f1 SET v = v + 1 WHERE n = 12")
    with Parts(writer) as parts:
        assert same(asked.rows(0), expected(plain, TOTALS, 0))
    assert (parts.served, parts.computed) == (LEAVES - 1, 1)


@pytest.mark.parametrize("values", [None, [0]], ids=["simple", "bound"])
@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
def test_a_part_is_gone_when_the_plan_starts(writer, plain, other, connect, level, values):
    """It was stored when the statement was planned, so nobody has planned it. Planning waits for an index of another leaf meanwhile."""
    query = TOTALS if values else TOTALS.replace("%s", "0")
    reader = connect(FORCED, prepare_threshold=None)
    reader.rows(query, values)
    before = plain.rows(query, values)
    writer.execute("UPDATE f2 SET v = v + 1 WHERE n = 25")
    between = plain.rows(query, values)
    with reader.transaction(), plain.transaction():
        for session in (reader, plain):
            session.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        if level == "REPEATABLE READ":
            for session in (reader, plain):
                session.rows("SELECT count(*) FROM d")
        with other.transaction():
            other.execute("REINDEX INDEX of_f2")
            asking = Asking(reader, query, params=values, prepare=bool(values))
            until(writer, reader, "wait_event_type = 'Lock'")
            writer.execute("UPDATE f1 SET v = v + 1000 WHERE n = 12; UPDATE f3 SET v = v + 1000 WHERE n = 35")
        rows = asking.result()
        assert rows == plain.rows(query, values)
    assert rows != before
    assert (rows == between) == (level == "REPEATABLE READ")
    with Parts(writer) as parts:
        assert reader.rows(query, values) == plain.rows(query, values)
    assert parts.runs == 1


@thinned("query, portal, change, stored", [TRUNCATED, TOTALS, "SELECT count(*), sum(v) FROM days WHERE at::date >= '2000-01-01' AND v > %s"], ["", "p"],
         ["SET LOCAL timezone = 'Asia/Tokyo'", "SET LOCAL datestyle = 'German'", "SET LOCAL enable_hashagg = off", "SELECT"], [False, True], one_in=2)
def test_settings_between_start_and_first_row(writer, wire, query, portal, change, stored):
    text = query.replace("%s", "$1")
    client, plain = wire(TimeZone="UTC", **{"pg_arrow_cache.debug_force_fragments": "on"}), wire(TimeZone="UTC", **{"pg_arrow_cache.enabled": "off"})

    def read(session):
        session.query("BEGIN")
        session.parse(text, "s", types=[23]).bind([b"1"], portal=portal, name="s").step("2", "E")
        # It leaves the portal without a name alone.
        session.parse(change).bind(portal="other").execute("other").step("C", "E")
        rows = data_rows(session.execute(portal).sync())
        session.query("COMMIT; DEALLOCATE s")
        return rows

    for _ in range(2):
        if stored:
            client.parse(text, types=[23]).bind([b"1"]).execute().sync()
        writer.execute("UPDATE f1 SET v = v + 1 WHERE n = 12")
        rows = read(plain)
        assert rows and read(client) == rows


DATES = "SELECT count(*), sum(v) FROM days WHERE at >= current_date - 2 AND v > %s"


@pytest.mark.parametrize("query", [DATES, "SELECT count(*), sum(v) FROM days WHERE at >= '{day}'::date AND v > %s"])
def test_bounds_under_other_settings(writer, plain, connect, query):
    """A plan that is kept has all leaves that bounds may leave to it under another time zone."""
    query = query.replace("{day}", str(writer.rows("SELECT (now() AT TIME ZONE 'UTC')::date - 1")[0][0]))
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, query, "sql", "force_generic_plan")
    for zone in ("UTC", "Asia/Tokyo", "America/New_York", "Pacific/Kiritimati", "UTC"):
        for session in (reader, plain):
            session.execute(f"SET timezone = '{zone}'")
        assert same(asked.rows(-1), expected(plain, query, -1))
        writer.execute("UPDATE days_6 SET v = v + 1 WHERE ctid = '(0,1)'")


@pytest.mark.parametrize("kind", ["CURSOR", "NO SCROLL CURSOR", "SCROLL CURSOR", "CURSOR WITH HOLD", "SCROLL CURSOR WITH HOLD"])
@pytest.mark.parametrize("query", [TOTALS, TRUNCATED])
def test_cursors(writer, plain, connect, query, kind):
    reader = connect(FORCED, prepare_threshold=None)
    text = query.replace("%s", "3")
    for _ in range(2):
        with Parts(writer) as parts, reader.transaction():
            rows = plain.rows(text)
            reader.execute(f"DECLARE c {kind} FOR {text}")
            writer.execute("UPDATE f SET v = v + 1 WHERE n IN (12, 22)")
            first = reader.rows("FETCH 1 FROM c")
            assert first + reader.rows("FETCH ALL FROM c") == rows
            if "SCROLL" in kind and "NO" not in kind:
                assert reader.rows("FETCH BACKWARD ALL FROM c") == rows[::-1]
                assert reader.rows("FETCH ABSOLUTE 2 FROM c") == rows[1:2]
            if "HOLD" not in kind:
                reader.execute("CLOSE c")
        if "HOLD" in kind:
            reader.execute("MOVE ABSOLUTE 0 FROM c" if "SCROLL" in kind else "SELECT")
            assert "SCROLL" not in kind or reader.rows("FETCH ALL FROM c") == rows
            reader.execute("CLOSE c")
        assert parts.runs == 1


def test_cursor_of_a_prepared_statement_is_held(writer, plain, wire):
    client = wire(TimeZone="UTC", **{"pg_arrow_cache.debug_force_fragments": "on"})
    client.query("SET plan_cache_mode = force_generic_plan")
    rows = [[str(value).encode() for value in row] for row in plain.rows(TOTALS, [0])]
    client.query("BEGIN")
    client.parse(TOTALS.replace("%s", "$1"), "s", types=[23]).bind([b"0"], portal="p", name="s").execute("p", 1).step("s", "E")
    writer.execute("UPDATE f SET v = v + 1; ALTER TABLE d ADD more int")
    assert data_rows(client.execute("p").sync()) == rows[1:]


@pytest.mark.parametrize("way", ["sql", "protocol"])
@pytest.mark.parametrize("mode", MODES[1:])
def test_own_writes(writer, plain, connect, way, mode):
    """Who has written computes all parts, and nothing of them is stored."""
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, TOTALS, way, mode)
    committed = asked.rows(0)
    with Parts(writer) as parts:
        reader.execute("BEGIN; UPDATE f SET v = v + 1000 WHERE n = 12", prepare=False)
        own = asked.rows(0)
        reader.execute("SET LOCAL pg_arrow_cache.enabled = off")
        assert own == asked.rows(0) != committed
        reader.execute("ROLLBACK")
    assert (parts.runs, parts.computed) == (0, 0)
    assert asked.rows(0) == committed
    for session in (reader, writer):
        assert session.rows(TOTALS, [0]) == expected(plain, TOTALS, 0)


def test_planned_after_own_writes(writer, plain, connect):
    """The plan is kept, and later executions of it combine parts."""
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, TOTALS, "sql", "force_generic_plan")
    with reader.transaction():
        reader.execute("CREATE TABLE own (a int); UPDATE f SET v = v + 1 WHERE n = 12")
        with Parts(writer) as parts:
            own = asked.rows(0)
    assert own == asked.rows(0) == expected(plain, TOTALS, 0)
    assert parts.runs == 0
    for _ in range(2):
        writer.execute("UPDATE f1 SET v = v + 1 WHERE n = 12")
        with Parts(writer) as parts:
            assert same(asked.rows(0), expected(plain, TOTALS, 0))
        assert parts.runs == 1


@pytest.mark.parametrize("setting", ["enabled", "enable_fragments"])
def test_switched_off_after_planning(writer, plain, connect, setting):
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, TOTALS, "sql", "force_generic_plan")
    asked.rows(0)
    reader.execute(f"SET pg_arrow_cache.{setting} = off")
    writer.execute("UPDATE f1 SET v = v + 1 WHERE n = 12")
    with Parts(writer) as parts:
        assert same(asked.rows(0), expected(plain, TOTALS, 0))
    assert (parts.runs, parts.served, parts.computed) == (0, 0, 0)


@pytest.mark.parametrize("mode", MODES[1:])
def test_explain(writer, connect, mode):
    """EXPLAIN shows the plan that the server keeps, and how many parts are stored."""
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, TOTALS, "sql", mode)
    explain = "EXPLAIN (COSTS OFF) EXECUTE asked (0)"

    def shown(statement=explain):
        return parts_of(line for line, in reader.rows(statement))

    assert shown() == (0, LEAVES)
    asked.rows(0)
    writer.execute("UPDATE f1 SET v = v + 1 WHERE n = 12")
    assert shown() == (LEAVES - 1, 1)
    assert shown("EXPLAIN (COSTS OFF) EXECUTE asked (25)") == (1, 1)
    assert shown("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE asked (0)") == (LEAVES - 1, 1)
    assert shown() == (LEAVES, 0)


@pytest.mark.parametrize("way", ["sql", "protocol", "simple"])
def test_other_processes_take_part(writer, plain, connect, way):
    version = int(writer.info.server_version)
    parallel = "debug_parallel_query" if version >= 160000 else "force_parallel_mode"
    reader = connect(f"{FORCED} -c {parallel}=on -c max_parallel_workers_per_gather=2 -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0", prepare_threshold=None)
    asked = reader if way == "simple" else Prepared(reader, JOINED, way, "force_generic_plan")
    for _ in range(3):
        writer.execute("UPDATE f1 SET v = v + 1 WHERE n = 12")
        with Parts(writer) as parts:
            ours = reader.rows(JOINED.replace("%s", "3")) if way == "simple" else asked.rows(3)
            assert same(ours, expected(plain, JOINED, 3))
        assert parts.runs == 1


def test_a_plan_is_made_anew_when_it_is_known_what_its_form_takes(writer, plain, connect):
    """The first run may be slow by itself, so the server's own plan is kept for two, until a transaction has ended."""
    reader = connect("-c pg_arrow_cache.fragment_min_time=0 -c timezone=UTC", prepare_threshold=None)
    asked = Prepared(reader, TOTALS, "sql", "force_generic_plan")
    runs = []
    for _ in range(4):
        writer.execute("UPDATE f1 SET v = v + 1 WHERE n = 12")
        with Parts(writer) as parts:
            assert same(asked.rows(0), expected(plain, TOTALS, 0))
        runs.append(parts.runs)
    assert runs == [0, 0, 1, 1]


def test_null_excludes_all_rows(writer, plain, connect):
    reader = connect(FORCED, prepare_threshold=None)
    asked = Prepared(reader, TOTALS, "sql", "force_generic_plan")
    assert asked.rows("NULL") == plain.rows(TOTALS, [None])


def test_a_kept_plan_serves_an_older_snapshot(writer, plain, connect):
    """The snapshot sees a row of a leaf that the bounds of the leaf forbid: it was deleted before the table became a leaf."""
    writer.execute("CREATE TABLE late (LIKE f); INSERT INTO late VALUES (5, 'k0', 700), (45, 'k1', 45)")
    holder, reader = connect(), connect(FORCED, prepare_threshold=None)
    holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    snapshot = holder.rows("SELECT pg_export_snapshot()")[0][0]
    writer.execute("DELETE FROM late WHERE n = 5; ALTER TABLE f ATTACH PARTITION late FOR VALUES FROM (40) TO (50)")
    asked = Prepared(reader, TOTALS, "sql", "force_generic_plan")
    for _ in range(2):
        asked.rows(40), asked.rows(0)
        answers = []
        for session in (reader, plain):
            session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            session.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
            answers.append([asked.rows(value) if session is reader else plain.rows(TOTALS, [value]) for value in (40, 0)])
            session.execute("COMMIT")
        assert answers[0] == answers[1]


@pytest.mark.parametrize("mode", MODES)
def test_the_number_of_parts_is_no_reason_to_compile(writer, connect, mode):
    """What the parts cost is not what the plan above them costs."""
    session = connect(f"-c pg_arrow_cache.debug_force_fragments=on -c jit=on -c jit_above_cost=350 -c plan_cache_mode={mode}")
    if not session.rows("SELECT pg_jit_available()")[0][0]:
        pytest.skip("the server cannot compile")
    session.execute("PREPARE q (int) AS " + TOTALS.replace("%s", "$1"))
    for n in range(3):
        shown = [line for line, in session.rows(f"EXPLAIN (ANALYZE, TIMING OFF) EXECUTE q ({n})")]
        assert any("ArrowCacheFragments" in line for line in shown)
        assert not any("JIT" in line for line in shown)


def test_the_server_keeps_a_plan_as_without_the_cache(writer, connect):
    """A combined plan costs what its parts cost."""
    writer.execute("CREATE TABLE many (n int, v int) PARTITION BY RANGE (n)")
    for leaf in range(60):
        writer.execute(f"CREATE TABLE many_{leaf} PARTITION OF many FOR VALUES FROM ({leaf}) TO ({leaf + 1})")
    writer.execute("INSERT INTO many SELECT g % 60, g FROM generate_series(1, 600) g; ANALYZE many")
    kept = []
    for options in (FORCED, "-c pg_arrow_cache.enabled=off"):
        session = connect(options)
        session.execute("PREPARE q (int) AS SELECT count(*), sum(v) FROM many WHERE v > $1")
        for value in range(9):
            session.execute(f"EXECUTE q ({value})")
        kept.append(session.rows("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'q'"))
    assert kept[0] == kept[1] and kept[1][0][0] > 0
