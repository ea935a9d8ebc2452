"""After five executions of a prepared statement the server compares what its plans for single values have cost with what a plan for all values
would cost. A hit without planning must not change what it chooses: a plan for all values may read tables that the user may not read, and
that a plan for these values leaves out."""

import pytest
from psycopg import pq

TEXT = b"SELECT b, row_number() OVER (ORDER BY b) FROM t WHERE a = $2::int AND ($1::bool OR b IN (SELECT id FROM forbidden))"
EXECUTIONS = 9


def executed(session, name, value):
    """How many rows came, or which error."""
    values = [value] if name == b"forbidden" else [b"t", value]
    result = session.pgconn.exec_prepared(name, values)
    return result.ntuples if result.status == pq.ExecStatus.TUPLES_OK else result.error_field(pq.DiagnosticField.SQLSTATE)


def test_costs_of_another_value(connect):
    owner = connect()
    owner.execute("CREATE TABLE t AS SELECT CASE WHEN g % 1000 = 0 THEN 2 ELSE 1 END AS a, g AS b FROM generate_series(1, 20000) g")
    owner.execute("CREATE TABLE forbidden (id int)")
    owner.execute("ANALYZE t, forbidden")
    owner.execute("DROP ROLE IF EXISTS plan_reader")
    owner.execute("CREATE ROLE plan_reader")
    try:
        owner.execute(f"GRANT USAGE ON SCHEMA {connect.schema} TO plan_reader; GRANT SELECT ON t TO plan_reader")
        answers, kinds, statuses = {}, {}, []
        for enabled in "off", "on":
            reader = connect()
            reader.execute("SET ROLE plan_reader")
            reader.execute(f"SET pg_arrow_cache.enabled = {enabled}")
            # A template with the high costs of the frequent value.
            reader.pgconn.prepare(b"frequent", TEXT)
            for _ in range(3):
                assert executed(reader, b"frequent", b"1") == 19980
            reader.pgconn.prepare(b"rare", TEXT)
            answers[enabled] = []
            for _ in range(EXECUTIONS):
                answers[enabled].append(executed(reader, b"rare", b"2"))
                statuses += [reader.status()] if enabled == "on" else []
            kinds[enabled] = reader.rows("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'rare'")
        assert answers["off"] == [20] * EXECUTIONS
        assert answers["on"] == answers["off"]
        assert kinds["on"] == kinds["off"]
        assert "HIT" in statuses
    finally:
        owner.execute("DROP OWNED BY plan_reader; DROP ROLE plan_reader")


# What raises an error for some values is computed by the planner where it plans for these values, and not at all in a plan for all of them: no row asks for it.
FAILING = b"SELECT b, CASE WHEN b < 0 THEN 1 / $1::int ELSE 0 END, row_number() OVER (ORDER BY b) FROM t WHERE a = $2::int"
# NULL as a value lets the planner drop what it is computed with.
DROPPED = b"SELECT b, 1 / (b - 2000) + $1::int, row_number() OVER (ORDER BY b) FROM t WHERE a = $2::int"


@pytest.mark.parametrize(("text", "usual", "last"), [(FAILING, b"7", b"0"), (DROPPED, None, None)], ids=["computed", "dropped"])
@pytest.mark.parametrize(("template", "value"), [(b"1", b"2"), (b"2", b"1")], ids=["rare", "frequent"])
def test_errors_of_the_chosen_plan(connect, text, usual, last, template, value):
    owner = connect()
    owner.execute("CREATE TABLE t AS SELECT CASE WHEN g % 1000 = 0 THEN 2 ELSE 1 END AS a, g AS b FROM generate_series(1, 20000) g; ANALYZE t")
    answers, statuses = {}, []
    for enabled in "off", "on":
        reader = connect(f"-c pg_arrow_cache.enabled={enabled}")

        def run(name, *values):
            result = reader.pgconn.exec_prepared(name, values)
            return result.ntuples if result.status == pq.ExecStatus.TUPLES_OK else result.error_field(pq.DiagnosticField.SQLSTATE)

        reader.pgconn.prepare(b"template", text)
        for _ in range(3):
            run(b"template", usual, template)
        reader.pgconn.prepare(b"asked", text)
        answers[enabled] = []
        for execution in range(12):
            answers[enabled].append(run(b"asked", usual if execution < 7 else last, value))
            statuses += [reader.status()] if enabled == "on" else []
        answers[enabled] += reader.rows("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'asked'")
    assert answers["on"] == answers["off"]
    assert "HIT" in statuses


@pytest.mark.parametrize("values", [(b"1", b"5"), (None, b"5")], ids=["true", "null"])
def test_an_answer_of_the_other_kind_of_plan(connect, values):
    """A plan for these values has dropped what divides by zero, and a plan for all values has not: each kind has its own answers."""
    session = connect()
    session.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(0, 3) g")
    texts = {b"1": b"SELECT a FROM t WHERE (1 / a > -1 OR $1::int = 1) AND a < $2::int", None: b"SELECT 1 / a + $1::int FROM t WHERE a < $2::int"}
    session.pgconn.prepare(b"asked", texts[values[0]])

    def run(kind):
        session.execute(f"SET plan_cache_mode = force_{kind}_plan")
        result = session.pgconn.exec_prepared(b"asked", values)
        return result.ntuples if result.status == pq.ExecStatus.TUPLES_OK else result.error_field(pq.DiagnosticField.SQLSTATE)

    assert [run("custom") for _ in range(3)] == [4] * 3
    assert session.status() == "HIT"
    assert [run("generic"), run("custom")] == [b"22012", 4]
    assert session.status() == "HIT"


# Queries whose columns may fail, and whether the kind of plan can show in that. All of them are asked with values by Bind.
ONE_ROW = "SELECT sum(1000 / b) FROM t WHERE a = $1::int"
SHAPES = [
    (ONE_ROW, True),
    ("SELECT avg(t.b * u.b), count(*), 1 + max(t.b) FROM t JOIN t u USING (b) WHERE t.a = $1::int", True),
    ("SELECT sum(1000 / b) FILTER (WHERE b > 5 + 1) FROM t WHERE a BETWEEN $1::int AND 9", True),
    ("SELECT sum(1000 / b) FROM t WHERE 1000 / b > 0 AND a = $1::int", False),
    ("SELECT sum(b / $1::int) FROM t", False),
    ("SELECT sum(CASE WHEN b < 0 THEN 1 / $1::int ELSE 0 END) FROM t", False),
    ("SELECT sum(1000 / x) FROM (SELECT $1::int AS x, b FROM t) s", False),
    ("SELECT sum(1000 / x) FROM t, LATERAL (SELECT $1::int + b AS x) s", False),
    ("SELECT sum(b / x) FROM t, abs($1::int) x", False),
    ("SELECT sum(1000 / b) FROM t WHERE a = $1::int GROUP BY a", False),
    ("SELECT sum(1000 / b) FROM t WHERE a = $1::int HAVING max(b) > 0", False),
    ("SELECT sum(1000 / b) FROM t WHERE a = $1::int LIMIT 1", False),
    ("SELECT 1000 / b FROM t WHERE a = $1::int ORDER BY b", False),
    ("SELECT sum(1000 / b) OVER () FROM t WHERE a = $1::int", False),
    ("SELECT max(b) - (SELECT sum(1000 / b) FROM t WHERE a = $1::int) FROM t", False),
    ("WITH w AS MATERIALIZED (SELECT 1000 / b AS x FROM t WHERE a = $1::int) SELECT sum(x) FROM w", False),
]


def answer_of(session, query):
    """The first value and the number of rows."""
    result = session.pgconn.exec_params(query.encode(), [b"2"])
    assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
    return result.get_value(0, 0), result.ntuples


def is_spared(session, query):
    """Is the Bind of a query answered without planning, once that can be?"""
    for _ in range(4):
        answer = answer_of(session, query)
    assert session.status() == "HIT"
    notices = []
    session.add_notice_handler(lambda notice: notices.append(notice.message_detail or ""))
    session.execute("SET debug_print_plan = on")
    assert answer_of(session, query) == answer
    (plan,) = [notice for notice in notices if "PLANNEDSTMT" in notice]
    return "ArrowCachePlaceholder" in plan


@pytest.mark.parametrize(("query", "spared"), SHAPES, ids=range(len(SHAPES)))
def test_planning_is_spared(connect, query, spared):
    session = connect("-c client_min_messages=log")
    session.execute("CREATE TABLE t AS SELECT 1 + g % 3 AS a, g AS b FROM generate_series(1, 300) g")
    assert is_spared(session, query) == spared


@pytest.mark.parametrize("bad", [0, 1])
def test_errors_of_one_row(connect, bad):
    """Where planning is spared, a failing row fails in every kind of plan."""
    owner = connect()
    owner.execute("CREATE TABLE t AS SELECT CASE WHEN g % 1000 = 0 THEN 2 ELSE 1 END AS a, g AS b FROM generate_series(1, 20000) g; CREATE INDEX ON t (a)")
    owner.execute("ANALYZE t")
    for mode in "auto", "force_custom_plan", "force_generic_plan":
        answers = {}
        for enabled in "off", "on":
            session = connect(f"-c pg_arrow_cache.enabled={enabled} -c plan_cache_mode={mode}")
            session.pgconn.prepare(b"asked", ONE_ROW.encode())
            answers[enabled] = []
            for execution in range(12):
                if execution == 8:
                    owner.execute("INSERT INTO t VALUES (2, 0)" if bad else "INSERT INTO t VALUES (1, 0)")
                result = session.pgconn.exec_prepared(b"asked", [b"2"])
                fine = result.status == pq.ExecStatus.TUPLES_OK
                answers[enabled].append(result.get_value(0, 0) if fine else result.error_field(pq.DiagnosticField.SQLSTATE))
            owner.execute("DELETE FROM t WHERE b = 0")
        assert answers["on"] == answers["off"]
        assert (b"22012" in answers["on"]) == bool(bad), mode


# What a role calls that may not execute a built-in function, in a part that a plan for the value 1 drops: the query, and the functions.
FORBIDDEN = {
    "operator": ("SELECT a FROM t WHERE $1::int = 1 OR a < 3 ORDER BY a", "int4lt(int4, int4)"),
    "negator": ("SELECT a FROM t WHERE $1::int = 1 OR NOT a >= 3 ORDER BY a", "int4lt(int4, int4)"),
    "any": ("SELECT a FROM t WHERE $1::int = 1 OR b = ANY ('{1,2}') ORDER BY a", "int8eq(int8, int8)"),
    "cast": ("SELECT a, CASE WHEN $1::int = 1 THEN b ELSE a::int8 END AS n FROM t ORDER BY a", "int8(int4)"),
    "aggregate": ("SELECT a, CASE WHEN $1::int = 1 THEN 0 ELSE (SELECT max(u.a) FROM t u) END AS n FROM t ORDER BY a", "max(int4)"),
    "owner": ("SELECT a, CASE WHEN $1::int = 1 THEN 0 ELSE (SELECT min(u.a) FROM t u) END AS n FROM t ORDER BY a", "int4smaller(int4, int4)"),
    "window": ("SELECT a, CASE WHEN $1::int = 1 THEN 0 ELSE rank() OVER (ORDER BY a) END AS n FROM t ORDER BY a", "rank()"),
    "distinct": ("SELECT a FROM t WHERE EXISTS (SELECT DISTINCT b FROM t OFFSET 0) OR $1::int = 1 ORDER BY a", "int8eq(int8, int8)"),
    "hashed": ("SELECT a FROM t WHERE a IN (SELECT b FROM t) OR $1::int = 1 ORDER BY a", "int8eq(int8, int8)"),
    "transitive": ("SELECT a FROM t WHERE $1::int = 1 OR EXISTS (SELECT FROM t u JOIN s ON u.d = s.c WHERE u.b = s.c AND u.a = t.a) ORDER BY a",
                   "int28eq(int2, int8), int82eq(int8, int2)"),
    "view": ("SELECT a FROM few WHERE $1::int = 1 OR small ORDER BY a", "int4lt(int4, int4)"),
    "policy": ("SELECT a FROM t WHERE $1::int = 1 OR a IN (SELECT a FROM guarded) ORDER BY a", "int4lt(int4, int4)"),
    "one_row": ("SELECT max(a) FROM t WHERE $1::int = 1 OR a < 3", "int4lt(int4, int4)"),
}


@pytest.fixture
def forbidding(connect):
    """Lets nobody but superusers execute functions."""
    owner = connect()
    owner.execute("""
        CREATE TABLE t AS SELECT g AS a, g::int8 AS b, g::int2 AS d FROM generate_series(1, 4) g;
        CREATE TABLE s AS SELECT g AS c FROM generate_series(1, 4) g;
        CREATE VIEW few AS SELECT a, a < 3 AS small FROM t;
        CREATE TABLE guarded AS TABLE t;
        ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
        CREATE POLICY small ON guarded USING (a < 3);
        CREATE ROLE kept_out;
        ALTER AGGREGATE pg_catalog.min(int4) OWNER TO kept_out
    """)
    owner.execute(f"GRANT USAGE ON SCHEMA {connect.schema} TO kept_out; GRANT SELECT ON ALL TABLES IN SCHEMA {connect.schema} TO kept_out")
    withdrawn = []

    def withdraw(functions):
        withdrawn.append(functions)
        owner.execute(f"REVOKE EXECUTE ON FUNCTION {functions} FROM PUBLIC")

    yield withdraw
    for functions in withdrawn:
        owner.execute(f"GRANT EXECUTE ON FUNCTION {functions} TO PUBLIC")
    owner.execute("ALTER AGGREGATE pg_catalog.min(int4) OWNER TO CURRENT_USER; DROP OWNED BY kept_out; DROP ROLE kept_out")


def answers_of_kinds(reader, kinds):
    """How many rows came for the value 1, or which error, in these kinds of plans."""
    answers = []
    for kind in kinds:
        reader.execute(f"SET plan_cache_mode = force_{kind}_plan")
        answers.append(executed(reader, b"forbidden", b"1"))
    return answers


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_forbidden_function(connect, forbidding, name):
    """A plan for this value has dropped what the role may not execute, and a plan for all values has not."""
    query, functions = FORBIDDEN[name]
    forbidding(functions)
    answers = {}
    for enabled in "off", "on":
        reader = connect(f"-c role=kept_out -c pg_arrow_cache.enabled={enabled}")
        reader.pgconn.prepare(b"forbidden", query.encode())
        answers[enabled] = answers_of_kinds(reader, ["custom", "custom", "custom", "generic", "custom"])
    rows = 1 if name == "one_row" else 4
    assert answers["off"] == [rows, rows, rows, b"42501", rows]
    assert answers["on"] == answers["off"]
    assert reader.status() == "HIT"


def test_a_function_forbidden_later(connect, forbidding):
    """What a session knows of rights holds until one changes, also if the change is rolled back."""
    query, functions = FORBIDDEN["operator"]
    owner, reader = connect(), connect("-c role=kept_out")
    reader.pgconn.prepare(b"forbidden", query.encode())
    kinds = ["custom", "custom", "generic", "custom"]
    assert answers_of_kinds(reader, kinds) == [4] * 4
    forbidding(functions)
    reader.execute("DEALLOCATE ALL")
    reader.pgconn.prepare(b"forbidden", query.encode())
    assert answers_of_kinds(reader, kinds) == [4, 4, b"42501", 4]
    with pytest.raises(ZeroDivisionError), owner.transaction():
        owner.execute(f"GRANT EXECUTE ON FUNCTION {functions} TO PUBLIC; SET ROLE kept_out")
        owner.pgconn.prepare(b"forbidden", query.encode())
        assert answers_of_kinds(owner, kinds) == [4] * 4
        raise ZeroDivisionError
    owner.execute("SET ROLE kept_out; DEALLOCATE ALL")
    owner.pgconn.prepare(b"forbidden", query.encode())
    assert answers_of_kinds(owner, kinds) == [4, 4, b"42501", 4]


# Each takes a value that lets the planner leave one branch, or one side, and how many rows are read. A plan for all values gives the column no modifier.
TYPES = {
    "case": ("SELECT CASE WHEN $1::bool THEN v5 ELSE v9 END FROM t WHERE id < $2::int", b"t"),
    "case-else": ("SELECT CASE WHEN $1::bool THEN v5 END FROM t WHERE id < $2::int", b"t"),
    "sub-query": ("SELECT max(id), x FROM (SELECT id, CASE WHEN $1::bool THEN v5 ELSE v9 END AS x FROM t) s WHERE id < $2::int GROUP BY x", b"f"),
    "coalesce": ("SELECT coalesce($1::text::varchar, v5) FROM t WHERE id < $2::int", None),
    "numeric": ("SELECT coalesce($1::int::numeric, n) FROM t WHERE id < $2::int", None),
    "sides": ("SELECT x FROM (SELECT 1 AS k, id, v5 AS x FROM t UNION ALL SELECT 2, id, v9 FROM t) s WHERE k = $1::int AND id < $2::int", b"1"),
    "nested sides": ("SELECT x FROM (SELECT 1 AS k, id, v9 AS x FROM t UNION ALL (SELECT 2, id, v9 FROM t UNION ALL SELECT 3, id, v5 FROM t)) s "
                     "WHERE k = $1::int AND id < $2::int", b"3"),
    "function": ("SELECT pick($1::bool, v5, v9) FROM t WHERE id < $2::int", b"t"),
    "hidden": ("SELECT CASE WHEN $1::bool THEN coalesce(v5, NULL) ELSE v END FROM t WHERE id < $2::int", b"t"),
    "hidden side": ("SELECT x FROM (SELECT 1 AS k, id, coalesce(v5, NULL) AS x FROM t UNION ALL SELECT 2, id, v FROM t) s "
                    "WHERE k = $1::int AND id < $2::int", b"1"),
    "nullif": ("SELECT nullif(c, $1::text COLLATE \"POSIX\") FROM t WHERE id < $2::int", None),
    "collations": ("SELECT CASE WHEN $1::bool THEN c ELSE u END FROM t WHERE id < $2::int", b"t"),
    "collations of sides": ("SELECT x FROM (SELECT 1 AS k, id, c AS x FROM t UNION ALL SELECT 2, id, u FROM t) s WHERE k = $1::int AND id < $2::int", b"2"),
    "view": ("SELECT coalesce(n, 0) FROM v WHERE wanted = $1::bool AND id < $2::int", b"t"),
    "function in a branch": ("SELECT CASE WHEN $1::bool THEN same(v5) ELSE same(v9) END FROM t WHERE id < $2::int", b"t"),
}


@pytest.mark.parametrize(("template", "value"), [(b"10", b"40000"), (b"40000", b"10")], ids=["cheap", "expensive"])
@pytest.mark.parametrize("name", TYPES)
def test_types_of_the_chosen_plan(connect, name, template, value):
    """The type of a column tells the kind of the plan, and a table that is made of the answer keeps it."""
    text, choice = TYPES[name]
    owner = connect()
    owner.execute("CREATE TABLE t (id int PRIMARY KEY, v5 varchar(5), v9 varchar(9), n numeric(7, 2), "
                  "c text COLLATE \"C\", u text COLLATE \"POSIX\", v varchar); "
                  "INSERT INTO t SELECT g, 'a', 'b', 1, 'c', 'u', 'v' FROM generate_series(1, 50000) g; "
                  "CREATE VIEW v AS SELECT id, n, id > 0 AS wanted FROM t")
    owner.execute("VACUUM ANALYZE t")
    owner.execute("CREATE FUNCTION pick(bool, varchar, varchar) RETURNS varchar LANGUAGE sql IMMUTABLE RETURN CASE WHEN $1 THEN $2 ELSE $3 END; "
                  "CREATE FUNCTION same(varchar) RETURNS varchar LANGUAGE sql IMMUTABLE RETURN $1")
    answers, statuses = {}, []
    for enabled in "off", "on":
        # By the index whatever the value is: the plans have the same facts, and other costs.
        reader = connect(f"-c pg_arrow_cache.enabled={enabled} -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off")

        def run(statement, bound):
            result = reader.pgconn.exec_prepared(statement, [choice, bound])
            assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
            return result.ntuples, result.fmod(result.nfields - 1)

        if enabled == "on":
            reader.pgconn.prepare(b"first", text.encode())
            run(b"first", value)
            run(b"first", template)
        reader.pgconn.prepare(b"template", text.encode())
        for _ in range(3):
            run(b"template", template)
        reader.pgconn.prepare(b"asked", text.encode())
        answers[enabled] = []
        for _ in range(9):
            answers[enabled].append(run(b"asked", value))
            statuses += [reader.status()] if enabled == "on" else []
        answers[enabled] += reader.rows("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'asked'")
        literal = "NULL" if choice is None else f"'{choice.decode()}'"
        made = reader.pgconn.exec_(f"CREATE TEMP TABLE made AS EXECUTE asked({literal}, '{value.decode()}')".encode())
        answers[enabled].append(made.error_field(pq.DiagnosticField.SQLSTATE))
        answers[enabled] += reader.rows("SELECT attname, atttypmod, attcollation FROM pg_attribute WHERE attrelid = to_regclass('made') AND attnum > 0")
    assert answers["on"] == answers["off"]
    assert "HIT" in statuses


def test_each_kind_of_plan_has_answers_with_its_types(session):
    session.execute("CREATE TABLE t AS SELECT g AS id, 'a'::varchar(5) AS v5, 'b'::varchar(9) AS v9 FROM generate_series(1, 30) g")
    session.pgconn.prepare(b"asked", TYPES["case"][0].encode())
    found = []
    for kind in ("custom", "generic") * 3:
        session.execute(f"SET plan_cache_mode = force_{kind}_plan")
        result = session.pgconn.exec_prepared(b"asked", [b"t", b"10"])
        found.append((result.fmod(0), session.status()))
    assert found == [(9, "MISS"), (-1, "MISS")] + [(9, "HIT"), (-1, "HIT")] * 2


# Queries in which nothing may fail. A Bind of those that are known not to show the kind of the plan is not planned; one of all others is.
KNOWN = [
    ("SELECT coalesce(v5, '') FROM t WHERE id < $1::int", True),
    ("SELECT CASE WHEN id > 3 THEN v5 END FROM t WHERE id < $1::int", True),
    ("SELECT coalesce(x, '') FROM (SELECT id, coalesce($1::int::text::varchar, v5) AS x FROM t) s WHERE id < 10", False),
    ("SELECT CASE WHEN id < $1::int THEN 1 ELSE 0 END FROM t", True),
    ("SELECT coalesce(s.id, 0) FROM (SELECT id FROM t) s WHERE id < $1::int", True),
    ("SELECT id = ANY (ARRAY[$1::int, 3]), v5 IS NULL FROM t WHERE NOT (id > 9 AND v5 > '')", True),
    ("SELECT rank() OVER (PARTITION BY v5 ORDER BY id) FROM t WHERE id < $1::int", True),
    ("SELECT v5, count(*), min(id) FROM t LEFT JOIN (SELECT id AS other FROM t) s ON other = id WHERE id < $1::int GROUP BY v5", True),
    ("SELECT id, v5 FROM t WHERE id < $1::int UNION ALL SELECT id, v5 FROM t", True),
    ("WITH w AS MATERIALIZED (SELECT id FROM t WHERE id < $1::int) SELECT count(*) FROM w", True),
    ("SELECT id FROM t, (VALUES (1), (2)) v(x) WHERE id = x AND id < $1::int", True),
    ("SELECT id FROM t, (VALUES (1), ($1::int)) v(x) WHERE id = x", False),
    ("SELECT row(id, v5) FROM t WHERE id < $1::int", False),
    ("WITH RECURSIVE r AS (SELECT id FROM t WHERE id < $1::int UNION ALL SELECT t.id FROM r, t WHERE t.id = r.id) "
     "CYCLE id SET again USING path SELECT id FROM r", False),
]


@pytest.mark.parametrize(("query", "spared"), KNOWN, ids=range(len(KNOWN)))
def test_planning_is_spared_where_the_kind_is_known_not_to_show(connect, query, spared):
    session = connect("-c client_min_messages=log")
    session.execute("CREATE TABLE t AS SELECT g AS id, 'a'::varchar(5) AS v5 FROM generate_series(1, 30) g")
    assert is_spared(session, query) == spared


# Queries whose rows, or whether they fail, show the kind of the plan.
KINDS = {
    "grouping sets": ("SELECT a, coalesce($1::int, -1) AS y, count(*) FROM g WHERE id < 10 GROUP BY ROLLUP (a, $1::int) ORDER BY 1, 2", b"5"),
    "grouping sets below": ("SELECT a, y FROM (SELECT a, coalesce($1::int, -1) AS y FROM g WHERE id < 10 GROUP BY ROLLUP (a, $1::int)) s ORDER BY 1, 2", b"5"),
    "order by nullif": ("SELECT d FROM w ORDER BY nullif(d, $1::text COLLATE \"C\")", None),
    "sum of floats": ("SELECT sum(f) FROM o WHERE a = $1::int", b"1"),
}


@pytest.mark.parametrize("first", ["custom", "generic"])
@pytest.mark.parametrize("query, value", KINDS.values(), ids=KINDS)
def test_rows_of_each_kind_of_plan(connect, query, value, first):
    owner = connect()
    owner.execute("CREATE TABLE g AS SELECT g AS id, g % 3 AS a FROM generate_series(1, 100) g; "
                  "CREATE TABLE w AS SELECT d COLLATE \"und-x-icu\" AS d FROM unnest(ARRAY['a', 'B', 'c']) d; "
                  "CREATE TABLE o AS SELECT 1 AS a, CASE WHEN g % 2 = 0 THEN g ELSE 100000 + g END AS ord, CASE WHEN g % 2 = 0 THEN 1e308 ELSE -1e308 END::float8 AS f "
                  "FROM generate_series(1, 20000) g; INSERT INTO o SELECT 1 + g, 0, 0 FROM generate_series(1, 20000) g; CREATE INDEX ON o (a, ord)")
    owner.execute("VACUUM ANALYZE g, w, o")
    second = "generic" if first == "custom" else "custom"

    def run(enabled, kind):
        options = f"-c enable_bitmapscan=off -c jit=off -c max_parallel_workers_per_gather=0 -c plan_cache_mode=force_{kind}_plan"
        session = connect(f"{options} -c pg_arrow_cache.enabled={enabled}")
        session.pgconn.prepare(b"asked", query.encode())
        result = session.pgconn.exec_prepared(b"asked", [value])
        if result.status != pq.ExecStatus.TUPLES_OK:
            return result.error_field(pq.DiagnosticField.SQLSTATE)
        return [tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]

    expected = {kind: run("off", kind) for kind in (first, second)}
    assert expected[first] != expected[second]
    for kind in (first, first, second, second, first):
        assert run("on", kind) == expected[kind]
