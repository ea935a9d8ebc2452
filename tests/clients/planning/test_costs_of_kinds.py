"""The server compares what its plans for single values have cost with what a plan for all values would cost. What the cache attaches to a plan must
not count there, and a hit without planning must cost what planning for its own values would give: which kind of plan is made shows in errors, and in
the partitions that are locked."""

import pytest
from psycopg import pq

EXECUTIONS = 8


def executions(session, query, values):
    """What came of each, and how many plans of each kind there were."""
    session.pgconn.prepare(b"asked", query.encode())
    found = []
    for _ in range(EXECUTIONS):
        result = session.pgconn.exec_prepared(b"asked", values)
        fine = result.status == pq.ExecStatus.TUPLES_OK
        found.append(result.ntuples if fine else result.error_field(pq.DiagnosticField.SQLSTATE))
    return found + session.rows("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'asked'")


def test_what_a_plan_carries_costs_nothing(connect):
    """Near the number of rows for which both kinds cost the same, the server charges plans for values by the length of their range tables."""
    owner = connect()
    owner.execute("CREATE TABLE p (a int, b int, g int) PARTITION BY LIST (g)")
    for leaf in range(3):
        owner.execute(f"CREATE TABLE p{leaf} PARTITION OF p FOR VALUES IN ({leaf})")
    query = "SELECT g, count(*), sum(b) FROM p WHERE g < $1::int AND (1 / b >= 0 OR $2::bool) GROUP BY g"
    seen = set()
    for rows in range(1600, 2000, 20):
        owner.execute(f"TRUNCATE p; INSERT INTO p SELECT 1, i, i % 3 FROM generate_series(0, {rows}) i; ANALYZE p")
        answers = []
        for enabled in "off", "on":
            with connect(f"-c pg_arrow_cache.enabled={enabled}") as session:
                answers.append(executions(session, query, [b"2", b"t"]))
        assert answers[1] == answers[0], rows
        seen.add(answers[0][-1])
    # The last plans cost more for all values than for these.
    assert (0, EXECUTIONS) in seen, seen


OPTIONS = "-c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"
HARMLESS = "SELECT b, row_number() OVER (ORDER BY b) FROM p WHERE a = $1::int"


@pytest.mark.parametrize(("template", "value"), [(b"1", b"2"), (b"2", b"1")], ids=["rare", "frequent"])
def test_a_hit_costs_what_its_own_values_cost(connect, template, value):
    """Both values lie in one partition and have plans with the same facts. A plan for all values would lock the other partition, too."""
    owner = connect()
    owner.execute("CREATE TABLE p (a int, b int) PARTITION BY RANGE (a); CREATE TABLE p0 PARTITION OF p FOR VALUES FROM (0) TO (10); "
                  "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (10) TO (20); CREATE INDEX ON p (a, b)")
    owner.execute("INSERT INTO p SELECT CASE WHEN g % 1000 = 0 THEN 2 WHEN g % 100 = 0 THEN 3 + g / 100 % 7 ELSE 1 END, g FROM generate_series(1, 20000) g")
    owner.execute("INSERT INTO p SELECT 10 + g % 10, g FROM generate_series(1, 2000) g; ANALYZE p")
    answers, statuses = {}, []
    for enabled in "off", "on":
        first, reader = (connect(f"{OPTIONS} -c pg_arrow_cache.enabled={enabled}") for _ in range(2))
        for one in value, template:
            first.pgconn.exec_params(HARMLESS.encode(), [one])
        reader.pgconn.prepare(b"template", HARMLESS.encode())
        for _ in range(3):
            reader.pgconn.exec_prepared(b"template", [template])
        answers[enabled] = executions(reader, HARMLESS, [value])
        reader.pgconn.exec_prepared(b"asked", [value])
        statuses.append(reader.status())
    assert answers["on"] == answers["off"]
    assert statuses[1] == "HIT"


# To a session with these settings plans for values look cheap, and stay chosen.
CHEAP = "seq_page_cost=0.001 -c cpu_tuple_cost=0.0001 -c cpu_operator_cost=0.0001"
SMALL = "SELECT count(*) FROM small WHERE a = $1::int"


@pytest.mark.parametrize("filler, reader", [("enable_seqscan=off", "enable_seqscan=off"), (CHEAP, "seq_page_cost=1")], ids=["costs of 10^10", "other costs"])
def test_costs_are_those_of_the_own_settings(connect, filler, reader):
    """What is refused to the planner costs 10^10, which must not hide small differences. Who has stored the answer may have other settings."""
    owner = connect()
    owner.execute("CREATE TABLE small AS SELECT i % 10 AS a, i AS b FROM generate_series(1, 3000) i; ANALYZE small")
    answers, statuses = {}, []
    for enabled in "off", "on":
        with connect(f"-c {filler} -c pg_arrow_cache.enabled={enabled}") as first:
            for _ in range(2):
                first.pgconn.exec_params(SMALL.encode(), [b"5"])
        session = connect(f"-c {reader} -c pg_arrow_cache.enabled={enabled}")
        answers[enabled] = executions(session, SMALL, [b"5"])
        session.pgconn.exec_prepared(b"asked", [b"5"])
        statuses.append(session.status())
    assert answers["on"] == answers["off"]
    assert statuses[1] == "HIT"
