"""Statements that repeat a served one with other constants are not planned: through each protocol they give what
execution would give, and the client sees no difference."""

import re
import struct

import psycopg
import pytest

from support.placeholders import Plans, exec_params, plans_of, warm
from support.wire import data_rows, error_fields, types

INT4, INT8, TEXT, NUMERIC = 23, 20, 25, 1700


@pytest.fixture
def session(connect):
    """psycopg makes named statements of those that repeat; here only the statements are named for which a test asks for
    it."""
    return connect(prepare_threshold=None)


@pytest.fixture
def other(connect):
    return connect(prepare_threshold=None)


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t AS SELECT g AS a, 'row ' || g AS b FROM generate_series(1, 10) g")
    return session


def test_from_the_third_time_on(table):
    query = "SELECT b FROM t WHERE a = 3"
    with Plans(table) as plans:
        for expected in ([False], [False], [True], [True]):
            assert table.rows(query) == [("row 3",)]
            assert plans.take() == expected
        assert table.status() == "HIT"


def test_other_constants_of_the_form(table, other):
    """An answer that another session has stored is served at once to a session that knows the form."""
    form = "SELECT b FROM t WHERE a = {}"
    warm(table, form.format(3))
    for number in (4, 5):
        rows, plans = plans_of(table, lambda: table.rows(form.format(number)))
        assert (rows, plans) == ([(f"row {number}",)], [False])
        rows, plans = plans_of(table, lambda: table.rows(form.format(number)))
        assert (rows, plans) == ([(f"row {number}",)], [True])
    warm(other, form.format(6))
    assert plans_of(table, lambda: table.rows(form.format(6))) == ([("row 6",)], [True])


def test_a_placeholder_is_counted_as_a_hit(table):
    query = "SELECT count(*) FROM t"
    warm(table, query)
    before = table.rows("SELECT hits FROM arrow_cache.stats")[0][0]
    assert plans_of(table, lambda: table.rows(query))[1] == [True]
    table.execute(query)
    assert table.status() == "HIT"
    assert table.rows("SELECT hits FROM arrow_cache.stats")[0][0] == before + 2


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_exec_params(table, binary):
    query = "SELECT a, b FROM t WHERE a = $1"
    image = (lambda a: struct.pack("!i", a)) if binary else (lambda a: b"%d" % a)
    for number in (1, 2):
        for expected in ([False], [False], [True]) if number == 1 else ([False], [True], [True]):
            rows, plans = plans_of(table, lambda: exec_params(table, query, [number], [INT4], binary))
            assert rows == [(image(number), b"row %d" % number)]
            assert plans == expected


def test_null_parameters(table):
    table.execute("INSERT INTO t VALUES (NULL, 'none'), (NULL, 'none either')")
    query = "SELECT b FROM t WHERE a IS NOT DISTINCT FROM $1 ORDER BY b"
    for _ in range(4):
        assert exec_params(table, query, [None], [INT4]) == [(b"none",), (b"none either",)]
        assert exec_params(table, query, [7], [INT4]) == [(b"row 7",)]
    for value in (None, 7):
        assert plans_of(table, lambda: exec_params(table, query, [value], [INT4]))[1] == [True]
    always_null = "SELECT count(*) FROM t WHERE a = $1"
    for _ in range(3):
        assert exec_params(table, always_null, [None], [INT4]) == [(b"0",)]
    assert exec_params(table, always_null, [3], [INT4]) == [(b"1",)]


def test_the_same_text_as_another_type(table):
    query = "SELECT $1 AS v, a FROM t WHERE a = 1"
    for _ in range(3):
        for sql_type, value, expected in ((INT4, "12", b"12"), (TEXT, "12", b"12"), (NUMERIC, "12.0", b"12.0"),
                                          (INT8, "12", b"12"), (TEXT, "12.0", b"12.0"), (NUMERIC, "12", b"12")):
            result = table.pgconn.exec_params(query.encode(), [value.encode()], [sql_type])
            assert (result.get_value(0, 0), result.ftype(0)) == (expected, sql_type)


def test_a_parameter_that_chooses_the_partition(session):
    session.execute("""CREATE TABLE p (id int, v text) PARTITION BY RANGE (id);
        CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
        CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
        INSERT INTO p VALUES (1, 'one'), (11, 'eleven')""")
    query = "SELECT v FROM p WHERE id = $1"
    texts = [f"SELECT v FROM p WHERE id = {number}" for number in (1, 11)]

    def ask():
        return [exec_params(session, query, [number], [INT4]) for number in (1, 11, 1, 11)]

    for round_number in range(4):
        assert ask() == [[(b"one",)], [(b"eleven",)]] * 2
        assert [session.rows(text) for text in texts] == [[("one",)], [("eleven",)]]
        # A write to one partition outdates the answers that read it, through whichever name they read it.
        if round_number == 1:
            session.execute("UPDATE p1 SET v = 'ONE'; UPDATE p2 SET v = 'ELEVEN'")
            assert ask() == [[(b"ONE",)], [(b"ELEVEN",)]] * 2
            assert [session.rows(text) for text in texts] == [[("ONE",)], [("ELEVEN",)]]
            session.execute("UPDATE p1 SET v = 'one'; UPDATE p2 SET v = 'eleven'")


def test_an_answer_rests_on_the_partitions_of_its_own_plan(session, other):
    """Plans for other values of the same parameter read other partitions."""
    session.execute("""CREATE TABLE p (id int, v text) PARTITION BY RANGE (id);
        CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
        CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
        INSERT INTO p VALUES (1, 'one'), (11, 'eleven')""")

    def ask(number):
        return exec_params(session, "SELECT v FROM p WHERE id = $1", [number], [INT4])

    for _ in range(3):
        assert ask(1) == [(b"one",)]
    assert session.status() == "HIT"
    for _ in range(2):
        assert ask(11) == [(b"eleven",)]
    assert session.status() == "HIT"
    other.execute("UPDATE p2 SET v = 'new' WHERE id = 11")
    assert ask(11) == [(b"new",)]
    assert ask(1) == [(b"one",)]
    assert session.status() == "HIT"


@pytest.mark.parametrize("mode", ["auto", "force_custom_plan", "force_generic_plan"])
def test_prepared_statements(table, other, mode):
    """A named statement of a client, executed with changing values through custom plans and past the change to a generic one."""
    table.execute(f"SET plan_cache_mode = {mode}")
    table.pgconn.prepare(b"s", b"SELECT b FROM t WHERE a = $1", [INT4])
    for run in range(20):
        number = run % 3 + 1
        assert table.pgconn.exec_prepared(b"s", [b"%d" % number]).get_value(0, 0) == b"row %d" % number
        assert table.status() == ("HIT" if run >= 3 else "MISS")
    other.execute("UPDATE t SET b = 'new ' || a")
    for run in range(20):
        number = run % 3 + 1
        assert table.pgconn.exec_prepared(b"s", [b"%d" % number]).get_value(0, 0) == b"new %d" % number
    other.execute("ALTER TABLE t ALTER a TYPE bigint")
    assert table.pgconn.exec_prepared(b"s", [b"2"]).get_value(0, 0) == b"new 2"


def test_a_placeholder_never_becomes_a_kept_plan(table):
    """With custom plans a named statement is served by placeholders; the generic plan that follows must be a real plan."""
    table.pgconn.prepare(b"s", b"SELECT b FROM t WHERE a = $1", [INT4])

    def run(number):
        return table.pgconn.exec_prepared(b"s", [b"%d" % number]).get_value(0, 0)

    for _ in range(3):
        assert run(1) == b"row 1"
    table.execute("SET plan_cache_mode = force_generic_plan")
    got, plans = plans_of(table, lambda: [run(number) for number in (1, 2, 1)])
    assert got == [b"row 1", b"row 2", b"row 1"] and plans == [False]
    table.execute("UPDATE t SET b = 'new'")
    assert run(1) == run(2) == b"new"


def test_own_writes(table):
    """Whoever has written to what an answer rests on gets no placeholder."""
    query = "SELECT count(*) FROM t"
    bound = "SELECT count(*) FROM t WHERE a > $1"
    warm(table, query)
    warm(table, bound, [0])
    table.execute("BEGIN; INSERT INTO t VALUES (100, 'own')")
    rows, plans = plans_of(table, lambda: table.rows(query))
    assert rows == [(11,)] and plans == [False]
    assert plans_of(table, lambda: exec_params(table, bound, [0])) == ([(b"11",)], [False])
    table.execute(query)
    assert (table.status(), table.reason()) == ("BYPASS", "own_writes")
    table.execute("ROLLBACK")
    # One in 256 servers has one place for both forms (`lookup::forms`), and so has forgotten this one.
    warm(table, query)
    assert plans_of(table, lambda: table.rows(query)) == ([(10,)], [True])
    assert exec_params(table, bound, [0]) == [(b"10",)]


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_an_older_snapshot(table, other, level):
    query = "SELECT sum(a) FROM t"
    bound = "SELECT sum(a) FROM t WHERE a > $1"
    warm(table, query)
    warm(table, bound, [0])
    table.execute(f"BEGIN ISOLATION LEVEL {level}; SELECT 1 FROM t")
    other.execute("UPDATE t SET a = a + 1")
    warm(other, query)
    warm(other, bound, [0])
    assert other.status() == "HIT"
    rows, plans = plans_of(table, lambda: table.rows(query))
    # The stored answer is current, but this snapshot is too old for it.
    assert rows == [(55,)] and plans == [False]
    assert exec_params(table, bound, [0]) == [(b"55",)]
    table.execute("COMMIT")
    assert table.rows(query) == [(65,)]
    assert exec_params(table, bound, [0]) == [(b"65",)]


CHANGES = {
    "a column more": ("ALTER TABLE t ADD COLUMN c int DEFAULT 7", "SELECT * FROM t WHERE a = 1", (1, "row 1", 7)),
    "a column less": ("ALTER TABLE t DROP COLUMN b", "SELECT * FROM t WHERE a = 1", (1,)),
    "another name": ("ALTER TABLE t RENAME b TO c", "SELECT * FROM t WHERE a = 1", (1, "row 1")),
    "another type": ("ALTER TABLE t ALTER a TYPE numeric USING a + 0.5", "SELECT max(a)::text FROM t", ("10.5",)),
    "another table": ("DROP TABLE t CASCADE; CREATE TABLE t AS SELECT 1 AS a, 'other'::text AS b",
                      "SELECT b FROM t WHERE a = 1", ("other",)),
    "another view": ("CREATE OR REPLACE VIEW v AS SELECT a, b || '!' AS b FROM t", "SELECT b FROM v WHERE a = 1",
                     ("row 1!",)),
    "no rows": ("TRUNCATE t; INSERT INTO t VALUES (1, 'only')", "SELECT b FROM t WHERE a = 1", ("only",)),
    "an index": ("CREATE INDEX ON t (a)", "SELECT b FROM t WHERE a = 1", ("row 1",)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("who", ["the same session", "another"])
def test_changed_definitions(table, other, change, who):
    ddl, query, row = CHANGES[change]
    table.execute("CREATE VIEW v AS SELECT a, b FROM t" if "v" in query.split() else "SELECT 1")
    warm(table, query, times=3)
    (table if who == "the same session" else other).execute(ddl)
    with other.cursor() as plain:
        plain.execute("SET pg_arrow_cache.enabled = off")
        names = [column.name for column in plain.execute(query).description]
    with Plans(table) as plans:
        for expected in (False, False, True):
            cursor = table.execute(query)
            assert cursor.fetchall() == [row] and [column.name for column in cursor.description] == names
            assert plans.take() == [expected]


def test_constants_that_the_judgement_looks_at(table):
    """The constant of current_setting() decides whether a statement is eligible, although a form leaves out constants
    otherwise."""
    known = "SELECT current_setting('{}'), a FROM t WHERE a = 1"
    table.execute("SET my.own = 'mine'; SET application_name = 'first'")
    for name, value in (("my.own", "mine"), ("application_name", "first"), ("TimeZone", None), ("my.own", "mine")):
        for _ in range(3):
            got = table.rows(known.format(name))[0][0]
            assert got == value or value is None
    table.execute("SET my.own = 'other'; SET application_name = 'second'")
    for name, value in (("my.own", "other"), ("application_name", "second")):
        assert table.rows(known.format(name)) == [(value, 1)]


def test_constants_that_name_a_relation(table):
    """A constant that is sent as a name is a number: the answer does not depend on what it names."""
    table.execute("CREATE TABLE u (a int)")
    query = "SELECT '{}'::regclass FROM t WHERE a = 1"
    for name, outcomes in (("pg_class", ["MISS", "HIT"]), ("u", ["MISS", "HIT", "HIT"]), ("pg_class", ["HIT"]), ("t", ["MISS", "HIT"])):
        for outcome in outcomes:
            assert table.rows(query.format(name)) == [(name,)]
            assert (name, table.status(), table.reason()) == (name, outcome, None)
    assert plans_of(table, lambda: table.rows(query.format("u"))) == ([("u",)], [True])
    table.execute("ALTER TABLE u RENAME TO renamed")
    assert table.rows(query.format("renamed")) == [("renamed",)]
    table.execute("ALTER TABLE renamed RENAME TO u")
    assert table.rows(query.format("u")) == [("u",)]
    table.execute("DROP TABLE u")
    with pytest.raises(psycopg.errors.UndefinedTable):
        table.execute(query.format("u"))


def test_settings_of_the_session(table):
    table.execute("CREATE TABLE d AS SELECT '2024-03-02'::date AS d, 0.1::float8 + 0.2 AS f, '\\x61'::bytea AS y")
    query = "SELECT d::text, f::text, y::text FROM d WHERE d > '01/02/2024'"
    answers = {}
    for _ in range(4):
        for style in ("ISO, DMY", "German, DMY", "SQL, MDY"):
            for digits in (-3, 1):
                for output in ("hex", "escape"):
                    table.execute(f"SET datestyle = {style}; SET extra_float_digits = {digits}; SET bytea_output = {output}")
                    rows = table.rows(query)
                    assert answers.setdefault((style, digits, output), rows) == rows == table.uncached(query)
    assert len({str(rows) for rows in answers.values()}) == len(answers)


def test_hints_on_a_form_that_is_served(table):
    query = "SELECT b FROM t WHERE a = 1"
    warm(table, query)
    table.execute(f"/*+ no_arrow_cache */ {query}")
    assert (table.status(), table.reason()) == ("BYPASS", "no_cache_hint")
    table.execute(query)
    assert table.status() == "HIT"
    table.execute("SET pg_arrow_cache.enabled = off")
    assert plans_of(table, lambda: table.rows(query)) == ([("row 1",)], [False])
    assert table.status() == "BYPASS"


def test_several_statements_in_one_string(table):
    """Each statement has a position of its own in the string, a write among them outdates what was stored, and the
    string is one transaction."""
    one, two = "SELECT b FROM t WHERE a = 1", "SELECT b FROM t WHERE a = 2"
    for query in (one, two):
        warm(table, query)
    text = f"{one}; {two};  {one};UPDATE t SET b = 'new' WHERE a = 1; {one}; {two}"

    def ask():
        cursor, results = table.execute(text), []
        while True:
            if cursor.description:
                results.append(cursor.fetchall())
            if not cursor.nextset():
                return results

    got, plans = plans_of(table, ask)
    assert got == [[("row 1",)], [("row 2",)], [("row 1",)], [("new",)], [("row 2",)]]
    assert plans[:3] == [True] * 3
    assert table.rows(one) == [("new",)] and table.rows(two) == [("row 2",)]


def test_a_query_that_a_rule_adds(table, wire):
    """A statement that a rule has turned into several runs them all in one portal, from plans that were all made before."""
    query = "SELECT count(*), max(a) FROM t WHERE a > 8"
    table.execute("CREATE TABLE u (x int)")
    table.execute(f"CREATE RULE more AS ON INSERT TO u DO ALSO ({query}; {query})")
    client = wire()
    client.query("SET pg_arrow_cache.enabled = off")
    expected = client.query("INSERT INTO u VALUES (1)")
    assert data_rows(expected) == [[b"2", b"10"]] * 2
    client.query("SET pg_arrow_cache.enabled = on")
    for _ in range(3):
        client.query(query)
    assert client.status() == "HIT"
    assert [client.query("INSERT INTO u VALUES (1)") for _ in range(3)] == [expected] * 3


def test_describe_is_the_same(table, wire):
    """RowDescription, asked before Execute, of a plan and of a placeholder: names, tables and columns of origin, types."""
    table.execute("CREATE VIEW v AS SELECT a AS seen, b FROM t")
    table.execute("CREATE TABLE u (n numeric(10,2), c varchar(7), arr int[]); INSERT INTO u VALUES (1.5, 'x', '{1}')")
    client = wire()
    for query, values in (("SELECT a, b AS named, a + 1, a + 1 AS sum, 'text' AS x FROM t WHERE a = $1", [b"1"]),
                          ("SELECT seen, b, t.* FROM v JOIN t USING (b) WHERE seen = $1", [b"1"]),
                          ("SELECT *, u.n * 2, c || 'y', u FROM u WHERE n > $1", [b"0"])):
        answers = []
        for _ in range(4):
            client.parse(query).bind(values).describe().execute()
            answers.append(client.sync())
        descriptions = [[m for m in answer if m.type == "T"] for answer in answers]
        assert len(descriptions[0]) == 1
        assert descriptions == descriptions[:1] * 4
        assert answers == answers[:1] * 4
    simple = "SELECT a, b AS named, a + 1 FROM t WHERE a = 1"
    assert len({tuple(client.query(simple)) for _ in range(4)}) == 1
    # The same query with another column name, or through a view: RowDescription differs.
    for text in ("SELECT a AS x FROM t WHERE a = 1", "SELECT a AS y FROM t WHERE a = 1", "SELECT seen AS x FROM v WHERE seen = 1"):
        client.query("SET pg_arrow_cache.enabled = off")
        expected = client.query(text)
        client.query("SET pg_arrow_cache.enabled = on")
        assert [client.query(text) for _ in range(3)] == [expected] * 3


@pytest.mark.parametrize("max_rows", [1, 3, 10, 11])
def test_row_limits(table, wire, max_rows):
    query = "SELECT a FROM t WHERE a > $1 ORDER BY a"
    client = wire()
    for _ in range(3):
        assert len(data_rows(client.parse(query).bind([b"0"]).execute().sync())) == 10
    client.query("BEGIN")
    client.parse(query).bind([b"0"], portal="p").step("2")
    rows = []
    while True:
        answer = client.execute("p", max_rows).step("s", "C")
        rows += data_rows(answer)
        if answer[-1].type == "C":
            break
    assert rows == [[b"%d" % n] for n in range(1, 11)]
    client.sync()
    assert client.status() == "HIT"
    client.query("COMMIT")


@pytest.mark.parametrize("between", ["SET search_path = pg_catalog", "SET datestyle = German", "INSERT INTO t VALUES (11, 'new')",
                                     "SET LOCAL pg_arrow_cache.enabled = off", "CREATE TABLE elsewhere (a int)",
                                     "CREATE INDEX ON elsewhere (a)"])
def test_several_binds_before_the_executes(table, wire, between):
    """What happens between a Bind and its Execute changes nothing for that portal: it has the snapshot and the plan of
    its Bind."""
    if "INDEX" in between:
        table.execute("CREATE TABLE elsewhere (a int)")
    query = "SELECT b FROM t WHERE a >= $1 ORDER BY a LIMIT 2"
    client = wire()
    for _ in range(3):
        for value in (b"1", b"4"):
            client.parse(query).bind([value]).execute().sync()
    client.query("BEGIN")
    client.parse(query, "s")
    for portal, value in (("x", b"1"), ("y", b"4"), ("z", b"9")):
        client.bind([value], portal=portal, name="s")
    client.parse(between).bind().execute()
    for portal in "xyz":
        client.execute(portal)
    answer = client.sync()
    assert "E" not in types(answer)
    assert data_rows(answer) == [[b"row 1"], [b"row 2"], [b"row 4"], [b"row 5"], [b"row 9"], [b"row 10"]]
    client.query("ROLLBACK")


def test_pipeline(table, other):
    """Statements of a pipeline before and after a change of a definition and of rows, all sent before any answer is read."""
    query = "SELECT * FROM t WHERE a = %s"
    for _ in range(3):
        table.execute(query, (1,))
    with table.pipeline():
        before = [table.execute(query, (1,)) for _ in range(3)]
        table.execute("ALTER TABLE t ADD COLUMN c int DEFAULT 5")
        after = [table.execute(query, (1,)) for _ in range(3)]
        table.execute("UPDATE t SET c = 6 WHERE a = 1")
        last = [table.execute(query, (1,)) for _ in range(3)]
    assert [cursor.fetchall() for cursor in before] == [[(1, "row 1")]] * 3
    assert [cursor.fetchall() for cursor in after] == [[(1, "row 1", 5)]] * 3
    assert [cursor.fetchall() for cursor in last] == [[(1, "row 1", 6)]] * 3
    assert other.rows(query, (1,)) == table.rows(query, (1,)) == [(1, "row 1", 6)]


def test_update_of_the_current_row_of_a_named_portal(table, wire):
    """A portal whose current row can be updated is not served, even if other statements of its form were."""
    query = "SELECT a FROM t WHERE a > $1"
    client = wire()
    for _ in range(3):
        client.parse(query).bind([b"4"]).execute().sync()
    client.query("BEGIN")
    client.parse(query).bind([b"4"], portal="c").execute("c", 1).step("s")
    answer = client.parse("UPDATE t SET b = 'current' WHERE CURRENT OF c").bind().execute().sync()
    assert "E" not in types(answer), answer[-2].body
    client.query("COMMIT")
    assert client.value("SELECT a FROM t WHERE b = 'current'") == "5"


def test_a_real_plan_in_place_of_a_placeholder_outlives_its_message(table, wire):
    """A portal that is planned at its Bind can be read and described after the memory of that message was reused."""
    table.execute("CREATE VIEW v AS SELECT a AS seen_as_a, b AS seen_as_b FROM t")
    query = "SELECT seen_as_a, seen_as_b || $2 AS joined FROM v WHERE seen_as_a > $1 ORDER BY seen_as_a"
    client = wire()
    values = [b"4", b"!" * 500]
    for _ in range(3):
        client.parse(query).bind(values).execute().sync()
    client.query("BEGIN; INSERT INTO t VALUES (100, 'own')")
    client.parse(query).bind(values, portal="p").describe("p").execute("p", 1)
    first = client.step("s")
    for number in range(30):
        client.parse(f"SELECT {', '.join(f'a + {number + i} AS x{i}' for i in range(40))} FROM t").bind().execute()
        client.step("C")
    rest = client.describe("p").execute("p").step("C")
    assert [m for m in first if m.type == "T"] == [m for m in rest if m.type == "T"]
    numbers = [row[0] for row in data_rows(first) + data_rows(rest)]
    assert numbers == [b"5", b"6", b"7", b"8", b"9", b"10", b"100"]
    assert all(row[1].endswith(b"!" * 500) for row in data_rows(rest))
    client.sync()
    client.query("ROLLBACK")


def test_auto_explain_of_a_plan_in_place_of_a_placeholder(table, wire):
    """auto_explain prints a portal's plan when the portal ends, with names that came with its query: by then many messages
    may have passed since its Bind."""
    table.execute("CREATE TABLE u AS SELECT a AS first_column_of_u, b AS second_column_of_u FROM t")
    query = ("SELECT name_of_t.a, name_of_u.second_column_of_u FROM t AS name_of_t JOIN u AS name_of_u"
             " ON a = first_column_of_u AND second_column_of_u <> $2 WHERE first_column_of_u > $1")
    client = wire(client_min_messages="log")
    client.query("LOAD 'auto_explain'; SET auto_explain.log_verbose = on; SET auto_explain.log_min_duration = 0")
    values = [b"4", b"another value"]

    def explained(begin):
        """The output of auto_explain when a portal ends that was bound many messages earlier."""
        client.query(begin)
        client.parse(query).bind(values, portal="p").execute("p", 1).step("s")
        for number in range(30):
            client.parse(f"SELECT {', '.join(f'{number + i} AS overwriting_{i}' for i in range(40))}").bind().execute()
            client.step("C")
        client.sync()
        client.close_portal("p").add(b"S").send()
        notices = []
        while (message := client.read()).type != "Z":
            notices.append(message.body.decode()) if message.type == "N" else None
        client.query("ROLLBACK")
        plans = [re.search(r"\n((?:.*Join|.*Loop)(?:.|\n)*?)\0", notice) for notice in notices if "plan:" in notice]
        return [re.sub(r"\(cost=.*\)", "", plan[1]) for plan in plans if plan]

    begin = "BEGIN; INSERT INTO t VALUES (100, 'own')"
    expected = explained(f"SET pg_arrow_cache.enabled = off; {begin}")
    assert len(expected) == 1 and "name_of_u.second_column_of_u" in expected[0]
    client.query("SET pg_arrow_cache.enabled = on")
    for _ in range(3):
        client.parse(query).bind(values).execute().sync()
    assert client.status() == "HIT"
    assert explained(begin) == expected


def test_errors_of_a_statement_that_had_a_placeholder(table, other):
    """A statement whose table is gone, or may not be read any more, gets its error and not the answer."""
    query = "SELECT b FROM t WHERE a = 1"
    warm(table, query, times=3)
    other.execute("ALTER TABLE t RENAME TO hidden")
    with pytest.raises(psycopg.errors.UndefinedTable):
        table.execute(query)
    other.execute("ALTER TABLE hidden RENAME TO t")
    assert table.rows(query) == [("row 1",)]
    other.execute("ALTER TABLE t RENAME b TO c")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        table.execute(query)


def test_savepoints(table):
    query = "SELECT count(*) FROM t"
    warm(table, query, times=3)
    table.execute("BEGIN; SAVEPOINT s; DELETE FROM t WHERE a = 1")
    assert table.rows(query) == [(9,)]
    table.execute("ROLLBACK TO s")
    assert table.rows(query) == [(10,)]
    table.execute("SAVEPOINT s; ALTER TABLE t ADD COLUMN c int; ROLLBACK TO s")
    assert table.rows("SELECT * FROM t WHERE a = 1") == [(1, "row 1")]
    table.execute("COMMIT")
    assert table.rows(query) == [(10,)]
