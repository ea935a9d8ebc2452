"""The output list that EXPLAIN (VERBOSE) prints for a hit: the names of its columns."""

import json

import pytest

SETUP = """
    CREATE TABLE t (i int, s text, "Odd Name" numeric, arr int[]);
    INSERT INTO t SELECT g, g::text, g / 3.0, ARRAY[g] FROM generate_series(1, 10) g;
    CREATE TABLE u AS SELECT g AS i, 'u' || g AS s FROM generate_series(1, 10) g;
    CREATE TABLE parts (i int, s text) PARTITION BY RANGE (i);
    CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10);
    CREATE TABLE high PARTITION OF parts FOR VALUES FROM (10) TO (20);
    INSERT INTO parts SELECT g, 'x' FROM generate_series(1, 15) g;
    CREATE VIEW v AS SELECT i, s || 'x' AS longer FROM t"""

QUERIES = {
    "SELECT * FROM t": ["i", "s", '"Odd Name"', "arr"],
    "SELECT count(*), sum(i) AS total, max(s) AS \"select\" FROM t GROUP BY i % 2": ["count", "total", '"select"'],
    "SELECT i, i + 1, i + 2, 1 AS one FROM t ORDER BY s": ["i", '"?column?"', '"?column?_1"', "one"],
    "SELECT * FROM t a JOIN u USING (i)": ["i", "s", '"Odd Name"', "arr", "s_1"],
    "SELECT a.i AS n, b.* FROM t a, v b WHERE a.i = b.i": ["n", "i", "longer"],
    "SELECT s, count(*) FROM parts WHERE i > 3 GROUP BY s": ["s", "count"],
    "SELECT (SELECT max(i) FROM u), u AS whole FROM u": ["max", "whole"],
    "WITH w AS MATERIALIZED (SELECT i FROM t) SELECT w.i FROM w, w AS x": ["i"],
    "SELECT i FROM t UNION ALL SELECT i FROM u": ["i"],
}


def node(session, explain, statement):
    [(plan,)] = session.rows(f"EXPLAIN ({explain}, VERBOSE, FORMAT json) {statement}")
    return plan[0]["Plan"]


def warm(session, query):
    session.execute(SETUP)
    for _ in range(2):
        expected = session.rows(query)
    assert session.status() == "HIT"
    return expected


def test_written_out(session):
    """From 17 on EXPLAIN can also convert the rows for a client and send none of them, a hit's rows like any others."""
    query = "SELECT * FROM t"
    expected = warm(session, query)
    formats = ("TEXT", "BINARY") if session.info.server_version >= 170000 else ()
    for explain in ("ANALYZE", *(f"ANALYZE, MEMORY, SERIALIZE {form}" for form in formats)):
        [(plan,)] = session.rows(f"EXPLAIN ({explain}, FORMAT json) {query}")
        assert plan[0]["Plan"]["Custom Plan Provider"] == "ArrowCache"
        session.execute("SET pg_arrow_cache.enabled = off")
        [(executed,)] = session.rows(f"EXPLAIN ({explain}, FORMAT json) {query}")
        session.execute("SET pg_arrow_cache.enabled = on")
        written = [shown.get("Serialization", {}).get("Output Volume") for shown in (plan[0], executed[0])]
        assert written[0] == written[1]
        assert session.rows(query) == expected and session.status() == "HIT"


@pytest.mark.parametrize("explain", ["ANALYZE false", "ANALYZE"])
@pytest.mark.parametrize("query", QUERIES)
def test_names(session, query, explain):
    expected = warm(session, query)
    shown = node(session, explain, query)
    assert (shown["Custom Plan Provider"], shown["Output"]) == ("ArrowCache", QUERIES[query])
    assert session.rows(query) == expected and session.status() == "HIT"


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("query", QUERIES)
def test_names_of_a_prepared_statement(session, query, mode):
    warm(session, query)
    session.execute(f"SET plan_cache_mode = {mode}")
    session.execute(f"PREPARE p AS {query}")
    session.execute("EXECUTE p")
    for _ in range(2):
        shown = node(session, "COSTS false", "EXECUTE p")
        assert (shown["Custom Plan Provider"], shown["Output"]) == ("ArrowCache", QUERIES[query])


@pytest.mark.parametrize("query", QUERIES)
def test_log_of_hits(session, query):
    """auto_explain prints the plan of every hit, but the names of its columns were not looked up: it prints none rather
    than wrong ones."""
    warm(session, query)
    logged = []
    session.add_notice_handler(lambda notice: logged.append(notice.message_primary))
    session.execute("LOAD 'auto_explain'")
    session.execute("SET auto_explain.log_min_duration = 0; SET auto_explain.log_verbose = on; "
                    "SET auto_explain.log_format = json; SET client_min_messages = log")
    session.execute(f"PREPARE p AS {query}")
    for statement in (query, "EXECUTE p", "EXECUTE p"):
        logged.clear()
        session.execute(statement)
        plan = json.loads(logged[0].split("plan:", 1)[1])["Plan"]
        assert plan["Custom Plan Provider"] == "ArrowCache"
        assert plan["Output"] in (["(VALUE)"] * len(QUERIES[query]), QUERIES[query])
