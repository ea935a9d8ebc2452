"""Questions with an aggregate over a partitioned table in an unusual place, and unusual ways to ask."""

import pytest

from support import random_sessions
from support.fragment_world import parts_of

OPTIONS = "-c pg_arrow_cache.debug_force_fragments=on -c jit=off"
SETUP = """
CREATE TABLE f (n int, kind text, v int, x numeric, PRIMARY KEY (n, kind)) PARTITION BY RANGE (n);
CREATE TABLE f0 PARTITION OF f FOR VALUES FROM (0) TO (10);
CREATE TABLE f1 PARTITION OF f FOR VALUES FROM (10) TO (20);
CREATE TABLE f2 PARTITION OF f FOR VALUES FROM (20) TO (30);
INSERT INTO f SELECT g, 'k' || g % 3, g * 2, g / 8.0 FROM generate_series(0, 29) g;
CREATE TABLE d (id int PRIMARY KEY, name text, w int);
INSERT INTO d SELECT g, 'd' || g, g % 4 FROM generate_series(0, 9) g;
CREATE FUNCTION total(low int) RETURNS bigint STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(v) FROM f WHERE n >= low); END $$;
CREATE MATERIALIZED VIEW kept AS SELECT kind, sum(v) AS s FROM f GROUP BY kind;
ANALYZE f, d, kept;
"""
# Whether it is combined, and the question.
QUESTIONS = [
    (True, "SELECT d.id, d.name, count(*) FROM f JOIN d ON d.id = f.n GROUP BY d.id"),
    (True, "SELECT d.id, d.name || d.w, sum(f.v) + d.w FROM f JOIN d ON d.id = f.n GROUP BY d.id HAVING d.w > 0"),
    (True, "SELECT n, kind, v, count(*) FROM f GROUP BY n, kind"),
    (True, "SELECT count(*) FROM f GROUP BY (1 = 1)"),
    (None, "SELECT count(*) FROM f WHERE n > 1000 GROUP BY (1 = 1)"),
    (True, "SELECT kind, 'x', count(*) FROM f GROUP BY kind, 'x'::text"),
    (True, "SELECT 5 AS five, max(v) FROM f GROUP BY five"),
    (True, "SELECT kind, kind || '!', upper(kind), count(*) FROM f GROUP BY kind, upper(kind)"),
    (True, "SELECT DISTINCT ON (count(*)) kind, count(*) FROM f GROUP BY kind ORDER BY count(*), kind"),
    (True, "SELECT kind, sum(v) FROM f GROUP BY kind ORDER BY sum(x) DESC FETCH FIRST 2 ROWS WITH TIES"),
    (True, "SELECT kind, sum(v), lag(sum(v)) OVER w FROM f GROUP BY kind WINDOW w AS (ORDER BY kind) ORDER BY kind"),
    (True, "SELECT kind, count(*), count(*), sum(v) + count(*), -sum(v) FROM f GROUP BY kind"),
    (True, "SELECT count(*) FROM f HAVING count(*) > 100"),
    (True, "SELECT 1 FROM f HAVING sum(v) > 0"),
    (True, "SELECT kind, (SELECT max(w) FROM d WHERE id > 3) FROM f GROUP BY kind"),
    (None, "SELECT kind, (SELECT max(name) FROM d WHERE d.id = count(f.v)) FROM f GROUP BY kind"),
    (None, "SELECT (SELECT sum(f.v) + count(*) FROM d) FROM f"),
    (None, "SELECT (SELECT sum(f.v + d.id) FROM d) FROM f WHERE n = 3"),
    (None, "SELECT kind FROM f GROUP BY kind HAVING EXISTS (SELECT FROM d WHERE d.id < count(f.n) AND d.name > f.kind)"),
    (None, "SELECT kind, (SELECT count(*) FROM f g WHERE g.kind = f.kind) FROM f GROUP BY kind"),
    (None, "SELECT count(*) FROM f UNION ALL SELECT sum(w) FROM d"),
    (None, "SELECT kind, count(*) FROM f WHERE n > 5 GROUP BY kind UNION SELECT name, w FROM d"),
    (None, "SELECT count(*), 1 FROM f UNION ALL SELECT count(*), 2 FROM f WHERE n < 12"),
    (None, "SELECT * FROM (SELECT count(*) AS c FROM f) a, (SELECT max(v) AS m FROM f) b"),
    (None, "SELECT d.id, t.c FROM d LEFT JOIN (SELECT n, count(*) AS c FROM f GROUP BY n) t ON t.n = d.id"),
    (None, "SELECT d.id, t.c FROM d, LATERAL (SELECT count(*) AS c FROM f WHERE f.n = d.id) t"),
    (None, "SELECT id, (SELECT count(*) FROM f) FROM d"),
    (None, "SELECT id FROM d WHERE id < (SELECT count(*) FROM f WHERE v = 4) + 3"),
    (None, "WITH t AS (SELECT kind, count(*) AS c FROM f GROUP BY kind) SELECT a.kind, b.c FROM t a JOIN t b USING (kind)"),
    (None, "WITH RECURSIVE t AS (SELECT kind, count(*) AS c FROM f GROUP BY kind), r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r, t WHERE i < 5 AND t.kind = 'k1') SELECT i FROM r"),
    (None, "WITH RECURSIVE r (i) AS (SELECT 1::bigint UNION ALL SELECT i + c FROM r, (SELECT count(*) AS c FROM f WHERE n < 7) t WHERE i < 40) SELECT i FROM r"),
    (None, "SELECT kind, c FROM (SELECT kind, count(*) AS c FROM f GROUP BY kind OFFSET 0) t WHERE c > (SELECT min(w) FROM d)"),
    (None, "SELECT total(12), total(3)"),
    (None, "SELECT id, total(id) FROM d"),
    (None, "SELECT k.s, t.s FROM kept k JOIN (SELECT kind, sum(v) AS s FROM f GROUP BY kind) t USING (kind)"),
    (None, "SELECT count(*) FROM (SELECT * FROM f WHERE n > 3) t"),
    (None, "SELECT count(*) FROM (SELECT DISTINCT kind FROM f) t"),
    (None, "SELECT kind, count(*) FROM f TABLESAMPLE bernoulli (100) GROUP BY kind"),
    (None, "SELECT d.w, count(*) FROM f RIGHT JOIN d ON d.id = f.n GROUP BY d.w"),
    (None, "SELECT d.w, count(*), count(f.n) FROM f FULL JOIN d ON d.id = f.n GROUP BY d.w"),
    (None, "SELECT a.w, count(*) FROM d a LEFT JOIN (f JOIN d b ON b.id = f.n) ON a.id = f.n GROUP BY a.w"),
    (None, "SELECT count(*) FROM f JOIN d ON d.id = f.n AND EXISTS (SELECT FROM d e WHERE e.w = d.id)"),
    (None, "SELECT count(*) FROM f NATURAL JOIN (VALUES (1), (2), (22)) AS t (n)"),
    (None, "SELECT kind, count(*) FROM f, generate_series(1, 3) GROUP BY kind"),
    (None, "SELECT xmin IS NOT NULL, count(*) FROM f GROUP BY 1"),
    (None, "SELECT max(f::text), count(*) FROM f"),
    (None, "SELECT sum(v ORDER BY n), sum(DISTINCT v), min(x), max(x) FROM f"),
    (None, "SELECT v / 4.0, count(*) FROM f GROUP BY 1"),
    (None, "SELECT x, count(*) FROM f GROUP BY x"),
    (None, "SELECT kind COLLATE \"C\" AS k, count(*), max(kind COLLATE \"C\") FROM f GROUP BY 1 ORDER BY 1"),
]
SETTINGS = [
    "", "SET force_parallel_mode = on; SET max_parallel_workers_per_gather = 2", "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off",
    "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0", "SET work_mem = '64kB'; SET enable_sort = off",
    "SET enable_partitionwise_aggregate = on; SET enable_partitionwise_join = on; SET enable_hashagg = off",
]


@pytest.fixture
def writer(session):
    session.execute(SETUP)
    return session


def ask(session, query):
    return random_sessions.comparable(random_sessions.shown(session.pgconn.exec_(query.encode())), query)


@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_answers_are_those_of_the_server(writer, connect, settings):
    reader, plain = connect(OPTIONS, prepare_threshold=None), connect("-c pg_arrow_cache.enabled=off -c jit=off", prepare_threshold=None)
    if int(writer.info.server_version) >= 160000:
        settings = settings.replace("force_parallel_mode", "debug_parallel_query")
    for session in (reader, plain):
        session.execute(settings)
    for combined, query in QUESTIONS:
        for change in ("SELECT", "UPDATE f1 SET v = v + 1", "UPDATE f SET n = 29 - n WHERE n IN (3, 26)", "UPDATE d SET w = w + 1 WHERE id = 2", "SELECT"):
            writer.execute(change)
            assert ask(reader, query) == ask(plain, query), query
        writer.execute("UPDATE f2 SET v = v - 1")
        shown = parts_of(line for line, in reader.rows(f"EXPLAIN (COSTS OFF) {query}"))
        if combined and shown is not None and shown[0] + shown[1] > 1:
            assert shown[0] > 0, query
        assert combined is None or (shown is not None) == combined, query


QUERY = "SELECT kind, count(*), sum(v), avg(x) FROM f GROUP BY kind ORDER BY kind"
# Statements that run the question in another way; each is undone.
WAYS = [
    f"CREATE TABLE made AS {QUERY}; SELECT * FROM made ORDER BY 1", f"CREATE TEMPORARY TABLE made AS {QUERY}; SELECT * FROM made ORDER BY 1",
    f"SELECT * INTO made FROM ({QUERY}) t; SELECT * FROM made ORDER BY 1", "REFRESH MATERIALIZED VIEW kept; SELECT * FROM kept ORDER BY 1",
    "INSERT INTO d SELECT 100 + count(*), kind, sum(v) FROM f GROUP BY kind ON CONFLICT DO NOTHING; SELECT * FROM d ORDER BY id",
    "UPDATE d SET w = t.c FROM (SELECT n, count(*) AS c FROM f GROUP BY n) t WHERE t.n = d.id; SELECT * FROM d ORDER BY id",
    f"PREPARE p AS {QUERY}; EXECUTE p; EXECUTE p", f"PREPARE p (int) AS {QUERY.replace('GROUP', 'WHERE n >= $1 GROUP')}; EXECUTE p (3); EXECUTE p (15); EXECUTE p (15)",
    f"DECLARE c CURSOR WITH HOLD FOR {QUERY}; FETCH 1 FROM c; FETCH ALL FROM c", "DO $$ BEGIN PERFORM total(3); END $$; SELECT total(3)",
    f"DECLARE c CURSOR FOR {QUERY}; INSERT INTO f VALUES (5, 'own', 1, 1); FETCH ALL FROM c; {QUERY}", f"DECLARE c CURSOR FOR {QUERY}; DELETE FROM f1; FETCH ALL FROM c; {QUERY}",
    f"DECLARE c CURSOR FOR {QUERY}; TRUNCATE f1; FETCH ALL FROM c", f"DECLARE c CURSOR FOR {QUERY}; TRUNCATE f; FETCH ALL FROM c", f"DECLARE c CURSOR FOR {QUERY}; DROP TABLE f2; FETCH ALL FROM c",
    f"DECLARE c CURSOR FOR {QUERY}; ALTER TABLE f DETACH PARTITION f2; FETCH ALL FROM c", f"DECLARE c CURSOR FOR {QUERY}; ALTER TABLE f ALTER v TYPE bigint; FETCH ALL FROM c",
    f"DECLARE c CURSOR FOR {QUERY}; ALTER TABLE f ADD more int; FETCH ALL FROM c", f"DECLARE c CURSOR FOR {QUERY}; CREATE TABLE f3 PARTITION OF f FOR VALUES FROM (30) TO (40); FETCH ALL FROM c",
    f"DECLARE c CURSOR FOR {QUERY}; FETCH 1 FROM c; TRUNCATE f1; FETCH ALL FROM c", f"DECLARE c CURSOR FOR {QUERY}; CLUSTER f1 USING f1_pkey; FETCH ALL FROM c",
    f"DECLARE c CURSOR FOR {QUERY}; REINDEX TABLE f1; FETCH ALL FROM c", f"DECLARE c CURSOR FOR {QUERY}; CREATE INDEX ON f1 (v); FETCH ALL FROM c", f"DECLARE c CURSOR FOR {QUERY}; DROP TABLE d CASCADE; FETCH ALL FROM c",
    "DECLARE c CURSOR FOR SELECT d.w, count(*) FROM f JOIN d ON d.id = f.n GROUP BY d.w ORDER BY 1; TRUNCATE d; FETCH ALL FROM c",
    "DECLARE c CURSOR FOR SELECT d.w, count(*) FROM f JOIN d ON d.id = f.n GROUP BY d.w ORDER BY 1; ALTER TABLE d ADD more int; FETCH ALL FROM c",
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", [False, True])
def test_other_ways_to_ask(writer, connect, way, stored):
    reader, plain = connect(OPTIONS, prepare_threshold=None), connect("-c pg_arrow_cache.enabled=off -c jit=off", prepare_threshold=None)
    for prior in ("SELECT", QUERY if stored else "SELECT"):
        reader.execute(prior)
    if stored:
        writer.execute("UPDATE f0 SET v = v + 1")
    expected = in_transaction(plain, way)
    assert in_transaction(reader, way) == expected
    assert in_transaction(reader, way) == expected
    assert ask(reader, QUERY) == ask(plain, QUERY)
    assert ask(writer, QUERY) == ask(plain, QUERY)


def in_transaction(session, statements):
    """What a client sees of the statements, up to the first error, in a transaction that is undone."""
    answers = []
    for statement in ("BEGIN", *statements.split("; ")):
        answers.append(ask(session, statement))
        if answers[-1][0] is not None:
            break
    session.execute("ROLLBACK")
    session.execute("DEALLOCATE ALL")
    # The tables that are made have other numbers each time.
    return [answer[:3] + ([column[:3] for column in answer[3]], answer[4]) for answer in answers]


@pytest.mark.parametrize(("way", "combines"), [
    (QUERY, True), (f"DECLARE c CURSOR FOR {QUERY}; FETCH ALL FROM c", True), (f"CREATE TABLE made AS {QUERY}", False), (f"PREPARE p AS {QUERY}; EXECUTE p", True),
    (f"COPY ({QUERY}) TO '/dev/null'", True), (f"EXPLAIN ANALYZE {QUERY}", True), ("SELECT total(3)", False),
])
def test_ways_that_combine(writer, connect, way, combines):
    reader = connect(OPTIONS, prepare_threshold=None)
    runs = "SELECT fragment_runs FROM arrow_cache.stats"
    [(before,)] = writer.rows(runs)
    in_transaction(reader, way)
    [(after,)] = writer.rows(runs)
    assert (after > before) == combines


@pytest.mark.parametrize("query", [
    "SELECT CASE WHEN 1 > 3 THEN m ELSE m::varchar(3) END, count(*) FROM modified GROUP BY 1",
    "SELECT COALESCE(NULL::varchar(3), m) AS a, count(*) FROM modified GROUP BY a",
    "SELECT CASE WHEN n > 3 THEN m ELSE m::varchar(3) END, count(*) FROM modified GROUP BY 1",
])
@pytest.mark.parametrize("execute", ["exec_", "extended"])
def test_modifiers_of_keys_are_those_of_a_plan(connect, query, execute):
    """Constants decide which branch is left, and the client sees its modifier."""
    reader, plain = connect(OPTIONS), connect("-c pg_arrow_cache.enabled=off")
    plain.execute("CREATE TABLE modified (n int, m varchar(10)) PARTITION BY RANGE (n)")
    for leaf in range(2):
        plain.execute(f"CREATE TABLE modified_{leaf} PARTITION OF modified FOR VALUES FROM ({leaf * 5}) TO ({leaf * 5 + 5})")
    plain.execute("INSERT INTO modified SELECT g, 'm' || g FROM generate_series(0, 9) g")

    def described(session):
        pgconn = session.pgconn
        result = pgconn.exec_(query.encode()) if execute == "exec_" else pgconn.exec_params(query.encode(), [])
        return [(result.ftype(column), result.fmod(column)) for column in range(result.nfields)]

    assert parts_of(row for (row,) in reader.rows(f"EXPLAIN (ANALYZE, COSTS off) {query}")) is not None
    for _ in range(2):
        assert described(reader) == described(plain)
