"""The ways to read data from the server, for tests without memory: the tables, and the statements."""

import sys
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.types.json import Jsonb

from support.exports import copy_statement

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import cluster as private  # noqa: E402  (it lives beside the other scripts)

OUT_OF_MEMORY = "53200"

LARGE = 3_000_000  # bytes of a large value

SETUP = f"""
CREATE EXTENSION pg_arrow_cache;
CREATE TYPE pair AS (a int, b text);
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TYPE felt AS (a int, m mood[]);
CREATE TABLE mixed AS SELECT g AS a, g::text AS t, g::numeric / 7 AS n, g % 2 = 0 AS b, g * 1.5::float8 AS f,
    ARRAY[g, NULL, g + 1] AS l, (g, g::text)::pair AS p, (ARRAY['sad', 'glad'])[1 + g % 2]::mood AS m,
    jsonb_build_object('k', g, 'v', ARRAY[g, 1]) AS j, timestamptz '2024-01-01' + g * interval '1 hour' AS z,
    make_interval(days => g) AS i, md5(g::text)::uuid AS u, decode(md5(g::text), 'hex') AS y
  FROM generate_series(1, 3000) g;
CREATE TABLE texts AS SELECT (SELECT string_agg(md5(g::text || h), '') FROM generate_series(1, 8) h) AS t FROM generate_series(1, 1900) g;
CREATE TABLE nested AS SELECT (a, ARRAY[m, NULL])::felt AS f, ARRAY[(a, ARRAY[m])::felt, NULL, (NULL, '{{}}')::felt] AS fs, ARRAY[p, (NULL, t)::pair] AS ps
  FROM mixed WHERE a <= 300;
CREATE TABLE one AS SELECT 1 AS a;
CREATE TABLE written (a int);
CREATE TABLE large AS SELECT 1 AS a, repeat('0123456789', {LARGE // 10}) AS t;
ALTER TABLE large ADD y bytea, ADD l int[], ADD s text[], ADD p pair, ADD j jsonb, ADD k jsonb, ADD n numeric[];
ALTER TABLE large ALTER t SET STORAGE EXTERNAL;
UPDATE large SET y = convert_to(t, 'UTF8'), l = ARRAY(SELECT generate_series(1, {LARGE // 8})), p = (1, t)::pair,
    s = ARRAY(SELECT 'element ' || g FROM generate_series(1, {LARGE // 40}) g),
    j = to_jsonb(t), k = (SELECT jsonb_agg(jsonb_build_object('a', g, 'b', 'x' || g)) FROM generate_series(1, {LARGE // 60}) g),
    n = ARRAY(SELECT g::numeric / 3 FROM generate_series(1, {LARGE // 60}) g);
DO $$ BEGIN EXECUTE 'CREATE TABLE wider AS SELECT ' || (SELECT string_agg(format('%s::text AS column_number_%s', g, g), ', ')
  FROM generate_series(1, 1500) g) || ' FROM generate_series(1, 40)'; END $$;
CREATE TABLE triggered (a int);
DO $$ BEGIN EXECUTE format('CREATE TRIGGER long AFTER INSERT ON triggered FOR EACH STATEMENT EXECUTE FUNCTION arrow_cache.invalidate_on_change(%L)',
  repeat('x', {LARGE})); END $$;
ANALYZE;
"""

ALL = "SELECT * FROM mixed ORDER BY a"
PARTS = {"a": "int", "t": "text", "y": "bytea", "l": "array", "s": "texts", "p": "row", "j": "jsonb", "k": "objects", "n": "numerics"}
LONG = "SELECT a FROM one WHERE a::text <> '" + "x" * LARGE + "'"
WRONG = "SELECT a FROM one WHERE a = '" + "x" * LARGE + "'"
SETTINGS = "SELECT ARRAY[" + ", ".join(f"current_setting('app.s{number}_{'x' * 230}', true)" for number in range(6000)) + "] FROM one"
MANY = "SELECT a FROM one WHERE a IN (" + ",".join(map(str, range(1, 60_000))) + ")"


def rows(query, parameters=None, **options):
    def run(session):
        cursor = session.cursor(**options)
        cursor.execute(query, parameters)
        return cursor.fetchall()
    return run


def by_copy(query, **options):
    def run(session):
        with session.cursor().copy(copy_statement(query, options)) as copy:
            return b"".join(bytes(piece) for piece in copy)
    return run


def by_function(name, query, **options):
    if name == "messages":
        return rows("SELECT (arrow_cache.messages(%s, %s)).ipc", [query, Jsonb(options)], binary=True)
    if name == "query":
        return rows("SELECT arrow_cache.query(%s)", [query], binary=True)
    return rows(f"SELECT * FROM arrow_cache.{name}(%s, %s)", [query, Jsonb(options)], binary=True)


def raw(query, parameters=(), binary=True):
    """Through the extended protocol; the values are not decoded."""
    def run(session):
        got = session.pgconn.exec_params(query.encode(), list(parameters), result_format=int(binary))
        if got.status != psycopg.pq.ExecStatus.TUPLES_OK:
            raise psycopg.errors.lookup((got.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"08006").decode())(got.error_message.decode())
        return [[got.get_value(row, column) for column in range(got.nfields)] for row in range(got.ntuples)]
    return run


def after(statement, run):
    def both(session):
        session.execute(statement)
        return run(session)
    return both


def ways():
    yield "rows", rows(ALL)
    yield "rows, binary", raw(ALL)
    yield "wide rows", raw("SELECT * FROM wider", binary=False)
    yield "long text", rows(LONG)
    yield "many constants", rows(MANY)
    yield "many settings", raw(SETTINGS)
    yield "large parameter", raw("SELECT a FROM one WHERE a::text <> $1", [b"x" * LARGE])
    yield "verified", after("SET pg_arrow_cache.verify_sample_rate = 1", raw(ALL))
    yield "verified, large", after("SET pg_arrow_cache.verify_sample_rate = 1", raw("SELECT t, p, k FROM large"))
    for column, name in PARTS.items():
        yield f"large {name}", raw(f"SELECT {column} FROM large")
        yield f"large {name}, as text", raw(f"SELECT {column} FROM large", binary=False)
        yield f"copy of large {name}", by_copy(f"SELECT {column} FROM large")
    for name in ("fetch", "messages", "query", "schema"):
        yield name, by_function(name, ALL)
        yield f"{name} of large", by_function(name, "SELECT t, l, p, k FROM large")
        yield f"{name} of wide", by_function(name, "SELECT * FROM wider")
        yield f"{name} of long", by_function(name, LONG)
    yield "query with parameter", rows("SELECT arrow_cache.query('SELECT a FROM one WHERE a::text <> $1', repeat('x', %s))", [LARGE], binary=True)
    for options in ({}, {"compression": "lz4"}, {"compression": "zstd"}, {"numeric": "decimal128"}, {"extension_types": "canonical"},
                    {"columns": ["t", "a"]}, {"limit": 100}, {"batch_rows": 17}, {"interval": "month_day_nano", "batch_rows": 100},
                    {"on_unrepresentable": "text"}):
        yield f"copy, {options}", by_copy(ALL, **options)
    yield "copy of table", by_copy(("table", "wider"))
    yield "copy of wide", by_copy("SELECT * FROM wider", compression="zstd")
    for options in ({"compression": "lz4"}, {"compression": "zstd"}, {"numeric": "decimal128", "columns": ["n"]}):
        yield f"copy of large, {options}", by_copy("SELECT * FROM large", **options)
    # One buffer has most of the bytes of a batch.
    for options in ({"compression": "lz4"}, {"compression": "lz4", "batch_rows": 700}, {"compression": "zstd"}, {"batch_rows": 700}):
        yield f"copy of texts, {options}", by_copy("SELECT t FROM texts", **options)
    for options in ({}, {"compression": "lz4"}, {"compression": "zstd", "batch_rows": 100}, {"columns": ["ps", "f"], "limit": 99}):
        yield f"copy of nested, {options}", by_copy("SELECT * FROM nested", **options)
        yield f"messages of nested, {options}", by_function("messages", "SELECT * FROM nested", **options)
    yield "query of nested", by_function("query", "SELECT * FROM nested")
    yield "fetch, zstd", by_function("fetch", "SELECT t, l, p, k FROM large", compression="zstd")
    yield "messages, lz4", by_function("messages", "SELECT t, l, p, k FROM large", compression="lz4")
    yield "error", rows("SELECT arrow_cache.query(%s)", [WRONG])
    yield "why of error", rows("SELECT * FROM arrow_cache.why(%s)", [WRONG])
    yield "copy, unknown column", by_copy(ALL, columns=["x" * LARGE])
    yield "write", rows("WITH w AS (INSERT INTO written VALUES (1) RETURNING a) SELECT * FROM w")
    yield "why", rows("SELECT * FROM arrow_cache.why(%s)", [ALL])
    yield "why of many parameters", rows("SELECT * FROM arrow_cache.why('SELECT a FROM one WHERE a = $1000000')")
    yield "why of long", rows("SELECT * FROM arrow_cache.why(%s)", [LONG])
    yield "entries", rows("SELECT count(*) >= 0 FROM arrow_cache.entries WHERE length(query) > 0")
    yield "relations", rows("SELECT count(*) >= 0 FROM arrow_cache.relations")
    yield "bypass_reasons", rows("SELECT count(*) >= 0 FROM arrow_cache.bypass_reasons")
    yield "long label", rows("SECURITY LABEL FOR pg_arrow_cache ON TABLE one IS '" + "x" * LARGE + "'")
    yield "long policy", rows("SELECT arrow_cache.set_policy('one', repeat('x', %s))", [LARGE])
    yield "trigger with long name", rows("INSERT INTO triggered VALUES (1)")
    yield "options", rows("SELECT * FROM arrow_cache.schema('SELECT 1', jsonb_build_object('columns', ARRAY[repeat('x', %s)]))", [LARGE])


WAYS = dict(ways())

# Ways that have no hits, or whose hits do the same as misses.
WITHOUT_HITS = ("schema", "schema of large", "schema of wide", "schema of long", "many constants", "write", "why", "why of long", "why of many parameters", "why of error", "error", "copy, unknown column", "entries",
                "relations", "bypass_reasons", "options", "many settings", "long label", "long policy", "trigger with long name", "replayed", "replayed, large")
CASES = [(way, state) for way in WAYS for state in ("miss", "hit") if state == "miss" or way not in WITHOUT_HITS]
# Statements that the cache only watches: they never fail because of it.
TRANSPARENT = [way for way in WAYS if way.startswith(("rows", "wide rows", "long text", "many", "large", "verified", "write"))]


@contextmanager
def memory_server(name, **options):
    """A private server with the tables of the ways. `options` are those of Cluster."""
    with private.Cluster(private.ROOT / "target" / name, conf_file=Path(__file__).parents[1] / "clients.conf",
                         conf={"pg_arrow_cache.max_entry_size": "2GB", "jit": "off"}, **options) as cluster:
        cluster.psql(SETUP)
        yield cluster
