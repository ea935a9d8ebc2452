"""Cursors and portals read and moved at random, while settings, rows and transactions change: every message is the one that a session
without the cache gets, and what was stored on the way answers others rightly.

RANDOM_SEED repeats a run, RANDOM_ROUNDS makes it longer."""

import os

import psycopg
import pytest

from support.random_cursors import QUERIES, TABLES, Pair
from support.session import DSN
from support.sweeps import rounds, sweep
from support.wire import data_rows

SEED = int(os.environ.get("RANDOM_SEED", "7"))
ROUNDS = rounds(30, 60)
ROLE = "regress_random_cursors"


@pytest.fixture
def schemas(connect):
    with psycopg.connect(DSN, autocommit=True) as admin:
        names = [f"{connect.schema}_plain", f"{connect.schema}_cached"]
        admin.execute(f"DROP ROLE IF EXISTS {ROLE}; CREATE ROLE {ROLE}")
        for name in names:
            admin.execute(f"CREATE SCHEMA {name}; SET search_path = {name};" + TABLES.format(schema=name, role=ROLE))
        yield names
        admin.execute(f"SET client_min_messages = warning; DROP SCHEMA {', '.join(names)} CASCADE; DROP ROLE {ROLE}")


@sweep
def test_random_cursors(connect, wire, schemas):
    plain, cached, reader = (
        wire(**{"app.tenant": "none", "pg_arrow_cache.enabled": enabled})
        for enabled in ("off", "on", "on"))
    for client, schema in zip((plain, cached, reader), (*schemas, schemas[1])):
        client.query(f"SET search_path = {schema}")
    other = connect("-c lock_timeout=2s")
    before = other.rows("SELECT hits, stores FROM arrow_cache.stats")[0]
    for turn in range(ROUNDS):
        seed = SEED * 100_000 + turn
        pair = Pair(plain, cached, schemas, ROLE, other, QUERIES, seed)
        if pair.random.random() < 0.3:
            other.execute("SELECT arrow_cache.flush()")
        for query in pair.random.sample(QUERIES, 8):
            reader.query(query)
        try:
            pair.transaction(pair.random.randint(5, 40))
            for query in QUERIES:
                expected, got = data_rows(plain.query(query)), data_rows(reader.query(query))
                assert got == expected, query
            pair.sql("CLOSE ALL")
        except AssertionError as error:
            raise AssertionError(f"seed {seed}\n" + "\n".join(pair.steps) + f"\n{error}") from None
    hits, stores = (after - then for after, then in zip(other.rows("SELECT hits, stores FROM arrow_cache.stats")[0], before))
    assert stores > ROUNDS and hits > ROUNDS, (hits, stores)
