"""A prepared statement runs plans for single values, and later perhaps one plan for all values. Which of them is the server's choice, so an answer is given
to a statement of either kind, whichever has computed it: also where the other kind would raise an error, or reads tables that the user may not read. What
stays is that a described portal has the columns that it was described with."""

import psycopg
import pytest
from psycopg import pq

KINDS = ("custom", "generic")


def run(session, values, name=b"asked"):
    """How many rows came, or which error."""
    result = session.pgconn.exec_prepared(name, values)
    return result.ntuples if result.status == pq.ExecStatus.TUPLES_OK else result.error_field(pq.DiagnosticField.SQLSTATE)


def run_as(session, kind, values):
    session.execute(f"SET plan_cache_mode = force_{kind}_plan")
    return run(session, values)


# Each with values, what a plan for these gives, and what a plan for all values gives.
STATEMENTS = {
    "safe": ("SELECT a, count(*) FROM t WHERE a < $1::int GROUP BY a", [b"5"], 4, 4),
    "columns that may fail": ("SELECT sum(10 / (a + 1)), a::text::int FROM t WHERE a < $1::int GROUP BY a", [b"5"], 4, 4),
    "a row that may fail": ("SELECT sum(10 / (a + 1)) FROM t WHERE 10 / (a + 1) > 0 AND a < $1::int", [b"5"], 1, 1),
    "dropped by a value": ("SELECT a FROM t WHERE (1 / a > -1 OR $1::int = 1) AND a < $2::int", [b"1", b"5"], 4, b"22012"),
    "dropped by NULL": ("SELECT 1 / a + $1::int FROM t WHERE a < $2::int", [None, b"5"], 4, b"22012"),
    "dropped table": ("SELECT a FROM t WHERE $1::bool OR a IN (SELECT a FROM t u)", [b"t"], 4, 4),
    "branches": ("SELECT CASE WHEN $1::bool THEN a ELSE 1 / a END FROM t", [b"t"], 4, 4),
    "function in SQL": ("SELECT a, twice(a + $1::int) FROM t", [b"1"], 4, 4),
    "grouping sets": ("SELECT a, count(*) FROM t WHERE a < $1::int GROUP BY ROLLUP (a)", [b"5"], 5, 5),
}


@pytest.fixture
def table(connect):
    owner = connect()
    owner.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(0, 3) g; "
                  "CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql STABLE RETURN $1 * 2")
    return owner


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_that_goes_on_to_plans_for_all_values_keeps_hitting(connect, table, name):
    text, values, rows, _ = STATEMENTS[name]
    session = connect("-c plan_cache_mode=force_custom_plan")
    session.pgconn.prepare(b"asked", text.encode())
    assert (run(session, values), session.status()) == (rows, "MISS")
    for kind in KINDS * 2:
        assert (run_as(session, kind, values), session.status()) == (rows, "HIT"), kind


@pytest.mark.parametrize("name", STATEMENTS)
def test_an_answer_of_a_plan_for_all_values_is_given_to_plans_for_single_ones(connect, table, name):
    text, values, rows, of_all = STATEMENTS[name]
    session = connect("-c plan_cache_mode=force_generic_plan")
    session.pgconn.prepare(b"asked", text.encode())
    assert run(session, values) == of_all
    # No answer is stored of a plan that fails.
    first = "HIT" if of_all == rows else "MISS"
    assert (run_as(session, "custom", values), session.status()) == (rows, first)
    assert (run_as(session, "generic", values), session.status()) == (rows, "HIT")


def test_what_fails_in_every_plan_fails(connect, table):
    text, _, _, _ = STATEMENTS["dropped by a value"]
    session = connect()
    session.pgconn.prepare(b"asked", text.encode())
    for kind in KINDS * 2:
        assert run_as(session, kind, [b"2", b"5"]) == b"22012"


def is_spared(session, query, values):
    """Is the Bind of a query answered without planning, once that can be?"""
    for _ in range(4):
        result = session.pgconn.exec_params(query.encode(), values)
        assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
    assert session.status() == "HIT"
    notices = []
    session.add_notice_handler(lambda notice: notices.append(notice.message_detail or ""))
    session.execute("SET debug_print_plan = on")
    session.pgconn.exec_params(query.encode(), values)
    (plan,) = [notice for notice in notices if "PLANNEDSTMT" in notice]
    return "ArrowCachePlaceholder" in plan


@pytest.mark.parametrize("name", STATEMENTS)
def test_planning_is_spared_whatever_the_kind_would_show(connect, table, name):
    text, values, _, _ = STATEMENTS[name]
    assert is_spared(connect("-c client_min_messages=log"), text, values)


# Rights. What the role may not execute, or not read, stands in a part that a plan for the value 1 drops: the query, and the functions.
FORBIDDEN = {
    "operator": ("SELECT a FROM t WHERE $1::int = 1 OR a < 3 ORDER BY a", "int4lt(int4, int4)"),
    "cast": ("SELECT a, CASE WHEN $1::int = 1 THEN b ELSE a::int8 END AS n FROM t ORDER BY a", "int8(int4)"),
    "aggregate": ("SELECT a, CASE WHEN $1::int = 1 THEN 0 ELSE (SELECT max(u.a) FROM t u) END AS n FROM t ORDER BY a", "max(int4)"),
    "owner": ("SELECT a, CASE WHEN $1::int = 1 THEN 0 ELSE (SELECT min(u.a) FROM t u) END AS n FROM t ORDER BY a", "int4smaller(int4, int4)"),
    "window": ("SELECT a, CASE WHEN $1::int = 1 THEN 0 ELSE rank() OVER (ORDER BY a) END AS n FROM t ORDER BY a", "rank()"),
    "hashed": ("SELECT a FROM t WHERE a IN (SELECT b FROM t) OR $1::int = 1 ORDER BY a", "int8eq(int8, int8)"),
    "view": ("SELECT a FROM few WHERE $1::int = 1 OR small ORDER BY a", "int4lt(int4, int4)"),
    "policy": ("SELECT a FROM t WHERE $1::int = 1 OR a IN (SELECT a FROM guarded) ORDER BY a", "int4lt(int4, int4)"),
    "one_row": ("SELECT max(a) FROM t WHERE $1::int = 1 OR a < 3", "int4lt(int4, int4)"),
    "function of a user": ("SELECT a, CASE WHEN $1::int = 1 THEN 0 ELSE half(a) END FROM t", "half(int)"),
    "table": ("SELECT a FROM t WHERE $1::int = 1 OR a IN (SELECT c FROM secret) ORDER BY a", None),
}
DENIED = b"42501"


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
        CREATE FUNCTION half(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 / 2';
        CREATE ROLE kept_out;
        ALTER AGGREGATE pg_catalog.min(int4) OWNER TO kept_out
    """)
    owner.execute(f"GRANT USAGE ON SCHEMA {connect.schema} TO kept_out; GRANT SELECT ON ALL TABLES IN SCHEMA {connect.schema} TO kept_out; "
                  "CREATE TABLE secret AS SELECT 1 AS c")
    withdrawn = []

    def withdraw(functions):
        withdrawn.append(functions)
        owner.execute(f"REVOKE EXECUTE ON FUNCTION {functions} FROM PUBLIC")

    yield withdraw
    for functions in withdrawn:
        owner.execute(f"GRANT EXECUTE ON FUNCTION {functions} TO PUBLIC")
    owner.execute("ALTER AGGREGATE pg_catalog.min(int4) OWNER TO CURRENT_USER; DROP OWNED BY kept_out; DROP ROLE kept_out")


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("name", FORBIDDEN)
def test_rights(connect, forbidding, name, first):
    """With the value 1 a plan for it asks for no right that the role lacks, so its answer is that of the statement. With the value 2 every plan asks, whoever has
    stored an answer."""
    query, functions = FORBIDDEN[name]
    if functions:
        forbidding(functions)
    rows = 1 if name == "one_row" else 4
    plain, reader = (connect(f"-c role=kept_out -c pg_arrow_cache.enabled={enabled}") for enabled in ("off", "on"))
    owner = connect()
    for session in plain, reader, owner:
        session.pgconn.prepare(b"asked", query.encode())
    for value in b"1", b"2":
        for kind in KINDS * 2:
            # Who owns an aggregate needs the right to its parts.
            assert isinstance(run_as(owner, kind, [value]), int) or name == "owner"
    assert [run_as(plain, kind, [b"1"]) for kind in KINDS] == [rows, DENIED]
    assert run_as(reader, first, [b"1"]) == (rows if first == "custom" else DENIED)
    assert run_as(reader, "custom", [b"1"]) == rows
    # The rights to relations are asked for at each start, those of functions when the answer was computed.
    of_all = DENIED if name == "table" else rows
    assert [run_as(reader, kind, [b"1"]) for kind in KINDS] == [rows, of_all]
    assert [run_as(reader, kind, [b"2"]) for kind in KINDS * 2] == [DENIED] * 4
    literal = query.replace("$1::int", "2")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute(literal)


def test_a_function_forbidden_later(connect, forbidding):
    """An answer of the time before is none of the time after, also if the change back is rolled back."""
    query, functions = "SELECT a FROM t WHERE a < 3 AND a < $1::int ORDER BY a", "int4lt(int4, int4)"
    owner, reader = connect(), connect("-c role=kept_out")
    reader.pgconn.prepare(b"asked", query.encode())
    assert [run_as(reader, kind, [b"5"]) for kind in KINDS * 2] == [2] * 4
    assert reader.status() == "HIT"
    forbidding(functions)
    reader.execute("DEALLOCATE ALL")
    reader.pgconn.prepare(b"asked", query.encode())
    assert [run_as(reader, kind, [b"5"]) for kind in KINDS * 2] == [DENIED] * 4
    with pytest.raises(ZeroDivisionError), owner.transaction():
        owner.execute(f"GRANT EXECUTE ON FUNCTION {functions} TO PUBLIC; SET ROLE kept_out")
        owner.pgconn.prepare(b"asked", query.encode())
        assert [run_as(owner, kind, [b"5"]) for kind in KINDS * 2] == [2] * 4
        raise ZeroDivisionError
    owner.execute("SET ROLE kept_out; DEALLOCATE ALL")
    owner.pgconn.prepare(b"asked", query.encode())
    assert [run_as(owner, kind, [b"5"]) for kind in KINDS * 2] == [DENIED] * 4


# Each takes a value that lets the planner leave one branch, or one side, and how many rows are read. A plan for all values gives the column no modifier.
TYPES = {
    "case": ("SELECT CASE WHEN $1::bool THEN v5 ELSE v9 END FROM t WHERE id < $2::int", b"t"),
    "case-else": ("SELECT CASE WHEN $1::bool THEN v5 END FROM t WHERE id < $2::int", b"t"),
    "varchar or text": ("SELECT CASE WHEN $1::bool THEN v::varchar(5) ELSE v END FROM t WHERE id < $2::int", b"t"),
    "sub-query": ("SELECT max(id), x FROM (SELECT id, CASE WHEN $1::bool THEN v5 ELSE v9 END AS x FROM t) s WHERE id < $2::int GROUP BY x", b"f"),
    "coalesce": ("SELECT coalesce($1::text::varchar, v5) FROM t WHERE id < $2::int", None),
    "numeric": ("SELECT coalesce($1::int::numeric, n) FROM t WHERE id < $2::int", None),
    "sides": ("SELECT x FROM (SELECT 1 AS k, id, v5 AS x FROM t UNION ALL SELECT 2, id, v9 FROM t) s WHERE k = $1::int AND id < $2::int", b"1"),
    "nested sides": ("SELECT x FROM (SELECT 1 AS k, id, v9 AS x FROM t UNION ALL (SELECT 2, id, v9 FROM t UNION ALL SELECT 3, id, v5 FROM t)) s "
                     "WHERE k = $1::int AND id < $2::int", b"3"),
    "hidden": ("SELECT CASE WHEN $1::bool THEN coalesce(v5, NULL) ELSE v END FROM t WHERE id < $2::int", b"t"),
    "nullif": ("SELECT nullif(c, $1::text COLLATE \"POSIX\") FROM t WHERE id < $2::int", None),
    "collations": ("SELECT CASE WHEN $1::bool THEN c ELSE u END FROM t WHERE id < $2::int", b"t"),
    "view": ("SELECT coalesce(n, 0) FROM v WHERE wanted = $1::bool AND id < $2::int", b"t"),
}
OF_TYPES = """CREATE TABLE t (id int PRIMARY KEY, v5 varchar(5), v9 varchar(9), n numeric(7, 2), c text COLLATE "C", u text COLLATE "POSIX", v varchar);
    INSERT INTO t SELECT g, 'a', 'b', 1, 'c', 'u', 'v' FROM generate_series(1, 50) g; CREATE VIEW v AS SELECT id, n, id > 0 AS wanted FROM t"""


def columns_of_each_kind(session, choice):
    """What comes of each kind of plan: the rows, and the types of the columns as they are described before."""
    found = []
    for kind in KINDS * 3:
        session.execute(f"SET plan_cache_mode = force_{kind}_plan")
        result = session.pgconn.exec_prepared(b"asked", [choice, b"10"])
        assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
        found.append((kind, result.ntuples, result.ftype(0), result.fmod(result.nfields - 1), result.get_value(0, 0)))
    return found


@pytest.mark.parametrize("name", TYPES)
def test_columns_are_those_of_the_plan_that_is_described(connect, name):
    """An answer with columns of other types is of no use to a plan, and is replaced."""
    text, choice = TYPES[name]
    connect().execute(OF_TYPES)
    answers = {}
    for enabled in "off", "on":
        session = connect(f"-c pg_arrow_cache.enabled={enabled}")
        session.pgconn.prepare(b"asked", text.encode())
        answers[enabled] = columns_of_each_kind(session, choice)
        # And what is made of it.
        literal = "NULL" if choice is None else f"'{choice.decode()}'"
        for kind in KINDS:
            session.execute(f"SET plan_cache_mode = force_{kind}_plan")
            session.execute("DROP TABLE IF EXISTS made")
            made = session.pgconn.exec_(f"CREATE TEMP TABLE made AS EXECUTE asked({literal}, '10')".encode())
            answers[enabled].append(made.error_field(pq.DiagnosticField.SQLSTATE))
            answers[enabled] += session.rows("SELECT attname, atttypmod, attcollation FROM pg_attribute WHERE attrelid = to_regclass('made') AND attnum > 0")
    assert answers["on"] == answers["off"]


@pytest.mark.parametrize("name", TYPES)
def test_columns_of_a_hit_without_planning(connect, name):
    """A portal that is bound without planning is described as the plan was that has computed the answer."""
    text, choice = TYPES[name]
    connect().execute(OF_TYPES)
    session = connect()
    of_kinds = set()
    for kind in KINDS:
        session.execute(f"SET plan_cache_mode = force_{kind}_plan")
        session.pgconn.prepare(kind.encode(), text.encode())
        result = session.pgconn.exec_prepared(kind.encode(), [choice, b"10"])
        of_kinds.add(result.fmod(result.nfields - 1))
    session.execute("RESET plan_cache_mode")
    for _ in range(4):
        result = session.pgconn.exec_params(text.encode(), [choice, b"10"])
        assert result.fmod(result.nfields - 1) in of_kinds
    assert session.status() == "HIT"


def test_each_plan_has_answers_with_its_types(session):
    session.execute("CREATE TABLE t AS SELECT g AS id, 'a'::varchar(5) AS v5, 'b'::varchar(9) AS v9 FROM generate_series(1, 30) g")
    session.pgconn.prepare(b"asked", TYPES["case"][0].encode())
    found = []
    for kind in ("custom", "custom", "generic", "generic", "custom"):
        session.execute(f"SET plan_cache_mode = force_{kind}_plan")
        result = session.pgconn.exec_prepared(b"asked", [b"t", b"10"])
        found.append((result.fmod(0), session.status()))
    # The last Bind is answered without planning, and described as the plan was that computed the answer.
    assert found == [(9, "MISS"), (9, "HIT"), (-1, "MISS"), (-1, "HIT"), (-1, "HIT")]
