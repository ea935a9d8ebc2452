"""A search for the rows next to a time is planned, and planning computes the constants in the conditions of indexes: code of users runs, which may
ask the cache about other times."""

import pytest
from support.windows import START, after, sessions

ASKS = {
    "etag": "PERFORM arrow_cache.etag(question)",
    "query": "PERFORM arrow_cache.query(question)",
    "why": "PERFORM cacheable FROM arrow_cache.why(question)",
    "executes": "EXECUTE question",
}
SCHEMA = """
    SET TimeZone = UTC;
    DROP TABLE IF EXISTS log, other CASCADE;
    CREATE TABLE other (at timestamptz);
    INSERT INTO other SELECT timestamptz '2026-03-10 11:00:00' + g * interval '1 minute' FROM generate_series(1, 90) g;
    CREATE OR REPLACE FUNCTION asking() RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE question text;
    BEGIN
        FOR i IN 1..10 LOOP
            question := format('SELECT count(*) FROM other WHERE at > now() - %s * interval ''1 min'' AND at < now() - %s * interval ''1 s''', i, i);
            {asks};
        END LOOP;
        RETURN '2020-01-01';
    END $$;
    CREATE TABLE log (id int, tenant int, at timestamptz) PARTITION BY LIST (tenant);
    CREATE TABLE log_0 PARTITION OF log FOR VALUES IN (0);
    CREATE TABLE log_1 PARTITION OF log FOR VALUES IN (1);
    CREATE INDEX ON log_1 (at) WHERE at > asking();
    INSERT INTO log SELECT g, g % 2, timestamptz '2026-03-10 11:58:00' + g * interval '7 seconds' FROM generate_series(1, 60) g
"""
QUESTION = "SELECT count(*), min(id) FROM log WHERE tenant IN (0, {}) AND at > now() - interval '1 minute' AND at < now() - interval '1 second'"


@pytest.mark.parametrize("asks", ASKS)
def test_answers(server, at, asks):
    server.set(str(START))
    server.psql(SCHEMA.format(asks=ASKS[asks]))
    for second in (0, 31):
        server.set(after(second))
        # A session that has not read the index yet.
        cached, plain = sessions(at)
        for tenant in (0, 2):
            expected = plain.rows(QUESTION.format(tenant))
            for _ in range(2):
                assert cached.rows(QUESTION.format(tenant)) == expected
            assert cached.outcome() == ("HIT", None)
    server.psql("DROP TABLE log, other; DROP FUNCTION asking")
