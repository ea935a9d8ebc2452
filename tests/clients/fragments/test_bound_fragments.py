"""A portal with values, whose answer is combined of parts, and what its own session does between Bind and Execute: the client sees what it would see
without the cache, errors included, and what is stored is what others see."""

import psycopg
import pytest

from support.session import DSN
from support.sweeps import thinned
from support.wire import data_rows, error_fields, types

SETUP = """
CREATE TABLE f (n int, kind text, v int, at timestamptz, PRIMARY KEY (n, kind)) PARTITION BY RANGE (n);
CREATE TABLE f0 PARTITION OF f FOR VALUES FROM (0) TO (10);
CREATE TABLE f1 PARTITION OF f FOR VALUES FROM (10) TO (20);
CREATE TABLE f2 PARTITION OF f FOR VALUES FROM (20) TO (30);
INSERT INTO f SELECT g, 'k' || g % 3, g, timestamptz '2024-01-30 20:00+00' + g * interval '5 hours' FROM generate_series(0, 29) g;
CREATE TABLE d (id int, w int);
INSERT INTO d SELECT g, g % 4 FROM generate_series(0, 9) g;
"""
# The second one depends on settings, the third one may fail, the last one fails in the second group.
QUERIES = [
    QUERY := "SELECT kind, count(*), sum(v) FROM f LEFT JOIN d ON d.id = f.n WHERE n >= $1 GROUP BY kind ORDER BY kind",
    "SELECT date_trunc('day', at), count(*), sum(v) FROM f LEFT JOIN d ON d.id = f.n WHERE n >= $1 GROUP BY 1 ORDER BY 1",
    "SELECT kind, sum(v * w) / count(*) FROM f LEFT JOIN d ON d.id = f.n WHERE n >= $1 GROUP BY kind ORDER BY kind",
    "SELECT kind, 100 / (sum(v) - 144) FROM f WHERE n >= $1 GROUP BY kind ORDER BY kind",
]
INT4 = 23
CHANGES = [
    "SELECT", "INSERT INTO f VALUES (5, 'own', 1)", "DELETE FROM f1", "UPDATE f SET n = 29 - n", "DELETE FROM d", "TRUNCATE f1", "TRUNCATE f", "TRUNCATE d", "DROP TABLE f2", "DROP TABLE d",
    "ALTER TABLE f DETACH PARTITION f2", "ALTER TABLE f ALTER v TYPE bigint", "ALTER TABLE f1 ADD CHECK (v >= 0)", "ALTER TABLE f ADD more int", "ALTER TABLE f DROP COLUMN v",
    "ALTER TABLE d ADD more int", "CREATE TABLE f3 PARTITION OF f FOR VALUES FROM (30) TO (40)", "CREATE INDEX ON f1 (v)", "CREATE INDEX ON f (v)", "CLUSTER f1 USING f1_pkey",
    "ALTER TABLE f ENABLE ROW LEVEL SECURITY", "ALTER TABLE f1 RENAME TO g1", "ALTER TABLE f RENAME COLUMN v TO u", "SET enable_partition_pruning = off", "SET timezone = 'Asia/Tokyo'", "SET ROLE nobody_there",
    "SAVEPOINT s", "DISCARD PLANS", "SET pg_arrow_cache.enabled = off", "SET pg_arrow_cache.enable_fragments = off",
]


@pytest.fixture
def writer(session):
    session.execute(SETUP)
    return session


def played(client, query, change, max_rows, prior):
    """What the client sees, in a transaction that is undone."""
    client.query("BEGIN")
    if prior:
        client.query(prior)
    seen = client.parse(query, types=[INT4]).bind([b"3"], portal="p").step("2", "E")
    if max_rows:
        seen += client.execute("p", max_rows).step("C", "s", "E")
    if seen[-1].type == "E":
        # The server ignores all messages up to the next Sync.
        client.sync()
    changed = client.query(change)
    if not any(message.type == "E" for message in [*changed, *seen]):
        seen += client.execute("p").step("C", "s", "E")
    client.sync()
    client.query("ROLLBACK")
    errors = [error_fields(message).get("C") for message in [*changed, *seen] if message.type == "E"]
    return errors, types(seen), data_rows(seen)


def outcome(session, query):
    """Rows, or the code of the error."""
    try:
        return session.execute(query).fetchall()
    except psycopg.Error as error:
        return error.sqlstate


def uncached(session, query):
    session.execute("SET pg_arrow_cache.enabled = off")
    try:
        return outcome(session, query)
    finally:
        session.execute("SET pg_arrow_cache.enabled = on")


@thinned("query, change, stored", QUERIES, CHANGES, [False, True], one_in=2)
def test_between_bind_and_execute(writer, wire, query, change, stored):
    client = wire(**{"pg_arrow_cache.debug_force_fragments": "on"})
    plain = wire(**{"pg_arrow_cache.enabled": "off"})
    with psycopg.connect(DSN, autocommit=True, options=f"-c search_path={writer.execute('SHOW search_path').fetchone()[0]}") as other:
        for max_rows, prior in ((0, None), (1, None), (0, "SAVEPOINT a")):
            expected = played(plain, query, change, max_rows, prior)
            if stored:
                client.parse(query, types=[INT4]).bind([b"3"]).execute().sync()
                writer.execute("UPDATE f1 SET v = v")
            assert played(client, query, change, max_rows, prior) == expected
            assert played(client, query, change, max_rows, prior) == expected
            for session in (other, writer):
                text = query.replace("$1", "3")
                assert outcome(session, text) == uncached(writer, text)


def test_is_combined(writer, wire):
    """What the other tests are about."""
    client = wire(**{"pg_arrow_cache.debug_force_fragments": "on"})
    runs = "SELECT fragment_runs FROM arrow_cache.stats"
    [(before,)] = writer.rows(runs)
    client.parse(QUERY, types=[INT4]).bind([b"3"]).execute().sync()
    client.query("BEGIN")
    client.parse(QUERY, types=[INT4]).bind([b"4"], portal="p").step("2")
    client.execute("p", 1).execute("p").step("C")
    client.query("COMMIT")
    assert writer.rows(runs) == [(before + 2,)]
