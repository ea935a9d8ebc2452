"""The queries of monitoring/ run as a role with pg_monitor alone, give what they say, and are what the dashboard shows."""

import itertools
import json
import re

import pytest

from support.documents import ROOT

QUERIES = ROOT / "monitoring" / "queries.yaml"
DASHBOARD = json.loads((ROOT / "monitoring" / "grafana.json").read_text())
# One line of the file: what may stand there, from the outer to the inner.
LINES = re.compile(r"""(?P<name>\w+):|\ \ master:\ true|\ \ query:\ \||\ \ metrics:|\ {4}-\ (?P<column>\w+):
                       |\ {8}usage:\ "(?P<usage>COUNTER|GAUGE|LABEL)"|\ {8}description:\ "(?P<description>[^"]+)"
                       |\ {4}(?P<sql>[A-Z ].*)|(\#.*)?""", re.VERBOSE)
NUMBERS = (int, float)


def parsed():
    """{name: (query, {column: usage})}. The file is YAML in one form, so that it can be read without a library."""
    found, described = {}, []
    for line in QUERIES.read_text().splitlines():
        match = LINES.fullmatch(line)
        assert match, f"not of the form that the exporter reads: {line}"
        part = match.groupdict()
        if part["name"]:
            sql, columns = [], {}
            found[part["name"]] = sql, columns
        elif part["sql"]:
            sql.append(part["sql"])
        elif part["column"]:
            column = part["column"]
        elif part["usage"]:
            columns[column] = part["usage"]
        elif part["description"]:
            described.append((columns, column))
    assert len(described) == sum(len(columns) for _, columns in found.values()), "each column has a description"
    return {name: ("\n".join(sql), columns) for name, (sql, columns) in found.items()}


METRICS = parsed()


@pytest.fixture
def exporter(connect, session):
    """A session of a role with pg_monitor alone, after another role has done something."""
    session.execute("CREATE TABLE seen (n int); INSERT INTO seen VALUES (1)")
    for _ in range(2):
        session.execute("SELECT sum(n) FROM seen")
        session.execute("SELECT n + random() FROM seen")
    session.execute("CREATE ROLE exporter LOGIN IN ROLE pg_monitor")
    with connect("", user="exporter") as exporter:
        yield exporter
    session.execute("DROP ROLE exporter")


@pytest.mark.parametrize("name", METRICS)
def test_query(exporter, name):
    query, columns = METRICS[name]
    cursor = exporter.execute(query)
    assert [column.name for column in cursor.description] == list(columns)
    rows = cursor.fetchall()
    assert rows, "something was done before"
    for row in rows:
        for value, usage in zip(row, columns.values(), strict=True):
            assert isinstance(value, str if usage == "LABEL" else NUMBERS), (name, row)
    labels = [tuple(value for value, usage in zip(row, columns.values()) if usage == "LABEL") for row in rows]
    assert len(set(labels)) == len(rows), "one value for each label"


def test_what_others_store_is_among_it(exporter, connect):
    """`entries` shows a role its own results; pg_monitor sees those of others."""
    query, _ = METRICS["pg_arrow_cache_relation"]
    assert (f"{connect.schema}.seen" in [row[1] for row in exporter.rows(query)]) or ("seen" in [row[1] for row in exporter.rows(query)])
    results = exporter.rows(METRICS["pg_arrow_cache_database"][0])
    assert sum(row[2] for row in results) >= 1
    assert "volatile_function" in [row[0] for row in exporter.rows(METRICS["pg_arrow_cache_reason"][0])]


def test_counters_of_stats_are_all_there(session):
    """What `stats` counts is exported, under its name or in seconds."""
    shown = {column.name for column in session.execute("SELECT * FROM arrow_cache.stats").description}
    exported = {column.replace("_seconds", "_time_ms" if column == "wait_seconds" else "_ms") for column in METRICS["pg_arrow_cache"][1]}
    assert shown - exported == {"hit_ratio", "time_saved_ratio", "eligible_hit_ratio", "stats_reset", "standby_state"}


def test_stats_is_cheap(session):
    """No estimate that makes the server compile the plan of one row."""
    [(plan,)] = session.rows("EXPLAIN (FORMAT JSON) SELECT * FROM arrow_cache.stats")
    assert plan[0]["Plan"]["Total Cost"] < 100 and plan[0]["Plan"]["Plan Rows"] == 1


def test_dashboard_shows_metrics_that_there_are():
    names = {f"{name}_{column}" for name, (_, columns) in METRICS.items() for column, usage in columns.items() if usage != "LABEL"}
    expressions = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    used = set(itertools.chain(*(re.findall(r"pg_arrow_cache\w*", expression) for expression in expressions)))
    assert used and used <= names
    for expression, metric in ((e, m) for e in expressions for m in re.findall(r"rate\((pg_arrow_cache\w*)", e)):
        columns = {f"{name}_{column}": usage for name, (_, columns) in METRICS.items() for column, usage in columns.items()}
        assert columns[metric] == "COUNTER", f"rate of a gauge: {expression}"


def test_panels_lie_beside_each_other():
    places = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places and at["x"] + at["w"] <= 24, panel["title"]
        places |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
